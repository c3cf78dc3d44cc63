/* Grouping a collection (kith/groups.h), in parts: lists of neighbours, what is kept in the index, what is made of a group. */
#ifndef KI_COLLECTION_GROUP_H
#define KI_COLLECTION_GROUP_H

#include "collection/collection.h"
#include "judge/together.h"
#include "kith/groups.h"

/* ---- neighbours (group_near.c) ---- */

/* Told in items, first those whose lists are found. */
typedef struct ki_groups_progress {
    kith_progress_fn fn; /* may be NULL */
    void *user;
    int64_t n_done, n_all;
} ki_groups_progress;

typedef struct ki_near_options {
    int64_t k;
    double
        least; /* neighbours that are less near by score do not count, but keep their place; NaN: all count */
    ki_groups_progress *progress; /* may be NULL */
} ki_near_options;

/* The nearest others of n items: ret_near [n, k] are ids, -1: none that counts; ret_score [n, k], NaN: there is nothing. */
kith_status ki_groups_near(const kith_index *index, const int64_t *ids, int64_t n,
                           const ki_near_options *options, int64_t *ret_near, double *ret_score,
                           kith_error *err);
/* Is a neighbour with this score near enough? least NaN: any is. */
bool ki_groups_counts(double score, double least, kith_metric metric);
/* Where an id is among n that ascend; -1: it is not. */
int64_t ki_groups_place_of(const int64_t *ids, int64_t n, int64_t id);
/* The score up to which a neighbour counts if the error is an estimate: NaN where there are no false-match rates. */
double ki_groups_least_score(const kith_index *index, double error);

/* ---- what is kept: a note, and the column (group_kept.c) ---- */

typedef struct ki_groups_kept {
    bool is_there;
    double error, level, least_score; /* least_score NaN: none */
    int64_t least;
    bool all;
    int64_t next_number, next_id; /* not given yet; items from next_id on were not looked at */
    const char *where;            /* "": none; lives until the note is set */
} ki_groups_kept;

/* KITH_EFORMAT: the note is damaged. KITH_EINVAL: there is a column of that name, but no note. */
kith_status ki_groups_recall(const kith_index *index, ki_groups_kept *ret_kept, kith_error *err);
/* ret_number [n]: the groups of these items; 0: none. */
kith_status ki_groups_numbers(const kith_index *index, const int64_t *ids, int64_t n, int64_t *ret_number,
                              kith_error *err);
/* Write the numbers (0: none) that differ from `before`, and the note, and commit. */
kith_status ki_groups_keep(kith_index *index, const int64_t *ids, int64_t n, const int64_t *before,
                           const int64_t *number, const ki_groups_kept *kept, kith_error *err);
/* Which of n ascending ids are to be grouped. */
kith_status ki_groups_chosen(const kith_index *index, const int64_t *ids, int64_t n, bool all,
                             const char *where, bool *ret_is_chosen, kith_error *err);

/* ---- what is made of them (group_members.c) ---- */

/* Groups and their items from number [n] (0: none) of each item; sets groups, begin, ids, n_groups and n_alone. */
kith_status ki_groups_list(const kith_index *index, const int64_t *ids, const int64_t *number, int64_t n,
                           kith_groups *groups, kith_error *err);

/* ---- after a change (group_follow.c) ---- */

/* Put items that are new since the last time into the groups, if there are any, and commit. *ret_n_placed: items that got a number. After a
 * failure the index can only be freed. */
kith_status ki_groups_follow(kith_collection *collection, int64_t *ret_n_placed, kith_error *err);

#endif
