/* Lists in the order of their scores, as far as needed. */
#include "search/scan/probe.h"

#include "base/alloc.h"

enum { FAR = 8 }; /* times as many rows for a query that is far from the allowed ones */

kith_status ki_prober_init(ki_prober *p, const ki_scan_set *set, const ki_probes *probes, int64_t n_together,
                           kith_error *err) {
    const ki_coder *c = set->coder;
    const size_t lists = (size_t)c->n_lists;
    *p = (ki_prober){.set = set, .probes = *probes, .most = probes->allowed ? c->n_lists : probes->n_lists};
    KI_TRY(ki_coder_ranker_init(&p->ranker, c, n_together, err));
    KI_TRY(ki_zalloc_or(&p->score, (size_t)(n_together * c->n_panels), KI_LIST_PANEL * sizeof(float),
                        "scratch", err));
    KI_TRY(ki_alloc_or(&p->keys, 2 * lists, sizeof *p->keys, "scratch", err));
    if (!probes->allowed) return KITH_OK;
    KI_TRY(ki_alloc_or(&p->n_allowed, lists, sizeof *p->n_allowed, "scratch", err));
    for (int64_t l = 0; l < c->n_lists; l++) p->n_allowed[l] = -1;
    return KITH_OK;
}

void ki_prober_release(ki_prober *p) {
    ki_coder_ranker_release(&p->ranker);
    ki_free(p->score);
    ki_free(p->keys);
    ki_free(p->n_allowed);
    *p = (ki_prober){0};
}

/* A score that at least n lists reach, and not many more: with the lists dealt to columns, the n-th best of the columns' best. */
static float least_of(ki_prober *p, const float *score, int64_t n) {
    enum { MOST_COLUMNS = 1024 };
    const int64_t lists = p->ranker.coder->n_lists;
    int64_t width = 64;
    while (width < 4 * n) width *= 2;
    if (width > MOST_COLUMNS || width * 4 > lists) return -INFINITY;
    float best[MOST_COLUMNS];
    for (int64_t j = 0; j < width; j++) best[j] = score[j];
    for (int64_t l = width; l < lists; l += width) {
        const int64_t end = lists - l < width ? lists - l : width;
        for (int64_t j = 0; j < end; j++) best[j] = score[l + j] > best[j] ? score[l + j] : best[j];
    }
    ki_key *keys = p->keys;
    for (int64_t j = 0; j < width; j++) keys[j] = ki_key_make(best[j], j);
    ki_keys_select(ki_knn_kernel_best(), keys, width, n, keys + width);
    ki_key worst = keys[0];
    for (int64_t j = 1; j < n; j++) worst = keys[j] < worst ? keys[j] : worst;
    return ki_key_score(worst);
}

/* The n best lists, best first, at the front of the keys; ties by lower number. */
static void best_lists(ki_prober *p, const float *score, int64_t n) {
    const ki_knn_kernel *kernel = ki_knn_kernel_best();
    const int64_t lists = p->ranker.coder->n_lists;
    const float least = least_of(p, score, n);
    int64_t n_keys = 0;
    for (int64_t l = 0; l < lists; l++) {
        p->keys[n_keys] = ki_key_make(score[l], l);
        n_keys += !(score[l] < least);
    }
    ki_key *scratch = p->keys + lists;
    if (n_keys > n) ki_keys_select(kernel, p->keys, n_keys, n, scratch);
    ki_keys_sort(kernel, p->keys, n, scratch);
}

static int64_t count_allowed(ki_prober *p, int64_t l) {
    if (p->n_allowed[l] >= 0) return p->n_allowed[l];
    int64_t n = 0;
    for (int64_t s = 0; s < p->set->n_segments; s++) {
        const ki_scan_segment *segment = p->set->segments + s;
        if (!segment->codes) continue;
        for (uint32_t at = segment->codes->begin[l]; at < segment->codes->begin[l + 1]; at++)
            n += ki_scan_is_allowed(p->probes.allowed, segment->first + segment->codes->row[at]);
    }
    p->n_allowed[l] = (int32_t)n;
    return n;
}

/* The lists until enough allowed rows are met. Sorting all lists is seldom needed: try few first. */
static ki_visits visit_until(ki_prober *p, const float *score, uint32_t *ret_lists) {
    const int64_t lists = p->ranker.coder->n_lists;
    int64_t n_sorted = p->probes.n_lists, n_met = 0, n_wanted = p->probes.n_wanted;
    ki_visits visits = {0};
    best_lists(p, score, n_sorted);
    for (int64_t i = 0; i < lists && (i < p->probes.n_lists || n_met < n_wanted); i++) {
        /* From afar the order of lists says less. */
        if (i == p->probes.n_lists && 2 * n_met < p->probes.n_expected) {
            visits.is_far = true;
            n_wanted *= FAR;
        }
        if (i == n_sorted) {
            n_sorted = 4 * n_sorted < lists ? 4 * n_sorted : lists;
            best_lists(p, score, n_sorted);
        }
        const int64_t l = ki_key_index(p->keys[i]), n = count_allowed(p, l);
        if (n > 0) ret_lists[visits.n_lists++] = (uint32_t)l;
        n_met += n;
    }
    return visits;
}

void ki_prober_choose(ki_prober *p, const float *turned, int64_t n, uint32_t *ret_lists,
                      ki_visits *ret_visits) {
    const int64_t stride = p->ranker.coder->n_panels * KI_LIST_PANEL;
    if (p->ranker.coder->n_lists > 1) ki_coder_rank(&p->ranker, turned, n, true, p->score);
    for (int64_t q = 0; q < n; q++) {
        const float *score = p->score + q * stride;
        uint32_t *lists = ret_lists + q * p->most;
        if (p->probes.allowed) {
            ret_visits[q] = visit_until(p, score, lists);
            continue;
        }
        best_lists(p, score, p->probes.n_lists);
        for (int64_t i = 0; i < p->probes.n_lists; i++) lists[i] = (uint32_t)ki_key_index(p->keys[i]);
        ret_visits[q] = (ki_visits){.n_lists = p->probes.n_lists};
    }
}
