/* The evidence of a name. How near the best photos are says less than by how much they are nearer than those of any other name: a new
 * kind lies between the known ones. Chosen on classes that nothing else is measured on (docs/adr/0181). */
#include "judge/evidence.h"

#include <stdbool.h>

#define MARGIN 2.0

typedef struct named {
    int64_t label;
    double best, sum; /* the nearest photo; the sum of those that count */
    int n;
} named;

static double strength(const named *x, double last) {
    const double mean = (x->sum + (KI_EVIDENCE_BEST - x->n) * last) / KI_EVIDENCE_BEST;
    return (x->best + mean) / 2;
}

static int gather(kith_metric metric, const ki_name_hit *hits, int64_t n, named *ret) {
    int n_names = 0;
    for (int64_t i = 0; i < n; i++) {
        const double near = metric == KITH_SQEUCLIDEAN ? -hits[i].score : hits[i].score;
        int at = 0;
        while (at < n_names && ret[at].label != hits[i].label) at++;
        if (at == n_names) ret[n_names++] = (named){.label = hits[i].label, .best = near};
        if (ret[at].n == KI_EVIDENCE_BEST) continue;
        ret[at].sum += near;
        ret[at].n++;
    }
    return n_names;
}

ki_evidence ki_evidence_find(kith_metric metric, const ki_name_hit *hits, int64_t n) {
    named name[KI_EVIDENCE_HITS];
    if (n > KI_EVIDENCE_HITS) n = KI_EVIDENCE_HITS;
    if (n < 1) return (ki_evidence){0, -1};
    const int n_names = gather(metric, hits, n, name);
    const double last = metric == KITH_SQEUCLIDEAN ? -hits[n - 1].score : hits[n - 1].score;
    double first = strength(&name[0], last), second = last;
    bool has_second = false;
    int best = 0;
    for (int i = 1; i < n_names; i++) {
        const double s = strength(&name[i], last);
        if (s > first) {
            second = first;
            first = s;
            best = i;
        } else if (!has_second || s > second) {
            second = s;
        }
        has_second = true;
    }
    return (ki_evidence){first + MARGIN * (first - second), name[best].label};
}
