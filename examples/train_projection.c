/* Train a linear projection with one of kith's objectives, and no network.
 *
 *     train_projection [RECIPE.yaml [STEPS]]
 *
 * Features of forty classes lie in 64 dimensions of which only 8 tell the classes apart; the others are
 * louder noise. A projection W to 16 dimensions learns to look at the right ones: embedding x = f W^T,
 * gradient dL/dW = (dL/dx)^T f, plain gradient descent with momentum. Half the classes are never
 * trained on; the share of their items whose nearest neighbour is of the same class shows that the
 * projection has learnt what matters, not the classes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/objective.h"
#include "kith/text.h"

enum {
    CLASSES = 40,
    IMAGES = 12,
    FEATURES = 64,
    TELLING = 8,
    DIM = 16,
    BATCH_CLASSES = 10,
    BATCH_IMAGES = 4
};
enum { N = CLASSES * IMAGES, BATCH = BATCH_CLASSES * BATCH_IMAGES, N_TRAIN = N / 2 };

static uint64_t word = 88172645463325252u;
static double uniform(void) {
    word ^= word << 13, word ^= word >> 7, word ^= word << 17;
    return (double)(word >> 11) / 9007199254740992.0;
}
static double normal(void) { return sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform()); }

static float feature[N][FEATURES], w[DIM][FEATURES], momentum[DIM][FEATURES];

static void make_features(void) {
    static float centre[CLASSES][TELLING];
    for (int c = 0; c < CLASSES; c++) {
        for (int k = 0; k < TELLING; k++) centre[c][k] = (float)normal();
    }
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < FEATURES; k++)
            feature[i][k] =
                k < TELLING ? centre[i / IMAGES][k] + 0.35f * (float)normal() : 1.5f * (float)normal();
    }
}

static void embed(int item, float *x) {
    for (int d = 0; d < DIM; d++) {
        double sum = 0;
        for (int k = 0; k < FEATURES; k++) sum += (double)w[d][k] * (double)feature[item][k];
        x[d] = (float)sum;
    }
}

/* Recall at 1 over the classes that are not trained on, by cosine. */
static double recall(void) {
    static float x[N - N_TRAIN][DIM];
    int n_hit = 0;
    for (int i = 0; i < N - N_TRAIN; i++) {
        double norm = 0;
        embed(N_TRAIN + i, x[i]);
        for (int d = 0; d < DIM; d++) norm += (double)x[i][d] * (double)x[i][d];
        for (int d = 0; d < DIM; d++) x[i][d] /= (float)sqrt(norm + 1e-30);
    }
    for (int i = 0; i < N - N_TRAIN; i++) {
        int best = -1;
        double most = -2;
        for (int j = 0; j < N - N_TRAIN; j++) {
            double s = 0;
            for (int d = 0; d < DIM; d++) s += (double)x[i][d] * (double)x[j][d];
            if (j != i && s > most) most = s, best = j;
        }
        n_hit += best / IMAGES == i / IMAGES;
    }
    return (double)n_hit / (N - N_TRAIN);
}

static void draw_batch(int *item, int64_t *labels) {
    int order[CLASSES / 2];
    for (int c = 0; c < CLASSES / 2; c++) order[c] = c;
    for (int b = 0; b < BATCH_CLASSES; b++) {
        const int k = b + (int)(uniform() * (CLASSES / 2 - b)), chosen = order[k];
        order[k] = order[b];
        for (int i = 0; i < BATCH_IMAGES; i++) {
            item[b * BATCH_IMAGES + i] =
                chosen * IMAGES + (int)(uniform() * (IMAGES / BATCH_IMAGES)) + i * (IMAGES / BATCH_IMAGES);
            labels[b * BATCH_IMAGES + i] = chosen;
        }
    }
}

int main(int argc, char **argv) {
    static const char recipe[] = "objective:\n  loss: {name: raw}\n  miner: {name: vthm}\n";
    const kith_objective_sizes sizes = {.n_classes = CLASSES, .embedding = DIM};
    int64_t n_steps = 300;
    kith_error err = {0};
    kith_objective *objective = NULL;
    if (argc > 2 && !kith_parse_int(argv[2], &n_steps)) return fprintf(stderr, "STEPS is '%s'\n", argv[2]), 2;
    const kith_status made = argc > 1 ? kith_objective_open(argv[1], &sizes, 1, &objective, &err)
                                      : kith_objective_new(recipe, &sizes, 1, &objective, &err);
    if (made != KITH_OK) return fprintf(stderr, "%s (%s)\n", err.message, err.hint), 1;

    make_features();
    for (int d = 0; d < DIM; d++) {
        for (int k = 0; k < FEATURES; k++) w[d][k] = (float)(normal() / sqrt(FEATURES));
    }
    printf("recall at 1 on classes never trained on: %.3f before\n", recall());
    for (int64_t step = 0; step < n_steps; step++) {
        static float x[BATCH][DIM];
        int item[BATCH];
        int64_t labels[BATCH];
        draw_batch(item, labels);
        for (int i = 0; i < BATCH; i++) embed(item[i], x[i]);
        const kith_batch batch = {.n = BATCH,
                                  .labels = labels,
                                  .step = (uint64_t)step,
                                  .tap[KITH_TAP_EMBEDDING] = {.data = x[0], .rows = BATCH, .cols = DIM}};
        kith_objective_result result;
        if (kith_objective_evaluate(objective, &batch, &result, &err) != KITH_OK) {
            fprintf(stderr, "%s (%s)\n", err.message, err.hint);
            kith_objective_free(objective);
            return 1;
        }
        const float *gradient = result.gradient[KITH_TAP_EMBEDDING];
        for (int d = 0; d < DIM; d++) {
            for (int k = 0; k < FEATURES; k++) {
                double sum = 0;
                for (int i = 0; i < BATCH; i++)
                    sum += (double)gradient[i * DIM + d] * (double)feature[item[i]][k];
                momentum[d][k] = 0.9f * momentum[d][k] + (float)sum;
                w[d][k] -= 0.05f * momentum[d][k];
            }
        }
        /* What the objective itself learns (proxies, a margin) takes a plain step. */
        kith_objective_param param;
        for (int p = 0; kith_objective_param_at(objective, p, &param); p++) {
            for (int64_t k = 0; param.gradient && k < param.n; k++)
                param.value[k] -= 0.01f * (float)param.lr_multiplier * param.gradient[k];
        }
        kith_objective_clear_gradients(objective);
        if (step % 50 == 0) printf("step %3d: %.4f\n", (int)step, result.total);
    }
    printf("recall at 1 on classes never trained on: %.3f after\n", recall());
    kith_objective_free(objective);
    return 0;
}
