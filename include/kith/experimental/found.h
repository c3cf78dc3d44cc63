/* Hits as JSON: the same for `kith search --json` and for the server. */
#ifndef KITH_FOUND_H
#define KITH_FOUND_H

#include "kith/collection.h"
#include "kith/experimental/json.h"
#include "kith/identify.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Write an answer into the object that was begun:
 *
 *     "n_allowed": 16, "is_exact": true, "hits": [{"id": 6, "score": 0.9, "false_match_rate": 0.01, "error_rate": 0.07,
 *         "error_rate_interval": [0.05, 0.1], "label": "oak", "path": "photos/oak/1.jpg", "values": {"year": 2020}, "image": true}, …]
 *
 * `values` are those of the index's columns; `image` says whether the item has a picture that is a file. */
KITH_API void kith_found_write(const kith_collection *collection, const kith_found *found, kith_json *json);

/* Write a name into the object that was begun; "name" is null for an unknown thing:
 *
 *     "name": "oak", "evidence": 0.41, "false_name_rate": 0.004, "false_name_low": 0.001, "false_name_high": 0.009, "is_single": false,
 *         "candidates": [{"id": 6, "score": 0.9, "false_match_rate": 0.01, "label": "oak", …}, …]
 *
 * A candidate is a hit as above. */
KITH_API void kith_identified_write(const kith_collection *collection, const kith_identified *identified,
                                    kith_json *json);

/* Write counts into the object that was begun:
 *
 *     "column": "camera", "type": "text", "items": 14, "without": 2, "different": 3, "values": [{"text": "Canon EOS R6", "items": 9}, …]
 *
 * Of numbers {"number": 3, "items": 1}, or {"from": 2, "below": 4, "items": 7} for a range. */
KITH_API void kith_facets_write(const char *column, const kith_facets *facets, kith_json *json);

#ifdef __cplusplus
}
#endif
#endif
