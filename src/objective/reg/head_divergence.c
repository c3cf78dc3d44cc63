/* Divergence of the heads of an ensemble: different heads should see different things.
 *
 *   L = sum over (i, k), (j, l) with k != l of [s - margin]_+ / active,   s = x_ik . x_jl
 *   dL/ds = [s > margin] / active
 *
 * x_ik is head k of image i, L2-normalised; active counts the terms above 0, and L is 0 where there are none.
 * pairs all: i and j are any images, also the same; self: i = j.
 *
 * Sources: Kim et al., Attention-based Ensemble for Deep Metric Learning, ECCV 2018, Eq. 6 (self); Jacob et al. (HORDE)
 * train it with all and weight 0.5, both over ordered pairs (their code). */
#include "objective/reg/head_divergence.h"

#include "objective/reg/over_pairs.h"
#include "objective/reg/reg.h"

static const char *const pairs_names[] = {"all", "self", NULL};

static const ki_option options[] = {
    KI_OPTION_REAL(ki_head_divergence_settings, margin, 0.5, -4, 4,
                   "heads less similar than this are left alone", "HORDE code"),
    KI_OPTION_CHOICE(ki_head_divergence_settings, pairs, KI_HEAD_PAIRS_ALL, pairs_names,
                     "heads of any two images, or of an image and itself",
                     "all: HORDE code; self: Kim et al. Eq. 6"),
    KI_OPTION_END};

/* A network that is known to have one head has nothing that could diverge. */
static kith_status params(const void *settings, const ki_sizes *sizes, ki_state_list *list, kith_error *err) {
    (void)settings, (void)list;
    if (sizes->heads != 1) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "head_divergence compares the heads of an ensemble, and the model has one");
    return ki_hint(err, KITH_EINVAL, "write model: {heads: 8}, or leave the term out");
}

typedef struct pass {
    const ki_head_divergence_settings *o;
    int64_t heads;
    int64_t *active; /* of each row */
} pass;

static double row_terms(const void *context, const ki_pairs *pairs, const ki_row *row) {
    const pass *p = context;
    const ki_real margin = (ki_real)p->o->margin;
    const int64_t own = row->i % p->heads;
    const bool is_self = p->o->pairs == KI_HEAD_PAIRS_SELF;
    const int64_t begin = is_self ? row->i - own : 0, end = is_self ? begin + p->heads : row->n;
    double sum = 0;
    int64_t active = 0;
    (void)pairs;
    for (int64_t first = begin; first < end; first += p->heads) {
        for (int64_t k = 0; k < p->heads; k++) {
            const ki_real over = row->s[first + k] - margin;
            if (k == own || !(over > 0)) continue;
            sum += (double)over;
            active++;
            row->g[first + k] = 1;
        }
    }
    p->active[row->i] = active;
    return sum;
}

static kith_status eval(const ki_reg_in *in, ki_reg_out *out, kith_error *err) {
    const ki_tap_data *x = &in->tap[KI_TAP_EMBEDDING];
    const int64_t n = in->m * in->heads;
    pass p = {.o = in->settings, .heads = in->heads};
    ki_pairs pairs;
    int32_t *label = NULL; /* nobody asks for classes */
    ki_real *g = NULL;
    int64_t active = 0;
    if (in->heads == 1) return KITH_OK;
    KI_TRY(ki_work_take(in->work, (size_t)n, sizeof *label, "labels", &label, err));
    for (int64_t i = 0; i < n; i++) label[i] = 0;
    KI_TRY(ki_pairs_build(&pairs, x->data, n, x->cols / in->heads, label, NULL, NULL, 0, false, in->vec,
                          in->work, err));
    KI_TRY(ki_work_reals(in->work, pairs.m * pairs.ld, "pair gradients", &g, err));
    KI_TRY(ki_work_take(in->work, (size_t)n, sizeof *p.active, "counts", &p.active, err));
    KI_TRY(ki_pairs_rows(&pairs, g, row_terms, &p, NULL, &out->value, err));
    for (int64_t i = 0; i < n; i++) active += p.active[i];
    if (active == 0) return KITH_OK;
    out->value /= (double)active;
    return ki_reg_pairs_backward(in, out, &pairs, g, 1 / (double)active, KI_TAP_EMBEDDING, err);
}

const ki_reg ki_reg_head_divergence = {
    .method = {.name = "head_divergence",
               .summary = "the heads of an ensemble unlike each other",
               .source = "Kim et al., ECCV 2018; HORDE code",
               .options = options,
               .settings_bytes = sizeof(ki_head_divergence_settings)},
    .taps = KI_TAP_BIT(KI_TAP_EMBEDDING),
    .normalize = true,
    .params = params,
    .eval = eval,
};
