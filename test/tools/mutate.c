/* Damage a file as a fuzzer would: mutate SEED IN OUT. The same seed makes the same file. One to four changes, each a
 * flipped bit, another byte, a part cut out, repeated, moved or filled in, an end cut off, or a number in text replaced
 * by one that programs often handle wrongly. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_INSERTED = 64, ROOM = 4096 };

static uint64_t state;

/* splitmix64 */
static uint64_t draw(uint64_t below) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return below ? (z ^ z >> 31) % below : 0;
}

typedef struct text {
    unsigned char *bytes;
    size_t n, room;
} text;

/* Replace `old` bytes at `at` by n others, as far as there is room. */
static void splice(text *t, size_t at, size_t old, const void *with, size_t n) {
    if (t->n - old + n > t->room) return;
    memmove(t->bytes + at + n, t->bytes + at + old, t->n - at - old);
    if (n) memcpy(t->bytes + at, with, n);
    t->n += n - old;
}

static int is_digit(unsigned char c) { return c >= '0' && c <= '9'; }

static void replace_number(text *t) {
    static const char *const numbers[] = {
        "0",          "-1",         "1",
        "255",        "65536",      "2147483647",
        "2147483648", "4294967296", "9223372036854775807",
        "-0",         "1e99",       "nan",
        "inf",        "-inf",       "1e-320",
        "",           "0x10",       "99999999999999999999999",
    };
    const size_t start = draw(t->n);
    size_t at = start;
    while (at < t->n && !is_digit(t->bytes[at])) at++;
    size_t end = at;
    while (end < t->n && is_digit(t->bytes[end])) end++;
    const char *with = numbers[draw(sizeof numbers / sizeof numbers[0])];
    splice(t, at, end - at, with, strlen(with));
}

static void change(text *t) {
    static const unsigned char odd[] = {0x00, 0xff, 0x7f, 0x80, '\n', '"', '{',
                                        '[',  ',',  '-',  '.',  '/',  ':', ' '};
    unsigned char part[MOST_INSERTED];
    if (t->n == 0) return;
    const size_t at = draw(t->n), left = t->n - at;
    const size_t n = 1 + draw(left < MOST_INSERTED ? left : MOST_INSERTED);
    memcpy(part, t->bytes + at, n <= left ? n : left);
    const size_t taken = n <= left ? n : left;
    switch (draw(10)) {
    case 0:
    case 1: t->bytes[at] ^= (unsigned char)(1 << draw(8)); break;
    case 2: t->bytes[at] = (unsigned char)draw(256); break;
    case 3: t->bytes[at] = odd[draw(sizeof odd)]; break;
    case 4: splice(t, at, taken, NULL, 0); break;
    case 5: splice(t, draw(t->n), 0, part, taken); break;
    case 6: t->n = at; break;
    case 7:
        for (size_t i = 0; i < taken; i++) part[i] = (unsigned char)draw(256);
        splice(t, at, 0, part, taken);
        break;
    default: replace_number(t); break;
    }
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: mutate SEED IN OUT\n");
        return 2;
    }
    state = strtoull(argv[1], NULL, 10);
    FILE *in = fopen(argv[2], "rb");
    if (!in || fseek(in, 0, SEEK_END) != 0) return 1;
    const long size = ftell(in);
    rewind(in);
    if (size < 0) return 1;
    text t = {.n = (size_t)size, .room = (size_t)size + ROOM};
    t.bytes = malloc(t.room);
    if (!t.bytes || fread(t.bytes, 1, t.n, in) != t.n) return 1;
    fclose(in);
    for (uint64_t left = 1 + draw(4); left > 0; left--) change(&t);
    FILE *out = fopen(argv[3], "wb");
    if (!out || fwrite(t.bytes, 1, t.n, out) != t.n || fclose(out) != 0) return 1;
    free(t.bytes);
    return 0;
}
