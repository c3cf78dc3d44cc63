/* Retrieval and clustering metrics against the reference, and against tables worked out by hand. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "judge/ranks.h"
#include "kith/eval.h"
#include "support/testing.h"

static kith_array golden(const char *name, const char *part) {
    char path[512];
    kith_array a = {0};
    kith_error err;
    snprintf(path, sizeof path, "%s/test/golden/judge/%s_%s.npy", KITH_SOURCE_DIR, name, part);
    assert_ok(kith_npy_read(path, &a, &err), &err);
    return a;
}

static void check_value(const char *name, const char *metric, double found, double wanted) {
    if (!(fabs(found - wanted) <= 1e-9)) fail_msg("%s %s: %.15g, wanted %.15g", name, metric, found, wanted);
}

static void check_scores(const char *name, const kith_scores *s, const double *wanted) {
    const char *const recall[] = {"R@1", "R@2", "R@4", "R@8", "R@1000"};
    for (int i = 0; i < 5; i++) check_value(name, recall[i], s->recall[i], wanted[i]);
    check_value(name, "P@1", s->precision_at_1, wanted[5]);
    check_value(name, "R-precision", s->r_precision, wanted[6]);
    check_value(name, "MAP@R", s->map_at_r, wanted[7]);
    check_value(name, "MAP", s->map, wanted[8]);
    check_value(name, "MRR", s->mrr, wanted[9]);
}

static void check_golden(const char *name, bool has_split) {
    kith_array x = golden(name, "embedding"), y = golden(name, "labels"), c = golden(name, "cluster"),
               e = golden(name, "expected"), q = {0}, g = {0};
    kith_retrieval_input in = {.embedding = &x, .labels = y.data, .n_labels = y.dim[0]};
    if (has_split) {
        q = golden(name, "query");
        g = golden(name, "gallery");
        in.query = q.data, in.n_query = q.dim[0];
        in.gallery = g.data, in.n_gallery = g.dim[0];
    }
    const kith_retrieval_options options = {
        .size = sizeof(kith_retrieval_options), .metric = KITH_COSINE, .n_k = 5, .k = {1, 2, 4, 8, 1000}};
    const double *wanted = e.data;
    kith_retrieval r;
    kith_error err;
    assert_ok(kith_retrieval_run(&in, &options, &r, &err), &err);
    check_scores(name, &r.mean, wanted);
    check_value(name, "lone", (double)r.n_lone, wanted[14]);
    kith_clustering k;
    assert_ok(kith_clustering_compare(c.data, y.data, y.dim[0], &k, &err), &err);
    check_value(name, "NMI", k.nmi, wanted[10]);
    check_value(name, "geometric NMI", k.nmi_geometric, wanted[11]);
    check_value(name, "AMI", k.ami, wanted[12]);
    check_value(name, "F1", k.f1, wanted[13]);
    kith_retrieval_release(&r);
    kith_array *const all[] = {&x, &y, &c, &e, &q, &g};
    for (size_t i = 0; i < N_ROWS(all); i++) kith_array_release(all[i]);
}

static void test_golden(void **state) {
    (void)state;
    const char *const names[] = {"blobs", "double", "lone", "tied"};
    for (size_t i = 0; i < N_ROWS(names); i++) check_golden(names[i], false);
    check_golden("split", true);
}

/* Five points on a line, inner products with (1): rankings can be read off.
 * values 5 4 3 2 1, labels a b a b a. Every query ranks the others by value: 5 4 3 2 1 without itself.
 *   q=5 (a): b a b a    relevant at 2, 4 of R = 2: AP = (1/2 + 2/4) / 2 = 1/2; in the first 2: one at 2
 *   q=4 (b): a a b a    relevant at 3, R = 1: AP = 1/3; in the first 1: none
 *   q=3 (a): a b b a    relevant at 1, 4, R = 2: AP = (1 + 2/4) / 2 = 3/4; in the first 2: one at 1
 *   q=2 (b): a b a a    relevant at 2: AP = 1/2
 *   q=1 (a): a b a b    relevant at 1, 3: AP = (1 + 2/3) / 2 = 5/6; in the first 2: one at 1 */
static void test_table_by_hand(void **state) {
    (void)state;
    float value[] = {5, 4, 3, 2, 1};
    const int64_t labels[] = {7, 9, 7, 9, 7};
    const kith_array x = {KITH_F32, 2, {5, 1}, value};
    const kith_retrieval_input in = {.embedding = &x, .labels = labels, .n_labels = 5};
    const kith_retrieval_options options = {
        .size = sizeof(kith_retrieval_options), .metric = KITH_INNER, .n_k = 5, .k = {1, 2, 4, 8, 1000}};
    kith_retrieval r;
    kith_error err;
    assert_ok(kith_retrieval_run(&in, &options, &r, &err), &err);
    const double wanted[] = {2.0 / 5,
                             4.0 / 5,
                             1,
                             1,
                             1,
                             2.0 / 5,
                             (0.5 + 0 + 0.5 + 0 + 0.5) / 5,
                             (0.25 + 0 + 0.5 + 0 + 0.5) / 5,
                             (0.5 + 1.0 / 3 + 0.75 + 0.5 + 5.0 / 6) / 5,
                             (0.5 + 1.0 / 3 + 1 + 0.5 + 1) / 5};
    check_scores("by hand", &r.mean, wanted);
    assert_int_equal(r.n_classes, 2);
    assert_int_equal(r.per_class[0].label, 7);
    assert_int_equal(r.per_class[0].n_query, 3);
    check_value("class 7", "MAP", r.per_class[0].mean.map, (0.5 + 0.75 + 5.0 / 6) / 3);
    check_value("class 9", "MAP", r.per_class[1].mean.map, (1.0 / 3 + 0.5) / 2);
    check_value("classes", "MAP", r.class_mean.map, ((0.5 + 0.75 + 5.0 / 6) / 3 + (1.0 / 3 + 0.5) / 2) / 2);
    check_value("query 2", "MRR", r.query[2].mrr, 1);
    assert_int_equal(r.n_tied, 0);
    kith_retrieval_release(&r);
}

/* Items 0 to 3 are the same point, labels a b a b. Ties go to the lower index:
 *   q=0: 1 2 3 -> relevant 2 at place 2      q=1: 0 2 3 -> relevant 3 at place 3
 *   q=2: 0 1 3 -> relevant 0 at place 1      q=3: 0 1 2 -> relevant 1 at place 2 */
static void test_ties_by_hand(void **state) {
    (void)state;
    float value[] = {0.1F, 0.7F, 0.1F, 0.7F, 0.1F, 0.7F, 0.1F, 0.7F};
    const int64_t labels[] = {1, 2, 1, 2};
    const kith_array x = {KITH_F32, 2, {4, 2}, value};
    const kith_retrieval_input in = {.embedding = &x, .labels = labels, .n_labels = 4};
    for (int metric = 0; metric < 3; metric++) {
        KITH_OPTIONS(kith_retrieval_options, options);
        options.metric = (kith_metric)metric;
        kith_retrieval r;
        kith_error err;
        assert_ok(kith_retrieval_run(&in, &options, &r, &err), &err);
        check_value(kith_metric_name(options.metric), "MRR", r.mean.mrr, (0.5 + 1.0 / 3 + 1 + 0.5) / 4);
        assert_int_equal(r.n_tied, 4);
        kith_retrieval_release(&r);
    }
}

/* A class with no query, a query with nothing to find, and a query that is in the gallery. */
static void test_query_and_gallery_by_hand(void **state) {
    (void)state;
    float value[] = {5, 4, 3, 2, 1};
    const int64_t labels[] = {1, 1, 2, 3, 1}, query[] = {4, 3, 0}, gallery[] = {0, 2, 1};
    const kith_array x = {KITH_F32, 2, {5, 1}, value};
    const kith_retrieval_input in = {&x, labels, 5, query, 3, gallery, 3};
    KITH_OPTIONS(kith_retrieval_options, options);
    options.metric = KITH_INNER;
    kith_retrieval r;
    kith_error err;
    assert_ok(kith_retrieval_run(&in, &options, &r, &err), &err);
    /* query 4: gallery by value 5 (1), 4 (1), 3 (2); query 3: lone; query 0: 4 (1), 3 (2). */
    assert_int_equal(r.n_lone, 1);
    assert_true(isnan(r.query[1].mrr));
    check_value("split", "MAP", r.query[0].map, 1);
    check_value("split", "R@1", r.mean.recall[0], 1);
    assert_int_equal(r.n_classes, 3);
    assert_int_equal(r.per_class[1].n_query, 0);
    assert_int_equal(r.per_class[1].n_gallery, 1);
    assert_true(isnan(r.per_class[1].mean.map));
    assert_int_equal(r.per_class[2].n_lone, 1);
    kith_retrieval_release(&r);
}

typedef struct collected {
    int64_t sum, n;
} collected;

static void collect(void *context, int64_t query, const int64_t *rank, int64_t n, bool is_tied) {
    collected *c = context;
    for (int64_t t = 0; t < n; t++) c->sum += (query * 31 + t * 7 + 1) * (rank[t] + 1) + is_tied;
    c->n += n;
}

/* Queries in groups (large classes) and all at once give the same ranks, for any number of threads. */
static void test_groups_and_threads_do_not_matter(void **state) {
    (void)state;
    kith_array x = golden("double", "embedding"), y = golden("double", "labels");
    int32_t class_of[1000];
    for (int i = 0; i < 1000; i++) class_of[i] = (int32_t)((const int64_t *)y.data)[i];
    ki_rows rows;
    kith_error err;
    assert_ok(ki_rows_init(&x, "x", &rows, &err), &err);
    collected found[3];
    for (int t = 0; t < 3; t++) {
        ki_panels panels;
        ki_threads_set(t == 1 ? 3 : 1);
        assert_ok(ki_panels_init(&rows, KITH_COSINE, NULL, &panels, &err), &err);
        const ki_ranks_input in = {.query = &panels,
                                   .gallery = &panels,
                                   .query_class = class_of,
                                   .gallery_class = class_of,
                                   .n_classes = 10,
                                   .most_relevant = t == 2 ? 1 : 0};
        found[t] = (collected){0};
        assert_ok(ki_ranks_run(&in, collect, found + t, &err), &err);
        ki_panels_release(&panels);
    }
    ki_threads_set(0);
    assert_true(found[0].n > 90000);
    assert_int_equal(found[0].sum, found[1].sum);
    assert_int_equal(found[0].sum, found[2].sum);
    kith_array_release(&x);
    kith_array_release(&y);
}

static void test_bad_input_is_named(void **state) {
    (void)state;
    float value[] = {1, 2, 3, NAN};
    int64_t labels[] = {1, 1, 2, 2}, list[] = {0, 2, 0};
    kith_array x = {KITH_F32, 2, {4, 1}, value};
    kith_retrieval_input in = {.embedding = &x, .labels = labels, .n_labels = 4};
    KITH_OPTIONS(kith_retrieval_options, options);
    kith_retrieval r;
    kith_error err;
    assert_int_equal(kith_retrieval_run(&in, &options, &r, &err), KITH_ENUMERIC);
    assert_string_equal(err.message, "embedding: row 3 column 0 is nan");
    value[3] = 4;
    in.n_labels = 3;
    assert_int_equal(kith_retrieval_run(&in, &options, &r, &err), KITH_ESHAPE);
    assert_string_equal(err.message, "3 labels for 4 rows of the embedding");
    in.n_labels = 4;
    options.k[0] = 0;
    assert_int_equal(kith_retrieval_run(&in, &options, &r, &err), KITH_EINVAL);
    assert_string_equal(err.message, "K is 0; wanted at least 1");
    options.k[0] = 1;
    in.gallery = list;
    in.n_gallery = 0;
    assert_int_equal(kith_retrieval_run(&in, &options, &r, &err), KITH_EINVAL);
    assert_string_equal(err.message, "the gallery is empty; wanted at least 1 row");
    assert_string_equal(err.hint, "give the rows of queries and gallery, or neither: then all rows are both");
    in.n_gallery = 3;
    assert_int_equal(kith_retrieval_run(&in, &options, &r, &err), KITH_EINVAL);
    assert_string_equal(err.message, "gallery: row 0 is given twice (entries 0 and 2)");
    list[2] = 4;
    assert_int_equal(kith_retrieval_run(&in, &options, &r, &err), KITH_EINVAL);
    assert_string_equal(err.message, "gallery: entry 2 is row 4; the embedding has rows 0 to 3");
    in.gallery = NULL;
    for (int i = 0; i < 4; i++) labels[i] = i;
    assert_int_equal(kith_retrieval_run(&in, &options, &r, &err), KITH_EINVAL);
    assert_string_equal(err.message, "none of the 4 queries has another item of its class to find");
}

static void test_clustering_by_hand(void **state) {
    (void)state;
    kith_clustering c;
    kith_error err;
    /* The same partition under other names. */
    assert_ok(kith_clustering_compare((int64_t[]){5, 5, 0, 0}, (int64_t[]){1, 1, 2, 2}, 4, &c, &err), &err);
    check_value("same", "NMI", c.nmi, 1);
    check_value("same", "AMI", c.ami, 1);
    check_value("same", "F1", c.f1, 1);
    /* Independent: I = 0; no pair is together in both. */
    assert_ok(kith_clustering_compare((int64_t[]){0, 1, 0, 1}, (int64_t[]){0, 0, 1, 1}, 4, &c, &err), &err);
    check_value("independent", "NMI", c.nmi, 0);
    check_value("independent", "AMI", c.ami, -0.5);
    check_value("independent", "F1", c.f1, 0);
    /* One cluster for two classes of two: H(cluster) = 0; 2 of 6 pairs are right. */
    assert_ok(kith_clustering_compare((int64_t[]){0, 0, 0, 0}, (int64_t[]){0, 0, 1, 1}, 4, &c, &err), &err);
    check_value("one cluster", "NMI", c.nmi, 0);
    check_value("one cluster", "precision", c.pair_precision, 2.0 / 6);
    check_value("one cluster", "recall", c.pair_recall, 1);
    check_value("one cluster", "F1", c.f1, 0.5);
    assert_ok(kith_clustering_compare((int64_t[]){3}, (int64_t[]){4}, 1, &c, &err), &err);
    check_value("one item", "NMI", c.nmi, 1);
    check_value("one item", "AMI", c.ami, 1);
    assert_int_equal(kith_clustering_compare(NULL, NULL, 0, &c, &err), KITH_EINVAL);
}

static void test_bootstrap_covers(void **state) {
    (void)state;
    /* 400 queries in 100 classes, R@1 of 0.25 in every class: the standard error over queries is
     * sqrt(0.25 * 0.75 / 400) = 0.02165, over classes 0. */
    kith_retrieval r = {.n_k = 1, .k = {1}, .n_query = 400, .n_classes = 100};
    r.query = calloc(400, sizeof *r.query);
    r.query_label = calloc(400, sizeof *r.query_label);
    r.per_class = calloc(100, sizeof *r.per_class);
    for (int i = 0; i < 400; i++) {
        r.query[i].recall[0] = i % 4 == 0;
        r.query[i].mrr = 0.5;
        r.query_label[i] = i / 4;
        r.per_class[i / 4].label = i / 4;
    }
    KITH_OPTIONS(kith_bootstrap_options, options);
    options.n_draws = 4000;
    kith_intervals v, w;
    kith_error err;
    assert_ok(kith_retrieval_bootstrap(&r, &options, &v, &err), &err);
    if (fabs(v.recall[0].low - (0.25 - 1.96 * 0.02165)) > 0.004 ||
        fabs(v.recall[0].high - (0.25 + 1.96 * 0.02165)) > 0.004)
        fail_msg("interval %.4f to %.4f, wanted about 0.2076 to 0.2924", v.recall[0].low, v.recall[0].high);
    check_value("bootstrap", "MRR", v.mrr.low, 0.5);
    ki_threads_set(3);
    assert_ok(kith_retrieval_bootstrap(&r, &options, &w, &err), &err);
    ki_threads_set(0);
    assert_memory_equal(&v, &w, sizeof v);
    options.by_class = true;
    assert_ok(kith_retrieval_bootstrap(&r, &options, &v, &err), &err);
    check_value("by class", "low", v.recall[0].low, 0.25);
    check_value("by class", "high", v.recall[0].high, 0.25);
    options.n_draws = 1;
    assert_int_equal(kith_retrieval_bootstrap(&r, &options, &v, &err), KITH_EINVAL);
    free(r.query);
    free(r.query_label);
    free(r.per_class);
}

static void test_memory_runs_out(void **state) {
    (void)state;
    kith_array x = golden("split", "embedding"), y = golden("split", "labels"), q = golden("split", "query"),
               g = golden("split", "gallery");
    const kith_retrieval_input in = {&x, y.data, 400, q.data, q.dim[0], g.data, g.dim[0]};
    KITH_OPTIONS(kith_retrieval_options, options);
    int n_failed = 0;
    for (int64_t n = 0;; n++) {
        kith_error err;
        kith_retrieval r = {0};
        kith_intervals v;
        kith_clustering c;
        KITH_OPTIONS(kith_bootstrap_options, draws);
        ki_alloc_fail_after(n);
        kith_status status = kith_retrieval_run(&in, &options, &r, &err);
        if (status == KITH_OK) status = kith_retrieval_bootstrap(&r, &draws, &v, &err);
        if (status == KITH_OK) status = kith_clustering_compare(y.data, y.data, 400, &c, &err);
        ki_alloc_fail_after(-1);
        kith_retrieval_release(&r);
        if (status == KITH_OK) break;
        assert_int_equal(status, KITH_ENOMEM);
        n_failed++;
    }
    assert_true(n_failed > 25);
    kith_array_release(&x);
    kith_array_release(&y);
    kith_array_release(&q);
    kith_array_release(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_table_by_hand),
        cmocka_unit_test(test_ties_by_hand),
        cmocka_unit_test(test_query_and_gallery_by_hand),
        cmocka_unit_test(test_groups_and_threads_do_not_matter),
        cmocka_unit_test(test_bad_input_is_named),
        cmocka_unit_test(test_clustering_by_hand),
        cmocka_unit_test(test_bootstrap_covers),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
