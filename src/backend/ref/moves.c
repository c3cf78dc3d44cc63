/* windows and merge: tokens change places, some of which are padding (device/windows.h). Padding reads as zeros; what it
 * holds on the way back is dropped. */
#include "backend/ref/ref.h"
#include "base/parallel.h"
#include "device/windows.h"

/* `grid` [rows, h * w, c] and `cut` [rows, n, c]; one is made from the other. */
typedef struct moving {
    ki_moves moves;
    int64_t rows, c;
    ki_real *grid, *cut;
} moving;

/* Items: places of cut. */
static void gather_items(void *context, int64_t begin, int64_t end) {
    const moving *m = context;
    for (int64_t item = begin; item < end; item++) {
        const int64_t token = ki_moves_token(&m->moves, item % m->moves.n);
        const ki_real *from = m->grid + (item / m->moves.n * m->moves.h * m->moves.w + token) * m->c;
        for (int64_t c = 0; c < m->c; c++) m->cut[item * m->c + c] = token < 0 ? 0 : from[c];
    }
}

static void scatter_items(void *context, int64_t begin, int64_t end) {
    const moving *m = context;
    for (int64_t item = begin; item < end; item++) {
        const int64_t token = ki_moves_token(&m->moves, item % m->moves.n);
        ki_real *to = m->grid + (item / m->moves.n * m->moves.h * m->moves.w + token) * m->c;
        for (int64_t c = 0; token >= 0 && c < m->c; c++) to[c] = m->cut[item * m->c + c];
    }
}

/* from: the source or the gradient of the result. */
static void move(const ki_ref_kernel *k, bool is_backward) {
    const bool is_merge = k->spec.kind == KI_OP_MERGE, back = !is_merge && k->attr.windows.back;
    const ki_edge *grid = back ? &k->spec.dst : &k->spec.src[0];
    const void *from = is_backward ? k->binding.diff_dst[0] : k->binding.src[0];
    void *to = is_backward ? k->binding.diff_src[0] : k->binding.dst;
    const bool scatters = back != is_backward;
    moving m = {.moves = is_merge ? ki_moves_of_merge(&k->attr.merge) : ki_moves_of_windows(&k->attr.windows),
                .rows = grid->shape.dim[0],
                .c = grid->shape.dim[2]};
    ki_real *read = (ki_real *)(uintptr_t)from; /* only read */
    m.grid = scatters ? to : read;
    m.cut = scatters ? read : to;
    ki_parallel_for(m.rows * m.moves.n, ki_ref_grain(m.c), scatters ? scatter_items : gather_items, &m);
}

static kith_status create_of(const ki_kernel_type *type, ki_backend *backend, const ki_kernel_spec *spec,
                             ki_kernel_info *ret_info, ki_kernel **ret_kernel, kith_error *err) {
    KI_TRY(ki_ref_kernel_new(type, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){0};
    return KITH_OK;
}

static kith_status windows_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                  ki_kernel **ret_kernel, kith_error *err) {
    return create_of(&ki_ref_windows, backend, spec, ret_info, ret_kernel, err);
}

static kith_status merge_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                ki_kernel **ret_kernel, kith_error *err) {
    return create_of(&ki_ref_merge, backend, spec, ret_info, ret_kernel, err);
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    move(ki_ref_of(kernel), false);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    if (ki_ref_of(kernel)->binding.diff_src[0]) move(ki_ref_of(kernel), true);
    return KITH_OK;
}

const ki_kernel_type ki_ref_windows = {.create = windows_create,
                                       .bind = ki_ref_bind,
                                       .forward = forward,
                                       .backward = backward,
                                       .free = ki_ref_free};
const ki_kernel_type ki_ref_merge = {.create = merge_create,
                                     .bind = ki_ref_bind,
                                     .forward = forward,
                                     .backward = backward,
                                     .free = ki_ref_free};
