/* Frozen layers and LoRA, as changes of a backbone's graph, and the parameters that go with them. */
#include "net/adapt.h"

#include <fnmatch.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "net/depth.h"

static const char lora_a[] = "lora_a.weight", lora_b[] = "lora_b.weight", lora_scale[] = "lora_scale.weight";

enum { MOST_NAME = 256 };

/* ---- frozen layers ---- */

static bool is_tower(const ki_node *node) {
    return strncmp(node->name, KI_TOWER ".", strlen(KI_TOWER ".")) == 0;
}

enum { MOST_LAYERS = 65 }; /* that are named when none is found */

/* One more name, unless it is there already. */
static void add_layer(char names[][MOST_NAME], const char **name, size_t *n, const char *layer,
                      size_t length) {
    if (*n == MOST_LAYERS || length >= MOST_NAME) return;
    for (size_t i = 0; i < *n; i++) {
        if (strlen(name[i]) == length && memcmp(name[i], layer, length) == 0) return;
    }
    memcpy(names[*n - 1], layer, length);
    names[*n - 1][length] = '\0';
    name[*n] = names[*n - 1];
    ++*n;
}

/* What could have been meant: the first part of each name, and its first two. Parts alone come first, because a line has room for few. */
static kith_status fail_freeze(const ki_graph *graph, const char *freeze, kith_error *err) {
    char names[MOST_LAYERS - 1][MOST_NAME];
    const char *name[MOST_LAYERS] = {"backbone"};
    size_t n = 1;
    for (int parts = 1; parts <= 2; parts++) {
        for (int i = 0; i < ki_graph_count(graph); i++) {
            const ki_node *node = ki_graph_node(graph, i);
            const size_t first = strcspn(node->name, "."), rest = node->name[first] ? 1 : 0;
            const size_t both = first + rest + strcspn(node->name + first + rest, ".");
            if (node->is_numbered || node->n_params == 0) continue;
            add_layer(names, name, &n, node->name, parts == 1 ? first : both);
        }
    }
    return ki_prefix(err, ki_fail_unknown(err, "layer", freeze, name, n), "freeze");
}

/* The last node that is frozen; -1: none. */
static kith_status find_frozen(const ki_adaptation *how, const ki_graph *graph, const ki_body *body,
                               int *ret_last, kith_error *err) {
    const char *freeze = how->freeze;
    *ret_last = -1;
    if (!freeze || !*freeze) return KITH_OK;
    if (strcmp(freeze, "backbone") == 0) {
        *ret_last = body->attention > body->map ? body->attention : body->map;
        return KITH_OK;
    }
    for (int i = 0; i < ki_graph_count(graph); i++) {
        if (ki_layer_has(freeze, ki_graph_node(graph, i)->name)) *ret_last = i;
    }
    return *ret_last >= 0 ? KITH_OK : fail_freeze(graph, freeze, err);
}

/* An ensemble's attention is no part of what was there before. */
static void freeze_nodes(ki_graph *graph, int last) {
    for (int i = 0; i <= last; i++) {
        if (!is_tower(ki_graph_node(graph, i))) ki_graph_freeze(graph, i);
    }
}

/* ---- LoRA ---- */

/* Does the pattern stand for the name, or for what it ends with? */
static bool is_meant(const char *pattern, const char *name) {
    for (;;) {
        if (fnmatch(pattern, name, 0) == 0) return true;
        const char *dot = strchr(name, '.');
        if (!dot) return false;
        name = dot + 1;
    }
}

static bool gets_lora(const ki_adaptation *how, const ki_node *node) {
    bool is_asked = how->n_layers == 0;
    if (node->kind != KI_OP_LINEAR || is_tower(node)) return false;
    for (int i = 0; i < how->n_layers && !is_asked; i++) is_asked = is_meant(how->layers[i], node->name);
    return is_asked;
}

static kith_status check_rank(const ki_adaptation *how, kith_error *err) {
    if (how->rank >= 1 && how->rank <= 1024 && how->alpha > 0 && how->alpha <= 1e6) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "LoRA of rank %lld and alpha %g; wanted 1 to 1024, and over 0 to 1e6",
                   (long long)how->rank, how->alpha);
}

/* Each pattern is for some layer behind the frozen ones, and there is one at all. */
static kith_status check_layers(const ki_adaptation *how, const char *backbone, const ki_graph *graph,
                                int frozen, kith_error *err) {
    const ki_node *linear = NULL;
    KI_TRY(check_rank(how, err));
    for (int i = frozen + 1; i < ki_graph_count(graph) && !linear; i++) {
        if (ki_graph_node(graph, i)->kind == KI_OP_LINEAR && !is_tower(ki_graph_node(graph, i)))
            linear = ki_graph_node(graph, i);
    }
    if (!linear)
        return ki_fail(err, KITH_EINVAL, "LoRA is for linear layers, and %s has none%s", backbone,
                       frozen >= 0 ? " that is not frozen" : "");
    for (int k = 0; k < how->n_layers; k++) {
        bool is_met = false;
        for (int i = frozen + 1; i < ki_graph_count(graph) && !is_met; i++) {
            const ki_node *node = ki_graph_node(graph, i);
            is_met = node->kind == KI_OP_LINEAR && is_meant(how->layers[k], node->name);
        }
        if (is_met) continue;
        ki_fail(err, KITH_ENOTFOUND, "LoRA: no linear layer of %s that learns is called '%.60s'", backbone,
                how->layers[k]);
        return ki_hint(err, KITH_ENOTFOUND, "one is %s; * stands for anything", linear->name);
    }
    return KITH_OK;
}

static int add_linear(ki_graph *graph, const char *name, const char *what, int src, int64_t oc) {
    char full[MOST_NAME];
    ki_snprintf(full, sizeof full, "%s.%s", name, what);
    return ki_graph_linear(graph, full, src, (ki_linear_attr){.oc = oc});
}

/* src: what the linear layer reads; x: the layer, in the new graph. */
static int add_lora(const ki_adaptation *how, ki_graph *graph, const ki_node *node, int src, int x) {
    char name[MOST_NAME];
    const int a = add_linear(graph, node->name, "lora_a", src, how->rank);
    const int scale = add_linear(graph, node->name, "lora_scale", a, how->rank);
    if (scale >= 0) ki_graph_freeze(graph, scale);
    const int b = add_linear(graph, node->name, "lora_b", scale, node->attr.linear.oc);
    ki_snprintf(name, sizeof name, "%s.lora", node->name);
    return ki_graph_add(graph, name, x, b);
}

static int copy_node(ki_graph *graph, const ki_node *node, const int *to) {
    int src[KI_MAX_SRC];
    const int64_t *dim = node->shape.dim;
    if (node->kind == KI_OP_INPUT)
        return node->shape.n_dims == 2 ? ki_graph_input_vectors(graph, dim[1])
                                       : ki_graph_input(graph, dim[1], dim[2], dim[3]);
    for (int k = 0; k < node->n_src; k++) src[k] = to[node->src[k]];
    return ki_graph_op(graph, node->kind, node->is_numbered ? NULL : node->name, node->n_src, src,
                       node->attr);
}

/* Everything is frozen but what LoRA adds and an ensemble's attention. to: the new number of each node. */
static void add_all(const ki_adaptation *how, const ki_graph *plain, int frozen, ki_graph *graph, int *to) {
    for (int i = 0; i < ki_graph_count(plain); i++) {
        const ki_node *node = ki_graph_node(plain, i);
        to[i] = copy_node(graph, node, to);
        if (to[i] < 0) return; /* the graph keeps the error */
        if (!is_tower(node)) ki_graph_freeze(graph, to[i]);
        if (i > frozen && gets_lora(how, node)) to[i] = add_lora(how, graph, node, to[node->src[0]], to[i]);
        if (to[i] < 0) return;
    }
}

static kith_status add_to_graph(const ki_adaptation *how, int frozen, ki_graph **graph, ki_body *body,
                                kith_error *err) {
    kith_status status;
    ki_graph *made = NULL;
    int *to = NULL;
    KI_CHECK(ki_zalloc_or(&to, (size_t)ki_graph_count(*graph), sizeof *to, "a graph's nodes", err));
    KI_CHECK(ki_graph_new(&made, err));
    add_all(how, *graph, frozen, made, to);
    KI_CHECK(ki_graph_check(made, err));
    body->map = to[body->map];
    body->tokens = to[body->tokens];
    body->attention = to[body->attention];
    ki_graph_free(*graph);
    *graph = made;
    made = NULL;
done:
    ki_graph_free(made);
    ki_free(to);
    return status;
}

kith_status ki_adapt_backbone(const ki_adaptation *how, const char *backbone, ki_graph **graph, ki_body *body,
                              kith_error *err) {
    int frozen = -1;
    if (how->rank == 0 && (!how->freeze || !*how->freeze)) return KITH_OK;
    KI_TRY(ki_graph_check(*graph, err));
    KI_TRY(find_frozen(how, *graph, body, &frozen, err));
    freeze_nodes(*graph, frozen);
    if (how->rank == 0) return KITH_OK;
    KI_TRY(check_layers(how, backbone, *graph, frozen, err));
    return add_to_graph(how, frozen, graph, body, err);
}

/* ---- parameters ---- */

static bool ends_with(const char *name, const char *end) {
    const size_t n = strlen(name), m = strlen(end);
    return n > m && name[n - m - 1] == '.' && strcmp(name + n - m, end) == 0;
}

bool ki_adapt_is_added(const ki_net *net, const char *param) {
    return net->adapt.rank > 0 &&
           (ends_with(param, lora_a) || ends_with(param, lora_b) || ends_with(param, lora_scale));
}

static double scale_of(const ki_net *net) { return net->adapt.alpha / (double)net->adapt.rank; }

/* s times the identity. */
static void fill_scale(const ki_net *net, ki_real *values) {
    const int64_t n = net->adapt.rank;
    for (int64_t i = 0; i < n * n; i++) values[i] = i % (n + 1) == 0 ? (ki_real)scale_of(net) : 0;
}

/* The value of each parameter of the new net: that of the old one, or what LoRA begins with. A was drawn. */
static kith_status fill_params(const ki_net *net, const ki_params *from, ki_params *params, kith_error *err) {
    kith_status status = KITH_OK;
    ki_real *values = NULL;
    for (int i = 0; i < ki_params_count(params); i++) {
        const ki_param *param = ki_params_at(params, i), *old = ki_params_find(from, param->name);
        if (!old && !ends_with(param->name, lora_b) && !ends_with(param->name, lora_scale)) continue;
        KI_CHECK(ki_zalloc_or(&values, (size_t)param->n, sizeof *values, param->name, err));
        if (old) KI_CHECK(ki_params_get(from, old, values, err));
        if (!old && ends_with(param->name, lora_scale)) fill_scale(net, values);
        KI_CHECK(ki_params_set(params, param, values, err));
        ki_free(values);
        values = NULL;
    }
done:
    ki_free(values);
    return status;
}

kith_status ki_adapt(const ki_adaptation *how, uint64_t seed, ki_backend *backend, ki_net *net,
                     ki_params **params, kith_error *err) {
    kith_status status;
    ki_net made = {0};
    ki_params *made_params = NULL;
    if (how->rank == 0 && (!how->freeze || !*how->freeze)) return KITH_OK;
    KI_CHECK(ki_net_adapted(net, how, &made, err));
    KI_CHECK(ki_params_new(made.graph, backend, &made_params, err));
    KI_CHECK(ki_params_init(made_params, seed, err));
    KI_CHECK(fill_params(&made, *params, made_params, err));
    KI_CHECK(backend->type->memory.sync(backend, err));
    ki_params_free(*params);
    ki_net_release(net);
    *net = made;
    *params = made_params;
    return KITH_OK;
done:
    ki_params_free(made_params);
    ki_net_release(&made);
    return status;
}

kith_status ki_adapt_clear(const ki_net *net, ki_params *params, kith_error *err) {
    for (int i = 0; net->adapt.rank > 0 && i < ki_params_count(params); i++) {
        const ki_param *param = ki_params_at(params, i);
        ki_real *zeros = NULL;
        if (!ends_with(param->name, lora_b)) continue;
        KI_TRY(ki_zalloc_or(&zeros, (size_t)param->n, sizeof *zeros, param->name, err));
        const kith_status status = ki_params_set(params, param, zeros, err);
        ki_free(zeros);
        KI_TRY(status);
    }
    return KITH_OK;
}

/* The parameter of the layer that `weight` ("NAME.weight") is of; NULL: it has no LoRA. */
static const ki_param *part_of(const ki_params *params, const char *weight, const char *part) {
    char name[MOST_NAME];
    const char *end = strrchr(weight, '.');
    if (!end || strcmp(end, ".weight") != 0) return NULL;
    ki_snprintf(name, sizeof name, "%.*s.%s", (int)(end - weight), weight, part);
    return ki_params_find(params, name);
}

kith_status ki_adapt_merge(const ki_net *net, const ki_params *params, const ki_param *param, ki_real *values,
                           kith_error *err) {
    kith_status status;
    const ki_param *of_a = net->adapt.rank > 0 ? part_of(params, param->name, lora_a) : NULL;
    const ki_param *of_b = of_a ? part_of(params, param->name, lora_b) : NULL;
    ki_real *a = NULL, *b = NULL;
    if (!of_b) return KITH_OK;
    const int64_t rank = net->adapt.rank, oc = param->shape.dim[0], ic = param->shape.dim[1];
    KI_CHECK(ki_alloc_or(&a, (size_t)of_a->n, sizeof *a, of_a->name, err));
    KI_CHECK(ki_alloc_or(&b, (size_t)of_b->n, sizeof *b, of_b->name, err));
    KI_CHECK(ki_params_get(params, of_a, a, err));
    KI_CHECK(ki_params_get(params, of_b, b, err));
    for (int64_t o = 0; o < oc; o++) {
        for (int64_t i = 0; i < ic; i++) {
            double sum = 0;
            for (int64_t r = 0; r < rank; r++) sum += (double)b[o * rank + r] * (double)a[r * ic + i];
            values[o * ic + i] = (ki_real)((double)values[o * ic + i] + scale_of(net) * sum);
        }
    }
done:
    ki_free(a);
    ki_free(b);
    return status;
}
