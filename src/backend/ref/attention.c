/* attention. For each row and head, with q, k, v of d = c / heads numbers for each token and scale = 1 / sqrt(d):
 *   p[i, j] = softmax over j of scale * q[i] . k[j] + bias[i, j] + mask[i, j]
 *   dst[i] = sum over j of p[i, j] v[j]
 *   diff_p[i, j] = diff_dst[i] . v[j],  diff_s[i, j] = p[i, j] (diff_p[i, j] - sum over j of p[i, j] diff_p[i, j])
 *   diff_q[i] = scale * sum over j of diff_s[i, j] k[j],  diff_k[j] = scale * sum over i of diff_s[i, j] q[i]
 *   diff_v[j] = sum over i of p[i, j] diff_dst[i],  diff_bias[i, j] = diff_s[i, j]
 * All p are kept for backward. */
#include <math.h>

#include "backend/ref/ref.h"
#include "base/parallel.h"
#include "device/windows.h"

/* n tokens for each row, pitch numbers from one to the next; NULL: not wanted. */
typedef struct part {
    ki_real *at;
    int64_t n, pitch;
} part;

typedef struct attention {
    const ki_attention_attr *attr;
    int64_t rows, heads, s, t, d;
    double scale;
    part q, k, v, diff_q, diff_k, diff_v;
    part dst; /* forward the result, backward its gradient */
    const ki_real *table;
    ki_real *p, *diff_s;    /* [rows, heads, s, t] */
    double *diff_table;     /* [(2 window - 1)^2, heads]: the sums of diff_table_to */
    ki_real *diff_table_to; /* NULL: not wanted */
} attention;

static part part_of(const ki_ref_kernel *k, bool is_diff, int src, int64_t offset) {
    const ki_shape *shape = &k->spec.src[src].shape;
    ki_real *at =
        is_diff ? k->binding.diff_src[src] : (ki_real *)(uintptr_t)k->binding.src[src]; /* only read */
    return (part){at ? at + offset : NULL, shape->dim[1], shape->dim[2]};
}

static int64_t table_count(const ki_attention_attr *a) {
    const int64_t side = 2 * a->window - 1;
    return a->window ? side * side * a->heads : 0;
}

static attention attention_of(const ki_ref_kernel *k, bool is_backward) {
    const ki_shape *dst = &k->spec.dst.shape;
    const int from = k->spec.n_src - 1;
    const int64_t c = dst->dim[2], k_at = from ? 0 : c, v_at = from ? c : 2 * c;
    double *sums = k->binding.scratch;
    void *y = is_backward ? (void *)(uintptr_t)k->binding.diff_dst[0] : k->binding.dst;
    const int64_t n_sums = k->spec.mode == KI_TRAIN ? table_count(&k->attr.attention) : 0;
    attention a = {.attr = &k->attr.attention,
                   .rows = dst->dim[0],
                   .heads = k->attr.attention.heads,
                   .s = dst->dim[1],
                   .t = k->spec.src[from].shape.dim[1],
                   .d = c / k->attr.attention.heads,
                   .q = part_of(k, false, 0, 0),
                   .k = part_of(k, false, from, k_at),
                   .v = part_of(k, false, from, v_at),
                   .diff_q = part_of(k, true, 0, 0),
                   .diff_k = part_of(k, true, from, k_at),
                   .diff_v = part_of(k, true, from, v_at),
                   .dst = {y, dst->dim[1], c},
                   .table = k->binding.param[KI_W].value,
                   .diff_s = (ki_real *)(sums + n_sums),
                   .diff_table = sums,
                   .diff_table_to = ki_ref_diff(k, KI_W)};
    a.scale = 1 / sqrt((double)a.d);
    a.p = k->binding.workspace ? k->binding.workspace : k->binding.scratch;
    return a;
}

/* The numbers of a head of a token. */
static ki_real *token(const attention *a, const part *p, int64_t row_head, int64_t i) {
    return p->at + (row_head / a->heads * p->n + i) * p->pitch + row_head % a->heads * a->d;
}

static double dot(const attention *a, const ki_real *x, const ki_real *y) {
    double sum = 0;
    for (int64_t i = 0; i < a->d; i++) sum += (double)x[i] * (double)y[i];
    return sum;
}

static double score(const attention *a, int64_t row_head, int64_t i, int64_t j) {
    double s = a->scale * dot(a, token(a, &a->q, row_head, i), token(a, &a->k, row_head, j));
    if (!a->attr->window) return s;
    const int64_t row = row_head / a->heads, head = row_head % a->heads;
    s += (double)a->table[ki_window_bias(a->attr->window, i, j) * a->heads + head];
    if (ki_window_part(a->attr, row, i) != ki_window_part(a->attr, row, j)) s += KI_WINDOW_UNSEEN;
    return s;
}

/* Items: [rows, heads, s]. */
static void forward_items(void *context, int64_t begin, int64_t end) {
    const attention *a = context;
    for (int64_t item = begin; item < end; item++) {
        const int64_t row_head = item / a->s, i = item % a->s;
        ki_real *p = a->p + item * a->t, *dst = token(a, &a->dst, row_head, i);
        double most = -INFINITY, total = 0;
        for (int64_t j = 0; j < a->t; j++) {
            p[j] = (ki_real)score(a, row_head, i, j);
            most = fmax(most, (double)p[j]);
        }
        for (int64_t j = 0; j < a->t; j++) total += exp((double)p[j] - most);
        for (int64_t j = 0; j < a->t; j++) p[j] = (ki_real)(exp((double)p[j] - most) / total);
        for (int64_t c = 0; c < a->d; c++) {
            double sum = 0;
            for (int64_t j = 0; j < a->t; j++) sum += (double)p[j] * (double)token(a, &a->v, row_head, j)[c];
            dst[c] = (ki_real)sum;
        }
    }
}

/* Items: [rows, heads, s]. */
static void backward_queries(void *context, int64_t begin, int64_t end) {
    const attention *a = context;
    for (int64_t item = begin; item < end; item++) {
        const int64_t row_head = item / a->s, i = item % a->s;
        const ki_real *p = a->p + item * a->t, *diff_dst = token(a, &a->dst, row_head, i);
        ki_real *diff_s = a->diff_s + item * a->t;
        double mean = 0;
        for (int64_t j = 0; j < a->t; j++)
            mean += (double)p[j] * dot(a, diff_dst, token(a, &a->v, row_head, j));
        for (int64_t j = 0; j < a->t; j++)
            diff_s[j] = (ki_real)((double)p[j] * (dot(a, diff_dst, token(a, &a->v, row_head, j)) - mean));
        for (int64_t c = 0; a->diff_q.at && c < a->d; c++) {
            double sum = 0;
            for (int64_t j = 0; j < a->t; j++)
                sum += (double)diff_s[j] * (double)token(a, &a->k, row_head, j)[c];
            token(a, &a->diff_q, row_head, i)[c] = (ki_real)(a->scale * sum);
        }
    }
}

/* Items: [rows, heads, t]. */
static void backward_keys(void *context, int64_t begin, int64_t end) {
    const attention *a = context;
    for (int64_t item = begin; item < end; item++) {
        const int64_t row_head = item / a->t, j = item % a->t;
        const ki_real *p = a->p + row_head * a->s * a->t + j, *diff_s = a->diff_s + (p - a->p);
        for (int64_t c = 0; c < a->d; c++) {
            double of_k = 0, of_v = 0;
            for (int64_t i = 0; i < a->s; i++) {
                of_k += (double)diff_s[i * a->t] * (double)token(a, &a->q, row_head, i)[c];
                of_v += (double)p[i * a->t] * (double)token(a, &a->dst, row_head, i)[c];
            }
            token(a, &a->diff_k, row_head, j)[c] = (ki_real)(a->scale * of_k);
            token(a, &a->diff_v, row_head, j)[c] = (ki_real)of_v;
        }
    }
}

/* On one thread, so that the order of the sums is fixed. */
static void add_table(const attention *a) {
    const int64_t n = table_count(a->attr), area = a->s * a->t;
    for (int64_t i = 0; i < n; i++) a->diff_table[i] = 0;
    for (int64_t item = 0; item < a->rows * a->heads * area; item++) {
        const int64_t at = ki_window_bias(a->attr->window, item % area / a->t, item % a->t);
        a->diff_table[at * a->heads + item / area % a->heads] += (double)a->diff_s[item];
    }
    for (int64_t i = 0; i < n; i++) a->diff_table_to[i] += (ki_real)a->diff_table[i];
}

static kith_status create(ki_backend *backend, const ki_kernel_spec *spec, ki_kernel_info *ret_info,
                          ki_kernel **ret_kernel, kith_error *err) {
    const ki_shape *dst = &spec->dst.shape;
    const ki_attention_attr *a = &spec->attr->attention;
    const ki_shape scores =
        KI_SHAPE4(dst->dim[0], a->heads, dst->dim[1], spec->src[spec->n_src - 1].shape.dim[1]);
    const int64_t n = ki_shape_count(&scores);
    const bool trains = spec->mode == KI_TRAIN;
    if (n < 0 || (size_t)n > SIZE_MAX / 4 / sizeof(ki_real))
        return ki_fail(err, KITH_ESHAPE, "too many scores of tokens: %lld rows of %lld tokens",
                       (long long)dst->dim[0], (long long)dst->dim[1]);
    KI_TRY(ki_ref_kernel_new(&ki_ref_attention, backend, spec, ret_kernel, err));
    *ret_info = (ki_kernel_info){
        .workspace_bytes = trains ? (size_t)n * sizeof(ki_real) : 0,
        .scratch_bytes = (size_t)n * sizeof(ki_real) + (trains ? (size_t)table_count(a) * sizeof(double) : 0),
        .backward_reads_src = true};
    return KITH_OK;
}

static kith_status forward(ki_kernel *kernel, kith_error *err) {
    attention a = attention_of(ki_ref_of(kernel), false);
    (void)err;
    ki_parallel_for(a.rows * a.heads * a.s, ki_ref_grain(a.t * a.d), forward_items, &a);
    return KITH_OK;
}

static kith_status backward(ki_kernel *kernel, kith_error *err) {
    attention a = attention_of(ki_ref_of(kernel), true);
    (void)err;
    ki_parallel_for(a.rows * a.heads * a.s, ki_ref_grain(a.t * a.d), backward_queries, &a);
    if (a.diff_k.at) ki_parallel_for(a.rows * a.heads * a.t, ki_ref_grain(a.s * a.d), backward_keys, &a);
    if (a.attr->window && a.diff_table_to) add_table(&a);
    return KITH_OK;
}

const ki_kernel_type ki_ref_attention = {
    .create = create, .bind = ki_ref_bind, .forward = forward, .backward = backward, .free = ki_ref_free};
