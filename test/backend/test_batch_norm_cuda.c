/* Both ways of batch norm of batch statistics (one launch, two launches) against formulas in double, at sizes around
 * what fits on the chip; the same bits every time, also from a graph. On a device and in the emulator, which can
 * make shared memory small. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/norm/kernels.h"
#include "support/cuda_side.h"

#ifdef KI_EMULATE_HEADERS
#include "emulate/emulated.h"
#endif

typedef struct shape {
    int64_t n, c, gap; /* gap: from the channels of a pixel to the next pixel */
    int n_parts;       /* with a sum behind; 0: without */
    bool has_relu;
} shape;

static const shape shapes[] = {
    {3, 8, 0, 0, false},     {37, 24, 0, 0, true},   {513, 64, 0, 0, true},  {3000, 72, 0, 0, true},
    {700, 520, 0, 0, false}, {130, 13, 0, 0, true},  {999, 16, 8, 0, true},  {999, 16, 3, 0, false},
    {2500, 48, 0, 1, true},  {700, 520, 0, 2, true}, {451, 24, 8, 2, false}, {333, 5, 1, 2, true},
    {9000, 64, 0, 0, true},  {600, 40, 0, 3, true},  {5, 1, 0, 1, false},
};

enum { N_MAPS = 8, SRC = 0, OTHER, DST, DIFF_SRC, DIFF_OTHER, PART };
enum { GAMMA, BETA, MEAN, VAR, DIFF_GAMMA, DIFF_BETA, N_PARAMS };

/* A batch norm on the device and, in double, on the host. */
typedef struct bench {
    const shape *s;
    bool is_bf16;
    int64_t pitch;
    size_t map_bytes;
    ki_cuda_bn_args bn;
    void *map[N_MAPS], *param[N_PARAMS], *saved, *scratch;
    double *host[N_MAPS], *host_param[N_PARAMS];
    char *got;
} bench;

/* About normal, mean as wanted, as bf16 keeps it. */
static double draw(uint32_t *state, double mean) {
    double sum = -2;
    for (int k = 0; k < 4; k++) {
        *state = *state * 1664525u + 1013904223u;
        sum += (double)(*state >> 8) / (1 << 24);
    }
    return (double)ki_bf16_to_float(ki_float_to_bf16((float)(mean + 1.7 * sum)));
}

static void put(const bench *b, char *to, int64_t i, double value) {
    const float x = (float)value;
    const uint16_t half = ki_float_to_bf16(x);
    memcpy(to + (size_t)i * (b->is_bf16 ? 2 : 4), b->is_bf16 ? (const void *)&half : &x, b->is_bf16 ? 2 : 4);
}
static double get(const bench *b, const char *from, int64_t i) {
    uint16_t half;
    float x;
    memcpy(&half, from + (size_t)i * 2, b->is_bf16 ? 2 : 0);
    memcpy(&x, from + (size_t)i * 4, b->is_bf16 ? 0 : 4);
    return b->is_bf16 ? (double)ki_bf16_to_float(half) : (double)x;
}

static void up(void *to, const void *from, size_t bytes) {
    assert_int_equal(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
}
static void down(void *to, const void *from, size_t bytes) {
    assert_int_equal(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
}

static void init_params(bench *b) {
    float *x = host((size_t)b->s->c * sizeof *x);
    for (int p = 0; p < N_PARAMS; p++) {
        for (int64_t i = 0; i < b->s->c; i++) {
            x[i] = 0.5f + (float)((i * 7 + p * 3) % 11) / 8 - (p == BETA ? 1 : 0);
            b->host_param[p][i] = (double)x[i];
        }
        up(b->param[p], x, (size_t)b->s->c * sizeof *x);
    }
    free(x);
}

/* As many as the emulator has, so that a device too has more in a block than fits. */
enum { N_PROCESSORS = 3 };

static void bench_init(bench *b, const shape *s, bool is_bf16, ki_cuda_bn_way way) {
    *b = (bench){.s = s, .is_bf16 = is_bf16, .pitch = s->c + s->gap};
    b->map_bytes = (size_t)(s->n * b->pitch) * (is_bf16 ? 2 : 4);
    b->got = host(b->map_bytes);
    uint32_t random = 17;
    for (int m = 0; m < N_MAPS; m++) {
        b->map[m] = device(b->map_bytes);
        b->host[m] = host((size_t)(s->n * s->c) * sizeof(double));
        memset(b->got, 0, b->map_bytes);
        for (int64_t i = 0; i < s->n * s->c; i++) {
            b->host[m][i] = draw(&random, m == SRC ? (double)(i % s->c % 5) : 0);
            put(b, b->got, i / s->c * b->pitch + i % s->c, b->host[m][i]);
        }
        up(b->map[m], b->got, b->map_bytes);
    }
    for (int p = 0; p < N_PARAMS; p++) {
        b->param[p] = device((size_t)s->c * sizeof(float));
        b->host_param[p] = host((size_t)s->c * sizeof(double));
    }
    init_params(b);
    b->saved = device(2 * (size_t)s->c * sizeof(float));
    cuda_backend *cuda = ki_cuda_of(backend);
    b->scratch = device(ki_cuda_bn_scratch(s->n, s->c, N_PROCESSORS));
    b->bn = (ki_cuda_bn_args){.way = way,
                              .is_bf16 = is_bf16,
                              .has_relu = s->has_relu,
                              .has_add = s->n_parts > 0,
                              .n_processors = N_PROCESSORS,
                              .n_parts = s->n_parts ? s->n_parts : 1,
                              .n = s->n,
                              .c = s->c,
                              .src_pitch = b->pitch,
                              .dst_pitch = b->pitch,
                              .other_pitch = b->pitch,
                              .eps = 1e-5f,
                              .momentum = 0.25f,
                              .src = b->map[SRC],
                              .dst = b->map[DST],
                              .diff_src = b->map[DIFF_SRC],
                              .gamma = b->param[GAMMA],
                              .beta = b->param[BETA],
                              .mean = b->param[MEAN],
                              .var = b->param[VAR],
                              .diff_gamma = b->param[DIFF_GAMMA],
                              .diff_beta = b->param[DIFF_BETA],
                              .saved = b->saved,
                              .scratch = b->scratch,
                              .counters = cuda->counters};
    for (int i = 0; i < b->bn.n_parts; i++) b->bn.diff_dst[i] = b->map[PART + i];
    if (s->n_parts) b->bn.other = b->map[OTHER], b->bn.diff_other = b->map[DIFF_OTHER];
}

static void bench_release(bench *b) {
    for (int m = 0; m < N_MAPS; m++) ki_cuda_free(backend, b->map[m]), free(b->host[m]);
    for (int p = 0; p < N_PARAMS; p++) ki_cuda_free(backend, b->param[p]), free(b->host_param[p]);
    ki_cuda_free(backend, b->saved);
    ki_cuda_free(backend, b->scratch);
    free(b->got);
}

/* What the maps and parameters must become. */
static void compute(bench *b) {
    const shape *s = b->s;
    const int64_t n = s->n, c = s->c;
    double *const *h = b->host, *const *p = b->host_param;
    for (int64_t j = 0; j < c; j++) {
        double mean = 0, squares = 0, diff = 0, diff_off = 0;
        for (int64_t i = 0; i < n; i++) mean += h[SRC][i * c + j] / (double)n;
        for (int64_t i = 0; i < n; i++) squares += pow(h[SRC][i * c + j] - mean, 2);
        const double istd = 1 / sqrt(squares / (double)n + (double)b->bn.eps);
        for (int64_t i = j; i < n * c; i += c) {
            double y = (h[SRC][i] - mean) * istd * p[GAMMA][j] + p[BETA][j];
            if (s->n_parts) y += h[OTHER][i];
            const bool is_cut = s->has_relu && !(y > 0);
            double d = h[PART][i];
            for (int k = 1; k < s->n_parts; k++) d += h[PART + k][i];
            if (is_cut) y = d = 0;
            /* More than two are summed before, and the sum is a map. */
            if (s->n_parts > 2 && b->is_bf16) d = (double)ki_bf16_to_float(ki_float_to_bf16((float)d));
            h[DST][i] = y;
            h[DIFF_OTHER][i] = d;
            diff += d;
            diff_off += d * (h[SRC][i] - mean);
        }
        for (int64_t i = j; i < n * c; i += c)
            h[DIFF_SRC][i] = p[GAMMA][j] * istd *
                             (h[DIFF_OTHER][i] - diff / (double)n -
                              (h[SRC][i] - mean) * diff_off * istd * istd / (double)n);
        p[MEAN][j] += 0.25 * (mean - p[MEAN][j]);
        p[VAR][j] += 0.25 * (squares / (double)(n - 1) - p[VAR][j]);
        p[DIFF_GAMMA][j] += diff_off * istd;
        p[DIFF_BETA][j] += diff;
    }
}

static const char *name_of(const bench *b) {
    static char text[160];
    snprintf(text, sizeof text, "%s, %s: %lld pixels of %lld in %lld, %d parts%s",
             b->bn.way == KI_CUDA_BN_ONCE ? "one launch" : "two launches", b->is_bf16 ? "bf16" : "float32",
             (long long)b->s->n, (long long)b->s->c, (long long)b->pitch, b->s->n_parts,
             b->s->has_relu ? ", relu" : "");
    return text;
}

static void compare_map(bench *b, int m, const char *what) {
    down(b->got, b->map[m], b->map_bytes);
    double off = 0, all = 0;
    for (int64_t i = 0; i < b->s->n * b->s->c; i++) {
        const double wanted = b->host[m][i], x = get(b, b->got, i / b->s->c * b->pitch + i % b->s->c);
        off += (x - wanted) * (x - wanted);
        all += wanted * wanted;
    }
    const double error = sqrt(off / (all > 0 ? all : 1)), most = b->is_bf16 ? 5e-3 : 2e-6;
    if (!(error <= most))
        fail_msg("%s: %s is off by %.3g relative L2, at most %.3g", name_of(b), what, error, most);
}

static void compare_param(bench *b, int p, const char *what) {
    float *x = host((size_t)b->s->c * sizeof *x);
    down(x, b->param[p], (size_t)b->s->c * sizeof *x);
    double largest = 1;
    for (int64_t j = 0; j < b->s->c; j++) largest = fmax(largest, fabs(b->host_param[p][j]));
    for (int64_t j = 0; j < b->s->c; j++) {
        if (!(fabs((double)x[j] - b->host_param[p][j]) <= 2e-6 * largest))
            fail_msg("%s: %s of channel %lld is %.9g, wanted %.9g", name_of(b), what, (long long)j,
                     (double)x[j], b->host_param[p][j]);
    }
    free(x);
}

static void run(bench *b) {
    assert_int_equal(ki_cuda_bn_forward(stream, &b->bn), cudaSuccess);
    assert_int_equal(ki_cuda_bn_backward(stream, &b->bn), cudaSuccess);
}

/* Maps and parameters that a run leaves, as bytes. */
static size_t result_bytes(const bench *b) {
    return 3 * b->map_bytes + N_PARAMS * (size_t)b->s->c * sizeof(float);
}
static void take_results(bench *b, char *to) {
    static const int maps[] = {DST, DIFF_SRC, DIFF_OTHER};
    for (int i = 0; i < 3; i++) down(to + (size_t)i * b->map_bytes, b->map[maps[i]], b->map_bytes);
    for (int p = 0; p < N_PARAMS; p++)
        down(to + 3 * b->map_bytes + (size_t)p * (size_t)b->s->c * sizeof(float), b->param[p],
             (size_t)b->s->c * sizeof(float));
}

static void check_counters(const bench *b) {
    unsigned counters[KI_CUDA_COUNTERS];
    down(counters, b->bn.counters, sizeof counters);
    for (int i = 0; i < KI_CUDA_COUNTERS; i++) {
        if (counters[i] != 0) fail_msg("%s: counter %d is left at %u", name_of(b), i, counters[i]);
    }
}

static void check(const shape *s, bool is_bf16, ki_cuda_bn_way way) {
    bench b;
    bench_init(&b, s, is_bf16, way);
    run(&b);
    char *first = host(result_bytes(&b)), *again = host(result_bytes(&b));
    take_results(&b, first);
    compute(&b);
    compare_map(&b, DST, "dst");
    compare_map(&b, DIFF_SRC, "diff_src");
    if (s->n_parts) compare_map(&b, DIFF_OTHER, "diff_other");
    compare_param(&b, MEAN, "the running mean");
    compare_param(&b, VAR, "the running variance");
    compare_param(&b, DIFF_GAMMA, "the gradient of gamma");
    compare_param(&b, DIFF_BETA, "the gradient of beta");
    check_counters(&b);
    /* The same bits from a graph, twice. */
    void *step = NULL;
    kith_error err;
    assert_ok(backend->type->recording.begin(backend, &err), &err);
    run(&b);
    assert_ok(backend->type->recording.end(backend, &step, &err), &err);
    for (int time = 0; time < 2; time++) {
        init_params(&b);
        assert_ok(backend->type->recording.launch(backend, step, &err), &err);
        take_results(&b, again);
        if (memcmp(first, again, result_bytes(&b)) != 0)
            fail_msg("%s: other bits from launch %d of the graph", name_of(&b), time);
    }
    check_counters(&b);
    backend->type->recording.free(backend, step);
    free(first);
    free(again);
    bench_release(&b);
}

/* Under racecheck a case takes long: KITH_FEW_CASES says how many will do. */
static void check_all(ki_cuda_bn_way way) {
    const char *few = getenv("KITH_FEW_CASES");
    const size_t n = few ? strtoul(few, NULL, 10) : N_ROWS(shapes);
    for (size_t i = 0; i < n && i < N_ROWS(shapes); i++) {
        check(&shapes[i], false, way);
        check(&shapes[i], true, way);
    }
}

static void test_two_launches(void **state) {
    (void)state;
    check_all(KI_CUDA_BN_TWICE);
}

static void test_one_launch(void **state) {
    (void)state;
    check_all(KI_CUDA_BN_ONCE);
}

#ifdef KI_EMULATE_HEADERS

static void test_one_launch_with_little_shared_memory(void **state) {
    (void)state;
    static const size_t shared[] = {48 * 1024, 24 * 1024};
    for (size_t i = 0; i < N_ROWS(shared); i++) {
        ki_emulate_shared(shared[i]);
        check_all(KI_CUDA_BN_ONCE);
    }
    ki_emulate_shared(227 * 1024);
}

static long launches_of(const shape *s, ki_cuda_bn_way way, bool is_backward) {
    bench b;
    bench_init(&b, s, true, way);
    const long before = ki_emulate_launches();
    assert_int_equal(is_backward ? ki_cuda_bn_backward(stream, &b.bn) : ki_cuda_bn_forward(stream, &b.bn),
                     cudaSuccess);
    const long n = ki_emulate_launches() - before;
    bench_release(&b);
    return n;
}

/* Three processors with 227 KiB each keep an eighth of about five megabytes. */
static void test_the_choice(void **state) {
    (void)state;
    static const shape small = {2000, 64, 0, 0, true}, large = {60000, 64, 0, 0, true},
                       many_channels = {8, 2048, 0, 0, true};
    for (int is_backward = 0; is_backward < 2; is_backward++) {
        assert_int_equal(launches_of(&small, KI_CUDA_BN_CHOOSE, is_backward), 1);
        assert_int_equal(launches_of(&small, KI_CUDA_BN_TWICE, is_backward), 2);
        assert_int_equal(launches_of(&large, KI_CUDA_BN_CHOOSE, is_backward), 2);
        assert_int_equal(launches_of(&large, KI_CUDA_BN_ONCE, is_backward), 1);
        assert_int_equal(launches_of(&many_channels, KI_CUDA_BN_ONCE, is_backward), 2);
    }
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_launches),
        cmocka_unit_test(test_one_launch),
#ifdef KI_EMULATE_HEADERS
        cmocka_unit_test(test_one_launch_with_little_shared_memory),
        cmocka_unit_test(test_the_choice),
#endif
    };
    return cmocka_run_group_tests_name("backend/cuda batch norm", tests, open_device, close_device);
}
