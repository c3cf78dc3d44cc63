/* Losses on the smallest batches there are, beside their formulas written out: anchors with one positive, one negative,
 * or none of a kind, where a count that is off by one leaves a whole row out; and pairs at the very end of a range.
 * Gradients are the formulas' own slopes, as each point moves along the circle that all lie on. */
#include "objective/cases.h"
#include "objective/loss/bins.h"

enum { M = 4, DIM = 2 };

/* At 0, 40, 90 and 200 degrees. */
static const double angle[M] = {0, 40, 90, 200};

typedef struct small {
    int32_t label[M];
    double s[M][M];
    ki_real x[M * DIM];
} small;

/* Point `turned` stands `by` (radians) further along the circle. */
static small small_of(const int32_t *label, int turned, double by) {
    small b;
    double at[M];
    for (int i = 0; i < M; i++) at[i] = angle[i] * acos(-1) / 180 + (i == turned ? by : 0);
    for (int i = 0; i < M; i++) {
        b.label[i] = label[i];
        b.x[i * DIM] = (ki_real)cos(at[i]), b.x[i * DIM + 1] = (ki_real)sin(at[i]);
        for (int j = 0; j < M; j++) b.s[i][j] = cos(at[i] - at[j]);
    }
    return b;
}

static bool is_positive(const small *b, int i, int j) { return i != j && b->label[i] == b->label[j]; }
static bool is_negative(const small *b, int i, int j) { return b->label[i] != b->label[j]; }

static double distance2(const small *b, int i, int j) { return 2 - 2 * b->s[i][j]; }
static double distance(const small *b, int i, int j) { return sqrt(distance2(b, i, j)); }

static double lifted_by(const small *b, double margin) {
    double value = 0;
    for (int i = 0; i < M; i++) {
        double pos = 0, neg = 0;
        for (int j = 0; j < M; j++) {
            pos += is_positive(b, i, j) ? exp(-b->s[i][j]) : 0;
            neg += is_negative(b, i, j) ? exp(margin + b->s[i][j]) : 0;
        }
        if (pos > 0 && neg > 0) value += fmax(0, log(pos) + log(neg)) / M;
    }
    return value;
}

static double lifted(const small *b) { return lifted_by(b, 1); }
static double lifted_little(const small *b) {
    return lifted_by(b, 0.25);
} /* some rows are off, by less than 1 */

static double circle(const small *b) {
    const double m = 0.25, gamma = 4;
    double value = 0;
    for (int i = 0; i < M; i++) {
        double pos = 0, neg = 0;
        for (int j = 0; j < M; j++) {
            const double s = b->s[i][j];
            pos += is_positive(b, i, j) ? exp(-gamma * fmax(0, 1 + m - s) * (s - 1 + m)) : 0;
            neg += is_negative(b, i, j) ? exp(gamma * fmax(0, s + m) * (s - m)) : 0;
        }
        if (pos > 0 && neg > 0) value += log1p(pos * neg) / M;
    }
    return value;
}

static double triplet(const small *b) {
    double sum = 0;
    for (int i = 0; i < M; i++) {
        for (int p = 0; p < M; p++) {
            for (int n = 0; n < M; n++) {
                if (is_positive(b, i, p) && is_negative(b, i, n)) sum += fmax(0, b->s[i][n] - b->s[i][p] + 1);
            }
        }
    }
    return sum;
}

static double supcon(const small *b) {
    double value = 0;
    int n_anchors = 0;
    for (int i = 0; i < M; i++) {
        double all = 0, pos = 0;
        int n_pos = 0;
        for (int j = 0; j < M; j++) {
            all += j != i ? exp(b->s[i][j] / 0.5) : 0;
            if (is_positive(b, i, j)) pos += b->s[i][j] / 0.5, n_pos++;
        }
        if (n_pos) value += log(all) - pos / n_pos, n_anchors++;
    }
    return n_anchors ? value / n_anchors : 0;
}

/* Positives with d > 0.3, negatives with d < 2.5 (squared distances), the mean of each. */
static double contrastive(const small *b) {
    double pos = 0, neg = 0;
    int n_pos = 0, n_neg = 0;
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < M; j++) {
            const double d = distance2(b, i, j);
            if (is_positive(b, i, j)) pos += fmax(0, d - 0.3), n_pos++;
            if (is_negative(b, i, j)) neg += fmax(0, 2.5 - d), n_neg++;
        }
    }
    return (n_pos ? pos / n_pos : 0) + (n_neg ? neg / n_neg : 0);
}

/* The mean of the pairs that break their bound: positives beyond 0.6, negatives within 1. */
static double margin(const small *b) {
    double sum = 0;
    int n = 0;
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < M; j++) {
            const double past = distance(b, i, j) - 0.8,
                         term = is_positive(b, i, j) ? 0.2 + past : 0.2 - past;
            if ((is_positive(b, i, j) || is_negative(b, i, j)) && term > 0) sum += term, n++;
        }
    }
    return n ? sum / n : 0;
}

static double ranked_list(const small *b) {
    const double alpha = 1.3, gap = 0.5, temperature = 2, lambda = 0.25;
    double value = 0;
    for (int i = 0; i < M; i++) {
        double pos = 0, sum_w = 0, sum_wl = 0;
        int n_pos = 0;
        for (int j = 0; j < M; j++) {
            const double d = distance(b, i, j), w = exp(temperature * (alpha - d));
            if (is_positive(b, i, j) && d > alpha - gap) pos += d - alpha + gap, n_pos++;
            if (is_negative(b, i, j) && d < alpha) sum_w += w, sum_wl += w * (alpha - d);
        }
        value += (n_pos ? (1 - lambda) * pos / n_pos : 0) + (sum_w > 0 ? lambda * sum_wl / sum_w : 0);
    }
    return value / M;
}

static double angular(const small *b) {
    const double square = pow(tan(40 * acos(-1) / 180), 2);
    double sum = 0;
    int n_pairs = 0;
    for (int a = 0; a < M; a++) {
        for (int p = 0; p < M; p++) {
            if (!is_positive(b, a, p)) continue;
            double others = 0;
            for (int n = 0; n < M; n++) {
                if (is_negative(b, a, n))
                    others += exp(4 * square * (b->s[a][n] + b->s[p][n]) - 2 * (1 + square) * b->s[a][p]);
            }
            sum += log1p(others), n_pairs++;
        }
    }
    return n_pairs ? sum / n_pairs : 0;
}

static double raw_by(const small *b, double alpha, double beta) {
    double value = 0;
    for (int i = 0; i < M; i++) {
        double pos = 0, neg = 0;
        for (int j = 0; j < M; j++) {
            pos += is_positive(b, i, j) ? exp(-alpha * (b->s[i][j] - 0.5)) : 0;
            neg += is_negative(b, i, j) ? exp(beta * (b->s[i][j] - 0.5)) : 0;
        }
        value += (log1p(pos) / alpha + log1p(neg) / beta) / M;
    }
    return value;
}

static double raw(const small *b) { return raw_by(b, 2, 5); }
static double raw_flat(const small *b) { return raw_by(b, 0.25, 0.5); }

/* Intervals from 0 to 4; an item is shared by the two nodes beside it. */
enum { MOST_BINS = 256 };
static double fastap_by(const small *b, int bins) {
    double value = 0;
    int n_anchors = 0;
    for (int i = 0; i < M; i++) {
        double pos[MOST_BINS + 1] = {0}, all[MOST_BINS + 1] = {0}, sum_pos = 0, sum_all = 0, precision = 0;
        int n_pos = 0;
        for (int j = 0; j < M; j++) {
            for (int l = 0; l <= bins && j != i; l++) {
                const double share = fmax(0, 1 - fabs(distance2(b, i, j) / 4 * bins - l));
                all[l] += share, pos[l] += is_positive(b, i, j) ? share : 0;
            }
            n_pos += is_positive(b, i, j);
        }
        if (!n_pos) continue;
        for (int l = 0; l <= bins; l++) {
            sum_pos += pos[l], sum_all += all[l];
            if (sum_all > 0) precision += pos[l] * sum_pos / sum_all / n_pos;
        }
        value += 1 - precision, n_anchors++;
    }
    return n_anchors ? value / n_anchors : 0;
}

static double fastap(const small *b) { return fastap_by(b, 5); }
static double fastap_fine(const small *b) { return fastap_by(b, MOST_BINS); }

/* How many positives, or negatives, of a come before its positive p; the two of these losses begin with 1. */
static double before(const small *b, int a, int p, bool of_positives, double temperature) {
    double sum = of_positives ? 1 : 0;
    for (int j = 0; j < M; j++) {
        if (j != p && (of_positives ? is_positive(b, a, j) : is_negative(b, a, j)))
            sum += 1 / (1 + exp(-(b->s[a][j] - b->s[a][p]) / temperature));
    }
    return sum;
}

static double smooth_ap(const small *b) {
    double value = 0;
    int n_anchors = 0;
    for (int a = 0; a < M; a++) {
        double precision = 0;
        int n_pos = 0;
        for (int p = 0; p < M; p++) {
            if (!is_positive(b, a, p)) continue;
            const double pos = before(b, a, p, true, 0.5);
            precision += pos / (pos + before(b, a, p, false, 0.5)), n_pos++;
        }
        if (n_pos) value += 1 - precision / n_pos, n_anchors++;
    }
    return n_anchors ? value / n_anchors : 0;
}

static double recall_by(const small *b, int most_k, double temperature, double width) {
    double value = 0;
    int n_anchors = 0;
    for (int a = 0; a < M; a++) {
        double recall = 0;
        int n_pos = 0, n_levels = 0;
        for (int j = 0; j < M; j++) n_pos += is_positive(b, a, j);
        for (int k = 1; k <= most_k; k *= 2, n_levels++) {
            double found = 0;
            for (int p = 0; p < M; p++) {
                if (!is_positive(b, a, p)) continue;
                const double rank = before(b, a, p, true, temperature) + before(b, a, p, false, temperature);
                found += 1 / (1 + exp(-(k - rank) / (width * k)));
            }
            if (n_pos) recall += fmin(found, k) / fmin(k, n_pos);
        }
        if (n_pos) value += 1 - recall / n_levels, n_anchors++;
    }
    return n_anchors ? value / n_anchors : 0;
}

static double recall_at_k(const small *b) { return recall_by(b, 2, 0.5, 1); }
/* Three positives within the first one, nearly: the sum is bound by k, and so has no slope. */
static double recall_bound(const small *b) { return recall_by(b, 1, 2, 30); }

/* Positives are -s without a floor; those that count for the mean are below 0. Negatives above 0.4. */
static double contrastive_cosine(const small *b) {
    double pos = 0, neg = 0;
    int n_pos = 0, n_neg = 0;
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < M; j++) {
            const double s = b->s[i][j];
            if (is_positive(b, i, j)) pos -= s, n_pos += s < 0;
            if (is_negative(b, i, j) && s > 0.4) neg += s - 0.4, n_neg++;
        }
    }
    return (n_pos ? pos / n_pos : 0) + (n_neg ? neg / n_neg : 0);
}

/* by_angle: the slope of the value as each point moves along the circle. */
static double value_of(const char *recipe, const small *b, double *by_angle) {
    const ki_sizes sizes = {.embedding = DIM};
    made m = made_of(recipe, &sizes);
    const ki_batch batch = {
        .m = M, .label = b->label, .tap[KI_TAP_EMBEDDING] = {.data = b->x, .rows = M, .cols = DIM}};
    ki_result result;
    kith_error err = {0};
    assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
    const ki_real *g = result.diff[KI_TAP_EMBEDDING];
    for (int i = 0; i < M; i++)
        by_angle[i] =
            (double)g[i * DIM + 1] * (double)b->x[i * DIM] - (double)g[i * DIM] * (double)b->x[i * DIM + 1];
    const double value = result.total;
    made_free(&m);
    return value;
}

static void test_values(void **state) {
    (void)state;
    static const int32_t labels[][M] = {{0, 0, 1, 2}, {0, 0, 0, 1}, {0, 0, 1, 1},
                                        {0, 1, 0, 2}, {0, 0, 0, 0}, {0, 1, 2, 3}};
    static const struct {
        const char *recipe;
        double (*value)(const small *);
        bool has_no_slope; /* a factor is held constant, or a pair lies at a corner */
    } rows[] = {
        {"loss: {name: lifted, margin: 1}", lifted, false},
        {"loss: {name: lifted, margin: 0.25}", lifted_little, false},
        {"loss: {name: circle, margin: 0.25, gamma: 4}", circle, true},
        {"loss: {name: circle, margin: 0.25, gamma: 4, detach: false}", circle, false},
        {"loss: {name: triplet, margin: 1, distance: cosine, reduction: sum}", triplet, false},
        {"loss: {name: supcon, temperature: 0.5}", supcon, false},
        {"loss: {name: contrastive, pos_margin: 0.3, neg_margin: 2.5}", contrastive, false},
        {"loss: {name: margin, beta: 0.8, alpha: 0.2}", margin, false},
        {"loss: {name: ranked_list, alpha: 1.3, margin: 0.5, temperature: 2, lambda: 0.25}", ranked_list,
         false},
        {"loss: {name: angular, angle: 40}", angular, false},
        {"loss: {name: raw, alpha: 2, beta: 5}", raw, false},
        {"loss: {name: raw, alpha: 0.25, beta: 0.5}", raw_flat, false},
        {"loss: {name: fastap, bins: 5}", fastap, false},
        {"loss: {name: fastap, bins: 256}", fastap_fine, true}, /* points 90 degrees apart lie on a node */
        {"loss: {name: smooth_ap, temperature: 0.5}", smooth_ap, false},
        {"loss: {name: recall_at_k, k: 3, temperature: 0.5}", recall_at_k, false},
        {"loss: {name: recall_at_k, k: 1, temperature: 2, k_temperature: 30}", recall_bound, false},
        {"loss: {name: contrastive, distance: cosine, neg_margin: 0.4, reduction: nonzero}",
         contrastive_cosine, true},
    };
    const double step = 1e-5;
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        for (size_t k = 0; k < N_ROWS(labels); k++) {
            const small b = small_of(labels[k], 0, 0);
            double slope[M];
            const double found = value_of(rows[i].recipe, &b, slope), wanted = rows[i].value(&b);
            if (!(fabs(found - wanted) <= 1e-5 * fmax(1, wanted)))
                fail_msg("%s on labels %d %d %d %d: found %.7g, wanted %.7g", rows[i].recipe, labels[k][0],
                         labels[k][1], labels[k][2], labels[k][3], found, wanted);
            for (int turned = 0; turned < M && !rows[i].has_no_slope; turned++) {
                const small up = small_of(labels[k], turned, step), down = small_of(labels[k], turned, -step);
                const double by = (rows[i].value(&up) - rows[i].value(&down)) / (2 * step);
                if (!(fabs(slope[turned] - by) <= 1e-5 * fmax(1, fabs(by))))
                    fail_msg("%s on labels %d %d %d %d: slope of point %d %.7g, wanted %.7g", rows[i].recipe,
                             labels[k][0], labels[k][1], labels[k][2], labels[k][3], turned, slope[turned],
                             by);
            }
        }
    }
}

/* The weight of pair (0, 1), which are the same vector: similarity 1, the last node of the histogram. */
static void test_the_end_of_a_histogram_has_a_slope(void **state) {
    (void)state;
    static const ki_real x[M * DIM] = {1, 0, 1, 0, 0, 1, (ki_real)0.6, (ki_real)0.8};
    static const int32_t label[M] = {0, 0, 1, 1};
    const ki_sizes sizes = {.embedding = DIM};
    made m = made_of("loss: {name: histogram, bins: 3}", &sizes);
    const ki_batch batch = {
        .m = M, .label = label, .tap[KI_TAP_EMBEDDING] = {.data = x, .rows = M, .cols = DIM}};
    ki_real *weight = NULL, *similarity = NULL;
    int64_t n = 0;
    kith_error err = {0};
    assert_ok(ki_objective_weights(m.objective, &batch, &weight, &similarity, &n, &err), &err);
    assert_int_equal(n, M);
    assert_true(similarity[1] == 1);
    /* Nodes -1, 0, 1. Of 8 negatives four are at 0 and four at 0.6: node 0 holds (4 + 4 * 0.4) / 8 of them, and that is
     * what a positive of weight 1 / 4 passes on its way up. */
    const double wanted = 0.25 * 5.6 / 8;
    if (fabs((double)weight[1] - wanted) > 1e-6)
        fail_msg("found %.7g, wanted %.7g", (double)weight[1], wanted);
    ki_free(weight);
    ki_free(similarity);
    made_free(&m);
}

/* A positive and a negative, both opposite to the anchor, at the last node of FastAP's histogram with nothing before it:
 * the precision is 1 / 2, and a negative that came nearer, into the interval before, would not change it yet. */
static void test_the_end_of_fastap(void **state) {
    (void)state;
    static const ki_real x[] = {1, 0, -1, 0, -1, 0};
    static const int32_t label[] = {0, 0, 1};
    const ki_sizes sizes = {.embedding = DIM};
    made m = made_of("loss: {name: fastap, bins: 4}", &sizes);
    const ki_batch batch = {
        .m = 3, .label = label, .tap[KI_TAP_EMBEDDING] = {.data = x, .rows = 3, .cols = DIM}};
    ki_real *weight = NULL;
    int64_t n = 0;
    kith_error err = {0};
    assert_ok(ki_objective_weights(m.objective, &batch, &weight, NULL, &n, &err), &err);
    if (weight[2] != 0) fail_msg("the negative weighs %g, wanted 0", (double)weight[2]);
    ki_free(weight);
    made_free(&m);
}

/* The finest histogram, and a positive in its very last place: behind one negative for either anchor that has one. */
static void test_the_last_place_of_fastap(void **state) {
    (void)state;
    static const ki_real x[] = {1, 0, -1, 0, (ki_real)0.6, (ki_real)0.8};
    static const int32_t label[] = {0, 0, 1};
    const ki_sizes sizes = {.embedding = DIM};
    made m = made_of("loss: {name: fastap, bins: 256}", &sizes);
    const ki_batch batch = {
        .m = 3, .label = label, .tap[KI_TAP_EMBEDDING] = {.data = x, .rows = 3, .cols = DIM}};
    ki_result result;
    kith_error err = {0};
    assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
    if (!(fabs(result.total - 0.5) <= 1e-6)) fail_msg("found %.9g, wanted 0.5", result.total);
    made_free(&m);
}

/* Five nodes: between two, on one, at both ends and beyond them. */
static void test_places_in_a_histogram(void **state) {
    (void)state;
    static const struct {
        double at;
        int64_t node;
        double past;
        bool has_gradient;
    } rows[] = {{-2, 0, 0, false}, {-0.25, 0, 0, false},  {0, 0, 0, true}, {0.25, 0, 0.25, true},
                {1, 1, 0, true},   {2.75, 2, 0.75, true}, {3, 3, 0, true}, {3.5, 3, 0.5, true},
                {4, 3, 1, true},   {4.25, 3, 1, false},   {9, 3, 1, false}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        int64_t node = -1;
        double past = -1;
        const bool has_gradient = ki_bins_place(rows[i].at, 5, &node, &past);
        if (node != rows[i].node || past != rows[i].past || has_gradient != rows[i].has_gradient)
            fail_msg("%g lies %g past node %d, gradient %d; wanted %g past %d, %d", rows[i].at, past,
                     (int)node, has_gradient, rows[i].past, (int)rows[i].node, rows[i].has_gradient);
    }
}

/* Proxies begin within 0.1 of 0 on both sides. */
static void test_proxies_begin_about_zero(void **state) {
    (void)state;
    const ki_sizes sizes = {.n_classes = 100, .embedding = 16};
    made m = made_of("loss: {name: proxy_nca}", &sizes);
    const ki_state *proxies = ki_objective_param(m.objective, 0);
    assert_int_equal(proxies->count, 1600);
    double sum = 0, least = 1, most = -1;
    for (int64_t i = 0; i < proxies->count; i++) {
        const double v = (double)proxies->value[i];
        sum += v, least = fmin(least, v), most = fmax(most, v);
    }
    made_free(&m);
    if (!(least > -0.1 && least < -0.099 && most < 0.1 && most > 0.099 && fabs(sum / 1600) < 0.005))
        fail_msg("from %g to %g, mean %g; wanted -0.1 to 0.1 about 0", least, most, sum / 1600);
}

/* Two points far from the origin and near each other: the difference of large inner products would be all rounding. */
static void test_near_points_far_away(void **state) {
    (void)state;
    static const int32_t label[] = {0, 0, 1};
    static const ki_real x[] = {1000, 0, 1000, (ki_real)0.125, 0, 1000};
    const ki_sizes sizes = {.embedding = DIM};
    made m = made_of(
        "loss: {name: contrastive, normalize: false, distance: sqeuclidean, reduction: sum, pos_margin: 0, "
        "neg_margin: 1}",
        &sizes);
    const ki_batch batch = {
        .m = 3, .label = label, .tap[KI_TAP_EMBEDDING] = {.data = x, .rows = 3, .cols = DIM}};
    ki_result result;
    kith_error err = {0};
    assert_ok(ki_objective_evaluate(m.objective, &batch, &result, &err), &err);
    const double wanted = 0.125 * 0.125; /* sum: each unordered pair once */
    if (!(fabs(result.total - wanted) <= 1e-6 * wanted))
        fail_msg("found %.9g, wanted %.9g", result.total, wanted);
    made_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_near_points_far_away),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_the_end_of_a_histogram_has_a_slope),
        cmocka_unit_test(test_the_end_of_fastap),
        cmocka_unit_test(test_the_last_place_of_fastap),
        cmocka_unit_test(test_places_in_a_histogram),
        cmocka_unit_test(test_proxies_begin_about_zero),
    };
    return cmocka_run_group_tests_name("objective/loss_small", tests, NULL, NULL);
}
