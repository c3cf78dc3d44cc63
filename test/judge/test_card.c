/* Result cards: written, read and compared, by today's names and by those of 0.1. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/json.h"
#include "judge/card.h"
#include "kith/text.h"
#include "support/testing.h"

#define OLD KITH_SOURCE_DIR "/test/golden/run-0.1/"

static kith_card *read_card(const char *path) {
    kith_card *card = NULL;
    kith_error err = {0};
    assert_ok(kith_card_read(path, &card, &err), &err);
    return card;
}

static kith_card *write_and_read(const char *name, const char *text) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", testing_folder(), name);
    testing_write(path, text);
    return read_card(path);
}

static void assert_real(const kith_card *card, const char *path, double wanted) {
    double found = NAN;
    if (!kith_card_real(card, path, &found) || found != wanted)
        fail_msg("%s is %.17g; wanted %.17g", path, found, wanted);
}

/* Both kinds of cards of 0.1 answer to today's names, and today's to theirs. */
static void test_names_of_old_cards(void **state) {
    (void)state;
    kith_card *eval = read_card(OLD "eval.json"), *run = read_card(OLD "run/result.json");
    assert_real(eval, "queries", 36);
    assert_real(run, "test.queries", 36);
    assert_real(run, "test.n_images", 36);
    assert_real(run, "test.classes", 6);
    assert_real(run, "validation.lone_queries", 0);
    assert_real(run, "test.intervals.recall.1.0", 0.05555555555555555);
    assert_string_equal(kith_card_key(run, "test.recall", 1), "2");
    assert_null(kith_card_key(run, "test.recall", 4));
    assert_null(kith_card_text(run, "test.recall"));
    assert_null(kith_card_text(run, "test.nothing.at.all"));
    assert_string_equal(kith_card_fact(eval, "crop"), "16");
    assert_string_equal(kith_card_fact(run, "crop"), "16");
    assert_string_equal(kith_card_fact(eval, "tap"), "embedding");
    assert_string_equal(kith_card_fact(run, "tap"), "embedding");
    assert_string_equal(kith_card_fact(eval, "model_sha256"),
                        "6b6fa3b7dcfa0394a30fee282efd70d83e5e59414d7925a194c7af75c5f3c0d2");
    assert_null(kith_card_fact(run, "model_sha256"));
    const int64_t k[] = {1, 2, 8};
    const ki_scores scores = ki_card_scores(run, "untrained", k, 3);
    assert_true(scores.is_there && scores.n_query == 36 && scores.n_classes == 6 && scores.step == 0);
    assert_true(scores.recall[2] == 0.8055555555555556);
    assert_false(ki_card_scores(run, "best_on_test", k, 3).is_there);
    assert_true(ki_card_clustered(run, "test").scores.f1 == 0.21495327102803738);
    kith_card_free(eval);
    kith_card_free(run);
}

/* A variant of the list answers to its name, as the block of that name did in earlier cards. */
#define SCORES "\"recall\": {\"1\": %s}, \"map_at_r\": 0.25, \"queries\": 36, \"nmi\": 0.5"
static const char with_list[] =
    "{\"test\": {\"recall\": {\"1\": 0.5}}, \"variants\": [{\"name\": \"other\"}, {\"name\": \"all_orders\", "
    "\"dim\": "
    "[24, 8], \"transform\": \"pca\", \"fitted_on\": \"training\", " SCORES "}]}";
static const char with_block[] =
    "{\"test\": {\"recall\": {\"1\": 0.5}}, \"all_orders\": {\"note\": \"as it was\", " SCORES "}}";

static void test_variants_by_name(void **state) {
    (void)state;
    const char *const forms[] = {with_list, with_block};
    const int64_t k[] = {1};
    for (int i = 0; i < 2; i++) {
        char text[512];
        snprintf(text, sizeof text, forms[i], "0.75");
        kith_card *card = write_and_read("variant.json", text);
        assert_real(card, "all_orders.recall.1", 0.75);
        assert_real(card, "all_orders.n_images", 36);
        const ki_scores scores = ki_card_scores(card, "all_orders", k, 1);
        assert_true(scores.is_there && scores.recall[0] == 0.75 && scores.n_query == 36);
        assert_true(ki_card_clustered(card, "all_orders").scores.nmi == 0.5);
        assert_null(kith_card_text(card, "transductive.recall.1"));
        kith_card_free(card);
    }
}

/* R@1 of single vectors was inside the first variant's block. Readers find them by today's names, and by those in today's cards. */
static void test_variants_of_earlier_cards(void **state) {
    (void)state;
    static const char *const names[] = {"all_orders", "all_orders_white", "order_2", "side_by_side"};
    kith_card *older = read_card(OLD "run/result.json");
    assert_real(older, "order_2.recall.1", 0.2777777777777778);
    assert_real(older, "side_by_side.recall.1", 0.19444444444444445);
    assert_null(kith_card_text(older, "order_3.recall.1"));
    assert_null(kith_card_text(older, "order_22.recall.1"));
    const ki_value *root = NULL;
    ki_arena arena = {0};
    kith_error err = {0};
    ki_value *parsed = NULL;
    assert_ok(ki_json_read(OLD "run/result.json", &arena, &parsed, &err), &err);
    root = parsed;
    ki_card_variant v;
    for (size_t i = 0; i < N_ROWS(names); i++) {
        if (!ki_card_variant_at(root, i, &v)) fail_msg("no variant %zu; wanted %s", i, names[i]);
        assert_string_equal(v.name, names[i]);
        assert_string_equal(v.transform, i == 0 ? "pca" : i == 1 ? "pca_white" : "none");
        assert_true(i < 2 ? strcmp(v.fitted_on, "training") == 0 : v.fitted_on == NULL);
    }
    assert_false(ki_card_variant_at(root, N_ROWS(names), &v));
    ki_arena_release(&arena);
    kith_card *now =
        write_and_read("now.json",
                       "{\"test\": {\"recall\": {\"1\": 0.5}}, \"variants\": [{\"name\": \"all_orders\"}, "
                       "{\"name\": \"order_3\", \"recall\": {\"1\": 0.25}}]}");
    assert_real(now, "all_orders.order_recall_at_1.1", 0.5);
    assert_real(now, "all_orders.order_recall_at_1.3", 0.25);
    assert_null(kith_card_text(now, "all_orders.order_recall_at_1.2"));
    assert_null(kith_card_text(now, "all_orders.side_by_side_recall_at_1"));
    kith_card_free(older);
    kith_card_free(now);
}

/* The card of several runs has the variants of one, as a list or as blocks, with means. */
static void test_variants_of_runs(void **state) {
    (void)state;
    const char *const forms[] = {with_list, with_block}, *const recall[] = {"0.75", "0.25"};
    const int64_t k[] = {1};
    for (int i = 0; i < 2; i++) {
        kith_card *card[2];
        kith_json *json = NULL;
        const char *line = NULL;
        kith_error err = {0};
        char text[512];
        for (int r = 0; r < 2; r++) {
            snprintf(text, sizeof text, forms[i], recall[r]);
            card[r] = write_and_read(r ? "run-1.json" : "run-0.json", text);
        }
        assert_ok(kith_json_new(&json, &err), &err);
        kith_json_object_begin(json);
        assert_ok(ki_card_put_runs(json, card, 2, k, 1, &err), &err);
        kith_json_object_end(json);
        assert_ok(kith_json_finish(json, &line, &err), &err);
        kith_card *both = write_and_read("runs.json", line);
        assert_real(both, "all_orders.recall.1.mean", 0.5);
        assert_real(both, "test.recall.1.mean", 0.5);
        const char *place = i == 0 ? "variants.0.name" : "all_orders.note";
        assert_string_equal(kith_card_text(both, place), i == 0 ? "all_orders" : "as it was");
        if (i == 0) {
            assert_real(both, "all_orders.dim.1", 8);
            assert_string_equal(kith_card_text(both, "all_orders.transform"), "pca");
            assert_string_equal(kith_card_text(both, "all_orders.fitted_on"), "training");
        }
        kith_card_free(both);
        kith_json_free(json);
        for (int r = 0; r < 2; r++) kith_card_free(card[r]);
    }
}

static const kith_card_row *row_of(const kith_card_comparison *c, const char *name) {
    for (int64_t i = 0; i < c->n_rows; i++) {
        if (strcmp(c->row[i].name, name) == 0) return &c->row[i];
    }
    fail_msg("no row %s", name);
    return NULL;
}

static const kith_card_difference *difference_of(const kith_card_comparison *c, const char *what) {
    for (int64_t i = 0; i < c->n_differences; i++) {
        if (strcmp(c->difference[i].what, what) == 0) return &c->difference[i];
    }
    return NULL;
}

/* What a run wrote of its test classes, and what kith eval found for its model. */
static void test_a_run_beside_an_evaluation(void **state) {
    (void)state;
    kith_card *eval = read_card(OLD "eval.json"), *run = read_card(OLD "run/result.json");
    kith_card_comparison c;
    kith_error err = {0};
    assert_ok(kith_card_compare(run, eval, &c, &err), &err);
    const kith_card_row *recall = row_of(&c, "R@1"), *map = row_of(&c, "MAP"), *nmi = row_of(&c, "NMI");
    for (int i = 0; i < 2; i++) {
        assert_true(recall->side[i].has_value && recall->side[i].has_interval);
        assert_true(recall->side[i].value == 0.16666666666666666);
        assert_true(recall->side[i].interval.high == 0.2777777777777778);
        assert_true(nmi->side[i].has_value && !nmi->side[i].has_interval);
    }
    assert_true(!map->side[0].has_value && map->side[1].has_value);
    assert_null(difference_of(&c, "backbone"));
    assert_null(difference_of(&c, "number of queries"));
    assert_null(difference_of(&c, "tap"));
    /* Runs of 0.1 did not say them; their hash of the data is of all images, not of those that were judged. */
    static const char *const missing[] = {"preprocessing", "data", "split", "similarity", "gallery size"};
    for (int64_t i = 0; i < c.n_differences; i++) {
        const kith_card_difference *d = &c.difference[i];
        if (d->side[0] && d->side[1]) fail_msg("%s: %s and %s", d->what, d->side[0], d->side[1]);
    }
    assert_int_equal(c.n_differences, N_ROWS(missing));
    for (size_t i = 0; i < N_ROWS(missing); i++) assert_non_null(difference_of(&c, missing[i]));
    kith_card_comparison_release(&c);
    kith_card_free(eval);
    kith_card_free(run);
}

static void test_what_speaks_against_comparing(void **state) {
    (void)state;
    kith_card *a = write_and_read("a.json",
                                  "{\"recall\": {\"1\": 0.5, \"3\": 0.75}, \"metric\": \"cosine\", "
                                  "\"queries\": 4, \"card\": {\"crop\": 224, \"tap\": \"pooled\"}}");
    kith_card *b = write_and_read("b.json",
                                  "{\"recall\": {\"1\": 0.25}, \"metric\": \"inner\", "
                                  "\"queries\": 4, \"card\": {\"crop\": 224}}");
    kith_card_comparison c;
    kith_error err = {0};
    assert_ok(kith_card_compare(a, b, &c, &err), &err);
    assert_int_equal(c.n_rows, 2);
    assert_string_equal(c.row[1].name, "R@3");
    assert_true(c.row[1].side[0].has_value && !c.row[1].side[1].has_value);
    assert_string_equal(difference_of(&c, "tap")->side[0], "pooled");
    assert_null(difference_of(&c, "tap")->side[1]);
    assert_string_equal(difference_of(&c, "similarity")->side[1], "inner");
    kith_card_comparison_release(&c);
    kith_card_free(a);
    kith_card_free(b);
}

/* What neither card says is not the same: it is named, with nothing on both sides. */
static void test_what_both_leave_out(void **state) {
    (void)state;
    static const char *const missing[] = {
        "backbone", "embedding size", "resize", "crop",       "preprocessing",     "pooling",
        "tap",      "data",           "split",  "similarity", "number of queries", "gallery size"};
    kith_card *a = write_and_read("bare.json", "{\"recall\": {\"1\": 0.5}, \"map_at_r\": 0.25}");
    kith_card_comparison c;
    kith_error err = {0};
    assert_ok(kith_card_compare(a, a, &c, &err), &err);
    for (size_t i = 0; i < N_ROWS(missing); i++) {
        const kith_card_difference *d = difference_of(&c, missing[i]);
        if (!d) fail_msg("%s counts as the same", missing[i]);
        assert_true(!d->side[0] && !d->side[1]);
    }
    assert_int_equal(c.n_differences, N_ROWS(missing));
    kith_card_comparison_release(&c);
    kith_card_free(a);
}

/* The hash of the items settles the split and the gallery, which cards of runs do not say. */
static void test_the_same_data_settles_the_split(void **state) {
    (void)state;
    kith_card *a = write_and_read(
        "settled.json",
        "{\"selection\": \"last\", \"test\": {\"map_at_r\": 0.5, \"nmi\": 0.5, \"data_sha256\": \"aa\"}}");
    kith_card_comparison c;
    kith_error err = {0};
    assert_ok(kith_card_compare(a, a, &c, &err), &err);
    assert_null(difference_of(&c, "data"));
    assert_null(difference_of(&c, "split"));
    assert_null(difference_of(&c, "gallery size"));
    assert_non_null(difference_of(&c, "k-means restarts")); /* both have NMI, neither says how */
    kith_card_comparison_release(&c);
    kith_card_free(a);
}

/* The data of a run is that of the split that was judged, where both say it. */
static void test_data_of_runs(void **state) {
    (void)state;
    static const char *const text[] = {
        "{\"selection\": \"last\", \"test\": {\"map_at_r\": 0.5, \"data_sha256\": \"aa\"}, \"data_sha256\": "
        "\"11\"}",
        "{\"selection\": \"last\", \"test\": {\"map_at_r\": 0.5, \"data_sha256\": \"aa\"}, \"data_sha256\": "
        "\"22\"}",
        "{\"selection\": \"last\", \"test\": {\"map_at_r\": 0.5}, \"data_sha256\": \"22\"}",
        "{\"map_at_r\": 0.5, \"card\": {\"tap\": \"embedding\", \"data_sha256\": \"aa\"}}",
        "{\"map_at_r\": 0.5, \"card\": {\"tap\": \"embedding\", \"data_sha256\": \"bb\"}}"};
    static const bool differs[5][5] = {
        {0, 0, 1, 0, 1}, {0, 0, 0, 0, 1}, {1, 0, 0, 0, 0}, {0, 0, 0, 0, 1}, {1, 1, 0, 1, 0}};
    kith_card *card[5];
    kith_error err = {0};
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "run%d.json", i);
        card[i] = write_and_read(name, text[i]);
    }
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 5; k++) {
            kith_card_comparison c;
            assert_ok(kith_card_compare(card[i], card[k], &c, &err), &err);
            const kith_card_difference *d = difference_of(&c, "data");
            if ((d && d->side[0] && d->side[1]) != differs[i][k])
                fail_msg("cards %d and %d %s", i, k, differs[i][k] ? "have the same data" : "differ");
            kith_card_comparison_release(&c);
        }
    }
    for (int i = 0; i < 5; i++) kith_card_free(card[i]);
}

/* The result.json of folds and seeds has means with intervals over runs. */
static void test_folds_beside_a_run(void **state) {
    (void)state;
    kith_card *folds =
        write_and_read("folds.json",
                       "{\"selection\": \"last\", \"n_runs\": 4, \"test\": {\"recall\": {\"1\": "
                       "{\"mean\": 0.5, \"low\": 0.25, \"high\": 0.75}}, \"map_at_r\": "
                       "{\"mean\": 0.125, \"low\": null, \"high\": null}}}");
    kith_card *run = write_and_read("one.json",
                                    "{\"selection\": \"last\", \"test\": {\"recall\": {\"1\": 0.5, \"2\": "
                                    "0.75}, \"map_at_r\": 0.5}}");
    kith_card_comparison c;
    kith_error err = {0};
    assert_ok(kith_card_compare(folds, run, &c, &err), &err);
    const kith_card_row *recall = row_of(&c, "R@1"), *map = row_of(&c, "MAP@R"), *second = row_of(&c, "R@2");
    assert_true(recall->side[0].has_interval && recall->side[0].interval.high == 0.75);
    assert_true(recall->side[0].value == 0.5 && recall->side[1].value == 0.5);
    assert_true(map->side[0].has_value && !map->side[0].has_interval && map->side[0].value == 0.125);
    assert_true(!second->side[0].has_value && second->side[1].value == 0.75);
    kith_card_comparison_release(&c);
    kith_card_free(folds);
    kith_card_free(run);
}

static void test_a_card_without_scores(void **state) {
    (void)state;
    static const char *const empty[] = {"{}", "{\"test\": {}}", "{\"recall\": 1, \"map_at_r\": \"high\"}"};
    kith_card *good = write_and_read("good.json", "{\"recall\": {\"1\": 0.5}}");
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        kith_card *bad = write_and_read("empty.json", empty[i]);
        kith_card_comparison c;
        kith_error err = {0};
        assert_int_equal(kith_card_compare(good, bad, &c, &err), KITH_EFORMAT);
        assert_non_null(strstr(err.message, "empty.json has no scores"));
        assert_int_equal(kith_card_compare(bad, bad, &c, &err), KITH_EFORMAT);
        kith_card_free(bad);
    }
    kith_card_free(good);
}

/* A judgement written and read back; only what was asked for. */
static void test_written_and_read(void **state) {
    (void)state;
    float x[] = {1, 0, 0.9F, 0.1F, 0, 1, 0.1F, 0.8F, 0.7F, 0.6F};
    const int64_t labels[] = {0, 0, 1, 1, 1};
    const kith_array rows = {KITH_F32, 2, {5, 2}, x};
    const kith_retrieval_input input = {.embedding = &rows, .labels = labels, .n_labels = 5};
    KITH_OPTIONS(kith_judge_options, options);
    kith_judgement j;
    kith_error err = {0};
    char *text = NULL;
    assert_ok(kith_judge_run(&input, &options, &j, &err), &err);
    const kith_card_facts facts = {.size = sizeof(kith_card_facts),
                                   .backbone = "convnet4",
                                   .crop = 32,
                                   .data = "glyphs",
                                   .dataset = "folder",
                                   .embed_seconds = 1.5};
    kith_card_options shown = {.size = sizeof(kith_card_options),
                               .scores = {[KITH_SCORE_RECALL] = true, [KITH_SCORE_NMI] = true},
                               .per_class = true};
    assert_ok(kith_card_make(&j, &facts, &shown, &text, &err), &err);
    kith_card *card = write_and_read("c.json", text);
    assert_real(card, "recall.1", j.retrieval.mean.recall[0]);
    assert_real(card, "intervals.recall.8.1", j.intervals.recall[3].high);
    assert_real(card, "nmi", j.clustering.nmi);
    assert_real(card, "kmeans.clusters", 2);
    assert_real(card, "per_class.1.queries", 3);
    assert_real(card, "embed_seconds", 1.5);
    assert_real(card, "rank_seconds", j.rank_seconds);
    assert_real(card, "cluster_seconds", j.cluster_seconds);
    assert_true(j.rank_seconds > 0 && j.cluster_seconds > 0 &&
                j.seconds >= j.rank_seconds + j.cluster_seconds);
    assert_null(kith_card_text(card, "map_at_r"));
    assert_null(kith_card_text(card, "f1"));
    assert_string_equal(kith_card_fact(card, "data"), "glyphs");
    assert_string_equal(kith_card_fact(card, "dataset"), "folder");
    assert_null(kith_card_fact(card, "split"));
    kith_card_free(card);
    kith_string_free(text);
    kith_judgement_release(&j);
}

/* Every number of a judgement stands in its card, the classes' and the intervals', too. */
static void test_everything_is_there(void **state) {
    (void)state;
    float x[] = {1, 0, 0.9F, 0.1F, 0, 1, 0.1F, 0.8F, 0.7F, 0.6F, 0.2F, 0.3F};
    const int64_t labels[] = {0, 0, 1, 1, 1, 2};
    const kith_array rows = {KITH_F32, 2, {6, 2}, x};
    const kith_retrieval_input input = {.embedding = &rows, .labels = labels, .n_labels = 6};
    KITH_OPTIONS(kith_judge_options, options);
    KITH_OPTIONS(kith_card_options, shown);
    KITH_OPTIONS(kith_card_facts, facts);
    kith_judgement j;
    kith_error err = {0};
    char *text = NULL, path[64];
    shown.per_class = true;
    assert_ok(kith_judge_run(&input, &options, &j, &err), &err);
    assert_ok(kith_card_make(&j, &facts, &shown, &text, &err), &err);
    kith_card *card = write_and_read("all.json", text);
    const kith_retrieval *r = &j.retrieval;
    for (int64_t i = 0; i < r->n_k; i++) {
        snprintf(path, sizeof path, "recall.%d", (int)r->k[i]);
        assert_real(card, path, r->mean.recall[i]);
        snprintf(path, sizeof path, "class_mean.recall.%d", (int)r->k[i]);
        assert_real(card, path, r->class_mean.recall[i]);
        snprintf(path, sizeof path, "per_class.1.recall.%d", (int)r->k[i]);
        assert_real(card, path, r->per_class[1].mean.recall[i]);
        snprintf(path, sizeof path, "intervals.recall.%d.0", (int)r->k[i]);
        assert_real(card, path, j.intervals.recall[i].low);
        snprintf(path, sizeof path, "intervals.recall.%d.1", (int)r->k[i]);
        assert_real(card, path, j.intervals.recall[i].high);
    }
    assert_true(j.has_intervals);
    assert_string_equal(kith_card_text(card, "metric"), kith_metric_name(j.metric));
    const struct {
        const char *path;
        double wanted;
    } numbers[] = {
        {"queries", (double)r->n_query},
        {"gallery", (double)r->n_gallery},
        {"classes", 3},
        {"lone_queries", 1},
        {"tied_queries", (double)r->n_tied},
        {"zero_rows", 0},
        {"per_class.0.label", 0},
        {"per_class.2.label", 2},
        {"per_class.1.queries", 3},
        {"per_class.1.gallery", 3},
        {"per_class.1.lone_queries", 0},
        {"per_class.2.lone_queries", 1},
        {"map_at_r", r->mean.map_at_r},
        {"class_mean.map_at_r", r->class_mean.map_at_r},
        {"per_class.0.map_at_r", r->per_class[0].mean.map_at_r},
        {"intervals.map_at_r.0", j.intervals.map_at_r.low},
        {"mrr", r->mean.mrr},
        {"nmi", j.clustering.nmi},
        {"nmi_geometric", j.clustering.nmi_geometric},
        {"ami", j.clustering.ami},
        {"f1", j.clustering.f1},
        {"kmeans.objective", j.kmeans_objective},
        {"seconds", j.seconds},
        {"rank_seconds", j.rank_seconds},
        {"cluster_seconds", j.cluster_seconds},
    };
    for (size_t i = 0; i < N_ROWS(numbers); i++) assert_real(card, numbers[i].path, numbers[i].wanted);
    assert_null(kith_card_text(card, "embed_seconds")); /* nothing was embedded */
    kith_card_free(card);
    kith_string_free(text);
    kith_judgement_release(&j);
}

/* Facts and options may be left out: nothing is said, and all scores are written. */
static void test_without_facts(void **state) {
    (void)state;
    const kith_judgement j = {.seconds = 2};
    kith_error err = {0};
    char *text = NULL;
    assert_ok(kith_card_make(&j, NULL, NULL, &text, &err), &err);
    kith_card *card = write_and_read("bare.json", text);
    assert_real(card, "seconds", 2);
    assert_null(kith_card_text(card, "embed_seconds"));
    assert_null(kith_card_fact(card, "backbone"));
    kith_card_free(card);
    kith_string_free(text);
}

static void test_no_card(void **state) {
    (void)state;
    char path[1024];
    kith_card *card = NULL;
    kith_error err = {0};
    snprintf(path, sizeof path, "%s/list.json", testing_folder());
    testing_write(path, "[1, 2]");
    assert_int_equal(kith_card_read(path, &card, &err), KITH_EFORMAT);
    assert_non_null(strstr(err.message, "wanted a result of kith eval --json or a run's result.json"));
    assert_int_equal(kith_card_read("/nowhere/at/all.json", &card, &err), KITH_EIO);
    kith_card_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names_of_old_cards),
                                       cmocka_unit_test(test_variants_by_name),
                                       cmocka_unit_test(test_variants_of_runs),
                                       cmocka_unit_test(test_variants_of_earlier_cards),
                                       cmocka_unit_test(test_a_run_beside_an_evaluation),
                                       cmocka_unit_test(test_what_speaks_against_comparing),
                                       cmocka_unit_test(test_what_both_leave_out),
                                       cmocka_unit_test(test_the_same_data_settles_the_split),
                                       cmocka_unit_test(test_data_of_runs),
                                       cmocka_unit_test(test_folds_beside_a_run),
                                       cmocka_unit_test(test_a_card_without_scores),
                                       cmocka_unit_test(test_written_and_read),
                                       cmocka_unit_test(test_everything_is_there),
                                       cmocka_unit_test(test_without_facts),
                                       cmocka_unit_test(test_no_card)};
    return cmocka_run_group_tests_name("judge/card", tests, NULL, testing_tear_down);
}
