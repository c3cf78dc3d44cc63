/* Heat maps over pictures. */
#include "report/heat.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "report/thumbnail.h"

enum { SIDE = 480, GAP = 12 }; /* of a picture in a row of them, and between two */

/* From 0, the picture alone, to 1, mostly colour. */
static const double STRONGEST = 0.75;

/* Between the positions around (row, column), which are whole numbers at the middle of a position. */
static double share_at(const kith_explanation *why, const double *share, double row, double column) {
    const double r = fmin(fmax(row, 0), (double)(why->rows - 1)),
                 c = fmin(fmax(column, 0), (double)(why->columns - 1));
    const int64_t r0 = (int64_t)r, c0 = (int64_t)c;
    const int64_t r1 = r0 + 1 < why->rows ? r0 + 1 : r0, c1 = c0 + 1 < why->columns ? c0 + 1 : c0;
    const double down = r - (double)r0, across = c - (double)c0;
    const double *upper = share + r0 * why->columns, *lower = share + r1 * why->columns;
    return (1 - down) * ((1 - across) * upper[c0] + across * upper[c1]) +
           down * ((1 - across) * lower[c0] + across * lower[c1]);
}

/* How strong a share is: from -1 to 1. */
static void colour(double strength, double grey, uint8_t *ret_rgb) {
    const double part = STRONGEST * fabs(strength);
    const double warm[3] = {255, 30 + 200 * strength, 0}, cold[3] = {30, 90, 255};
    for (int c = 0; c < 3; c++)
        ret_rgb[c] = (uint8_t)((1 - part) * grey + part * (strength > 0 ? warm[c] : cold[c]) + 0.5);
}

static double grey_of(const ki_image *image, int64_t i) {
    const uint8_t *p = image->data + i * image->channels;
    return image->channels == 1 ? p[0] : 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];
}

kith_status ki_heat_lay(const ki_image *picture, const kith_explanation *why, const kith_shares *shares,
                        ki_image *ret_image, kith_error *err) {
    double largest = 0;
    for (int64_t i = 0; i < why->rows * why->columns; i++) largest = fmax(largest, fabs(shares->share[i]));
    KI_TRY(ki_image_shape(ret_image, picture->w, picture->h, 3, err));
    for (int64_t y = 0; y < picture->h; y++) {
        const double full_y = ((double)y + 0.5) * (double)shares->height / picture->h;
        const double v = (full_y - shares->view[1]) / shares->view[3];
        for (int64_t x = 0; x < picture->w; x++) {
            const int64_t i = y * picture->w + x;
            const double full_x = ((double)x + 0.5) * (double)shares->width / picture->w;
            const double u = (full_x - shares->view[0]) / shares->view[2], grey = grey_of(picture, i);
            if (u < 0 || u > 1 || v < 0 || v > 1) {
                memset(ret_image->data + 3 * i, (int)(0.35 * grey + 0.65 * 255), 3);
                continue;
            }
            const double share =
                share_at(why, shares->share, v * (double)why->rows - 0.5, u * (double)why->columns - 0.5);
            colour(largest > 0 ? share / largest : 0, grey, ret_image->data + 3 * i);
        }
    }
    return KITH_OK;
}

/* The heat map of one image, made from a small picture of it. */
static kith_status draw_one(ki_thumbnails *t, const kith_query_image *image, const kith_explanation *why,
                            const kith_shares *shares, ki_image *ret_image, kith_error *err) {
    const ki_image *small = NULL;
    if (image->pixels) {
        const kith_pixels *p = image->pixels;
        const ki_image given = {
            .w = p->width, .h = p->height, .channels = p->channels, .data = (uint8_t *)(uintptr_t)p->data};
        KI_TRY(ki_resample_fit(&t->scratch.resampler, &given, SIDE, &t->base, err));
        return ki_heat_lay(&t->base, why, shares, ret_image, err);
    }
    const kith_status status =
        image->path ? ki_thumbnail_fit(t, image->path, SIDE, &small, err)
                    : ki_thumbnail_fit_bytes(t, image->bytes, image->n_bytes, SIDE, &small, err);
    if (status != KITH_OK) return status;
    return ki_heat_lay(small, why, shares, ret_image, err);
}

/* Side by side on white, each in the middle of the height. */
static kith_status join(const ki_image *pictures, int64_t n, ki_image *to, kith_error *err) {
    int64_t w = GAP * (n - 1), h = 0, left = 0;
    for (int64_t i = 0; i < n; i++) {
        w += pictures[i].w;
        if (h < pictures[i].h) h = pictures[i].h;
    }
    KI_TRY(ki_image_shape(to, w, h, 3, err));
    memset(to->data, 255, (size_t)(w * h * 3));
    for (int64_t i = 0; i < n; i++) {
        const ki_image *p = &pictures[i];
        const int64_t top = (h - p->h) / 2, bytes = (int64_t)p->w * 3;
        for (int64_t y = 0; y < p->h; y++)
            memcpy(to->data + ((top + y) * w + left) * 3, p->data + y * bytes, (size_t)bytes);
        left += p->w + GAP;
    }
    return KITH_OK;
}

kith_status ki_heat_draw(const kith_explanation *why, const kith_query_image *query,
                         const kith_query_image *hit, ki_image *ret_image, kith_error *err) {
    kith_status status;
    ki_thumbnails thumbnails = {0};
    ki_image *picture = NULL;
    const int64_t n = why->n + 1;
    KI_CHECK(ki_zalloc_or(&picture, (size_t)n, sizeof *picture, "pictures", err));
    for (int64_t i = 0; i < why->n; i++)
        KI_CHECK(draw_one(&thumbnails, &query[i], why, &why->query[i], &picture[i], err));
    KI_CHECK(draw_one(&thumbnails, hit, why, &why->hit, &picture[why->n], err));
    KI_CHECK(join(picture, n, ret_image, err));
done:
    for (int64_t i = 0; picture && i < n; i++) ki_image_release(&picture[i]);
    ki_free(picture);
    ki_thumbnails_release(&thumbnails);
    return status;
}
