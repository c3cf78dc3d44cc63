/* The log as a table: a row is made from a line's text, so that the table of a resumed run is that of its log. */
#include "train/log_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/path.h"
#include "base/text.h"
#include "io/file.h"
#include "io/json.h"
#include "train/learner.h"

enum { NAME_BYTES = 80 };
static const size_t MOST_BYTES = (size_t)1 << 30;

struct ki_log_table {
    ki_path log, path;
    int fd;
    off_t n_bytes; /* of whole rows */
    char (*column)[NAME_BYTES];
    size_t n_columns, capacity;
    ki_buffer row;
};

/* ---- columns ---- */

static kith_status add_column(ki_log_table *t, kith_error *err, const char *before, const char *name) {
    KI_TRY(ki_grow(&t->column, &t->capacity, t->n_columns + 1, sizeof *t->column, "columns", err));
    ki_snprintf(t->column[t->n_columns++], NAME_BYTES, "%s%s", before, name);
    return KITH_OK;
}

static kith_status make_columns(ki_log_table *t, const ki_log_columns *c, kith_error *err) {
    static const char *const first[] = {"kind", "step", "split", "epoch", "side", "total"}, *const last[] = {
                                                                                                "n_pos",
                                                                                                "n_neg",
                                                                                                "img_per_s",
                                                                                                "seconds"};
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) KI_TRY(add_column(t, err, "", first[i]));
    for (size_t i = 0; i < c->n_terms; i++) KI_TRY(add_column(t, err, "terms.", c->term[i]));
    for (size_t i = 0; i < c->n_terms; i++) KI_TRY(add_column(t, err, "weights.", c->term[i]));
    KI_TRY(add_column(t, err, "", "lr"));
    for (int g = 0; g < KI_N_GROUPS; g++)
        KI_TRY(add_column(t, err, "grad_norm.", ki_learner_group_name((ki_learner_group)g)));
    for (size_t i = 0; i < sizeof last / sizeof last[0]; i++) KI_TRY(add_column(t, err, "", last[i]));
    for (int64_t i = 0; i < c->n_k; i++) {
        char k[24];
        ki_snprintf(k, sizeof k, "%lld", (long long)c->k[i]);
        KI_TRY(add_column(t, err, "recall.", k));
    }
    KI_TRY(add_column(t, err, "", "map_at_r"));
    return add_column(t, err, "", "r_precision");
}

/* ---- rows ---- */

static void put_header(const ki_log_table *t, ki_buffer *to) {
    for (size_t i = 0; i < t->n_columns; i++) ki_buffer_put(to, "%s%s", i ? "," : "", t->column[i]);
    ki_buffer_put(to, "\n");
}

/* The scalar under "NAME" or "MAP.NAME"; NULL: the line has none. */
static const char *cell_of(const ki_value *line, const char *column) {
    const char *dot = strchr(column, '.');
    const ki_value *at = line;
    char key[NAME_BYTES];
    if (dot) {
        ki_snprintf(key, sizeof key, "%.*s", (int)(dot - column), column);
        at = ki_value_get(line, key);
    }
    const ki_value *v = at && at->kind == KI_VALUE_MAP ? ki_value_get(at, dot ? dot + 1 : column) : NULL;
    return v && v->kind == KI_VALUE_SCALAR && !strpbrk(v->text, ",\"\r\n") ? v->text : NULL;
}

/* Nothing for lines about anything but steps and evaluations, and for those that a power failure has damaged. */
static void put_row(const ki_log_table *t, const char *text, size_t n, ki_buffer *to) {
    ki_arena arena = {0};
    ki_value *line = NULL;
    kith_error why = {0};
    const kith_status status = ki_json_parse(text, n, "a line of the log", &arena, &line, &why);
    if (status == KITH_ENOMEM) to->status = ki_fail(to->err, status, "%s", why.message);
    const char *kind = status == KITH_OK && line->kind == KI_VALUE_MAP ? cell_of(line, "kind") : NULL;
    if (kind && (strcmp(kind, "step") == 0 || strcmp(kind, "eval") == 0)) {
        for (size_t i = 0; i < t->n_columns; i++) {
            const char *cell = cell_of(line, t->column[i]);
            ki_buffer_put(to, "%s%s", i ? "," : "", cell ? cell : "");
        }
        ki_buffer_put(to, "\n");
    }
    ki_arena_release(&arena);
}

/* ---- the file ---- */

static kith_status fail_write(const ki_log_table *t, int why, kith_error *err) {
    return ki_fail(err, KITH_EIO, "cannot write %s: %s", t->path.s, strerror(why));
}

static kith_status append(ki_log_table *t, const ki_buffer *rows, kith_error *err) {
    KI_TRY(rows->status);
    for (size_t done = 0; done < rows->n;) {
        const ssize_t got = write(t->fd, rows->data + done, rows->n - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            const int why = errno;
            if (ftruncate(t->fd, t->n_bytes) != 0) errno = 0; /* report the first failure */
            return fail_write(t, why, err);
        }
        done += (size_t)got;
    }
    t->n_bytes += (off_t)rows->n;
    return KITH_OK;
}

kith_status ki_log_table_add(ki_log_table *t, const char *line, size_t n, kith_error *err) {
    t->row.n = 0;
    t->row.status = KITH_OK;
    t->row.err = err;
    put_row(t, line, n, &t->row);
    return append(t, &t->row, err);
}

kith_status ki_log_table_renew(ki_log_table *t, kith_error *err) {
    kith_status status = KITH_OK;
    char *text = NULL;
    size_t n = 0;
    ki_buffer rows = {.err = err};
    if (ki_is_file("%s", t->log.s)) KI_CHECK(ki_file_read(t->log.s, MOST_BYTES, &text, &n, err));
    put_header(t, &rows);
    for (size_t at = 0; at < n && rows.status == KITH_OK;) {
        const char *end = memchr(text + at, '\n', n - at);
        const size_t length = end ? (size_t)(end - text) - at : n - at;
        put_row(t, text + at, length, &rows);
        at += length + 1;
    }
    KI_CHECK(rows.status);
    if (ftruncate(t->fd, 0) != 0) {
        status = fail_write(t, errno, err);
        goto done;
    }
    t->n_bytes = 0;
    status = append(t, &rows, err);
done:
    ki_buffer_release(&rows);
    ki_free(text);
    return status;
}

kith_status ki_log_table_open(const char *folder, const ki_log_columns *columns, ki_log_table **ret_table,
                              kith_error *err) {
    kith_status status;
    ki_log_table *t = NULL;
    KI_CHECK(ki_zalloc_or(&t, 1, sizeof *t, "a table", err));
    t->fd = -1;
    KI_CHECK(ki_path_print(&t->log, err, "%s/log.jsonl", folder));
    KI_CHECK(ki_path_print(&t->path, err, "%s/log.csv", folder));
    KI_CHECK(make_columns(t, columns, err));
    t->fd = open(t->path.s, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (t->fd < 0) {
        status = fail_write(t, errno, err);
        goto done;
    }
    KI_CHECK(ki_log_table_renew(t, err));
    *ret_table = t;
    t = NULL;
done:
    ki_log_table_close(t);
    return status;
}

void ki_log_table_close(ki_log_table *t) {
    if (!t) return;
    if (t->fd >= 0) close(t->fd);
    ki_buffer_release(&t->row);
    ki_free(t->column);
    ki_free(t);
}
