/* How fast the hand-written CUDA kernels move their bytes, at the maps of GoogLeNet, BN-Inception and ResNet-50, and at the
 * tokens and maps of ViT-S, ViT-B and ConvNeXt-T.
 *
 *   cmake --preset cuda && cmake --build build/cuda --target cuda_kernels
 *   build/cuda/cuda_kernels [batch [bf16|float32 [bn|rows]]]      (batch norms or rows only)
 *
 * Prints per kernel and map: the fewest bytes it must move, microseconds, GB/s, and the part of what a copy inside the
 * device reaches; then sums over all layers of a network. Batch norms of batch statistics are timed three times: in two
 * launches, in one, and as the library chooses; GB/s is of the choice, `kept` the part of the map that one launch keeps
 * on the chip. Each figure is the median of 7 replays of a graph of
 * calls, over as many sets of buffers as fill the device's cache several times. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/conv/kernels.h"
#include "backend/cuda/cuda.h"
#include "backend/cuda/norm/kernels.h"
#include "backend/cuda/optim/optim.h"
#include "backend/cuda/pool/kernels.h"
#include "device/op.h"

enum { REPEATS = 7, MAX_SETS = 64 };

static ki_backend *backend;
static cudaStream_t stream;
static char *arena; /* device memory: every set lies in it */
static size_t arena_bytes;
static double copy_rate = 1; /* bytes per second */
static int64_t batch = 128;
static bool is_bf16 = true;
static float *params; /* [16, 4096] */
static float *scratch;
static double total_seconds, total_bytes;

static void check(cudaError_t error, const char *what) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "cuda_kernels: %s: %s\n", what, cudaGetErrorString(error));
    exit(1);
}
#define CHECK(call) check((call), #call)

typedef struct job job;
struct job {
    cudaError_t (*run)(const job *job, char *set);
    size_t set_bytes;
    double bytes; /* the fewest */
    int64_t n, c, pitch;
    ki_cuda_pool_args pool;
    int64_t mb, hw;
    bool has_relu, is_frozen;
    ki_cuda_bn_way way;
    int n_parts;
};

static int by_size(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

/* Seconds of one call. */
static double time_job(const job *j) {
    const size_t set = (j->set_bytes + 255) / 256 * 256;
    int n_sets = (int)((size_t)400000000 / set) + 1;
    if (n_sets > MAX_SETS) n_sets = MAX_SETS;
    if ((size_t)n_sets * set > arena_bytes) n_sets = (int)(arena_bytes / set);
    if (n_sets < 1) {
        fprintf(stderr, "cuda_kernels: a set of %zu bytes does not fit\n", set);
        exit(1);
    }
    const int n_calls = n_sets < 8 ? 8 : n_sets;
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    cudaEvent_t begin, end;
    CHECK(j->run(j, arena));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < n_calls; i++) CHECK(j->run(j, arena + (size_t)(i % n_sets) * set));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&replay, graph, 0));
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaGraphLaunch(replay, stream));
    float ms[REPEATS];
    for (int r = 0; r < REPEATS; r++) {
        CHECK(cudaEventRecord(begin, stream));
        CHECK(cudaGraphLaunch(replay, stream));
        CHECK(cudaEventRecord(end, stream));
        CHECK(cudaEventSynchronize(end));
        CHECK(cudaEventElapsedTime(&ms[r], begin, end));
    }
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    CHECK(cudaGraphExecDestroy(replay));
    CHECK(cudaGraphDestroy(graph));
    qsort(ms, REPEATS, sizeof ms[0], by_size);
    return (double)ms[REPEATS / 2] / 1000 / n_calls;
}

static void report(const char *kernel, const char *map, const job *j) {
    const double seconds = time_job(j);
    total_seconds += seconds;
    total_bytes += j->bytes;
    printf("%-28s %-22s %8.1f MB %8.1f us %7.0f GB/s %5.0f %%\n", kernel, map, j->bytes / 1e6, seconds * 1e6,
           j->bytes / seconds / 1e9, 100 * j->bytes / seconds / copy_rate);
}

static size_t element(void) { return is_bf16 ? 2 : 4; }
static size_t map_bytes(int64_t n, int64_t pitch) { return (size_t)(n * pitch) * element(); }
static float *param(int i) { return params + i * 4096; }

/* Batch norm: a set is src, dst, diff_dst, diff_src. */
static ki_cuda_bn_args bn_of(const job *j, char *set) {
    const size_t map = map_bytes(j->n, j->pitch);
    return (ki_cuda_bn_args){.way = j->way,
                             .is_bf16 = is_bf16,
                             .has_relu = j->has_relu,
                             .is_frozen = j->is_frozen,
                             .n_processors = ki_cuda_of(backend)->n_processors,
                             .n = j->n,
                             .c = j->c,
                             .src_pitch = j->c,
                             .dst_pitch = j->pitch,
                             .eps = 1e-5f,
                             .momentum = 0.1f,
                             .src = set,
                             .dst = set + map,
                             .n_parts = 1,
                             .diff_dst = {set + map},
                             .diff_src = set + 2 * map,
                             .gamma = param(0),
                             .beta = param(1),
                             .mean = param(2),
                             .var = param(3),
                             .diff_gamma = param(4),
                             .diff_beta = param(5),
                             .saved = param(6),
                             .scratch = scratch,
                             .counters = ki_cuda_of(backend)->counters};
}
static cudaError_t run_bn_forward(const job *j, char *set) {
    const ki_cuda_bn_args bn = bn_of(j, set);
    return ki_cuda_bn_forward(stream, &bn);
}
static cudaError_t run_bn_backward(const job *j, char *set) {
    const ki_cuda_bn_args bn = bn_of(j, set);
    return ki_cuda_bn_backward(stream, &bn);
}

/* With the sum of a residual block behind: a set is src, other, dst, two parts, diff_src, diff_other. */
static ki_cuda_bn_args bn_add_of(const job *j, char *set) {
    const size_t map = map_bytes(j->n, j->pitch);
    ki_cuda_bn_args bn = bn_of(j, set);
    bn.has_add = true;
    bn.n_parts = 2;
    bn.other = set + map;
    bn.other_pitch = j->c;
    bn.dst = set + 2 * map;
    bn.diff_dst[0] = set + 3 * map;
    bn.diff_dst[1] = set + 4 * map;
    bn.diff_src = set + 5 * map;
    bn.diff_other = set + 6 * map;
    return bn;
}
static cudaError_t run_bn_add_forward(const job *j, char *set) {
    const ki_cuda_bn_args bn = bn_add_of(j, set);
    return ki_cuda_bn_forward(stream, &bn);
}
static cudaError_t run_bn_add_backward(const job *j, char *set) {
    const ki_cuda_bn_args bn = bn_add_of(j, set);
    return ki_cuda_bn_backward(stream, &bn);
}

static cudaError_t run_sum(const job *j, char *set) {
    const size_t map = map_bytes(j->n, j->pitch);
    const void *part[8];
    int64_t pitch[8];
    for (int i = 0; i < j->n_parts; i++) part[i] = set + (size_t)i * map, pitch[i] = j->pitch;
    return ki_cuda_sum(stream, is_bf16, j->n, j->c, j->n_parts, part, pitch,
                       j->has_relu ? NULL : set + (size_t)j->n_parts * map, j->pitch, j->has_relu,
                       set + (size_t)(j->n_parts + 1) * map, j->pitch);
}
static ki_cuda_lrn_args lrn_of(const job *j, char *set) {
    const size_t map = map_bytes(j->n, j->pitch);
    return (ki_cuda_lrn_args){.is_bf16 = is_bf16,
                              .size = 5,
                              .alpha = 1e-4f,
                              .beta = 0.75f,
                              .k = 1,
                              .n = j->n,
                              .c = j->c,
                              .src_pitch = j->pitch,
                              .dst_pitch = j->pitch,
                              .src = set,
                              .dst = set + map,
                              .diff_dst = set + map,
                              .diff_src = set + 2 * map};
}
static cudaError_t run_lrn_forward(const job *j, char *set) {
    const ki_cuda_lrn_args lrn = lrn_of(j, set);
    return ki_cuda_lrn_forward(stream, &lrn);
}
static cudaError_t run_lrn_backward(const job *j, char *set) {
    const ki_cuda_lrn_args lrn = lrn_of(j, set);
    return ki_cuda_lrn_backward(stream, &lrn);
}
static ki_cuda_pool_args pool_of(const job *j, char *set) {
    ki_cuda_pool_args p = j->pool;
    const size_t src = map_bytes(p.mb * p.ih * p.iw, p.c), dst = map_bytes(p.mb * p.oh * p.ow, p.c);
    p.src = set;
    p.dst = set + src;
    p.diff_dst = p.dst;
    p.diff_src = set + src + dst;
    p.place = p.average ? NULL : (uint8_t *)set + 2 * src + dst;
    return p;
}
static cudaError_t run_pool_forward(const job *j, char *set) {
    const ki_cuda_pool_args p = pool_of(j, set);
    return ki_cuda_pool_forward(stream, &p);
}
static cudaError_t run_pool_backward(const job *j, char *set) {
    const ki_cuda_pool_args p = pool_of(j, set);
    return ki_cuda_pool_backward(stream, &p);
}
static ki_cuda_global_args global_of(const job *j, char *set) {
    return (ki_cuda_global_args){.is_bf16 = is_bf16,
                                 .has_average = true,
                                 .mb = j->mb,
                                 .c = j->c,
                                 .hw = j->hw,
                                 .pitch = j->c,
                                 .src = set,
                                 .dst = scratch,
                                 .diff_dst = scratch,
                                 .diff_src = set};
}
static cudaError_t run_global_forward(const job *j, char *set) {
    const ki_cuda_global_args g = global_of(j, set);
    return ki_cuda_global_forward(stream, &g);
}
static cudaError_t run_global_backward(const job *j, char *set) {
    const ki_cuda_global_args g = global_of(j, set);
    return ki_cuda_global_backward(stream, &g);
}
static ki_optim_clock *clock_memory;
static cudaError_t run_adam(const job *j, char *set) {
    kith_error err;
    ki_optim_run run[100];
    const int64_t each = j->n / 100 / 4 * 4;
    float *x = (float *)(void *)set;
    for (int i = 0; i < 100; i++)
        run[i] = (ki_optim_run){.n = each,
                                .value = x + i * each,
                                .diff = x + j->n + i * each,
                                .m = x + 2 * j->n + i * each,
                                .v = x + 3 * j->n + i * each,
                                .lr = 1};
    const ki_optim_step step = {.kind = KI_OPTIM_ADAM,
                                .beta1 = 0.9,
                                .beta2 = 0.999,
                                .eps = 1e-8,
                                .diff_scale = 1,
                                .clock = clock_memory,
                                .n_runs = 100,
                                .runs = run};
    return backend->type->optimizers.update(backend, &step, &err) == KITH_OK ? cudaSuccess : cudaErrorUnknown;
}
static cudaError_t run_squares(const job *j, char *set) {
    kith_error err;
    ki_optim_run run[3];
    float *x = (float *)(void *)set;
    for (int i = 0; i < 3; i++) run[i] = (ki_optim_run){.n = j->n / 12 * 4, .diff = x + j->n / 12 * 4 * i};
    return backend->type->optimizers.sum_squares(backend, 3, run, (double *)(void *)(scratch + 4096), &err) ==
                   KITH_OK
               ? cudaSuccess
               : cudaErrorUnknown;
}
static cudaError_t run_zero(const job *j, char *set) {
    return cudaMemsetAsync(set, 0, (size_t)j->n * sizeof(float), stream);
}
static cudaError_t run_copy(const job *j, char *set) {
    return cudaMemcpyAsync(set + j->set_bytes / 2, set, j->set_bytes / 2, cudaMemcpyDeviceToDevice, stream);
}

static const char *map_name(int64_t c, int64_t side, int64_t pitch) {
    static char text[64];
    if (pitch != c)
        snprintf(text, sizeof text, "%lld of %lld x %lld^2", (long long)c, (long long)pitch, (long long)side);
    else
        snprintf(text, sizeof text, "%lld x %lld^2", (long long)c, (long long)side);
    return text;
}

typedef struct layer {
    int c, side, times, pitch; /* pitch 0: c */
    bool has_add;              /* a batch norm with the sum of a residual block behind */
} layer;

/* At 227 pixels. */
static const layer resnet50[] = {
    {64, 114, 1, 0, false}, {64, 57, 6, 0, false},   {256, 57, 1, 0, false},  {256, 57, 3, 0, true},
    {128, 57, 1, 0, false}, {128, 29, 7, 0, false},  {512, 29, 1, 0, false},  {512, 29, 4, 0, true},
    {256, 29, 1, 0, false}, {256, 15, 11, 0, false}, {1024, 15, 1, 0, false}, {1024, 15, 6, 0, true},
    {512, 15, 1, 0, false}, {512, 8, 5, 0, false},   {2048, 8, 1, 0, false},  {2048, 8, 3, 0, true}};
/* As planned: the batch norms at the ends of a block are one; a stride-2 block's write slices. */
static const layer bn_inception[] = {
    {64, 114, 1, 0, false},   {64, 57, 1, 0, false},   {192, 57, 1, 0, false},   {256, 28, 1, 0, false},
    {320, 28, 1, 0, false},   {64, 28, 5, 0, false},   {96, 28, 3, 0, false},    {128, 28, 1, 0, false},
    {160, 14, 1, 576, false}, {96, 14, 1, 576, false}, {576, 14, 2, 0, false},   {608, 14, 2, 0, false},
    {64, 14, 1, 0, false},    {96, 14, 3, 0, false},   {128, 14, 6, 0, false},   {160, 14, 2, 0, false},
    {192, 14, 2, 0, false},   {256, 14, 1, 0, false},  {192, 7, 1, 1056, false}, {256, 7, 1, 1056, false},
    {1024, 7, 2, 0, false},   {192, 7, 3, 0, false},   {160, 7, 1, 0, false},    {224, 7, 2, 0, false}};

/* Fewest passes over the map: with batch statistics what is kept on the chip is read once. */
static int bn_passes(const layer *l, bool is_backward) {
    if (l->has_add) return is_backward ? 6 : 3;
    return is_backward ? 3 : 2;
}

static void bn_rows(const char *network, const layer *layers, size_t n_layers, bool is_frozen) {
    static const ki_cuda_bn_way ways[] = {KI_CUDA_BN_TWICE, KI_CUDA_BN_ONCE, KI_CUDA_BN_CHOOSE};
    for (int is_backward = 0; is_backward < 2; is_backward++) {
        double total[3] = {0}, best = 0, bytes = 0;
        const char *direction = is_backward ? "backward" : "forward", *frozen = is_frozen ? " frozen" : "";
        printf("%-44s %9s %6s %11s %11s %11s\n", network, "fewest", "kept", "2 launches", "1 launch",
               "chosen");
        for (size_t i = 0; i < n_layers; i++) {
            const layer *l = &layers[i];
            job j = {.run = l->has_add    ? (is_backward ? run_bn_add_backward : run_bn_add_forward)
                            : is_backward ? run_bn_backward
                                          : run_bn_forward,
                     .n = batch * l->side * l->side,
                     .c = l->c,
                     .pitch = l->pitch ? l->pitch : l->c,
                     .has_relu = true,
                     .is_frozen = is_frozen};
            j.set_bytes = (l->has_add ? 7 : 3) * map_bytes(j.n, j.pitch);
            j.bytes = (double)(j.n * j.c) * (double)element() * bn_passes(l, is_backward);
            double seconds[3];
            for (int k = 0; k < 3; k++) {
                j.way = ways[k];
                seconds[k] = is_frozen && k > 0 ? seconds[0] : time_job(&j);
                total[k] += seconds[k] * l->times;
            }
            best += (seconds[0] < seconds[1] ? seconds[0] : seconds[1]) * l->times;
            bytes += j.bytes * l->times;
            const ki_cuda_bn_args bn = l->has_add ? bn_add_of(&j, arena) : bn_of(&j, arena);
            printf("%2d x %-17s %-19s %8.1f MB %4.0f %% %8.1f us %8.1f us %8.1f us %6.0f GB/s %4.0f %%\n",
                   l->times, l->has_add ? "batch_norm + add" : "batch_norm", map_name(j.c, l->side, j.pitch),
                   j.bytes / 1e6, 100 * ki_cuda_bn_kept(&bn, is_backward), seconds[0] * 1e6, seconds[1] * 1e6,
                   seconds[2] * 1e6, j.bytes / seconds[2] / 1e9, 100 * j.bytes / seconds[2] / copy_rate);
        }
        printf(
            "-- %s, all batch norms%s %s: %.2f GB; two launches %.3f ms, one %.3f ms, the better each %.3f "
            "ms, "
            "chosen %.3f ms, %.0f GB/s, %.0f %%\n",
            network, frozen, direction, bytes / 1e9, total[0] * 1e3, total[1] * 1e3, best * 1e3,
            total[2] * 1e3, bytes / total[2] / 1e9, 100 * bytes / total[2] / copy_rate);
    }
}

static void plain_rows(const char *name, cudaError_t (*run)(const job *, char *), int n_maps, int passes,
                       const layer *layers, size_t n_layers, bool has_relu, int n_parts) {
    for (size_t i = 0; i < n_layers; i++) {
        const layer *l = &layers[i];
        job j = {.run = run,
                 .n = batch * l->side * l->side,
                 .c = l->c,
                 .pitch = l->pitch ? l->pitch : l->c,
                 .has_relu = has_relu,
                 .n_parts = n_parts};
        j.set_bytes = (size_t)n_maps * map_bytes(j.n, j.pitch);
        j.bytes = (double)(j.n * j.c) * (double)element() * passes;
        report(name, map_name(j.c, l->side, j.pitch), &j);
    }
}

static void pool_rows(void) {
    static const struct {
        int c, in, out, k, s, p;
        bool average;
    } rows[] = {{64, 114, 57, 3, 2, 0, false}, {192, 57, 28, 3, 2, 0, false}, {192, 28, 28, 3, 1, 1, false},
                {480, 28, 14, 3, 2, 0, false}, {512, 14, 14, 3, 1, 1, false}, {832, 14, 7, 3, 2, 0, false},
                {832, 7, 7, 3, 1, 1, false},   {256, 28, 28, 3, 1, 1, true},  {576, 14, 14, 3, 1, 1, true},
                {1024, 7, 7, 3, 1, 1, true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int is_backward = 0; is_backward < 2; is_backward++) {
            job j = {.run = is_backward ? run_pool_backward : run_pool_forward};
            j.pool = (ki_cuda_pool_args){.is_bf16 = is_bf16,
                                         .average = rows[i].average,
                                         .count_pad = true,
                                         .mb = batch,
                                         .c = rows[i].c,
                                         .src_pitch = rows[i].c,
                                         .dst_pitch = rows[i].c,
                                         .ih = rows[i].in,
                                         .iw = rows[i].in,
                                         .oh = rows[i].out,
                                         .ow = rows[i].out,
                                         .k = rows[i].k,
                                         .s = rows[i].s,
                                         .p = rows[i].p};
            const size_t src = map_bytes(batch * rows[i].in * rows[i].in, rows[i].c);
            const size_t dst = map_bytes(batch * rows[i].out * rows[i].out, rows[i].c);
            j.set_bytes = 2 * src + 2 * dst;
            j.bytes = (double)(src + dst) + (rows[i].average ? 0 : (double)(dst / element()));
            char name[64];
            snprintf(name, sizeof name, "%s pool k%d s%d %s", rows[i].average ? "avg" : "max", rows[i].k,
                     rows[i].s, is_backward ? "backward" : "forward");
            report(name, map_name(rows[i].c, rows[i].in, rows[i].c), &j);
        }
    }
}

static void other_rows(void) {
    static const int sides[][2] = {{1024, 7}, {2048, 8}};
    for (int i = 0; i < 2; i++) {
        job j = {.run = run_global_forward,
                 .mb = batch,
                 .c = sides[i][0],
                 .hw = (int64_t)sides[i][1] * sides[i][1]};
        j.set_bytes = map_bytes(j.mb * j.hw, j.c);
        j.bytes = (double)j.set_bytes;
        report("global_pool avg forward", map_name(j.c, sides[i][1], j.c), &j);
        j.run = run_global_backward;
        report("global_pool avg backward", map_name(j.c, sides[i][1], j.c), &j);
    }
    static const double millions[] = {6, 11, 25.6};
    for (size_t i = 0; i < sizeof millions / sizeof millions[0]; i++) {
        char name[32];
        snprintf(name, sizeof name, "%.1f M parameters", millions[i]);
        job j = {.run = run_adam, .n = (int64_t)(millions[i] * 1e6)};
        j.set_bytes = (size_t)j.n * 16;
        j.bytes = (double)j.n * 28;
        report("adam, 100 runs", name, &j);
        j.run = run_squares;
        j.set_bytes = (size_t)j.n * 4;
        j.bytes = (double)j.n * 4;
        report("sum_squares", name, &j);
        j.run = run_zero;
        report("zero", name, &j);
    }
}

/* Random values: never time on zeros. */
static void fill(void) {
    enum { N = 1 << 22 };
    uint16_t *host = malloc(N * sizeof *host);
    float *floats = malloc(4096 * sizeof *floats);
    if (!host || !floats) exit(1);
    uint32_t state = 12345;
    for (int i = 0; i < N; i++) {
        float sum = -2;
        for (int k = 0; k < 4; k++) {
            state = state * 1664525u + 1013904223u;
            sum += (float)(state >> 8) / (float)(1 << 24);
        }
        /* For float32 runs two bf16 make a float whose upper half is one of these: as good. */
        host[i] = ki_float_to_bf16(sum * 1.7f);
        if (i < 4096) floats[i] = 1 + sum / 4;
    }
    for (size_t at = 0; at < arena_bytes; at += N * sizeof *host) {
        const size_t bytes = arena_bytes - at < N * sizeof *host ? arena_bytes - at : N * sizeof *host;
        CHECK(cudaMemcpyAsync(arena + at, host, bytes, cudaMemcpyHostToDevice, stream));
    }
    for (int i = 0; i < 16; i++)
        CHECK(cudaMemcpyAsync(param(i), floats, 4096 * sizeof *floats, cudaMemcpyHostToDevice, stream));
    CHECK(cudaStreamSynchronize(stream));
    free(host);
    free(floats);
}

#define N_LAYERS(list) (sizeof(list) / sizeof((list)[0]))

/* Rows: a set is src, dst or diff_dst, and diff_src. */
static cudaError_t run_layer_norm(const job *j, char *set, bool is_backward) {
    const size_t map = map_bytes(j->n, j->c);
    const ki_cuda_layer_norm_args norm = {.is_bf16 = is_bf16,
                                          .n = j->n,
                                          .c = j->c,
                                          .src_pitch = j->c,
                                          .dst_pitch = j->c,
                                          .eps = 1e-6f,
                                          .src = set,
                                          .dst = set + map,
                                          .gamma = param(0),
                                          .beta = param(1),
                                          .saved = scratch + (1 << 23),
                                          .diff_dst = set + map,
                                          .diff_src = set + 2 * map,
                                          .diff_gamma = param(4),
                                          .diff_beta = param(5),
                                          .scratch = scratch};
    return is_backward ? ki_cuda_layer_norm_backward(stream, &norm)
                       : ki_cuda_layer_norm_forward(stream, &norm);
}
static cudaError_t run_layer_norm_forward(const job *j, char *set) { return run_layer_norm(j, set, false); }
static cudaError_t run_layer_norm_backward(const job *j, char *set) { return run_layer_norm(j, set, true); }
static cudaError_t run_gelu(const job *j, char *set, bool is_backward) {
    const size_t map = map_bytes(j->n, j->c);
    const ki_cuda_act_args act = {.is_bf16 = is_bf16,
                                  .how = KI_ACT_GELU,
                                  .n = j->n,
                                  .c = j->c,
                                  .src_pitch = j->c,
                                  .diff_pitch = j->c,
                                  .dst_pitch = j->c,
                                  .src = set,
                                  .diff_dst = is_backward ? set + map : NULL,
                                  .dst = set + 2 * map};
    return ki_cuda_act_apply(stream, &act);
}
static cudaError_t run_gelu_forward(const job *j, char *set) { return run_gelu(j, set, false); }
static cudaError_t run_gelu_backward(const job *j, char *set) { return run_gelu(j, set, true); }
static cudaError_t run_layer_scale_backward(const job *j, char *set) {
    const size_t map = map_bytes(j->n, j->c);
    const int64_t length = ki_cuda_stretch_length(j->n);
    const ki_cuda_stretch_args sums = {.is_bf16 = is_bf16,
                                       .n = j->n,
                                       .c = j->c,
                                       .length = length,
                                       .x_pitch = j->c,
                                       .y_pitch = j->c,
                                       .scaled_pitch = j->c,
                                       .x = set + map,
                                       .y = set,
                                       .a = param(0),
                                       .scaled = set + 2 * map,
                                       .dst = scratch};
    const cudaError_t error = ki_cuda_stretch_sums(stream, &sums);
    if (error != cudaSuccess) return error;
    return ki_cuda_add_stretches(stream, ki_cuda_stretches(j->n, length), j->c, scratch, param(4), NULL);
}
static cudaError_t run_bias_sums(const job *j, char *set) {
    const ki_diff_rows rows = {.n_rows = j->n,
                               .c = j->c,
                               .pitch = j->c,
                               .n_parts = 1,
                               .n_runs = ki_cuda_diff_runs(j->n, j->c),
                               .part = {set},
                               .sums = scratch};
    return ki_cuda_diff_rows(is_bf16 ? KI_NUMBER_BF16 : KI_NUMBER_FLOAT, &rows, stream);
}

static void token_rows(void) {
    static const struct {
        const char *name;
        int64_t per_image, c;
    } maps[] = {{"vit_s", 197, 384},           {"vit_b", 197, 768},           {"convnext_t 56^2", 3136, 96},
                {"convnext_t 28^2", 784, 192}, {"convnext_t 14^2", 196, 384}, {"convnext_t 7^2", 49, 768}};
    static const struct {
        const char *name;
        cudaError_t (*run)(const job *job, char *set);
        int wider, passes;
    } kernels[] = {{"layer_norm forward", run_layer_norm_forward, 1, 2},
                   {"layer_norm backward", run_layer_norm_backward, 1, 3},
                   {"gelu forward", run_gelu_forward, 4, 2},
                   {"gelu backward", run_gelu_backward, 4, 3},
                   {"layer_scale backward", run_layer_scale_backward, 1, 3},
                   {"sums of a bias", run_bias_sums, 4, 1}};
    for (size_t k = 0; k < N_LAYERS(kernels); k++) {
        for (size_t i = 0; i < N_LAYERS(maps); i++) {
            job j = {
                .run = kernels[k].run, .n = batch * maps[i].per_image, .c = maps[i].c * kernels[k].wider};
            j.set_bytes = 3 * map_bytes(j.n, j.c);
            j.bytes = (double)(j.n * j.c) * (double)element() * kernels[k].passes;
            report(kernels[k].name, maps[i].name, &j);
        }
    }
}
static void other_kernels(void) {
    static const layer adds[] = {
        {256, 57, 1, 0, false}, {512, 29, 1, 0, false}, {1024, 15, 1, 0, false}, {2048, 8, 1, 0, false}};
    plain_rows("add + relu", run_sum, 4, 3, adds, N_LAYERS(adds), true, 2);
    plain_rows("join of 2, masked", run_sum, 4, 4, adds, N_LAYERS(adds), false, 2);
    static const layer joins[] = {{192, 28, 1, 0, false}, {480, 14, 1, 0, false}, {832, 7, 1, 0, false}};
    plain_rows("join of 4, masked", run_sum, 6, 6, joins, N_LAYERS(joins), false, 4);
    static const layer norms[] = {{64, 57, 1, 0, false}, {192, 57, 1, 0, false}};
    plain_rows("lrn forward", run_lrn_forward, 3, 2, norms, N_LAYERS(norms), false, 1);
    plain_rows("lrn backward", run_lrn_backward, 3, 3, norms, N_LAYERS(norms), false, 1);
    pool_rows();
    other_rows();
}

int main(int argc, char **argv) {
    kith_error err = {0};
    if (argc > 1) batch = atoll(argv[1]);
    if (argc > 2) is_bf16 = strcmp(argv[2], "float32") != 0;
    const bool is_bn_only = argc > 3 && strcmp(argv[3], "bn") == 0,
               is_rows_only = argc > 3 && strcmp(argv[3], "rows") == 0;
    const ki_backend_options options = {.precision = is_bf16 ? KI_BF16 : KI_FLOAT32};
    if (batch < 1 || ki_backend_open("cuda", &options, &backend, &err) != KITH_OK) {
        fprintf(stderr, "cuda_kernels: %s\n", batch < 1 ? "the batch is 1 or more" : err.message);
        return 1;
    }
    stream = ki_cuda_of(backend)->stream;
    void *memory[4];
    arena_bytes = (size_t)4 << 30;
    const size_t bytes[] = {arena_bytes, 16 * 4096 * sizeof(float), (size_t)64 << 20, sizeof *clock_memory};
    for (int i = 0; i < 4; i++) {
        if (backend->type->memory.alloc(backend, bytes[i], &memory[i], &err) != KITH_OK) {
            fprintf(stderr, "cuda_kernels: %s\n", err.message);
            return 1;
        }
    }
    arena = memory[0], params = memory[1], scratch = memory[2], clock_memory = memory[3];
    const ki_optim_clock clock = {.lr = 1e-6, .t = 10};
    CHECK(cudaMemcpy(clock_memory, &clock, sizeof clock, cudaMemcpyHostToDevice));
    fill();
    job copy = {.run = run_copy, .set_bytes = (size_t)2 << 30, .bytes = (double)((size_t)2 << 30)};
    const double seconds = time_job(&copy);
    copy_rate = copy.bytes / seconds;
    printf("batch %lld, %s; a copy inside the device: %.0f GB/s\n", (long long)batch,
           is_bf16 ? "bf16" : "float32", copy_rate / 1e9);
    fill();
    if (!is_bn_only) token_rows();
    if (is_rows_only) goto done;
    bn_rows("resnet50", resnet50, N_LAYERS(resnet50), false);
    bn_rows("bn_inception", bn_inception, N_LAYERS(bn_inception), false);
    bn_rows("bn_inception", bn_inception, 4, true);
    if (!is_bn_only) other_kernels();
done:
    for (int i = 0; i < 4; i++) backend->type->memory.free(backend, memory[i]);
    ki_backend_close(backend);
    return 0;
}
