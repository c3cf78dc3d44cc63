/* Passes over one row of pairs: the inner loops of losses and miners, vectorised once.
 *
 * A row is n numbers `s` and n bytes `pair` (KI_PAIR_NONE, _POSITIVE, _NEGATIVE). Every pass touches the
 * entries of one kind and leaves the others as they were. The loops are compiled for several instruction sets
 * and the best one the machine has is taken; sums depend on that choice in the last bits, never on threads. A
 * row of 2,048 fits in the first-level cache, so several simple passes cost little more than one complex
 * pass. */
#ifndef KI_OBJECTIVE_VEC_H
#define KI_OBJECTIVE_VEC_H

#include <stdint.h>

#include "base/real.h"
#include "objective/pair/kinds.h"

typedef struct ki_vec {
    /* pair[j] = POSITIVE when label[j] == mine, else NEGATIVE. */
    void (*compare)(const int32_t *label, int32_t mine, uint8_t *pair, int64_t n);
    int64_t (*count)(const uint8_t *pair, int kind, int64_t n);
    /* Largest and smallest s of the kind; -KI_REAL_MAX and KI_REAL_MAX when there is none. */
    ki_real (*max)(const ki_real *s, const uint8_t *pair, int kind, int64_t n);
    ki_real (*min)(const ki_real *s, const uint8_t *pair, int kind, int64_t n);
    /* dst = exp(a (s - c)); returns the sum. */
    ki_real (*exp)(const ki_real *s, const uint8_t *pair, int kind, ki_real a, ki_real c, ki_real *dst,
                   int64_t n);
    /* Returns the sum of softplus(a (s - c)); dst = weight * its derivative by s. */
    ki_real (*softplus)(const ki_real *s, const uint8_t *pair, int kind, ki_real a, ki_real c, ki_real weight,
                        ki_real *dst, int64_t n);
    /* Returns the sum of max(0, a (s - c)) and counts the entries above 0; dst = weight * derivative. */
    ki_real (*hinge)(const ki_real *s, const uint8_t *pair, int kind, ki_real a, ki_real c, ki_real weight,
                     ki_real *dst, int64_t *ret_active, int64_t n);
    /* dst *= factor. */
    void (*scale)(const uint8_t *pair, int kind, ki_real factor, ki_real *dst, int64_t n);
    /* Entries of the kind outside (low, high) become NONE; returns how many stay. */
    int64_t (*prune)(const ki_real *s, int kind, ki_real low, ki_real high, uint8_t *pair, int64_t n);
    /* s = max(0, mine + sq - 2 s): squared distances from inner products, all entries. Returns the least of s
     * / (mine + sq), which shows whether some points are so near that their distance is inexact. */
    ki_real (*distance)(ki_real *s, ki_real mine, const ki_real *sq, int64_t n);
    /* One positive of an anchor against its negatives: t_j = c - v_j; for keys inside (low, high) and
     * t_j > 0: count, sum of t, and add[j] += 1. v and key may be the same array. */
    ki_real (*triplet)(const ki_real *v, const ki_real *key, ki_real low, ki_real high, ki_real c,
                       ki_real *add, int64_t *ret_active, int64_t n);
    /* Plain arrays, no kinds. dst = exp(a (s - c)), its sum; the sum of a[j] b[j]; dst += a src; dst = a src;
     * dst = a (src - b other), or added to dst; is every number finite? */
    ki_real (*exp_all)(const ki_real *s, ki_real a, ki_real c, ki_real *dst, int64_t n);
    ki_real (*dot)(const ki_real *a, const ki_real *b, int64_t n);
    void (*add)(const ki_real *src, ki_real a, ki_real *dst, int64_t n);
    void (*copy)(const ki_real *src, ki_real a, ki_real *dst, int64_t n);
    void (*less)(const ki_real *src, const ki_real *other, ki_real a, ki_real b, ki_real *dst, int64_t n);
    void (*add_less)(const ki_real *src, const ki_real *other, ki_real a, ki_real b, ki_real *dst, int64_t n);
    int (*finite)(const ki_real *src, int64_t n);
    /* Sum of |a[j] - b[j]|, and its derivative by a: dst += weight * sign(a - b), 0 where they are equal. */
    ki_real (*l1)(const ki_real *a, const ki_real *b, int64_t n);
    void (*l1_backward)(const ki_real *a, const ki_real *b, ki_real weight, ki_real *dst, int64_t n);
    /* The largest |src|, and how many |src| are above a limit. */
    ki_real (*max_size)(const ki_real *src, int64_t n);
    int64_t (*count_above)(const ki_real *src, ki_real limit, int64_t n);
    /* The sums of the |src| that are not above each of three limits; the plain sum. */
    void (*sums_below)(const ki_real *src, const ki_real limit[3], ki_real ret_sum[3], int64_t n);
    ki_real (*sum)(const ki_real *src, int64_t n);
} ki_vec;

/* The passes for this machine. */
const ki_vec *ki_vec_get(void);

#endif
