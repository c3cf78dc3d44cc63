/* MODEL.md: what a model is, for whoever gets its file without the run.
 *
 * Whatever a user has named (paths, weights) is escaped for Markdown. The rest are words and numbers of ours. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "report/report.h"

typedef struct writer {
    const kith_card *card;
    const kith_card *tune; /* NULL: none */
    ki_buffer *to;
} writer;

/* ---- text ---- */

/* Markdown takes a backslash before any punctuation of ASCII. A line's end would end a row of a table. */
static void put_escaped(ki_buffer *to, const char *text) {
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c < ' ' || c == 127)
            ki_buffer_add(to, " ", 1);
        else if (strchr("\\`*_{}[]()<>#+-!|&~$^=:@", c))
            ki_buffer_put(to, "\\%c", c);
        else
            ki_buffer_add(to, text, 1);
    }
}

static const char *text_of(const writer *w, const char *path) {
    const char *text = kith_card_text(w->card, path);
    return text && *text ? text : NULL;
}

static double real_of(const writer *w, const char *path) {
    double value = NAN;
    return kith_card_real(w->card, path, &value) ? value : NAN;
}

static const char *count_of(const writer *w, const char *path, char buf[KI_NUMBER_TEXT]) {
    const double value = real_of(w, path);
    return isnan(value) ? "?" : ki_count_text(value, buf);
}

static void put_fact(writer *w, const char *path, const char *before, const char *after) {
    const char *text = text_of(w, path);
    if (!text) return;
    ki_buffer_put(w->to, "%s", before);
    put_escaped(w->to, text);
    ki_buffer_put(w->to, "%s", after);
}

/* The first characters of a hash. */
static void put_hash(writer *w, const char *path, const char *before) {
    const char *text = text_of(w, path);
    if (text) ki_buffer_put(w->to, "%s`%.12s…`", before, text);
}

/* ---- what it is ---- */

static void put_network(writer *w) {
    ki_buffer_put(w->to, "| network | ");
    put_fact(w, "backbone", "", "");
    put_fact(w, "pool", ", pooling ", "");
    put_fact(w, "embedding_size", "; an embedding of ", " numbers");
    ki_buffer_put(w->to, " |\n| start | ");
    if (text_of(w, "weights")) {
        put_fact(w, "weights", "", "");
        put_hash(w, "weights_sha256", ", SHA-256 ");
    } else {
        ki_buffer_put(w->to, "random weights");
    }
    ki_buffer_put(w->to, " |\n| input | ");
    if (text_of(w, "resize")) {
        put_fact(w, "resize", "resize ", "");
        put_fact(w, "crop", ", the centre square of side ", "");
        put_fact(w, "preprocessing", "; ", "");
    } else {
        ki_buffer_put(w->to, "features made elsewhere, not images");
    }
    ki_buffer_put(w->to, " |\n");
}

static void put_data(writer *w) {
    char a[KI_NUMBER_TEXT], b[KI_NUMBER_TEXT];
    ki_buffer_put(w->to, "| data | ");
    put_fact(w, "data", "", "");
    put_fact(w, "dataset", " (", ")");
    put_hash(w, "data_sha256", ", list of items ");
    ki_buffer_put(w->to, " |\n| learned from | %s items of %s classes |\n", count_of(w, "n_train_images", a),
                  count_of(w, "n_train_classes", b));
    if (real_of(w, "n_validation_images") > 0)
        ki_buffer_put(w->to, "| held out for choices | %s items of %s other classes |\n",
                      count_of(w, "n_validation_images", a), count_of(w, "validation.classes", b));
    if (text_of(w, "test.queries"))
        ki_buffer_put(w->to, "| tested on | %s items of %s classes that were not learned from |\n",
                      count_of(w, "n_images", a), count_of(w, "test.classes", b));
}

/* Nothing that was tried was better. */
static bool is_pretrained(const writer *w) {
    const char *text = w->tune ? kith_card_text(w->tune, "is_pretrained") : NULL;
    return text && strcmp(text, "true") == 0;
}

static void put_step(writer *w) {
    char a[KI_NUMBER_TEXT], b[KI_NUMBER_TEXT];
    const char *selection = text_of(w, "selection");
    if (is_pretrained(w)) {
        ki_buffer_put(w->to, "| model | the pretrained model, unchanged");
        return;
    }
    ki_buffer_put(w->to, "| model | of step %s of %s", count_of(w, "step", a), count_of(w, "steps", b));
    if (selection && strcmp(selection, "validation") == 0)
        ki_buffer_put(w->to, ", the best on validation classes");
    if (selection && strcmp(selection, "last") == 0) ki_buffer_put(w->to, ", the last");
    if (selection && strcmp(selection, "test") == 0)
        ki_buffer_put(w->to, ", **the best on the test classes themselves**");
}

static void put_making(writer *w) {
    char a[KI_NUMBER_TEXT];
    put_step(w);
    ki_buffer_put(w->to, " |\n| made by | ");
    put_fact(w, "kith", "kith ", "");
    put_hash(w, "commit", ", commit ");
    put_fact(w, "device", ", on ", "");
    put_fact(w, "precision", ", ", "");
    put_fact(w, "seed", ", seed ", "");
    if (!isnan(real_of(w, "seconds")))
        ki_buffer_put(w->to, ", %s s of training", ki_number_text(real_of(w, "seconds"), 3, a));
    ki_buffer_put(w->to, " |\n");
    put_hash(w, "recipe_sha256", "| recipe | below, SHA-256 ");
    if (text_of(w, "recipe_sha256")) ki_buffer_put(w->to, " |\n");
}

/* ---- scores ---- */

static void put_score(writer *w, const char *block, const char *key) {
    char path[96];
    ki_snprintf(path, sizeof path, "%s.%s", block, key);
    const double value = real_of(w, path);
    ki_snprintf(path, sizeof path, "%s.intervals.%s.0", block, key);
    const double low = real_of(w, path);
    ki_snprintf(path, sizeof path, "%s.intervals.%s.1", block, key);
    const double high = real_of(w, path);
    if (isnan(value))
        ki_buffer_put(w->to, " |");
    else if (isnan(low) || isnan(high))
        ki_buffer_put(w->to, " %.1f |", 100 * value);
    else
        ki_buffer_put(w->to, " %.1f (%.1f to %.1f) |", 100 * value, 100 * low, 100 * high);
}

/* The run's own scores before training are those of a layer that was already fitted. */
static void put_pretrained(writer *w) {
    double recall = NAN, map = NAN;
    if (!kith_card_real(w->tune, "pretrained_test.recall_at_1", &recall) ||
        !kith_card_real(w->tune, "pretrained_test.map_at_r", &map))
        return;
    ki_buffer_put(w->to, "| the same, by the pretrained model | %.1f | | %.1f | |\n", 100 * recall,
                  100 * map);
}

static void put_scores(writer *w) {
    static const struct {
        const char *block, *title;
    } rows[] = {{"test", "classes never seen (test)"},
                {"untrained", "the same, before training"},
                {"validation", "validation classes"},
                {"seen", "training classes"}};
    char path[64];
    ki_buffer_put(w->to,
                  "\n## Scores\nIn percent, with 95 %% intervals over queries: how often the nearest item is "
                  "of the same class (R@1), and how good\nthe whole list is (MAP@R).\n\n"
                  "| | R@1 | R@4 | MAP@R | NMI |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (w->tune && strcmp(rows[i].block, "untrained") == 0) {
            put_pretrained(w);
            continue;
        }
        ki_snprintf(path, sizeof path, "%s.map_at_r", rows[i].block);
        if (!text_of(w, path)) continue;
        ki_buffer_put(w->to, "| %s |", rows[i].title);
        put_score(w, rows[i].block, "recall.1");
        put_score(w, rows[i].block, "recall.4");
        put_score(w, rows[i].block, "map_at_r");
        put_score(w, rows[i].block, "nmi");
        ki_buffer_put(w->to, "\n");
    }
}

static void put_error_rates(writer *w) {
    char path[64], a[KI_NUMBER_TEXT], b[KI_NUMBER_TEXT], c[KI_NUMBER_TEXT];
    const char *source = text_of(w, "error_rates.source");
    ki_buffer_put(w->to, "\n## Error rates\n");
    if (!text_of(w, "error_rates.at.0.threshold")) {
        ki_buffer_put(w->to,
                      "Not known: no classes were held out for validation. `kith index INDEX "
                      "--calibrate PHOTOS` measures them on photos of yours.\n");
        return;
    }
    ki_buffer_put(w->to,
                  "Of %s pairs of one class and %s pairs of two, of %s %s classes. A pair matches when its "
                  "score reaches the threshold.\nThese rates are of classes like those; kinds that are more "
                  "alike are confused more often.\n\n"
                  "| false matches among pairs of two classes | threshold | matches found among pairs of one "
                  "class |\n|---|---|---|\n",
                  count_of(w, "error_rates.same_pairs", a), count_of(w, "error_rates.different_pairs", b),
                  count_of(w, "error_rates.classes", c),
                  source && strcmp(source, "cross-validation") == 0 ? "held-out" : "validation");
    for (int i = 0; i < 8; i++) {
        ki_snprintf(path, sizeof path, "error_rates.at.%d.false_match_rate", i);
        const double rate = real_of(w, path);
        ki_snprintf(path, sizeof path, "error_rates.at.%d.threshold", i);
        const double threshold = real_of(w, path);
        ki_snprintf(path, sizeof path, "error_rates.at.%d.match_rate", i);
        if (isnan(rate)) return;
        ki_buffer_put(w->to, "| %s %% | %s | %.1f %% |\n", ki_number_text(100 * rate, 2, a),
                      ki_number_text(threshold, 4, b), 100 * real_of(w, path));
    }
}

/* ---- use and limits ---- */

static void put_use(writer *w) {
    const bool is_images = text_of(w, "resize") != NULL;
    ki_buffer_put(w->to, "\n## How to use it\n```sh\n");
    if (is_images)
        ki_buffer_put(w->to,
                      "kith index PHOTOS -o photos.kith --model model.safetensors   # then:\n"
                      "kith search photos.kith PHOTO.jpg\n"
                      "kith embed model.safetensors PHOTOS -o embeddings.npy\n");
    else
        ki_buffer_put(w->to,
                      "kith embed model.safetensors FEATURES.npy -o embeddings.npy\n"
                      "kith index FEATURES.npy -o features.kith --model model.safetensors\n");
    ki_buffer_put(w->to,
                  "```\n\n```python\nimport kith\nmodel = kith.Model(\"model.safetensors\")\n```\n\n"
                  "From C: `kith_model_open` with `options.weights = \"model.safetensors\"`. `kith export` "
                  "writes it as ONNX.\n");
}

static void put_limits(writer *w) {
    const char *selection = text_of(w, "selection");
    const double n_classes = real_of(w, "test.classes"), n_unreadable = real_of(w, "n_unreadable");
    char a[KI_NUMBER_TEXT];
    ki_buffer_put(w->to,
                  "\n## What it is not for\n"
                  "* It says how alike two items are, not what they are, and a score is no probability.\n"
                  "* The figures above are of the data above. On other kinds of pictures, other cameras or "
                  "other classes expect less, and measure first (`kith eval`).\n"
                  "* A match is a hint for a person to look at. Decide nothing about people by it alone.\n");
    if (!text_of(w, "test.queries"))
        ki_buffer_put(w->to,
                      "* It was not scored on test classes: nothing says how it does on unseen ones but "
                      "the validation classes, by which choices were made.\n");
    else if (n_classes < 20)
        ki_buffer_put(w->to,
                      "* It was tested on %s classes only, and other classes may do quite differently.\n",
                      ki_count_text(n_classes, a));
    if (selection && strcmp(selection, "test") == 0)
        ki_buffer_put(w->to,
                      "* Its step was chosen on the test classes, so the scores of these flatter it.\n");
    if (n_unreadable > 0)
        ki_buffer_put(w->to, "* %s images of its data could not be read, and others took their places.\n",
                      ki_count_text(n_unreadable, a));
}

/* A block of code with a fence that is longer than any row of backticks inside. */
static void put_recipe(writer *w, const char *recipe) {
    size_t longest = 2;
    for (const char *at = strchr(recipe, '`'); at; at = strchr(at, '`')) {
        const size_t n = strspn(at, "`");
        if (n > longest) longest = n;
        at += n;
    }
    ki_buffer_put(w->to, "\n## Recipe\n");
    for (size_t i = 0; i <= longest; i++) ki_buffer_add(w->to, "`", 1);
    ki_buffer_put(w->to, "yaml\n%s%s", recipe, *recipe && recipe[strlen(recipe) - 1] == '\n' ? "" : "\n");
    for (size_t i = 0; i <= longest; i++) ki_buffer_add(w->to, "`", 1);
    ki_buffer_put(w->to, "\n");
}

kith_status ki_model_card_make(const kith_card *card, const kith_card *tune, const char *recipe,
                               ki_buffer *to, kith_error *err) {
    writer w = {.card = card, .tune = tune, .to = to};
    to->err = err;
    ki_buffer_put(to, "# ");
    put_fact(&w, "backbone", "", "");
    put_fact(&w, "embedding_size", ", ", " numbers");
    put_fact(&w, "data", ", trained on ", "");
    ki_buffer_put(to, "\n\n| | |\n|---|---|\n");
    put_network(&w);
    put_data(&w);
    put_making(&w);
    put_scores(&w);
    put_error_rates(&w);
    put_use(&w);
    put_limits(&w);
    if (recipe) put_recipe(&w, recipe);
    return to->status;
}
