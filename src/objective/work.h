/* Working memory of one evaluation: a stack that keeps its memory between steps.
 *
 * Take what a step needs, in any sizes; release everything above a mark when a part no longer needs it. The
 * first steps may allocate; once a step has shown its size, later ones of that size allocate nothing. What is
 * taken is 64-byte aligned and not cleared. */
#ifndef KI_OBJECTIVE_WORK_H
#define KI_OBJECTIVE_WORK_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/real.h"

typedef struct ki_work_block ki_work_block;

typedef struct ki_work {
    ki_work_block *block; /* the newest; older ones are linked after it */
    size_t peak_bytes;    /* the most that was in use at once since the last reset */
} ki_work;

typedef struct ki_work_mark {
    ki_work_block *block;
    size_t used;
} ki_work_mark;

/* n elements of `size` bytes; `what` is named in the error line when there is no memory. */
kith_status ki_work_take(ki_work *work, size_t n, size_t size, const char *what, void *ret_ptr,
                         kith_error *err);
static inline kith_status ki_work_reals(ki_work *work, int64_t n, const char *what, ki_real **ret,
                                        kith_error *err) {
    return ki_work_take(work, (size_t)n, sizeof **ret, what, ret, err);
}

ki_work_mark ki_work_here(const ki_work *work);
/* Everything taken after the mark is released (to the stack, not to the system). */
void ki_work_rewind(ki_work *work, ki_work_mark mark);

/* Start of a step: everything is released, and several blocks become one. */
void ki_work_reset(ki_work *work);
/* Return the memory to the system; the struct is then ready for use again. */
void ki_work_release(ki_work *work);

#endif
