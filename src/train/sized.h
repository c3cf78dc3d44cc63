/* Sized: what a learner makes for one batch size (a plan and what belongs to it) is kept in one of a few places.
 * Batches of a data set have one size except for the last of an epoch, or a few sizes if classes are never split. A size is a number
 * of images and, where images of several sides are trained on, their side. */
#ifndef KI_SIZED_H
#define KI_SIZED_H

#include <stdbool.h>
#include <stdint.h>

enum { KI_N_SIZED = 4, KI_MOST_SIZED = 12 };

typedef struct ki_sized {
    struct {
        int64_t mb, side; /* mb 0: free */
        uint64_t last_used;
    } place[KI_MOST_SIZED];
    int n_more; /* places above KI_N_SIZED */
    uint64_t n_uses;
} ki_sized;

/* The place of what was made for batches of mb images of a side, or (*ret_is_new) the place to make it in: place 0 for the
 * first size asked for, which stays there; otherwise the place used longest ago, whose content must be freed. */
int ki_sized_place(ki_sized *sized, int64_t mb, int64_t side, bool *ret_is_new);
/* Call this if making it failed: the place is then free. */
void ki_sized_forget(ki_sized *sized, int place);

#endif
