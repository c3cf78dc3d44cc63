/* Calibration curves as metadata: rates are written as numbers of pairs, which are whole. */
#include "net/calibration.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "net/numbers.h"

enum { MOST = KITH_CALIBRATION_POINTS, TEXT_BYTES = MOST * 26 };

static const char source_key[] = "kith.calibration.source", pairs_key[] = "kith.calibration.pairs",
                  threshold_key[] = "kith.calibration.threshold",
                  false_key[] = "kith.calibration.false_matches",
                  true_key[] = "kith.calibration.true_matches";

static kith_status write_rates(kith_tensors_writer *writer, const char *key, const double *rate, int64_t n,
                               int64_t n_pairs, kith_error *err) {
    double count[MOST];
    char text[TEXT_BYTES];
    for (int64_t i = 0; i < n; i++) count[i] = round(rate[i] * (double)n_pairs);
    return kith_tensors_writer_metadata(writer, key, ki_numbers_text(count, (int)n, text, sizeof text), err);
}

kith_status ki_calibration_write(const kith_calibration *c, kith_tensors_writer *writer, kith_error *err) {
    char text[TEXT_BYTES];
    KI_TRY(kith_calibration_check(c, err));
    if (c->metric != KITH_COSINE)
        return ki_fail(err, KITH_EINVAL, "the calibration is not of cosines, which scores of a model are");
    KI_TRY(kith_tensors_writer_metadata(writer, source_key, c->source, err));
    const double pairs[] = {(double)c->n_classes, (double)c->n_same, (double)c->n_different};
    KI_TRY(
        kith_tensors_writer_metadata(writer, pairs_key, ki_numbers_text(pairs, 3, text, sizeof text), err));
    KI_TRY(kith_tensors_writer_metadata(writer, threshold_key,
                                        ki_numbers_text(c->threshold, (int)c->n, text, sizeof text), err));
    KI_TRY(write_rates(writer, false_key, c->fmr, c->n, c->n_different, err));
    return write_rates(writer, true_key, c->tmr, c->n, c->n_same, err);
}

/* The text of a key; an error when it is not there. */
static kith_status find(const kith_tensors *tensors, const char *key, const char **ret, kith_error *err) {
    *ret = kith_tensors_metadata(tensors, key);
    if (*ret) return KITH_OK;
    return ki_fail(err, KITH_EFORMAT, "there is metadata %s, but no %s", threshold_key, key);
}

static kith_status read_numbers(const kith_tensors *tensors, const char *key, int64_t n, double *ret,
                                kith_error *err) {
    const char *text = NULL;
    char what[64];
    KI_TRY(find(tensors, key, &text, err));
    ki_snprintf(what, sizeof what, "metadata %s", key);
    return ki_numbers_parse(text, (int)n, ret, what, err);
}

static kith_status read_rates(const kith_tensors *tensors, const char *key, int64_t n, int64_t n_pairs,
                              double *ret, kith_error *err) {
    KI_TRY(read_numbers(tensors, key, n, ret, err));
    for (int64_t i = 0; i < n; i++) ret[i] /= (double)n_pairs;
    return KITH_OK;
}

/* A number of things that a double holds exactly. */
static int64_t count_of(double x) { return x >= 1 && x <= 0x1p53 ? (int64_t)x : 0; }

kith_status ki_calibration_read(const kith_tensors *tensors, kith_calibration *ret, kith_error *err) {
    const char *text = kith_tensors_metadata(tensors, threshold_key), *source = NULL;
    kith_calibration c = {.metric = KITH_COSINE};
    double pairs[3];
    if (!text) {
        *ret = c;
        return KITH_OK;
    }
    c.n = 1;
    for (const char *at = text; *at; at++) c.n += *at == ',';
    if (c.n > MOST)
        return ki_fail(err, KITH_EFORMAT, "metadata %s has %lld numbers; wanted at most %d", threshold_key,
                       (long long)c.n, MOST);
    KI_TRY(find(tensors, source_key, &source, err));
    ki_snprintf(c.source, sizeof c.source, "%s", source);
    KI_TRY(read_numbers(tensors, pairs_key, 3, pairs, err));
    c.n_classes = count_of(pairs[0]);
    c.n_same = count_of(pairs[1]);
    c.n_different = count_of(pairs[2]);
    KI_TRY(read_numbers(tensors, threshold_key, c.n, c.threshold, err));
    KI_TRY(read_rates(tensors, false_key, c.n, c.n_different, c.fmr, err));
    KI_TRY(read_rates(tensors, true_key, c.n, c.n_same, c.tmr, err));
    KI_TRY(kith_calibration_check(&c, err));
    *ret = c;
    return KITH_OK;
}
