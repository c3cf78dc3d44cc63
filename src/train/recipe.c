/* Reading a recipe: overrides, checks, defaults, and then every section as a struct. */
#include "train/recipe.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "base/text.h"
#include "data/input.h"
#include "data/section.h"
#include "embed/views.h"
#include "io/yaml.h"
#include "kith/eval.h"
#include "net/general.h"
#include "net/model_file.h"
#include "net/net.h"
#include "objective/objective.h"
#include "train/sided.h"

static const char *const precision_names[] = {"float32", "bf16", NULL};
/* ki_start_names, and KI_START_OF_AXES … */
static const char *const init_names[] = {"he", "glorot", "caffe", "torch", "small", "pca", "white", NULL};
static const char *const bn_names[] = {"batch", "frozen", NULL};
static const char *const metric_names[] = {"map_at_r", "r_at_1", NULL};
static const char *const select_names[] = {"validation", "test", "last", NULL};

#define ROW_TREE(name_, field, shown_, help_)                                            \
    {                                                                                    \
        .name = (name_), .type = KI_OPTION_T_TREE, .offset = offsetof(ki_recipe, field), \
        .def_text = (shown_), .help = (help_), .source = "ours"                          \
    }

static const ki_option top_options[] = {
    ROW_TREE("data", data, "{}", "the images or features and how they are split"),
    ROW_TREE("input", input, "{}", "from image file to network input"),
    ROW_TREE("model", model_map, "{}", "the network"),
    ROW_TREE("teachers", teachers_list, "none", "other networks that it learns from: a list"),
    ROW_TREE("batch", batch_map, "{}", "what a batch is made of"),
    ROW_TREE("objective", objective, "{}", "loss, miner, regularizers"),
    ROW_TREE("optim", optim_map, "{}", "optimizer, learning rate, length"),
    ROW_TREE("eval", eval_map, "{}", "when and how the network is judged"),
    ROW_TREE("checkpoint", checkpoint_map, "{}", "what is kept for resuming"),
    ROW_TREE("loader", loader_map, "{}", "reading images; changes no number"),
    KI_OPTION_INT(ki_recipe, seed, 0, 0, 0x1p53, "seed of all random choices except the split of classes",
                  "ours"),
    KI_OPTION_INT(ki_recipe, folds, 1, 1, 100,
                  "cross-validation over the training classes: the number of runs, each of which holds out "
                  "another part",
                  "ours"),
    KI_OPTION_INT(ki_recipe, seeds, 1, 1, 100, "repeat the run with this many seeds, from `seed` on", "ours"),
    KI_OPTION_TEXT(ki_recipe, device, "cpu", "cpu, cuda, cuda:1 …, or ref, the slow reference", "ours"),
    KI_OPTION_CHOICE(ki_recipe, precision, 0, precision_names, "of activations and products", "ours"),
    KI_OPTION_BOOL(ki_recipe, tf32, 0, "cuda: float32 products may use TF32", "ours"),
    KI_OPTION_BOOL(ki_recipe, deterministic, 1, "the same bits in every run", "ours"),
    KI_OPTION_INT(ki_recipe, threads, 0, 0, KI_MOST_THREADS,
                  "compute threads; 0: all cores. Changes the rounding of sums on the cpu", "ours"),
    KI_OPTION_INT(ki_recipe, log_every, 10, 1, 1e9, "steps between lines of log.jsonl", "ours"),
    KI_OPTION_END};

static const ki_option model_options[] = {
    KI_OPTION_TEXT(ki_recipe_model, backbone, "",
                   "the network (see `kith list backbones`); empty: that of the weights", "ours"),
    KI_OPTION_TEXT(ki_recipe_model, weights, "",
                   "a safetensors file or a run to start from; empty: random weights, or general if no "
                   "backbone is named",
                   "ours"),
    KI_OPTION_INT(ki_recipe_model, embedding, 512, 1, 1 << 20, "size of the embedding", "ECAML, HORDE, JRD"),
    KI_OPTION_BOOL(ki_recipe_model, embedding_bias, 1, "the embedding layer has a bias", "ECAML"),
    KI_OPTION_LATER(
        CHOICE, ki_recipe_model, embedding_init, KI_START_HE, init_names,
        "start of the embedding layer: uniform within sqrt(6 / in), sqrt(6 / (in + out)), sqrt(3 / in), "
        "sqrt(1 / in) or 0.02 sqrt(3); pca, white: the principal axes of the pooled features of training "
        "images, plain or whitened",
        "glorot: HORDE code; caffe: ECAML; torch: JRD code"),
    KI_OPTION_CHOICE(ki_recipe_model, pool, 0, ki_pooling_names, "pooling of the last feature map",
                     "HORDE, JRD; max: multi-similarity"),
    KI_OPTION_CHOICE(
        ki_recipe_model, bn, 0, bn_names,
        "batch norms use the batch's statistics, or (frozen) the running ones of the weights file",
        "JRD freezes them"),
    KI_OPTION_LATER(
        BOOL, ki_recipe_model, whiten, 0,
        "at the end, whiten the embedding layer on training images: directions in which these hardly "
        "differ count too",
        "Jegou and Chum 2012"),
    KI_OPTION_LATER(INT, ki_recipe_model, heads, 1, 1, 64,
                    "heads of an attention-based ensemble, which share all weights; 1: a plain network",
                    "Kim et al. 2018 and HORDE: 8"),
    KI_OPTION_LATER(
        REAL, ki_recipe_model, mask_gain, 1, 1e-6, 1e3,
        "heads: start of what masks are the sigmoids of, times the Glorot bound; with a small one masks "
        "begin near one half",
        "1: HORDE code"),
    KI_OPTION_LATER(REAL, ki_recipe_model, mask_bias, 0, -100, 100,
                    "heads: start of the masks' biases; above 0 masks begin nearer to 1", "0: HORDE code"),
    KI_OPTION_LATER(
        INT, ki_recipe_model, map_channels, 0, 0, 65536,
        "channels of a 1x1 convolution between the last feature map and the terms that read it; 0: none",
        "HORDE code with an ensemble: 1024"),
    KI_OPTION_LATER(
        TEXT, ki_recipe_model, freeze, "",
        "what does not learn: the network up to the end of this stage, block or layer, or backbone; "
        "empty: nothing",
        "ours"),
    KI_OPTION_LATER(
        BOOL, ki_recipe_model, frozen, 0,
        "the network is computed once for each view of an image, and the embedding layer alone learns from "
        "that",
        "ours"),
    KI_OPTION_LATER(INT, ki_recipe_model, views, 8, 1, 1024,
                    "frozen: views of every training image; the first is that of tests", "ours"),
    KI_OPTION_TREE(ki_recipe_model, lora, "none",
                   "low-rank additions to linear layers learn instead of the backbone: {rank, alpha, layers}",
                   "Hu et al. 2022"),
    KI_OPTION_TREE(ki_recipe_model, settings, "{}", "the backbone's own options", "ours"),
    KI_OPTION_END};

/* For lists: the section is read by objective/parse.c. */
typedef struct objective_section {
    const ki_value *loss, *miner, *memory, *nested, *nested_weights, *regularizers;
} objective_section;

static const ki_option objective_options[] = {
    KI_OPTION_TREE(objective_section, loss, "none", "{name: …, options}: see `kith list losses`", "ours"),
    KI_OPTION_TREE(objective_section, miner, "all", "{name: …, options}: see `kith list miners`", "ours"),
    KI_OPTION_TREE(objective_section, memory, "{}", "cross-batch memory: {size: embeddings, warmup: steps}",
                   "XBM"),
    KI_OPTION_LATER(
        TREE, objective_section, nested, "[]",
        "widths: the loss is evaluated on the first numbers of the embedding, too: [32, 64, 128, 512]",
        "Kusupati et al. 2022"),
    KI_OPTION_LATER(TREE, objective_section, nested_weights, "[]", "a weight for each of them; empty: equal",
                    "ours"),
    KI_OPTION_TREE(objective_section, regularizers, "[]",
                   "list of {name: …, weight, warmup, options}: see `kith list regularizers`", "ours"),
    KI_OPTION_END};

/* Part of what identifies a run, so it stays. */
#define ROW_LISTED                                                                                  \
    {                                                                                               \
        .name = "all_orders", .type = KI_OPTION_T_BOOL, .offset = offsetof(ki_recipe_eval, listed), \
        .def = 1,                                                                                   \
        .help = "score the variants that a regularizer lists; eval.variants, where given, decides", \
        .source = "HORDE Table 1"                                                                   \
    }

static const ki_option eval_options[] = {
    KI_OPTION_INT(ki_recipe_eval, every, 500, 0, 1e12,
                  "steps between evaluations; 0: only at the start and at the end", "ours"),
    KI_OPTION_TREE(ki_recipe_eval, k, "[1, 2, 4, 8]", "R@K for these", "ECAML"),
    KI_OPTION_CHOICE(ki_recipe_eval, metric, 0, metric_names, "what the best model is chosen by",
                     "Musgrave et al. 2020"),
    KI_OPTION_CHOICE(ki_recipe_eval, select, 0, select_names,
                     "classes that the best model is chosen on; last: no choice, the model of the last step",
                     "ours"),
    KI_OPTION_INT(ki_recipe_eval, patience, 0, 0, 1e9,
                  "evaluations without a better score before the run stops; 0: never", "ours"),
    KI_OPTION_BOOL(ki_recipe_eval, seen, 1, "score images of training classes too", "ECAML Fig. 2"),
    KI_OPTION_INT(ki_recipe_eval, max_seen, 5000, 2, 1e12,
                  "at most this many images of training classes are scored", "ours"),
    KI_OPTION_BOOL(ki_recipe_eval, untrained, 1, "score the test classes with the starting network too",
                   "ours"),
    KI_OPTION_BOOL(ki_recipe_eval, test, 1,
                   "score the test classes; false: leave them out, as a search for settings should", "ours"),
    KI_OPTION_BOOL(ki_recipe_eval, watch_test, 0,
                   "score the test classes at every evaluation too; nothing is chosen by these scores",
                   "the papers' figures are of the best step on test"),
    KI_OPTION_BOOL(ki_recipe_eval, clustering, 1, "NMI, AMI and F1 of the test classes, at the end",
                   "ECAML, DML-DA"),
    ROW_LISTED,
    KI_OPTION_TREE(ki_recipe_eval, variants, "those that a regularizer lists",
                   "other vectors to score by: true (all that there are), false, or a list of names as "
                   "[embedding_white]",
                   "HORDE Table 1; Jegou and Chum 2012"),
    KI_OPTION_INT(ki_recipe_eval, batch, 0, 0, 65536, "images per pass; 0: as in training", "ours"),
    KI_OPTION_LATER(INT, ki_recipe_eval, views, 1, 1, 10,
                    "views of every image that is scored, whose vectors are averaged: 2: the picture and its "
                    "mirror image, up to 10: also crops at its corners",
                    "Krizhevsky et al. 2012"),
    KI_OPTION_END};

typedef struct checkpoint_section {
    int64_t every, keep;
    double minutes;
} checkpoint_section;

static const ki_option checkpoint_options[] = {
    KI_OPTION_INT(checkpoint_section, every, 500, 1, 1e12, "steps between checkpoints", "ours"),
    KI_OPTION_REAL(checkpoint_section, minutes, 10, 0, 1e6,
                   "… or minutes between them, whichever comes first; 0: steps alone", "ours"),
    KI_OPTION_INT(checkpoint_section, keep, 2, 1, 1e6, "how many of the last are kept", "ours"),
    KI_OPTION_END};

typedef struct loader_section {
    int64_t workers, cache, ahead, bad;
    const char *features;
} loader_section;

static const ki_option loader_options[] = {
    KI_OPTION_INT(loader_section, workers, 0, 0, 256, "threads that read images; 0: one per core", "ours"),
    KI_OPTION_INT(loader_section, cache, 1024, 0, 1 << 24,
                  "MiB for images already decoded and resized, on each machine; at most half of its memory",
                  "ours"),
    KI_OPTION_INT(loader_section, ahead, 3, 1, 1024, "finished batches waiting at most", "ours"),
    KI_OPTION_INT(loader_section, bad, 100, -1, 1e12, "unreadable images tolerated; -1: any number", "ours"),
    KI_OPTION_LATER(TEXT, loader_section, features, "",
                    "model.frozen: a folder that keeps features for other runs too; empty: the run's own",
                    "ours"),
    KI_OPTION_END};

static const ki_recipe_section sections[] = {
    {"", "the top level: the sections below, and what concerns the whole run", top_options, false},
    {"data", "the images or features and how they are split", ki_data_options, false},
    {"input", "from image file to network input; features have none", ki_input_options, false},
    {"model", "the network", model_options, false},
    {"batch", "what a batch is made of", ki_sampler_options, false},
    {"objective", "what the network learns", objective_options, false},
    {"optim", "optimizer, learning rate, length", ki_optim_options, false},
    {"eval", "when and how the network is judged", eval_options, false},
    {"checkpoint", "what is kept for resuming", checkpoint_options, false},
    {"loader", "reading images; changes no number", loader_options, false},
    {"teachers", "an item of the list: another network that it learns from", ki_recipe_teacher_options, true},
    {"model.lora", "what learns instead of the backbone, where it is given", ki_recipe_lora_options, true},
};

const ki_recipe_section *ki_recipe_section_at(size_t i) {
    return i < sizeof sections / sizeof sections[0] ? &sections[i] : NULL;
}

/* ---- the tree ---- */

/* The keys that name files, of a section or of the items of one that is a list. They say where things are, not what they are. */
static const struct place {
    const char *section, *key;
} places[] = {{"data", "root"},     {"data", "features"},    {"data", "labels"},    {"data", "split"},
              {"model", "weights"}, {"teachers", "weights"}, {"loader", "features"}};
enum { N_PLACES = sizeof places / sizeof places[0] };

/* "data.root" and "data.1.root" */
static bool is_place(const char *path) {
    for (size_t i = 0; i < N_PLACES; i++) {
        const size_t n = strlen(places[i].section);
        if (strncmp(path, places[i].section, n) != 0 || path[n] != '.') continue;
        const char *key = path + n + 1, *digits = key + strspn(key, "0123456789");
        if (digits > key && *digits == '.') key = digits + 1;
        if (strcmp(key, places[i].key) == 0) return true;
    }
    return false;
}

/* What the tree has under "data.1.root"; NULL: nothing. */
static ki_value *at_path(ki_value *v, const char *path) {
    char key[64];
    while (v && *path) {
        const size_t n = strcspn(path, ".");
        int64_t i = 0;
        if (n == 0 || n >= sizeof key) return NULL;
        memcpy(key, path, n);
        key[n] = '\0';
        if (v->kind == KI_VALUE_LIST)
            v = ki_parse_int64(key, &i) && i >= 0 ? (ki_value *)ki_value_at(v, (size_t)i) : NULL;
        else
            v = (ki_value *)ki_value_get(v, key);
        path += n + (path[n] == '.');
    }
    return v;
}

/* `general` and `hub:NAME` are found from everywhere. */
static bool is_name(const char *key, const char *text) {
    return strcmp(key, "weights") == 0 && ki_model_file_is_name(text);
}

/* Paths from --set are relative to the working folder; paths in the run's recipe may be relative to another. */
static kith_status anchor_set(ki_recipe *r, const char *set, kith_error *err) {
    char key[128];
    ki_path path;
    const size_t n = strcspn(set, "=");
    if (n >= sizeof key) return KITH_OK;
    memcpy(key, set, n);
    key[n] = '\0';
    if (!is_place(key)) return KITH_OK;
    ki_value *v = at_path(r->root, key);
    if (v && v->kind == KI_VALUE_SCALAR && strcmp(v->text, "false") == 0) return KITH_OK; /* labels: false */
    if (!v || v->kind != KI_VALUE_SCALAR || !*v->text) return KITH_OK;
    if (is_name(strrchr(key, '.') + 1, v->text)) return KITH_OK;
    KI_TRY(ki_paths_absolute(v->text, &path, err));
    v->text = ki_arena_strdup(&r->arena, path.s);
    return v->text ? KITH_OK : ki_fail_memory(err, strlen(path.s), "a path");
}

/* Unless the run began beside a file that is called so. */
static bool stays_a_name(const ki_recipe *r, const ki_value *map, const char *key) {
    const ki_value *v = ki_value_get(map, key);
    ki_path path;
    return v && v->kind == KI_VALUE_SCALAR && is_name(key, v->text) &&
           (ki_run_paths_find(&r->paths, v->text, &path, NULL) != KITH_OK || access(path.s, F_OK) != 0);
}

static kith_status resolve_places(ki_recipe *r, kith_error *err) {
    for (size_t i = 0; i < N_PLACES; i++) {
        const ki_value *section = ki_value_get(r->root, places[i].section);
        const bool is_list = section && section->kind == KI_VALUE_LIST;
        for (const ki_value *v = is_list ? section->first : section; v; v = is_list ? v->next : NULL) {
            if (strcmp(places[i].key, "labels") == 0 && ki_data_lacks_labels(v)) continue;
            if (stays_a_name(r, v, places[i].key)) continue;
            KI_TRY(ki_run_paths_resolve(&r->paths, &r->arena, v, places[i].key, err));
        }
    }
    return KITH_OK;
}

static kith_status read_tree(const ki_recipe_source *source, ki_recipe *r, kith_error *err) {
    if (source->paths) r->paths = *source->paths;
    if (!source->text) KI_TRY(ki_run_paths_beside(source->path, &r->paths, err));
    if (source->text)
        KI_TRY(ki_yaml_parse(source->text, strlen(source->text), "the recipe", &r->arena, &r->root, err));
    else
        KI_TRY(ki_yaml_read(source->path, &r->arena, &r->root, err));
    if (r->root->kind == KI_VALUE_NULL) r->root->kind = KI_VALUE_MAP;
    if (r->root->kind != KI_VALUE_MAP) {
        char found[80];
        return ki_fail(err, KITH_EFORMAT, "the recipe is %s; wanted a map with data, model, objective …",
                       ki_value_describe(r->root, found, sizeof found));
    }
    for (size_t i = 0; i < source->n_sets; i++) {
        KI_TRY(ki_recipe_set(&r->arena, r->root, source->sets[i], err));
        if (r->paths.is_there) KI_TRY(anchor_set(r, source->sets[i], err));
    }
    ki_value_drop_nothings(r->root);
    return KITH_OK;
}

/* Replace the section by one with every key. */
static kith_status fill_section(ki_recipe *r, const ki_recipe_section *section, kith_error *err) {
    ki_value *filled = NULL;
    const ki_value *given = ki_value_get(r->root, section->name);
    if (given && given->kind == KI_VALUE_LIST && strcmp(section->name, "data") == 0)
        return ki_recipe_fill_list(&r->arena, section->options, (ki_value *)given, err);
    if (strcmp(section->name, "optim") == 0)
        KI_TRY(ki_recipe_fill_optim(&r->arena, given, &filled, err));
    else if (strcmp(section->name, "objective") == 0)
        KI_TRY(ki_recipe_fill_objective(&r->arena, given, &filled, err));
    else if (section->options == ki_input_options)
        KI_TRY(ki_recipe_fill_input(&r->arena, section->options, given, &filled, err));
    else if (strcmp(section->name, "model") == 0)
        KI_TRY(ki_recipe_fill_model(&r->arena, section->options, given, &filled, err));
    else
        KI_TRY(ki_recipe_fill(&r->arena, section->options, given, &filled, err));
    for (ki_value *v = r->root->first; v; v = v->next) {
        if (strcmp(v->key, section->name) != 0) continue;
        v->kind = KI_VALUE_MAP;
        v->text = NULL;
        v->first = filled->first;
        v->last = filled->last;
        v->n_items = filled->n_items;
        return KITH_OK;
    }
    return ki_fail(err, KITH_EINTERNAL, "section %s is not there", section->name);
}

static kith_status fill(ki_recipe *r, kith_error *err) {
    ki_value *top = NULL;
    KI_TRY(ki_recipe_fill(&r->arena, top_options, r->root, &top, err));
    r->root = top;
    for (size_t i = 1; i < sizeof sections / sizeof sections[0]; i++) {
        /* Features go to the network as they are. */
        if (sections[i].is_inner || (r->is_features && sections[i].options == ki_input_options)) continue;
        KI_TRY(fill_section(r, &sections[i], err));
    }
    ki_value *teachers = (ki_value *)ki_value_get(r->root, "teachers");
    if (teachers && teachers->kind == KI_VALUE_LIST)
        KI_TRY(ki_recipe_fill_list(&r->arena, ki_recipe_teacher_options, teachers, err));
    return KITH_OK;
}

/* Of a set without classes nothing can be held out. */
static bool says_what_validates(const ki_value *set) {
    static const char *const keys[] = {"validation", "folds", "split"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (ki_value_get(set, keys[i])) return true;
    }
    return ki_data_lacks_labels(set);
}

/* Fair by default: if the recipe does not mention validation, part of the training classes is held out. */
static kith_status hold_out(ki_recipe *r, kith_error *err) {
    ki_value *data = (ki_value *)ki_value_get(r->root, "data");
    const ki_value *eval = ki_value_get(r->root, "eval"), *select = ki_value_get(eval, "select");
    if (!data || (select && select->kind == KI_VALUE_SCALAR && strcmp(select->text, "validation") != 0))
        return KITH_OK;
    const ki_value *folds = ki_value_get(r->root, "folds");
    if (folds && folds->kind == KI_VALUE_SCALAR && strcmp(folds->text, "1") != 0) return KITH_OK;
    if (data->kind != KI_VALUE_LIST)
        return says_what_validates(data) ? KITH_OK
                                         : ki_recipe_set(&r->arena, r->root, "data.validation=0.2", err);
    char set[48];
    int i = 0;
    for (const ki_value *v = data->first; v; v = v->next, i++) {
        ki_snprintf(set, sizeof set, "data.%d.validation=0.2", i);
        if (!says_what_validates(v)) KI_TRY(ki_recipe_set(&r->arena, r->root, set, err));
    }
    return KITH_OK;
}

/* ---- the sections ---- */

/* Images go with a backbone that takes images, features with one that takes features. */
static kith_status check_backbone(const ki_recipe *r, kith_error *err) {
    const ki_backbone *backbone = NULL;
    const kith_status status = ki_backbone_find(r->model.backbone, &backbone, err);
    if (status != KITH_OK) return ki_prefix(err, status, "model");
    if ((backbone->vector > 0) == r->is_features) return KITH_OK;
    if (!r->is_features) {
        ki_fail(err, KITH_EINVAL, "model: %s takes features, and the data is images", backbone->name);
        return ki_hint(err, KITH_EINVAL, "name a .npy file of features as data.features");
    }
    ki_fail(err, KITH_EINVAL, "model: %s takes images, and the data is features", backbone->name);
    return ki_hint(err, KITH_EINVAL, "wanted model.backbone: none (the embedding layer alone) or mlp");
}

/* The folder of a run stands for its model. */
static kith_status find_weights(ki_recipe *r, kith_error *err) {
    char file[PATH_MAX];
    if (!*r->model.weights) return KITH_OK;
    const kith_status status = ki_model_file_find(r->model.weights, file, sizeof file, err);
    /* A run that has a checkpoint goes on without them; ki_train_check_weights says it to one that has not. */
    if (status == KITH_ENOTFOUND && ki_model_file_is_name(r->model.weights)) return KITH_OK;
    if (status != KITH_OK) return ki_prefix(err, status, "model.weights");
    r->model.weights = ki_arena_strdup(&r->arena, file);
    return r->model.weights ? KITH_OK : ki_fail_memory(err, strlen(file), "a path");
}

/* Where neither a network nor weights are named, images start from the model that came with kith. */
static kith_status take_general(ki_recipe *r, kith_error *err) {
    char file[PATH_MAX];
    kith_error ignored;
    if (*r->model.backbone || *r->model.weights) return KITH_OK;
    if (r->is_features || ki_general_find(file, sizeof file, &ignored) != KITH_OK) {
        ki_fail(err, KITH_EINVAL, "model: there is neither a backbone nor a weights file");
        return ki_hint(err, KITH_EINVAL, "write model: {backbone: …}; `kith list backbones` prints them");
    }
    r->model.weights = KI_GENERAL;
    r->is_from_general = true;
    return KITH_OK;
}

/* Where nothing of the network learns, nothing that changes it can be asked for. */
static kith_status check_frozen(const ki_recipe *r, kith_error *err) {
    const ki_recipe_model *m = &r->model;
    const char *other = r->is_features      ? "data.features: they are features already"
                        : *m->freeze        ? "model.freeze"
                        : r->adapt.rank > 0 ? "model.lora"
                        : m->heads > 1      ? "model.heads"
                        : m->map_channels   ? "model.map_channels"
                        : r->sides.n        ? "input.sides: its features are of one size"
                        : r->teachers_list && r->teachers_list->n_items > 0 ? "teachers, which see images"
                                                                            : NULL;
    if (!m->frozen || !other) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "model: frozen does not go with %s", other);
    return ki_hint(err, KITH_EINVAL, "frozen trains the embedding layer alone; leave one of the two out");
}

static kith_status read_model(ki_recipe *r, kith_error *err) {
    KI_TRY(ki_options_parse(model_options, r->model_map, NULL, "model", &r->model, err));
    KI_TRY(ki_recipe_read_adaptation(r, err));
    KI_TRY(check_frozen(r, err));
    KI_TRY(take_general(r, err));
    KI_TRY(find_weights(r, err));
    const ki_recipe_model *m = &r->model;
    if (!*m->backbone) return KITH_OK;
    KI_TRY(check_backbone(r, err));
    /* Only the graph is built: sizes that do not fit and unknown options are found here. How many numbers a feature has
     * the data will say. */
    ki_net net = {0};
    const ki_net_options options = {.backbone = m->backbone,
                                    .settings = m->settings,
                                    .c = r->is_features ? 0 : r->train.channels,
                                    .h = r->is_features ? 0 : r->train.crop_to,
                                    .w = r->is_features ? 0 : r->train.crop_to,
                                    .pool = (ki_pooling)m->pool,
                                    .embedding = m->embedding,
                                    .heads = m->heads,
                                    .map_channels = m->map_channels,
                                    .adapt = r->adapt};
    kith_status status = ki_net_init(&options, &net, err);
    if (status == KITH_OK) status = ki_sided_check(&net, &r->sides, err);
    ki_net_release(&net);
    return status == KITH_OK ? status : ki_prefix(err, status, "model");
}

static kith_status read_k(ki_recipe *r, kith_error *err) {
    static const int64_t usual[] = {1, 2, 4, 8};
    const ki_value *list = r->eval.k;
    if (!list || list->kind == KI_VALUE_NULL) {
        r->n_k = 4;
        memcpy(r->k, usual, sizeof usual);
        return KITH_OK;
    }
    bool good = list->kind == KI_VALUE_LIST && list->n_items >= 1 && list->n_items <= KITH_MOST_K;
    int64_t before = 0;
    r->n_k = 0;
    for (const ki_value *v = good ? list->first : NULL; v && good; v = v->next) {
        int64_t k = 0;
        good =
            v->kind == KI_VALUE_SCALAR && ki_parse_whole(v->text, &k) && k > before && (before > 0 || k == 1);
        r->k[r->n_k++] = before = k;
    }
    if (good) return KITH_OK;
    char found[80];
    return ki_fail(err, KITH_EINVAL,
                   "eval: k is %s; wanted rising whole numbers that begin with 1: [1, 2, 4, 8]",
                   ki_value_describe(list, found, sizeof found));
}

static kith_status read_optim(ki_recipe *r, kith_error *err) {
    KI_TRY(ki_optim_parse(r->optim_map, &r->optim, err));
    if (r->optim.schedule.steps > 0 || r->optim.schedule.epochs > 0) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "optim: neither steps nor epochs is given");
    return ki_hint(err, KITH_EINVAL, "say how long to train, as in optim: {steps: 5000}");
}

/* A name that the objective does not have is found before anything else is read. */
static kith_status check_variant(const ki_objective *objective, const char *name, kith_error *err) {
    ki_variant all[KI_MOST_VARIANTS];
    const char *names[KI_MOST_VARIANTS];
    size_t n = ki_objective_variants(objective, all, KI_MOST_VARIANTS);
    if (n > KI_MOST_VARIANTS) n = KI_MOST_VARIANTS;
    for (size_t i = 0; i < n; i++) {
        names[i] = all[i].name;
        if (strcmp(name, names[i]) == 0) return KITH_OK;
    }
    return ki_prefix(err, ki_fail_unknown(err, "variant", name, names, n), "eval.variants");
}

static kith_status name_variants(ki_recipe *r, const ki_value *list, kith_error *err) {
    r->n_variants = 0;
    for (const ki_value *v = list->first; v; v = v->next) {
        char found[80];
        if (v->kind != KI_VALUE_SCALAR || r->n_variants == KI_MOST_VARIANTS)
            return ki_fail(err, KITH_EINVAL, "eval: variants has %s; wanted at most %d names",
                           ki_value_describe(v, found, sizeof found), KI_MOST_VARIANTS);
        r->variant[r->n_variants++] = v->text;
    }
    return KITH_OK;
}

static kith_status read_variants(ki_recipe *r, const ki_objective *objective, kith_error *err) {
    const ki_value *given = r->eval.variants;
    char found[80];
    r->variants = r->eval.listed ? KI_VARIANTS_LISTED : KI_VARIANTS_NONE;
    if (!given || given->kind == KI_VALUE_NULL) return KITH_OK;
    if (given->kind == KI_VALUE_LIST) {
        r->variants = given->n_items ? KI_VARIANTS_NAMED : KI_VARIANTS_NONE;
        KI_TRY(name_variants(r, given, err));
        for (size_t i = 0; i < r->n_variants; i++) KI_TRY(check_variant(objective, r->variant[i], err));
        return KITH_OK;
    }
    const bool is_true = given->kind == KI_VALUE_SCALAR && strcmp(given->text, "true") == 0,
               is_false = given->kind == KI_VALUE_SCALAR && strcmp(given->text, "false") == 0;
    r->variants = is_true ? KI_VARIANTS_ALL : KI_VARIANTS_NONE;
    if (is_true || is_false) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "eval: variants is %s; wanted true, false or a list of names",
            ki_value_describe(given, found, sizeof found));
    return ki_hint(err, KITH_EINVAL, "every network has [embedding_white]");
}

static kith_status check_objective(ki_recipe *r, kith_error *err) {
    const int64_t heads = r->model.heads;
    const ki_value *widths = ki_value_get(r->objective, "nested");
    const bool nested = widths && widths->n_items > 0;
    ki_sizes sizes = {.n_classes = 4,
                      .embedding = nested ? r->model.embedding : 16 * heads,
                      .pooled = 16,
                      .map = 16,
                      .no_map = r->is_features || r->model.frozen,
                      .heads = heads};
    for (int t = 0; t < r->n_teachers; t++) sizes.teacher[t] = 16;
    ki_objective *objective = NULL;
    if (!r->objective) {
        ki_fail(err, KITH_EINVAL, "there is no objective: section");
        return ki_hint(err, KITH_EINVAL, "write objective: {loss: {name: …}}; see `kith list losses`");
    }
    if (nested && r->model.whiten) {
        ki_fail(err, KITH_EINVAL,
                "model.whiten with objective.nested: whitening mixes all numbers of the embedding");
        return ki_hint(err, KITH_EINVAL,
                       "leave one of them out: its first numbers would mean nothing any more");
    }
    KI_TRY(ki_objective_outline(r->objective, &sizes, &objective, err));
    kith_status status = read_variants(r, objective, err);
    r->reads_classes = ki_objective_reads_classes(objective);
    if (status == KITH_OK) status = ki_recipe_check_teachers(r, objective, err);
    ki_objective_free(objective);
    return status;
}

/* Variants are of one view: those that were not asked for are left out. */
static kith_status check_views(ki_recipe *r, kith_error *err) {
    const int64_t n = r->eval.views;
    if (n == 1) return KITH_OK;
    if (r->is_features)
        return ki_fail(err, KITH_EINVAL, "eval: %lld views, and the data is features", (long long)n);
    if (r->variants == KI_VARIANTS_ALL || r->variants == KI_VARIANTS_NAMED) {
        ki_fail(err, KITH_EINVAL, "eval: %lld views and variants, which are of one view", (long long)n);
        return ki_hint(err, KITH_EINVAL, "leave eval.variants or eval.views out");
    }
    r->variants = KI_VARIANTS_NONE;
    const kith_status status = ki_views_check(n, &r->test, err);
    return status == KITH_OK ? status : ki_prefix(err, status, "eval");
}

/* A pair loss learns from two images of one class, or two views of one, and one of another; a batch that cannot hold them teaches nothing. */
static kith_status check_batch(const ki_recipe *r, kith_error *err) {
    const ki_sampler_settings *b = &r->batch;
    const ki_value *chunk = ki_value_get(r->batch_map, "chunk");
    if (chunk && chunk->kind != KI_VALUE_NULL && !b->cached) {
        ki_fail(err, KITH_EINVAL, "batch: chunk %lld without cached: the network computes whole batches",
                (long long)b->chunk);
        return ki_hint(err, KITH_EINVAL, "write cached: true beside it, or leave chunk out");
    }
    if (!ki_objective_needs_pairs(r->objective)) return KITH_OK;
    if (ki_sampler_is_by_class(b)) {
        if (b->classes >= 2 && (b->images >= 2 || b->views >= 2)) return KITH_OK;
        ki_fail(err, KITH_EINVAL,
                "batch: %lld classes of %lld images; a pair loss wants at least 2 classes of 2 images",
                (long long)b->classes, (long long)b->images);
    } else {
        if (b->size >= 3 || (b->size == 2 && b->views >= 2)) return KITH_OK;
        ki_fail(err, KITH_EINVAL,
                "batch: %lld images; a pair loss wants at least 3: two of one class and one of another",
                (long long)b->size);
    }
    return ki_hint(err, KITH_EINVAL,
                   "make the batch larger, give each image several views (batch.views), or take a proxy loss "
                   "(see `kith list losses`) or objective.memory");
}

static kith_status read_sections(ki_recipe *r, kith_error *err) {
    checkpoint_section checkpoint;
    loader_section loader;
    KI_TRY(ki_backend_check_name(r->device, err));
    KI_TRY(ki_data_check(r->data, r->folds, err));
    r->is_features = ki_data_is_features(r->data);
    const ki_value *root = ki_value_get(r->data, "root"), *features = ki_value_get(r->data, "features");
    const bool is_list = r->data && r->data->kind == KI_VALUE_LIST;
    if (!is_list && (!root || !*root->text) && (!features || !*features->text)) {
        ki_fail(err, KITH_EINVAL, "data: there is no root");
        return ki_hint(err, KITH_EINVAL,
                       r->is_features ? "say where the features are, as in --set data.features=X.npy"
                                      : "say where the images are, as in --set data.root=photos");
    }
    if (r->is_features && r->input && r->input->n_items > 0)
        return ki_fail(err, KITH_EINVAL, "input: is for images, and the data is features; leave it out");
    KI_TRY(ki_input_parse(r->is_features ? NULL : r->input, &r->train, &r->test, err));
    KI_TRY(ki_input_sides(r->is_features ? NULL : r->input, &r->train, &r->sides, err));
    KI_TRY(read_model(r, err));
    KI_TRY(ki_recipe_read_teachers(r, err));
    KI_TRY(ki_options_parse(ki_sampler_options, r->batch_map, NULL, "batch", &r->batch, err));
    KI_TRY(ki_options_parse(eval_options, r->eval_map, NULL, "eval", &r->eval, err));
    KI_TRY(check_objective(r, err));
    KI_TRY(check_views(r, err));
    KI_TRY(check_batch(r, err));
    KI_TRY(read_optim(r, err));
    KI_TRY(read_k(r, err));
    KI_TRY(ki_options_parse(checkpoint_options, r->checkpoint_map, NULL, "checkpoint", &checkpoint, err));
    r->checkpoint_every = checkpoint.every;
    r->checkpoint_minutes = checkpoint.minutes;
    r->checkpoint_keep = checkpoint.keep;
    KI_TRY(ki_options_parse(loader_options, r->loader_map, NULL, "loader", &loader, err));
    r->workers = loader.workers;
    r->cache_mib = loader.cache;
    r->ahead = loader.ahead;
    r->most_bad = loader.bad;
    r->features_folder = loader.features;
    return KITH_OK;
}

static kith_status read_top(ki_recipe *r, kith_error *err) {
    return ki_options_parse(top_options, r->root, NULL, "recipe", r, err);
}

static bool changes_nothing(const char *key) {
    static const char *const keys[] = {"threads", "loader", "checkpoint", "log_every"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strcmp(keys[i], key) == 0) return true;
    }
    return false;
}

/* Numbers in one form: 1e-5 and 0.00001 are the same recipe, and so are 1000 and 1_000. */
static kith_status plain_numbers(ki_arena *arena, ki_value *v, kith_error *err) {
    double number = 0;
    int64_t whole = 0;
    const bool is_scalar = v->kind == KI_VALUE_SCALAR;
    const bool is_whole = is_scalar && ki_parse_whole(v->text, &whole);
    if (is_whole || (is_scalar && ki_parse_double(v->text, &number))) {
        v->text = ki_arena_printf(arena, "%.17g", is_whole ? (double)whole : number);
        if (!v->text) return ki_fail_memory(err, 1, "a recipe");
    }
    for (ki_value *item = v->first; item; item = item->next) KI_TRY(plain_numbers(arena, item, err));
    return KITH_OK;
}

static kith_status make_identity(ki_recipe *r, kith_error *err) {
    ki_value *copy = NULL;
    char *text = NULL;
    KI_TRY(ki_yaml_parse(r->text, strlen(r->text), "the recipe", &r->arena, &copy, err));
    for (ki_value *v = copy->first; v; v = v->next) {
        if (changes_nothing(v->key)) *v = (ki_value){.key = v->key, .next = v->next};
    }
    ki_value_drop_nothings(copy);
    KI_TRY(plain_numbers(&r->arena, copy, err));
    KI_TRY(ki_yaml_text(copy, &text, err));
    r->identity = ki_arena_strdup(&r->arena, text);
    ki_free(text);
    return r->identity ? KITH_OK : ki_fail_memory(err, 1, "a recipe");
}

/* The filled tree is written as text and read again, so that what is printed is what runs. */
static kith_status read_again(ki_recipe *r, kith_error *err) {
    char *text = NULL;
    KI_TRY(ki_yaml_text(r->root, &text, err));
    r->text = ki_arena_strdup(&r->arena, text);
    ki_free(text);
    if (!r->text) return ki_fail_memory(err, 1, "a recipe");
    KI_TRY(ki_yaml_parse(r->text, strlen(r->text), "the recipe", &r->arena, &r->root, err));
    ki_value_drop_nothings(r->root);
    KI_TRY(make_identity(r, err));
    KI_TRY(resolve_places(r, err));
    KI_TRY(read_top(r, err));
    return read_sections(r, err);
}

kith_status ki_recipe_read(const ki_recipe_source *source, ki_recipe **ret_recipe, kith_error *err) {
    kith_status status;
    ki_recipe *r = NULL;
    KI_CHECK(ki_zalloc_or(&r, 1, sizeof *r, "a recipe", err));
    KI_CHECK(read_tree(source, r, err));
    KI_CHECK(read_top(r, err));
    KI_CHECK(hold_out(r, err));
    KI_CHECK(read_sections(r, err));
    KI_CHECK(fill(r, err));
    KI_CHECK(read_again(r, err));
    *ret_recipe = r;
    r = NULL;
done:
    ki_recipe_free(r);
    return status;
}

void ki_recipe_free(ki_recipe *recipe) {
    if (!recipe) return;
    ki_arena_release(&recipe->arena);
    ki_free(recipe);
}

/* ---- the same run? ---- */

const char *ki_recipe_identity(const ki_recipe *recipe) { return recipe->identity; }

static bool same_scalar(const char *a, const char *b) {
    double x = 0, y = 0;
    if (strcmp(a, b) == 0) return true;
    return ki_parse_double(a, &x) && ki_parse_double(b, &y) && x == y;
}

/* The first place where the trees differ, as a path. */
static bool find_difference(const ki_value *a, const ki_value *b, char *path, size_t used, size_t bytes,
                            const ki_value **ret_a, const ki_value **ret_b) {
    *ret_a = a;
    *ret_b = b;
    if (!a || !b || a->kind != b->kind) return a != b;
    if (a->kind == KI_VALUE_SCALAR) return !is_place(path) && !same_scalar(a->text, b->text);
    if (a->kind == KI_VALUE_NULL) return false;
    size_t i = 0;
    for (const ki_value *v = a->first; v; v = v->next, i++) {
        const ki_value *other = a->kind == KI_VALUE_MAP ? ki_value_get(b, v->key) : ki_value_at(b, i);
        int n;
        if (a->kind == KI_VALUE_MAP)
            n = ki_snprintf(path + used, bytes - used, "%s%s", used ? "." : "", v->key);
        else
            n = ki_snprintf(path + used, bytes - used, "%s%zu", used ? "." : "", i);
        if (n < 0 || (size_t)n >= bytes - used) n = 0;
        if (find_difference(v, other, path, used + (size_t)n, bytes, ret_a, ret_b)) return true;
        path[used] = '\0';
    }
    if (b->n_items <= a->n_items) return false;
    /* Something that only b has. */
    for (const ki_value *v = b->first; v; v = v->next) {
        if (a->kind == KI_VALUE_MAP && ki_value_get(a, v->key)) continue;
        ki_snprintf(path + used, bytes - used, "%s%s", used ? "." : "", v->key ? v->key : "");
        *ret_a = NULL;
        *ret_b = v;
        return true;
    }
    return false;
}

kith_status ki_recipe_same(const ki_recipe *a, const ki_recipe *b, const char *folder, kith_error *err) {
    for (const ki_option *o = top_options; o->type != KI_OPTION_T_END; o++) {
        if (changes_nothing(o->name)) continue;
        char path[256], found[80], wanted[80];
        const ki_value *in_a = NULL, *in_b = NULL;
        const int n = ki_snprintf(path, sizeof path, "%s", o->name);
        if (!find_difference(ki_value_get(a->root, o->name), ki_value_get(b->root, o->name), path, (size_t)n,
                             sizeof path, &in_a, &in_b))
            continue;
        ki_fail(err, KITH_EINVAL, "%s holds a run of another recipe: %s is %s there and %s here", folder,
                path, ki_value_describe(in_a, found, sizeof found),
                ki_value_describe(in_b, wanted, sizeof wanted));
        return ki_hint(err, KITH_EINVAL, "begin a new run in another folder with --out");
    }
    return KITH_OK;
}
