/* One mutex guards the queue; it is held to take a task (one image of a batch) and to return a result, never
 * while an image is read.
 *
 * Batches live in a ring of slots. Batch number q (counted over epochs) uses slot q mod n_slots:
 *
 *     free ─ planned by a worker ─► filling ─ last image done ─► ready ─ handed out ─► held ─ next call ─► free
 *
 * Workers take the images of the newest planned batch; when all are taken, one of them plans the next into
 * the next slot, if that is free.
 *
 * Rows of features that lie in the page cache are read in less time than it takes to wake a worker, and a worker takes a core from
 * the step. So the caller reads them itself (caller_computes), planned when they are asked for, until a read has waited for a disk.
 * From then on workers read ahead as they do with images, until CALM reads in a row have found all in the page cache. */
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "data/loader/inside.h"

enum { MOST_WORKERS = 256 };
enum { ROWS_AT_ONCE = 64 }; /* features that a worker takes: one alone is too little work to lock for */

enum { CALM = 64 };
enum { LEAST_ROWS = 8 }; /* that a thread of the caller reads */

/* How often this thread has waited for a disk. */
static long disk_waits(void) {
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_majflt + usage.ru_inblock : 0;
}

/* ---- the queue; mutex held ---- */

static void fail(ki_loader *l, kith_status status, const kith_error *err) {
    if (l->status != KITH_OK) return;
    l->status = status;
    l->error = *err;
    pthread_cond_broadcast(&l->work);
    pthread_cond_broadcast(&l->done);
}

static ki_loader_slot *slot_of(ki_loader *l, int64_t q) { return &l->slots[q % l->n_slots]; }

static bool caller_reads(const ki_loader *l) {
    return l->settings.caller_computes && l->set->rows && l->n_calm >= CALM;
}

static bool may_plan(ki_loader *l) {
    return !l->has_ended && slot_of(l, l->n_planned)->state == KI_SLOT_FREE;
}

/* Of an image of so many pixels, floats or bytes. */
static size_t bytes_at(const ki_loader_settings *s, int32_t side) {
    const size_t n = (size_t)side * (size_t)side * (size_t)s->transform.channels;
    return s->format == KI_BATCH_FLOAT ? n * sizeof(float) : n;
}

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
    ki_loader_slot *to = slot_of(l, l->n_planned++);
    int64_t n_own = 0;
    const int32_t own = l->settings.transform.crop_to,
                  side = ki_crop_sides_at(&l->settings.sides, own, l->settings.seed, b.epoch, b.number);
    to->item_bytes = l->settings.sides.n ? bytes_at(&l->settings, side) : l->item_bytes;
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
                                  .side = side,
                                  .n_tried = l->n_tried,
                                  .after = ki_sampler_save(l->sampler)};
    to->first = b.first;
    to->n_taken = to->n_done = 0;
    to->state = n_own > 0 ? KI_SLOT_FILLING : KI_SLOT_READY;
    for (int64_t i = 0; i < b.n;
         i++) { /* items lie far apart: several are asked for before the first is needed */
        __builtin_prefetch(&l->set->item[b.item[i]]);
        __builtin_prefetch(&l->bad_status[b.item[i]]);
        to->item[i] = b.item[i];
        to->left_out[i] = false;
    }
    for (int64_t i = 0; i < b.n; i++) to->label[i] = l->set->item[b.item[i]].label;
    if (n_own == 0)
        pthread_cond_broadcast(&l->done);
    else if (!caller_reads(l))
        pthread_cond_broadcast(&l->work);
}

/* A slot with images to take; plans one if necessary. NULL when there is nothing to do now. */
static ki_loader_slot *find_work(ki_loader *l) {
    if (l->n_planned > 0) {
        ki_loader_slot *newest = slot_of(l, l->n_planned - 1);
        if (newest->state == KI_SLOT_FILLING && newest->n_taken < newest->batch.n) return newest;
    }
    while (may_plan(l) && l->status == KITH_OK && !caller_reads(l)) {
        const int64_t before = l->n_planned;
        plan_next(l);
        if (l->n_planned > before && slot_of(l, before)->state == KI_SLOT_FILLING) return slot_of(l, before);
    }
    return NULL;
}

static void *run_worker(void *context) {
    ki_loader *l = context;
    ki_loader_scratch s = {0};
    pthread_mutex_lock(&l->mutex);
    while (!l->must_stop && l->status == KITH_OK) {
        ki_loader_slot *to = find_work(l);
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
        const long before = l->set->rows ? disk_waits() : 0;
        const kith_status status = ki_loader_make_items(l, to, first, n, &s, &err);
        const bool has_waited = l->set->rows && disk_waits() > before;
        pthread_mutex_lock(&l->mutex);
        if (status != KITH_OK) {
            fail(l, status, &err);
            break;
        }
        l->n_calm = has_waited ? 0 : l->n_calm + 1;
        to->n_done += n;
        if (to->n_done == to->batch.n) {
            to->state = KI_SLOT_READY;
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

/* ---- the caller reads ---- */

typedef struct reading {
    ki_loader *loader;
    ki_loader_slot *to;
    kith_status status; /* the first failure, and its text; the loader's mutex guards them */
    kith_error err;
    bool has_waited;
} reading;

static void read_range(void *context, int64_t begin, int64_t end) {
    reading *r = context;
    ki_loader_scratch unused = {0}; /* only images need one */
    kith_error err = {0};
    const long before = disk_waits();
    const kith_status status = ki_loader_make_items(r->loader, r->to, begin, end - begin, &unused, &err);
    const bool has_waited = disk_waits() > before;
    if (status == KITH_OK && !has_waited) return;
    pthread_mutex_lock(&r->loader->mutex);
    r->has_waited |= has_waited;
    if (status != KITH_OK && r->status == KITH_OK) {
        r->status = status;
        r->err = err;
    }
    pthread_mutex_unlock(&r->loader->mutex);
}

/* Plan the next batch and read it, with the caller's threads. Mutex held, but not while it reads. */
static void read_here(ki_loader *l) {
    const int64_t q = l->n_planned;
    ki_loader_slot *to = slot_of(l, q), *before = slot_of(l, q + l->n_slots - 1);
    if (before->state == KI_SLOT_FREE) { /* what the last batch lay in is still in the processor's caches */
        void *data = before->data;
        before->data = to->data;
        to->data = data;
    }
    plan_next(l);
    if (l->n_planned == q || to->state != KI_SLOT_FILLING)
        return; /* the end, a failure, or nothing for this rank */
    reading r = {.loader = l, .to = to};
    to->n_taken = to->batch.n; /* workers find nothing to take */
    pthread_mutex_unlock(&l->mutex);
    ki_parallel_for(to->batch.n, LEAST_ROWS, read_range, &r);
    pthread_mutex_lock(&l->mutex);
    if (r.status != KITH_OK) fail(l, r.status, &r.err);
    to->n_done = to->batch.n;
    to->state = KI_SLOT_READY;
    if (!r.has_waited) return;
    l->n_calm = 0;
    pthread_cond_broadcast(&l->work);
}

/* Close the gaps of images left out. */
static void close_gaps(ki_loader_slot *s) {
    int64_t kept = 0;
    for (int64_t i = 0; i < s->batch.n; i++) {
        if (s->left_out[i]) continue;
        if (kept != i) {
            memcpy((char *)s->data + (size_t)kept * s->item_bytes,
                   (char *)s->data + (size_t)i * s->item_bytes, s->item_bytes);
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
        if (l->n_out > 0 && slot_of(l, l->n_out - 1)->state == KI_SLOT_HELD) {
            slot_of(l, l->n_out - 1)->state = KI_SLOT_FREE;
            if (!caller_reads(l)) pthread_cond_broadcast(&l->work);
        }
        ki_loader_slot *s = slot_of(l, l->n_out);
        if (caller_reads(l) && l->n_out == l->n_planned && l->status == KITH_OK && !l->has_ended)
            read_here(l);
        const double begin = ki_seconds_now();
        while (l->status == KITH_OK && s->state != KI_SLOT_READY &&
               !(l->has_ended && l->n_out == l->n_planned))
            pthread_cond_wait(&l->done, &l->mutex);
        l->wait_s += ki_seconds_now() - begin;
        if (l->status != KITH_OK) {
            status = l->status;
            if (err) *err = l->error;
            break;
        }
        if (s->state != KI_SLOT_READY) { /* the end */
            *ret_batch = (ki_loader_batch){.n_tried = l->n_tried};
            break;
        }
        s->state = KI_SLOT_HELD;
        l->n_out++;
        close_gaps(s);
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
        ki_loader_slot *s = &l->slots[i];
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
    int32_t side = ki_crop_sides_largest(&s->sides, s->transform.crop_to);
    if (s->format == KI_BATCH_WHOLE) side = s->sides.n ? 0 : ki_transform_window_side(&s->transform);
    if (side == 0)
        return ki_fail(err, KITH_EINVAL, "these images have no common size a device could cut crops from");
    l->item_bytes = bytes_at(s, side);
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
    l->n_calm = CALM;
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
