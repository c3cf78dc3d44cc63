/* A recipe: everything that decides a run, as one YAML document.
 *
 *     data:      {root: photos, validation: 0.2}          src/data/section.h
 *     input:     {resize: squash64, crop: 64}             src/data/input.h
 *     model:     {backbone: convnet4, embedding: 64}
 *     batch:     {classes: 16, images: 4}                 src/data/sampler/sampler.h
 *     objective: {loss: {name: binomial}}                 src/objective/objective.h
 *     optim:     {name: adam, lr: 1e-3, steps: 1000}
 *     eval:      {every: 200}
 *
 * A recipe for features made elsewhere has data: {features: X.npy} and no input: section.
 *
 * Several data sets are a list, each with a section of its own; some may have no labels:
 *
 *     data:
 *       - {root: birds, validation: 0.2, weight: 2}
 *       - {root: snapshots, labels: false}
 *
 * Other networks that see the batches beside the one that learns (docs/adr/0150):
 *
 *     teachers:
 *       - {weights: resnet50.safetensors, pool: both}
 *
 * Reading one checks every key and value of every section before any other file is opened, and fills in every
 * default. `root` then contains every key, and reading its text again gives the same run. */
#ifndef KI_RECIPE_H
#define KI_RECIPE_H

#include "base/arena.h"
#include "base/option.h"
#include "base/variant.h"
#include "data/sampler/sampler.h"
#include "data/transform/crop_sides.h"
#include "device/backend.h"
#include "io/run_paths.h"
#include "kith/data.h"
#include "kith/model.h"
#include "net/net.h"
#include "objective/objective.h"
#include "optim/optim.h"

typedef enum ki_select { KI_SELECT_VALIDATION, KI_SELECT_TEST, KI_SELECT_LAST } ki_select;
/* Which variants (base/variant.h) are scored: those that a term of the objective lists, none, all that there are, some. */
typedef enum ki_variants_wanted {
    KI_VARIANTS_LISTED,
    KI_VARIANTS_NONE,
    KI_VARIANTS_ALL,
    KI_VARIANTS_NAMED
} ki_variants_wanted;
typedef enum ki_choose_by { KI_BY_MAP_AT_R, KI_BY_R_AT_1 } ki_choose_by;

enum { KI_MOST_LORA_LAYERS = 32 };

/* model.lora */
typedef struct ki_recipe_lora {
    int64_t rank;
    double alpha;
    const ki_value *layers;
} ki_recipe_lora;

/* Starts that are computed from the pooled features of training images, after those of ki_start. */
enum { KI_START_OF_AXES = KI_START_SMALL + 1, KI_START_OF_WHITE_AXES };

typedef struct ki_recipe_model {
    const char *backbone, *weights; /* "": not given */
    int64_t embedding;
    bool embedding_bias;
    int embedding_init;          /* a ki_start, or … */
    int pool;                    /* a ki_pooling */
    int bn;                      /* 1: frozen */
    bool whiten;                 /* the embedding layer, at the end */
    int64_t heads;               /* of an ensemble; 1: a plain network */
    double mask_gain, mask_bias; /* how masks start */
    int64_t map_channels;        /* 0: the map as it is */
    const char *freeze;          /* "": nothing */
    bool frozen;                 /* the embedding layer alone is trained, on features (frozen.h) */
    int64_t views;               /* frozen: of each training image */
    const ki_value *lora;        /* NULL: none */
    const ki_value *settings;    /* the backbone's own options, or NULL */
} ki_recipe_model;

/* An item of teachers: */
typedef struct ki_recipe_teacher {
    const char *weights;      /* a file, a run's folder or hub:NAME, as it is found */
    const char *backbone;     /* "": the file's */
    int pool;                 /* a ki_pooling, after KI_POOL_OF_FILE */
    const ki_value *settings; /* the backbone's own options, or NULL */
} ki_recipe_teacher;
enum { KI_POOL_OF_FILE };

typedef struct ki_recipe_eval {
    int64_t every;            /* steps between evaluations; 0: at the start and at the end only */
    const ki_value *k;        /* R@K for these */
    int metric;               /* a ki_choose_by */
    int select;               /* a ki_select */
    int64_t patience;         /* evaluations without a better score before the run stops; 0: never */
    bool seen;                /* also judge images of training classes */
    int64_t max_seen;         /* … at most so many, whole classes */
    bool untrained;           /* score the test classes with the starting network too */
    bool test;                /* score the test classes at all */
    bool watch_test;          /* … and at every evaluation, for the record */
    bool clustering;          /* cluster the test images at the end */
    bool listed;              /* the older key all_orders: also score what a term of the objective lists */
    const ki_value *variants; /* the newer one; where it is given it decides */
    int64_t batch;            /* images per pass; 0: as in training */
    int64_t views;            /* of every image that is judged (embed/views.h) */
} ki_recipe_eval;

typedef struct ki_recipe {
    ki_arena arena;
    ki_value *root;   /* every key, with defaults filled in; paths as they must be opened */
    const char *text; /* the same as YAML, with paths as they were written */
    const char *identity;
    ki_run_paths paths; /* what the paths of `text` are relative to */

    /* Top level. */
    const ki_value *data, *model_map, *input, *batch_map, *objective, *optim_map, *eval_map, *checkpoint_map,
        *loader_map, *teachers_list;
    int64_t seed, threads, folds, seeds;
    const char *device;
    int precision; /* a ki_precision */
    bool tf32, deterministic;

    /* The sections, read. */
    bool is_features;           /* data is features made elsewhere, not images */
    kith_transform train, test; /* of images, without the model's order, mean and std */
    ki_crop_sides sides;        /* of training batches */
    ki_recipe_model model;
    ki_adaptation adapt; /* model.freeze and model.lora */
    const char *lora_layer[KI_MOST_LORA_LAYERS];
    ki_recipe_teacher teacher[KI_MOST_TEACHERS];
    int n_teachers;
    const char *features_folder; /* model.frozen: where features are kept; "": in the run folder */
    bool is_from_general;        /* no network was named: model.weights is the model that came with kith */
    ki_sampler_settings batch;
    const char *
        reads_classes; /* the first term of the objective that counts images with a class alone; NULL: none does */
    ki_optim_settings optim;
    ki_recipe_eval eval;
    int64_t n_k, k[32];
    ki_variants_wanted variants;
    const char *variant[KI_MOST_VARIANTS]; /* those that are named */
    size_t n_variants;
    int64_t checkpoint_every, checkpoint_keep;
    double checkpoint_minutes;
    int64_t workers, cache_mib, ahead, most_bad, log_every;
} ki_recipe;

typedef struct ki_recipe_source {
    const char *path;        /* a file … */
    const char *text;        /* … or, when not NULL, the text itself */
    const char *const *sets; /* "a.b=c", in order; c is YAML. List items go by number: "a.0.b=c" */
    size_t n_sets;
    const ki_run_paths *paths; /* of the text; NULL: relative to the working folder */
} ki_recipe_source;

/* Paths in a run's own recipe.yaml are found wherever the run was started (io/run_paths.h); those of `sets` are
 * relative to the working folder. Free *ret_recipe with ki_recipe_free. Errors name the section and the key; for an
 * unknown key the nearest one is suggested. */
kith_status ki_recipe_read(const ki_recipe_source *source, ki_recipe **ret_recipe, kith_error *err);
void ki_recipe_free(ki_recipe *recipe); /* NULL is fine */

/* KITH_EINVAL, naming the first key that differs, unless both describe the same run. Keys that change numbers at most
 * by rounding (threads, loader, checkpoint, log_every) may differ, and so may the places of files (data.root,
 * data.split, model.weights), because a run checks the data and the weights themselves. `a` is the recipe in the
 * folder. */
kith_status ki_recipe_same(const ki_recipe *a, const ki_recipe *b, const char *folder, kith_error *err);

/* YAML of the keys that decide numbers: two recipes of the same run have the same text. Valid as long as the
 * recipe. */
const char *ki_recipe_identity(const ki_recipe *recipe);

/* The tables of the sections that belong to this folder, for documentation; NULL past the end. */
typedef struct ki_recipe_section {
    const char *name; /* "" for the top level */
    const char *summary;
    const ki_option *options;
    bool is_inner; /* a key of another section */
} ki_recipe_section;
const ki_recipe_section *ki_recipe_section_at(size_t i);

/* ---- recipe_set.c ---- */

/* Apply "a.b=c" to the tree. */
kith_status ki_recipe_set(ki_arena *arena, ki_value *root, const char *text, kith_error *err);

/* ---- recipe_adapt.c ---- */

extern const ki_option ki_recipe_lora_options[];
/* model.freeze and model.lora, in the form that the network wants. */
kith_status ki_recipe_read_adaptation(ki_recipe *recipe, kith_error *err);
/* The model's section with every key, and with every key of model.lora if that is given. */
kith_status ki_recipe_fill_model(ki_arena *arena, const ki_option *table, const ki_value *section,
                                 ki_value **ret_map, kith_error *err);

/* ---- recipe_list.c ---- */

extern const ki_option ki_recipe_teacher_options[];
/* teachers: of the recipe's tree. */
kith_status ki_recipe_read_teachers(ki_recipe *recipe, kith_error *err);
/* KITH_EINVAL names a teacher that no term reads. */
kith_status ki_recipe_check_teachers(const ki_recipe *recipe, const ki_objective *objective, kith_error *err);
/* The name of its pooling; NULL: its file says it. */
const char *ki_recipe_teacher_pool(const ki_recipe_teacher *teacher);
/* A backbone's own options as "key=value,key=value". */
kith_status ki_recipe_settings_text(const ki_value *map, char *ret, size_t bytes, kith_error *err);
/* Every item of the list gets every key of the table. */
kith_status ki_recipe_fill_list(ki_arena *arena, const ki_option *table, ki_value *list, kith_error *err);

/* ---- recipe_fill.c ---- */

/* A map with every key of the table: the value given in `map` (may be NULL), else the default. `name`
 * comes first and other keys that the table does not have come last, where `map` has them. */
kith_status ki_recipe_fill(ki_arena *arena, const ki_option *table, const ki_value *map, ki_value **ret_map,
                           kith_error *err);
/* The same for the optimizer's section, and … */
kith_status ki_recipe_fill_optim(ki_arena *arena, const ki_value *section, ki_value **ret_map,
                                 kith_error *err);
/* … for the input's, with every key of its effects, … */
kith_status ki_recipe_fill_input(ki_arena *arena, const ki_option *table, const ki_value *section,
                                 ki_value **ret_map, kith_error *err);
/* … and for the objective's, method by method. */
kith_status ki_recipe_fill_objective(ki_arena *arena, const ki_value *section, ki_value **ret_map,
                                     kith_error *err);

#endif
