/* One pass of a convolution as the device sees it; for C and for kernels. */
#ifndef KI_CUDA_CONV_PROBLEM_H
#define KI_CUDA_CONV_PROBLEM_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/cuda/number.h"

typedef enum ki_conv_pass {
    KI_CONV_FORWARD,
    KI_CONV_DIFF_SRC,
    KI_CONV_DIFF_WEIGHTS,
    KI_N_CONV_PASSES
} ki_conv_pass;

/* Elements from one image, row and pixel to the next; channels are adjacent. */
typedef struct ki_conv_strides {
    int64_t image, row, pixel;
} ki_conv_strides;

typedef struct ki_conv_problem {
    ki_conv_pass pass;
    ki_number type; /* of activations and packed weights [oc, kh, kw, ic of a group] */
    int64_t mb, ic, ih, iw, oc, oh, ow, kh, kw, sh, sw;
    int64_t groups;                 /* of channels; 0: one */
    int64_t ph, pw, ph_end, pw_end; /* zero padding before and after */
    ki_conv_strides src, dst;
    bool has_bias, has_relu; /* forward */
    bool adds;               /* diff_src: added to what is there; forward of a product: io.added is */
    bool plain_weights;      /* diff_weights: the master's gradient has the packed form (1x1) */
    bool is_product;         /* only products are tried: of a linear layer */
} ki_conv_problem;

/* The channels of the source that one output channel reads. */
#ifdef __CUDACC__
__host__ __device__
#endif
    static inline int64_t
    ki_conv_group_ic(const ki_conv_problem *p) {
    return p->groups > 1 ? p->ic / p->groups : p->ic;
}

/* Pointers of a pass; those it does not use are ignored. Activations begin at multiples of 16 bytes. */
typedef struct ki_conv_io {
    const void *src;         /* forward, diff_weights */
    const void *weights;     /* packed; forward, diff_src */
    const float *bias;       /* forward with has_bias: [oc] */
    const void *bias_stored; /* the same in the type of activations */
    void *dst;               /* forward */
    const void *added;       /* forward that adds: this to dst, laid out as dst */
    const void *diff_dst;
    void *diff_src;
    const void
        *diff_added; /* diff_src of a way that takes a part: this is added, laid out as it; NULL: nothing */
    void *diff_weights; /* packed, assigned, of ki_conv_way_diff_type; unless the way accumulates */
    float *diff_master; /* then this is added to */
    void *workspace;
} ki_conv_io;

#endif
