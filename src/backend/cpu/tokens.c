/* tokens: a class token, registers, and the pixels of a blocked map, with positions. Positions are resampled when the masters
 * change (`pack`), so that forward only adds them.
 *
 * The gradients of what all images share are sums over images: a thread takes tokens, and adds up the images in order. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "device/positions.h"

typedef struct tokens {
    ki_kernel base;
    ki_tokens_attr attr;
    ki_positions positions;
    int64_t mb, c, padded, hw, special, t;
    bool trains;
    float *resampled; /* [hw, c]; NULL: the masters have the map's size */
    ki_binding b;
} tokens;

enum { LEAST_NUMBERS = 16384 }; /* for a thread */

static int64_t grain(int64_t numbers_each) { return LEAST_NUMBERS / numbers_each + 1; }

static void tokens_free(ki_kernel *kernel) {
    tokens *k = (tokens *)kernel;
    ki_positions_release(&k->positions);
    ki_free(k->resampled);
    ki_free(k);
}

static kith_status tokens_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                 ki_kernel **ret_kernel, kith_error *err) {
    tokens *k = NULL;
    const ki_shape *s = &spec->src[0].shape;
    KI_TRY(ki_kernel_new(backend, &cpu_tokens, sizeof *k, &k, err));
    k->attr = spec->attr->tokens;
    k->trains = spec->wants_diff_params;
    k->mb = s->dim[0], k->c = s->dim[1], k->hw = s->dim[2] * s->dim[3];
    k->padded = cpu_padded(k->c);
    k->special = k->attr.has_class + k->attr.registers;
    k->t = k->special + k->hw;
    kith_status status = ki_positions_init(&k->attr, s->dim[2], s->dim[3], &k->positions, err);
    const size_t n = k->positions.is_same ? 0 : (size_t)(k->hw * k->c);
    if (status == KITH_OK && n > 0)
        status = ki_alloc_or(&k->resampled, n, sizeof *k->resampled, "positions", err);
    if (status != KITH_OK) {
        tokens_free(&k->base);
        return status;
    }
    *ret_info = (ki_kernel_info){.scratch_bytes = k->trains ? n * sizeof(float) : 0};
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
    return positions ? positions + (k->attr.has_class_position ? k->c : 0) : NULL;
}

static void resample_rows(void *context, int64_t begin, int64_t end) {
    const tokens *k = context;
    const float *stored = grid_rows(k, k->b.param[KI_POSITIONS].value);
    const int64_t row = k->positions.w * k->c;
    for (int64_t y = begin; y < end; y++)
        ki_positions_row(&k->positions, y, k->c, stored, k->resampled + y * row);
}

static kith_status tokens_pack(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const tokens *k = (tokens *)kernel;
    if (k->resampled) ki_parallel_for(k->positions.h, 1, resample_rows, kernel);
    return KITH_OK;
}

static void put_special(const tokens *k, int64_t t, float *dst) {
    const ki_param_slot *param = k->b.param;
    const bool is_class = k->attr.has_class && t == 0;
    const float *from =
        is_class ? param[KI_CLASS].value : param[KI_REGISTERS].value + (t - k->attr.has_class) * k->c;
    memcpy(dst, from, (size_t)k->c * sizeof *dst);
    for (int64_t c = 0; is_class && k->attr.has_class_position && c < k->c; c++)
        dst[c] += param[KI_POSITIONS].value[c];
}

/* Between a pixel of the map, in blocks of channels `plane` numbers apart, and a token. */
static void put_pixel(const float *src, int64_t plane, const float *position, float *dst, int64_t c) {
    const int64_t block = cpu_block();
    for (int64_t first = 0; first < c; first += block, src += plane) {
        const int64_t n = c - first < block ? c - first : block;
        for (int64_t i = 0; i < n; i++) dst[first + i] = src[i] + (position ? position[first + i] : 0);
    }
}

static void take_pixel(const float *diff_dst, float *diff_src, int64_t plane, int64_t c) {
    const int64_t block = cpu_block();
    for (int64_t first = 0; first < c; first += block, diff_src += plane) {
        const int64_t n = c - first < block ? c - first : block;
        memcpy(diff_src, diff_dst + first, (size_t)n * sizeof *diff_src);
        memset(diff_src + n, 0, (size_t)(block - n) * sizeof *diff_src);
    }
}

/* Items: the tokens of all images, here and below. */
static void forward_rows(void *context, int64_t begin, int64_t end) {
    const tokens *k = context;
    const float *grid = k->resampled ? k->resampled : grid_rows(k, k->b.param[KI_POSITIONS].value);
    for (int64_t row = begin; row < end; row++) {
        const int64_t n = row / k->t, t = row % k->t, pixel = t - k->special;
        float *dst = (float *)k->b.dst + row * k->c;
        if (pixel < 0)
            put_special(k, t, dst);
        else
            put_pixel((const float *)k->b.src[0] + cpu_native_at(n, 0, pixel, k->padded, k->hw),
                      k->hw * cpu_block(), grid ? grid + pixel * k->c : NULL, dst, k->c);
    }
}

static kith_status tokens_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const tokens *k = (tokens *)kernel;
    ki_parallel_for(k->mb * k->t, grain(k->c), forward_rows, kernel);
    return KITH_OK;
}

static void backward_rows(void *context, int64_t begin, int64_t end) {
    const tokens *k = context;
    for (int64_t row = begin; row < end; row++) {
        const int64_t n = row / k->t, pixel = row % k->t - k->special;
        if (pixel < 0) continue;
        take_pixel((const float *)k->b.diff_dst[0] + row * k->c,
                   (float *)k->b.diff_src[0] + cpu_native_at(n, 0, pixel, k->padded, k->hw),
                   k->hw * cpu_block(), k->c);
    }
}

/* sum [c] += token t of all images. */
static void add_images(const tokens *k, int64_t t, float *sum) {
    const float *diff = (const float *)k->b.diff_dst[0] + t * k->c;
    for (int64_t n = 0; n < k->mb; n++, diff += k->t * k->c) cpu_accumulate(sum, diff, k->c);
}

/* Where the sum of a pixel's gradients goes; NULL: nowhere. */
static float *pixel_sums(const tokens *k) {
    float *diff = grid_rows(k, k->b.param[KI_POSITIONS].diff);
    return diff && k->resampled ? k->b.scratch : diff;
}

/* Items: the tokens of one image. */
static void sum_tokens(void *context, int64_t begin, int64_t end) {
    const tokens *k = context;
    const ki_param_slot *param = k->b.param;
    float *pixels = pixel_sums(k), *registers = param[KI_REGISTERS].diff;
    for (int64_t t = begin; t < end; t++) {
        const int64_t pixel = t - k->special, reg = t - k->attr.has_class;
        if (pixel >= 0) {
            if (!pixels) continue;
            float *sum = pixels + pixel * k->c;
            if (k->resampled) memset(sum, 0, (size_t)k->c * sizeof *sum);
            add_images(k, t, sum);
        } else if (reg >= 0) {
            if (registers) add_images(k, t, registers + reg * k->c);
        } else {
            if (param[KI_CLASS].diff) add_images(k, t, param[KI_CLASS].diff);
            if (k->attr.has_class_position && param[KI_POSITIONS].diff)
                add_images(k, t, param[KI_POSITIONS].diff);
        }
    }
}

static void back_rows(void *context, int64_t begin, int64_t end) {
    const tokens *k = context;
    const int64_t row = k->positions.grid_w * k->c;
    for (int64_t y = begin; y < end; y++)
        ki_positions_back_row(&k->positions, y, k->c, k->b.scratch,
                              grid_rows(k, k->b.param[KI_POSITIONS].diff) + y * row);
}

static kith_status tokens_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const tokens *k = (tokens *)kernel;
    if (k->b.diff_src[0]) ki_parallel_for(k->mb * k->t, grain(k->c), backward_rows, kernel);
    if (!k->trains) return KITH_OK;
    ki_parallel_for(k->t, grain(k->mb * k->c), sum_tokens, kernel);
    if (k->resampled && k->b.param[KI_POSITIONS].diff)
        ki_parallel_for(k->positions.grid_h, 1, back_rows, kernel);
    return KITH_OK;
}

const ki_kernel_type cpu_tokens = {.create = tokens_create,
                                   .bind = tokens_bind,
                                   .pack = tokens_pack,
                                   .forward = tokens_forward,
                                   .backward = tokens_backward,
                                   .free = tokens_free};
