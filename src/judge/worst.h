/* The worst queries, of rows wherever they lie (kith/worst.h says what they are). */
#ifndef KI_WORST_H
#define KI_WORST_H

#include "judge/judge.h"
#include "kith/worst.h"

kith_status ki_worst_find(const ki_judge_input *input, const kith_worst_options *options,
                          kith_worst *ret_worst, kith_error *err);

/* The same of vectors, by their labels and roles. */
kith_status ki_judge_worst(ki_vectors *vectors, const kith_worst_options *options, kith_worst *ret_worst,
                           kith_error *err);

#endif
