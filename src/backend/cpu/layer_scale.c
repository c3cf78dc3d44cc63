/* layer_scale: of maps run by run (channels.h), of tokens and vectors row by row. The gradient of gamma: of maps a thread takes blocks of
 * channels, of rows columns, so that the number of threads does not change the sums. */
#include "backend/cpu/channels.h"

typedef struct layer_scale {
    ki_kernel base;
    bool is_map;
    int64_t rows, c, hw; /* rows: images of a map */
    ki_binding b;
} layer_scale;

enum { COLUMNS = 64, SHORT = 64 }; /* columns of an item, and rows of a sum in float */

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    layer_scale *k = NULL;
    const ki_shape *s = &spec->dst.shape;
    KI_TRY(ki_kernel_new(backend, &cpu_layer_scale, sizeof *k, &k, err));
    k->is_map = s->n_dims == 4;
    k->rows = k->is_map ? s->dim[0] : ki_shape_rows(s);
    k->c = k->is_map ? s->dim[1] : ki_shape_width(s);
    k->hw = k->is_map ? s->dim[2] * s->dim[3] : 1;
    *ret_info = (ki_kernel_info){.backward_reads_src = true};
    *ret_kernel = &k->base;
    return KITH_OK;
}

static kith_status bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ((layer_scale *)kernel)->b = *binding;
    return KITH_OK;
}

typedef struct scaling {
    const layer_scale *k;
    const float *src;
    float *dst;
} scaling;

CPU_WIDE static void scale_row(const float *x, const float *gamma, float *y, int64_t c) {
    for (int64_t i = 0; i < c; i++) y[i] = x[i] * gamma[i];
}

static void scale_rows(void *context, int64_t begin, int64_t end) {
    const scaling *s = context;
    const int64_t c = s->k->c;
    for (int64_t r = begin; r < end; r++)
        scale_row(s->src + r * c, s->k->b.param[KI_W].value, s->dst + r * c, c);
}

static void scale_runs(void *context, int64_t begin, int64_t end) {
    const scaling *s = context;
    const layer_scale *k = s->k;
    const float *gamma = k->b.param[KI_W].value;
    const int64_t per_image = cpu_padded(k->c) / cpu_block(), length = cpu_block() * k->hw;
    for (int64_t r = begin; r < end; r++) {
        const int64_t first = r % per_image * cpu_block();
        cpu_mix mix = {.x = s->src + r * length, .dst = s->dst + r * length};
        for (int64_t i = 0; i < cpu_channels_of(k->c, first); i++) mix.a[i] = gamma[first + i];
        cpu_mix_run(&mix, k->hw);
    }
}

static void scale(const layer_scale *k, const float *src, float *dst) {
    scaling s = {k, src, dst};
    if (k->is_map)
        ki_parallel_for(k->rows * (cpu_padded(k->c) / cpu_block()), 4096 / (cpu_block() * k->hw) + 1,
                        scale_runs, &s);
    else
        ki_parallel_for(k->rows, 4096 / k->c + 1, scale_rows, &s);
}

/* Items: blocks of channels. */
static void sum_blocks(void *context, int64_t begin, int64_t end) {
    const layer_scale *k = context;
    const int64_t per_image = cpu_padded(k->c) / cpu_block(), length = cpu_block() * k->hw;
    for (int64_t block = begin; block < end; block++) {
        float *diff = k->b.param[KI_W].diff + block * cpu_block();
        double total[CPU_MOST_BLOCK] = {0}, products[CPU_MOST_BLOCK], unused[CPU_MOST_BLOCK];
        for (int64_t n = 0; n < k->rows; n++) {
            const int64_t at = (n * per_image + block) * length;
            cpu_sum_run((const float *)k->b.diff_dst[0] + at, (const float *)k->b.src[0] + at, k->hw,
                        products, unused);
            for (int64_t i = 0; i < cpu_block(); i++) total[i] += products[i];
        }
        for (int64_t i = 0; i < cpu_channels_of(k->c, block * cpu_block()); i++) diff[i] += (float)total[i];
    }
}

/* sum[i] += the products of so many rows, `pitch` apart. */
CPU_WIDE static void add_products(const float *x, const float *y, int64_t rows, int64_t pitch, float *sum,
                                  int64_t n) {
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < n; i++) sum[i] += x[r * pitch + i] * y[r * pitch + i];
    }
}

/* Items: COLUMNS columns. */
static void sum_columns(void *context, int64_t begin, int64_t end) {
    const layer_scale *k = context;
    const float *src = k->b.src[0], *diff_dst = k->b.diff_dst[0];
    for (int64_t first = begin * COLUMNS; first < end * COLUMNS && first < k->c; first += COLUMNS) {
        const int64_t n = k->c - first < COLUMNS ? k->c - first : COLUMNS;
        double total[COLUMNS] = {0};
        for (int64_t r = 0; r < k->rows; r += SHORT) {
            const int64_t rows = k->rows - r < SHORT ? k->rows - r : SHORT, at = r * k->c + first;
            float sum[COLUMNS] = {0};
            add_products(diff_dst + at, src + at, rows, k->c, sum, n);
            for (int64_t i = 0; i < n; i++) total[i] += (double)sum[i];
        }
        for (int64_t i = 0; i < n; i++) k->b.param[KI_W].diff[first + i] += (float)total[i];
    }
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    const layer_scale *k = (layer_scale *)kernel;
    (void)err;
    scale(k, k->b.src[0], k->b.dst);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    const layer_scale *k = (layer_scale *)kernel;
    (void)err;
    if (k->b.param[KI_W].diff && k->is_map)
        ki_parallel_for(cpu_padded(k->c) / cpu_block(), 1, sum_blocks, kernel);
    else if (k->b.param[KI_W].diff)
        ki_parallel_for((k->c + COLUMNS - 1) / COLUMNS, 1, sum_columns, kernel);
    if (k->b.diff_src[0]) scale(k, k->b.diff_dst[0], k->b.diff_src[0]);
    return KITH_OK;
}

static void release(ki_kernel *kernel) { ki_free(kernel); }

const ki_kernel_type cpu_layer_scale = {
    .create = create, .bind = bind, .forward = forward, .backward = backward, .free = release};
