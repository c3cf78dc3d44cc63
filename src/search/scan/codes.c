/* The layout of codes, and bytes checked before they are used as codes. */
#include "search/scan/codes.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "search/scan/codes_parts.h"

ki_codes_layout ki_codes_layout_of(const ki_coder *c, int64_t n) {
    ki_codes_layout a = {.begin = sizeof(ki_codes_header),
                         .n_blocks = (n + KI_SCAN_BLOCK - 1) / KI_SCAN_BLOCK};
    const size_t lists = (size_t)c->n_lists;
    a.block = (size_t)ki_scan_block_bytes(c->coded / KI_SCAN_GROUP, c->bits);
    a.radius = a.begin + ki_round_up((lists + 1) * sizeof(uint32_t), KI_ALIGN);
    a.row = a.radius + ki_round_up(lists * sizeof(float), KI_ALIGN);
    a.blocks = a.row + ki_round_up((size_t)a.n_blocks * KI_SCAN_BLOCK * sizeof(uint32_t), KI_ALIGN);
    a.end = a.blocks + (size_t)a.n_blocks * a.block;
    return a;
}

size_t ki_codes_bytes(const ki_coder *coder, int64_t n) { return ki_codes_layout_of(coder, n).end; }

static kith_status check_header(const ki_coder *c, const ki_codes_header *h, size_t n_bytes,
                                kith_error *err) {
    if (memcmp(h->magic, KI_CODES_MAGIC, sizeof h->magic) != 0)
        return ki_fail(err, KITH_EFORMAT, "these bytes are not codes: they begin differently");
    if (h->version != KI_CODES_VERSION)
        return ki_fail(err, KITH_EFORMAT, "codes of version %u; this program reads version %d", h->version,
                       KI_CODES_VERSION);
    if (h->mark != c->mark || h->bits != (uint32_t)c->bits || h->coded != (uint32_t)c->coded ||
        h->n_lists != (uint32_t)c->n_lists)
        return ki_fail(err, KITH_EFORMAT, "codes that another coder made");
    if (h->n > INT32_MAX)
        return ki_fail(err, KITH_EFORMAT, "codes of %llu rows; wanted at most %d", (unsigned long long)h->n,
                       INT32_MAX);
    if (h->zero[0] || h->zero[1] || h->zero[2])
        return ki_fail(err, KITH_EFORMAT,
                       "codes with numbers in their header that this program does not know");
    const size_t wanted = ki_codes_bytes(c, (int64_t)h->n);
    if (n_bytes != wanted)
        return ki_fail(err, KITH_EFORMAT, "codes of %zu bytes; their header says %zu", n_bytes, wanted);
    return KITH_OK;
}

/* Places in rising order, and every row at one place. */
static kith_status check_places(const ki_coder *c, const ki_codes *codes, kith_error *err) {
    for (int64_t l = 0; l <= c->n_lists; l++) {
        const int64_t before = l ? codes->begin[l - 1] : 0;
        if (codes->begin[l] >= before && codes->begin[l] <= codes->n && (l || !codes->begin[0])) continue;
        return ki_fail(err, KITH_EFORMAT, "codes whose list %lld begins at place %u of %lld", (long long)l,
                       codes->begin[l], (long long)codes->n);
    }
    if (codes->begin[c->n_lists] != codes->n)
        return ki_fail(err, KITH_EFORMAT, "codes whose lists have %u of %lld rows", codes->begin[c->n_lists],
                       (long long)codes->n);
    uint64_t *seen = NULL;
    KI_TRY(ki_zalloc_or(&seen, (size_t)codes->n / 64 + 1, sizeof *seen, "row marks", err));
    int64_t place = 0;
    for (; place < codes->n; place++) {
        const uint32_t i = codes->row[place];
        if (i >= codes->n || seen[i / 64] >> (i % 64) & 1) break;
        seen[i / 64] |= UINT64_C(1) << (i % 64);
    }
    ki_free(seen);
    if (place == codes->n) return KITH_OK;
    return ki_fail(err, KITH_EFORMAT, "codes with row %u at place %lld, out of range or a second time",
                   codes->row[place], (long long)place);
}

static kith_status check_numbers(const ki_coder *c, const ki_codes *codes, kith_error *err) {
    int64_t n_bad = 0;
    for (int64_t l = 0; l < c->n_lists; l++) n_bad += !(codes->radius[l] >= 0 && isfinite(codes->radius[l]));
    const ki_codes_layout at = ki_codes_layout_of(c, codes->n);
    for (int64_t b = 0; b < at.n_blocks; b++) {
        const float *x = (const float *)(const void *)(codes->blocks + (size_t)b * at.block);
        for (int j = 0; j < 2 * KI_SCAN_BLOCK; j++) n_bad += !isfinite(x[j]);
    }
    if (n_bad)
        return ki_fail(err, KITH_EFORMAT, "codes with %lld numbers that are not finite", (long long)n_bad);
    return KITH_OK;
}

kith_status ki_codes_open(const ki_coder *coder, const void *bytes, size_t n_bytes, ki_codes *ret_codes,
                          kith_error *err) {
    ki_codes_header h;
    if ((uintptr_t)bytes % KI_ALIGN)
        return ki_fail(err, KITH_EINVAL, "codes at an address that is no multiple of %d", KI_ALIGN);
    if (n_bytes < sizeof h)
        return ki_fail(err, KITH_EFORMAT, "codes of %zu bytes; wanted at least %zu", n_bytes, sizeof h);
    memcpy(&h, bytes, sizeof h);
    KI_TRY(check_header(coder, &h, n_bytes, err));
    const ki_codes_layout at = ki_codes_layout_of(coder, (int64_t)h.n);
    const uint8_t *from = bytes;
    const ki_codes codes = {.n = (int64_t)h.n,
                            .begin = (const uint32_t *)(const void *)(from + at.begin),
                            .radius = (const float *)(const void *)(from + at.radius),
                            .row = (const uint32_t *)(const void *)(from + at.row),
                            .blocks = from + at.blocks};
    KI_TRY(check_places(coder, &codes, err));
    KI_TRY(check_numbers(coder, &codes, err));
    *ret_codes = codes;
    return KITH_OK;
}
