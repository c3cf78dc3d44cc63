/* Making codes.
 *
 * RaBitQ (Gao and Long, SIGMOD 2024; with more bits: Gao et al., SIGMOD 2025). Let r = x - c be the rotated row less the centroid of
 * its list. Its code is the vector y of whole steps, y_k = u_k - (2^bits - 1) / 2 with 0 <= u_k < 2^bits, that points most
 * nearly where r points; with 1 bit the signs. For any q
 *
 *     <q - c, r>  ~  |r|^2 / <y, r> * <q - c, y>
 *
 * without bias, since the rotation is random. With scale = |r|^2 / <y, r> the score of x is then
 *
 *     inner product           <q, c> + offset + scale * <q, y>,   offset = <c, r> - scale * <c, y>
 *     minus half the square   -|q - c|^2 / 2 + offset + scale * <q, y>,   offset = -|r|^2 / 2 - scale * <c, y>
 *
 * so that a query needs <q, y> alone, and its table serves all lists. Where rows are turned to axes, y covers the first values of r
 * alone; what the others would add to <q - c, r> is small and left out. |r|^2 / <y, r> is of the coded values then. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "search/scan/codes_parts.h"
#include "search/scan/failure.h"

/* Rows encoded in the order they come in; sorted by list afterwards. */
typedef struct making {
    const ki_coder *coder;
    const ki_row_source *rows;
    int64_t first, n;
    int64_t begin;                  /* of the piece that is being encoded */
    size_t code_bytes;              /* of a row: [bits, coded / 8] */
    uint8_t *code;                  /* [n, code_bytes] */
    float *offset, *scale, *length; /* [n] */
    uint32_t *list;                 /* [n] */
    uint8_t *bytes;                 /* the result */
    ki_codes_layout at;
    ki_failure failure;
} making;

/* Steps of r that are best for values from a bell curve of width 1, cut into 2^bits equal steps (Max 1960). */
static const float BELL_STEP[KI_CODER_MOST_BITS + 1] = {0,       1.5958F, 0.9957F, 0.5860F, 0.3352F,
                                                        0.1881F, 0.1041F, 0.0569F, 0.0308F};

typedef struct fitted {
    double y_r, y_y; /* <y, r>, <y, y> */
} fitted;

static fitted levels_of(const float *r, int64_t n, int bits, float step, uint8_t *ret_level) {
    const int most = (1 << bits) - 1;
    const float middle = (float)most / 2, inverse = step > KI_CODER_LEAST ? 1 / step : 0;
    fitted f = {0};
    for (int64_t k = 0; k < n; k++) {
        const float at = r[k] * inverse + (float)(1 << (bits - 1));
        const int u = at <= 0 ? 0 : at >= (float)most ? most : (int)at;
        const double y = (double)((float)u - middle);
        ret_level[k] = (uint8_t)u;
        f.y_r += y * (double)r[k];
        f.y_y += y * y;
    }
    return f;
}

/* The levels that point most nearly where r points, of a few widths of the steps. */
static fitted best_levels(const float *r, int64_t n, int bits, double length, uint8_t *spare,
                          uint8_t *ret_level) {
    static const float TRIED[] = {1, 0.8F, 0.9F, 1.1F, 1.2F};
    const float width = (float)(length / sqrt((double)n)) * BELL_STEP[bits];
    fitted best = levels_of(r, n, bits, width, ret_level);
    for (int i = 1; bits > 1 && i < 5; i++) {
        const fitted f = levels_of(r, n, bits, width * TRIED[i], spare);
        if (f.y_r * f.y_r * best.y_y <= best.y_r * best.y_r * f.y_y) continue;
        best = f;
        memcpy(ret_level, spare, (size_t)n);
    }
    return best;
}

/* The row i, turned to x, of the list l. scratch: levels twice. */
static void encode(making *m, int64_t i, const float *x, int64_t l, float *r, uint8_t *level) {
    const ki_coder *c = m->coder;
    const int64_t n = c->coded;
    const float *center = c->centroid + l * c->padded;
    double square = 0, coded_square = 0, c_r = 0, c_y = 0;
    for (int64_t k = 0; k < c->padded; k++) {
        r[k] = x[k] - center[k];
        square += (double)r[k] * (double)r[k];
        c_r += (double)center[k] * (double)r[k];
        if (k == n - 1) coded_square = square;
    }
    const fitted f = best_levels(r, n, c->bits, sqrt(coded_square), level + n, level);
    const double scale = f.y_r > 0 ? coded_square / f.y_r : 0, middle = (double)((1 << c->bits) - 1) / 2;
    uint8_t *code = m->code + (size_t)i * m->code_bytes;
    memset(code, 0, m->code_bytes);
    for (int64_t k = 0; k < n; k++) {
        c_y += (double)center[k] * ((double)level[k] - middle);
        for (int b = 0; b < c->bits; b++)
            code[b * (n / 8) + k / 8] |= (uint8_t)((level[k] >> b & 1) << (k % 8));
    }
    m->list[i] = (uint32_t)l;
    m->scale[i] = (float)scale;
    m->offset[i] = (float)((c->metric == KITH_SQEUCLIDEAN ? -square / 2 : c_r) - scale * c_y);
    m->length[i] = nextafterf((float)sqrt(square), INFINITY);
}

enum { LANES = 64 };

/* Where the largest of x [n] is; of several the first. The largest value comes first, LANES at a time: a loop that carries the place
 * along waits for itself at every step, and took more time than computing the scores. */
static int64_t first_largest(const float *x, int64_t n) {
    float lane[LANES];
    int64_t i = 0;
    for (int k = 0; k < LANES; k++) lane[k] = x[0];
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
    float most = lane[0];
    for (int k = 1; k < LANES; k++) most = lane[k] > most ? lane[k] : most;
    for (; i < n; i++) most = x[i] > most ? x[i] : most;
    for (i = 0; i + LANES <= n; i += LANES) {
        int n_equal = 0;
        for (int k = 0; k < LANES; k++) n_equal += x[i + k] == most;
        if (n_equal > 0) break;
    }
    while (i < n - 1 && x[i] != most) i++;
    return i;
}

enum { STRIPE = 4, SPAN = 256 };

static kith_status encode_span(making *m, ki_coder_ranker *ranker, int64_t begin, int64_t n, float *scratch,
                               kith_error *err) {
    const ki_coder *c = m->coder;
    const int64_t lists = c->n_panels * KI_LIST_PANEL;
    float *given = scratch, *turned = given + SPAN * c->dim, *score = turned + (STRIPE + 1) * c->padded;
    uint8_t *level = (uint8_t *)(score + STRIPE * lists);
    const float *x;
    KI_TRY(ki_source_span(m->rows, m->first + begin, n, given, &x, err));
    for (int64_t i = 0; i < n; i += STRIPE) {
        const int64_t width = n - i < STRIPE ? n - i : STRIPE;
        for (int64_t s = 0; s < width; s++) ki_coder_turn(c, x + (i + s) * c->dim, turned + s * c->padded);
        ki_coder_rank(ranker, turned, width, false, score);
        for (int64_t s = 0; s < width; s++) {
            const int64_t l = first_largest(score + s * lists, c->n_lists);
            encode(m, begin + i + s, turned + s * c->padded, l, turned + STRIPE * c->padded, level);
        }
    }
    return KITH_OK;
}

static void encode_rows(void *context, int64_t begin, int64_t end) {
    making *m = context;
    const ki_coder *c = m->coder;
    kith_status status = KITH_OK;
    kith_error error = {0};
    ki_coder_ranker ranker = {0};
    float *scratch = NULL;
    const size_t floats =
        (size_t)(SPAN * c->dim + (STRIPE + 1) * c->padded + STRIPE * c->n_panels * KI_LIST_PANEL + c->padded);
    KI_CHECK(ki_alloc_or(&scratch, floats, sizeof *scratch, "scratch", &error));
    KI_CHECK(ki_coder_ranker_init(&ranker, c, STRIPE, &error));
    for (int64_t i = begin; i < end && !ki_failure_is_set(&m->failure); i += SPAN)
        KI_CHECK(encode_span(m, &ranker, m->begin + i, end - i < SPAN ? end - i : SPAN, scratch, &error));
done:
    ki_failure_set(&m->failure, status, &error);
    ki_coder_ranker_release(&ranker);
    ki_free(scratch);
}

/* Rows by list; within a list in rising order. */
static void sort_rows(making *m) {
    uint32_t *begin = (uint32_t *)(void *)(m->bytes + m->at.begin);
    float *radius = (float *)(void *)(m->bytes + m->at.radius);
    uint32_t *row = (uint32_t *)(void *)(m->bytes + m->at.row);
    const int64_t lists = m->coder->n_lists;
    for (int64_t i = 0; i < m->n; i++) begin[m->list[i] + 1]++;
    for (int64_t l = 0; l < lists; l++) begin[l + 1] += begin[l];
    for (int64_t i = m->n - 1; i >= 0; i--) { /* from the back: ends become beginnings */
        const uint32_t l = m->list[i];
        row[--begin[l + 1]] = (uint32_t)i;
        if (m->length[i] > radius[l]) radius[l] = m->length[i];
    }
    for (int64_t l = 0; l < lists; l++) begin[l] = begin[l + 1];
    begin[lists] = (uint32_t)m->n;
}

static void fill_blocks(void *context, int64_t first, int64_t last) {
    making *m = context;
    const uint32_t *row = (const uint32_t *)(const void *)(m->bytes + m->at.row);
    const int64_t n_groups = m->coder->coded / KI_SCAN_GROUP;
    for (int64_t b = first; b < last; b++) {
        uint8_t *block = m->bytes + m->at.blocks + (size_t)b * m->at.block;
        float *offset = (float *)(void *)block, *scale = offset + KI_SCAN_BLOCK;
        uint8_t *pieces = (uint8_t *)(scale + KI_SCAN_BLOCK);
        const int64_t left = m->n - b * KI_SCAN_BLOCK;
        for (int j = 0; j < KI_SCAN_BLOCK && j < left; j++) {
            const int64_t i = row[b * KI_SCAN_BLOCK + j];
            const uint8_t *code = m->code + (size_t)i * m->code_bytes;
            offset[j] = m->offset[i];
            scale[j] = m->scale[i];
            for (int64_t g = 0; g < n_groups * m->coder->bits; g++) {
                const int half = code[g / 2] >> (g % 2 * 4) & 15;
                pieces[g * 16 + ki_scan_byte(j)] |= (uint8_t)(half << ki_scan_shift(j));
            }
        }
    }
}

/* Rows between two looks at progress: many spans for every thread. */
enum { PIECE = 256 * SPAN };

static kith_status encode_all(making *m, ki_tally *tally, kith_error *err) {
    for (m->begin = 0; m->begin < m->n; m->begin += PIECE) {
        const int64_t n = m->n - m->begin < PIECE ? m->n - m->begin : PIECE;
        ki_parallel_for(n, SPAN, encode_rows, m);
        KI_TRY(ki_failure_get(&m->failure, err));
        KI_TRY(ki_tally_add(tally, n, err));
    }
    return KITH_OK;
}

kith_status ki_codes_make(const ki_coder *coder, const ki_row_source *rows, int64_t first, int64_t n,
                          ki_tally *tally, uint8_t **ret_bytes, kith_error *err) {
    kith_status status = KITH_OK;
    if (n < 0 || n > INT32_MAX)
        return ki_fail(err, KITH_EINVAL, "codes of %lld rows; wanted 0 to %d", (long long)n, INT32_MAX);
    if (rows->dim != coder->dim)
        return ki_fail(err, KITH_ESHAPE, "rows of %lld values for a coder of %lld", (long long)rows->dim,
                       (long long)coder->dim);
    making m = {.coder = coder,
                .rows = rows,
                .first = first,
                .n = n,
                .code_bytes = (size_t)coder->coded / 8 * (size_t)coder->bits,
                .at = ki_codes_layout_of(coder, n)};
    KI_CHECK(ki_alloc_or(&m.code, (size_t)n, m.code_bytes, "codes", err));
    KI_CHECK(ki_alloc_or(&m.offset, (size_t)n, sizeof *m.offset, "codes", err));
    KI_CHECK(ki_alloc_or(&m.scale, (size_t)n, sizeof *m.scale, "codes", err));
    KI_CHECK(ki_alloc_or(&m.length, (size_t)n, sizeof *m.length, "codes", err));
    KI_CHECK(ki_alloc_or(&m.list, (size_t)n, sizeof *m.list, "codes", err));
    KI_CHECK(ki_zalloc_or(&m.bytes, 1, m.at.end, "codes", err));
    KI_CHECK(encode_all(&m, tally, err));
    ki_codes_header h = {.version = KI_CODES_VERSION,
                         .bits = (uint32_t)coder->bits,
                         .coded = (uint32_t)coder->coded,
                         .n_lists = (uint32_t)coder->n_lists,
                         .n = (uint64_t)n,
                         .mark = coder->mark};
    memcpy(h.magic, KI_CODES_MAGIC, sizeof h.magic);
    memcpy(m.bytes, &h, sizeof h);
    sort_rows(&m);
    ki_parallel_for(m.at.n_blocks, 64, fill_blocks, &m);
    *ret_bytes = m.bytes;
    m.bytes = NULL;
done:
    ki_free(m.code);
    ki_free(m.offset);
    ki_free(m.scale);
    ki_free(m.length);
    ki_free(m.list);
    ki_free(m.bytes);
    return status;
}
