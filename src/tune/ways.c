/* The ways that are tried, few and good (objective/usual.h), and the recipe of each.
 *
 * Rates are small: a layer that starts from what the network knows has little to gain and much to lose. */
#include <stdarg.h>
#include <string.h>

#include "base/buffer.h"
#include "base/text.h"
#include "data/input.h"
#include "tune/tune.h"

enum { MOST_AXES = 512, BATCH_CLASSES = 12, BATCH_IMAGES = 4 };

static const char *start_name(const ki_tune *t, ki_tune_start start) {
    if (start == KI_TUNE_OWN) return "the model's own layer";
    if (start == KI_TUNE_WHITE) return "whitened axes";
    return t->own ? "principal axes" : "the model's features";
}

static ki_tune_way *add(ki_tune *t, const char *name, ki_tune_start start, const char *objective, double lr,
                        const char *optim) {
    ki_tune_way *way = &t->way[t->n_ways];
    *way = (ki_tune_way){.start = start,
                         .objective = objective,
                         .lr = lr,
                         .optim = optim,
                         .complexity = !objective ? t->n_ways : 2};
    t->n_ways++;
    ki_snprintf(way->name, sizeof way->name, objective ? "%s from %s" : "%s%s", name, start_name(t, start));
    return way;
}

void ki_tune_list(ki_tune *t) {
    const ki_tune_start best = t->own ? KI_TUNE_OWN : KI_TUNE_AXES;
    const ki_usual_way *way;
    t->n_ways = 0;
    add(t, "", best, NULL, 0, ""); /* the pretrained model */
    add(t, "", KI_TUNE_WHITE, NULL, 0, "");
    for (int i = 0; (way = ki_usual_head_at(i)); i++)
        add(t, way->name, best, way->objective, 3e-4, way->optim);
    for (int i = 0; i < 3 && (way = ki_usual_head_at(i)); i++)
        add(t, way->name, KI_TUNE_WHITE, way->objective, 3e-4, way->optim);
    const ki_usual_fine *usual;
    for (int i = 0; (usual = ki_usual_fine_at(i)); i++) {
        if (usual->part == KI_USUAL_LAST && !*t->half) continue;
        if (usual->part == KI_USUAL_LORA && !t->takes_lora) continue;
        way = &usual->way;
        ki_tune_way *fine = add(t, way->name, best, way->objective, usual->lr, way->optim);
        fine->is_fine = true;
        fine->part = usual->part;
        fine->complexity = 3;
    }
}

/* What a path holds may end a scalar: it is written between quotes. */
static void put_quoted(ki_buffer *to, const char *text) {
    ki_buffer_put(to, "'");
    for (; *text; text++) ki_buffer_put(to, *text == '\'' ? "''" : "%c", *text);
    ki_buffer_put(to, "'");
}

static void put_input(const ki_tune *t, ki_buffer *to) {
    const kith_preprocess *p = &t->net.preprocess;
    const int64_t side = t->net.h;
    char usual[24];
    ki_snprintf(usual, sizeof usual, "shorter%lld", (long long)(side * 8 / 7));
    const char *test = *p->resize ? p->resize : usual;
    ki_buffer_put(
        to,
        "input: {resize: %s, test_resize: %s, crop: %lld, mirror: true, augment: resized, scale: [0.25, 1]",
        usual, test, (long long)side);
    if (*p->filter) ki_buffer_put(to, ", filter: %s", p->filter);
    if (t->net.c == 1) ki_buffer_put(to, ", channels: 1");
    ki_buffer_put(to, ", background: [%d, %d, %d]}\n", p->background[0], p->background[1], p->background[2]);
}

static int64_t size_of(const ki_tune *t, const ki_tune_way *way) {
    if (way->start == KI_TUNE_OWN) return t->own;
    if (!way->objective && way->start == KI_TUNE_AXES) return t->n_features;
    return t->n_features < MOST_AXES ? t->n_features : MOST_AXES;
}

static void put_model(const ki_tune *t, const ki_tune_way *way, ki_buffer *to) {
    static const char *const inits[] = {"torch", "pca", "white"};
    ki_buffer_put(to, "model: {weights: ");
    put_quoted(to, t->options->model ? t->options->model : "general");
    ki_buffer_put(to, ", pool: %s, embedding: %lld, embedding_init: %s", ki_pooling_names[t->net.pool],
                  (long long)size_of(t, way), inits[way->start]);
    if (way->start == KI_TUNE_OWN && t->net.no_embedding_bias) ki_buffer_put(to, ", embedding_bias: false");
    if (!way->is_fine)
        ki_buffer_put(to, ", frozen: true, views: %lld}\n", (long long)(t->n_views ? t->n_views : 1));
    else if (way->part == KI_USUAL_LORA)
        ki_buffer_put(to, ", bn: frozen, lora: {rank: 8}}\n");
    else if (way->part == KI_USUAL_LAST)
        ki_buffer_put(to, ", bn: frozen, freeze: %s}\n", t->half);
    else
        ki_buffer_put(to, ", bn: frozen}\n");
}

static void put_text(const ki_tune *t, const ki_tune_way *way, int64_t steps, ki_buffer *to) {
    int64_t classes = t->n_train_classes < BATCH_CLASSES ? t->n_train_classes : BATCH_CLASSES;
    if (way->is_fine && classes > 8) classes = 8;
    if (classes < 2) classes = 2;
    ki_buffer_put(to, "data: {dataset: csv, root: ");
    put_quoted(to, t->folder);
    to->n--; /* the closing quote */
    ki_buffer_put(to, "/photos.csv'}\n");
    put_input(t, to);
    put_model(t, way, to);
    ki_buffer_put(to, "batch: {classes: %lld, images: %d}\n", (long long)classes, BATCH_IMAGES);
    ki_buffer_put(to, "objective: %s\n", way->objective ? way->objective : "{loss: {name: binomial}}");
    ki_buffer_put(to, "optim: {name: adam, lr: %g, steps: %lld%s}\n", way->objective ? way->lr : 0,
                  (long long)(steps > 0 ? steps : 1), way->optim);
    ki_buffer_put(to, "eval: {every: 0, select: last, seen: false, test: %s}\n",
                  t->n_test_classes > 0 ? "true" : "false");
    ki_buffer_put(to, "checkpoint: {every: 50}\nloader: {bad: -1}\nseed: %lld\ndevice: %s\n",
                  (long long)t->options->seed, t->options->device ? t->options->device : "cpu");
    ki_buffer_add(to, "", 1);
}

kith_status ki_tune_recipe(const ki_tune *t, const ki_tune_way *way, int64_t steps, ki_recipe **ret,
                           kith_error *err) {
    ki_buffer text = {.err = err};
    put_text(t, way, steps, &text);
    kith_status status = text.status;
    const ki_recipe_source source = {.text = text.data};
    if (status == KITH_OK) status = ki_recipe_read(&source, ret, err);
    ki_buffer_release(&text);
    return status;
}

const char *ki_tune_describe(const ki_tune_way *way, char *buf, size_t bytes) {
    if (!way->objective)
        ki_snprintf(buf, bytes, "%s, as it is", way->name);
    else
        ki_snprintf(buf, bytes, "%s, %lld steps", way->name, (long long)way->steps);
    return buf;
}
