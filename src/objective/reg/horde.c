/* HORDE: the objective's loss again, on high-order moments of the feature map.
 *
 *   g_k = mean over positions f of (W_1^T f) * … * (W_k^T f) / sqrt(D), entry by entry   (moments.h)
 *   z_k = E_k^T g_k / |E_k^T g_k|,  L = sum_{k = 2 … K} loss(z_k), each with weight 1
 *
 *   dL/dE_k = g_k^T dL/d(E_k^T g_k),  dL/dg_k = E_k dL/d(E_k^T g_k);  with phi_k = p_1 … p_k / sqrt(D):
 *   dL/dphi_k = dL/dg_k / hw + p_(k+1) dL/dphi_(k+1),  dL/dp_k = phi_(k-1) dL/dphi_k
 *   dL/dW_k = sum f dL/dp_k^T,  dL/df = sum_k W_k dL/dp_k
 *
 * State: horde.w1 … wK [c, D]; not cascaded: horde.wK_T, the T-th projection of order K; horde.e2 … eK [D, e].
 * If the loss itself has parameters (proxies, a boundary), each order k has its own copy: horde.K.NAME.
 * trained: glorot-uniform; else projections are +-1 and stay (random Maclaurin). embedding 0: no E, z_k is g_k
 * normalised. At test time only the network's embedding is used, or all orders side by side and a PCA
 * (ki_objective_describe).
 * Source: HORDE, Jacob et al., ICCV 2019, Alg. 1 and Eq. 7 to 9: K 5, D 8192, e 512, learning rates alike. */
#include "objective/reg/horde.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "objective/gemm.h"
#include "objective/objective.h"
#include "objective/pair/pairs.h"
#include "objective/reg/moments.h"

enum { INIT_AUTO, INIT_GLOROT, INIT_SIGNS };
static const char *const inits[] = {"auto", "glorot", "signs", NULL};

static const ki_option options[] = {
    KI_OPTION_INT(ki_horde_settings, orders, 0, 0, KI_HORDE_MOST_ORDERS,
                  "K: moments of order 2 to K; 0 = as a saved state has it, else 5",
                  "HORDE Sec. 4: 5, SOP and In-Shop 4"),
    KI_OPTION_INT(ki_horde_settings, dimension, 0, 0, 1e6,
                  "D: numbers of a moment; 0 = as a saved state has it, else 8192", "HORDE Sec. 4"),
    KI_OPTION_INT(ki_horde_settings, embedding, -1, -1, 1e6,
                  "e: size of each order's embedding; 0 = none, -1 = as a saved state has it, else 512",
                  "HORDE Sec. 4"),
    KI_OPTION_BOOL(ki_horde_settings, cascaded, 1, "an order continues the one before (Eq. 6)",
                   "HORDE Alg. 1"),
    KI_OPTION_BOOL(ki_horde_settings, trained, 1, "learn the projections, else fixed +-1", "HORDE Sec. 5.2"),
    KI_OPTION_REAL(ki_horde_settings, lr_multiplier, 1, 0, 1e6,
                   "learning rate of what it learns over the network's", "HORDE code: none"),
    KI_OPTION_LATER(CHOICE, ki_horde_settings, init, INIT_AUTO, inits,
                    "start of the projections; auto: glorot where they learn, else signs (+-1)",
                    "glorot: HORDE code; signs: Sec. 5.2"),
    KI_OPTION_END};

/* Orders and sizes of a saved state: the columns of w1 … wK and of e2. */
static void complete(void *settings, const ki_saved *saved) {
    ki_horde_settings *o = settings;
    int64_t orders = 0, dimension = 0, embedding = 0;
    ki_shape shape;
    char name[32];
    for (int k = 1;; k++) {
        ki_snprintf(name, sizeof name, "horde.w%d", k);
        if (!ki_saved_shape(saved, name, 2, &shape)) break;
        orders = k;
        dimension = shape.dim[1];
    }
    if (ki_saved_shape(saved, "horde.e2", 2, &shape)) embedding = shape.dim[1];
    const bool is_saved = orders >= 2 && dimension > 0;
    if (o->orders == 0) o->orders = is_saved ? orders : 5;
    if (o->dimension == 0) o->dimension = is_saved ? dimension : 8192;
    if (o->embedding < 0) o->embedding = is_saved ? embedding : 512;
}

/* The most bytes of projected positions kept from the forward to the backward pass. */
#define KEEP_BYTES ((size_t)512 << 20)

static int n_projections(const ki_horde_settings *o) {
    return ki_moments_projections((int)o->orders, o->cascaded);
}
static int64_t z_dim(const ki_horde_settings *o) { return o->embedding ? o->embedding : o->dimension; }
static size_t embedding_at(const ki_horde_settings *o, int k) { return (size_t)(n_projections(o) + k - 2); }
static size_t loss_at(const ki_horde_settings *o, const ki_reg_in *in, int k) {
    const size_t n_embeddings = o->embedding ? (size_t)(o->orders - 1) : 0;
    return (size_t)n_projections(o) + n_embeddings + (size_t)(k - 2) * in->n_loss_params;
}

static kith_status add_projection(const ki_horde_settings *o, int64_t c, const char *name,
                                  ki_state_list *list, kith_error *err) {
    const bool has_signs = o->init == INIT_SIGNS || (o->init == INIT_AUTO && !o->trained);
    KI_TRY(ki_state_add(list, name, KI_SHAPE2(c, o->dimension), has_signs ? KI_INIT_SIGNS : KI_INIT_GLOROT, 1,
                        o->trained ? o->lr_multiplier : 0, err));
    ki_state_sum_over_ranks(list);
    return KITH_OK;
}

static kith_status params(const void *settings, const ki_sizes *sizes, ki_state_list *list, kith_error *err) {
    const ki_horde_settings *o = settings;
    char name[32];
    if (!sizes->map) return ki_fail_size(err, "horde", "the channels of the map");
    if (o->orders < 2 || o->orders > KI_HORDE_MOST_ORDERS)
        return ki_fail(err, KITH_EINVAL, "horde has orders %lld; wanted 2 to %d", (long long)o->orders,
                       KI_HORDE_MOST_ORDERS);
    for (int k = o->cascaded ? 1 : 2; k <= (int)o->orders; k++) {
        for (int t = 1; t <= (o->cascaded ? 1 : k); t++) {
            if (o->cascaded)
                ki_snprintf(name, sizeof name, "horde.w%d", k);
            else
                ki_snprintf(name, sizeof name, "horde.w%d_%d", k, t);
            KI_TRY(add_projection(o, sizes->map, name, list, err));
        }
    }
    for (int k = 2; k <= (int)o->orders && o->embedding; k++) {
        ki_snprintf(name, sizeof name, "horde.e%d", k);
        KI_TRY(ki_state_add(list, name, KI_SHAPE2(o->dimension, o->embedding), KI_INIT_GLOROT, 1,
                            o->lr_multiplier, err));
    }
    for (int k = 2; k <= (int)o->orders; k++) {
        ki_snprintf(name, sizeof name, "horde.%d", k);
        KI_TRY(ki_state_add_loss(list, "horde", name, z_dim(o), err));
    }
    return KITH_OK;
}

static ki_moments moments_of(const ki_reg_in *in) {
    const ki_horde_settings *o = in->settings;
    const ki_tap_data *map = &in->tap[KI_TAP_MAP];
    ki_moments moments = {.m = map->rows,
                          .c = map->c,
                          .hw = map->hw,
                          .dim = o->dimension,
                          .orders = (int)o->orders,
                          .cascaded = o->cascaded,
                          .work = in->work};
    for (int t = 0; t < n_projections(o); t++) moments.w[t] = in->param[t]->value;
    return moments;
}

/* z [m, z_dim] of order k before its normalisation. */
static const ki_real *embed(const ki_reg_in *in, const ki_real *g, int k, ki_real *memory) {
    const ki_horde_settings *o = in->settings;
    if (!o->embedding) return g;
    ki_gemm(false, false, in->m, o->embedding, o->dimension, 1, g, o->dimension,
            in->param[embedding_at(o, k)]->value, o->embedding, 0, memory, o->embedding);
    return memory;
}

/* The loss on order k of all rows; the own rows' g become their dL/dg. */
static kith_status order_eval(const ki_reg_in *in, ki_real *const *diff_param, int k, ki_real *own_g,
                              double *ret_value, kith_error *err) {
    const ki_horde_settings *o = in->settings;
    const int64_t m = in->m, n = z_dim(o);
    const ki_work_mark mark = ki_work_here(in->work);
    kith_status status = KITH_OK;
    ki_real *g = NULL, *memory = NULL, *unit = NULL, *norm = NULL, *diff_unit = NULL, *diff_z = NULL;
    KI_CHECK(ki_reg_gather(in, own_g, o->dimension, &g, err));
    KI_CHECK(ki_work_reals(in->work, m * n, "an order's embedding", &memory, err));
    KI_CHECK(ki_work_reals(in->work, m * n, "an order's embedding", &unit, err));
    KI_CHECK(ki_work_reals(in->work, m * n, "an order's gradient", &diff_unit, err));
    KI_CHECK(ki_work_reals(in->work, m * n, "an order's gradient", &diff_z, err));
    KI_CHECK(ki_work_reals(in->work, m, "norms", &norm, err));
    ki_rows_normalize(embed(in, g, k, memory), m, n, unit, norm);
    KI_CHECK(in->repeat_loss(in, diff_param, loss_at(o, in, k), unit, n, ret_value, diff_unit, err));
    memset(diff_z, 0, (size_t)(m * n) * sizeof *diff_z);
    ki_rows_normalize_backward(unit, norm, diff_unit, m, n, 1, diff_z);
    if (o->embedding) {
        const size_t at = embedding_at(o, k);
        if (diff_param[at])
            ki_gemm(true, false, o->dimension, n, m, 1, g, o->dimension, diff_z, n, 1, diff_param[at], n);
        ki_gemm(false, true, m, o->dimension, n, 1, diff_z, n, in->param[at]->value, n, 0, g, o->dimension);
    } else {
        memcpy(g, diff_z, (size_t)(m * n) * sizeof *g);
    }
    if (g != own_g)
        memcpy(own_g, g + ki_reg_first(in) * o->dimension,
               (size_t)(in->tap[KI_TAP_MAP].rows * o->dimension) * sizeof *g);
done:
    ki_work_rewind(in->work, mark);
    return status;
}

static kith_status eval(const ki_reg_in *in, ki_reg_out *out, kith_error *err) {
    ki_moments moments = moments_of(in);
    ki_real *diff_map = NULL, *const *diff_param = NULL;
    KI_TRY(ki_reg_take_diff(in, KI_TAP_MAP, &diff_map, err));
    KI_TRY(ki_reg_take_params(in, out, &diff_param, err));
    moments.keep_bytes = KEEP_BYTES;
    KI_TRY(ki_moments_forward(&moments, &in->tap[KI_TAP_MAP], err));
    for (int k = 2; k <= moments.orders; k++) {
        double value = 0;
        KI_TRY(order_eval(in, diff_param, k, moments.g[k], &value, err));
        out->value += value;
    }
    KI_TRY(ki_moments_backward(&moments, diff_map, diff_param, err));
    ki_reg_add_diff(in, out, KI_TAP_MAP, diff_map);
    ki_reg_add_params(in, out, diff_param);
    return KITH_OK;
}

_Static_assert((int)KI_HORDE_MOST_ORDERS <= (int)KI_MOST_PARTS,
               "a part for the embedding and every order from 2");

static int64_t describe_n(const ki_reg_in *in) {
    const ki_horde_settings *o = in->settings;
    return o->orders - 1;
}

static int64_t describe_dim(const ki_reg_in *in) { return describe_n(in) * z_dim(in->settings); }

static kith_status describe(const ki_reg_in *in, ki_real *dst, kith_error *err) {
    const ki_horde_settings *o = in->settings;
    const int64_t n = z_dim(o), all = describe_dim(in);
    ki_moments moments = moments_of(in);
    ki_real *memory = NULL, *unit = NULL, *norm = NULL;
    KI_TRY(ki_moments_forward(&moments, &in->tap[KI_TAP_MAP], err));
    KI_TRY(ki_work_reals(in->work, in->m * n, "an order's embedding", &memory, err));
    KI_TRY(ki_work_reals(in->work, in->m * n, "an order's embedding", &unit, err));
    KI_TRY(ki_work_reals(in->work, in->m, "norms", &norm, err));
    for (int k = 2; k <= moments.orders; k++) {
        ki_rows_normalize(embed(in, moments.g[k], k, memory), in->m, n, unit, norm);
        for (int64_t i = 0; i < in->m; i++)
            memcpy(dst + i * all + (k - 2) * n, unit + i * n, (size_t)n * sizeof *dst);
    }
    return KITH_OK;
}

/* The paper's dagger is all orders after a PCA; how well each does alone says where it comes from. The embedding is the first
 * order, so that part p of a row is order p + 1. */
static size_t variants(const void *settings, ki_variant *ret, size_t most) {
    const ki_horde_settings *o = settings;
    static const char all[] = "the embedding and all orders side by side";
    static const char *const names[] = {"order_2", "order_3", "order_4", "order_5",
                                        "order_6", "order_7", "order_8"};
    _Static_assert(sizeof names / sizeof names[0] == KI_HORDE_MOST_ORDERS - 1,
                   "a name for every order from 2");
    const int n = (int)o->orders; /* parts of a row, too */
    const ki_variant first[] = {
        {"all_orders", all, 0, n, KI_CHANGE_PCA, KI_FITTED_TRAINING,
         KI_VARIANT_INTERVALS | KI_VARIANT_CLUSTERS, 0, 0},
        {"all_orders_white", all, 0, n, KI_CHANGE_PCA_WHITE, KI_FITTED_TRAINING, 0, 0, 0},
        {"all_orders_each_white", all, 0, n, KI_CHANGE_EACH_WHITE_PCA, KI_FITTED_TRAINING,
         KI_VARIANT_INTERVALS, 0, 0},
        ki_variant_embedding_white,
        {"transductive", all, 0, n, KI_CHANGE_PCA, KI_FITTED_TEST, KI_VARIANT_INTERVALS, 0, 0},
        {"transductive_white", all, 0, n, KI_CHANGE_PCA_WHITE, KI_FITTED_TEST, 0, 0, 0}};
    const size_t n_first = sizeof first / sizeof first[0], n_all = n_first + (size_t)n;
    for (size_t i = 0; i < n_all && i < most; i++) {
        const int part = (int)(i - n_first) + 1;
        if (i < n_first)
            ret[i] = first[i];
        else if (i + 1 < n_all)
            ret[i] = (ki_variant){names[part - 1],   "one order alone", part, 1, KI_CHANGE_NONE,
                                  KI_FITTED_NOTHING, KI_VARIANT_CURVE,  0,    0};
        else
            ret[i] = (ki_variant){"side_by_side", all, 0, n, KI_CHANGE_NONE, KI_FITTED_NOTHING, 0, 0, 0};
    }
    return n_all;
}

const ki_reg ki_reg_horde = {
    .method = {.name = "horde",
               .summary = "the same loss on high-order moments of the feature map",
               .source = "HORDE, Jacob et al., ICCV 2019",
               .options = options,
               .settings_bytes = sizeof(ki_horde_settings)},
    .taps = KI_TAP_BIT(KI_TAP_MAP),
    .complete = complete,
    .params = params,
    .eval = eval,
    .describe_dim = describe_dim,
    .describe_n = describe_n,
    .describe = describe,
    .variants = variants,
};
