/* Images that wait to be decoded, and threads that ask a process each. */
#include "serve/decode/decoders.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "serve/decode/process.h"

enum { MOST_JPEG_BYTES = 64 << 20 };

/* A process, and the thread that asks it. */
typedef struct decoder {
    ki_decode_process process;
    ki_decoders *all;
    pthread_t thread;
    bool has_thread;
    pthread_cond_t is_asked;
    ki_decode_job *job; /* NULL: it is free */
} decoder;

struct ki_decoders {
    ki_decoders_options options;
    pthread_mutex_t lock;
    ki_turns waiting;
    int64_t n_decoded; /* bytes that are counted */
    bool is_ending, is_over;
    decoder decoder[];
};

/* ---- whose turn it is (with the lock) ---- */

static ki_decode_job *job_of(const ki_turn *turn) {
    return (ki_decode_job *)((char *)(uintptr_t)turn - offsetof(ki_decode_job, turn));
}

/* How many decoders one client may have at a time. */
static int64_t share(const ki_decoders *d) {
    const int64_t n = d->options.n, others = n / 4 > 1 ? n / 4 : 1;
    return n > 1 ? n - others : 1;
}

/* Is there memory for it, and are there decoders that its client may have? */
static bool may_begin(const ki_turn *turn, void *context) {
    const ki_decoders *d = context;
    int64_t n = 0;
    if (job_of(turn)->n_needed > d->options.most_decoded - d->n_decoded) return false;
    for (int64_t i = 0; i < d->options.n; i++) {
        const ki_decode_job *job = d->decoder[i].job;
        n += job && memcmp(&job->turn.client, &turn->client, sizeof turn->client) == 0;
    }
    return n < share(d);
}

static void give_turns(ki_decoders *d) {
    for (int64_t i = 0; i < d->options.n; i++) {
        decoder *one = &d->decoder[i];
        if (one->job) continue;
        ki_turn *turn = ki_turns_next(&d->waiting, may_begin, d);
        if (!turn) return;
        ki_turns_serve(&d->waiting, turn);
        one->job = job_of(turn);
        one->job->n_counted = one->job->n_needed;
        d->n_decoded += one->job->n_counted;
        pthread_cond_signal(&one->is_asked);
    }
}

/* ---- asking a process ---- */

static bool is_sound_view(const ki_decode_question *q, const ki_decode_reply *r, const ki_decoded_view *v) {
    if (v->w < 1 || v->h < 1 || v->w > KI_IMAGE_MOST_SIDE || v->h > KI_IMAGE_MOST_SIDE) return false;
    if ((v->channels != 1 && v->channels != 3) || (int64_t)v->w * v->h > q->most_pixels) return false;
    for (int i = 0; i < 4; i++) {
        if (!(v->shown[i] >= 0 && v->shown[i] <= (i % 2 ? r->full_h : r->full_w))) return false;
    }
    return v->shown[2] > 0 && v->shown[3] > 0;
}

static bool is_sound(const ki_decode_job *job, ki_decode_reply *r) {
    const ki_decode_question *q = &job->question;
    uint64_t n = 0;
    r->err.message[sizeof r->err.message - 1] = '\0';
    r->err.hint[sizeof r->err.hint - 1] = '\0';
    if (r->status != KITH_OK) return r->n_bytes == 0 && r->status > 0 && r->status <= KITH_EINTERNAL;
    if (q->want == KI_WANT_JPEG) return r->n_bytes > 0 && r->n_bytes <= MOST_JPEG_BYTES;
    if (r->full_w < 1 || r->full_h < 1) return false;
    for (int i = 0; i < q->n_views; i++) {
        const ki_decoded_view *v = &r->view[i];
        if (!is_sound_view(q, r, v)) return false;
        n += (uint64_t)v->w * (uint64_t)v->h * (uint64_t)v->channels;
    }
    return r->n_bytes == n && n <= (uint64_t)job->n_counted;
}

/* Count the bytes that decoding takes. KITH_EINVAL: there can never be so many. *ret_must_wait: there are not now. */
static kith_status reserve(ki_decoders *d, ki_decode_job *job, bool *ret_must_wait) {
    const int64_t needed = job->reply.n_needed, most = d->options.most_decoded;
    kith_status status = KITH_OK;
    *ret_must_wait = false;
    pthread_mutex_lock(&d->lock);
    if (needed < 0 || needed > most - job->n_held) {
        status = ki_fail(&job->err, KITH_EINVAL, "decoding the image takes %lld MiB; at most %lld are taken",
                         (long long)((needed + job->n_held) >> 20), (long long)(most >> 20));
    } else if (needed - job->n_counted > most - d->n_decoded) {
        *ret_must_wait = true;
        job->n_needed = needed;
    } else {
        d->n_decoded += needed - job->n_counted;
        job->n_counted = needed;
    }
    pthread_mutex_unlock(&d->lock);
    return status;
}

static kith_status start(const ki_decoders *d, decoder *one, kith_error *err) {
    return ki_decode_process_start(d->options.program, d->options.memory_bytes, &one->process, err);
}

static kith_status fail_stopped(ki_decode_job *job) {
    return ki_fail(&job->err, KITH_EBACKEND, "the image stopped its decoder");
}

static kith_status converse(ki_decoders *d, int fd, ki_decode_job *job, double until, bool *ret_must_wait) {
    const ki_decode_question *q = &job->question;
    ki_decode_reply *r = &job->reply;
    void *bytes = NULL;
    if (!ki_wire_write(fd, q, sizeof *q, until) || !ki_wire_write(fd, job->file, q->n_bytes, until) ||
        !ki_wire_read(fd, r, sizeof *r, until))
        return fail_stopped(job);
    if (r->status != KITH_OK) return is_sound(job, r) ? KITH_OK : fail_stopped(job);
    const kith_status status = reserve(d, job, ret_must_wait);
    const char goes_on = status == KITH_OK && !*ret_must_wait;
    if (!ki_wire_write(fd, &goes_on, 1, until)) return fail_stopped(job);
    if (!goes_on) return status;
    if (!ki_wire_read(fd, r, sizeof *r, until) || !is_sound(job, r)) return fail_stopped(job);
    if (r->status != KITH_OK) return KITH_OK;
    KI_TRY(ki_alloc_or(&bytes, r->n_bytes + KI_IMAGE_SLACK, 1, "an image", &job->err));
    if (!ki_wire_read(fd, bytes, r->n_bytes, until)) {
        ki_free(bytes);
        return fail_stopped(job);
    }
    memset((char *)bytes + r->n_bytes, 0, KI_IMAGE_SLACK);
    job->bytes = bytes;
    return KITH_OK;
}

static kith_status read_file(ki_decode_job *job, ki_bytes *file) {
    if (!job->path) return KITH_OK;
    if (ki_bytes_read(file, job->path, NULL) != KITH_OK)
        return ki_fail(&job->err, KITH_EIO, "the picture cannot be read");
    job->file = file->data;
    job->question.n_bytes = file->n;
    return KITH_OK;
}

/* With a process that is there before and afterwards, if one can be started. */
static void ask(ki_decoders *d, decoder *one, ki_decode_job *job, bool *ret_must_wait) {
    ki_bytes file = {0};
    kith_status status = read_file(job, &file);
    if (status != KITH_OK) {
        ki_bytes_release(&file);
        job->status = status;
        return;
    }
    ki_decode_process *process = &one->process;
    if (ki_decode_process_is_gone(process)) {
        if (process->pid > 0) atomic_fetch_add(d->options.n_failures, 1);
        ki_decode_process_end(process);
        status = start(d, one, &job->err);
    }
    if (status == KITH_OK)
        status = converse(d, process->fd, job, ki_seconds_now() + d->options.seconds, ret_must_wait);
    /* Whatever went wrong, its next words would be the rest of this answer. */
    if (status != KITH_OK && status != KITH_EINVAL) {
        atomic_fetch_add(d->options.n_failures, 1);
        ki_decode_process_end(process);
        kith_error later;
        start(d, one, &later); /* if that fails, the next question tries again */
    }
    ki_bytes_release(&file);
    job->status = status;
}

/* Only pixels that were received go on to count (with the lock). */
static void settle(ki_decoders *d, ki_decode_job *job) {
    const bool has_pixels = job->bytes && job->question.want == KI_WANT_PIXELS;
    const int64_t n = has_pixels ? (int64_t)job->reply.n_bytes : 0;
    d->n_decoded -= job->n_counted - n;
    job->n_counted = n;
}

static void *work(void *context) {
    decoder *one = context;
    ki_decoders *d = one->all;
    pthread_mutex_lock(&d->lock);
    for (;;) {
        while (!one->job && !d->is_over) pthread_cond_wait(&one->is_asked, &d->lock);
        ki_decode_job *job = one->job;
        if (!job) break;
        pthread_mutex_unlock(&d->lock);
        bool must_wait = false;
        ask(d, one, job, &must_wait);
        pthread_mutex_lock(&d->lock);
        one->job = NULL;
        settle(d, job);
        if (must_wait && d->is_ending) {
            job->status = ki_fail(&job->err, KITH_ECANCELED, "the server is ending");
        } else if (must_wait) {
            ki_turns_put_back(&d->waiting, &job->turn);
            job = NULL;
        }
        give_turns(d);
        pthread_mutex_unlock(&d->lock);
        if (job) job->done(job);
        pthread_mutex_lock(&d->lock);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* ---- those who ask ---- */

static void cancel(ki_turn *list, const char *why) {
    for (ki_turn *next; list; list = next) {
        ki_decode_job *job = job_of(list);
        next = list->next;
        job->status = ki_fail(&job->err, KITH_ECANCELED, "%s", why);
        job->done(job);
    }
}

void ki_decoders_ask(ki_decoders *d, ki_decode_job *job) {
    job->turn.next = NULL;
    job->bytes = NULL;
    job->n_counted = job->n_needed = 0;
    pthread_mutex_lock(&d->lock);
    const bool is_ending = d->is_ending;
    if (!is_ending) {
        ki_turns_add(&d->waiting, &job->turn);
        give_turns(d);
    }
    pthread_mutex_unlock(&d->lock);
    if (is_ending) cancel(&job->turn, "the server is ending");
}

void ki_decoders_release(ki_decoders *d, int64_t n_bytes) {
    if (n_bytes == 0) return;
    pthread_mutex_lock(&d->lock);
    d->n_decoded -= n_bytes;
    give_turns(d);
    pthread_mutex_unlock(&d->lock);
}

int64_t ki_decoders_bytes(ki_decoders *d) {
    pthread_mutex_lock(&d->lock);
    const int64_t n = d->n_decoded;
    pthread_mutex_unlock(&d->lock);
    return n;
}

void ki_decoders_tick(ki_decoders *d, double now) {
    ki_turn *late = NULL;
    pthread_mutex_lock(&d->lock);
    for (ki_turn *turn = d->waiting.first, *next; turn; turn = next) {
        next = turn->next;
        if (now < job_of(turn)->until) continue;
        ki_turns_remove(&d->waiting, turn);
        turn->next = late;
        late = turn;
    }
    pthread_mutex_unlock(&d->lock);
    cancel(late, "no decoder of images was free in time");
}

/* ---- beginning and end ---- */

kith_status ki_decoders_new(const ki_decoders_options *options, ki_decoders **ret, kith_error *err) {
    ki_decoders *d = NULL;
    kith_status status = KITH_OK;
    KI_TRY(ki_zalloc_or(&d, 1, sizeof *d + (size_t)options->n * sizeof *d->decoder, "decoders", err));
    d->options = *options;
    pthread_mutex_init(&d->lock, NULL);
    for (int64_t i = 0; i < options->n; i++) {
        d->decoder[i].all = d;
        pthread_cond_init(&d->decoder[i].is_asked, NULL);
    }
    for (int64_t i = 0; status == KITH_OK && i < options->n; i++) {
        decoder *one = &d->decoder[i];
        status = start(d, one, err);
        if (status != KITH_OK) break;
        one->has_thread = pthread_create(&one->thread, NULL, work, one) == 0;
        if (!one->has_thread) status = ki_fail(err, KITH_ENOMEM, "a thread cannot be made");
    }
    if (status == KITH_OK)
        *ret = d;
    else
        ki_decoders_free(d);
    return status;
}

void ki_decoders_end(ki_decoders *d) {
    if (!d) return;
    pthread_mutex_lock(&d->lock);
    ki_turn *waiting = d->waiting.first;
    d->waiting.first = NULL;
    d->is_ending = true;
    pthread_mutex_unlock(&d->lock);
    cancel(waiting, "the server is ending");
}

void ki_decoders_free(ki_decoders *d) {
    if (!d) return;
    pthread_mutex_lock(&d->lock);
    d->is_over = true;
    for (int64_t i = 0; i < d->options.n; i++) pthread_cond_signal(&d->decoder[i].is_asked);
    pthread_mutex_unlock(&d->lock);
    for (int64_t i = 0; i < d->options.n; i++) {
        if (d->decoder[i].has_thread) pthread_join(d->decoder[i].thread, NULL);
        ki_decode_process_end(&d->decoder[i].process);
        pthread_cond_destroy(&d->decoder[i].is_asked);
    }
    pthread_mutex_destroy(&d->lock);
    ki_free(d);
}
