/* mlp: a few fully connected layers on features made elsewhere. A block is
 *
 *     y = dropout(relu(norm(linear(x)))),  with `residual` y = x + … where x and y have the same size
 *
 * and its layers are named block1.linear, block1.norm … Residual blocks: He, Zhang, Ren and Sun, CVPR 2016. */
#include "base/text.h"
#include "net/backbone.h"

enum { NORM_BATCH, NORM_LAYER, NORM_NONE };

typedef struct settings {
    int64_t width, depth;
    int norm;
    double dropout;
    bool residual;
} settings;

static const char *const norms[] = {"batch", "layer", "none", NULL};

static const ki_option options[] = {
    KI_OPTION_INT(settings, width, 512, 1, 65536, "numbers in every layer", "ours"),
    KI_OPTION_INT(settings, depth, 2, 1, 64, "blocks of a layer, a norm and a ReLU", "ours"),
    KI_OPTION_CHOICE(settings, norm, NORM_BATCH, norms,
                     "after every layer: over the batch, over the numbers of a row, or none",
                     "Ioffe and Szegedy 2015; Ba et al. 2016"),
    KI_OPTION_REAL(settings, dropout, 0, 0, 0.95, "part of the numbers that a block drops in training",
                   "Srivastava et al. 2014"),
    KI_OPTION_BOOL(settings, residual, 0, "a block adds to what it reads, where the sizes are the same",
                   "He et al. 2016"),
    KI_OPTION_END};

typedef struct block_name {
    char s[32];
} block_name;

static block_name name_of(int64_t block, const char *layer) {
    block_name name;
    ki_snprintf(name.s, sizeof name.s, "block%d.%s", (int)block, layer);
    return name;
}

static int add_norm(ki_graph *graph, int64_t block, int x, int norm) {
    const block_name name = name_of(block, "norm");
    switch (norm) {
    case NORM_BATCH: return ki_graph_batch_norm(graph, name.s, x, (ki_bn_attr){.eps = 1e-5, .momentum = 0.1});
    case NORM_LAYER: return ki_graph_layer_norm(graph, name.s, x, (ki_layer_norm_attr){.eps = 1e-5});
    default: return x;
    }
}

static int add_block(ki_graph *graph, int64_t block, int src, const settings *set) {
    if (src < 0) return src; /* the graph keeps the error */
    const bool adds = set->residual && ki_graph_node(graph, src)->shape.dim[1] == set->width;
    /* A batch norm subtracts the mean, and a bias with it. */
    const ki_linear_attr linear = {.oc = set->width, .bias = set->norm != NORM_BATCH};
    int x = ki_graph_linear(graph, name_of(block, "linear").s, src, linear);
    x = ki_graph_relu(graph, add_norm(graph, block, x, set->norm));
    if (set->dropout > 0)
        x = ki_graph_dropout(graph, name_of(block, "dropout").s, x, (ki_dropout_attr){set->dropout});
    return adds ? ki_graph_add(graph, name_of(block, "add").s, x, src) : x;
}

static void build(ki_graph *graph, int input, const void *settings_, ki_body *ret_body) {
    const settings *set = settings_;
    int x = input;
    for (int64_t i = 1; i <= set->depth; i++) x = add_block(graph, i, x, set);
    ret_body->map = x;
}

const ki_backbone ki_backbone_mlp = {
    .name = "mlp",
    .summary = "fully connected layers on features made elsewhere, with norms, dropout and shortcuts",
    .source = "ours; the parts as their papers have them",
    .classifier = "fc",
    .vector = 512,
    .options = options,
    .build = build,
};
