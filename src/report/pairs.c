/* Histograms of pairs, as training left them in pairs.json. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "report/chart.h"
#include "report/report.h"

enum { MOST_BINS = 2000 };

/* The finite numbers of a list of n; false when it is something else. */
static bool get_numbers(const ki_value *list, size_t n, double *ret) {
    if (!list || list->kind != KI_VALUE_LIST || list->n_items != n) return false;
    size_t i = 0;
    for (const ki_value *v = list->first; v; v = v->next, i++) {
        if (v->kind != KI_VALUE_SCALAR || !ki_parse_double(v->text, ret + i) || !(fabs(ret[i]) < 1e100))
            return false;
    }
    return true;
}

static bool is_rising(const double *edge, size_t n) {
    for (size_t i = 1; i < n; i++) {
        if (!(edge[i] > edge[i - 1])) return false;
    }
    return true;
}

static bool is_count(const double *count, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!(count[i] >= 0)) return false;
    }
    return true;
}

/* without: what a run that has no such histogram did not do. */
static kith_status put_histogram(ki_report *r, const char *key, const char *without, ki_histogram h) {
    const ki_value *from = ki_value_get(r->detail->pairs, key), *edges = ki_value_get(from, "edges");
    char line[120];
    if (!from) {
        ki_report_not_there(r, without);
        return KITH_OK;
    }
    const size_t n = edges && edges->n_items > 1 && edges->n_items <= MOST_BINS + 1 ? edges->n_items - 1 : 0;
    double *numbers = NULL; /* edges, positive, negative */
    KI_TRY(ki_alloc_or(&numbers, 3 * n + 2, sizeof *numbers, "a histogram", r->err));
    h.n_bins = n;
    h.edge = numbers;
    static const char *const kinds[] = {"positive", "negative"};
    bool is_good = n > 0 && get_numbers(edges, n + 1, numbers) && is_rising(numbers, n + 1);
    for (size_t kind = 0; is_good && kind < 2; kind++) {
        double *count = numbers + n + 1 + kind * n;
        const ki_value *list = ki_value_get(from, kinds[kind]);
        if (!list) continue;
        is_good = get_numbers(list, n, count) && is_count(count, n);
        h.count[kind] = count;
    }
    if (is_good) {
        ki_histogram_put(r->to, &h);
    } else {
        ki_snprintf(line, sizeof line,
                    "'%s' in pairs.json is not n counts of each kind and n + 1 rising edges", key);
        ki_report_left_out(r, line);
    }
    ki_free(numbers);
    return KITH_OK;
}

kith_status ki_report_pairs(ki_report *r) {
    ki_report_section(r, "pairs", "Pairs",
                      "Apart is good: distances of pairs of one class should lie left of the others.");
    if (!r->detail->pairs) {
        ki_report_part(r, r->detail, KI_PART_PAIRS);
    } else {
        const ki_histogram distance = {
            .title = "Distances of test pairs",
            .axis = "cosine distance",
            .caption =
                "Sampled pairs of test embeddings; each kind as a share of its own "
                "pairs, in percent per bin."};
        const ki_histogram weight = {
            .title = "Weights of training pairs",
            .axis = "weight in the loss",
            .caption =
                "Pairs of the last training batches: how hard the loss pulls a positive "
                "or pushes a negative pair; percent per bin."};
        ki_buffer_put(r->to, "<div class=\"pair\">\n");
        KI_TRY(put_histogram(
            r, "distance", "no test images were scored, so there are no distances of their pairs", distance));
        KI_TRY(put_histogram(r, "weight", "the loss gives no weights to pairs", weight));
        ki_buffer_put(r->to, "</div>\n");
    }
    ki_report_section_end(r);
    return r->to->status;
}
