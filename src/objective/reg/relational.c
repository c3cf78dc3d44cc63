/* Similarities like a teacher's (relational.h has the formulas).
 *
 * Sources: square: Park et al., Relational Knowledge Distillation, CVPR 2019, and Tung and Mori, Similarity-Preserving Knowledge
 * Distillation, ICCV 2019, who compare other functions of pairs; softmax: Koohpayegani et al., CompRess, NeurIPS 2020 (temperature
 * 0.04), and Fang et al., SEED, ICLR 2021, over a memory instead of the batch. */
#include "objective/reg/relational.h"

#include "objective/gemm.h"
#include "objective/reg/over_pairs.h"
#include "objective/reg/teacher.h"

static const char *const forms[] = {"square", "softmax", NULL};

static const ki_option options[] = {
    KI_TEACHER_OPTION(ki_relational_settings),
    KI_OPTION_CHOICE(ki_relational_settings, form, KI_RELATIONAL_SQUARE, forms,
                     "difference of similarities, or of their softmax over each row", "RKD; CompRess"),
    KI_OPTION_REAL(ki_relational_settings, temperature, 0.04, 1e-3, 1e3, "softmax: of the student",
                   "CompRess: 0.04"),
    KI_OPTION_REAL(ki_relational_settings, teacher_temperature, 0.04, 1e-3, 1e3, "softmax: of the teacher",
                   "CompRess: 0.04; SEED: 0.01"),
    KI_OPTION_END};

static kith_status taps_of(const void *settings, unsigned *ret_taps, kith_error *err) {
    const ki_relational_settings *o = settings;
    (void)err;
    *ret_taps = KI_TAP_BIT(KI_TAP_EMBEDDING) | KI_TAP_BIT(ki_tap_of_teacher((int)o->teacher));
    return KITH_OK;
}

static kith_status params(const void *settings, const ki_sizes *sizes, ki_state_list *list, kith_error *err) {
    const ki_relational_settings *o = settings;
    (void)list;
    return ki_teacher_check(sizes, o->teacher, "relational", err);
}

typedef struct pass {
    const ki_relational_settings *o;
    const ki_real *target; /* [m, m] */
    double share;          /* of a head in s */
} pass;

static double square_row(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const pass *p = context;
    const ki_real *t = p->target + row->i * pairs->m;
    double sum = 0;
    for (int64_t j = 0; j < row->n; j++) {
        if (j == row->i) continue;
        const double off = p->share * (double)row->s[j] - (double)t[j];
        sum += off * off;
        row->g[j] = (ki_real)(2 * p->share * off);
    }
    return sum;
}

/* dst = e^(a (s - most)) without the row's own column, and its sum; *ret_most is the largest s of the others. */
static double exp_row(const ki_row *row, const ki_real *s, double a, ki_real *dst, double *ret_most) {
    double most = -(double)KI_REAL_MAX, sum = 0;
    for (int64_t j = 0; j < row->n; j++) {
        if (j != row->i && (double)s[j] > most) most = (double)s[j];
    }
    for (int64_t j = 0; j < row->n; j++) {
        dst[j] = j == row->i ? 0 : ki_exp((ki_real)(a * ((double)s[j] - most)));
        sum += (double)dst[j];
    }
    *ret_most = most;
    return sum;
}

/* log(p/q) from the exponents, because p and q themselves may be too small for a number. */
static double softmax_row(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const pass *p = context;
    const ki_real *t = p->target + row->i * pairs->m;
    ki_real *of_student = row->scratch, *of_teacher = row->scratch + pairs->ld;
    const double a = p->share / p->o->temperature, b = 1 / p->o->teacher_temperature;
    double most_s = 0, most_t = 0, value = 0;
    if (row->n < 2) return 0;
    const double sum_s = exp_row(row, row->s, a, of_student, &most_s);
    const double sum_t = exp_row(row, t, b, of_teacher, &most_t);
    const double between = log(sum_s) - log(sum_t);
    for (int64_t j = 0; j < row->n; j++) {
        const double q = (double)of_student[j] / sum_s, r = (double)of_teacher[j] / sum_t;
        if (j == row->i) continue;
        value += r * (b * ((double)t[j] - most_t) - a * ((double)row->s[j] - most_s) + between);
        row->g[j] = (ki_real)(a * (q - r));
    }
    return value;
}

/* Cosines of the teacher's rows. */
static kith_status make_target(const ki_reg_in *in, const ki_real **ret, kith_error *err) {
    const ki_relational_settings *o = in->settings;
    const ki_tap_data *teacher = &in->tap[ki_tap_of_teacher((int)o->teacher)];
    ki_real *unit = NULL, *norm = NULL, *target = NULL;
    KI_TRY(ki_work_reals(in->work, in->m * in->m, "a teacher's similarities", &target, err));
    KI_TRY(ki_work_reals(in->work, in->m * teacher->cols, "a teacher's unit rows", &unit, err));
    KI_TRY(ki_work_reals(in->work, in->m, "norms", &norm, err));
    ki_rows_normalize(teacher->data, in->m, teacher->cols, unit, norm);
    ki_gemm(false, true, in->m, in->m, teacher->cols, 1, unit, teacher->cols, unit, teacher->cols, 0, target,
            in->m);
    *ret = target;
    return KITH_OK;
}

static kith_status eval(const ki_reg_in *in, ki_reg_out *out, kith_error *err) {
    const ki_relational_settings *o = in->settings;
    const ki_tap_data *x = &in->tap[KI_TAP_EMBEDDING];
    const double m = (double)in->m;
    pass p = {.o = o, .share = 1 / (double)in->heads};
    ki_pairs pairs;
    int32_t *label = NULL; /* nobody asks for classes */
    ki_real *g = NULL;
    if (in->m < 2) return KITH_OK;
    const bool is_square = o->form == KI_RELATIONAL_SQUARE;
    const double scale = is_square ? 1 / (m * (m - 1)) : 1 / m;
    KI_TRY(make_target(in, &p.target, err));
    KI_TRY(ki_work_take(in->work, (size_t)in->m, sizeof *label, "labels", &label, err));
    for (int64_t i = 0; i < in->m; i++) label[i] = 0;
    KI_TRY(
        ki_pairs_build(&pairs, x->data, in->m, x->cols, label, NULL, NULL, 0, false, in->vec, in->work, err));
    KI_TRY(ki_work_reals(in->work, pairs.m * pairs.ld, "pair gradients", &g, err));
    KI_TRY(ki_pairs_rows(&pairs, g, is_square ? square_row : softmax_row, &p, NULL, &out->value, err));
    out->value *= scale;
    return ki_reg_pairs_backward(in, out, &pairs, g, scale, KI_TAP_EMBEDDING, err);
}

const ki_reg ki_reg_relational = {
    .method = {.name = "relational",
               .summary = "similarities within a batch like those of a teacher",
               .source = "RKD, Park et al., CVPR 2019; CompRess, Koohpayegani et al., NeurIPS 2020",
               .options = options,
               .settings_bytes = sizeof(ki_relational_settings)},
    .taps = KI_TAP_BIT(KI_TAP_EMBEDDING),
    .taps_of = taps_of,
    .counts_all = true,
    .normalize = true,
    .params = params,
    .eval = eval,
};
