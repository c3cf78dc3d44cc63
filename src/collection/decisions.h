/* Decisions about names, as the index notes them: the last ones with what was there before, names that were rejected, pairs that are not
 * the same, and how many proposals were checked.
 *
 * Three notes hold them (search/notes.h), because both kinds of store have notes: `decisions` has a line of JSON for each decision behind a first one
 * with the counts, `rejected_names` a line "[id, name]" and `not_same` a line "[id, id]". The names themselves are labels. */
#ifndef KI_COLLECTION_DECISIONS_H
#define KI_COLLECTION_DECISIONS_H

#include "base/arena.h"
#include "base/buffer.h"
#include "kith/names.h"

#define KI_NAMED_BY "named_by"
#define KI_NAMED_KIND "named_kind"

/* What is known of the name of an item. */
typedef struct ki_name_state {
    const char *name, *by, *kind; /* NULL: none */
} ki_name_state;

/* Items that had one state and got another. */
typedef struct ki_name_change {
    ki_name_state before, after;
    int64_t *ids, n;
} ki_name_change;

typedef struct ki_name_entry {
    int64_t number, time;
    const char *who;
    bool by_model;
    kith_name_act act;
    kith_name_act root; /* of an undo, and an undo of that: what the first of them was */
    const char *name, *from;
    int64_t of;                 /* an undo: of which */
    int64_t undone_by;          /* the decision that has undone it, and was not undone itself; 0: none */
    bool is_back;               /* of the root, this takes it back */
    int64_t n_checked, n_wrong; /* proposals, as the counts change by it */
    ki_name_change *changes;
    int64_t n_changes;
    int64_t *ids, n_ids; /* REJECT and APART */
} ki_name_entry;

typedef struct ki_name_rejected {
    int64_t id;
    const char *name;
} ki_name_rejected;

typedef struct ki_name_pair {
    int64_t a, b; /* a < b */
} ki_name_pair;

/* Zero-initialise; ki_decisions_drop. */
typedef struct ki_decisions {
    ki_arena arena;
    int64_t n_made; /* decisions, ever */
    int64_t n_checked, n_wrong;
    ki_name_entry *entries; /* the oldest first */
    int64_t n_entries;
    ki_name_rejected *rejected; /* by id, then name */
    int64_t n_rejected, rejected_room;
    ki_name_pair *apart; /* by a, then b */
    int64_t n_apart, apart_room;
} ki_decisions;

/* As of the commit that the index sees. KITH_EFORMAT: a note cannot be read. */
kith_status ki_decisions_read(ki_decisions *names, const kith_index *index, kith_error *err);
/* Into the notes, which count from the next commit on. What is more than is kept is left out, the oldest first. */
kith_status ki_decisions_write(const ki_decisions *names, kith_index *index, kith_error *err);
void ki_decisions_drop(ki_decisions *names);

bool ki_decisions_is_rejected(const ki_decisions *names, int64_t id, const char *name);
bool ki_decisions_are_apart(const ki_decisions *names, int64_t a, int64_t b);
/* One more, or one less (is_back). */
kith_status ki_decisions_reject(ki_decisions *names, int64_t id, const char *name, bool is_back,
                                kith_error *err);
kith_status ki_decisions_tell_apart(ki_decisions *names, int64_t a, int64_t b, bool is_back, kith_error *err);
/* The decision of that number; NULL: not remembered. */
const ki_name_entry *ki_decisions_find(const ki_decisions *names, int64_t number);
/* undone_by of that decision, as it was read; 0 where it is not remembered. */
int64_t ki_decisions_undone_by(const ki_decisions *names, int64_t number);

/* The rate of wrong proposals with its interval; all NaN when none were checked. */
void ki_decisions_rate(int64_t n_checked, int64_t n_wrong, double *ret_rate, double *ret_low,
                       double *ret_high);

/* The state of an item. The texts are the item's. */
ki_name_state ki_name_state_of(const kith_index *index, const kith_index_item *item);

/* ---- what was decided stays (decisions_keep.c) ---- */

/* The ids of items whose name was decided, ascending. kith_ids_free. */
kith_status ki_decisions_decided(const kith_index *index, int64_t **ret_ids, int64_t *ret_n, kith_error *err);
bool ki_decisions_has(const int64_t *ids, int64_t n, int64_t id);
/* Items have other ids: ids of `from` [n], ascending, are those of `to` now (-1: gone), in the notes of `index`. */
kith_status ki_decisions_follow(kith_index *index, const int64_t *from, const int64_t *to, int64_t n,
                                kith_error *err);
/* All that was decided, and the notes, from one index into another, whose items have the same paths. Counts from the next commit on. */
kith_status ki_decisions_carry(const kith_index *from, kith_index *to, kith_error *err);

/* ---- as text ---- */

/* The table of kith_names_form KITH_NAMES_CSV. *ret_n: its rows. */
kith_status ki_decisions_csv(const kith_index *index, ki_buffer *text, int64_t *ret_n, kith_error *err);

#endif
