/* Messages of onnx.proto: NodeProto, AttributeProto, TensorProto. */
#include "net/onnx_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "io/protobuf.h"

/* GraphProto, NodeProto, AttributeProto and TensorProto, as onnx.proto numbers them. */
enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP_TYPE = 4, NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_F = 2, ATTRIBUTE_I = 3, ATTRIBUTE_INTS = 8, ATTRIBUTE_TYPE = 20 };
enum { TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_INTS = 7 };
enum { TENSOR_DIMS = 1, TENSOR_DATA_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW_DATA = 9 };
enum { DATA_FLOAT = 1, DATA_INT64 = 7 };

ki_onnx_value ki_onnx_named(const char *name) {
    ki_onnx_value value;
    ki_snprintf(value.s, sizeof value.s, "%s", name);
    return value;
}

static ki_onnx_value new_value(ki_onnx_graph *graph, const char *type) {
    ki_onnx_value value;
    ki_snprintf(value.s, sizeof value.s, "%s/%d", type, graph->n_made++);
    return value;
}

static ki_onnx_node begin(ki_onnx_graph *graph, const char *type, ki_onnx_value output) {
    ki_onnx_node node = {.graph = graph, .fields = {.err = graph->nodes.err}, .output = output};
    ki_proto_text(&node.fields, NODE_OUTPUT, output.s);
    ki_proto_text(&node.fields, NODE_NAME, output.s);
    ki_proto_text(&node.fields, NODE_OP_TYPE, type);
    return node;
}

void ki_onnx_output(ki_onnx_graph *graph, const char *value, const char *name) {
    ki_onnx_node node = begin(graph, "Identity", ki_onnx_named(name));
    ki_onnx_source(&node, value);
    ki_onnx_end(&node);
}

ki_onnx_node ki_onnx_begin(ki_onnx_graph *graph, const char *type, const char *name) {
    ki_onnx_value output;
    if (!name) return begin(graph, type, new_value(graph, type));
    ki_snprintf(output.s, sizeof output.s, "%s/out", name);
    return begin(graph, type, output);
}

void ki_onnx_source(ki_onnx_node *node, const char *value) {
    ki_proto_text(&node->fields, NODE_INPUT, value);
}

static ki_buffer attribute_begin(const ki_onnx_node *node, const char *name, int type) {
    ki_buffer a = {.err = node->fields.err};
    ki_proto_text(&a, ATTRIBUTE_NAME, name);
    ki_proto_int(&a, ATTRIBUTE_TYPE, type);
    return a;
}

static void attribute_end(ki_onnx_node *node, ki_buffer *a) {
    ki_proto_message(&node->fields, NODE_ATTRIBUTE, a);
    ki_buffer_release(a);
}

void ki_onnx_int(ki_onnx_node *node, const char *attribute, int64_t value) {
    ki_buffer a = attribute_begin(node, attribute, TYPE_INT);
    ki_proto_int(&a, ATTRIBUTE_I, value);
    attribute_end(node, &a);
}

void ki_onnx_real(ki_onnx_node *node, const char *attribute, double value) {
    ki_buffer a = attribute_begin(node, attribute, TYPE_FLOAT);
    ki_proto_float(&a, ATTRIBUTE_F, (float)value);
    attribute_end(node, &a);
}

void ki_onnx_ints(ki_onnx_node *node, const char *attribute, size_t n, const int64_t *values) {
    ki_buffer a = attribute_begin(node, attribute, TYPE_INTS);
    for (size_t i = 0; i < n; i++) ki_proto_int(&a, ATTRIBUTE_INTS, values[i]);
    attribute_end(node, &a);
}

ki_onnx_value ki_onnx_end(ki_onnx_node *node) {
    ki_proto_message(&node->graph->nodes, GRAPH_NODE, &node->fields);
    ki_buffer_release(&node->fields);
    return node->output;
}

ki_onnx_value ki_onnx_simple(ki_onnx_graph *graph, const char *type, const char *a, const char *b) {
    ki_onnx_node node = ki_onnx_begin(graph, type, NULL);
    ki_onnx_source(&node, a);
    if (b) ki_onnx_source(&node, b);
    return ki_onnx_end(&node);
}

/* raw_data is little-endian, as the machines are that kith is built for (io/npy.c swaps where they are not). */
static void put_tensor(ki_onnx_graph *graph, const char *name, int data_type, int n_dims, const int64_t *dim,
                       const void *data, size_t bytes) {
    ki_buffer head = {.err = graph->tensors.err};
    for (int i = 0; i < n_dims; i++) ki_proto_int(&head, TENSOR_DIMS, dim[i]);
    ki_proto_int(&head, TENSOR_DATA_TYPE, data_type);
    ki_proto_text(&head, TENSOR_NAME, name);
    ki_proto_head(&head, TENSOR_RAW_DATA, bytes);
    /* The data is copied once, behind its head. */
    ki_proto_head(&graph->tensors, GRAPH_INITIALIZER, head.n + bytes);
    if (graph->tensors.status == KITH_OK) graph->tensors.status = head.status;
    ki_buffer_add(&graph->tensors, head.data, head.n);
    ki_buffer_add(&graph->tensors, data, bytes);
    ki_buffer_release(&head);
}

ki_onnx_value ki_onnx_floats(ki_onnx_graph *graph, const char *name, int n_dims, const int64_t *dim,
                             const float *values) {
    size_t n = 1;
    for (int i = 0; i < n_dims; i++) n *= (size_t)dim[i];
    const ki_onnx_value value = name ? ki_onnx_named(name) : new_value(graph, "constant");
    put_tensor(graph, value.s, DATA_FLOAT, n_dims, dim, values, n * sizeof *values);
    return value;
}

ki_onnx_value ki_onnx_int64s(ki_onnx_graph *graph, int64_t n, const int64_t *values) {
    const ki_onnx_value value = new_value(graph, "constant");
    put_tensor(graph, value.s, DATA_INT64, 1, &n, values, (size_t)n * sizeof *values);
    return value;
}
