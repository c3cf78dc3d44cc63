/* What of a network can be trained alone: its second half, and what LoRA adds to linear layers. */
#include <stdlib.h>
#include <string.h>

#include "net/depth.h"
#include "tune/tune.h"

enum { MOST_NAME = 80 };

/* How many of the name's parts: "layer2", "layer2.3", "encoder.layers.5". */
static size_t length_of(const char *name, int parts) {
    size_t n = strcspn(name, ".");
    for (; parts > 1 && name[n]; parts--) n += 1 + strcspn(name + n + 1, ".");
    return n;
}

/* Behind the last node of the layer, among the first n. */
static int end_of(const ki_graph *graph, int n, const char *layer) {
    int end = 0;
    for (int i = 0; i < n; i++) {
        if (ki_layer_has(layer, ki_graph_node(graph, i)->name)) end = i + 1;
    }
    return end;
}

/* The layer of so many parts that ends nearest to the middle of the first n nodes; one that ends in the first or last third does not
 * count. */
static bool find_half(const ki_graph *graph, int n, int parts, char *ret, size_t bytes) {
    int nearest = n / 6;
    for (int i = 0; i < n; i++) {
        const ki_node *node = ki_graph_node(graph, i);
        const size_t length = length_of(node->name, parts);
        char layer[MOST_NAME];
        if (node->is_numbered || node->n_params == 0 || length >= bytes || length >= sizeof layer) continue;
        memcpy(layer, node->name, length);
        layer[length] = '\0';
        const int off = abs(end_of(graph, n, layer) - n / 2);
        if (off >= nearest) continue;
        nearest = off;
        memcpy(ret, layer, length + 1);
    }
    return nearest < n / 6;
}

static int64_t n_values(const ki_node *node) {
    int64_t n = 0;
    for (int i = 0; i < node->n_params; i++) n += ki_shape_count(&node->param[i].shape);
    return n;
}

/* Do the first n nodes learn mostly in linear layers of tokens? Those of squeeze and excitation, which see one vector of an image, are
 * not worth it. */
static bool is_mostly_linear(const ki_graph *graph, int n) {
    int64_t all = 0, linear = 0;
    for (int i = 0; i < n; i++) {
        const ki_node *node = ki_graph_node(graph, i);
        all += n_values(node);
        if (node->kind == KI_OP_LINEAR && ki_shape_count(&node->shape) > node->attr.linear.oc)
            linear += n_values(node);
    }
    return 2 * linear > all;
}

/* A stage where one ends there, else a block. */
void ki_tune_find_parts(ki_tune *t) {
    const ki_graph *graph = t->net.graph;
    kith_error ignored;
    int pooled = 0;
    t->half[0] = '\0';
    t->takes_lora = false;
    if (ki_graph_find_tap(graph, "pooled", &pooled, &ignored) != KITH_OK) return;
    t->takes_lora = is_mostly_linear(graph, pooled);
    for (int parts = 1; parts <= 3; parts++) {
        if (find_half(graph, pooled, parts, t->half, sizeof t->half)) return;
    }
}
