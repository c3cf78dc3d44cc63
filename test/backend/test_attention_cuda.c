/* Attention on tensor cores against formulas in double: tokens around warps, chunks and tiles, heads of all widths, scores far from 0. On a device and
 * in the emulator. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/attention/kernels.h"
#include "support/cuda_side.h"

typedef struct shape {
    int64_t rows, heads;
    int s, t, d;
    int64_t gap;  /* behind a token's numbers */
    double shift; /* added to q and taken from k, so that scores are far below 0 */
    int warps;
} shape;

static const shape shapes[] = {
    {1, 1, 1, 1, 64, 0, 0, 0},     {2, 3, 15, 15, 32, 0, 0, 0},   {1, 2, 16, 17, 8, 8, 0, 0},
    {1, 2, 33, 64, 40, 0, 0, 0},   {2, 1, 1, 65, 64, 0, 0, 0},    {1, 2, 64, 50, 64, 16, 0, 0},
    {1, 1, 130, 129, 64, 0, 0, 0}, {1, 1, 197, 197, 64, 0, 0, 0}, {1, 1, 70, 81, 80, 0, 0, 0},
    {1, 1, 81, 70, 96, 8, 0, 0},   {1, 1, 66, 96, 128, 0, 0, 0},  {1, 1, 49, 100, 104, 0, 0, 0},
    {1, 1, 90, 70, 64, 0, 5, 0},   {1, 1, 70, 90, 32, 0, 5, 1},   {1, 2, 40, 36, 64, 0, 0, 2},
};

enum { Q, K, V, DST, DIFF_DST, DIFF_Q, DIFF_K, DIFF_V, N_PARTS };

/* Attention on the device and, in double, on the host. */
typedef struct bench {
    const shape *s;
    ki_cuda_attention_args a;
    uint16_t *part[N_PARTS]; /* on the device */
    double *host[N_PARTS];   /* [tokens, heads * d] */
    float *saved, *dots;
    double *host_saved;
} bench;

static bool is_of_queries(int part) { return part == Q || part == DST || part == DIFF_DST || part == DIFF_Q; }
static int64_t tokens_of(const shape *s, int part) { return s->rows * (is_of_queries(part) ? s->s : s->t); }
static int64_t width_of(const shape *s) { return s->heads * s->d; }
/* The result and its gradient have no gaps. */
static int64_t pitch_of(const shape *s, int part) {
    return width_of(s) + (part == DST || part == DIFF_DST ? 0 : s->gap);
}

/* About normal, as bf16 keeps it. */
static uint16_t draw(uint32_t *state, double mean) {
    double sum = -2;
    for (int k = 0; k < 4; k++) {
        *state = *state * 1664525u + 1013904223u;
        sum += (double)(*state >> 8) / (1 << 24);
    }
    return ki_float_to_bf16((float)(mean + 1.7 * sum));
}

static void fill(bench *b, int part, uint32_t *random) {
    const int64_t n = tokens_of(b->s, part), pitch = pitch_of(b->s, part), width = width_of(b->s);
    const size_t bytes = (size_t)(n * pitch) * sizeof(uint16_t);
    uint16_t *x = host(bytes);
    b->part[part] = device(bytes);
    b->host[part] = host((size_t)(n * width) * sizeof(double));
    memset(x, 0xff, bytes); /* NaN: in gaps, and where results belong */
    for (int64_t i = 0; i < n * width && part != DST && part < DIFF_Q; i++) {
        uint16_t *at = &x[i / width * pitch + i % width];
        *at = draw(random, part == Q ? b->s->shift : part == K ? -b->s->shift : 0);
        b->host[part][i] = (double)ki_bf16_to_float(*at);
    }
    assert_int_equal(cudaMemcpyAsync(b->part[part], x, bytes, cudaMemcpyHostToDevice, stream), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    free(x);
}

static void bench_init(bench *b, const shape *s) {
    *b = (bench){.s = s};
    uint32_t random = 17;
    const size_t n = (size_t)(s->rows * s->heads * s->s);
    for (int part = 0; part < N_PARTS; part++) fill(b, part, &random);
    b->saved = device(n * sizeof *b->saved);
    b->dots = device(n * sizeof *b->dots);
    b->host_saved = host(n * sizeof *b->host_saved);
    b->a = (ki_cuda_attention_args){.is_bf16 = true,
                                    .attr = {.heads = s->heads},
                                    .rows = s->rows,
                                    .q_pitch = pitch_of(s, Q),
                                    .kv_pitch = pitch_of(s, K),
                                    .s = s->s,
                                    .t = s->t,
                                    .d = s->d,
                                    .warps = s->warps,
                                    .scale = (float)(1 / sqrt((double)s->d)),
                                    .q = b->part[Q],
                                    .k = b->part[K],
                                    .v = b->part[V],
                                    .dst = b->part[DST],
                                    .saved = b->saved,
                                    .result = b->part[DST],
                                    .diff_dst = b->part[DIFF_DST],
                                    .diff_q = b->part[DIFF_Q],
                                    .diff_k = b->part[DIFF_K],
                                    .diff_v = b->part[DIFF_V],
                                    .dots = b->dots};
}

static void bench_release(bench *b) {
    for (int part = 0; part < N_PARTS; part++) ki_cuda_free(backend, b->part[part]), free(b->host[part]);
    ki_cuda_free(backend, b->saved);
    ki_cuda_free(backend, b->dots);
    free(b->host_saved);
}

static double dot(const double *x, const double *y, int d) {
    double sum = 0;
    for (int c = 0; c < d; c++) sum += x[c] * y[c];
    return sum;
}

/* What one query becomes and gives, of one head; p has room for t weights. */
static void compute_query(bench *b, int64_t row, int64_t head, int64_t i, double *p) {
    const shape *s = b->s;
    const int64_t width = width_of(s), query = (row * s->s + i) * width + head * s->d,
                  keys = row * s->t * width + head * s->d;
    double *const *h = b->host;
    double most = -INFINITY, total = 0;
    for (int64_t j = 0; j < s->t; j++) {
        p[j] = dot(h[Q] + query, h[K] + keys + j * width, s->d) * (double)b->a.scale;
        most = fmax(most, p[j]);
    }
    for (int64_t j = 0; j < s->t; j++) total += exp(p[j] - most);
    const double saved = most + log(total);
    b->host_saved[(row * s->heads + head) * s->s + i] = saved;
    for (int64_t j = 0; j < s->t; j++) {
        p[j] = exp(p[j] - saved);
        for (int c = 0; c < s->d; c++) h[DST][query + c] += p[j] * h[V][keys + j * width + c];
    }
    const double all = dot(h[DST] + query, h[DIFF_DST] + query, s->d);
    for (int64_t j = 0; j < s->t; j++) {
        const int64_t key = keys + j * width;
        const double diff = p[j] * (dot(h[DIFF_DST] + query, h[V] + key, s->d) - all) * (double)b->a.scale;
        for (int c = 0; c < s->d; c++) {
            h[DIFF_Q][query + c] += diff * h[K][key + c];
            h[DIFF_K][key + c] += diff * h[Q][query + c];
            h[DIFF_V][key + c] += p[j] * h[DIFF_DST][query + c];
        }
    }
}

static void compute(bench *b) {
    double *p = host((size_t)b->s->t * sizeof *p);
    for (int64_t i = 0; i < b->s->rows * b->s->heads * b->s->s; i++)
        compute_query(b, i / b->s->s / b->s->heads, i / b->s->s % b->s->heads, i % b->s->s, p);
    free(p);
}

static void run(const bench *b) {
    assert_true(ki_cuda_attention_on_tensor_cores(&b->a));
    assert_int_equal(ki_cuda_tensor_forward(stream, &b->a), cudaSuccess);
    assert_int_equal(ki_cuda_tensor_backward(stream, &b->a), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
}

static uint16_t *part_of(const bench *b, int part) {
    const size_t bytes = (size_t)(tokens_of(b->s, part) * pitch_of(b->s, part)) * sizeof(uint16_t);
    uint16_t *x = host(bytes);
    assert_int_equal(cudaMemcpyAsync(x, b->part[part], bytes, cudaMemcpyDeviceToHost, stream), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    return x;
}

static void compare(const bench *b, int part, const char *name) {
    const shape *s = b->s;
    const int64_t pitch = pitch_of(s, part), width = width_of(s), n = tokens_of(s, part);
    uint16_t *x = part_of(b, part);
    double off = 0, size = 0;
    for (int64_t i = 0; i < n * pitch; i++) {
        if (i % pitch >= width) {
            if (x[i] != 0xffff)
                fail_msg("%d queries, %d keys, heads of %d: %s was written in a gap", s->s, s->t, s->d, name);
            continue;
        }
        const double want = b->host[part][i / pitch * width + i % pitch];
        off += pow((double)ki_bf16_to_float(x[i]) - want, 2);
        size += want * want;
    }
    /* Gradients of scores sum to 0 but for rounding, and what is left is multiplied by the shift. Of one key all that is left is rounding. */
    const double most = 5e-3 * (1 + s->shift);
    if (!(sqrt(off) <= most * sqrt(size) + (s->t == 1 ? 1e-2 : 0)))
        fail_msg("%d queries, %d keys, heads of %d: %s is off by %.3g relative L2, wanted at most %.3g", s->s,
                 s->t, s->d, name, sqrt(off / size), most);
    free(x);
}

static void test_against_formulas(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(shapes); i++) {
        bench b;
        bench_init(&b, &shapes[i]);
        compute(&b);
        run(&b);
        const int64_t n = shapes[i].rows * shapes[i].heads * shapes[i].s;
        float *saved = host((size_t)n * sizeof *saved);
        assert_int_equal(
            cudaMemcpyAsync(saved, b.saved, (size_t)n * sizeof *saved, cudaMemcpyDeviceToHost, stream),
            cudaSuccess);
        assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
        for (int64_t j = 0; j < n; j++) {
            if (!(fabs((double)saved[j] - b.host_saved[j]) <= 1e-5 * (1 + fabs(b.host_saved[j]))))
                fail_msg("saved[%lld] is %.9g, wanted %.9g", (long long)j, (double)saved[j], b.host_saved[j]);
        }
        free(saved);
        compare(&b, DST, "the result");
        compare(&b, DIFF_Q, "the gradient of q");
        compare(&b, DIFF_K, "the gradient of k");
        compare(&b, DIFF_V, "the gradient of v");
        bench_release(&b);
    }
}

/* The same bits with any number of warps, for inference, and where a gradient is not wanted. */
static void test_same_bits(void **state) {
    (void)state;
    const shape s = {.rows = 1, .heads = 2, .s = 70, .t = 66, .d = 64, .gap = 8, .warps = 0};
    bench a, b;
    bench_init(&a, &s);
    run(&a);
    for (int way = 0; way < 4; way++) {
        bench_init(&b, &s);
        if (way == 1) b.a.warps = 3;
        if (way == 2) b.a.diff_q = NULL;
        if (way == 3) b.a.diff_k = b.a.diff_v = NULL;
        run(&b);
        for (int part = DST; part < N_PARTS; part++) {
            if (part == DIFF_DST || (part == DIFF_Q && way == 2) || (part > DIFF_Q && way == 3)) continue;
            uint16_t *x = part_of(&a, part), *y = part_of(&b, part);
            if (memcmp(x, y, (size_t)(tokens_of(&s, part) * pitch_of(&s, part)) * sizeof *x) != 0)
                fail_msg("part %d has other bits, way %d", part, way);
            free(x);
            free(y);
        }
        bench_release(&b);
    }
    bench_release(&a);
}

static void test_what_is_left_to_others(void **state) {
    (void)state;
    char room[64];
    char *const ptr = room + (16 - (uintptr_t)room % 16) % 16;
    const ki_cuda_attention_args fits = {.is_bf16 = true,
                                         .attr = {.heads = 2},
                                         .rows = 1,
                                         .q_pitch = 192,
                                         .kv_pitch = 192,
                                         .s = 5,
                                         .t = 5,
                                         .d = 64,
                                         .q = ptr};
    ki_cuda_attention_args a = fits;
    assert_true(ki_cuda_attention_on_tensor_cores(&a));
    a = fits, a.is_bf16 = false;
    assert_false(ki_cuda_attention_on_tensor_cores(&a));
    a = fits, a.attr.window = 7;
    assert_false(ki_cuda_attention_on_tensor_cores(&a));
    a = fits, a.d = 20;
    assert_false(ki_cuda_attention_on_tensor_cores(&a));
    a = fits, a.d = 136;
    assert_false(ki_cuda_attention_on_tensor_cores(&a));
    a = fits, a.kv_pitch = 195;
    assert_false(ki_cuda_attention_on_tensor_cores(&a));
    a = fits, a.diff_v = ptr + 2;
    assert_false(ki_cuda_attention_on_tensor_cores(&a));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_formulas),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_what_is_left_to_others),
    };
    return cmocka_run_group_tests_name("attention on tensor cores", tests, open_device, close_device);
}
