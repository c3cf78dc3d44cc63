/* An ONNX model: the nodes that a tap needs, their parameters, what goes in and what comes out. */
#include "net/onnx.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/text.h"
#include "io/protobuf.h"
#include "kith/version.h"
#include "net/numbers.h"
#include "net/onnx_parts.h"
#include "net/onnx_tokens.h"

/* Field numbers of onnx.proto. */
enum {
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPSETS = 8
};
enum { MODEL_METADATA = 14, ENTRY_KEY = 1, ENTRY_VALUE = 2, OPSET_VERSION = 2 };
enum { GRAPH_NAME = 2, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12, VALUE_NAME = 1, VALUE_TYPE = 2 };
enum { TYPE_TENSOR = 1, TENSOR_ELEMENT = 1, TENSOR_SHAPE = 2, SHAPE_DIM = 1, DIM_VALUE = 1, DIM_PARAM = 2 };
enum { IR_VERSION = 8, ELEMENT_FLOAT = 1 };

typedef struct export {
    const ki_net *net;
    const ki_params *params;
    const ki_onnx_options *options;
    ki_onnx_graph graph;
    ki_onnx_value *value; /* of each node of the net */
    bool *is_needed;
    ki_real *room; /* one parameter */
}
export;

static const char *input_name(const ki_net *net) { return ki_net_takes_vectors(net) ? "features" : "pixels"; }

static void mark_needed(export *x, int tap) {
    x->is_needed[tap] = true;
    for (int i = tap; i >= 0; i--) {
        const ki_node *node = ki_graph_node(x->net->graph, i);
        for (int k = 0; x->is_needed[i] && k < node->n_src; k++) x->is_needed[node->src[k]] = true;
    }
}

/* From RGB pixels to what the network takes: (pixel - mean / scale) * (scale / std), as data/transform computes it. */
static ki_onnx_value add_preprocess(export *x) {
    const ki_net *net = x->net;
    const kith_preprocess *p = &net->preprocess;
    float mean[KITH_MOST_CHANNELS], factor[KITH_MOST_CHANNELS];
    const int64_t dim[4] = {1, net->c, 1, 1};
    ki_onnx_value pixels = ki_onnx_named(input_name(net));
    if (p->bgr && net->c == 3) {
        const ki_onnx_value order = ki_onnx_int64s(&x->graph, 3, (int64_t[]){2, 1, 0});
        ki_onnx_node node = ki_onnx_begin(&x->graph, "Gather", "bgr");
        ki_onnx_source(&node, pixels.s);
        ki_onnx_source(&node, order.s);
        ki_onnx_int(&node, "axis", 1);
        pixels = ki_onnx_end(&node);
    }
    for (int64_t c = 0; c < net->c; c++) {
        mean[c] = (float)(p->mean[c] / p->scale);
        factor[c] = (float)(p->scale / p->std[c]);
    }
    const ki_onnx_value minus = ki_onnx_floats(&x->graph, "preprocess.mean", 4, dim, mean);
    const ki_onnx_value times = ki_onnx_floats(&x->graph, "preprocess.factor", 4, dim, factor);
    const ki_onnx_value centred = ki_onnx_simple(&x->graph, "Sub", pixels.s, minus.s);
    return ki_onnx_simple(&x->graph, "Mul", centred.s, times.s);
}

/* Positions are written for the size of this net: in ONNX nothing resamples them. */
static kith_status add_positions(export *x, const ki_node *node, const char *name, kith_error *err) {
    ki_real *values = NULL;
    ki_shape shape;
    const ki_shape *map = &ki_graph_node(x->net->graph, node->src[0])->shape;
    KI_TRY(ki_onnx_positions(node, map, x->room, &values, &shape, err));
    ki_onnx_floats(&x->graph, name, shape.n_dims, shape.dim, values);
    ki_free(values);
    return KITH_OK;
}

static kith_status add_params(export *x, const ki_node *node, kith_error *err) {
    for (int i = 0; i < node->n_params; i++) {
        const ki_param *param = ki_params_find(x->params, node->param[i].name);
        if (!param) return ki_fail(err, KITH_EINTERNAL, "there is no parameter %s", node->param[i].name);
        ki_free(x->room);
        x->room = NULL;
        KI_TRY(ki_alloc_or(&x->room, (size_t)param->n, sizeof *x->room, param->name, err));
        KI_TRY(ki_params_get(x->params, param, x->room, err));
        if (node->kind == KI_OP_TOKENS && node->param[i].slot == KI_POSITIONS)
            KI_TRY(add_positions(x, node, param->name, err));
        else
            ki_onnx_floats(&x->graph, param->name, param->shape.n_dims, param->shape.dim, x->room);
    }
    return KITH_OK;
}

static kith_status add_node(export *x, int i, kith_error *err) {
    const ki_node *node = ki_graph_node(x->net->graph, i);
    ki_onnx_value src[KI_MAX_SRC];
    ki_shape shape[KI_MAX_SRC];
    if (node->kind == KI_OP_INPUT) {
        x->value[i] = ki_net_takes_vectors(x->net) ? ki_onnx_named(input_name(x->net)) : add_preprocess(x);
        return KITH_OK;
    }
    for (int k = 0; k < node->n_src; k++) {
        src[k] = x->value[node->src[k]];
        shape[k] = ki_graph_node(x->net->graph, node->src[k])->shape;
    }
    KI_TRY(add_params(x, node, err));
    return ki_onnx_op(&x->graph, node, shape, src, &x->value[i], err);
}

static kith_status add_output(export *x, int tap, kith_error *err) {
    const ki_node *node = ki_graph_node(x->net->graph, tap);
    ki_onnx_value last = x->value[tap];
    if (x->options->normalize && node->shape.n_dims != 2)
        return ki_fail(err, KITH_ESHAPE, "%s is a map; vectors alone can be normalised", node->tap);
    if (x->options->normalize) last = ki_onnx_unit_rows(&x->graph, last.s, 1e-12, NULL);
    ki_onnx_output(&x->graph, last.s, node->tap);
    return KITH_OK;
}

/* ValueInfoProto: a float tensor [batch, …]. */
static void put_value(ki_buffer *to, int field, const char *name, const ki_shape *shape) {
    ki_buffer value = {.err = to->err}, type = {.err = to->err}, tensor = {.err = to->err},
              dims = {.err = to->err}, dim = {.err = to->err};
    for (int i = 0; i < shape->n_dims; i++) {
        if (i == 0)
            ki_proto_text(&dim, DIM_PARAM, "batch");
        else
            ki_proto_int(&dim, DIM_VALUE, shape->dim[i]);
        ki_proto_message(&dims, SHAPE_DIM, &dim);
    }
    ki_proto_int(&tensor, TENSOR_ELEMENT, ELEMENT_FLOAT);
    ki_proto_message(&tensor, TENSOR_SHAPE, &dims);
    ki_proto_message(&type, TYPE_TENSOR, &tensor);
    ki_proto_text(&value, VALUE_NAME, name);
    ki_proto_message(&value, VALUE_TYPE, &type);
    ki_proto_message(to, field, &value);
    ki_buffer *const all[] = {&value, &type, &tensor, &dims, &dim};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) ki_buffer_release(all[i]);
}

static void put_metadata(ki_buffer *to, const char *key, const char *text) {
    ki_buffer entry = {.err = to->err};
    if (!text || !*text) return;
    ki_proto_text(&entry, ENTRY_KEY, key);
    ki_proto_text(&entry, ENTRY_VALUE, text);
    ki_proto_message(to, MODEL_METADATA, &entry);
    ki_buffer_release(&entry);
}

/* Everything around the graph. */
static void put_model(const export *x, ki_buffer *to) {
    ki_buffer opset = {.err = to->err};
    char settings[KI_SETTINGS_TEXT];
    ki_proto_int(to, MODEL_IR_VERSION, IR_VERSION);
    ki_proto_text(to, MODEL_PRODUCER, "kith");
    ki_proto_text(to, MODEL_PRODUCER_VERSION, kith_version());
    ki_proto_int(&opset, OPSET_VERSION, KI_ONNX_OPSET);
    ki_proto_message(to, MODEL_OPSETS, &opset);
    ki_buffer_release(&opset);
    put_metadata(to, "kith.backbone", x->net->backbone->name);
    put_metadata(to, "kith.settings", ki_net_settings_text(x->net, settings, sizeof settings));
    put_metadata(to, "kith.tap", x->options->tap);
    if (ki_net_takes_vectors(x->net)) return;
    put_metadata(to, "kith.pixels", x->net->c == 3 ? "RGB, 0 to 255" : "grey, 0 to 255");
    put_metadata(to, "kith.resize", x->options->resize);
    put_metadata(to, "kith.crop", "centre");
}

static kith_status write(export *x, const ki_node *tap, const char *path, kith_error *err) {
    kith_status status;
    const ki_net *net = x->net;
    ki_atomic_file file = {0};
    ki_buffer model = {.err = err}, rest = {.err = err};
    const ki_shape images = KI_SHAPE4(1, net->c, net->h, net->w), vectors = KI_SHAPE2(1, net->c);
    ki_proto_text(&rest, GRAPH_NAME, net->backbone->name);
    put_value(&rest, GRAPH_INPUT, input_name(net), ki_net_takes_vectors(net) ? &vectors : &images);
    put_value(&rest, GRAPH_OUTPUT, tap->tap, &tap->shape);
    put_model(x, &model);
    ki_proto_head(&model, MODEL_GRAPH, x->graph.nodes.n + rest.n + x->graph.tensors.n);
    const ki_buffer *const parts[] = {&model, &x->graph.nodes, &rest, &x->graph.tensors};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) KI_CHECK(parts[i]->status);
    KI_CHECK(ki_atomic_open(&file, path, err));
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        KI_CHECK(ki_atomic_write(&file, parts[i]->data, parts[i]->n, err));
    KI_CHECK(ki_atomic_commit(&file, err));
done:
    ki_atomic_discard(&file);
    ki_buffer_release(&model);
    ki_buffer_release(&rest);
    return status;
}

kith_status ki_onnx_save(const ki_net *net, const ki_params *params, const ki_onnx_options *options,
                         const char *path, kith_error *err) {
    kith_status status;
    int tap = 0;
    const size_t n = (size_t)ki_graph_count(net->graph);
    export x = {.net = net,
                .params = params,
                .options = options,
                .graph = {.nodes = {.err = err}, .tensors = {.err = err}}};
    KI_TRY(ki_graph_find_tap(net->graph, options->tap, &tap, err));
    KI_CHECK(ki_alloc_or(&x.value, n, sizeof *x.value, "an ONNX graph", err));
    KI_CHECK(ki_zalloc_or(&x.is_needed, n, sizeof *x.is_needed, "an ONNX graph", err));
    mark_needed(&x, tap);
    for (int i = 0; i <= tap; i++) {
        if (x.is_needed[i]) KI_CHECK(add_node(&x, i, err));
    }
    KI_CHECK(add_output(&x, tap, err));
    KI_CHECK(write(&x, ki_graph_node(net->graph, tap), path, err));
done:
    ki_buffer_release(&x.graph.nodes);
    ki_buffer_release(&x.graph.tensors);
    ki_free(x.value);
    ki_free(x.is_needed);
    ki_free(x.room);
    return status;
}
