/* A queue in which clients take turns: one that asks for much waits for itself, and not others for it.
 *
 * Each entry begins where its client's last one ends, counted in cost, but not before what is served now; who begins first is served
 * first (start-time fair queueing). So a newcomer waits for one entry of each of the others, however many they have in the queue. Not
 * thread-safe: its owner has a lock. */
#ifndef KI_SERVE_TURNS_H
#define KI_SERVE_TURNS_H

#include <stdbool.h>

#include "serve/http/address.h"

typedef struct ki_turn ki_turn;
struct ki_turn {
    ki_address client; /* as limits count it (ki_limits_counted) */
    int64_t cost;      /* of serving it, in any unit; at least 1 */
    int64_t begins;
    ki_turn *next;
};

enum { KI_RECENT_TURNS = 64 };

/* Zero-initialise. */
typedef struct ki_turns {
    ki_turn *first; /* in the order in which they came */
    int64_t now;    /* where the latest one that was served began */
    struct {
        ki_address client;
        int64_t ends;
    } recent[KI_RECENT_TURNS]; /* that were served: their clients' next ones begin after them */
    int64_t n_served;
} ki_turns;

void ki_turns_add(ki_turns *turns, ki_turn *turn);
/* The next of those for which `may` holds (NULL: all); it stays in the queue. NULL: none. */
ki_turn *ki_turns_next(const ki_turns *turns, bool (*may)(const ki_turn *turn, void *context), void *context);
/* It is served, or given up. */
void ki_turns_serve(ki_turns *turns, ki_turn *turn);
void ki_turns_remove(ki_turns *turns, ki_turn *turn);
/* One that was served after all was not: it is the next of its client again. */
void ki_turns_put_back(ki_turns *turns, ki_turn *turn);

#endif
