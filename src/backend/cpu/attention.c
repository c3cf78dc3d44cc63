/* Attention, block by block of queries: the scores of a block with all keys of its row and head are made, used and forgotten in the
 * caches. For training forward keeps one number for each query, the logarithm of the sum of exponentials, from which backward makes
 * the scores again (Dao et al., FlashAttention, 2022). Formulas: backend/ref.
 *
 * Work is cut into items that do not depend on the number of threads: a block of queries forward, a row and head backward.
 * A slot is a run of items that one thread computes, with scratch memory of its own. */
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/products.h"
#include "backend/cpu/softmax.h"
#include "device/windows.h"

enum { MOST_BLOCK = 60 }; /* queries of a block: a multiple of CPU_STRIPE */

/* n tokens for each row, pitch numbers from one to the next. */
typedef struct part {
    int src;
    int64_t offset, n, pitch;
} part;

/* Where the parts of a slot's scratch begin, in floats. */
typedef struct layout {
    int64_t q, scores, result;   /* of a block: scaled queries, [block, wide_t], [block, wide_d] */
    int64_t parts;               /* [t]: of the window that the tokens are in */
    int64_t keys_across;         /* panels of k^T */
    int64_t values;              /* forward: panels of v */
    int64_t values_across, keys; /* backward: panels of v^T and k */
    int64_t diff, q_panels,
        diff_panels;                /* of a block: gradient of the result; panels of it and of the queries */
    int64_t diff_scores;            /* as scores */
    int64_t diff_keys, diff_values; /* sums over blocks, [t, wide_d] */
    int64_t total;
} layout;

typedef struct attention {
    ki_kernel base;
    ki_attention_attr attr;
    int64_t rows, heads, s, t, d, c;
    int64_t wide_t, wide_d; /* up to whole panels */
    int64_t block;          /* queries that are computed together: a multiple of CPU_STRIPE */
    int64_t n_slots;
    float scale;
    bool trains;
    part q, k, v;
    layout forward_at, backward_at;
    int64_t bias_floats,
        table_floats; /* of the bias of all heads, and of the table's gradient of one row and head */
    ki_binding b;
} attention;

static int64_t upto(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

static int64_t take(layout *l, int64_t n) {
    const int64_t at = l->total;
    l->total += upto(n, CPU_PANEL);
    return at;
}

static layout layout_of(const attention *a, bool is_backward) {
    layout l = {0};
    l.q = take(&l, a->block * a->d);
    l.scores = take(&l, a->block * a->wide_t);
    l.result = take(&l, a->block * a->wide_d);
    l.parts = take(&l, a->t);
    l.keys_across = take(&l, a->wide_t * a->d);
    if (!is_backward) {
        l.values = take(&l, a->t * a->wide_d);
        return l;
    }
    const int64_t stripes = upto(a->t, CPU_STRIPE) * a->wide_d;
    l.values_across = take(&l, a->wide_t * a->d);
    l.keys = take(&l, a->t * a->wide_d);
    l.q_panels = take(&l, a->block * a->wide_d);
    l.diff = take(&l, a->block * a->d);
    l.diff_panels = take(&l, a->block * a->wide_d);
    l.diff_scores = take(&l, a->block * a->wide_t);
    l.diff_keys = take(&l, stripes);
    l.diff_values = take(&l, stripes);
    return l;
}

/* The scratch: the bias of all heads [heads, t, wide_t], the table's gradients [rows, heads, (2 window - 1)^2], the slots. */
static float *bias_of(const attention *a) { return a->b.scratch; }
static float *tables_of(const attention *a) { return bias_of(a) + a->bias_floats; }
static float *slot_of(const attention *a, bool is_backward, int64_t slot) {
    float *slots = tables_of(a) + (is_backward ? a->rows * a->heads * a->table_floats : 0);
    return slots + slot * (is_backward ? a->backward_at : a->forward_at).total;
}

static int64_t items_of(const attention *a, bool is_backward) {
    return a->rows * a->heads * (is_backward ? 1 : (a->s + a->block - 1) / a->block);
}

static int64_t slots_of(const attention *a, bool is_backward) {
    const int64_t n = items_of(a, is_backward);
    return n < a->n_slots ? n : a->n_slots;
}

static const float *source(const attention *a, const part *p, int64_t row_head) {
    return (const float *)a->b.src[p->src] + p->offset + row_head / a->heads * p->n * p->pitch +
           row_head % a->heads * a->d;
}

static float *gradient(const attention *a, const part *p, int64_t row_head) {
    float *diff = a->b.diff_src[p->src];
    return diff ? diff + (source(a, p, row_head) - (const float *)a->b.src[p->src]) : NULL;
}

static int64_t token_at(const attention *a, int64_t row_head, int64_t i) {
    return (row_head / a->heads * a->s + i) * a->c + row_head % a->heads * a->d;
}

/* to [block, d] = scale * n tokens; rows after them are zeros. */
CPU_WIDE static void copy_block(const float *from, int64_t pitch, int64_t n, int64_t d, float scale,
                                int64_t block, float *to) {
    for (int64_t i = 0; i < n; i++) {
        for (int64_t c = 0; c < d; c++) to[i * d + c] = scale * from[i * pitch + c];
    }
    memset(to + n * d, 0, (size_t)((block - n) * d) * sizeof *to);
}

/* n tokens = from * scale * factor[i]; factor NULL: 1. */
CPU_WIDE static void copy_out(const float *from, int64_t from_pitch, int64_t n, int64_t d, float scale,
                              const float *factor, float *to, int64_t to_pitch) {
    for (int64_t i = 0; i < n; i++) {
        const float times = factor ? scale * factor[i] : scale;
        for (int64_t c = 0; c < d; c++) to[i * to_pitch + c] = times * from[i * from_pitch + c];
    }
}

CPU_WIDE static void add_numbers(float *x, const float *y, int64_t n) {
    for (int64_t j = 0; j < n; j++) x[j] += y[j];
}

CPU_WIDE static void add_mask(float *x, const float *part_of, float mine, int64_t n) {
    for (int64_t j = 0; j < n; j++) x[j] += part_of[j] == mine ? 0 : (float)KI_WINDOW_UNSEEN;
}

/* Items: heads. */
static void bias_heads(void *context, int64_t begin, int64_t end) {
    const attention *a = context;
    const float *table = a->b.param[KI_W].value;
    for (int64_t head = begin; head < end; head++) {
        float *bias = bias_of(a) + head * a->t * a->wide_t;
        for (int64_t i = 0; i < a->t; i++) {
            for (int64_t j = 0; j < a->t; j++)
                bias[i * a->wide_t + j] = table[ki_window_bias(a->attr.window, i, j) * a->heads + head];
        }
    }
}

static bool is_cut(const attention *a, int64_t row) {
    const int64_t window = row % (a->attr.h * a->attr.w);
    return a->attr.shift > 0 && (window / a->attr.w == a->attr.h - 1 || window % a->attr.w == a->attr.w - 1);
}

/* Bias and mask of queries first to first + n of a window. */
static void add_positions(const attention *a, int64_t row_head, int64_t first, int64_t n, float *scores,
                          float *parts) {
    const int64_t row = row_head / a->heads;
    const float *bias = bias_of(a) + row_head % a->heads * a->t * a->wide_t;
    const bool cut = is_cut(a, row);
    add_numbers(scores, bias + first * a->wide_t, n * a->wide_t);
    for (int64_t j = 0; cut && j < a->t; j++) parts[j] = (float)ki_window_part(&a->attr, row, j);
    for (int64_t i = 0; cut && i < n; i++) add_mask(scores + i * a->wide_t, parts, parts[first + i], a->t);
}

/* Scores of the n queries from `first` on, with -INFINITY behind the last key. */
static void make_scores(const attention *a, const layout *l, float *slot, int64_t row_head, int64_t first,
                        int64_t n) {
    float *scores = slot + l->scores;
    copy_block(source(a, &a->q, row_head) + first * a->q.pitch, a->q.pitch, n, a->d, a->scale, a->block,
               slot + l->q);
    cpu_multiply(&(cpu_product){.m = n,
                                .n = a->wide_t,
                                .k = a->d,
                                .a = slot + l->q,
                                .a_row = a->d,
                                .a_k = 1,
                                .b = slot + l->keys_across,
                                .dst = scores,
                                .dst_pitch = a->wide_t});
    if (a->attr.window) add_positions(a, row_head, first, n, scores, slot + l->parts);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = a->t; j < a->wide_t; j++) scores[i * a->wide_t + j] = -INFINITY;
    }
}

static void forward_block(const attention *a, float *slot, int64_t row_head, int64_t first, int64_t n) {
    const layout *l = &a->forward_at;
    float *scores = slot + l->scores, *result = slot + l->result, factor[MOST_BLOCK];
    float *saved = a->trains ? (float *)a->b.workspace + row_head * a->s + first : NULL;
    make_scores(a, l, slot, row_head, first, n);
    cpu_soften(scores, n, a->wide_t, factor, saved);
    cpu_multiply(&(cpu_product){.m = n,
                                .n = a->wide_d,
                                .k = a->t,
                                .a = scores,
                                .a_row = a->wide_t,
                                .a_k = 1,
                                .b = slot + l->values,
                                .dst = result,
                                .dst_pitch = a->wide_d});
    copy_out(result, a->wide_d, n, a->d, 1, factor, (float *)a->b.dst + token_at(a, row_head, first), a->c);
}

/* Items: slots. */
static void forward_slots(void *context, int64_t begin, int64_t end) {
    const attention *a = context;
    const int64_t n_items = items_of(a, false), n_slots = slots_of(a, false),
                  n_blocks = (a->s + a->block - 1) / a->block;
    for (int64_t s = begin; s < end; s++) {
        float *slot = slot_of(a, false, s);
        int64_t packed = -1; /* the row and head whose panels are there */
        for (int64_t item = n_items * s / n_slots; item < n_items * (s + 1) / n_slots; item++) {
            const int64_t row_head = item / n_blocks, first = item % n_blocks * a->block;
            if (row_head != packed) {
                cpu_panels_of_transpose(source(a, &a->k, row_head), a->k.pitch, a->t, a->d,
                                        slot + a->forward_at.keys_across);
                cpu_panels(source(a, &a->v, row_head), a->v.pitch, a->t, a->d, slot + a->forward_at.values);
                packed = row_head;
            }
            forward_block(a, slot, row_head, first, a->s - first < a->block ? a->s - first : a->block);
        }
    }
}

/* diff_scores of a block, and its scores as weights. */
static void backward_scores(const attention *a, float *slot, int64_t row_head, int64_t first, int64_t n) {
    const layout *l = &a->backward_at;
    const float *saved = (const float *)a->b.workspace + row_head * a->s + first;
    const float *diff_dst = (const float *)a->b.diff_dst[0] + token_at(a, row_head, first);
    make_scores(a, l, slot, row_head, first, n);
    copy_block(diff_dst, a->c, n, a->d, 1, a->block, slot + l->diff);
    cpu_multiply(&(cpu_product){.m = n,
                                .n = a->wide_t,
                                .k = a->d,
                                .a = slot + l->diff,
                                .a_row = a->d,
                                .a_k = 1,
                                .b = slot + l->values_across,
                                .dst = slot + l->diff_scores,
                                .dst_pitch = a->wide_t});
    cpu_soften_back(slot + l->scores, slot + l->diff_scores, n, a->wide_t, saved);
}

/* dst [t, d] += weights^T x, of weights [n, t] and panels of x [n, d]. */
static void add_across(const attention *a, const float *weights, const float *x, int64_t n, float *dst) {
    cpu_multiply(&(cpu_product){.m = a->t,
                                .n = a->wide_d,
                                .k = n,
                                .a = weights,
                                .a_row = 1,
                                .a_k = a->wide_t,
                                .b = x,
                                .dst = dst,
                                .dst_pitch = a->wide_d,
                                .adds = true});
}

static void add_table(const attention *a, const float *diff_scores, int64_t first, int64_t n, float *table) {
    const int64_t window = a->attr.window;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t y = 0; y < window; y++) {
            const float *from = diff_scores + i * a->wide_t + y * window;
            float *to = table + ki_window_bias(window, first + i, y * window);
            for (int64_t x = 0; x < window; x++) to[-x] += from[x];
        }
    }
}

static void backward_block(const attention *a, float *slot, int64_t row_head, int64_t first, int64_t n) {
    const layout *l = &a->backward_at;
    float *diff_q = gradient(a, &a->q, row_head);
    backward_scores(a, slot, row_head, first, n);
    if (a->table_floats)
        add_table(a, slot + l->diff_scores, first, n, tables_of(a) + row_head * a->table_floats);
    if (diff_q) {
        cpu_multiply(&(cpu_product){.m = n,
                                    .n = a->wide_d,
                                    .k = a->t,
                                    .a = slot + l->diff_scores,
                                    .a_row = a->wide_t,
                                    .a_k = 1,
                                    .b = slot + l->keys,
                                    .dst = slot + l->result,
                                    .dst_pitch = a->wide_d});
        copy_out(slot + l->result, a->wide_d, n, a->d, a->scale, NULL, diff_q + first * a->q.pitch,
                 a->q.pitch);
    }
    if (!a->b.diff_src[a->k.src]) return;
    cpu_panels(slot + l->q, a->d, n, a->d, slot + l->q_panels);
    cpu_panels(slot + l->diff, a->d, n, a->d, slot + l->diff_panels);
    add_across(a, slot + l->scores, slot + l->diff_panels, n, slot + l->diff_values);
    add_across(a, slot + l->diff_scores, slot + l->q_panels, n, slot + l->diff_keys);
}

/* A row and head. */
static void backward_item(const attention *a, float *slot, int64_t row_head) {
    const layout *l = &a->backward_at;
    const float *k = source(a, &a->k, row_head), *v = source(a, &a->v, row_head);
    const size_t stripes = (size_t)(upto(a->t, CPU_STRIPE) * a->wide_d) * sizeof(float);
    cpu_panels_of_transpose(k, a->k.pitch, a->t, a->d, slot + l->keys_across);
    cpu_panels_of_transpose(v, a->v.pitch, a->t, a->d, slot + l->values_across);
    cpu_panels(k, a->k.pitch, a->t, a->d, slot + l->keys);
    memset(slot + l->diff_keys, 0, stripes);
    memset(slot + l->diff_values, 0, stripes);
    if (a->table_floats)
        memset(tables_of(a) + row_head * a->table_floats, 0, (size_t)a->table_floats * sizeof(float));
    for (int64_t first = 0; first < a->s; first += a->block)
        backward_block(a, slot, row_head, first, a->s - first < a->block ? a->s - first : a->block);
    if (!a->b.diff_src[a->k.src]) return;
    /* The queries in diff_keys were scaled already. */
    copy_out(slot + l->diff_keys, a->wide_d, a->t, a->d, 1, NULL, gradient(a, &a->k, row_head), a->k.pitch);
    copy_out(slot + l->diff_values, a->wide_d, a->t, a->d, 1, NULL, gradient(a, &a->v, row_head), a->v.pitch);
}

/* Items: slots. */
static void backward_slots(void *context, int64_t begin, int64_t end) {
    const attention *a = context;
    const int64_t n_items = items_of(a, true), n_slots = slots_of(a, true);
    for (int64_t s = begin; s < end; s++) {
        float *slot = slot_of(a, true, s);
        for (int64_t item = n_items * s / n_slots; item < n_items * (s + 1) / n_slots; item++)
            backward_item(a, slot, item);
    }
}

/* Items: numbers of the table. The rows are added up in order. */
static void table_items(void *context, int64_t begin, int64_t end) {
    const attention *a = context;
    float *diff = a->b.param[KI_W].diff;
    for (int64_t item = begin; item < end; item++) {
        const float *from = tables_of(a) + item % a->heads * a->table_floats + item / a->heads;
        double sum = 0;
        for (int64_t r = 0; r < a->rows; r++) sum += (double)from[r * a->heads * a->table_floats];
        diff[item] += (float)sum;
    }
}

static void set_parts(attention *a, const ki_kernel_spec *spec) {
    const int from = spec->n_src - 1;
    const ki_shape *q = &spec->src[0].shape, *kv = &spec->src[from].shape;
    a->q = (part){0, 0, q->dim[1], q->dim[2]};
    a->k = (part){from, from ? 0 : a->c, kv->dim[1], kv->dim[2]};
    a->v = (part){from, from ? a->c : 2 * a->c, kv->dim[1], kv->dim[2]};
    a->s = a->q.n;
    a->t = a->k.n;
    const int64_t n_blocks = (a->s + MOST_BLOCK - 1) / MOST_BLOCK;
    a->block = upto((a->s + n_blocks - 1) / n_blocks, CPU_STRIPE); /* of about the same size */
}

static size_t scratch_bytes(const attention *a) {
    const int64_t forward = slots_of(a, false) * a->forward_at.total,
                  backward = a->rows * a->heads * a->table_floats + slots_of(a, true) * a->backward_at.total;
    return (size_t)(a->bias_floats + (a->trains && backward > forward ? backward : forward)) * sizeof(float);
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    attention *a = NULL;
    KI_TRY(ki_kernel_new(backend, &cpu_attention, sizeof *a, &a, err));
    a->attr = spec->attr->attention;
    a->rows = spec->dst.shape.dim[0];
    a->c = spec->dst.shape.dim[2];
    a->heads = a->attr.heads;
    a->d = a->c / a->heads;
    a->scale = (float)(1 / sqrt((double)a->d));
    a->trains = spec->mode == KI_TRAIN;
    set_parts(a, spec);
    a->wide_t = cpu_panels_up(a->t);
    a->wide_d = cpu_panels_up(a->d);
    const int64_t side = 2 * a->attr.window - 1;
    a->bias_floats = a->attr.window ? a->heads * a->t * a->wide_t : 0;
    a->table_floats = a->attr.window && a->trains && spec->wants_diff_params ? side * side : 0;
    a->n_slots = ki_threads();
    a->forward_at = layout_of(a, false);
    a->backward_at = layout_of(a, true);
    *ret_info = (ki_kernel_info){
        .workspace_bytes = a->trains ? (size_t)(a->rows * a->heads * a->s) * sizeof(float) : 0,
        .scratch_bytes = scratch_bytes(a),
        .backward_reads_src = true};
    *ret_kernel = &a->base;
    return KITH_OK;
}

static kith_status bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ((attention *)kernel)->b = *binding;
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    const attention *a = (attention *)kernel;
    (void)err;
    if (a->attr.window) ki_parallel_for(a->heads, 1, bias_heads, kernel);
    ki_parallel_for(slots_of(a, false), 1, forward_slots, kernel);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    const attention *a = (attention *)kernel;
    (void)err;
    if (a->attr.window) ki_parallel_for(a->heads, 1, bias_heads, kernel);
    ki_parallel_for(slots_of(a, true), 1, backward_slots, kernel);
    if (a->table_floats && a->b.param[KI_W].diff)
        ki_parallel_for(a->heads * a->table_floats, 16384 / a->rows + 1, table_items, kernel);
    return KITH_OK;
}

static void release(ki_kernel *kernel) { ki_free(kernel); }

const ki_kernel_type cpu_attention = {
    .create = create, .bind = bind, .forward = forward, .backward = backward, .free = release};
