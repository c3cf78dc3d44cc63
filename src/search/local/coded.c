/* Codes from files to memory. */
#include "search/local/coded.h"

#include "base/alloc.h"

static kith_status read_rows(void *user, const int64_t *row, int64_t n, float *dst, kith_error *err) {
    return ki_snapshot_read(user, row, n, dst, err);
}

static const float *kept_row(void *user, int64_t row) { return ki_snapshot_kept_row(user, row); }

ki_row_source ki_snapshot_source(const ki_snapshot *s) {
    return (ki_row_source){.n = s->n_rows,
                           .dim = s->manifest.dim,
                           .read = read_rows,
                           .kept = kept_row,
                           .user = (ki_snapshot *)(uintptr_t)s};
}

kith_status ki_coded_init(ki_coded *c, const ki_snapshot *snapshot, kith_error *err) {
    *c = (ki_coded){.snapshot = snapshot};
    if (pthread_mutex_init(&c->lock, NULL) != 0) return ki_fail_memory(err, sizeof c->lock, "a lock");
    c->has_lock = true;
    return KITH_OK;
}

static void unload(ki_coded *c) {
    for (int64_t i = 0; c->bytes && i < c->n; i++) ki_free(c->bytes[i]);
    ki_free(c->bytes);
    ki_free(c->codes);
    ki_free(c->segments);
    ki_coder_free(c->coder);
    c->bytes = NULL;
    c->codes = NULL;
    c->segments = NULL;
    c->coder = NULL;
    c->n = 0;
}

void ki_coded_release(ki_coded *c) {
    unload(c);
    if (c->has_lock) pthread_mutex_destroy(&c->lock);
    *c = (ki_coded){0};
}

int64_t ki_coded_bytes(const ki_snapshot *s) {
    int64_t bytes = 0;
    for (int64_t i = 0; i < s->manifest.n_segments; i++) bytes += s->manifest.segments[i].codes.seal.bytes;
    return bytes;
}

static kith_status load_coder(ki_coded *c, kith_error *err) {
    const ki_snapshot *s = c->snapshot;
    uint8_t *bytes = NULL;
    KI_TRY(ki_blocks_load(&s->coder, &bytes, err));
    kith_status status = ki_coder_from_bytes(bytes, (size_t)s->coder.bytes, &c->coder, err);
    ki_free(bytes);
    if (status == KITH_OK && ki_coder_dim(c->coder) != ki_coded_dim(&s->manifest))
        status = ki_fail(err, KITH_EFORMAT, "codes of %lld values a row; wanted %lld",
                         (long long)ki_coder_dim(c->coder), (long long)ki_coded_dim(&s->manifest));
    if (status == KITH_OK && ki_coder_metric(c->coder) != s->manifest.metric)
        status = ki_fail(err, KITH_EFORMAT, "codes for another metric");
    if (status != KITH_OK) ki_prefix(err, status, "%s", s->coder.path);
    return status;
}

static kith_status load_codes(ki_coded *c, int64_t i, kith_error *err) {
    const ki_snapshot *s = c->snapshot;
    const int64_t n = s->segments[i].n;
    c->segments[i] = (ki_scan_segment){.first = s->first[i], .n = n};
    if (!s->codes[i].is_open) return KITH_OK;
    KI_TRY(ki_blocks_load(&s->codes[i], &c->bytes[i], err));
    kith_status status = ki_codes_open(c->coder, c->bytes[i], (size_t)s->codes[i].bytes, &c->codes[i], err);
    if (status == KITH_OK && c->codes[i].n != n)
        status = ki_fail(err, KITH_EFORMAT, "codes of %lld rows; wanted %lld", (long long)c->codes[i].n,
                         (long long)n);
    if (status != KITH_OK) return ki_prefix(err, status, "%s", s->codes[i].path);
    c->segments[i].codes = &c->codes[i];
    return KITH_OK;
}

static kith_status load(ki_coded *c, kith_error *err) {
    kith_status status = KITH_OK;
    const size_t n = (size_t)c->snapshot->manifest.n_segments;
    KI_CHECK(load_coder(c, err));
    KI_CHECK(ki_zalloc_or(&c->bytes, n, sizeof *c->bytes, "codes", err));
    c->n = (int64_t)n;
    KI_CHECK(ki_zalloc_or(&c->codes, n, sizeof *c->codes, "codes", err));
    KI_CHECK(ki_zalloc_or(&c->segments, n, sizeof *c->segments, "codes", err));
    for (size_t i = 0; i < n; i++) KI_CHECK(load_codes(c, (int64_t)i, err));
    c->is_loaded = true;
    return KITH_OK;
done:
    unload(c);
    return status;
}

kith_status ki_coded_set(ki_coded *c, ki_scan_set *ret_set, ki_scan_effort *ret_effort, kith_error *err) {
    kith_status status = KITH_OK;
    pthread_mutex_lock(&c->lock);
    if (!c->is_loaded) status = load(c, err);
    pthread_mutex_unlock(&c->lock);
    if (status != KITH_OK) return status;
    const ki_manifest_coding *m = &c->snapshot->manifest.coding;
    *ret_set = (ki_scan_set){.coder = c->coder,
                             .segments = c->segments,
                             .n_segments = c->n,
                             .rows = ki_snapshot_source(c->snapshot)};
    *ret_effort = (ki_scan_effort){m->n_probes, m->n_looks, m->tuned_k, m->recall};
    return KITH_OK;
}
