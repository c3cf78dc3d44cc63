/* dst = act(src W^T + b): rows [mb, ic] and [oc, ic] plain; the rows are vectors or tokens.
 *
 * Where the processor suits it, weights are packed after each change (packed.h), for forward and for the gradient of src. Otherwise, and
 * in training where a few rows do not make up for it, products are those of gemm.h; there the bias is written to a tile of dst before the
 * product is added to it, and a tile is smaller than the caches. */
#include <string.h>

#include "backend/cpu/act.h"
#include "backend/cpu/cpu.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/packed.h"

enum { ROWS_TO_PACK = 64 }; /* of a batch in training: packing costs as much as the products of a few rows */

typedef struct linear {
    ki_kernel base;
    int mb, ic, oc;
    bool trains;
    cpu_act_fn *act; /* NULL: none */
    bool packs;
    cpu_packed weights, weights_across; /* for forward, and for the gradient of src if it is wanted */
    ki_binding b;
} linear;

static void linear_free(ki_kernel *kernel) {
    linear *k = (linear *)kernel;
    cpu_packed_release(&k->weights);
    cpu_packed_release(&k->weights_across);
    ki_free(k);
}

static kith_status check_sides(int64_t mb, int64_t ic, int64_t oc, kith_error *err) {
    if (mb > INT32_MAX || ic > INT32_MAX || oc > INT32_MAX)
        return ki_fail(err, KITH_ESHAPE, "a side of %lld x %lld x %lld is over 2^31", (long long)mb,
                       (long long)ic, (long long)oc);
    return KITH_OK;
}

static kith_status linear_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                 ki_kernel **ret_kernel, kith_error *err) {
    linear *k = NULL;
    const int64_t mb = ki_shape_rows(&spec->dst.shape), ic = ki_shape_width(&spec->src[0].shape),
                  oc = ki_shape_width(&spec->dst.shape);
    KI_TRY(check_sides(mb, ic, oc, err));
    KI_TRY(cpu_gemm_prepare(err));
    KI_TRY(ki_kernel_new(backend, &cpu_linear, sizeof *k, &k, err));
    k->mb = (int)mb;
    k->ic = (int)ic;
    k->oc = (int)oc;
    k->act = spec->has_act ? cpu_act_of(spec->act) : NULL;
    k->trains = spec->wants_diff_params && !spec->keeps_params;
    k->packs = cpu_packs() && (spec->mode == KI_INFER || mb >= ROWS_TO_PACK);
    *ret_info = (ki_kernel_info){.backward_reads_src = k->trains, .skips_diffs = true};
    *ret_kernel = &k->base;
    return KITH_OK;
}

static kith_status linear_bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    linear *k = (linear *)kernel;
    k->b = *binding;
    if (!k->packs) return KITH_OK;
    KI_TRY(cpu_packed_init(&k->weights, k->oc, k->ic, binding->param[KI_B].value, err));
    return binding->diff_src[0] ? cpu_packed_init(&k->weights_across, k->ic, k->oc, false, err) : KITH_OK;
}

static kith_status linear_pack(ki_kernel *kernel, kith_error *err) {
    (void)err;
    linear *k = (linear *)kernel;
    const float *weights = k->b.param[KI_W].value;
    if (k->weights.panels) cpu_packed_fill(&k->weights, weights, false, k->b.param[KI_B].value);
    if (k->weights_across.panels) cpu_packed_fill(&k->weights_across, weights, true, NULL);
    return KITH_OK;
}

static void write_bias(const void *context, const ki_tiled_part *tile) {
    const linear *k = context;
    const float *bias = k->b.param[KI_B].value + tile->column;
    float *dst = (float *)k->b.dst + tile->row * k->oc + tile->column;
    for (int64_t i = 0; i < tile->n_rows; i++)
        memcpy(dst + i * k->oc, bias, (size_t)tile->n_columns * sizeof *bias);
}

static void apply_act(const void *context, const ki_tiled_part *tile) {
    const linear *k = context;
    float *dst = (float *)k->b.dst + tile->row * k->oc + tile->column;
    for (int64_t i = 0; i < tile->n_rows; i++) k->act(dst + i * k->oc, dst + i * k->oc, tile->n_columns);
}

static bool fuses_act(ki_act how) {
    (void)how;
    return true;
}

static kith_status linear_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const linear *k = (linear *)kernel;
    if (k->packs) {
        cpu_packed_run(&(cpu_packed_product){.with = &k->weights,
                                             .m = k->mb,
                                             .a = k->b.src[0],
                                             .dst = k->b.dst,
                                             .finish = k->act ? apply_act : NULL,
                                             .context = k});
        return KITH_OK;
    }
    const bool has_bias = k->b.param[KI_B].value;
    const cpu_gemm product = {.m = k->mb,
                              .n = k->oc,
                              .k = k->ic,
                              .transposes_b = true,
                              .adds = has_bias,
                              .a = k->b.src[0],
                              .b = k->b.param[KI_W].value,
                              .c = k->b.dst,
                              .begin = has_bias ? write_bias : NULL,
                              .finish = k->act ? apply_act : NULL,
                              .context = k};
    cpu_gemm_run(&product);
    return KITH_OK;
}

typedef struct columns {
    int64_t mb, c;
    const float *rows;
    float *sums;
} columns;

enum { SUM_ROWS = 64, SUM_COLUMNS = 256 };

CPU_WIDE static void add_row(float *sum, const float *row, int64_t n) {
    for (int64_t i = 0; i < n; i++) sum[i] += row[i];
}

/* Adds the rows to the sums, in order and a block of rows at a time, so that small numbers are not lost in large sums. */
static void sum_columns(void *context, int64_t begin, int64_t end) {
    const columns *c = context;
    for (int64_t first = begin; first < end; first += SUM_COLUMNS) {
        const int64_t n = end - first < SUM_COLUMNS ? end - first : SUM_COLUMNS;
        for (int64_t row = 0; row < c->mb; row += SUM_ROWS) {
            const int64_t past = row + SUM_ROWS < c->mb ? row + SUM_ROWS : c->mb;
            float sum[SUM_COLUMNS] = {0};
            for (int64_t r = row; r < past; r++) add_row(sum, c->rows + r * c->c + first, n);
            add_row(c->sums + first, sum, n);
        }
    }
}

static void add_grads(int mb, int ic, int oc, const float *src, const float *diff_dst, float *diff_weights,
                      float *diff_bias) {
    const cpu_gemm product = {.m = oc,
                              .n = ic,
                              .k = mb,
                              .transposes_a = true,
                              .adds = true,
                              .a = diff_dst,
                              .b = src,
                              .c = diff_weights};
    columns bias = {mb, oc, diff_dst, diff_bias};
    if (diff_weights) cpu_gemm_run(&product);
    if (diff_bias) ki_parallel_for(oc, 16384 / mb + 16, sum_columns, &bias);
}

kith_status cpu_linear_grad(ki_backend *backend, const ki_edge *src_edge, const void *src,
                            const ki_real *diff_dst, int64_t oc, ki_real *diff_weights, ki_real *diff_bias,
                            kith_error *err) {
    (void)backend;
    const int64_t mb = src_edge->shape.dim[0], ic = src_edge->shape.dim[1];
    KI_TRY(check_sides(mb, ic, oc, err));
    KI_TRY(cpu_gemm_prepare(err));
    add_grads((int)mb, (int)ic, (int)oc, src, diff_dst, diff_weights, diff_bias);
    return KITH_OK;
}

static kith_status linear_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const linear *k = (linear *)kernel;
    const float *diff_dst = k->b.diff_dst[0];
    if (k->trains && k->b.param[KI_W].diff)
        add_grads(k->mb, k->ic, k->oc, k->b.src[0], diff_dst, k->b.param[KI_W].diff, k->b.param[KI_B].diff);
    if (!k->b.diff_src[0]) return KITH_OK;
    if (k->packs) {
        cpu_packed_run(&(cpu_packed_product){
            .with = &k->weights_across, .m = k->mb, .a = diff_dst, .dst = k->b.diff_src[0]});
        return KITH_OK;
    }
    const cpu_gemm product = {.m = k->mb,
                              .n = k->ic,
                              .k = k->oc,
                              .a = diff_dst,
                              .b = k->b.param[KI_W].value,
                              .c = k->b.diff_src[0]};
    cpu_gemm_run(&product);
    return KITH_OK;
}

const ki_kernel_type cpu_linear = {.create = linear_create,
                                   .bind = linear_bind,
                                   .pack = linear_pack,
                                   .forward = linear_forward,
                                   .backward = linear_backward,
                                   .free = linear_free,
                                   .fuses_act = fuses_act};
