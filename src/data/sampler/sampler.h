/* Samplers: which items make up batch b of epoch e.
 *
 * The batches of an epoch are a pure function of (settings, seed, items, epoch), so the state of a sampler is
 * three numbers, and an interrupted run continues with exactly the next batch. */
#ifndef KI_SAMPLER_H
#define KI_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/option.h"

typedef struct ki_sampler ki_sampler;

/* KI_SAMPLER_ROW_balanced and so on: the rows of table.def. */
enum {
#define X(name) KI_SAMPLER_ROW_##name,
#include "data/sampler/table.def"
#undef X
};

typedef enum ki_small_classes { KI_SMALL_REPEAT, KI_SMALL_DROP } ki_small_classes;

/* The `batch:` section of a recipe. */
typedef struct ki_sampler_settings {
    int sampler;     /* row of table.def */
    int64_t classes; /* balanced, weighted, hierarchical: classes per batch */
    int64_t images;  /* the same: images of each */
    int64_t size;    /* the others: images per batch */
    int64_t supers;  /* hierarchical: super-classes per batch */
    double power;    /* weighted: of a class's number of images, inverse */
    int small; /* balanced, weighted, hierarchical: what to do with classes of fewer than `images` images */
    int64_t buffer; /* shuffled: images that are mixed with each other; 0: all */
    bool partial;   /* shuffled: use the incomplete last batch, too */
    bool cut;       /* whole_classes: fill every batch by cutting the last class in two */
    int64_t views;  /* how often every image of a batch is in it, one after the other; 0: once */
    bool cached;    /* not the sampler's: the network computes a batch in chunks … */
    int64_t chunk;  /* … of so many images (train/learner.h) */
} ki_sampler_settings;

extern const ki_option ki_sampler_options[];

/* Are batches of classes x images? */
bool ki_sampler_is_by_class(const ki_sampler_settings *settings);
/* The most images a batch can hold, each view counted. */
int64_t ki_sampler_batch_size(const ki_sampler_settings *settings);

/* Batches consist of the numbers in items[n]; labels[n] are their classes (any numbers). Both are copied. */
kith_status ki_sampler_new(const ki_sampler_settings *settings, uint64_t seed, const int64_t *items,
                           const int32_t *labels, int64_t n, ki_sampler **ret_sampler, kith_error *err);
/* The same, with the super-class of every item (any numbers; -1: it is the only one of its own): for hierarchical batches. NULL: there are
 * none. */
kith_status ki_sampler_new_of(const ki_sampler_settings *settings, uint64_t seed, const int64_t *items,
                              const int32_t *labels, const int32_t *supers, int64_t n,
                              ki_sampler **ret_sampler, kith_error *err);
/* Of several data sets (mixed.c), whose items follow each other: items [first, first + n). Every batch has the same number of each, in
 * proportion to the weights: of sets with classes as the settings say (balanced: so many classes of them; shuffled), of sets without
 * plainly shuffled, and these come last. An epoch has as many batches as all items fill; a set that gives more than it has goes round
 * again, and one that gives less shows a part. KITH_EINVAL: another sampler, or a set that cannot fill its places. */
typedef struct ki_sampler_part {
    int64_t first, n;
    bool has_classes;
    double weight; /* 0: n */
} ki_sampler_part;
kith_status ki_sampler_new_mixed(const ki_sampler_settings *settings, uint64_t seed, const int64_t *items,
                                 const int32_t *labels, const ki_sampler_part *parts, size_t n_parts,
                                 ki_sampler **ret_sampler, kith_error *err);
/* Places at the end of every batch that are of sets without classes. */
int64_t ki_sampler_n_unlabelled(const ki_sampler *sampler);

void ki_sampler_free(ki_sampler *sampler); /* NULL is fine */

/* The next batch: its items, valid until the next call. A new epoch begins by itself. */
typedef struct ki_sampler_batch {
    const int64_t *item;
    int64_t n;
    uint32_t epoch;
    int64_t number; /* in the epoch */
    int64_t first;  /* place of item[0] in the epoch */
} ki_sampler_batch;

kith_status ki_sampler_next(ki_sampler *sampler, ki_sampler_batch *ret_batch, kith_error *err);
/* Batches in the epoch that the next batch belongs to. */
kith_status ki_sampler_n_batches(ki_sampler *sampler, int64_t *ret_n, kith_error *err);

/* The position of a sampler: the batch that ki_sampler_next will return. */
typedef struct ki_sampler_state {
    uint64_t seed;
    uint32_t epoch;
    int64_t number;
} ki_sampler_state;

ki_sampler_state ki_sampler_save(const ki_sampler *sampler);
/* KITH_EINVAL when the seed differs or the epoch has no such batch. */
kith_status ki_sampler_restore(ki_sampler *sampler, const ki_sampler_state *state, kith_error *err);

/* ---- between the files of this folder ---- */

typedef struct ki_sampler_plan {
    int64_t *item;  /* positions into the sampler's items, batch after batch */
    int64_t *begin; /* n_batches + 1 offsets into item */
    int64_t n_batches;
    size_t item_capacity, begin_capacity;
} ki_sampler_plan;

struct ki_sampler {
    ki_sampler_settings settings;
    uint64_t seed;
    int64_t *item; /* [n] */
    int64_t n;
    int32_t n_classes;
    int64_t *class_begin; /* [n_classes + 1] offsets into member */
    int64_t *member;      /* positions into item, by class, in order */
    uint32_t epoch;
    int64_t number;
    bool is_planned;
    ki_sampler_plan plan; /* of `epoch` */
    /* Of several sets, those with classes first: their samplers, and where their items begin in `item`. */
    ki_sampler **part;
    int64_t *part_first;
    size_t n_parts;
    int64_t n_unlabelled, batch;
    /* hierarchical: a balanced sampler of each super-class; its items are positions into `item` */
    ki_sampler **super;
    size_t n_supers;
};

typedef struct ki_sampler_kind {
    const char *name;
    const char *summary;
    bool is_by_class; /* batches of classes x images */
    /* Take apart what the plans need; supers may be NULL. May be NULL. */
    kith_status (*prepare)(ki_sampler *sampler, const int32_t *labels, const int32_t *supers,
                           kith_error *err);
    /* Refuse what cannot work, with a reason. May be NULL. */
    kith_status (*check)(const ki_sampler *sampler, kith_error *err);
    kith_status (*plan)(const ki_sampler *sampler, uint32_t epoch, ki_sampler_plan *plan, kith_error *err);
} ki_sampler_kind;

#define X(name) extern const ki_sampler_kind ki_sampler_##name;
#include "data/sampler/table.def"
#undef X

/* Items of a batch, each counted once. */
int64_t ki_sampler_batch_items(const ki_sampler_settings *settings);

/* The plan of one epoch of one set, by the settings' kind. */
kith_status ki_sampler_plan_epoch(const ki_sampler *sampler, uint32_t epoch, ki_sampler_plan *plan,
                                  kith_error *err);
/* mixed.c: the same of several. */
kith_status ki_sampler_plan_mixed(const ki_sampler *sampler, uint32_t epoch, ki_sampler_plan *plan,
                                  kith_error *err);
void ki_sampler_plan_release(ki_sampler_plan *plan);

/* Room for n_items and n_batches in the plan; begin[0] = 0. */
kith_status ki_sampler_plan_size(ki_sampler_plan *plan, int64_t n_items, int64_t n_batches, kith_error *err);

#endif
