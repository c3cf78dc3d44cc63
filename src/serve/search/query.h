/* What a request asks for: the JSON of a query (docs/serving.md), and the images that were sent with it.
 *
 *     {"images": [{"part": "f0", "weight": 1, "crop": [10, 20, 100, 80]}, {"id": 17, "weight": -1}], "k": 24, …}
 */
#ifndef KI_SERVE_QUERY_H
#define KI_SERVE_QUERY_H

#include "base/arena.h"
#include "base/option.h"
#include "kith/eval.h"
#include "serve/http/multipart.h"
#include "serve/http/request.h"

enum { KI_MOST_QUERY_IMAGES = 16 };

typedef struct ki_query_image {
    int64_t id;               /* of an item; -1: an image that was sent */
    const ki_form_part *part; /* which */
    double weight;
    bool has_crop;
    double crop[4];
} ki_query_image;

typedef struct ki_query {
    ki_arena arena; /* of the texts */
    ki_form form;   /* points into the request's body */
    ki_query_image image[KI_MOST_QUERY_IMAGES];
    int n_images;
    int64_t k, offset;
    const char *where;                   /* NULL: anything */
    double same;                         /* a false-match rate; NaN: not asked for */
    double min_score;                    /* NaN: not asked for */
    double unknown, precision, complete; /* as kith_search_request's */
    kith_rerank_method rerank;
    bool flips, exact, hide_duplicates;
    double error; /* of names */
    int64_t hit;  /* of an explanation; -1: not given */
} ki_query;

/* The keys of a query, and of one of its images. */
extern const ki_option ki_query_options[], ki_query_image_options[];

/* Read it from a body of multipart/form-data, whose part "query" is the JSON, or of JSON alone. `most_k`: for k and offset
 * together. KITH_EINVAL and KITH_EFORMAT say what is wrong in one line. */
kith_status ki_query_read(const char *content_type, const char *body, size_t n, int64_t most_k, ki_query *ret,
                          kith_error *err);
void ki_query_release(ki_query *query); /* fine on a zeroed struct */

#endif
