/* Between maps and tokens in ONNX. A token that all images share is expanded to as many as there are images. */
#include "net/onnx_tokens.h"

#include <string.h>

#include "base/alloc.h"
#include "device/positions.h"

kith_status ki_onnx_positions(const ki_node *node, const ki_shape *map, const ki_real *stored,
                              ki_real **ret_values, ki_shape *ret_shape, kith_error *err) {
    const ki_tokens_attr *a = &node->attr.tokens;
    const int64_t c = map->dim[1], h = map->dim[2], w = map->dim[3], own = a->has_class_position ? c : 0;
    ki_positions positions = {0};
    ki_real *values = NULL;
    KI_TRY(ki_positions_init(a, h, w, &positions, err));
    const kith_status status =
        ki_alloc_or(&values, (size_t)(own + h * w * c), sizeof *values, "positions", err);
    if (status == KITH_OK) {
        memcpy(values, stored, (size_t)own * sizeof *values);
        if (positions.is_same) memcpy(values + own, stored + own, (size_t)(h * w * c) * sizeof *values);
        for (int64_t y = 0; !positions.is_same && y < h; y++)
            ki_positions_row(&positions, y, c, stored + own, values + own + y * w * c);
        *ret_values = values;
        *ret_shape = KI_SHAPE2(a->has_class_position + h * w, c);
    }
    ki_positions_release(&positions);
    return status;
}

static ki_onnx_value reshape(ki_onnx_graph *graph, const char *src, int64_t n, const int64_t *shape,
                             const char *name) {
    const ki_onnx_value to = ki_onnx_int64s(graph, n, shape);
    ki_onnx_node node = ki_onnx_begin(graph, "Reshape", name);
    ki_onnx_source(&node, src);
    ki_onnx_source(&node, to.s);
    return ki_onnx_end(&node);
}

static ki_onnx_value transpose(ki_onnx_graph *graph, const char *src, size_t n, const int64_t *order) {
    ki_onnx_node node = ki_onnx_begin(graph, "Transpose", NULL);
    ki_onnx_source(&node, src);
    ki_onnx_ints(&node, "perm", n, order);
    return ki_onnx_end(&node);
}

/* From place `begin` to before `end` of an axis. */
static ki_onnx_value slice(ki_onnx_graph *graph, const char *src, int64_t begin, int64_t end, int64_t axis) {
    const ki_onnx_value from = ki_onnx_int64s(graph, 1, &begin), to = ki_onnx_int64s(graph, 1, &end),
                        along = ki_onnx_int64s(graph, 1, &axis);
    ki_onnx_node node = ki_onnx_begin(graph, "Slice", NULL);
    ki_onnx_source(&node, src);
    ki_onnx_source(&node, from.s);
    ki_onnx_source(&node, to.s);
    ki_onnx_source(&node, along.s);
    return ki_onnx_end(&node);
}

/* n rows of c numbers once for each image of `like`, whose first axis counts them. */
static ki_onnx_value for_each_image(ki_onnx_graph *graph, const char *rows, int64_t n, int64_t c,
                                    const char *like, const char *name) {
    const ki_onnx_value one = reshape(graph, rows, 3, (int64_t[]){1, n, c}, NULL);
    ki_onnx_node shape = ki_onnx_begin(graph, "Shape", NULL);
    ki_onnx_source(&shape, like);
    ki_onnx_int(&shape, "start", 0);
    ki_onnx_int(&shape, "end", 1);
    const ki_onnx_value images = ki_onnx_end(&shape), rest = ki_onnx_int64s(graph, 2, (int64_t[]){1, 1});
    ki_onnx_node all = ki_onnx_begin(graph, "Concat", NULL);
    ki_onnx_source(&all, images.s);
    ki_onnx_source(&all, rest.s);
    ki_onnx_int(&all, "axis", 0);
    const ki_onnx_value wanted = ki_onnx_end(&all);
    ki_onnx_node node = ki_onnx_begin(graph, "Expand", name);
    ki_onnx_source(&node, one.s);
    ki_onnx_source(&node, wanted.s);
    return ki_onnx_end(&node);
}

static const char *param_name(const ki_node *node, int slot) {
    for (int i = 0; i < node->n_params; i++) {
        if (node->param[i].slot == slot) return node->param[i].name;
    }
    return NULL;
}

static ki_onnx_value class_token(ki_onnx_graph *graph, const ki_node *node, const char *src) {
    const int64_t c = node->shape.dim[2];
    ki_onnx_value token = reshape(graph, param_name(node, KI_CLASS), 2, (int64_t[]){1, c}, NULL);
    if (node->attr.tokens.has_class_position) {
        const ki_onnx_value position = slice(graph, param_name(node, KI_POSITIONS), 0, 1, 0);
        token = ki_onnx_simple(graph, "Add", token.s, position.s);
    }
    return for_each_image(graph, token.s, 1, c, src, NULL);
}

ki_onnx_value ki_onnx_tokens(ki_onnx_graph *graph, const ki_node *node, const char *src) {
    const ki_tokens_attr *a = &node->attr.tokens;
    const int64_t c = node->shape.dim[2], pixels = node->shape.dim[1] - a->has_class - a->registers;
    const char *positions = param_name(node, KI_POSITIONS);
    const ki_onnx_value flat = reshape(graph, src, 3, (int64_t[]){-1, c, pixels}, NULL);
    ki_onnx_value rows = transpose(graph, flat.s, 3, (int64_t[]){0, 2, 1});
    if (positions) {
        const int64_t own = a->has_class_position;
        const ki_onnx_value grid = slice(graph, positions, own, own + pixels, 0);
        rows = ki_onnx_simple(graph, "Add", rows.s, grid.s);
    }
    ki_onnx_value first = {{0}}, registers = {{0}};
    if (a->has_class) first = class_token(graph, node, src);
    if (a->registers)
        registers = for_each_image(graph, param_name(node, KI_REGISTERS), a->registers, c, src, NULL);
    ki_onnx_node all = ki_onnx_begin(graph, "Concat", node->name);
    if (a->has_class) ki_onnx_source(&all, first.s);
    if (a->registers) ki_onnx_source(&all, registers.s);
    ki_onnx_source(&all, rows.s);
    ki_onnx_int(&all, "axis", 1);
    return ki_onnx_end(&all);
}

ki_onnx_value ki_onnx_grid(ki_onnx_graph *graph, const ki_node *node, const char *src) {
    const ki_grid_attr *a = &node->attr.grid;
    const ki_onnx_value pixels = slice(graph, src, a->skip, a->skip + a->h * a->w, 1);
    const ki_onnx_value map = transpose(graph, pixels.s, 3, (int64_t[]){0, 2, 1});
    return reshape(graph, map.s, 4, (int64_t[]){-1, node->shape.dim[1], a->h, a->w}, node->name);
}

ki_onnx_value ki_onnx_token(ki_onnx_graph *graph, const ki_node *node, const char *src) {
    const int64_t at = node->attr.token.at;
    const ki_onnx_value one = slice(graph, src, at, at + 1, 1);
    return reshape(graph, one.s, 2, (int64_t[]){-1, node->shape.dim[1]}, node->name);
}

ki_onnx_value ki_onnx_probe(ki_onnx_graph *graph, const ki_node *node, const char *src) {
    return for_each_image(graph, param_name(node, KI_W), node->shape.dim[1], node->shape.dim[2], src,
                          node->name);
}

ki_onnx_value ki_onnx_linear_rows(ki_onnx_graph *graph, const ki_node *node, const char *src) {
    const char *bias = param_name(node, KI_B);
    const ki_onnx_value weights = transpose(graph, param_name(node, KI_W), 2, (int64_t[]){1, 0});
    ki_onnx_node product = ki_onnx_begin(graph, "MatMul", bias ? NULL : node->name);
    ki_onnx_source(&product, src);
    ki_onnx_source(&product, weights.s);
    const ki_onnx_value rows = ki_onnx_end(&product);
    if (!bias) return rows;
    ki_onnx_node sum = ki_onnx_begin(graph, "Add", node->name);
    ki_onnx_source(&sum, rows.s);
    ki_onnx_source(&sum, bias);
    return ki_onnx_end(&sum);
}
