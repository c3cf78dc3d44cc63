/* Depths of nodes, from their names and their order. */
#include "net/depth.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

bool ki_layer_has(const char *layer, const char *name) {
    const size_t n = strlen(layer);
    return n > 0 && strncmp(name, layer, n) == 0 && (name[n] == '.' || name[n] == '_' || name[n] == '\0');
}

/* The tower of an ensemble is a copy, as deep as its original. */
static const char *name_at(const ki_graph *graph, int i) {
    const char *name = ki_graph_node(graph, i)->name;
    return strncmp(name, KI_TOWER ".", strlen(KI_TOWER ".")) == 0 ? name + strlen(KI_TOWER ".") : name;
}

/* The length of `WORD.K` where more of the name follows; 0: it begins otherwise. */
static size_t pair_length(const char *name) {
    const size_t word = strcspn(name, ".");
    if (word == 0 || name[word] != '.') return 0;
    const size_t digits = strspn(name + word + 1, "0123456789");
    return digits > 0 && name[word + 1 + digits] == '.' ? word + 1 + digits : 0;
}

static bool begins_blocks(const char *rest) { return strncmp(rest, ".blocks.", strlen(".blocks.")) == 0; }

/* Does what `name` begins with hold blocks of its own? */
static bool is_stage(const ki_graph *graph, const char *name, size_t n) {
    for (int i = 0; i < ki_graph_count(graph); i++) {
        const char *other = name_at(graph, i);
        if (strncmp(other, name, n) == 0 && begins_blocks(other + n) && pair_length(other + n + 1) > 0)
            return true;
    }
    return false;
}

/* The length of the name of the block that node i is in; 0: it is in none. */
static size_t block_length(const ki_graph *graph, int i) {
    const char *name = name_at(graph, i);
    const size_t first = pair_length(name);
    if (first == 0) return 0;
    const size_t second = begins_blocks(name + first) ? pair_length(name + first + 1) : 0;
    if (second > 0) return first + 1 + second;
    return is_stage(graph, name, first) ? 0 : first;
}

/* The same where no name has a number: the first part of it. */
static size_t word_length(const ki_graph *graph, int i) {
    const ki_node *node = ki_graph_node(graph, i);
    return node->is_numbered || node->kind == KI_OP_INPUT ? 0 : strcspn(name_at(graph, i), ".");
}

/* An earlier node whose name begins with the same n bytes and a dot, or is these; -1: none. */
static int same_before(const ki_graph *graph, int i, size_t n) {
    const char *name = name_at(graph, i);
    for (int j = 0; j < i; j++) {
        const char *other = name_at(graph, j);
        if (strncmp(other, name, n) == 0 && (other[n] == '.' || other[n] == '\0')) return j;
    }
    return -1;
}

/* Depths of the nodes that are in a block, from 1; 0: in none. Returns how many blocks there are. */
static int number_blocks(const ki_graph *graph, int end, int *depth) {
    int n = 0;
    for (int i = 0; i <= end; i++) {
        const size_t length = block_length(graph, i);
        const int before = length ? same_before(graph, i, length) : -1;
        if (length) depth[i] = before >= 0 && depth[before] ? depth[before] : ++n;
    }
    return n;
}

/* The same for names without numbers. Norms and the like belong to the layer before them. The first layer is the stem: 0. */
static int number_words(const ki_graph *graph, int end, int *depth) {
    int n = -1;
    for (int i = 0; i <= end; i++) {
        const ki_node *node = ki_graph_node(graph, i);
        const size_t length = word_length(graph, i);
        const int before = length ? same_before(graph, i, length) : -1;
        const bool has_weights = node->kind == KI_OP_CONV2D || node->kind == KI_OP_LINEAR;
        /* An ensemble's masks are no layer of the network. */
        if (has_weights && before < 0 && strcmp(node->name, KI_TOWER ".heads") != 0) n++;
        depth[i] = before >= 0 ? depth[before] : n > 0 ? n : 0;
    }
    return n > 0 ? n : 0;
}

static int number_listed(const ki_graph *graph, const char *const *list, int end, int *depth) {
    int n = 0;
    for (; list[n]; n++) {
    }
    for (int i = 0; i <= end; i++) {
        for (int k = 1; k < n; k++) {
            if (ki_layer_has(list[k], name_at(graph, i))) depth[i] = k;
        }
    }
    return n - 1;
}

/* The last node of the backbone. */
static int end_of_backbone(const ki_net *net) {
    int end = 0;
    kith_error ignored;
    const char *tap = ki_net_takes_vectors(net) ? "pooled" : ki_net_features_tap(net);
    return ki_graph_find_tap(net->graph, tap, &end, &ignored) == KITH_OK ? end
                                                                         : ki_graph_count(net->graph) - 1;
}

kith_status ki_depths_find(const ki_net *net, ki_depths *ret, kith_error *err) {
    const ki_graph *graph = net->graph;
    const int n_nodes = ki_graph_count(graph), end = end_of_backbone(net);
    ki_depths depths = {0};
    KI_TRY(ki_zalloc_or(&depths.depth, (size_t)n_nodes, sizeof *depths.depth, "the network's layers", err));
    int *depth = depths.depth, first = 0;
    bool has_words = false;
    if (net->backbone->layers) {
        depths.n = number_listed(graph, net->backbone->layers, end, depth);
    } else {
        depths.n = number_blocks(graph, end, depth);
        has_words = depths.n == 0;
        if (has_words) depths.n = number_words(graph, end, depth);
    }
    /* The stem ends at the first block; what is in no block belongs to the next. */
    while (first <= end && !depth[first]) first++;
    int next = depths.n + 1;
    for (int i = n_nodes - 1; i >= first && !has_words; i--) {
        if (i <= end && depth[i]) next = depth[i];
        depth[i] = next;
    }
    for (int i = end + 1; i < n_nodes; i++) depth[i] = depths.n + 1;
    *ret = depths;
    return KITH_OK;
}

void ki_depths_release(ki_depths *depths) {
    ki_free(depths->depth);
    *depths = (ki_depths){0};
}

double ki_depths_rate(const ki_depths *depths, int node, double decay) {
    return pow(decay, depths->n + 1 - depths->depth[node]);
}
