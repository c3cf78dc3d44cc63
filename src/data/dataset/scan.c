/* Looks at every image of a set: sizes, and files that cannot be read. The work is done in rounds, so that
 * the calling thread can report progress. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/parallel.h"
#include "data/dataset/dataset.h"

enum { ROUND = 512 };

typedef struct finding {
    int32_t w, h; /* 0: unreadable */
    char *why;    /* also NULL when there was no memory for it */
    kith_status status;
} finding;

typedef struct scan {
    const kith_dataset *set;
    bool decode;
    int64_t first;
    finding *found; /* of this round */
} scan;

/* row: room for one of a set of features. */
static kith_status look_at(const scan *s, int64_t i, ki_bytes *bytes, ki_image *image, float *row,
                           finding *ret, kith_error *err) {
    const kith_dataset *set = s->set;
    if (set->rows) {
        ret->w = (int32_t)ki_npy_rows_dim(set->rows);
        ret->h = 1;
        return s->decode ? ki_dataset_row(set, i, row, err) : KITH_OK;
    }
    if (s->decode || set->item[i].pixels >= 0) {
        const ki_decode how = {0};
        KI_TRY(ki_dataset_pixels(set, i, &how, bytes, image, err));
        ret->w = image->w;
        ret->h = image->h;
        return KITH_OK;
    }
    KI_TRY(ki_bytes_read(bytes, set->item[i].path, err));
    const kith_status status = ki_image_probe(bytes->data, bytes->n, &ret->w, &ret->h, err);
    return status == KITH_OK ? status : ki_prefix(err, status, "%s", set->item[i].path);
}

static void look_at_range(void *context, int64_t begin, int64_t end) {
    const scan *s = context;
    ki_bytes bytes = {0};
    ki_image image = {0};
    float *row = NULL;
    kith_error err;
    const size_t dim = s->set->rows ? (size_t)ki_npy_rows_dim(s->set->rows) : 0;
    const kith_status room = dim ? ki_alloc_or(&row, dim, sizeof *row, "features", &err) : KITH_OK;
    for (int64_t i = begin; i < end; i++) {
        finding *f = &s->found[i];
        f->status = room == KITH_OK ? look_at(s, s->first + i, &bytes, &image, row, f, &err) : room;
        if (f->status != KITH_OK) {
            f->w = f->h = 0;
            f->why = ki_strdup(err.message);
        }
    }
    ki_free(row);
    ki_bytes_release(&bytes);
    ki_image_release(&image);
}

static int compare_sizes(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void order(int32_t *sizes, int64_t n, int32_t ret[3]) {
    if (n == 0) return;
    qsort(sizes, (size_t)n, sizeof *sizes, compare_sizes);
    ret[0] = sizes[0];
    ret[1] = sizes[(n - 1) / 2];
    ret[2] = sizes[n - 1];
}

/* Add the round's findings to the result. */
static kith_status collect(const scan *s, int64_t n, int32_t *w, int32_t *h, kith_scan *out,
                           kith_error *err) {
    for (int64_t i = 0; i < n; i++) {
        finding *f = &s->found[i];
        if (f->status == KITH_ENOMEM)
            return ki_fail(err, KITH_ENOMEM, "no memory to read %s", s->set->item[s->first + i].path);
        if (f->status == KITH_OK) {
            w[out->n_read] = f->w;
            h[out->n_read++] = f->h;
            continue;
        }
        out->n_bad++;
        if (out->n_named == KITH_SCAN_NAMED) continue;
        char *path = ki_strdup(s->set->item[s->first + i].path);
        if (!path || !f->why) {
            ki_free(path);
            return ki_fail_memory(err, 0, "the list of unreadable files");
        }
        out->bad[out->n_named] = path;
        out->why[out->n_named++] = f->why;
        f->why = NULL;
    }
    return KITH_OK;
}

/* A tar file that is damaged or missing is one bad file, however many images it held. */
static kith_status collect_shards(const ki_unread *unread, kith_scan *out, kith_error *err) {
    out->n_bad += unread->n_of[KI_UNREAD_SHARD];
    for (int64_t i = 0; i < ki_unread_n_shards(unread) && out->n_named < KITH_SCAN_NAMED; i++) {
        char *path = ki_strdup(unread->shard[i].path), *why = ki_strdup(unread->shard[i].why);
        if (!path || !why) {
            ki_free(path);
            ki_free(why);
            return ki_fail_memory(err, 0, "the list of unreadable files");
        }
        out->bad[out->n_named] = path;
        out->why[out->n_named++] = why;
    }
    return KITH_OK;
}

static void release_round(finding *found, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        ki_free(found[i].why);
        found[i] = (finding){0};
    }
}

kith_status kith_dataset_scan(const kith_dataset *set, bool decode, kith_progress_fn progress, void *user,
                              kith_scan *ret_scan, kith_error *err) {
    KI_NEED(err, set, ret_scan);
    kith_status status = KITH_OK;
    kith_scan out = {0};
    int32_t *w = NULL, *h = NULL;
    scan s = {.set = set, .decode = decode};
    const int64_t n = (int64_t)set->n_items;
    KI_CHECK(ki_alloc_or(&w, set->n_items, sizeof *w, "image sizes", err));
    KI_CHECK(ki_alloc_or(&h, set->n_items, sizeof *h, "image sizes", err));
    KI_CHECK(ki_zalloc_or(&s.found, ROUND, sizeof *s.found, "findings", err));
    KI_CHECK(ki_zalloc_or(&out.bad, KITH_SCAN_NAMED, sizeof *out.bad, "findings", err));
    KI_CHECK(ki_zalloc_or(&out.why, KITH_SCAN_NAMED, sizeof *out.why, "findings", err));
    for (; s.first < n; s.first += ROUND) {
        const int64_t m = n - s.first < ROUND ? n - s.first : ROUND;
        ki_parallel_for(m, 8, look_at_range, &s);
        status = collect(&s, m, w, h, &out, err);
        release_round(s.found, m);
        if (status != KITH_OK) goto done;
        if (progress && progress(user, s.first + m, n) != 0) {
            status = ki_fail(err, KITH_ECANCELED, "stopped after %jd of %jd images", (intmax_t)(s.first + m),
                             (intmax_t)n);
            goto done;
        }
    }
    KI_CHECK(collect_shards(&set->unread, &out, err));
    order(w, out.n_read, out.width);
    order(h, out.n_read, out.height);
    *ret_scan = out;
    out = (kith_scan){0};
done:
    kith_scan_release(&out);
    ki_free(w);
    ki_free(h);
    ki_free(s.found);
    return status;
}

void kith_scan_release(kith_scan *found) {
    if (!found) return;
    for (int64_t i = 0; i < found->n_named; i++) {
        ki_free(found->bad[i]);
        ki_free(found->why[i]);
    }
    ki_free(found->bad);
    ki_free(found->why);
    *found = (kith_scan){0};
}
