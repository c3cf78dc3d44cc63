/* A table of addresses in sets of a few places each, as a processor's cache has them. */
#include "serve/http/limit.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>

#include "base/alloc.h"

enum { N_SETS = 2048, N_WAYS = 16 };

typedef struct place {
    ki_address address;
    bool is_used;
    int64_t n_connections;
    int64_t n_held[KI_N_SHARES];
    double tokens;
    double seen; /* when tokens were counted */
} place;

struct ki_limits {
    double rate, burst;
    int64_t most_connections;
    uint64_t seed;
    pthread_mutex_t lock;
    place place[N_SETS * N_WAYS];
};

kith_status ki_limits_new(double rate, double burst, int64_t most_connections, ki_limits **ret,
                          kith_error *err) {
    ki_limits *l = NULL;
    KI_TRY(ki_zalloc_or(&l, 1, sizeof *l, "limits", err));
    l->rate = rate;
    l->burst = burst;
    l->most_connections = most_connections;
    /* Where there is no randomness yet, right after a machine has started, addresses decide as before. */
    if (getrandom(&l->seed, sizeof l->seed, GRND_NONBLOCK) != (ssize_t)sizeof l->seed) l->seed = 0;
    pthread_mutex_init(&l->lock, NULL);
    *ret = l;
    return KITH_OK;
}

void ki_limits_free(ki_limits *l) {
    if (!l) return;
    pthread_mutex_destroy(&l->lock);
    ki_free(l);
}

ki_address ki_limits_counted(const ki_address *address) {
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    ki_address a = *address;
    if (memcmp(a.byte, mapped, sizeof mapped) != 0 && !ki_address_is_loopback(&a)) memset(a.byte + 8, 0, 8);
    return a;
}

/* Two rounds of multiplying and folding, from a start that strangers do not know: nobody can choose addresses that share a set. */
static size_t set_of(const ki_limits *l, const ki_address *a) {
    uint64_t half[2], h = l->seed;
    memcpy(half, a->byte, sizeof half);
    for (int i = 0; i < 2; i++) {
        h = (h ^ half[i]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
        h *= 0xd6e8feb86659fd93u;
        h ^= h >> 32;
    }
    return (size_t)(h % N_SETS);
}

static bool is_idle(const place *p) {
    for (int i = 0; i < KI_N_SHARES; i++) {
        if (p->n_held[i] > 0) return false;
    }
    return p->n_connections == 0;
}

/* The place of an address; a new one takes that which was not seen for longest. NULL: all are in use. */
static place *find(ki_limits *l, const ki_address *address, double now) {
    const ki_address a = ki_limits_counted(address);
    place *first = &l->place[set_of(l, &a) * N_WAYS], *oldest = NULL;
    for (place *p = first; p < first + N_WAYS; p++) {
        if (p->is_used && memcmp(&p->address, &a, sizeof a) == 0) return p;
        if (!p->is_used) {
            if (!oldest || oldest->is_used) oldest = p;
        } else if (is_idle(p) && (!oldest || (oldest->is_used && p->seen < oldest->seen))) {
            oldest = p;
        }
    }
    if (oldest) *oldest = (place){.address = a, .is_used = true, .tokens = l->burst, .seen = now};
    return oldest;
}

int64_t ki_limits_connect(ki_limits *l, const ki_address *address, double now) {
    int64_t found = -1;
    pthread_mutex_lock(&l->lock);
    place *p = find(l, address, now);
    if (p && p->n_connections < l->most_connections) {
        p->n_connections++;
        found = p - l->place;
    }
    pthread_mutex_unlock(&l->lock);
    return found;
}

void ki_limits_disconnect(ki_limits *l, int64_t at) {
    if (at < 0) return;
    pthread_mutex_lock(&l->lock);
    l->place[at].n_connections--;
    pthread_mutex_unlock(&l->lock);
}

bool ki_limits_admit(ki_limits *l, const ki_address *address, double now, double *ret_wait) {
    bool may = true;
    pthread_mutex_lock(&l->lock);
    place *p = find(l, address, now);
    if (p) {
        p->tokens = fmin(l->burst, p->tokens + (now - p->seen) * l->rate);
        p->seen = now;
        may = p->tokens >= 1;
        if (may)
            p->tokens -= 1;
        else
            *ret_wait = (1 - p->tokens) / l->rate;
    }
    pthread_mutex_unlock(&l->lock);
    return may;
}

bool ki_limits_take(ki_limits *l, const ki_address *address, ki_limits_share share, int64_t n, int64_t most,
                    double now, int64_t *ret_place) {
    bool may = true;
    *ret_place = -1;
    pthread_mutex_lock(&l->lock);
    place *p = find(l, address, now);
    if (p) {
        may = p->n_held[share] + n <= most;
        if (may) {
            p->n_held[share] += n;
            *ret_place = p - l->place;
        }
    }
    pthread_mutex_unlock(&l->lock);
    return may;
}

void ki_limits_give_back(ki_limits *l, int64_t at, ki_limits_share share, int64_t n) {
    if (at < 0 || n == 0) return;
    pthread_mutex_lock(&l->lock);
    l->place[at].n_held[share] -= n;
    pthread_mutex_unlock(&l->lock);
}
