/* Start-time fair queueing over a list: queues are as long as there are requests in work, a few hundred. */
#include "serve/http/turns.h"

#include <string.h>

static bool is_same(const ki_address *a, const ki_address *b) { return memcmp(a, b, sizeof *a) == 0; }

void ki_turns_add(ki_turns *t, ki_turn *turn) {
    const int64_t n_recent = t->n_served < KI_RECENT_TURNS ? t->n_served : KI_RECENT_TURNS;
    ki_turn **last = &t->first;
    turn->begins = t->now;
    turn->next = NULL;
    for (int64_t i = 0; i < n_recent; i++) {
        if (is_same(&t->recent[i].client, &turn->client) && t->recent[i].ends > turn->begins)
            turn->begins = t->recent[i].ends;
    }
    for (; *last; last = &(*last)->next) {
        const int64_t ends = (*last)->begins + (*last)->cost;
        if (is_same(&(*last)->client, &turn->client) && ends > turn->begins) turn->begins = ends;
    }
    *last = turn;
}

ki_turn *ki_turns_next(const ki_turns *t, bool (*may)(const ki_turn *turn, void *context), void *context) {
    ki_turn *best = NULL;
    for (ki_turn *at = t->first; at; at = at->next) {
        if (best && at->begins >= best->begins) continue;
        if (!may || may(at, context)) best = at;
    }
    return best;
}

void ki_turns_remove(ki_turns *t, ki_turn *turn) {
    ki_turn **at = &t->first;
    while (*at && *at != turn) at = &(*at)->next;
    if (*at) *at = turn->next;
    turn->next = NULL;
}

void ki_turns_serve(ki_turns *t, ki_turn *turn) {
    const int64_t place = t->n_served++ % KI_RECENT_TURNS;
    ki_turns_remove(t, turn);
    t->recent[place].client = turn->client;
    t->recent[place].ends = turn->begins + turn->cost;
    if (turn->begins > t->now) t->now = turn->begins;
}

void ki_turns_put_back(ki_turns *t, ki_turn *turn) {
    turn->next = t->first;
    t->first = turn;
}
