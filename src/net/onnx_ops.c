/* Each op of a net as nodes of ONNX. */
#include <string.h>

#include "net/onnx_op.h"
#include "net/onnx_tokens.h"

/* Begin a node that makes the op's own output, from its first source. */
static ki_onnx_node begin(const ki_onnx_at *o, const char *type) {
    ki_onnx_node node = ki_onnx_begin(o->graph, type, o->node->name);
    ki_onnx_source(&node, o->src[0].s);
    return node;
}

/* The parameters, in the order in which they are declared: ONNX has them in the same one. */
static void take_params(const ki_onnx_at *o, ki_onnx_node *node) {
    for (int i = 0; i < o->node->n_params; i++) ki_onnx_source(node, o->node->param[i].name);
}

static ki_onnx_value add_conv2d(const ki_onnx_at *o) {
    const ki_conv_attr *a = &o->node->attr.conv;
    ki_onnx_node node = begin(o, "Conv");
    take_params(o, &node);
    ki_onnx_ints(&node, "kernel_shape", 2, (int64_t[]){a->kh, a->kw});
    ki_onnx_ints(&node, "strides", 2, (int64_t[]){a->sh, a->sw});
    ki_onnx_ints(&node, "pads", 4, (int64_t[]){a->ph, a->pw, a->ph, a->pw});
    ki_onnx_int(&node, "group", a->groups ? a->groups : 1);
    return ki_onnx_end(&node);
}

static ki_onnx_value add_batch_norm(const ki_onnx_at *o) {
    ki_onnx_node node = begin(o, "BatchNormalization");
    take_params(o, &node);
    ki_onnx_real(&node, "epsilon", o->node->attr.bn.eps);
    return ki_onnx_end(&node);
}

static ki_onnx_value add_relu(const ki_onnx_at *o) {
    ki_onnx_node node = begin(o, "Relu");
    return ki_onnx_end(&node);
}

/* How far the last window hangs over the padding. ONNX's ceil_mode leaves open where it may begin, so the extent is
 * written as padding at the end: a maximum ignores it, an average without count_include_pad does not count it. */
static int64_t overhang(int64_t in, int64_t out, const ki_pool_attr *a) {
    const int64_t over = (out - 1) * a->s + a->k - (in + 2 * a->p);
    return over > 0 ? over : 0;
}

static ki_onnx_value add_pool(const ki_onnx_at *o) {
    const ki_pool_attr *a = &o->node->attr.pool;
    const ki_shape *in = &o->src_shape[0], *out = &o->node->shape;
    const int64_t over_h = overhang(in->dim[2], out->dim[2], a),
                  over_w = overhang(in->dim[3], out->dim[3], a);
    ki_onnx_value src = o->src[0];
    int64_t p = a->p;
    bool counts_pad = a->average && a->count_pad && p > 0;
    if (counts_pad && (over_h || over_w)) {
        /* Padding that counts beside an overhang that does not: the first becomes zeros of the map. */
        const ki_onnx_value pads = ki_onnx_int64s(o->graph, 8, (int64_t[]){0, 0, p, p, 0, 0, p, p});
        src = ki_onnx_simple(o->graph, "Pad", src.s, pads.s);
        p = 0;
        counts_pad = false;
    }
    ki_onnx_node node = ki_onnx_begin(o->graph, a->average ? "AveragePool" : "MaxPool", o->node->name);
    ki_onnx_source(&node, src.s);
    ki_onnx_ints(&node, "kernel_shape", 2, (int64_t[]){a->k, a->k});
    ki_onnx_ints(&node, "strides", 2, (int64_t[]){a->s, a->s});
    ki_onnx_ints(&node, "pads", 4, (int64_t[]){p, p, p + over_h, p + over_w});
    if (a->average) ki_onnx_int(&node, "count_include_pad", counts_pad);
    return ki_onnx_end(&node);
}

static ki_onnx_value add_lrn(const ki_onnx_at *o) {
    const ki_lrn_attr *a = &o->node->attr.lrn;
    ki_onnx_node node = begin(o, "LRN");
    ki_onnx_int(&node, "size", a->size);
    ki_onnx_real(&node, "alpha", a->alpha);
    ki_onnx_real(&node, "beta", a->beta);
    ki_onnx_real(&node, "bias", a->k);
    return ki_onnx_end(&node);
}

static ki_onnx_value add_concat(const ki_onnx_at *o) {
    ki_onnx_node node = ki_onnx_begin(o->graph, "Concat", o->node->name);
    for (int i = 0; i < o->node->n_src; i++) ki_onnx_source(&node, o->src[i].s);
    ki_onnx_int(&node, "axis", 1);
    return ki_onnx_end(&node);
}

static ki_onnx_value add_add(const ki_onnx_at *o) {
    ki_onnx_node node = begin(o, "Add");
    ki_onnx_source(&node, o->src[1].s);
    return ki_onnx_end(&node);
}

static ki_onnx_value add_linear(const ki_onnx_at *o) {
    if (o->node->shape.n_dims == 3) return ki_onnx_linear_rows(o->graph, o->node, o->src[0].s);
    ki_onnx_node node = begin(o, "Gemm");
    take_params(o, &node);
    ki_onnx_int(&node, "transB", 1);
    return ki_onnx_end(&node);
}

/* In inference nothing is dropped. */
static ki_onnx_value add_dropout(const ki_onnx_at *o) { return o->src[0]; }

/* (mean of max(src, least)^p)^(1 / p) */
static ki_onnx_value add_gem(const ki_onnx_at *o) {
    const char *p = o->node->param[0].name;
    const ki_onnx_value least =
        ki_onnx_floats(o->graph, NULL, 1, (int64_t[]){1}, (float[]){(float)KI_GEM_LEAST});
    const ki_onnx_value above = ki_onnx_simple(o->graph, "Max", o->src[0].s, least.s);
    const ki_onnx_value power = ki_onnx_simple(o->graph, "Pow", above.s, p);
    const ki_onnx_value mean = ki_onnx_simple(o->graph, "GlobalAveragePool", power.s, NULL);
    const ki_onnx_value root = ki_onnx_simple(o->graph, "Reciprocal", p, NULL);
    const ki_onnx_value value = ki_onnx_simple(o->graph, "Pow", mean.s, root.s);
    ki_onnx_node node = ki_onnx_begin(o->graph, "Flatten", o->node->name);
    ki_onnx_source(&node, value.s);
    return ki_onnx_end(&node);
}

static ki_onnx_value add_global_pool(const ki_onnx_at *o) {
    if (o->node->attr.global_pool.how == KI_GLOBAL_GEM) return add_gem(o);
    static const char *const types[] = {"GlobalAveragePool", "GlobalMaxPool"};
    const ki_global_pool how = o->node->attr.global_pool.how;
    ki_onnx_value pooled[2];
    for (int i = 0; i < 2; i++) {
        if (how == KI_GLOBAL_BOTH || how == (ki_global_pool)i)
            pooled[i] = ki_onnx_simple(o->graph, types[i], o->src[0].s, NULL);
    }
    const ki_onnx_value whole =
        how == KI_GLOBAL_BOTH ? ki_onnx_simple(o->graph, "Add", pooled[0].s, pooled[1].s) : pooled[how];
    ki_onnx_node node = ki_onnx_begin(o->graph, "Flatten", o->node->name);
    ki_onnx_source(&node, whole.s);
    return ki_onnx_end(&node);
}

ki_onnx_value ki_onnx_unit_rows(ki_onnx_graph *graph, const char *src, double eps, const char *name) {
    ki_onnx_node norm = ki_onnx_begin(graph, "ReduceL2", NULL);
    ki_onnx_source(&norm, src);
    ki_onnx_ints(&norm, "axes", 1, (int64_t[]){1});
    ki_onnx_int(&norm, "keepdims", 1);
    const ki_onnx_value length = ki_onnx_end(&norm);
    const ki_onnx_value least = ki_onnx_floats(graph, NULL, 1, (int64_t[]){1}, (float[]){(float)eps});
    const ki_onnx_value divisor = ki_onnx_simple(graph, "Max", length.s, least.s);
    ki_onnx_node node = ki_onnx_begin(graph, "Div", name);
    ki_onnx_source(&node, src);
    ki_onnx_source(&node, divisor.s);
    return ki_onnx_end(&node);
}

static ki_onnx_value add_l2_norm(const ki_onnx_at *o) {
    return ki_onnx_unit_rows(o->graph, o->src[0].s, o->node->attr.l2_norm.eps, o->node->name);
}

/* [mb, c, h, w] and [mb, heads * c, h, w] through [mb, heads, c, h, w] to [mb * heads, c, h, w] (device/op.h). */
static ki_onnx_value add_attend(const ki_onnx_at *o) {
    const int64_t *d = o->node->shape.dim, c = d[1], heads = d[0];
    const ki_onnx_value mask = ki_onnx_simple(o->graph, "Sigmoid", o->src[1].s, NULL);
    const ki_onnx_value masks =
        ki_onnx_reshape(o->graph, mask.s, 5, (int64_t[]){-1, heads, c, d[2], d[3]}, NULL);
    const ki_onnx_value map =
        ki_onnx_reshape(o->graph, o->src[0].s, 5, (int64_t[]){-1, 1, c, d[2], d[3]}, NULL);
    const ki_onnx_value seen = ki_onnx_simple(o->graph, "Mul", map.s, masks.s);
    return ki_onnx_reshape(o->graph, seen.s, 4, (int64_t[]){-1, c, d[2], d[3]}, o->node->name);
}

static ki_onnx_value add_unfold(const ki_onnx_at *o) {
    const ki_shape *s = &o->node->shape;
    int64_t to[KI_MAX_DIMS];
    to[0] = -1;
    for (int i = 1; i < s->n_dims; i++) to[i] = s->dim[i];
    return ki_onnx_reshape(o->graph, o->src[0].s, s->n_dims, to, o->node->name);
}

static ki_onnx_value add_tokens(const ki_onnx_at *o) {
    return ki_onnx_tokens(o->graph, o->node, o->src[0].s);
}
static ki_onnx_value add_grid(const ki_onnx_at *o) { return ki_onnx_grid(o->graph, o->node, o->src[0].s); }
static ki_onnx_value add_token(const ki_onnx_at *o) { return ki_onnx_token(o->graph, o->node, o->src[0].s); }
static ki_onnx_value add_probe(const ki_onnx_at *o) { return ki_onnx_probe(o->graph, o->node, o->src[0].s); }

kith_status ki_onnx_op(ki_onnx_graph *graph, const ki_node *node, const ki_shape *src_shape,
                       const ki_onnx_value *src, ki_onnx_value *ret_value, kith_error *err) {
    static ki_onnx_value (*const rows[KI_N_OPS])(const ki_onnx_at *) = {
        [KI_OP_CONV2D] = add_conv2d,
        [KI_OP_BATCH_NORM] = add_batch_norm,
        [KI_OP_RELU] = add_relu,
        [KI_OP_POOL] = add_pool,
        [KI_OP_LRN] = add_lrn,
        [KI_OP_CONCAT] = add_concat,
        [KI_OP_ADD] = add_add,
        [KI_OP_LINEAR] = add_linear,
        [KI_OP_DROPOUT] = add_dropout,
        [KI_OP_GLOBAL_POOL] = add_global_pool,
        [KI_OP_L2_NORM] = add_l2_norm,
        [KI_OP_ATTEND] = add_attend,
        [KI_OP_UNFOLD] = add_unfold,
        [KI_OP_LAYER_NORM] = ki_onnx_layer_norm,
        [KI_OP_ACT] = ki_onnx_act,
        [KI_OP_GLU] = ki_onnx_glu,
        [KI_OP_LAYER_SCALE] = ki_onnx_layer_scale,
        [KI_OP_DROP_PATH] = add_dropout,
        [KI_OP_GATE] = ki_onnx_gate,
        [KI_OP_GRN] = ki_onnx_grn,
        [KI_OP_ATTENTION] = ki_onnx_attention,
        [KI_OP_WINDOWS] = ki_onnx_windows,
        [KI_OP_MERGE] = ki_onnx_merge,
        [KI_OP_TOKENS] = add_tokens,
        [KI_OP_GRID] = add_grid,
        [KI_OP_TOKEN] = add_token,
        [KI_OP_PROBE] = add_probe,
    };
    const ki_onnx_at o = {graph, node, src_shape, src};
    if (!rows[node->kind])
        return ki_fail(err, KITH_EUNSUPPORTED, "node %s: %s is not exported to ONNX", node->name,
                       ki_op_name(node->kind));
    *ret_value = rows[node->kind](&o);
    return KITH_OK;
}
