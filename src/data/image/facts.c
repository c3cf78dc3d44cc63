/* The facts in an EXIF block (CIPA DC-008): a TIFF file without a picture.
 *
 * Of the tree of directories exactly three are visited, each once: the first, and those of EXIF and GPS that it names. So no chain of them
 * can be a circle. Values are looked at where they lie; nothing is allocated. */
#include "data/image/facts.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/text.h"
#include "data/image/image.h"
#include "io/tar_file.h"

enum { TAG_MAKE = 0x10f, TAG_MODEL = 0x110, TAG_EXIF = 0x8769, TAG_GPS = 0x8825 };
enum { TAG_TAKEN = 0x9003, TAG_OFFSET = 0x9010, TAG_OFFSET_TAKEN = 0x9011, TAG_LENS = 0xa434 };
enum { GPS_LATITUDE_REF = 1, GPS_LATITUDE, GPS_LONGITUDE_REF, GPS_LONGITUDE, GPS_ALTITUDE_REF, GPS_ALTITUDE };
enum { TYPE_BYTE = 1, TYPE_ASCII = 2, TYPE_SHORT = 3, TYPE_LONG = 4, TYPE_RATIONAL = 5, TYPE_UTF8 = 129 };
enum { ENTRY_BYTES = 12 };

typedef struct tiff {
    ki_span all;
    bool is_big_endian;
} tiff;

/* The caller has made sure that the bytes are there. */
static uint32_t read_number(const tiff *t, const uint8_t *p, size_t n) {
    uint32_t value = 0;
    for (size_t i = 0; i < n; i++) value = value << 8 | p[t->is_big_endian ? i : n - 1 - i];
    return value;
}

static bool open_tiff(ki_span block, tiff *ret, uint32_t *ret_first) {
    if (block.n < 8) return false;
    ret->all = block;
    ret->is_big_endian = memcmp(block.bytes, "MM\0*", 4) == 0;
    if (!ret->is_big_endian && memcmp(block.bytes, "II*\0", 4) != 0) return false;
    *ret_first = read_number(ret, block.bytes + 4, 4);
    return true;
}

static size_t type_bytes(uint32_t type) {
    switch (type) {
    case TYPE_BYTE:
    case TYPE_ASCII:
    case TYPE_UTF8: return 1;
    case TYPE_SHORT: return 2;
    case TYPE_LONG: return 4;
    case TYPE_RATIONAL: return 8;
    default: return 0;
    }
}

/* The values of a tag in the directory at `at`; false: it is not there, or not whole. */
static bool find_tag(const tiff *t, uint32_t at, uint32_t tag, uint32_t *ret_type, ki_span *ret) {
    const ki_span all = t->all;
    if (at < 8 || all.n < 2 || at > all.n - 2) return false;
    const size_t n_fit = (all.n - at - 2) / ENTRY_BYTES, n_said = read_number(t, all.bytes + at, 2);
    const uint8_t *entry = all.bytes + at + 2;
    for (size_t i = 0; i < n_fit && i < n_said; i++, entry += ENTRY_BYTES) {
        if (read_number(t, entry, 2) != tag) continue;
        const uint32_t type = read_number(t, entry + 2, 2);
        const uint64_t n = (uint64_t)read_number(t, entry + 4, 4) * type_bytes(type);
        const size_t where = n <= 4 ? (size_t)(entry + 8 - all.bytes) : read_number(t, entry + 8, 4);
        if (n == 0 || where > all.n || n > all.n - where) return false;
        *ret_type = type;
        *ret = (ki_span){all.bytes + where, (size_t)n};
        return true;
    }
    return false;
}

static uint32_t find_directory(const tiff *t, uint32_t at, uint32_t tag) {
    uint32_t type = 0;
    ki_span value;
    return find_tag(t, at, tag, &type, &value) && type == TYPE_LONG ? read_number(t, value.bytes, 4) : 0;
}

/* ---- texts ---- */

/* Without what is around it, one space between words. Text that is not UTF-8, or has control characters, is none. */
static void tidy(char *text) {
    char *to = text;
    for (const char *p = text; *p; p++) {
        if ((unsigned char)*p < ' ' || *p == 127) {
            *text = '\0';
            return;
        }
        if (*p != ' ' || (to > text && to[-1] != ' ')) *to++ = *p;
    }
    if (to > text && to[-1] == ' ') to--;
    *to = '\0';
    if (!ki_is_utf8(text)) *text = '\0';
}

static void read_text(const tiff *t, uint32_t at, uint32_t tag, char *ret, size_t bytes) {
    uint32_t type = 0;
    ki_span value;
    *ret = '\0';
    if (!find_tag(t, at, tag, &type, &value) || (type != TYPE_ASCII && type != TYPE_UTF8)) return;
    const uint8_t *end = memchr(value.bytes, '\0', value.n);
    const size_t n = end ? (size_t)(end - value.bytes) : value.n;
    if (n >= bytes) return; /* longer than such a name is */
    memcpy(ret, value.bytes, n);
    ret[n] = '\0';
    tidy(ret);
}

/* "NIKON CORPORATION" is "NIKON": what a maker is called beside its name on the camera. */
static void drop_company(char *make) {
    static const char *const words[] = {"CORPORATION", "CORP.",       "CORP",    "CO.,LTD.",   "CO.,LTD",
                                        "CO., LTD.",   "CO.",         "LTD.",    "INC.",       "COMPANY",
                                        "IMAGING",     "ELECTRONICS", "OPTICAL", "TECHNOLOGY", "CAMERA AG"};
    for (size_t i = 0; i < sizeof words / sizeof words[0];) {
        const size_t n = strlen(make), length = strlen(words[i]);
        const bool ends =
            n > length + 1 && make[n - length - 1] == ' ' && strcasecmp(make + n - length, words[i]) == 0;
        if (ends) make[n - length - 1] = '\0';
        i = ends ? 0 : i + 1;
    }
}

/* "Canon" and "Canon EOS R6" are one name. */
static void read_camera(const tiff *t, uint32_t first, char ret[KI_FACT_BYTES]) {
    char make[KI_FACT_BYTES / 2], model[KI_FACT_BYTES / 2];
    read_text(t, first, TAG_MAKE, make, sizeof make);
    read_text(t, first, TAG_MODEL, model, sizeof model);
    drop_company(make);
    const size_t word = strcspn(make, " ");
    const bool is_said = word > 0 && strncasecmp(model, make, word) == 0;
    if (*make && *model && !is_said)
        ki_snprintf(ret, KI_FACT_BYTES, "%s %s", make, model);
    else
        ki_snprintf(ret, KI_FACT_BYTES, "%s", *model ? model : make);
}

/* ---- the date ---- */

/* Two or four digits at p; -1: they are not. */
static int digits(const char *p, int n) {
    int value = 0;
    for (int i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9') return -1;
        value = value * 10 + (p[i] - '0');
    }
    return value;
}

static bool is_date(const char *s) {
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const int year = digits(s, 4), month = digits(s + 5, 2), day = digits(s + 8, 2);
    if (year < 1800 || month < 1 || month > 12 || day < 1 || day > days[month - 1]) return false;
    const int hour = digits(s + 11, 2), minute = digits(s + 14, 2), second = digits(s + 17, 2);
    return hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second <= 60;
}

/* "+02:00" */
static bool is_offset(const char *s) {
    if (strlen(s) != 6 || (*s != '+' && *s != '-') || s[3] != ':') return false;
    const int hours = digits(s + 1, 2), minutes = digits(s + 4, 2);
    return hours >= 0 && hours <= 14 && minutes >= 0 && minutes < 60;
}

/* "2021:05:03 14:07:22" */
static void read_taken(const tiff *t, uint32_t exif, char ret[32]) {
    char date[32], offset[16];
    read_text(t, exif, TAG_TAKEN, date, sizeof date);
    if (strlen(date) != 19 || !is_date(date) || date[13] != ':' || date[16] != ':' || date[4] != date[7] ||
        !strchr(":-/", date[4]))
        return;
    date[4] = date[7] = '-';
    date[10] = 'T';
    read_text(t, exif, TAG_OFFSET_TAKEN, offset, sizeof offset);
    if (!*offset) read_text(t, exif, TAG_OFFSET, offset, sizeof offset);
    ki_snprintf(ret, 32, "%s%s", date, is_offset(offset) ? offset : "");
}

/* ---- the place ---- */

/* n rationals; false: one of them is no number. 0/0 counts as 0 where the first one is a number: so cameras leave seconds out. */
static bool read_rationals(const tiff *t, uint32_t at, uint32_t tag, double *ret, size_t n) {
    uint32_t type = 0;
    ki_span value;
    if (!find_tag(t, at, tag, &type, &value) || type != TYPE_RATIONAL || value.n < n * 8) return false;
    for (size_t i = 0; i < n; i++) {
        const uint32_t over = read_number(t, value.bytes + 8 * i, 4),
                       under = read_number(t, value.bytes + 8 * i + 4, 4);
        if (under == 0 && (over != 0 || i == 0)) return false;
        ret[i] = under ? (double)over / under : 0;
    }
    return true;
}

static bool read_degrees(const tiff *t, uint32_t gps, uint32_t tag, const char *signs, double most,
                         double *ret) {
    double part[3];
    char ref[8];
    read_text(t, gps, tag - 1, ref, sizeof ref);
    if (!read_rationals(t, gps, tag, part, 3) || strlen(ref) != 1 || !strchr(signs, *ref)) return false;
    const double degrees = part[0] + part[1] / 60 + part[2] / 3600;
    if (part[1] > 60 || part[2] > 60 || degrees > most) return false;
    *ret = round((*ref == signs[1] ? -degrees : degrees) * 1e7) / 1e7;
    return true;
}

static void read_place(const tiff *t, uint32_t gps, ki_photo_facts *f) {
    double latitude = NAN, longitude = NAN, altitude = NAN;
    uint32_t type = 0;
    ki_span below;
    if (!read_degrees(t, gps, GPS_LATITUDE, "NS", 90, &latitude) ||
        !read_degrees(t, gps, GPS_LONGITUDE, "EW", 180, &longitude))
        return;
    if (latitude == 0 && longitude == 0) return; /* what devices write that do not know where they are */
    f->latitude = latitude + 0.0;                /* no -0 */
    f->longitude = longitude + 0.0;
    if (!read_rationals(t, gps, GPS_ALTITUDE, &altitude, 1) || altitude > 1e6) return;
    const bool is_below = find_tag(t, gps, GPS_ALTITUDE_REF, &type, &below) && type == TYPE_BYTE &&
                          (*below.bytes == 1 || *below.bytes == 3);
    f->altitude = round((is_below ? -altitude : altitude) * 100) / 100 + 0.0;
}

/* ---- all of it ---- */

void ki_photo_facts_read(const uint8_t *bytes, size_t n_bytes, ki_photo_facts *ret_facts) {
    ki_photo_facts f = {.latitude = NAN, .longitude = NAN, .altitude = NAN};
    tiff t = {0};
    uint32_t first = 0;
    if (bytes && open_tiff(ki_exif_block(bytes, n_bytes), &t, &first)) {
        const uint32_t exif = find_directory(&t, first, TAG_EXIF), gps = find_directory(&t, first, TAG_GPS);
        read_camera(&t, first, f.camera);
        read_taken(&t, exif, f.taken);
        read_text(&t, exif, TAG_LENS, f.lens, sizeof f.lens);
        read_place(&t, gps, &f);
    }
    *ret_facts = f;
}

/* A JPEG has its facts before its pixels; the others may have them at the end. */
static kith_status read_file(const char *path, ki_bytes *bytes, kith_error *err) {
    enum { HEAD = 256 << 10 };
    kith_status status = KITH_OK;
    ki_member part;
    KI_TRY(ki_member_open(path, &part, err));
    const size_t all = part.bytes > 0 ? (size_t)part.bytes : 0, wanted = all < HEAD ? all : HEAD;
    bool is_jpeg = false;
    KI_CHECK(ki_grow(&bytes->data, &bytes->capacity, wanted + 1, 1, "a file", err));
    KI_CHECK(ki_member_read(&part, path, bytes->data, wanted, 0, &bytes->n, err));
    is_jpeg = bytes->n >= 2 && bytes->data[0] == 0xff && bytes->data[1] == 0xd8;
done:
    ki_member_close(&part);
    return status != KITH_OK || is_jpeg || wanted == all ? status : ki_bytes_read(bytes, path, err);
}

void ki_photo_facts_of_file(const char *path, ki_photo_facts *ret_facts) {
    ki_bytes bytes = {0};
    kith_error err;
    const bool is_read = read_file(path, &bytes, &err) == KITH_OK;
    ki_photo_facts_read(is_read ? bytes.data : NULL, bytes.n, ret_facts);
    ki_bytes_release(&bytes);
}
