/* Which place holds what was made for a batch size. A new size replaces the one used longest ago. */
#include "train/sized.h"

int ki_sized_place(ki_sized *s, int64_t mb, int64_t side, bool *ret_is_new) {
    int at = s->n_uses == 0 ? 0 : 1;
    *ret_is_new = false;
    for (int i = 0; i < KI_N_SIZED + s->n_more; i++) {
        if (s->place[i].mb == mb && s->place[i].side == side) {
            s->place[i].last_used = ++s->n_uses;
            return i;
        }
        if (at > 0 && i > 0 && s->place[i].last_used < s->place[at].last_used) at = i;
    }
    *ret_is_new = true;
    s->place[at].mb = mb;
    s->place[at].side = side;
    s->place[at].last_used = ++s->n_uses;
    return at;
}

void ki_sized_forget(ki_sized *s, int place) {
    s->place[place].mb = 0;
    s->place[place].last_used = 0;
    if (place == 0) s->n_uses = 0;
}
