/* Concats made of slices, judged without a GPU: a backend made here keeps maps with the channels of a
 * pixel side by side, honours the pitch of every edge, fuses ReLU and leaves its mask to `join`, and lets
 * ref do the arithmetic on copies. A plan on it must give the bits of ref, where every concat copies. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "nn/plan.h"
#include "support/testing.h"

/* ---- the backend ---- */

typedef struct nhwc_backend {
    ki_backend base;
    ki_backend *ref;
    int n_concats, n_convs, n_norms; /* kernels asked for */
    bool joins;                      /* a convolution with a ReLU sums and masks its gradient itself */
    int n_joins;                     /* sums asked for */
} nhwc_backend;

typedef struct nhwc_kernel {
    ki_kernel base;
    ki_kernel *ref;
    ki_kernel_spec spec;
    ki_binding b;
    ki_real *src[KI_MAX_SRC], *diff_src[KI_MAX_SRC], *dst, *diff_dst, *part;
    bool joins;
} nhwc_kernel;

static ki_backend_type nhwc_type;
static ki_kernel_type nhwc_kernels, nhwc_fusing; /* without and with a fused ReLU */
static const ki_kernel_type *nhwc_of[KI_N_OPS];

static int64_t index_of(const ki_edge *e, int64_t n, int64_t c, int64_t p, int64_t hw) {
    if (e->shape.n_dims != 4) return n * e->shape.dim[1] + c;
    if (e->layout == KI_PLAIN) return (n * e->shape.dim[1] + c) * hw + p;
    return (n * hw + p) * (e->pitch ? e->pitch : e->shape.dim[1]) + c;
}

/* Between an edge's memory and plain memory. */
static void turn(const ki_edge *e, ki_real *edge, ki_real *plain, bool to_plain) {
    const int64_t c = e->shape.dim[1], hw = e->shape.n_dims == 4 ? e->shape.dim[2] * e->shape.dim[3] : 1;
    for (int64_t n = 0; n < e->shape.dim[0]; n++) {
        for (int64_t k = 0; k < c; k++) {
            for (int64_t p = 0; p < hw; p++) {
                ki_real *a = &edge[index_of(e, n, k, p, hw)], *b = &plain[(n * c + k) * hw + p];
                *(to_plain ? b : a) = *(to_plain ? a : b);
            }
        }
    }
}

static ki_real *new_plain(const ki_edge *e) {
    return calloc((size_t)ki_shape_count(&e->shape), sizeof(ki_real));
}

static kith_status nhwc_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                               ki_kernel **ret_kernel, kith_error *err) {
    nhwc_backend *b = (nhwc_backend *)backend;
    nhwc_kernel *k = calloc(1, sizeof *k);
    ki_kernel_spec plain = *spec;
    plain.has_relu = false;
    for (int i = 0; i < spec->n_src; i++) plain.src[i].pitch = 0;
    plain.dst.pitch = 0;
    b->n_concats += spec->kind == KI_OP_CONCAT;
    b->n_convs += spec->kind == KI_OP_CONV2D;
    b->n_norms += spec->kind == KI_OP_BATCH_NORM;
    KI_TRY(b->ref->type->kernels.of[spec->kind]->create(b->ref, &plain, ret_info, &k->ref, err));
    k->base = (ki_kernel){.type = &nhwc_kernels, .backend = backend};
    k->spec = *spec;
    k->joins = b->joins && spec->has_relu && spec->kind == KI_OP_CONV2D;
    ret_info->joins = k->joins;
    ret_info->mask_in_join = spec->has_relu && !k->joins;
    if (k->joins) ret_info->backward_reads_dst = true;
    for (int i = 0; i < spec->n_src; i++) {
        k->src[i] = new_plain(&spec->src[i]);
        k->diff_src[i] = new_plain(&spec->src[i]);
    }
    k->dst = new_plain(&spec->dst);
    k->diff_dst = new_plain(&spec->dst);
    k->part = new_plain(&spec->dst);
    *ret_kernel = &k->base;
    return KITH_OK;
}

static kith_status nhwc_bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    nhwc_kernel *k = (nhwc_kernel *)kernel;
    k->b = *binding;
    ki_binding plain = *binding;
    for (int i = 0; i < k->spec.n_src; i++) {
        plain.src[i] = k->src[i];
        if (plain.diff_src[i]) plain.diff_src[i] = k->diff_src[i];
    }
    plain.dst = k->dst;
    plain.diff_dst[0] = k->diff_dst;
    return k->ref->type->bind(k->ref, &plain, err);
}

static void copy_sources(nhwc_kernel *k) {
    for (int i = 0; i < k->spec.n_src; i++)
        turn(&k->spec.src[i], (void *)(uintptr_t)k->b.src[i], k->src[i], true);
}

static kith_status nhwc_forward(ki_kernel *kernel, kith_error *err) {
    nhwc_kernel *k = (nhwc_kernel *)kernel;
    copy_sources(k);
    KI_TRY(k->ref->type->forward(k->ref, err));
    const int64_t n = ki_shape_count(&k->spec.dst.shape);
    for (int64_t i = 0; k->spec.has_relu && i < n; i++) k->dst[i] = k->dst[i] > 0 ? k->dst[i] : 0;
    turn(&k->spec.dst, k->b.dst, k->dst, false);
    return KITH_OK;
}

/* What backward reads is taken from the plan's memory again: it must still be there. */
static kith_status nhwc_backward(ki_kernel *kernel, kith_error *err) {
    nhwc_kernel *k = (nhwc_kernel *)kernel;
    copy_sources(k);
    turn(&k->spec.dst, k->b.dst, k->dst, true);
    turn(&k->spec.dst, (void *)(uintptr_t)k->b.diff_dst[0], k->diff_dst, true);
    const int64_t n = ki_shape_count(&k->spec.dst.shape);
    for (int p = 1; p < k->b.n_diff_dst; p++) {
        turn(&k->spec.dst, (void *)(uintptr_t)k->b.diff_dst[p], k->part, true);
        for (int64_t i = 0; i < n; i++) k->diff_dst[i] += k->part[i];
    }
    for (int64_t i = 0; k->joins && i < n; i++) k->diff_dst[i] = k->dst[i] > 0 ? k->diff_dst[i] : 0;
    KI_TRY(k->ref->type->backward(k->ref, err));
    for (int i = 0; i < k->spec.n_src; i++) {
        if (k->b.diff_src[i]) turn(&k->spec.src[i], k->b.diff_src[i], k->diff_src[i], false);
    }
    return KITH_OK;
}

static void nhwc_free(ki_kernel *kernel) {
    nhwc_kernel *k = (nhwc_kernel *)kernel;
    k->ref->type->free(k->ref);
    for (int i = 0; i < k->spec.n_src; i++) {
        free(k->src[i]);
        free(k->diff_src[i]);
    }
    free(k->dst);
    free(k->diff_dst);
    free(k->part);
    free(k);
}

static kith_status nhwc_join(ki_backend *backend, const ki_edge *e, int n_parts, const void *const *parts,
                             const void *mask, void *dst, kith_error *err) {
    (void)err;
    ((nhwc_backend *)backend)->n_joins++;
    const int64_t hw = e->shape.n_dims == 4 ? e->shape.dim[2] * e->shape.dim[3] : 1;
    for (int64_t n = 0; n < e->shape.dim[0]; n++) {
        for (int64_t c = 0; c < e->shape.dim[1]; c++) {
            for (int64_t p = 0; p < hw; p++) {
                const int64_t i = index_of(e, n, c, p, hw);
                ki_real sum = 0;
                for (int k = 0; k < n_parts; k++) sum += ((const ki_real *)parts[k])[i];
                ((ki_real *)dst)[i] = !mask || ((const ki_real *)mask)[i] > 0 ? sum : 0;
            }
        }
    }
    return KITH_OK;
}

static kith_status nhwc_import(ki_backend *backend, const ki_edge *e, void *dst, const ki_real *host,
                               kith_error *err) {
    (void)backend, (void)err;
    turn(e, dst, (ki_real *)(uintptr_t)host, false);
    return KITH_OK;
}

static kith_status nhwc_export(ki_backend *backend, const ki_edge *e, const void *src, ki_real *host,
                               kith_error *err) {
    (void)backend, (void)err;
    turn(e, (void *)(uintptr_t)src, host, true);
    return KITH_OK;
}

/* Memory that nobody wrote must not look like zeros. */
static kith_status nhwc_alloc(ki_backend *backend, size_t bytes, void **ret_ptr, kith_error *err) {
    KI_TRY(((nhwc_backend *)backend)->ref->type->memory.alloc(backend, bytes, ret_ptr, err));
    memset(*ret_ptr, 0xff, bytes);
    return KITH_OK;
}

static nhwc_backend open_nhwc(ki_backend *ref, bool slices, bool merges, bool joins) {
    nhwc_type = *ref->type;
    nhwc_type.name = "nhwc";
    nhwc_type.memory.alloc = nhwc_alloc;
    nhwc_type.memory.import = nhwc_import;
    nhwc_type.memory.export = nhwc_export;
    nhwc_type.kernels.join = nhwc_join;
    nhwc_type.kernels.can_slice_concat = slices;
    nhwc_type.kernels.can_merge_convs = merges;
    for (int i = 0; i < KI_N_OPS; i++) nhwc_of[i] = ref->type->kernels.of[i] ? &nhwc_kernels : NULL;
    nhwc_of[KI_OP_CONV2D] = nhwc_of[KI_OP_BATCH_NORM] = &nhwc_fusing;
    nhwc_type.kernels.of = nhwc_of;
    nhwc_kernels = (ki_kernel_type){.create = nhwc_create,
                                    .bind = nhwc_bind,
                                    .forward = nhwc_forward,
                                    .backward = nhwc_backward,
                                    .free = nhwc_free};
    nhwc_fusing = nhwc_kernels;
    nhwc_fusing.fuses_relu = true;
    return (nhwc_backend){.base = {.type = &nhwc_type}, .ref = ref, .joins = joins};
}

/* ---- the network ---- */

static int conv(ki_graph *g, const char *name, int src, int64_t oc, int64_t k) {
    return ki_graph_conv(
        g, name, src,
        (ki_conv_attr){.oc = oc, .kh = k, .kw = k, .sh = 1, .sw = 1, .ph = k / 2, .pw = k / 2, .bias = true});
}

static int conv_relu(ki_graph *g, const char *name, int src, int64_t oc, int64_t k) {
    return ki_graph_relu(g, conv(g, name, src, oc, k));
}

static int pool(ki_graph *g, const char *name, int src) {
    return ki_graph_pool(g, name, src, (ki_pool_attr){.k = 3, .s = 1, .p = 1});
}

enum { C = 3, H = 9, W = 8, MB = 3, MAP_C = 24 };

/* Blocks: one whose sources all have a ReLU (one mask for all); one with a pool as it is and a batch norm
 * among them (each masks its own); one that cannot be sliced, since a source of it has another consumer;
 * one whose channels are too few; and a residual sum behind a concat, which shares its gradient. */
static void build(ki_graph *g) {
    const ki_bn_attr bn = {.eps = 1e-5, .momentum = 0.1};
    int x = ki_graph_input(g, C, H, W), s[4];
    x = conv_relu(g, "stem", x, 8, 3);
    s[0] = conv_relu(g, "one.a", x, 8, 1);
    s[1] = conv_relu(g, "one.b", conv_relu(g, "one.b_reduce", x, 8, 1), 16, 3);
    s[2] = conv_relu(g, "one.c", pool(g, "one.pool", x), 8, 1);
    x = ki_graph_concat(g, "one", 3, s);
    s[0] = conv_relu(g, "two.a", x, 16, 1);
    s[1] = ki_graph_relu(g, ki_graph_batch_norm(g, "two.bn", conv(g, "two.b", x, 8, 3), bn));
    s[2] = pool(g, "two.pool", x);
    s[3] = conv(g, "two.d", x, 8, 1);
    x = ki_graph_concat(g, "two", 4, s);
    s[0] = conv_relu(g, "three.a", x, 8, 1);
    s[1] = conv_relu(g, "three.b", s[0], 8, 3);
    x = ki_graph_concat(g, "three", 2, s);
    s[0] = conv_relu(g, "four.a", x, 5, 1);
    s[1] = conv_relu(g, "four.b", x, 11, 1);
    x = ki_graph_concat(g, "four", 2, s);
    s[0] = conv_relu(g, "five.a", x, 8, 1);
    s[1] = conv_relu(g, "five.b", x, 8, 1);
    x = ki_graph_concat(g, "five", 2, s);
    const int y = conv(g, "six", x, 16, 1);
    x = ki_graph_add(g, "sum", x, y);
    s[0] = conv_relu(g, "seven.a", x, 8, 1);
    s[1] = conv_relu(g, "seven.b", x, 8, 1);
    x = ki_graph_concat(g, "seven", 2, s);
    /* Three that reduce the same map: two of them, and one before a batch norm, which is another kind. */
    s[0] = conv_relu(g, "eight.a", x, 8, 1);
    s[1] = conv_relu(g, "eight.b", conv_relu(g, "eight.b_reduce", x, 16, 1), 8, 3);
    s[2] = conv_relu(g, "eight.c", conv_relu(g, "eight.c_reduce", x, 8, 1), 8, 3);
    s[3] = ki_graph_relu(g, ki_graph_batch_norm(g, "eight.bn", conv(g, "eight.d", x, 8, 1), bn));
    x = ki_graph_concat(g, "eight", 4, s);
    s[0] = ki_graph_relu(g, ki_graph_batch_norm(g, "nine.bn_a", conv(g, "nine.a", x, 16, 1), bn));
    s[1] = ki_graph_relu(g, ki_graph_batch_norm(g, "nine.bn_b", conv(g, "nine.b", x, 8, 1), bn));
    x = ki_graph_concat(g, "nine", 2, s);
    ki_graph_tap(g, x, "map");
    x = ki_graph_global_pool(g, "gap", x, (ki_global_pool_attr){KI_GLOBAL_AVG});
    ki_graph_tap(g, x, "pooled");
    ki_graph_tap(g, ki_graph_linear(g, "embedding", x, (ki_linear_attr){.oc = 7, .bias = true}), "embedding");
}

enum { N_SLICED = 6, N_CONCATS = 8, N_MERGED = 1 };

typedef struct result {
    ki_real map[MB * MAP_C * H * W], embedding[MB * 7], input_grad[MB * C * H * W];
    ki_real *diffs;
    int64_t n_diffs;
    ki_plan_stats stats;
} result;

static void fill(ki_real *values, uint32_t stream, int64_t n) {
    ki_rng rng = ki_rng_at(3, KI_RNG_TEST, stream, 0);
    for (int64_t i = 0; i < n; i++) values[i] = (ki_real)(ki_rng_double(&rng) - 0.5);
}

/* In the order of the graph, whatever the store's is. */
static void gather_diffs(const ki_graph *graph, const ki_params *params, ki_real *ret) {
    kith_error err;
    for (int i = 0; i < ki_graph_count(graph); i++) {
        const ki_node *node = ki_graph_node(graph, i);
        for (int p = 0; p < node->n_params; p++) {
            if (!node->param[p].trained) continue;
            const ki_param *param = ki_params_find(params, node->param[p].name);
            assert_ok(ki_params_get_diff(params, param, ret, &err), &err);
            ret += param->n;
        }
    }
}

static void run(ki_backend *backend, ki_mode mode, result *ret) {
    kith_error err;
    ki_graph *graph = NULL;
    ki_params *params = NULL;
    ki_plan *plan = NULL;
    const bool train = mode == KI_TRAIN;
    const ki_plan_options options = {.mb = MB,
                                     .mode = mode,
                                     .input_grad = train,
                                     .taps = {"map", "embedding"},
                                     .grad_taps = {train ? "map" : NULL, "embedding"}};
    ki_real input[MB * C * H * W], grad_map[MB * MAP_C * H * W], grad[MB * 7];
    fill(input, 0, N_ROWS(input));
    fill(grad_map, 1, N_ROWS(grad_map));
    fill(grad, 2, N_ROWS(grad));
    assert_ok(ki_graph_new(&graph, &err), &err);
    build(graph);
    assert_ok(ki_params_new(graph, backend, &params, &err), &err);
    assert_ok(ki_params_init(params, 5, &err), &err);
    assert_ok(ki_plan_new(graph, params, backend, &options, &plan, &err), &err);
    for (int i = 0; i < 2; i++) { /* twice: the second step must not see the first */
        assert_ok(ki_params_zero_diffs(params, &err), &err);
        assert_ok(ki_plan_set_input(plan, input, &err), &err);
        assert_ok(ki_plan_forward(plan, &err), &err);
        if (!train) continue;
        assert_ok(ki_plan_set_grad(plan, "map", grad_map, &err), &err);
        assert_ok(ki_plan_set_grad(plan, "embedding", grad, &err), &err);
        assert_ok(ki_plan_backward(plan, &err), &err);
    }
    assert_ok(ki_plan_read(plan, "map", ret->map, &err), &err);
    assert_ok(ki_plan_read(plan, "embedding", ret->embedding, &err), &err);
    ki_plan_stats_get(plan, &ret->stats);
    ret->n_diffs = train ? ki_params_trained_n(params) : 0;
    ret->diffs = calloc((size_t)(ret->n_diffs + 1), sizeof *ret->diffs);
    if (train) {
        assert_ok(ki_plan_read_input_grad(plan, ret->input_grad, &err), &err);
        gather_diffs(graph, params, ret->diffs);
    }
    ki_plan_free(plan);
    ki_params_free(params);
    ki_graph_free(graph);
}

static void same(const char *what, const ki_real *found, const ki_real *wanted, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (!(found[i] == wanted[i]))
            fail_msg("%s[%lld] is %.9g, wanted %.9g", what, (long long)i, (double)found[i],
                     (double)wanted[i]);
    }
}

/* Merged convolutions sum over all their channels before they round: no bits there. */
static void alike(bool exact, const char *what, const ki_real *found, const ki_real *wanted, int64_t n) {
    if (exact) {
        same(what, found, wanted, n);
        return;
    }
    const double off = testing_relative_l2(found, wanted, n);
    if (!(off < 1e-6)) fail_msg("%s is off by %g", what, off);
}

static int check(ki_mode mode, int n_concat_kernels, bool slices, bool merges, bool joins) {
    kith_error err;
    ki_backend *ref = NULL;
    result *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b), *c = calloc(1, sizeof *c);
    assert_ok(ki_backend_open("ref", 0, &ref, &err), &err);
    nhwc_backend nhwc = open_nhwc(ref, slices, merges, joins), plain = open_nhwc(ref, slices, merges, joins);
    plain.base.options.plain_plan = true;
    run(ref, mode, a);
    run(&nhwc.base, mode, b);
    assert_int_equal(nhwc.n_concats, n_concat_kernels);
    alike(true, "map", b->map, a->map, N_ROWS(a->map));
    alike(true, "embedding", b->embedding, a->embedding, N_ROWS(a->embedding));
    assert_int_equal(a->n_diffs, b->n_diffs);
    alike(!merges, "parameter gradients", b->diffs, a->diffs, a->n_diffs);
    if (mode == KI_TRAIN)
        alike(!merges, "input gradient", b->input_grad, a->input_grad, N_ROWS(a->input_grad));
    assert_true(b->stats.unshared_bytes < a->stats.unshared_bytes);
    assert_true(b->stats.forward_flops == a->stats.forward_flops);
    /* Told to plan plainly, the same backend does neither. */
    run(&plain.base, mode, c);
    assert_int_equal(plain.n_concats, N_CONCATS);
    /* Where the norms of block nine become one behind its concat, its convolutions stay apart. */
    assert_int_equal(plain.n_convs - nhwc.n_convs, !merges ? 0 : slices ? N_MERGED : N_MERGED + 1);
    assert_int_equal(plain.n_norms - nhwc.n_norms, merges && slices ? 1 : 0);
    same("parameter gradients of a plain plan", c->diffs, a->diffs, a->n_diffs);
    free(c->diffs);
    free(c);
    free(a->diffs);
    free(b->diffs);
    free(a);
    free(b);
    ki_backend_close(ref);
    return nhwc.n_joins;
}

/* The judge itself: without slices it must agree too. */
static void test_copies(void **state) {
    (void)state;
    check(KI_TRAIN, N_CONCATS, false, false, false);
}

static void test_training(void **state) {
    (void)state;
    check(KI_TRAIN, N_CONCATS - N_SLICED, true, false, false);
}

static void test_inference(void **state) {
    (void)state;
    check(KI_INFER, N_CONCATS - N_SLICED, true, false, false);
}

/* Convolutions that sum the parts of their gradient themselves get the parts of their concat's. */
static void test_joining_kernels(void **state) {
    (void)state;
    const int by_slices = check(KI_TRAIN, N_CONCATS - N_SLICED, true, false, true);
    const int by_copies = check(KI_TRAIN, N_CONCATS, false, false, true);
    if (!(by_slices < by_copies)) fail_msg("%d joins with slices, %d without", by_slices, by_copies);
    check(KI_TRAIN, N_CONCATS - N_SLICED, true, true, true);
}

/* The gradient of parameter `name` after a step on a backend of our own. */
static double bias_gradient(bool skips, const char *name) {
    kith_error err;
    ki_backend *ref = NULL;
    ki_graph *graph = NULL;
    ki_params *params = NULL;
    ki_plan *plan = NULL;
    assert_ok(ki_backend_open("ref", NULL, &ref, &err), &err);
    nhwc_backend nhwc = open_nhwc(ref, true, true, true);
    nhwc_type.kernels.skips_lost_biases = skips;
    assert_ok(ki_graph_new(&graph, &err), &err);
    build(graph);
    assert_ok(ki_params_new(graph, &nhwc.base, &params, &err), &err);
    assert_ok(ki_params_init(params, 5, &err), &err);
    const ki_plan_options options = {.mb = MB, .mode = KI_TRAIN, .grad_taps = {"embedding"}};
    assert_ok(ki_plan_new(graph, params, &nhwc.base, &options, &plan, &err), &err);
    ki_real input[MB * C * H * W], grad[MB * 7], diff[64];
    fill(input, 0, N_ROWS(input));
    fill(grad, 2, N_ROWS(grad));
    assert_ok(ki_plan_set_input(plan, input, &err), &err);
    assert_ok(ki_plan_forward(plan, &err), &err);
    assert_ok(ki_plan_set_grad(plan, "embedding", grad, &err), &err);
    assert_ok(ki_plan_backward(plan, &err), &err);
    const ki_param *param = ki_params_find(params, name);
    assert_true(param && param->n <= (int64_t)N_ROWS(diff));
    assert_ok(ki_params_get_diff(params, param, diff, &err), &err);
    double norm = 0;
    for (int64_t i = 0; i < param->n; i++) norm += (double)diff[i] * (double)diff[i];
    ki_plan_free(plan);
    ki_params_free(params);
    ki_graph_free(graph);
    ki_backend_close(ref);
    return sqrt(norm);
}

/* Before a batch norm with its batch's statistics a bias has no gradient but rounding, alone or merged; with
 * a ReLU in between it has. */
static void test_lost_biases(void **state) {
    (void)state;
    static const char *const lost[] = {"two.b.bias", "eight.d.bias", "nine.a.bias", "nine.b.bias"};
    for (size_t i = 0; i < N_ROWS(lost); i++) {
        const double summed = bias_gradient(false, lost[i]), skipped = bias_gradient(true, lost[i]);
        if (!(summed < 1e-5)) fail_msg("%s has a gradient of %g, which is no rounding", lost[i], summed);
        if (skipped != 0) fail_msg("%s has a gradient of %g, wanted none", lost[i], skipped);
    }
    assert_true(bias_gradient(true, "eight.b_reduce.bias") == bias_gradient(false, "eight.b_reduce.bias"));
    assert_true(bias_gradient(true, "eight.b_reduce.bias") > 1e-5);
}

static void test_merged(void **state) {
    (void)state;
    check(KI_TRAIN, N_CONCATS - N_SLICED, true, true, false);
    check(KI_INFER, N_CONCATS - N_SLICED, true, true, false);
    check(KI_TRAIN, N_CONCATS, false, true, false);
}

/* Gradients written where the plan keeps them count like those given from the host. */
static void test_memory_of_taps(void **state) {
    (void)state;
    kith_error err;
    ki_backend *ref = NULL;
    ki_graph *graph = NULL;
    ki_params *params = NULL;
    ki_plan *plan = NULL;
    uint64_t step = 7;
    const ki_plan_options options = {
        .mb = MB, .mode = KI_TRAIN, .grad_taps = {"map", "embedding"}, .step = &step};
    ki_real input[MB * C * H * W], grad[MB * 7], read[MB * 7];
    fill(input, 0, N_ROWS(input));
    fill(grad, 2, N_ROWS(grad));
    assert_ok(ki_backend_open("ref", 0, &ref, &err), &err);
    assert_ok(ki_graph_new(&graph, &err), &err);
    build(graph);
    assert_ok(ki_params_new(graph, ref, &params, &err), &err);
    assert_ok(ki_plan_new(graph, params, ref, &options, &plan, &err), &err);
    ki_edge edge;
    void *at = NULL;
    assert_ok(ki_plan_input_memory(plan, &edge, &at, &err), &err);
    assert_int_equal(edge.bytes, sizeof input);
    memcpy(at, input, sizeof input);
    assert_ok(ki_plan_forward(plan, &err), &err);
    assert_ok(ki_plan_tap_memory(plan, "embedding", &edge, &at, &err), &err);
    assert_ok(ki_plan_read(plan, "embedding", read, &err), &err);
    assert_memory_equal(at, read, sizeof read);
    assert_ok(ki_plan_set_grad(plan, "embedding", grad, &err), &err);
    assert_ok(ki_plan_backward(plan, &err), &err);
    const int64_t n = ki_params_trained_n(params);
    ki_real *wanted = malloc((size_t)n * sizeof *wanted);
    memcpy(wanted, ki_params_diffs(params), (size_t)n * sizeof *wanted);

    assert_int_equal(ki_plan_grad_memory(plan, "pooled", &edge, &at, &err), KITH_ENOTFOUND);
    assert_ok(ki_plan_grad_memory(plan, "embedding", &edge, &at, &err), &err);
    for (int i = 0; i < 2; i++) { /* it counts in every backward, not only in the next */
        assert_ok(ki_params_zero_diffs(params, &err), &err);
        assert_ok(ki_plan_forward(plan, &err), &err);
        memcpy(at, grad, sizeof grad);
        assert_ok(ki_plan_backward(plan, &err), &err);
    }
    same("parameter gradients", ki_params_diffs(params), wanted, n);
    free(wanted);
    ki_plan_free(plan);
    ki_params_free(params);
    ki_graph_free(graph);
    ki_backend_close(ref);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),          cmocka_unit_test(test_training),
        cmocka_unit_test(test_inference),       cmocka_unit_test(test_merged),
        cmocka_unit_test(test_joining_kernels), cmocka_unit_test(test_lost_biases),
        cmocka_unit_test(test_memory_of_taps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
