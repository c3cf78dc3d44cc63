/* Case files, and one op run on one backend: what the tests and benchmarks of kernels share.
 *
 * A case is one line of test/cases/NAME.txt: the op, then words made of a name and a number:
 *   conv2d mb4 ic16 ih14 oc32 kh3 sh1 ph1 bias
 * Widths are as heights unless given (iw, kw, sw, pw). '#' starts a comment. See op_case.c for the words of
 * each op. Flags for all: `infer` (no backward), `relu` (followed by a ReLU, fused if the backend can),
 * `then_gelu` and so on (inference, followed by that function of op act, fused if the backend can),
 * `plain` (the source is the network's input: row-major), `diff` (its gradient is computed all the same),
 * `ties` (source values are whole numbers, so that maxima are often equal), `first` and the place in the whole batch of the first image
 * (dropout, drop_path).
 *
 * Built in float and in double. Mistakes in a case file fail the running test. */
#ifndef KITH_OP_CASE_H
#define KITH_OP_CASE_H

#include "nn/graph.h"

typedef struct op_case {
    char line[200];
    ki_op_kind kind;
    ki_attr attr;
    int64_t mb;     /* images; each may be several rows */
    uint64_t first; /* image of the whole batch; 0: nothing is bound */
    int n_src;
    ki_shape src[KI_MAX_SRC]; /* with the batch */
    bool infer, relu, plain, diff, ties;
    bool has_act; /* then_… */
    ki_act act;
    bool frozen; /* batch_norm */
    bool added;  /* batch_norm: src[1] is added to the result, before ReLU */
    bool folded; /* conv2d: a batch norm is folded in; inference */
    bool masked; /* concat: backward applies the sources' ReLU masks */
} op_case;

enum { OP_MAX_CASES = 256 };

/* Read a case file into cases[OP_MAX_CASES]; returns how many there are. */
int op_cases_read(const char *name, op_case *ret_cases);
void op_case_parse(const char *line, op_case *ret_case);

typedef struct op_param {
    const char *name; /* "weight" */
    int slot;
    bool trained;
    ki_shape shape;
    int64_t n, fan_in;
    ki_real *value, *diff; /* host */
    ki_real *device_value, *device_diff;
} op_param;

typedef struct op_run {
    const op_case *c;
    ki_backend *backend;
    ki_arena arena;
    ki_kernel_spec spec;
    ki_attr attr;
    ki_kernel_info info;
    ki_kernel *kernel;
    bool fused_relu, fused_act, fused_mask, fused_add,
        folded_bn; /* done by the kernel; otherwise by the host around it */

    /* Host tensors, row-major. */
    int64_t n_src[KI_MAX_SRC], n_dst;
    ki_real *src[KI_MAX_SRC], *diff_src[KI_MAX_SRC], *dst, *diff_dst;
    int n_params;
    op_param param[KI_MAX_PARAMS];
    uint64_t step;

    /* The backend's memory. */
    void *device_src[KI_MAX_SRC], *device_diff_src[KI_MAX_SRC], *device_dst, *device_diff_dst[2];
    int64_t gap; /* op_run_init_sliced */
    void *device_workspace, *device_scratch, *device_late, *device_step, *device_first;
    bool keeps_diffs; /* backward adds to what is in param diffs instead of to zero */
} op_run;

/* Shapes, kernel and memory, and drawn values everywhere. The case is borrowed. */
kith_status op_run_init(op_run *run, const op_case *c, ki_backend *backend, kith_error *err);
/* Shapes, kernel and memory as op_run_init, but maps are slices: `gap` channels are between the pixels of each
 * (backends that CAN_SLICE_CONCAT). They are filled with NaN, and op_run_gaps_are_intact says that they still
 * are. */
kith_status op_run_init_sliced(op_run *run, const op_case *c, ki_backend *backend, int64_t gap,
                               kith_error *err);
bool op_run_gaps_are_intact(op_run *run);

void op_run_release(op_run *run); /* fine on a zeroed or half-built one */

/* dst from src and params. All memory a kernel may not rely on is filled with NaN before. */
kith_status op_run_forward(op_run *run, kith_error *err);
/* diff_src and param diffs from diff_dst; after a forward. What the kernel says it does not read is
 * filled with NaN before. */
kith_status op_run_backward(op_run *run, kith_error *err);

/* |a - b| / |b|; NaN anywhere gives NaN. */
double op_relative_l2(const ki_real *a, const ki_real *b, int64_t n);

#endif
