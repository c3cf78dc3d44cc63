/* Net: a backbone with its pooling and heads, as one graph.
 *
 *     input ─ backbone ─ "map" ─ global pool ─ "pooled" ┬ linear `embedding` ─ "embedding"
 *                                                       └ dropout ─ linear `fc` ─ "logits"
 *
 * The names in quotes are taps. A net has only the layers behind `pooled` that were asked for. If a convolution lies before the
 * tap "map" (`map_channels`), what is pooled is not behind it, and is the tap "features".
 *
 * With the poolings `class`, `class_avg` and `attention` it is a token of the network's own instead of a pool of the map, and
 * networks that have no such token refuse them.
 *
 * A backbone of vectors has no map and no pooling: its last vectors are "pooled".
 *
 * An ensemble (`heads` above 1) looks at the map before the backbone's tower through several masks and runs the rest on
 * each (docs/adr/0060). Its taps hold the heads side by side, and each head of its embedding is L2-normalised. */
#ifndef KI_NET_H
#define KI_NET_H

#include "net/backbone.h"

/* What of a network learns, and how (net/adapt.h). Strings and the list are borrowed. All zero: everything, as it is. */
typedef struct ki_adaptation {
    /* What does not learn: everything up to the last node of that name, or whose name begins with it and a dot or an underscore;
     * "backbone": all of it. NULL and "": nothing. */
    const char *freeze;
    int64_t rank; /* of LoRA; 0: none */
    double alpha;
    int n_layers; /* 0: every linear layer of the backbone that is not frozen */
    /* Names of linear layers, or what these end with after a dot ("attn.qkv"); * stands for anything. */
    const char *const *layers;
} ki_adaptation;

typedef struct ki_net_options {
    const char *backbone;
    const ki_value *settings; /* the backbone's own options, a map; NULL: defaults */
    int64_t c, h, w;          /* 0: the backbone's; of vectors c is their length, h and w are 1 */
    ki_pooling pool;
    int64_t embedding; /* its size; 0: none */
    bool no_embedding_bias;
    ki_start embedding_start;
    int64_t classes;             /* of the classifier; 0: none */
    int64_t heads;               /* of an ensemble; 0 and 1: a plain network */
    double mask_gain, mask_bias; /* kith_model_options */
    int64_t
        map_channels; /* of a 1x1 convolution `map` before the tap "map", which nothing else reads; 0: none */
    ki_adaptation adapt;
} ki_net_options;

enum { KI_NESTED_TEXT = 192 };
typedef struct ki_net {
    const ki_backbone *backbone;
    int64_t c, h, w;
    ki_pooling pool;
    int64_t embedding, classes;
    int64_t heads; /* from 1; each has embedding / heads numbers */
    int64_t map_channels;
    bool no_embedding_bias;
    bool new_embedding; /* begin a new embedding layer where the one in a file has another size */
    ki_adaptation adapt;
    char nested[KI_NESTED_TEXT]; /* the widths it was trained to be cut to: "32,64,512"; empty: none */
    kith_preprocess preprocess;  /* the backbone's; a model file may say otherwise */
    ki_graph *graph;             /* owned */
    _Alignas(16) unsigned char settings[KI_MOST_BACKBONE_SETTINGS];
} ki_net;

/* Fill *ret_net; release it with ki_net_release. Sizes out of range, unknown options and images too small for
 * the network are errors that say so. */
kith_status ki_net_init(const ki_net_options *options, ki_net *ret_net, kith_error *err);
/* The same network for images of another side. Its parameters have the same names and shapes, so plans of both may use one
 * ki_params. */
kith_status ki_net_of_size(const ki_net *net, int64_t side, ki_net *ret_net, kith_error *err);
/* The same network with only those parts to learn: its parameters are those of `net`, and what LoRA adds. */
kith_status ki_net_adapted(const ki_net *net, const ki_adaptation *how, ki_net *ret_net, kith_error *err);
void ki_net_release(ki_net *net); /* fine on a zeroed struct */

/* The smallest height and width that the backbone with these settings can be planned for. */
int64_t ki_net_least_side(const ki_net *net);

/* The tap of the map that is pooled. */
const char *ki_net_features_tap(const ki_net *net);
/* Does it take vectors of `c` numbers instead of images? */
static inline bool ki_net_takes_vectors(const ki_net *net) { return net->backbone->vector > 0; }

/* The backbone's options as "stride=1x1,preprocess=caffe": read back by ki_settings_parse. */
const char *ki_net_settings_text(const ki_net *net, char *buf, size_t buf_bytes);
/* "key=value,key=value" (NULL or "": an empty map) as a map in the arena. Entries of `base` (may be NULL)
 * that the text does not name are copied. */
kith_status ki_settings_parse(ki_arena *arena, const char *text, const ki_value *base,
                              const ki_value **ret_map, kith_error *err);

/* "avg", "max", "both", "gem", "class", "class_avg", "attention". */
extern const char *const ki_pooling_names[];
kith_status ki_pooling_parse(const char *text, ki_pooling *ret_pool, kith_error *err);

#endif
