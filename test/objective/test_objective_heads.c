/* Objectives over the heads of an ensemble: the loss of m rows of several heads is the mean of the heads' own losses, with
 * miners and with a memory; pair weights, descriptors, and what is refused. */
#include "base/parallel.h"
#include "base/rng.h"
#include "objective/cases.h"

enum { M = 24, HEADS = 3, EACH = 5, DIM = HEADS * EACH, N_CLASSES = 9 };

static ki_real whole[M * DIM], part[HEADS][M * EACH];
static int32_t labels[M];

/* The same points as one embedding and as one for each head. */
static ki_batch batch_of(uint32_t seed) {
    ki_rng rng = ki_rng_at(seed, KI_RNG_TEST, 31, 0);
    for (int i = 0; i < M; i++) {
        labels[i] = (int32_t)((i / 4 + (int)seed) % N_CLASSES);
        ki_rng centre = ki_rng_at(77, KI_RNG_TEST, (uint32_t)labels[i], 0);
        for (int k = 0; k < DIM; k++) {
            const ki_real v = (ki_real)(ki_rng_normal(&centre) + 0.8 * ki_rng_normal(&rng));
            whole[i * DIM + k] = part[k / EACH][i * EACH + k % EACH] = v;
        }
    }
    ki_batch batch = {.m = M, .label = labels, .step = seed};
    batch.tap[KI_TAP_EMBEDDING] = (ki_tap_data){.data = whole, .rows = M, .cols = DIM};
    return batch;
}

static ki_batch part_of(ki_batch batch, int head) {
    batch.tap[KI_TAP_EMBEDDING] = (ki_tap_data){.data = part[head], .rows = M, .cols = EACH};
    return batch;
}

static const ki_sizes sizes_whole = {.n_classes = N_CLASSES, .embedding = DIM, .heads = HEADS};
static const ki_sizes sizes_part = {.n_classes = N_CLASSES, .embedding = EACH};

/* Two steps, so that a memory has something. */
static void check_mean(const char *recipe) {
    kith_error err = {0};
    made all = made_of(recipe, &sizes_whole), one[HEADS];
    ki_result result, single;
    for (int h = 0; h < HEADS; h++) one[h] = made_of(recipe, &sizes_part);
    for (uint32_t step = 0; step < 3; step++) {
        const ki_batch batch = batch_of(step);
        double total = 0;
        int64_t n_pos = 0;
        assert_ok(ki_objective_evaluate(all.objective, &batch, &result, &err), &err);
        for (int h = 0; h < HEADS; h++) {
            const ki_batch mine = part_of(batch, h);
            double off = 0, size = 0;
            assert_ok(ki_objective_evaluate(one[h].objective, &mine, &single, &err), &err);
            total += single.total / HEADS;
            n_pos += single.n_pos;
            for (int64_t i = 0; i < M * EACH; i++) {
                const double wanted = (double)single.diff[KI_TAP_EMBEDDING][i] / HEADS;
                const int64_t at = i / EACH * DIM + h * EACH + i % EACH;
                off += pow((double)result.diff[KI_TAP_EMBEDDING][at] - wanted, 2);
                size += wanted * wanted;
            }
            if (!(sqrt(off) <= 2e-6 * sqrt(size) + 1e-9))
                fail_msg("%s, step %u: the gradient of head %d is off by %.3g of %.3g", recipe, step, h,
                         sqrt(off), sqrt(size));
        }
        if (!(fabs(result.total - total) <= 1e-6 * fmax(1, fabs(total))))
            fail_msg("%s, step %u: %.9g, the mean of the heads is %.9g", recipe, step, result.total, total);
        assert_int_equal(result.n_pos, n_pos);
    }
    made_free(&all);
    for (int h = 0; h < HEADS; h++) made_free(&one[h]);
}

static void test_a_loss_is_the_mean_of_its_heads(void **state) {
    (void)state;
    /* Those that divide by a number which is the same for every head. Where it counts what is active or mined, it counts
     * over all heads (golden cases abe). */
    static const char *const recipes[] = {
        "loss: {name: contrastive}",
        "loss: {name: contrastive, distance: cosine, neg_margin: 0.3}",
        "loss: {name: binomial}",
        "loss: {name: binomial, normalize: false, gamma: 2, beta: 1}",
        "loss: {name: triplet, reduction: mean}",
        "loss: {name: npair, scale: 4, l2: 0.1}",
        "loss: {name: lifted}",
        "loss: {name: angular}",
        "loss: {name: circle}",
        "loss: {name: supcon}",
        "loss: {name: ntxent}",
        "loss: {name: ranked_list}",
        "loss: {name: fastap}",
        "loss: {name: smooth_ap, temperature: 0.1}",
        "loss: {name: recall_at_k, k: 4, temperature: 0.1}",
        "loss: {name: raw}\nminer: {name: vthm}",
        "loss: {name: binomial}\nminer: {name: hard}",
        "loss: {name: contrastive}\nmemory: {size: 60, warmup: 1}",
        "loss: {name: binomial}\nmemory: {size: 30, warmup: 0}",
        "loss: {name: binomial, reduction: anchor_all}\nminer: {name: vthm}\nmemory: {size: 60, warmup: 0}",
        "loss: {name: raw}\nminer: {name: pair_margin}\nmemory: {size: 17, warmup: 0}",
    };
    for (size_t i = 0; i < N_ROWS(recipes); i++) check_mean(recipes[i]);
}

/* Of a pair of images: the sum of its heads' weights, and the mean of their similarities. */
static void test_weights_are_of_images(void **state) {
    (void)state;
    kith_error err = {0};
    const char *const recipe = "loss: {name: binomial}";
    made all = made_of(recipe, &sizes_whole), one = made_of(recipe, &sizes_part);
    const ki_batch batch = batch_of(3);
    ki_real *weight = NULL, *similarity = NULL;
    double sum[M * M] = {0}, mean[M * M] = {0};
    int64_t n = 0;
    for (int h = 0; h < HEADS; h++) {
        const ki_batch mine = part_of(batch, h);
        assert_ok(ki_objective_weights(one.objective, &mine, &weight, &similarity, &n, &err), &err);
        assert_int_equal(n, M);
        for (int i = 0; i < M * M; i++) {
            sum[i] += (double)weight[i] / HEADS;
            mean[i] += (double)similarity[i] / HEADS;
        }
        ki_free(weight);
        ki_free(similarity);
    }
    assert_ok(ki_objective_weights(all.objective, &batch, &weight, &similarity, &n, &err), &err);
    assert_int_equal(n, M);
    for (int i = 0; i < M * M; i++) {
        if (!(fabs((double)weight[i] - sum[i]) <= 1e-6 && fabs((double)similarity[i] - mean[i]) <= 1e-6))
            fail_msg("pair %d: weight %g, wanted %g; similarity %g, wanted %g", i, (double)weight[i], sum[i],
                     (double)similarity[i], mean[i]);
    }
    ki_free(weight);
    ki_free(similarity);
    made_free(&all);
    made_free(&one);
}

static void test_descriptors_begin_with_the_heads(void **state) {
    (void)state;
    kith_error err = {0};
    enum { C = 4, SIDE = 2 };
    ki_sizes sizes = sizes_whole;
    sizes.map = C;
    made m = made_of(
        "loss: {name: binomial}\nregularizers:\n  - {name: horde, orders: 3, dimension: 8, embedding: 6}",
        &sizes);
    ki_batch batch = batch_of(1);
    ki_real map[M * C * SIDE * SIDE], *rows = NULL;
    int64_t dim = 0;
    for (int i = 0; i < (int)N_ROWS(map); i++) map[i] = (ki_real)(i * 37 % 11) / 7;
    batch.tap[KI_TAP_MAP] =
        (ki_tap_data){.data = map, .rows = M, .cols = C * SIDE * SIDE, .c = C, .hw = SIDE * SIDE};
    assert_ok(ki_objective_describe(m.objective, &batch, &rows, &dim, &err), &err);
    assert_int_equal(dim, DIM + 2 * 6);
    for (int i = 0; i < M; i++) {
        for (int h = 0; h < HEADS; h++) {
            double norm = 0, own = 0;
            for (int k = 0; k < EACH; k++) {
                own += pow((double)part[h][i * EACH + k], 2);
                norm += pow((double)rows[i * dim + h * EACH + k], 2);
            }
            assert_true(fabs(norm - 1) < 1e-5);
            assert_true(fabs((double)rows[i * dim + h * EACH] - (double)part[h][i * EACH] / sqrt(own)) <
                        1e-6);
        }
    }
    ki_free(rows);
    made_free(&m);
}

static void test_what_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *recipe;
        int64_t embedding, heads;
        const char *message;
    } rows[] = {
        {"loss: {name: binomial}", 16, 3, "an embedding of 16 numbers is no 3 heads side by side"},
        {"loss: {name: binomial}", 0, 3, "an embedding of 0 numbers is no 3 heads side by side"},
        {"loss: {name: binomial}", 16, -2, "an embedding of 16 numbers is no -2 heads side by side"},
        {"loss: {name: amsoftmax}\nregularizers: [{name: joint_similarity}]", 16, 4,
         "joint_similarity reads logits, which an ensemble of 4 heads does not have"},
        {"loss: {name: binomial}\nregularizers: [{name: energy_confusion}]", 16, 4,
         "energy_confusion stops at the embedding layer, which 4 heads share"},
        {"loss: {name: binomial}\nregularizers: [{name: head_divergence}]", 16, 1,
         "head_divergence compares the heads of an ensemble, and the model has one"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const ki_sizes sizes = {
            .n_classes = N_CLASSES, .embedding = rows[i].embedding, .pooled = 8, .heads = rows[i].heads};
        kith_error err = {0};
        made m;
        assert_int_equal(made_try(rows[i].recipe, &sizes, &m, &err), KITH_EINVAL);
        if (strcmp(err.message, rows[i].message) != 0)
            fail_msg("the line is '%s', wanted '%s'", err.message, rows[i].message);
    }
}

int main(void) {
    ki_threads_set(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_loss_is_the_mean_of_its_heads),
        cmocka_unit_test(test_weights_are_of_images),
        cmocka_unit_test(test_descriptors_begin_with_the_heads),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests_name("objective/heads", tests, NULL, NULL);
}
