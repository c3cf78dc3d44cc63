/* SHA-1 (FIPS 180-4), for the names that git gives to files. */
#include "hub/git_hash.h"

#include <string.h>

#include "base/text.h"

static uint32_t rotate(uint32_t x, int n) { return x << n | x >> (32 - n); }

static void mix(uint32_t state[5], const uint8_t block[64]) {
    uint32_t w[80];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 80; i++) w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (int i = 0; i < 80; i++) {
        static const uint32_t k[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
        const int part = i / 20;
        const uint32_t f = part == 0   ? (b & c) | (~b & d)
                           : part == 2 ? (b & c) | (b & d) | (c & d)
                                       : b ^ c ^ d;
        const uint32_t t = rotate(a, 5) + f + e + k[part] + w[i];
        e = d, d = c, c = rotate(b, 30), b = a, a = t;
    }
    const uint32_t after[5] = {a, b, c, d, e};
    for (int i = 0; i < 5; i++) state[i] += after[i];
}

void ki_git_hash_plain(ki_git_hash *hash) {
    *hash = (ki_git_hash){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}};
}

void ki_git_hash_begin(ki_git_hash *hash, int64_t file_bytes) {
    char head[40];
    ki_git_hash_plain(hash);
    const int n = ki_snprintf(head, sizeof head, "blob %lld", (long long)file_bytes);
    ki_git_hash_add(hash, head, (size_t)n + 1); /* its NUL counts */
}

void ki_git_hash_add(ki_git_hash *hash, const void *bytes, size_t n) {
    const uint8_t *from = bytes;
    while (n > 0) {
        const size_t used = hash->n_bytes % 64, take = n < 64 - used ? n : 64 - used;
        memcpy(hash->block + used, from, take);
        from += take, n -= take, hash->n_bytes += take;
        if (hash->n_bytes % 64 == 0) mix(hash->state, hash->block);
    }
}

void ki_git_hash_finish(ki_git_hash *hash, char ret_hex[41]) {
    static const uint8_t padding[64] = {0x80};
    static const char digits[] = "0123456789abcdef";
    uint8_t length[8];
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)(hash->n_bytes * 8 >> (56 - 8 * i));
    ki_git_hash_add(hash, padding, 1 + (size_t)(119 - hash->n_bytes % 64) % 64);
    ki_git_hash_add(hash, length, sizeof length);
    for (int i = 0; i < 40; i++) ret_hex[i] = digits[hash->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    ret_hex[40] = '\0';
}
