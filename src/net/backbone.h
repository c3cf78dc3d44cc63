/* Backbones: the networks under an embedding, one file and one row of table.def each (docs/adding-a-backbone.md).
 *
 * A backbone builds from an input node up to its last feature map; pooling and heads are the same
 * for all and added by net.h. One that takes vectors (features made elsewhere) instead of images builds up to its
 * last vectors, and nothing is pooled. Its node names are those of the weight files people have, so that
 * reading such a file needs no renaming. */
#ifndef KI_BACKBONE_H
#define KI_BACKBONE_H

#include "base/option.h"
#include "net/contract.h"
#include "net/names/names.h"
#include "nn/graph.h"

#include "kith/model.h"

enum { KI_MOST_VECTOR = 1 << 20 };        /* numbers of an input vector */
enum { KI_MOST_BACKBONE_SETTINGS = 256 }; /* bytes of a settings struct */
enum { KI_SETTINGS_TEXT = 1024 };         /* bytes of all settings as text (ki_net_settings_text) */

/* How a network's vector comes from its last map: the ways of op global_pool, and those for which only some networks have something. */
typedef enum ki_pooling {
    KI_POOLING_AVG,
    KI_POOLING_MAX,
    KI_POOLING_BOTH, /* average + maximum */
    KI_POOLING_GEM,
    KI_POOLING_CLASS,     /* the class token */
    KI_POOLING_CLASS_AVG, /* class token + average */
    KI_POOLING_ATTENTION, /* the network's own pooling by attention */
    KI_N_POOLINGS
} ki_pooling;

/* What a build hands on. A node that is not there is 0, which is the input. */
typedef struct ki_body {
    int map;    /* node of the last feature map, or of the last vectors */
    int tokens; /* all tokens; the first is the class token if has_class */
    bool has_class;
    int attention;              /* a vector: the network's own pooling by attention */
    double dropout;             /* before the classifier; 0: none */
    kith_preprocess preprocess; /* what published weights of this network want */
} ki_body;

/* The nodes from `first` to the one before `end`, by name: the attention of an ensemble looks with a copy of them, and its
 * heads begin behind the node that `first` reads (docs/adr/0060). */
typedef struct ki_tower {
    const char *first, *end;
} ki_tower;

/* What is known of a file of weights that says nothing itself. */
typedef struct ki_recognised {
    char settings[KI_SETTINGS_TEXT]; /* "key=value,key=value": what differs from the defaults */
    ki_pooling pool;                 /* of the record, unless the function says otherwise */
    int64_t side;                    /* of its images; 0: unknown */
    double sureness;                 /* above 0; the backbone with the most is taken */
    char fault
        [160]; /* what config.json says that is wrong or contradicts the tensors: the file is refused; empty: nothing */
} ki_recognised;

/* Before the names of a tower's copies. */
#define KI_TOWER "attention"

typedef struct ki_backbone {
    const char *name, *summary, *source;
    const char *classifier; /* name of the classifier layer in weight files */
    int64_t channels;       /* of the input; 0: any up to KITH_MOST_CHANNELS, 3 by default */
    int64_t size;           /* default height and width */
    int64_t least_size;     /* smallest height and width that work */
    int64_t (*least_size_of)(const void *settings); /* the same with these settings; NULL: least_size */
    int64_t vector; /* it takes vectors, by default of so many numbers; 0: images */
    const ki_option *options;
    ki_pooling pool; /* of published weights that were recognised, where nobody says (docs/model-files.md) */
    ki_tower tower;  /* of an ensemble; all NULL: it cannot be one */
    const char
        *small; /* settings for tests that compute, "depth=1,width=64"; NULL: the defaults are small enough */
    /* Are these the tensors of this backbone, and with which settings? Shapes and `config`, what lies beside the file (nothing: an empty one),
     * say it. NULL: they are if all names of the default network are there. The tensors' values are not read. */
    bool (*recognise)(const struct ki_backbone *self, const ki_named *tensors, const ki_contract *config,
                      ki_recognised *ret);
    /* What the names of its layers begin with, from the stem on, NULL at the end, where net/depth.h cannot tell by the names. NULL: it can. */
    const char *const *layers;
    const ki_naming *
        torch; /* the library whose models kith export --torch writes for; NULL: torchvision, with the names as they are */
    /* Errors are kept by the graph. */
    void (*build)(ki_graph *graph, int input, const void *settings, ki_body *ret_body);
    /* What the network has behind its pool: from the pooled vector to the one that all heads read. NULL: nothing. */
    int (*neck)(ki_graph *graph, int pooled, const void *settings);
} ki_backbone;

/* The i-th row, or NULL. */
const ki_backbone *ki_backbone_at(int i);
kith_status ki_backbone_find(const char *name, const ki_backbone **ret_backbone, kith_error *err);

/* Square convolution k with stride s and padding p, named NAME, then ReLU. */
int ki_conv_relu(ki_graph *graph, const char *name, int src, int64_t oc, int64_t k, int64_t s, int64_t p);

/* A convolution with its batch norm (eps 1e-5, momentum 0.1). */
typedef struct ki_conv_bn {
    int64_t oc, k, s, p;
    bool bias, relu;
} ki_conv_bn;

int ki_conv_bn_add(ki_graph *graph, const char *conv, const char *bn, int src, ki_conv_bn attr);

/* Ops of one source that have no parameters. */
int ki_act_add(ki_graph *graph, int src, ki_act how);
/* Nothing is added for p = 0. */
int ki_drop_path_add(ki_graph *graph, int src, double p);

/* RGB by the mean and deviation of ImageNet's pixels, as torchvision and timm have them. */
kith_preprocess ki_preprocess_imagenet(void);

/* 3x3 max pooling with stride 2 in ceil mode: the one both Inceptions use. */
int ki_max_pool_3x3_s2(ki_graph *graph, const char *name, int src);

#endif
