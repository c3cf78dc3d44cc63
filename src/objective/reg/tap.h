/* Places of a network that terms read, for the host and for kernels. */
#ifndef KI_OBJECTIVE_TAP_H
#define KI_OBJECTIVE_TAP_H

#include <stdbool.h>

/* Other networks that see the batch beside the one that learns. */
enum { KI_MOST_TEACHERS = 4 };

typedef enum ki_tap {
    KI_TAP_MAP,       /* the last feature map [m, c, h, w] */
    KI_TAP_POOLED,    /* pooled features [m, c] */
    KI_TAP_EMBEDDING, /* the embedding [m, dim]; L2-normalised when the term says so (in->normalized) */
    KI_TAP_LOGITS,    /* cosine of embedding and proxies [m, n], without scale and margin */
    KI_TAP_WEIGHT,    /* the embedding layer's weight matrix [embedding, pooled]: no row per item */
    /* KI_TAP_TEACHER + t: what teacher t says of the batch [m, its width], as it left the teacher. Nothing flows back into a
     * teacher: these taps have no gradient. */
    KI_TAP_TEACHER,
    KI_N_TAPS = KI_TAP_TEACHER + KI_MOST_TEACHERS,
} ki_tap;

#define KI_TAP_BIT(tap) (1u << (tap))

static inline bool ki_tap_is_teacher(ki_tap tap) { return tap >= KI_TAP_TEACHER && tap < KI_N_TAPS; }
static inline ki_tap ki_tap_of_teacher(int teacher) { return (ki_tap)((int)KI_TAP_TEACHER + teacher); }

#endif
