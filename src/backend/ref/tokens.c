/* tokens: a class token, registers, and the pixels of a map, with positions (device/positions.h). */
#include <string.h>

#include "backend/ref/ref.h"
#include "base/alloc.h"
#include "device/positions.h"

typedef struct tokens {
    ki_ref_kernel base;
    ki_positions positions;
    int64_t mb, c, hw, special, t;
} tokens;

static void tokens_free(ki_kernel *kernel) {
    ki_positions_release(&((tokens *)kernel)->positions);
    ki_free(kernel);
}

static kith_status tokens_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                 ki_kernel **ret_kernel, kith_error *err) {
    const ki_ref_dims s = ki_ref_dims_of(&spec->src[0]);
    const ki_tokens_attr *a = &spec->attr->tokens;
    tokens *k = NULL;
    KI_TRY(ki_kernel_new(backend, &ki_ref_tokens, sizeof *k, &k, err));
    k->base.spec = *spec;
    k->base.attr = *spec->attr;
    k->mb = s.mb, k->c = s.c, k->hw = s.h * s.w;
    k->special = a->has_class + a->registers;
    k->t = k->special + k->hw;
    const kith_status status = ki_positions_init(a, s.h, s.w, &k->positions, err);
    if (status != KITH_OK) {
        tokens_free(&k->base.base);
        return status;
    }
    /* Resampled positions, or their gradient. */
    *ret_info = (ki_kernel_info){.scratch_bytes =
                                     k->positions.is_same ? 0 : (size_t)(k->hw * k->c) * sizeof(ki_real)};
    *ret_kernel = &k->base.base;
    return KITH_OK;
}

/* The parameter's rows for the grid, behind that of the class token. */
static ki_real *grid_rows(const tokens *k, ki_real *positions) {
    return positions ? positions + (k->base.attr.tokens.has_class_position ? k->c : 0) : NULL;
}

/* What is added to the pixels. */
static const ki_real *resampled(const tokens *k) {
    const ki_real *stored = grid_rows(k, k->base.binding.param[KI_POSITIONS].value);
    if (!stored || k->positions.is_same) return stored;
    ki_real *to = k->base.binding.scratch;
    for (int64_t y = 0; y < k->positions.h; y++)
        ki_positions_row(&k->positions, y, k->c, stored, to + y * k->positions.w * k->c);
    return to;
}

static kith_status tokens_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const tokens *k = (const tokens *)kernel;
    const ki_tokens_attr *a = &k->base.attr.tokens;
    const ki_param_slot *param = k->base.binding.param;
    const ki_real *src = k->base.binding.src[0], *grid = resampled(k);
    ki_real *dst = k->base.binding.dst;
    for (int64_t n = 0; n < k->mb; n++) {
        for (int64_t t = 0; t < k->t; t++) {
            const int64_t pixel = t - k->special, reg = t - a->has_class;
            for (int64_t c = 0; c < k->c; c++) {
                ki_real value;
                if (pixel >= 0)
                    value = src[(n * k->c + c) * k->hw + pixel] + (grid ? grid[pixel * k->c + c] : 0);
                else if (reg >= 0)
                    value = param[KI_REGISTERS].value[reg * k->c + c];
                else
                    value =
                        param[KI_CLASS].value[c] + (a->has_class_position ? param[KI_POSITIONS].value[c] : 0);
                *dst++ = value;
            }
        }
    }
    return KITH_OK;
}

/* diff [c] += the sum over the rows of token t; diff may be NULL. */
static void add_token(const tokens *k, int64_t t, ki_real *diff) {
    const ki_real *diff_dst = k->base.binding.diff_dst[0];
    for (int64_t c = 0; diff && c < k->c; c++) {
        double sum = 0;
        for (int64_t n = 0; n < k->mb; n++) sum += (double)diff_dst[(n * k->t + t) * k->c + c];
        diff[c] += (ki_real)sum;
    }
}

static void add_positions(const tokens *k, ki_real *diff) {
    const ki_positions *p = &k->positions;
    ki_real *sums = p->is_same ? diff : k->base.binding.scratch;
    if (!p->is_same) memset(sums, 0, (size_t)(k->hw * k->c) * sizeof *sums);
    for (int64_t pixel = 0; pixel < k->hw; pixel++) add_token(k, k->special + pixel, sums + pixel * k->c);
    for (int64_t y = 0; !p->is_same && y < p->grid_h; y++)
        ki_positions_back_row(p, y, k->c, sums, diff + y * p->grid_w * k->c);
}

static kith_status tokens_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const tokens *k = (const tokens *)kernel;
    const ki_tokens_attr *a = &k->base.attr.tokens;
    const ki_real *diff_dst = k->base.binding.diff_dst[0];
    ki_real *diff_src = k->base.binding.diff_src[0];
    for (int64_t plane = 0; diff_src && plane < k->mb * k->c; plane++) {
        const int64_t n = plane / k->c, c = plane % k->c;
        for (int64_t pixel = 0; pixel < k->hw; pixel++)
            *diff_src++ = diff_dst[(n * k->t + k->special + pixel) * k->c + c];
    }
    ki_real *positions = ki_ref_diff(&k->base, KI_POSITIONS),
            *registers = ki_ref_diff(&k->base, KI_REGISTERS);
    if (a->has_class) add_token(k, 0, ki_ref_diff(&k->base, KI_CLASS));
    if (a->has_class_position) add_token(k, 0, positions);
    for (int64_t r = 0; registers && r < a->registers; r++)
        add_token(k, a->has_class + r, registers + r * k->c);
    if (positions) add_positions(k, grid_rows(k, positions));
    return KITH_OK;
}

static kith_status tokens_bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ((tokens *)kernel)->base.binding = *binding;
    return KITH_OK;
}

const ki_kernel_type ki_ref_tokens = {.create = tokens_create,
                                      .bind = tokens_bind,
                                      .forward = tokens_forward,
                                      .backward = tokens_backward,
                                      .free = tokens_free};
