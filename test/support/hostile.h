/* Image files that cost a server far more than they cost whoever sends them: a one-colour PNG, and a JPEG of many scans. Written
 * byte by byte, so that making them takes neither memory nor a library that would refuse to. */
#ifndef KITH_TESTING_HOSTILE_H
#define KITH_TESTING_HOSTILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

/* Zero-initialise; free(bytes). */
typedef struct hostile_file {
    uint8_t *bytes;
    size_t n, room;
    uint32_t bits; /* of a JPEG's scan, not yet a byte */
    int n_bits;
} hostile_file;

static inline void hostile_put(hostile_file *f, const void *bytes, size_t n) {
    if (f->n + n > f->room) {
        f->room = 2 * (f->n + n);
        if (!(f->bytes = realloc(f->bytes, f->room))) abort();
    }
    memcpy(f->bytes + f->n, bytes, n);
    f->n += n;
}

static inline void hostile_byte(hostile_file *f, int value) {
    const uint8_t byte = (uint8_t)value;
    hostile_put(f, &byte, 1);
}

static inline void hostile_chunk(hostile_file *f, const char *name, const void *bytes, size_t n) {
    const uint8_t length[4] = {(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
    uLong sum = crc32(0, (const Bytef *)name, 4);
    if (n > 0) sum = crc32(sum, bytes, (uInt)n);
    const uint8_t check[4] = {(uint8_t)(sum >> 24), (uint8_t)(sum >> 16), (uint8_t)(sum >> 8), (uint8_t)sum};
    hostile_put(f, length, 4);
    hostile_put(f, name, 4);
    if (n > 0) hostile_put(f, bytes, n);
    hostile_put(f, check, 4);
}

/* A black RGB image of side x side pixels: a thousandth of its pixels' bytes, and n_more in a chunk that readers pass over. */
static inline hostile_file hostile_png(int side, size_t n_more) {
    hostile_file f = {0}, packed = {0};
    const size_t n_row = 3 * (size_t)side + 1;
    uint8_t *row = calloc(1, n_row), out[65536];
    z_stream z = {0};
    if (!row || deflateInit(&z, 9) != Z_OK) abort();
    for (int y = 0; y <= side; y++) {
        z.next_in = row;
        z.avail_in = y < side ? (uInt)n_row : 0;
        do {
            z.next_out = out;
            z.avail_out = sizeof out;
            deflate(&z, y < side ? Z_NO_FLUSH : Z_FINISH);
            hostile_put(&packed, out, sizeof out - z.avail_out);
        } while (z.avail_out == 0);
    }
    deflateEnd(&z);
    free(row);
    const uint8_t head[13] = {(uint8_t)(side >> 24),
                              (uint8_t)(side >> 16),
                              (uint8_t)(side >> 8),
                              (uint8_t)side,
                              (uint8_t)(side >> 24),
                              (uint8_t)(side >> 16),
                              (uint8_t)(side >> 8),
                              (uint8_t)side,
                              8,
                              2,
                              0,
                              0,
                              0};
    hostile_put(&f, "\x89PNG\r\n\x1a\n", 8);
    hostile_chunk(&f, "IHDR", head, sizeof head);
    if (n_more > 0) {
        void *more = calloc(1, n_more);
        if (!more) abort();
        hostile_chunk(&f, "kiTh", more, n_more);
        free(more);
    }
    hostile_chunk(&f, "IDAT", packed.bytes, packed.n);
    hostile_chunk(&f, "IEND", NULL, 0);
    free(packed.bytes);
    return f;
}

static inline void hostile_bits(hostile_file *f, uint32_t value, int n) {
    for (int i = n - 1; i >= 0; i--) {
        f->bits = f->bits << 1 | (value >> i & 1);
        if (++f->n_bits < 8) continue;
        hostile_byte(f, (int)(f->bits & 255));
        if ((f->bits & 255) == 255) hostile_byte(f, 0);
        f->n_bits = 0;
    }
}

static inline void hostile_end_bits(hostile_file *f) {
    while (f->n_bits > 0) hostile_bits(f, 1, 1);
}

/* A grey-looking colour image of side x side pixels in n_scans scans, each a few bytes: "nothing changes in these 32,767 blocks". */
static inline hostile_file hostile_jpeg(int side, int n_scans) {
    hostile_file f = {0};
    const long n_blocks = (long)((side + 7) / 8) * ((side + 7) / 8);
    hostile_put(&f, "\xff\xd8\xff\xdb\x00\x43\x00", 7);
    for (int i = 0; i < 64; i++) hostile_byte(&f, 1);
    const uint8_t frame[] = {0xff,
                             0xc2,
                             0,
                             17,
                             8,
                             (uint8_t)(side >> 8),
                             (uint8_t)side,
                             (uint8_t)(side >> 8),
                             (uint8_t)side,
                             3,
                             1,
                             0x11,
                             0,
                             2,
                             0x11,
                             0,
                             3,
                             0x11,
                             0};
    hostile_put(&f, frame, sizeof frame);
    /* One code of one bit: the difference of a block's mean from that before is 0. */
    const uint8_t means[] = {0xff, 0xc4, 0, 20, 0x00, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    hostile_put(&f, means, sizeof means);
    /* Fifteen codes of four bits: runs of 2^0 … 2^14 blocks and more in which nothing changes. */
    const uint8_t runs[] = {0xff, 0xc4, 0, 34, 0x10, 0, 0, 0, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    hostile_put(&f, runs, sizeof runs);
    for (int i = 0; i < 15; i++) hostile_byte(&f, i << 4);
    hostile_put(&f, "\xff\xda\x00\x0c\x03\x01\x00\x02\x00\x03\x00\x00\x00\x00", 14);
    for (long i = 0; i < 3 * n_blocks; i++) hostile_bits(&f, 0, 1);
    hostile_end_bits(&f);
    for (int scan = 1; scan < n_scans; scan++) {
        const bool is_first = scan <= 3; /* of its component */
        const uint8_t head[] = {
            0xff, 0xda, 0, 8, 1, (uint8_t)(1 + (scan - 1) % 3), 0x00, 1, 63, is_first ? 0x01 : 0x10};
        hostile_put(&f, head, sizeof head);
        for (long left = n_blocks; left > 0;) {
            const long run = left < 32767 ? left : 32767;
            int size = 0;
            while (run >> (size + 1)) size++;
            hostile_bits(&f, (uint32_t)size, 4);
            hostile_bits(&f, (uint32_t)(run - (1L << size)), size);
            left -= run;
        }
        hostile_end_bits(&f);
    }
    hostile_put(&f, "\xff\xd9", 2);
    return f;
}

#endif
