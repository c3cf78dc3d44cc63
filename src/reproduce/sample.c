/* Means, spreads and comparisons of rows over seeds. */
#include "reproduce/sample.h"
#include "judge/estimate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "train/repeat.h"

/* Half the width of the interval at BLOCK.intervals.METRIC. */
static double half_width(const ki_outcome *o, const char *block, const char *metric) {
    char low[128], high[128];
    ki_snprintf(low, sizeof low, "intervals.%s.0", metric);
    ki_snprintf(high, sizeof high, "intervals.%s.1", metric);
    return (ki_outcome_real(o, block, high) - ki_outcome_real(o, block, low)) / 2;
}

ki_sample ki_sample_in(const ki_list *list, const ki_outcomes *all, const ki_list_row *row, const char *block,
                       const char *metric) {
    ki_sample s = {.data = "", .judged = ""};
    char judged[96];
    ki_snprintf(judged, sizeof judged, "%s.data_sha256", *block ? block : "test");
    const ki_list_row *source = ki_list_source(list, row);
    for (size_t i = 0; i < all->n && s.n < KI_MOST_SEEDS; i++) {
        const ki_outcome *o = &all->item[i];
        if (!ki_outcome_is_of(o, source->name)) continue;
        const double value = ki_outcome_real(o, block, metric);
        if (isnan(value)) continue;
        s.data = o->data;
        s.judged = ki_outcome_text(o, judged);
        s.value[s.n++] = value;
        s.query_half += half_width(o, block, metric);
    }
    s.query_half = s.n > 0 ? s.query_half / s.n : NAN;
    s.estimate = ki_estimate_mean(s.value, s.n);
    return s;
}

ki_sample ki_sample_of(const ki_list *list, const ki_outcomes *all, const ki_list_row *row,
                       const char *metric) {
    return ki_sample_in(list, all, row, row->block, metric);
}

bool ki_sample_is_comparable(const ki_sample *a, const ki_sample *b) {
    if (*a->judged && *b->judged) return strcmp(a->judged, b->judged) == 0;
    return !*a->data || !*b->data || strcmp(a->data, b->data) == 0;
}

ki_noise ki_noise_of(const ki_list *list, const ki_outcomes *all, const char *metric) {
    double squares = 0;
    int freedom = 0;
    for (size_t i = 0; i < list->n_rows; i++) {
        if (*list->row[i].of) continue; /* the same runs */
        const ki_sample s = ki_sample_of(list, all, &list->row[i], metric);
        for (int k = 0; k < s.n && s.n > 1; k++)
            squares += (s.value[k] - s.estimate.mean) * (s.value[k] - s.estimate.mean);
        if (s.n > 1) freedom += s.n - 1;
    }
    return (ki_noise){.deviation = freedom > 0 ? sqrt(squares / freedom) : NAN, .freedom = freedom};
}

double ki_difference_half(const ki_noise *noise, const ki_sample *a, const ki_sample *b) {
    if (a->n == 0 || b->n == 0) return NAN;
    if (noise->freedom > 0)
        return ki_t_quantile(noise->freedom) * noise->deviation * sqrt(1.0 / a->n + 1.0 / b->n);
    return sqrt(a->query_half * a->query_half + b->query_half * b->query_half);
}

ki_verdict ki_compare(const ki_noise *noise, const ki_sample *a, const ki_sample *b) {
    const double half = ki_difference_half(noise, a, b), gain = a->estimate.mean - b->estimate.mean;
    if (a->n > 0 && b->n > 0 && !ki_sample_is_comparable(a, b)) return KI_OTHER_DATA;
    if (isnan(half) || isnan(gain)) return KI_UNKNOWN;
    return gain > half ? KI_AGREES : gain < -half ? KI_DISAGREES : KI_WITHIN_NOISE;
}
