/* HORDE on the device (horde.c has the formulas): the objective's loss again, on high-order moments of the map.
 *
 * What a step costs, with 5 cascaded orders of 8192 numbers, a batch of 80, a map of 7 x 7 positions of 1024
 * channels and embeddings of 512, in bf16:
 *
 *   products   f W: 2 * 3,920 * 1,024 * 40,960 = 329 GFLOP, dL/dW and dL/df as much each: 986 GFLOP,
 *              1.0 ms at the 989 TFLOP/s of an H200 and about 1.5 ms at what large products reach.
 *              g E and its gradients: 12 products of 0.67 GFLOP in float32.
 *   memory     projected positions [3,920, 40,960] in float32: 642 MB. Written by f W, read by the pooling and by
 *              the way back, which writes their gradients in bf16 (321 MB), read by the two products: 2.9 GB,
 *              of which the 1.6 GB outside of matrix products counts, 0.4 ms.
 *              W in float: 168 MB to pack (84 MB written), its gradient 168 MB read and written; E, 67 MB,
 *              is read three times and its gradient once: 0.15 ms, in part behind the products.
 *   held       963 MB positions and their gradients, 84 MB packed W, 20 MB moments and their gradients.
 *
 * All orders are packed into one matrix, so that f W is one product, large enough to fill the device, and
 * dL/df is one too, summed over all orders inside. In bf16 the operands of these three products are bf16 (the map, W and
 * dL/dp) and their sums float32. Everything else is float32: projected positions, because an order multiplies up to eight of
 * them, their products and sums, the moments, the products with E, the losses and their gradients. */
#include "objective/reg/horde.h"

#include "base/alloc.h"
#include "objective/cuda/moments.h"
#include "objective/cuda/reg.cuh"

namespace {

/* The most bytes of projected positions; beyond that they are computed in blocks, and again in backward. */
const size_t MOST_BYTES = (size_t)4 << 30;

struct horde {
    int orders;
    bool cascaded;
    int64_t dim, embedding, n; /* n: width of an order's z: embedding, or dim without */
    ki_cuda_site *loss[KI_HORDE_MOST_ORDERS + 1];
};

struct places {
    ki_cuda_moments moments;            /* of this rank's rows */
    float *g[KI_HORDE_MOST_ORDERS + 1]; /* [2] … [orders]: [m, padded], of all rows */
    float *z, *unit, *norm;             /* [orders - 1, m, n]; norm [orders - 1, m] */
    float *diff_unit, *diff_z;          /* [orders - 1, m, n] */
    float *diff_g[KI_HORDE_MOST_ORDERS + 1];
};

places place(const horde *o, const ki_cuda_reg_in *in, ki_cuda_scratch *room) {
    const ki_cuda_tap &map = in->tap[KI_TAP_MAP];
    const int64_t n_orders = o->orders - 1, rows = n_orders * in->m;
    places at = {};
    ki_cuda_moments &moments = at.moments;
    moments.backend = in->backend;
    moments.stream = in->stream;
    moments.m = in->n_own;
    moments.hw = map.rows / in->n_own;
    moments.c = map.cols;
    moments.dim = o->dim;
    moments.orders = o->orders;
    moments.cascaded = o->cascaded;
    moments.f = map.data;
    moments.f_pitch = map.pitch;
    moments.type = map.is_bf16 ? KI_NUMBER_BF16 : KI_NUMBER_FLOAT;
    moments.most_bytes = MOST_BYTES;
    const int n_w = ki_moments_projections(o->orders, o->cascaded);
    for (int t = 0; t < n_w; t++) moments.w[t] = in->param[t].value;
    ki_cuda_moments_place(&moments, room);
    for (int k = 2; k <= o->orders; k++)
        at.g[k] = in->is_shared ? ki_cuda_scratch_floats(room, in->m * moments.padded) : moments.g[k];
    at.z = ki_cuda_scratch_floats(room, rows * o->n);
    at.unit = ki_cuda_scratch_floats(room, rows * o->n);
    at.norm = ki_cuda_scratch_floats(room, rows);
    at.diff_unit = ki_cuda_scratch_floats(room, rows * o->n);
    at.diff_z = ki_cuda_scratch_floats(room, rows * o->n);
    for (int k = 2; k <= o->orders; k++) at.diff_g[k] = at.diff_z ? at.diff_z + (k - 2) * in->m * o->n : NULL;
    if (o->embedding == 0) return at;
    for (int k = 2; k <= o->orders; k++)
        at.diff_g[k] = ki_cuda_scratch_floats(room, in->m * at.moments.padded);
    return at;
}

kith_status open_losses(horde *o, const ki_cuda_reg_in *in, kith_error *err) {
    const size_t n_embeddings = o->embedding ? (size_t)(o->orders - 1) : 0;
    size_t first = (size_t)ki_moments_projections(o->orders, o->cascaded) + n_embeddings;
    for (int k = 2; k <= o->orders; k++, first += in->n_loss_params)
        KI_TRY(ki_cuda_repeat_open(in, first, o->n, &o->loss[k], err));
    return KITH_OK;
}

kith_status reg_open(const ki_cuda_reg_in *in, void **ret_self, size_t *ret_scratch_bytes, kith_error *err) {
    const ki_horde_settings *settings = static_cast<const ki_horde_settings *>(in->settings);
    horde *o = NULL;
    ki_cuda_scratch room = {};
    KI_TRY(ki_zalloc_or(&o, 1, sizeof *o, "the orders of a term", err));
    o->orders = (int)settings->orders;
    o->cascaded = settings->cascaded;
    o->dim = settings->dimension;
    o->embedding = settings->embedding;
    o->n = o->embedding ? o->embedding : o->dim;
    const kith_status status = open_losses(o, in, err);
    if (status != KITH_OK) {
        ki_free(o);
        return status;
    }
    place(o, in, &room);
    *ret_scratch_bytes = room.used;
    *ret_self = o;
    return KITH_OK;
}

void reg_close(void *self) { ki_free(self); }

/* What order k learns of E. */
const ki_cuda_param *embedding_param(const ki_cuda_reg_in *in, const places *at, int k) {
    return &in->param[at->moments.n_w + k - 2];
}

/* Moments of all rows. */
kith_status pool(const horde *o, const ki_cuda_reg_in *in, const places *at, kith_error *err) {
    const ki_cuda_moments *moments = &at->moments;
    KI_TRY(ki_cuda_moments_forward(moments, err));
    for (int k = 2; k <= o->orders && in->is_shared; k++)
        KI_TRY(ki_cuda_reg_gather(in, moments->g[k], moments->padded, at->g[k], err));
    return KITH_OK;
}

/* z of all orders from their moments. */
kith_status embed(const horde *o, const ki_cuda_reg_in *in, const places *at, kith_error *err) {
    const ki_cuda_moments *moments = &at->moments;
    for (int k = 2; k <= o->orders; k++) {
        float *z = at->z + (k - 2) * in->m * o->n;
        if (o->embedding) {
            KI_TRY(ki_cuda_gemm(in->backend, false, false, in->m, o->n, o->dim, 1, at->g[k], KI_NUMBER_FLOAT,
                                moments->padded, embedding_param(in, at, k)->value, o->embedding, 0, z,
                                KI_NUMBER_FLOAT, o->n, err));
        } else {
            KI_CUDA(ki_cuda_product_store(at->g[k], in->m, o->dim, moments->padded, false, false, z, o->dim,
                                          in->stream));
        }
    }
    return KITH_OK;
}

/* One product for each order: c[k] = op(a[k]) op(b[k]) + beta c[k], all at once if the matrices are equally
 * spaced, which they are unless one of them has another owner. */
struct product {
    bool ta, tb;
    int64_t m, n, k, lda, ldb, ldc;
    float beta;
    int count;
    const float *a[KI_HORDE_MOST_ORDERS], *b[KI_HORDE_MOST_ORDERS];
    float *c[KI_HORDE_MOST_ORDERS];
};

kith_status run_products(ki_backend *backend, const product *p, kith_error *err) {
    bool is_even = p->count > 1;
    for (int i = 2; i < p->count; i++)
        is_even = is_even && p->a[i] - p->a[i - 1] == p->a[1] - p->a[0] &&
                  p->b[i] - p->b[i - 1] == p->b[1] - p->b[0] && p->c[i] - p->c[i - 1] == p->c[1] - p->c[0];
    if (is_even)
        return ki_cuda_gemm_batched(backend, p->ta, p->tb, p->m, p->n, p->k, 1, p->a[0], KI_NUMBER_FLOAT,
                                    p->lda, p->a[1] - p->a[0], p->b[0], p->ldb, p->b[1] - p->b[0], p->beta,
                                    p->c[0], KI_NUMBER_FLOAT, p->ldc, p->c[1] - p->c[0], p->count, err);
    for (int i = 0; i < p->count; i++)
        KI_TRY(ki_cuda_gemm(backend, p->ta, p->tb, p->m, p->n, p->k, 1, p->a[i], KI_NUMBER_FLOAT, p->lda,
                            p->b[i], p->ldb, p->beta, p->c[i], KI_NUMBER_FLOAT, p->ldc, err));
    return KITH_OK;
}

/* From diff_z to the gradients of E and of the moments. */
kith_status embed_back(const horde *o, const ki_cuda_reg_in *in, const places *at, kith_error *err) {
    const ki_cuda_moments *moments = &at->moments;
    if (o->embedding == 0) return KITH_OK; /* z is g */
    const float *diff = at->diff_z;
    product by_e = {}, by_g = {};
    by_e.ta = true;
    by_e.m = o->dim, by_e.n = o->n, by_e.k = in->m;
    by_e.lda = moments->padded, by_e.ldb = by_e.ldc = o->n;
    by_e.beta = 1;
    by_g.tb = true;
    by_g.m = in->m, by_g.n = o->dim, by_g.k = o->n;
    by_g.lda = by_g.ldb = o->n, by_g.ldc = moments->padded;
    for (int k = 2; k <= o->orders; k++, diff += in->m * o->n) {
        const ki_cuda_param *e = embedding_param(in, at, k);
        float *diff_e = e->diff;
        by_g.a[by_g.count] = diff;
        by_g.b[by_g.count] = e->value;
        by_g.c[by_g.count++] = at->diff_g[k];
        if (!diff_e) continue;
        by_e.a[by_e.count] = at->g[k];
        by_e.b[by_e.count] = diff;
        by_e.c[by_e.count++] = diff_e;
    }
    KI_TRY(run_products(in->backend, &by_e, err));
    return run_products(in->backend, &by_g, err);
}

kith_status reg_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    const horde *o = static_cast<const horde *>(self);
    ki_cuda_scratch room = {static_cast<char *>(scratch), 0};
    const places at = place(o, in, &room);
    const int64_t rows = (o->orders - 1) * in->m, step = in->m * o->n;
    float *diff_w[KI_MOST_PROJECTIONS];
    for (int t = 0; t < at.moments.n_w; t++) diff_w[t] = in->param[t].diff;
    KI_TRY(ki_engine_zero(in->engine, in->value, sizeof *in->value, err));
    KI_TRY(pool(o, in, &at, err));
    KI_TRY(embed(o, in, &at, err));
    KI_CUDA(ki_cuda_rows_normalize(at.z, rows, o->n, at.unit, at.norm, NULL, NULL, in->stream));
    for (int k = 2; k <= o->orders; k++)
        KI_TRY(ki_cuda_repeat_run(o->loss[k], at.unit + (k - 2) * step, in->value,
                                  at.diff_unit + (k - 2) * step, err));
    KI_CUDA(ki_cuda_rows_normalize_backward(at.unit, at.norm, at.diff_unit, NULL, rows, o->n, false,
                                            at.diff_z, in->stream));
    KI_TRY(embed_back(o, in, &at, err));
    const int64_t pitch = o->embedding ? at.moments.padded : o->n;
    float *own_diff_g[KI_HORDE_MOST_ORDERS + 1] = {};
    for (int k = 2; k <= o->orders; k++) own_diff_g[k] = at.diff_g[k] + in->first * pitch;
    return ki_cuda_moments_backward(&at.moments, own_diff_g, pitch, diff_w, !in->assigns_map,
                                    in->tap[KI_TAP_MAP].diff, in->tap[KI_TAP_MAP].pitch, err);
}

kith_status reg_describe(void *self, const ki_cuda_reg_in *in, void *scratch, const float **ret_parts,
                         int64_t *ret_n, kith_error *err) {
    const horde *o = static_cast<const horde *>(self);
    ki_cuda_scratch room = {static_cast<char *>(scratch), 0};
    const places at = place(o, in, &room);
    KI_TRY(pool(o, in, &at, err));
    KI_TRY(embed(o, in, &at, err));
    KI_CUDA(ki_cuda_rows_normalize(at.z, (o->orders - 1) * in->m, o->n, at.unit, at.norm, NULL, NULL,
                                   in->stream));
    *ret_parts = at.unit;
    *ret_n = o->n;
    return KITH_OK;
}

} // namespace

const ki_cuda_reg ki_cuda_reg_horde = {
    .open = reg_open, .launch = reg_launch, .close = reg_close, .describe = reg_describe};
