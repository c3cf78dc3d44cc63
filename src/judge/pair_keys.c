/* Radix sort of 64-bit keys, 11 bits at a time from the lowest: linear, and indifferent to equal keys, with which the
 * selection of knn/select.c would take quadratic time. */
#include "judge/pair_keys.h"

enum { BITS = 11, N_DIGITS = 1 << BITS, N_PASSES = 6 };

void ki_pair_keys_sort(ki_key *keys, int64_t n, ki_key *scratch) {
    ki_key *from = keys, *to = scratch;
    for (int pass = 0; pass < N_PASSES; pass++) {
        int64_t place[N_DIGITS] = {0};
        const int shift = pass * BITS;
        for (int64_t i = 0; i < n; i++) place[~from[i] >> shift & (N_DIGITS - 1)]++;
        int64_t sum = 0, most = 0;
        for (int d = 0; d < N_DIGITS; d++) {
            const int64_t here = place[d];
            most = here > most ? here : most;
            place[d] = sum;
            sum += here;
        }
        if (most == n) continue; /* all keys have this digit */
        for (int64_t i = 0; i < n; i++) to[place[~from[i] >> shift & (N_DIGITS - 1)]++] = from[i];
        ki_key *other = from;
        from = to;
        to = other;
    }
    if (from != keys) memcpy(keys, from, (size_t)n * sizeof *keys);
}
