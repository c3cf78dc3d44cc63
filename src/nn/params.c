/* The store of parameters: slabs, initial values, copies in and out. */
#include "nn/params.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"

struct ki_params {
    ki_backend *backend;
    ki_arena arena;
    ki_param *param;
    const ki_param_decl **decl; /* the graph's declaration of each, copied into the arena */
    int n;
    int64_t trained_n, all_n;
    ki_real *values, *diffs; /* device slabs */
    ki_real *host;           /* staging for one parameter */
    uint64_t version;
};

/* Slab offsets keep every parameter on a 64-byte line. */
static int64_t padded(int64_t n) { return (int64_t)ki_round_up((size_t)n, KI_ALIGN / sizeof(ki_real)); }

/* The declarations in the order in which they get memory. */
typedef struct decl_list {
    ki_params *params;
    ki_param_decl *decl;
    int n;
} decl_list;

static kith_status take_decl(decl_list *list, const ki_param_decl *decl, kith_error *err) {
    ki_params *params = list->params;
    const int k = list->n++;
    ki_param_decl *copy = &list->decl[k];
    *copy = *decl;
    copy->name = ki_arena_strdup(&params->arena, decl->name);
    if (!copy->name) return ki_fail_memory(err, 64, "a parameter's name");
    params->decl[k] = copy;
    const int64_t count = ki_shape_count(&copy->shape);
    params->param[k] = (ki_param){.name = copy->name,
                                  .shape = copy->shape,
                                  .n = count,
                                  .trained = copy->trained,
                                  .frozen = copy->frozen};
    params->all_n += padded(count);
    if (copy->trained) params->trained_n += padded(count);
    return KITH_OK;
}

/* What a convolution reads, or would read if it were swapped with an average pool before it (swap.c). */
static int source_of(const ki_graph *graph, const ki_node *conv) {
    const ki_node *src = ki_graph_node(graph, conv->src[0]);
    return src->kind == KI_OP_POOL && src->attr.pool.average ? src->src[0] : conv->src[0];
}

/* Whether two nodes might become one convolution. */
static bool are_siblings(const ki_graph *graph, const ki_node *a, const ki_node *b) {
    return ki_node_is_1x1(a) && ki_node_is_1x1(b) && source_of(graph, a) == source_of(graph, b) &&
           a->n_params == b->n_params && a->is_frozen == b->is_frozen;
}

/* The batch norms that feed one concat, each directly or through a ReLU, in the concat's order: they are all
 * of its sources, and node i is one of them. 0: there is no such concat. */
static int norms_of_concat(const ki_graph *graph, int i, int *ret_member) {
    for (int c = 0; c < ki_graph_count(graph); c++) {
        const ki_node *concat = ki_graph_node(graph, c);
        bool all = concat->kind == KI_OP_CONCAT, is_in = false;
        for (int k = 0; all && k < concat->n_src; k++) {
            int m = concat->src[k];
            if (ki_graph_node(graph, m)->kind == KI_OP_RELU) m = ki_graph_node(graph, m)->src[0];
            all = ki_graph_node(graph, m)->kind == KI_OP_BATCH_NORM &&
                  ki_graph_node(graph, m)->is_frozen == ki_graph_node(graph, i)->is_frozen;
            is_in |= m == i;
            ret_member[k] = m;
        }
        if (all && is_in) return concat->n_src;
    }
    return 0;
}

/* Nodes whose parameters are adjacent in memory, in order; at least node i. */
static int group_of(const ki_graph *graph, int i, bool groups, int *ret_member) {
    const ki_node *node = ki_graph_node(graph, i);
    int n = 0;
    if (groups && node->kind == KI_OP_BATCH_NORM) n = norms_of_concat(graph, i, ret_member);
    for (int j = 0; groups && ki_node_is_1x1(node) && j < ki_graph_count(graph) && n < KI_MAX_SRC; j++) {
        if (are_siblings(graph, node, ki_graph_node(graph, j))) ret_member[n++] = j;
    }
    if (n == 0) ret_member[n++] = i;
    return n;
}

/* Take the parameters of node i. If node i is the first of a group, take those of the whole group, parameter
 * by parameter. */
static kith_status take_node(decl_list *list, const ki_graph *graph, int i, bool trained, bool groups,
                             kith_error *err) {
    const ki_node *node = ki_graph_node(graph, i);
    int member[KI_MAX_SRC];
    const int n = group_of(graph, i, groups, member);
    for (int j = 0; j < n; j++) {
        if (member[j] < i) return KITH_OK; /* was taken with the first */
    }
    for (int p = 0; p < node->n_params; p++) {
        if (node->param[p].trained != trained) continue;
        for (int j = 0; j < n; j++) KI_TRY(take_decl(list, &ki_graph_node(graph, member[j])->param[p], err));
    }
    return KITH_OK;
}

static kith_status copy_decls(ki_params *params, const ki_graph *graph, kith_error *err) {
    int n = 0;
    const ki_backend *backend = params->backend;
    const bool groups = backend->type->kernels.can_merge_convs && !backend->options.plain_plan;
    for (int i = 0; i < ki_graph_count(graph); i++) n += ki_graph_node(graph, i)->n_params;
    params->param = ki_arena_alloc(&params->arena, (size_t)n, sizeof *params->param);
    params->decl = ki_arena_alloc(&params->arena, (size_t)n, sizeof *params->decl);
    decl_list list = {.params = params, .decl = ki_arena_alloc(&params->arena, (size_t)n, sizeof *list.decl)};
    if (!params->param || !params->decl || !list.decl)
        return ki_fail_memory(err, (size_t)n * 128, "parameters");
    for (int i = 0; i < ki_graph_count(graph); i++) KI_TRY(take_node(&list, graph, i, true, groups, err));
    for (int i = 0; i < ki_graph_count(graph); i++) KI_TRY(take_node(&list, graph, i, false, groups, err));
    params->n = n;
    return KITH_OK;
}

kith_status ki_params_new(const ki_graph *graph, ki_backend *backend, ki_params **ret_params,
                          kith_error *err) {
    ki_params *params = NULL;
    kith_status status = KITH_OK;
    KI_TRY(ki_graph_check(graph, err));
    KI_TRY(ki_zalloc_or(&params, 1, sizeof *params, "parameters", err));
    params->backend = backend;
    KI_CHECK(copy_decls(params, graph, err));
    const size_t all_bytes = (size_t)params->all_n * sizeof(ki_real);
    void *slab = NULL;
    KI_CHECK(backend->type->memory.alloc(backend, all_bytes ? all_bytes : 1, &slab, err));
    params->values = slab;
    KI_CHECK(backend->type->memory.zero(backend, slab, all_bytes, err));
    int64_t offset = 0, largest = 1;
    for (int i = 0; i < params->n; i++) {
        ki_param *p = &params->param[i];
        p->value = params->values + offset;
        offset += padded(p->n);
        if (p->n > largest) largest = p->n;
    }
    KI_CHECK(ki_alloc_or(&params->host, (size_t)largest, sizeof *params->host, "a parameter", err));
    KI_CHECK(ki_params_init(params, 0, err));
    *ret_params = params;
    params = NULL;
done:
    ki_params_free(params);
    return status;
}

kith_status ki_params_make_diffs(ki_params *params, kith_error *err) {
    const ki_backend_type *type = params->backend->type;
    const size_t bytes = (size_t)params->trained_n * sizeof(ki_real);
    void *slab = NULL;
    if (params->diffs) return KITH_OK;
    KI_TRY(type->memory.alloc(params->backend, bytes ? bytes : 1, &slab, err));
    params->diffs = slab;
    for (int i = 0; i < params->n; i++) {
        ki_param *p = &params->param[i];
        if (p->trained) p->diff = params->diffs + (p->value - params->values);
    }
    return type->memory.zero(params->backend, slab, bytes, err);
}

void ki_params_free(ki_params *params) {
    if (!params) return;
    params->backend->type->memory.free(params->backend, params->values);
    params->backend->type->memory.free(params->backend, params->diffs);
    ki_free(params->host);
    ki_arena_release(&params->arena);
    ki_free(params);
}

/* A stream's name must not depend on the order of declarations: FNV-1a of the parameter's name. */
static uint32_t name_hash(const char *name) {
    uint32_t hash = 2166136261u;
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash;
}

kith_status ki_params_init(ki_params *params, uint64_t seed, kith_error *err) {
    for (int i = 0; i < params->n; i++) {
        const ki_param *p = &params->param[i];
        const ki_param_decl *d = params->decl[i];
        ki_rng rng = ki_rng_at(seed, KI_RNG_INIT, name_hash(p->name), 0);
        const double gain = d->gain > 0 ? d->gain : 1;
        const double bound = d->fan_in > 0 ? gain * ki_start_bound(d->start, d->fan_in, d->fan_out) : 0;
        for (int64_t j = 0; j < p->n; j++) {
            params->host[j] =
                (ki_real)(d->fan_in > 0 ? bound * (2 * (double)ki_rng_float(&rng) - 1) : d->fill);
        }
        KI_TRY(ki_params_set(params, p, params->host, err));
        KI_TRY(params->backend->type->memory.sync(params->backend, err));
    }
    return KITH_OK;
}

int ki_params_count(const ki_params *params) { return params->n; }
const ki_param *ki_params_at(const ki_params *params, int i) { return &params->param[i]; }

const ki_param *ki_params_find(const ki_params *params, const char *name) {
    for (int i = 0; i < params->n; i++) {
        if (strcmp(params->param[i].name, name) == 0) return &params->param[i];
    }
    return NULL;
}

int64_t ki_params_trained_n(const ki_params *params) { return params->trained_n; }
ki_real *ki_params_values(ki_params *params) { return params->values; }
ki_real *ki_params_diffs(ki_params *params) { return params->diffs; }

kith_status ki_params_zero_diffs(ki_params *params, kith_error *err) {
    KI_TRY(ki_params_make_diffs(params, err));
    return params->backend->type->memory.zero(params->backend, params->diffs,
                                              (size_t)params->trained_n * sizeof(ki_real), err);
}

kith_status ki_params_set(ki_params *params, const ki_param *param, const ki_real *host, kith_error *err) {
    params->version++;
    return params->backend->type->memory.upload(params->backend, param->value, host,
                                                (size_t)param->n * sizeof *host, err);
}

kith_status ki_params_get(const ki_params *params, const ki_param *param, ki_real *host, kith_error *err) {
    KI_TRY(params->backend->type->memory.download(params->backend, param->value, host,
                                                  (size_t)param->n * sizeof *host, err));
    return params->backend->type->memory.sync(params->backend, err);
}

kith_status ki_params_get_diff(const ki_params *params, const ki_param *param, ki_real *host,
                               kith_error *err) {
    if (!param->diff)
        return ki_fail(err, KITH_EINVAL, "parameter %s is not trained and has no gradient", param->name);
    KI_TRY(params->backend->type->memory.download(params->backend, param->diff, host,
                                                  (size_t)param->n * sizeof *host, err));
    return params->backend->type->memory.sync(params->backend, err);
}

uint64_t ki_params_version(const ki_params *params) { return params->version; }
void ki_params_touch(ki_params *params) { params->version++; }
