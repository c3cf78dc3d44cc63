/* Who is it? Names for photos, from the labels of a collection, with a promised rate of false ones.
 *
 *     const kith_query_part photo = {.id = -1, .image = {.path = "tern.jpg"}, .weight = 1};
 *     KITH_OPTIONS(kith_identify_request, request);
 *     request.parts = &photo;
 *     request.n_parts = 1;
 *     KITH_OPTIONS(kith_identify_options, options); // at most 1 % of false names
 *     kith_identified who;
 *     kith_collection_identify(birds, &request, 1, &options, NULL, &who, &err);
 *     printf("%s\n", who.name ? who.name : "unknown");
 *     kith_identified_release(&who);
 *
 * A name is given only where the rate of false names is at most `error`. That holds for both kinds of photos: of those whose thing is not in the
 * collection, at most this share is given a name; of those whose thing is, at most this share is given a wrong name. So it holds for every mix of
 * known and unknown things. It is measured on the collection's own labels, each photo and each label left out in turn, and counts as kept
 * when its upper bound at 95 % is kept, over the draw of the labelled things. It holds for things and photos like those of the
 * collection, and for the average over names: not for each name by itself. */
#ifndef KITH_IDENTIFY_H
#define KITH_IDENTIFY_H

#include "kith/collection.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- names ---- */

/* One thing whose name is asked for. Strings and arrays are borrowed for the call. */
typedef struct kith_identify_request {
    size_t size;                  /* of the struct: set by kith_identify_request_init */
    const kith_query_part *parts; /* photos of the thing (or items, or vectors); weights are not read */
    int64_t n_parts;              /* each is asked about alone, and the name is what enough of them say */
} kith_identify_request;

/* No photos. */
KITH_API void kith_identify_request_init(kith_identify_request *request, size_t size);

typedef struct kith_identify_options {
    size_t size;               /* of the struct: set by kith_identify_options_init */
    double error;              /* the rate of false names that is promised; above 0, below 1 */
    int64_t k;                 /* names that are told with their nearest photos, given or not; at most 100 */
    bool exact;                /* compare every vector */
    int64_t n_threads;         /* 0: kith_threads() */
    const char *device;        /* of exact searches */
    kith_progress_fn progress; /* may be NULL; in requests */
    void *user;
    int64_t most_pixels; /* an image with more is refused; 0: 100 million */
} kith_identify_options;

/* 0.01, 3 names, the rest 0. */
KITH_API void kith_identify_options_init(kith_identify_options *options, size_t size);

/* The answer to one request. Owned: kith_identified_release. */
typedef struct kith_identified {
    kith_status status; /* of this request: KITH_OK, or why there is no answer, and … */
    kith_error error;   /* … the words for it */
    const char *name;   /* the label; NULL: unknown. Lives as long as the candidates */
    double evidence; /* of the first candidate: larger is stronger; NaN: too few of the photos say the same */
    /* The rate of false names if names are given from this evidence on: measured, and its bounds at 95 %. NaN without evidence. */
    double false_name_rate, false_name_low, false_name_high;
    bool
        is_single; /* the name has one photo in the collection: it cannot be measured by itself, only with all others */
    int64_t n_candidates;
    kith_found_hit *candidates; /* nearest photo of each name: the name in question first, then by score */
} kith_identified;

/* What the answers of a call go by. */
typedef struct kith_identify_report {
    double error;                        /* as promised */
    double evidence;                     /* from which on one photo is given a name */
    double named;                        /* of photos whose thing is there, about this share gets its name */
    double least;                        /* the smallest error that could be promised */
    int64_t n_photos, n_names, n_single; /* with a label; labels, and those of one photo */
    int64_t n_unknown, n_known; /* trials with all of the label left out, and with the photo alone left out */
    /* Of 20 photos and more: are they farther from the collection's than things it does not have (-1), or nearer than its own photos to each
     * other (1)? Then they are of another kind than those that were measured, and the error may be another. 0: neither */
    int unlike;
} kith_identify_report;

/* Name n things: ret_identified [n], and *ret_report unless it is NULL. A request that fails (a photo that cannot be read) fails alone, in its own
 * status. The call fails with KITH_ENOTFOUND when the labels are too few to promise the error, and says how many are wanted; with KITH_EINVAL for an
 * error that is not between 0 and 1; with the first request's error when none can be answered. ret_identified is written and has to be
 * released in any case. options may be NULL. The curve is kept with the index (kith_collection_sync measures it with false-match
 * rates); where there is none, or a tenth of the labelled items has come or gone since, the call measures it, and later calls of
 * the handle have it. */
KITH_API kith_status kith_collection_identify(kith_collection *collection,
                                              const kith_identify_request *requests, int64_t n,
                                              const kith_identify_options *options,
                                              kith_identify_report *ret_report,
                                              kith_identified *ret_identified, kith_error *err);
KITH_API void kith_identified_release(kith_identified *identified); /* fine on a zeroed struct */

/* ---- the same or not ---- */

typedef enum kith_verdict {
    KITH_VERDICT_UNSURE,
    KITH_VERDICT_SAME,
    KITH_VERDICT_DIFFERENT,
} kith_verdict;

/* "cannot say", "same", "different"; NULL for any other number. */
KITH_API const char *kith_verdict_name(kith_verdict verdict);

/* What is known of two photos. */
typedef struct kith_sameness {
    double score; /* by the metric of the curve, as a search shows it */
    double
        false_match_rate; /* of pairs of different things, the share that looks at least this alike; NaN: no curve */
    double missed_rate; /* of pairs of the same thing, the share that looks less alike; NaN: no curve */
    kith_verdict verdict;
} kith_sameness;

/* Are two vectors [dim] of the same thing? The same where at most `error` of the pairs of different things look as alike; different where at
 * most `error` of the pairs of the same thing look as different; where both or neither holds it cannot be said. curve NULL: the score is
 * the cosine, and nothing can be said. KITH_EINVAL: error is not between 0 and 1, or dim is below 1. KITH_ENUMERIC: a vector is not
 * finite. */
KITH_API kith_status kith_same(const kith_calibration *curve, const float *a, const float *b, int64_t dim,
                               double error, kith_sameness *ret_sameness, kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
