/* A coder as bytes: a header of 64, then the centroids, axes and variances. All else is made from these. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checksum.h"
#include "search/scan/coder_parts.h"

typedef struct coder_header {
    char magic[8];
    uint32_t version, metric, bits, dim, n_lists, coded;
    uint64_t seed;
    uint64_t checksum; /* of all that follows */
    uint64_t has_axes, zero;
} coder_header;
_Static_assert(sizeof(coder_header) == 64, "the header of a coder has no gaps");

static const char MAGIC[8] = "kithcodr";
enum { VERSION = 1 };
#define MOST 1e21F /* no value of a rotated mean is larger */

static coder_header header_of(const ki_coder *c) {
    coder_header h = {.version = VERSION,
                      .metric = (uint32_t)c->metric,
                      .bits = (uint32_t)c->bits,
                      .dim = (uint32_t)c->dim,
                      .n_lists = (uint32_t)c->n_lists,
                      .coded = (uint32_t)c->coded,
                      .has_axes = c->axes != NULL,
                      .seed = c->seed,
                      .checksum = ki_checksum(c->centroid, c->n_numbers * sizeof(float), 0)};
    memcpy(h.magic, MAGIC, sizeof h.magic);
    return h;
}

void ki_coder_seal(ki_coder *c) {
    const coder_header h = header_of(c);
    c->mark = ki_checksum(&h, sizeof h, 0);
}

void ki_coder_to_bytes(const ki_coder *c, ki_buffer *dst) {
    const coder_header h = header_of(c);
    ki_buffer_add(dst, &h, sizeof h);
    ki_buffer_add(dst, c->centroid, c->n_numbers * sizeof(float));
}

static kith_status check(const coder_header *h, size_t n_bytes, kith_error *err) {
    if (memcmp(h->magic, MAGIC, sizeof h->magic) != 0)
        return ki_fail(err, KITH_EFORMAT, "these bytes are not a coder: they begin differently");
    if (h->version != VERSION)
        return ki_fail(err, KITH_EFORMAT, "a coder of version %u; this program reads version %d", h->version,
                       VERSION);
    if (h->metric > KITH_SQEUCLIDEAN)
        return ki_fail(err, KITH_EFORMAT, "a coder with metric number %u; wanted 0 to %d", h->metric,
                       KITH_SQEUCLIDEAN);
    if (h->bits < 1 || h->bits > KI_CODER_MOST_BITS)
        return ki_fail(err, KITH_EFORMAT, "a coder with %u bits; wanted 1 to %d", h->bits,
                       KI_CODER_MOST_BITS);
    if (h->dim < 1 || h->dim > KI_CODER_MOST_DIM)
        return ki_fail(err, KITH_EFORMAT, "a coder for rows of %u values; wanted 1 to %d", h->dim,
                       KI_CODER_MOST_DIM);
    if (h->n_lists < 1 || h->n_lists > KI_CODER_MOST_LISTS)
        return ki_fail(err, KITH_EFORMAT, "a coder with %u lists; wanted 1 to %d", h->n_lists,
                       KI_CODER_MOST_LISTS);
    const size_t padded = ki_round_up(h->dim, 16);
    if (h->coded < 16 || h->coded > padded || h->coded % 16)
        return ki_fail(err, KITH_EFORMAT, "a coder that codes %u values of %zu", h->coded, padded);
    if (h->has_axes > (h->dim <= KI_CODER_MOST_AXES) || h->zero)
        return ki_fail(err, KITH_EFORMAT,
                       "a coder with numbers in its header that this program does not know");
    const size_t n_axes = h->has_axes ? ki_round_up(padded, KI_AXIS_PANEL) * h->dim + padded : 0;
    const size_t wanted = sizeof *h + (h->n_lists * padded + n_axes) * sizeof(float);
    if (n_bytes != wanted)
        return ki_fail(err, KITH_EFORMAT, "a coder of %zu bytes; its header says %zu", n_bytes, wanted);
    return KITH_OK;
}

kith_status ki_coder_from_bytes(const void *bytes, size_t n_bytes, ki_coder **ret_coder, kith_error *err) {
    kith_status status = KITH_OK;
    ki_coder *c = NULL;
    coder_header h;
    if (n_bytes < sizeof h)
        return ki_fail(err, KITH_EFORMAT, "a coder of %zu bytes; wanted at least %zu", n_bytes, sizeof h);
    memcpy(&h, bytes, sizeof h);
    KI_TRY(check(&h, n_bytes, err));
    KI_CHECK(ki_zalloc_or(&c, 1, sizeof *c, "coder", err));
    c->metric = (kith_metric)h.metric;
    c->bits = (int)h.bits;
    c->dim = h.dim;
    c->n_lists = h.n_lists;
    c->seed = h.seed;
    c->coded = h.coded;
    KI_CHECK(ki_coder_init(c, h.has_axes != 0, err));
    memcpy(c->centroid, (const char *)bytes + sizeof h, c->n_numbers * sizeof(float));
    if (ki_checksum(c->centroid, c->n_numbers * sizeof(float), 0) != h.checksum) {
        status = ki_fail(err, KITH_EFORMAT, "a coder whose numbers do not match their checksum");
        goto done;
    }
    for (size_t i = 0; i < c->n_numbers; i++) {
        if (fabsf(c->centroid[i]) <= MOST) continue;
        status = ki_fail(err, KITH_EFORMAT, "a coder whose number %zu is %g", i, (double)c->centroid[i]);
        goto done;
    }
    for (float *x = c->axes; x && x < c->variance; x++) {
        if (fabsf(*x) <= 2) continue;
        status = ki_fail(err, KITH_EFORMAT, "a coder with %g in an axis; wanted -1 to 1", (double)*x);
        goto done;
    }
    KI_CHECK(ki_coder_rotate(c, err));
    ki_coder_finish(c);
    ki_coder_seal(c);
    *ret_coder = c;
    c = NULL;
done:
    ki_coder_free(c);
    return status;
}
