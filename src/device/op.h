/* The ops: what a node of a network may be, and the attributes that say how.
 *
 * Shapes are logical: activations are maps [mb, c, h, w], tokens [mb, t, c] or vectors [mb, c]; weights [oc, ic, kh, kw] or
 * [oc, ic]. The backend decides how maps are laid out in memory; tokens and vectors are rows (docs/adr/0140).
 *
 * mb counts rows. An image is one row, until `attend` makes one row for each head of an ensemble: from there to
 * `unfold` an image is so many rows side by side, and the ops between know nothing of it (docs/adr/0060). `windows` does the
 * same for the windows of a Swin.
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

enum { KI_CLASS = KI_W, KI_POSITIONS = KI_B, KI_REGISTERS = KI_MEAN }; /* of tokens */

enum { KI_MAX_SRC = 8 };

/* conv2d: dst[oc] = sum over ic, kh, kw of weights * src + bias; zero padding. */
typedef struct ki_conv_attr {
    int64_t oc, kh, kw, sh, sw, ph, pw;
    bool bias;
    ki_start start; /* of new weights */
    double gain;    /* … times this; 0: 1 */
    double fill;    /* of new biases */
    int64_t layers; /* layers of one source that are one here: each starts as if it were alone; 0: one */
    int64_t groups; /* of channels: group g of the output reads group g of the source; 0: one */
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

/* global_pool: [mb, c, h, w] to [mb, c]. BOTH is the sum of average and maximum. GEM is the mean of max(src, KI_GEM_LEAST)^p to the power 1 / p,
 * with a learned p, in KI_W [1] and 3 at first. */
typedef enum ki_global_pool { KI_GLOBAL_AVG, KI_GLOBAL_MAX, KI_GLOBAL_BOTH, KI_GLOBAL_GEM } ki_global_pool;

#define KI_GEM_LEAST 1e-6

typedef struct ki_global_pool_attr {
    ki_global_pool how;
} ki_global_pool_attr;

/* l2_norm: rows divided by max(norm, eps). */
typedef struct ki_l2_norm_attr {
    double eps;
} ki_l2_norm_attr;

/* layer_norm of each vector, each token, or the channels of each pixel: gamma * (src - mean) / sqrt(var + eps) + beta, with the mean and the
 * biased variance of its own numbers. RMS: gamma * src / sqrt(mean of squares + eps), without beta. */
typedef struct ki_layer_norm_attr {
    double eps;
    bool rms;
} ki_layer_norm_attr;

/* act: a function of each number.
 *   gelu          x * (1 + erf(x / sqrt 2)) / 2
 *   gelu_tanh     x * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
 *   quick_gelu    x * sigmoid(1.702 x)
 *   silu          x * sigmoid(x)
 *   sigmoid       1 / (1 + exp(-x))
 *   hard_swish    x * hard_sigmoid(x)
 *   hard_sigmoid  min(max(x / 6 + 1/2, 0), 1) */
typedef enum ki_act {
    KI_ACT_GELU,
    KI_ACT_GELU_TANH,
    KI_ACT_QUICK_GELU,
    KI_ACT_SILU,
    KI_ACT_SIGMOID,
    KI_ACT_HARD_SWISH,
    KI_ACT_HARD_SIGMOID,
} ki_act;

typedef struct ki_act_attr {
    ki_act how;
} ki_act_attr;

/* glu: [.., 2c] to [.., c] of tokens: silu(the first half) * the second. */

/* layer_scale: src * gamma, a factor for each channel (KI_W [c], NODE.gamma), of maps, tokens and vectors. */
typedef struct ki_layer_scale_attr {
    double fill; /* of a new gamma */
} ki_layer_scale_attr;

/* drop_path: in training each row is kept whole with probability 1 - p and scaled by 1 / (1 - p), else 0: dropout.h with a row as the element. */
typedef struct ki_drop_path_attr {
    double p;
} ki_drop_path_attr;

/* gate: src[0] [mb, c, h, w] * src[1] [mb, c], a factor for each channel of each row. */

/* grn: with G[c] the L2 norm of channel c over the pixels of a row and N = G / (mean over c of G + eps):
 * gamma * src * N + beta + src. gamma and beta [c] in KI_W and KI_B, 0 at first. */
typedef struct ki_grn_attr {
    double eps;
} ki_grn_attr;

/* tokens: a map [mb, c, h, w] to tokens [mb, n + h * w, c], pixel by pixel, row by row, after n special ones: the class token if there is
 * one, then registers. Parameters: KI_CLASS [c] (NODE.class), KI_POSITIONS (NODE.positions) [grid_h * grid_w, c], with one row more before
 * them if has_class_position, and KI_REGISTERS [registers, c] (NODE.registers). Positions are added to the class token and to the pixels' tokens, never to
 * registers; where the map is not grid_h x grid_w they are resampled (device/positions.h). */
typedef enum ki_positions_filter {
    KI_POSITIONS_BICUBIC,
    KI_POSITIONS_BICUBIC_ANTIALIAS,
    KI_POSITIONS_BILINEAR
} ki_positions_filter;

typedef struct ki_tokens_attr {
    bool has_class, has_class_position;
    int64_t registers;
    int64_t grid_h, grid_w; /* of the positions as they are stored; 0: none */
    ki_positions_filter how;
    double
        offset; /* of the original DINO's and DINOv2's scale factor, (h + offset) / grid_h, 0.1; 0: sizes decide */
} ki_tokens_attr;

/* grid: tokens to a map of h x w, without the first `skip`. */
typedef struct ki_grid_attr {
    int64_t skip, h, w;
} ki_grid_attr;

/* token: the one token `at` of each row as a vector: [mb, t, c] to [mb, c]. */
typedef struct ki_token_attr {
    int64_t at;
} ki_token_attr;

/* probe: n learned tokens for each row, the same for all: [mb, t, c] to [mb, n, c]; nothing of the source but its mb is read. KI_W [n, c]. */
typedef struct ki_probe_attr {
    int64_t n;
} ki_probe_attr;

/* attention: softmax(q k^T / sqrt(c / heads) + bias + mask) v for each of `heads` parts of c numbers, of each row.
 * One source: q, k and v side by side [mb, t, 3c]; two: q [mb, s, c], and k and v [mb, t, 2c]. To [mb, t, c], or [mb, s, c].
 *
 * Swin's windows (`window` > 0, t = window^2): the bias of tokens i and j is row (yi - yj + window - 1) * (2 window - 1) + xi - xj + window - 1
 * of KI_W [(2 window - 1)^2, heads] (NODE.bias_table). With `shift` > 0 rows are the windows of a grid of h x w windows that was rolled
 * by `shift` (op windows), and tokens that did not lie side by side before do not see each other: -100 is added. */
typedef struct ki_attention_attr {
    int64_t heads;
    int64_t window, shift, h, w;
} ki_attention_attr;

/* windows: tokens of a grid of h x w, padded with zeros below and right to multiples of `side`, rolled up and left by `shift`, cut into windows:
 * [mb, h * w, c] to [mb * n, side^2, c], window by window, row by row. `back`: the inverse, which drops the padding. */
typedef struct ki_windows_attr {
    int64_t side, shift, h, w;
    bool back;
} ki_windows_attr;

/* merge: four neighbours of a grid of h x w side by side, which pads with zeros if a side is odd: [mb, h * w, c] to
 * [mb, ceil(h / 2) * ceil(w / 2), 4c], in the order (0, 0), (1, 0), (0, 1), (1, 1) of (y, x). */
typedef struct ki_merge_attr {
    int64_t h, w;
} ki_merge_attr;

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
    ki_act_attr act;
    ki_layer_scale_attr layer_scale;
    ki_drop_path_attr drop_path;
    ki_grn_attr grn;
    ki_tokens_attr tokens;
    ki_grid_attr grid;
    ki_token_attr token;
    ki_probe_attr probe;
    ki_attention_attr attention;
    ki_windows_attr windows;
    ki_merge_attr merge;
} ki_attr;

const char *ki_op_name(ki_op_kind kind); /* "conv2d" */

#endif
