/* The bounds of the usual rules for new weights. */
#include "base/start.h"

#include <math.h>
#include <string.h>

#include "base/option.h"

const char *const ki_start_names[] = {"he", "glorot", "caffe", "torch", "small", NULL};

kith_status ki_start_parse(const char *text, ki_start *ret_start, kith_error *err) {
    for (int i = 0; ki_start_names[i]; i++) {
        if (strcmp(text, ki_start_names[i]) != 0) continue;
        *ret_start = (ki_start)i;
        return KITH_OK;
    }
    return ki_fail_unknown(err, "embedding_init", text, ki_start_names, 5);
}

double ki_start_bound(ki_start start, int64_t fan_in, int64_t fan_out) {
    switch (start) {
    case KI_START_HE: return sqrt(6.0 / (double)fan_in);
    case KI_START_GLOROT: return sqrt(6.0 / (double)(fan_in + fan_out));
    case KI_START_CAFFE: return sqrt(3.0 / (double)fan_in);
    case KI_START_TORCH: return sqrt(1.0 / (double)fan_in);
    case KI_START_SMALL: return 0.02 * sqrt(3.0);
    }
    return 0;
}
