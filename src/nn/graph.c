/* Building a graph: one function per op, names, taps. */
#include "nn/graph.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/option.h"

struct ki_graph {
    ki_arena arena;
    ki_node *node;
    size_t n, capacity;
    kith_error error; /* of the first builder that failed; status KITH_OK until then */
};

kith_status ki_graph_new(ki_graph **ret_graph, kith_error *err) {
    return ki_zalloc_or(ret_graph, 1, sizeof **ret_graph, "a graph", err);
}

void ki_graph_free(ki_graph *graph) {
    if (!graph) return;
    ki_arena_release(&graph->arena);
    ki_free(graph->node);
    ki_free(graph);
}

int ki_graph_count(const ki_graph *graph) { return (int)graph->n; }
const ki_node *ki_graph_node(const ki_graph *graph, int i) { return &graph->node[i]; }

kith_status ki_graph_check(const ki_graph *graph, kith_error *err) {
    if (graph->error.status != KITH_OK && err) *err = graph->error;
    return graph->error.status;
}

static int keep_error(ki_graph *graph, kith_status status) {
    graph->error.status = status;
    return -1;
}

static int append(ki_graph *graph, ki_op_kind kind, const char *name, int n_src, const int *src, ki_attr attr,
                  const ki_shape *input_shape) {
    kith_error *err = &graph->error;
    if (err->status != KITH_OK) return -1;
    kith_status status =
        ki_grow(&graph->node, &graph->capacity, graph->n + 1, sizeof *graph->node, "a graph's nodes", err);
    if (status != KITH_OK) return keep_error(graph, status);
    ki_node node = {.kind = kind, .attr = attr, .n_src = n_src, .is_numbered = !name};
    node.name = name ? ki_arena_strdup(&graph->arena, name)
                     : ki_arena_printf(&graph->arena, "%s#%zu", ki_op_name(kind), graph->n);
    if (!node.name) return keep_error(graph, ki_fail_memory(err, 64, "a node's name"));
    for (size_t i = 0; i < graph->n; i++) {
        if (strcmp(graph->node[i].name, node.name) == 0)
            return keep_error(graph, ki_fail(err, KITH_EINVAL, "node %s: the name is taken", node.name));
    }
    const ki_op *op = ki_op_at(kind);
    ki_shape src_shape[KI_MAX_SRC];
    if (n_src < op->least_src || n_src > op->most_src)
        return keep_error(graph, ki_fail(err, KITH_EINVAL, "node %s (%s): %d sources; wanted %d to %d",
                                         node.name, ki_op_name(kind), n_src, op->least_src, op->most_src));
    for (int k = 0; k < n_src; k++) {
        if (src[k] < 0 || (size_t)src[k] >= graph->n)
            return keep_error(
                graph, ki_fail(err, KITH_EINVAL, "node %s (%s): source %d is not a node before it", node.name,
                               ki_op_name(kind), src[k]));
        node.src[k] = src[k];
        src_shape[k] = graph->node[src[k]].shape;
    }
    if (input_shape) node.shape = *input_shape;
    status = op->infer(&graph->arena, &node, src_shape, err);
    if (status == KITH_OK && ki_shape_count(&node.shape) <= 0) {
        char text[96];
        status = ki_fail(err, KITH_ESHAPE, "output %s is empty or too large",
                         ki_shape_text(&node.shape, text, sizeof text));
    }
    if (status != KITH_OK) {
        ki_prefix(err, status, "node %s (%s)", node.name, ki_op_name(kind));
        return keep_error(graph, status);
    }
    graph->node[graph->n] = node;
    return (int)graph->n++;
}

int ki_graph_input(ki_graph *graph, int64_t c, int64_t h, int64_t w) {
    const ki_shape shape = KI_SHAPE4(1, c, h, w);
    return append(graph, KI_OP_INPUT, "input", 0, NULL, (ki_attr){0}, &shape);
}

int ki_graph_input_vectors(ki_graph *graph, int64_t c) {
    const ki_shape shape = KI_SHAPE2(1, c);
    return append(graph, KI_OP_INPUT, "input", 0, NULL, (ki_attr){0}, &shape);
}

int ki_graph_op(ki_graph *graph, ki_op_kind kind, const char *name, int n_src, const int *src, ki_attr attr) {
    return append(graph, kind, name, n_src, src, attr, NULL);
}

static int append1(ki_graph *graph, ki_op_kind kind, const char *name, int src, ki_attr attr) {
    return append(graph, kind, name, 1, &src, attr, NULL);
}

int ki_graph_conv(ki_graph *graph, const char *name, int src, ki_conv_attr attr) {
    return append1(graph, KI_OP_CONV2D, name, src, (ki_attr){.conv = attr});
}
int ki_graph_batch_norm(ki_graph *graph, const char *name, int src, ki_bn_attr attr) {
    return append1(graph, KI_OP_BATCH_NORM, name, src, (ki_attr){.bn = attr});
}
int ki_graph_relu(ki_graph *graph, int src) { return append1(graph, KI_OP_RELU, NULL, src, (ki_attr){0}); }
int ki_graph_pool(ki_graph *graph, const char *name, int src, ki_pool_attr attr) {
    return append1(graph, KI_OP_POOL, name, src, (ki_attr){.pool = attr});
}
int ki_graph_lrn(ki_graph *graph, const char *name, int src, ki_lrn_attr attr) {
    return append1(graph, KI_OP_LRN, name, src, (ki_attr){.lrn = attr});
}
int ki_graph_concat(ki_graph *graph, const char *name, int n_src, const int *src) {
    return append(graph, KI_OP_CONCAT, name, n_src, src, (ki_attr){0}, NULL);
}
int ki_graph_add(ki_graph *graph, const char *name, int a, int b) {
    return append(graph, KI_OP_ADD, name, 2, (int[]){a, b}, (ki_attr){0}, NULL);
}
int ki_graph_linear(ki_graph *graph, const char *name, int src, ki_linear_attr attr) {
    return append1(graph, KI_OP_LINEAR, name, src, (ki_attr){.linear = attr});
}
int ki_graph_dropout(ki_graph *graph, const char *name, int src, ki_dropout_attr attr) {
    return append1(graph, KI_OP_DROPOUT, name, src, (ki_attr){.dropout = attr});
}
int ki_graph_global_pool(ki_graph *graph, const char *name, int src, ki_global_pool_attr attr) {
    return append1(graph, KI_OP_GLOBAL_POOL, name, src, (ki_attr){.global_pool = attr});
}
int ki_graph_l2_norm(ki_graph *graph, const char *name, int src, ki_l2_norm_attr attr) {
    return append1(graph, KI_OP_L2_NORM, name, src, (ki_attr){.l2_norm = attr});
}
int ki_graph_attend(ki_graph *graph, const char *name, int src, int logits) {
    return append(graph, KI_OP_ATTEND, name, 2, (int[]){src, logits}, (ki_attr){0}, NULL);
}
int ki_graph_unfold(ki_graph *graph, const char *name, int src) {
    return append1(graph, KI_OP_UNFOLD, name, src, (ki_attr){0});
}

int ki_graph_layer_norm(ki_graph *graph, const char *name, int src, ki_layer_norm_attr attr) {
    return append1(graph, KI_OP_LAYER_NORM, name, src, (ki_attr){.layer_norm = attr});
}

/* The copies of a span lie one behind the other, as the originals do: that of node i has the number `begin` + i - first. */
static int copy_node(ki_graph *graph, int src, const ki_graph_span *span, int i, int begin, int *outer) {
    kith_error *err = &graph->error;
    const ki_node node = span->from->node[i]; /* not a pointer: the graph may be the same and grow */
    int of_copy[KI_MAX_SRC];
    for (int k = 0; k < node.n_src; k++) {
        const bool is_inner = node.src[k] >= span->first;
        of_copy[k] = is_inner ? begin + node.src[k] - span->first : src;
        if (is_inner) continue;
        if (*outer >= 0 && node.src[k] != *outer)
            return keep_error(
                graph, ki_fail(err, KITH_EINVAL, "copy of node %s: it reads %s; wanted %s alone", node.name,
                               span->from->node[node.src[k]].name, span->from->node[*outer].name));
        *outer = node.src[k];
    }
    ki_attr attr = node.attr;
    if (span->no_strides && node.kind == KI_OP_CONV2D) attr.conv.sh = attr.conv.sw = 1;
    if (span->no_strides && node.kind == KI_OP_POOL) attr.pool.s = 1;
    const char *name = NULL;
    if (!node.is_numbered) {
        name = ki_arena_printf(&graph->arena, "%s%s", span->prefix ? span->prefix : "", node.name);
        if (!name) return keep_error(graph, ki_fail_memory(err, 64, "a node's name"));
    }
    return append(graph, node.kind, name, node.n_src, of_copy, attr,
                  node.kind == KI_OP_INPUT ? &node.shape : NULL);
}

int ki_graph_copy(ki_graph *graph, int src, ki_graph_span span) {
    kith_error *err = &graph->error;
    if (err->status != KITH_OK) return -1;
    if (span.from->error.status != KITH_OK) {
        *err = span.from->error;
        return -1;
    }
    if (span.first < 0 || span.last < span.first || (size_t)span.last >= span.from->n)
        return keep_error(graph, ki_fail(err, KITH_EINVAL, "copy of nodes %d to %d; the graph has %zu",
                                         span.first, span.last, span.from->n));
    const int begin = (int)graph->n;
    int copy = -1, outer = -1;
    for (int i = span.first; i <= span.last; i++) {
        copy = copy_node(graph, src, &span, i, begin, &outer);
        if (copy < 0) return -1;
    }
    return copy;
}

void ki_graph_freeze(ki_graph *graph, int node) {
    if (graph->error.status != KITH_OK) return;
    if (node < 0 || (size_t)node >= graph->n) {
        keep_error(graph, ki_fail(&graph->error, KITH_EINVAL, "freeze: %d is not a node", node));
        return;
    }
    ki_node *frozen = &graph->node[node];
    frozen->is_frozen = true;
    for (int p = 0; p < frozen->n_params; p++) {
        frozen->param[p].trained = false;
        frozen->param[p].frozen = true;
    }
}

void ki_graph_tap(ki_graph *graph, int node, const char *tap) {
    kith_error *err = &graph->error;
    if (err->status != KITH_OK) return;
    if (node < 0 || (size_t)node >= graph->n) {
        keep_error(graph, ki_fail(err, KITH_EINVAL, "tap %s: %d is not a node", tap, node));
        return;
    }
    for (size_t i = 0; i < graph->n; i++) {
        if (graph->node[i].tap && strcmp(graph->node[i].tap, tap) == 0) {
            keep_error(graph,
                       ki_fail(err, KITH_EINVAL, "tap %s: node %s has that name", tap, graph->node[i].name));
            return;
        }
    }
    char *copy = ki_arena_strdup(&graph->arena, tap);
    if (copy)
        graph->node[node].tap = copy;
    else
        keep_error(graph, ki_fail_memory(err, strlen(tap), "a tap's name"));
}

int ki_graph_find(const ki_graph *graph, const char *name) {
    for (size_t i = 0; i < graph->n; i++) {
        if (strcmp(graph->node[i].name, name) == 0) return (int)i;
    }
    return -1;
}

bool ki_graph_reads_batch(const ki_graph *graph) {
    for (size_t i = 0; i < graph->n; i++) {
        if (graph->node[i].kind == KI_OP_BATCH_NORM && !graph->node[i].is_frozen) return true;
    }
    return false;
}

kith_status ki_graph_find_tap(const ki_graph *graph, const char *tap, int *ret_node, kith_error *err) {
    const char *names[64];
    size_t n_names = 0;
    for (size_t i = 0; i < graph->n; i++) {
        if (!graph->node[i].tap) continue;
        if (strcmp(graph->node[i].tap, tap) == 0) {
            *ret_node = (int)i;
            return KITH_OK;
        }
        if (n_names < 64) names[n_names++] = graph->node[i].tap;
    }
    return ki_fail_unknown(err, "tap", tap, names, n_names);
}

double ki_graph_flops(const ki_graph *graph, const char *tap) {
    int last = (int)graph->n - 1;
    if (tap && ki_graph_find_tap(graph, tap, &last, NULL) != KITH_OK) return 0;
    bool *needed = ki_zalloc(graph->n, sizeof *needed);
    if (!needed) return 0;
    double flops = 0;
    for (int i = last; i >= 0; i--) {
        const ki_node *node = &graph->node[i];
        if (tap && i != last && !needed[i]) continue;
        ki_shape src_shape[KI_MAX_SRC];
        for (int k = 0; k < node->n_src; k++) {
            needed[node->src[k]] = true;
            src_shape[k] = graph->node[node->src[k]].shape;
        }
        if (ki_op_at(node->kind)->flops) flops += ki_op_at(node->kind)->flops(node, src_shape);
    }
    ki_free(needed);
    return flops;
}
