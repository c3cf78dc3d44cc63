/* The ops between maps and tokens as nodes of ONNX: onnx_ops.c has the others. */
#ifndef KI_ONNX_TOKENS_H
#define KI_ONNX_TOKENS_H

#include "net/onnx_parts.h"

/* The positions of a node `tokens` for a source `map` [1, c, h, w], resampled from the stored ones: the row of the class token, if
 * it has one, then one for each pixel. ret_values is allocated. */
kith_status ki_onnx_positions(const ki_node *node, const ki_shape *map, const ki_real *stored,
                              ki_real **ret_values, ki_shape *ret_shape, kith_error *err);

ki_onnx_value ki_onnx_tokens(ki_onnx_graph *graph, const ki_node *node, const char *src);
ki_onnx_value ki_onnx_grid(ki_onnx_graph *graph, const ki_node *node, const char *src);
ki_onnx_value ki_onnx_token(ki_onnx_graph *graph, const ki_node *node, const char *src);
ki_onnx_value ki_onnx_probe(ki_onnx_graph *graph, const ki_node *node, const char *src);
/* A linear layer of tokens. */
ki_onnx_value ki_onnx_linear_rows(ki_onnx_graph *graph, const ki_node *node, const char *src);

#endif
