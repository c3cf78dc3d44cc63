/* Settings of the recall@k surrogate, as a recipe gives them; read by recall_at_k.c and recall_at_k.cu. */
#ifndef KI_OBJECTIVE_RECALL_AT_K_H
#define KI_OBJECTIVE_RECALL_AT_K_H

#include <stdint.h>

/* The powers of two up to the largest k. */
enum { KI_RECALL_MOST_K = 1024, KI_RECALL_MOST_LEVELS = 11 };

typedef struct ki_recall_at_k_settings {
    int64_t k;
    double temperature, k_temperature;
} ki_recall_at_k_settings;

#endif
