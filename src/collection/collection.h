/* What a kith_collection is; for the files of this folder. */
#ifndef KI_COLLECTION_H
#define KI_COLLECTION_H

#include "base/arena.h"
#include "judge/naming.h"
#include "kith/collection.h"
#include "kith/duplicates.h"

struct kith_collection {
    ki_arena arena;   /* path, and texts of the options */
    const char *path; /* a folder or an address */
    kith_index_mode mode;
    kith_index *index;      /* NULL: it could not be opened again after a change that failed */
    bool is_only_read;      /* `index` is open for reading, because a writer could not be opened again */
    kith_model *model;      /* NULL: not opened yet, or there is none */
    bool is_model_lent;     /* `model` is not freed with the collection */
    kith_model *shared;     /* may be the model, once that is known; NULL: none */
    kith_model_options how; /* to open the model: device and so on, and where it lies if it was said */
    bool is_new;            /* made by this handle, and nothing was committed into it yet */
    int64_t made_at;        /* the commit that a new one begins with */
    bool is_failed;         /* and what was to be its first commit failed: it is removed when freed */
    kith_index *held;       /* of one that failed: it has the lock until the collection is removed */
    bool has_own_folder;    /* the folder was made for it */
    ki_arena remembered;    /* lists of kith_collection_info, … */
    const char *listed;     /* … made from this note */
    const char **sources;
    int64_t n_sources;
    int64_t duplicates_of; /* the commit that `duplicates` are of; -1: none were asked for */
    kith_duplicates duplicates;
    ki_name_curve *naming; /* how often names are wrong, … */
    int64_t naming_of;     /* … of this commit; NULL: not asked for */
};

/* Make sure that there is an index to ask. */
kith_status ki_collection_ready(kith_collection *collection, kith_error *err);
/* The same where nothing may change: KITH_EINVAL if there is none. */
kith_status ki_collection_has_index(const kith_collection *collection, kith_error *err);
/* The same before a change: KITH_EINVAL for a collection opened for reading. */
kith_status ki_collection_begin(kith_collection *collection, kith_error *err);
/* A change is committed: what was new is made. */
void ki_collection_committed(kith_collection *collection);
/* A change has failed: open the last commit again, so that nothing of it is in the next one. What is not committed of a new collection is
 * lost with it. */
void ki_collection_drop(kith_collection *collection);

/* The model, where there is one; *ret_model NULL where the collection says none. Fails when it says one that cannot be opened. */
kith_status ki_collection_model_if_any(kith_collection *collection, kith_model **ret_model, kith_error *err);
/* The model that is open is the caller's from now on, who frees it after the collection. */
kith_model *ki_collection_take_model(kith_collection *collection);
/* If the user said where the model lies now, the index remembers it from the next commit on. The model is open. */
kith_status ki_collection_remember_file(kith_collection *collection, kith_error *err);

#endif
