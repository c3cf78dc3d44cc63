/* A row's values over its seeds, and whether two rows differ by more than seeds do. */
#ifndef KI_REPRODUCE_SAMPLE_H
#define KI_REPRODUCE_SAMPLE_H

#include "kith/train.h"
#include "reproduce/list.h"
#include "reproduce/outcome.h"

enum { KI_MOST_SEEDS = 64 };

/* Of one metric. n is 0 when there is none. */
typedef struct ki_sample {
    int n;
    double value[KI_MOST_SEEDS];
    kith_estimate estimate; /* the mean; an interval from two seeds on */
    const char *data;       /* hash of all that the runs read; "": not known */
    const char *judged;     /* … and of the images they were judged on */
    double query_half; /* half of a run's bootstrap interval over queries, mean over the seeds; NaN: none */
} ki_sample;

ki_sample ki_sample_of(const ki_list *list, const ki_outcomes *all, const ki_list_row *row,
                       const char *metric);
/* The same of another block of the row's runs, as "best_on_test". */
ki_sample ki_sample_in(const ki_list *list, const ki_outcomes *all, const ki_list_row *row, const char *block,
                       const char *metric);

/* Were the two judged on the same images? Also when one does not say. */
bool ki_sample_is_comparable(const ki_sample *a, const ki_sample *b);

/* How much a metric moves from seed to seed: one variance for all rows, from those with several seeds. */
typedef struct ki_noise {
    double deviation; /* NaN without such rows */
    int freedom;
} ki_noise;

ki_noise ki_noise_of(const ki_list *list, const ki_outcomes *all, const char *metric);

/* Half of the 95 % interval of a's mean less b's: from the noise of seeds, without it from the queries drawn;
 * NaN when neither is known. */
double ki_difference_half(const ki_noise *noise, const ki_sample *a, const ki_sample *b);

/* Of "a beats b". */
typedef enum ki_verdict { KI_UNKNOWN, KI_AGREES, KI_DISAGREES, KI_WITHIN_NOISE, KI_OTHER_DATA } ki_verdict;
ki_verdict ki_compare(const ki_noise *noise, const ki_sample *a, const ki_sample *b);

#endif
