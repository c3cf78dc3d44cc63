/* Settings of FastAP, as a recipe gives them; read by fastap.c and fastap.cu. */
#ifndef KI_OBJECTIVE_FASTAP_H
#define KI_OBJECTIVE_FASTAP_H

#include <stdint.h>

enum { KI_FASTAP_MOST_BINS = 256 };

typedef struct ki_fastap_settings {
    int64_t bins;
} ki_fastap_settings;

#endif
