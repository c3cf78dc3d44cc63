/* tokens as an op: positions are resampled on the device when the masters change, forward adds them, and backward is one pass
 * that copies the pixels' gradients and sums those of the parameters over the images. */
#include "backend/cuda/rows/tokens.h"

#include <string.h>

#include "backend/cuda/cuda.h"
#include "device/positions.h"

typedef struct tokens {
    ki_kernel base;
    ki_tokens_attr attr;
    ki_cuda_map src;
    int64_t special, t;
    bool trains;
    ki_positions positions;
    void *memory; /* the device's: the terms, then the resampled positions [h * w, c]; NULL: not resampled */
    float *resampled;
    ki_cuda_position_terms y, x, y_back, x_back;
    ki_binding b;
} tokens;

static void tokens_free(ki_kernel *kernel) {
    tokens *k = (tokens *)kernel;
    ki_cuda_free(kernel->backend, k->memory);
    ki_positions_release(&k->positions);
    ki_free(k);
}

/* Bytes of one table of terms: first, at, weight. */
static size_t terms_bytes(const ki_position_terms *t) {
    return ki_round_up(((size_t)t->n + 1 + 2 * (size_t)t->first[t->n]) * sizeof(int32_t), 256);
}

static void put_terms(const ki_position_terms *t, char **host, char **device, ki_cuda_position_terms *ret) {
    const size_t n = (size_t)t->n + 1, n_terms = (size_t)t->first[t->n], bytes = terms_bytes(t);
    int32_t *to = (int32_t *)(void *)*host, *there = (int32_t *)(void *)*device;
    memcpy(to, t->first, n * sizeof *to);
    memcpy(to + n, t->at, n_terms * sizeof *to);
    memcpy(to + n + n_terms, t->weight, n_terms * sizeof *to);
    *ret = (ki_cuda_position_terms){there, there + n, (const float *)(const void *)(there + n + n_terms)};
    *host += bytes, *device += bytes;
}

/* The terms on the device, and room for what is made of them. */
static kith_status upload_terms(tokens *k, kith_error *err) {
    ki_backend *backend = k->base.backend;
    const ki_positions *p = &k->positions;
    const size_t n = terms_bytes(&p->y) + terms_bytes(&p->x) + terms_bytes(&p->y_back) +
                     terms_bytes(&p->x_back),
                 grid = (size_t)(p->h * p->w * k->src.c) * sizeof(float);
    char *host = NULL;
    KI_TRY(ki_cuda_alloc(backend, n + grid, &k->memory, err));
    KI_TRY(ki_zalloc_or(&host, 1, n, "the terms of positions", err));
    char *from = host, *to = k->memory;
    put_terms(&p->y, &from, &to, &k->y);
    put_terms(&p->x, &from, &to, &k->x);
    put_terms(&p->y_back, &from, &to, &k->y_back);
    put_terms(&p->x_back, &from, &to, &k->x_back);
    k->resampled = (float *)(void *)to;
    kith_status status = backend->type->memory.upload(backend, k->memory, host, n, err);
    if (status == KITH_OK) status = backend->type->memory.sync(backend, err);
    ki_free(host);
    return status;
}

static kith_status tokens_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                 ki_kernel **ret_kernel, kith_error *err) {
    const ki_cuda_map src = ki_cuda_map_of(backend, &spec->src[0]);
    tokens *k = NULL;
    if (src.row != src.w)
        return ki_fail(err, KITH_EUNSUPPORTED,
                       "tokens of an image as it comes in; wanted a convolution before");
    KI_TRY(ki_kernel_new(backend, &ki_cuda_tokens, sizeof *k, &k, err));
    k->attr = spec->attr->tokens;
    k->src = src;
    k->special = k->attr.has_class + k->attr.registers;
    k->t = k->special + src.h * src.w;
    k->trains = spec->wants_diff_params;
    kith_status status = ki_positions_init(&k->attr, src.h, src.w, &k->positions, err);
    if (status == KITH_OK && !k->positions.is_same) status = upload_terms(k, err);
    if (status != KITH_OK) {
        tokens_free(&k->base);
        return status;
    }
    *ret_info = (ki_kernel_info){
        .scratch_bytes = k->memory && k->trains ? (size_t)(src.h * src.w * src.c) * sizeof(float) : 0};
    *ret_kernel = &k->base;
    return KITH_OK;
}

static kith_status tokens_bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ((tokens *)kernel)->b = *binding;
    return KITH_OK;
}

/* The parameter's rows for the grid, behind that of the class token. */
static float *grid_rows(const tokens *k, float *positions) {
    return positions ? positions + (k->attr.has_class_position ? k->src.c : 0) : NULL;
}

static kith_status tokens_pack(ki_kernel *kernel, kith_error *err) {
    const tokens *k = (tokens *)kernel;
    const ki_positions *p = &k->positions;
    const ki_cuda_positions_args args = {.y = k->y,
                                         .x = k->x,
                                         .h = p->h,
                                         .w = p->w,
                                         .c = k->src.c,
                                         .width = p->grid_w,
                                         .src = grid_rows(k, k->b.param[KI_POSITIONS].value),
                                         .dst = k->resampled};
    if (k->memory) KI_CUDA(ki_cuda_positions(ki_cuda_of(kernel->backend)->stream, &args));
    return KITH_OK;
}

static kith_status tokens_forward(ki_kernel *kernel, kith_error *err) {
    const tokens *k = (tokens *)kernel;
    const ki_param_slot *param = k->b.param;
    float *positions = param[KI_POSITIONS].value;
    const ki_cuda_tokens_args args = {.is_bf16 = k->src.is_bf16,
                                      .has_class = k->attr.has_class,
                                      .mb = k->src.mb,
                                      .t = k->t,
                                      .n_special = k->special,
                                      .c = k->src.c,
                                      .pitch = k->src.pitch,
                                      .map = k->b.src[0],
                                      .tokens = k->b.dst,
                                      .class_token = param[KI_CLASS].value,
                                      .class_position = k->attr.has_class_position ? positions : NULL,
                                      .registers = param[KI_REGISTERS].value,
                                      .grid = k->memory ? k->resampled : grid_rows(k, positions)};
    KI_CUDA(ki_cuda_tokens_forward(ki_cuda_of(kernel->backend)->stream, &args));
    return KITH_OK;
}

static kith_status tokens_backward(ki_kernel *kernel, kith_error *err) {
    const tokens *k = (tokens *)kernel;
    cudaStream_t stream = ki_cuda_of(kernel->backend)->stream;
    const ki_positions *p = &k->positions;
    float *diff[KI_MAX_PARAMS];
    for (int i = 0; i < KI_MAX_PARAMS; i++) diff[i] = k->trains ? k->b.param[i].diff : NULL;
    float *grid = grid_rows(k, diff[KI_POSITIONS]);
    const ki_cuda_tokens_diff_args args = {
        .is_bf16 = k->src.is_bf16,
        .has_class = k->attr.has_class,
        .mb = k->src.mb,
        .t = k->t,
        .n_special = k->special,
        .c = k->src.c,
        .pitch = k->src.pitch,
        .diff_tokens = k->b.diff_dst[0],
        .diff_map = k->b.diff_src[0],
        .diff_class = diff[KI_CLASS],
        .diff_class_position = k->attr.has_class_position ? diff[KI_POSITIONS] : NULL,
        .diff_registers = diff[KI_REGISTERS],
        .grid = grid && k->memory ? k->b.scratch : grid,
        .adds_grid = !k->memory};
    KI_CUDA(ki_cuda_tokens_backward(stream, &args));
    if (!grid || !k->memory) return KITH_OK;
    const ki_cuda_positions_args back = {.y = k->y_back,
                                         .x = k->x_back,
                                         .h = p->grid_h,
                                         .w = p->grid_w,
                                         .c = k->src.c,
                                         .width = p->w,
                                         .adds = true,
                                         .src = k->b.scratch,
                                         .dst = grid};
    KI_CUDA(ki_cuda_positions(stream, &back));
    return KITH_OK;
}

const ki_kernel_type ki_cuda_tokens = {.create = tokens_create,
                                       .bind = tokens_bind,
                                       .pack = tokens_pack,
                                       .forward = tokens_forward,
                                       .backward = tokens_backward,
                                       .free = tokens_free};
