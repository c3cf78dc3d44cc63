/* The indexing thread: look, embed, rest. */
#include "serve/search/indexer.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

/* A look at many files takes a while: it may take one part in so many of the time. */
static const double REST_PARTS = 30;
/* Seconds until another process is asked for again. */
static const double ELSEWHERE_SECONDS = 5;
static const int NICENESS = 5;

struct ki_indexer {
    kith_photos *photos;
    double rescan;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t wakes;
    bool is_ending;
    ki_indexing now;
    double began;    /* of this look: when the first photo was on its way, … */
    int64_t n_began; /* … and how many were dealt with then */
    int64_t n_bad;   /* photos that could not be read the last time: embedding them is not news */
    bool is_empty;   /* there was no photo the last time */
    char fault[sizeof((kith_error){0}).message]; /* what the log has said already; "": nothing */
};

const char *ki_indexing_state_name(ki_indexing_state state) {
    static const char *const names[] = {"looking", "indexing", "ready", "elsewhere", "failing"};
    return (unsigned)state < sizeof names / sizeof names[0] ? names[state] : "?";
}

ki_indexing ki_indexer_get(ki_indexer *x) {
    pthread_mutex_lock(&x->lock);
    const ki_indexing now = x->now;
    pthread_mutex_unlock(&x->lock);
    return now;
}

/* ---- a look ---- */

static int show(void *user, const kith_photos_progress *p) {
    ki_indexer *x = user;
    const double now = ki_seconds_now();
    pthread_mutex_lock(&x->lock);
    ki_indexing *i = &x->now;
    const bool is_news = p->n_photos - p->n_done > x->n_bad || i->state == KI_INDEXING_EMBEDS;
    if (isnan(x->began)) {
        x->began = now;
        x->n_began = p->n_done;
    }
    const double seconds = now - x->began, n = (double)(p->n_done - x->n_began);
    i->n_photos = p->n_photos;
    i->n_done = p->n_done;
    if (is_news) i->state = KI_INDEXING_EMBEDS;
    i->rate = seconds > 1 && n > 0 ? n / seconds : NAN;
    i->seconds_left = (double)(p->n_photos - p->n_done) / i->rate;
    const bool ends = x->is_ending;
    pthread_mutex_unlock(&x->lock);
    return ends;
}

static void set_state(ki_indexer *x, ki_indexing_state state, const char *problem) {
    pthread_mutex_lock(&x->lock);
    x->now.state = state;
    x->now.problem = problem;
    x->now.rate = x->now.seconds_left = NAN;
    pthread_mutex_unlock(&x->lock);
}

/* Once for each fault: it may last. */
static void fail(ki_indexer *x, const kith_sync_report *report, const kith_error *err) {
    const char *problem = report->reason == KITH_SYNC_SOURCE_MISSING ? "the folder of photos cannot be read"
                          : report->reason == KITH_SYNC_MOST_REMOVED
                              ? "the folder holds no photos any more; those it held can still be found"
                              : "the index cannot be brought up to date; the log says why";
    if (strcmp(x->fault, err->message) != 0)
        ki_log(KITH_LOG_WARNING, "the photos cannot be indexed; what is ready is served: %s (%s)",
               err->message, err->hint);
    ki_snprintf(x->fault, sizeof x->fault, "%s", err->message);
    set_state(x, KI_INDEXING_FAILS, problem);
}

static void finish(ki_indexer *x, const kith_sync_report *r) {
    const int64_t n_new = r->n_added + r->n_changed + r->n_moved + r->n_removed;
    if (n_new > 0)
        ki_log(KITH_LOG_INFO, "%lld photos: %lld added, %lld changed, %lld moved, %lld removed",
               (long long)r->n_files, (long long)r->n_added, (long long)r->n_changed, (long long)r->n_moved,
               (long long)r->n_removed);
    if (r->n_bad != x->n_bad && r->n_bad > 0)
        ki_log(KITH_LOG_WARNING, "%lld photos cannot be read; the first: %s", (long long)r->n_bad,
               r->n_named > 0 ? r->bad[0] : "");
    if (x->fault[0] && r->reason == KITH_SYNC_FINE) ki_log(KITH_LOG_INFO, "the photos can be indexed again");
    if (r->n_files == 0 && !x->is_empty)
        ki_log(KITH_LOG_WARNING, "%s holds no photos; those that come can be searched%s",
               kith_photos_folder(x->photos), x->rescan > 0 ? "" : " after another start");
    x->is_empty = r->n_files == 0;
    x->fault[0] = '\0';
    pthread_mutex_lock(&x->lock);
    x->n_bad = r->n_bad;
    x->now.n_photos = x->now.n_done = r->n_files;
    x->now.n_bad = r->n_bad;
    pthread_mutex_unlock(&x->lock);
    set_state(x, KI_INDEXING_RESTS, NULL);
}

/* Returns the seconds until the next look. */
static double look(ki_indexer *x) {
    kith_error err = {0};
    kith_sync_report report = {0};
    KITH_OPTIONS(kith_photos_sync_options, options);
    options.progress = show;
    options.user = x;
    x->began = NAN;
    const double began = ki_seconds_now();
    if (x->now.state != KI_INDEXING_RESTS) set_state(x, KI_INDEXING_LOOKS, x->now.problem);
    const kith_status status = kith_photos_sync(x->photos, &options, &report, &err);
    const bool is_elsewhere = report.reason == KITH_SYNC_BUSY;
    if (status == KITH_OK)
        finish(x, &report);
    else if (is_elsewhere)
        set_state(x, KI_INDEXING_ELSEWHERE, NULL);
    else if (status != KITH_ECANCELED)
        fail(x, &report, &err);
    kith_sync_report_release(&report);
    if (is_elsewhere) return ELSEWHERE_SECONDS;
    const double rest = (ki_seconds_now() - began) * REST_PARTS;
    /* What was embedded says nothing of how long the next look takes. */
    const bool is_long = report.n_added + report.n_changed > 0;
    return !is_long && rest > x->rescan ? rest : x->rescan;
}

/* ---- the thread ---- */

/* Returns whether it goes on. */
static bool rest(ki_indexer *x, double seconds) {
    const double end = ki_seconds_now() + seconds;
    const struct timespec until = {(time_t)end, (long)((end - (double)(time_t)end) * 1e9)};
    int waited = 0;
    pthread_mutex_lock(&x->lock);
    while (!x->is_ending && waited == 0) waited = pthread_cond_timedwait(&x->wakes, &x->lock, &until);
    const bool goes_on = !x->is_ending;
    pthread_mutex_unlock(&x->lock);
    return goes_on;
}

static void *run(void *context) {
    ki_indexer *x = context;
    setpriority(PRIO_PROCESS, 0, NICENESS); /* on Linux of this thread, and of those it makes */
    double seconds = look(x);
    while (rest(x, x->rescan > 0 || x->now.state == KI_INDEXING_ELSEWHERE ? seconds : 1e9)) seconds = look(x);
    return NULL;
}

kith_status ki_indexer_new(kith_photos *photos, double rescan, ki_indexer **ret, kith_error *err) {
    ki_indexer *x = NULL;
    KI_TRY(ki_zalloc_or(&x, 1, sizeof *x, "an indexer", err));
    x->photos = photos;
    x->rescan = rescan;
    x->now = (ki_indexing){.n_photos = -1, .n_done = -1, .rate = NAN, .seconds_left = NAN};
    pthread_mutex_init(&x->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&x->wakes, &clock);
    pthread_condattr_destroy(&clock);
    x->has_thread = pthread_create(&x->thread, NULL, run, x) == 0;
    if (!x->has_thread) {
        ki_indexer_free(x);
        return ki_fail(err, KITH_ENOMEM, "a thread cannot be made");
    }
    *ret = x;
    return KITH_OK;
}

void ki_indexer_end(ki_indexer *x) {
    if (!x) return;
    pthread_mutex_lock(&x->lock);
    x->is_ending = true;
    pthread_cond_broadcast(&x->wakes);
    pthread_mutex_unlock(&x->lock);
}

void ki_indexer_free(ki_indexer *x) {
    if (!x) return;
    ki_indexer_end(x);
    if (x->has_thread) pthread_join(x->thread, NULL);
    pthread_cond_destroy(&x->wakes);
    pthread_mutex_destroy(&x->lock);
    ki_free(x);
}
