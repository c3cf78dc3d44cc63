/* Shortcuts: do the borders of the pictures give their classes away?
 *
 * If all wolves stand in snow, a network may learn snow. So the middle of some pictures is painted over (the inner 60 % of both
 * sides, with one grey for all), the rest is embedded, and each border looks for the nearest other one: is it of the same class? The same is
 * asked of whole pictures, and chance is the part of all other pictures that are of the same class. Where borders tell nearly as
 * much as pictures do, either the surroundings give the classes away, or the things fill their pictures; people can see which. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/log.h"
#include "base/parallel.h"
#include "base/text.h"
#include "data/transform/transform.h"
#include "doctor/doctor.h"

enum { OF_A_CLASS = 20, LEAST_OF_A_CLASS = 5, LEAST_IMAGES = 40, ROUND = 64, N_NAMED = 4, N_SHOWN = 3 };
#define PAINTED 0.6      /* of each side */
#define LEAST_TOLD 0.2   /* of what chance leaves open */
#define LEAST_OF_CLASS 3 /* times chance, for a class to be named */

static const uint8_t paint[3] = {124, 116, 104};

typedef struct sample {
    const ki_doctor *doctor;
    const ki_doctor_rows *rows;
    int64_t *row;   /* [n] of rows, rising by class */
    int64_t *label; /* [n] */
    int64_t n, n_classes;
    int32_t side;      /* of the painted pictures */
    ki_image *image;   /* [ROUND] */
    bool *is_there;    /* [n] */
    kith_array border; /* [n, dim] */
    kith_array whole;  /* [n, dim of rows] */
    kith_neighbor *near;
    bool *is_right; /* [n]: of borders */
} sample;

static void sample_release(sample *s) {
    for (int i = 0; s->image && i < ROUND; i++) ki_image_release(&s->image[i]);
    ki_free(s->image);
    ki_free(s->row);
    ki_free(s->label);
    ki_free(s->is_there);
    ki_free(s->near);
    ki_free(s->is_right);
    kith_array_release(&s->border);
    kith_array_release(&s->whole);
}

int64_t ki_doctor_shortcut_room(const ki_doctor *d) {
    const kith_doctor_options *o = d->options;
    if (o->no_shortcut || o->no_vectors || d->set->rows || (o->vectors && !o->model)) return 0;
    return o->shortcut_images < d->n_items ? o->shortcut_images : d->n_items;
}

/* ---- which images ---- */

/* Up to OF_A_CLASS images of each of some classes, evenly spaced in both. */
static kith_status draw(sample *s, kith_error *err) {
    kith_status status;
    const ki_doctor_rows *r = s->rows;
    const int64_t n_labels = (int64_t)s->doctor->set->n_classes,
                  most = s->doctor->options->shortcut_images / OF_A_CLASS;
    int64_t *seen = NULL, *place = NULL, n_fit = 0;
    KI_CHECK(ki_zalloc_or(&seen, (size_t)n_labels, sizeof *seen, "classes", err));
    KI_CHECK(ki_alloc_or(&place, (size_t)n_labels, sizeof *place, "classes", err));
    for (int64_t c = 0; c < n_labels; c++) place[c] = r->count[c] >= LEAST_OF_A_CLASS ? n_fit++ : -1;
    const int64_t n_taken = n_fit < most ? n_fit : most;
    KI_CHECK(ki_alloc_or(&s->row, (size_t)(n_taken * OF_A_CLASS), sizeof *s->row, "a sample", err));
    for (int64_t i = 0; i < r->n && n_taken >= 2; i++) {
        const int64_t c = r->label[i];
        if (c < 0 || place[c] < 0) continue;
        /* The class is taken if a new one of n_taken begins at its place, and so for the image in its class. */
        const int64_t p = place[c], of = r->count[c], at = seen[c]++,
                      each = of < OF_A_CLASS ? of : OF_A_CLASS;
        if ((p + 1) * n_taken / n_fit == p * n_taken / n_fit) continue;
        if ((at + 1) * each / of != at * each / of) s->row[s->n++] = i;
    }
    s->n_classes = n_taken;
    KI_CHECK(ki_alloc_or(&s->label, (size_t)s->n, sizeof *s->label, "a sample", err));
    for (int64_t i = 0; i < s->n; i++) s->label[i] = r->label[s->row[i]];
done:
    ki_free(seen);
    ki_free(place);
    return status;
}

/* ---- their borders ---- */

static void paint_over(ki_image *image) {
    const int32_t begin = (int32_t)(image->w * (1 - PAINTED) / 2), end = image->w - begin;
    for (int32_t y = begin; y < end; y++) {
        for (int32_t x = begin; x < end; x++) {
            uint8_t *p = image->data + ((int64_t)y * image->w + x) * image->channels;
            for (int k = 0; k < image->channels; k++) p[k] = paint[image->channels == 3 ? k : 1];
        }
    }
}

typedef struct reading {
    sample *sample;
    int64_t first;
    kith_status *status; /* [ROUND] */
} reading;

static kith_status read_one(const sample *s, int64_t i, ki_bytes *file, ki_image *full, ki_resampler *scratch,
                            ki_image *to) {
    const int64_t item = s->rows->item[s->row[i]];
    const ki_decode how = {.least_side = s->side, .background = {255, 255, 255}};
    KI_TRY(ki_dataset_pixels(s->doctor->set, item, &how, file, full, NULL));
    const ki_rect all = {0, 0, full->w, full->h}, window = {0, 0, s->side, s->side};
    KI_TRY(ki_resample(scratch, full, all, s->side, s->side, window, KITH_FILTER_BILINEAR, to, NULL));
    paint_over(to);
    return KITH_OK;
}

static void read_some(void *context, int64_t begin, int64_t end) {
    const reading *r = context;
    ki_bytes file = {0};
    ki_image full = {0};
    ki_resampler scratch = {0};
    for (int64_t i = begin; i < end; i++)
        r->status[i] = read_one(r->sample, r->first + i, &file, &full, &scratch, &r->sample->image[i]);
    ki_bytes_release(&file);
    ki_image_release(&full);
    ki_resampler_release(&scratch);
}

/* The borders of one round as vectors, into the rows from `first` on. What cannot be read any more is passed over. */
static kith_status embed_round(sample *s, kith_model *model, int64_t first, int64_t n, kith_error *err) {
    kith_pixels pixels[ROUND];
    int64_t from[ROUND], n_read = 0;
    kith_status status = KITH_OK, read[ROUND];
    char resize[32];
    float *values = NULL;
    const int64_t dim = s->border.dim[1];
    KITH_OPTIONS(kith_embed_options, how);
    ki_snprintf(resize, sizeof resize, "squash%d", s->side);
    how.resize = resize;
    reading r = {s, first, read};
    ki_parallel_for(n, 1, read_some, &r);
    for (int64_t i = 0; i < n; i++) {
        if (read[i] == KITH_ENOMEM)
            return ki_fail_memory(err, (size_t)s->side * (size_t)s->side, "a picture");
        s->is_there[first + i] = read[i] == KITH_OK;
        if (read[i] != KITH_OK) continue;
        const ki_image *image = &s->image[i];
        pixels[n_read] = (kith_pixels){image->w, image->h, image->channels, image->data};
        from[n_read++] = first + i;
    }
    KI_CHECK(ki_alloc_or(&values, (size_t)n_read, (size_t)dim * sizeof *values, "vectors", err));
    KI_CHECK(kith_model_embed_pixels(model, pixels, n_read, &how, values, err));
    for (int64_t i = 0; i < n_read; i++)
        memcpy((float *)s->border.data + from[i] * dim, values + i * dim, (size_t)dim * sizeof *values);
done:
    ki_free(values);
    return status;
}

static kith_status embed(sample *s, kith_model *model, kith_error *err) {
    ki_doctor *d = (ki_doctor *)(uintptr_t)s->doctor;
    KI_TRY(kith_array_init(KITH_F32, 2, (int64_t[]){s->n, kith_model_dim(model)}, &s->border, err));
    KI_TRY(ki_zalloc_or(&s->image, ROUND, sizeof *s->image, "pictures", err));
    KI_TRY(ki_zalloc_or(&s->is_there, (size_t)s->n, sizeof *s->is_there, "a sample", err));
    for (int64_t first = 0; first < s->n; first += ROUND) {
        const int64_t n = s->n - first < ROUND ? s->n - first : ROUND;
        KI_TRY(embed_round(s, model, first, n, err));
        if (ki_doctor_tell(d, first + n, s->n) != 0)
            return ki_fail(err, KITH_ECANCELED, "stopped on request");
    }
    return KITH_OK;
}

/* Rows of pictures that could not be read any more are taken out. */
static kith_status close_up(sample *s, kith_error *err) {
    const int64_t dim = s->rows->dim, dim_border = s->border.dim[1];
    int64_t at = 0;
    KI_TRY(kith_array_init(KITH_F32, 2, (int64_t[]){s->n, dim}, &s->whole, err));
    for (int64_t i = 0; i < s->n; i++) {
        if (!s->is_there[i]) continue;
        memcpy((float *)s->whole.data + at * dim, (const float *)s->rows->unit.data + s->row[i] * dim,
               (size_t)dim * sizeof(float));
        memmove((float *)s->border.data + at * dim_border, (const float *)s->border.data + i * dim_border,
                (size_t)dim_border * sizeof(float));
        s->row[at] = s->row[i];
        s->label[at++] = s->label[i];
    }
    s->n = s->whole.dim[0] = s->border.dim[0] = at;
    return KITH_OK;
}

/* ---- what they tell ---- */

/* The part of the rows whose nearest other row is of their class. */
static kith_status tell_part(sample *s, const kith_array *rows, double *ret, kith_error *err) {
    kith_gallery *gallery = NULL;
    int64_t n_right = 0;
    KITH_OPTIONS(kith_knn_options, how);
    if (s->doctor->options->model) how.device = s->doctor->options->model->device;
    KI_TRY(kith_gallery_new(rows, &how, &gallery, err));
    const kith_status status = kith_gallery_self(gallery, 1, s->near, err);
    kith_gallery_free(gallery);
    KI_TRY(status);
    for (int64_t i = 0; i < s->n; i++) {
        s->is_right[i] = s->near[i].index >= 0 && s->label[s->near[i].index] == s->label[i];
        n_right += s->is_right[i];
    }
    *ret = (double)n_right / (double)s->n;
    return KITH_OK;
}

/* Wilson's 95 % interval of a part of n. */
static void interval_of(double part, int64_t n, double ret[2]) {
    const double z = 1.96, m = (double)n, middle = (part + z * z / (2 * m)) / (1 + z * z / m);
    const double half = z / (1 + z * z / m) * sqrt(part * (1 - part) / m + z * z / (4 * m * m));
    ret[0] = middle - half;
    ret[1] = middle + half;
}

typedef struct class_part {
    int64_t label, n, n_right;
    double part;
} class_part;

static int by_part(const void *a, const void *b) {
    const class_part *x = a, *y = b;
    if (x->part != y->part) return x->part > y->part ? -1 : 1;
    return (x->label > y->label) - (x->label < y->label);
}

/* The classes that borders tell best, and up to three images of each. */
static kith_status name_classes(const sample *s, double chance, class_part *part, ki_buffer *names) {
    const int64_t n_labels = (int64_t)s->doctor->set->n_classes;
    for (int64_t c = 0; c < n_labels; c++) part[c] = (class_part){.label = c};
    for (int64_t i = 0; i < s->n; i++) {
        part[s->label[i]].n++;
        part[s->label[i]].n_right += s->is_right[i];
    }
    for (int64_t c = 0; c < n_labels; c++)
        part[c].part = part[c].n > 0 ? (double)part[c].n_right / (double)part[c].n : 0;
    qsort(part, (size_t)n_labels, sizeof *part, by_part);
    for (int64_t c = 0; c < n_labels && c < N_NAMED; c++) {
        if (!(part[c].part > LEAST_OF_CLASS * chance) && c > 0) break;
        ki_buffer_put(names, "%s%s (%.0f %%)", c ? ", " : "", s->doctor->set->class_[part[c].label].name,
                      100 * part[c].part);
    }
    ki_buffer_add(names, "", 1);
    return names->status;
}

static kith_status add_items(ki_doctor *d, const sample *s, const class_part *part, kith_error *err) {
    for (int64_t c = 0; c < (int64_t)d->set->n_classes && c < N_NAMED; c++) {
        int n = 0;
        for (int64_t i = 0; i < s->n && n < N_SHOWN; i++) {
            if (s->label[i] != part[c].label || !s->is_right[i]) continue;
            KI_TRY(ki_doctor_item(d, s->rows->item[s->row[i]], false, err));
            n++;
        }
    }
    return KITH_OK;
}

static kith_status judge(ki_doctor *d, sample *s, kith_error *err) {
    kith_status status;
    ki_buffer names = {.err = err};
    class_part *part = NULL;
    double whole = 0, border = 0, chance = 0, interval[2];
    KI_CHECK(ki_alloc_or(&s->near, (size_t)s->n, sizeof *s->near, "neighbours", err));
    KI_CHECK(ki_alloc_or(&s->is_right, (size_t)s->n, sizeof *s->is_right, "neighbours", err));
    KI_CHECK(tell_part(s, &s->whole, &whole, err));
    KI_CHECK(tell_part(s, &s->border, &border, err));
    KI_CHECK(ki_alloc_or(&part, d->set->n_classes, sizeof *part, "classes", err));
    for (size_t c = 0; c < d->set->n_classes; c++) part[c].n = 0;
    for (int64_t i = 0; i < s->n; i++) part[s->label[i]].n++;
    for (size_t c = 0; c < d->set->n_classes; c++)
        chance += (double)part[c].n * (double)(part[c].n - 1) / ((double)s->n * (double)(s->n - 1));
    interval_of(border, s->n, interval);
    ki_log(KITH_LOG_DEBUG, "doctor: of %lld pictures, borders tell %.3f, whole pictures %.3f, chance %.3f",
           (long long)s->n, border, whole, chance);
    if (interval[0] < chance + LEAST_TOLD * (1 - chance) ||
        interval[0] < chance + d->options->shortcut * (whole - chance))
        goto done;
    KI_CHECK(name_classes(s, chance, part, &names));
    KI_CHECK(ki_doctor_add(
        d, KITH_FINDING_SHORTCUT, border, -1, err,
        "the borders of the pictures alone tell the class of %.0f %% of them (%.0f to %.0f; "
        "whole pictures %.0f %%, chance %.1f %%), best for %.600s",
        100 * border, 100 * interval[0], 100 * interval[1], 100 * whole, 100 * chance, names.data));
    status = add_items(d, s, part, err);
done:
    ki_buffer_release(&names);
    ki_free(part);
    return status;
}

kith_status ki_doctor_shortcut(ki_doctor *d, const ki_doctor_rows *rows, kith_model *model, kith_error *err) {
    kith_status status;
    sample s = {.doctor = d, .rows = rows};
    kith_model_info info;
    kith_model_info_get(model, &info);
    if (kith_model_takes_features(model)) return KITH_OK;
    s.side = (int32_t)(info.height > info.width ? info.height : info.width);
    KI_CHECK(draw(&s, err));
    if (s.n < LEAST_IMAGES) goto done;
    KI_CHECK(embed(&s, model, err));
    KI_CHECK(close_up(&s, err));
    if (s.n >= LEAST_IMAGES) status = judge(d, &s, err);
done:
    sample_release(&s);
    return status;
}
