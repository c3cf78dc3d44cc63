/* Verification inside the library: kith_verification_run (kith/eval.h) on rows wherever they lie, and its parts. */
#ifndef KI_VERIFICATION_H
#define KI_VERIFICATION_H

#include "judge/judge.h"
#include "judge/pair_counts.h"

/* On the host, also for rows that a device has. most_held as of ki_pair_input. */
kith_status ki_verification_run(const ki_judge_input *input, const kith_verification_options *options,
                                int64_t most_held, kith_verification *ret_verification, kith_error *err);

/* calibration.c: the curve of pairs, from false-match rate 1 down to one pair. */
void ki_calibration_make(const ki_pair_counts *pairs, kith_metric metric, int64_t n_classes,
                         kith_calibration *ret_calibration);

/* calibration_stricter.c: at every score the larger false-match rate of two curves of one metric, or up to two of the factors that its
 * points lie apart more. True match rates, classes and same pairs are those of `own`, n_different is the smaller one, the source is
 * "beside's, own's". Both must pass kith_calibration_check, and the result does. */
void ki_calibration_stricter(const kith_calibration *own, const kith_calibration *beside,
                             kith_calibration *ret_calibration);

/* verification_bootstrap.c: intervals of what is found already. */
kith_status ki_verification_bootstrap(const ki_pair_input *input, const ki_pair_counts *pairs,
                                      const kith_bootstrap_options *options, kith_verification *v,
                                      kith_error *err);

#endif
