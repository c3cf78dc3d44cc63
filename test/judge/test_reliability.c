/* The chance that a hit is wrong: against answers that are known, monotone, the same text again, and what it refuses. */
#include "judge/reliability.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "kith/threads.h"
#include "support/testing.h"

enum { N_LABELS = 150, N_EACH = 8, N = N_LABELS * N_EACH, DIM = 12, K = KI_RELIABILITY_DEPTH };

static float rows[N * DIM];
static int64_t labels[N];

/* A thing is a direction, a picture of it is near it. */
static void draw_picture(int64_t thing, double spread, ki_rng *rng, float *to) {
    ki_rng centre = ki_rng_at(8, KI_RNG_TEST, (uint32_t)thing, 3);
    for (int d = 0; d < DIM; d++) to[d] = (float)(ki_rng_normal(&centre) + spread * ki_rng_normal(rng));
}

static void make(int64_t n_labels, double spread, uint32_t seed) {
    ki_rng rng = ki_rng_at(seed, KI_RNG_TEST, 4, 0);
    for (int64_t i = 0; i < n_labels * N_EACH; i++) {
        labels[i] = i % n_labels;
        draw_picture(labels[i], spread, &rng, rows + i * DIM);
    }
}

static kith_array array_of(float *x, int64_t n) { return (kith_array){KITH_F32, 2, {n, DIM}, x}; }

static kith_reliability measure(int64_t n_labels, kith_metric metric) {
    kith_error err = {0};
    ki_trials t = {0};
    kith_reliability r;
    const kith_array array = array_of(rows, n_labels * N_EACH);
    assert_ok(ki_trials_run(&array, labels, metric, K, &t, &err), &err);
    assert_ok(ki_reliability_measure(&t, &r, &err), &err);
    assert_ok(kith_reliability_check(&r, &err), &err);
    ki_trials_release(&t);
    return r;
}

/* What new pictures come to, of things that are there and of things that are not: by kind, in bins of what is said. */
enum { N_BINS = 6, N_ASKED = 3000 };

typedef struct told {
    double all, wrong, said;
} told;

static void ask(const kith_reliability *r, double spread, bool is_unknown, double share, told *ret) {
    static const double edges[N_BINS] = {0, 0.05, 0.15, 0.3, 0.5, 0.75};
    static float asked[N_ASKED * DIM];
    static kith_neighbor found[N_ASKED * K];
    ki_rng rng = ki_rng_at(99, KI_RNG_TEST, is_unknown, 0);
    kith_gallery *gallery = NULL;
    kith_error err = {0};
    const kith_array all = array_of(rows, N), queries = array_of(asked, N_ASKED);
    for (int64_t q = 0; q < N_ASKED; q++)
        draw_picture(is_unknown ? 1000 + q : q % N_LABELS, spread, &rng, asked + q * DIM);
    assert_ok(kith_gallery_new(&all, NULL, &gallery, &err), &err);
    assert_ok(kith_gallery_search(gallery, &queries, NULL, K, found, &err), &err);
    kith_gallery_free(gallery);
    for (int64_t q = 0; q < N_ASKED; q++) {
        double score[K], margin[K];
        int64_t label[K];
        for (int i = 0; i < K; i++) {
            score[i] = found[q * K + i].score;
            label[i] = labels[found[q * K + i].index];
        }
        ki_reliability_margins(KITH_COSINE, score, label, K, K, margin);
        for (int i = 0; i < K; i++) {
            const double evidence = kith_reliability_evidence(r, score[i], i + 1, margin[i]);
            const double said = kith_reliability_error_rate(r, evidence, share).rate;
            const double weight = is_unknown ? share : 1 - share;
            int b = 0;
            while (b + 1 < N_BINS && said >= edges[b + 1]) b++;
            ret[b].all += weight;
            ret[b].said += weight * said;
            if (is_unknown || label[i] != q % N_LABELS) ret[b].wrong += weight;
        }
    }
}

/* Of the hits that are said to be wrong once in n, one in n is wrong, whichever part of the queries is unknown. */
static void test_what_is_said_is_so(void **state) {
    (void)state;
    static const double shares[] = {0, 0.1, 0.5};
    make(N_LABELS, 0.7, 1);
    const kith_reliability r = measure(N_LABELS, KITH_COSINE);
    for (size_t s = 0; s < N_ROWS(shares); s++) {
        told bins[N_BINS] = {{0}};
        ask(&r, 0.7, false, shares[s], bins);
        if (shares[s] > 0) ask(&r, 0.7, true, shares[s], bins);
        for (int b = 0; b < N_BINS; b++) {
            const double wrong = bins[b].wrong / bins[b].all, said = bins[b].said / bins[b].all;
            if (bins[b].all < 300) continue;
            /* as many as chance may take away */
            if (!(fabs(said - wrong) <= 0.3 * wrong + 2 * sqrt(wrong / bins[b].all)))
                fail_msg("%g unknown, bin %d: said %.4f, wrong %.4f of %.0f hits", shares[s], b, said, wrong,
                         bins[b].all);
        }
    }
}

/* Without the mixture unknown queries would be wrong far more often than is said. */
static void test_the_mixture_counts(void **state) {
    (void)state;
    told known[N_BINS] = {{0}};
    make(N_LABELS, 0.7, 1);
    const kith_reliability r = measure(N_LABELS, KITH_COSINE);
    ask(&r, 0.7, false, 0, known);
    double worst = 0;
    for (int64_t k = 0; k < r.n; k++) {
        const double none = kith_reliability_error_rate(&r, r.evidence[k], 0).rate;
        const double half = kith_reliability_error_rate(&r, r.evidence[k], 0.5).rate;
        const double all = kith_reliability_error_rate(&r, r.evidence[k], 1).rate;
        if (!(none <= half && half <= all)) fail_msg("knot %d: %g, %g, %g", (int)k, none, half, all);
        if (!(all > 0.99))
            fail_msg("knot %d: all queries are unknown, and %g of the hits are wrong", (int)k, all);
        worst = fmax(worst, half - none);
    }
    if (!(worst > 0.1)) fail_msg("half of the queries unknown changes a rate by %g at most", worst);
}

static void check_order(const kith_reliability *r) {
    for (int s = 0; s <= 10; s++) {
        double before = 1;
        for (int i = 0; i <= 200; i++) {
            const double low = r->evidence[0] - 1, high = r->evidence[r->n - 1] + 1;
            const kith_error_rate rate =
                kith_reliability_error_rate(r, low + (high - low) * i / 200, s / 10.0);
            if (!(rate.rate <= before + 1e-12)) fail_msg("share %d: %g after %g", s, rate.rate, before);
            if (!(rate.rate > 0 && rate.low <= rate.rate && rate.rate <= rate.high && rate.high <= 1))
                fail_msg("share %d: %g in %g to %g", s, rate.rate, rate.low, rate.high);
            before = rate.rate;
        }
    }
}

static void test_monotone(void **state) {
    (void)state;
    for (int metric = KITH_COSINE; metric <= KITH_SQEUCLIDEAN; metric++) {
        make(40, 0.9, 3);
        const kith_reliability r = measure(40, (kith_metric)metric);
        check_order(&r);
        for (int d = 0; d < 3; d++) assert_true(r.weight[d] >= 0);
    }
    make(40, 0.01, 3); /* nothing is ever wrong: still never 0 */
    const kith_reliability r = measure(40, KITH_COSINE);
    check_order(&r);
    const kith_error_rate best = kith_reliability_error_rate(&r, r.evidence[r.n - 1], 0);
    if (!(best.high >= 3.0 / (40 * N_EACH * N_EACH))) fail_msg("at most %g is wrong", best.high);
}

/* A promise holds for new pictures, and a larger one shows fewer hits. */
static void test_promises(void **state) {
    (void)state;
    make(N_LABELS, 0.4, 1);
    const kith_reliability r = measure(N_LABELS, KITH_COSINE);
    const double loose = kith_reliability_precise(&r, 0.8, 0.1),
                 strict = kith_reliability_precise(&r, 0.95, 0.1);
    if (isnan(loose) || isnan(strict) || strict < loose) fail_msg("evidence of %g and %g", loose, strict);
    assert_true(isnan(kith_reliability_precise(&r, 0.999999, 0.1)));
    assert_true(isnan(kith_reliability_precise(&r, 1, 0.1)) && isnan(kith_reliability_precise(&r, 0, 0.1)));
    const double most = kith_reliability_complete(&r, 0.99), few = kith_reliability_complete(&r, 0.5);
    if (!isnan(most)) assert_true(few >= most);
    if (isnan(few)) fail_msg("not promised");
    assert_int_equal(kith_reliability_needed(0.99), 299);
    assert_int_equal(kith_reliability_needed(0.95), 59);
}

static void test_margins(void **state) {
    (void)state;
    static const double score[] = {0.9, 0.8, 0.7, 0.6, 0.5};
    double margin[5];
    ki_reliability_margins(KITH_COSINE, score, (const int64_t[]){3, 3, 4, 3, 5}, 5, 5, margin);
    static const double wanted[] = {0.2, 0.1, -0.2, -0.1, -0.4};
    for (int i = 0; i < 5; i++) assert_true(fabs(margin[i] - wanted[i]) < 1e-12);
    /* Nothing else in sight: the last stands for it. What has no label is compared with the first. */
    ki_reliability_margins(KITH_COSINE, score, (const int64_t[]){3, 3, -1, 3, 5}, 5, 4, margin);
    static const double last[] = {0.3, 0.2, -0.2, 0, -0.4};
    for (int i = 0; i < 5; i++) assert_true(fabs(margin[i] - last[i]) < 1e-12);
    ki_reliability_margins(KITH_COSINE, score, (const int64_t[]){3, 4}, 0, 5, margin);
}

static void test_text(void **state) {
    (void)state;
    kith_error err = {0};
    char *text = NULL, *again = NULL;
    kith_reliability back;
    make(40, 0.8, 2);
    const kith_reliability r = measure(40, KITH_COSINE);
    assert_ok(ki_reliability_write(&r, &text, &err), &err);
    assert_ok(ki_reliability_read(text, &back, &err), &err);
    assert_ok(ki_reliability_write(&back, &again, &err), &err);
    assert_string_equal(text, again);
    for (int64_t k = 0; k < r.n; k++) {
        const double a = kith_reliability_error_rate(&r, r.evidence[k], 0.1).rate,
                     b = kith_reliability_error_rate(&back, r.evidence[k], 0.1).rate;
        if (!(fabs(a - b) < 0.01 * a)) fail_msg("knot %d: %g, read %g", (int)k, a, b);
    }
    ki_free(again);
    /* Cut anywhere, or with another byte: one line, or still one that can be. */
    const size_t n = strlen(text);
    for (size_t cut = 0; cut < n; cut += 97) {
        char *part = ki_strndup(text, cut);
        assert_int_equal(ki_reliability_read(part, &back, &err), KITH_EFORMAT);
        ki_free(part);
    }
    for (size_t at = 0; at < n; at += 61) {
        const char before = text[at];
        text[at] = '-';
        const kith_status status = ki_reliability_read(text, &back, &err);
        if (status == KITH_OK) assert_ok(kith_reliability_check(&back, &err), &err);
        text[at] = before;
    }
    ki_free(text);
    assert_int_equal(ki_reliability_read("{\"version\": 2}", &back, &err), KITH_EFORMAT);
    assert_string_equal(err.message, "version 2; this kith reads 1");
}

static void test_too_few(void **state) {
    (void)state;
    kith_error err = {0};
    ki_trials t = {0};
    kith_reliability r;
    make(9, 0.5, 1);
    const kith_array array = array_of(rows, 9 * N_EACH);
    assert_ok(ki_trials_run(&array, labels, KITH_COSINE, K, &t, &err), &err);
    assert_int_equal(ki_reliability_measure(&t, &r, &err), KITH_ENOTFOUND);
    assert_string_equal(err.message, "9 labels have two items or more; wanted 10");
    ki_trials_release(&t);
    kith_reliability none = {0};
    assert_true(isnan(kith_reliability_error_rate(&none, 1, 0.1).rate));
    assert_true(isnan(kith_reliability_error_rate(NULL, 1, 0.1).rate));
    assert_true(isnan(kith_reliability_evidence(&none, 1, 1, 1)));
    assert_int_equal(kith_reliability_check(&none, &err), KITH_EFORMAT);
}

static void test_same_bytes_for_any_threads(void **state) {
    (void)state;
    kith_error err = {0};
    char *one = NULL, *three = NULL;
    make(60, 0.8, 5);
    assert_ok(kith_threads_set(1, &err), &err);
    const kith_reliability a = measure(60, KITH_COSINE);
    assert_ok(kith_threads_set(3, &err), &err);
    const kith_reliability b = measure(60, KITH_COSINE);
    assert_ok(ki_reliability_write(&a, &one, &err), &err);
    assert_ok(ki_reliability_write(&b, &three, &err), &err);
    assert_string_equal(one, three);
    ki_free(one);
    ki_free(three);
}

static void test_unlike(void **state) {
    (void)state;
    double top[60], unknown = -1;
    make(60, 0.8, 5);
    const kith_reliability r = measure(60, KITH_COSINE);
    for (int i = 0; i < 60; i++) top[i] = r.top_present[i * 32 / 59];
    assert_false(kith_reliability_is_unlike(&r, top, 60, 0.1, &unknown));
    for (int i = 0; i < 60; i++) top[i] = r.top_absent[i * 32 / 59] - 0.05;
    assert_true(kith_reliability_is_unlike(&r, top, 60, 0.1, &unknown));
    if (!(unknown > 0.3 && unknown <= 1)) fail_msg("the share is %g", unknown);
    assert_false(kith_reliability_is_unlike(&r, top, 19, 0.1, &unknown));
    for (int i = 0; i < 60; i++) top[i] = NAN;
    assert_false(kith_reliability_is_unlike(&r, top, 60, 0.1, &unknown));
}

static void test_words(void **state) {
    (void)state;
    static const struct {
        double rate;
        const char *words;
    } cases[] = {{1.0 / 14, "1 of 14"}, {4e-6, "1 of 250,000"}, {1.0 / 1234, "1 of 1,200"}, {0.76, "8 of 10"},
                 {1, "10 of 10"},       {0.33, "1 of 3"},       {1.0 / 99.6, "1 of 100"}};
    char text[32];
    for (size_t i = 0; i < N_ROWS(cases); i++)
        assert_string_equal(kith_rate_words(cases[i].rate, text, sizeof text), cases[i].words);
    assert_string_equal(kith_rate_words(NAN, text, sizeof text), "");
}

static void test_no_memory(void **state) {
    (void)state;
    kith_error err = {0};
    make(12, 0.8, 5);
    const kith_array array = array_of(rows, 12 * N_EACH);
    ki_trials t = {0};
    assert_ok(ki_trials_run(&array, labels, KITH_COSINE, 4, &t, &err), &err);
    for (int64_t n = 0;; n++) {
        kith_reliability r;
        char *text = NULL;
        ki_alloc_fail_after(n);
        kith_status status = ki_reliability_measure(&t, &r, &err);
        if (status == KITH_OK) status = ki_reliability_write(&r, &text, &err);
        if (status == KITH_OK) status = ki_reliability_read(text, &r, &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        ki_free(text);
        if (!has_failed) break;
        assert_int_equal(status, KITH_ENOMEM);
    }
    ki_trials_release(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_is_said_is_so),
                                       cmocka_unit_test(test_the_mixture_counts),
                                       cmocka_unit_test(test_monotone),
                                       cmocka_unit_test(test_promises),
                                       cmocka_unit_test(test_margins),
                                       cmocka_unit_test(test_text),
                                       cmocka_unit_test(test_too_few),
                                       cmocka_unit_test(test_same_bytes_for_any_threads),
                                       cmocka_unit_test(test_unlike),
                                       cmocka_unit_test(test_words),
                                       cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
