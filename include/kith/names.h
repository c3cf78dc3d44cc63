/* Names: people say who or what is on the photos of a collection, and a model may have proposed it.
 *
 *     KITH_OPTIONS(kith_name_request, request);
 *     request.act = KITH_NAME_GIVE;
 *     request.who = "anna";
 *     request.ids = ids;
 *     request.n_ids = n;
 *     request.name = "Otto";
 *     kith_name_result result;
 *     kith_collection_name(collection, &request, &result, &err);
 *
 * A name is the label of an item. Who decided it stands in the columns `named_by` (a text the caller gives) and `named_kind` ("person"
 * or "model"), which filters and searches know as any other column. A label that was decided stays: a sync does not give the item the name
 * of its folder again, also where the photo was moved, touched or changed, and kith_collection_renew takes it over.
 *
 * Every decision has a number and is one commit: after a crash at any moment those that were answered are there. The last
 * KITH_NAMES_KEPT of them are remembered, with what was there before, and can be undone in any order as long as nobody has decided otherwise
 * since. */
#ifndef KITH_NAMES_H
#define KITH_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/collection.h"
#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The list: enum value and word. */
#define KITH_NAME_ACT_LIST(X) \
    X(GIVE, "give")           \
    X(CONFIRM, "confirm")     \
    X(REJECT, "reject")       \
    X(TAKE, "take")           \
    X(APART, "apart")         \
    X(RENAME, "rename")       \
    X(MERGE, "merge")         \
    X(UNDO, "undo")

/* GIVE: items get a name. CONFIRM: the same, and it was proposed. REJECT: the proposed name is not theirs, and will not be proposed again;
 * the items keep the name they have. TAKE: items have no name any more. APART: two items are not the same thing, however similar they look.
 * RENAME: all items of a name get another, which no item has yet; MERGE: one that some have. UNDO: a decision is taken back. An undo can be
 * undone, too. */
typedef enum kith_name_act {
#define KITH_NAME_ACT_ENUM(name, word) KITH_NAME_##name,
    KITH_NAME_ACT_LIST(KITH_NAME_ACT_ENUM) KITH_N_NAME_ACTS
} kith_name_act;

/* "give" for KITH_NAME_GIVE; "?" for what is not an act. */
KITH_API const char *kith_name_act_word(kith_name_act act);

#define KITH_NAMES_KEPT 1000            /* decisions that are remembered, and … */
#define KITH_NAMES_KEPT_BYTES 4194304   /* … bytes of them: those of many items may be fewer */
#define KITH_NAMES_MOST_ITEMS 100000    /* of one decision */
#define KITH_NAMES_MOST_REJECTED 100000 /* names rejected, and pairs told apart, that are remembered */
#define KITH_NAME_MOST_BYTES 400        /* of a name; who decides has at most 100 */

/* What is to be decided. Strings and arrays are borrowed for the call. */
typedef struct kith_name_request {
    size_t size; /* of the struct: set by kith_name_request_init */
    kith_name_act act;
    const char *who;    /* UTF-8 */
    bool by_model;      /* a model decides, not a person */
    const int64_t *ids; /* [n_ids]; two for APART; none for RENAME, MERGE and UNDO */
    int64_t n_ids;      /* each id once */
    const char *const
        *was; /* [n_ids] the name each item is thought to have; NULL inside: none. NULL: not asked */
    const char *
        name; /* GIVE and CONFIRM: the name; REJECT: the one that is not theirs; RENAME and MERGE: the new one */
    const char *from;     /* RENAME and MERGE: the old one */
    const char *proposed; /* GIVE: a name that was proposed and is not the one; NULL: none was */
    int64_t number;       /* UNDO: of the decision; 0: the last one of `who` that is not undone */
} kith_name_request;

/* GIVE, and nothing else. */
KITH_API void kith_name_request_init(kith_name_request *request, size_t size);

/* What came of it. */
typedef struct kith_name_result {
    int64_t number;  /* of the decision; 0: none was made */
    int64_t n_items; /* that have another name, or another who decided it, now */
    int64_t
        conflict; /* the item that has another name than was thought, or is gone, so that nothing was decided; -1: none */
} kith_name_result;

/* Decide, and commit. *ret_result is written in any case. KITH_EINVAL with `conflict`: an item's name is not what `was` says, or for
 * UNDO not what the decision made it; the error says what it is now. KITH_ENOTFOUND: no such item, name or decision; KITH_EINVAL otherwise:
 * a name or who that is empty, too long, not UTF-8 or has control characters; a decision that is undone already. Nothing changes then. The
 * collection is open for writing. */
KITH_API kith_status kith_collection_name(kith_collection *collection, const kith_name_request *request,
                                          kith_name_result *ret_result, kith_error *err);

/* One decision that was made. */
typedef struct kith_name_decision {
    int64_t number; /* counts from 1 */
    int64_t time;   /* seconds since 1970 */
    const char *who;
    bool by_model;
    kith_name_act act;
    const char *name, *from; /* as in the request; NULL: none */
    int64_t undoes;          /* UNDO: which; 0: none */
    int64_t undone_by;       /* 0: it counts */
    const int64_t *ids;      /* [n_ids] of the items */
    int64_t n_ids;
    const char *const *before; /* [n_ids] their names before and … */
    const char *const *after;  /* … after it; NULL inside: none */
} kith_name_decision;

/* Names and decisions as of the last commit. Owned: kith_names_release. */
typedef struct kith_names {
    int64_t n_items, n_named, n_decided; /* with a label, and of those, whose label was decided */
    int64_t n_names;
    const char *const *names; /* [n_names] in byte order … */
    const int64_t *counts;    /* … and how many items have each */
    /* Proposals that people confirmed or turned down. The rate of wrong ones lies from low to high (95 %, Wilson's interval); without any
     * all three are NaN. */
    int64_t n_checked, n_wrong;
    double rate, low, high;
    int64_t n_decisions; /* remembered, the last one first */
    const kith_name_decision *decisions;
    void *memory;
} kith_names;

/* Other threads may search meanwhile, and ask for names, too, if the collection was opened for reading. */
KITH_API kith_status kith_collection_names(const kith_collection *collection, kith_names *ret_names,
                                           kith_error *err);
KITH_API void kith_names_release(kith_names *names); /* fine on a zeroed struct */

/* ---- taking them elsewhere ---- */

typedef enum kith_names_form {
    KITH_NAMES_CSV,    /* one file: id, path, name, named_by, named_kind; every item that has a name */
    KITH_NAMES_XMP,    /* a sidecar for each photo with a name: PHOTO.jpg.xmp, with the name as dc:subject */
    KITH_NAMES_FOLDERS /* a folder for each name with its photos: what kith train takes */
} kith_names_form;

typedef struct kith_names_options {
    size_t size; /* of the struct: set by kith_names_options_init */
    kith_names_form form;
    const char *to; /* the file or folder; NULL, XMP only: beside each photo */
    bool copy;      /* FOLDERS: copies; else symbolic links */
} kith_names_options;

/* CSV. */
KITH_API void kith_names_options_init(kith_names_options *options, size_t size);

typedef struct kith_names_report {
    int64_t n_written; /* rows, sidecars or photos */
    int64_t n_names;   /* folders */
    int64_t n_missing; /* items with a name whose photo is not there */
    int64_t n_kept;    /* XMP: sidecars that kith did not write: they stay as they are */
    int64_t n_renamed; /* FOLDERS: names that cannot be a folder's name as they are, … */
    char renamed[256]; /* … and the first of them, as "NAME -> FOLDER" */
} kith_names_report;

/* Write the names. A file takes the place of an old one as a whole. KITH_EINVAL for FOLDERS: the folder is there and not empty. KITH_EIO: it
 * cannot be written; sidecars and photos that were written before stay. ret_report may be NULL. */
KITH_API kith_status kith_names_export(const kith_collection *collection, const kith_names_options *options,
                                       kith_names_report *ret_report, kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
