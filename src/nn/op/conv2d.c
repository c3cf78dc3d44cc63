/* conv2d: dst[oc] = sum over ic, kh, kw of weights * src + bias, with stride and zero padding; in groups of channels,
 * if the attributes say so. */
#include "nn/op/rules.h"

#include <inttypes.h>

static kith_status infer(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err) {
    const ki_conv_attr *a = &node->attr.conv;
    KI_TRY(ki_op_wants_map(&src[0], err));
    const int64_t ic = src[0].dim[1], ih = src[0].dim[2], iw = src[0].dim[3];
    KI_TRY(ki_op_wants_size("the number of output channels", a->oc, 1, err));
    KI_TRY(ki_op_wants_size("the kernel's height", a->kh, 1, err));
    KI_TRY(ki_op_wants_size("the kernel's width", a->kw, 1, err));
    KI_TRY(ki_op_wants_size("the stride down", a->sh, 1, err));
    KI_TRY(ki_op_wants_size("the stride across", a->sw, 1, err));
    KI_TRY(ki_op_wants_size("the padding above and below", a->ph, 0, err));
    KI_TRY(ki_op_wants_size("the padding left and right", a->pw, 0, err));
    KI_TRY(ki_op_wants_size("the number of groups", a->groups, 0, err));
    const int64_t groups = a->groups ? a->groups : 1;
    if (ic % groups != 0 || a->oc % groups != 0)
        return ki_fail(err, KITH_ESHAPE,
                       "%" PRId64 " groups of %" PRId64 " to %" PRId64 " channels; wanted a divisor of both",
                       groups, ic, a->oc);
    if (a->kh > ih + 2 * a->ph || a->kw > iw + 2 * a->pw)
        return ki_fail(err, KITH_ESHAPE,
                       "kernel %" PRId64 "x%" PRId64 " does not fit a source of %" PRId64 "x%" PRId64
                       " with padding %" PRId64 "x%" PRId64,
                       a->kh, a->kw, ih, iw, a->ph, a->pw);
    node->shape = KI_SHAPE4(src[0].dim[0], a->oc, (ih + 2 * a->ph - a->kh) / a->sh + 1,
                            (iw + 2 * a->pw - a->kw) / a->sw + 1);
    KI_TRY(ki_op_wants_countable("the output", &node->shape, err));

    const ki_param_decl weights = {.shape = KI_SHAPE4(a->oc, ic / groups, a->kh, a->kw),
                                   .slot = KI_W,
                                   .trained = true,
                                   .fan_in = ic / groups * a->kh * a->kw,
                                   .fan_out = a->oc / groups / (a->layers ? a->layers : 1) * a->kh * a->kw,
                                   .start = a->start,
                                   .gain = a->gain};
    KI_TRY(ki_op_declare(arena, node, "weight", weights, err));
    if (!a->bias) return KITH_OK;
    const ki_param_decl bias = {.shape = KI_SHAPE1(a->oc), .slot = KI_B, .trained = true, .fill = a->fill};
    return ki_op_declare(arena, node, "bias", bias, err);
}

static double flops(const ki_node *node, const ki_shape *src) {
    const ki_conv_attr *a = &node->attr.conv;
    const int64_t ic = src[0].dim[1] / (a->groups ? a->groups : 1);
    const double per_output = 2.0 * (double)ic * (double)a->kh * (double)a->kw;
    return per_output * (double)ki_shape_count(&node->shape);
}

const ki_op ki_op_conv2d = {.least_src = 1, .most_src = 1, .infer = infer, .flops = flops};
