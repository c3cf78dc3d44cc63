/* The running k best of every row. Candidates that pass the row's threshold go to a small buffer; a
 * full buffer is merged with the list by selection, which raises the threshold. Memory: n * (k + buffer)
 * keys of 8 bytes. */
#ifndef KI_TOPK_H
#define KI_TOPK_H

#include <stdbool.h>
#include <string.h>

#include "knn/tiles.h"

/* The score in the upper half, the complemented index in the lower: larger is nearer, and of equal scores the lower
 * index comes first. */
typedef uint64_t ki_key;

static inline ki_key ki_key_make(float score, int64_t index) {
    const float s = score + 0.0F; /* -0 becomes 0 */
    uint32_t bits;
    memcpy(&bits, &s, sizeof bits);
    bits ^= bits >> 31 ? UINT32_MAX : UINT32_C(0x80000000);
    return (ki_key)bits << 32 | (uint32_t) ~(uint32_t)index;
}
static inline float ki_key_score(ki_key key) {
    uint32_t bits = (uint32_t)(key >> 32);
    bits ^= bits >> 31 ? UINT32_C(0x80000000) : UINT32_MAX;
    float score;
    memcpy(&score, &bits, sizeof score);
    return score;
}
static inline int32_t ki_key_index(ki_key key) { return (int32_t) ~(uint32_t)key; }

typedef struct ki_topk {
    int64_t n, k;
    int buffer;
    size_t stride; /* bytes from one list to the next */
    char *lists;   /* k keys of each; bytes, because the caller's array need not be aligned for keys */
    bool owns_lists;
    ki_key *buffers;     /* [n, buffer] */
    int32_t *n_list;     /* [n] */
    int32_t *n_wait;     /* [n] */
    float *least;        /* [n], padded to whole blocks: what a candidate must reach */
    ki_key *scratch;     /* [slots, 2 (k + buffer)] */
    const int32_t *self; /* [n] or NULL */
    bool is_square;      /* row i and column i are the same thing */
    /* Columns that may be found: bit c % 64 of word c / 64, for whole blocks. NULL: all. Not with is_square */
    const uint64_t *allowed;
    const ki_knn_kernel *kernel;
} ki_topk;

/* lists, `stride` bytes apart, may be NULL: then the object owns them. */
kith_status ki_topk_init(int64_t n, int64_t k, void *lists, size_t stride, ki_topk *ret_topk,
                         kith_error *err);
void ki_topk_release(ki_topk *topk);

/* A ki_stripe_fn; context is the ki_topk. */
void ki_topk_consume(void *context, const ki_stripe *stripe);

/* Offer a candidate to the list of row i; from one thread at a time. */
void ki_topk_offer(ki_topk *topk, int64_t i, ki_key key, int slot);

/* The list of row i, best first, in the slot's scratch; *ret_n says how many there are. */
const ki_key *ki_topk_finish(ki_topk *topk, int64_t i, int slot, int64_t *ret_n);

/* Move the k largest of keys[n] to the front, in any order; k <= n. scratch [n]. */
void ki_keys_select(const ki_knn_kernel *kernel, ki_key *keys, int64_t n, int64_t k, ki_key *scratch);
/* Largest first. */
void ki_keys_sort(const ki_knn_kernel *kernel, ki_key *keys, int64_t n, ki_key *scratch);

#endif
