/* One mutex guards the queue; it is held to take a task (one image of a batch) and to return a result, never
 * while an image is read.
 *
 * Batches live in a ring of slots. Batch number q (counted over epochs) uses slot q mod n_slots:
 *
 *     free ─ planned by a worker ─► filling ─ last image done ─► ready ─ handed out ─► held ─ next call ─► free
 *
 * Workers take the images of the newest planned batch; when all are taken, one of them plans the next into
 * the next slot, if that is free. */
#include "data/loader/loader.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/parallel.h"
#include "data/loader/cache.h"

enum { MOST_WORKERS = 256 };
enum { ROWS_AT_ONCE = 64 }; /* features that a worker takes: one alone is too little work to lock for */

typedef enum slot_state { FREE, FILLING, READY, HELD } slot_state;

typedef struct slot {
    slot_state state;
    ki_loader_batch batch;
    void *data;
    int32_t *label, *window;
    int64_t *item;
    bool *left_out;
    int64_t first; /* position of the batch's first image in its epoch */
    int64_t begin; /* … and in the batch, of the first image that is read here */
    int64_t n_taken, n_done;
} slot;

typedef struct scratch {
    ki_bytes bytes;
    ki_image image, base;
    ki_image kept; /* a view of the cache */
    ki_transform_scratch transform;
} scratch;

struct ki_loader {
    const kith_dataset *set;
    ki_loader_settings settings;
    ki_sampler *sampler;
    ki_cache *cache, *own_cache;
    size_t item_bytes;             /* of one image in a batch */
    int64_t n_at_once;             /* images that a worker takes at once */
    int64_t batch_size, part_size; /* the most images of a batch, and of the part that is read here */
    atomic_uchar *bad_status;      /* per item of the data set: KITH_OK until it could not be read */

    pthread_mutex_t mutex;
    pthread_cond_t work, done; /* something to take; a batch is ready */
    slot *slots;
    int n_slots;
    int64_t n_planned, n_out; /* batches planned, and batches returned to the caller */
    int64_t n_tried;
    bool has_ended, must_stop;
    kith_status status; /* the first failure … */
    kith_error error;   /* … and its text */
    int64_t n_bad;
    int64_t *bad_here; /* items, in the order in which they were found */
    size_t n_bad_here, bad_here_capacity;
    char *bad[KI_MOST_BAD_NAMED];
    double wait_s;
    atomic_int_least64_t n_decoded, n_from_cache;

    pthread_t *threads;
    int n_threads;
    bool has_mutex, has_conditions;
};

/* ---- one image ---- */

/* One more, mutex held; too many are an error. */
static kith_status count_bad(ki_loader *l, const kith_error *why, kith_error *err) {
    kith_status status = KITH_OK;
    if (l->n_bad < KI_MOST_BAD_NAMED) l->bad[l->n_bad] = ki_strdup(why->message);
    l->n_bad++;
    if (l->settings.most_bad >= 0 && l->n_bad > l->settings.most_bad) {
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
static kith_status prepare(ki_loader *l, int64_t item, scratch *s, const ki_image **ret_base,
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

/* Of a set of features: the row, written where it goes; of images: prepared, in *ret_base. */
static kith_status fetch(ki_loader *l, int64_t item, scratch *s, float *row, const ki_image **ret_base,
                         kith_error *err) {
    if (!l->set->rows) return prepare(l, item, s, ret_base, err);
    atomic_fetch_add(&l->n_decoded, 1);
    return ki_dataset_row(l->set, item, row, err);
}

/* Fetch the item or, if it is bad, the readable one of its class that comes next. */
static kith_status fetch_any(ki_loader *l, int64_t wanted, scratch *s, float *row, const ki_image **ret_base,
                             int64_t *ret_item, bool *ret_left_out, kith_error *err) {
    int64_t item = wanted;
    do {
        if (atomic_load(&l->bad_status[item]) == KITH_OK) {
            kith_error why = {0};
            const kith_status status = fetch(l, item, s, row, ret_base, &why);
            if (status == KITH_OK) return *ret_item = item, KITH_OK;
            if (status == KITH_ENOMEM) {
                if (err) *err = why;
                return status;
            }
            KI_TRY(note_bad(l, item, status, &why, err));
        }
        if (l->settings.bad == KI_BAD_SKIP) return *ret_left_out = true, KITH_OK;
        item = next_of_class(l->set, item);
    } while (item != wanted);
    return ki_fail(err, KITH_EFORMAT, "no image of the class '%s' can be read",
                   kith_dataset_class_name(l->set, l->set->item[wanted].label));
}

static kith_status make_item(ki_loader *l, slot *to, int64_t i, scratch *s, kith_error *err) {
    const ki_image *base = NULL;
    int64_t *item = &to->item[to->begin + i];
    const int64_t wanted = *item;
    char *dst = (char *)to->data + (size_t)i * l->item_bytes;
    KI_TRY(fetch_any(l, wanted, s, (float *)(void *)dst, &base, item, &to->left_out[i], err));
    if (to->left_out[i] || !base) return KITH_OK;
    const kith_transform *t = &l->settings.transform;
    ki_rng rng =
        ki_rng_at(l->settings.seed, KI_RNG_AUGMENT, to->batch.epoch, (uint32_t)(to->first + to->begin + i));
    const ki_draw draw = ki_transform_draw(t, base->w, base->h, &rng);
    if (l->settings.format == KI_BATCH_WHOLE) {
        int32_t *window = to->window + 3 * i;
        window[0] = draw.window.x, window[1] = draw.window.y, window[2] = draw.mirror;
        return ki_transform_whole(t, base, (uint8_t *)dst, err);
    }
    if (l->settings.format == KI_BATCH_BYTES)
        return ki_transform_bytes(t, base, &draw, &s->transform, (uint8_t *)dst, err);
    return ki_transform_float(t, base, &draw, &s->transform, (float *)(void *)dst, err);
}

/* ---- the queue; mutex held ---- */

static void fail(ki_loader *l, kith_status status, const kith_error *err) {
    if (l->status != KITH_OK) return;
    l->status = status;
    l->error = *err;
    pthread_cond_broadcast(&l->work);
    pthread_cond_broadcast(&l->done);
}

static slot *slot_of(ki_loader *l, int64_t q) { return &l->slots[q % l->n_slots]; }

static bool may_plan(ki_loader *l) { return !l->has_ended && slot_of(l, l->n_planned)->state == FREE; }

static void plan_next(ki_loader *l) {
    kith_error err = {0};
    ki_sampler_batch b;
    if (l->settings.n_epochs > 0) {
        const ki_sampler_state next = ki_sampler_save(l->sampler);
        if ((int64_t)next.epoch >= l->settings.n_epochs) {
            l->has_ended = true;
            pthread_cond_broadcast(&l->work);
            pthread_cond_broadcast(&l->done);
            return;
        }
    }
    kith_status status = ki_sampler_next(l->sampler, &b, &err);
    if (status == KITH_OK && b.n > l->batch_size)
        status = ki_fail(&err, KITH_EINTERNAL, "a batch of %jd images; at most %jd were promised",
                         (intmax_t)b.n, (intmax_t)l->batch_size);
    if (status != KITH_OK) {
        fail(l, status, &err);
        return;
    }
    slot *to = slot_of(l, l->n_planned++);
    int64_t n_own = 0;
    ki_comm_own(l->settings.comm, b.n, &to->begin, &n_own);
    l->n_tried += b.n;
    to->batch = (ki_loader_batch){.n = n_own,
                                  .n_all = b.n,
                                  .first = to->begin,
                                  .items = to->item,
                                  .data = to->data,
                                  .label = to->label + to->begin,
                                  .window = to->window,
                                  .item = to->item + to->begin,
                                  .epoch = b.epoch,
                                  .number = b.number,
                                  .n_tried = l->n_tried,
                                  .after = ki_sampler_save(l->sampler)};
    to->first = b.first;
    to->n_taken = to->n_done = 0;
    to->state = n_own > 0 ? FILLING : READY;
    for (int64_t i = 0; i < b.n; i++) {
        to->item[i] = b.item[i];
        to->label[i] = l->set->item[b.item[i]].label;
        to->left_out[i] = false;
    }
    pthread_cond_broadcast(n_own > 0 ? &l->work : &l->done);
}

/* A slot with images to take; plans one if necessary. NULL when there is nothing to do now. */
static slot *find_work(ki_loader *l) {
    if (l->n_planned > 0) {
        slot *newest = slot_of(l, l->n_planned - 1);
        if (newest->state == FILLING && newest->n_taken < newest->batch.n) return newest;
    }
    while (may_plan(l) && l->status == KITH_OK) {
        const int64_t before = l->n_planned;
        plan_next(l);
        if (l->n_planned > before && slot_of(l, before)->state == FILLING) return slot_of(l, before);
    }
    return NULL;
}

static void *run_worker(void *context) {
    ki_loader *l = context;
    scratch s = {0};
    pthread_mutex_lock(&l->mutex);
    while (!l->must_stop && l->status == KITH_OK) {
        slot *to = find_work(l);
        if (!to) {
            if (l->has_ended || l->status != KITH_OK) break;
            pthread_cond_wait(&l->work, &l->mutex);
            continue;
        }
        const int64_t first = to->n_taken, left = to->batch.n - first;
        const int64_t n = left < l->n_at_once ? left : l->n_at_once;
        to->n_taken += n;
        pthread_mutex_unlock(&l->mutex);
        kith_error err = {0};
        kith_status status = KITH_OK;
        for (int64_t i = first; status == KITH_OK && i < first + n; i++)
            status = make_item(l, to, i, &s, &err);
        pthread_mutex_lock(&l->mutex);
        if (status != KITH_OK) {
            fail(l, status, &err);
            break;
        }
        to->n_done += n;
        if (to->n_done == to->batch.n) {
            to->state = READY;
            pthread_cond_signal(&l->done);
        }
    }
    pthread_mutex_unlock(&l->mutex);
    ki_bytes_release(&s.bytes);
    ki_image_release(&s.image);
    ki_image_release(&s.base);
    ki_transform_scratch_release(&s.transform);
    return NULL;
}

/* Close the gaps of images left out. */
static void close_gaps(const ki_loader *l, slot *s) {
    int64_t kept = 0;
    for (int64_t i = 0; i < s->batch.n; i++) {
        if (s->left_out[i]) continue;
        if (kept != i) {
            memcpy((char *)s->data + (size_t)kept * l->item_bytes,
                   (char *)s->data + (size_t)i * l->item_bytes, l->item_bytes);
            s->item[s->begin + kept] = s->item[s->begin + i];
            s->label[s->begin + kept] = s->label[s->begin + i];
            if (s->window) memcpy(s->window + 3 * kept, s->window + 3 * i, 3 * sizeof *s->window);
        }
        kept++;
    }
    s->batch.n = kept;
}

kith_status ki_loader_next(ki_loader *l, ki_loader_batch *ret_batch, kith_error *err) {
    kith_status status = KITH_OK;
    pthread_mutex_lock(&l->mutex);
    for (;;) {
        if (l->n_out > 0 && slot_of(l, l->n_out - 1)->state == HELD) {
            slot_of(l, l->n_out - 1)->state = FREE;
            pthread_cond_broadcast(&l->work);
        }
        slot *s = slot_of(l, l->n_out);
        const double begin = ki_seconds_now();
        while (l->status == KITH_OK && s->state != READY && !(l->has_ended && l->n_out == l->n_planned))
            pthread_cond_wait(&l->done, &l->mutex);
        l->wait_s += ki_seconds_now() - begin;
        if (l->status != KITH_OK) {
            status = l->status;
            if (err) *err = l->error;
            break;
        }
        if (s->state != READY) { /* the end */
            *ret_batch = (ki_loader_batch){.n_tried = l->n_tried};
            break;
        }
        s->state = HELD;
        l->n_out++;
        close_gaps(l, s);
        if (s->batch.n == 0 && ki_comm_is_alone(l->settings.comm)) continue; /* none of it could be read */
        *ret_batch = s->batch;
        break;
    }
    pthread_mutex_unlock(&l->mutex);
    return status;
}

/* ---- making and freeing ---- */

static void *take_memory(ki_loader *l, size_t bytes) {
    const ki_batch_memory *m = &l->settings.memory;
    return m->take ? m->take(m->user, bytes) : ki_alloc(bytes, 1);
}

static void give_memory(ki_loader *l, void *memory) {
    const ki_batch_memory *m = &l->settings.memory;
    if (!memory) return;
    if (m->give)
        m->give(m->user, memory);
    else
        ki_free(memory);
}

static kith_status make_slots(ki_loader *l, kith_error *err) {
    const size_t n = (size_t)l->batch_size, n_read = (size_t)l->part_size;
    size_t bytes = 0;
    if (!ki_mul_size(n_read, l->item_bytes, &bytes)) return ki_fail_memory(err, SIZE_MAX, "a batch");
    KI_TRY(ki_zalloc_or(&l->slots, (size_t)l->n_slots, sizeof *l->slots, "the batch queue", err));
    for (int i = 0; i < l->n_slots; i++) {
        slot *s = &l->slots[i];
        s->data = take_memory(l, bytes);
        if (!s->data) return ki_fail_memory(err, bytes, "a batch");
        KI_TRY(ki_alloc_or(&s->label, n, sizeof *s->label, "labels", err));
        if (l->settings.format == KI_BATCH_WHOLE)
            KI_TRY(ki_alloc_or(&s->window, n_read, 3 * sizeof *s->window, "windows", err));
        KI_TRY(ki_alloc_or(&s->item, n, sizeof *s->item, "items", err));
        KI_TRY(ki_alloc_or(&s->left_out, n, sizeof *s->left_out, "items", err));
    }
    return KITH_OK;
}

static kith_status start(ki_loader *l, int n_workers, kith_error *err) {
    if (pthread_mutex_init(&l->mutex, NULL) != 0) return ki_fail_memory(err, sizeof l->mutex, "a mutex");
    l->has_mutex = true;
    if (pthread_cond_init(&l->work, NULL) != 0) return ki_fail_memory(err, sizeof l->work, "a condition");
    if (pthread_cond_init(&l->done, NULL) != 0) {
        pthread_cond_destroy(&l->work);
        return ki_fail_memory(err, sizeof l->done, "a condition");
    }
    l->has_conditions = true;
    KI_TRY(ki_alloc_or(&l->threads, (size_t)n_workers, sizeof *l->threads, "loader threads", err));
    for (; l->n_threads < n_workers; l->n_threads++) {
        if (pthread_create(&l->threads[l->n_threads], NULL, run_worker, l) != 0) {
            if (l->n_threads > 0) break; /* fewer threads are enough */
            ki_fail(err, KITH_ENOMEM, "no thread for reading images can be started; wanted at least one");
            return ki_hint(err, KITH_ENOMEM,
                           "end other processes, or raise the limits (ulimit -u, ulimit -v)");
        }
    }
    return KITH_OK;
}

/* Bytes of one item in a batch. */
static kith_status measure_item(ki_loader *l, kith_error *err) {
    const ki_loader_settings *s = &l->settings;
    if (l->set->rows) {
        l->item_bytes = (size_t)ki_npy_rows_dim(l->set->rows) * sizeof(float);
        if (s->format == KI_BATCH_FLOAT) return KITH_OK;
        return ki_fail(err, KITH_EINVAL, "batches of pixels from %s, a set of features", l->set->root);
    }
    size_t side = (size_t)s->transform.crop_to;
    if (s->format == KI_BATCH_WHOLE) side = (size_t)ki_transform_window_side(&s->transform);
    if (side == 0)
        return ki_fail(err, KITH_EINVAL, "these images have no common size a device could cut crops from");
    l->item_bytes =
        side * side * (size_t)s->transform.channels * (s->format == KI_BATCH_FLOAT ? sizeof(float) : 1);
    return KITH_OK;
}

kith_status ki_loader_new(const kith_dataset *set, ki_sampler *sampler, int64_t batch_size,
                          const ki_loader_settings *settings, ki_loader **ret_loader, kith_error *err) {
    kith_status status = KITH_OK;
    ki_loader *l = NULL;
    if (!set->rows) KI_CHECK(kith_transform_check(&settings->transform, err));
    KI_CHECK(ki_zalloc_or(&l, 1, sizeof *l, "a loader", err));
    l->set = set;
    l->settings = *settings;
    l->sampler = sampler;
    sampler = NULL;
    l->batch_size = batch_size;
    l->part_size = ki_comm_most(settings->comm, batch_size);
    l->n_slots = (settings->n_ahead > 0 ? settings->n_ahead : 3) + 1;
    l->n_at_once = set->rows ? ROWS_AT_ONCE : 1;
    KI_CHECK(measure_item(l, err));
    KI_CHECK(make_slots(l, err));
    l->cache = settings->cache;
    if (!l->cache) {
        KI_CHECK(ki_cache_new((int64_t)set->n_items, settings->cache_bytes, NULL, &l->own_cache, err));
        l->cache = l->own_cache;
    }
    KI_CHECK(ki_alloc_or(&l->bad_status, set->n_items, sizeof *l->bad_status, "a loader", err));
    for (size_t i = 0; i < set->n_items; i++) atomic_init(&l->bad_status[i], KITH_OK);
    const int64_t n_workers = settings->n_workers > 0 ? settings->n_workers : ki_threads();
    KI_CHECK(start(l, (int)(n_workers < MOST_WORKERS ? n_workers : MOST_WORKERS), err));
    *ret_loader = l;
    l = NULL;
done:
    ki_sampler_free(sampler);
    ki_loader_free(l);
    return status;
}

kith_status ki_loader_new_once(const kith_dataset *set, const int64_t *items, int64_t n, int64_t batch_size,
                               const ki_loader_settings *settings, ki_loader **ret_loader, kith_error *err) {
    kith_status status;
    int32_t *labels = NULL; /* the sampler does not look at them */
    ki_sampler *sampler = NULL;
    ki_sampler_settings batches;
    ki_loader_settings once = *settings;
    ki_options_default(ki_sampler_options, &batches);
    batches.sampler = KI_SAMPLER_ROW_sequential;
    batches.size = batch_size;
    once.bad = KI_BAD_SKIP;
    once.n_epochs = 1;
    KI_CHECK(ki_zalloc_or(&labels, (size_t)n, sizeof *labels, "labels", err));
    KI_CHECK(ki_sampler_new(&batches, 0, items, labels, n, &sampler, err));
    status = ki_loader_new(set, sampler, batch_size, &once, ret_loader, err);
done:
    ki_free(labels);
    return status;
}

void ki_loader_free(ki_loader *l) {
    if (!l) return;
    if (l->n_threads > 0) {
        pthread_mutex_lock(&l->mutex);
        l->must_stop = true;
        pthread_cond_broadcast(&l->work);
        pthread_mutex_unlock(&l->mutex);
        for (int i = 0; i < l->n_threads; i++) pthread_join(l->threads[i], NULL);
    }
    if (l->has_conditions) {
        pthread_cond_destroy(&l->work);
        pthread_cond_destroy(&l->done);
    }
    if (l->has_mutex) pthread_mutex_destroy(&l->mutex);
    for (int i = 0; l->slots && i < l->n_slots; i++) {
        give_memory(l, l->slots[i].data);
        ki_free(l->slots[i].label);
        ki_free(l->slots[i].window);
        ki_free(l->slots[i].item);
        ki_free(l->slots[i].left_out);
    }
    for (int i = 0; i < KI_MOST_BAD_NAMED; i++) ki_free(l->bad[i]);
    ki_free(l->slots);
    ki_free(l->threads);
    ki_free(l->bad_status);
    ki_free(l->bad_here);
    ki_cache_free(l->own_cache);
    ki_sampler_free(l->sampler);
    ki_free(l);
}

int64_t ki_loader_n_bad(ki_loader *l) {
    pthread_mutex_lock(&l->mutex);
    const int64_t n = l->n_bad;
    pthread_mutex_unlock(&l->mutex);
    return n;
}

kith_status ki_loader_item_status(ki_loader *l, int64_t item) {
    return (kith_status)atomic_load(&l->bad_status[item]);
}

const char *ki_loader_bad(ki_loader *l, int64_t i) {
    pthread_mutex_lock(&l->mutex);
    const char *text = i >= 0 && i < l->n_bad && i < KI_MOST_BAD_NAMED ? l->bad[i] : NULL;
    pthread_mutex_unlock(&l->mutex);
    return text;
}

ki_loader_stats ki_loader_stats_get(ki_loader *l) {
    pthread_mutex_lock(&l->mutex);
    const double wait_s = l->wait_s;
    pthread_mutex_unlock(&l->mutex);
    return (ki_loader_stats){.n_decoded = atomic_load(&l->n_decoded),
                             .n_from_cache = atomic_load(&l->n_from_cache),
                             .cache_bytes = ki_cache_bytes(l->cache),
                             .wait_s = wait_s};
}
