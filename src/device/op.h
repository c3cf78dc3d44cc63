/* The ops: what a node of a network may be, and the attributes that say how.
 *
 * Shapes are logical: activations [mb, c, h, w] or [mb, c], weights [oc, ic, kh, kw] or [oc, ic].
 * The backend decides how they are laid out in memory.
 *
 * mb counts rows. An image is one row, until `attend` makes one row for each head of an ensemble: from there to
 * `unfold` an image is so many rows side by side, and the ops between know nothing of it (docs/adr/0060).
 *
 *   attend   src[0] [mb, c, h, w], src[1] [mb, heads * c, h, w] to [mb * heads, c, h, w]: row n * heads + k is
 *            src[0][n] * sigmoid(src[1][n, k * c …])
 *   unfold   [mb * heads, c, h, w] to [mb, heads * c, h, w], and vectors [mb * heads, c] to [mb, heads * c]: the heads
 *            of an image side by side. How many there are the shapes say. */
#ifndef KI_OP_H
#define KI_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/start.h"

/* The input is there; all others are the rows of op.def. */
typedef enum ki_op_kind {
    KI_OP_INPUT,
#define X(NAME, name) KI_OP_##NAME,
#include "device/op.def"
#undef X
    KI_N_OPS
} ki_op_kind;

/* Parameters by place: KI_W of conv2d and linear, gamma and beta of batch and layer norm in KI_W and KI_B, the batch
 * norm's running statistics after them. A conv2d with a folded batch norm has all six. */
enum { KI_W, KI_B, KI_MEAN, KI_VAR, KI_GAMMA, KI_BETA, KI_MAX_PARAMS };

enum { KI_MAX_SRC = 8 };

/* conv2d: dst[oc] = sum over ic, kh, kw of weights * src + bias; zero padding. */
typedef struct ki_conv_attr {
    int64_t oc, kh, kw, sh, sw, ph, pw;
    bool bias;
    ki_start start; /* of new weights */
    double gain;    /* … times this; 0: 1 */
    double fill;    /* of new biases */
    int64_t layers; /* layers of one source that are one here: each starts as if it were alone; 0: one */
} ki_conv_attr;

/* batch_norm over [mb, h, w] per channel of a map, or over [mb] per number of vectors: gamma * (src - mean) / sqrt(var + eps) + beta.
 * Training: batch statistics (biased variance), running = (1 - momentum) * running + momentum *
 * batch with the unbiased variance, as PyTorch does. Frozen: running statistics are used and not
 * updated, gamma and beta still train. */
typedef struct ki_bn_attr {
    double eps, momentum;
} ki_bn_attr;

/* pool: windows k with stride s and padding p on both sides. `ceil_mode` lets a last window hang
 * over the edge as long as it starts inside the source or its left padding (Caffe and PyTorch agree
 * on this). Average: `count_pad` divides by the window's cells inside source and padding, otherwise
 * by those inside the source; cells beyond the padding never count. */
typedef struct ki_pool_attr {
    bool average;
    int64_t k, s, p;
    bool ceil_mode, count_pad;
} ki_pool_attr;

/* lrn across channels: src / (k + alpha / size * sum of squares over `size` channels)^beta. */
typedef struct ki_lrn_attr {
    int64_t size;
    double alpha, beta, k;
} ki_lrn_attr;

typedef struct ki_linear_attr {
    int64_t oc;
    bool bias;
    ki_start start; /* of new weights */
} ki_linear_attr;

/* dropout: in training each value is kept with probability 1 - p and scaled by 1 / (1 - p). */
typedef struct ki_dropout_attr {
    double p;
} ki_dropout_attr;

/* global_pool: [mb, c, h, w] to [mb, c]. BOTH is the sum of average and maximum. */
typedef enum ki_global_pool { KI_GLOBAL_AVG, KI_GLOBAL_MAX, KI_GLOBAL_BOTH } ki_global_pool;

typedef struct ki_global_pool_attr {
    ki_global_pool how;
} ki_global_pool_attr;

/* l2_norm: rows divided by max(norm, eps). */
typedef struct ki_l2_norm_attr {
    double eps;
} ki_l2_norm_attr;

/* layer_norm of each vector: gamma * (src - mean) / sqrt(var + eps) + beta, with the mean and the biased variance of its
 * own numbers. */
typedef struct ki_layer_norm_attr {
    double eps;
} ki_layer_norm_attr;

typedef union ki_attr {
    ki_conv_attr conv;
    ki_bn_attr bn;
    ki_pool_attr pool;
    ki_lrn_attr lrn;
    ki_linear_attr linear;
    ki_dropout_attr dropout;
    ki_global_pool_attr global_pool;
    ki_l2_norm_attr l2_norm;
    ki_layer_norm_attr layer_norm;
} ki_attr;

const char *ki_op_name(ki_op_kind kind); /* "conv2d" */

#endif
