/* Convolutions of the backbones on a CUDA device, one by one: what was tried, what was picked, how fast it is,
 * and whether a few of its numbers are right.
 *
 *     cuda_conv [NAME=VALUE …]
 *       net=googlenet,bn_inception,resnet50   batch=128   size=227   precision=bf16|float32   tf32=0|1
 *       deterministic=0|1   cache=DIR (none: ways are remembered in a fresh folder)   check=1|0   verbose=0|1
 *       first=1|0 (ways to lay out the images of the first convolution)
 *
 * Times are of the pass alone, captured, the best of three rounds, on tensors of noise. Exit status 1 when a
 * number is wrong or a pass is left to the plain kernel. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/cuda/conv/conv2d.h"
#include "backend/cuda/cuda.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "kith/log.h"
#include "net/net.h"

enum { MAX_CONVS = 256, N_POINTS = 24 };

static kith_error err;

static void check(kith_status status, const char *what) {
    if (status == KITH_OK) return;
    fflush(stdout);
    fprintf(stderr, "cuda_conv: %s: %s\n", what, err.message);
    exit(2);
}

static void check_cuda(cudaError_t error, const char *what) {
    if (error == cudaSuccess) return;
    fflush(stdout);
    fprintf(stderr, "cuda_conv: %s: %s\n", what, cudaGetErrorString(error));
    exit(2);
}

static void print_line(void *user, kith_log_level level, const char *line) {
    (void)user;
    printf("%s%s\n", level == KITH_LOG_DEBUG ? "    . " : "    ! ", line);
}

typedef struct settings {
    const char *nets, *cache;
    int64_t batch, size;
    bool bf16, tf32, deterministic, checks, verbose, first;
} settings;

static bool is_yes(const char *value) { return value[0] == '1' || value[0] == 'y'; }

static settings settings_read(int argc, char **argv) {
    settings s = {.nets = "googlenet,bn_inception,resnet50",
                  .batch = 128,
                  .size = 227,
                  .bf16 = true,
                  .checks = true,
                  .first = true};
    for (int i = 1; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        const size_t n = value ? (size_t)(value++ - argv[i]) : 0;
#define IS(name) (n == sizeof name - 1 && strncmp(argv[i], name, n) == 0)
        if (IS("net"))
            s.nets = value;
        else if (IS("batch"))
            s.batch = atoll(value);
        else if (IS("size"))
            s.size = atoll(value);
        else if (IS("precision"))
            s.bf16 = strcmp(value, "bf16") == 0;
        else if (IS("tf32"))
            s.tf32 = is_yes(value);
        else if (IS("deterministic"))
            s.deterministic = is_yes(value);
        else if (IS("cache"))
            s.cache = value;
        else if (IS("check"))
            s.checks = is_yes(value);
        else if (IS("verbose"))
            s.verbose = is_yes(value);
        else if (IS("first"))
            s.first = is_yes(value);
        else {
            fprintf(stderr,
                    "cuda_conv: '%s' is not NAME=VALUE of net batch size precision tf32 deterministic cache "
                    "check verbose first\n",
                    argv[i]);
            exit(2);
        }
#undef IS
    }
    return s;
}

/* The one consumer of a node if it is of that kind, else -1. */
static int only_consumer(const ki_graph *graph, int node, ki_op_kind kind) {
    int found = -1, n = 0;
    for (int i = node + 1; i < ki_graph_count(graph); i++) {
        const ki_node *other = ki_graph_node(graph, i);
        for (int k = 0; k < other->n_src; k++) {
            if (other->src[k] != node) continue;
            found = i;
            n++;
        }
    }
    return n == 1 && ki_graph_node(graph, found)->kind == kind ? found : -1;
}

/* What the planner asks for a convolution in training: ReLU fused, concats without copies. */
static ki_kernel_spec spec_of(const ki_backend *backend, const ki_graph *graph, int node, int64_t batch) {
    const ki_node *conv = ki_graph_node(graph, node), *src = ki_graph_node(graph, conv->src[0]);
    const int relu = only_consumer(graph, node, KI_OP_RELU);
    const int concat = only_consumer(graph, relu >= 0 ? relu : node, KI_OP_CONCAT);
    ki_kernel_spec spec = {.kind = KI_OP_CONV2D,
                           .attr = &conv->attr,
                           .mode = KI_TRAIN,
                           .n_src = 1,
                           .has_relu = relu >= 0,
                           .wants_diff_params = true,
                           .wants_diff_src = {src->kind != KI_OP_INPUT}};
    spec.src[0] = (ki_edge){.shape = src->shape, .layout = src->kind == KI_OP_INPUT ? KI_PLAIN : KI_NATIVE};
    spec.dst = (ki_edge){.shape = conv->shape, .layout = KI_NATIVE};
    spec.src[0].shape.dim[0] = spec.dst.shape.dim[0] = batch;
    if (concat >= 0) spec.dst.pitch = ki_graph_node(graph, concat)->shape.dim[1];
    spec.src[0].bytes = backend->type->memory.edge_bytes(backend, &spec.src[0].shape, spec.src[0].layout);
    spec.dst.bytes = backend->type->memory.edge_bytes(backend, &spec.dst.shape, spec.dst.layout);
    return spec;
}

/* Tensors of one pass on the device, and their numbers on the host when they are checked. */
typedef struct tensors {
    ki_conv_io io;
    char *device;
    size_t offset[6], bytes[6]; /* src, dst, weights, bias, diff_src, workspace */
    char *host;
} tensors;

enum { SRC, DST, WEIGHTS, BIAS, DIFF_SRC, WORKSPACE, N_TENSORS };

static void tensors_new(ki_backend *backend, const ki_conv_problem *p, size_t workspace_bytes, tensors *t) {
    const size_t each = ki_number_bytes(p->type), src = (size_t)(p->mb * p->src.image) * each;
    const size_t bytes[N_TENSORS] = {src,
                                     (size_t)(p->mb * p->dst.image) * each,
                                     (size_t)(p->oc * p->kh * p->kw * p->ic) * sizeof(float),
                                     (size_t)p->oc * sizeof(float),
                                     src,
                                     workspace_bytes};
    size_t total = 0;
    void *device = NULL;
    for (int i = 0; i < N_TENSORS; i++) {
        t->offset[i] = total;
        t->bytes[i] = bytes[i];
        total += ki_round_up(bytes[i] + 1, 256);
    }
    check(ki_cuda_alloc(backend, total, &device, &err), "tensors");
    t->device = device;
    check_cuda(ki_cuda_noise(device, t->offset[WORKSPACE], 7, ki_cuda_of(backend)->stream), "noise");
    char *d = t->device;
    t->io = (ki_conv_io){.src = d + t->offset[SRC],
                         .dst = d + t->offset[DST],
                         .diff_dst = d + t->offset[DST],
                         .weights = d + t->offset[WEIGHTS],
                         .diff_weights = d + t->offset[WEIGHTS],
                         .diff_master = (float *)(void *)(d + t->offset[WEIGHTS]),
                         .bias = (const float *)(const void *)(d + t->offset[BIAS]),
                         .bias_stored = d + t->offset[BIAS],
                         .diff_src = d + t->offset[DIFF_SRC],
                         .workspace = d + t->offset[WORKSPACE]};
}

static double value_at(const tensors *t, int tensor, ki_number type, int64_t at) {
    const char *data = t->host + t->offset[tensor];
    if (type == KI_NUMBER_FLOAT) return (double)((const float *)(const void *)data)[at];
    return (double)ki_bf16_to_float(((const uint16_t *)(const void *)data)[at]);
}

static int64_t map_at(const ki_conv_strides *s, int64_t n, int64_t y, int64_t x, int64_t c) {
    return n * s->image + y * s->row + x * s->pixel + c;
}

/* One output of a pass by the definition, from the tensors before it ran. */
static double expected(const tensors *t, const ki_conv_problem *p, const int64_t at[4], bool stored_bias) {
    double sum = 0;
    const ki_number type = p->type;
    if (p->pass == KI_CONV_FORWARD) { /* at: n, oc, oh, ow */
        if (p->has_bias) sum = value_at(t, BIAS, stored_bias ? type : KI_NUMBER_FLOAT, at[1]);
        for (int64_t i = 0; i < p->kh * p->kw; i++) {
            const int64_t y = at[2] * p->sh - p->ph + i / p->kw, x = at[3] * p->sw - p->pw + i % p->kw;
            if (y < 0 || y >= p->ih || x < 0 || x >= p->iw) continue;
            for (int64_t c = 0; c < p->ic; c++)
                sum += value_at(t, SRC, type, map_at(&p->src, at[0], y, x, c)) *
                       value_at(t, WEIGHTS, type, (at[1] * p->kh * p->kw + i) * p->ic + c);
        }
        return p->has_relu && sum < 0 ? 0 : sum;
    }
    if (p->pass == KI_CONV_DIFF_SRC) { /* at: n, ic, ih, iw */
        for (int64_t i = 0; i < p->kh * p->kw; i++) {
            const int64_t y = at[2] + p->ph - i / p->kw, x = at[3] + p->pw - i % p->kw;
            if (y < 0 || x < 0 || y % p->sh || x % p->sw || y / p->sh >= p->oh || x / p->sw >= p->ow)
                continue;
            for (int64_t o = 0; o < p->oc; o++)
                sum += value_at(t, DST, type, map_at(&p->dst, at[0], y / p->sh, x / p->sw, o)) *
                       value_at(t, WEIGHTS, type, (o * p->kh * p->kw + i) * p->ic + at[1]);
        }
        return sum;
    }
    for (int64_t i = 0; i < p->mb * p->oh * p->ow; i++) { /* at: oc, ic, kh, kw */
        const int64_t n = i / (p->oh * p->ow), oy = i / p->ow % p->oh, ox = i % p->ow;
        const int64_t y = oy * p->sh - p->ph + at[2], x = ox * p->sw - p->pw + at[3];
        if (y < 0 || y >= p->ih || x < 0 || x >= p->iw) continue;
        sum += value_at(t, SRC, type, map_at(&p->src, n, y, x, at[1])) *
               value_at(t, DST, type, map_at(&p->dst, n, oy, ox, at[0]));
    }
    return sum;
}

/* The worst of a few random outputs, as a fraction of what one usually is (the root of the terms' number). */
static double worst_error(ki_backend *backend, ki_conv_way *way, const ki_conv_problem *p) {
    tensors t = {0};
    tensors_new(backend, p, ki_conv_way_workspace_bytes(way), &t);
    const bool adds = ki_conv_way_accumulates(way);
    const bool stored_bias = strncmp(ki_conv_way_text(way), "lt", 2) == 0 ||
                             strncmp(ki_conv_way_text(way), "cudnn fused", 11) == 0;
    const ki_number diff_type = adds ? KI_NUMBER_FLOAT : ki_conv_way_diff_type(way);
    const size_t kept = t.offset[WORKSPACE];
    char *before = malloc(kept), *after = malloc(kept);
    if (!before || !after) abort();
    check_cuda(cudaStreamSynchronize(ki_cuda_of(backend)->stream), "noise");
    check(backend->type->memory.download(backend, t.device, before, kept, &err), "download");
    check(backend->type->memory.sync(backend, &err), "download");
    check(ki_conv_way_bind(way, &t.io, &err), "bind");
    check(ki_conv_way_run(way, ki_cuda_of(backend)->stream, &err), "run");
    check_cuda(cudaStreamSynchronize(ki_cuda_of(backend)->stream), "run");
    check(backend->type->memory.download(backend, t.device, after, kept, &err), "download");
    check(backend->type->memory.sync(backend, &err), "download");
    const int64_t limits[KI_N_CONV_PASSES][4] = {
        {p->mb, p->oc, p->oh, p->ow}, {p->mb, p->ic, p->ih, p->iw}, {p->oc, p->ic, p->kh, p->kw}};
    const double terms[KI_N_CONV_PASSES] = {(double)(p->kh * p->kw * p->ic),
                                            (double)(p->kh * p->kw * p->oc) / (double)(p->sh * p->sw),
                                            (double)(p->mb * p->oh * p->ow)};
    ki_rng rng = ki_rng_at(3, KI_RNG_TEST, 1, 0);
    double worst = 0;
    const int n_points = p->pass == KI_CONV_DIFF_WEIGHTS ? N_POINTS / 4 : N_POINTS;
    for (int i = 0; i < n_points; i++) {
        int64_t at[4];
        for (int k = 0; k < 4; k++) at[k] = (int64_t)(ki_rng_double(&rng) * (double)limits[p->pass][k]);
        t.host = before;
        double want = expected(&t, p, at, stored_bias), got = 0;
        const int64_t w = ((at[0] * p->kh + at[2]) * p->kw + at[3]) * p->ic + at[1];
        if (p->pass == KI_CONV_DIFF_WEIGHTS && adds) want += value_at(&t, WEIGHTS, KI_NUMBER_FLOAT, w);
        t.host = after;
        if (p->pass == KI_CONV_FORWARD)
            got = value_at(&t, DST, p->type, map_at(&p->dst, at[0], at[2], at[3], at[1]));
        else if (p->pass == KI_CONV_DIFF_SRC)
            got = value_at(&t, DIFF_SRC, p->type, map_at(&p->src, at[0], at[2], at[3], at[1]));
        else
            got = value_at(&t, WEIGHTS, diff_type, w);
        const double error = fabs(got - want) / fmax(fabs(want), 0.58 * sqrt(terms[p->pass]));
        if (!(error <= worst)) worst = error;
    }
    free(before);
    free(after);
    ki_cuda_free(backend, t.device);
    return worst;
}

typedef struct totals {
    double seconds[KI_N_CONV_PASSES], flops, build_seconds, time_seconds;
    int n_ways[8], n_wrong, n_convs;
} totals;

enum { LT, CUDNN_FUSED, CUDNN_BARE, CUDNN_PACKED, PLAIN, OTHER, N_WAYS };
static const char *const way_names[N_WAYS] = {"lt",           "cudnn fused", "cudnn bare",
                                              "cudnn packed", "plain",       "other"};

static int way_of(const char *text) {
    if (strstr(text, " packed ")) return CUDNN_PACKED;
    for (int i = 0; i < OTHER; i++) {
        if (strncmp(text, way_names[i], strlen(way_names[i])) == 0) return i;
    }
    return OTHER;
}

/* Bytes a pass must move: each tensor once. */
static double bytes_of(const ki_conv_problem *p) {
    const double each = (double)ki_number_bytes(p->type);
    return each * ((double)(p->mb * p->ih * p->iw * p->ic) + (double)(p->mb * p->oh * p->ow * p->oc) +
                   (double)(p->oc * p->kh * p->kw * p->ic));
}

static const char *const pass_names[KI_N_CONV_PASSES] = {"fwd", "dsrc", "dwei"};

static double measure(ki_backend *backend, const settings *s, const ki_conv_problem *p, double flops,
                      int count, totals *sum) {
    ki_conv_way *way = NULL;
    ki_conv_tuning tuning;
    check(ki_conv_tune(backend, p, &way, &tuning, &err), "tune");
    const double seconds = ki_conv_way_seconds(way);
    const char *text = ki_conv_way_text(way);
    const int kind = way_of(text);
    printf(
        "  %-4s %3d offered %2d built %2d timed %2d wrong %5.2f+%.2f s | %8.1f us %6.1f TFLOP/s %5.0f GB/s "
        "%4zu MiB | ",
        pass_names[p->pass], tuning.n_offered, tuning.n_built, tuning.n_timed, tuning.n_wrong,
        tuning.build_seconds, tuning.time_seconds, 1e6 * seconds, seconds > 0 ? flops / seconds / 1e12 : 0,
        seconds > 0 ? bytes_of(p) / seconds / 1e9 : 0, ki_conv_way_workspace_bytes(way) >> 20);
    if (s->checks) {
        const double error = worst_error(backend, way, p);
        const double most = s->bf16 ? 1e-2 : s->tf32 ? 3e-3 : p->pass == KI_CONV_DIFF_WEIGHTS ? 2e-4 : 2e-5;
        const bool ok = error <= most;
        printf("error %.1e%s | ", error, ok ? "" : " WRONG");
        sum->n_wrong += !ok;
    }
    printf("%.60s%s\n", text, tuning.from_cache ? " (cached)" : "");
    fflush(stdout);
    sum->seconds[p->pass] += seconds * count;
    sum->build_seconds += tuning.build_seconds;
    sum->time_seconds += tuning.time_seconds;
    sum->n_ways[kind] += count;
    ki_conv_way_free(way);
    return seconds;
}

static void run_net(ki_backend *backend, const settings *s, const char *name, totals *all) {
    ki_net net = {0};
    const ki_net_options options = {.backbone = name, .h = s->size, .w = s->size, .embedding = 512};
    static ki_conv_problem known[MAX_CONVS][KI_N_CONV_PASSES];
    static int count[MAX_CONVS], first[MAX_CONVS];
    int n = 0;
    totals sum = {0};
    const double begin = ki_seconds_now();
    check(ki_net_init(&options, &net, &err), name);
    printf("\n%s, batch %lld, %lld px, %s\n", name, (long long)s->batch, (long long)s->size,
           s->bf16   ? "bf16"
           : s->tf32 ? "tf32"
                     : "float32");
    for (int i = 0; i < ki_graph_count(net.graph) && n < MAX_CONVS; i++) {
        if (ki_graph_node(net.graph, i)->kind != KI_OP_CONV2D) continue;
        const ki_kernel_spec spec = spec_of(backend, net.graph, i, s->batch);
        ki_conv_problem problems[KI_N_CONV_PASSES];
        ki_pack_form form;
        int at = 0;
        memset(problems, 0, sizeof problems);
        ki_conv_problems(backend, &spec, problems, &form);
        while (at < n && memcmp(known[at], problems, sizeof problems) != 0) at++;
        if (at == n) {
            memcpy(known[n], problems, sizeof problems);
            count[n] = 0;
            first[n++] = i;
        }
        count[at]++;
        sum.n_convs++;
    }
    for (int i = 0; i < n; i++) {
        const ki_node *node = ki_graph_node(net.graph, first[i]);
        const ki_conv_problem *p = &known[i][0];
        const double flops = 2.0 * (double)(s->batch * p->oh * p->ow * p->oc) *
                             (double)(ki_graph_node(net.graph, node->src[0])->shape.dim[1] *
                                      node->attr.conv.kh * node->attr.conv.kw);
        const bool is_first = ki_graph_node(net.graph, node->src[0])->kind == KI_OP_INPUT;
        printf("%s x%d: ic%lld %lldx%lld -> oc%lld %lldx%lld, k%lldx%lld s%lld%s%s, %.1f GFLOP\n", node->name,
               count[i], (long long)p->ic, (long long)p->ih, (long long)p->iw, (long long)p->oc,
               (long long)p->oh, (long long)p->ow, (long long)p->kh, (long long)p->kw, (long long)p->sh,
               p->has_bias ? " bias" : "", p->dst.pixel != p->oc ? " slice" : "", flops / 1e9);
        for (int pass = 0; pass < KI_N_CONV_PASSES; pass++) {
            if (pass == KI_CONV_DIFF_SRC && is_first) continue;
            measure(backend, s, &known[i][pass], flops, count[i], &sum);
            sum.flops += flops * count[i];
        }
    }
    ki_conv_tune_end(backend);
    const double total = sum.seconds[0] + sum.seconds[1] + sum.seconds[2];
    printf(
        "%s: %d convolutions, %d distinct: forward %.3f ms, diff_src %.3f ms, diff_weights %.3f ms, all %.3f "
        "ms = "
        "%.0f img/s, %.0f TFLOP/s; built %.1f s, timed %.1f s, in all %.1f s; wrong %d\n  ways:",
        name, sum.n_convs, n, 1e3 * sum.seconds[0], 1e3 * sum.seconds[1], 1e3 * sum.seconds[2], 1e3 * total,
        total > 0 ? (double)s->batch / total : 0, total > 0 ? sum.flops / total / 1e12 : 0, sum.build_seconds,
        sum.time_seconds, ki_seconds_now() - begin, sum.n_wrong);
    for (int i = 0; i < N_WAYS; i++) {
        if (sum.n_ways[i]) printf(" %s %d", way_names[i], sum.n_ways[i]);
        all->n_ways[i] += sum.n_ways[i];
    }
    printf("\n");
    fflush(stdout);
    all->n_wrong += sum.n_wrong;
    ki_net_release(&net);
}

/* The 7x7 convolution on images, with their three channels filled up in several ways. */
static void run_first(ki_backend *backend, const settings *s, totals *all) {
    const struct {
        const char *name;
        int64_t c, iw, kw, sw, pw, pw_end;
    } rows[] = {{"8 channels", 8, 227, 7, 2, 3, 3},
                {"4 channels", 4, 227, 7, 2, 3, 3},
                {"pairs of pixels of 4 channels", 8, 114, 4, 1, 2, 1}};
    printf("\nfirst convolution, 227 px, 7x7 stride 2 to 64 channels\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ki_conv_problem p;
        memset(&p, 0, sizeof p);
        p.type = s->bf16 ? KI_NUMBER_BF16 : KI_NUMBER_FLOAT;
        p.mb = s->batch, p.ic = rows[i].c, p.ih = 227, p.iw = rows[i].iw;
        p.oc = 64, p.oh = p.ow = 114, p.kh = 7, p.kw = rows[i].kw, p.sh = 2, p.sw = rows[i].sw;
        p.ph = p.ph_end = 3, p.pw = rows[i].pw, p.pw_end = rows[i].pw_end;
        p.src = (ki_conv_strides){p.ih * p.iw * p.ic, p.iw * p.ic, p.ic};
        p.dst = (ki_conv_strides){p.oh * p.ow * p.oc, p.ow * p.oc, p.oc};
        printf("%s\n", rows[i].name);
        for (int pass = 0; pass < KI_N_CONV_PASSES; pass += 2) {
            p.pass = (ki_conv_pass)pass;
            totals ignored = {0};
            measure(backend, s, &p, 2.0 * (double)(s->batch * 114 * 114 * 64) * 147, 1, &ignored);
            all->n_wrong += ignored.n_wrong;
        }
    }
}

int main(int argc, char **argv) {
    const settings s = settings_read(argc, argv);
    char fresh[] = "/tmp/cuda_conv.XXXXXX";
    const char *cache = s.cache ? s.cache : mkdtemp(fresh);
    const ki_backend_options options = {.precision = s.bf16 ? KI_BF16 : KI_FLOAT32,
                                        .tf32 = s.tf32,
                                        .deterministic = s.deterministic,
                                        .cache = cache};
    ki_backend *backend = NULL;
    totals all = {0};
    kith_log_set(print_line, NULL, s.verbose ? KITH_LOG_DEBUG : KITH_LOG_INFO);
    check(ki_backend_open("cuda", &options, &backend, &err), "open");
    printf("%d multiprocessors, ways remembered in %s\n", ki_cuda_of(backend)->n_processors, cache);
    if (s.first) run_first(backend, &s, &all);
    char nets[256];
    snprintf(nets, sizeof nets, "%s", s.nets);
    for (char *name = strtok(nets, ","); name; name = strtok(NULL, ",")) run_net(backend, &s, name, &all);
    ki_backend_close(backend);
    printf("\nwrong numbers: %d, passes left to the plain kernel: %d\n", all.n_wrong, all.n_ways[PLAIN]);
    return all.n_wrong || all.n_ways[PLAIN] ? 1 : 0;
}
