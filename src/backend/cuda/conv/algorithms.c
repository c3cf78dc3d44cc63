/* The ways to compute a pass, how they are written down, running and timing one. */
#include "backend/cuda/conv/algorithms.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/conv/kernels.h"
#include "backend/cuda/conv/ways.h"

static const char *const form_names[KI_N_CUDNN_FORMS] = {"bare", "fused"};

void ki_conv_algorithm_free(ki_conv_algorithm *a) {
    if (!a) return;
    if (a->pointers) (void)cudnnBackendDestroyDescriptor(a->pointers);
    if (a->plan) (void)cudnnBackendDestroyDescriptor(a->plan);
    ki_cudnn_graph_release(&a->graph);
    ki_free(a);
}

/* cuBLASLt wants its workspace at a multiple of 256 bytes; a plan's scratch begins anywhere. */
enum { WORKSPACE_ALIGN = 256 };
size_t ki_conv_workspace_bytes(const ki_conv_algorithm *a) {
    return a->workspace_bytes ? a->workspace_bytes + WORKSPACE_ALIGN : 0;
}
bool ki_conv_accumulates(const ki_conv_algorithm *a) {
    return a->problem.pass == KI_CONV_DIFF_WEIGHTS && a->way == KI_WAY_LT;
}
ki_number ki_conv_diff_type(const ki_conv_algorithm *a) {
    return a->way == KI_WAY_CUDNN ? a->problem.type : KI_NUMBER_FLOAT;
}
const char *ki_conv_text(const ki_conv_algorithm *a) { return a->text; }
double ki_conv_seconds(const ki_conv_algorithm *a) { return a->seconds; }

bool ki_conv_dst_is_packed(const ki_conv_problem *p) {
    return p->dst.pixel == p->oc && p->dst.row == p->ow * p->oc && p->dst.image == p->oh * p->ow * p->oc;
}

ki_conv_problem ki_conv_packed(const ki_conv_problem *problem) {
    ki_conv_problem p = *problem;
    p.dst = (ki_conv_strides){.image = p.oh * p.ow * p.oc, .row = p.ow * p.oc, .pixel = p.oc};
    return p;
}

static kith_status way_new(ki_backend *backend, const ki_conv_problem *problem, ki_conv_way way,
                           ki_conv_algorithm **ret_algorithm, kith_error *err) {
    ki_conv_algorithm *a = NULL;
    KI_TRY(ki_zalloc_or(&a, 1, sizeof *a, "an algorithm", err));
    a->backend = backend;
    a->problem = *problem;
    a->way = way;
    const kith_status status = ki_cuda_libraries_of(backend, &a->libraries, err);
    if (status == KITH_OK)
        *ret_algorithm = a;
    else
        ki_free(a);
    return status;
}

kith_status ki_conv_way_plain(ki_backend *backend, const ki_conv_problem *problem,
                              ki_conv_algorithm **ret_algorithm, kith_error *err) {
    KI_TRY(way_new(backend, problem, KI_WAY_PLAIN, ret_algorithm, err));
    snprintf((*ret_algorithm)->text, sizeof(*ret_algorithm)->text, "plain");
    return KITH_OK;
}

static bool has_no_gaps(const ki_conv_strides *s, int64_t h, int64_t w) {
    return s->row == w * s->pixel && s->image == h * s->row;
}

bool ki_conv_product(const ki_backend *backend, const ki_conv_problem *p, ki_lt_product *ret_product) {
    if (p->kh != 1 || p->kw != 1 || p->sh != 1 || p->sw != 1 || p->ph || p->pw || p->ph_end || p->pw_end)
        return false;
    if (!has_no_gaps(&p->src, p->ih, p->iw) || !has_no_gaps(&p->dst, p->oh, p->ow)) return false;
    if (p->pass == KI_CONV_DIFF_WEIGHTS && !p->plain_weights) return false;
    const int64_t n_pixels = p->mb * p->oh * p->ow;
    ki_lt_product *q = ret_product;
    memset(q, 0, sizeof *q);
    q->tf32 = backend->options.tf32;
    q->a_type = q->c_type = p->type;
    q->batch = 1;
    q->align_a = q->align_b = q->align_c = 16;
    switch (p->pass) {
    case KI_CONV_FORWARD: /* dst = src weights^T */
        q->m = n_pixels, q->n = p->oc, q->k = p->ic;
        q->lda = p->src.pixel, q->ldb = p->ic, q->ldc = p->dst.pixel, q->tb = true;
        q->has_bias = p->has_bias, q->has_relu = p->has_relu;
        break;
    case KI_CONV_DIFF_SRC: /* diff_src = diff_dst weights */
        q->m = n_pixels, q->n = p->ic, q->k = p->oc;
        q->lda = p->dst.pixel, q->ldb = p->ic, q->ldc = p->src.pixel;
        break;
    default: /* diff_weights += diff_dst^T src */
        q->m = p->oc, q->n = p->ic, q->k = n_pixels;
        q->lda = p->dst.pixel, q->ldb = p->src.pixel, q->ldc = p->ic, q->ta = true;
        q->c_type = KI_NUMBER_FLOAT;
        break;
    }
    return true;
}

kith_status ki_conv_way_lt(ki_backend *backend, const ki_conv_problem *problem,
                           const cublasLtMatmulAlgo_t *algo, size_t workspace_bytes,
                           ki_conv_algorithm **ret_algorithm, kith_error *err) {
    ki_conv_algorithm *a = NULL;
    cublasLtMatmulHeuristicResult_t check;
    KI_TRY(way_new(backend, problem, KI_WAY_LT, &a, err));
    kith_status status = KITH_OK;
    if (!ki_conv_product(backend, problem, &a->product)) {
        status = ki_fail(err, KITH_EUNSUPPORTED, "the convolution is no product of matrices");
        goto done;
    }
    KI_CHECK(ki_lt_describe(&a->product, &a->call, err));
    a->algo = *algo;
    a->workspace_bytes = workspace_bytes;
    const cublasStatus_t checked = cublasLtMatmulAlgoCheck(
        a->libraries->lt, &a->call.desc, &a->call.a, &a->call.b, &a->call.c, &a->call.c, &a->algo, &check);
    if (checked != CUBLAS_STATUS_SUCCESS || check.workspaceSize > workspace_bytes) {
        status = ki_fail(err, KITH_EUNSUPPORTED, "cuBLASLt: the algorithm does not fit the product (%s)",
                         cublasLtGetStatusString(checked));
        goto done;
    }
    int n = snprintf(a->text, sizeof a->text, "lt %zu", workspace_bytes);
    for (size_t i = 0; i < sizeof algo->data / sizeof algo->data[0]; i++)
        n += snprintf(a->text + n, sizeof a->text - (size_t)n, " %" PRIx64, (uint64_t)algo->data[i]);
    *ret_algorithm = a;
    a = NULL;
done:
    ki_conv_algorithm_free(a);
    return status;
}

static void write_cudnn(ki_conv_algorithm *a) {
    if (a->choice.by_place) {
        snprintf(a->text, sizeof a->text, "cudnn %s %s place %d %d", form_names[a->form],
                 a->packs_dst ? "packed" : "direct", a->choice.mode, a->choice.place);
        return;
    }
    int n = snprintf(a->text, sizeof a->text, "cudnn %s %s %" PRId64, form_names[a->form],
                     a->packs_dst ? "packed" : "direct", a->choice.engine);
    for (int i = 0; i < a->choice.n_knobs && n > 0 && (size_t)n < sizeof a->text; i++)
        n += snprintf(a->text + n, sizeof a->text - (size_t)n, " %" PRId64 "=%" PRId64, a->choice.knob[i],
                      a->choice.value[i]);
}

kith_status ki_conv_way_cudnn(ki_backend *backend, const ki_conv_problem *problem, ki_cudnn_form form,
                              bool packs_dst, const ki_cudnn_choice *choice,
                              ki_conv_algorithm **ret_algorithm, kith_error *err) {
    ki_conv_algorithm *a = NULL;
    const ki_conv_problem seen = packs_dst ? ki_conv_packed(problem) : *problem;
    cudnnBackendDescriptor_t config = NULL;
    size_t bytes = 0;
    KI_TRY(way_new(backend, problem, KI_WAY_CUDNN, &a, err));
    kith_status status = KITH_OK;
    a->form = form;
    a->packs_dst = packs_dst;
    a->choice = *choice;
    KI_CHECK(ki_cudnn_graph_init(a->libraries->cudnn, &seen, form, &a->graph, err));
    KI_CHECK(ki_cudnn_config_new(&a->graph, choice, &config, err));
    KI_CHECK(ki_cudnn_plan_new(a->libraries->cudnn, config, &a->plan, &bytes, err));
    if (packs_dst)
        a->packed_bytes = ki_round_up((size_t)(seen.mb * seen.dst.image) * ki_number_bytes(seen.type), 256);
    a->workspace_bytes = a->packed_bytes + bytes;
    write_cudnn(a);
    *ret_algorithm = a;
    a = NULL;
done:
    ki_conv_algorithm_free(a);
    return status;
}

static kith_status parse_lt(ki_backend *backend, const ki_conv_problem *problem, const char *text,
                            ki_conv_algorithm **ret_algorithm, kith_error *err) {
    cublasLtMatmulAlgo_t algo;
    char *end = NULL;
    const size_t bytes = strtoull(text, &end, 10);
    for (size_t i = 0; i < sizeof algo.data / sizeof algo.data[0]; i++) {
        if (*end != ' ') return ki_fail(err, KITH_EUNSUPPORTED, "not an algorithm of cuBLASLt: %.60s", text);
        algo.data[i] = strtoull(end + 1, &end, 16);
    }
    return ki_conv_way_lt(backend, problem, &algo, bytes, ret_algorithm, err);
}

static kith_status parse_cudnn(ki_backend *backend, const ki_conv_problem *problem, const char *text,
                               ki_conv_algorithm **ret_algorithm, kith_error *err) {
    char form_name[16] = "", where[16] = "";
    ki_cudnn_choice choice = {0};
    int form = 0, n = 0;
    if (sscanf(text, "%15s %15s place %d %d", form_name, where, &choice.mode, &choice.place) == 4)
        choice.by_place = true;
    const int found = sscanf(text, "%15s %15s %" SCNd64 "%n", form_name, where, &choice.engine, &n);
    while (form < KI_N_CUDNN_FORMS && strcmp(form_name, form_names[form]) != 0) form++;
    if ((found != 3 && !choice.by_place) || form == KI_N_CUDNN_FORMS)
        return ki_fail(err, KITH_EUNSUPPORTED, "not an engine of cuDNN: %.60s", text);
    const char *rest = text + n;
    while (!choice.by_place && *rest) {
        const int i = choice.n_knobs;
        if (i == KI_CUDNN_MAX_KNOBS ||
            sscanf(rest, " %" SCNd64 "=%" SCNd64 "%n", &choice.knob[i], &choice.value[i], &n) != 2)
            return ki_fail(err, KITH_EUNSUPPORTED, "not an engine of cuDNN: %.60s", text);
        choice.n_knobs++;
        rest += n;
    }
    return ki_conv_way_cudnn(backend, problem, (ki_cudnn_form)form, strcmp(where, "packed") == 0, &choice,
                             ret_algorithm, err);
}

kith_status ki_conv_way_parse(ki_backend *backend, const ki_conv_problem *problem, const char *text,
                              ki_conv_algorithm **ret_algorithm, kith_error *err) {
    if (strcmp(text, "plain") == 0) return ki_conv_way_plain(backend, problem, ret_algorithm, err);
    if (strncmp(text, "lt ", 3) == 0) return parse_lt(backend, problem, text + 3, ret_algorithm, err);
    if (strncmp(text, "cudnn ", 6) == 0) return parse_cudnn(backend, problem, text + 6, ret_algorithm, err);
    return ki_fail(err, KITH_EUNSUPPORTED, "not an algorithm: %.60s", text);
}

kith_status ki_conv_bind(ki_conv_algorithm *a, const ki_conv_io *io, kith_error *err) {
    const void *const maps[] = {io->src, io->dst, io->diff_dst, io->diff_src};
    for (int i = 0; i < 4; i++) {
        if ((uintptr_t)maps[i] % 16 != 0)
            return ki_fail(err, KITH_EINTERNAL,
                           "a map of a convolution begins at %p; wanted a multiple of 16", maps[i]);
    }
    a->io = *io;
    const size_t off = (uintptr_t)io->workspace % WORKSPACE_ALIGN;
    a->io.workspace = a->workspace_bytes ? (char *)io->workspace + (off ? WORKSPACE_ALIGN - off : 0) : NULL;
    if (a->way == KI_WAY_LT && a->product.has_bias) return ki_lt_set_bias(&a->call, io->bias_stored, err);
    if (a->way != KI_WAY_CUDNN) return KITH_OK;
    ki_conv_io seen = a->io;
    if (a->packs_dst) {
        seen.dst = a->io.workspace;
        seen.diff_dst = a->io.workspace;
        seen.workspace = (char *)a->io.workspace + a->packed_bytes;
    }
    if (a->pointers) (void)cudnnBackendDestroyDescriptor(a->pointers);
    a->pointers = NULL;
    return ki_cudnn_pointers_new(&a->problem, a->form, &seen, &a->pointers, err);
}

static kith_status run_lt(const ki_conv_algorithm *a, cudaStream_t stream, kith_error *err) {
    const ki_conv_io *io = &a->io;
    ki_lt_call call = a->call;
    cublasLtHandle_t lt = a->libraries->lt;
    switch (a->problem.pass) {
    case KI_CONV_FORWARD:
        return ki_lt_run(lt, &call, &a->algo, 1, io->src, io->weights, 0, io->dst, io->workspace,
                         a->workspace_bytes, stream, err);
    case KI_CONV_DIFF_SRC:
        return ki_lt_run(lt, &call, &a->algo, 1, io->diff_dst, io->weights, a->problem.adds, io->diff_src,
                         io->workspace, a->workspace_bytes, stream, err);
    default:
        return ki_lt_run(lt, &call, &a->algo, 1, io->diff_dst, io->src, 1, io->diff_master, io->workspace,
                         a->workspace_bytes, stream, err);
    }
}

static kith_status run_cudnn(const ki_conv_algorithm *a, cudaStream_t stream, kith_error *err) {
    const ki_conv_problem *p = &a->problem;
    const int64_t n_pixels = p->mb * p->oh * p->ow;
    if (a->packs_dst && p->pass != KI_CONV_FORWARD)
        KI_CUDA(ki_cuda_bias_relu(p->type, n_pixels, p->oc, a->io.diff_dst, p->dst.pixel, NULL, false,
                                  a->io.workspace, p->oc, stream));
    if (a->libraries->cudnn_stream != stream) KI_CUDNN(cudnnSetStream(a->libraries->cudnn, stream));
    a->libraries->cudnn_stream = stream;
    KI_CUDNN(cudnnBackendExecute(a->libraries->cudnn, a->plan, a->pointers));
    if (p->pass != KI_CONV_FORWARD) return KITH_OK;
    const bool is_done = a->form != KI_CUDNN_BARE || !(p->has_bias || p->has_relu);
    if (is_done && !a->packs_dst) return KITH_OK;
    KI_CUDA(ki_cuda_bias_relu(p->type, n_pixels, p->oc, a->packs_dst ? a->io.workspace : a->io.dst,
                              a->packs_dst ? p->oc : p->dst.pixel,
                              is_done || !p->has_bias ? NULL : a->io.bias, !is_done && p->has_relu, a->io.dst,
                              p->dst.pixel, stream));
    return KITH_OK;
}

kith_status ki_conv_run(ki_conv_algorithm *a, cudaStream_t stream, kith_error *err) {
    const ki_conv_problem *p = &a->problem;
    if (a->way == KI_WAY_PLAIN) {
        KI_CUDA(ki_cuda_conv_plain(p, &a->io, stream));
        return KITH_OK;
    }
    return a->way == KI_WAY_LT ? run_lt(a, stream, err) : run_cudnn(a, stream, err);
}

enum { REPEATS = 8, LAUNCHES = 3 }; /* runs in a timed graph, and how often it is launched */

static kith_status elapsed(const ki_conv_algorithm *a, double *ret_seconds, kith_error *err) {
    float milliseconds = 0;
    KI_CUDA(cudaEventSynchronize(a->libraries->end));
    KI_CUDA(cudaEventElapsedTime(&milliseconds, a->libraries->begin, a->libraries->end));
    *ret_seconds = 1e-3 * (double)milliseconds;
    return KITH_OK;
}

static kith_status run_once(ki_conv_algorithm *a, double *ret_seconds, kith_error *err) {
    cudaStream_t stream = ki_cuda_of(a->backend)->stream;
    KI_CUDA(cudaEventRecord(a->libraries->begin, stream));
    KI_TRY(ki_conv_run(a, stream, err));
    KI_CUDA(cudaEventRecord(a->libraries->end, stream));
    return elapsed(a, ret_seconds, err);
}

static kith_status capture(ki_conv_algorithm *a, int n, cudaGraphExec_t *ret_graph, kith_error *err) {
    cudaStream_t stream = ki_cuda_of(a->backend)->stream;
    cudaGraph_t graph = NULL;
    kith_status status = KITH_OK;
    KI_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < n && status == KITH_OK; i++) status = ki_conv_run(a, stream, err);
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
    if (status == KITH_OK && ended != cudaSuccess) status = ki_cuda_fail(err, ended, "cudaStreamEndCapture");
    if (status == KITH_OK) {
        const cudaError_t made = cudaGraphInstantiate(ret_graph, graph, 0);
        if (made != cudaSuccess) status = ki_cuda_fail(err, made, "cudaGraphInstantiate");
    }
    if (graph) (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError();
    return status;
}

static kith_status time_graph(const ki_conv_algorithm *a, cudaGraphExec_t graph, int n_launches,
                              double *ret_seconds, kith_error *err) {
    cudaStream_t stream = ki_cuda_of(a->backend)->stream;
    double best = 1e9;
    KI_CUDA(cudaGraphLaunch(graph, stream));
    for (int i = 0; i < n_launches; i++) {
        double seconds = 0;
        KI_CUDA(cudaEventRecord(a->libraries->begin, stream));
        KI_CUDA(cudaGraphLaunch(graph, stream));
        KI_CUDA(cudaEventRecord(a->libraries->end, stream));
        KI_TRY(elapsed(a, &seconds, err));
        if (seconds < best) best = seconds;
    }
    *ret_seconds = best;
    return KITH_OK;
}

/* Seconds of a run, of n in a graph. */
static kith_status time_runs(ki_conv_algorithm *a, int n, int n_launches, double *ret_seconds,
                             kith_error *err) {
    cudaGraphExec_t graph = NULL;
    double seconds = 0;
    KI_TRY(capture(a, n, &graph, err));
    const kith_status status = time_graph(a, graph, n_launches, &seconds, err);
    (void)cudaGraphExecDestroy(graph);
    *ret_seconds = seconds / n;
    return status;
}

/* Long runs are timed one by one: a launch takes nothing beside them. */
#define LONG_SECONDS 1e-3

static bool can_be_captured(ki_conv_algorithm *a, kith_error *err) {
    cudaGraphExec_t graph = NULL;
    const bool can = capture(a, 1, &graph, err) == KITH_OK;
    if (can) (void)cudaGraphExecDestroy(graph);
    return can;
}

kith_status ki_conv_time(ki_conv_algorithm *a, const ki_conv_io *io, double best, double *ret_seconds,
                         kith_error *err) {
    double seconds = 0;
    KI_TRY(ki_conv_bind(a, io, err));
    KI_TRY(run_once(a, &seconds, err)); /* loads what it needs */
    KI_TRY(run_once(a, &seconds, err));
    *ret_seconds = seconds;
    if (seconds > 3 * best + 1e-4) return KITH_OK;
    if (seconds <= LONG_SECONDS) return time_runs(a, REPEATS, LAUNCHES, ret_seconds, err);
    if (!can_be_captured(a, err)) return KITH_EUNSUPPORTED;
    if (seconds > 1.5 * best) return KITH_OK;
    KI_TRY(run_once(a, ret_seconds, err));
    if (seconds < *ret_seconds) *ret_seconds = seconds;
    return KITH_OK;
}

kith_status ki_conv_time_closely(ki_conv_algorithm *a, const ki_conv_io *io, double *ret_seconds,
                                 kith_error *err) {
    KI_TRY(ki_conv_bind(a, io, err));
    if (a->seconds > LONG_SECONDS) return time_runs(a, 1, LAUNCHES, ret_seconds, err);
    return time_runs(a, 4 * REPEATS, 2 * LAUNCHES, ret_seconds, err);
}
