/* The parts of an ONNX graph: nodes, attributes, constants, as messages of onnx.proto (field numbers behind each). Made by
 * onnx_ops.c and its neighbours op by op (onnx_op.h), put together by onnx.c. */
#ifndef KI_ONNX_PARTS_H
#define KI_ONNX_PARTS_H

#include "base/buffer.h"
#include "nn/params.h"

enum { KI_ONNX_NAME = 160 }; /* bytes of a value's name */

/* A graph while it is made. */
typedef struct ki_onnx_graph {
    ki_buffer nodes;   /* GraphProto fields: node (1) … */
    ki_buffer tensors; /* … and initializer (5) */
    int n_made;        /* values without a name of their own */
} ki_onnx_graph;

/* A value: the name of what a node makes, or of a constant. */
typedef struct ki_onnx_value {
    char s[KI_ONNX_NAME];
} ki_onnx_value;

ki_onnx_value ki_onnx_named(const char *name);

/* One node: op type, sources, attributes; then it is added and its output's name is returned. */
typedef struct ki_onnx_node {
    ki_onnx_graph *graph;
    ki_buffer fields; /* NodeProto */
    ki_onnx_value output;
} ki_onnx_node;

/* name: of a layer, whose output is then NAME/out; NULL: a new one is made up. */
ki_onnx_node ki_onnx_begin(ki_onnx_graph *graph, const char *type, const char *name);
void ki_onnx_source(ki_onnx_node *node, const char *value);
void ki_onnx_int(ki_onnx_node *node, const char *attribute, int64_t value);
void ki_onnx_real(ki_onnx_node *node, const char *attribute, double value);
void ki_onnx_ints(ki_onnx_node *node, const char *attribute, size_t n, const int64_t *values);
ki_onnx_value ki_onnx_end(ki_onnx_node *node);
/* A node with one or two sources (b may be NULL) and no attributes. */
ki_onnx_value ki_onnx_simple(ki_onnx_graph *graph, const char *type, const char *a, const char *b);

/* Give a value a name of its own: that of the graph's output. */
void ki_onnx_output(ki_onnx_graph *graph, const char *value, const char *name);

/* Constants. */
ki_onnx_value ki_onnx_floats(ki_onnx_graph *graph, const char *name, int n_dims, const int64_t *dim,
                             const float *values);
ki_onnx_value ki_onnx_int64s(ki_onnx_graph *graph, int64_t n, const int64_t *values);

/* The node of a net, from its sources' values to its output's; KITH_EUNSUPPORTED for an op that inference does not
 * have. src_shape: of the sources for one image. Its parameters are there already, under their own names. */
kith_status ki_onnx_op(ki_onnx_graph *graph, const ki_node *node, const ki_shape *src_shape,
                       const ki_onnx_value *src, ki_onnx_value *ret_value, kith_error *err);
/* Rows divided by max(length, eps). */
ki_onnx_value ki_onnx_unit_rows(ki_onnx_graph *graph, const char *src, double eps, const char *name);

#endif
