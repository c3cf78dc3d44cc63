/* The page of views, and the picture: a row for each photo. */
#include "report/views.h"

#include <string.h>

#include "base/text.h"
#include "data/dataset/dataset.h"
#include "data/input.h"
#include "report/report.h"
#include "report/thumbnail.h"

enum { SIDE = 160, TILE = 72, GAP = 4 }; /* of a picture on the page, and in the one picture */

/* Shows what is in `view`. */
typedef struct painter painter;
struct painter {
    const ki_views *views;
    kith_status (*show)(painter *p, const char *words);
    ki_thumbnails pictures; /* its memory and its encoder */
    ki_image view, small;
    ki_buffer *to; /* the page */
    ki_image *picture;
    int64_t row, column; /* of the next tile in it */
    kith_error *err;
};

static kith_status shrink(painter *p, int side) {
    return ki_resample(&p->pictures.scratch.resampler, &p->view, (ki_rect){0, 0, p->view.w, p->view.h}, side,
                       side, (ki_rect){0, 0, side, side}, KITH_FILTER_BILINEAR, &p->small, p->err);
}

/* The view as a picture of SIDE, with its caption. */
static kith_status show_on_page(painter *p, const char *words) {
    KI_TRY(shrink(p, SIDE));
    ki_buffer_put(p->to, "<figure><img width=\"%d\" height=\"%d\" alt=\"%s\" src=\"", (int)SIDE, (int)SIDE,
                  words);
    ki_thumbnail_uri(&p->pictures, p->small.data, SIDE, p->to);
    ki_buffer_put(p->to, "\"><figcaption>%s</figcaption></figure>\n", words);
    return p->to->status;
}

/* The view as the next tile of the picture. */
static kith_status show_in_picture(painter *p, const char *words) {
    const int64_t x = GAP + p->column++ * (TILE + GAP), y = GAP + p->row * (TILE + GAP);
    (void)words;
    KI_TRY(shrink(p, TILE));
    for (int64_t k = 0; k < TILE; k++)
        memcpy(p->picture->data + ((y + k) * p->picture->w + x) * 3, p->small.data + k * TILE * 3, TILE * 3);
    return KITH_OK;
}

/* The item, read and resized as the transform wants it before it draws. */
static kith_status prepare(painter *p, const kith_transform *how, int64_t item) {
    const ki_item *from = &p->views->set->item[item];
    ki_thumbnails *t = &p->pictures;
    ki_decode decode = {.least_side = ki_transform_least_side(how, from->has_box)};
    memcpy(decode.background, how->background, sizeof decode.background);
    KI_TRY(ki_dataset_pixels(p->views->set, item, &decode, &t->file, &t->image, p->err));
    const double box[4] = {from->box[0], from->box[1], from->box[2], from->box[3]};
    return ki_transform_base(how, from->has_box ? box : NULL, &t->image, &t->scratch, &t->base, p->err);
}

/* What the transform makes of the prepared item, drawn with this stream. */
static kith_status put_draw(painter *p, const kith_transform *given, ki_rng rng, const char *words) {
    ki_thumbnails *t = &p->pictures;
    kith_transform how = *given;
    how.channels = 3;
    const ki_draw draw = ki_transform_draw(&how, t->base.w, t->base.h, &rng);
    KI_TRY(ki_image_shape(&p->view, how.crop_to, how.crop_to, 3, p->err));
    KI_TRY(ki_transform_bytes(&how, &t->base, &draw, &t->scratch, p->view.data, p->err));
    return p->show(p, words);
}

static kith_status put_photo(painter *p, int64_t item) {
    const ki_views *v = p->views;
    KITH_OPTIONS(kith_transform, whole);
    whole.resize = KITH_RESIZE_PAD;
    whole.resize_to = whole.crop_to = 2 * SIDE;
    memset(whole.background, 255, sizeof whole.background);
    const ki_rng fixed = ki_rng_at(v->seed, KI_RNG_AUGMENT, 0, 0);
    KI_TRY(prepare(p, &whole, item));
    KI_TRY(put_draw(p, &whole, fixed, "the photo"));
    KI_TRY(prepare(p, &v->test, item));
    KI_TRY(put_draw(p, &v->test, fixed, "in tests"));
    KI_TRY(prepare(p, &v->train, item));
    for (int64_t k = 0; k < v->n_draws; k++) {
        char words[32];
        ki_snprintf(words, sizeof words, "draw %lld", (long long)k + 1);
        KI_TRY(
            put_draw(p, &v->train, ki_rng_at(v->seed, KI_RNG_AUGMENT, (uint32_t)k, (uint32_t)item), words));
    }
    return KITH_OK;
}

static void put_head(const ki_views *v, ki_buffer *to) {
    char resize[32], test[32];
    ki_page_begin(to);
    ki_buffer_escaped(to, v->title);
    ki_buffer_put(to, " · kith views");
    ki_page_style(to);
    ki_buffer_put(
        to,
        ".views{display:flex;flex-wrap:wrap;gap:8px}.views figure{margin:0}h2{overflow-wrap:anywhere}\n"
        "</style>\n</head>\n<body>\n<header>\n<h1>");
    ki_buffer_escaped(to, v->title);
    ki_buffer_put(to,
                  "</h1>\n<p class=\"subtitle\">What the network sees: %d x %d pixels. Resizing before a "
                  "view is cut: %s in "
                  "training, %s in tests.</p>\n</header>\n<main>\n",
                  v->train.crop_to, v->train.crop_to, ki_resize_text(&v->train, resize, sizeof resize),
                  ki_resize_text(&v->test, test, sizeof test));
}

/* The training items, counted. */
static int64_t nth_training_item(const kith_dataset *set, int64_t wanted) {
    int64_t n = 0;
    for (int64_t i = 0; i < (int64_t)set->n_items; i++) {
        if (set->item[i].split == KITH_SPLIT_TRAIN && n++ == wanted) return i;
    }
    return -1;
}

static void painter_release(painter *p) {
    ki_image_release(&p->small);
    ki_image_release(&p->view);
    ki_thumbnails_release(&p->pictures);
}

static kith_status count_training(const ki_views *v, int64_t *ret_n, kith_error *err) {
    int64_t n = 0;
    for (size_t i = 0; i < v->set->n_items; i++) n += v->set->item[i].split == KITH_SPLIT_TRAIN;
    if (n == 0) return ki_fail(err, KITH_EINVAL, "there is no training image to show");
    *ret_n = n;
    return KITH_OK;
}

kith_status ki_views_picture(const ki_views *v, ki_image *ret, kith_error *err) {
    painter p = {.views = v, .show = show_in_picture, .picture = ret};
    kith_status status = KITH_OK;
    int64_t n = 0;
    KI_TRY(count_training(v, &n, err));
    const int64_t n_shown = v->n_images < n ? v->n_images : n;
    KI_TRY(ki_image_shape(ret, GAP + (2 + v->n_draws) * (TILE + GAP), GAP + n_shown * (TILE + GAP), 3, err));
    memset(ret->data, 0xcc, (size_t)ret->w * (size_t)ret->h * 3);
    for (; p.row < n_shown && status != KITH_ENOMEM; p.row++) {
        kith_error why = {0};
        p.err = &why;
        p.column = 0;
        status = put_photo(&p, nth_training_item(v->set, p.row * n / n_shown));
        if (status == KITH_ENOMEM && err) *err = why;
    }
    painter_release(&p);
    return status == KITH_ENOMEM ? status : KITH_OK;
}

kith_status ki_views_make(const ki_views *v, ki_buffer *to, kith_error *err) {
    painter p = {.views = v, .show = show_on_page, .to = to, .err = err};
    kith_status status = KITH_OK;
    int64_t n = 0;
    KI_TRY(count_training(v, &n, err));
    put_head(v, to);
    const int64_t n_shown = v->n_images < n ? v->n_images : n;
    for (int64_t k = 0; k < n_shown; k++) {
        const int64_t item = nth_training_item(v->set, k * n / n_shown);
        kith_error why = {0};
        ki_buffer_put(to, "<section>\n<h2>");
        ki_buffer_escaped(to, v->set->item[item].path);
        ki_buffer_put(to, "</h2>\n<div class=\"views\">\n");
        p.err = &why;
        status = put_photo(&p, item);
        if (status == KITH_ENOMEM || to->status != KITH_OK) {
            if (err) *err = why;
            goto done;
        }
        if (status != KITH_OK) {
            ki_buffer_put(to, "<p class=\"note\">Left out: ");
            ki_buffer_escaped(to, why.message);
            ki_buffer_put(to, "</p>\n");
        }
        ki_buffer_put(to, "</div>\n</section>\n");
    }
    ki_buffer_put(to, "</main>\n</body>\n</html>\n");
    status = to->status;
done:
    painter_release(&p);
    return status;
}
