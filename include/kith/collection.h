/* A collection: an index together with the photos it was made from and the model that embeds them.
 *
 *     KITH_OPTIONS(kith_model_options, model);
 *     model.weights = "run";                          // a run's folder, or a model's file
 *     KITH_OPTIONS(kith_collection_options, options);
 *     options.model = &model;
 *     kith_collection *birds = NULL;
 *     kith_collection_create("birds.kith", &options, &birds, &err);
 *     const kith_sources photos = {.paths = &folder, .n = 1, .split = KITH_SPLIT_ALL};
 *     kith_collection_sync(birds, &photos, NULL, NULL, &err);
 *
 *     const kith_query_part part = {.id = -1, .image = {.path = "tern.jpg"}, .weight = 1};
 *     KITH_OPTIONS(kith_search_request, request);
 *     request.parts = &part;
 *     request.n_parts = 1;
 *     kith_found found;
 *     kith_collection_search(birds, &request, 1, NULL, &found, &err);
 *     for (int64_t i = 0; i < found.n_hits; i++) printf("%s\n", found.hits[i].picture);
 *     kith_found_release(&found);
 *     kith_collection_free(birds);
 *
 * The program does nothing else: the same collection made by it and by any other caller has the same bytes, and the same request has
 * the same answer.
 *
 * A collection remembers its sources, its model and how often different things look alike, in notes of its index. Any path of a
 * collection may also be the address of a PostgreSQL server (kith/index.h).
 *
 * A collection is used by one thread at a time; its index, opened for reading, by any number (kith_collection_index). */
#ifndef KITH_COLLECTION_H
#define KITH_COLLECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/calibration.h"
#include "kith/data.h"
#include "kith/duplicates.h"
#include "kith/eval.h"
#include "kith/index.h"
#include "kith/model.h"
#include "kith/reliability.h"
#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kith_collection kith_collection;

/* ---- making and opening ---- */

/* Strings are borrowed for the call. */
typedef struct kith_collection_options {
    size_t size; /* of the struct: set by kith_collection_options_init */
    const kith_model_options
        *model;  /* `weights` names it; NULL: vectors that were made elsewhere, and then … */
    int64_t dim; /* … of this size; with a model 0, or the model's (KITH_ESHAPE) */
    kith_metric metric;
    double recall; /* wanted of searches that are not exact */
    const kith_column *columns;
    int64_t n_columns;
    const char *folder; /* where relative paths of added items begin; NULL: they are whole, or mean nothing */
    int64_t first;      /* of kith_index_options */
} kith_collection_options;

/* No model, and the rest as kith_index_options_init. */
KITH_API void kith_collection_options_init(kith_collection_options *options, size_t size);

/* Make an empty one, open for writing. The file of a model that was named `general` is also kept in the user's cache (kith/photos.h), if that
 * can be written: a later release may bring another one. KITH_EINVAL when something is there already. If the first sync or addition of a new
 * collection fails and none after it succeeds, kith_collection_free removes it: nothing half-made is left. Other files in its folder
 * stay, and so does what the caller committed by its index. */
KITH_API kith_status kith_collection_create(const char *path, const kith_collection_options *options,
                                            kith_collection **ret_collection, kith_error *err);

typedef struct kith_collection_open_options {
    size_t size; /* of the struct: set by kith_collection_open_options_init */
    kith_index_mode mode;
    /* `weights`: where the model lies now, if not where the collection says (what changes the collection by its model remembers
     * that); device, precision, tf32 and batch. The rest is as the collection says. NULL: all of it, on the CPU */
    const kith_model_options *model;
    /* A model that is open already, used if it made the index; it must outlive the collection. NULL: none */
    kith_model *shared;
} kith_collection_open_options;

/* Reading, the model as the collection says. */
KITH_API void kith_collection_open_options_init(kith_collection_open_options *options, size_t size);

/* Open the last commit, as kith_index_open does; the model is opened when it is first needed: the file that the collection says, or if that
 * is another model now, the one with the right contents in the user's cache. */
KITH_API kith_status kith_collection_open(const char *path, const kith_collection_open_options *options,
                                          kith_collection **ret_collection, kith_error *err);
/* What was not committed is dropped. NULL is fine. */
KITH_API void kith_collection_free(kith_collection *collection);

/* Its index, for everything that has nothing to do with photos. It stays the collection's, until the next change of the collection. NULL:
 * it could not be opened again after a change that failed. */
KITH_API kith_index *kith_collection_index(kith_collection *collection);
/* Its model, opened if it is not yet; it stays the collection's. KITH_ENOTFOUND: it was made from vectors, and says none.
 * KITH_EINVAL: the file is another model now. */
KITH_API kith_status kith_collection_model(kith_collection *collection, kith_model **ret_model,
                                           kith_error *err);

/* What is remembered besides the index. Everything lives until the collection is changed or freed. */
typedef struct kith_collection_info {
    kith_index_info index;
    const char *model;          /* the model's file; NULL: not known */
    const char *const *sources; /* [n_sources]: whole paths */
    int64_t n_sources;
    const char *kind; /* of the data set that the sources are; NULL: files and folders */
    kith_split split;
    const char *folder;                        /* where relative paths begin; NULL: nowhere */
    const kith_calibration *false_match_rates; /* NULL: not known */
} kith_collection_info;

/* What the collection remembers, and what its index is. */
/* What the collection is, as of the last commit this handle sees. */
KITH_API kith_status kith_collection_info_get(kith_collection *collection, kith_collection_info *ret_info,
                                              kith_error *err);

/* Read everything and check it, as kith_index_check. */
KITH_API kith_status kith_collection_check(const kith_collection *collection,
                                           const kith_work_options *options, int64_t *ret_bytes,
                                           kith_error *err);

/* ---- keeping up with photos (a collection opened for writing) ----
 *
 * A file is known by its path, its size and its date. When one of these differs, its contents decide (SHA-256): a file that
 * was moved or only touched is not embedded again. */

/* Where images come from. Strings are borrowed for the call. */
typedef struct kith_sources {
    const char *const
        *paths; /* [n] files and folders; or one data set; or one recipe (.yaml) that names one */
    int64_t n;
    const char *kind; /* of a data set (kith_dataset_open); NULL: files, folders or a recipe */
    kith_split split; /* of a data set; KITH_SPLIT_ALL: all of it */
} kith_sources;

/* Whether a sync reads the facts that photos have in their files. */
typedef enum kith_exif_use {
    KITH_EXIF_AS_BEFORE, /* of photos that are new or have changed, unless an earlier sync was told KITH_EXIF_NONE */
    KITH_EXIF_ALL,  /* of all photos, and from now on */
    KITH_EXIF_NONE, /* not from now on; those that are there are emptied */
} kith_exif_use;

typedef struct kith_sync_options {
    size_t size;         /* of the struct: set by kith_sync_options_init */
    double most_removed; /* KITH_EINVAL when a larger part of the items would go; nothing is changed then */
    /* Also files that were removed by hand (kith_collection_remove): they count as added again */
    bool with_excluded;
    kith_progress_fn progress; /* may be NULL; in images embedded. Stopped, what was done is committed */
    void *user;
    /* Commit early and often, for others who search meanwhile: after about a hundred images, whenever there are half as many again, and
     * every 15 seconds. Otherwise every five minutes */
    bool eager;
    bool counts_all; /* progress is in files: those that are as before count as done */
    /* Facts of photos (EXIF): date, camera, lens and place, in the columns of KITH_FACT_COLUMNS, each made when the first photo has such
     * a fact. A column that has another type already is left alone */
    kith_exif_use exif;
    /* A CSV file (kith/items.h) whose rows belong to photos by the column `path`: relative to the file's own folder or to a source, or
     * whole. The other columns become values, before EXIF's; there may be no `label`. It is remembered: later syncs read it again when its
     * contents have changed, and a row that is gone empties its values. NULL: as remembered; "": none from now on */
    const char *meta;
} kith_sync_options;

/* Any part may go (most_removed 1), files that were removed by hand stay out. */
KITH_API void kith_sync_options_init(kith_sync_options *options, size_t size);

#define KITH_SYNC_NAMED 100

/* Why a sync did not take place, for programs; the error says it to people. */
typedef enum kith_sync_reason {
    KITH_SYNC_FINE,
    KITH_SYNC_NO_SOURCES,     /* the collection remembers none, and none were named */
    KITH_SYNC_SOURCE_MISSING, /* a folder that it remembers is not there: is a disk missing? */
    KITH_SYNC_MOST_REMOVED,   /* more than most_removed would go */
    KITH_SYNC_NOTHING_READ,   /* of a new collection no image could be read */
    KITH_SYNC_BUSY,           /* another process writes it (kith_photos_sync) */
} kith_sync_reason;

/* What was found and done, in items. */
typedef struct kith_sync_report {
    int64_t n_files;   /* looked at */
    int64_t n_same;    /* as before */
    int64_t n_touched; /* another date or size, the same contents */
    /* The contents of an item that are not at its path any more: it has this path now, and keeps its id */
    int64_t n_moved;
    int64_t n_changed;    /* embedded again */
    int64_t n_added;      /* embedded */
    int64_t n_removed;    /* gone, and not found elsewhere */
    int64_t n_bad;        /* could not be read, and are not in the index */
    int64_t n_named;      /* entries of bad */
    char **bad;           /* the first KITH_SYNC_NAMED, as "PATH: why" */
    int64_t n_excluded;   /* were removed by hand, and stay out */
    int64_t n_relabelled; /* as before, with another label of the data set */
    int64_t n_names_kept; /* moved or changed, and the name that somebody decided stays (kith/names.h) */
    kith_sync_reason reason;
    kith_status measured; /* the false-match rates; not KITH_OK: the collection is complete without, and … */
    kith_error measured_error; /* … this is why */
    int64_t n_revalued;        /* items that were there before have other values */
    char **said;               /* [n_said]: lines for people, about the table and the facts */
    int64_t n_said;
    int64_t n_grouped;        /* put into groups, where the collection has some (kith/groups.h) */
    kith_status grouped;      /* not KITH_OK: what is new is in no group, and … */
    kith_error grouped_error; /* … this is why */
} kith_sync_report;

KITH_API void kith_sync_report_release(kith_sync_report *report); /* fine on a zeroed struct */

/* Make the collection hold what its sources hold, and commit: what is new or changed is embedded, what is gone is removed, nothing else
 * is touched. sources NULL: those it remembers; else these, from now on. Then its false-match rates are measured, if its labels are
 * many enough and a tenth of its items has changed since the last time, and the user has not measured them on other data
 * (kith_collection_calibrate). An item inside a file of many (idx) is known by its name alone.
 *
 * The report, which may be NULL, is also filled when the work was stopped (KITH_ECANCELED): then the rest is left for the next
 * time. After any other failure it holds the reason alone, and the collection is as it was at its last commit. */
KITH_API kith_status kith_collection_sync(kith_collection *collection, const kith_sources *sources,
                                          const kith_sync_options *options, kith_sync_report *ret_report,
                                          kith_error *err);

/* These files and folders too, from now on; nothing goes. One that lies below a source that is known has the class it has there.
 * Also takes files back that were removed by hand. KITH_EINVAL for a collection of a data set. */
KITH_API kith_status kith_collection_add(kith_collection *collection, const char *const *paths, int64_t n,
                                         const kith_sync_options *options, kith_sync_report *ret_report,
                                         kith_error *err);

/* Vectors that were made elsewhere, as kith_index_add; committed, and false-match rates measured as after a sync. work and ret_report may
 * be NULL. */
KITH_API kith_status kith_collection_add_rows(kith_collection *collection, const kith_array *rows,
                                              const kith_index_item *items, const kith_work_options *work,
                                              kith_sync_report *ret_report, kith_error *err);

/* Embed all of it anew with another model (NULL: the one that has the name of the collection's, or lies where it lay): a collection beside
 * it, with the same sources, metric and excluded files, and where no weights and no backbone are named also with the side, resizing, pooling, tap
 * and settings that the options leave open, which takes its place as a whole when it is complete. Items get new ids. What was
 * measured on other data (kith_collection_calibrate) is measured on its labels again. After a failure, or stopped, the collection is as it
 * was. Only for a collection of images in a folder (KITH_EUNSUPPORTED at a server); it may not be open for writing. */
KITH_API kith_status kith_collection_renew(const char *path, const kith_model_options *model,
                                           const kith_sync_options *options, kith_sync_report *ret_report,
                                           kith_error *err);

/* Remove by hand the items whose path is like one of the patterns of a shell ("oak/" for a folder, "*.png"; a pattern is for the whole path
 * or for its end behind a slash), and commit: a sync leaves their files out until they are added again. KITH_ENOTFOUND: none is like that. */
KITH_API kith_status kith_collection_remove(kith_collection *collection, const char *const *patterns,
                                            int64_t n, int64_t *ret_n_removed, kith_error *err);

/* Measure how often different things look alike, on a data set whose classes the model was not trained on, or (data NULL) on the labels of
 * the collection itself beside the model's curve, and commit. The split of the data counts. KITH_ENOTFOUND, and nothing changes:
 * too few labels; KITH_EINVAL: the split has no two images of one class, or of two. progress may be NULL. */
KITH_API kith_status kith_collection_calibrate(kith_collection *collection, const kith_sources *data,
                                               kith_progress_fn progress, void *user,
                                               kith_calibration *ret_calibration, kith_error *err);

/* How often hits are wrong, as it was measured on the labels of the collection together with its false-match rates.
 * KITH_ENOTFOUND: fewer than 10 labels have two items. KITH_EFORMAT: what was noted is damaged; the next sync measures it again. */
KITH_API kith_status kith_collection_reliability(kith_collection *collection,
                                                 kith_reliability *ret_reliability, kith_error *err);

/* ---- asking ---- */

/* One part of what is looked for: exactly one of an item, a vector and an image. */
typedef struct kith_query_part {
    int64_t id;             /* of an item; -1: none */
    const float *row;       /* [dim] a vector; NULL: none */
    kith_query_image image; /* path, bytes or pixels, and maybe a box; its own weight is not read */
    double weight;          /* above 0: like it; below 0: unlike it */
} kith_query_part;

/* One query. Strings and arrays are borrowed for the call. */
typedef struct kith_search_request {
    size_t size; /* of the struct: set by kith_search_request_init */
    const kith_query_part *parts;
    int64_t n_parts;           /* several are combined as kith_query_combine does */
    bool flips;                /* images count as the mean of themselves and their mirror images */
    int64_t k;                 /* hits, at most; INT64_MAX: all */
    int64_t offset;            /* leave out this many of the nearest: pages */
    const char *where;         /* only items that this expression holds for (kith/index.h); NULL: all */
    double same;               /* only hits whose false-match rate is at most this; NaN: any */
    double min_score;          /* only hits at least as near as this score, as a float32; NaN: any */
    kith_rerank_method rerank; /* a better order (kith/rerank.h); cosine only */
    bool exact;                /* compare every vector */
    bool hide_duplicates;      /* of several hits with the same picture only the nearest */
    double unknown;            /* the part of the queries that shows things the index does not have, 0 to 1 */
    /* Promises, of which one may be given, without `where`. Among the first 24 hits, and at most k, those are found that … */
    double precision; /* … leave at most the part 1 - precision of all hits wrong; NaN: any */
    double complete;  /* … hold a right one for this part of the queries whose thing is there; NaN: any */
} kith_search_request;

/* k 10, everything may be found, a tenth of the queries unknown. */
KITH_API void kith_search_request_init(kith_search_request *request, size_t size);

/* A hit, with what is known of it. */
typedef struct kith_found_hit {
    double score;
    double false_match_rate; /* NaN: not measured */
    kith_index_item item;    /* with its id */
    const char *picture;     /* where its image lies; NULL: it has none that is a file */
    /* The chance that it is wrong, and its 95 % interval (kith/reliability.h). NaN: not known, because the index has too few labels, or
     * the query is no single image, item or vector, its hits were re-ranked, `where` asks for the label, group, path or id, or it is the item that was asked with, or
     * has the very vector of the query */
    double error_rate, error_rate_low, error_rate_high;
} kith_found_hit;

/* The answer to one request. Owned: kith_found_release. */
typedef struct kith_found {
    kith_status status; /* of this request: KITH_OK, or why it has no hits, and … */
    kith_error error;   /* … the words for it */
    int64_t n_hits;
    kith_found_hit *hits; /* nearest first, ties by lower id; re-ranked ones in their better order */
    int64_t n_allowed;    /* items that may be found */
    bool is_exact;        /* every vector was compared */
    double limit;         /* the score that `same` or `min_score` meant; NaN: none */
    float *row;           /* [dim]: the vector that was asked with; NULL: there is none */
    double
        top_score; /* of the nearest item but the query itself; NaN: nothing may be found, or the index is not measured */
} kith_found;

/* How a search is made, for all its requests. */
typedef struct kith_ask_options {
    size_t size;        /* of the struct: set by kith_ask_options_init */
    int64_t n_threads;  /* 0: kith_threads() */
    const char *device; /* of exact searches, as in kith_search_options */
    /* May be NULL. First in images embedded, then in rows compared, each from 0 on. */
    kith_progress_fn progress;
    void *user;
    int64_t most_pixels; /* an image with more is refused; 0: 100 million */
    /* For hide_duplicates; NULL: they are found when asked for, once for each commit. */
    const kith_duplicates *duplicates;
    /* Of the items of hits only their ids: what is known of them is not read, nor their pictures (kith_found_fill). */
    bool ids_only;
    /* Hits that hide_duplicates looks at for one request, if the page is not full before; 0: any number. */
    int64_t most_looked_at;
} kith_ask_options;

/* All 0 and NULL. */
KITH_API void kith_ask_options_init(kith_ask_options *options, size_t size);

/* Answer n requests, embedding and searching those that belong together at once: ret_found [n]. A request that is wrong fails alone,
 * in its own status: KITH_ENOTFOUND for an item that is not there, KITH_EINVAL for `same` without a curve that tells such a
 * rate, and for a promise that the trials of the index were too few or too often wrong for. The call fails when it is stopped, and with the first request's error when none can be answered; ret_found is
 * written and has to be released in any case. Requests in one call give the hits that they give alone; images
 * that are embedded together have vectors that may differ in their last bits, and so may their scores. A request with images
 * needs the collection's model. options may be NULL. */
KITH_API kith_status kith_collection_search(kith_collection *collection, const kith_search_request *requests,
                                            int64_t n, const kith_ask_options *options, kith_found *ret_found,
                                            kith_error *err);
/* Read what is known of the hits that were found with ids_only. Several threads may do so while another searches, if the
 * collection was opened for reading. */
KITH_API kith_status kith_found_fill(const kith_collection *collection, kith_found *found, kith_error *err);
KITH_API void kith_found_release(kith_found *found); /* fine on a zeroed struct */

/* Groups of the same picture, as kith_duplicates_find; pictures lie where the collection says, and `folder` of the options is not
 * read. Other threads may search meanwhile, if the collection was opened for reading. */
KITH_API kith_status kith_collection_duplicates(const kith_collection *collection,
                                                const kith_duplicates_options *options,
                                                kith_duplicates *ret_duplicates, kith_error *err);

/* Where the image of an item lies: in ret_path, of path_bytes. KITH_ENOTFOUND: no such item, or none that is a file. Other threads
 * may search meanwhile, if the collection was opened for reading. */
KITH_API kith_status kith_collection_picture(const kith_collection *collection, int64_t id, char *ret_path,
                                             size_t path_bytes, kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
