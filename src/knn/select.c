/* Selection and sorting of keys. Keys of one list are all different (the index is part of them). */
#include "knn/topk.h"

static inline ki_key middle(ki_key a, ki_key b, ki_key c) {
    const ki_key low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

static void insertion_sort(ki_key *keys, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        const ki_key key = keys[i];
        int64_t j = i;
        for (; j > 0 && keys[j - 1] < key; j--) keys[j] = keys[j - 1];
        keys[j] = key;
    }
}

/* Pivot from nine keys spread over the range: close to the median without a pass over the data. */
static ki_key pivot_of(const ki_key *keys, int64_t n) {
    const int64_t step = n / 9;
    ki_key m[3];
    for (int i = 0; i < 3; i++) m[i] = middle(keys[i * step], keys[(i + 3) * step], keys[(i + 6) * step]);
    return middle(m[0], m[1], m[2]);
}

enum { SMALL = 32 };

void ki_keys_select(const ki_knn_kernel *kernel, ki_key *keys, int64_t n, int64_t k, ki_key *scratch) {
    while (n > SMALL) {
        if (k <= 0 || k >= n) return;
        const int64_t n_above = kernel->partition(keys, n, pivot_of(keys, n), scratch);
        if (k <= n_above) {
            n = n_above;
        } else if (n_above == 0) {
            /* The pivot is the largest key: put it first and continue without it. */
            ki_key *best = keys;
            for (int64_t i = 1; i < n; i++) best = keys[i] > *best ? keys + i : best;
            const ki_key key = *best;
            *best = keys[0];
            keys[0] = key;
            keys++, n--, k--;
        } else {
            keys += n_above, n -= n_above, k -= n_above;
        }
    }
    insertion_sort(keys, n);
}

void ki_keys_sort(const ki_knn_kernel *kernel, ki_key *keys, int64_t n, ki_key *scratch) {
    while (n > SMALL) {
        const int64_t n_above = kernel->partition(keys, n, pivot_of(keys, n), scratch);
        if (n_above == 0) {
            ki_keys_select(kernel, keys, n, 1, scratch);
            keys++, n--;
            continue;
        }
        if (n_above < n - n_above) {
            ki_keys_sort(kernel, keys, n_above, scratch);
            keys += n_above, n -= n_above;
        } else {
            ki_keys_sort(kernel, keys + n_above, n - n_above, scratch);
            n = n_above;
        }
    }
    insertion_sort(keys, n);
}
