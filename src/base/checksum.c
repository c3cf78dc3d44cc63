/* Four lanes side by side, so that a core can multiply without waiting for the previous product. Each lane mixes in
 * its next 8 bytes by steps that can be undone (xor, an odd factor, xor with the upper half), so two different
 * states, or two different groups of bytes, never give the same result. That is why a change in one lane cannot be
 * lost. */
#include "base/checksum.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are taken from memory as they lie");

enum { WORD = 8, LANES = 4, GROUP = WORD * LANES };

static inline uint64_t mix(uint64_t state, uint64_t word) {
    state = (state ^ word) * 0x9e3779b97f4a7c15u; /* 2^64 over the golden ratio, odd */
    return state ^ state >> 32;
}

static inline uint64_t word_at(const unsigned char *bytes, size_t n) {
    uint64_t word = 0;
    memcpy(&word, bytes, n < WORD ? n : WORD);
    return word;
}

uint64_t ki_checksum(const void *bytes, size_t n, uint64_t before) {
    const unsigned char *at = bytes;
    uint64_t lane[LANES] = {1, 2, 3, 4};
    size_t left = n;
    for (; left >= GROUP; at += GROUP, left -= GROUP) {
        for (int i = 0; i < LANES; i++) lane[i] = mix(lane[i], word_at(at + WORD * i, WORD));
    }
    for (int i = 0; left > 0; i++) {
        const size_t take = left < WORD ? left : WORD;
        lane[i] = mix(lane[i], word_at(at, take));
        at += take;
        left -= take;
    }
    uint64_t all = mix(mix(before, LANES), n);
    for (int i = 0; i < LANES; i++) all = mix(all, lane[i]);
    return all;
}
