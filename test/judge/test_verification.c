/* Verification: rates against scikit-learn's and against counting by hand, with all scores in memory and with few. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "judge/pair_keys.h"
#include "judge/verification.h"
#include "support/testing.h"

static kith_array golden(const char *name, const char *part) {
    char path[512];
    kith_array a = {0};
    kith_error err;
    snprintf(path, sizeof path, "%s/test/golden/judge/%s_%s.npy", KITH_SOURCE_DIR, name, part);
    assert_ok(kith_npy_read(path, &a, &err), &err);
    return a;
}

static void check(const char *name, const char *what, double found, double wanted, double tolerance) {
    if (found == wanted) return; /* infinite thresholds, too */
    if (!(fabs(found - wanted) <= tolerance))
        fail_msg("%s %s: %.15g, wanted %.15g", name, what, found, wanted);
}

static kith_verification verify(const kith_retrieval_input *in, kith_metric metric, int64_t most_held,
                                bool has_intervals) {
    ki_judge_input input;
    kith_verification v;
    kith_error err;
    KITH_OPTIONS(kith_verification_options, options);
    options.metric = metric;
    options.has_intervals = has_intervals;
    assert_ok(ki_judge_input_of(in, &input, &err), &err);
    assert_ok(ki_verification_run(&input, &options, most_held, &v, &err), &err);
    return v;
}

/* wanted: AUC, EER, the four TAR, the four thresholds, pairs of one class and of two. */
static void check_rates(const char *name, const kith_verification *v, const double *wanted, bool is_exact) {
    check(name, "AUC", v->auc, wanted[0], is_exact ? 1e-9 : 1e-6);
    check(name, "EER", v->eer, wanted[1], 1e-9);
    for (int i = 0; i < KITH_N_FAR; i++) {
        char what[32];
        snprintf(what, sizeof what, "TAR at %g", v->at[i].far_wanted);
        check(name, what, v->at[i].tar, wanted[2 + i], 1e-9);
        snprintf(what, sizeof what, "threshold at %g", v->at[i].far_wanted);
        check(name, what, v->at[i].threshold, wanted[6 + i], 1e-9 * fmax(1, fabs(wanted[6 + i])));
    }
    assert_int_equal(v->n_same, (int64_t)wanted[10]);
    assert_int_equal(v->n_different, (int64_t)wanted[11]);
}

/* All scores held; windows of one pass; windows one by one; and keys counted in narrower and narrower windows. */
static const int64_t held[] = {0, 20000, 2000, 3};

static void check_golden(const char *name, bool has_split) {
    kith_array x = golden(name, "embedding"), y = golden(name, "labels"), e = golden(name, "verification"),
               q = {0}, g = {0};
    kith_retrieval_input in = {.embedding = &x, .labels = y.data, .n_labels = y.dim[0]};
    if (has_split) {
        q = golden(name, "query");
        g = golden(name, "gallery");
        in.query = q.data, in.n_query = q.dim[0];
        in.gallery = g.data, in.n_gallery = g.dim[0];
    }
    for (int m = 0; m < 2; m++) {
        for (size_t h = 0; h < N_ROWS(held); h++) {
            const kith_verification v = verify(&in, m ? KITH_SQEUCLIDEAN : KITH_COSINE, held[h], false);
            check_rates(name, &v, (const double *)e.data + 12 * m, held[h] == 0);
        }
    }
    kith_array *const all[] = {&x, &y, &e, &q, &g};
    for (size_t i = 0; i < N_ROWS(all); i++) kith_array_release(all[i]);
}

static void test_equals_scikit_learn(void **state) {
    (void)state;
    check_golden("blobs", false);
    check_golden("double", false);
    check_golden("lone", false);
    check_golden("split", true);
}

/* ---- counting by hand ---- */

enum { N = 120, DIM = 3, WIDE = 64, CLASSES = 7 };

typedef struct pair {
    double score;
    bool is_same;
} pair;

static int compare_pair(const void *a, const void *b) {
    const pair *x = a, *y = b;
    return (x->score < y->score) - (x->score > y->score);
}

static double inner(const float *x, const float *y, int dim) {
    double sum = 0;
    for (int k = 0; k < dim; k++) sum += (double)x[k] * (double)y[k];
    return sum;
}

/* One point of the curve after another, equal scores together. */
static void naive(const float *x, int dim, const int64_t *label, double *ret) {
    static pair list[N * N];
    int64_t n = 0, n_same = 0, tp = 0, fp = 0;
    double area = 0, eer = -1;
    for (int i = 0; i < N; i++) {
        for (int j = i + 1; j < N; j++) {
            list[n++] = (pair){inner(x + i * dim, x + j * dim, dim), label[i] == label[j]};
            n_same += label[i] == label[j];
        }
    }
    const double p = (double)n_same, d = (double)(n - n_same);
    qsort(list, (size_t)n, sizeof *list, compare_pair);
    for (int i = 0; i < KITH_N_FAR; i++) ret[2 + i] = 0, ret[6 + i] = INFINITY;
    for (int64_t i = 0, end; i < n; i = end) {
        const double far = (double)fp / d, tar = (double)tp / p;
        for (end = i; end < n && list[end].score == list[i].score; end++) {
            tp += list[end].is_same;
            fp += !list[end].is_same;
        }
        const double far1 = (double)fp / d, tar1 = (double)tp / p;
        area += (far1 - far) * (tar + tar1) / 2;
        if (eer < 0 && far1 + tar1 >= 1)
            eer = far + (1 - far - tar) / (far1 - far + tar1 - tar) * (far1 - far);
        for (int k = 0; k < KITH_N_FAR; k++) {
            if (far1 > pow(10, -1 - k)) continue;
            ret[2 + k] = tar1;
            ret[6 + k] = list[i].score;
        }
    }
    ret[0] = area;
    ret[1] = eer;
    ret[10] = p;
    ret[11] = d;
}

/* Small whole numbers: their products are exact and most scores come many times. `offset` moves all rows away from 0, so
 * that scores differ by very little of their range: float32 cannot tell them apart. */
static void fill(float *x, int64_t *label, double offset, double step) {
    for (int i = 0; i < N; i++) {
        ki_rng rng = ki_rng_at(3, KI_RNG_TEST, 0, (uint32_t)i);
        label[i] = 100 - i % CLASSES;
        for (int k = 0; k < DIM; k++)
            x[i * DIM + k] =
                (float)(offset + step * (double)((int)ki_rng_below(&rng, 5) + (i % CLASSES == k)));
    }
}

static void check_naive(const char *name, float *x, int dim, const int64_t *label, double tolerance) {
    double wanted[12];
    naive(x, dim, label, wanted);
    const kith_array rows = {KITH_F32, 2, {N, dim}, x};
    const kith_retrieval_input in = {.embedding = &rows, .labels = label, .n_labels = N};
    for (size_t h = 0; h < N_ROWS(held); h++) {
        const kith_verification v = verify(&in, KITH_INNER, held[h], false);
        check(name, "AUC", v.auc, wanted[0], held[h] > 0 ? tolerance : 1e-9);
        wanted[0] = v.auc;
        check_rates(name, &v, wanted, true);
    }
}

static void test_ties_are_counted_together(void **state) {
    (void)state;
    float x[N * DIM];
    int64_t label[N];
    fill(x, label, 0, 1);
    check_naive("ties", x, DIM, label, 1e-9);
}

/* Many scores in one bin of the histogram, whose width is a millionth of their range: its AUC is coarse, the rates are not. */
static void test_scores_closer_than_float32(void **state) {
    (void)state;
    float x[N * WIDE];
    int64_t label[N];
    fill(x, label, 1, 0x1p-22);
    check_naive("one bin", x, DIM, label, 0.2);
    for (uint32_t salt = 0; salt < 6; salt++) { /* crossings come close to a bin's edge in some of them */
        for (int i = 0; i < N; i++) {
            ki_rng rng = ki_rng_at(5, KI_RNG_TEST, salt, (uint32_t)i);
            for (int k = 0; k < WIDE; k++) {
                const double noise = ki_rng_normal(&rng);
                x[i * WIDE + k] = (float)(0.125 + 1e-5 * (noise + 2 * (k % CLASSES == i % CLASSES)));
            }
        }
        check_naive("a few bins", x, WIDE, label, 0.05);
    }
}

/* Every score is the same: nothing can be told apart. */
static void test_one_score(void **state) {
    (void)state;
    float x[N * DIM];
    int64_t label[N];
    fill(x, label, 1, 0);
    const kith_array rows = {KITH_F32, 2, {N, DIM}, x};
    const kith_retrieval_input in = {.embedding = &rows, .labels = label, .n_labels = N};
    for (size_t h = 0; h < N_ROWS(held); h++) {
        const kith_verification v = verify(&in, KITH_COSINE, held[h], true);
        check("one score", "AUC", v.auc, 0.5, 0);
        check("one score", "EER", v.eer, 0.5, 1e-15);
        check("one score", "TAR", v.at[0].tar, 0, 0);
        assert_true(isinf(v.at[0].threshold));
        assert_int_equal(v.curve.n, 1);
        check("one score", "rate", v.curve.fmr[0], 1, 0);
    }
}

/* ---- the rest ---- */

static void test_any_number_of_threads(void **state) {
    (void)state;
    kith_array x = golden("blobs", "embedding"), y = golden("blobs", "labels");
    const kith_retrieval_input in = {.embedding = &x, .labels = y.data, .n_labels = y.dim[0]};
    for (size_t h = 0; h < N_ROWS(held); h++) {
        ki_threads_set(1);
        const kith_verification one = verify(&in, KITH_COSINE, held[h], true);
        ki_threads_set(5);
        const kith_verification five = verify(&in, KITH_COSINE, held[h], true);
        assert_memory_equal(&one.at, &five.at, sizeof one.at);
        assert_true(one.auc == five.auc && one.eer == five.eer);
        assert_true(one.auc_interval.low == five.auc_interval.low);
        assert_memory_equal(&one.curve.fmr, &five.curve.fmr, sizeof one.curve.fmr);
    }
    ki_threads_set(0);
    kith_array_release(&x);
    kith_array_release(&y);
}

/* What the linear weights of pairs replace: pairs of classes c and d counted w_c w_d times. */
static void test_intervals_as_by_weighing_pairs(void **state) {
    (void)state;
    enum { DRAWS = 400 };
    kith_array x = golden("blobs", "embedding"), y = golden("blobs", "labels");
    const kith_retrieval_input in = {.embedding = &x, .labels = y.data, .n_labels = y.dim[0]};
    const kith_verification v = verify(&in, KITH_COSINE, 0, true);
    const int64_t *label = y.data, n = y.dim[0];
    ki_rows rows;
    ki_panels panels;
    kith_error err;
    assert_ok(ki_rows_init(&x, "x", &rows, &err), &err);
    assert_ok(ki_panels_init(&rows, KITH_COSINE, NULL, &panels, &err), &err);
    int64_t n_labels = 0;
    for (int64_t i = 0; i < n; i++) n_labels = label[i] >= n_labels ? label[i] + 1 : n_labels;
    assert_true(n_labels <= 64);
    double tar[DRAWS];
    /* At the threshold of FAR 0.1, so that a draw needs no sorting; its own rate moves along the curve's slope. */
    const double t = v.at[0].threshold;
    for (int b = 0; b < DRAWS; b++) {
        ki_rng rng = ki_rng_at(9, KI_RNG_TEST, 1, (uint32_t)b);
        double w[64] = {0}, sum[2] = {0}, above[2] = {0};
        for (int64_t c = 0; c < n_labels; c++) w[ki_rng_below(&rng, (uint32_t)n_labels)] += 1;
        for (int64_t i = 0; i < n; i += 2) {
            for (int64_t j = i + 1; j < n; j += 1) {
                const bool is_same = label[i] == label[j];
                const double weight = is_same ? w[label[i]] : w[label[i]] * w[label[j]];
                if (weight == 0) continue;
                sum[is_same] += weight;
                if (ki_panels_score(&panels, i, &panels, j) >= t) above[is_same] += weight;
            }
        }
        const double slope = (v.at[0].tar - v.at[1].tar) / log(10);
        tar[b] = above[1] / sum[1] - slope * log(above[0] / sum[0] / 0.1);
    }
    const kith_interval wanted = ki_bootstrap_interval(tar, DRAWS, 0.95);
    const double ratio = (v.at[0].interval.high - v.at[0].interval.low) / (wanted.high - wanted.low);
    if (!(ratio > 0.75 && ratio < 1.35))
        fail_msg("interval %.4f to %.4f, by weighing pairs %.4f to %.4f", v.at[0].interval.low,
                 v.at[0].interval.high, wanted.low, wanted.high);
    assert_true(v.at[0].interval.low < v.at[0].tar && v.at[0].tar < v.at[0].interval.high);
    assert_true(v.eer_interval.low < v.eer && v.eer < v.eer_interval.high);
    ki_panels_release(&panels);
    kith_array_release(&x);
    kith_array_release(&y);
}

static void test_curve(void **state) {
    (void)state;
    kith_array x = golden("double", "embedding"), y = golden("double", "labels");
    const kith_retrieval_input in = {.embedding = &x, .labels = y.data, .n_labels = y.dim[0]};
    kith_error err;
    for (int m = 0; m < 2; m++) {
        const kith_metric metric = m ? KITH_SQEUCLIDEAN : KITH_COSINE;
        for (size_t h = 0; h < 2; h++) {
            const kith_verification v = verify(&in, metric, held[h], false);
            const kith_calibration *c = &v.curve;
            assert_ok(kith_calibration_check(c, &err), &err);
            assert_true(c->n > 200);
            check("curve", "loosest", c->fmr[0], 1, 0);
            check("curve", "strictest", c->fmr[c->n - 1] * (double)c->n_different, 1, 1e-9);
            for (int i = 0; i < KITH_N_FAR; i++) {
                const double far = v.at[i].far_wanted, t = kith_calibration_threshold(c, far);
                check("curve", "threshold", t, v.at[i].threshold, 0.02 * fabs(v.at[i].threshold));
                check("curve", "rate and back", kith_calibration_false_match_rate(c, t), far, 1e-3 * far);
                check("curve", "match rate", kith_calibration_match_rate(c, t), v.at[i].tar, 0.01);
            }
        }
    }
    kith_array_release(&x);
    kith_array_release(&y);
}

static void test_refusals(void **state) {
    (void)state;
    float x[4] = {1, 2, 3, 4};
    const kith_array rows = {KITH_F32, 2, {4, 1}, x};
    const int64_t one[] = {5, 5, 5, 5}, none[] = {1, 2, 3, 4};
    kith_verification v;
    kith_error err;
    kith_retrieval_input in = {.embedding = &rows, .labels = one, .n_labels = 4};
    assert_int_equal(kith_verification_run(&in, NULL, &v, &err), KITH_EINVAL);
    assert_string_equal(err.message, "6 pairs of one class and 0 of two; wanted some of each");
    in.labels = none;
    assert_int_equal(kith_verification_run(&in, NULL, &v, &err), KITH_EINVAL);
    assert_string_equal(err.message, "0 pairs of one class and 6 of two; wanted some of each");
    in.n_labels = 3;
    assert_int_equal(kith_verification_run(&in, NULL, &v, &err), KITH_ESHAPE);
    memset(&v, 0, sizeof v);
    assert_int_equal(kith_verification_draw(&v, "none.svg", &err), KITH_EINVAL);
}

static void test_keys_keep_the_order(void **state) {
    (void)state;
    enum { MANY = 5000 };
    static ki_key keys[MANY], scratch[MANY];
    for (int i = 0; i < MANY; i++) {
        ki_rng rng = ki_rng_at(4, KI_RNG_TEST, 0, (uint32_t)i);
        keys[i] = ki_pair_key(i % 3 ? ki_rng_normal(&rng) * pow(10, i % 40 - 20) : (i % 7 - 3) * 0.25);
    }
    ki_pair_keys_sort(keys, MANY, scratch);
    for (int i = 1; i < MANY; i++) assert_true(ki_pair_score(keys[i - 1]) >= ki_pair_score(keys[i]));
    assert_true(ki_pair_key(-0.0) == ki_pair_key(0.0));
}

static void test_out_of_memory(void **state) {
    (void)state;
    kith_array x = golden("lone", "embedding"), y = golden("lone", "labels");
    const kith_retrieval_input in = {.embedding = &x, .labels = y.data, .n_labels = y.dim[0]};
    ki_judge_input input;
    kith_verification v;
    kith_error err;
    KITH_OPTIONS(kith_verification_options, options);
    assert_ok(ki_judge_input_of(&in, &input, &err), &err);
    for (size_t h = 0; h < N_ROWS(held); h += 3) {
        kith_status status = KITH_ENOMEM;
        for (int n = 0; status == KITH_ENOMEM; n++) {
            ki_alloc_fail_after(n);
            status = ki_verification_run(&input, &options, held[h], &v, &err);
            ki_alloc_fail_after(-1);
        }
        assert_ok(status, &err);
    }
    kith_array_release(&x);
    kith_array_release(&y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_scikit_learn),
        cmocka_unit_test(test_ties_are_counted_together),
        cmocka_unit_test(test_scores_closer_than_float32),
        cmocka_unit_test(test_one_score),
        cmocka_unit_test(test_any_number_of_threads),
        cmocka_unit_test(test_intervals_as_by_weighing_pairs),
        cmocka_unit_test(test_curve),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_keys_keep_the_order),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
