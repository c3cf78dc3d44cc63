/* Judging over ranks: each ranks its part of the queries, and all have the bits of one process. */
#include <string.h>

#include "base/parallel.h"
#include "base/rng.h"
#include "judge/judge.h"
#include "judge/ranks.h"
#include "kith/data.h"
#include "support/thread_ranks.h"

enum { DIM = 6, MOST = 1800 };

static const int64_t k_wanted[] = {1, 2, 8};

typedef struct case_of {
    int64_t n;
    bool has_roles;
    float x[MOST * DIM];
    int64_t label[MOST];
    uint8_t role[MOST];
} case_of;

typedef struct found {
    kith_status status;
    kith_error err;
    ki_scores scores;
    kith_intervals intervals;
} found;

typedef struct job {
    const case_of *c;
    found found[THREAD_RANKS_MOST];
} job;

/* Few distinct numbers, so that many scores are tied; class 0 is of one item. */
static void fill(case_of *c, int64_t n, bool has_roles) {
    ki_rng rng = ki_rng_at(3, KI_RNG_TEST, (uint32_t)n, 0);
    *c = (case_of){.n = n, .has_roles = has_roles};
    for (int64_t i = 0; i < n * DIM; i++) c->x[i] = (float)ki_rng_below(&rng, 3) - 1;
    for (int64_t i = 0; i < n; i++) {
        c->label[i] = i ? 1 + (int64_t)ki_rng_below(&rng, 40) : 0;
        c->role[i] = (uint8_t)(i % 3 == 0   ? KITH_ROLE_QUERY
                               : i % 3 == 1 ? KITH_ROLE_GALLERY
                                            : KITH_ROLE_BOTH);
    }
}

static void judge(ki_comm *comm, void *user) {
    job *j = user;
    case_of copy = *j->c;
    found *f = &j->found[comm->rank];
    ki_threads_set(1);
    ki_vectors v = {.n = copy.n, .dim = DIM, .host = copy.x, .label = copy.label};
    if (copy.has_roles) v.role = copy.role;
    f->status = ki_judge_scores(&v, k_wanted, N_ROWS(k_wanted), comm, &f->scores, &f->intervals, &f->err);
    f->scores.seconds = 0;
}

static void test_the_bits_of_one_process(void **state) {
    (void)state;
    static const int64_t sizes[] = {50, 384, 385, MOST};
    static case_of c;
    for (size_t i = 0; i < 2 * N_ROWS(sizes); i++) {
        fill(&c, sizes[i / 2], i % 2);
        static job one, many;
        memset(&one, 0, sizeof one);
        one.c = &c;
        thread_ranks_run(1, judge, &one);
        assert_ok(one.found[0].status, &one.found[0].err);
        for (int size = 2; size <= 5; size++) {
            memset(&many, 0, sizeof many);
            many.c = &c;
            thread_ranks_run(size, judge, &many);
            for (int r = 0; r < size; r++) {
                const found *f = &many.found[r];
                assert_ok(f->status, &f->err);
                assert_true(f->scores.recall[0] > 0 && f->scores.recall[0] < 1);
                if (memcmp(&f->scores, &one.found[0].scores, sizeof f->scores) != 0)
                    fail_msg("%lld rows, rank %d of %d: MAP@R %.17g; one process has %.17g", (long long)c.n,
                             r, size, f->scores.map_at_r, one.found[0].scores.map_at_r);
                assert_memory_equal(&f->intervals, &one.found[0].intervals, sizeof f->intervals);
            }
        }
    }
}

/* A failure that only the whole shows: all say so, and none waits. */
static void test_a_rank_that_fails(void **state) {
    (void)state;
    static case_of c;
    static job many;
    fill(&c, 400, false);
    for (int64_t i = 0; i < c.n; i++) c.label[i] = i; /* nobody has a companion */
    many.c = &c;
    thread_ranks_run(3, judge, &many);
    for (int r = 0; r < 3; r++) assert_int_equal(many.found[r].status, KITH_EINVAL);
}

/* ---- who ranks what ---- */

typedef struct asked {
    const ki_panels *panels;
    const int32_t *class_of;
    int64_t n;
    int8_t by[MOST]; /* 1 + the rank that ranked a query */
    int64_t twice;
} asked;

typedef struct asking {
    asked *asked;
    int rank;
} asking;

static void note(void *context, int64_t query, const int64_t *rank, int64_t n, bool is_tied) {
    const asking *a = context;
    (void)rank, (void)n, (void)is_tied;
    a->asked->twice += a->asked->by[query] != 0;
    a->asked->by[query] = (int8_t)(1 + a->rank);
}

static void ask(ki_comm *comm, void *user) {
    asked *a = user;
    asking mine = {a, comm->rank};
    kith_error err;
    ki_threads_set(1);
    const ki_ranks_input in = {.query = a->panels,
                               .gallery = a->panels,
                               .query_class = a->class_of,
                               .gallery_class = a->class_of,
                               .n_classes = 41,
                               .comm = comm};
    if (ki_ranks_run(&in, note, &mine, &err) != KITH_OK) a->twice = -1;
}

static void test_each_ranks_its_own(void **state) {
    (void)state;
    static case_of c;
    static int32_t class_of[MOST];
    kith_error err;
    ki_rows rows;
    ki_panels panels;
    fill(&c, MOST, false);
    for (int64_t i = 0; i < c.n; i++) class_of[i] = (int32_t)c.label[i];
    const kith_array x = {KITH_F32, 2, {c.n, DIM}, c.x};
    assert_ok(ki_rows_init(&x, "x", &rows, &err), &err);
    assert_ok(ki_panels_init(&rows, KITH_COSINE, NULL, &panels, &err), &err);
    asked a = {.panels = &panels, .class_of = class_of, .n = c.n};
    thread_ranks_run(3, ask, &a);
    assert_int_equal(a.twice, 0);
    int64_t n_of[4] = {0};
    for (int64_t i = 0; i < c.n; i++) n_of[a.by[i]]++;
    assert_int_equal(n_of[0], 0);
    assert_int_equal(n_of[1], 2 * 384);
    assert_int_equal(n_of[2], 2 * 384);
    assert_int_equal(n_of[3], MOST - 4 * 384);
    ki_panels_release(&panels);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_bits_of_one_process),
                                       cmocka_unit_test(test_a_rank_that_fails),
                                       cmocka_unit_test(test_each_ranks_its_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
