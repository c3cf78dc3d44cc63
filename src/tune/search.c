/* Which way is best on the features: successive halving over held-out classes, and a last round that decides.
 *
 * Many ways tried on few classes find one that is lucky. So the first rounds only choose who goes on, and the last one measures the few that are
 * left anew, on another partition. There the simplest of those within one standard error of the best is taken, and it has to be better than the
 * pretrained model by more than chance: with 95 % certainty its gain in the mean of R@1 and MAP@R is above 0, and R@1 is not lower. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "tune/tune.h"

static const int64_t first_marks[] = {25, 75}, second_marks[] = {25, 75, 150, 400, 1000};
enum { ALL_FOLDS = (1 << KI_TUNE_MOST_FOLDS) - 1, N_SECOND = 4, N_LAST = 3 };

int ki_tune_sum(const ki_tune *t, const ki_tune_way *way, const ki_tune_folds *folds, int64_t steps,
                unsigned mask, const ki_tune_part *part, ki_tune_scores *to) {
    int n = 0;
    for (int f = 0; f < folds->n; f++) {
        char name[256];
        const ki_tune_trial trial = {
            .way = way, .folds = folds, .fold = f, .part = part ? *part : (ki_tune_part){.share = 1}};
        if (!(mask & (1u << f))) continue;
        n += ki_tune_find(t, ki_tune_trial_name(&trial, name, sizeof name), steps, to);
    }
    return n;
}

/* The mean gain of a way after so many steps over the pretrained model, over the folds that were tried (*ret_n of them); NaN: none was, or it has
 * lost. */
static kith_status score(const ki_tune *t, const ki_tune_way *way, const ki_tune_folds *folds, int64_t steps,
                         double *ret, int *ret_n, kith_error *err) {
    kith_status status;
    ki_tune_scores before = {0}, after = {0};
    *ret_n = 0;
    KI_CHECK(ki_tune_scores_init(t, &before, err));
    KI_CHECK(ki_tune_scores_init(t, &after, err));
    for (int f = 0; f < folds->n; f++) {
        if (ki_tune_sum(t, way, folds, steps, 1u << f, NULL, &after) == 0) continue;
        ki_tune_sum(t, &t->way[0], folds, 0, 1u << f, NULL, &before);
        ++*ret_n;
    }
    const ki_tune_difference d = ki_tune_compare(&before, &after);
    *ret = d.n >= 2 ? d.mean : NAN;
done:
    ki_tune_scores_release(&before);
    ki_tune_scores_release(&after);
    return status;
}

/* The mark that is best so far, with its score. One that there was no time for on all folds is not compared. */
static kith_status best_mark(const ki_tune *t, ki_tune_way *way, const int64_t *mark, int n_marks,
                             double *ret, kith_error *err) {
    int n_most = 0;
    *ret = NAN;
    for (int m = 0; m < n_marks; m++) {
        double s = NAN;
        int n = 0;
        KI_TRY(score(t, way, &t->folds[0], way->objective ? mark[m] : 0, &s, &n, err));
        if (n > n_most) n_most = n;
        if (isnan(s) || n < n_most || (!isnan(*ret) && s <= *ret)) continue;
        *ret = s;
        way->steps = way->objective ? mark[m] : 0;
    }
    return KITH_OK;
}

static kith_status try_folds(ki_tune *t, const ki_tune_way *way, const ki_tune_folds *folds, int n_folds,
                             const int64_t *mark, int n_marks, double until, kith_error *err) {
    static const int64_t none[] = {0};
    for (int f = 0; f < folds->n && f < n_folds; f++) {
        const ki_tune_trial trial = {.way = way,
                                     .folds = folds,
                                     .fold = f,
                                     .part = {.share = 1},
                                     .mark = way->objective ? mark : none,
                                     .n_marks = way->objective ? n_marks : 1,
                                     .until = until};
        KI_TRY(ki_tune_try(t, &trial, NULL, err));
    }
    return KITH_OK;
}

/* ---- rounds ---- */

/* Numbers of ways, the best of a round first. */
typedef struct field {
    int way[KI_TUNE_MOST_WAYS], n;
    double score[KI_TUNE_MOST_WAYS];
} field;

static void enter(field *f, int way, double score) {
    int at = f->n++;
    for (; at > 0 && f->score[at - 1] < score; at--) {
        f->way[at] = f->way[at - 1];
        f->score[at] = f->score[at - 1];
    }
    f->way[at] = way;
    f->score[at] = score;
}

/* Of several rounds: time that was spent does not come back, so what is known is entered in any case. */
static kith_status play(ki_tune *t, const int *ways, int n, int n_always, int n_folds, const int64_t *mark,
                        int n_marks, double until, field *ret, kith_error *err) {
    *ret = (field){0};
    for (int i = 0; i < n; i++) {
        ki_tune_way *way = &t->way[ways[i]];
        double s = NAN;
        if (i < n_always || ki_tune_seconds(t) < until)
            KI_TRY(try_folds(t, way, &t->folds[0], n_folds, mark, n_marks, until, err));
        KI_TRY(best_mark(t, way, mark, n_marks, &s, err));
        if (!isnan(s)) enter(ret, ways[i], s);
    }
    return KITH_OK;
}

static void tell(ki_tune *t, const char *round, const field *f) {
    char text[200];
    if (f->n == 0) return;
    ki_tune_say(t, "%s: %d ways, the best so far is %s", round, f->n,
                ki_tune_describe(&t->way[f->way[0]], text, sizeof text));
}

/* The last length is tried only with ways that were best at the one before. */
enum { N_MARKS = sizeof second_marks / sizeof second_marks[0] };

static int n_second_marks(const ki_tune *t) { return t->seconds_allowed < 45 ? N_MARKS - 2 : N_MARKS - 1; }

static kith_status try_longer(ki_tune *t, field *f, double until, kith_error *err) {
    int n = 0;
    const int64_t last = second_marks[n_second_marks(t) - 1];
    const field before = *f;
    f->n = 0;
    for (int i = 0; i < before.n; i++) {
        ki_tune_way *way = &t->way[before.way[i]];
        double s = before.score[i];
        if (way->steps == last && n < N_LAST && ki_tune_seconds(t) < until) {
            KI_TRY(try_folds(t, way, &t->folds[0], KI_TUNE_MOST_FOLDS, second_marks, N_MARKS, until, err));
            KI_TRY(best_mark(t, way, second_marks, N_MARKS, &s, err));
            n++;
        }
        enter(f, before.way[i], s);
    }
    return KITH_OK;
}

/* The k-th way of each start, then the next ones: a search that is cut short has seen something of all kinds. */
static int order_ways(const ki_tune *t, int *ret) {
    int n = 0;
    for (int k = 0, n_before = -1; n != n_before; k++) {
        n_before = n;
        for (int start = KI_TUNE_OWN; start <= KI_TUNE_WHITE; start++) {
            int seen = 0;
            for (int i = 1; i < t->n_ways; i++) {
                if (t->way[i].is_fine || (int)t->way[i].start != start || seen++ != k) continue;
                ret[n++] = i;
                break;
            }
        }
    }
    return n;
}

static kith_status halve(ki_tune *t, field *ret, kith_error *err) {
    int all[KI_TUNE_MOST_WAYS];
    const int n = order_ways(t, all);
    field first;
    const double began = ki_tune_seconds(t), left = ki_tune_left(t);
    KI_TRY(play(t, all, n, 4, 2, first_marks, 2, began + 0.3 * left, &first, err));
    tell(t, "first round", &first);
    const int n_on = first.n < N_SECOND ? first.n : N_SECOND;
    KI_TRY(play(t, first.way, n_on, 1, KI_TUNE_MOST_FOLDS, second_marks, n_second_marks(t),
                began + 0.5 * left, ret, err));
    KI_TRY(try_longer(t, ret, began + 0.5 * left, err));
    tell(t, "second round", ret);
    return KITH_OK;
}

/* ---- the decision ---- */

/* Of the ways of the last round the best, then the simplest within one standard error of it. Those that find the same kind first less often than the
 * pretrained model come behind those that do not. */
static kith_status choose(ki_tune *t, const int *ways, int n, int *ret, kith_error *err) {
    kith_status status = KITH_OK;
    ki_tune_scores before = {0}, s[N_LAST] = {{0}};
    bool holds[N_LAST] = {false};
    int best = 0;
    KI_CHECK(ki_tune_scores_init(t, &before, err));
    ki_tune_sum(t, &t->way[0], &t->folds[1], 0, ALL_FOLDS, NULL, &before);
    for (int i = 0; i < n; i++) {
        KI_CHECK(ki_tune_scores_init(t, &s[i], err));
        ki_tune_sum(t, &t->way[ways[i]], &t->folds[1], t->way[ways[i]].steps, ALL_FOLDS, NULL, &s[i]);
        holds[i] = ki_tune_compare(&before, &s[i]).recall >= 0;
        if (holds[i] != holds[best] ? holds[i] : ki_tune_mean(&s[i]) > ki_tune_mean(&s[best])) best = i;
    }
    *ret = best;
    for (int i = 0; i < n; i++) {
        const ki_tune_difference d = ki_tune_compare(&s[i], &s[best]);
        if (holds[i] == holds[best] && d.n >= 2 && d.mean <= d.error &&
            t->way[ways[i]].complexity < t->way[ways[*ret]].complexity)
            *ret = i;
    }
done:
    ki_tune_scores_release(&before);
    for (int i = 0; i < n; i++) ki_tune_scores_release(&s[i]);
    return status;
}

static void say_why(ki_tune *t, const ki_tune_way *way, const ki_tune_difference *d, bool is_better) {
    char text[200];
    ki_tune_describe(way, text, sizeof text);
    if (is_better)
        ki_snprintf(t->why, sizeof t->why,
                    "%s gained %.1f points of R@1 and %.1f of MAP@R on held-out classes over the pretrained "
                    "model; over %d classes the "
                    "mean of both gained %.1f +- %.1f",
                    text, 100 * d->recall, 100 * d->precision, d->n, 100 * d->mean, 100 * d->t * d->error);
    else
        ki_snprintf(t->why, sizeof t->why,
                    "nothing was better than the pretrained model by more than chance: %s, the best, changed "
                    "R@1 by %+.1f and MAP@R by "
                    "%+.1f points on held-out classes (the mean of both by %+.1f +- %.1f over %d classes)",
                    text, 100 * d->recall, 100 * d->precision, 100 * d->mean, 100 * d->t * d->error, d->n);
}

/* Whoever searches sees the first hit, so R@1 must not be the price of a better order. */
static bool is_more_than_chance(const ki_tune_difference *d) {
    return d->n >= 2 && d->mean > d->t * d->error && d->mean > 0 && d->recall >= 0;
}

/* Is the way better than the pretrained model, on the second partition? */
static kith_status judge(ki_tune *t, int number, unsigned mask, bool *ret, ki_tune_difference *ret_by,
                         kith_error *err) {
    kith_status status;
    ki_tune_scores before = {0}, after = {0};
    KI_CHECK(ki_tune_scores_init(t, &before, err));
    KI_CHECK(ki_tune_scores_init(t, &after, err));
    ki_tune_sum(t, &t->way[0], &t->folds[1], 0, mask, NULL, &before);
    ki_tune_sum(t, &t->way[number], &t->folds[1], t->way[number].steps, mask, NULL, &after);
    *ret_by = ki_tune_compare(&before, &after);
    *ret = is_more_than_chance(ret_by);
done:
    ki_tune_scores_release(&before);
    ki_tune_scores_release(&after);
    return status;
}

static kith_status decide(ki_tune *t, const field *left, kith_error *err) {
    int ways[N_LAST], n = 0, best = 0;
    bool is_better = false;
    ki_tune_difference by = {0};
    KI_TRY(try_folds(t, &t->way[0], &t->folds[1], KI_TUNE_MOST_FOLDS, NULL, 0, 0, err));
    for (int i = 0; i < left->n && n < N_LAST; i++) ways[n++] = left->way[i];
    for (int i = 0; i < n; i++)
        KI_TRY(try_folds(t, &t->way[ways[i]], &t->folds[1], KI_TUNE_MOST_FOLDS, &t->way[ways[i]].steps, 1, 0,
                         err));
    if (n == 0) return KITH_OK;
    KI_TRY(choose(t, ways, n, &best, err));
    KI_TRY(judge(t, ways[best], ALL_FOLDS, &is_better, &by, err));
    say_why(t, &t->way[ways[best]], &by, is_better);
    t->best = ways[best];
    t->winner = is_better ? ways[best] : 0;
    ki_tune_say(t, "%s", t->why);
    return KITH_OK;
}

/* ---- what an earlier call with as many minutes came to ---- */

static const char *const kept_keys[] = {"best", "steps of the best", "winner", "steps of the winner"};

static const char *key_of(const ki_tune *t, const char *what, char *buf, size_t bytes) {
    ki_snprintf(buf, bytes, "%s, %.6g minutes", what, t->seconds_allowed / 60);
    return buf;
}

kith_status ki_tune_end(ki_tune *t, kith_error *err) {
    const double values[] = {t->best, (double)t->way[t->best].steps, t->winner,
                             (double)t->way[t->winner].steps};
    char key[96];
    double ignored = 0;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        KI_TRY(ki_tune_decide(t, key_of(t, kept_keys[i], key, sizeof key), values[i], &ignored, err));
    return KITH_OK;
}

bool ki_tune_has_ended(const ki_tune *t) {
    char key[96];
    return ki_tune_has_decided(t, key_of(t, kept_keys[3], key, sizeof key));
}

static kith_status recall_end(ki_tune *t, kith_error *err) {
    double value[4] = {0}, gain = 0, steps = 0;
    char key[96];
    bool is_better = false;
    ki_tune_difference by = {0};
    for (int i = 1; i < t->n_ways; i++) KI_TRY(best_mark(t, &t->way[i], second_marks, N_MARKS, &gain, err));
    if (ki_tune_has_decided(t, "steps to train all"))
        KI_TRY(ki_tune_decide(t, "steps to train all", 0, &steps, err));
    for (int i = 1; i < t->n_ways; i++) {
        if (t->way[i].is_fine) t->way[i].steps = (int64_t)steps;
    }
    for (int i = 0; i < 4; i++)
        KI_TRY(ki_tune_decide(t, key_of(t, kept_keys[i], key, sizeof key), 0, &value[i], err));
    for (int i = 0; i < 4; i += 2) {
        if (!(value[i] >= 0) || value[i] >= t->n_ways)
            return ki_fail(err, KITH_EFORMAT, "%s/tried.jsonl names way %g; there are %d", t->folder,
                           value[i], t->n_ways);
    }
    t->best = (int)value[0];
    t->way[t->best].steps = (int64_t)value[1];
    t->winner = (int)value[2];
    t->way[t->winner].steps = (int64_t)value[3];
    const int shown = t->winner ? t->winner : t->best;
    KI_TRY(judge(t, shown, ALL_FOLDS, &is_better, &by, err));
    if (shown) say_why(t, &t->way[shown], &by, t->winner != 0);
    return KITH_OK;
}

kith_status ki_tune_search(ki_tune *t, kith_error *err) {
    if (t->is_over) {
        KI_TRY(recall_end(t, err));
        return ki_tune_curve(t, err);
    }
    field left;
    KI_TRY(try_folds(t, &t->way[0], &t->folds[0], KI_TUNE_MOST_FOLDS, NULL, 0, 0, err));
    KI_TRY(halve(t, &left, err));
    KI_TRY(decide(t, &left, err));
    return ki_tune_curve(t, err);
}

bool ki_tune_is_better(ki_tune *t, int number, unsigned mask, ki_tune_difference *ret_by) {
    bool is_better = false;
    kith_error ignored;
    if (judge(t, number, mask, &is_better, ret_by, &ignored) != KITH_OK) return false;
    if (is_better) say_why(t, &t->way[number], ret_by, true);
    return is_better;
}
