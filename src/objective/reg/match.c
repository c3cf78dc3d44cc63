/* A linear map of the embedding that gives a teacher's (match.h has the formulas).
 *
 * Sources: Romero et al., FitNets, ICLR 2015 (a learned map, squared distance); Budnik and Avrithis, Asymmetric Metric Learning, CVPR
 * 2021 (the cosine of an image and itself in two networks). */
#include "objective/reg/match.h"

#include "base/text.h"
#include "objective/gemm.h"
#include "objective/pair/pairs.h"
#include "objective/reg/teacher.h"

static const char *const forms[] = {"cosine", "squared", NULL};

static const ki_option options[] = {
    KI_TEACHER_OPTION(ki_match_settings),
    KI_OPTION_CHOICE(ki_match_settings, form, KI_MATCH_COSINE, forms,
                     "distance of the mapped embedding and the teacher's", "Budnik and Avrithis; FitNets"),
    KI_OPTION_REAL(ki_match_settings, lr_multiplier, 1, 0, 1e6, "learning rate of the map over the network's",
                   "ours"),
    KI_OPTION_END};

static kith_status taps_of(const void *settings, unsigned *ret_taps, kith_error *err) {
    const ki_match_settings *o = settings;
    (void)err;
    *ret_taps = KI_TAP_BIT(KI_TAP_EMBEDDING) | KI_TAP_BIT(ki_tap_of_teacher((int)o->teacher));
    return KITH_OK;
}

/* The names have the teacher's number: maps of two teachers are two maps. */
static kith_status params(const void *settings, const ki_sizes *sizes, ki_state_list *list, kith_error *err) {
    const ki_match_settings *o = settings;
    char name[32];
    KI_TRY(ki_teacher_check(sizes, o->teacher, "match", err));
    if (!sizes->embedding) return ki_fail_size(err, "match", "the embedding's dimension");
    const int64_t w = sizes->teacher[o->teacher];
    ki_snprintf(name, sizeof name, "match.%d.weight", (int)o->teacher);
    KI_TRY(
        ki_state_add(list, name, KI_SHAPE2(w, sizes->embedding), KI_INIT_GLOROT, 0, o->lr_multiplier, err));
    ki_snprintf(name, sizeof name, "match.%d.bias", (int)o->teacher);
    return ki_state_add(list, name, KI_SHAPE1(w), KI_INIT_CONSTANT, 0, o->lr_multiplier, err);
}

/* diff_y is assigned; y [m, w] may be overwritten. */
static kith_status by_cosine(const ki_reg_in *in, const ki_tap_data *t, ki_real *y, ki_real *diff_y,
                             double *ret_value, kith_error *err) {
    const int64_t m = in->m, w = t->cols;
    ki_real *unit = NULL, *wanted = NULL, *norm = NULL, *unused = NULL;
    double value = 0;
    KI_TRY(ki_work_reals(in->work, m * w, "unit rows", &unit, err));
    KI_TRY(ki_work_reals(in->work, m * w, "a teacher's unit rows", &wanted, err));
    KI_TRY(ki_work_reals(in->work, m, "norms", &norm, err));
    KI_TRY(ki_work_reals(in->work, m, "norms", &unused, err));
    ki_rows_normalize(y, m, w, unit, norm);
    ki_rows_normalize(t->data, m, w, wanted, unused);
    for (int64_t i = 0; i < m; i++) {
        value += 1 - (double)in->vec->dot(unit + i * w, wanted + i * w, w);
        in->vec->copy(wanted + i * w, (ki_real)(-1 / (double)m), y + i * w, w);
    }
    ki_rows_normalize_assign(unit, norm, y, m, w, diff_y);
    *ret_value = value / (double)m;
    return KITH_OK;
}

static void by_square(const ki_reg_in *in, const ki_tap_data *t, const ki_real *y, ki_real *diff_y,
                      double *ret_value) {
    const int64_t m = in->m, w = t->cols;
    const double scale = 1 / ((double)m * (double)w);
    double value = 0;
    for (int64_t i = 0; i < m; i++) {
        ki_real *diff = diff_y + i * w;
        in->vec->less(y + i * w, t->data + i * w, 1, 1, diff, w);
        value += (double)in->vec->dot(diff, diff, w);
        in->vec->copy(diff, (ki_real)(2 * scale), diff, w);
    }
    *ret_value = scale * value;
}

static kith_status eval(const ki_reg_in *in, ki_reg_out *out, kith_error *err) {
    const ki_match_settings *o = in->settings;
    const ki_tap_data *x = &in->tap[KI_TAP_EMBEDDING], *t = &in->tap[ki_tap_of_teacher((int)o->teacher)];
    const int64_t m = in->m, d = x->cols, w = t->cols;
    const ki_real *weight = in->param[KI_MATCH_WEIGHT]->value, *bias = in->param[KI_MATCH_BIAS]->value;
    ki_real *y = NULL, *diff_y = NULL, *diff_x = NULL, *const *diff = NULL;
    KI_TRY(ki_reg_take_params(in, out, &diff, err));
    KI_TRY(ki_reg_take_diff(in, KI_TAP_EMBEDDING, &diff_x, err));
    KI_TRY(ki_work_reals(in->work, m * w, "mapped embeddings", &y, err));
    KI_TRY(ki_work_reals(in->work, m * w, "their gradients", &diff_y, err));
    for (int64_t i = 0; i < m; i++) in->vec->copy(bias, 1, y + i * w, w);
    ki_gemm(false, true, m, w, d, 1, x->data, d, weight, d, 1, y, w);
    if (o->form == KI_MATCH_COSINE)
        KI_TRY(by_cosine(in, t, y, diff_y, &out->value, err));
    else
        by_square(in, t, y, diff_y, &out->value);
    ki_gemm(false, false, m, d, w, 1, diff_y, w, weight, d, 0, diff_x, d);
    if (diff[KI_MATCH_WEIGHT]) {
        ki_gemm(true, false, w, d, m, 1, diff_y, w, x->data, d, 1, diff[KI_MATCH_WEIGHT], d);
        for (int64_t i = 0; i < m; i++) in->vec->add(diff_y + i * w, 1, diff[KI_MATCH_BIAS], w);
    }
    ki_reg_add_diff(in, out, KI_TAP_EMBEDDING, diff_x);
    ki_reg_add_params(in, out, diff);
    return KITH_OK;
}

const ki_reg ki_reg_match = {
    .method = {.name = "match",
               .summary = "a learned linear map of the embedding gives a teacher's",
               .source = "FitNets, Romero et al., ICLR 2015; Budnik and Avrithis, CVPR 2021",
               .options = options,
               .settings_bytes = sizeof(ki_match_settings)},
    .taps = KI_TAP_BIT(KI_TAP_EMBEDDING),
    .taps_of = taps_of,
    .counts_all = true,
    .normalize = true,
    .params = params,
    .eval = eval,
};
