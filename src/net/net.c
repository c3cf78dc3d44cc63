/* Building a net: backbone, pooling, heads, taps. */
#include "net/net.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "net/adapt.h"
#include "net/ensemble.h"
#include "net/numbers.h"

_Static_assert((int)KI_POOLING_GEM == (int)KI_GLOBAL_GEM, "the op's ways come first");

enum { MOST_EXTENT = 1 << 14, MOST_UNITS = 1 << 24, MOST_HEADS = 64 };

const char *const ki_pooling_names[] = {"avg", "max", "both", "gem", "class", "class_avg", "attention", NULL};

kith_status ki_pooling_parse(const char *text, ki_pooling *ret_pool, kith_error *err) {
    for (int i = 0; i < KI_N_POOLINGS; i++) {
        if (strcmp(text, ki_pooling_names[i]) != 0) continue;
        *ret_pool = (ki_pooling)i;
        return KITH_OK;
    }
    return ki_fail_unknown(err, "pool", text, ki_pooling_names, KI_N_POOLINGS);
}

static kith_status check_vectors(const ki_backbone *backbone, int64_t c, int64_t h, int64_t w,
                                 kith_error *err) {
    if (h != 1 || w != 1)
        return ki_fail(err, KITH_ESHAPE,
                       "%s takes features, a row of numbers each; found images of %lldx%lld", backbone->name,
                       (long long)h, (long long)w);
    if (c < 1 || c > KI_MOST_VECTOR)
        return ki_fail(err, KITH_ESHAPE, "%s takes features of 1 to %d numbers, found %lld", backbone->name,
                       KI_MOST_VECTOR, (long long)c);
    return KITH_OK;
}

int64_t ki_net_least_side(const ki_net *net) {
    const ki_backbone *backbone = net->backbone;
    return backbone->least_size_of ? backbone->least_size_of(net->settings) : backbone->least_size;
}

static kith_status check_input(const ki_net *net, kith_error *err) {
    const ki_backbone *backbone = net->backbone;
    const int64_t c = net->c, h = net->h, w = net->w, least = ki_net_least_side(net);
    if (backbone->vector > 0) return check_vectors(backbone, c, h, w, err);
    if (backbone->channels > 0 && c != backbone->channels)
        return ki_fail(err, KITH_ESHAPE, "%s takes images of %lld channels, found %lld", backbone->name,
                       (long long)backbone->channels, (long long)c);
    if (c < 1 || c > KITH_MOST_CHANNELS)
        return ki_fail(err, KITH_ESHAPE, "%s takes images of 1 to %d channels, found %lld", backbone->name,
                       KITH_MOST_CHANNELS, (long long)c);
    if (h < least || w < least || h > MOST_EXTENT || w > MOST_EXTENT)
        return ki_fail(err, KITH_ESHAPE, "%s takes images of %lldx%lld to %dx%d, found %lldx%lld",
                       backbone->name, (long long)least, (long long)least, MOST_EXTENT, MOST_EXTENT,
                       (long long)h, (long long)w);
    return KITH_OK;
}

static kith_status check_units(const char *what, int64_t n, kith_error *err) {
    if (n < 0 || n > MOST_UNITS)
        return ki_fail(err, KITH_EINVAL, "%s is %lld; wanted 0 (none) to %d", what, (long long)n, MOST_UNITS);
    return KITH_OK;
}

static kith_status check_heads(const ki_net *net, kith_error *err) {
    if (net->heads < 1 || net->heads > MOST_HEADS)
        return ki_fail(err, KITH_EINVAL, "number of heads is %lld; wanted 1 to %d", (long long)net->heads,
                       MOST_HEADS);
    if (net->heads == 1) return KITH_OK;
    if (!net->backbone->tower.first) {
        ki_fail(err, KITH_EUNSUPPORTED,
                "%s names no place where heads could begin; wanted 1 head, found %lld", net->backbone->name,
                (long long)net->heads);
        return ki_hint(
            err, KITH_EUNSUPPORTED,
            "an ensemble wants a network of convolutions: leave model.heads out, or take another one");
    }
    if (net->embedding % net->heads != 0)
        return ki_fail(err, KITH_EINVAL, "embedding size is %lld; wanted a multiple of the %lld heads",
                       (long long)net->embedding, (long long)net->heads);
    if (net->classes > 0)
        return ki_fail(err, KITH_EINVAL,
                       "a classifier of %lld classes behind %lld heads; wanted one head, or none",
                       (long long)net->classes, (long long)net->heads);
    return KITH_OK;
}

/* What only networks of images have. */
static kith_status check_map(const ki_net *net, kith_error *err) {
    if (!ki_net_takes_vectors(net) || (net->map_channels == 0 && net->pool == KI_POOLING_AVG)) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "%s of %s, which takes features and has no map; wanted none",
                   net->map_channels > 0 ? "map channels" : "pooling", net->backbone->name);
}

/* The heads of an image in one row; a plain network's are. */
static int side_by_side(const ki_net *net, const char *name, int src) {
    return net->heads > 1 ? ki_graph_unfold(net->graph, name, src) : src;
}

static void add_map(const ki_net *net, int map) {
    const ki_conv_attr attr = {
        .oc = net->map_channels, .kh = 1, .kw = 1, .sh = 1, .sw = 1, .start = KI_START_GLOROT};
    const int features = side_by_side(net, "map.heads", map);
    ki_graph_tap(net->graph, features, ki_net_features_tap(net));
    if (net->map_channels > 0)
        ki_graph_tap(net->graph, ki_graph_conv(net->graph, "map", features, attr), "map");
}

const char *ki_net_features_tap(const ki_net *net) { return net->map_channels > 0 ? "features" : "map"; }

static int add_embedding(const ki_net *net, int pooled, ki_start start) {
    const ki_linear_attr attr = {
        .oc = net->embedding / net->heads, .bias = !net->no_embedding_bias, .start = start};
    const int x = ki_graph_linear(net->graph, "embedding", pooled, attr);
    if (net->heads == 1) return x;
    const int unit = ki_graph_l2_norm(net->graph, "embedding.norm", x, (ki_l2_norm_attr){1e-12});
    return side_by_side(net, "embedding.heads", unit);
}

/* The network's own token for a pooling that needs one; -1: it has none. */
static int own_token(const ki_net *net, const ki_body *body) {
    if (net->pool == KI_POOLING_ATTENTION) return body->attention > 0 ? body->attention : -1;
    if (!body->has_class || body->tokens <= 0) return -1;
    return ki_graph_op(net->graph, KI_OP_TOKEN, "class", 1, &body->tokens, (ki_attr){.token = {0}});
}

/* From the last map, or the network's own tokens, to one vector. */
static kith_status add_pool(const ki_net *net, const ki_body *body, int *ret_pooled, kith_error *err) {
    const bool is_own = net->pool >= KI_POOLING_CLASS;
    const ki_global_pool how = is_own ? KI_GLOBAL_AVG : (ki_global_pool)net->pool;
    KI_TRY(ki_graph_check(net->graph, err));
    const int own = is_own ? own_token(net, body) : 0;
    if (own < 0) {
        ki_fail(err, KITH_EINVAL, "pool is %s, but %s with these settings has no %s",
                ki_pooling_names[net->pool], net->backbone->name,
                net->pool == KI_POOLING_ATTENTION ? "pooling by attention" : "class token");
        return ki_hint(err, KITH_EINVAL, "wanted avg, max, both%s",
                       body->attention > 0 ? ", gem or attention"
                       : body->has_class   ? ", gem, class or class_avg"
                                           : " or gem");
    }
    *ret_pooled = own;
    if (is_own && net->pool != KI_POOLING_CLASS_AVG) return KITH_OK;
    const int pooled = ki_graph_global_pool(net->graph, "pool", body->map, (ki_global_pool_attr){how});
    *ret_pooled = is_own ? ki_graph_add(net->graph, "class_avg", own, pooled) : pooled;
    return KITH_OK;
}

static kith_status add_heads(ki_net *net, const ki_body *body, ki_start start, kith_error *err) {
    ki_graph *graph = net->graph;
    int pooled = body->map;
    if (!ki_net_takes_vectors(net)) {
        add_map(net, body->map);
        KI_TRY(add_pool(net, body, &pooled, err));
    }
    if (net->backbone->neck) pooled = net->backbone->neck(graph, pooled, net->settings);
    ki_graph_tap(graph, side_by_side(net, "pool.heads", pooled), "pooled");
    if (net->embedding > 0) ki_graph_tap(graph, add_embedding(net, pooled, start), "embedding");
    if (net->classes > 0) {
        int x = pooled;
        if (body->dropout > 0) x = ki_graph_dropout(graph, "dropout", x, (ki_dropout_attr){body->dropout});
        const ki_linear_attr attr = {.oc = net->classes, .bias = true};
        ki_graph_tap(graph, ki_graph_linear(graph, net->backbone->classifier, x, attr), "logits");
    }
    return KITH_OK;
}

/* The backbone's graph becomes that of an ensemble. */
static kith_status split(ki_net *net, ki_body *body, ki_ensemble how, kith_error *err) {
    ki_graph *whole = NULL;
    KI_TRY(ki_graph_new(&whole, err));
    const kith_status status =
        ki_ensemble_add(whole, net->graph, &net->backbone->tower, how, &body->map, err);
    ki_graph_free(net->graph);
    net->graph = whole;
    body->tokens = body->attention = 0; /* the heads have maps alone */
    body->has_class = false;
    return status;
}

static kith_status add_all(ki_net *net, ki_body *body, ki_ensemble how, ki_start embedding_start,
                           kith_error *err) {
    const int input = ki_net_takes_vectors(net) ? ki_graph_input_vectors(net->graph, net->c)
                                                : ki_graph_input(net->graph, net->c, net->h, net->w);
    net->backbone->build(net->graph, input, net->settings, body);
    if (how.heads > 1) KI_TRY(split(net, body, how, err));
    KI_TRY(ki_adapt_backbone(&net->adapt, net->backbone->name, &net->graph, body, err));
    KI_TRY(add_heads(net, body, embedding_start, err));
    return ki_graph_check(net->graph, err);
}

/* The graph of a net whose other fields are there. */
static kith_status make_graph(ki_net *net, ki_body *body, ki_ensemble how, ki_start embedding_start,
                              kith_error *err) {
    KI_TRY(ki_graph_new(&net->graph, err));
    const kith_status status = add_all(net, body, how, embedding_start, err);
    if (status != KITH_OK) ki_net_release(net);
    return status;
}

static kith_status name_input(const ki_net *net, kith_status status, kith_error *err) {
    if (status == KITH_OK) return KITH_OK;
    if (net->backbone->vector > 0)
        return ki_prefix(err, status, "%s for features of %lld numbers", net->backbone->name,
                         (long long)net->c);
    return ki_prefix(err, status, "%s for images of %lldx%lld", net->backbone->name, (long long)net->h,
                     (long long)net->w);
}

kith_status ki_net_init(const ki_net_options *options, ki_net *ret_net, kith_error *err) {
    ki_net net = {.pool = options->pool,
                  .embedding = options->embedding,
                  .classes = options->classes,
                  .heads = options->heads ? options->heads : 1,
                  .map_channels = options->map_channels,
                  .no_embedding_bias = options->no_embedding_bias,
                  .adapt = options->adapt};
    KI_TRY(ki_backbone_find(options->backbone, &net.backbone, err));
    const ki_backbone *b = net.backbone;
    const int64_t c = b->vector ? b->vector : b->channels ? b->channels : 3, side = b->vector ? 1 : b->size;
    net.c = options->c ? options->c : c;
    net.h = options->h ? options->h : side;
    net.w = options->w ? options->w : side;
    KI_TRY(ki_options_parse(net.backbone->options, options->settings, NULL, net.backbone->name, net.settings,
                            err));
    KI_TRY(check_input(&net, err));
    KI_TRY(check_units("embedding size", net.embedding, err));
    KI_TRY(check_units("number of classes", net.classes, err));
    KI_TRY(check_units("number of the map's channels", net.map_channels, err));
    KI_TRY(check_heads(&net, err));
    KI_TRY(check_map(&net, err));

    ki_net made = net;
    ki_body body = {0};
    const ki_ensemble how = {net.heads, options->mask_gain, options->mask_bias};
    KI_TRY(name_input(&net, make_graph(&made, &body, how, options->embedding_start, err), err));
    made.preprocess = body.preprocess;
    *ret_net = made;
    return KITH_OK;
}

/* The graph of a net that was another. Which values new parameters would have does not matter. */
static kith_status make_again(ki_net made, ki_net *ret_net, kith_error *err) {
    const ki_net asked = made;
    const ki_ensemble how = {.heads = made.heads};
    KI_TRY(name_input(&asked, make_graph(&made, &(ki_body){0}, how, KI_START_HE, err), err));
    *ret_net = made;
    return KITH_OK;
}

kith_status ki_net_of_size(const ki_net *net, int64_t side, ki_net *ret_net, kith_error *err) {
    ki_net made = *net;
    made.h = made.w = side;
    KI_TRY(check_input(&made, err));
    return make_again(made, ret_net, err);
}

kith_status ki_net_adapted(const ki_net *net, const ki_adaptation *how, ki_net *ret_net, kith_error *err) {
    ki_net made = *net;
    made.adapt = *how;
    return make_again(made, ret_net, err);
}

void ki_net_release(ki_net *net) {
    ki_graph_free(net->graph);
    *net = (ki_net){0};
}

/* One option's current value, as its parser reads it. */
static void value_text(const ki_option *o, const void *settings, char *buf, size_t buf_bytes) {
    const char *field = (const char *)settings + o->offset;
    double real;
    int64_t whole;
    bool yes;
    int choice;
    switch (o->type) {
    case KI_OPTION_T_REAL:
        memcpy(&real, field, sizeof real);
        ki_numbers_text(&real, 1, buf, buf_bytes);
        return;
    case KI_OPTION_T_INT:
        memcpy(&whole, field, sizeof whole);
        ki_snprintf(buf, buf_bytes, "%lld", (long long)whole);
        return;
    case KI_OPTION_T_BOOL:
        memcpy(&yes, field, sizeof yes);
        ki_snprintf(buf, buf_bytes, "%s", yes ? "true" : "false");
        return;
    case KI_OPTION_T_CHOICE:
        memcpy(&choice, field, sizeof choice);
        ki_snprintf(buf, buf_bytes, "%s", o->choices[choice]);
        return;
    case KI_OPTION_T_TEXT:
    case KI_OPTION_T_TREE:
    case KI_OPTION_T_END: break;
    }
    buf[0] = '\0'; /* backbones have no such options */
}

const char *ki_net_settings_text(const ki_net *net, char *buf, size_t buf_bytes) {
    size_t used = 0;
    buf[0] = '\0';
    for (const ki_option *o = net->backbone->options; o->type != KI_OPTION_T_END; o++) {
        char value[64];
        value_text(o, net->settings, value, sizeof value);
        const int n = ki_snprintf(buf + used, buf_bytes - used, "%s%s=%s", used ? "," : "", o->name, value);
        if (n < 0 || (size_t)n >= buf_bytes - used) break;
        used += (size_t)n;
    }
    return buf;
}

static kith_status append_scalar(ki_arena *arena, ki_value *map, const char *key, const char *text,
                                 kith_error *err) {
    ki_value *item = ki_value_new(arena, KI_VALUE_SCALAR, text);
    if (!item || !key || !text) return ki_fail_memory(err, sizeof *item, "an option");
    ki_value_append(map, key, item);
    return KITH_OK;
}

kith_status ki_settings_parse(ki_arena *arena, const char *text, const ki_value *base,
                              const ki_value **ret_map, kith_error *err) {
    ki_value *map = ki_value_new(arena, KI_VALUE_MAP, NULL);
    if (!map) return ki_fail_memory(err, sizeof *map, "options");
    for (const char *at = text ? text : ""; *at;) {
        const size_t length = strcspn(at, ","), key = strcspn(at, "=,");
        if (key == 0 || key >= length)
            return ki_fail(err, KITH_EINVAL, "option '%.*s' has no value; wanted key=value", (int)length, at);
        const char *name = ki_arena_strndup(arena, at, key);
        const char *value = ki_arena_strndup(arena, at + key + 1, length - key - 1);
        if (name && ki_value_get(map, name))
            return ki_fail(err, KITH_EINVAL, "option %s is given twice", name);
        KI_TRY(append_scalar(arena, map, name, value, err));
        at += length + (at[length] == ',');
    }
    for (const ki_value *v = base && base->kind == KI_VALUE_MAP ? base->first : NULL; v; v = v->next) {
        if (!ki_value_get(map, v->key)) KI_TRY(append_scalar(arena, map, v->key, v->text, err));
    }
    *ret_map = map;
    return KITH_OK;
}
