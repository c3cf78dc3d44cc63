/* The running k best: buffers, thresholds, merging. */
#include "knn/topk.h"

#include <math.h>

#include "base/alloc.h"

kith_status ki_topk_init(int64_t n, int64_t k, void *lists, size_t stride, ki_topk *ret_topk,
                         kith_error *err) {
    kith_status status = KITH_OK;
    ki_topk t = {.n = n, .k = k, .lists = lists, .owns_lists = !lists, .kernel = ki_knn_kernel_best()};
    t.buffer = k < 64 ? 64 : k < 256 ? (int)k : 256;
    const size_t rows = (size_t)n, padded = ki_round_up(rows, KI_BLOCK);
    size_t list_bytes = 0, scratch = 0;
    if (!ki_mul_size((size_t)k, sizeof(ki_key), &list_bytes) ||
        !ki_mul_size((size_t)k + (size_t)t.buffer, 2 * sizeof(ki_key), &scratch))
        return ki_fail_memory(err, SIZE_MAX, "neighbour lists");
    t.stride = lists ? stride : list_bytes;
    if (!lists) KI_CHECK(ki_alloc_or(&t.lists, rows, list_bytes, "neighbour lists", err));
    KI_CHECK(ki_alloc_or(&t.buffers, rows, (size_t)t.buffer * sizeof(ki_key), "candidates", err));
    KI_CHECK(ki_zalloc_or(&t.n_list, rows, sizeof *t.n_list, "neighbour counts", err));
    KI_CHECK(ki_zalloc_or(&t.n_wait, rows, sizeof *t.n_wait, "candidate counts", err));
    KI_CHECK(ki_alloc_or(&t.least, padded, sizeof *t.least, "thresholds", err));
    KI_CHECK(ki_alloc_or(&t.scratch, (size_t)ki_tiles_slots(), scratch, "selection scratch", err));
    for (size_t i = 0; i < padded; i++) t.least[i] = i < rows ? -INFINITY : INFINITY;
    *ret_topk = t;
    return KITH_OK;
done:
    ki_topk_release(&t);
    return status;
}

void ki_topk_release(ki_topk *t) {
    if (t->owns_lists) ki_free(t->lists);
    ki_free(t->buffers);
    ki_free(t->n_list);
    ki_free(t->n_wait);
    ki_free(t->least);
    ki_free(t->scratch);
    *t = (ki_topk){0};
}

static ki_key *slot_scratch(const ki_topk *t, int slot) {
    return t->scratch + (size_t)slot * 2 * (size_t)(t->k + t->buffer);
}

/* Copy list and buffer of row i to scratch; returns how many keys there are. */
static int64_t gather(ki_topk *t, int64_t i, ki_key *keys) {
    const int64_t n_list = t->n_list[i], n_wait = t->n_wait[i];
    memcpy(keys, t->lists + (size_t)i * t->stride, (size_t)n_list * sizeof(ki_key));
    memcpy(keys + n_list, t->buffers + i * t->buffer, (size_t)n_wait * sizeof(ki_key));
    t->n_wait[i] = 0;
    return n_list + n_wait;
}

static __attribute__((noinline)) void merge(ki_topk *t, int64_t i, int slot) {
    ki_key *keys = slot_scratch(t, slot);
    int64_t n = gather(t, i, keys);
    if (n > t->k) {
        ki_keys_select(t->kernel, keys, n, t->k, keys + n);
        n = t->k;
    }
    if (n == t->k) {
        ki_key least = keys[0];
        for (int64_t j = 1; j < n; j++) least = keys[j] < least ? keys[j] : least;
        t->least[i] = ki_key_score(least);
    }
    memcpy(t->lists + (size_t)i * t->stride, keys, (size_t)n * sizeof(ki_key));
    t->n_list[i] = (int32_t)n;
}

static inline void push_key(ki_topk *t, int64_t i, ki_key key, int slot) {
    t->buffers[i * t->buffer + t->n_wait[i]++] = key;
    if (t->n_wait[i] == t->buffer) merge(t, i, slot);
}
static inline void push(ki_topk *t, int64_t i, int64_t j, float score, int slot) {
    push_key(t, i, ki_key_make(score, j), slot);
}

void ki_topk_offer(ki_topk *t, int64_t i, ki_key key, int slot) {
    if (ki_key_score(key) >= t->least[i]) push_key(t, i, key, slot);
}

void ki_topk_consume(void *context, const ki_stripe *stripe) {
    ki_topk *t = context;
    uint64_t row_mask[KI_MASK_WORDS], col_mask[KI_MASK_WORDS];
    const int n_words = (stripe->n_cols + 63) / 64;
    const uint64_t last = stripe->n_cols % 64 ? (UINT64_C(1) << stripe->n_cols % 64) - 1 : UINT64_MAX;
    for (int r = 0; r < stripe->n_rows; r++) {
        const int64_t i = stripe->row + r;
        const float *s = stripe->s + r * KI_BLOCK;
        if (stripe->both)
            t->kernel->compare(s, t->least[i], t->least + stripe->col, row_mask, col_mask);
        else
            t->kernel->compare_row(s, t->least[i], row_mask);
        const int64_t self = t->is_square ? i : t->self ? t->self[i] : -1;
        for (int w = 0; w < n_words; w++) {
            uint64_t valid = w == n_words - 1 ? last : UINT64_MAX;
            if (t->allowed) valid &= t->allowed[stripe->col / 64 + w];
            for (uint64_t bits = row_mask[w] & valid; bits; bits &= bits - 1) {
                const int c = w * 64 + __builtin_ctzll(bits);
                if (stripe->col + c != self) push(t, i, stripe->col + c, s[c], stripe->slot);
            }
            if (!stripe->both) continue;
            for (uint64_t bits = col_mask[w] & valid; bits; bits &= bits - 1) {
                const int c = w * 64 + __builtin_ctzll(bits);
                push(t, stripe->col + c, i, s[c], stripe->slot);
            }
        }
    }
}

const ki_key *ki_topk_finish(ki_topk *t, int64_t i, int slot, int64_t *ret_n) {
    ki_key *keys = slot_scratch(t, slot);
    int64_t n = gather(t, i, keys);
    if (n > t->k) {
        ki_keys_select(t->kernel, keys, n, t->k, keys + n);
        n = t->k;
    }
    ki_keys_sort(t->kernel, keys, n, keys + n);
    *ret_n = n;
    return keys;
}
