/* reg/horde.c on the device: the objective's loss once more on high-order moments of the map.
 *
 * What a step costs, with 5 cascaded orders of 8192 numbers, a batch of 80, a map of 7 x 7 positions of 1024
 * channels and embeddings of 512, in bf16:
 *
 *   products   f W: 2 * 3,920 * 1,024 * 40,960 = 329 GFLOP, dL/dW and dL/df as much each: 986 GFLOP,
 *              1.0 ms at the 989 TFLOP/s of an H200 and about 1.5 ms at what large products reach.
 *              g E and its gradients: 12 products of 0.67 GFLOP, which take the time of reading E.
 *   memory     projected positions [3,920, 40,960] in bf16: 321 MB. Written by f W, read by the pooling (and
 *              never written in float), read and overwritten by their gradients, read by the two products:
 *              1.9 GB, of which the 1.0 GB outside of matrix products counts, 0.25 ms.
 *              W in float: 168 MB to pack (84 MB written), its gradient 168 MB read and written; E, 67 MB,
 *              the same: 0.15 ms, in part behind the products.
 *   held       321 MB positions, 118 MB packed W and E, 20 MB moments and their gradients.
 *
 * All orders are packed into one matrix, so that f W is one product, large enough to fill the device, and
 * dL/df is one too, summed over all orders inside. Products take bf16 and sum in float32; what comes out of
 * E, the losses on it and their gradients are float32. In float32 the same code takes float32 products. */
#include "backend/cuda/cuda.h"
#include "objective/cuda/reg.h"
#include "objective/cuda/reg_moments.h"
#include "objective/cuda/reg_scratch.h"
#include "objective/cuda/rows.h"
#include "objective/reg/moments.h"

/* Of projected positions; past it they are made in blocks and computed again. */
#define MOST_BYTES ((size_t)4 << 30)

typedef struct horde {
    int orders;
    int64_t dim, embedding, n; /* n: width of an order's z: embedding, or dim without */
    ki_cuda_loss *loss[KI_MOST_ORDERS + 1];
} horde;

typedef struct places {
    ki_cuda_moments moments;
    void *e;                   /* [dim, (orders - 1) * e_pitch] in the map's precision */
    int64_t e_pitch;           /* columns of an order in e and diff_z */
    float *z, *unit, *norm;    /* [orders - 1, m, n]; norm [orders - 1, m] */
    float *diff_unit, *diff_z; /* [orders - 1, m, n] */
    void *diff_packed;         /* bf16: diff_z as e has it, [orders - 1, m, e_pitch] */
    float *diff_g[KI_MOST_ORDERS + 1];
} places;

static places place(const horde *o, const ki_cuda_reg_in *in, ki_cuda_scratch *room) {
    const ki_cuda_map map = ki_cuda_map_of(in->backend, &in->edge[KI_TAP_MAP]);
    const int64_t n_orders = o->orders - 1, rows = n_orders * in->m;
    places at = {.moments = {.backend = in->backend,
                             .stream = in->stream,
                             .m = map.mb,
                             .hw = map.h * map.w,
                             .c = map.c,
                             .dim = o->dim,
                             .orders = o->orders,
                             .cascaded = ki_method_bool(in->method, in->settings, "cascaded"),
                             .f = in->tap[KI_TAP_MAP],
                             .f_pitch = map.pitch,
                             .type = map.is_bf16 ? KI_NUMBER_BF16 : KI_NUMBER_FLOAT,
                             .g_is_float = o->embedding == 0,
                             .most_bytes = MOST_BYTES}};
    const int n_w = ki_moments_projections(o->orders, at.moments.cascaded);
    for (int t = 0; t < n_w; t++) at.moments.w[t] = in->param[t].value;
    ki_cuda_moments_place(&at.moments, room);
    at.z = ki_cuda_scratch_floats(room, rows * o->n);
    at.unit = ki_cuda_scratch_floats(room, rows * o->n);
    at.norm = ki_cuda_scratch_floats(room, rows);
    at.diff_unit = ki_cuda_scratch_floats(room, rows * o->n);
    at.diff_z = ki_cuda_scratch_floats(room, rows * o->n);
    for (int k = 2; k <= o->orders; k++) at.diff_g[k] = at.diff_z ? at.diff_z + (k - 2) * in->m * o->n : NULL;
    if (o->embedding == 0) return at;
    for (int k = 2; k <= o->orders; k++)
        at.diff_g[k] = ki_cuda_scratch_floats(room, in->m * at.moments.padded);
    at.e_pitch = o->embedding;
    if (map.is_bf16) {
        at.e_pitch = (o->embedding + KI_CUDA_PAD - 1) / KI_CUDA_PAD * KI_CUDA_PAD;
        at.e = ki_cuda_scratch_take(room, o->dim * n_orders * at.e_pitch, ki_number_bytes(KI_NUMBER_BF16));
        at.diff_packed = ki_cuda_scratch_take(room, rows * at.e_pitch, ki_number_bytes(KI_NUMBER_BF16));
    }
    return at;
}

static kith_status horde_open(const ki_cuda_reg_in *in, void **ret_self, size_t *ret_scratch_bytes,
                              kith_error *err) {
    kith_status status = KITH_OK;
    horde *o = NULL;
    ki_cuda_scratch room = {0};
    KI_CHECK(ki_zalloc_or(&o, 1, sizeof *o, "the orders of horde", err));
    o->orders = (int)ki_method_int(in->method, in->settings, "orders");
    o->dim = ki_method_int(in->method, in->settings, "dimension");
    o->embedding = ki_method_int(in->method, in->settings, "embedding");
    o->n = o->embedding ? o->embedding : o->dim;
    const bool cascaded = ki_method_bool(in->method, in->settings, "cascaded");
    const size_t n_embeddings = o->embedding ? (size_t)(o->orders - 1) : 0;
    size_t first = (size_t)ki_moments_projections(o->orders, cascaded) + n_embeddings;
    for (int k = 2; k <= o->orders; k++, first += in->n_loss_params)
        KI_CHECK(ki_cuda_loss_open(in, first, o->n, &o->loss[k], err));
    place(o, in, &room);
    *ret_scratch_bytes = room.used;
    *ret_self = o;
    o = NULL;
done:
    ki_free(o);
    return status;
}

static void horde_close(void *self) { ki_free(self); }

/* What order k learns of E. */
static const ki_cuda_param *embedding_param(const ki_cuda_reg_in *in, const places *at, int k) {
    return &in->param[at->moments.n_w + k - 2];
}

/* E of order k as the products take it. */
typedef struct matrix {
    const void *data;
    int64_t pitch;
} matrix;

static matrix embedding_of(const horde *o, const ki_cuda_reg_in *in, const places *at, int k) {
    if (!at->e) return (matrix){embedding_param(in, at, k)->value, o->embedding};
    const size_t skip = (size_t)((k - 2) * at->e_pitch) * ki_number_bytes(KI_NUMBER_BF16);
    return (matrix){(const char *)at->e + skip, (o->orders - 1) * at->e_pitch};
}

/* z of all orders from their moments. */
static kith_status embed(const horde *o, const ki_cuda_reg_in *in, const places *at, kith_error *err) {
    const ki_cuda_moments *moments = &at->moments;
    if (at->e) {
        ki_cuda_pack pack = {.n = o->orders - 1,
                             .rows = o->dim,
                             .dim = o->embedding,
                             .padded = at->e_pitch,
                             .block = at->e_pitch};
        for (int k = 2; k <= o->orders; k++) pack.src[k - 2] = embedding_param(in, at, k)->value;
        KI_CUDA(ki_cuda_product_pack(&pack, true, at->e, in->stream));
    }
    for (int k = 2; k <= o->orders; k++) {
        float *z = at->z + (k - 2) * in->m * o->n;
        if (o->embedding) {
            const matrix e = embedding_of(o, in, at, k);
            KI_TRY(ki_cuda_gemm(in->backend, false, false, in->m, o->n, o->dim, 1, moments->g[k],
                                moments->type, moments->padded, e.data, e.pitch, 0, z, KI_NUMBER_FLOAT, o->n,
                                err));
        } else {
            KI_CUDA(ki_cuda_product_store(moments->g[k], in->m, o->dim, moments->padded, false, false, z,
                                          o->dim, in->stream));
        }
    }
    return KITH_OK;
}

/* One product for each order: c[k] = op(a[k]) op(b[k]) + beta c[k], all at once when the matrices lie at even
 * distances, which they do unless somebody else owns one of them. */
typedef struct product {
    bool ta, tb;
    int64_t m, n, k, lda, ldb, ldc;
    float beta;
    ki_number type;
    int count;
    const char *a[KI_MOST_ORDERS], *b[KI_MOST_ORDERS];
    float *c[KI_MOST_ORDERS];
} product;

static kith_status run_products(ki_backend *backend, const product *p, kith_error *err) {
    bool is_even = p->count > 1;
    for (int i = 2; i < p->count; i++)
        is_even = is_even && p->a[i] - p->a[i - 1] == p->a[1] - p->a[0] &&
                  p->b[i] - p->b[i - 1] == p->b[1] - p->b[0] && p->c[i] - p->c[i - 1] == p->c[1] - p->c[0];
    if (is_even) {
        const int64_t bytes = (int64_t)ki_number_bytes(p->type);
        return ki_cuda_gemm_batched(backend, p->ta, p->tb, p->m, p->n, p->k, 1, p->a[0], p->type, p->lda,
                                    (p->a[1] - p->a[0]) / bytes, p->b[0], p->ldb, (p->b[1] - p->b[0]) / bytes,
                                    p->beta, p->c[0], KI_NUMBER_FLOAT, p->ldc, p->c[1] - p->c[0], p->count,
                                    err);
    }
    for (int i = 0; i < p->count; i++)
        KI_TRY(ki_cuda_gemm(backend, p->ta, p->tb, p->m, p->n, p->k, 1, p->a[i], p->type, p->lda, p->b[i],
                            p->ldb, p->beta, p->c[i], KI_NUMBER_FLOAT, p->ldc, err));
    return KITH_OK;
}

/* From diff_z to the gradients of E and of the moments. */
static kith_status embed_back(const horde *o, const ki_cuda_reg_in *in, const places *at, kith_error *err) {
    const ki_cuda_moments *moments = &at->moments;
    if (o->embedding == 0) return KITH_OK; /* z is g */
    if (at->e)
        KI_CUDA(ki_cuda_product_store(at->diff_z, (o->orders - 1) * in->m, o->n, o->n, false, true,
                                      at->diff_packed, at->e_pitch, in->stream));
    const char *diff = at->e ? at->diff_packed : (const void *)at->diff_z;
    const size_t step = (size_t)(in->m * at->e_pitch) * ki_number_bytes(moments->type);
    product by_e = {.ta = true,
                    .m = o->dim,
                    .n = o->n,
                    .k = in->m,
                    .lda = moments->padded,
                    .ldb = at->e_pitch,
                    .ldc = o->n,
                    .beta = 1,
                    .type = moments->type};
    product by_g = {.tb = true,
                    .m = in->m,
                    .n = o->dim,
                    .k = o->n,
                    .lda = at->e_pitch,
                    .ldc = moments->padded,
                    .type = moments->type};
    for (int k = 2; k <= o->orders; k++, diff += step) {
        const matrix e = embedding_of(o, in, at, k);
        float *diff_e = embedding_param(in, at, k)->diff;
        by_g.a[by_g.count] = diff;
        by_g.b[by_g.count] = e.data;
        by_g.c[by_g.count++] = at->diff_g[k];
        by_g.ldb = e.pitch;
        if (!diff_e) continue;
        by_e.a[by_e.count] = moments->g[k];
        by_e.b[by_e.count] = diff;
        by_e.c[by_e.count++] = diff_e;
    }
    KI_TRY(run_products(in->backend, &by_e, err));
    return run_products(in->backend, &by_g, err);
}

static kith_status horde_launch(void *self, const ki_cuda_reg_in *in, void *scratch, kith_error *err) {
    const horde *o = self;
    ki_cuda_scratch room = {.base = scratch};
    const places at = place(o, in, &room);
    const int64_t rows = (o->orders - 1) * in->m, step = in->m * o->n;
    float *diff_w[KI_MOST_PROJECTIONS];
    for (int t = 0; t < at.moments.n_w; t++) diff_w[t] = in->param[t].diff;
    KI_TRY(in->backend->type->zero(in->backend, in->value, sizeof *in->value, err));
    KI_TRY(ki_cuda_moments_forward(&at.moments, err));
    KI_TRY(embed(o, in, &at, err));
    KI_CUDA(ki_cuda_rows_normalize(at.z, rows, o->n, at.unit, at.norm, NULL, NULL, in->stream));
    for (int k = 2; k <= o->orders; k++)
        KI_TRY(ki_cuda_loss_run(o->loss[k], at.unit + (k - 2) * step, in->value,
                                at.diff_unit + (k - 2) * step, err));
    KI_CUDA(ki_cuda_rows_normalize_backward(at.unit, at.norm, at.diff_unit, NULL, rows, o->n, false,
                                            at.diff_z, in->stream));
    KI_TRY(embed_back(o, in, &at, err));
    return ki_cuda_moments_backward(&at.moments, at.diff_g, o->embedding ? at.moments.padded : o->n, diff_w,
                                    !in->assigns_map, in->diff[KI_TAP_MAP],
                                    ki_cuda_map_of(in->backend, &in->edge[KI_TAP_MAP]).pitch, err);
}

static kith_status horde_describe(void *self, const ki_cuda_reg_in *in, void *scratch,
                                  const float **ret_parts, int64_t *ret_n, kith_error *err) {
    const horde *o = self;
    ki_cuda_scratch room = {.base = scratch};
    const places at = place(o, in, &room);
    KI_TRY(ki_cuda_moments_forward(&at.moments, err));
    KI_TRY(embed(o, in, &at, err));
    KI_CUDA(ki_cuda_rows_normalize(at.z, (o->orders - 1) * in->m, o->n, at.unit, at.norm, NULL, NULL,
                                   in->stream));
    *ret_parts = at.unit;
    *ret_n = o->n;
    return KITH_OK;
}

const ki_cuda_reg ki_cuda_reg_horde = {.name = "horde",
                                       .open = horde_open,
                                       .launch = horde_launch,
                                       .close = horde_close,
                                       .describe = horde_describe};
