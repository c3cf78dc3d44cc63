/* Results compared query by query: what a card keeps of each, the bootstrap of differences, and cards of several runs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/rng.h"
#include "judge/card.h"
#include "judge/paired.h"
#include "kith/text.h"
#include "support/testing.h"

enum { N = 60, DIM = 4, CLASSES = 6 };

/* Rows around their class's axis; the last is alone in its class. */
static void make_rows(float noise, uint32_t seed, float *x, int64_t *label) {
    ki_rng rng = ki_rng_at(seed, KI_RNG_TEST, 7, 0);
    for (int64_t i = 0; i < N; i++) {
        label[i] = i + 1 < N ? 10 * (i % CLASSES) : 999;
        for (int64_t k = 0; k < DIM; k++)
            x[i * DIM + k] = (float)(k == label[i] / 10 % DIM) + noise * (float)ki_rng_normal(&rng);
    }
}

static kith_judgement judge(const float *x, const int64_t *label) {
    const kith_array rows = {KITH_F32, 2, {N, DIM}, (void *)(uintptr_t)x};
    const kith_retrieval_input input = {.embedding = &rows, .labels = label, .n_labels = N};
    KITH_OPTIONS(kith_judge_options, options);
    kith_judgement j;
    kith_error err = {0};
    options.has_clustering = false;
    assert_ok(kith_judge_run(&input, &options, &j, &err), &err);
    return j;
}

static const char *at(const char *name) {
    static char path[4][1024];
    static int which;
    which = (which + 1) % 4;
    snprintf(path[which], sizeof path[which], "%s/%s", testing_folder(), name);
    return path[which];
}

/* A card of drawn rows as a file. */
static void write_card(const char *name, float noise, uint32_t seed) {
    float x[N * DIM];
    int64_t label[N];
    kith_error err = {0};
    char *text = NULL;
    make_rows(noise, seed, x, label);
    kith_judgement j = judge(x, label);
    assert_ok(kith_card_make(&j, NULL, NULL, &text, &err), &err);
    testing_write(at(name), text);
    kith_string_free(text);
    kith_judgement_release(&j);
}

static kith_card *read_card(const char *name) {
    kith_card *card = NULL;
    kith_error err = {0};
    assert_ok(kith_card_read(at(name), &card, &err), &err);
    return card;
}

/* What a card keeps of each query is what the judgement found. */
static void test_kept_and_read(void **state) {
    (void)state;
    float x[N * DIM];
    int64_t label[N];
    kith_error err = {0};
    char *text = NULL;
    make_rows(0.6F, 1, x, label);
    kith_judgement j = judge(x, label);
    assert_ok(kith_card_make(&j, NULL, NULL, &text, &err), &err);
    testing_write(at("kept.json"), text);
    kith_card *card = read_card("kept.json");
    ki_per_query q = {0};
    assert_ok(ki_per_query_read(card, "", &q, &err), &err);
    assert_int_equal(q.n, N);
    assert_string_equal(q.sha256, j.retrieval.queries_sha256);
    int n_lone = 0;
    for (int64_t i = 0; i < N; i++) {
        const kith_scores *s = &j.retrieval.query[i];
        n_lone += ki_per_query_is_lone(&q, i);
        assert_int_equal(ki_per_query_is_lone(&q, i), isnan(s->mrr));
        if (isnan(s->mrr)) continue;
        for (int64_t k = 0; k < j.retrieval.n_k; k++)
            assert_true(ki_per_query_value(&q, i, j.retrieval.k[k]) == s->recall[k]);
        const double apart = fabs(ki_per_query_value(&q, i, 0) - s->map_at_r);
        if (!(apart < 3.6e-6)) fail_msg("query %d: MAP@R is %g apart", (int)i, apart);
    }
    assert_int_equal(n_lone, 1);
    assert_true(ki_per_query_has(&q, 8) && !ki_per_query_has(&q, 3));
    kith_card_free(card);
    kith_string_free(text);
    kith_judgement_release(&j);
}

/* Other labels for the same classes are the same queries; another order or another class is not. */
static void test_which_queries(void **state) {
    (void)state;
    float x[N * DIM];
    int64_t label[N];
    make_rows(0.6F, 1, x, label);
    kith_judgement j = judge(x, label);
    for (int64_t i = 0; i < N; i++) label[i] = 5000 - label[i];
    kith_judgement renamed = judge(x, label);
    assert_string_equal(renamed.retrieval.queries_sha256, j.retrieval.queries_sha256);
    label[0] = label[1];
    kith_judgement other = judge(x, label);
    assert_string_not_equal(other.retrieval.queries_sha256, j.retrieval.queries_sha256);
    kith_judgement_release(&j);
    kith_judgement_release(&renamed);
    kith_judgement_release(&other);
}

/* 400 queries of R@1 by letters. */
enum { MANY = 400 };
static ki_per_query letters(char *first, const char *values) {
    return (ki_per_query){.n = MANY, .n_k = 1, .k = {1}, .first_hit = first, .map_at_r = values};
}

static kith_interval interval_of(const ki_per_query *a, int64_t n_a, const ki_per_query *b, int64_t n_b) {
    static const int64_t score[] = {1};
    kith_interval found;
    kith_error err = {0};
    const ki_paired_input in = {
        .run = {a, b}, .n_runs = {n_a, n_b}, .score = score, .n_scores = 1, .n_draws = 4000};
    assert_ok(ki_paired_bootstrap(&in, &found, &err), &err);
    return found;
}

static void assert_interval(kith_interval found, double low, double high, double tolerance) {
    if (!(fabs(found.low - low) < tolerance && fabs(found.high - high) < tolerance))
        fail_msg("(%g to %g), wanted (%g to %g)", found.low, found.high, low, high);
}

/* B finds all that A finds and 12 of 400 more: certainly better, though each score alone is known to 5 points. */
static void test_pairs_see_more(void **state) {
    (void)state;
    static char a[MANY + 1], b[MANY + 1], values[3 * MANY + 1];
    memset(values, 'A', 3 * MANY);
    for (int i = 0; i < MANY; i++) {
        a[i] = i % 2 ? 'a' : 'Z';
        b[i] = (char)(i < 24 ? 'a' : a[i]);
    }
    const ki_per_query x = letters(a, values), y = letters(b, values);
    const double half = 1.96 * sqrt(0.03 * 0.97 / MANY);
    assert_interval(interval_of(&x, 1, &y, 1), 0.03 - half, 0.03 + half, 0.004);
    assert_interval(interval_of(&y, 1, &x, 1), -0.03 - half, -0.03 + half, 0.004);
    assert_interval(interval_of(&x, 1, &x, 1), 0, 0, 1e-12);
    /* Seeds that are all alike change nothing. */
    const ki_per_query same[] = {x, x, x}, others[] = {y, y, y};
    assert_interval(interval_of(same, 3, others, 3), 0.03 - half, 0.03 + half, 0.004);
    /* Seeds that find everything or nothing: the interval is as wide as they differ. */
    static char all[MANY + 1], none[MANY + 1];
    memset(all, 'a', MANY);
    memset(none, 'Z', MANY);
    const ki_per_query spread[] = {letters(all, values), letters(none, values), letters(all, values)};
    assert_interval(interval_of(same, 3, spread, 3), -0.5, 0.5, 0.06);
    /* Lone queries count nowhere. */
    for (int i = 0; i < MANY; i += 4) a[i] = b[i] = 'Y';
    const kith_interval with_lone = interval_of(&x, 1, &y, 1);
    assert_true(with_lone.low > 0 && with_lone.high < 0.05);
}

static const kith_card_row *row_of(const kith_card_comparison *c, const char *name) {
    for (int64_t i = 0; i < c->n_rows; i++)
        if (strcmp(c->row[i].name, name) == 0) return &c->row[i];
    fail_msg("no row %s", name);
    return NULL;
}

static void test_two_cards(void **state) {
    (void)state;
    kith_error err = {0};
    kith_card_comparison c = {0};
    write_card("good.json", 0.3F, 2);
    write_card("bad.json", 1.5F, 2);
    kith_card *good = read_card("good.json"), *bad = read_card("bad.json");
    assert_ok(kith_card_compare(bad, good, &c, &err), &err);
    static const char *const rows[] = {"R@1", "P@1", "MAP@R"};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const kith_card_row *row = row_of(&c, rows[i]);
        assert_true(row->is_paired && row->difference.low > 0);
        assert_true(row->difference.high >= row->side[1].value - row->side[0].value);
    }
    assert_false(row_of(&c, "MRR")->is_paired);
    assert_int_equal(c.n_queries, N);
    kith_card_comparison_release(&c);
    kith_card_free(good);
    kith_card_free(bad);
}

/* The folder of a run, a run of seeds, a result of kith reproduce, and all seeds of its row. */
static void test_what_a_path_stands_for(void **state) {
    (void)state;
    char output[4096];
    kith_error err = {0};
    for (uint32_t i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "part%d.json", (int)i);
        write_card(name, 0.8F, 10 + i);
    }
    assert_int_equal(
        testing_run(
            output, sizeof output,
            "cd '%s' && mkdir -p run runs/seed-1 runs/seed-2 out && cp part0.json run/result.json && "
            "cp part0.json runs/seed-1/result.json && cp part1.json runs/seed-2/result.json && "
            "echo '{\"map_at_r\": {\"mean\": 0.5, \"low\": 0.4, \"high\": 0.6}}' > runs/result.json && "
            "for k in 0 1 2; do (echo '{\"row\": \"x\", \"seed\": '$k', \"result\": {\"test\": '; cat "
            "part$k.json; echo "
            "'}}') > "
            "out/x-seed$k.json; done && echo '{\"row\": \"x\", \"error\": \"no memory\"}' > "
            "out/x-seed3.failed.json",
            testing_folder()),
        0);
    static const struct {
        const char *name;
        int64_t n;
    } rows[] = {{"run", 1}, {"runs", 2}, {"out/x-seed1.json", 1}, {"out/x", 3}};
    kith_card *parts[3] = {read_card("part0.json"), read_card("part1.json"), read_card("part2.json")};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_card *card = read_card(rows[i].name);
        kith_card_comparison c = {0};
        if (ki_card_n_runs(card) != rows[i].n)
            fail_msg("%s: %d runs", rows[i].name, (int)ki_card_n_runs(card));
        assert_ok(kith_card_compare(card, parts[0], &c, &err), &err);
        assert_int_equal(c.n_runs[0], rows[i].n);
        double wanted = 0, value;
        for (int64_t k = 0; k < rows[i].n; k++) {
            assert_true(kith_card_real(rows[i].n == 1 ? parts[i == 2] : parts[k], "recall.1", &value));
            wanted += value / (double)rows[i].n;
        }
        const kith_card_row *row = row_of(&c, "R@1");
        assert_true(row->is_paired);
        if (!(fabs(row->side[0].value - wanted) < 1e-12))
            fail_msg("%s: %g, wanted %g", rows[i].name, row->side[0].value, wanted);
        kith_card_comparison_release(&c);
        kith_card_free(card);
    }
    for (int i = 0; i < 3; i++) kith_card_free(parts[i]);
    kith_card *card = NULL;
    assert_int_equal(kith_card_read(at("out/x-seed3.failed.json"), &card, &err), KITH_EFORMAT);
    assert_non_null(strstr(err.message, "is the record of a run that failed"));
    assert_int_equal(kith_card_read(at("out"), &card, &err), KITH_EFORMAT);
    assert_non_null(strstr(err.message, "has no result.json"));
    assert_int_equal(kith_card_read(at("out/y"), &card, &err), KITH_EIO);
}

/* Letters that no kith writes are refused, with the file's name. */
static void test_damaged_letters(void **state) {
    (void)state;
    static const char *const edits[] = {
        "s/\"first_hit\": \"./\"first_hit\": \"?/", "s/\"first_hit\": \"./\"first_hit\": \"/",
        "s/\"first_hit\": \"./\"first_hit\": \"z/", "s/\"k\": \\[1, 2/\"k\": [2, 1/",
        "s/\"sha256\": \"[0-9a-f]*/\"sha256\": \"12/"};
    char output[1024];
    kith_error err = {0};
    write_card("whole.json", 0.8F, 3);
    kith_card *whole = read_card("whole.json");
    for (size_t i = 0; i < N_ROWS(edits); i++) {
        kith_card_comparison c = {0};
        assert_int_equal(testing_run(output, sizeof output, "cd '%s' && sed '%s' whole.json > cut.json",
                                     testing_folder(), edits[i]),
                         0);
        kith_card *cut = read_card("cut.json");
        const kith_status status = kith_card_compare(whole, cut, &c, &err);
        if (status != KITH_EFORMAT || !strstr(err.message, "cut.json: per_query is not as kith writes it"))
            fail_msg("%s: %d, %s", edits[i], (int)status, err.message);
        kith_card_free(cut);
    }
    kith_card_free(whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_and_read),          cmocka_unit_test(test_which_queries),
        cmocka_unit_test(test_pairs_see_more),         cmocka_unit_test(test_two_cards),
        cmocka_unit_test(test_what_a_path_stands_for), cmocka_unit_test(test_damaged_letters)};
    return cmocka_run_group_tests_name("judge/paired", tests, NULL, testing_tear_down);
}
