/* What the files of the reference backend share.
 *
 * Tensors are ki_real, row-major, whatever the edge's layout says. Every op has the same kernel struct, with
 * copies of the spec and the binding. Sums are computed in double and in a fixed order. */
#ifndef KI_REF_H
#define KI_REF_H

#include "device/backend.h"

typedef struct ki_ref_kernel {
    ki_kernel base;
    ki_kernel_spec spec; /* spec.attr points to attr */
    ki_attr attr;
    ki_binding binding;
} ki_ref_kernel;

extern const ki_backend_type ki_backend_ref;

/* One record per op. */
#define X(NAME, name) extern const ki_kernel_type ki_ref_##name;
#include "device/op.def"
#undef X

/* A kernel with a copy of the spec. KITH_EUNSUPPORTED when the spec asks for a fusion. */
kith_status ki_ref_kernel_new(const ki_kernel_type *type, ki_backend *backend, const ki_kernel_spec *spec,
                              ki_kernel **ret_kernel, kith_error *err);
/* `bind` and `free` of every op. */
kith_status ki_ref_bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err);
void ki_ref_free(ki_kernel *kernel);

/* [mb, c, h, w]; vectors have h = w = 1, and tokens are so many vectors. */
typedef struct ki_ref_dims {
    int64_t mb, c, h, w;
} ki_ref_dims;

static inline ki_ref_dims ki_ref_dims_of(const ki_edge *edge) {
    const ki_shape *s = &edge->shape;
    if (s->n_dims == 3) return (ki_ref_dims){ki_shape_rows(s), ki_shape_width(s), 1, 1};
    return (ki_ref_dims){s->dim[0], s->dim[1], s->n_dims == 4 ? s->dim[2] : 1,
                         s->n_dims == 4 ? s->dim[3] : 1};
}

static inline ki_ref_kernel *ki_ref_of(ki_kernel *kernel) { return (ki_ref_kernel *)kernel; }

/* The fewest items per thread, so that small loops stay on one thread; `work` is the operations per item. */
static inline int64_t ki_ref_grain(int64_t work) { return work > 0 ? 16384 / work + 1 : 16384; }

/* The gradient slot to add to, or NULL. */
static inline ki_real *ki_ref_diff(const ki_ref_kernel *k, int slot) {
    return k->spec.wants_diff_params ? k->binding.param[slot].diff : NULL;
}

kith_status ki_ref_join(ki_backend *backend, const ki_edge *edge, int n_parts, const void *const *parts,
                        const void *mask, void *dst, kith_error *err);
kith_status ki_ref_optim(ki_backend *backend, const ki_optim_step *step, kith_error *err);
kith_status ki_ref_sum_squares(ki_backend *backend, int n_runs, const ki_optim_run *runs, double *dst,
                               kith_error *err);
kith_status ki_ref_linear_grad(ki_backend *backend, const ki_edge *src_edge, const void *src,
                               const ki_real *diff_dst, int64_t oc, ki_real *diff_weights, ki_real *diff_bias,
                               kith_error *err);

#endif
