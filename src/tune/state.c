/* tried.jsonl: a line for every trial and every decision, so that a tuning that was stopped goes on where it was. A line that was cut
 * short by a crash is not read, and the next one begins on a line of its own. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/file.h"
#include "io/json.h"
#include "tune/tune.h"

static const char name[] = "tried.jsonl";

static double number_of(const ki_value *v, double otherwise) {
    double value = otherwise;
    if (!v || v->kind != KI_VALUE_SCALAR || !ki_parse_double(v->text, &value)) return otherwise;
    return value;
}

const char *ki_tune_text(const ki_value *map, const char *key) {
    const ki_value *v = ki_value_get(map, key);
    return v && v->kind == KI_VALUE_SCALAR ? v->text : "";
}

static kith_status read_lines(ki_tune *t, const char *text, size_t n, kith_error *err) {
    while (n > 0) {
        const char *end = memchr(text, '\n', n);
        const size_t length = end ? (size_t)(end - text) : n;
        ki_value *line = NULL;
        kith_error ignored;
        if (end && length > 0 && ki_json_parse(text, length, name, &t->arena, &line, &ignored) == KITH_OK &&
            line->kind == KI_VALUE_MAP) {
            line->key = NULL;
            ki_value_append(t->line, NULL, line);
            const double used = number_of(ki_value_get(line, "seconds"), 0);
            if (used > t->used_before) t->used_before = used;
        }
        if (!end) break;
        n -= length + 1;
        text = end + 1;
    }
    (void)err;
    return KITH_OK;
}

kith_status ki_tune_state_open(ki_tune *t, kith_error *err) {
    kith_status status = KITH_OK;
    ki_path path;
    char *text = NULL;
    size_t n = 0;
    KI_CHECK(ki_path_print(&path, err, "%s/%s", t->folder, name));
    t->line = ki_value_new(&t->arena, KI_VALUE_LIST, NULL);
    if (!t->line) return ki_fail_memory(err, 1, "what was tried");
    if (ki_is_file("%s", path.s)) {
        KI_CHECK(ki_file_read(path.s, (size_t)1 << 30, &text, &n, err));
        KI_CHECK(read_lines(t, text, n, err));
    }
    t->file = open(path.s, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (t->file < 0) {
        status = ki_fail(err, KITH_EIO, "cannot write %s: %s", path.s, strerror(errno));
        goto done;
    }
    t->is_over = ki_tune_has_ended(t);
    if (n > 0 && text[n - 1] != '\n' && write(t->file, "\n", 1) != 1)
        status = ki_fail(err, KITH_EIO, "cannot write %s: %s", path.s, strerror(errno));
done:
    ki_free(text);
    return status;
}

void ki_tune_state_close(ki_tune *t) {
    if (t->file >= 0) close(t->file);
    t->file = -1;
    ki_arena_release(&t->arena);
}

/* Write the line, and know it from now on. */
kith_status ki_tune_add_line(ki_tune *t, kith_json *json, kith_error *err) {
    const char *text = NULL;
    ki_value *line = NULL;
    kith_json_key(json, "seconds");
    kith_json_real(json, ki_tune_seconds(t));
    kith_json_object_end(json);
    KI_TRY(kith_json_finish(json, &text, err));
    const size_t n = strlen(text);
    if (write(t->file, text, n) != (ssize_t)n || write(t->file, "\n", 1) != 1)
        return ki_fail(err, KITH_EIO, "cannot write %s/%s: %s", t->folder, name, strerror(errno));
    KI_TRY(ki_json_parse(text, n, name, &t->arena, &line, err));
    line->key = NULL;
    ki_value_append(t->line, NULL, line);
    return KITH_OK;
}

static const ki_value *find_decision(const ki_tune *t, const char *key) {
    for (const ki_value *v = t->line->first; v; v = v->next) {
        if (strcmp(ki_tune_text(v, "decision"), key) == 0) return v;
    }
    return NULL;
}

bool ki_tune_has_decided(const ki_tune *t, const char *key) { return find_decision(t, key) != NULL; }

void ki_tune_known(const ki_tune *t, const char *key, double *ret) {
    const ki_value *found = find_decision(t, key);
    if (found) *ret = number_of(ki_value_get(found, "value"), *ret);
}

kith_status ki_tune_decide(ki_tune *t, const char *key, double value, double *ret, kith_error *err) {
    const ki_value *found = find_decision(t, key);
    kith_json *json = NULL;
    *ret = found ? number_of(ki_value_get(found, "value"), value) : value;
    if (found) return KITH_OK;
    KI_TRY(kith_json_new(&json, err));
    kith_json_object_begin(json);
    kith_json_key(json, "decision");
    kith_json_string(json, key);
    kith_json_key(json, "value");
    kith_json_real(json, value);
    const kith_status status = ki_tune_add_line(t, json, err);
    kith_json_free(json);
    return status;
}

/* ---- trials ---- */

static const ki_value *find_trial(const ki_tune *t, const char *trial, int64_t mark) {
    for (const ki_value *v = t->line->first; v; v = v->next) {
        if (strcmp(ki_tune_text(v, "trial"), trial) == 0 &&
            number_of(ki_value_get(v, "mark"), -1) == (double)mark)
            return v;
    }
    return NULL;
}

bool ki_tune_find(const ki_tune *t, const char *trial, int64_t mark, ki_tune_scores *to) {
    const ki_value *line = find_trial(t, trial, mark), *classes = ki_value_get(line, "classes");
    if (!line || !classes || classes->kind != KI_VALUE_LIST) return false;
    if (!to) return true;
    for (const ki_value *c = classes->first; c; c = c->next) {
        if (c->kind != KI_VALUE_LIST || c->n_items != 4) return false;
        const int64_t label = (int64_t)number_of(ki_value_at(c, 0), -1);
        if (label < 0 || label >= to->n_classes) return false;
        to->n[label] += number_of(ki_value_at(c, 1), 0);
        to->recall[label] += number_of(ki_value_at(c, 2), 0);
        to->precision[label] += number_of(ki_value_at(c, 3), 0);
    }
    return true;
}

kith_status ki_tune_add(ki_tune *t, const char *trial, int64_t mark, const kith_retrieval *found,
                        kith_error *err) {
    kith_json *json = NULL;
    KI_TRY(kith_json_new(&json, err));
    kith_json_object_begin(json);
    kith_json_key(json, "trial");
    kith_json_string(json, trial);
    kith_json_key(json, "mark");
    kith_json_int(json, mark);
    kith_json_key(json, "recall_at_1");
    kith_json_real(json, found->mean.recall[0]);
    kith_json_key(json, "map_at_r");
    kith_json_real(json, found->mean.map_at_r);
    kith_json_key(json, "classes");
    kith_json_array_begin(json);
    for (int64_t c = 0; c < found->n_classes; c++) {
        const kith_class_scores *s = &found->per_class[c];
        const double n = (double)(s->n_query - s->n_lone);
        if (!(n > 0)) continue;
        kith_json_array_begin(json);
        kith_json_int(json, s->label);
        kith_json_real(json, n);
        kith_json_real(json, n * s->mean.recall[0]);
        kith_json_real(json, n * s->mean.map_at_r);
        kith_json_array_end(json);
    }
    kith_json_array_end(json);
    const kith_status status = ki_tune_add_line(t, json, err);
    kith_json_free(json);
    return status;
}
