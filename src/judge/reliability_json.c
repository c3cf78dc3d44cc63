/* Reliability as text: a JSON object, for a note of an index. Numbers are kept with five digits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/json.h"
#include "judge/reliability.h"

enum { N = KITH_RELIABILITY_KNOTS, VERSION = 1 };

/* A member of the text: `n_lists` lists of numbers, each in a place of `stride` numbers; the lists are as long as the knots, unless
 * `n` says how long. */
typedef struct member {
    const char *name;
    double *values;
    int n_lists;
    int64_t n, stride;
} member;

enum { N_MEMBERS = 12 };

static void list_members(kith_reliability *r, member ret[N_MEMBERS]) {
    const int64_t n = r->n;
    const member members[N_MEMBERS] = {{"weight", r->weight, 1, KI_RELIABILITY_FEATURES, 0},
                                       {"evidence", r->evidence, 1, n, N},
                                       {"right", r->right, 1, n, N},
                                       {"wrong", r->wrong, 1, n, N},
                                       {"absent", r->absent, 1, n, N},
                                       {"together", r->together, 1, 2, 0},
                                       {"low", r->low[0], KITH_RELIABILITY_SHARES, n, N},
                                       {"high", r->high[0], KITH_RELIABILITY_SHARES, n, N},
                                       {"wrong_most", r->wrong_most[0], KITH_RELIABILITY_SHARES, n, N},
                                       {"found_least", r->found_least, 1, n, N},
                                       {"top_present", r->top_present, 1, KITH_RELIABILITY_TOPS, 0},
                                       {"top_absent", r->top_absent, 1, KITH_RELIABILITY_TOPS, 0}};
    memcpy(ret, members, sizeof members);
}

/* ---- writing ---- */

static double short_number(double value) {
    char text[32];
    ki_snprintf(text, sizeof text, "%.5g", value);
    double read = value;
    return ki_parse_double(text, &read) ? read : value;
}

static void put_int(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    kith_json_int(json, value);
}

static void put_member(kith_json *json, const member *m) {
    kith_json_key(json, m->name);
    kith_json_array_begin(json);
    for (int l = 0; l < m->n_lists; l++) {
        for (int64_t i = 0; i < m->n; i++) kith_json_real(json, short_number(m->values[l * m->stride + i]));
    }
    kith_json_array_end(json);
}

kith_status ki_reliability_write(const kith_reliability *reliability, char **ret_text, kith_error *err) {
    kith_json *json = NULL;
    const char *text = NULL;
    member members[N_MEMBERS];
    kith_reliability *copy = NULL;
    kith_status status;
    KI_CHECK(ki_alloc_or(&copy, 1, sizeof *copy, "the reliability of hits", err));
    *copy = *reliability;
    KI_CHECK(kith_json_new(&json, err));
    list_members(copy, members);
    kith_json_object_begin(json);
    put_int(json, "version", VERSION);
    kith_json_key(json, "metric");
    kith_json_string(json, kith_metric_name(copy->metric));
    put_int(json, "labels", copy->n_labels);
    put_int(json, "present", copy->n_present);
    put_int(json, "left_out", copy->n_absent);
    put_int(json, "depth", copy->depth);
    put_int(json, "knots", copy->n);
    for (int i = 0; i < N_MEMBERS; i++) put_member(json, &members[i]);
    kith_json_object_end(json);
    KI_CHECK(kith_json_finish(json, &text, err));
    *ret_text = ki_strdup(text);
    if (!*ret_text) status = ki_fail_memory(err, strlen(text), "the reliability of hits");
done:
    kith_json_free(json);
    ki_free(copy);
    return status;
}

/* ---- reading ---- */

static const char *scalar(const ki_value *value) {
    return value && value->kind == KI_VALUE_SCALAR ? value->text : NULL;
}

static kith_status get_int(const ki_value *root, const char *key, int64_t *ret, kith_error *err) {
    const char *text = scalar(ki_value_get(root, key));
    if (text && ki_parse_int64(text, ret)) return KITH_OK;
    return ki_fail(err, KITH_EFORMAT, "%s is missing or is no whole number", key);
}

static kith_status get_member(const ki_value *root, const member *m, kith_error *err) {
    const ki_value *list = ki_value_get(root, m->name);
    const int64_t n_all = m->n * m->n_lists;
    if (!list || list->kind != KI_VALUE_LIST || (int64_t)list->n_items != n_all)
        return ki_fail(err, KITH_EFORMAT, "%s is not a list of %lld numbers", m->name, (long long)n_all);
    int64_t i = 0;
    for (const ki_value *v = list->first; v; v = v->next, i++) {
        double *to = &m->values[i / m->n * m->stride + i % m->n];
        if (!scalar(v) || !ki_parse_double(v->text, to))
            return ki_fail(err, KITH_EFORMAT, "%s has an entry that is no number", m->name);
    }
    return KITH_OK;
}

static kith_status read_root(const ki_value *root, kith_reliability *r, kith_error *err) {
    int64_t version = 0;
    member members[N_MEMBERS];
    const char *metric = scalar(ki_value_get(root, "metric"));
    KI_TRY(get_int(root, "version", &version, err));
    if (version != VERSION)
        return ki_fail(err, KITH_EFORMAT, "version %lld; this kith reads %d", (long long)version, VERSION);
    if (!metric || kith_metric_parse(metric, &r->metric, NULL) != KITH_OK)
        return ki_fail(err, KITH_EFORMAT, "the metric is unknown");
    KI_TRY(get_int(root, "labels", &r->n_labels, err));
    KI_TRY(get_int(root, "present", &r->n_present, err));
    KI_TRY(get_int(root, "left_out", &r->n_absent, err));
    KI_TRY(get_int(root, "depth", &r->depth, err));
    KI_TRY(get_int(root, "knots", &r->n, err));
    if (r->n < 1 || r->n > N)
        return ki_fail(err, KITH_EFORMAT, "%lld knots; wanted 1 to %d", (long long)r->n, N);
    list_members(r, members);
    for (int i = 0; i < N_MEMBERS; i++) KI_TRY(get_member(root, &members[i], err));
    return kith_reliability_check(r, err);
}

kith_status ki_reliability_read(const char *text, kith_reliability *ret, kith_error *err) {
    kith_status status;
    ki_arena arena = {0};
    ki_value *root = NULL;
    kith_reliability *r = NULL;
    KI_CHECK(ki_zalloc_or(&r, 1, sizeof *r, "the reliability of hits", err));
    KI_CHECK(ki_json_parse(text, strlen(text), "reliability", &arena, &root, err));
    KI_CHECK(read_root(root, r, err));
    *ret = *r;
done:
    ki_arena_release(&arena);
    ki_free(r);
    return status;
}
