/* Attention on tensor cores beside the kernels in float: milliseconds, and how far results are from float32.
 *
 *   cmake --preset cuda && cmake --build build/cuda --target cuda_attention
 *   build/cuda/bench/cuda_attention [warps]         (warps: also with 1 to 8 warps in a block)
 *
 * Shapes are those of ViTs in training; q, k and v lie side by side. TFLOP/s count the products of the formulas, 2 forward and 5 backward. Each
 * time is the median of 5 rounds of calls. Ends with 1 when a result is off by more than a hundredth, or differs the second time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/attention/kernels.h"
#include "backend/cuda/cuda.h"

enum { ROUNDS = 5, RANDOM = 1000003, SOME_ROWS = 4 };

typedef struct shape {
    const char *name;
    int64_t rows, tokens, heads, d;
} shape;

static const shape shapes[] = {
    {"vit_s, 224 pixels", 128, 197, 6, 64}, {"vit_b, 224 pixels", 128, 197, 12, 64},
    {"vit_s, 256 pixels", 128, 257, 6, 64}, {"vit_b, 256 pixels", 128, 257, 12, 64},
    {"vit_s, 518 pixels", 8, 1370, 6, 64},  {"vit_b, 518 pixels", 8, 1370, 12, 64},
    {"vit_s, 112 pixels", 128, 50, 6, 64},  {"heads of 32", 128, 197, 12, 32},
    {"heads of 80", 64, 257, 16, 80},       {"heads of 96", 64, 197, 8, 96},
    {"heads of 128", 64, 197, 6, 128},
};

static ki_backend *backend;
static cudaStream_t stream;
static float *random_float; /* about normal, as bf16 keeps them */
static uint16_t *random_bf16;

static void must(kith_status status, const kith_error *err) {
    if (status == KITH_OK) return;
    fprintf(stderr, "cuda_attention: %s\n", err->message);
    exit(status == KITH_EUNSUPPORTED ? 77 : 1);
}

static void check(cudaError_t error, const char *what) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "cuda_attention: %s: %s (%s)\n", what, cudaGetErrorString(error),
            cudaGetErrorName(error));
    exit(1);
}
#define CHECK(call) check((call), #call)

static void *device(size_t bytes) {
    void *ptr = NULL;
    kith_error err = {0};
    must(ki_cuda_alloc(backend, bytes, &ptr, &err), &err);
    return ptr;
}

static void *host(size_t bytes) {
    void *ptr = malloc(bytes);
    if (ptr) return ptr;
    fprintf(stderr, "cuda_attention: no memory for %zu bytes\n", bytes);
    exit(1);
}

/* One shape in one type. */
typedef struct side {
    ki_cuda_attention_args a;
    bool is_bf16, on_tensor_cores;
    void *qkv, *diff_qkv, *dst, *diff_dst;
} side;

static size_t element(const side *x) { return x->is_bf16 ? 2 : 4; }

static void *numbers(const side *x, int64_t n, int64_t from) {
    char *all = host((size_t)n * element(x));
    const char *random = x->is_bf16 ? (const char *)random_bf16 : (const char *)random_float;
    for (int64_t i = 0; i < n; from = 0) {
        const int64_t some = n - i < RANDOM - from ? n - i : RANDOM - from;
        memcpy(all + (size_t)i * element(x), random + (size_t)from * element(x), (size_t)some * element(x));
        i += some;
    }
    void *ptr = device((size_t)n * element(x));
    CHECK(cudaMemcpyAsync(ptr, all, (size_t)n * element(x), cudaMemcpyHostToDevice, stream));
    CHECK(cudaStreamSynchronize(stream));
    free(all);
    return ptr;
}

static side side_open(const shape *s, bool is_bf16) {
    side x = {.is_bf16 = is_bf16};
    const int64_t c = s->heads * s->d, n = s->rows * s->tokens;
    const size_t some = (size_t)(n * s->heads) * sizeof(float);
    x.qkv = numbers(&x, n * 3 * c, 0);
    x.diff_dst = numbers(&x, n * c, 777);
    x.diff_qkv = device((size_t)(n * 3 * c) * element(&x));
    x.dst = device((size_t)(n * c) * element(&x));
    const size_t part = (size_t)c * element(&x);
    x.a = (ki_cuda_attention_args){.is_bf16 = is_bf16,
                                   .attr = {.heads = s->heads},
                                   .rows = s->rows,
                                   .q_pitch = 3 * c,
                                   .kv_pitch = 3 * c,
                                   .s = (int)s->tokens,
                                   .t = (int)s->tokens,
                                   .d = (int)s->d,
                                   .scale = (float)(1 / sqrt((double)s->d)),
                                   .q = x.qkv,
                                   .k = (char *)x.qkv + part,
                                   .v = (char *)x.qkv + 2 * part,
                                   .dst = x.dst,
                                   .saved = device(some),
                                   .result = x.dst,
                                   .diff_dst = x.diff_dst,
                                   .diff_q = x.diff_qkv,
                                   .diff_k = (char *)x.diff_qkv + part,
                                   .diff_v = (char *)x.diff_qkv + 2 * part,
                                   .dots = device(some)};
    return x;
}

static void side_close(side *x) {
    void *all[] = {x->qkv, x->diff_qkv, x->dst, x->diff_dst, x->a.saved, x->a.dots};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) ki_cuda_free(backend, all[i]);
}

static cudaError_t forward(const side *x) {
    return x->on_tensor_cores ? ki_cuda_tensor_forward(stream, &x->a)
                              : ki_cuda_attention_forward(stream, &x->a);
}
static cudaError_t backward(const side *x) {
    return x->on_tensor_cores ? ki_cuda_tensor_backward(stream, &x->a)
                              : ki_cuda_attention_backward(stream, &x->a);
}

static int by_size(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Milliseconds of one call. */
static double time_of(const side *x, cudaError_t (*call)(const side *x), int n) {
    cudaEvent_t begin, end;
    float ms[ROUNDS];
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(call(x));
    CHECK(cudaStreamSynchronize(stream));
    for (int r = 0; r < ROUNDS; r++) {
        CHECK(cudaEventRecord(begin, stream));
        for (int i = 0; i < n; i++) CHECK(call(x));
        CHECK(cudaEventRecord(end, stream));
        CHECK(cudaEventSynchronize(end));
        CHECK(cudaEventElapsedTime(&ms[r], begin, end));
    }
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    qsort(ms, ROUNDS, sizeof ms[0], by_size);
    return (double)ms[ROUNDS / 2] / n;
}

/* Of the first or last rows of [tokens, width]: columns from first on, c of them. */
typedef struct view {
    int64_t from, n, width, first, c;
} view;

static void *part_of(const side *x, const void *from, const view *v) {
    const size_t bytes = (size_t)(v->n * v->width) * element(x);
    void *all = host(bytes);
    CHECK(cudaMemcpyAsync(all, (const char *)from + (size_t)(v->from * v->width) * element(x), bytes,
                          cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    return all;
}

static double number_of(const side *x, const void *all, int64_t i) {
    return x->is_bf16 ? (double)ki_bf16_to_float(((const uint16_t *)all)[i])
                      : (double)((const float *)all)[i];
}

/* Relative L2 of the first rows and the last. */
static double distance(const shape *s, const side *x, const void *of_x, const side *y, const void *of_y,
                       view v) {
    double off = 0, size = 0;
    const int64_t rows = s->rows < SOME_ROWS ? s->rows : SOME_ROWS;
    v.n = rows * s->tokens;
    for (int last = 0; last < 2; last++) {
        v.from = last ? (s->rows - rows) * s->tokens : 0;
        void *a = part_of(x, of_x, &v), *b = part_of(y, of_y, &v);
        for (int64_t i = 0; i < v.n * v.width; i++) {
            if (i % v.width < v.first || i % v.width >= v.first + v.c) continue;
            const double want = number_of(y, b, i), is = number_of(x, a, i);
            off += (is - want) * (is - want);
            size += want * want;
        }
        free(a);
        free(b);
    }
    return sqrt(off / size);
}

static bool compare(const shape *s, const side *x, const side *exact, const char *what) {
    static const char *const names[] = {"result", "q", "k", "v"};
    const int64_t c = s->heads * s->d;
    bool is_right = true;
    printf("  %-13s relative L2 off float32:", what);
    for (int i = 0; i < 4; i++) {
        const double off = i == 0 ? distance(s, x, x->dst, exact, exact->dst, (view){.width = c, .c = c})
                                  : distance(s, x, x->diff_qkv, exact, exact->diff_qkv,
                                             (view){.width = 3 * c, .first = (i - 1) * c, .c = c});
        printf("  %s %.2e", names[i], off);
        is_right &= off <= 1e-2;
    }
    printf("%s\n", is_right ? "" : "  WRONG");
    return is_right;
}

static bool repeats(const shape *s, const side *x) {
    const int64_t n = s->rows * s->tokens, c = s->heads * s->d;
    const view all = {.n = n, .width = 3 * c};
    void *once = part_of(x, x->diff_qkv, &all);
    CHECK(backward(x));
    void *twice = part_of(x, x->diff_qkv, &all);
    const bool same = memcmp(once, twice, (size_t)(n * 3 * c) * element(x)) == 0;
    free(once);
    free(twice);
    if (!same) printf("  the second time gradients have other bits: WRONG\n");
    return same;
}

static void time_warps(const shape *s, side x) {
    for (int warps = 1; warps <= 8; warps++) {
        x.a.warps = warps;
        const double ms = time_of(&x, forward, 20);
        side of_q = x, of_keys = x;
        of_q.a.diff_k = of_q.a.diff_v = NULL;
        of_keys.a.diff_q = NULL;
        printf(
            "  %d warps: forward %.4f ms, backward of q alone %.4f ms, of k and v alone %.4f ms; blocks end "
            "with %lld of %d "
            "warps\n",
            warps, ms, time_of(&of_q, backward, 20), time_of(&of_keys, backward, 20),
            (long long)(((s->tokens + 15) / 16 - 1) % warps + 1), warps);
    }
}

static bool bench(const shape *s, bool each_warps) {
    side exact = side_open(s, false), own = side_open(s, true), tensor = side_open(s, true);
    const double gflop = 2e-9 * (double)(s->rows * s->heads * s->tokens * s->tokens * s->d);
    tensor.on_tensor_cores = ki_cuda_attention_on_tensor_cores(&tensor.a);
    printf("%s: %lld rows of %lld tokens, %lld heads of %lld%s\n", s->name, (long long)s->rows,
           (long long)s->tokens, (long long)s->heads, (long long)s->d,
           tensor.on_tensor_cores ? "" : ", not taken by tensor cores: WRONG");
    const double of_own = time_of(&own, forward, 3), ms = time_of(&tensor, forward, 20);
    printf("  forward  %8.4f ms, tensor cores %8.4f ms (%5.1f times as fast, %4.0f TFLOP/s)\n", of_own, ms,
           of_own / ms, 2 * gflop / ms);
    fflush(stdout);
    const double back_own = time_of(&own, backward, 3), back = time_of(&tensor, backward, 20);
    printf("  backward %8.4f ms, tensor cores %8.4f ms (%5.1f times as fast, %4.0f TFLOP/s)\n", back_own,
           back, back_own / back, 5 * gflop / back);
    CHECK(forward(&exact));
    CHECK(backward(&exact));
    bool is_right = compare(s, &own, &exact, "own bf16");
    is_right &= compare(s, &tensor, &exact, "tensor cores");
    is_right &= repeats(s, &tensor) && tensor.on_tensor_cores;
    if (each_warps) time_warps(s, tensor);
    fflush(stdout);
    side_close(&exact);
    side_close(&own);
    side_close(&tensor);
    return is_right;
}

int main(int argc, char **argv) {
    const ki_backend_options options = {.precision = KI_BF16};
    kith_error err = {0};
    const bool each_warps = argc > 1 && strcmp(argv[1], "warps") == 0;
    bool is_right = true;
    uint32_t state = 17;
    must(ki_backend_open("cuda", &options, &backend, &err), &err);
    stream = ki_cuda_stream(backend);
    random_float = host(RANDOM * sizeof *random_float);
    random_bf16 = host(RANDOM * sizeof *random_bf16);
    for (int i = 0; i < RANDOM; i++) {
        double sum = -2;
        for (int k = 0; k < 4; k++) {
            state = state * 1664525u + 1013904223u;
            sum += (double)(state >> 8) / (1 << 24);
        }
        random_bf16[i] = ki_float_to_bf16((float)(1.7 * sum));
        random_float[i] = ki_bf16_to_float(random_bf16[i]);
    }
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        is_right &= bench(&shapes[i], each_warps && i < 6);
    free(random_float);
    free(random_bf16);
    ki_backend_close(backend);
    printf("%s\n", is_right ? "all right" : "WRONG");
    return !is_right;
}
