/* EXIF blocks made field by field, in either byte order, and files around them. */
#ifndef KITH_TEST_MADE_EXIF_H
#define KITH_TEST_MADE_EXIF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { MADE_EXIF_BYTES = 4096, MADE_ENTRIES = 16 };

typedef struct made_entry {
    uint32_t tag, type, count;
    uint8_t data[128];
    size_t n; /* bytes of data */
} made_entry;

typedef struct made_exif {
    bool is_big_endian;
    made_entry entry[3][MADE_ENTRIES]; /* the first directory, EXIF's, GPS's */
    int n[3];
} made_exif;

static inline size_t made_number(const made_exif *x, uint8_t *to, uint32_t value, size_t n) {
    for (size_t i = 0; i < n; i++) to[x->is_big_endian ? n - 1 - i : i] = (uint8_t)(value >> (8 * i));
    return n;
}

static inline made_entry *made_tag(made_exif *x, int directory, uint32_t tag, uint32_t type, uint32_t count) {
    made_entry *e = &x->entry[directory][x->n[directory]++];
    *e = (made_entry){.tag = tag, .type = type, .count = count};
    return e;
}

static inline void made_ascii(made_exif *x, int directory, uint32_t tag, const char *text) {
    made_entry *e = made_tag(x, directory, tag, 2, (uint32_t)strlen(text) + 1);
    e->n = strlen(text) + 1;
    memcpy(e->data, text, e->n);
}

static inline void made_rational(made_exif *x, int directory, uint32_t tag, const uint32_t *parts,
                                 uint32_t n) {
    made_entry *e = made_tag(x, directory, tag, 5, n);
    for (uint32_t i = 0; i < 2 * n; i++) e->n += made_number(x, e->data + e->n, parts[i], 4);
}

/* One photo with everything. */
static inline void made_all(made_exif *x, bool is_big_endian) {
    *x = (made_exif){.is_big_endian = is_big_endian};
    made_ascii(x, 0, 0x10f, "Canon");
    made_ascii(x, 0, 0x110, "Canon EOS R6");
    made_ascii(x, 1, 0x9003, "2021:05:03 14:07:22");
    made_ascii(x, 1, 0x9011, "+02:00");
    made_ascii(x, 1, 0xa434, "RF24-105mm  F4 L IS USM ");
    made_ascii(x, 2, 1, "S");
    made_rational(x, 2, 2, (uint32_t[]){33, 1, 51, 1, 3150, 100}, 3);
    made_ascii(x, 2, 3, "E");
    made_rational(x, 2, 4, (uint32_t[]){151, 1, 12, 1, 0, 0}, 3);
    made_tag(x, 2, 5, 1, 1)->n = 1;
    made_rational(x, 2, 6, (uint32_t[]){585, 10}, 1);
}

/* The block; its bytes. Directories come after each other, values behind each. */
static inline size_t made_block(const made_exif *x, uint8_t *to) {
    memset(to, 0, MADE_EXIF_BYTES);
    memcpy(to, x->is_big_endian ? "MM\0*" : "II*\0", 4);
    made_number(x, to + 4, 8, 4);
    size_t at = 8, link[3] = {0};
    for (int d = 0; d < 3; d++) {
        const size_t n_links = d == 0 ? (size_t)(x->n[1] > 0) + (size_t)(x->n[2] > 0) : 0;
        const size_t n = (size_t)x->n[d] + n_links, begin = at;
        if (n == 0) continue;
        if (d > 0) made_number(x, to + link[d], (uint32_t)at, 4);
        made_number(x, to + at, (uint32_t)n, 2);
        size_t value = begin + 2 + n * 12 + 4;
        at += 2;
        for (int i = 0; i < x->n[d]; i++, at += 12) {
            const made_entry *e = &x->entry[d][i];
            made_number(x, to + at, e->tag, 2);
            made_number(x, to + at + 2, e->type, 2);
            made_number(x, to + at + 4, e->count, 4);
            if (e->n <= 4) {
                memcpy(to + at + 8, e->data, e->n);
                continue;
            }
            made_number(x, to + at + 8, (uint32_t)value, 4);
            memcpy(to + value, e->data, e->n);
            value += e->n + e->n % 2;
        }
        for (int k = 1; d == 0 && k < 3; k++) {
            if (x->n[k] == 0) continue;
            made_number(x, to + at, k == 1 ? 0x8769 : 0x8825, 2);
            made_number(x, to + at + 2, 4, 2);
            made_number(x, to + at + 4, 1, 4);
            link[k] = at + 8;
            at += 12;
        }
        at = value;
    }
    return at;
}

static inline void made_be(uint8_t *to, size_t value, int n) {
    for (int i = 0; i < n; i++) to[i] = (uint8_t)(value >> (8 * (n - 1 - i)));
}

/* APP1 of a JPEG, to be put behind its first two bytes. */
static inline size_t made_app1(const uint8_t *block, size_t n, uint8_t *to) {
    memcpy(to, "\xff\xe1\0\0Exif\0\0", 10);
    made_be(to + 2, n + 8, 2);
    memcpy(to + 10, block, n);
    return n + 10;
}

/* A copy of the JPEG at `from` with the block in it. */
static inline bool made_jpeg(const char *from, const uint8_t *block, size_t n, const char *to) {
    static uint8_t bytes[1 << 20], app1[1 << 16];
    FILE *in = fopen(from, "rb");
    if (!in) return false;
    const size_t n_bytes = fread(bytes, 1, sizeof bytes, in), n_app1 = made_app1(block, n, app1);
    fclose(in);
    FILE *out = fopen(to, "wb");
    if (!out || n_bytes < 2) return false;
    const bool is_good = fwrite(bytes, 1, 2, out) == 2 && fwrite(app1, 1, n_app1, out) == n_app1 &&
                         fwrite(bytes + 2, 1, n_bytes - 2, out) == n_bytes - 2;
    return fclose(out) == 0 && is_good;
}

#endif
