/* The table of losses on the device: one row each. A row names the options in the order in which its launcher
 * reads them, and says what the row sums are divided by. */
#include <string.h>

#include "objective/cuda/loss.h"

enum { NONE = KI_VIEW_NONE, POS = KI_VIEW_POSITIVE, NEG = KI_VIEW_NEGATIVE };

/* Both kinds alike. */
static void both(ki_cuda_weight weight[3], ki_cuda_by by) {
    weight[POS] = weight[NEG] = (ki_cuda_weight){by, 1};
}

static void by_rows(const double *option, const ki_cuda_view *view, ki_cuda_weight weight[3]) {
    (void)option, (void)view;
    both(weight, KI_BY_ROWS);
}

static void by_anchors(const double *option, const ki_cuda_view *view, ki_cuda_weight weight[3]) {
    (void)option, (void)view;
    both(weight, KI_BY_ANCHORS);
}

static void by_positives(const double *option, const ki_cuda_view *view, ki_cuda_weight weight[3]) {
    (void)option, (void)view;
    both(weight, KI_BY_POS);
}

/* reduction sum, mean, nonzero; form horde */
static void contrastive_weights(const double *option, const ki_cuda_view *view, ki_cuda_weight weight[3]) {
    (void)view;
    const int reduction = (int)option[4];
    if (option[3] == 1) {
        weight[POS] = (ki_cuda_weight){KI_BY_POS, 1};
        weight[NEG] = (ki_cuda_weight){KI_BY_COUNT_1, 0.5};
    } else if (reduction == 0) { /* every unordered pair once */
        weight[POS] = weight[NEG] = (ki_cuda_weight){KI_BY_ONE, 0.5};
    } else {
        weight[POS] = (ki_cuda_weight){reduction == 1 ? KI_BY_POS : KI_BY_COUNT_0, 1};
        weight[NEG] = (ki_cuda_weight){reduction == 1 ? KI_BY_NEG : KI_BY_COUNT_1, 1};
    }
}

/* reduction anchor, sum, mean, anchor_all */
static void binomial_weights(const double *option, const ki_cuda_view *view, ki_cuda_weight weight[3]) {
    (void)view;
    const int reduction = (int)option[3];
    if (reduction == 0 || reduction == 3) both(weight, KI_BY_ROWS);
    if (reduction == 1) weight[POS] = weight[NEG] = (ki_cuda_weight){KI_BY_ONE, 0.5};
    if (reduction == 2) {
        weight[POS] = (ki_cuda_weight){KI_BY_POS, 1};
        weight[NEG] = (ki_cuda_weight){KI_BY_NEG, 1};
    }
}

/* reduction sum, mean, nonzero: the launcher counts the triplets that are meant */
static void triplet_weights(const double *option, const ki_cuda_view *view, ki_cuda_weight weight[3]) {
    (void)view;
    both(weight, option[2] == 0 ? KI_BY_ONE : KI_BY_COUNT_0);
}

/* reduction mean, sum */
static void npair_weights(const double *option, const ki_cuda_view *view, ki_cuda_weight weight[3]) {
    (void)view;
    both(weight, option[2] == 0 ? KI_BY_POS : KI_BY_ONE);
}

/* reduction sum, mean, nonzero */
static void margin_weights(const double *option, const ki_cuda_view *view, ki_cuda_weight weight[3]) {
    (void)view;
    const int reduction = (int)option[3];
    both(weight, reduction == 0 ? KI_BY_ONE : reduction == 1 ? KI_BY_PAIRS : KI_BY_COUNTS);
}

/* Entries that are nobody's pair in their own row have a gradient, too. */
static void angular_weights(const double *option, const ki_cuda_view *view, ki_cuda_weight weight[3]) {
    (void)option, (void)view;
    weight[NONE] = weight[POS] = weight[NEG] = (ki_cuda_weight){KI_BY_COUNT_0, 1};
}

static void histogram_weights(const double *option, const ki_cuda_view *view, ki_cuda_weight weight[3]) {
    (void)option, (void)view;
    both(weight, KI_BY_ONE);
}

static int64_t histogram_tallies(const double *option, const ki_cuda_view *view) {
    (void)option;
    return view->m + 1;
}

static size_t histogram_scratch(const double *option, const ki_cuda_view *view) {
    (void)view;
    return 4 * (size_t)option[0] * sizeof(double);
}

/* Positives by the proxies that have one, negatives by all proxies. */
static void proxy_anchor_weights(const double *option, const ki_cuda_view *view, ki_cuda_weight weight[3]) {
    (void)option;
    weight[POS] = (ki_cuda_weight){KI_BY_COUNT_0, 1};
    weight[NEG] = (ki_cuda_weight){KI_BY_ONE, 1 / (double)view->n};
}

static int64_t proxy_anchor_tallies(const double *option, const ki_cuda_view *view) {
    (void)option;
    return view->n;
}

static int softtriple_has_straight(const double *option) { return option[3] != 0 && option[4] >= 2; }

static int64_t softtriple_tallies(const double *option, const ki_cuda_view *view) {
    return softtriple_has_straight(option) ? view->m + view->n / view->n_centers : view->m;
}

static size_t softtriple_scratch(const double *option, const ki_cuda_view *view) {
    return softtriple_has_straight(option) ? (size_t)view->n * (size_t)view->n_centers * sizeof(float) : 0;
}

static const ki_cuda_loss_type types[] = {
    {.name = "contrastive",
     .options = {"pos_margin", "neg_margin", "distance", "form", "reduction"},
     .weights = contrastive_weights,
     .rows = ki_cuda_loss_contrastive},
    {.name = "triplet",
     .options = {"margin", "distance", "reduction"},
     .weights = triplet_weights,
     .rows = ki_cuda_loss_triplet},
    {.name = "npair",
     .options = {"scale", "l2", "reduction"},
     .weights = npair_weights,
     .rows = ki_cuda_loss_npair,
     .reads_norms = 1},
    {.name = "binomial",
     .options = {"alpha", "beta", "gamma", "reduction"},
     .weights = binomial_weights,
     .rows = ki_cuda_loss_binomial},
    {.name = "lifted", .options = {"margin"}, .weights = by_rows, .rows = ki_cuda_loss_lifted},
    {.name = "raw", .options = {"alpha", "beta", "gamma"}, .weights = by_rows, .rows = ki_cuda_loss_raw},
    {.name = "angular", .options = {"angle"}, .weights = angular_weights, .rows = ki_cuda_loss_angular},
    {.name = "histogram",
     .options = {"bins"},
     .weights = histogram_weights,
     .rows = ki_cuda_loss_histogram,
     .n_tallies = histogram_tallies,
     .scratch_bytes = histogram_scratch},
    {.name = "margin",
     .options = {"alpha", "nu", "per_class", "reduction"},
     .weights = margin_weights,
     .rows = ki_cuda_loss_margin,
     .after = ki_cuda_loss_margin_after},
    {.name = "circle",
     .options = {"margin", "gamma", "detach"},
     .weights = by_rows,
     .rows = ki_cuda_loss_circle},
    {.name = "supcon", .options = {"temperature"}, .weights = by_anchors, .rows = ki_cuda_loss_supcon},
    {.name = "ntxent", .options = {"temperature"}, .weights = by_positives, .rows = ki_cuda_loss_ntxent},
    {.name = "ranked_list",
     .options = {"alpha", "margin", "temperature", "lambda"},
     .weights = by_rows,
     .rows = ki_cuda_loss_ranked_list},
    {.name = "fastap", .options = {"bins"}, .weights = by_anchors, .rows = ki_cuda_loss_fastap},
    {.name = "amsoftmax", .options = {"scale", "margin"}, .weights = by_rows, .rows = ki_cuda_loss_amsoftmax},
    {.name = "arcface", .options = {"scale", "margin"}, .weights = by_rows, .rows = ki_cuda_loss_arcface},
    {.name = "normsoftmax", .options = {"temperature"}, .weights = by_rows, .rows = ki_cuda_loss_normsoftmax},
    {.name = "proxy_nca", .options = {"scale"}, .weights = by_rows, .rows = ki_cuda_loss_proxy_nca},
    {.name = "proxy_anchor",
     .options = {"alpha", "delta"},
     .weights = proxy_anchor_weights,
     .rows = ki_cuda_loss_proxy_anchor,
     .n_tallies = proxy_anchor_tallies},
    {.name = "softtriple",
     .options = {"la", "gamma", "margin", "tau", "centers"},
     .weights = by_rows,
     .rows = ki_cuda_loss_softtriple,
     .n_tallies = softtriple_tallies,
     .scratch_bytes = softtriple_scratch,
     .has_straight = softtriple_has_straight},
};

const ki_cuda_loss_type *ki_cuda_loss_find(const char *name) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, name) == 0) return &types[i];
    }
    return NULL;
}
