/* The ways to compute a pass: making one, writing it as text and reading it back, binding and running it. */
#include "backend/cuda/conv/way.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/conv/kernels.h"
#include "backend/cuda/conv/way_parts.h"
#include "base/text.h"

static const char *const form_names[KI_N_CUDNN_FORMS] = {"bare", "fused"};

void ki_conv_way_free(ki_conv_way *w) {
    if (!w) return;
    if (w->pointers) (void)cudnnBackendDestroyDescriptor(w->pointers);
    if (w->plan) (void)cudnnBackendDestroyDescriptor(w->plan);
    ki_cudnn_graph_release(&w->graph);
    ki_free(w);
}

/* cuBLASLt needs its workspace at a multiple of 256 bytes, but a plan's scratch memory may begin anywhere. */
enum { WORKSPACE_ALIGN = 256 };
size_t ki_conv_way_workspace_bytes(const ki_conv_way *w) {
    return w->workspace_bytes ? w->workspace_bytes + WORKSPACE_ALIGN : 0;
}
bool ki_conv_way_accumulates(const ki_conv_way *w) {
    return w->problem.pass == KI_CONV_DIFF_WEIGHTS && w->kind == KI_WAY_LT;
}
bool ki_conv_way_takes_part(const ki_conv_way *w) { return w->kind == KI_WAY_DEPTHWISE; }
bool ki_conv_way_is_plain(const ki_conv_way *w) { return w->kind == KI_WAY_PLAIN; }
ki_number ki_conv_way_diff_type(const ki_conv_way *w) {
    return w->kind == KI_WAY_CUDNN ? w->problem.type : KI_NUMBER_FLOAT;
}
const char *ki_conv_way_text(const ki_conv_way *w) { return w->text; }
double ki_conv_way_seconds(const ki_conv_way *w) { return w->seconds; }

bool ki_conv_dst_is_packed(const ki_conv_problem *p) {
    return p->dst.pixel == p->oc && p->dst.row == p->ow * p->oc && p->dst.image == p->oh * p->ow * p->oc;
}

ki_conv_problem ki_conv_packed(const ki_conv_problem *problem) {
    ki_conv_problem p = *problem;
    p.dst = (ki_conv_strides){.image = p.oh * p.ow * p.oc, .row = p.ow * p.oc, .pixel = p.oc};
    return p;
}

static kith_status way_new(ki_backend *backend, const ki_conv_problem *problem, ki_conv_way_kind kind,
                           ki_conv_way **ret_way, kith_error *err) {
    ki_conv_way *w = NULL;
    KI_TRY(ki_zalloc_or(&w, 1, sizeof *w, "a way", err));
    w->backend = backend;
    w->problem = *problem;
    w->kind = kind;
    const kith_status status = ki_cuda_libraries_of(backend, &w->libraries, err);
    if (status == KITH_OK)
        *ret_way = w;
    else
        ki_free(w);
    return status;
}

kith_status ki_conv_way_plain(ki_backend *backend, const ki_conv_problem *problem, ki_conv_way **ret_way,
                              kith_error *err) {
    KI_TRY(way_new(backend, problem, KI_WAY_PLAIN, ret_way, err));
    ki_snprintf((*ret_way)->text, sizeof(*ret_way)->text, "plain");
    return KITH_OK;
}

kith_status ki_conv_way_depthwise(ki_backend *backend, const ki_conv_problem *problem, ki_conv_way **ret_way,
                                  kith_error *err) {
    if (!ki_cuda_conv_is_depthwise(problem))
        return ki_fail(err, KITH_EUNSUPPORTED, "the kernels for depthwise convolutions do not fit");
    KI_TRY(way_new(backend, problem, KI_WAY_DEPTHWISE, ret_way, err));
    (*ret_way)->workspace_bytes = ki_cuda_conv_depthwise_workspace(problem);
    ki_snprintf((*ret_way)->text, sizeof(*ret_way)->text, "depthwise");
    return KITH_OK;
}

static bool has_no_gaps(const ki_conv_strides *s, int64_t h, int64_t w) {
    return s->row == w * s->pixel && s->image == h * s->row;
}

bool ki_conv_product(const ki_backend *backend, const ki_conv_problem *p, ki_lt_product *ret_product) {
    if (p->groups > 1 || p->kh != 1 || p->kw != 1 || p->sh != 1 || p->sw != 1 || p->ph || p->pw ||
        p->ph_end || p->pw_end)
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
                           const cublasLtMatmulAlgo_t *algo, size_t workspace_bytes, ki_conv_way **ret_way,
                           kith_error *err) {
    ki_conv_way *w = NULL;
    cublasLtMatmulHeuristicResult_t check;
    KI_TRY(way_new(backend, problem, KI_WAY_LT, &w, err));
    kith_status status = KITH_OK;
    if (!ki_conv_product(backend, problem, &w->product)) {
        status = ki_fail(err, KITH_EUNSUPPORTED, "the convolution is no product of matrices");
        goto done;
    }
    KI_CHECK(ki_lt_describe(&w->product, &w->call, err));
    w->algo = *algo;
    w->workspace_bytes = workspace_bytes;
    const cublasStatus_t checked = cublasLtMatmulAlgoCheck(
        w->libraries->lt, &w->call.desc, &w->call.a, &w->call.b, &w->call.c, &w->call.c, &w->algo, &check);
    if (checked != CUBLAS_STATUS_SUCCESS || check.workspaceSize > workspace_bytes) {
        status = ki_fail(err, KITH_EUNSUPPORTED, "cuBLASLt: the algorithm does not fit the product (%s)",
                         cublasLtGetStatusString(checked));
        goto done;
    }
    int n = ki_snprintf(w->text, sizeof w->text, "lt %zu", workspace_bytes);
    for (size_t i = 0; i < sizeof algo->data / sizeof algo->data[0]; i++)
        n += ki_snprintf(w->text + n, sizeof w->text - (size_t)n, " %" PRIx64, (uint64_t)algo->data[i]);
    *ret_way = w;
    w = NULL;
done:
    ki_conv_way_free(w);
    return status;
}

static void write_cudnn(ki_conv_way *w) {
    if (w->setting.by_place) {
        ki_snprintf(w->text, sizeof w->text, "cudnn %s %s place %d %d", form_names[w->form],
                    w->packs_dst ? "packed" : "direct", w->setting.mode, w->setting.place);
        return;
    }
    int n = ki_snprintf(w->text, sizeof w->text, "cudnn %s %s %" PRId64, form_names[w->form],
                        w->packs_dst ? "packed" : "direct", w->setting.engine);
    for (int i = 0; i < w->setting.n_knobs && n > 0 && (size_t)n < sizeof w->text; i++)
        n += ki_snprintf(w->text + n, sizeof w->text - (size_t)n, " %" PRId64 "=%" PRId64, w->setting.knob[i],
                         w->setting.value[i]);
}

kith_status ki_conv_way_cudnn(ki_backend *backend, const ki_conv_problem *problem, ki_cudnn_form form,
                              bool packs_dst, const ki_cudnn_setting *setting, ki_conv_way **ret_way,
                              kith_error *err) {
    ki_conv_way *w = NULL;
    const ki_conv_problem seen = packs_dst ? ki_conv_packed(problem) : *problem;
    cudnnBackendDescriptor_t config = NULL;
    size_t bytes = 0;
    KI_TRY(way_new(backend, problem, KI_WAY_CUDNN, &w, err));
    kith_status status = KITH_OK;
    w->form = form;
    w->packs_dst = packs_dst;
    w->setting = *setting;
    KI_CHECK(ki_cudnn_graph_init(w->libraries->cudnn, &seen, form, &w->graph, err));
    KI_CHECK(ki_cudnn_config_new(&w->graph, setting, &config, err));
    KI_CHECK(ki_cudnn_plan_new(w->libraries->cudnn, config, &w->plan, &bytes, err));
    if (packs_dst)
        w->packed_bytes = ki_round_up((size_t)(seen.mb * seen.dst.image) * ki_number_bytes(seen.type), 256);
    w->workspace_bytes = w->packed_bytes + bytes;
    write_cudnn(w);
    *ret_way = w;
    w = NULL;
done:
    ki_conv_way_free(w);
    return status;
}

static kith_status parse_lt(ki_backend *backend, const ki_conv_problem *problem, const char *text,
                            ki_conv_way **ret_way, kith_error *err) {
    cublasLtMatmulAlgo_t algo;
    char *end = NULL;
    const size_t bytes = strtoull(text, &end, 10);
    for (size_t i = 0; i < sizeof algo.data / sizeof algo.data[0]; i++) {
        if (*end != ' ') return ki_fail(err, KITH_EUNSUPPORTED, "not an algorithm of cuBLASLt: %.60s", text);
        algo.data[i] = strtoull(end + 1, &end, 16);
    }
    return ki_conv_way_lt(backend, problem, &algo, bytes, ret_way, err);
}

static kith_status parse_cudnn(ki_backend *backend, const ki_conv_problem *problem, const char *text,
                               ki_conv_way **ret_way, kith_error *err) {
    char form_name[16] = "", where[16] = "";
    ki_cudnn_setting setting = {0};
    int form = 0, n = 0;
    if (sscanf(text, "%15s %15s place %d %d", form_name, where, &setting.mode, &setting.place) == 4)
        setting.by_place = true;
    const int found = sscanf(text, "%15s %15s %" SCNd64 "%n", form_name, where, &setting.engine, &n);
    while (form < KI_N_CUDNN_FORMS && strcmp(form_name, form_names[form]) != 0) form++;
    if ((found != 3 && !setting.by_place) || form == KI_N_CUDNN_FORMS)
        return ki_fail(err, KITH_EUNSUPPORTED, "not an engine of cuDNN: %.60s", text);
    const char *rest = text + n;
    while (!setting.by_place && *rest) {
        const int i = setting.n_knobs;
        if (i == KI_CUDNN_MAX_KNOBS ||
            sscanf(rest, " %" SCNd64 "=%" SCNd64 "%n", &setting.knob[i], &setting.value[i], &n) != 2)
            return ki_fail(err, KITH_EUNSUPPORTED, "not an engine of cuDNN: %.60s", text);
        setting.n_knobs++;
        rest += n;
    }
    return ki_conv_way_cudnn(backend, problem, (ki_cudnn_form)form, strcmp(where, "packed") == 0, &setting,
                             ret_way, err);
}

kith_status ki_conv_way_parse(ki_backend *backend, const ki_conv_problem *problem, const char *text,
                              ki_conv_way **ret_way, kith_error *err) {
    if (strcmp(text, "plain") == 0) return ki_conv_way_plain(backend, problem, ret_way, err);
    if (strcmp(text, "depthwise") == 0) return ki_conv_way_depthwise(backend, problem, ret_way, err);
    if (strncmp(text, "lt ", 3) == 0) return parse_lt(backend, problem, text + 3, ret_way, err);
    if (strncmp(text, "cudnn ", 6) == 0) return parse_cudnn(backend, problem, text + 6, ret_way, err);
    return ki_fail(err, KITH_EUNSUPPORTED, "not a way to compute a convolution: %.60s", text);
}

kith_status ki_conv_way_bind(ki_conv_way *w, const ki_conv_io *io, kith_error *err) {
    const void *const maps[] = {io->src, io->dst, io->diff_dst, io->diff_src, io->added, io->diff_added};
    for (int i = 0; i < 6; i++) {
        if ((uintptr_t)maps[i] % 16 != 0)
            return ki_fail(err, KITH_EINTERNAL,
                           "a map of a convolution begins at %p; wanted a multiple of 16", maps[i]);
    }
    w->io = *io;
    const size_t off = (uintptr_t)io->workspace % WORKSPACE_ALIGN;
    w->io.workspace = w->workspace_bytes ? (char *)io->workspace + (off ? WORKSPACE_ALIGN - off : 0) : NULL;
    if (w->kind == KI_WAY_LT && w->product.has_bias) return ki_lt_set_bias(&w->call, io->bias_stored, err);
    if (w->kind != KI_WAY_CUDNN) return KITH_OK;
    ki_conv_io seen = w->io;
    if (w->packs_dst) {
        seen.dst = w->io.workspace;
        seen.diff_dst = w->io.workspace;
        seen.workspace = (char *)w->io.workspace + w->packed_bytes;
    }
    if (w->pointers) (void)cudnnBackendDestroyDescriptor(w->pointers);
    w->pointers = NULL;
    return ki_cudnn_pointers_new(&w->problem, w->form, &seen, &w->pointers, err);
}

static kith_status run_lt(const ki_conv_way *w, cudaStream_t stream, kith_error *err) {
    const ki_conv_io *io = &w->io;
    ki_lt_call call = w->call;
    cublasLtHandle_t lt = w->libraries->lt;
    switch (w->problem.pass) {
    case KI_CONV_FORWARD:
        return ki_lt_run(lt, &call, &w->algo, 1, io->src, io->weights, w->problem.adds, io->added, io->dst,
                         io->workspace, w->workspace_bytes, stream, err);
    case KI_CONV_DIFF_SRC:
        return ki_lt_run(lt, &call, &w->algo, 1, io->diff_dst, io->weights, w->problem.adds, io->diff_src,
                         io->diff_src, io->workspace, w->workspace_bytes, stream, err);
    default:
        return ki_lt_run(lt, &call, &w->algo, 1, io->diff_dst, io->src, 1, io->diff_master, io->diff_master,
                         io->workspace, w->workspace_bytes, stream, err);
    }
}

static kith_status run_cudnn(const ki_conv_way *w, cudaStream_t stream, kith_error *err) {
    const ki_conv_problem *p = &w->problem;
    const int64_t n_pixels = p->mb * p->oh * p->ow;
    if (w->packs_dst && p->pass != KI_CONV_FORWARD)
        KI_CUDA(ki_cuda_bias_relu(p->type, n_pixels, p->oc, w->io.diff_dst, p->dst.pixel, NULL, false,
                                  w->io.workspace, p->oc, stream));
    if (w->libraries->cudnn_stream != stream) KI_CUDNN(cudnnSetStream(w->libraries->cudnn, stream));
    w->libraries->cudnn_stream = stream;
    KI_CUDNN(cudnnBackendExecute(w->libraries->cudnn, w->plan, w->pointers));
    if (p->pass != KI_CONV_FORWARD) return KITH_OK;
    const bool is_done = w->form != KI_CUDNN_BARE || !(p->has_bias || p->has_relu);
    if (is_done && !w->packs_dst) return KITH_OK;
    KI_CUDA(ki_cuda_bias_relu(p->type, n_pixels, p->oc, w->packs_dst ? w->io.workspace : w->io.dst,
                              w->packs_dst ? p->oc : p->dst.pixel,
                              is_done || !p->has_bias ? NULL : w->io.bias, !is_done && p->has_relu, w->io.dst,
                              p->dst.pixel, stream));
    return KITH_OK;
}

kith_status ki_conv_way_run(ki_conv_way *w, cudaStream_t stream, kith_error *err) {
    const ki_conv_problem *p = &w->problem;
    if (w->kind == KI_WAY_PLAIN) {
        KI_CUDA(ki_cuda_conv_plain(p, &w->io, stream));
        return KITH_OK;
    }
    if (w->kind == KI_WAY_DEPTHWISE) {
        KI_CUDA(ki_cuda_conv_depthwise(p, &w->io, stream));
        return KITH_OK;
    }
    return w->kind == KI_WAY_LT ? run_lt(w, stream, err) : run_cudnn(w, stream, err);
}
