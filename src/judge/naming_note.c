/* A curve of names as JSON. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "judge/naming.h"

enum { N_VALUES = 7 }; /* of a point */

static void put_int(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    kith_json_int(json, value);
}

static void put_reals(kith_json *json, const double *values, int64_t n) {
    kith_json_array_begin(json);
    for (int64_t i = 0; i < n; i++) kith_json_real(json, values[i]);
    kith_json_array_end(json);
}

kith_status ki_naming_write(const ki_name_curve *c, kith_json *json, const char **ret_text, kith_error *err) {
    kith_json_object_begin(json);
    kith_json_key(json, "metric");
    kith_json_string(json, kith_metric_name(c->metric));
    put_int(json, "rows", c->n_rows);
    put_int(json, "labels", c->n_labels);
    put_int(json, "single", c->n_single);
    put_int(json, "unknown", c->n_unknown);
    put_int(json, "known", c->n_known);
    kith_json_key(json, "independent");
    kith_json_real(json, c->n_independent);
    kith_json_key(json, "points");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < c->n; i++) {
        const ki_naming_point *p = &c->point[i];
        const double values[N_VALUES] = {p->evidence,   p->unknown, p->unknown_high, p->wrong,
                                         p->wrong_high, p->low,     p->named};
        put_reals(json, values, N_VALUES);
    }
    kith_json_array_end(json);
    kith_json_key(json, "near_unknown");
    put_reals(json, c->near_unknown, KI_NAMING_QUANTILES);
    kith_json_key(json, "near_known");
    put_reals(json, c->near_known, KI_NAMING_QUANTILES);
    kith_json_object_end(json);
    return kith_json_finish(json, ret_text, err);
}

static kith_status fail(kith_error *err, const char *key, const char *wanted) {
    ki_fail(err, KITH_EFORMAT, "the curve of names is damaged: %s is not %s", key, wanted);
    return ki_hint(err, KITH_EFORMAT, "measure it again: kith index INDEX --calibrate INDEX");
}

static bool number(const ki_value *value, double *ret) {
    return value && value->kind == KI_VALUE_SCALAR && !value->is_quoted &&
           ki_parse_double(value->text, ret) && isfinite(*ret);
}

static kith_status get_int(const ki_value *root, const char *key, int64_t *ret, kith_error *err) {
    const ki_value *value = ki_value_get(root, key);
    if (value && value->kind == KI_VALUE_SCALAR && ki_parse_int64(value->text, ret) && *ret >= 0)
        return KITH_OK;
    return fail(err, key, "a whole number from 0 on");
}

static bool get_reals(const ki_value *list, double *ret, size_t n) {
    if (!list || list->kind != KI_VALUE_LIST || list->n_items != n) return false;
    const ki_value *at = list->first;
    for (size_t i = 0; i < n; i++, at = at->next) {
        if (!number(at, &ret[i])) return false;
    }
    return true;
}

static bool is_rate(double x) { return x >= 0 && x <= 1; }

/* From strict to loose: evidence falls, bounds do not, and each is no less than its rate. */
static bool follows(const ki_naming_point *p, const ki_naming_point *before) {
    if (!is_rate(p->unknown) || !is_rate(p->unknown_high) || !is_rate(p->wrong) || !is_rate(p->wrong_high) ||
        !is_rate(p->low) || !is_rate(p->named))
        return false;
    if (p->unknown_high < p->unknown - 1e-9 || p->wrong_high < p->wrong - 1e-9) return false;
    return !before || (p->evidence < before->evidence && p->unknown_high >= before->unknown_high &&
                       p->wrong_high >= before->wrong_high);
}

static kith_status get_points(const ki_value *root, ki_name_curve *c, kith_error *err) {
    const ki_value *list = ki_value_get(root, "points");
    if (!list || list->kind != KI_VALUE_LIST || list->n_items < 1 || list->n_items > KI_NAMING_POINTS)
        return fail(err, "points", "a list of 1 to 256 points");
    for (const ki_value *at = list->first; at; at = at->next) {
        double v[N_VALUES];
        if (!get_reals(at, v, N_VALUES)) return fail(err, "a point", "a list of 7 numbers");
        const ki_naming_point p = {v[0], v[1], v[2], v[3], v[4], v[5], v[6]};
        if (!follows(&p, c->n > 0 ? &c->point[c->n - 1] : NULL))
            return fail(err, "a point", "in order, with rates from 0 to 1");
        c->point[c->n++] = p;
    }
    return KITH_OK;
}

static kith_status get_quantiles(const ki_value *root, const char *key, double *ret, kith_error *err) {
    bool is_good = get_reals(ki_value_get(root, key), ret, KI_NAMING_QUANTILES);
    for (int i = 1; is_good && i < KI_NAMING_QUANTILES; i++) is_good = ret[i] >= ret[i - 1];
    return is_good ? KITH_OK : fail(err, key, "a list of 33 numbers in order");
}

static kith_status get_all(const ki_value *root, ki_name_curve *c, kith_error *err) {
    const ki_value *metric = ki_value_get(root, "metric"), *value = ki_value_get(root, "independent");
    if (!metric || metric->kind != KI_VALUE_SCALAR ||
        kith_metric_parse(metric->text, &c->metric, NULL) != KITH_OK)
        return fail(err, "metric", "the name of a metric");
    KI_TRY(get_int(root, "rows", &c->n_rows, err));
    KI_TRY(get_int(root, "labels", &c->n_labels, err));
    KI_TRY(get_int(root, "single", &c->n_single, err));
    KI_TRY(get_int(root, "unknown", &c->n_unknown, err));
    KI_TRY(get_int(root, "known", &c->n_known, err));
    if (!number(value, &c->n_independent) || c->n_independent < 0)
        return fail(err, "independent", "a number from 0 on");
    KI_TRY(get_points(root, c, err));
    KI_TRY(get_quantiles(root, "near_unknown", c->near_unknown, err));
    return get_quantiles(root, "near_known", c->near_known, err);
}

kith_status ki_naming_read(const char *text, ki_name_curve *ret, kith_error *err) {
    ki_arena arena = {0};
    ki_value *root = NULL;
    *ret = (ki_name_curve){0};
    kith_status status = ki_json_parse(text, strlen(text), "the curve of names", &arena, &root, err);
    if (status == KITH_EFORMAT) status = fail(err, "its text", "JSON");
    if (status == KITH_OK) status = get_all(root, ret, err);
    ki_arena_release(&arena);
    return status;
}
