/* An index: vectors on disk with what is known of each item, kept up to date, searched, filtered.
 *
 *     KITH_OPTIONS(kith_index_options, options);
 *     options.dim = 128;
 *     kith_index *index = NULL;
 *     kith_index_create("birds.kith", &options, &index, &err);
 *     kith_index_add(index, &rows, items, NULL, &err);
 *     kith_index_commit(index, NULL, &err);
 *     kith_index_search(index, &query, NULL, &hits, &err);
 *
 * An index is a folder. An item is one vector with an id, a path, a label and values of typed columns. Ids count up from
 * 0 and are never given twice. What is added and removed counts from the next commit on; after a crash at any moment the
 * folder holds the last commit. One process writes at a time, and any number read. A reader sees the commit it opened
 * until it is freed, whatever a writer does meanwhile.
 *
 * Where a path is wanted, the address of a PostgreSQL server will do (docs/postgresql.md): postgresql://host/database, and the name of the index
 * behind a number sign.
 * Then a schema of that name is the index, a transaction is a commit, and a new index is there from its first commit on. A handle that
 * writes sees its own changes at once, and one that reads sees its commit until kith_index_is_current says that there is another.
 * KITH_EUNSUPPORTED: this kith was built without libpq. KITH_EIO: the server cannot be reached, or refuses.
 *
 * A handle opened for reading may be used by several threads at once. One that writes belongs to one thread. */
#ifndef KITH_INDEX_H
#define KITH_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/array.h"
#include "kith/calibration.h"
#include "kith/knn.h"
#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kith_index kith_index;

/* ---- columns and their values ---- */

typedef enum kith_value_type {
    KITH_VALUE_NONE, /* an item without a value in this column; no comparison with it is true */
    KITH_VALUE_INT,
    KITH_VALUE_REAL,
    KITH_VALUE_TEXT,
} kith_value_type;

/* "none", "integer", "real", "text". */
KITH_API const char *kith_value_type_name(kith_value_type type);

/* The field that `type` names is the value; the others mean nothing. */
typedef struct kith_value {
    kith_value_type type;
    int64_t integer;
    double real; /* finite */
    const char *text;
} kith_value;

typedef struct kith_column {
    const char *
        name; /* letters, digits and _, not beginning with a digit; not one of id, path, label, bytes, mtime */
    kith_value_type type;
} kith_column;

/* The columns that facts of photos are in, as text: "2021-05-03T14:07:22", with "+02:00" where the file says so, which compares as dates do;
 * "Canon EOS R6"; the lens; and as reals: degrees, south and west negative; metres above the sea. */
#define KITH_FACT_COLUMNS "taken", "camera", "lens", "latitude", "longitude", "altitude"
#define KITH_N_FACTS 6

/* ---- making and opening ---- */

/* Strings are borrowed for the call. */
typedef struct kith_index_options {
    size_t size; /* of the struct: set by kith_index_options_init */
    int64_t dim; /* of the vectors, 1 to 65536; yours to set */
    kith_metric metric;
    const char *model;      /* hash of the model that made the vectors; NULL: not known */
    const char *preprocess; /* what was done to images before, as text; NULL: not known */
    double recall;          /* wanted of searches that are not exact, above 0 and below 1 */
    const kith_column *columns;
    int64_t n_columns;
    int64_t exact_numbers; /* rows times dim up to which every search compares every vector */
    /* Vectors whose first values are vectors, too (objective.nested in docs/training.md): searches that are not exact find candidates by so many
     * of them, as vectors of their own, and compare these whole. 0: by all. Codes then take less memory. Recall is measured as ever, with more bits
     * where it wants them. KITH_EINVAL: more than dim. KITH_EUNSUPPORTED: the store is not a folder. */
    int64_t first;
} kith_index_options;

/* Cosine, recall 0.99, no columns, exact up to 25 million numbers, candidates by all values. */
KITH_API void kith_index_options_init(kith_index_options *options, size_t size);

/* Make a folder with an empty index, and open it for writing. KITH_EINVAL when something is there already, unless it is an
 * empty folder. */
KITH_API kith_status kith_index_create(const char *path, const kith_index_options *options,
                                       kith_index **ret_index, kith_error *err);

typedef enum kith_index_mode {
    KITH_INDEX_READ,
    KITH_INDEX_WRITE, /* also removes what a killed writer left behind */
} kith_index_mode;

/* Open the last commit. KITH_EINVAL: no such mode, or another process writes (KITH_INDEX_WRITE only). KITH_EFORMAT: not an index, or a damaged
 * one. KITH_EUNSUPPORTED: an index of another format; the hint says what to do. Vectors are not read yet. */
KITH_API kith_status kith_index_open(const char *path, kith_index_mode mode, kith_index **ret_index,
                                     kith_error *err);
/* What was not committed is dropped. NULL is fine. */
KITH_API void kith_index_free(kith_index *index);

/* Vectors that searches of a reader have read from disk stay in memory, for the next search. From now on up to so many bytes
 * more; 0: no more. Unless told otherwise, up to an eighth of the memory that the process may use. A writer keeps none. */
KITH_API kith_status kith_index_keep(kith_index *index, int64_t most_bytes, kith_error *err);

/* Is the commit this handle sees still the last one? For servers: open anew when it is not. */
KITH_API kith_status kith_index_is_current(const kith_index *index, bool *ret_is_current, kith_error *err);

/* KITH_EINVAL, with both named, unless the index was made with this model and preprocessing; NULL: not asked. Vectors of
 * another model cannot be compared: ask before adding and searching. */
KITH_API kith_status kith_index_expect(const kith_index *index, const char *model, const char *preprocess,
                                       kith_error *err);

/* ---- changing (a handle that writes) ---- */

/* What is known of an item. */
typedef struct kith_index_item {
    int64_t id;       /* handed out; not read by kith_index_add */
    const char *path; /* NULL: none. Read where it is now if the index was moved together with its files */
    const char *label;
    const char *hash;         /* SHA-256 of the file in hex (kith_file_hash) */
    int64_t bytes;            /* of the file; -1: not known */
    int64_t mtime_ns;         /* of the file, nanoseconds since 1970; -1: not known */
    const kith_value *values; /* one per column of the index; NULL: no values */
} kith_index_item;

/* Add n items: rows [n, dim] of any float type, stored as float32, finite. items [n]; NULL: nothing is known of them.
 * ret_ids [n] receives the ids, ascending; may be NULL. Vectors go to disk at once; the rest stays in memory until the
 * commit. A path may be there twice. After KITH_EIO and KITH_ENOMEM the handle can only be freed. */
KITH_API kith_status kith_index_add(kith_index *index, const kith_array *rows, const kith_index_item *items,
                                    int64_t *ret_ids, kith_error *err);

/* Remove the items with these ids. KITH_ENOTFOUND names the first that is not there; then none is removed. */
KITH_API kith_status kith_index_remove(kith_index *index, const int64_t *ids, int64_t n, kith_error *err);

/* The same by hand: kith_collection_sync leaves the files of these items out until they are added again, by kith_index_add,
 * kith_collection_add or with its option with_excluded. A file that is moved stays out under its new path. info counts them. */
KITH_API kith_status kith_index_exclude(kith_index *index, const int64_t *ids, int64_t n, kith_error *err);

/* A file was moved: the item has this path and label (NULL: none), size and date (-1: not known) from now on. Id, vector, hash and
 * values stay. */
KITH_API kith_status kith_index_move(kith_index *index, int64_t id, const char *path, const char *label,
                                     int64_t bytes, int64_t mtime_ns, kith_error *err);

/* A file has another date or size, and the same contents: remember that. */
KITH_API kith_status kith_index_restamp(kith_index *index, int64_t id, int64_t bytes, int64_t mtime_ns,
                                        kith_error *err);

/* A new column; the items there are have no value in it. KITH_EINVAL for a bad name, and for a name that is there with
 * another type; the same again is fine. */
KITH_API kith_status kith_index_column_add(kith_index *index, const char *name, kith_value_type type,
                                           kith_error *err);

/* Items have other values in these columns of the index from the next commit on: values [n, n_columns], of each column's type or
 * KITH_VALUE_NONE. Ids, vectors and the rest stay; of an id that is there twice the last row counts. KITH_ENOTFOUND names the first
 * id or column that is not there, KITH_EINVAL a value of another type; then nothing changes. */
KITH_API kith_status kith_index_set(kith_index *index, const int64_t *ids, int64_t n,
                                    const char *const *columns, int64_t n_columns, const kith_value *values,
                                    kith_error *err);

/* The same of their labels: labels [n]; NULL: none. */
KITH_API kith_status kith_index_label(kith_index *index, const int64_t *ids, int64_t n,
                                      const char *const *labels, kith_error *err);

/* A note: text under a name, kept with the index, for whoever uses it. kith itself notes where the images and the model of a
 * collection lie (kith_collection_info); those follow an index that is moved together with these files. */
KITH_API kith_status kith_index_note_set(kith_index *index, const char *name, const char *text,
                                         kith_error *err);
/* NULL when there is none. Lives until the handle is freed or sets a note. */
KITH_API const char *kith_index_note(const kith_index *index, const char *name);

/* How long work is done. */
typedef struct kith_work_options {
    size_t size;       /* of the struct: set by kith_work_options_init */
    int64_t n_threads; /* 0: kith_threads() */
    kith_progress_fn
        progress; /* may be NULL; in rows that are copied and rows that get a code, or in bytes for
                                   kith_index_check */
    void *user;
} kith_work_options;

/* All 0. */
KITH_API void kith_work_options_init(kith_work_options *options, size_t size);

/* Make what was changed the state of the index. On failure, also when stopped by progress, the index is as it was at the last
 * commit, the changes are lost, and the handle can only be freed. Small segments are merged, so that there are never many. */
KITH_API kith_status kith_index_commit(kith_index *index, const kith_work_options *options, kith_error *err);

/* Commit, and write everything anew without what was removed. Needs room for a second copy meanwhile. Ids stay. */
KITH_API kith_status kith_index_compact(kith_index *index, const kith_work_options *options, kith_error *err);

/* ---- calibration: how often different things look this similar ---- */

/* Store the curve, which must be of the index's metric (KITH_EINVAL); NULL: take it away. Counts from the next commit on. */
KITH_API kith_status kith_index_calibrate(kith_index *index, const kith_calibration *calibration,
                                          kith_error *err);
/* Measure it on the index itself, and store it: pairs of items of the last commit with different labels are what a search over
 * it meets. Of more than 10,000 items with a label (fewer where a vector has more than 3,200 values) a sample counts, which follows
 * from the ids alone. `beside`, which may be NULL, is a curve that was measured elsewhere, such as the model's: then the stricter of both
 * is stored, so that no false-match rate is told that one of them measured to be larger. The source is "index", or "validation, index".
 * KITH_ENOTFOUND, and nothing changes: fewer than 10 labels, fewer than 10,000 pairs of different labels, or no two items with the
 * same. KITH_EINVAL: beside is of another metric. *ret_calibration receives what is stored. Counts from the next commit on. */
KITH_API kith_status kith_index_calibrate_own(kith_index *index, const kith_calibration *beside,
                                              kith_calibration *ret_calibration, kith_error *err);
/* The curve as of the last commit this handle sees, for kith_calibration_false_match_rate and _threshold; NULL: there is none. Lives
 * until the handle is freed or commits. */
KITH_API const kith_calibration *kith_index_calibration(const kith_index *index);

/* ---- asking ---- */

typedef enum kith_index_tier {
    KITH_TIER_EXACT, /* every vector is compared */
    KITH_TIER_SCAN,  /* every code is compared, and the vectors of the best */
    KITH_TIER_LISTS, /* the codes of the nearest lists are compared, and the vectors of the best */
    KITH_TIER_GRAPH, /* a server finds the best by a graph, and their vectors are compared */
} kith_index_tier;

/* "exact", "scan", "lists", "graph". */
KITH_API const char *kith_index_tier_name(kith_index_tier tier);

typedef struct kith_index_info {
    int64_t format;     /* of the files */
    int64_t generation; /* counts commits */
    int64_t n_items;
    int64_t n_removed; /* still on disk, until compacted */
    int64_t n_segments;
    int64_t n_columns;
    int64_t dim;
    kith_metric metric;
    const char *model, *preprocess; /* "" when not known; live as long as the handle */
    int64_t file_bytes;             /* of all files of the index */
    int64_t memory_bytes; /* what searching keeps in memory, about, without kith_index_keep's vectors */
    kith_index_tier tier;
    int64_t bits;         /* of a code per dimension; 0: exact */
    int64_t n_lists;      /* 0: none */
    double bytes_per_row; /* of codes; 0: exact */
    double recall_wanted;
    double recall; /* of new queries, from what its own rows have as queries, which are easier; 1: exact */
    bool is_calibrated; /* there is a curve: kith_index_calibration */
    int64_t n_excluded; /* files that were removed by hand and stay out (kith_index_exclude) */
    int64_t first;      /* candidates are found by so many values of a vector; 0: by all */
} kith_index_info;

/* What the index is, as of the last commit this handle sees; nothing is written for a NULL index. */
KITH_API void kith_index_info_get(const kith_index *index, kith_index_info *ret_info);
/* The i-th column; the name is NULL past the end. */
KITH_API kith_column kith_index_column(const kith_index *index, int64_t i);

/* Which items may be found is an expression:
 *
 *     label = tern and year >= 2020
 *     (path like '2021/%' or weight > 0.5) and not label in (tern, "black tern")
 *
 * Columns are id, path, label and those of the index. Comparisons are = != < <= > >=, `in` and `not in` with a list, `like` and
 * `not like` with a pattern, where % stands for any text, _ for one character and \ before either for itself. They are joined by
 * `and`, `or`, `not` and parentheses; `and` binds tighter than `or`. Values are numbers, words, or anything in single or double
 * quotes. Text is compared byte by byte. An item without a value in a column is not found by any comparison with it, nor by !=,
 * `not in` and `not like`.
 *
 * Strings and arrays are borrowed for the call. */
typedef struct kith_search_options {
    size_t size;       /* of the struct: set by kith_search_options_init */
    int64_t k;         /* hits for each query, at most; INT64_MAX: all */
    int64_t offset;    /* leave out this many of the nearest: pages */
    bool has_limit;    /* only hits at least as near as … */
    double limit;      /* … this score */
    const char *where; /* only items that this expression holds for; NULL: all */
    const int64_t
        *self;     /* [queries]: the id of the item that is the query itself and must not be found, or -1 */
    bool exact;    /* compare every vector, whatever the tier */
    double recall; /* wanted; 0: as the index was made for */
    int64_t n_threads;         /* 0: kith_threads() */
    kith_progress_fn progress; /* may be NULL */
    void *user;
    const char
        *device; /* of exact searches: "cpu" (default), "cuda" or "cuda:1"; codes are searched on the CPU */
} kith_search_options;

/* k 10, the rest 0. */
KITH_API void kith_search_options_init(kith_search_options *options, size_t size);

typedef struct kith_hit {
    int64_t id;
    double score; /* as kith_neighbor's */
} kith_hit;

typedef struct kith_hits {
    int64_t n_queries;
    int64_t
        *begin; /* [n_queries + 1]: hits begin[i] … begin[i + 1] - 1 are those of query i, nearest first */
    kith_hit *hits;    /* ties by lower id */
    int64_t n_allowed; /* items that may be found: all, or those `where` holds for */
    bool is_exact;     /* every vector was compared */
} kith_hits;

/* Search with query [n, dim] of any float type. options NULL: the 10 nearest. There are always k hits where k items may be
 * found. An exact search gives the lists of kith_gallery_search over the same rows. On a device they are those of the CPU, but
 * for neighbours whose scores are equal up to rounding (with squared distances for all), and all searches of a handle that name one
 * name the same. The first search reads what it keeps in memory. KITH_EINVAL for an expression that cannot be read says at which character, and suggests a column. */
KITH_API kith_status kith_index_search(const kith_index *index, const kith_array *query,
                                       const kith_search_options *options, kith_hits *ret_hits,
                                       kith_error *err);
KITH_API void kith_hits_release(kith_hits *hits); /* fine on a zeroed struct */

/* The ids of all items of the last commit that `where` (NULL: all) holds for, ascending. Give *ret_ids back with kith_ids_free. */
KITH_API kith_status kith_index_ids(const kith_index *index, const char *where, int64_t **ret_ids,
                                    int64_t *ret_n, kith_error *err);
KITH_API void kith_ids_free(int64_t *ids); /* NULL is fine */

/* How many items have a value of a column. */
typedef struct kith_facet_value {
    const char *text; /* of a column of text: a value, or of dates what they begin with; NULL: a number */
    double low,
        high; /* of numbers: all from low on that are less than high; or low itself where both are the same */
    int64_t n;
} kith_facet_value;

/* Owned: kith_facets_release. */
typedef struct kith_facets {
    kith_value_type type;
    bool are_dates;     /* every text begins like 2021-05-03 */
    int64_t n_allowed;  /* items that `where` holds for; … */
    int64_t n_items;    /* … of them those with a value */
    int64_t n_distinct; /* different values, or days, months or years of dates */
    double least, most; /* of numbers; NaN: there are none */
    int64_t n_values;
    kith_facet_value *values; /* [n_values] */
} kith_facets;

/* Count the values of a column (label or one of the index's own) among the items of the last commit that `where` (NULL: all) holds for. At
 * most `most` are given: texts by how many items have them, ties in byte order; numbers in their order, and where there are more
 * different ones than that, by ranges of a round width, empty ones left out; dates in their order by day, month or year, whichever is
 * the finest of which there are not more. KITH_EINVAL: there is no such column. */
KITH_API kith_status kith_index_facets(const kith_index *index, const char *column, const char *where,
                                       int64_t most, kith_facets *ret_facets, kith_error *err);
KITH_API void kith_facets_release(kith_facets *facets); /* fine on a zeroed struct */

/* What is known of one item. KITH_ENOTFOUND: never there, or removed. Give it back with kith_index_item_release. */
KITH_API kith_status kith_index_item_get(const kith_index *index, int64_t id, kith_index_item *ret_item,
                                         kith_error *err);
KITH_API void kith_index_item_release(kith_index_item *item); /* fine on a zeroed struct */

/* The vectors of n items: ret_rows [n, dim]. KITH_ENOTFOUND names the first id that is not there. */
KITH_API kith_status kith_index_vectors(const kith_index *index, const int64_t *ids, int64_t n,
                                        float *ret_rows, kith_error *err);

/* ---- keeping up with files ---- */

typedef enum kith_file_state {
    KITH_FILE_SAME,    /* in the index, with this size and date */
    KITH_FILE_NEW,     /* not in the index */
    KITH_FILE_CHANGED, /* in the index with another size, or another date: look at the contents */
} kith_file_state;

typedef struct kith_file_stamp {
    const char *path;
    int64_t bytes, mtime_ns;
} kith_file_stamp;

/* Compare files with the items of the last commit: ret_states [n], and ret_ids [n] with the item of each file or -1.
 * *ret_gone receives the ids of items that have a path, which is none of these; *ret_n_gone how many (kith_ids_free). An
 * item whose path is there twice is gone but for its last. */
KITH_API kith_status kith_index_compare(const kith_index *index, const kith_file_stamp *files, int64_t n,
                                        kith_file_state *ret_states, int64_t *ret_ids, int64_t **ret_gone,
                                        int64_t *ret_n_gone, kith_error *err);

/* ---- looking after it ---- */

/* Read everything and check it: checksums, sizes, order, numbers. The first thing that is wrong is KITH_EFORMAT and names the
 * file. *ret_bytes: what was read. */
KITH_API kith_status kith_index_check(const kith_index *index, const kith_work_options *options,
                                      int64_t *ret_bytes, kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
