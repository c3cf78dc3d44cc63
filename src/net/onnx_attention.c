/* Attention, windows and merge as nodes of ONNX. Tokens change places by one Gather, whose indices are a constant. */
#include <math.h>
#include <string.h>

#include "device/windows.h"
#include "net/onnx_op.h"

/* A node whose second source is a constant; name NULL: a new one is made up. */
static ki_onnx_value with_ints(const ki_onnx_at *o, const char *type, const char *name, const char *src,
                               int64_t n, const int64_t *values) {
    const ki_onnx_value ints = ki_onnx_int64s(o->graph, n, values);
    ki_onnx_node node = ki_onnx_begin(o->graph, type, name);
    ki_onnx_source(&node, src);
    ki_onnx_source(&node, ints.s);
    return ki_onnx_end(&node);
}

static ki_onnx_value reshape(const ki_onnx_at *o, const char *name, const char *src, int64_t n,
                             const int64_t *shape) {
    return with_ints(o, "Reshape", name, src, n, shape);
}

static ki_onnx_value transpose(const ki_onnx_at *o, const char *src, size_t n, const int64_t *order) {
    ki_onnx_node node = ki_onnx_begin(o->graph, "Transpose", NULL);
    ki_onnx_source(&node, src);
    ki_onnx_ints(&node, "perm", n, order);
    return ki_onnx_end(&node);
}

/* Whole numbers put together one by one, as a constant. A lack of memory is found when the graph is written. */
static ki_onnx_value constant_of(ki_onnx_graph *graph, ki_buffer *numbers) {
    if (graph->tensors.status == KITH_OK) graph->tensors.status = numbers->status;
    const int64_t n = (int64_t)(numbers->n / sizeof(int64_t));
    const ki_onnx_value value =
        ki_onnx_int64s(graph, numbers->status == KITH_OK ? n : 0, (const void *)numbers->data);
    ki_buffer_release(numbers);
    return value;
}

static ki_onnx_value gather(const ki_onnx_at *o, const char *name, const char *src, const char *indices,
                            int64_t axis) {
    ki_onnx_node node = ki_onnx_begin(o->graph, "Gather", name);
    ki_onnx_source(&node, src);
    ki_onnx_source(&node, indices);
    ki_onnx_int(&node, "axis", axis);
    return ki_onnx_end(&node);
}

/* c numbers of each token from `first` on, as [rows, heads, tokens, d], or, of keys, [rows, heads, d, tokens]. */
static ki_onnx_value head_parts(const ki_onnx_at *o, int src, int64_t first, bool is_keys) {
    const int64_t c = o->node->shape.dim[2], heads = o->node->attr.attention.heads,
                  n = o->src_shape[src].dim[1];
    ki_onnx_value part = o->src[src];
    if (o->src_shape[src].dim[2] != c) {
        const ki_onnx_value begin = ki_onnx_int64s(o->graph, 1, &first);
        const ki_onnx_value end = ki_onnx_int64s(o->graph, 1, (int64_t[]){first + c});
        const ki_onnx_value axis = ki_onnx_int64s(o->graph, 1, (int64_t[]){2});
        ki_onnx_node node = ki_onnx_begin(o->graph, "Slice", NULL);
        ki_onnx_source(&node, part.s);
        ki_onnx_source(&node, begin.s);
        ki_onnx_source(&node, end.s);
        ki_onnx_source(&node, axis.s);
        part = ki_onnx_end(&node);
    }
    part = reshape(o, NULL, part.s, 4, (int64_t[]){-1, n, heads, c / heads});
    const int64_t order[2][4] = {{0, 2, 1, 3}, {0, 2, 3, 1}};
    return transpose(o, part.s, 4, order[is_keys]);
}

/* [heads, t, t] out of the table. */
static ki_onnx_value bias(const ki_onnx_at *o) {
    const ki_attention_attr *a = &o->node->attr.attention;
    const int64_t t = a->window * a->window;
    ki_buffer indices = {.err = o->graph->tensors.err};
    for (int64_t i = 0; i < t * t; i++) {
        const int64_t at = ki_window_bias(a->window, i / t, i % t);
        ki_buffer_add(&indices, &at, sizeof at);
    }
    const ki_onnx_value where = constant_of(o->graph, &indices);
    const ki_onnx_value rows = gather(o, NULL, o->node->param[0].name, where.s, 0);
    const ki_onnx_value pairs = reshape(o, NULL, rows.s, 3, (int64_t[]){t, t, a->heads});
    return transpose(o, pairs.s, 3, (int64_t[]){2, 0, 1});
}

/* scores [rows, heads, t, t] plus the mask [windows, 1, t, t] of each image's windows. */
static ki_onnx_value add_mask(const ki_onnx_at *o, ki_onnx_value scores) {
    const ki_attention_attr *a = &o->node->attr.attention;
    const int64_t n = a->h * a->w, t = a->window * a->window;
    ki_buffer mask = {.err = o->graph->tensors.err};
    for (int64_t i = 0; i < n * t * t; i++) {
        const int64_t row = i / (t * t);
        const bool sees = ki_window_part(a, row, i / t % t) == ki_window_part(a, row, i % t);
        const float value = sees ? 0 : (float)KI_WINDOW_UNSEEN;
        ki_buffer_add(&mask, &value, sizeof value);
    }
    if (o->graph->tensors.status == KITH_OK) o->graph->tensors.status = mask.status;
    const int64_t dim[] = {mask.status == KITH_OK ? n : 0, 1, t, t};
    const ki_onnx_value unseen = ki_onnx_floats(o->graph, NULL, 4, dim, (const void *)mask.data);
    ki_buffer_release(&mask);
    const ki_onnx_value of_image = reshape(o, NULL, scores.s, 5, (int64_t[]){-1, n, a->heads, t, t});
    const ki_onnx_value sum = ki_onnx_simple(o->graph, "Add", of_image.s, unseen.s);
    return reshape(o, NULL, sum.s, 4, (int64_t[]){-1, a->heads, t, t});
}

ki_onnx_value ki_onnx_attention(const ki_onnx_at *o) {
    const ki_attention_attr *a = &o->node->attr.attention;
    const int64_t c = o->node->shape.dim[2];
    const int from = o->node->n_src - 1;
    const ki_onnx_value q = head_parts(o, 0, 0, false), k = head_parts(o, from, from ? 0 : c, true),
                        v = head_parts(o, from, from ? c : 2 * c, false);
    const float scale = (float)(1 / sqrt((double)c / (double)a->heads));
    const ki_onnx_value factor = ki_onnx_floats(o->graph, NULL, 1, (int64_t[]){1}, &scale);
    const ki_onnx_value scaled = ki_onnx_simple(o->graph, "Mul", q.s, factor.s);
    ki_onnx_value scores = ki_onnx_simple(o->graph, "MatMul", scaled.s, k.s);
    if (a->window) scores = ki_onnx_simple(o->graph, "Add", scores.s, bias(o).s);
    if (a->window && a->shift) scores = add_mask(o, scores);
    ki_onnx_node softmax = ki_onnx_begin(o->graph, "Softmax", NULL);
    ki_onnx_source(&softmax, scores.s);
    ki_onnx_int(&softmax, "axis", -1);
    const ki_onnx_value weights = ki_onnx_end(&softmax);
    const ki_onnx_value heads = ki_onnx_simple(o->graph, "MatMul", weights.s, v.s);
    const ki_onnx_value tokens = transpose(o, heads.s, 4, (int64_t[]){0, 2, 1, 3});
    return reshape(o, o->node->name, tokens.s, 3, (int64_t[]){-1, o->node->shape.dim[1], c});
}

/* The places of the padded side out of the grid's tokens, and zeros where there is none: one token of zeros behind the last. */
static ki_onnx_value cut(const ki_onnx_at *o, const ki_moves *m) {
    const int64_t n = m->h * m->w;
    ki_onnx_value src = o->src[0];
    ki_buffer indices = {.err = o->graph->tensors.err};
    for (int64_t i = 0; i < m->n; i++) {
        const int64_t token = ki_moves_token(m, i), at = token < 0 ? n : token;
        ki_buffer_add(&indices, &at, sizeof at);
    }
    if (m->n > n) src = with_ints(o, "Pad", NULL, src.s, 6, (int64_t[]){0, 0, 0, 0, 1, 0});
    const ki_onnx_value where = constant_of(o->graph, &indices);
    const ki_onnx_value places = gather(o, NULL, src.s, where.s, 1);
    const ki_shape *to = &o->node->shape;
    return reshape(o, o->node->name, places.s, 3, (int64_t[]){-1, to->dim[1], to->dim[2]});
}

/* And back: each token from its place. */
static ki_onnx_value put_back(const ki_onnx_at *o, const ki_moves *m) {
    ki_buffer indices = {.err = o->graph->tensors.err};
    const int64_t none = -1;
    for (int64_t token = 0; token < m->h * m->w; token++) ki_buffer_add(&indices, &none, sizeof none);
    for (int64_t at = 0; indices.status == KITH_OK && at < m->n; at++) {
        const int64_t token = ki_moves_token(m, at);
        if (token >= 0) memcpy(indices.data + (size_t)token * sizeof at, &at, sizeof at);
    }
    const ki_onnx_value where = constant_of(o->graph, &indices);
    const ki_onnx_value places =
        reshape(o, NULL, o->src[0].s, 3, (int64_t[]){-1, m->n, o->node->shape.dim[2]});
    return gather(o, o->node->name, places.s, where.s, 1);
}

ki_onnx_value ki_onnx_windows(const ki_onnx_at *o) {
    const ki_moves moves = ki_moves_of_windows(&o->node->attr.windows);
    return o->node->attr.windows.back ? put_back(o, &moves) : cut(o, &moves);
}

ki_onnx_value ki_onnx_merge(const ki_onnx_at *o) {
    const ki_moves moves = ki_moves_of_merge(&o->node->attr.merge);
    return cut(o, &moves);
}
