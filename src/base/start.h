/* How new weights start: uniform in ±bound, by one of the usual rules. */
#ifndef KI_START_H
#define KI_START_H

#include <stdint.h>

#include "base/error.h"

typedef enum ki_start {
    KI_START_HE,     /* sqrt(6 / fan_in) */
    KI_START_GLOROT, /* sqrt(6 / (fan_in + fan_out)) */
    KI_START_CAFFE,  /* sqrt(3 / fan_in): Caffe's xavier; rows start at norm 1 */
    KI_START_TORCH,  /* sqrt(1 / fan_in): torch.nn.Linear, which uses it for biases too */
    KI_START_SMALL,  /* 0.02 sqrt(3), whatever the fans: a deviation of 0.02, as transformers start */
} ki_start;

/* "he", "glorot", "caffe", "torch", "small", NULL. */
extern const char *const ki_start_names[];
kith_status ki_start_parse(const char *text, ki_start *ret_start, kith_error *err);

double ki_start_bound(ki_start start, int64_t fan_in, int64_t fan_out);

#endif
