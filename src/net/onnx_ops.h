/* What the files that export ops share. */
#ifndef KI_ONNX_OPS_H
#define KI_ONNX_OPS_H

#include "net/onnx_parts.h"

/* A node of a net while it is exported. */
typedef struct ki_onnx_work {
    ki_onnx_graph *graph;
    const ki_node *node;
    const ki_shape *src_shape; /* of the sources, for one image */
    const ki_onnx_value *src;
} ki_onnx_work;

/* onnx_attention.c */
ki_onnx_value ki_onnx_attention(const ki_onnx_work *work);
ki_onnx_value ki_onnx_windows(const ki_onnx_work *work);
ki_onnx_value ki_onnx_merge(const ki_onnx_work *work);

#endif
