/* Two labellings of the same items, compared through their contingency table, which is kept sparse:
 * its cells are the runs of equal (cluster, class) pairs after sorting.
 *
 * With a_i items in cluster i, b_j in class j, n_ij in both, n in all:
 *   I   = sum n_ij / n log(n n_ij / (a_i b_j)),  H(a) = - sum a_i / n log(a_i / n)
 *   NMI = I / mean(H(a), H(b))
 *   AMI = (I - E) / (mean(H(a), H(b)) - E), E the expected I for given a and b (Vinh, Epps and Bailey,
 *         JMLR 2010, hypergeometric model)
 *   F1 over pairs: precision sum C(n_ij, 2) / sum C(a_i, 2), recall with C(b_j, 2). */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "kith/eval.h"

typedef struct item {
    int64_t cluster, label;
} item;

static int compare_item(const void *a, const void *b) {
    const item *x = a, *y = b;
    if (x->cluster != y->cluster) return x->cluster > y->cluster ? 1 : -1;
    return (x->label > y->label) - (x->label < y->label);
}
static int compare_int64(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Sizes of the runs of equal values, which are sorted first; returns how many runs. In place. */
static int64_t run_sizes(int64_t *values, int64_t n) {
    qsort(values, (size_t)n, sizeof *values, compare_int64);
    int64_t n_runs = 0;
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && values[end] == values[i]; end++) {
        }
        values[n_runs++] = end - i;
    }
    return n_runs;
}

static double entropy(const int64_t *size, int64_t n_sizes, double n) {
    double sum = 0;
    for (int64_t i = 0; i < n_sizes; i++) sum -= (double)size[i] / n * log((double)size[i] / n);
    return sum;
}
static double pairs_within(const int64_t *size, int64_t n_sizes) {
    double sum = 0;
    for (int64_t i = 0; i < n_sizes; i++) sum += (double)size[i] * (double)(size[i] - 1) / 2;
    return sum;
}

/* Sizes that occur once are as good as sizes that occur a thousand times: the term of the expected
 * information depends on the two sizes alone. */
static int64_t distinct(const int64_t *size, int64_t n, int64_t *ret_value, int64_t *ret_count) {
    int64_t n_distinct = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || size[i] != size[i - 1]) {
            ret_value[n_distinct] = size[i];
            ret_count[n_distinct++] = 0;
        }
        ret_count[n_distinct - 1]++;
    }
    return n_distinct;
}

/* The expected term of one cell with margins a and b: sum over t of t / n log(n t / (a b)) P(t). */
static double expected_cell(const double *log_factorial, int64_t n, int64_t a, int64_t b) {
    const int64_t first = a + b - n > 1 ? a + b - n : 1, last = a < b ? a : b;
    const double fixed =
        log_factorial[a] + log_factorial[b] + log_factorial[n - a] + log_factorial[n - b] - log_factorial[n];
    double sum = 0;
    for (int64_t t = first; t <= last; t++) {
        const double probability = exp(fixed - log_factorial[t] - log_factorial[a - t] -
                                       log_factorial[b - t] - log_factorial[n - a - b + t]);
        sum += (double)t / (double)n * log((double)n * (double)t / ((double)a * (double)b)) * probability;
    }
    return sum;
}

static kith_status expected_information(int64_t *a, int64_t n_a, int64_t *b, int64_t n_b, int64_t n,
                                        double *ret_expected, kith_error *err) {
    kith_status status = KITH_OK;
    double *log_factorial = NULL;
    int64_t *value = NULL, *count = NULL;
    const size_t most = (size_t)(n_a + n_b);
    KI_CHECK(ki_alloc_or(&log_factorial, (size_t)n + 1, sizeof *log_factorial, "log factorials", err));
    KI_CHECK(ki_alloc_or(&value, most, sizeof *value, "cluster sizes", err));
    KI_CHECK(ki_alloc_or(&count, most, sizeof *count, "cluster sizes", err));
    for (int64_t i = 0; i <= n; i++) log_factorial[i] = lgamma((double)i + 1);
    qsort(a, (size_t)n_a, sizeof *a, compare_int64);
    qsort(b, (size_t)n_b, sizeof *b, compare_int64);
    const int64_t d_a = distinct(a, n_a, value, count);
    const int64_t d_b = distinct(b, n_b, value + n_a, count + n_a);
    double sum = 0;
    for (int64_t i = 0; i < d_a; i++) {
        for (int64_t j = 0; j < d_b; j++)
            sum += (double)count[i] * (double)count[n_a + j] *
                   expected_cell(log_factorial, n, value[i], value[n_a + j]);
    }
    *ret_expected = sum;
done:
    ki_free(log_factorial);
    ki_free(value);
    ki_free(count);
    return status;
}

/* Mutual information and pairs put together by both; items are sorted. Sizes by rank in the sorted order
 * of clusters and classes. */
typedef struct table {
    double information, pairs;
} table;

static int64_t find_size(const int64_t *label, const int64_t *size, int64_t n, int64_t wanted) {
    int64_t low = 0, high = n - 1;
    while (low < high) {
        const int64_t mid = (low + high) / 2;
        if (label[mid] < wanted)
            low = mid + 1;
        else
            high = mid;
    }
    return size[low];
}

kith_status kith_clustering_compare(const int64_t *cluster, const int64_t *labels, int64_t n,
                                    kith_clustering *ret_clustering, kith_error *err) {
    KI_NEED(err, cluster, labels, ret_clustering);
    KI_NEED_COUNT(err, n);
    kith_status status = KITH_OK;
    if (n < 1) return ki_fail(err, KITH_EINVAL, "there are no items to compare");
    item *items = NULL;
    int64_t *a = NULL, *b = NULL, *b_label = NULL;
    const size_t count = (size_t)n;
    KI_CHECK(ki_alloc_or(&items, count, sizeof *items, "labels", err));
    KI_CHECK(ki_alloc_or(&a, count, sizeof *a, "labels", err));
    KI_CHECK(ki_alloc_or(&b, count, sizeof *b, "labels", err));
    KI_CHECK(ki_alloc_or(&b_label, count, sizeof *b_label, "labels", err));
    for (int64_t i = 0; i < n; i++) {
        items[i] = (item){cluster[i], labels[i]};
        a[i] = cluster[i];
        b[i] = labels[i];
    }
    qsort(items, count, sizeof *items, compare_item);
    const int64_t n_a = run_sizes(a, n);
    qsort(b, count, sizeof *b, compare_int64);
    int64_t n_b = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || b[i] != b[i - 1]) b_label[n_b++] = b[i];
    }
    run_sizes(b, n);

    table t = {0};
    for (int64_t i = 0, end, at = -1; i < n; i = end) {
        if (i == 0 || items[i].cluster != items[i - 1].cluster) at++;
        for (end = i + 1; end < n && compare_item(items + i, items + end) == 0; end++) {
        }
        const double cell = (double)(end - i), size_a = (double)a[at];
        const double size_b = (double)find_size(b_label, b, n_b, items[i].label);
        t.information += cell / (double)n * log((double)n * cell / (size_a * size_b));
        t.pairs += cell * (cell - 1) / 2;
    }

    const double h_a = entropy(a, n_a, (double)n), h_b = entropy(b, n_b, (double)n);
    const double pairs_a = pairs_within(a, n_a), pairs_b = pairs_within(b, n_b);
    double expected = 0;
    KI_CHECK(expected_information(a, n_a, b, n_b, n, &expected, err));
    const double mean = (h_a + h_b) / 2, eps = 2.220446049250313e-16;
    /* Both labellings put everything together, or both put everything apart: they agree. */
    const bool is_trivial = (n_a == 1 && n_b == 1) || (n_a == n && n_b == n);
    const double room = mean - expected;
    kith_clustering c = {.n_clusters = n_a, .n_classes = n_b};
    c.nmi = mean > 0 ? fmax(0, t.information) / mean : 1;
    c.nmi_geometric = h_a > 0 && h_b > 0 ? fmax(0, t.information) / sqrt(h_a * h_b) : mean > 0 ? 0 : 1;
    c.ami = is_trivial ? 1 : (t.information - expected) / (room < 0 ? fmin(room, -eps) : fmax(room, eps));
    c.pair_precision = t.pairs / fmax(pairs_a, 1);
    c.pair_recall = t.pairs / fmax(pairs_b, 1);
    c.f1 = t.pairs > 0 ? 2 * c.pair_precision * c.pair_recall / (c.pair_precision + c.pair_recall) : 0;
    *ret_clustering = c;
done:
    ki_free(items);
    ki_free(a);
    ki_free(b);
    ki_free(b_label);
    return status;
}
