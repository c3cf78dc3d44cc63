/* Functions of each number, norms over channels and factors for channels as nodes of ONNX (formulas: device/op.h). */
#include "net/onnx_op.h"

ki_onnx_value ki_onnx_reshape(ki_onnx_graph *graph, const char *src, int64_t n, const int64_t *shape,
                              const char *name) {
    const ki_onnx_value to = ki_onnx_int64s(graph, n, shape);
    ki_onnx_node node = ki_onnx_begin(graph, "Reshape", name);
    ki_onnx_source(&node, src);
    ki_onnx_source(&node, to.s);
    return ki_onnx_end(&node);
}

/* The node that makes the op's own output; b may be NULL. */
static ki_onnx_value last(const ki_onnx_at *o, const char *type, const char *a, const char *b) {
    ki_onnx_node node = ki_onnx_begin(o->graph, type, o->node->name);
    ki_onnx_source(&node, a);
    if (b) ki_onnx_source(&node, b);
    return ki_onnx_end(&node);
}

/* x and a number. */
static ki_onnx_value with(const ki_onnx_at *o, const char *type, const char *x, double number) {
    const ki_onnx_value value = ki_onnx_floats(o->graph, NULL, 1, (int64_t[]){1}, (float[]){(float)number});
    return ki_onnx_simple(o->graph, type, x, value.s);
}

static ki_onnx_value over_axes(const ki_onnx_at *o, const char *type, const char *x, size_t n,
                               const int64_t *axes) {
    ki_onnx_node node = ki_onnx_begin(o->graph, type, NULL);
    ki_onnx_source(&node, x);
    ki_onnx_ints(&node, "axes", n, axes);
    ki_onnx_int(&node, "keepdims", 1);
    return ki_onnx_end(&node);
}

/* A parameter [c] that is to meet the op's source: of a map, as [c, 1, 1]. */
static ki_onnx_value per_channel(const ki_onnx_at *o, int param) {
    const ki_param_decl *p = &o->node->param[param];
    if (o->src_shape[0].n_dims != 4) return ki_onnx_named(p->name);
    return ki_onnx_reshape(o->graph, p->name, 3, (int64_t[]){p->shape.dim[0], 1, 1}, NULL);
}

/* ---- functions ---- */

static ki_onnx_value add_gelu(const ki_onnx_at *o, const char *x) {
    const ki_onnx_value inner = with(o, "Mul", x, 0.70710678118654752);
    const ki_onnx_value erf = ki_onnx_simple(o->graph, "Erf", inner.s, NULL);
    const ki_onnx_value twice = with(o, "Add", erf.s, 1);
    return last(o, "Mul", x, with(o, "Mul", twice.s, 0.5).s);
}

/* (1 + tanh(u)) / 2 is sigmoid(2 u). */
static ki_onnx_value add_gelu_tanh(const ki_onnx_at *o, const char *x) {
    const double twice = 2 * 0.79788456080286536;
    const ki_onnx_value square = ki_onnx_simple(o->graph, "Mul", x, x);
    const ki_onnx_value bent = with(o, "Mul", square.s, twice * 0.044715);
    const ki_onnx_value factor = with(o, "Add", bent.s, twice);
    const ki_onnx_value inner = ki_onnx_simple(o->graph, "Mul", x, factor.s);
    return last(o, "Mul", x, ki_onnx_simple(o->graph, "Sigmoid", inner.s, NULL).s);
}

static ki_onnx_value add_quick_gelu(const ki_onnx_at *o, const char *x) {
    const ki_onnx_value inner = with(o, "Mul", x, 1.702);
    return last(o, "Mul", x, ki_onnx_simple(o->graph, "Sigmoid", inner.s, NULL).s);
}

static ki_onnx_value add_silu(const ki_onnx_at *o, const char *x) {
    return last(o, "Mul", x, ki_onnx_simple(o->graph, "Sigmoid", x, NULL).s);
}

static ki_onnx_value add_sigmoid(const ki_onnx_at *o, const char *x) { return last(o, "Sigmoid", x, NULL); }

static ki_onnx_value add_hard_swish(const ki_onnx_at *o, const char *x) {
    return last(o, "HardSwish", x, NULL);
}

static ki_onnx_value add_hard_sigmoid(const ki_onnx_at *o, const char *x) {
    ki_onnx_node node = ki_onnx_begin(o->graph, "HardSigmoid", o->node->name);
    ki_onnx_source(&node, x);
    ki_onnx_real(&node, "alpha", 1.0 / 6);
    ki_onnx_real(&node, "beta", 0.5);
    return ki_onnx_end(&node);
}

ki_onnx_value ki_onnx_act(const ki_onnx_at *o) {
    static ki_onnx_value (*const rows[])(const ki_onnx_at *, const char *) = {
        [KI_ACT_GELU] = add_gelu,
        [KI_ACT_GELU_TANH] = add_gelu_tanh,
        [KI_ACT_QUICK_GELU] = add_quick_gelu,
        [KI_ACT_SILU] = add_silu,
        [KI_ACT_SIGMOID] = add_sigmoid,
        [KI_ACT_HARD_SWISH] = add_hard_swish,
        [KI_ACT_HARD_SIGMOID] = add_hard_sigmoid,
    };
    return rows[o->node->attr.act.how](o, o->src[0].s);
}

/* The numbers `from` to `to` of each token. */
static ki_onnx_value part_of_tokens(const ki_onnx_at *o, int64_t from, int64_t to) {
    const ki_onnx_value starts = ki_onnx_int64s(o->graph, 1, &from), ends = ki_onnx_int64s(o->graph, 1, &to),
                        axes = ki_onnx_int64s(o->graph, 1, (int64_t[]){2});
    ki_onnx_node node = ki_onnx_begin(o->graph, "Slice", NULL);
    ki_onnx_source(&node, o->src[0].s);
    ki_onnx_source(&node, starts.s);
    ki_onnx_source(&node, ends.s);
    ki_onnx_source(&node, axes.s);
    return ki_onnx_end(&node);
}

ki_onnx_value ki_onnx_glu(const ki_onnx_at *o) {
    const int64_t c = ki_shape_width(&o->node->shape);
    const ki_onnx_value a = part_of_tokens(o, 0, c), b = part_of_tokens(o, c, 2 * c);
    const ki_onnx_value s = ki_onnx_simple(o->graph, "Sigmoid", a.s, NULL);
    return last(o, "Mul", ki_onnx_simple(o->graph, "Mul", a.s, s.s).s, b.s);
}

/* ---- norms ---- */

/* name NULL: a new one is made up. */
static ki_onnx_value transpose(const ki_onnx_at *o, const char *x, const int64_t *perm, const char *name) {
    ki_onnx_node node = ki_onnx_begin(o->graph, "Transpose", name);
    ki_onnx_source(&node, x);
    ki_onnx_ints(&node, "perm", 4, perm);
    return ki_onnx_end(&node);
}

static ki_onnx_value add_rms_norm(const ki_onnx_at *o) {
    const char *x = o->src[0].s;
    const int64_t axis = o->src_shape[0].n_dims == 4 ? 1 : -1;
    const ki_onnx_value square = ki_onnx_simple(o->graph, "Mul", x, x);
    const ki_onnx_value mean = over_axes(o, "ReduceMean", square.s, 1, &axis);
    const ki_onnx_value sum = with(o, "Add", mean.s, o->node->attr.layer_norm.eps);
    const ki_onnx_value root = ki_onnx_simple(o->graph, "Sqrt", sum.s, NULL);
    const ki_onnx_value unit = ki_onnx_simple(o->graph, "Div", x, root.s);
    return last(o, "Mul", unit.s, per_channel(o, 0).s);
}

/* ONNX's own norm is over the last axes: a map's channels go there and back. */
ki_onnx_value ki_onnx_layer_norm(const ki_onnx_at *o) {
    if (o->node->attr.layer_norm.rms) return add_rms_norm(o);
    const bool is_map = o->src_shape[0].n_dims == 4;
    const ki_onnx_value x = is_map ? transpose(o, o->src[0].s, (int64_t[]){0, 2, 3, 1}, NULL) : o->src[0];
    ki_onnx_node node = ki_onnx_begin(o->graph, "LayerNormalization", is_map ? NULL : o->node->name);
    ki_onnx_source(&node, x.s);
    for (int i = 0; i < o->node->n_params; i++) ki_onnx_source(&node, o->node->param[i].name);
    ki_onnx_int(&node, "axis", -1);
    ki_onnx_real(&node, "epsilon", o->node->attr.layer_norm.eps);
    const ki_onnx_value y = ki_onnx_end(&node);
    return is_map ? transpose(o, y.s, (int64_t[]){0, 3, 1, 2}, o->node->name) : y;
}

ki_onnx_value ki_onnx_grn(const ki_onnx_at *o) {
    const char *x = o->src[0].s;
    const ki_onnx_value gamma = per_channel(o, 0), beta = per_channel(o, 1);
    const ki_onnx_value norm = over_axes(o, "ReduceL2", x, 2, (int64_t[]){2, 3});
    const ki_onnx_value mean = over_axes(o, "ReduceMean", norm.s, 1, (int64_t[]){1});
    const ki_onnx_value divisor = with(o, "Add", mean.s, o->node->attr.grn.eps);
    const ki_onnx_value share = ki_onnx_simple(o->graph, "Div", norm.s, divisor.s);
    const ki_onnx_value scale = ki_onnx_simple(o->graph, "Mul", share.s, gamma.s);
    const ki_onnx_value scaled = ki_onnx_simple(o->graph, "Mul", x, scale.s);
    const ki_onnx_value moved = ki_onnx_simple(o->graph, "Add", scaled.s, beta.s);
    return last(o, "Add", moved.s, x);
}

/* ---- factors ---- */

ki_onnx_value ki_onnx_layer_scale(const ki_onnx_at *o) {
    return last(o, "Mul", o->src[0].s, per_channel(o, 0).s);
}

ki_onnx_value ki_onnx_gate(const ki_onnx_at *o) {
    const int64_t c = o->src_shape[0].dim[1];
    const ki_onnx_value factor = ki_onnx_reshape(o->graph, o->src[1].s, 4, (int64_t[]){-1, c, 1, 1}, NULL);
    return last(o, "Mul", o->src[0].s, factor.s);
}
