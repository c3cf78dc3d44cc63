/* Sized: what a learner makes for one batch size (a plan and what belongs to it) is kept in one of a few places. Batches
 * of a data set are of one size but for the last of an epoch, or of a few sizes where a class is never cut. */
#ifndef KI_SIZED_H
#define KI_SIZED_H

#include <stdbool.h>
#include <stdint.h>

enum { KI_N_SIZED = 4 };

typedef struct ki_sized {
    struct {
        int64_t mb; /* 0: free */
        uint64_t last_used;
    } place[KI_N_SIZED];
    uint64_t n_uses;
} ki_sized;

/* The place of what was made for batches of mb images, or (*ret_is_new) the one to make it in: place 0 for the first
 * size asked for, which stays there; else the place used longest ago, whose content goes. */
int ki_sized_place(ki_sized *sized, int64_t mb, bool *ret_is_new);
/* Making it failed: the place is free. */
void ki_sized_forget(ki_sized *sized, int place);

#endif
