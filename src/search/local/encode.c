/* Codes of new segments, the coder they are made with, and the effort a search takes on.
 *
 * Learning and measuring read rows many times over, by number: they are in memory meanwhile, unless they are very many. Bits are raised until the wanted recall is reached with few looks: a look reads a row from disk, which takes as long as
 * comparing many codes. */
#include "search/local/encode.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "search/local/coded.h"

/* Rows of the index are easier to find than new queries: each has pulled the centre of its list towards itself. On new queries of
 * five sets of rows 1.1 to 1.5 times as many neighbours were missed. */
#define HARDER 1.25

enum {
    COMMIT_LOOKS = 400, /* looks that a search may take before the codes get more bits */
    TUNE_K = 10,
};
/* Rows times dim that learning keeps in memory: 400 MB. */
#define MEMORY_NUMBERS 100000000

static const int bits_to_try[] = {1, 2, 4, 8};
enum { N_BITS = sizeof bits_to_try / sizeof bits_to_try[0] };

typedef struct encoding {
    const ki_snapshot *s;
    ki_manifest *m;
    ki_tally *tally; /* may be NULL */
    ki_row_source rows;
    ki_row_cut cut;   /* what codes are made of: the rows, or their first values */
    float *in_memory; /* the rows, or NULL */
    ki_coder *coder;
    uint8_t **bytes; /* [segments]: codes, loaded or made */
    bool *is_new;    /* [segments] */
    ki_codes *codes;
    ki_scan_segment *segments;
    ki_scan_effort effort;
    bool is_new_coder;
} encoding;

static void drop_codes(encoding *e) {
    for (int64_t i = 0; e->bytes && i < e->m->n_segments; i++) {
        ki_free(e->bytes[i]);
        e->bytes[i] = NULL;
    }
}

static kith_status make_codes(encoding *e, int64_t i, kith_error *err) {
    const int64_t n = e->s->segments[i].n;
    const ki_row_source rows = ki_row_cut_source(&e->cut);
    KI_TRY(ki_codes_make(e->coder, &rows, e->s->first[i], n, e->tally, &e->bytes[i], err));
    e->is_new[i] = true;
    return ki_codes_open(e->coder, e->bytes[i], ki_codes_bytes(e->coder, n), &e->codes[i], err);
}

/* Codes of every segment: from its file where there is one of this coder. */
static kith_status take_codes(encoding *e, kith_error *err) {
    drop_codes(e);
    for (int64_t i = 0; i < e->m->n_segments; i++) {
        const ki_blocks *file = &e->s->codes[i];
        if (file->is_open && !e->is_new_coder) {
            KI_TRY(ki_blocks_load(file, &e->bytes[i], err));
            KI_TRY(ki_codes_open(e->coder, e->bytes[i], (size_t)file->bytes, &e->codes[i], err));
            e->is_new[i] = false;
        } else {
            KI_TRY(make_codes(e, i, err));
        }
        e->segments[i] = (ki_scan_segment){&e->codes[i], e->s->first[i], e->s->segments[i].n};
    }
    return KITH_OK;
}

static kith_status hold_rows(encoding *e, kith_error *err) {
    const int64_t n = e->s->n_rows, dim = e->m->dim;
    if (e->in_memory || n > MEMORY_NUMBERS / dim) return KITH_OK;
    KI_TRY(ki_alloc_or(&e->in_memory, (size_t)n, (size_t)dim * sizeof *e->in_memory, "rows", err));
    KI_TRY(ki_snapshot_span(e->s, 0, n, e->in_memory, err));
    e->rows.data = e->in_memory;
    return KITH_OK;
}

static kith_status measure(encoding *e, kith_error *err) {
    const ki_scan_set set = {
        .coder = e->coder, .segments = e->segments, .n_segments = e->m->n_segments, .rows = e->rows};
    /* As searches do it, which read no bitmap when all rows are there. */
    const uint64_t *allowed = e->s->n_live < e->s->n_rows ? e->s->alive : NULL;
    const ki_scan_tune_options options = {.recall = 1 - (1 - e->m->recall) / HARDER,
                                          .k = TUNE_K,
                                          .allowed = allowed,
                                          .most_looks = COMMIT_LOOKS};
    KI_TRY(ki_scan_tune(&set, &options, &e->effort, err));
    e->effort.recall = fmax(0, 1 - (1 - e->effort.recall) * HARDER);
    return KITH_OK;
}

/* Learning is no work in rows, but can be stopped. */
static int pulse(void *user, int64_t n_done, int64_t n_all) {
    (void)n_done, (void)n_all;
    return ki_tally_add(user, 0, NULL) != KITH_OK;
}

/* A coder from all rows, with as many bits as the recall takes. */
static kith_status learn(encoding *e, kith_error *err) {
    const ki_coder_options options = {
        .metric = e->m->metric, .bits = bits_to_try[0], .progress = pulse, .user = e->tally};
    e->is_new_coder = true;
    KI_TRY(hold_rows(e, err));
    const ki_row_source rows = ki_row_cut_source(&e->cut);
    KI_TRY(ki_coder_fit(&rows, &options, &e->coder, err));
    for (int i = 0;; i++) {
        KI_TRY(take_codes(e, err));
        KI_TRY(measure(e, err));
        if (e->effort.recall >= e->m->recall || i == N_BITS - 1) return KITH_OK;
        ki_coder *finer = NULL;
        KI_TRY(ki_coder_with_bits(e->coder, bits_to_try[i + 1], &finer, err));
        drop_codes(e); /* they are views of the coder before */
        ki_coder_free(e->coder);
        e->coder = finer;
        if (e->tally) e->tally->n_all += e->s->n_rows;
    }
}

static kith_status take_coder(encoding *e, kith_error *err) {
    uint8_t *bytes = NULL;
    KI_TRY(ki_blocks_load(&e->s->coder, &bytes, err));
    const kith_status status = ki_coder_from_bytes(bytes, (size_t)e->s->coder.bytes, &e->coder, err);
    ki_free(bytes);
    return status;
}

static kith_status write_file(encoding *e, const char *kind, const void *bytes, size_t n,
                              ki_manifest_file *ret_file, kith_error *err) {
    kith_status status = KITH_OK;
    ki_blocks_writer w = {0};
    ki_path path;
    const int64_t number = e->m->next_file++;
    KI_CHECK(ki_files_path(e->s->folder, number, kind, &path, err));
    KI_CHECK(ki_blocks_create(&w, path.s, err));
    KI_CHECK(ki_blocks_write(&w, bytes, n, err));
    KI_CHECK(ki_blocks_finish(&w, &ret_file->seal, err));
    ret_file->number = number;
done:
    ki_blocks_discard(&w);
    return status;
}

static kith_status write_files(encoding *e, kith_error *err) {
    if (e->is_new_coder) {
        ki_buffer bytes = {.err = err};
        ki_coder_to_bytes(e->coder, &bytes);
        kith_status status = bytes.status;
        if (status == KITH_OK) status = write_file(e, KI_KIND_CODER, bytes.data, bytes.n, &e->m->coder, err);
        ki_buffer_release(&bytes);
        if (status != KITH_OK) return status;
    }
    for (int64_t i = 0; i < e->m->n_segments; i++) {
        if (!e->is_new[i]) continue;
        KI_TRY(write_file(e, KI_KIND_CODES, e->bytes[i], ki_codes_bytes(e->coder, e->s->segments[i].n),
                          &e->m->segments[i].codes, err));
    }
    return KITH_OK;
}

/* Does the coder that there is serve on? */
static bool is_kept(const ki_manifest *m, int64_t n_rows, bool anew) {
    return m->coder.number && n_rows / 4 <= m->coding.coder_rows && !anew;
}

static kith_status encode_all(encoding *e, bool anew, kith_error *err) {
    ki_manifest_coding *coding = &e->m->coding;
    const size_t n = (size_t)e->m->n_segments;
    KI_TRY(ki_zalloc_or(&e->bytes, n, sizeof *e->bytes, "codes", err));
    KI_TRY(ki_zalloc_or(&e->is_new, n, sizeof *e->is_new, "codes", err));
    KI_TRY(ki_zalloc_or(&e->codes, n, sizeof *e->codes, "codes", err));
    KI_TRY(ki_zalloc_or(&e->segments, n, sizeof *e->segments, "codes", err));
    if (is_kept(e->m, e->s->n_rows, anew)) {
        KI_TRY(take_coder(e, err));
        KI_TRY(take_codes(e, err));
        e->effort = (ki_scan_effort){coding->n_probes, coding->n_looks, coding->tuned_k, coding->recall};
        if (e->s->n_rows / 3 * 2 > coding->tuned_rows) {
            KI_TRY(hold_rows(e, err));
            KI_TRY(measure(e, err));
            coding->tuned_rows = e->s->n_rows;
        }
    } else {
        KI_TRY(learn(e, err));
        coding->coder_rows = coding->tuned_rows = e->s->n_rows;
    }
    coding->bits = ki_coder_bits(e->coder);
    coding->n_lists = ki_coder_lists(e->coder);
    coding->n_probes = e->effort.n_probes;
    coding->n_looks = e->effort.n_looks;
    coding->tuned_k = e->effort.k;
    coding->recall = e->effort.recall;
    return write_files(e, err);
}

/* As many as are searched exactly: no codes. */
static void without_codes(ki_manifest *m) {
    m->coder = (ki_manifest_file){0};
    m->coding = (ki_manifest_coding){0};
    for (int64_t i = 0; i < m->n_segments; i++) m->segments[i].codes = (ki_manifest_file){0};
}

static bool is_exact(const ki_manifest *m, int64_t n_live) { return n_live <= m->exact_numbers / m->dim; }

int64_t ki_encode_rows(const ki_manifest *m, int64_t n_rows, int64_t n_live, int64_t n_new, bool anew) {
    if (is_exact(m, n_live)) return 0;
    return is_kept(m, n_rows, anew) ? n_new : n_rows;
}

kith_status ki_encode(ki_tally *tally, const ki_snapshot *to_be, ki_manifest *manifest, bool anew,
                      kith_error *err) {
    if (is_exact(manifest, to_be->n_live)) {
        without_codes(manifest);
        return KITH_OK;
    }
    encoding e = {.s = to_be, .m = manifest, .tally = tally, .rows = ki_snapshot_source(to_be)};
    e.cut = (ki_row_cut){&e.rows, ki_coded_dim(manifest)};
    const kith_status status = encode_all(&e, anew, err);
    drop_codes(&e);
    ki_free(e.bytes);
    ki_free(e.is_new);
    ki_free(e.codes);
    ki_free(e.segments);
    ki_coder_free(e.coder);
    ki_free(e.in_memory);
    return status;
}
