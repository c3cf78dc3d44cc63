/* Losses that are a mean: how the values of the rows become one number. */
#ifndef KI_OBJECTIVE_LOSS_ROWS_H
#define KI_OBJECTIVE_LOSS_ROWS_H

#include "objective/loss/loss.h"

/* The mean over all m rows. fn has the settings as its context; the g it writes is that of the mean already. */
kith_status ki_loss_mean_rows(const ki_loss_in *in, ki_loss_out *out, ki_row_fn fn, kith_error *err);

/* The context of a row of exponentials of scale * s; g is to be multiplied by weight. */
typedef struct ki_exponentials {
    ki_real scale, weight;
} ki_exponentials;

/* The sum over rows divided by n, the number of its terms (0 when there are none). fn has a ki_exponentials. */
kith_status ki_loss_mean_terms(const ki_loss_in *in, ki_loss_out *out, ki_row_fn fn, double scale, int64_t n,
                               kith_error *err);

#endif
