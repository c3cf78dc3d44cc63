/* SHA-256 (FIPS 180-4); kith/eval.h has the contract. */
#include <string.h>

#include "kith/eval.h"

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

/* One round. The letters shift by one place in every round. The caller passes them in shifted order, so nothing
 * is copied. */
static inline void turn(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e, uint32_t f, uint32_t g,
                        uint32_t *h, uint32_t k_and_w) {
    const uint32_t one = *h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + k_and_w;
    const uint32_t two = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    *d += one;
    *h = one + two;
}

static void mix(uint32_t state[8], const uint8_t block[64]) {
    uint32_t w[64];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        const uint32_t x = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        const uint32_t y = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + x + w[i - 7] + y;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; i += 8) {
        turn(a, b, c, &d, e, f, g, &h, K[i] + w[i]);
        turn(h, a, b, &c, d, e, f, &g, K[i + 1] + w[i + 1]);
        turn(g, h, a, &b, c, d, e, &f, K[i + 2] + w[i + 2]);
        turn(f, g, h, &a, b, c, d, &e, K[i + 3] + w[i + 3]);
        turn(e, f, g, &h, a, b, c, &d, K[i + 4] + w[i + 4]);
        turn(d, e, f, &g, h, a, b, &c, K[i + 5] + w[i + 5]);
        turn(c, d, e, &f, g, h, a, &b, K[i + 6] + w[i + 6]);
        turn(b, c, d, &e, f, g, h, &a, K[i + 7] + w[i + 7]);
    }
    const uint32_t after[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++) state[i] += after[i];
}

static void begin(kith_hash *hash) {
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    if (hash->n_bytes == 0) memcpy(hash->state, first, sizeof first);
}

void kith_hash_add(kith_hash *hash, const void *bytes, size_t n) {
    if (!hash || !bytes) return;
    const uint8_t *from = bytes;
    begin(hash);
    while (n > 0) {
        const size_t used = hash->n_bytes % 64, take = n < 64 - used ? n : 64 - used;
        memcpy(hash->block + used, from, take);
        from += take, n -= take, hash->n_bytes += take;
        if (hash->n_bytes % 64 == 0) mix(hash->state, hash->block);
    }
}

void kith_hash_finish(kith_hash *hash, char ret_hex[65]) {
    if (!hash || !ret_hex) return;
    static const uint8_t padding[64] = {0x80};
    static const char digits[] = "0123456789abcdef";
    uint8_t length[8];
    begin(hash);
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)(hash->n_bytes * 8 >> (56 - 8 * i));
    kith_hash_add(hash, padding, 1 + (size_t)(119 - hash->n_bytes % 64) % 64);
    kith_hash_add(hash, length, sizeof length);
    for (int i = 0; i < 64; i++) ret_hex[i] = digits[hash->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    ret_hex[64] = '\0';
    *hash = (kith_hash){0};
}
