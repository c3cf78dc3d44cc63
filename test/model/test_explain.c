/* Why it matched: the shares of positions sum to the score, the score is the cosine of the vectors, and shares lie where the
 * thing is. */
#include "kith/explain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "data/image/image.h"
#include "support/testing.h"

enum { SIDE = 64, THING = 16, MOST_CHANNELS = 2048 };

/* ---- pictures ---- */

/* RGB noise of a seed inside a rectangle, grey (0 for the network) around it. */
typedef struct drawing {
    int64_t w, h, x, y, part_w, part_h;
    uint64_t seed;
} drawing;

/* Returns the file; to be released. */
static ki_bytes draw(drawing d, bool as_jpeg) {
    ki_image image = {0};
    ki_bytes file = {0};
    kith_error err = {0};
    ki_rng rng = ki_rng_at(d.seed, KI_RNG_AUGMENT, 0, 0);
    assert_ok(ki_image_shape(&image, d.w, d.h, 3, &err), &err);
    memset(image.data, 127, (size_t)(d.w * d.h * 3));
    for (int64_t y = d.y; y < d.y + d.part_h; y++) {
        for (int64_t x = d.x; x < d.x + d.part_w; x++) {
            for (int c = 0; c < 3; c++) image.data[3 * (y * d.w + x) + c] = (uint8_t)(ki_rng_u32(&rng) >> 24);
        }
    }
    assert_ok(as_jpeg ? ki_jpeg_encode(&image, 95, &file, &err) : ki_png_encode(&image, &file, &err), &err);
    ki_image_release(&image);
    return file;
}

static kith_query_image asked(const ki_bytes *file) {
    return (kith_query_image){.bytes = file->data, .n_bytes = file->n, .weight = 1};
}

/* ---- models ---- */

typedef struct variant {
    const char *name, *pool, *tap;
    bool no_bias;
    int64_t heads, map_channels;
} variant;

static const variant variants[] = {
    {"avg", "avg", NULL, false, 1, 0},
    {"max", "max", NULL, false, 1, 0},
    {"both", "both", NULL, false, 1, 0},
    {"avg without a bias", "avg", NULL, true, 1, 0},
    {"max without a bias", "max", NULL, true, 1, 0},
    {"avg, pooled", "avg", "pooled", false, 1, 0},
    {"max, pooled", "max", "pooled", false, 1, 0},
    {"both, pooled", "both", "pooled", false, 1, 0},
    {"avg, logits", "avg", "logits", false, 1, 0},
    {"both, two heads", "both", NULL, false, 2, 0},
    {"max, two heads, pooled", "max", "pooled", false, 2, 0},
    {"avg, a convolution before the map", "avg", NULL, false, 1, 5},
};

/* Biases start at 0 and would be missed. */
static void shake_biases(kith_model *model) {
    kith_model_param param;
    kith_error err = {0};
    for (int64_t i = 0; kith_model_param_at(model, i, &param); i++) {
        float values[64];
        if (param.n_dims != 1 || !param.trained || !strstr(param.name, "bias")) continue;
        assert_true(param.n <= 64);
        ki_rng rng = ki_rng_at(7, KI_RNG_AUGMENT, (uint32_t)i, 0);
        for (int64_t j = 0; j < param.n; j++) values[j] = (float)(ki_rng_double(&rng) - 0.3);
        assert_ok(kith_model_param_set(model, i, values, &err), &err);
    }
}

static kith_model *open_variant(const variant *v, const char *resize, bool shaken) {
    static char path[1024];
    kith_model *model = NULL, *opened = NULL;
    kith_error err = {0};
    KITH_OPTIONS(kith_model_options, how);
    how.backbone = "convnet4";
    how.settings = "width=8";
    how.seed = 5;
    how.height = how.width = SIDE;
    how.pool = v->pool;
    how.embedding = 6;
    how.no_embedding_bias = v->no_bias;
    how.heads = v->heads;
    how.map_channels = v->map_channels ? v->map_channels : KITH_NONE;
    how.classes = v->heads > 1 ? KITH_NONE : 9;
    assert_ok(kith_model_open(&how, &model, &err), &err);
    if (shaken) shake_biases(model);
    snprintf(path, sizeof path, "%s/model.safetensors", testing_folder());
    assert_ok(kith_model_save(model, path, &err), &err);
    kith_model_free(model);
    KITH_OPTIONS(kith_model_options, options);
    options.weights = path;
    options.pool = v->pool;
    options.tap = v->tap;
    options.resize = resize;
    assert_ok(kith_model_open(&options, &opened, &err), &err);
    return opened;
}

/* ---- the sum ---- */

static double sum_of(const kith_explanation *why, const kith_shares *shares) {
    double sum = shares->rest;
    for (int64_t i = 0; i < why->rows * why->columns; i++) sum += shares->share[i];
    return sum;
}

static double cosine(kith_model *e, const kith_query_image *query, int64_t n, const kith_query_image *hit,
                     const kith_query_options *options) {
    const int64_t dim = kith_model_dim(e);
    float *a = ki_alloc((size_t)dim, sizeof *a), *b = ki_alloc((size_t)dim, sizeof *b);
    double ab = 0, aa = 0, bb = 0;
    kith_error err = {0};
    kith_query_image alone = *hit;
    alone.weight = 1;
    assert_non_null(a);
    assert_non_null(b);
    assert_ok(kith_model_query(e, query, n, options, a, &err), &err);
    assert_ok(kith_model_query(e, &alone, 1, NULL, b, &err), &err);
    for (int64_t i = 0; i < dim; i++) {
        ab += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    ki_free(a);
    ki_free(b);
    return ab / sqrt(aa * bb);
}

static void assert_near(double found, double wanted, double most, const char *what, const char *whose) {
    if (!(fabs(found - wanted) <= most))
        fail_msg("%s, %s: %.15g, wanted %.15g within %g", whose, what, found, wanted, most);
}

static void assert_explained(kith_model *e, const kith_query_image *query, int64_t n,
                             const kith_query_image *hit, const kith_query_options *options,
                             const char *whose) {
    kith_explanation why = {0};
    kith_error err = {0};
    double asked_for = 0;
    assert_ok(kith_model_explain(e, query, n, hit, options, &why, &err), &err);
    assert_string_equal(why.estimate, "");
    assert_int_equal(why.n, n);
    for (int64_t i = 0; i < n; i++) asked_for += sum_of(&why, &why.query[i]);
    assert_near(asked_for, why.score, 1e-12, "the query's shares", whose);
    assert_near(sum_of(&why, &why.hit), why.score, 1e-12, "the hit's shares", whose);
    assert_near(why.score, cosine(e, query, n, hit, options), 1e-6, "the score", whose);
    kith_explanation_release(&why);
}

static void test_shares_sum_to_the_score(void **state) {
    (void)state;
    ki_bytes a = draw((drawing){SIDE, SIDE, 0, 0, SIDE, SIDE, 1}, false),
             b = draw((drawing){SIDE, SIDE, 9, 20, 40, 30, 2}, false);
    const kith_query_image one = asked(&a), two = asked(&b);
    for (size_t i = 0; i < N_ROWS(variants); i++) {
        kith_model *e = open_variant(&variants[i], "none", true);
        assert_explained(e, &one, 1, &two, NULL, variants[i].name);
        kith_model_free(e);
    }
    ki_bytes_release(&a);
    ki_bytes_release(&b);
}

/* Several images with weights, mirror images and boxes: still the score of what kith_model_query makes of them. */
static void test_combined_queries(void **state) {
    (void)state;
    ki_bytes file[3];
    kith_query_image image[3];
    KITH_OPTIONS(kith_query_options, flips);
    flips.flips = true;
    for (int i = 0; i < 3; i++) {
        file[i] = draw((drawing){SIDE, SIDE, 5 * i, 0, 40, SIDE, (uint64_t)i}, false);
        image[i] = asked(&file[i]);
    }
    image[1].weight = -0.4;
    kith_query_image hit = image[2];
    hit.weight = 0; /* it does not count */
    hit.has_box = image[0].has_box = true;
    memcpy(hit.box, (double[]){3, 4, 50, 55}, sizeof hit.box);
    memcpy(image[0].box, (double[]){0, 0, 64, 30}, sizeof image[0].box);
    for (size_t i = 0; i < N_ROWS(variants); i++) {
        kith_model *e = open_variant(&variants[i], "squash64", true);
        assert_explained(e, image, 2, &hit, NULL, variants[i].name);
        assert_explained(e, image, 2, &hit, &flips, variants[i].name);
        kith_model_free(e);
    }
    for (int i = 0; i < 3; i++) ki_bytes_release(&file[i]);
}

/* ---- where shares lie ---- */

static int64_t largest(const kith_explanation *why, const kith_shares *shares) {
    int64_t at = 0;
    for (int64_t i = 0; i < why->rows * why->columns; i++) {
        if (shares->share[i] > shares->share[at]) at = i;
    }
    return at;
}

/* A small thing in one corner of a picture; its edges, too, change nothing beyond that quarter. */
static ki_bytes draw_corner(int corner) {
    const int64_t far = SIDE - THING;
    return draw((drawing){SIDE, SIDE, corner % 2 * far, corner / 2 * far, THING, THING, 4}, false);
}

/* The thing lies in one corner of the query and in another of the hit: there the largest shares are, and nearly all of
 * the score. */
static void test_shares_lie_on_the_thing(void **state) {
    (void)state;
    static const variant plain[] = {{"avg", "avg", NULL, false, 1, 0}, {"max", "max", NULL, false, 1, 0}};
    for (int i = 0; i < 2 * 4 * 2; i++) {
        const bool has_flips = i & 1;
        const int corner = i >> 1 & 3, other = 3 - corner;
        ki_bytes a = draw_corner(corner), b = draw_corner(other);
        const kith_query_image one = asked(&a), two = asked(&b);
        kith_model *e = open_variant(&plain[i >> 3], "none", false);
        kith_explanation why = {0};
        kith_error err = {0};
        KITH_OPTIONS(kith_query_options, options);
        options.flips = has_flips;
        assert_ok(kith_model_explain(e, &one, 1, &two, &options, &why, &err), &err);
        assert_int_equal(why.rows, 4);
        assert_int_equal(why.columns, 4);
        const kith_shares *both[] = {&why.query[0], &why.hit};
        for (int side = 0; side < 2; side++) {
            const int wanted = side == 0 ? corner : other;
            const int64_t at = largest(&why, both[side]), row = at / 4, column = at % 4;
            double inside = 0;
            if (row / 2 != wanted / 2 || column / 2 != wanted % 2)
                fail_msg("corner %d: the largest share is at row %d, column %d", wanted, (int)row,
                         (int)column);
            for (int p = 0; p < 16; p++)
                inside += p / 4 / 2 == wanted / 2 && p % 4 / 2 == wanted % 2 ? both[side]->share[p] : 0;
            if (!(inside > 0.9 * why.score))
                fail_msg("corner %d: %g of the score %g", wanted, inside, why.score);
        }
        kith_explanation_release(&why);
        kith_model_free(e);
        ki_bytes_release(&a);
        ki_bytes_release(&b);
    }
}

static void assert_view(const kith_shares *s, const double wanted[4], const char *what) {
    for (int i = 0; i < 4; i++) {
        if (!(fabs(s->view[i] - wanted[i]) < 1e-9))
            fail_msg("%s: view %g,%g,%g,%g, wanted %g,%g,%g,%g", what, s->view[0], s->view[1], s->view[2],
                     s->view[3], wanted[0], wanted[1], wanted[2], wanted[3]);
    }
}

/* An image of 200 x 100: what each way of resizing shows to the network of 64 x 64. */
static void test_views(void **state) {
    (void)state;
    static const struct {
        const char *resize;
        double view[4], boxed[4]; /* the second one of the part 20,10,100,50 */
    } rows[] = {
        {"squash64", {0, 0, 200, 100}, {20, 10, 100, 50}},
        {"squash80", {20, 10, 160, 80}, {30, 15, 80, 40}},
        {"shorter64", {50, 0, 100, 100}, {45, 10, 50, 50}},
        {"pad64", {0, -50, 200, 200}, {20, -15, 100, 100}},
        {"none", {68, 18, 64, 64}, {38, 3, 64, 64}},
    };
    ki_bytes file = draw((drawing){200, 100, 0, 0, 200, 100, 3}, false);
    kith_query_image whole = asked(&file), part = whole;
    part.has_box = true;
    memcpy(part.box, (double[]){20, 10, 100, 50}, sizeof part.box);
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_model *e = open_variant(&variants[0], rows[i].resize, false);
        kith_explanation why = {0};
        kith_error err = {0};
        assert_ok(kith_model_explain(e, &whole, 1, &part, NULL, &why, &err), &err);
        assert_view(&why.query[0], rows[i].view, rows[i].resize);
        assert_view(&why.hit, rows[i].boxed, rows[i].resize);
        assert_int_equal(why.hit.width, 200);
        assert_int_equal(why.hit.height, 100);
        kith_explanation_release(&why);
        kith_model_free(e);
    }
    ki_bytes_release(&file);
}

/* A large JPEG is decoded at a smaller scale where that is enough. A box and a view are in pixels of the file. */
static void test_large_photos(void **state) {
    (void)state;
    ki_bytes large = draw((drawing){1000, 800, 700, 500, 300, 300, 6}, true),
             alone = draw((drawing){300, 300, 0, 0, 300, 300, 6}, true);
    kith_query_image part = asked(&large), whole = part, same = asked(&alone);
    kith_model *e = open_variant(&variants[0], "squash64", false);
    kith_explanation why = {0};
    kith_error err = {0};
    part.has_box = true;
    memcpy(part.box, (double[]){700, 500, 300, 300}, sizeof part.box);
    assert_ok(kith_model_explain(e, &part, 1, &whole, NULL, &why, &err), &err);
    assert_view(&why.query[0], (double[]){700, 500, 300, 300}, "a part");
    assert_view(&why.hit, (double[]){0, 0, 1000, 800}, "all");
    const double alike = cosine(e, &part, 1, &same, NULL);
    if (!(alike > 0.99)) fail_msg("the part and the same picture alone: cosine %g", alike);
    kith_explanation_release(&why);
    kith_model_free(e);
    ki_bytes_release(&large);
    ki_bytes_release(&alone);
}

static void test_what_is_refused(void **state) {
    (void)state;
    static const variant map = {"the map", "avg", "map", false, 1, 0};
    ki_bytes a = draw((drawing){SIDE, SIDE, 0, 0, SIDE, SIDE, 1}, false);
    kith_query_image one = asked(&a), nothing = {.weight = 1};
    kith_explanation why = {0};
    kith_error err = {0};
    kith_model *e = open_variant(&map, "none", false);
    assert_int_equal(kith_model_explain(e, &one, 1, &one, NULL, &why, &err), KITH_EUNSUPPORTED);
    assert_string_equal(err.message, "the vectors are the tap 'map'; wanted ones that are made by pooling");
    kith_model_free(e);
    e = open_variant(&variants[0], "none", false);
    assert_int_equal(kith_model_explain(e, &one, 1, &nothing, NULL, &why, &err), KITH_EINVAL);
    assert_string_equal(err.message, "the hit has neither a path nor bytes; wanted its image");
    assert_int_equal(kith_model_explain(e, &one, 0, &one, NULL, &why, &err), KITH_EINVAL);
    for (int64_t n = 0;; n++) { /* every allocation fails once */
        ki_alloc_fail_after(n);
        const kith_status status = kith_model_explain(e, &one, 1, &one, NULL, &why, &err);
        const bool has_failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        if (!has_failed) {
            assert_ok(status, &err);
            break;
        }
        assert_int_not_equal(status, KITH_OK);
    }
    assert_int_equal(kith_explanation_draw(&why, &one, &one, "why.gif", &err), KITH_EINVAL);
    assert_string_equal(err.message, "why.gif ends neither in .png nor in .jpg");
    const kith_explanation empty = {.query = why.query, .n = 1, .hit = why.hit};
    assert_int_equal(kith_explanation_draw(&empty, &one, &one, "why.png", &err), KITH_EINVAL);
    assert_string_equal(err.message, "the explanation is empty");
    kith_explanation_release(&why);
    kith_model_free(e);
    ki_bytes_release(&a);
}

/* The average over its positions of an image's map. */
static void average_map(kith_model *e, const kith_query_image *image, double mean[MOST_CHANNELS]) {
    static float map[1 << 16];
    char path[1024];
    const char *file = path;
    kith_error err = {0};
    int n_dims = 0;
    int64_t dim[KITH_MAX_DIMS];
    KITH_OPTIONS(kith_embed_options, how);
    how.tap = "map";
    snprintf(path, sizeof path, "%s/averaged.png", testing_folder());
    FILE *to = fopen(path, "wb");
    assert_true(to && fwrite(image->bytes, 1, image->n_bytes, to) == image->n_bytes && fclose(to) == 0);
    assert_ok(kith_model_tap_shape(e, "map", &n_dims, dim, &err), &err);
    const int64_t n = dim[1] * dim[2];
    assert_true(dim[0] <= MOST_CHANNELS && dim[0] * n <= 1 << 16);
    assert_ok(kith_model_embed_files(e, &file, 1, &how, map, NULL, &err), &err);
    memset(mean, 0, MOST_CHANNELS * sizeof *mean);
    for (int64_t i = 0; i < dim[0] * n; i++) mean[i / n] += (double)map[i] / (double)n;
}

static double cosine_of_means(kith_model *e, const kith_query_image *one, const kith_query_image *other) {
    double a[MOST_CHANNELS], b[MOST_CHANNELS], ab = 0, aa = 0, bb = 0;
    average_map(e, one, a);
    average_map(e, other, b);
    for (int c = 0; c < MOST_CHANNELS; c++) {
        ab += a[c] * b[c];
        aa += a[c] * a[c];
        bb += b[c] * b[c];
    }
    return ab / sqrt(aa * bb);
}

/* Shares that are no parts of the score say so; the score is that of the vectors all the same, and the shares are those of the cosine of
 * the averaged maps. */
static void assert_estimated(kith_model *e, const kith_query_image *query, int64_t n,
                             const kith_query_image *hit, bool flips, const char *why_not, const char *name) {
    kith_error err = {0};
    kith_explanation why = {0};
    KITH_OPTIONS(kith_query_options, options);
    options.flips = flips;
    assert_ok(kith_model_explain(e, query, n, hit, &options, &why, &err), &err);
    if (!strstr(why.estimate, why_not)) fail_msg("%s: '%s' is not why: %s", name, why_not, why.estimate);
    assert_non_null(
        strstr(why.estimate, "; shown are the shares of the cosine of both averaged feature maps"));
    assert_near(why.score, cosine(e, query, n, hit, &options), 1e-5, "the score", name);
    assert_true(why.hit.rest == 0 && why.query[0].rest == 0);
    double asked = 0;
    for (int64_t i = 0; i < n; i++) asked += sum_of(&why, &why.query[i]);
    const double found = sum_of(&why, &why.hit);
    assert_near(asked, found, 1e-12, "the sum of the query's shares", name);
    if (n == 1 && !flips)
        assert_near(found, cosine_of_means(e, query, hit), 1e-5, "the sum of the shares", name);
    kith_explanation_release(&why);
}

/* A norm behind the pool, which begins as 1 and 0 and would be missed. */
static void shake_norm(kith_model *e) {
    kith_model_param param;
    for (int64_t i = 0; kith_model_param_at(e, i, &param); i++) {
        float values[64];
        kith_error err = {0};
        if (!strstr(param.name, "head.norm.") || param.n > 64) continue;
        ki_rng rng = ki_rng_at(9, KI_RNG_AUGMENT, (uint32_t)i, 0);
        for (int64_t j = 0; j < param.n; j++) values[j] = (float)(ki_rng_double(&rng) + 0.5);
        assert_ok(kith_model_param_set(e, i, values, &err), &err);
    }
}

/* A norm behind the pool is in the sum. A layer with a function would be missing: what it makes is estimated. One that has it only if its
 * settings say so is exact without it. */
static void test_what_is_behind_a_pool(void **state) {
    (void)state;
    static const struct {
        const char *backbone, *settings, *pool, *why_not; /* NULL: it is exact */
        int64_t heads;
    } rows[] = {
        {"convnext_t", "width=8,depth=2,blocks=1", NULL, NULL, 0},
        {"convnext_t", "width=8,depth=2,blocks=1", "max", NULL, 0},
        {"convnext_t", "width=8,depth=2,blocks=1", NULL, NULL, 2},
        {"convnext_v2_t", "width=8,depth=2,blocks=1", "gem", NULL, 0},
        {"mobilenet_v3_large", "width=0.25", NULL,
         "mobilenet_v3_large has more than a pool between its map and its vectors (", 0},
        {"mobilenet_v3_large", "width=0.25,head=false", NULL, NULL, 0},
        {"efficientnet_b0", "width=0.25,depth=0.25", NULL, NULL, 0},
        {"swin_t", "width=32,depth=1,window=2", NULL, NULL, 0},
        {"vit_t", "depth=2,width=32,heads=2,grid=4", NULL, NULL, 0},
        {"vit_t", "depth=2,width=32,heads=2,grid=4", "gem", NULL, 0},
        {"vit_t", "depth=2,width=32,heads=2,grid=4", "class", "the vectors are pooled by 'class'", 0},
        {"vit_t", "depth=2,width=32,heads=2,grid=4", "class_avg", "the vectors are pooled by 'class_avg'", 0},
        {"vit_t", "depth=2,width=32,heads=2,grid=4,kind=siglip", "attention",
         "the vectors are pooled by 'attention'", 0}};
    ki_bytes a = draw((drawing){SIDE, SIDE, 0, 0, SIDE, SIDE, 1}, false);
    ki_bytes b = draw((drawing){SIDE, SIDE, 0, 0, SIDE / 2, SIDE, 2}, false);
    const kith_query_image one = asked(&a), two = asked(&b), several[] = {one, two};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        kith_model *e = NULL;
        kith_error err = {0};
        KITH_OPTIONS(kith_model_options, how);
        how.backbone = rows[i].backbone;
        how.settings = rows[i].settings;
        how.pool = rows[i].pool;
        how.heads = rows[i].heads;
        how.height = how.width = SIDE;
        how.embedding = 6;
        how.seed = 5;
        how.resize = "none";
        assert_ok(kith_model_open(&how, &e, &err), &err);
        shake_norm(e);
        if (rows[i].why_not) {
            assert_estimated(e, &one, 1, &two, false, rows[i].why_not, rows[i].backbone);
            assert_estimated(e, several, 2, &two, true, rows[i].why_not, rows[i].backbone);
        } else {
            assert_explained(e, &one, 1, &two, NULL, rows[i].backbone);
            assert_explained(e, several, 2, &two, NULL, rows[i].backbone);
        }
        kith_model_free(e);
    }
    ki_bytes_release(&a);
    ki_bytes_release(&b);
}

/* Two photos of one bird through the real network, with every pooling. */
static void test_googlenet(void **state) {
    (void)state;
    static const char *const pools[] = {"avg", "max", "both", "gem"};
    char weights[1024], path[2][1024];
    const char *found = testing_shared("weights/googlenet_bvlc.safetensors");
    if (!found) skip();
    snprintf(weights, sizeof weights, "%s", found);
    found = testing_shared("data/CUB_200_2011/images/002.Laysan_Albatross");
    if (!found) skip();
    snprintf(path[0], sizeof path[0], "%s/Laysan_Albatross_0001_545.jpg", found);
    snprintf(path[1], sizeof path[1], "%s/Laysan_Albatross_0002_1027.jpg", found);
    for (size_t i = 0; i < N_ROWS(pools); i++) {
        KITH_OPTIONS(kith_model_options, options);
        kith_model *e = NULL;
        kith_error err = {0};
        options.weights = weights;
        options.backbone = "googlenet";
        options.pool = pools[i];
        options.resize = "shorter256";
        assert_ok(kith_model_open(&options, &e, &err), &err);
        const kith_query_image one = {.path = path[0], .weight = 1}, two = {.path = path[1]};
        assert_explained(e, &one, 1, &two, NULL, pools[i]);
        kith_model_free(e);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares_sum_to_the_score),
        cmocka_unit_test(test_combined_queries),
        cmocka_unit_test(test_shares_lie_on_the_thing),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_large_photos),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_what_is_behind_a_pool),
        cmocka_unit_test(test_googlenet),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
