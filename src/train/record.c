/* Writing the log, its table and the event file. */
#include "train/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/path.h"
#include "base/text.h"
#include "io/events.h"
#include "io/file.h"
#include "kith/experimental/json.h"

/* How the lines of ki_record_add_step begin. */
static const char step_line[] = "{\"kind\": \"step\", \"step\": ";

enum { MOST_SCALARS = 128, TAG_BYTES = 96 };

struct ki_record {
    int fd;
    int64_t n_bytes;
    char *path;
    kith_json *json;
    ki_events *events;
    ki_log_table *table;
    /* Of the line being written. */
    int n_scalars;
    ki_events_scalar scalar[MOST_SCALARS];
    char tag[MOST_SCALARS][TAG_BYTES];
};

static kith_status fail_write(const ki_record *r, kith_error *err) {
    return ki_fail(err, KITH_EIO, "cannot write %s: %s", r->path, strerror(errno));
}

/* The recipe, for TensorBoard's page of texts. */
static kith_status put_recipe(ki_record *r, const char *folder, kith_error *err) {
    enum { MOST_BYTES = 1 << 20 };
    ki_path path;
    char *text = NULL;
    size_t n = 0;
    KI_TRY(ki_path_print(&path, err, "%s/recipe.yaml", folder));
    if (!ki_is_file("%s", path.s)) return KITH_OK;
    KI_TRY(ki_file_read(path.s, MOST_BYTES, &text, &n, err));
    const kith_status status = ki_events_add_text(r->events, (double)time(NULL), 0, "recipe", text, err);
    ki_free(text);
    return status;
}

kith_status ki_record_open(const char *folder, int64_t keep_bytes, int64_t step,
                           const ki_log_columns *columns, ki_record **ret_record, kith_error *err) {
    kith_status status;
    ki_record *r = NULL;
    struct stat info;
    KI_CHECK(ki_zalloc_or(&r, 1, sizeof *r, "a log", err));
    r->fd = -1;
    const size_t bytes = strlen(folder) + sizeof "/log.jsonl";
    KI_CHECK(ki_alloc_or(&r->path, bytes, 1, "a path", err));
    ki_snprintf(r->path, bytes, "%s/log.jsonl", folder);
    KI_CHECK(ki_events_open(folder, (double)time(NULL), step, &r->events, err));
    KI_CHECK(kith_json_new(&r->json, err));
    r->fd = open(r->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (r->fd < 0 || fstat(r->fd, &info) != 0) {
        status = fail_write(r, err);
        goto done;
    }
    /* After a power failure the file may be shorter than the checkpoint says. */
    r->n_bytes = info.st_size < keep_bytes ? info.st_size : keep_bytes;
    if (ftruncate(r->fd, r->n_bytes) != 0) {
        status = fail_write(r, err);
        goto done;
    }
    KI_CHECK(ki_log_table_open(folder, columns, &r->table, err));
    if (step == 0) KI_CHECK(put_recipe(r, folder, err));
    *ret_record = r;
    r = NULL;
done:
    ki_record_close(r);
    return status;
}

void ki_record_close(ki_record *r) {
    if (!r) return;
    if (r->fd >= 0) close(r->fd);
    ki_events_close(r->events);
    ki_log_table_close(r->table);
    kith_json_free(r->json);
    ki_free(r->path);
    ki_free(r);
}

/* One write per line: a reader sees whole lines. A line that does not fit is removed again. */
static kith_status put_line(ki_record *r, kith_error *err) {
    const char *text = NULL;
    KI_TRY(kith_json_finish(r->json, &text, err));
    const size_t n = strlen(text);
    char *line = ki_alloc(n + 1, 1);
    if (!line) return ki_fail_memory(err, n, "a line of the log");
    memcpy(line, text, n);
    line[n] = '\n';
    size_t done = 0;
    kith_status status = KITH_OK;
    while (done < n + 1) {
        const ssize_t got = write(r->fd, line + done, n + 1 - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            status = fail_write(r, err);
            if (ftruncate(r->fd, r->n_bytes) != 0) errno = 0;
            break;
        }
        done += (size_t)got;
    }
    if (status == KITH_OK) r->n_bytes += (int64_t)n + 1;
    ki_free(line);
    return status == KITH_OK ? ki_log_table_add(r->table, text, n, err) : status;
}

static void key_real(kith_json *json, const char *key, double value) {
    kith_json_key(json, key);
    kith_json_real(json, value);
}

static void key_int(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    kith_json_int(json, value);
}

/* A number for TensorBoard, under PREFIX/NAME. */
static void chart(ki_record *r, const char *prefix, const char *name, double value) {
    if (r->n_scalars == MOST_SCALARS) return;
    const int i = r->n_scalars++;
    ki_snprintf(r->tag[i], TAG_BYTES, "%s%s%s", prefix, *prefix ? "/" : "", name);
    r->scalar[i] = (ki_events_scalar){r->tag[i], (float)value};
}

static kith_status put_charts(ki_record *r, int64_t step, kith_error *err) {
    const size_t n = (size_t)r->n_scalars;
    r->n_scalars = 0;
    return ki_events_add(r->events, (double)time(NULL), step, r->scalar, n, err);
}

static kith_json *begin(ki_record *r, const char *kind, int64_t step) {
    kith_json_reset(r->json);
    kith_json_object_begin(r->json);
    kith_json_key(r->json, "kind");
    kith_json_string(r->json, kind);
    key_int(r->json, "step", step);
    return r->json;
}

kith_status ki_record_add_step(ki_record *r, const ki_record_step *s, kith_error *err) {
    if (!r) return KITH_OK;
    kith_json *json = begin(r, "step", s->step);
    const ki_learner_values *v = s->values;
    key_int(json, "epoch", s->epoch);
    if (s->side > 0) key_int(json, "side", s->side);
    key_real(json, "total", v->total);
    kith_json_key(json, "terms");
    kith_json_object_begin(json);
    for (size_t i = 0; i < v->n_terms; i++) key_real(json, v->term[i].name, v->term[i].value);
    kith_json_object_end(json);
    kith_json_key(json, "weights");
    kith_json_object_begin(json);
    for (size_t i = 0; i < v->n_terms; i++) key_real(json, v->term[i].name, v->term[i].weight);
    kith_json_object_end(json);
    key_real(json, "lr", s->lr);
    kith_json_key(json, "grad_norm");
    kith_json_object_begin(json);
    for (int g = 0; g < KI_N_GROUPS; g++)
        key_real(json, ki_learner_group_name((ki_learner_group)g), v->grad_norm[g]);
    kith_json_object_end(json);
    key_int(json, "n_pos", v->n_pos);
    key_int(json, "n_neg", v->n_neg);
    key_real(json, "img_per_s", s->images_per_second);
    key_real(json, "seconds", s->seconds);
    kith_json_object_end(json);
    KI_TRY(put_line(r, err));
    chart(r, "loss", "total", v->total);
    for (size_t i = 0; i < v->n_terms; i++) chart(r, "loss", v->term[i].name, v->term[i].value);
    for (int g = 0; g < KI_N_GROUPS; g++)
        chart(r, "grad_norm", ki_learner_group_name((ki_learner_group)g), v->grad_norm[g]);
    chart(r, "", "lr", s->lr);
    chart(r, "", "img_per_s", s->images_per_second);
    return put_charts(r, s->step, err);
}

static const ki_variant_scores *next_curve(const ki_variant_list *list, size_t *at) {
    while (list && *at < list->n) {
        const ki_variant_scores *v = &list->item[(*at)++];
        if ((v->variant.has & KI_VARIANT_CURVE) && v->scores.is_there) return v;
    }
    return NULL;
}

static void put_variants(kith_json *json, const ki_variant_list *list) {
    size_t at = 0;
    const ki_variant_scores *v = next_curve(list, &at);
    if (!v) return;
    kith_json_key(json, "variant_recall_at_1");
    kith_json_object_begin(json);
    for (; v; v = next_curve(list, &at)) key_real(json, v->variant.name, v->scores.recall[0]);
    kith_json_object_end(json);
}

static void chart_variants(ki_record *r, const char *prefix, const ki_variant_list *list) {
    size_t at = 0;
    for (const ki_variant_scores *v; (v = next_curve(list, &at));) {
        char name[TAG_BYTES];
        ki_snprintf(name, sizeof name, "recall_1_%s", v->variant.name);
        chart(r, prefix, name, v->scores.recall[0]);
    }
}

kith_status ki_record_add_eval(ki_record *r, int64_t step, const char *split, int64_t n_k, const int64_t *k,
                               const ki_scores *scores, const ki_variant_list *variants, kith_error *err) {
    if (!r) return KITH_OK;
    kith_json *json = begin(r, "eval", step);
    kith_json_key(json, "split");
    kith_json_string(json, split);
    kith_json_key(json, "recall");
    kith_json_object_begin(json);
    for (int64_t i = 0; i < n_k; i++) {
        char name[32];
        ki_snprintf(name, sizeof name, "%lld", (long long)k[i]);
        key_real(json, name, scores->recall[i]);
    }
    kith_json_object_end(json);
    key_real(json, "map_at_r", scores->map_at_r);
    key_real(json, "r_precision", scores->r_precision);
    put_variants(json, variants);
    key_real(json, "seconds", scores->seconds);
    kith_json_object_end(json);
    KI_TRY(put_line(r, err));
    char prefix[48];
    ki_snprintf(prefix, sizeof prefix, "eval/%s", split);
    for (int64_t i = 0; i < n_k; i++) {
        char name[32];
        ki_snprintf(name, sizeof name, "recall_%lld", (long long)k[i]);
        chart(r, prefix, name, scores->recall[i]);
    }
    chart(r, prefix, "map_at_r", scores->map_at_r);
    chart(r, prefix, "r_precision", scores->r_precision);
    chart_variants(r, prefix, variants);
    return put_charts(r, step, err);
}

kith_status ki_record_add_text(ki_record *r, const char *kind, int64_t step, const char *text,
                               const char *const *images, int64_t n_images, kith_error *err) {
    if (!r) return KITH_OK;
    kith_json *json = begin(r, kind, step);
    kith_json_key(json, "text");
    kith_json_string(json, text);
    if (images) {
        kith_json_key(json, "images");
        kith_json_array_begin(json);
        for (int64_t i = 0; i < n_images; i++) kith_json_string(json, images[i]);
        kith_json_array_end(json);
    }
    kith_json_object_end(json);
    return put_line(r, err);
}

int64_t ki_record_bytes(const ki_record *r) { return r ? r->n_bytes : 0; }

kith_status ki_record_cut(ki_record *r, int64_t bytes, kith_error *err) {
    if (!r) return KITH_OK;
    if (ftruncate(r->fd, bytes) != 0) return fail_write(r, err);
    r->n_bytes = bytes;
    return ki_log_table_renew(r->table, err);
}

kith_status ki_record_last_step(const char *folder, int64_t *ret_step, kith_error *err) {
    enum { TAIL_BYTES = 1 << 16 }; /* lines about other things may follow it */
    kith_status status;
    ki_path path;
    int fd = -1;
    long long file_bytes = 0, step = -1;
    char *tail = NULL;
    *ret_step = -1;
    KI_TRY(ki_path_print(&path, err, "%s/log.jsonl", folder));
    if (!ki_is_file("%s", path.s)) return KITH_OK;
    KI_CHECK(ki_file_open(path.s, KI_FILE_ONLY, &fd, &file_bytes, err));
    const long long n = file_bytes < TAIL_BYTES ? file_bytes : TAIL_BYTES;
    KI_CHECK(ki_zalloc_or(&tail, (size_t)n + 1, 1, "the end of a log", err));
    KI_CHECK(ki_file_read_at(fd, path.s, tail, (size_t)n, file_bytes - n, err));
    for (const char *at = tail; (at = strstr(at, step_line)); at++)
        sscanf(at + strlen(step_line), "%lld", &step);
    *ret_step = step;
done:
    ki_free(tail);
    if (fd >= 0) close(fd);
    return status;
}

kith_status ki_record_sync(ki_record *r, int64_t *ret_bytes, kith_error *err) {
    if (fsync(r->fd) != 0) return fail_write(r, err);
    *ret_bytes = r->n_bytes;
    return KITH_OK;
}
