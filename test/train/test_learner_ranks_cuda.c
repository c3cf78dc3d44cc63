/* Learners over ranks on the emulated device: through the host and over a stand-in for NCCL, beside one process. Values, the
 * network's parameters and what the objective learns follow one process, are the same bits on every rank, and the same bits when the run is
 * repeated. */
#include "train/learning.h"

#include <dlfcn.h>
#include <math.h>

#include "base/parallel.h"
#include "base/rng.h"
#include "support/thread_ranks.h"

#ifdef KI_EMULATE_TESTS
#include <cuda_runtime_api.h>
#endif

enum { WHOLE = 9, WIDTH = 8, N_IMAGES = 3 * WHOLE, INPUT = SIDE * SIDE, N_STEPS = 5 };

static float images[N_IMAGES * INPUT];
static int32_t labels[N_IMAGES];

static void draw(void) {
    ki_rng rng = ki_rng_at(11, KI_RNG_TEST, 0, 0);
    for (size_t i = 0; i < N_ROWS(images); i++) images[i] = (float)ki_rng_normal(&rng);
    for (int i = 0; i < N_IMAGES; i++) labels[i] = i / 2 % CLASSES;
}

/* What a rank found. */
typedef struct learned {
    kith_status status;
    kith_error err;
    double total[N_STEPS];
    float *value; /* of the network, then of the objective */
    int64_t n, n_net;
} learned;

typedef struct job {
    const char *objective, *optim;
    bool frozen_bn, one_by_one, nccl;
    int64_t bucket, chunk;
    const char *device; /* NULL: cuda, two of them */
    int heads;          /* 0: 1 */
    const int *sizes;   /* whole batches, in turn */
    learned rank[THREAD_RANKS_MOST];
} job;

static const int full[N_STEPS] = {WHOLE, WHOLE, WHOLE, WHOLE, WHOLE};

static kith_status take_values(setup *s, learned *l, kith_error *err) {
    const ki_state *p = NULL;
    KI_TRY(ki_learner_pull(s->learner, err));
    l->n_net = ki_learner_model_n(s->params);
    int64_t n = l->n_net;
    for (size_t i = 0; (p = ki_objective_param(s->objective, i)); i++) n += p->count;
    l->value = malloc((size_t)n * sizeof *l->value);
    for (int i = 0; i < ki_params_count(s->params); i++) {
        const ki_param *of_net = ki_params_at(s->params, i);
        KI_TRY(ki_params_get(s->params, of_net, l->value + l->n, err));
        l->n += of_net->n;
    }
    for (size_t i = 0; (p = ki_objective_param(s->objective, i)); i++) {
        memcpy(l->value + l->n, p->value, (size_t)p->count * sizeof *l->value);
        l->n += p->count;
    }
    return KITH_OK;
}

static kith_status learn(const job *j, setup *s, ki_comm *comm, ki_device_comm **device, learned *l,
                         kith_error *err) {
    const ki_backend_options options = {.deterministic = true, .device = j->device ? 0 : comm->rank % 2};
    KI_TRY(ki_backend_open(j->device ? j->device : "cuda", &options, &s->backend, err));
    if (s->backend->type->is_host)
        KI_TRY(ki_direct_open(s->backend, comm, device, err));
    else if (j->nccl)
        KI_TRY(s->backend->type->comm_open(s->backend, comm, device, err));
    else if (comm->size > 1)
        KI_TRY(ki_staged_open(s->backend, comm, device, err));
    KI_TRY(setup_try(s, 1, WIDTH, j->heads ? j->heads : 1, j->objective, j->optim,
                     (ki_learner_settings){.batch = ki_comm_most(comm, WHOLE),
                                           .whole = WHOLE,
                                           .comm = comm,
                                           .device_comm = *device,
                                           .bucket = j->bucket,
                                           .chunk = j->chunk,
                                           .format = KI_BATCH_FLOAT,
                                           .frozen_bn = j->frozen_bn,
                                           .one_by_one = j->one_by_one},
                     err));
    for (int step = 0; step < N_STEPS; step++) {
        for (int m = 0; m < s->learner->settings.n_micro; m++) {
            int64_t first = 0, n = 0;
            const int64_t at = (step + m) % 3 * WHOLE;
            ki_comm_own(comm, j->sizes[step], &first, &n);
            const ki_learner_batch batch = {.n = n,
                                            .n_all = j->sizes[step],
                                            .first = first,
                                            .data = images + (at + first) * INPUT,
                                            .label = labels + at + first};
            KI_TRY(ki_learner_add(s->learner, &batch, (uint64_t)step, err));
        }
        KI_TRY(ki_learner_update(s->learner, 1e-2 / (step + 1), err));
        ki_learner_values values;
        KI_TRY(ki_learner_read(s->learner, &values, err));
        l->total[step] = values.total;
    }
    return take_values(s, l, err);
}

static void rank_main(ki_comm *comm, void *user) {
    job *j = user;
    setup s = {0};
    ki_device_comm *device = NULL;
    learned *l = &j->rank[comm->rank];
    ki_threads_set(1);
    l->status = learn(j, &s, comm, &device, l, &l->err);
    ki_learner_free(s.learner);
    ki_device_comm_close(device);
    ki_objective_free(s.objective);
    ki_params_free(s.params);
    ki_net_release(&s.net);
    ki_backend_close(s.backend);
    ki_arena_release(&s.arena);
}

static void job_release(job *j) {
    for (int r = 0; r < THREAD_RANKS_MOST; r++) free(j->rank[r].value);
}

static void run(job *j, int size) {
    thread_ranks_run(size, rank_main, j);
    for (int r = 0; r < size; r++) {
        if (j->rank[r].status != KITH_OK)
            fail_msg("%s, rank %d of %d: %s", j->objective, r, size, j->rank[r].err.message);
    }
}

static void assert_same(const char *what, const learned *a, const learned *b) {
    assert_int_equal(a->n, b->n);
    for (int64_t i = 0; i < a->n; i++) {
        if (memcmp(&a->value[i], &b->value[i], sizeof *a->value) != 0)
            fail_msg("%s: value %lld is %.9g and %.9g", what, (long long)i, (double)a->value[i],
                     (double)b->value[i]);
    }
}

static void assert_near(const char *objective, int size, const learned *found, const learned *wanted) {
    for (int step = 0; step < N_STEPS; step++) {
        if (!(fabs(found->total[step] - wanted->total[step]) <= 1e-3 * (fabs(wanted->total[step]) + 1e-3)))
            fail_msg("%s, %d ranks, step %d: %.9g; one process has %.9g", objective, size, step,
                     found->total[step], wanted->total[step]);
    }
    const double net = testing_relative_l2(found->value, wanted->value, wanted->n_net);
    if (!(net < 1e-3)) fail_msg("%s, %d ranks: the network is %g apart", objective, size, net);
    const int64_t more = wanted->n - wanted->n_net;
    const double of =
        more ? testing_relative_l2(found->value + wanted->n_net, wanted->value + wanted->n_net, more) : 0;
    if (!(of < 1e-3)) fail_msg("%s, %d ranks: the objective is %g apart", objective, size, of);
}

static const char adam[] = "{name: adam, lr: 1e-2}";

static const char *const objectives[] = {
    "{loss: binomial}",
    "{loss: amsoftmax, regularizers: [{name: density, weight: 0.3}]}",
    "{loss: triplet, miner: semihard, memory: {size: 24, warmup: 0}}",
    "{loss: contrastive, regularizers: [{name: horde, orders: 3, dimension: 12, embedding: 5}]}",
    "{loss: normsoftmax, regularizers: [{name: horde, orders: 3, dimension: 9, embedding: 0, weight: 0.5}]}",
    "{loss: proxy_nca, regularizers: [{name: joint_mmd}, {name: energy_confusion, weight: 0.1}]}",
    "{loss: binomial, regularizers: [{name: row_norm_penalty, weight: 0.5}]}",
};

/* Several ranks in one process want several devices. */
static void need_ranks(void) {
#ifndef KI_EMULATE_TESTS
    skip();
#endif
}

/* 2 to `most` ranks beside one process, the last twice. */
static void follow(job like, int most) {
    job one = like;
    one.nccl = false;
    one.chunk = 0;
    run(&one, 1);
    for (int size = 2; size <= most; size++) {
        job a = like, b = like;
        run(&a, size);
        if (size == most) run(&b, size);
        for (int r = 0; r < size; r++) {
            assert_near(like.objective, size, &a.rank[r], &one.rank[0]);
            assert_same("ranks", &a.rank[r], &a.rank[0]);
            if (size == most) assert_same("repetitions", &a.rank[r], &b.rank[r]);
        }
        job_release(&a);
        job_release(&b);
    }
    job_release(&one);
}

static void test_through_the_host(void **state) {
    (void)state;
    need_ranks();
    for (size_t i = 0; i < N_ROWS(objectives); i++)
        follow((job){.objective = objectives[i], .optim = adam, .sizes = full}, 3);
}

/* Without batch statistics weight gradients are late: on a stream of their own. */
static void test_frozen_statistics(void **state) {
    (void)state;
    need_ranks();
    follow((job){.objective = objectives[0], .optim = adam, .sizes = full, .frozen_bn = true}, 3);
}

/* Sums beside backward, of every gradient as soon as it is complete. */
static void test_small_buckets(void **state) {
    (void)state;
    need_ranks();
    follow((job){.objective = objectives[1], .optim = adam, .sizes = full, .bucket = 1}, 3);
    follow((job){.objective = objectives[0], .optim = adam, .sizes = full, .bucket = 1, .frozen_bn = true},
           3);
    follow((job){.objective = objectives[3],
                 .optim = "{name: adam, lr: 1e-2, accumulate: 2}",
                 .sizes = full,
                 .bucket = 600},
           2);
}

/* The sums over ranks belong to the last micro-batch alone. */
static void test_micro_batches(void **state) {
    (void)state;
    need_ranks();
    follow((job){.objective = objectives[3], .optim = "{name: adam, lr: 1e-2, accumulate: 2}", .sizes = full},
           2);
}

static void test_heads(void **state) {
    (void)state;
    need_ranks();
    follow((job){.objective = "{loss: binomial, regularizers: [{name: head_divergence, weight: 0.1}]}",
                 .optim = adam,
                 .sizes = full,
                 .heads = 2},
           3);
}

static void test_smaller_batches(void **state) {
    (void)state;
    need_ranks();
    static const int sizes[N_STEPS] = {WHOLE, 4, WHOLE, 7, 4};
    follow((job){.objective = objectives[1], .optim = adam, .sizes = sizes}, 3);
}

/* Every rank computes its images two at a time, the one process all of them; ranks have several numbers of chunks. */
static void follow_chunks(const char *device, const int *sizes) {
    const job like = {.objective = objectives[3],
                      .optim = "{name: adam, lr: 1e-2, accumulate: 2}",
                      .sizes = sizes,
                      .device = device,
                      .bucket = 600,
                      .chunk = 2,
                      .frozen_bn = true};
    follow(like, 2);
    for (size_t i = 0; i < 2; i++) {
        job other = like;
        other.objective = objectives[i ? 5 : 1];
        other.optim = adam;
        follow(other, 3);
    }
}

static void test_chunks(void **state) {
    (void)state;
    need_ranks();
    static const int sizes[N_STEPS] = {WHOLE, 4, WHOLE, 7, WHOLE};
    follow_chunks(NULL, sizes);
}

/* One rank of three has no image of the second batch. */
static void test_chunks_on_the_host(void **state) {
    (void)state;
    static const int sizes[N_STEPS] = {WHOLE, 2, WHOLE, 7, 5};
    follow_chunks("cpu", sizes);
}

/* ---- a rank that has gone astray ---- */

typedef struct strays {
    bool changes_objective;
    kith_status before[THREAD_RANKS_MOST], after[THREAD_RANKS_MOST];
    kith_error err[THREAD_RANKS_MOST];
} strays;

static kith_status stray(const strays *o, setup *s, ki_comm *comm, ki_device_comm **device,
                         kith_status *ret_before, kith_error *err) {
    float one[64] = {0};
    KI_TRY(ki_backend_open("cuda", NULL, &s->backend, err));
    KI_TRY(ki_staged_open(s->backend, comm, device, err));
    KI_TRY(setup_try(s, 1, WIDTH, 1, objectives[1], adam,
                     (ki_learner_settings){.batch = ki_comm_most(comm, WHOLE),
                                           .whole = WHOLE,
                                           .comm = comm,
                                           .device_comm = *device,
                                           .format = KI_BATCH_FLOAT},
                     err));
    *ret_before = ki_learner_check_ranks(s->learner, err);
    const ki_param *bias = ki_params_find(s->params, "embedding.bias");
    one[DIM - 1] = 1e-30F;
    if (comm->rank == 1 && !o->changes_objective) KI_TRY(ki_params_set(s->params, bias, one, err));
    if (comm->rank == 1 && o->changes_objective) {
        ki_objective_param(s->objective, 0)->value[0] += 1;
        KI_TRY(ki_learner_push(s->learner, err));
    }
    return ki_learner_check_ranks(s->learner, err);
}

static void stray_main(ki_comm *comm, void *user) {
    strays *o = user;
    setup s = {0};
    ki_device_comm *device = NULL;
    o->after[comm->rank] = stray(o, &s, comm, &device, &o->before[comm->rank], &o->err[comm->rank]);
    ki_learner_free(s.learner);
    ki_device_comm_close(device);
    ki_objective_free(s.objective);
    ki_params_free(s.params);
    ki_net_release(&s.net);
    ki_backend_close(s.backend);
    ki_arena_release(&s.arena);
}

static void test_a_rank_that_has_gone_astray(void **state) {
    (void)state;
    need_ranks();
    for (int i = 0; i < 2; i++) {
        strays o = {.changes_objective = i == 1};
        thread_ranks_run(3, stray_main, &o);
        for (int r = 0; r < 3; r++) {
            assert_int_equal(o.before[r], KITH_OK);
            assert_int_equal(o.after[r], KITH_EINTERNAL);
            assert_non_null(strstr(o.err[r].message, "rank 1 has other parameters than rank 0"));
        }
    }
}

/* ---- NCCL ---- */

#ifdef KI_EMULATE_TESTS
static int (*nccl_calls)(void);

static void copy_recorded(void *to, const void *from, size_t bytes, void *stream) {
    (void)cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

/* The stand-in, for this process. */
static void need_nccl(void) {
    char path[4096];
    void (*copy)(void *, const void *, size_t, void *) = copy_recorded;
    snprintf(path, sizeof path, "%s", testing_program_path());
    snprintf(strrchr(path, '/'), 64, "/test/nccl/libnccl.so.2");
    setenv("KITH_NCCL", path, 1);
    void *library = dlopen(path, RTLD_NOW);
    if (!library) fail_msg("%s", dlerror());
    void *symbol = dlsym(library, "ki_fake_nccl_calls");
    memcpy(&nccl_calls, &symbol, sizeof symbol);
    memcpy(dlsym(library, "ki_fake_nccl_copy"), &copy, sizeof copy);
}

/* Made in two runs that are queued and in the one that is recorded: gathers and sums. */
static void check_calls(int n, int least) {
    if (n % 3 != 0 || n < 3 * least) fail_msg("%d calls of NCCL; wanted 3 times %d or more", n, least);
}
#else
static int nccl_calls(void) { return 0; }
static void check_calls(int n, int least) { (void)n, (void)least; }

/* The real one, where it is. */
static void need_nccl(void) {
    kith_error err;
    ki_backend *backend = op_backend("cuda", NULL);
    ki_device_comm *device = NULL;
    setenv("KITH_COMM", "nccl", 1);
    const kith_status status = ki_device_comm_open(backend, NULL, &device, &err);
    unsetenv("KITH_COMM");
    ki_device_comm_close(device);
    ki_backend_close(backend);
    if (status == KITH_OK) return;
    print_message("%s\n", err.message);
    skip();
}
#endif

/* One rank, its calls recorded with the step. */
static void test_nccl_in_a_recorded_step(void **state) {
    (void)state;
    need_nccl();
    for (size_t i = 0; i < N_ROWS(objectives); i++) {
        job one = {.objective = objectives[i], .optim = adam, .sizes = full, .frozen_bn = i % 2 == 0};
        job with = one;
        with.nccl = true;
        with.bucket = 500;
        const int before = nccl_calls();
        run(&one, 1);
        run(&with, 1);
        assert_near(objectives[i], 1, &with.rank[0], &one.rank[0]);
        /* Weight gradients of four layers, when they are late, are summed at the end. */
        check_calls(nccl_calls() - before, one.frozen_bn ? 3 : 6);
        job_release(&one);
        job_release(&with);
    }
}

static void test_ranks_over_nccl(void **state) {
    (void)state;
    need_ranks();
    need_nccl();
    for (size_t i = 0; i < N_ROWS(objectives); i++)
        follow((job){.objective = objectives[i],
                     .optim = adam,
                     .sizes = full,
                     .nccl = true,
                     .one_by_one = true,
                     .bucket = 500,
                     .frozen_bn = i % 2 == 1},
               2);
}

static void test_chunks_over_nccl(void **state) {
    (void)state;
    need_nccl();
    job one = {.objective = objectives[1], .optim = adam, .sizes = full, .frozen_bn = true};
    job with = one;
    with.nccl = true;
    with.bucket = 500;
    with.chunk = 2;
    run(&one, 1);
    run(&with, 1);
    assert_near(one.objective, 1, &with.rank[0], &one.rank[0]);
    job_release(&one);
    job_release(&with);
    need_ranks();
    with = (job){.objective = objectives[3],
                 .optim = adam,
                 .sizes = full,
                 .nccl = true,
                 .one_by_one = true,
                 .bucket = 500,
                 .chunk = 2,
                 .frozen_bn = true};
    follow(with, 2);
}

/* What a rank gets when it asks for a device comm. */
typedef struct opened {
    kith_status status[THREAD_RANKS_MOST];
    kith_error err[THREAD_RANKS_MOST];
    char name[THREAD_RANKS_MOST][16];
    int n_devices;
} opened;

static void open_main(ki_comm *comm, void *user) {
    opened *o = user;
    ki_backend *backend = NULL;
    ki_device_comm *device = NULL;
    const int r = comm->rank;
    const ki_backend_options options = {.device = r % o->n_devices};
    o->status[r] = ki_backend_open("cuda", &options, &backend, &o->err[r]);
    if (o->status[r] == KITH_OK) o->status[r] = ki_device_comm_open(backend, comm, &device, &o->err[r]);
    snprintf(o->name[r], sizeof o->name[r], "%s", device ? device->type->name : "none");
    ki_device_comm_close(device);
    ki_backend_close(backend);
}

static void assert_opens(const char *way, int size, int n_devices, const char *name, const char *line) {
    opened o = {.n_devices = n_devices};
    if (way)
        setenv("KITH_COMM", way, 1);
    else
        unsetenv("KITH_COMM");
    thread_ranks_run(size, open_main, &o);
    unsetenv("KITH_COMM");
    for (int r = 0; r < size; r++) {
        assert_string_equal(o.name[r], name);
        if (!line) assert_ok(o.status[r], &o.err[r]);
        if (line && (o.status[r] == KITH_OK || !strstr(o.err[r].message, line)))
            fail_msg("rank %d: %d, %s", r, (int)o.status[r], o.err[r].message);
    }
}

static void test_which_way_is_taken(void **state) {
    (void)state;
    need_ranks();
    need_nccl();
    assert_opens(NULL, 1, 1, "none", NULL);
    assert_opens("nccl", 1, 1, "nccl", NULL);
    assert_opens("host", 1, 1, "host", NULL);
    assert_opens(NULL, 2, 2, "nccl", NULL);
    assert_opens("host", 2, 2, "host", NULL);
    /* Three ranks, two devices. */
    assert_opens(NULL, 3, 2, "host", NULL);
    assert_opens("nccl", 3, 2, "none", "ranks 0 and 2 share a device");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_through_the_host),
        cmocka_unit_test(test_frozen_statistics),
        cmocka_unit_test(test_small_buckets),
        cmocka_unit_test(test_micro_batches),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_smaller_batches),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_chunks_on_the_host),
        cmocka_unit_test(test_chunks_over_nccl),
        cmocka_unit_test(test_nccl_in_a_recorded_step),
        cmocka_unit_test(test_ranks_over_nccl),
        cmocka_unit_test(test_which_way_is_taken),
        cmocka_unit_test(test_a_rank_that_has_gone_astray),
    };
    draw();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
