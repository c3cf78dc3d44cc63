/* Reading result.json: where its metrics are and how they are written. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "report/report.h"

static const ki_metric_name metrics[] = {{"recall.1", "R@1"},
                                         {"recall.2", "R@2"},
                                         {"recall.4", "R@4"},
                                         {"recall.8", "R@8"},
                                         {"recall.10", "R@10"},
                                         {"recall.16", "R@16"},
                                         {"recall.20", "R@20"},
                                         {"recall.30", "R@30"},
                                         {"recall.32", "R@32"},
                                         {"recall.40", "R@40"},
                                         {"recall.50", "R@50"},
                                         {"recall.100", "R@100"},
                                         {"recall.1000", "R@1000"},
                                         {"map_at_r", "MAP@R"},
                                         {"r_precision", "R-precision"},
                                         {"precision_at_1", "P@1"},
                                         {"map", "MAP"},
                                         {"mrr", "MRR"},
                                         {"nmi", "NMI"},
                                         {"ami", "AMI"},
                                         {"f1", "F1"}};

const ki_metric_name *ki_metric_at(size_t i) {
    return i < sizeof metrics / sizeof metrics[0] ? metrics + i : NULL;
}

static const ki_value *map_at(const ki_value *from, const char *key) {
    const ki_value *v = ki_value_get(from, key);
    return v && v->kind == KI_VALUE_MAP ? v : NULL;
}

const ki_value *ki_result_test(const ki_value *result) { return map_at(result, "test"); }
const ki_value *ki_result_untrained(const ki_value *result) { return map_at(result, "untrained"); }
const ki_value *ki_result_seen(const ki_value *result) { return map_at(result, "seen"); }

const ki_value *ki_result_intervals(const ki_value *result) {
    const ki_value *inside = map_at(ki_result_test(result), "intervals");
    return inside ? inside : map_at(result, "intervals");
}

bool ki_estimate_of(const ki_value *from, const ki_value *intervals, const char *key, ki_estimate *ret) {
    char path[96];
    ki_estimate e = {.value = NAN, .low = NAN, .high = NAN};
    if (!ki_document_real(from, key, &e.value)) {
        ki_snprintf(path, sizeof path, "%s.mean", key);
        if (!ki_document_real(from, path, &e.value)) return false;
        ki_snprintf(path, sizeof path, "%s.low", key);
        ki_document_real(from, path, &e.low);
        ki_snprintf(path, sizeof path, "%s.high", key);
        ki_document_real(from, path, &e.high);
    }
    if (isnan(e.low) || isnan(e.high)) {
        ki_snprintf(path, sizeof path, "%s.0", key);
        ki_document_real(intervals, path, &e.low);
        ki_snprintf(path, sizeof path, "%s.1", key);
        ki_document_real(intervals, path, &e.high);
    }
    *ret = e;
    return true;
}

void ki_estimate_put(ki_buffer *to, const ki_estimate *e) {
    ki_buffer_put(to, "%.1f", 100 * e->value);
    if (!isnan(e->low) && !isnan(e->high))
        ki_buffer_put(to, " <span class=\"quiet\">%.1f–%.1f</span>", 100 * e->low, 100 * e->high);
}
