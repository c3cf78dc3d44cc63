/* The curve of names: shares that are known, evidence by hand, bounds that are kept in simulated collections, notes that are damaged. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "judge/naming.h"
#include "judge/share.h"
#include "support/testing.h"

static void assert_near(double found, double wanted, double most) {
    if (!(fabs(found - wanted) <= most)) fail_msg("%.9g, wanted %.9g", found, wanted);
}

/* As R's binom.test(x, n, alternative = "less" and "greater") has them. */
static void test_shares(void **state) {
    (void)state;
    assert_near(ki_share_high(0, 299, 0.95), 1 - pow(0.05, 1.0 / 299), 1e-9);
    assert_near(ki_share_low(299, 299, 0.95), pow(0.05, 1.0 / 299), 1e-9);
    assert_near(ki_share_high(5, 100, 0.95), 0.10225, 1e-5);
    assert_near(ki_share_low(5, 100, 0.95), 0.01991, 1e-5);
    assert_near(ki_share_high(10, 10, 0.95), 1, 0);
    assert_near(ki_share_low(0, 10, 0.95), 0, 0);
    assert_near(ki_share_trials(0.01, 0.95), 299, 0);
    assert_near(ki_share_trials(0.05, 0.95), 59, 0);
    for (double x = 0.5; x < 20; x++)
        assert_true(ki_share_low(x, 20, 0.95) < x / 20 && ki_share_high(x, 20, 0.95) > x / 20);
}

static void test_evidence(void **state) {
    (void)state;
    /* One name: the last stands for the next. */
    const ki_name_hit one[] = {{0.9, 4}, {0.8, 4}, {0.5, 4}};
    ki_evidence e = ki_evidence_find(KITH_COSINE, one, 3);
    const double mean = (0.9 + 0.8 + 0.5) / 3, own = (0.9 + mean) / 2;
    assert_int_equal(e.label, 4);
    assert_near(e.value, own + 2 * (own - 0.5), 1e-12);
    /* The nearest photo is one of 7's, but 4 has more of them. */
    const ki_name_hit two[] = {{0.9, 7}, {0.89, 4}, {0.88, 4}, {0.87, 4}, {0.2, 7}};
    e = ki_evidence_find(KITH_COSINE, two, 5);
    assert_int_equal(e.label, 4);
    const double four = (0.89 + 0.88) / 2, seven = (0.9 + (0.9 + 0.2 + 0.2) / 3) / 2;
    assert_near(e.value, four + 2 * (four - seven), 1e-12);
    /* Distances: the smaller the nearer. */
    const ki_name_hit far[] = {{1, 2}, {3, 5}};
    e = ki_evidence_find(KITH_SQEUCLIDEAN, far, 2);
    assert_int_equal(e.label, 2);
    const double first = (-1 + (-1 - 3 - 3) / 3.0) / 2;
    assert_near(e.value, first + 2 * (first + 3), 1e-12);
    assert_int_equal(ki_evidence_find(KITH_COSINE, far, 0).label, -1);
}

/* ---- simulated collections ---- */

enum { MOST = 4000 };

static ki_trial_hit with[MOST], without[MOST];
static int64_t label[MOST];

/* Scores of unknown things are normal, with a part that all photos of a thing have; known things are right and far above, but every 50th
 * is wrong. Lists of one hit: its evidence is its score. */
static ki_trials simulate(uint64_t seed, int64_t n_labels, int64_t n_each, double shared) {
    ki_rng rng = ki_rng_at(seed, KI_RNG_TEST, 3, 0);
    for (int64_t c = 0; c < n_labels; c++) {
        const double of_thing = sqrt(shared) * ki_rng_normal(&rng);
        for (int64_t i = 0; i < n_each; i++) {
            const int64_t at = c * n_each + i,
                          other = (c + 1 + ki_rng_below(&rng, (uint32_t)n_labels - 1)) % n_labels;
            const double score = of_thing + sqrt(1 - shared) * ki_rng_normal(&rng);
            label[at] = c;
            without[at] = (ki_trial_hit){(float)score, (int32_t)(other * n_each)};
            with[at] = at % 50 == 49
                           ? (ki_trial_hit){(float)(score - 1), (int32_t)(other * n_each)}
                           : (ki_trial_hit){(float)(score + 4), (int32_t)(c * n_each + (i + 1) % n_each)};
        }
    }
    const int64_t n = n_labels * n_each;
    return (ki_trials){.n = n,
                       .k = 1,
                       .n_labels = n_labels,
                       .metric = KITH_COSINE,
                       .n_rows = n,
                       .label = label,
                       .with = with,
                       .without = without};
}

static ki_name_curve curve;

static void make(const ki_trials *t) {
    kith_error err;
    assert_ok(ki_naming_make(t, &curve, &err), &err);
}

/* In at most 5 of 100 collections the true rate is above the promise, and it is not far below. */
static void check_promise(int64_t n_labels, int64_t n_each, double shared, double error) {
    enum { N = 60 };
    int n_above = 0, n_promised = 0;
    double sum = 0;
    for (uint64_t seed = 0; seed < N; seed++) {
        const ki_trials t = simulate(seed, n_labels, n_each, shared);
        make(&t);
        const double threshold = ki_naming_threshold(&curve, error);
        if (isnan(threshold)) continue;
        const double truth = erfc(threshold / sqrt(2)) / 2; /* of the normal distribution */
        n_promised++;
        n_above += truth > error;
        sum += truth;
    }
    if (n_promised < N * 9 / 10 || n_above > N * 5 / 100 + 2 || sum < 0.3 * error * n_promised)
        fail_msg("%d promised, %d above %g, on the mean %g", n_promised, n_above, error,
                 sum / fmax(n_promised, 1));
}

static void test_the_promise_is_kept(void **state) {
    (void)state;
    check_promise(300, 10, 0, 0.01);
    check_promise(300, 10, 0.3, 0.02);
    check_promise(200, 20, 0.5, 0.05);
    check_promise(60, 20, 0.3, 0.1);
}

static void test_a_curve(void **state) {
    (void)state;
    const ki_trials t = simulate(1, 200, 10, 0.2);
    make(&t);
    assert_int_equal(curve.n_rows, 2000);
    assert_int_equal(curve.n_labels, 200);
    assert_int_equal(curve.n_single, 0);
    assert_int_equal(curve.n_unknown, 2000);
    assert_int_equal(curve.n_known, 2000);
    assert_in_range(curve.n, 100, KI_NAMING_POINTS);
    assert_near(curve.point[0].unknown + curve.point[0].wrong, 0, 0);
    for (int64_t i = 0; i < curve.n; i++) {
        const ki_naming_point *p = &curve.point[i];
        int64_t n_unknown = 0, n_wrong = 0, n_right = 0;
        for (int64_t q = 0; q < t.n; q++) {
            n_unknown += (double)without[q].score >= p->evidence;
            if ((double)with[q].score >= p->evidence)
                *(label[with[q].row] == label[q] ? &n_right : &n_wrong) += 1;
        }
        /* An unknown thing meets one name more. */
        assert_near(p->unknown, fmin(1, (double)n_unknown / 2000 * 200 / 199), 1e-12);
        assert_near(p->wrong, (double)n_wrong / 2000, 1e-12);
        assert_near(p->named, (double)n_right / 2000, 1e-12);
        assert_true(p->low <= fmax(p->unknown, p->wrong) &&
                    fmax(p->unknown_high, p->wrong_high) >= fmax(p->unknown, p->wrong));
        if (i > 0) assert_true(p->evidence < p[-1].evidence && p->unknown_high >= p[-1].unknown_high);
    }
    const double at = ki_naming_threshold(&curve, 0.05);
    const ki_naming_point there = ki_naming_at(&curve, at);
    assert_true(there.unknown_high <= 0.05 && there.wrong_high <= 0.05 && there.unknown > 0.01);
    assert_near(ki_naming_at(&curve, at + 1e-4).evidence, at, 0);
    assert_near(ki_naming_at(&curve, -100).unknown, 1, 0);
    assert_true(isnan(ki_naming_threshold(&curve, ki_naming_least(&curve) * 0.99)));
    assert_true(isfinite(ki_naming_threshold(&curve, ki_naming_least(&curve))));
    assert_true(ki_naming_wanted(&curve, 1e-4) > 2000);
}

/* Photos of one thing that are wrong together bound less than photos that are wrong alone. */
static void test_photos_that_hang_together(void **state) {
    (void)state;
    ki_trials t = simulate(1, 100, 20, 0);
    make(&t);
    const double alone = ki_naming_least(&curve);
    t = simulate(1, 100, 20, 0.9);
    make(&t);
    assert_true(ki_naming_least(&curve) > 3 * alone);
}

static void test_too_few(void **state) {
    (void)state;
    kith_error err;
    ki_trials t = simulate(1, 2, 10, 0);
    assert_int_equal(ki_naming_make(&t, &curve, &err), KITH_ENOTFOUND);
    t = simulate(1, 10, 1, 0);
    assert_int_equal(ki_naming_make(&t, &curve, &err), KITH_ENOTFOUND);
    assert_non_null(strstr(err.message, "10 photos of 10 names, 0 of them with another photo"));
    t = simulate(1, 10, 3, 0);
    make(&t);
    assert_true(isnan(ki_naming_threshold(&curve, 0.01)));
    assert_in_range(ki_naming_wanted(&curve, 0.01), 299, 1000000);
}

/* A label of one row is asked for as an unknown thing only. */
static void test_single(void **state) {
    (void)state;
    const ki_trials t = simulate(1, 30, 10, 0);
    label[7] = 29, label[299] = 0;
    for (int64_t i = 290; i < 299; i++) label[i] = 28;
    make(&t);
    assert_int_equal(curve.n_single, 1);
    assert_int_equal(curve.n_unknown, 300);
    assert_int_equal(curve.n_known, 299);
}

static void test_unlike(void **state) {
    (void)state;
    static double near[400];
    const ki_trials t = simulate(1, 200, 10, 0.1);
    make(&t);
    ki_rng rng = ki_rng_at(9, KI_RNG_TEST, 3, 0);
    for (int kind = 0; kind < 4; kind++) {
        for (int i = 0; i < 400; i++) /* unknown; unknown and known; farther; nearer */
            near[i] = ki_rng_normal(&rng) + (kind == 1 ? 4 * (i % 2) : kind == 2 ? -1 : kind == 3 ? 6 : 0);
        assert_int_equal(ki_naming_unlike(&curve, near, 400), kind == 2 ? -1 : kind == 3 ? 1 : 0);
    }
    for (int i = 0; i < 20; i++) near[i] = -100;
    assert_int_equal(ki_naming_unlike(&curve, near, 19), 0);
    assert_int_equal(ki_naming_unlike(&curve, near, 20), -1);
}

/* ---- notes ---- */

static char *note(void) {
    kith_error err;
    kith_json *json = NULL;
    const char *text = NULL;
    assert_ok(kith_json_new(&json, &err), &err);
    assert_ok(ki_naming_write(&curve, json, &text, &err), &err);
    char *copy = strdup(text);
    assert_non_null(copy);
    kith_json_free(json);
    return copy;
}

static void assert_damaged(const char *text, const char *from, const char *to) {
    static ki_name_curve read;
    kith_error err;
    const char *at = strstr(text, from);
    if (!at) fail_msg("no %s", from);
    char *changed = malloc(strlen(text) + strlen(to) + 1);
    assert_non_null(changed);
    sprintf(changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    if (ki_naming_read(changed, &read, &err) != KITH_EFORMAT) fail_msg("%s instead of %s is read", to, from);
    free(changed);
}

static void test_notes(void **state) {
    (void)state;
    static ki_name_curve read;
    kith_error err;
    const ki_trials t = simulate(1, 100, 10, 0.2);
    make(&t);
    char *text = note();
    assert_ok(ki_naming_read(text, &read, &err), &err);
    assert_memory_equal(&read, &curve, sizeof read);
    assert_damaged(text, "cosine", "cosmic");
    assert_damaged(text, "\"rows\": 1000", "\"rows\": -1");
    assert_damaged(text, "\"points\": [[", "\"points\": [[1e999, ");
    assert_damaged(text, "\"points\": [[", "\"points\": [[9, 0, 0, 0, 0, 0, 2], [");
    assert_damaged(text, "\"near_known\"", "\"near\"");
    assert_damaged(text, "\"independent\": ", "\"independent\": \"x\", \"y\": ");
    for (size_t n = 0; n + 1 < strlen(text); n += 997) {
        char *cut = strndup(text, n);
        assert_int_equal(ki_naming_read(cut, &read, &err), KITH_EFORMAT);
        assert_non_null(strstr(err.message, "the curve of names is damaged"));
        free(cut);
    }
    free(text);
}

static void test_without_memory(void **state) {
    (void)state;
    kith_error err;
    const ki_trials t = simulate(1, 100, 10, 0.2);
    for (int64_t n = 0;; n++) {
        ki_alloc_fail_after(n);
        const kith_status status = ki_naming_make(&t, &curve, &err);
        ki_alloc_fail_after(-1);
        if (status == KITH_OK) break;
        assert_int_equal(status, KITH_ENOMEM);
        assert_true(n < 100);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),  cmocka_unit_test(test_evidence),
        cmocka_unit_test(test_a_curve), cmocka_unit_test(test_the_promise_is_kept),
        cmocka_unit_test(test_too_few), cmocka_unit_test(test_photos_that_hang_together),
        cmocka_unit_test(test_single),  cmocka_unit_test(test_unlike),
        cmocka_unit_test(test_notes),   cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
