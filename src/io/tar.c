/* Walking through the headers of a tar file (POSIX.1-2001, and what GNU tar writes).
 *
 * A header is a block of 512 bytes: name[100] mode[8] uid[8] gid[8] size[12] mtime[12] checksum[8] type link[100] magic[8] … prefix[155].
 * The contents follow, rounded up to whole blocks. A block of zeros is the end. Some members describe the one after them: L has its
 * long name, x has records "LENGTH key=value\n". Every number is checked against the length of the archive before it is used. */
#include "io/tar.h"

#include <string.h>

#include "base/text.h"
#include "io/file.h"

enum { AT_SIZE = 124, AT_SUM = 148, AT_TYPE = 156, AT_MAGIC = 257, AT_PREFIX = 345 };
enum { N_NAME = 100, N_SIZE = 12, N_SUM = 8, N_PREFIX = 155 };
enum { N_ENDING = 64 };      /* bytes that are kept of the end of a name that is too long */
enum { MOST_PAX = 1 << 16 }; /* bytes of a pax header that are looked at, and of a long name */

const char *ki_packed_by(const unsigned char *b, size_t n) {
    static const struct {
        const char *name, *begin;
        size_t n;
    } kinds[] = {{"gzip", "\x1f\x8b", 2},
                 {"zstd", "\x28\xb5\x2f\xfd", 4},
                 {"bzip2", "BZh", 3},
                 {"xz",
                  "\xfd"
                  "7zXZ",
                  5},
                 {"zip", "PK\x03\x04", 4}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (n >= kinds[i].n && memcmp(b, kinds[i].begin, kinds[i].n) == 0) return kinds[i].name;
    }
    return NULL;
}

static kith_status fail(const ki_tar_walk *w, const char *why, kith_error *err) {
    return ki_fail(err, KITH_EFORMAT, "damaged at byte %jd: %s", (intmax_t)w->at, why);
}

/* The window is moved to `at` unless the bytes are in it. */
kith_status ki_tar_read(ki_tar_walk *w, void *dst, size_t n, int64_t at, kith_error *err) {
    if (at < 0 || (uint64_t)n > (uint64_t)w->source.n_bytes || at > w->source.n_bytes - (int64_t)n)
        return ki_fail(err, KITH_EFORMAT, "damaged at byte %jd: there are %jd bytes", (intmax_t)at,
                       (intmax_t)w->source.n_bytes);
    if (w->source.bytes) {
        if (n) memcpy(dst, w->source.bytes + at, n);
        return KITH_OK;
    }
    if (n > sizeof w->window) return ki_file_read_at(w->source.fd, w->source.name, dst, n, at, err);
    const bool is_there = at >= w->window_at && at + (int64_t)n <= w->window_at + (int64_t)w->window_bytes;
    if (!is_there) {
        const int64_t left = w->source.n_bytes - at;
        const size_t wanted = left < KI_TAR_WINDOW ? (size_t)left : KI_TAR_WINDOW;
        w->window_bytes = 0;
        KI_TRY(ki_file_read_at(w->source.fd, w->source.name, w->window, wanted, at, err));
        w->window_at = at;
        w->window_bytes = wanted;
    }
    if (n) memcpy(dst, w->window + (at - w->window_at), n);
    return KITH_OK;
}

/* ---- numbers ---- */

/* Octal digits between blanks and NULs; false: no number, or one of more than 63 bits. */
static bool octal(const unsigned char *field, size_t n, int64_t *ret) {
    size_t i = 0;
    int64_t value = 0;
    while (i < n && field[i] == ' ') i++;
    const size_t first = i;
    for (; i < n && field[i] >= '0' && field[i] <= '7'; i++) {
        if (value > INT64_MAX >> 3) return false;
        value = value << 3 | (field[i] - '0');
    }
    if (i == first) return false;
    while (i < n && (field[i] == ' ' || field[i] == '\0')) i++;
    *ret = value;
    return i == n;
}

/* The first bit says that the others are a number in base 256, the second that it is negative. */
static bool number(const unsigned char *field, size_t n, int64_t *ret) {
    if (!field[0]) return *ret = 0, true; /* as some programs write it for folders */
    if (!(field[0] & 0x80)) return octal(field, n, ret);
    if (field[0] & 0x40) return false;
    uint64_t value = field[0] & 0x3f;
    for (size_t i = 1; i < n; i++) {
        if (value > (uint64_t)INT64_MAX >> 8) return false;
        value = value << 8 | field[i];
    }
    *ret = (int64_t)value;
    return true;
}

/* Some old programs added the bytes as signed numbers. */
static bool has_checksum(const unsigned char *h) {
    int64_t wanted = 0, sum = 0, sum_signed = 0;
    for (int i = 0; i < KI_TAR_BLOCK; i++) {
        const unsigned char c = i >= AT_SUM && i < AT_SUM + N_SUM ? ' ' : h[i];
        sum += c;
        sum_signed += (signed char)c;
    }
    return octal(h + AT_SUM, N_SUM, &wanted) && (wanted == sum || wanted == sum_signed);
}

static bool is_zero(const unsigned char *h) {
    for (int i = 0; i < KI_TAR_BLOCK; i++) {
        if (h[i]) return false;
    }
    return true;
}

/* ---- names ---- */

/* Up to the first NUL. Too long a name is cut in its middle, so that it keeps its ending, and then odd. */
static void set_name(ki_tar_walk *w, const void *name, size_t n) {
    const char *end = n ? memchr(name, '\0', n) : NULL;
    if (end) n = (size_t)(end - (const char *)name);
    w->is_cut = n > KI_TAR_MOST_NAME;
    if (w->is_cut) {
        const size_t n_begin = KI_TAR_MOST_NAME - N_ENDING;
        memcpy(w->name, name, n_begin);
        memcpy(w->name + n_begin, (const char *)name + n - N_ENDING, N_ENDING);
        n = KI_TAR_MOST_NAME;
    } else if (n) {
        memcpy(w->name, name, n);
    }
    w->name[n] = '\0';
}

static void set_short_name(ki_tar_walk *w, const unsigned char *h) {
    char whole[N_PREFIX + 1 + N_NAME + 1];
    size_t n = 0;
    if (memcmp(h + AT_MAGIC, "ustar", 6) == 0 && h[AT_PREFIX]) { /* with its NUL; GNU's has a blank there */
        while (n < N_PREFIX && h[AT_PREFIX + n]) n++;
        memcpy(whole, h + AT_PREFIX, n);
        whole[n++] = '/';
    }
    memcpy(whole + n, h, N_NAME);
    set_name(w, whole, n + N_NAME);
}

static bool is_odd(const char *name) {
    if (!*name || *name == '/') return true;
    for (const char *at = name; *at;) {
        const size_t n = strcspn(at, "/");
        if (n == 2 && at[0] == '.' && at[1] == '.') return true;
        at += n + (at[n] == '/');
    }
    for (const char *at = name; *at; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7f) return true;
    }
    return false;
}

/* ---- headers about the next member ---- */

static void take_record(ki_tar_walk *w, const char *key, const char *value, size_t n) {
    char digits[32];
    if (strcmp(key, "path") == 0) {
        set_name(w, value, n);
        w->has_name = true;
    } else if (strcmp(key, "size") == 0) {
        w->has_bytes = true;
        w->bytes = -1;
        if (n == 0 || n >= sizeof digits) return;
        memcpy(digits, value, n);
        digits[n] = '\0';
        if (strspn(digits, "0123456789") != n || !ki_parse_int64(digits, &w->bytes)) w->bytes = -1;
    } else if (strncmp(key, "GNU.sparse.", 11) == 0) {
        w->is_sparse = true;
    }
}

static kith_status take_records(ki_tar_walk *w, char *text, size_t n, kith_error *err) {
    for (size_t at = 0; at < n;) {
        size_t length = 0, i = at;
        while (i < n && i - at < 8 && text[i] >= '0' && text[i] <= '9')
            length = 10 * length + (size_t)(text[i++] - '0');
        if (i == at || i >= n || text[i] != ' ' || length <= i + 1 - at || length > n - at ||
            text[at + length - 1] != '\n')
            return fail(w, "a pax header whose records are not \"LENGTH key=value\"", err);
        char *key = text + i + 1, *end = text + at + length - 1;
        char *equal = memchr(key, '=', (size_t)(end - key));
        if (!equal) return fail(w, "a pax header with a record without =", err);
        *equal = '\0';
        take_record(w, key, equal + 1, (size_t)(end - equal - 1));
        at += length;
    }
    return KITH_OK;
}

static kith_status take_about_next(ki_tar_walk *w, char type, int64_t at, int64_t bytes, kith_error *err) {
    char text[MOST_PAX];
    if (type == 'K' || type == 'g') return KITH_OK; /* where a link leads; what holds for all members */
    if (bytes > MOST_PAX) return fail(w, "a header of more than 65536 bytes about the next member", err);
    KI_TRY(ki_tar_read(w, text, (size_t)bytes, at, err));
    if (type == 'x' || type == 'X') return take_records(w, text, (size_t)bytes, err);
    set_name(w, text, (size_t)bytes);
    w->has_name = true;
    return KITH_OK;
}

static bool is_about_next(char type) {
    return type == 'L' || type == 'K' || type == 'x' || type == 'X' || type == 'g';
}

/* ---- members ---- */

/* Links and devices have no contents, whatever their size says. */
static int64_t bytes_of(const ki_tar_walk *w, char type, int64_t bytes) {
    if (type >= '1' && type <= '6') return 0;
    return w->has_bytes && !is_about_next(type) ? w->bytes : bytes;
}

static void describe(ki_tar_walk *w, char type, int64_t at, int64_t bytes, ki_tar_entry *ret) {
    const char *name = w->name;
    while (name[0] == '.' && name[1] == '/') {
        name += 2;
        while (*name == '/') name++;
    }
    const size_t n = strlen(name);
    const bool is_plain = type == '0' || type == '7' || (type == '\0' && !(n && name[n - 1] == '/'));
    *ret = (ki_tar_entry){.name = name,
                          .at = at,
                          .bytes = bytes,
                          .is_file = is_plain && !w->is_sparse,
                          .is_odd = w->is_cut || is_odd(name)};
}

kith_status ki_tar_next(ki_tar_walk *w, ki_tar_entry *ret, bool *ret_more, kith_error *err) {
    unsigned char h[KI_TAR_BLOCK];
    w->has_name = w->has_bytes = w->is_sparse = w->is_cut = false;
    *ret_more = false;
    for (;;) {
        int64_t bytes = 0;
        const int64_t left = w->source.n_bytes - w->at;
        if (left < KI_TAR_BLOCK) return fail(w, "it ends without a mark of its end; it may be cut off", err);
        KI_TRY(ki_tar_read(w, h, sizeof h, w->at, err));
        if (is_zero(h)) return KITH_OK;
        if (!has_checksum(h)) return fail(w, "a header with a wrong checksum", err);
        const char type = (char)h[AT_TYPE];
        if (!number(h + AT_SIZE, N_SIZE, &bytes)) return fail(w, "a size that is no number of bytes", err);
        bytes = bytes_of(w, type, bytes);
        if (bytes < 0 || bytes > left - KI_TAR_BLOCK) {
            if (!w->has_name) set_short_name(w, h);
            return ki_fail(err, KITH_EFORMAT, "damaged at byte %jd: %.200s has %jd bytes, and %jd are left",
                           (intmax_t)w->at, is_odd(w->name) ? "a member" : w->name, (intmax_t)bytes,
                           (intmax_t)(left - KI_TAR_BLOCK));
        }
        const int64_t at = w->at + KI_TAR_BLOCK, rest = w->source.n_bytes - at - bytes;
        const int64_t pad = (KI_TAR_BLOCK - bytes % KI_TAR_BLOCK) % KI_TAR_BLOCK;
        if (is_about_next(type)) KI_TRY(take_about_next(w, type, at, bytes, err));
        w->at = at + bytes + (pad < rest ? pad : rest);
        if (is_about_next(type)) continue;
        if (!w->has_name) set_short_name(w, h);
        describe(w, type, at, bytes, ret);
        *ret_more = true;
        return KITH_OK;
    }
}
