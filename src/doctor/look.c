/* Each image by itself: files that cannot be decoded, images with few pixels, images that are very long. An image is decoded
 * as small as its format allows: a damaged file is still noticed, and the sizes are those of the file. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "doctor/doctor.h"
#include "search/signature.h"

enum { ROUND = 512 };

typedef struct sight {
    int32_t w, h;     /* 0: it cannot be read */
    double sharpness; /* NaN: cannot be told */
    char *why;        /* why not; NULL also when there was no memory for it */
    kith_status status;
} sight;

/* Memory of one thread. */
typedef struct scratch {
    ki_bytes file;
    ki_image image, small[2];
    ki_resampler resampler;
    float *row;
} scratch;

typedef struct portion {
    const kith_dataset *set;
    int64_t first;
    bool tells_blurred;
    sight *sight; /* [ROUND] */
} portion;

static kith_status look_at(const portion *r, int64_t item, scratch *own, sight *ret, kith_error *err) {
    ret->sharpness = NAN;
    if (r->set->rows) return ki_dataset_row(r->set, item, own->row, err);
    const ki_decode how = {.least_side = 2 * KI_SIGNATURE_LEAST_SIDE};
    ki_image *image = &own->image;
    KI_TRY(ki_dataset_pixels(r->set, item, &how, &own->file, image, err));
    const bool is_whole = r->set->item[item].pixels >= 0;
    ret->w = is_whole ? image->w : image->full_w;
    ret->h = is_whole ? image->h : image->full_h;
    if (!r->tells_blurred) return KITH_OK;
    return ki_doctor_sharpness(image, &own->resampler, own->small, &ret->sharpness, err);
}

static void look_at_some(void *context, int64_t begin, int64_t end) {
    const portion *r = context;
    const size_t dim = r->set->rows ? (size_t)ki_npy_rows_dim(r->set->rows) : 0;
    scratch own = {0};
    kith_error err;
    const kith_status room = ki_alloc_or(&own.row, dim, sizeof *own.row, "features", &err);
    for (int64_t i = begin; i < end; i++) {
        sight *s = &r->sight[i];
        s->status = room == KITH_OK ? look_at(r, r->first + i, &own, s, &err) : room;
        if (s->status != KITH_OK) s->why = ki_strdup(err.message);
    }
    ki_free(own.row);
    ki_bytes_release(&own.file);
    ki_image_release(&own.image);
    ki_image_release(&own.small[0]);
    ki_image_release(&own.small[1]);
    ki_resampler_release(&own.resampler);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* That of the median image; 0 if no image has one. */
static kith_status median_sharpness(const ki_doctor *d, const sight *sights, double *ret, kith_error *err) {
    double *sorted = NULL;
    int64_t n = 0;
    KI_TRY(ki_alloc_or(&sorted, (size_t)d->n_items, sizeof *sorted, "images", err));
    for (int64_t i = 0; i < d->n_items; i++) {
        if (sights[i].status == KITH_OK && !isnan(sights[i].sharpness)) sorted[n++] = sights[i].sharpness;
    }
    if (n > 0) qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    *ret = n > 0 ? sorted[n / 2] : 0;
    ki_free(sorted);
    return KITH_OK;
}

static kith_status say_blurred(ki_doctor *d, const sight *sights, kith_error *err) {
    double median = 0;
    KI_TRY(median_sharpness(d, sights, &median, err));
    for (int64_t i = 0; i < d->n_items; i++) {
        const double sharpness = sights[i].sharpness;
        if (sights[i].status != KITH_OK || !(sharpness < d->options->blurred) || !(2 * sharpness < median))
            continue;
        KI_TRY(ki_doctor_add(d, KITH_FINDING_BLURRED, sharpness, -1, err,
                             "%s is blurred: its sharpness is %.2f, and %.2f in the middle of the set",
                             ki_dataset_item_name(d->set, (size_t)i), sharpness, median));
        KI_TRY(ki_doctor_item(d, i, false, err));
    }
    return KITH_OK;
}

static kith_status say(ki_doctor *d, int64_t item, const sight *s, bool tells_tiny, kith_error *err) {
    const char *name = ki_dataset_item_name(d->set, (size_t)item);
    if (s->status == KITH_ENOMEM || (s->status != KITH_OK && !s->why))
        return ki_fail(err, KITH_ENOMEM, "no memory to read %s", name);
    if (s->status != KITH_OK) {
        KI_TRY(ki_doctor_add(d, KITH_FINDING_UNREADABLE, 0, -1, err, "%s", s->why));
        return ki_doctor_item(d, item, true, err);
    }
    const int32_t shorter = s->w < s->h ? s->w : s->h, longer = s->w < s->h ? s->h : s->w;
    if (tells_tiny && shorter < d->options->least_side) {
        KI_TRY(ki_doctor_add(d, KITH_FINDING_TINY, shorter, -1, err, "%s has only %d x %d pixels", name, s->w,
                             s->h));
        KI_TRY(ki_doctor_item(d, item, false, err));
    }
    const double ratio = shorter > 0 ? (double)longer / shorter : 1;
    if (ratio <= d->options->most_ratio) return KITH_OK;
    KI_TRY(ki_doctor_add(d, KITH_FINDING_EXTREME, ratio, -1, err,
                         "%s is %.3g times as %s as it is %s: %d x %d pixels", name, ratio,
                         s->w > s->h ? "wide" : "high", s->w > s->h ? "high" : "wide", s->w, s->h));
    return ki_doctor_item(d, item, false, err);
}

/* Of a set of small drawings one line says that they are small, not one a drawing. */
static bool are_mostly_tiny(const ki_doctor *d, const sight *sights, int64_t *ret_n) {
    int64_t n_tiny = 0, n_read = 0;
    for (int64_t i = 0; i < d->n_items; i++) {
        const int32_t shorter = sights[i].w < sights[i].h ? sights[i].w : sights[i].h;
        n_read += sights[i].status == KITH_OK;
        n_tiny += sights[i].status == KITH_OK && shorter < d->options->least_side;
    }
    *ret_n = n_tiny;
    return 2 * n_tiny > n_read;
}

static kith_status say_all(ki_doctor *d, const sight *sights, kith_error *err) {
    int64_t n_tiny = 0;
    const bool tells_tiny = !are_mostly_tiny(d, sights, &n_tiny) && !d->set->rows;
    if (!tells_tiny && !d->set->rows)
        KI_TRY(ki_doctor_add(d, KITH_FINDING_TINY, 0, -1, err,
                             "%lld of %lld images have a side under %lld pixels", (long long)n_tiny,
                             (long long)d->n_items, (long long)d->options->least_side));
    for (int64_t i = 0; i < d->n_items; i++) {
        if (d->set->rows && sights[i].status == KITH_OK) continue;
        KI_TRY(say(d, i, &sights[i], tells_tiny, err));
    }
    return d->set->rows || d->options->blurred == 0 ? KITH_OK : say_blurred(d, sights, err);
}

kith_status ki_doctor_look(ki_doctor *d, kith_error *err) {
    kith_status status = KITH_OK;
    sight *sights = NULL;
    KI_TRY(ki_zalloc_or(&sights, (size_t)d->n_items, sizeof *sights, "images", err));
    for (int64_t first = 0; first < d->n_items; first += ROUND) {
        const int64_t n = d->n_items - first < ROUND ? d->n_items - first : ROUND;
        portion r = {d->set, first, d->options->blurred > 0, sights + first};
        ki_parallel_for(n, 8, look_at_some, &r);
        if (ki_doctor_tell(d, first + n, d->n_items) == 0) continue;
        status = ki_fail(err, KITH_ECANCELED, "stopped on request");
        goto done;
    }
    status = say_all(d, sights, err);
done:
    for (int64_t i = 0; i < d->n_items; i++) ki_free(sights[i].why);
    ki_free(sights);
    return status;
}
