/* Classes drawn for a step (`sample`): what is drawn, that a step is the loss over the drawn classes alone, its gradients by
 * differences, and the same over ranks. For tests in float and in double; included by one test program each. */
#ifndef KITH_TEST_OBJECTIVE_SAMPLE_H
#define KITH_TEST_OBJECTIVE_SAMPLE_H

#include "base/parallel.h"
#include "base/rng.h"
#include "objective/cases.h"
#include "support/thread_ranks.h"

enum { SAMPLE_CLASSES = 40, SAMPLE_M = 9, SAMPLE_DIM = 5, SAMPLE_SIZES = 4 };

static const char *const sample_losses[] = {"amsoftmax", "arcface",      "normsoftmax",
                                            "proxy_nca", "proxy_anchor", "softtriple"};

typedef struct sample_case {
    const char *loss;
    double share;
    uint64_t step;
    ki_real x[SAMPLE_M * SAMPLE_DIM];
    int32_t label[SAMPLE_M];
} sample_case;

/* What a step gave, all ranks' proxies together. */
typedef struct sample_found {
    kith_status status;
    kith_error err;
    double value;
    int64_t n_pos, n_neg;
    ki_real diff[SAMPLE_M * SAMPLE_DIM];
    ki_real *proxies; /* the gradient, [classes * centers, dim] */
} sample_found;

static inline sample_case sample_new(const char *loss, double share, uint64_t step) {
    sample_case c = {.loss = loss, .share = share, .step = step};
    ki_rng rng = ki_rng_at(5, KI_RNG_TEST, 0, 0);
    for (int i = 0; i < SAMPLE_M * SAMPLE_DIM; i++) c.x[i] = (ki_real)ki_rng_normal(&rng);
    static const int32_t label[SAMPLE_M] = {3, 3, 39, 0, 17, 17, 17, 22, 0};
    memcpy(c.label, label, sizeof label);
    return c;
}

static inline made sample_made(const sample_case *c, double share, int64_t n_classes, int part, int n_parts) {
    char recipe[128];
    const ki_sizes sizes = {
        .n_classes = n_classes, .embedding = SAMPLE_DIM, .part = part, .n_parts = n_parts};
    snprintf(recipe, sizeof recipe, "loss: {name: %s, sample: %g%s}", c->loss, share,
             strcmp(c->loss, "softtriple") == 0 ? ", centers: 2" : "");
    return made_of(recipe, &sizes);
}

static inline ki_batch sample_batch(const sample_case *c, int64_t first, int64_t n) {
    return (ki_batch){
        .m = n,
        .label = c->label + first,
        .tap[KI_TAP_EMBEDDING] = {.data = c->x + first * SAMPLE_DIM, .rows = n, .cols = SAMPLE_DIM},
        .step = c->step};
}

static inline void sample_evaluate(ki_objective *objective, const ki_batch *batch, int64_t first,
                                   sample_found *ret) {
    ki_result result;
    ret->status = ki_objective_evaluate(objective, batch, &result, &ret->err);
    if (ret->status != KITH_OK) return;
    ret->value = result.total;
    ret->n_pos = result.n_pos;
    ret->n_neg = result.n_neg;
    memcpy(ret->diff + first * SAMPLE_DIM, result.diff[KI_TAP_EMBEDDING],
           (size_t)(batch->m * SAMPLE_DIM) * sizeof *ret->diff);
    const ki_state *p = ki_objective_param(objective, 0);
    memcpy(ret->proxies + p->first * SAMPLE_DIM, p->diff, (size_t)p->count * sizeof *p->diff);
}

static inline sample_found sample_one(const sample_case *c) {
    sample_found found = {.proxies = calloc((size_t)2 * SAMPLE_CLASSES * SAMPLE_DIM, sizeof(ki_real))};
    made m = sample_made(c, c->share, SAMPLE_CLASSES, 0, 0);
    const ki_batch batch = sample_batch(c, 0, SAMPLE_M);
    sample_evaluate(m.objective, &batch, 0, &found);
    assert_ok(found.status, &found.err);
    made_free(&m);
    return found;
}

/* The classes whose proxies have a gradient. */
static inline int sample_drawn(const sample_found *f, int64_t n_centers, int32_t *ret) {
    int n = 0;
    for (int32_t k = 0; k < SAMPLE_CLASSES; k++) {
        bool has = false;
        for (int64_t i = 0; i < n_centers * SAMPLE_DIM; i++)
            has |= f->proxies[k * n_centers * SAMPLE_DIM + i] != 0;
        if (has) ret[n++] = k;
    }
    return n;
}

static inline int64_t sample_centers(const char *loss) { return strcmp(loss, "softtriple") == 0 ? 2 : 1; }

/* ---- the tests ---- */

static void test_as_many_as_the_share_says(void **state) {
    (void)state;
    static const struct {
        double share;
        int n;
    } rows[] = {{0.01, 5}, {0.25, 10}, {0.26, 11}, {0.99, 40}, {1, 40}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const sample_case c = sample_new("amsoftmax", rows[i].share, 3);
        sample_found f = sample_one(&c);
        int32_t drawn[SAMPLE_CLASSES];
        assert_int_equal(sample_drawn(&f, 1, drawn), rows[i].n);
        assert_int_equal(f.n_pos, SAMPLE_M);
        assert_int_equal(f.n_neg, SAMPLE_M * (rows[i].n - 1));
        free(f.proxies);
    }
}

/* Over many steps every class that is not in the batch is drawn about equally often: 10 of 40 classes, 5 of them the batch's,
 * so 5 of 35 in a step; in 700 steps 100 times, with a standard deviation of 9.3. */
static void test_every_class_has_its_turn(void **state) {
    (void)state;
    int times[SAMPLE_CLASSES] = {0};
    for (uint64_t step = 0; step < 700; step++) {
        const sample_case c = sample_new("amsoftmax", 0.25, step);
        sample_found f = sample_one(&c);
        int32_t drawn[SAMPLE_CLASSES];
        const int n = sample_drawn(&f, 1, drawn);
        for (int i = 0; i < n; i++) times[drawn[i]]++;
        free(f.proxies);
    }
    for (int k = 0; k < SAMPLE_CLASSES; k++) {
        const bool is_present = k == 0 || k == 3 || k == 17 || k == 22 || k == 39;
        if (is_present ? times[k] != 700 : times[k] < 60 || times[k] > 140)
            fail_msg("class %d was drawn %d times in 700 steps", k, times[k]);
    }
}

/* A step is the loss with the drawn classes as its only classes: the same bits. */
static void test_a_step_is_the_loss_over_the_drawn(void **state) {
    (void)state;
    for (size_t l = 0; l < N_ROWS(sample_losses); l++) {
        const sample_case c = sample_new(sample_losses[l], 0.3, 11);
        const int64_t centers = sample_centers(c.loss), each = centers * SAMPLE_DIM;
        sample_found f = sample_one(&c),
                     w = {.proxies = calloc((size_t)(SAMPLE_CLASSES * each), sizeof(ki_real))};
        int32_t drawn[SAMPLE_CLASSES], label[SAMPLE_M];
        const int n = sample_drawn(&f, centers, drawn);
        assert_int_equal(n, 12);
        made all = sample_made(&c, 1, SAMPLE_CLASSES, 0, 0), few = sample_made(&c, 1, n, 0, 0);
        for (int k = 0; k < n; k++) {
            memcpy(ki_objective_param(few.objective, 0)->value + k * each,
                   ki_objective_param(all.objective, 0)->value + drawn[k] * each,
                   (size_t)each * sizeof(ki_real));
            for (int i = 0; i < SAMPLE_M; i++)
                if (c.label[i] == drawn[k]) label[i] = k;
        }
        ki_batch batch = sample_batch(&c, 0, SAMPLE_M);
        batch.label = label;
        sample_evaluate(few.objective, &batch, 0, &w);
        assert_ok(w.status, &w.err);
        if (f.value != w.value) fail_msg("%s: %.17g; over the drawn alone %.17g", c.loss, f.value, w.value);
        assert_memory_equal(f.diff, w.diff, sizeof f.diff);
        for (int k = 0; k < n; k++)
            assert_memory_equal(f.proxies + drawn[k] * each, w.proxies + k * each,
                                (size_t)each * sizeof(ki_real));
        made_free(&all);
        made_free(&few);
        free(f.proxies);
        free(w.proxies);
    }
}

/* ---- over ranks ---- */

typedef struct sample_ranks {
    const sample_case *c;
    bool shares;
    sample_found found; /* each rank writes its rows */
    double value[THREAD_RANKS_MOST];
    kith_status status[THREAD_RANKS_MOST];
    made made[THREAD_RANKS_MOST];
} sample_ranks;

static inline void sample_rank(ki_comm *comm, void *user) {
    sample_ranks *s = user;
    sample_found mine = s->found;
    int64_t first = 0, n = 0;
    ki_threads_set(1);
    ki_comm_own(comm, SAMPLE_M, &first, &n);
    ki_batch batch = sample_batch(s->c, first, n);
    batch.comm = comm;
    sample_evaluate(s->made[comm->rank].objective, &batch, first, &mine);
    s->value[comm->rank] = mine.value;
    s->status[comm->rank] = mine.status;
    memcpy(s->found.diff + first * SAMPLE_DIM, mine.diff + first * SAMPLE_DIM,
           (size_t)(n * SAMPLE_DIM) * sizeof(ki_real));
    if (comm->rank == 0) s->found.n_neg = mine.n_neg, s->found.n_pos = mine.n_pos;
}

static inline void sample_near(const char *what, const sample_case *c, int size, const ki_real *found,
                               const ki_real *wanted, int64_t n, double tolerance) {
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)wanted[i]));
    for (int64_t i = 0; i < n; i++) {
        if (!(fabs((double)found[i] - (double)wanted[i]) <= tolerance * most))
            fail_msg("%s, sample %g, %d ranks: %s[%lld] is %.17g; one process has %.17g (largest %g)",
                     c->loss, c->share, size, what, (long long)i, (double)found[i], (double)wanted[i], most);
    }
}

/* 0.01: the five classes of the batch alone, so that some ranks have no column. */
static inline void sample_over_ranks(double tolerance) {
    static const double shares[] = {0.01, 0.3, 1};
    for (size_t l = 0; l < N_ROWS(sample_losses); l++) {
        for (size_t k = 0; k < N_ROWS(shares); k++) {
            const sample_case c = sample_new(sample_losses[l], shares[k], 4);
            const int64_t n = SAMPLE_CLASSES * sample_centers(c.loss) * SAMPLE_DIM;
            sample_found one = sample_one(&c);
            for (int size = 2; size <= 7; size++) {
                sample_ranks s = {.c = &c, .found.proxies = calloc((size_t)n, sizeof(ki_real))};
                for (int r = 0; r < size; r++) s.made[r] = sample_made(&c, c.share, SAMPLE_CLASSES, r, size);
                thread_ranks_run(size, sample_rank, &s);
                for (int r = 0; r < size; r++) {
                    assert_int_equal(s.status[r], KITH_OK);
                    assert_true(s.value[r] == s.value[0]);
                    made_free(&s.made[r]);
                }
                if (!(fabs(s.value[0] - one.value) <= tolerance * fmax(fabs(one.value), 1)))
                    fail_msg("%s, %d ranks: %.17g; one process has %.17g", c.loss, size, s.value[0],
                             one.value);
                assert_int_equal(s.found.n_pos, one.n_pos);
                assert_int_equal(s.found.n_neg, one.n_neg);
                sample_near("x", &c, size, s.found.diff, one.diff, SAMPLE_M * SAMPLE_DIM, tolerance);
                sample_near("proxies", &c, size, s.found.proxies, one.proxies, n, tolerance);
                free(s.found.proxies);
            }
            free(one.proxies);
        }
    }
}

#endif
