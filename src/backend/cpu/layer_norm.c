/* Layer norm (formulas: backend/ref) of vectors, tokens, or the channels of each pixel of a map.
 *
 * All three are rows in blocks: number l of block k of a row is at k * block_step + l, where the blocks of a token or a vector lie one
 * behind the other, and those of a map's pixel a plane apart. A tile is a few neighbouring rows. It is read from memory once and stays in
 * the cache for the passes over it; sums are made in as many parts as a block has numbers. Forward keeps the mean and 1 / sqrt(var + eps)
 * of each row for backward.
 *
 * The gradients of gamma and beta are sums over rows. A group of tiles makes its part of them, in the scratch, as it makes the gradient of
 * the source, and the parts are added in order. What a group is depends on the shape alone, and so the number of threads changes no sum. */
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"

enum { TILE = 8, BLOCK = CPU_MOST_BLOCK, MOST_GROUPS = 64 };
enum { LEAST_NUMBERS = 16384 }; /* for a thread, and for a group */

typedef struct layer_norm layer_norm;

typedef struct tile {
    const layer_norm *k;
    int64_t at, first; /* where it begins, and the number of its first row */
    int rows;
} tile;

struct layer_norm {
    ki_kernel base;
    int64_t mb, hw, c; /* mb times hw rows of c numbers */
    int64_t image_step, block_step, row_step;
    int64_t tiles_each, n_tiles, per_group; /* tiles of hw rows, of all, of a group */
    int block, n_padding;
    double eps;
    bool rms;
    ki_binding b;
    void (*forward)(const tile *t);
    void (*backward)(const tile *t, float *diff_gamma, float *diff_beta);
};

/* ---- passes over one block of the rows of a tile ---- */

#define INLINE static inline __attribute__((always_inline))
#define ROWS                                   \
    for (int r = 0; r < rows; r++, at += step) \
        for (int l = 0; l < lanes; l++)

INLINE void add_numbers(const float *x, int64_t at, int64_t step, int rows, int lanes, float (*sum)[BLOCK]) {
    ROWS sum[r][l] += x[at + l];
}

INLINE void scale(const float *restrict x, int64_t at, int64_t step, int rows, int lanes, const float *mean,
                  const float *istd, const float *restrict gamma, const float *restrict beta,
                  float *restrict y) {
    if (beta)
        ROWS y[at + l] = gamma[l] * ((x[at + l] - mean[r]) * istd[r]) + beta[l];
    else
        ROWS y[at + l] = gamma[l] * (x[at + l] * istd[r]);
}

/* Of g = gamma * dy and of g * xhat. */
INLINE void add_gradients(const float *x, const float *dy, int64_t at, int64_t step, int rows, int lanes,
                          const float *mean, const float *istd, const float *gamma, float (*sum)[BLOCK],
                          float (*along)[BLOCK]) {
    ROWS {
        const float g = gamma[l] * dy[at + l];
        sum[r][l] += g;
        along[r][l] += g * ((x[at + l] - mean[r]) * istd[r]);
    }
}

INLINE void gradient(const float *restrict x, const float *restrict dy, int64_t at, int64_t step, int rows,
                     int lanes, const float *mean, const float *istd, const float *restrict gamma,
                     const float *shift, const float *slope, float *restrict dx) {
    ROWS dx[at + l] =
        istd[r] * (gamma[l] * dy[at + l] - shift[r] - (x[at + l] - mean[r]) * istd[r] * slope[r]);
}

INLINE void add_params(const float *restrict x, const float *restrict dy, int64_t at, int64_t step, int rows,
                       int lanes, const float *mean, const float *istd, float *restrict diff_gamma,
                       float *restrict diff_beta) {
    float gamma[BLOCK] = {0}, beta[BLOCK] = {0};
    ROWS {
        gamma[l] += dy[at + l] * ((x[at + l] - mean[r]) * istd[r]);
        beta[l] += dy[at + l];
    }
    for (int l = 0; l < lanes; l++) diff_gamma[l] += gamma[l], diff_beta[l] += beta[l];
}

/* The call for every block: c is its first number, `at` where it begins in the tile's first row, and `lanes` how many numbers it has, which
 * the compiler knows unless the last block is not a whole one. */
#define EACH_BLOCK(t, block, call)                                          \
    do {                                                                    \
        const int64_t step = (t)->k->row_step, n_ = (t)->k->c;              \
        int64_t at = (t)->at, c = 0;                                        \
        for (; c + (block) <= n_; c += (block), at += (t)->k->block_step) { \
            const int lanes = (block);                                      \
            call;                                                           \
        }                                                                   \
        const int lanes = (int)(n_ - c);                                    \
        if (lanes > 0) call;                                                \
    } while (0)

INLINE void mean_lanes(float (*sum)[BLOCK], int rows, int block, int64_t c, float *ret_mean) {
    for (int r = 0; r < rows; r++) {
        double total = 0;
        for (int l = 0; l < block; l++) total += (double)sum[r][l];
        ret_mean[r] = (float)(total / (double)c);
    }
}

/* ---- tiles ---- */

/* The mean of (x - mean)^2 over one row. */
INLINE float spread_of(const layer_norm *k, const float *x, float mean, int block) {
    float part[BLOCK] = {0};
    int64_t c = 0;
    for (; c + block <= k->c; c += block, x += k->block_step) {
        for (int l = 0; l < block; l++) part[l] += (x[l] - mean) * (x[l] - mean);
    }
    for (int l = 0; c + l < k->c; l++) part[l] += (x[l] - mean) * (x[l] - mean);
    double total = 0;
    for (int l = 0; l < block; l++) total += (double)part[l];
    return (float)(total / (double)k->c);
}

INLINE void forward_tile(const tile *t, int block, bool rms) {
    const layer_norm *k = t->k;
    const float *x = k->b.src[0], *gamma = k->b.param[KI_W].value,
                *beta = rms ? NULL : k->b.param[KI_B].value;
    float *saved = k->b.workspace, mean[TILE] = {0}, istd[TILE], sum[TILE][BLOCK] = {0};
    if (!rms) {
        EACH_BLOCK(t, block, add_numbers(x, at, step, t->rows, lanes, sum));
        mean_lanes(sum, t->rows, block, k->c, mean);
    }
    for (int r = 0; r < t->rows; r++) {
        const float spread = spread_of(k, x + t->at + r * k->row_step, mean[r], block);
        istd[r] = (float)(1 / sqrt((double)spread + k->eps));
        if (saved) saved[2 * (t->first + r)] = mean[r], saved[2 * (t->first + r) + 1] = istd[r];
    }
    EACH_BLOCK(t, block,
               scale(x, at, step, t->rows, lanes, mean, istd, gamma + c, beta ? beta + c : NULL, k->b.dst));
}

INLINE void backward_tile(const tile *t, float *diff_gamma, float *diff_beta, int block, bool rms) {
    const layer_norm *k = t->k;
    const float *x = k->b.src[0], *dy = k->b.diff_dst[0], *gamma = k->b.param[KI_W].value,
                *saved = (const float *)k->b.workspace + 2 * t->first;
    float mean[TILE] = {0}, istd[TILE] = {0}, shift[TILE] = {0}, slope[TILE] = {0};
    for (int r = 0; r < t->rows; r++) mean[r] = saved[2 * r], istd[r] = saved[2 * r + 1];
    if (k->b.diff_src[0]) {
        float sum[TILE][BLOCK] = {0}, along[TILE][BLOCK] = {0};
        EACH_BLOCK(t, block,
                   add_gradients(x, dy, at, step, t->rows, lanes, mean, istd, gamma + c, sum, along));
        if (!rms) mean_lanes(sum, t->rows, block, k->c, shift);
        mean_lanes(along, t->rows, block, k->c, slope);
        EACH_BLOCK(
            t, block,
            gradient(x, dy, at, step, t->rows, lanes, mean, istd, gamma + c, shift, slope, k->b.diff_src[0]));
    }
    if (diff_gamma)
        EACH_BLOCK(t, block,
                   add_params(x, dy, at, step, t->rows, lanes, mean, istd, diff_gamma + c, diff_beta + c));
}

#define SIZES(block)                                                                                \
    CPU_WIDE static void forward_##block(const tile *t) { forward_tile(t, block, false); }          \
    CPU_WIDE static void forward_rms_##block(const tile *t) { forward_tile(t, block, true); }       \
    CPU_WIDE static void backward_##block(const tile *t, float *diff_gamma, float *diff_beta) {     \
        backward_tile(t, diff_gamma, diff_beta, block, false);                                      \
    }                                                                                               \
    CPU_WIDE static void backward_rms_##block(const tile *t, float *diff_gamma, float *diff_beta) { \
        backward_tile(t, diff_gamma, diff_beta, block, true);                                       \
    }
SIZES(16)
SIZES(8)
SIZES(1)
#undef SIZES

static tile tile_at(const layer_norm *k, int64_t number) {
    const int64_t n = number / k->tiles_each, first = number % k->tiles_each * TILE;
    return (tile){.k = k,
                  .at = n * k->image_step + first * k->row_step,
                  .first = n * k->hw + first,
                  .rows = (int)(k->hw - first < TILE ? k->hw - first : TILE)};
}

/* The channels that pad a map's last block are 0. */
static void clear_padding(const tile *t, float *map) {
    const layer_norm *k = t->k;
    float *last = map + t->at + k->c / k->block * k->block_step + k->c % k->block;
    for (int r = 0; r < t->rows && k->n_padding; r++)
        memset(last + r * k->row_step, 0, (size_t)k->n_padding * sizeof *last);
}

/* Items: tiles. */
static void forward_tiles(void *context, int64_t begin, int64_t end) {
    const layer_norm *k = context;
    for (int64_t i = begin; i < end; i++) {
        const tile t = tile_at(k, i);
        k->forward(&t);
        clear_padding(&t, k->b.dst);
    }
}

/* Items: groups. */
static void backward_groups(void *context, int64_t begin, int64_t end) {
    const layer_norm *k = context;
    const bool trains = k->b.param[KI_W].diff || k->b.param[KI_B].diff;
    for (int64_t g = begin; g < end; g++) {
        float *part = trains ? (float *)k->b.scratch + g * 2 * k->c : NULL;
        if (part) memset(part, 0, 2 * (size_t)k->c * sizeof *part);
        for (int64_t i = g * k->per_group; i < (g + 1) * k->per_group && i < k->n_tiles; i++) {
            const tile t = tile_at(k, i);
            k->backward(&t, part, part ? part + k->c : NULL);
            if (k->b.diff_src[0]) clear_padding(&t, k->b.diff_src[0]);
        }
    }
}

/* ---- the op ---- */

static int64_t groups_of(const layer_norm *k) { return (k->n_tiles + k->per_group - 1) / k->per_group; }

static void lay_out(layer_norm *k, const ki_edge *edge) {
    const ki_shape *s = &edge->shape;
    const bool is_map = s->n_dims == 4;
    k->mb = is_map ? s->dim[0] : 1;
    k->hw = is_map ? s->dim[2] * s->dim[3] : ki_shape_rows(s);
    k->c = is_map ? s->dim[1] : ki_shape_width(s);
    k->block = is_map ? (int)cpu_block() : BLOCK;
    k->image_step = cpu_padded(k->c) * k->hw;
    k->block_step = is_map ? k->block * k->hw : k->block;
    k->row_step = is_map ? k->block : k->c;
    k->n_padding = is_map ? (int)(cpu_padded(k->c) - k->c) : 0;
    k->tiles_each = (k->hw + TILE - 1) / TILE;
    k->n_tiles = k->mb * k->tiles_each;
    k->per_group = (k->n_tiles + MOST_GROUPS - 1) / MOST_GROUPS;
    const int64_t least = LEAST_NUMBERS / (TILE * k->c) + 1;
    if (k->per_group < least) k->per_group = least;
}

static kith_status norm_create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                               ki_kernel **ret_kernel, kith_error *err) {
    layer_norm *k = NULL;
    KI_TRY(ki_kernel_new(backend, &cpu_layer_norm, sizeof *k, &k, err));
    lay_out(k, &spec->dst);
    k->eps = spec->attr->layer_norm.eps;
    k->rms = spec->attr->layer_norm.rms;
    if (k->block == 16) {
        k->forward = k->rms ? forward_rms_16 : forward_16;
        k->backward = k->rms ? backward_rms_16 : backward_16;
    } else if (k->block == 8) {
        k->forward = k->rms ? forward_rms_8 : forward_8;
        k->backward = k->rms ? backward_rms_8 : backward_8;
    } else {
        k->forward = k->rms ? forward_rms_1 : forward_1;
        k->backward = k->rms ? backward_rms_1 : backward_1;
    }
    const bool trains = spec->mode == KI_TRAIN;
    *ret_info =
        (ki_kernel_info){.workspace_bytes = trains ? 2 * (size_t)(k->mb * k->hw) * sizeof(float) : 0,
                         .scratch_bytes = trains ? 2 * (size_t)(groups_of(k) * k->c) * sizeof(float) : 0,
                         .backward_reads_src = true};
    *ret_kernel = &k->base;
    return KITH_OK;
}

static void norm_free(ki_kernel *kernel) { ki_free(kernel); }

static kith_status norm_bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ((layer_norm *)kernel)->b = *binding;
    return KITH_OK;
}

static kith_status norm_forward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const layer_norm *k = (layer_norm *)kernel;
    ki_parallel_for(k->n_tiles, LEAST_NUMBERS / (TILE * k->c) + 1, forward_tiles, kernel);
    return KITH_OK;
}

static void add_parts(const layer_norm *k, const float *part, float *diff) {
    for (int64_t c = 0; c < k->c && diff; c++) {
        double sum = 0;
        for (int64_t g = 0; g < groups_of(k); g++) sum += (double)part[g * 2 * k->c + c];
        diff[c] += (float)sum;
    }
}

static kith_status norm_backward(ki_kernel *kernel, kith_error *err) {
    (void)err;
    const layer_norm *k = (layer_norm *)kernel;
    ki_parallel_for(groups_of(k), 1, backward_groups, kernel);
    add_parts(k, k->b.scratch, k->b.param[KI_W].diff);
    add_parts(k, (const float *)k->b.scratch + k->c, k->b.param[KI_B].diff);
    return KITH_OK;
}

const ki_kernel_type cpu_layer_norm = {.create = norm_create,
                                       .bind = norm_bind,
                                       .forward = norm_forward,
                                       .backward = norm_backward,
                                       .free = norm_free};
