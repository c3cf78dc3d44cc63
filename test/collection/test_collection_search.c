/* Asking a collection: every kind of part, every option, many requests at once, and those that are wrong. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "data/image/image.h"
#include "kith/collection.h"
#include "kith/rerank.h"
#include "support/testing.h"

enum { N_PHOTOS = 16, N_ITEMS = 17, MOST_HITS = 64, DIM = 16 };

static kith_collection
    *photos; /* 4 classes of 4, and a copy of the first picture, which is the last item of the first class */
static char where_photos[1024];

static int set_up(void **state) {
    (void)state;
    char output[8192], path[1100];
    kith_error err;
    const int status = testing_run(
        output, sizeof output,
        "cd %s && " TESTING_K
        " && $K synth photos --classes 4 --images 4 && cp photos/glyph00000/00000.png "
        "photos/glyph00000/copy.png && "
        "$K embed --backbone convnet4 --embedding 16 --seed 9 --generate 2 --save m.safetensors && "
        "$K index photos -o p.kith --model m.safetensors && $K index p.kith --calibrate photos",
        testing_folder(), testing_program());
    if (status != 0) fail_msg("no index: %s", output);
    snprintf(where_photos, sizeof where_photos, "%s/photos", testing_folder());
    snprintf(path, sizeof path, "%s/p.kith", testing_folder());
    assert_ok(kith_collection_open(path, NULL, &photos, &err), &err);
    return 0;
}

static int tear_down(void **state) {
    kith_collection_free(photos);
    return testing_tear_down(state);
}

static const char *photo(const char *name) {
    static char path[4][1200];
    static int at;
    at = (at + 1) % 4;
    snprintf(path[at], sizeof path[at], "%s/%s", where_photos, name);
    return path[at];
}

/* ---- asking ---- */

static kith_query_part of_file(const char *path, double weight) {
    return (kith_query_part){.id = -1, .image = {.path = path}, .weight = weight};
}
static kith_query_part of_item(int64_t id, double weight) {
    return (kith_query_part){.id = id, .weight = weight};
}

static kith_search_request request_of(const kith_query_part *parts, int64_t n) {
    KITH_OPTIONS(kith_search_request, r);
    r.parts = parts;
    r.n_parts = n;
    return r;
}

static kith_found ask(const kith_search_request *r) {
    kith_found found;
    kith_error err;
    assert_ok(kith_collection_search(photos, r, 1, NULL, &found, &err), &err);
    assert_int_equal(found.status, KITH_OK);
    return found;
}

/* The same hits: ids in order, scores up to rounding; returns the largest difference. */
static double assert_same_hits(const kith_found *a, const kith_found *b, double most) {
    double largest = 0;
    assert_int_equal(a->n_hits, b->n_hits);
    assert_int_equal(a->n_allowed, b->n_allowed);
    assert_int_equal(a->is_exact, b->is_exact);
    for (int64_t i = 0; i < a->n_hits; i++) {
        const double difference = fabs(a->hits[i].score - b->hits[i].score);
        if (a->hits[i].item.id != b->hits[i].item.id || !(difference <= most))
            fail_msg("hit %lld is %lld (%.9g), wanted %lld (%.9g)", (long long)i,
                     (long long)a->hits[i].item.id, a->hits[i].score, (long long)b->hits[i].item.id,
                     b->hits[i].score);
        largest = fmax(largest, difference);
    }
    return largest;
}

/* ---- parts ---- */

static ki_bytes read_bytes(const char *path) {
    ki_bytes file = {0};
    kith_error err;
    assert_ok(ki_bytes_read(&file, path, &err), &err);
    return file;
}

/* A file, its bytes, its pixels, the item, and the vector: one query. */
static void test_every_kind_of_part(void **state) {
    (void)state;
    kith_error err;
    const char *path = photo("glyph00001/00002.png");
    ki_bytes file = read_bytes(path);
    ki_image image = {0};
    assert_ok(ki_image_decode(file.data, file.n, &(ki_decode){0}, &image, &err), &err);
    const kith_pixels pixels = {image.w, image.h, image.channels, image.data};
    kith_query_part part = of_file(path, 1);
    kith_search_request r = request_of(&part, 1);
    r.k = N_ITEMS;
    kith_found first = ask(&r);
    assert_int_equal(first.n_hits, N_ITEMS);
    assert_true(first.hits[0].score > 0.999999);
    assert_string_equal(first.hits[0].picture, path);
    assert_string_equal(first.hits[0].item.label, "glyph00001");
    assert_true(isnan(first.limit));
    float row[DIM];
    memcpy(row, first.row, sizeof row);
    const kith_query_part others[] = {
        {.id = -1, .image = {.bytes = file.data, .n_bytes = file.n}, .weight = 1},
        {.id = -1, .image = {.pixels = &pixels}, .weight = 1},
        {.id = -1, .image = {.path = path, .has_box = true, .box = {0, 0, image.w, image.h}}, .weight = 1},
        {.id = first.hits[0].item.id, .weight = 1},
        {.id = -1, .row = row, .weight = 1}};
    for (size_t i = 0; i < N_ROWS(others); i++) {
        print_message("part %zu\n", i);
        r.parts = &others[i];
        kith_found found = ask(&r);
        assert_same_hits(&found, &first, 1e-6);
        kith_found_release(&found);
    }
    kith_found_release(&first);
    ki_image_release(&image);
    ki_bytes_release(&file);
}

/* The sum of normalised vectors by weight; a mirror image counts as half of its part. */
static void test_sums_and_mirror_images(void **state) {
    (void)state;
    kith_error err;
    const char *one = photo("glyph00001/00002.png"), *two = photo("glyph00002/00001.png");
    kith_model *model = NULL;
    float rows[3][DIM], wanted[DIM];
    assert_ok(kith_collection_model(photos, &model, &err), &err);
    const kith_query_image image[2] = {{.path = one, .weight = 1}, {.path = two, .weight = 1}};
    for (int i = 0; i < 2; i++) assert_ok(kith_model_query(model, &image[i], 1, NULL, rows[i], &err), &err);
    assert_ok(kith_index_vectors(kith_collection_index(photos), (int64_t[]){3}, 1, rows[2], &err), &err);
    assert_ok(kith_query_combine(rows[0], (double[]){1, -0.5, 2}, 3, DIM, wanted, &err), &err);
    const kith_query_part parts[3] = {of_file(one, 1), of_file(two, -0.5), of_item(3, 2)};
    kith_search_request r = request_of(parts, 3);
    kith_found found = ask(&r);
    for (int i = 0; i < DIM; i++) assert_true(fabsf(found.row[i] - wanted[i]) < 1e-6F);
    kith_found_release(&found);

    KITH_OPTIONS(kith_query_options, options);
    options.flips = true;
    assert_ok(kith_model_query(model, image, 2, &options, wanted, &err), &err);
    const kith_query_part both[2] = {of_file(one, 1), of_file(two, 1)};
    r = request_of(both, 2);
    r.flips = true;
    found = ask(&r);
    for (int i = 0; i < DIM; i++) assert_true(fabsf(found.row[i] - wanted[i]) < 1e-6F);
    kith_found plain;
    r.flips = false;
    plain = ask(&r);
    double largest = 0;
    for (int i = 0; i < DIM; i++) largest = fmax(largest, fabs((double)(found.row[i] - plain.row[i])));
    assert_true(largest > 1e-3);
    kith_found_release(&found);
    kith_found_release(&plain);
}

/* ---- options ---- */

static void test_pages_filters_and_limits(void **state) {
    (void)state;
    const kith_query_part part = of_item(5, 1);
    kith_search_request r = request_of(&part, 1);
    kith_found ten = ask(&r);
    assert_int_equal(ten.n_hits, 10);
    r.k = INT64_MAX;
    kith_found all = ask(&r);
    assert_int_equal(all.n_hits, N_ITEMS);
    r.k = 4;
    r.offset = 3;
    kith_found page = ask(&r);
    assert_int_equal(page.n_hits, 4);
    for (int i = 0; i < 4; i++) assert_int_equal(page.hits[i].item.id, all.hits[3 + i].item.id);
    kith_found_release(&page);
    r.offset = N_ITEMS;
    page = ask(&r);
    assert_int_equal(page.n_hits, 0);
    kith_found_release(&page);

    r = request_of(&part, 1);
    r.where = "label = glyph00003";
    page = ask(&r);
    assert_int_equal(page.n_hits, 4);
    assert_int_equal(page.n_allowed, 4);
    for (int i = 0; i < 4; i++) assert_string_equal(page.hits[i].item.label, "glyph00003");
    kith_found_release(&page);

    r = request_of(&part, 1);
    r.min_score = ten.hits[6].score;
    page = ask(&r);
    assert_int_equal(page.n_hits, 7);
    assert_true(page.limit == ten.hits[6].score);
    kith_found_release(&page);

    const kith_calibration *curve = kith_index_calibration(kith_collection_index(photos));
    r = request_of(&part, 1);
    r.same = 0.3;
    r.k = N_ITEMS;
    page = ask(&r);
    assert_true(page.limit == kith_calibration_threshold(curve, 0.3));
    assert_true(page.n_hits > 0 && page.n_hits < N_ITEMS);
    for (int64_t i = 0; i < page.n_hits; i++) {
        assert_true(page.hits[i].score >= page.limit);
        assert_true(page.hits[i].false_match_rate ==
                    kith_calibration_false_match_rate(curve, page.hits[i].score));
    }
    assert_true(all.hits[page.n_hits].score < page.limit);
    kith_found_release(&page);
    kith_found_release(&ten);
    kith_found_release(&all);
}

/* The better orders are those of kith/rerank.h. */
static void test_rerank(void **state) {
    (void)state;
    kith_error err;
    const kith_index *index = kith_collection_index(photos);
    const kith_query_part part = of_item(5, 1);
    kith_array row = {0};
    assert_ok(kith_array_init(KITH_F32, 2, (int64_t[]){1, DIM}, &row, &err), &err);
    assert_ok(kith_index_vectors(index, (int64_t[]){5}, 1, row.data, &err), &err);
    for (int m = KITH_RERANK_EXPANSION; m <= KITH_RERANK_RECIPROCAL; m++) {
        kith_hits wanted;
        KITH_OPTIONS(kith_search_options, options);
        options.k = 5;
        options.offset = 2;
        assert_ok(m == KITH_RERANK_EXPANSION
                      ? kith_index_search_expanded(index, &row, &options, NULL, &wanted, &err)
                      : kith_index_search_reciprocal(index, &row, &options, NULL, &wanted, &err),
                  &err);
        kith_search_request r = request_of(&part, 1);
        r.rerank = (kith_rerank_method)m;
        r.k = 5;
        r.offset = 2;
        kith_found found = ask(&r);
        assert_int_equal(found.n_hits, 5);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(found.hits[i].item.id, wanted.hits[i].id);
            assert_true(found.hits[i].score == wanted.hits[i].score);
        }
        kith_found_release(&found);
        kith_hits_release(&wanted);
    }
    kith_array_release(&row);
}

/* Of the picture that is there twice only the nearest is shown, and what was hidden makes room on the page. */
static void test_duplicates_are_hidden(void **state) {
    (void)state;
    kith_error err;
    kith_duplicates groups;
    assert_ok(kith_collection_duplicates(photos, NULL, &groups, &err), &err);
    assert_int_equal(groups.n_groups, 1);
    assert_int_equal(groups.begin[1], 2);
    kith_duplicates_release(&groups);

    const kith_query_part part = of_item(0, 1);
    kith_search_request r = request_of(&part, 1);
    r.k = 3;
    kith_found all = ask(&r);
    r.hide_duplicates = true;
    kith_found shown = ask(&r);
    assert_int_equal(shown.n_hits, 3);
    assert_int_equal(shown.hits[0].item.id, all.hits[0].item.id);
    assert_int_equal(shown.hits[1].item.id, all.hits[2].item.id);
    r.offset = 1;
    kith_found next = ask(&r);
    assert_int_equal(next.hits[0].item.id, shown.hits[1].item.id);
    assert_int_equal(next.n_hits, 3);
    kith_found_release(&next);
    r.offset = 0;
    r.k = INT64_MAX;
    next = ask(&r);
    assert_int_equal(next.n_hits, N_ITEMS - 1);
    kith_found_release(&next);

    /* Groups that the caller has count instead: all but one picture are the same here. */
    kith_duplicate many[N_ITEMS - 1];
    memset(many, 0, sizeof many);
    for (int i = 0; i < N_ITEMS - 1; i++) many[i].id = i;
    const kith_duplicates given = {1, (int64_t[]){0, N_ITEMS - 1}, many, N_ITEMS, 0};
    KITH_OPTIONS(kith_ask_options, options);
    options.duplicates = &given;
    r.k = 2;
    assert_ok(kith_collection_search(photos, &r, 1, &options, &next, &err), &err);
    assert_int_equal(next.n_hits, 2);
    assert_int_equal(next.hits[1].item.id, N_ITEMS - 1);
    kith_found_release(&next);
    /* Whoever may not have the whole index looked through gets what was found until then. */
    options.most_looked_at = 4;
    assert_ok(kith_collection_search(photos, &r, 1, &options, &next, &err), &err);
    assert_int_equal(next.n_hits, 1);
    kith_found_release(&next);
    kith_found_release(&all);
    kith_found_release(&shown);
}

static void test_ids_only_and_filled(void **state) {
    (void)state;
    kith_error err;
    const kith_query_part part = of_item(5, 1);
    const kith_search_request r = request_of(&part, 1);
    kith_found whole = ask(&r), bare;
    KITH_OPTIONS(kith_ask_options, options);
    options.ids_only = true;
    assert_ok(kith_collection_search(photos, &r, 1, &options, &bare, &err), &err);
    assert_same_hits(&bare, &whole, 0);
    assert_null(bare.hits[0].picture);
    assert_null(bare.hits[0].item.path);
    for (int twice = 0; twice < 2; twice++) assert_ok(kith_found_fill(photos, &bare, &err), &err);
    for (int64_t i = 0; i < whole.n_hits; i++) {
        assert_string_equal(bare.hits[i].picture, whole.hits[i].picture);
        assert_string_equal(bare.hits[i].item.path, whole.hits[i].item.path);
    }
    kith_found_release(&bare);
    kith_found_release(&whole);
}

/* ---- many at once ---- */

static void assert_batch_as_alone(kith_collection *c, const kith_search_request *r, int64_t n, double most) {
    kith_error err;
    kith_found *together = calloc((size_t)n, sizeof *together), alone;
    assert_non_null(together);
    assert_ok(kith_collection_search(c, r, n, NULL, together, &err), &err);
    for (int64_t i = 0; i < n; i++) {
        print_message("request %lld\n", (long long)i);
        assert_ok(kith_collection_search(c, &r[i], 1, NULL, &alone, &err), &err);
        assert_same_hits(&together[i], &alone, most);
        kith_found_release(&alone);
        kith_found_release(&together[i]);
    }
    free(together);
}

static void test_together_as_alone(void **state) {
    (void)state;
    enum { N = 14 };
    const char *path = photo("glyph00001/00002.png");
    ki_bytes file = read_bytes(photo("glyph00003/00000.png"));
    const kith_query_part item = of_item(5, 1), other = of_item(9, 1), picture = of_file(path, 1),
                          bytes = {.id = -1, .image = {.bytes = file.data, .n_bytes = file.n}, .weight = 1},
                          cut = {.id = -1,
                                 .image = {.path = path, .has_box = true, .box = {4, 4, 30, 30}},
                                 .weight = 1},
                          sum[3] = {picture, other, {.id = -1, .image = picture.image, .weight = -0.25}};
    const kith_query_part *const parts[N] = {&item, &other, &picture, &bytes,   &cut,  sum,      &item,
                                             &item, &other, &picture, &picture, &item, &picture, &item};
    kith_search_request r[N];
    for (int i = 0; i < N; i++) r[i] = request_of(parts[i], parts[i] == sum ? 3 : 1);
    r[1].k = 3;
    r[3].where = "label != glyph00000";
    r[4].where = "label != glyph00000";
    r[6].offset = 4;
    r[7].same = 0.3;
    r[8].rerank = KITH_RERANK_EXPANSION;
    r[9].rerank = KITH_RERANK_RECIPROCAL;
    r[10].flips = true;
    r[11].hide_duplicates = true;
    r[11].k = 15;
    r[12].exact = true;
    r[13].min_score = 0.5;
    assert_batch_as_alone(photos, r, N, 1e-6);
    ki_bytes_release(&file);
}

/* A collection of n drawn vectors, which *ret_rows has too. */
static kith_collection *drawn_collection(const char *name, const kith_index_options *options, int64_t n,
                                         uint64_t seed, kith_array *ret_rows) {
    char path[1100];
    kith_error err;
    kith_index *index = NULL;
    kith_collection *c = NULL;
    ki_rng rng = ki_rng_at(seed, KI_RNG_TEST, 0, 0);
    snprintf(path, sizeof path, "%s/%s", testing_folder(), name);
    assert_ok(kith_index_create(path, options, &index, &err), &err);
    assert_ok(kith_array_init(KITH_F32, 2, (int64_t[]){n, options->dim}, ret_rows, &err), &err);
    for (int64_t i = 0; i < n * options->dim; i++) ((float *)ret_rows->data)[i] = (float)ki_rng_normal(&rng);
    assert_ok(kith_index_add(index, ret_rows, NULL, NULL, &err), &err);
    assert_ok(kith_index_commit(index, NULL, &err), &err);
    kith_index_free(index);
    assert_ok(kith_collection_open(path, NULL, &c, &err), &err);
    return c;
}

/* Lists of an index with codes depend on how many are looked for: still, nobody notices the others. */
static void test_together_as_alone_with_codes(void **state) {
    (void)state;
    enum { N = 30000, QUERIES = 40, WIDTH = 32 };
    kith_error err;
    kith_array rows = {0};
    kith_collection_info info;
    KITH_OPTIONS(kith_index_options, options);
    options.dim = WIDTH;
    options.exact_numbers = 1000;
    options.recall = 0.5;
    kith_collection *c = drawn_collection("codes.kith", &options, N, 3, &rows);
    assert_ok(kith_collection_info_get(c, &info, &err), &err);
    assert_true(info.index.tier != KITH_TIER_EXACT);
    kith_query_part part[QUERIES];
    kith_search_request r[QUERIES];
    for (int i = 0; i < QUERIES; i++) {
        part[i] = (kith_query_part){
            .id = -1, .row = (const float *)rows.data + (ptrdiff_t)(i * 37) * WIDTH, .weight = 1};
        r[i] = request_of(&part[i], 1);
        r[i].k = i % 4 == 0 ? 200 : i % 4 == 1 ? 5 : i % 4 == 2 ? 3000 : 10;
        r[i].offset = i % 3;
        if (i % 5 < 2) r[i].min_score = 0.3 + 0.01 * (i % 7);
        if (i % 9 == 0) r[i].rerank = KITH_RERANK_EXPANSION;
        if (i % 9 == 0) r[i].k = 7;
    }
    assert_batch_as_alone(c, r, QUERIES, 0);
    kith_collection_free(c);
    kith_array_release(&rows);
}

/* ---- what is wrong ---- */

static void test_wrong_requests_fail_alone(void **state) {
    (void)state;
    enum { N = 16 };
    kith_error err;
    kith_found found[N];
    kith_search_request r[N];
    char bad[1200], none[1200];
    snprintf(bad, sizeof bad, "%s/bad.png", testing_folder());
    testing_write(bad, "no picture");
    snprintf(none, sizeof none, "%s/none.png", testing_folder());
    const float row[DIM] = {1};
    const kith_query_part good = of_item(5, 1), missing = of_item(17000, 1), unlike = of_item(5, -1),
                          two = {.id = 5, .row = row, .weight = 1}, nothing = {.id = -1, .weight = 1},
                          unread = of_file(bad, 1), absent = of_file(none, 1),
                          picture = of_file(photo("glyph00002/00000.png"), 1),
                          outside = {.id = -1,
                                     .image = {.path = picture.image.path,
                                               .has_box = true,
                                               .box = {64, 0, 5, 5}},
                                     .weight = 1},
                          even[2] = {good, unlike};
    const struct {
        const kith_query_part *parts;
        int64_t n;
        kith_status status;
        const char *line;
    } rows[N] = {
        {&good, 1, KITH_OK, ""},
        {&missing, 1, KITH_ENOTFOUND, "there is no item 17000"},
        {&two, 1, KITH_EINVAL, "part 0 of the query is 2 of an item, a vector and an image; wanted one"},
        {&nothing, 1, KITH_EINVAL, "part 0 of the query is 0 of an item, a vector and an image; wanted one"},
        {&good, 0, KITH_EINVAL, "a query of 0 parts; wanted 1 to 1024"},
        {&unread, 1, KITH_EUNSUPPORTED, "bad.png: the file begins with"},
        {&absent, 1, KITH_EIO, "none.png"},
        {&picture, 1, KITH_OK, ""},
        {&outside, 1, KITH_EINVAL, "lies outside the image"},
        {&unlike, 1, KITH_EINVAL, "no image of the query has a weight above 0"},
        {even, 2, KITH_EINVAL, "cancel out"},
        {&good, 1, KITH_EINVAL, "k is 0 and offset 0"},
        {&good, 1, KITH_EINVAL, "same and min_score are both given"},
        {&good, 1, KITH_EINVAL, "same is 1e-08; the pairs that were measured tell rates from"},
        {&good, 1, KITH_EINVAL, "character"},
        {&good, 1, KITH_EINVAL, "unknown way of re-ranking 7"},
    };
    for (int i = 0; i < N; i++) r[i] = request_of(rows[i].parts, rows[i].n);
    r[11].k = 0;
    r[12].same = r[12].min_score = 0.1;
    r[13].same = 1e-8;
    r[14].where = "label =";
    r[15].rerank = (kith_rerank_method)7;
    assert_ok(kith_collection_search(photos, r, N, NULL, found, &err), &err);
    for (int i = 0; i < N; i++) {
        print_message("request %d: %s\n", i, found[i].error.message);
        assert_int_equal(found[i].status, rows[i].status);
        assert_int_equal(found[i].n_hits, rows[i].status == KITH_OK ? 10 : 0);
        if (!strstr(found[i].error.message, rows[i].line))
            fail_msg("request %d: '%s', wanted '%s'", i, found[i].error.message, rows[i].line);
        kith_found_release(&found[i]);
    }
    /* If there is nothing else, the call fails like the first. */
    assert_int_equal(kith_collection_search(photos, r + 1, 2, NULL, found, &err), KITH_ENOTFOUND);
    assert_string_equal(err.message, "there is no item 17000");
    assert_int_equal(found[1].status, KITH_EINVAL);
    assert_int_equal(kith_collection_search(photos, r, 0, NULL, found, &err), KITH_OK);
}

/* An index of vectors has no model, and may be asked by vectors and items. Without a curve there are no rates. */
static void test_without_a_model(void **state) {
    (void)state;
    char output[4096], path[1100];
    kith_error err;
    kith_collection *c = NULL;
    kith_found found[3];
    if (testing_run(output, sizeof output,
                    "cd %s && " TESTING_K
                    " && $K embed m.safetensors photos -o e.npy && $K index e.npy -o v.kith",
                    testing_folder(), testing_program()) != 0)
        fail_msg("no index: %s", output);
    snprintf(path, sizeof path, "%s/v.kith", testing_folder());
    assert_ok(kith_collection_open(path, NULL, &c, &err), &err);
    const kith_query_part item = of_item(2, 1), picture = of_file(photo("glyph00002/00000.png"), 1);
    kith_search_request r[3] = {request_of(&item, 1), request_of(&picture, 1), request_of(&item, 1)};
    r[2].same = 0.01;
    assert_ok(kith_collection_search(c, r, 3, NULL, found, &err), &err);
    assert_int_equal(found[0].status, KITH_OK);
    assert_true(isnan(found[0].hits[0].false_match_rate));
    assert_null(found[0].hits[0].picture);
    assert_int_equal(found[1].status, KITH_ENOTFOUND);
    assert_int_equal(found[2].status, KITH_EINVAL);
    assert_string_equal(found[2].error.message, "the index has no curve of false-match rates");
    assert_int_equal(kith_collection_picture(c, 2, path, sizeof path, &err), KITH_ENOTFOUND);
    assert_string_equal(err.message, "item 2 has no path; wanted its image");
    for (int i = 0; i < 3; i++) kith_found_release(&found[i]);
    kith_collection_free(c);
}

static void test_pictures(void **state) {
    (void)state;
    char path[1200], moved[1300];
    kith_error err;
    assert_ok(kith_collection_picture(photos, 6, path, sizeof path, &err), &err);
    assert_int_equal(strncmp(path, where_photos, strlen(where_photos)), 0);
    assert_int_equal(access(path, R_OK), 0);
    assert_int_equal(kith_collection_picture(photos, 6, moved, 8, &err), KITH_EINVAL);
    assert_int_equal(kith_collection_picture(photos, 100, moved, sizeof moved, &err), KITH_ENOTFOUND);
    assert_string_equal(err.message, "there is no item 100");
    snprintf(moved, sizeof moved, "%s.away", path);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(kith_collection_picture(photos, 6, path, sizeof path, &err), KITH_ENOTFOUND);
    assert_string_equal(err.message, "there is no picture of item 6");
    const kith_query_part part = of_item(6, 1);
    const kith_search_request r = request_of(&part, 1);
    kith_found found = ask(&r);
    assert_null(found.hits[0].picture);
    assert_non_null(found.hits[0].item.path);
    kith_found_release(&found);
    assert_int_equal(rename(moved, path), 0);
}

static int stop(void *user, int64_t done, int64_t all) {
    (void)done;
    (void)all;
    ++*(int *)user;
    return 1;
}

static void test_stopped(void **state) {
    (void)state;
    kith_error err;
    kith_found found[2];
    int n_calls = 0;
    const kith_query_part part = of_file(photo("glyph00002/00000.png"), 1);
    const kith_search_request r[2] = {request_of(&part, 1), request_of(&part, 1)};
    KITH_OPTIONS(kith_ask_options, options);
    options.progress = stop;
    options.user = &n_calls;
    assert_int_equal(kith_collection_search(photos, r, 2, &options, found, &err), KITH_ECANCELED);
    assert_int_equal(n_calls, 1);
    for (int i = 0; i < 2; i++) kith_found_release(&found[i]);
}

/* Whatever allocation fails: a status, and everything is given back. */
static void test_out_of_memory(void **state) {
    (void)state;
    kith_error err;
    kith_found found[3];
    const kith_query_part part = of_item(5, 1), two[2] = {part, of_item(7, 0.5)};
    kith_search_request r[3] = {request_of(&part, 1), request_of(two, 2), request_of(&part, 1)};
    r[1].hide_duplicates = true;
    r[2].where = "label = glyph00001";
    kith_found wanted = ask(&r[1]); /* the groups are known from here on */
    bool is_done = false;
    for (int n = 0; !is_done; n++) {
        ki_alloc_fail_after(n);
        const kith_status status = kith_collection_search(photos, r, 3, NULL, found, &err);
        is_done = !ki_alloc_failed();
        ki_alloc_fail_after(-1);
        assert_true(status == KITH_OK || status == KITH_ENOMEM);
        if (is_done) {
            assert_int_equal(status, KITH_OK);
            assert_same_hits(&found[1], &wanted, 0);
        }
        for (int i = 0; i < 3; i++) {
            assert_true(found[i].status == KITH_OK || found[i].status == KITH_ENOMEM);
            kith_found_release(&found[i]);
        }
    }
    kith_found_release(&wanted);
}

/* A request that fails halfway takes no image from the requests behind it. */
static void test_images_behind_a_failure(void **state) {
    (void)state;
    kith_error err;
    kith_found found[3];
    const kith_query_part first[3] = {of_item(999, 1), of_file(photo("glyph00000/00001.png"), 1),
                                      of_file(photo("glyph00000/00002.png"), 1)},
                          second[2] = {of_file(photo("glyph00002/00000.png"), 1), of_item(3, 0.25)},
                          third = of_file(photo("glyph00003/00001.png"), 1);
    const kith_search_request r[3] = {request_of(first, 3), request_of(second, 2), request_of(&third, 1)};
    kith_found alone[3] = {{0}, ask(&r[1]), ask(&r[2])};
    assert_ok(kith_collection_search(photos, r, 3, NULL, found, &err), &err);
    assert_int_equal(found[0].status, KITH_ENOTFOUND);
    for (int i = 1; i < 3; i++) assert_same_hits(&found[i], &alone[i], 1e-6);
    for (int i = 0; i < 3; i++) {
        kith_found_release(&found[i]);
        kith_found_release(&alone[i]);
    }
}

/* Pages of one re-ranked list: no item is shown twice, and none is left out. */
static void test_pages_of_reranked_hits(void **state) {
    (void)state;
    enum { N = 400, WIDTH = 8, K = 30 };
    kith_error err;
    kith_array rows = {0};
    KITH_OPTIONS(kith_index_options, options);
    options.dim = WIDTH;
    kith_collection *c = drawn_collection("pages.kith", &options, N, 4, &rows);
    const kith_query_part part = {.id = -1, .row = rows.data, .weight = 1};
    for (int m = KITH_RERANK_EXPANSION; m <= KITH_RERANK_RECIPROCAL; m++) {
        bool is_shown[N] = {false};
        int64_t n_shown = 0;
        for (int64_t offset = 0; offset < N; offset += K) {
            kith_found found;
            kith_search_request r = request_of(&part, 1);
            r.rerank = (kith_rerank_method)m;
            r.k = K;
            r.offset = offset;
            assert_ok(kith_collection_search(c, &r, 1, NULL, &found, &err), &err);
            for (int64_t i = 0; i < found.n_hits; i++) {
                const int64_t id = found.hits[i].item.id;
                if (is_shown[id])
                    fail_msg("item %lld is shown again, from %lld on", (long long)id, (long long)offset);
                is_shown[id] = true;
            }
            n_shown += found.n_hits;
            kith_found_release(&found);
        }
        assert_int_equal(n_shown, N);
    }
    kith_collection_free(c);
    kith_array_release(&rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_of_part),
        cmocka_unit_test(test_sums_and_mirror_images),
        cmocka_unit_test(test_pages_filters_and_limits),
        cmocka_unit_test(test_rerank),
        cmocka_unit_test(test_duplicates_are_hidden),
        cmocka_unit_test(test_ids_only_and_filled),
        cmocka_unit_test(test_together_as_alone),
        cmocka_unit_test(test_together_as_alone_with_codes),
        cmocka_unit_test(test_wrong_requests_fail_alone),
        cmocka_unit_test(test_without_a_model),
        cmocka_unit_test(test_pictures),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_images_behind_a_failure),
        cmocka_unit_test(test_pages_of_reranked_hits),
    };
    return cmocka_run_group_tests_name("collection/search", tests, set_up, tear_down);
}
