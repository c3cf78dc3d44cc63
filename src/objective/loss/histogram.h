/* Settings of the histogram loss, as a recipe gives them; read by histogram.c and histogram.cu. */
#ifndef KI_OBJECTIVE_HISTOGRAM_H
#define KI_OBJECTIVE_HISTOGRAM_H

#include <stdint.h>

typedef struct ki_histogram_settings {
    int64_t bins;
} ki_histogram_settings;

#endif
