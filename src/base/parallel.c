/* Loops over the one pool of threads. */
#include "base/parallel.h"

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/cores.h"
#include "base/log.h"
#include "kith/threads.h"

static atomic_int most_made = 1; /* so many ran at the same time before, so they can be created again */
static _Thread_local bool is_settled;

static void *pass_through(void *gate) {
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* How many of n threads, including the caller's, can exist at the same time; *ret_why is the system's reason
 * if fewer. */
static int try_threads(int n, int *ret_why) {
    pthread_t thread[KI_MOST_THREADS];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    int n_made = 1;
    pthread_mutex_lock(&gate);
    for (*ret_why = 0; n_made < n; n_made++) {
        *ret_why = pthread_create(&thread[n_made], NULL, pass_through, &gate);
        if (*ret_why) break;
    }
    pthread_mutex_unlock(&gate);
    for (int i = 1; i < n_made; i++) pthread_join(thread[i], NULL);
    return n_made;
}

/* How many of n threads the system can create. */
static int threads_given(int n, int *ret_why) {
    *ret_why = 0;
    int most = atomic_load(&most_made);
    if (n <= most) return n;
    const int given = try_threads(n, ret_why);
    while (given > most && !atomic_compare_exchange_weak(&most_made, &most, given)) {
    }
    return given;
}

/* A child of fork has none of OpenMP's threads, and its first loop would wait for them for ever. Without a team at the fork,
 * both processes make a new one with their next loop. Inside a loop it cannot be given up; nobody forks there. */
static void give_up_team(void) { omp_pause_resource_all(omp_pause_soft); }

static void watch_forks(void) { pthread_atfork(give_up_team, NULL, NULL); }

static void use(int n) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    int why = 0;
    const int given = threads_given(n < KI_MOST_THREADS ? n : KI_MOST_THREADS, &why);
    if (why) ki_log(KITH_LOG_WARNING, "%d threads instead of %d: %s", given, n, strerror(why));
    omp_set_num_threads(given);
    is_settled = true;
}

/* OpenMP keeps its threads, and ends the process when it cannot make one: make them now, while there is room. */
static void make_team(void) {
    atomic_int n_here = 0;
#pragma omp parallel
    atomic_fetch_add(&n_here, 1);
}

int ki_threads(void) {
    if (!is_settled && !omp_in_parallel()) {
        const int now = omp_get_max_threads(), all = omp_get_num_procs();
        use(now == all ? ki_cores_allowed() : now);
        make_team();
    } else if (omp_get_max_threads() > atomic_load(&most_made) && !omp_in_parallel()) {
        use(omp_get_max_threads()); /* the process has set another number */
    }
    return omp_get_max_threads();
}

void ki_threads_set(int n) { use(n > 0 ? n : ki_cores_allowed()); }

kith_status ki_threads_ask(int64_t n, kith_error *err) {
    if (n < 0 || n > KI_MOST_THREADS) {
        ki_fail(err, KITH_EINVAL, "%lld threads; wanted 0 to %d", (long long)n, KI_MOST_THREADS);
        return ki_hint(err, KITH_EINVAL, "0 takes as many as there are cores, which is the fastest");
    }
    int why = 0;
    const int wanted = n > 0 ? (int)n : ki_cores_allowed(), given = threads_given(wanted, &why);
    if (n > 0 && given < wanted) {
        ki_fail(err, KITH_ENOMEM, "%d threads were asked for, and the system gives %d (%s)", wanted, given,
                strerror(why));
        return ki_hint(err, KITH_ENOMEM, "ask for fewer threads, or raise the limits (ulimit -u, ulimit -v)");
    }
    if (wanted > ki_cores_allowed())
        ki_log(
            KITH_LOG_WARNING,
            "%d threads were asked for, and %d fit: more are many times slower, because those that run wait "
            "for those that do not",
            wanted, ki_cores_allowed());
    use(wanted);
    return KITH_OK;
}

int64_t kith_threads(void) { return ki_threads(); }
kith_status kith_threads_set(int64_t n, kith_error *err) { return ki_threads_ask(n, err); }

void ki_parallel_for(int64_t n, int64_t grain, ki_range_fn fn, void *context) {
    if (n <= 0) return;
    if (grain < 1) grain = 1;
    int64_t n_runs = n / grain;
    if (n_runs > 1 && n_runs > ki_threads()) n_runs = ki_threads();
    if (n_runs <= 1 || omp_in_parallel()) {
        fn(context, 0, n);
        return;
    }
#pragma omp parallel for schedule(static, 1) num_threads((int)n_runs)
    for (int64_t r = 0; r < n_runs; r++) fn(context, n * r / n_runs, n * (r + 1) / n_runs);
}
