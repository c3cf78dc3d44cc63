/* Vectors of several views of every image: the mean of their vectors, each of length 1, and again of length 1. */
#ifndef KI_EMBED_VIEWS_H
#define KI_EMBED_VIEWS_H

#include "data/transform/transform.h"
#include "embed/embedder.h"

/* KITH_EINVAL: not 1 to KI_N_TEST_VIEWS views, or corners of images that are not resized, which have no corners in common. */
kith_status ki_views_check(int64_t n_views, const kith_transform *transform, kith_error *err);

/* As ki_embedder_items and ki_embedder_images; with one view the same. Of several, rows are on the host, and items are prepared once as far
 * as 512 MiB hold them. */
kith_status ki_views_items(ki_embedder *embedder, const ki_embed_request *request, int64_t n_views,
                           ki_vectors *ret_vectors, kith_error *err);
kith_status ki_views_images(ki_embedder *embedder, const ki_image *images, int64_t n, const char *tap,
                            int64_t n_views, int64_t dim, float *ret_values, kith_error *err);

#endif
