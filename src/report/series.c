/* Curves from the lines of a log. */
#include "report/series.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/file.h"
#include "io/json.h"

enum { LONGEST_NAME = 160, LONGEST_TEXT = 600 };
static const size_t MOST_BYTES = (size_t)512 << 20;
static const double MOST_VALUE = 1e100; /* beyond any number of a run; keeps axes finite */

typedef struct reader {
    ki_log_file *log;
    double step;
    char name[LONGEST_NAME];
    kith_error *err;
} reader;

/* A name is new once per curve, so a linear search is fast enough for the few curves. */
static ki_series *find(ki_log_file *log, const char *name) {
    for (size_t i = 0; i < log->n_series; i++) {
        if (strcmp(log->series[i].name, name) == 0) return log->series + i;
    }
    return NULL;
}

/* *ret is NULL when there are too many. */
static kith_status find_or_add(reader *r, ki_series **ret, kith_error *err) {
    ki_log_file *log = r->log;
    *ret = find(log, r->name);
    if (*ret) return KITH_OK;
    if (log->n_series == KI_MOST_SERIES) {
        log->n_left_out++;
        return KITH_OK;
    }
    KI_TRY(
        ki_grow(&log->series, &log->series_capacity, log->n_series + 1, sizeof *log->series, "curves", err));
    const char *name = ki_arena_strdup(&log->arena, r->name);
    if (!name) return ki_fail_memory(err, strlen(r->name), "a curve's name");
    log->series[log->n_series] = (ki_series){.name = name};
    *ret = log->series + log->n_series++;
    return KITH_OK;
}

static bool number_of(const ki_value *v, double *ret) {
    return v && v->kind == KI_VALUE_SCALAR && ki_parse_double(v->text, ret) && fabs(*ret) < MOST_VALUE;
}

static kith_status add_point(reader *r, const ki_value *v) {
    double value = 0;
    const bool is_number = number_of(v, &value);
    if (!is_number && v->kind != KI_VALUE_NULL) return KITH_OK;
    ki_series *s = NULL;
    KI_TRY(find_or_add(r, &s, r->err));
    if (!s) return KITH_OK;
    if (!is_number) {
        s->n_not_finite++;
        return KITH_OK;
    }
    KI_TRY(ki_grow(&s->point, &s->capacity, s->n + 1, sizeof *s->point, "points of a curve", r->err));
    s->point[s->n++] = (ki_point){.step = r->step, .value = value};
    return KITH_OK;
}

/* Earlier logs had the orders of a regularizer by number, the embedding as number 1 among them. */
static kith_status add_orders(reader *r, const ki_value *orders, size_t n) {
    for (const ki_value *v = orders->first; v; v = v->next) {
        if (strcmp(v->key, "1") == 0) continue;
        ki_snprintf(r->name + n, sizeof r->name - n, "/variant_recall_at_1/order_%.20s", v->key);
        KI_TRY(add_point(r, v));
    }
    return KITH_OK;
}

/* Numbers at `map` and one level below; n characters of r->name are the prefix. */
static kith_status add_numbers(reader *r, const ki_value *map, size_t n, int levels) {
    for (const ki_value *v = map->first; v; v = v->next) {
        const int more = ki_snprintf(r->name + n, sizeof r->name - n, "/%s", v->key);
        if (more < 0 || (size_t)more >= sizeof r->name - n) continue; /* not a name that kith writes */
        if (v->kind == KI_VALUE_MAP && strcmp(v->key, "order_recall_at_1") == 0)
            KI_TRY(add_orders(r, v, n));
        else if (v->kind == KI_VALUE_MAP && levels > 0)
            KI_TRY(add_numbers(r, v, n + (size_t)more, levels - 1));
        else
            KI_TRY(add_point(r, v));
    }
    return KITH_OK;
}

static kith_status add_remark(reader *r, const ki_value *line, bool is_warning, bool has_step) {
    ki_log_file *log = r->log;
    const ki_value *text = ki_value_get(line, "text");
    if (!text || text->kind != KI_VALUE_SCALAR) return KITH_OK;
    if (log->n_remarks == KI_MOST_REMARKS) {
        log->n_remarks_left++;
        return KITH_OK;
    }
    const char *copy = ki_arena_strndup(&log->arena, text->text, strnlen(text->text, LONGEST_TEXT));
    if (!copy) return ki_fail_memory(r->err, LONGEST_TEXT, "a remark");
    log->remark[log->n_remarks++] =
        (ki_remark){.step = has_step ? r->step : -1, .is_warning = is_warning, .text = copy};
    return KITH_OK;
}

static void forget_from(ki_log_file *log, const char *prefix, double step) {
    const size_t length = strlen(prefix);
    for (size_t i = 0; i < log->n_series; i++) {
        ki_series *s = log->series + i;
        if (strncmp(s->name, prefix, length) != 0) continue;
        while (s->n > 0 && s->point[s->n - 1].step >= step) s->n--;
    }
}

/* false: the line is not an object with a kind. */
static kith_status add_line(reader *r, const ki_value *line, bool *ret_is_good) {
    const ki_value *kind = ki_value_get(line, "kind"), *split = ki_value_get(line, "split");
    *ret_is_good = kind && kind->kind == KI_VALUE_SCALAR;
    if (!*ret_is_good) return KITH_OK;
    const bool has_step = number_of(ki_value_get(line, "step"), &r->step) && r->step >= 0;
    if (strcmp(kind->text, "warning") == 0) return add_remark(r, line, true, has_step);
    if (strcmp(kind->text, "note") == 0) return add_remark(r, line, false, has_step);
    const bool is_eval = strcmp(kind->text, "eval") == 0;
    if (!is_eval && strcmp(kind->text, "step") != 0) return KITH_OK; /* of a later version */
    *ret_is_good = has_step;
    if (!has_step) return KITH_OK;
    const char *which = is_eval && split && split->kind == KI_VALUE_SCALAR ? split->text : NULL;
    const int n = is_eval ? ki_snprintf(r->name, sizeof r->name, "eval/%.64s", which ? which : "validation")
                          : ki_snprintf(r->name, sizeof r->name, "step");
    double seconds;
    if (number_of(ki_value_get(line, "seconds"), &seconds) && !is_eval) r->log->seconds = seconds;
    char prefix[LONGEST_NAME + 2];
    ki_snprintf(prefix, sizeof prefix, "%s/", r->name);
    forget_from(r->log, prefix, r->step);
    if (!is_eval && r->step < r->log->last_step) forget_from(r->log, "eval/", r->step + 0.5);
    if (!is_eval || r->step > r->log->last_step) r->log->last_step = r->step;
    return add_numbers(r, line, (size_t)n, 1);
}

static void drop_empty(ki_log_file *log) {
    size_t kept = 0;
    for (size_t i = 0; i < log->n_series; i++) {
        if (log->series[i].n > 0)
            log->series[kept++] = log->series[i];
        else
            ki_free(log->series[i].point);
    }
    log->n_series = kept;
}

kith_status ki_log_parse(const char *text, size_t n, ki_log_file *ret_log, kith_error *err) {
    kith_status status = KITH_OK;
    ki_log_file log = {0};
    ki_arena arena = {0};
    const char *const end = text + n;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        const size_t length = (size_t)((stop ? stop : end) - text);
        ki_value *line = NULL;
        bool is_good = false;
        reader r = {.log = &log, .err = err};
        kith_error ignored;
        log.n_lines++;
        const bool is_blank = length == 0 || (length == 1 && *text == '\r');
        const kith_status parsed =
            is_blank ? KITH_EFORMAT : ki_json_parse(text, length, "log", &arena, &line, &ignored);
        if (parsed == KITH_ENOMEM) KI_CHECK(ki_fail_memory(err, length, "a line of the log"));
        if (parsed == KITH_OK) KI_CHECK(add_line(&r, line, &is_good));
        if (!is_good && !is_blank && log.n_bad++ == 0) log.first_bad = log.n_lines;
        ki_arena_release(&arena);
        text = stop ? stop + 1 : end;
    }
    drop_empty(&log);
    *ret_log = log;
    return KITH_OK;
done:
    ki_arena_release(&arena);
    ki_log_release(&log);
    return status;
}

kith_status ki_log_read(const char *path, ki_log_file *ret_log, kith_error *err) {
    char *text = NULL;
    size_t n = 0;
    KI_TRY(ki_file_read(path, MOST_BYTES, &text, &n, err));
    const kith_status status = ki_log_parse(text, n, ret_log, err);
    ki_free(text);
    return status;
}

void ki_log_release(ki_log_file *log) {
    for (size_t i = 0; i < log->n_series; i++) ki_free(log->series[i].point);
    ki_free(log->series);
    ki_arena_release(&log->arena);
    *log = (ki_log_file){0};
}

const ki_series *ki_log_series(const ki_log_file *log, const char *name) {
    return find((ki_log_file *)log, name);
}

const ki_series *ki_log_next(const ki_log_file *log, const char *prefix, size_t *at) {
    while (*at < log->n_series) {
        const ki_series *s = log->series + (*at)++;
        if (strncmp(s->name, prefix, strlen(prefix)) == 0) return s;
    }
    return NULL;
}
