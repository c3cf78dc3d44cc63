/* The index that is served: one commit of it, the model that made it, and what the page wants to know of its columns.
 *
 * A request takes the newest catalog when its work begins, and gives it back with its answer. When the index has a new commit,
 * a new catalog takes the place of the old one, which lives until the last request has given it back. */
#ifndef KI_SERVE_CATALOG_H
#define KI_SERVE_CATALOG_H

#include <stdatomic.h>

#include "kith/collection.h"

enum { KI_MOST_CATALOG_VALUES = 50, KI_N_SAMPLES = 32 };

/* What the values of a column are. */
typedef struct ki_column_facts {
    const char *name;
    kith_value_type type;
    int64_t column;                      /* of the index; not of label */
    bool is_known;                       /* the rest was looked at; else there are too many items */
    int64_t n_values;                    /* text: different ones; -1: more than KI_MOST_CATALOG_VALUES */
    char *value[KI_MOST_CATALOG_VALUES]; /* in byte order */
    bool has_range;                      /* numbers: there is one */
    double least, most;
} ki_column_facts;

typedef struct ki_catalog ki_catalog;
struct ki_catalog {
    kith_collection *collection; /* searched by the searcher's thread; everybody may read its index */
    kith_index *index;
    kith_index_info info;
    kith_model *model;   /* NULL: the index does not say which model made it, or it cannot be opened */
    kith_error no_model; /* why, in words that name no folder of this machine */
    char missing_model
        [256]; /* the model's file, which cannot be opened: "run/model.safetensors"; "": none is missing */
    int64_t n_facts;
    ki_column_facts *facts;                  /* label, then the columns of the index */
    int64_t sample[KI_N_SAMPLES], n_samples; /* ids to begin with (serve/search/samples.h) */
    atomic_uint_least64_t turn;              /* of those who asked for some */
};

typedef struct ki_catalogs ki_catalogs;

/* Open the index, and its model as options say; `hidden` facts are kept back (ki_index_hide). If options name no model, one that cannot be opened is no failure: a warning
 * says so, and the items of the index can be searched with. */
kith_status ki_catalogs_new(const char *path, const kith_model_options *options, unsigned hidden,
                            ki_catalogs **ret, kith_error *err);
void ki_catalogs_free(ki_catalogs *catalogs); /* NULL is fine; all catalogs were given back */

ki_catalog *ki_catalog_take(ki_catalogs *catalogs);
/* One more user of it. */
ki_catalog *ki_catalog_share(ki_catalogs *catalogs, ki_catalog *catalog);
void ki_catalog_give_back(ki_catalogs *catalogs, ki_catalog *catalog); /* NULL is fine */

/* Open the index anew if it has another commit. On failure what was served is served on. One thread at a time. */
kith_status ki_catalogs_refresh(ki_catalogs *catalogs, bool *ret_is_new, kith_error *err);

/* An item's path as it is shown to clients: relative to the folders of the index (search/roots.h). NULL when it has none. */
const char *ki_catalog_shown(const ki_catalog *catalog, const char *path);

#endif
