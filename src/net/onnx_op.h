/* What the files share that write ops as nodes of ONNX: onnx_ops.c, which has the table, and the other
 * onnx_*.c of ops. */
#ifndef KI_ONNX_OP_H
#define KI_ONNX_OP_H

#include "net/onnx_parts.h"

/* A node of a net, the shapes of its sources for one image, and their values. */
typedef struct ki_onnx_at {
    ki_onnx_graph *graph;
    const ki_node *node;
    const ki_shape *src_shape;
    const ki_onnx_value *src;
} ki_onnx_at;

/* name: of a layer; NULL: a new one is made up. */
ki_onnx_value ki_onnx_reshape(ki_onnx_graph *graph, const char *src, int64_t n, const int64_t *shape,
                              const char *name);

/* onnx_scales.c */
ki_onnx_value ki_onnx_layer_norm(const ki_onnx_at *o);
ki_onnx_value ki_onnx_act(const ki_onnx_at *o);
ki_onnx_value ki_onnx_glu(const ki_onnx_at *o);
ki_onnx_value ki_onnx_layer_scale(const ki_onnx_at *o);
ki_onnx_value ki_onnx_gate(const ki_onnx_at *o);
ki_onnx_value ki_onnx_grn(const ki_onnx_at *o);
/* onnx_attention.c */
ki_onnx_value ki_onnx_attention(const ki_onnx_at *o);
ki_onnx_value ki_onnx_windows(const ki_onnx_at *o);
ki_onnx_value ki_onnx_merge(const ki_onnx_at *o);

#endif
