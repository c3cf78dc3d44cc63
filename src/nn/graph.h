/* Graph: a network as a list of nodes, each after its sources, built by one call per op.
 *
 * Nodes are numbered in the order they are added. A builder returns the node's number, or -1 after an error.
 * The first error is kept and every later call is harmless, so the code of a backbone checks nothing until it
 * calls ki_graph_check at the end. Shapes are inferred as nodes are added, for one image; the batch size
 * comes with the plan.
 *
 * A node's parameters are named NODE.weight, NODE.bias, NODE.running_mean, NODE.running_var. */
#ifndef KI_GRAPH_H
#define KI_GRAPH_H

#include "base/arena.h"
#include "base/start.h"
#include "device/backend.h"

enum { KI_N_ROLES = 4 };

typedef struct ki_param_decl {
    const char *name; /* "conv1.conv.weight" */
    ki_shape shape;
    int slot;                /* KI_W … */
    bool trained;            /* running statistics are not, nor is anything of a frozen node */
    bool frozen;             /* of a frozen node */
    double fill;             /* initial value; weights (fan_in > 0) are drawn instead … */
    int64_t fan_in, fan_out; /* … uniformly, within the bound that follows from these by `start` */
    ki_start start;
    double gain; /* of the bound; 0: 1 */
} ki_param_decl;

typedef struct ki_node {
    ki_op_kind kind;
    const char *name;
    ki_attr attr;
    int n_src, src[KI_MAX_SRC];
    ki_shape shape; /* of the output for one image: dim[0] is its rows, 1 outside of heads (device/op.h) */
    int n_params;
    ki_param_decl param[KI_N_ROLES];
    const char *tap;  /* NULL: not a tap */
    bool is_numbered; /* the builder got no name: it is the op's and the node's number */
    bool is_frozen;   /* its parameters do not learn, and a batch norm uses its running statistics */
} ki_node;

/* A convolution of one pixel at a time, of all its channels. */
static inline bool ki_node_is_1x1(const ki_node *node) {
    const ki_conv_attr *a = &node->attr.conv;
    return node->kind == KI_OP_CONV2D && a->kh == 1 && a->kw == 1 && a->sh == 1 && a->sw == 1 && a->ph == 0 &&
           a->pw == 0 && a->groups <= 1;
}

typedef struct ki_graph ki_graph;

/* One op's rules: the shape of its output and which parameters it has. */
typedef struct ki_op {
    int least_src, most_src;
    /* Fill node->shape and node->param from the sources' shapes; an error line without the node's
     * name (the graph adds it). */
    kith_status (*infer)(ki_arena *arena, ki_node *node, const ki_shape *src, kith_error *err);
    /* Multiply-adds times two for one image, forward. NULL: not counted. */
    double (*flops)(const ki_node *node, const ki_shape *src);
} ki_op;

const ki_op *ki_op_at(ki_op_kind kind);

kith_status ki_graph_new(ki_graph **ret_graph, kith_error *err);
void ki_graph_free(ki_graph *graph); /* NULL is fine */

int ki_graph_input(ki_graph *graph, int64_t c, int64_t h, int64_t w);
int ki_graph_input_vectors(ki_graph *graph, int64_t c); /* vectors of c numbers instead of images */
int ki_graph_conv(ki_graph *graph, const char *name, int src, ki_conv_attr attr);
int ki_graph_batch_norm(ki_graph *graph, const char *name, int src, ki_bn_attr attr);
int ki_graph_relu(ki_graph *graph, int src);
int ki_graph_pool(ki_graph *graph, const char *name, int src, ki_pool_attr attr);
int ki_graph_lrn(ki_graph *graph, const char *name, int src, ki_lrn_attr attr);
int ki_graph_concat(ki_graph *graph, const char *name, int n_src, const int *src);
int ki_graph_add(ki_graph *graph, const char *name, int a, int b);
int ki_graph_linear(ki_graph *graph, const char *name, int src, ki_linear_attr attr);
int ki_graph_dropout(ki_graph *graph, const char *name, int src, ki_dropout_attr attr);
int ki_graph_global_pool(ki_graph *graph, const char *name, int src, ki_global_pool_attr attr);
int ki_graph_l2_norm(ki_graph *graph, const char *name, int src, ki_l2_norm_attr attr);
int ki_graph_attend(ki_graph *graph, const char *name, int src, int logits);
int ki_graph_unfold(ki_graph *graph, const char *name, int src);
int ki_graph_layer_norm(ki_graph *graph, const char *name, int src, ki_layer_norm_attr attr);
/* Any op but the input. name NULL: the op's and the node's number, which suits ops without parameters. */
int ki_graph_op(ki_graph *graph, ki_op_kind kind, const char *name, int n_src, const int *src, ki_attr attr);

/* Nodes first … last of `from`, once more. */
typedef struct ki_graph_span {
    const ki_graph *from; /* may be the graph that is added to */
    int first, last;
    const char *prefix; /* before their names; NULL: none */
    bool no_strides;    /* the windows of convolutions and pools move by one pixel */
} ki_graph_span;

/* Adds copies of the span's nodes and returns the number of the last. Where the originals read a node before the span, of
 * which there may be one, the copies read `src` (any value if there is none). Shapes are inferred anew from there, and so are
 * the rows of an image; parameters have the names of the copies; taps are not copied. */
int ki_graph_copy(ki_graph *graph, int src, ki_graph_span span);

/* From now on the node's parameters do not learn. A plan for training computes as for inference where a node and all that it depends on
 * are frozen: no dropout, nothing kept. */
void ki_graph_freeze(ki_graph *graph, int node);

/* Name a node's output so that it can be read and take a gradient: "map", "pooled", "embedding",
 * "logits" by convention. The name must be new. */
void ki_graph_tap(ki_graph *graph, int node, const char *tap);

/* The first error of building, if there was one. */
kith_status ki_graph_check(const ki_graph *graph, kith_error *err);

int ki_graph_count(const ki_graph *graph);
const ki_node *ki_graph_node(const ki_graph *graph, int i);
int ki_graph_find(const ki_graph *graph, const char *name); /* the node of that name; -1: none */
/* Do rows of a batch depend on each other in training: are there batch norms that learn? */
bool ki_graph_reads_batch(const ki_graph *graph);
/* The node of a tap; the error of KITH_ENOTFOUND lists the taps that exist. */
kith_status ki_graph_find_tap(const ki_graph *graph, const char *tap, int *ret_node, kith_error *err);
/* Forward flops for one image of the nodes that `tap` depends on (NULL: all nodes). */
double ki_graph_flops(const ki_graph *graph, const char *tap);

#endif
