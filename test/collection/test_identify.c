/* Names by a collection: known things and unknown ones, several photos, rare names, labels that are too few, notes that are damaged. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "kith/identify.h"
#include "made_collection.h"
#include "search/notes.h"

enum { N_NAMES = 60, N_EACH = 12, DIM = 24 };

static float centre[2 * N_NAMES][DIM]; /* of the names, and of things without one */

static void draw_centres(void) {
    ki_rng rng = ki_rng_at(1, KI_RNG_TEST, 7, 0);
    for (int c = 0; c < 2 * N_NAMES; c++) {
        for (int d = 0; d < DIM; d++) centre[c][d] = (float)ki_rng_normal(&rng);
    }
}

/* The i-th photo of a thing. */
static void draw(int thing, int i, float noise, float *ret) {
    ki_rng rng = ki_rng_at(2, KI_RNG_TEST, (uint32_t)thing, (uint32_t)i);
    for (int d = 0; d < DIM; d++) ret[d] = centre[thing][d] + noise * (float)ki_rng_normal(&rng);
}

/* Labels are "it's 0" and so on; of the last thing one photo. */
static kith_collection *make(const char *name, int n_names, int n_each, bool has_labels) {
    kith_error err;
    kith_collection *c = NULL;
    kith_sync_report report;
    static float rows[N_NAMES * N_EACH * DIM];
    static char text[N_NAMES][24];
    static kith_index_item items[N_NAMES * N_EACH];
    int64_t n = 0;
    for (int t = 0; t < n_names; t++) {
        snprintf(text[t], sizeof text[t], "it's %d", t);
        for (int i = 0; i < (t == n_names - 1 ? 1 : n_each); i++, n++) {
            draw(t, i, 0.3F, rows + n * DIM);
            items[n] = (kith_index_item){.label = has_labels ? text[t] : NULL, .bytes = -1, .mtime_ns = -1};
        }
    }
    KITH_OPTIONS(kith_collection_options, options);
    options.dim = DIM;
    const kith_array array = {KITH_F32, 2, {n, DIM}, rows};
    assert_ok(kith_collection_create(made_path(name), &options, &c, &err), &err);
    assert_ok(kith_collection_add_rows(c, &array, items, NULL, &report, &err), &err);
    kith_sync_report_release(&report);
    return c;
}

static kith_collection *birds;

static int set_up(void **state) {
    (void)state;
    draw_centres();
    birds = make("birds.kith", N_NAMES, N_EACH, true);
    return 0;
}

static int tear_down(void **state) {
    kith_collection_free(birds);
    return testing_tear_down(state);
}

static kith_query_part of_row(const float *row) {
    return (kith_query_part){.id = -1, .row = row, .weight = 1};
}

static kith_status try_one(kith_collection *c, const kith_query_part *parts, int64_t n, double error,
                           kith_identify_report *ret_report, kith_identified *ret, kith_error *err) {
    KITH_OPTIONS(kith_identify_request, request);
    KITH_OPTIONS(kith_identify_options, options);
    request.parts = parts;
    request.n_parts = n;
    options.error = error;
    return kith_collection_identify(c, &request, 1, &options, ret_report, ret, err);
}

static kith_identified ask(const kith_query_part *parts, int64_t n, double error) {
    kith_error err;
    kith_identified who;
    assert_ok(try_one(birds, parts, n, error, NULL, &who, &err), &err);
    return who;
}

static void test_known_and_unknown(void **state) {
    (void)state;
    int n_right = 0, n_false = 0;
    for (int t = 0; t < 2 * N_NAMES; t++) {
        float row[DIM];
        char label[24];
        draw(t, 1000, 0.3F, row);
        snprintf(label, sizeof label, "it's %d", t);
        const kith_query_part part = of_row(row);
        kith_identified who = ask(&part, 1, 0.1);
        assert_int_equal(who.n_candidates, 3);
        if (who.name) {
            assert_true(who.false_name_high <= 0.1 && who.false_name_rate <= who.false_name_high &&
                        who.false_name_low <= who.false_name_rate);
            assert_string_equal(who.name, who.candidates[0].item.label);
            assert_int_equal(who.is_single, t == N_NAMES - 1);
        }
        const bool is_right = who.name && strcmp(who.name, label) == 0;
        n_right += is_right;
        n_false += who.name && !is_right;
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < i; j++)
                assert_string_not_equal(who.candidates[i].item.label, who.candidates[j].item.label);
        }
        kith_identified_release(&who);
    }
    if (n_right < N_NAMES * 9 / 10 || n_false > N_NAMES / 10)
        fail_msg("%d right, %d false", n_right, n_false);
}

static void test_several_photos(void **state) {
    (void)state;
    enum { N = 5 };
    float rows[N][DIM];
    kith_query_part parts[N];
    for (int i = 0; i < N; i++) {
        draw(i < 4 ? 7 : 8, 2000 + i, 0.3F, rows[i]);
        parts[i] = of_row(rows[i]);
    }
    kith_identified who = ask(parts, 4, 0.1);
    assert_string_equal(who.name, "it's 7");
    assert_true(who.false_name_high <= 0.1);
    kith_identified_release(&who);
    /* One photo and its noise: together they cannot say. */
    who = ask(parts + 3, 2, 0.1);
    assert_null(who.name);
    assert_int_equal(who.n_candidates, 3);
    kith_identified_release(&who);
    for (int i = 0; i < N; i++) draw(N_NAMES + i, 1, 0.3F, rows[i]); /* things without a name */
    who = ask(parts, N, 0.1);
    assert_null(who.name);
    kith_identified_release(&who);
}

/* Everything as when asked alone, and one that fails fails alone. */
static void test_many_at_once(void **state) {
    (void)state;
    enum { N = 40 };
    static float rows[N][DIM];
    kith_error err;
    kith_query_part parts[N];
    kith_identify_request requests[N];
    kith_identified who[N];
    kith_identify_report report;
    KITH_OPTIONS(kith_identify_options, options);
    options.error = 0.1;
    for (int i = 0; i < N; i++) {
        draw(2 * i, 50, 0.3F, rows[i]);
        parts[i] = i == 3 ? (kith_query_part){.id = 999999, .weight = 1} : of_row(rows[i]);
        kith_identify_request_init(&requests[i], sizeof requests[i]);
        requests[i].parts = &parts[i];
        requests[i].n_parts = 1;
    }
    assert_ok(kith_collection_identify(birds, requests, N, &options, &report, who, &err), &err);
    assert_int_equal(report.n_names, N_NAMES);
    assert_int_equal(report.n_single, 1);
    assert_int_equal(report.unlike, 0);
    for (int i = 0; i < N; i++) {
        if (i == 3) {
            assert_int_equal(who[i].status, KITH_ENOTFOUND);
            continue;
        }
        kith_identified alone = ask(&parts[i], 1, 0.1);
        assert_int_equal(who[i].name == NULL, alone.name == NULL);
        if (alone.name) assert_string_equal(who[i].name, alone.name);
        assert_true(who[i].evidence == alone.evidence && who[i].false_name_high == alone.false_name_high);
        kith_identified_release(&alone);
    }
    for (int i = 0; i < N; i++) kith_identified_release(&who[i]);
    /* Copies of the collection's photos are nearer than its photos are to each other. */
    for (int i = 0; i < N; i++) draw(i, 1, 0.3F, rows[i]);
    assert_ok(kith_collection_identify(birds, requests, N, &options, &report, who, &err), &err);
    assert_int_equal(report.unlike, 1);
    for (int i = 0; i < N; i++) kith_identified_release(&who[i]);
}

/* An item is asked about without itself. */
static void test_items(void **state) {
    (void)state;
    const kith_query_part part = {.id = 30, .weight = 1};
    kith_identified who = ask(&part, 1, 0.1);
    assert_string_equal(who.name, "it's 2");
    assert_int_not_equal(who.candidates[0].item.id, 30);
    kith_identified_release(&who);
}

static void assert_refused(kith_collection *c, const kith_query_part *parts, int64_t n, double error,
                           kith_status wanted, const char *words) {
    kith_error err;
    kith_identified who;
    const kith_status status = try_one(c, parts, n, error, NULL, &who, &err);
    if (status != wanted || !strstr(err.message, words)) fail_msg("%d: %s", (int)status, err.message);
    kith_identified_release(&who);
}

static void test_refused(void **state) {
    (void)state;
    float row[DIM], wrong[DIM];
    draw(1, 1, 0.3F, row);
    for (int d = 0; d < DIM; d++) wrong[d] = (float)NAN;
    const kith_query_part part = of_row(row), bad = of_row(wrong), nothing = {.id = -1, .weight = 1};
    assert_refused(birds, &part, 1, 0, KITH_EINVAL, "error is 0;");
    assert_refused(birds, &part, 1, 1, KITH_EINVAL, "error is 1;");
    assert_refused(birds, &part, 1, (double)NAN, KITH_EINVAL, "error is nan;");
    assert_refused(birds, &part, 0, 0.1, KITH_EINVAL, "0 photos of one thing");
    assert_refused(birds, NULL, 1, 0.1, KITH_EINVAL, "photos of one thing");
    assert_refused(birds, &nothing, 1, 0.1, KITH_EINVAL, "wanted one");
    assert_refused(birds, &bad, 1, 0.1, KITH_ENUMERIC, "");
    assert_refused(birds, &part, 1, 1e-6, KITH_ENOTFOUND, "wanted about ");
}

static void test_too_few_labels(void **state) {
    (void)state;
    float row[DIM];
    draw(1, 1, 0.3F, row);
    const kith_query_part part = of_row(row);
    kith_collection *c = make("few.kith", 5, 4, true);
    assert_refused(c, &part, 1, 0.01, KITH_ENOTFOUND, "17 labelled photos of 5 things");
    kith_collection_free(c);
    c = make("none.kith", 5, 4, false);
    assert_refused(c, &part, 1, 0.01, KITH_ENOTFOUND, "0 labels");
    kith_collection_free(c);
}

/* The curve comes from the note; a damaged one is said to be, and one that is gone is measured anew. */
static void test_notes(void **state) {
    (void)state;
    float row[DIM];
    kith_error err;
    kith_identified who, again;
    draw(1, 1, 0.3F, row);
    const kith_query_part part = of_row(row);
    kith_collection *c = make("noted.kith", N_NAMES, N_EACH, true);
    const char *note = ki_index_note(kith_collection_index(c), KI_NOTE_NAMES);
    assert_non_null(note);
    assert_true(strlen(note) > 1000);
    assert_ok(try_one(c, &part, 1, 0.1, NULL, &who, &err), &err);
    assert_ok(ki_index_note_set(kith_collection_index(c), KI_NOTE_NAMES, "", &err), &err);
    assert_ok(kith_index_commit(kith_collection_index(c), NULL, &err), &err);
    assert_ok(try_one(c, &part, 1, 0.1, NULL, &again, &err), &err);
    assert_string_equal(again.name, who.name);
    assert_true(again.evidence == who.evidence && again.false_name_high == who.false_name_high);
    kith_identified_release(&who);
    kith_identified_release(&again);
    assert_ok(ki_index_note_set(kith_collection_index(c), KI_NOTE_NAMES, "{\"metric\": 7}", &err), &err);
    assert_ok(kith_index_commit(kith_collection_index(c), NULL, &err), &err);
    assert_refused(c, &part, 1, 0.1, KITH_EFORMAT, "the curve of names is damaged");
    kith_collection_free(c);
}

static void test_without_memory(void **state) {
    (void)state;
    float row[DIM];
    kith_error err;
    draw(1, 1, 0.3F, row);
    const kith_query_part parts[] = {of_row(row), of_row(row)};
    int64_t n_failed = 0;
    for (int64_t n = 0;; n++) {
        kith_identified who;
        kith_collection *c = made_open("birds.kith", KITH_INDEX_READ);
        ki_alloc_fail_after(n);
        const kith_status status = try_one(c, parts, 2, 0.1, NULL, &who, &err);
        const bool failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (status == KITH_OK && who.name) assert_string_equal(who.name, "it's 1");
        kith_identified_release(&who);
        kith_collection_free(c);
        if (!failed) break;
        n_failed += status == KITH_ENOMEM;
        if (n > 20) n += n / 20;
    }
    assert_true(n_failed > 5);
}

/* ---- the same or not ---- */

static void test_same(void **state) {
    (void)state;
    kith_error err;
    kith_sameness s;
    const float a[] = {1, 0}, b[] = {0.6F, 0.8F}, c[] = {-1, 0}, zero[] = {0, 0}, bad[] = {INFINITY, 0};
    kith_calibration curve = {.metric = KITH_COSINE,
                              .n_classes = 9,
                              .n_same = 100,
                              .n_different = 1000,
                              .n = 3,
                              .threshold = {-1, 0.5, 0.9},
                              .fmr = {1, 0.1, 0.001},
                              .tmr = {1, 0.995, 0.5}};
    assert_ok(kith_same(&curve, a, a, 2, 0.01, &s, &err), &err);
    assert_int_equal(s.verdict, KITH_VERDICT_SAME);
    assert_true(s.score == 1 && s.false_match_rate <= 0.001);
    assert_ok(kith_same(&curve, a, b, 2, 0.01, &s, &err), &err);
    assert_int_equal(s.verdict, KITH_VERDICT_UNSURE);
    assert_true(fabs(s.score - 0.6) < 1e-6 && s.false_match_rate > 0.01 && s.missed_rate > 0.005);
    assert_ok(kith_same(&curve, a, c, 2, 0.01, &s, &err), &err);
    assert_int_equal(s.verdict, KITH_VERDICT_DIFFERENT);
    assert_ok(kith_same(NULL, a, zero, 2, 0.01, &s, &err), &err);
    assert_true(s.score == 0 && isnan(s.false_match_rate) && isnan(s.missed_rate) &&
                s.verdict == KITH_VERDICT_UNSURE);
    assert_int_equal(kith_same(&curve, a, b, 2, 0, &s, &err), KITH_EINVAL);
    assert_int_equal(kith_same(&curve, a, b, 2, 2, &s, &err), KITH_EINVAL);
    assert_int_equal(kith_same(&curve, a, b, 0, 0.1, &s, &err), KITH_EINVAL);
    assert_int_equal(kith_same(&curve, a, bad, 2, 0.1, &s, &err), KITH_ENUMERIC);
    const float no_number[] = {NAN, 1};
    assert_int_equal(kith_same(&curve, a, no_number, 2, 0.1, &s, &err), KITH_ENUMERIC);
    assert_int_equal(kith_same(NULL, no_number, zero, 2, 0.1, &s, &err), KITH_ENUMERIC);
    curve.metric = KITH_SQEUCLIDEAN;
    assert_true(kith_same(NULL, a, b, 2, 0.1, &s, &err) == KITH_OK);
    assert_string_equal(kith_verdict_name(KITH_VERDICT_DIFFERENT), "different");
    assert_null(kith_verdict_name((kith_verdict)7));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_and_unknown),
        cmocka_unit_test(test_several_photos),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_items),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_too_few_labels),
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_same),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
