/* attention: softmax(q k^T / sqrt(c / heads)) v of the tokens of each row, or of each window of a Swin with the bias of its positions. */
#include "nn/op/rules.h"

/* Of one source q, k and v are parts; of two, k and v are parts of the second. */
static kith_status check_parts(const ki_node *node, const ki_shape *src, int64_t *ret_c, kith_error *err) {
    char a[96], b[96];
    KI_TRY(ki_op_wants_tokens(&src[0], err));
    if (node->n_src == 1) {
        *ret_c = src[0].dim[2] / 3;
        if (src[0].dim[2] % 3 == 0) return KITH_OK;
        return ki_fail(err, KITH_ESHAPE, "the source is %s, wanted q, k and v side by side",
                       ki_shape_text(&src[0], a, sizeof a));
    }
    KI_TRY(ki_op_wants_tokens(&src[1], err));
    *ret_c = src[0].dim[2];
    if (src[1].dim[0] == src[0].dim[0] && src[1].dim[2] == 2 * *ret_c) return KITH_OK;
    return ki_fail(err, KITH_ESHAPE,
                   "source 1 is %s, wanted k and v side by side for the rows of q, which is %s",
                   ki_shape_text(&src[1], b, sizeof b), ki_shape_text(&src[0], a, sizeof a));
}

static kith_status check_windows(const ki_node *node, const ki_shape *src, kith_error *err) {
    const ki_attention_attr *a = &node->attr.attention;
    KI_TRY(ki_op_wants_size("the side of the windows", a->window, 1, err));
    KI_TRY(ki_op_wants_size("the height of the grid of windows", a->h, 1, err));
    KI_TRY(ki_op_wants_size("the width of the grid of windows", a->w, 1, err));
    if (node->n_src != 1 || src[0].dim[1] != a->window * a->window || src[0].dim[0] % (a->h * a->w) != 0)
        return ki_fail(err, KITH_ESHAPE, "%lld rows of %lld tokens; wanted %lldx%lld windows of %lldx%lld",
                       (long long)src[0].dim[0], (long long)src[0].dim[1], (long long)a->h, (long long)a->w,
                       (long long)a->window, (long long)a->window);
    if (a->shift < 0 || a->shift >= a->window)
        return ki_fail(err, KITH_EINVAL, "shift is %lld, wanted 0 to %lld", (long long)a->shift,
                       (long long)a->window - 1);
    return KITH_OK;
}

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    const ki_attention_attr *a = &node->attr.attention;
    int64_t c = 0;
    KI_TRY(check_parts(node, src, &c, err));
    KI_TRY(ki_op_wants_size("the number of heads", a->heads, 1, err));
    if (c % a->heads != 0)
        return ki_fail(err, KITH_ESHAPE, "%lld numbers for %lld heads; wanted a multiple", (long long)c,
                       (long long)a->heads);
    node->shape = KI_SHAPE3(src[0].dim[0], src[0].dim[1], c);
    if (a->window == 0) return KITH_OK;
    KI_TRY(check_windows(node, src, err));
    const int64_t side = 2 * a->window - 1;
    const ki_param_decl table = {.shape = KI_SHAPE2(side * side, a->heads),
                                 .slot = KI_W,
                                 .trained = true,
                                 .fan_in = a->heads,
                                 .start = KI_START_SMALL};
    return ki_op_declare(arena, node, "bias_table", table, err);
}

/* The products of q with k, and of the weights with v. */
static double flops(const ki_node *node, const ki_shape *src) {
    return 4.0 * (double)ki_shape_count(&node->shape) * (double)src[node->n_src - 1].dim[1];
}

const ki_op ki_op_attention = {.least_src = 1, .most_src = 2, .infer = infer, .flops = flops};
