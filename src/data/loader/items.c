/* Reading the items of a batch: images through the cache and the transform, rows of features together; and what is done about
 * those that cannot be read. */
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "data/loader/inside.h"

/* One more, mutex held; too many are an error. */
static kith_status count_bad(ki_loader *l, const kith_error *why, kith_error *err) {
    kith_status status = KITH_OK;
    if (l->n_bad < KI_MOST_BAD_NAMED) l->bad[l->n_bad] = ki_strdup(why->message);
    l->n_bad++;
    if (l->settings.most_bad == 0) {
        status = ki_fail(err, KITH_EFORMAT, "%s", why->message); /* none is allowed: it says everything */
    } else if (l->settings.most_bad > 0 && l->n_bad > l->settings.most_bad) {
        status = ki_fail(err, KITH_EFORMAT,
                         "images that cannot be read: %jd, more than the %jd allowed; the last is %s",
                         (intmax_t)l->n_bad, (intmax_t)l->settings.most_bad, why->message);
        ki_hint(err, status, "look at the files with `kith data ROOT --check`");
    }
    return status;
}

/* Remember an unreadable image once. Mutex not held. */
static kith_status note_bad(ki_loader *l, int64_t item, kith_status found, const kith_error *why,
                            kith_error *err) {
    if (atomic_exchange(&l->bad_status[item], (unsigned char)found) != KITH_OK) return KITH_OK;
    if (ki_dataset_tell_once(l->set, item)) ki_log(KITH_LOG_WARNING, "left out: %s", why->message);
    pthread_mutex_lock(&l->mutex);
    kith_status status = ki_grow(&l->bad_here, &l->bad_here_capacity, l->n_bad_here + 1, sizeof *l->bad_here,
                                 "unreadable items", err);
    if (status == KITH_OK) {
        l->bad_here[l->n_bad_here++] = item;
        status = count_bad(l, why, err);
    }
    pthread_mutex_unlock(&l->mutex);
    return status;
}

kith_status ki_loader_add_bad(ki_loader *l, int64_t item, kith_error *err) {
    kith_error why = {0};
    if (atomic_exchange(&l->bad_status[item], KITH_EFORMAT) != KITH_OK) return KITH_OK;
    ki_fail(&why, KITH_EFORMAT, "%s: another rank could not read it", l->set->item[item].path);
    pthread_mutex_lock(&l->mutex);
    const kith_status status = count_bad(l, &why, err);
    pthread_mutex_unlock(&l->mutex);
    return status;
}

int64_t ki_loader_n_bad_here(ki_loader *l) {
    pthread_mutex_lock(&l->mutex);
    const int64_t n = (int64_t)l->n_bad_here;
    pthread_mutex_unlock(&l->mutex);
    return n;
}

int64_t ki_loader_bad_here(ki_loader *l, int64_t i) {
    pthread_mutex_lock(&l->mutex);
    const int64_t item = l->bad_here[i];
    pthread_mutex_unlock(&l->mutex);
    return item;
}

/* The prepared image of an item, from the cache or newly made. A fault of the file is returned as the status
 * of an unreadable image; only KITH_ENOMEM is a failure of the loader. */
static kith_status prepare(ki_loader *l, int64_t item, ki_loader_scratch *s, const ki_image **ret_base,
                           kith_error *err) {
    const bool is_kept = ki_cache_get(l->cache, item, &s->kept);
    atomic_fetch_add(is_kept ? &l->n_from_cache : &l->n_decoded, 1);
    if (is_kept) return *ret_base = &s->kept, KITH_OK;
    const ki_item *from = &l->set->item[item];
    const kith_transform *t = &l->settings.transform;
    ki_decode how = {.most_pixels = l->settings.most_pixels,
                     .least_side = ki_transform_least_side(t, from->has_box)};
    memcpy(how.background, t->background, sizeof how.background);
    KI_TRY(ki_dataset_pixels(l->set, item, &how, &s->bytes, &s->image, err));
    const double box[4] = {from->box[0], from->box[1], from->box[2], from->box[3]};
    const kith_status status =
        ki_transform_base(t, from->has_box ? box : NULL, &s->image, &s->transform, &s->base, err);
    if (status != KITH_OK) return ki_prefix(err, status, "%s", from->path);
    ki_cache_put(l->cache, item, &s->base);
    *ret_base = &s->base;
    return KITH_OK;
}

/* The next item of the same class after `item`, continuing at the beginning of the data set; `item` itself
 * when there is none. */
static int64_t next_of_class(const kith_dataset *set, int64_t item) {
    const int64_t n = (int64_t)set->n_items;
    const ki_item *own = &set->item[item];
    for (int64_t step = 1; step < n; step++) {
        const int64_t other = (item + step) % n;
        if (set->item[other].label == own->label && set->item[other].split == own->split) return other;
    }
    return item;
}

/* Random numbers of place i of a batch's part: the same for any number of workers. */
static ki_rng numbers_of(const ki_loader *l, const ki_loader_slot *to, int64_t i) {
    return ki_rng_at(l->settings.seed, KI_RNG_AUGMENT, to->batch.epoch,
                     (uint32_t)(to->first + to->begin + i));
}

static int64_t view_of(const ki_loader *l, const ki_loader_slot *to, int64_t i) {
    const int64_t n = l->settings.draws_views ? ki_dataset_n_views(l->set) : 1;
    ki_rng rng = numbers_of(l, to, i);
    return n > 1 ? (int64_t)ki_rng_below(&rng, (uint32_t)n) : 0;
}

/* What is read into a place of a batch. */
typedef struct place {
    int64_t view; /* of features */
    float *row;   /* where these go */
    ki_loader_scratch *scratch;
} place;

/* Of a set of features: the row, written where it goes; of images: prepared, in *ret_base. */
static kith_status fetch(ki_loader *l, int64_t item, const place *to, const ki_image **ret_base,
                         kith_error *err) {
    if (!l->set->rows) return prepare(l, item, to->scratch, ret_base, err);
    atomic_fetch_add(&l->n_decoded, 1);
    if (to->view > 0) return ki_dataset_view_row(l->set, item, to->view, to->row, err);
    return ki_dataset_row(l->set, item, to->row, err);
}

/* Fetch the item or, if it is bad, the readable one of its class that comes next. */
static kith_status fetch_any(ki_loader *l, int64_t wanted, const place *to, const ki_image **ret_base,
                             int64_t *ret_item, bool *ret_left_out, kith_error *err) {
    int64_t item = wanted;
    do {
        if (atomic_load(&l->bad_status[item]) == KITH_OK) {
            kith_error why = {0};
            const kith_status status = fetch(l, item, to, ret_base, &why);
            if (status == KITH_OK) return *ret_item = item, KITH_OK;
            /* All rows of features are in one file: if that cannot be read, nothing can replace them. */
            if (status == KITH_ENOMEM || (status == KITH_EIO && l->set->rows)) {
                if (err) *err = why;
                return status;
            }
            KI_TRY(note_bad(l, item, status, &why, err));
        }
        if (l->settings.bad == KI_BAD_SKIP) return *ret_left_out = true, KITH_OK;
        item = next_of_class(l->set, item);
    } while (item != wanted);
    ki_fail(err, KITH_EFORMAT, "no image of the class '%s' can be read",
            kith_dataset_class_name(l->set, l->set->item[wanted].label));
    return ki_hint(
        err, KITH_EFORMAT,
        "put them back, or leave the class out: `kith data ROOT --doctor -o LIST.csv` writes a list "
        "without what cannot be read, to train on");
}

static kith_status make_item(ki_loader *l, ki_loader_slot *to, int64_t i, ki_loader_scratch *s,
                             kith_error *err) {
    const ki_image *base = NULL;
    int64_t *item = &to->item[to->begin + i];
    const int64_t wanted = *item;
    char *dst = (char *)to->data + (size_t)i * to->item_bytes;
    const place at = {.view = view_of(l, to, i), .row = (float *)(void *)dst, .scratch = s};
    KI_TRY(fetch_any(l, wanted, &at, &base, item, &to->left_out[i], err));
    if (to->left_out[i] || !base) return KITH_OK;
    const kith_transform *t = &l->settings.transform;
    ki_rng rng = numbers_of(l, to, i);
    ki_draw drawn = ki_transform_draw(t, base->w, base->h, &rng);
    if (l->settings.view) ki_draw_test_view(t, l->settings.view, &drawn);
    const ki_draw draw = ki_draw_at_side(&drawn, t->crop_to, to->batch.side);
    kith_transform sized = *t;
    sized.crop_to = to->batch.side;
    if (l->settings.format == KI_BATCH_WHOLE) {
        int32_t *window = to->window + 3 * i;
        window[0] = draw.window.x, window[1] = draw.window.y, window[2] = draw.mirror;
        return ki_transform_whole(t, base, (uint8_t *)dst, err);
    }
    if (l->settings.format == KI_BATCH_BYTES)
        return ki_transform_bytes(&sized, base, &draw, &s->transform, (uint8_t *)dst, err);
    return ki_transform_float(&sized, base, &draw, &s->transform, (float *)(void *)dst, err);
}

static bool read_rows(const ki_loader *l, const ki_loader_slot *to, int64_t first, int64_t n, float *dst) {
    enum { AT_ONCE = 64 };
    const int64_t *item = to->item + to->begin + first;
    if (!l->settings.draws_views || ki_dataset_n_views(l->set) == 1)
        return ki_dataset_rows(l->set, item, n, dst);
    for (int64_t i = 0; i < n; i += AT_ONCE) {
        const int64_t n_now = n - i < AT_ONCE ? n - i : AT_ONCE;
        int64_t view[AT_ONCE];
        for (int64_t k = 0; k < n_now; k++) view[k] = view_of(l, to, first + i + k);
        if (!ki_dataset_view_rows(l->set, item + i, view, n_now,
                                  dst + i * (int64_t)(l->item_bytes / sizeof *dst)))
            return false;
    }
    return true;
}

/* Rows of features are read together; if that fails, one by one, and then it is known which is bad. */
static bool read_together(ki_loader *l, ki_loader_slot *to, int64_t first, int64_t n) {
    const int64_t *item = to->item + to->begin + first;
    if (!l->set->rows || l->settings.memory.take) return false;
    for (int64_t i = 0; i < n; i++) {
        if (atomic_load_explicit(&l->bad_status[item[i]], memory_order_relaxed) != KITH_OK) return false;
    }
    float *dst = (float *)(void *)((char *)to->data + (size_t)first * l->item_bytes);
    if (!read_rows(l, to, first, n, dst)) return false;
    atomic_fetch_add(&l->n_decoded, n);
    return true;
}

kith_status ki_loader_make_items(ki_loader *l, ki_loader_slot *to, int64_t first, int64_t n,
                                 ki_loader_scratch *s, kith_error *err) {
    if (read_together(l, to, first, n)) return KITH_OK;
    for (int64_t i = first; i < first + n; i++) KI_TRY(make_item(l, to, i, s, err));
    return KITH_OK;
}
