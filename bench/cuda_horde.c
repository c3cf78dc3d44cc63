/* What HORDE costs on the device: an objective with and without it, captured and run again and again, and its
 * parts alone. Then bf16 against float32 at the same sizes.
 *
 *   cuda_horde [batch 80] [channels 1024] [side 7] [dimension 8192] [orders 5] [embedding 512] [steps 50]
 *
 * Built with CUDA alone (cmake --preset cuda). */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/cuda.h"
#include "backend/cuda/gemm/gemm.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "io/yaml.h"
#include "objective/cuda/moments.h"
#include "objective/engine.h"

typedef struct sizes {
    int64_t m, c, side, dim, orders, embedding, steps;
} sizes;

static void must(kith_status status, const kith_error *err) {
    if (status == KITH_OK) return;
    fprintf(stderr, "cuda_horde: %s\n", err->message);
    exit(status == KITH_EUNSUPPORTED ? 77 : 1);
}

static void *device(ki_backend *backend, size_t bytes) {
    void *ptr = NULL;
    kith_error err = {0};
    must(backend->type->memory.alloc(backend, bytes, &ptr, &err), &err);
    return ptr;
}

/* Milliseconds of one call, of a captured graph of it when it may be captured: the median of five rounds. */
typedef kith_status (*call)(void *context, kith_error *err);

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double time_of(ki_backend *backend, call fn, void *context, int64_t steps) {
    kith_error err = {0};
    void *graph = NULL;
    double round[5];
    must(fn(context, &err), &err);
    must(backend->type->memory.sync(backend, &err), &err);
    must(backend->type->recording.begin(backend, &err), &err);
    must(fn(context, &err), &err);
    must(backend->type->recording.end(backend, &graph, &err), &err);
    for (int r = 0; r < 5; r++) {
        must(backend->type->recording.launch(backend, graph, &err), &err);
        must(backend->type->memory.sync(backend, &err), &err);
        const double start = ki_seconds_now();
        for (int64_t i = 0; i < steps; i++) must(backend->type->recording.launch(backend, graph, &err), &err);
        must(backend->type->memory.sync(backend, &err), &err);
        round[r] = 1e3 * (ki_seconds_now() - start) / (double)steps;
    }
    backend->type->recording.free(backend, graph);
    qsort(round, 5, sizeof round[0], by_size);
    return round[2];
}

/* An objective and its engine on random taps. */
typedef struct bench {
    ki_backend *backend;
    ki_arena arena;
    ki_objective *objective;
    ki_engine *engine;
    ki_engine_batch in;
} bench;

static kith_status evaluate(void *context, kith_error *err) {
    bench *b = context;
    KI_TRY(ki_engine_of(b->backend)->clear_diffs(b->engine, err));
    return ki_engine_of(b->backend)->evaluate(b->engine, err);
}

static float *random_reals(int64_t n, uint32_t stream, double least) {
    ki_rng rng = ki_rng_at(3, KI_RNG_TEST, stream, 0);
    float *v = ki_alloc((size_t)n, sizeof *v);
    for (int64_t i = 0; i < n; i++) {
        /* Two uniform numbers are normal enough, and quick. */
        const double u = 2 * ((double)ki_rng_float(&rng) + (double)ki_rng_float(&rng) - 1);
        v[i] = (float)fmax(least, u);
    }
    return v;
}

static bench bench_open(ki_backend *backend, const sizes *s, const char *recipe) {
    bench b = {.backend = backend};
    kith_error err = {0};
    ki_value *root = NULL;
    const ki_sizes known = {.n_classes = 100, .embedding = 512, .pooled = s->c, .map = s->c};
    must(ki_yaml_parse(recipe, strlen(recipe), "recipe", &b.arena, &root, &err), &err);
    must(ki_objective_new(root, &known, 7, &b.objective, &err), &err);
    const ki_backend_type *type = backend->type;
    int32_t *label = ki_alloc((size_t)s->m, sizeof *label);
    const uint64_t step = 1;
    for (int64_t i = 0; i < s->m; i++) label[i] = (int32_t)(i / 10 % 100);
    void *device_label = device(backend, (size_t)s->m * sizeof *label), *device_step = device(backend, 8);
    must(type->memory.upload(backend, device_label, label, (size_t)s->m * sizeof *label, &err), &err);
    must(type->memory.upload(backend, device_step, &step, sizeof step, &err), &err);
    b.in.label = device_label;
    b.in.step = device_step;
    for (ki_tap tap = KI_TAP_MAP; tap <= KI_TAP_EMBEDDING; tap++) {
        if (!(ki_objective_taps(b.objective) & KI_TAP_BIT(tap))) continue;
        ki_edge edge = {.shape = tap == KI_TAP_MAP ? KI_SHAPE4(s->m, s->c, s->side, s->side)
                                                   : KI_SHAPE2(s->m, tap == KI_TAP_POOLED ? s->c : 512),
                        .layout = tap == KI_TAP_MAP ? KI_NATIVE : KI_PLAIN};
        edge.bytes = type->memory.edge_bytes(backend, &edge.shape, edge.layout);
        float *host = random_reals(ki_shape_count(&edge.shape), (uint32_t)tap, tap == KI_TAP_MAP ? 0 : -9);
        void *data = device(backend, edge.bytes);
        must(type->memory.import(backend, &edge, data, host, &err), &err);
        must(type->memory.sync(backend, &err), &err);
        ki_free(host);
        b.in.tap[tap] = data;
        b.in.tap_edge[tap] = edge;
        b.in.diff[tap] = device(backend, edge.bytes);
    }
    must(type->memory.sync(backend, &err), &err);
    ki_free(label);
    if (!ki_engine_of(backend)) {
        fprintf(stderr, "cuda_horde: this device has no engine\n");
        exit(77);
    }
    must(ki_engine_of(backend)->open(backend, b.objective, &b.in, s->m, &b.engine, &err), &err);
    return b;
}

static void bench_close(bench *b) {
    ki_engine_of(b->backend)->close(b->engine);
    ki_objective_free(b->objective);
    ki_arena_release(&b->arena);
    b->backend->type->memory.free(b->backend, (void *)(uintptr_t)b->in.label);
    b->backend->type->memory.free(b->backend, (void *)(uintptr_t)b->in.step);
    for (int tap = 0; tap < KI_N_TAPS; tap++) {
        b->backend->type->memory.free(b->backend, (void *)(uintptr_t)b->in.tap[tap]);
        b->backend->type->memory.free(b->backend, b->in.diff[tap]);
    }
}

static void horde_recipe(const sizes *s, char *text, size_t bytes) {
    snprintf(text, bytes,
             "loss: {name: binomial}\n"
             "regularizers: [{name: horde, orders: %d, dimension: %d, embedding: %d}]",
             (int)s->orders, (int)s->dim, (int)s->embedding);
}

/* One large product of HORDE by itself. */
typedef struct part {
    ki_backend *backend;
    bool ta, tb;
    int64_t m, n, k, lda, ldb, ldc;
    ki_number c_type;
    float beta;
    void *a, *b, *c;
} part;

static kith_status run_part(void *context, kith_error *err) {
    const part *p = context;
    return ki_cuda_gemm(p->backend, p->ta, p->tb, p->m, p->n, p->k, 1, p->a, KI_NUMBER_BF16, p->lda, p->b,
                        p->ldb, p->beta, p->c, p->c_type, p->ldc, err);
}

typedef struct passes {
    ki_cuda_moments moments;
    float *diff_g[KI_HORDE_MOST_ORDERS + 1], *diff_w[KI_MOST_PROJECTIONS];
    void *diff_f;
    ki_cuda_pack pack;
    bool is_back;
} passes;

static kith_status run_forward(void *context, kith_error *err) {
    const passes *p = context;
    return ki_cuda_moments_forward(&p->moments, err);
}

static kith_status run_both(void *context, kith_error *err) {
    const passes *p = context;
    KI_TRY(ki_cuda_moments_forward(&p->moments, err));
    return ki_cuda_moments_backward(&p->moments, p->diff_g, p->moments.padded, p->diff_w, false, p->diff_f,
                                    p->moments.c, err);
}

static kith_status run_pack(void *context, kith_error *err) {
    const passes *p = context;
    KI_CUDA(ki_cuda_product_pack(&p->pack, true, p->moments.packed, p->moments.stream));
    return KITH_OK;
}

static kith_status run_kernel(void *context, kith_error *err) {
    const passes *p = context;
    ki_cuda_chain chain = p->moments.chain[0];
    chain.width = p->moments.padded;
    chain.pitch = p->moments.n_w * p->moments.padded;
    chain.p = p->moments.p;
    chain.diff_p = p->moments.diff_p;
    chain.g_pitch = p->moments.padded;
    for (int k = 2; k <= p->moments.orders; k++) chain.g[k] = p->is_back ? p->diff_g[k] : p->moments.g[k];
    if (p->is_back)
        KI_CUDA(ki_cuda_product_back(&chain, p->moments.stream));
    else
        KI_CUDA(ki_cuda_product_pool(&chain, p->moments.stream));
    return KITH_OK;
}

static void report(const char *what, double ms, double gflop, double gigabytes) {
    printf("  %-34s %8.3f ms", what, ms);
    if (gflop > 0) printf("  %7.0f TFLOP/s", gflop / ms);
    if (gigabytes > 0) printf("  %7.0f GB/s", gigabytes / ms * 1e3);
    printf("\n");
}

/* The parts that the positions pass through, cascaded and in one block. */
static void time_parts(ki_backend *backend, const sizes *s) {
    kith_error err = {0};
    const int64_t rows = s->m * s->side * s->side;
    passes p = {.moments = {.backend = backend,
                            .stream = ki_cuda_of(backend)->stream,
                            .m = s->m,
                            .hw = s->side * s->side,
                            .c = s->c,
                            .dim = s->dim,
                            .orders = (int)s->orders,
                            .cascaded = true,
                            .f_pitch = s->c,
                            .type = KI_NUMBER_BF16,
                            .most_bytes = (size_t)8 << 30}};
    ki_cuda_scratch scratch = {0};
    ki_cuda_moments_place(&p.moments, &scratch);
    scratch = (ki_cuda_scratch){.base = device(backend, scratch.used)};
    ki_cuda_moments_place(&p.moments, &scratch);
    const ki_edge edge = {.shape = KI_SHAPE4(s->m, s->c, s->side, s->side), .layout = KI_NATIVE};
    float *map = random_reals(rows * s->c, 5, 0), *w = random_reals(s->c * s->dim, 6, -9);
    void *f = device(backend, (size_t)(rows * s->c) * 2);
    must(backend->type->memory.import(backend, &edge, f, map, &err), &err);
    p.moments.f = f;
    p.diff_f = device(backend, (size_t)(rows * s->c) * 2);
    const size_t w_bytes = (size_t)(s->c * s->dim) * sizeof *w;
    float *all_w = device(backend, w_bytes * (size_t)s->orders * 2);
    p.pack = (ki_cuda_pack){.n = (int)s->orders,
                            .rows = s->c,
                            .dim = s->dim,
                            .padded = p.moments.padded,
                            .block = p.moments.padded};
    for (int t = 0; t < (int)s->orders; t++) {
        float *at = all_w + (int64_t)t * s->c * s->dim;
        must(backend->type->memory.upload(backend, at, w, w_bytes, &err), &err);
        p.moments.w[t] = p.pack.src[t] = at;
        p.diff_w[t] = at + s->orders * s->c * s->dim;
    }
    must(backend->type->memory.sync(backend, &err), &err);
    float *slopes = random_reals(s->m * p.moments.padded, 7, -9);
    const size_t g_bytes = (size_t)(s->m * p.moments.padded) * sizeof *slopes;
    for (int k = 2; k <= (int)s->orders; k++) {
        p.diff_g[k] = device(backend, g_bytes);
        must(backend->type->memory.upload(backend, p.diff_g[k], slopes, g_bytes, &err), &err);
    }
    must(backend->type->memory.sync(backend, &err), &err);
    ki_free(slopes);
    const int64_t n = s->orders * p.moments.padded;
    const double gflop = 2e-9 * (double)rows * (double)s->c * (double)n,
                 gigabytes = 4e-9 * (double)rows * (double)n;
    const double w_gigabytes = 6e-9 * (double)s->c * (double)n;
    report("pack the projections", time_of(backend, run_pack, &p, s->steps), 0, w_gigabytes);
    part forward = {backend,          false,      false, rows, n, s->c, s->c, n, n, KI_NUMBER_FLOAT, 0, f,
                    p.moments.packed, p.moments.p};
    report("project: f W", time_of(backend, run_part, &forward, s->steps), gflop, 0);
    report("multiply and pool", time_of(backend, run_kernel, &p, s->steps), 0, gigabytes);
    const double forward_ms = time_of(backend, run_forward, &p, s->steps);
    p.is_back = true;
    report("back to the projected positions", time_of(backend, run_kernel, &p, s->steps), 0, 1.5 * gigabytes);
    part by_w = {
        backend,          true,       false, s->c, s->dim, rows, s->c, n, s->dim, KI_NUMBER_FLOAT, 1, f,
        p.moments.diff_p, p.diff_w[0]};
    report("dL/dW of one order", time_of(backend, run_part, &by_w, s->steps), gflop / (double)s->orders, 0);
    part by_f = {
        backend,          false,   true, rows, s->c, n, n, n, s->c, KI_NUMBER_BF16, 0, p.moments.diff_p,
        p.moments.packed, p.diff_f};
    report("dL/df", time_of(backend, run_part, &by_f, s->steps), gflop, 0);
    report("all moments", forward_ms, gflop, 0);
    report("all moments and back", time_of(backend, run_both, &p, s->steps), 3 * gflop, 0);
    ki_free(map);
    ki_free(w);
    for (int k = 2; k <= (int)s->orders; k++) backend->type->memory.free(backend, p.diff_g[k]);
    void *all[] = {scratch.base, f, p.diff_f, all_w};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) backend->type->memory.free(backend, all[i]);
}

static double distance(ki_backend *a_on, const float *a, ki_backend *b_on, const float *b, int64_t n) {
    kith_error err = {0};
    float *x = ki_alloc((size_t)n, sizeof *x), *y = ki_alloc((size_t)n, sizeof *y);
    must(a_on->type->memory.download(a_on, a, x, (size_t)n * sizeof *x, &err), &err);
    must(b_on->type->memory.download(b_on, b, y, (size_t)n * sizeof *y, &err), &err);
    must(a_on->type->memory.sync(a_on, &err), &err);
    must(b_on->type->memory.sync(b_on, &err), &err);
    double off = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        off += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        size += (double)y[i] * (double)y[i];
    }
    ki_free(x);
    ki_free(y);
    return sqrt(off / size);
}

static void compare(ki_backend *half, ki_backend *single, const sizes *s, const char *recipe) {
    kith_error err = {0};
    bench a = bench_open(half, s, recipe), b = bench_open(single, s, recipe);
    ki_engine_values x, y;
    must(evaluate(&a, &err), &err);
    must(evaluate(&b, &err), &err);
    must(ki_engine_of(half)->read(a.engine, &x, &err), &err);
    must(ki_engine_of(single)->read(b.engine, &y, &err), &err);
    printf("  value %.6f, in float32 %.6f\n", x.term[1].value, y.term[1].value);
    ki_engine_param p, q;
    for (size_t i = 0; ki_engine_of(half)->param_at(a.engine, i, &p); i++) {
        ki_engine_of(single)->param_at(b.engine, i, &q);
        if (p.diff) printf("  %-12s relative L2 %.2e\n", p.name, distance(half, p.diff, single, q.diff, p.n));
    }
    printf("  float32 objective with HORDE %.3f ms\n", time_of(single, evaluate, &b, 3));
    bench_close(&a);
    bench_close(&b);
}

int main(int argc, char **argv) {
    sizes s = {80, 1024, 7, 8192, 5, 512, 50};
    int64_t *const given[] = {&s.m, &s.c, &s.side, &s.dim, &s.orders, &s.embedding, &s.steps};
    for (int i = 1; i < argc && i <= 7; i++) *given[i - 1] = strtoll(argv[i], NULL, 10);
    kith_error err = {0};
    ki_backend *half = NULL, *single = NULL;
    const ki_backend_options options = {.precision = KI_BF16};
    must(ki_backend_open("cuda", &options, &half, &err), &err);
    must(ki_backend_open("cuda", NULL, &single, &err), &err);
    printf("batch %lld, map %lld x %lld x %lld, %lld orders of %lld, embeddings of %lld, bf16\n",
           (long long)s.m, (long long)s.c, (long long)s.side, (long long)s.side, (long long)s.orders,
           (long long)s.dim, (long long)s.embedding);
    char recipe[256];
    size_t before = 0, after = 0, total = 0;
    bench plain = bench_open(half, &s, "loss: {name: binomial}");
    const double without = time_of(half, evaluate, &plain, s.steps);
    bench_close(&plain);
    horde_recipe(&s, recipe, sizeof recipe);
    if (cudaMemGetInfo(&before, &total) != cudaSuccess) before = 0;
    bench horde = bench_open(half, &s, recipe);
    const double with = time_of(half, evaluate, &horde, s.steps);
    if (cudaMemGetInfo(&after, &total) != cudaSuccess) after = before;
    bench_close(&horde);
    report("objective without HORDE", without, 0, 0);
    report("objective with HORDE", with, 0, 0);
    printf("  memory with HORDE                  %8.0f MB\n", (double)(before - after) / 1e6);
    printf("parts:\n");
    time_parts(half, &s);
    printf("bf16 against float32:\n");
    compare(half, single, &s, recipe);
    ki_backend_close(half);
    ki_backend_close(single);
    return 0;
}
