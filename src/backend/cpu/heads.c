/* attend and unfold: the heads of an ensemble in the rows of a batch (device/op.h).
 *
 * In the blocked layout the logits of an image lie as its rows of dst do where the channels fill whole blocks, and the
 * rows of a map as one row of all heads. Then forward and backward walk memory once, and an unfold is a copy; other
 * channel counts go by a plain loop. The sigmoid is computed again in backward: it costs less than a map to keep. */
#include <string.h>

#include "backend/cpu/act_math.h"
#include "backend/cpu/cpu.h"

/* Numbers of a row that stay in the first cache while all heads pass over them. */
enum { CHUNK = 2048 };

typedef struct heads {
    ki_kernel base;
    int64_t mb, heads, c, hw; /* mb: of the images; c: of one head */
    bool is_whole;            /* channels fill whole blocks, or the layout is plain */
    ki_binding b;
} heads;

static void heads_free(ki_kernel *kernel) { ki_free(kernel); }

static kith_status heads_bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ((heads *)kernel)->b = *binding;
    return KITH_OK;
}

/* rows, images: the side with a row for each head, and the side with one for each image. */
static kith_status heads_create(ki_backend *backend, const ki_kernel_type *type, const ki_edge *rows,
                                const ki_edge *images, ki_kernel **ret_kernel, kith_error *err) {
    heads *k = NULL;
    KI_TRY(ki_kernel_new(backend, type, sizeof *k, &k, err));
    k->mb = images->shape.dim[0];
    k->heads = rows->shape.dim[0] / k->mb;
    k->c = rows->shape.dim[1];
    k->hw = rows->shape.n_dims == 4 ? rows->shape.dim[2] * rows->shape.dim[3] : 1;
    k->is_whole = rows->layout == KI_PLAIN || k->c % cpu_block() == 0;
    *ret_kernel = &k->base;
    return KITH_OK;
}

CPU_WIDE static void attend_chunk(const float *src, const float *logits, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++) dst[i] = src[i] * cpu_sigmoid(logits[i]);
}

CPU_WIDE static void attend_diff_chunk(const float *src, const float *logits, const float *diff_dst,
                                       float *diff_src, float *diff_logits, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const float a = cpu_sigmoid(logits[i]), through = diff_dst[i] * a;
        diff_src[i] += through;
        diff_logits[i] = through * src[i] * (1 - a);
    }
}

/* Where head h's channel c of image n begins: as a row of its own, and among the channels of all heads. */
static int64_t row_at(const heads *k, int64_t n, int64_t h, int64_t c) {
    return cpu_native_at(n * k->heads + h, c, 0, cpu_padded(k->c), k->hw);
}
static int64_t image_at(const heads *k, int64_t n, int64_t h, int64_t c) {
    return cpu_native_at(n, h * k->c + c, 0, cpu_padded(k->heads * k->c), k->hw);
}

static void clear_channel(float *at, int64_t hw) {
    const int64_t block = cpu_block();
    for (int64_t i = 0; i < hw; i++) at[i * block] = 0;
}

/* The channels that pad the last block are zero in every map. */
static void clear_row_padding(const heads *k, float *map, int64_t n) {
    for (int64_t h = 0; map && h < k->heads; h++) {
        for (int64_t c = k->c; c < cpu_padded(k->c); c++) clear_channel(map + row_at(k, n, h, c), k->hw);
    }
}
static void clear_image_padding(const heads *k, float *map, int64_t n) {
    const int64_t all = k->heads * k->c;
    for (int64_t c = all; map && c < cpu_padded(all); c++)
        clear_channel(map + cpu_native_at(n, c, 0, cpu_padded(all), k->hw), k->hw);
}

/* ---- attend ---- */

static kith_status attend_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                 ki_kernel **ret_kernel, kith_error *err) {
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    return heads_create(backend, &cpu_attend, &spec->dst, &spec->src[0], ret_kernel, err);
}

static void attend_images(void *context, int64_t begin, int64_t end) {
    const heads *k = context;
    const int64_t run = k->c * k->hw;
    const float *src = k->b.src[0], *logits = k->b.src[1];
    float *dst = k->b.dst;
    for (int64_t n = begin; n < end; n++) {
        for (int64_t h = 0; h < k->heads; h++) {
            const int64_t at = (n * k->heads + h) * run;
            attend_chunk(src + n * run, logits + at, dst + at, run);
        }
    }
}

static void attend_odd_images(void *context, int64_t begin, int64_t end) {
    const heads *k = context;
    const float *src = k->b.src[0], *logits = k->b.src[1];
    float *dst = k->b.dst;
    const int64_t block = cpu_block();
    for (int64_t n = begin; n < end; n++) {
        for (int64_t h = 0; h < k->heads; h++) {
            for (int64_t c = 0; c < k->c; c++) {
                const float *from = src + cpu_native_at(n, c, 0, cpu_padded(k->c), k->hw);
                const float *z = logits + image_at(k, n, h, c);
                float *to = dst + row_at(k, n, h, c);
                for (int64_t i = 0; i < k->hw; i++)
                    to[i * block] = from[i * block] * cpu_sigmoid(z[i * block]);
            }
        }
        clear_row_padding(k, dst, n);
    }
}

static kith_status attend_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    heads *k = (heads *)kernel;
    ki_parallel_for(k->mb, 1, k->is_whole ? attend_images : attend_odd_images, k);
    return KITH_OK;
}

/* Gradients that nobody wants go to memory of the stack. */
static void attend_diff_images(void *context, int64_t begin, int64_t end) {
    const heads *k = context;
    const int64_t run = k->c * k->hw;
    const float *src = k->b.src[0], *logits = k->b.src[1], *diff_dst = k->b.diff_dst[0];
    float *diff_src = k->b.diff_src[0], *diff_logits = k->b.diff_src[1], sum[CHUNK], unwanted[CHUNK];
    for (int64_t n = begin; n < end; n++) {
        for (int64_t first = 0; first < run; first += CHUNK) {
            const int64_t length = first + CHUNK < run ? CHUNK : run - first;
            memset(sum, 0, sizeof sum);
            for (int64_t h = 0; h < k->heads; h++) {
                const int64_t at = (n * k->heads + h) * run + first;
                attend_diff_chunk(src + n * run + first, logits + at, diff_dst + at, sum,
                                  diff_logits ? diff_logits + at : unwanted, length);
            }
            if (diff_src) memcpy(diff_src + n * run + first, sum, (size_t)length * sizeof *sum);
        }
    }
}

static void attend_diff_odd_images(void *context, int64_t begin, int64_t end) {
    const heads *k = context;
    const float *src = k->b.src[0], *logits = k->b.src[1], *diff_dst = k->b.diff_dst[0];
    float *diff_src = k->b.diff_src[0], *diff_logits = k->b.diff_src[1];
    const int64_t block = cpu_block();
    for (int64_t n = begin; n < end; n++) {
        for (int64_t c = 0; c < cpu_padded(k->c); c++) {
            const int64_t from = cpu_native_at(n, c, 0, cpu_padded(k->c), k->hw);
            for (int64_t i = 0; i < k->hw * block; i += block) {
                float sum = 0;
                for (int64_t h = 0; c < k->c && h < k->heads; h++) {
                    const int64_t at = image_at(k, n, h, c) + i;
                    const float a = cpu_sigmoid(logits[at]), through = diff_dst[row_at(k, n, h, c) + i] * a;
                    sum += through;
                    if (diff_logits) diff_logits[at] = through * src[from + i] * (1 - a);
                }
                if (diff_src) diff_src[from + i] = sum;
            }
        }
        clear_image_padding(k, diff_logits, n);
    }
}

static kith_status attend_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    heads *k = (heads *)kernel;
    ki_parallel_for(k->mb, 1, k->is_whole ? attend_diff_images : attend_diff_odd_images, k);
    return KITH_OK;
}

const ki_kernel_type cpu_attend = {.create = attend_create,
                                   .bind = heads_bind,
                                   .forward = attend_forward,
                                   .backward = attend_backward,
                                   .free = heads_free};

/* ---- unfold ---- */

static kith_status unfold_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                                 ki_kernel **ret_kernel, kith_error *err) {
    *ret_info = (ki_kernel_info){0};
    return heads_create(backend, &cpu_unfold, &spec->src[0], &spec->dst, ret_kernel, err);
}

/* Between the rows of the heads and the rows of the images, in either direction. */
typedef struct unfolding {
    const heads *k;
    const float *from;
    float *to;
    bool to_images;
} unfolding;

static void unfold_images(void *context, int64_t begin, int64_t end) {
    const unfolding *u = context;
    const int64_t run = u->k->heads * u->k->c * u->k->hw;
    memcpy(u->to + begin * run, u->from + begin * run, (size_t)((end - begin) * run) * sizeof *u->to);
}

static void unfold_odd_images(void *context, int64_t begin, int64_t end) {
    const unfolding *u = context;
    const heads *k = u->k;
    const int64_t block = cpu_block();
    for (int64_t n = begin; n < end; n++) {
        for (int64_t h = 0; h < k->heads; h++) {
            for (int64_t c = 0; c < k->c; c++) {
                const int64_t row = row_at(k, n, h, c), image = image_at(k, n, h, c);
                const float *from = u->from + (u->to_images ? row : image);
                float *to = u->to + (u->to_images ? image : row);
                for (int64_t i = 0; i < k->hw; i++) to[i * block] = from[i * block];
            }
        }
        if (u->to_images)
            clear_image_padding(k, u->to, n);
        else
            clear_row_padding(k, u->to, n);
    }
}

static void unfold(const heads *k, const float *from, float *to, bool to_images) {
    unfolding u = {.k = k, .from = from, .to = to, .to_images = to_images};
    ki_parallel_for(k->mb, 1, k->is_whole ? unfold_images : unfold_odd_images, &u);
}

static kith_status unfold_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const heads *k = (heads *)kernel;
    unfold(k, k->b.src[0], k->b.dst, true);
    return KITH_OK;
}

static kith_status unfold_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const heads *k = (heads *)kernel;
    if (k->b.diff_src[0]) unfold(k, k->b.diff_dst[0], k->b.diff_src[0], false);
    return KITH_OK;
}

const ki_kernel_type cpu_unfold = {.create = unfold_create,
                                   .bind = heads_bind,
                                   .forward = unfold_forward,
                                   .backward = unfold_backward,
                                   .free = heads_free};
