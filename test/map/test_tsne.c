/* The quadtree against all pairs, the map's properties, and the files it is drawn to. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/rng.h"
#include "kith/map.h"
#include "map/quadtree.h"
#include "support/testing.h"

static void random_points(double *xy, int n, uint32_t stream) {
    ki_rng rng = ki_rng_at(4, KI_RNG_TEST, 40, stream);
    for (int i = 0; i < 2 * n; i++) xy[i] = 5 * ki_rng_normal(&rng);
}

static void repel_plainly(const double *xy, int n, double x, double y, double *force, double *z) {
    force[0] = force[1] = *z = 0;
    for (int i = 0; i < n; i++) {
        const double dx = x - xy[2 * i], dy = y - xy[2 * i + 1], w = 1 / (1 + dx * dx + dy * dy);
        *z += w;
        force[0] += w * w * dx;
        force[1] += w * w * dy;
    }
}

static void test_tree_counts_every_pair(void **state) {
    (void)state;
    enum { N = 700 };
    static double xy[2 * N];
    random_points(xy, N, 0);
    for (int i = 0; i < 40; i++) xy[2 * i] = xy[0], xy[2 * i + 1] = xy[1]; /* many at one place */
    ki_quadtree tree;
    kith_error err;
    assert_ok(ki_quadtree_init(N, &tree, &err), &err);
    ki_quadtree_build(&tree, xy);
    assert_true(tree.n_nodes <= tree.most_nodes);
    assert_true(tree.node[0].n == N);
    double worst = 0;
    for (int i = 0; i < N; i++) {
        double found[2], wanted[2], z, exact_z;
        repel_plainly(xy, N, xy[2 * i], xy[2 * i + 1], wanted, &exact_z);
        ki_quadtree_repel(&tree, xy[2 * i], xy[2 * i + 1], 0, found, &z); /* theta 0: no cell is used whole */
        if (fabs(z - exact_z) > 1e-9 * exact_z || hypot(found[0] - wanted[0], found[1] - wanted[1]) > 1e-9)
            fail_msg("point %d: z %.12g, wanted %.12g", i, z, exact_z);
        ki_quadtree_repel(&tree, xy[2 * i], xy[2 * i + 1], 0.25, found, &z);
        worst = fmax(worst, fabs(z - exact_z) / exact_z);
    }
    if (worst > 0.02) fail_msg("theta 0.5: z is off by %.4f", worst);
    ki_quadtree_release(&tree);
}

static kith_array blobs(int64_t n, int64_t dim, int64_t n_blobs) {
    kith_array a;
    kith_error err;
    assert_ok(kith_array_init(KITH_F32, 2, (int64_t[]){n, dim}, &a, &err), &err);
    for (int64_t i = 0; i < n; i++) {
        ki_rng centre = ki_rng_at(4, KI_RNG_TEST, 41, (uint32_t)(i % n_blobs));
        ki_rng noise = ki_rng_at(4, KI_RNG_TEST, 42, (uint32_t)i);
        for (int64_t k = 0; k < dim; k++)
            ((float *)a.data)[i * dim + k] = (float)(ki_rng_normal(&centre) + 0.4 * ki_rng_normal(&noise));
    }
    return a;
}

/* Each point's nearest on the map is of its own blob. */
static void test_blobs_stay_apart(void **state) {
    (void)state;
    kith_array a = blobs(400, 60, 8), map;
    KITH_OPTIONS(kith_tsne_options, o);
    o.n_iterations = 300, o.perplexity = 15;
    double divergence = 0;
    kith_error err;
    assert_ok(kith_tsne(&a, &o, &map, &divergence, &err), &err);
    const double *y = map.data;
    int n_wrong = 0;
    for (int i = 0; i < 400; i++) {
        int best = -1;
        double least = INFINITY;
        for (int j = 0; j < 400; j++) {
            const double d = hypot(y[2 * i] - y[2 * j], y[2 * i + 1] - y[2 * j + 1]);
            if (j != i && d < least) least = d, best = j;
        }
        n_wrong += best % 8 != i % 8;
    }
    if (n_wrong) fail_msg("%d of 400 points lie nearest to another blob", n_wrong);
    assert_true(divergence > 0 && divergence < 1);
    kith_array_release(&map);
    kith_array_release(&a);
}

static void test_same_seed_same_map(void **state) {
    (void)state;
    kith_array a = blobs(300, 20, 5), map[3];
    kith_error err;
    for (int t = 0; t < 3; t++) {
        KITH_OPTIONS(kith_tsne_options, o);
        o.n_iterations = 60, o.perplexity = 10, o.seed = t == 2;
        ki_threads_set(t == 1 ? 3 : 1);
        assert_ok(kith_tsne(&a, &o, map + t, NULL, &err), &err);
    }
    ki_threads_set(0);
    assert_memory_equal(map[0].data, map[1].data, 600 * sizeof(double));
    assert_memory_not_equal(map[0].data, map[2].data, 600 * sizeof(double));
    for (int t = 0; t < 3; t++) kith_array_release(map + t);
    kith_array_release(&a);
}

static void test_equal_rows_give_a_map(void **state) {
    (void)state;
    kith_array a = blobs(100, 5, 1), map;
    for (int i = 0; i < 500; i++) ((float *)a.data)[i] = 0.5F;
    KITH_OPTIONS(kith_tsne_options, o);
    o.n_iterations = 30, o.perplexity = 5;
    kith_error err;
    assert_ok(kith_tsne(&a, &o, &map, NULL, &err), &err);
    for (int i = 0; i < 200; i++) assert_true(isfinite(((double *)map.data)[i]));
    kith_array_release(&map);
    kith_array_release(&a);
}

/* Unless one says otherwise the perplexity fits, however few rows there are. */
static void test_the_perplexity_fits(void **state) {
    (void)state;
    static const int n[] = {4, 5, 30, 91, 92};
    for (size_t i = 0; i < N_ROWS(n); i++) {
        kith_array a = blobs(n[i], 5, 3), map;
        KITH_OPTIONS(kith_tsne_options, o);
        kith_error err = {0};
        o.n_iterations = 5;
        assert_ok(kith_tsne(&a, &o, &map, NULL, &err), &err);
        kith_array_release(&map);
        kith_array_release(&a);
    }
    assert_true(kith_tsne_perplexity(4) == 1);
    assert_true(kith_tsne_perplexity(90) < 30 && kith_tsne_perplexity(91) == 30 &&
                kith_tsne_perplexity(5000) == 30);
}

static void test_bad_options_are_named(void **state) {
    (void)state;
    kith_array a = blobs(30, 5, 3), map;
    KITH_OPTIONS(kith_tsne_options, o);
    kith_error err;
    o.perplexity = 30;
    assert_int_equal(kith_tsne(&a, &o, &map, NULL, &err), KITH_EINVAL);
    assert_string_equal(err.message, "perplexity 30 for 30 rows; wanted 1 to 9.667");
    a.dim[0] = 3;
    assert_int_equal(kith_tsne(&a, &o, &map, NULL, &err), KITH_EINVAL);
    a.dim[0] = 30;
    kith_array_release(&a);
}

static kith_status half_red(void *user, const char *path, int size, uint8_t *rgb, kith_error *err) {
    (void)user, (void)err;
    if (strcmp(path, "bad") == 0) return KITH_EIO;
    for (int i = 0; i < size * size; i++)
        memcpy(rgb + 3 * i, i < size * size / 2 ? "\xff\0\0" : "\xff\xff\xff", 3);
    return KITH_OK;
}

static void test_pictures_are_written(void **state) {
    (void)state;
    enum { N = 50 };
    double xy[2 * N];
    int64_t labels[N];
    const char *paths[N];
    random_points(xy, N, 3);
    for (int i = 0; i < N; i++) labels[i] = i % 7, paths[i] = i % 10 ? "good" : "bad";
    const kith_array map = {KITH_F64, 2, {N, 2}, xy};
    kith_map_drawing d = {.size = sizeof(kith_map_drawing),
                          .map = &map,
                          .labels = labels,
                          .side = 400,
                          .title = "a < b & c",
                          .thumbnail_size = 16};
    char path[512];
    static char text[1 << 20];
    kith_error err;
    kith_map_report report;
    for (int t = 0; t < 2; t++) {
        d.paths = t ? paths : NULL;
        d.thumbnail = half_red;
        snprintf(path, sizeof path, "%s/map.png", testing_folder());
        assert_ok(kith_map_draw(&d, path, &report, &err), &err);
        snprintf(path, sizeof path, "%s/map.svg", testing_folder());
        assert_ok(kith_map_draw(&d, path, &report, &err), &err);
        FILE *file = fopen(path, "rb");
        const size_t n = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        text[n] = '\0';
        int n_dots = 0, n_images = 0;
        for (const char *at = text; (at = strstr(at, "<circle")); at++) n_dots++;
        for (const char *at = text; (at = strstr(at, "<image")); at++) n_images++;
        assert_int_equal(n_dots + n_images, N);
        assert_int_equal(n_images, report.n_drawn);
        assert_non_null(strstr(text, "a &lt; b &amp; c"));
        assert_non_null(strstr(text, "</svg>"));
        if (t) assert_true(report.n_drawn > 10 && report.n_failed > 0);
    }
    assert_int_equal(kith_map_draw(&d, "map.gif", &report, &err), KITH_EINVAL);
    assert_string_equal(err.message, "the picture is to be 'map.gif'; wanted a name ending in .svg or .png");
    snprintf(path, sizeof path, "%s/none/map.svg", testing_folder());
    assert_int_equal(kith_map_draw(&d, path, &report, &err), KITH_EIO);
    xy[7] = NAN;
    assert_int_equal(kith_map_draw(&d, "map.svg", &report, &err), KITH_ENUMERIC);
    testing_clean_up();
}

static void test_memory_runs_out(void **state) {
    (void)state;
    kith_array a = blobs(60, 8, 3);
    int n_failed = 0;
    for (int64_t n = 0;; n++) {
        KITH_OPTIONS(kith_tsne_options, o);
        o.n_iterations = 3, o.perplexity = 5, o.n_components = 4;
        kith_array map = {0};
        char path[512];
        const char *paths[60];
        for (int i = 0; i < 60; i++) paths[i] = "good";
        snprintf(path, sizeof path, "%s/map.svg", testing_folder());
        kith_error err;
        kith_map_drawing d = {.size = sizeof(kith_map_drawing),
                              .map = &map,
                              .side = 200,
                              .paths = paths,
                              .thumbnail = half_red,
                              .thumbnail_size = 8};
        ki_alloc_fail_after(n);
        kith_status status = kith_tsne(&a, &o, &map, NULL, &err);
        if (status == KITH_OK) status = kith_map_draw(&d, path, NULL, &err);
        ki_alloc_fail_after(-1);
        kith_array_release(&map);
        struct stat there;
        if (status == KITH_OK) break;
        assert_int_equal(status, KITH_ENOMEM);
        assert_int_not_equal(stat(path, &there), 0);
        n_failed++;
    }
    assert_true(n_failed > 30);
    testing_clean_up();
    kith_array_release(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree_counts_every_pair), cmocka_unit_test(test_blobs_stay_apart),
        cmocka_unit_test(test_same_seed_same_map),     cmocka_unit_test(test_equal_rows_give_a_map),
        cmocka_unit_test(test_the_perplexity_fits),    cmocka_unit_test(test_bad_options_are_named),
        cmocka_unit_test(test_pictures_are_written),   cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
