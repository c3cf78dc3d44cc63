/* Reading and checking nested widths. */
#include "objective/nested.h"

#include "base/text.h"

static kith_status fail_list(const char *key, const ki_value *list, const char *wanted, kith_error *err) {
    char found[80];
    return ki_fail(err, KITH_EINVAL, "objective.%s is %s; wanted %s", key,
                   ki_value_describe(list, found, sizeof found), wanted);
}

static bool is_nothing(const ki_value *v) {
    return !v || v->kind == KI_VALUE_NULL || (v->kind == KI_VALUE_LIST && v->n_items == 0);
}

static kith_status parse_widths(const ki_value *list, ki_nested *ret, kith_error *err) {
    bool good = list->kind == KI_VALUE_LIST && list->n_items <= KI_NESTED_MOST;
    int64_t before = 0;
    for (const ki_value *v = good ? list->first : NULL; v && good; v = v->next) {
        int64_t width = 0;
        good = v->kind == KI_VALUE_SCALAR && ki_parse_whole(v->text, &width) && width > before;
        ki_snprintf(ret->name[ret->n], sizeof ret->name[0], "first_%lld", (long long)width);
        ret->width[ret->n++] = before = width;
    }
    return good ? KITH_OK
                : fail_list("nested", list, "up to 12 rising whole numbers: [32, 64, 128, 512]", err);
}

static kith_status parse_shares(const ki_value *list, ki_nested *ret, kith_error *err) {
    double sum = 0;
    int n = 0;
    bool good = list->kind == KI_VALUE_LIST && list->n_items == (size_t)ret->n;
    for (const ki_value *v = good ? list->first : NULL; v && good; v = v->next) {
        double share = 0;
        good = v->kind == KI_VALUE_SCALAR && ki_parse_double(v->text, &share) && share > 0 && share <= 1e9;
        sum += ret->share[n++] = share;
    }
    if (!good) {
        fail_list("nested_weights", list, "a number above 0 for each width", err);
        return ki_hint(err, KITH_EINVAL, "objective.nested has %d widths", ret->n);
    }
    for (int i = 0; i < ret->n; i++) ret->share[i] /= sum;
    return KITH_OK;
}

kith_status ki_nested_check(const ki_nested *nested, int64_t embedding, kith_error *err) {
    if (nested->n == 0 || nested->width[nested->n - 1] <= embedding) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "objective.nested has the width %lld, and the embedding has %lld numbers",
            (long long)nested->width[nested->n - 1], (long long)embedding);
    return ki_hint(err, KITH_EINVAL, "end the list with %lld, or make model.embedding larger",
                   (long long)embedding);
}

kith_status ki_nested_parse(const ki_value *section, int64_t embedding, ki_nested *ret, kith_error *err) {
    const ki_value *widths = ki_value_get(section, "nested"),
                   *shares = ki_value_get(section, "nested_weights");
    *ret = (ki_nested){0};
    if (is_nothing(widths)) {
        if (is_nothing(shares)) return KITH_OK;
        ki_fail(err, KITH_EINVAL, "objective.nested_weights without objective.nested");
        return ki_hint(err, KITH_EINVAL, "write the widths, too: nested: [32, 64, 128, 512]");
    }
    KI_TRY(parse_widths(widths, ret, err));
    for (int i = 0; i < ret->n; i++) ret->share[i] = 1.0 / ret->n;
    if (!is_nothing(shares)) KI_TRY(parse_shares(shares, ret, err));
    return embedding > 0 ? ki_nested_check(ret, embedding, err) : KITH_OK;
}
