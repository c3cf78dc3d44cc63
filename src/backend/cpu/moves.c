/* windows and merge: copies of whole tokens (device/windows.h). */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "device/windows.h"

/* `grid` [rows, h * w, c] and `cut` [rows, n, c]; one is made from the other. */
typedef struct moving {
    ki_kernel base;
    ki_moves moves;
    bool back; /* forward makes the grid */
    int64_t rows, c;
    ki_binding b;
} moving;

typedef struct copy {
    const moving *m;
    const float *from;
    float *to;
} copy;

/* Items: places of cut, which is made. */
static void gather_items(void *context, int64_t begin, int64_t end) {
    const copy *o = context;
    const moving *m = o->m;
    for (int64_t item = begin; item < end; item++) {
        const int64_t token = ki_moves_token(&m->moves, item % m->moves.n), row = item / m->moves.n;
        float *to = o->to + item * m->c;
        const size_t bytes = (size_t)m->c * sizeof *to;
        if (token < 0)
            memset(to, 0, bytes);
        else
            memcpy(to, o->from + (row * m->moves.h * m->moves.w + token) * m->c, bytes);
    }
}

/* Items: places of cut, which is read. */
static void scatter_items(void *context, int64_t begin, int64_t end) {
    const copy *o = context;
    const moving *m = o->m;
    for (int64_t item = begin; item < end; item++) {
        const int64_t token = ki_moves_token(&m->moves, item % m->moves.n), row = item / m->moves.n;
        if (token >= 0)
            memcpy(o->to + (row * m->moves.h * m->moves.w + token) * m->c, o->from + item * m->c,
                   (size_t)m->c * sizeof *o->to);
    }
}

static void move(const moving *m, const void *from, void *to, bool scatters) {
    copy o = {m, from, to};
    ki_parallel_for(m->rows * m->moves.n, 16384 / m->c + 1, scatters ? scatter_items : gather_items, &o);
}

static kith_status create_of(const ki_kernel_type *type, ki_backend *backend, const ki_kernel_spec *spec,
                             ki_kernel_info *ret_info, ki_kernel **ret_kernel, kith_error *err) {
    moving *m = NULL;
    KI_TRY(ki_kernel_new(backend, type, sizeof *m, &m, err));
    const bool is_merge = spec->kind == KI_OP_MERGE;
    m->back = !is_merge && spec->attr->windows.back;
    m->moves = is_merge ? ki_moves_of_merge(&spec->attr->merge) : ki_moves_of_windows(&spec->attr->windows);
    const ki_shape *grid = m->back ? &spec->dst.shape : &spec->src[0].shape;
    m->rows = grid->dim[0];
    m->c = grid->dim[2];
    *ret_info = (ki_kernel_info){0};
    *ret_kernel = &m->base;
    return KITH_OK;
}

static kith_status windows_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                  ki_kernel **ret_kernel, kith_error *err) {
    return create_of(&cpu_windows, backend, spec, ret_info, ret_kernel, err);
}

static kith_status merge_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                ki_kernel **ret_kernel, kith_error *err) {
    return create_of(&cpu_merge, backend, spec, ret_info, ret_kernel, err);
}

static kith_status bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ((moving *)kernel)->b = *binding;
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    const moving *m = (moving *)kernel;
    (void)err;
    move(m, m->b.src[0], m->b.dst, m->back);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    const moving *m = (moving *)kernel;
    (void)err;
    if (m->b.diff_src[0]) move(m, m->b.diff_dst[0], m->b.diff_src[0], !m->back);
    return KITH_OK;
}

static void release(ki_kernel *kernel) { ki_free(kernel); }

const ki_kernel_type cpu_windows = {
    .create = windows_create, .bind = bind, .forward = forward, .backward = backward, .free = release};
const ki_kernel_type cpu_merge = {
    .create = merge_create, .bind = bind, .forward = forward, .backward = backward, .free = release};
