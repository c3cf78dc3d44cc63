/* What the doctor finds in the photos, kept with what was tried: counts as decisions, and a line for each finding. */
#ifndef KI_TUNE_FINDINGS_H
#define KI_TUNE_FINDINGS_H

#include "io/json.h"
#include "kith/doctor.h"
#include "tune/tune.h"

/* Findings whose kind is among `kinds` (bits). */
enum {
    KI_TUNE_BY_VECTORS = 1 << KITH_FINDING_MISLABELLED | 1 << KITH_FINDING_NEAR_LEAK |
                         1 << KITH_FINDING_NEAR | 1 << KITH_FINDING_ODD | 1 << KITH_FINDING_SHORTCUT,
    KI_TUNE_BY_FILES = ((1 << KITH_N_FINDING_KINDS) - 1) & ~KI_TUNE_BY_VECTORS
};

typedef struct ki_tune_tally {
    int64_t n_out[KITH_N_FINDING_KINDS], n_noted[KITH_N_FINDING_KINDS]; /* photos; findings */
} ki_tune_tally;

/* Write them down, and add them to the tally. What is left out is named by its path. only_test: those that concern a test photo, and they
 * leave nothing out. */
kith_status ki_tune_keep_findings(ki_tune *tune, const kith_dataset *set, const kith_findings *found,
                                  bool only_test, ki_tune_tally *tally, kith_error *err);
/* From now on these are the numbers of their kinds. */
kith_status ki_tune_count_findings(ki_tune *tune, const ki_tune_tally *tally, kith_error *err);
/* Photos that the kind left out, or findings of it that left nothing out. */
int64_t ki_tune_n_findings(const ki_tune *tune, kith_finding_kind kind, bool is_out);
/* A line for each kind: what was left out, and what is only noted. */
void ki_tune_tell_findings(ki_tune *tune, unsigned kinds);
/* Into the object of tune.json: counts, and "findings". */
void ki_tune_put_findings(const ki_tune *tune, kith_json *json);

#endif
