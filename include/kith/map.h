/* Embedding maps: t-SNE to the plane, and a picture of the result.
 *
 * Barnes-Hut t-SNE (van der Maaten, "Accelerating t-SNE using tree-based algorithms", JMLR 2014) on
 * exact nearest neighbours. The same input, options and seed give the same map for any number of
 * threads. */
#ifndef KITH_MAP_H
#define KITH_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "kith/array.h"
#include "kith/knn.h"
#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kith_tsne_options {
    size_t size;       /* of the struct: set by kith_tsne_options_init */
    double perplexity; /* neighbours used: three times as many; 0: kith_tsne_perplexity */
    int64_t
        n_iterations;    /* 1000: a quarter with exaggerated attraction, a quarter while it fades, the rest */
    double exaggeration; /* 12 */
    double learning_rate; /* 0: n / exaggeration / 4, at least 50 */
    double theta;         /* 0.5; 0 computes every pair */
    int64_t n_components; /* PCA before the neighbours: 50; 0 for none */
    kith_metric metric;   /* of the neighbours: KITH_COSINE normalises the rows, else squared Euclidean */
    uint64_t seed;
    kith_progress_fn progress; /* may be NULL; in units of iterations */
    void *user;
} kith_tsne_options;

/* The numbers above. */
KITH_API void kith_tsne_options_init(kith_tsne_options *options, size_t size);

/* The perplexity that fits n rows: 30, or (n - 1) / 3 where there are too few for that. */
KITH_API double kith_tsne_perplexity(int64_t n);

/* ret_map: float64 [n, 2], centred. ret_divergence (may be NULL): the final Kullback-Leibler
 * divergence. n >= 4; a perplexity above (n - 1) / 3 is KITH_EINVAL. */
KITH_API kith_status kith_tsne(const kith_array *rows, const kith_tsne_options *options, kith_array *ret_map,
                               double *ret_divergence, kith_error *err);

/* Fill rgb [size, size, 3] with a picture of item `path`, scaled to fit and centred on white; a
 * failure is drawn as a plain dot and counted. */
typedef kith_status (*kith_thumbnail_fn)(void *user, const char *path, int size, uint8_t *rgb,
                                         kith_error *err);

typedef struct kith_map_drawing {
    size_t size;                 /* of the struct: set by kith_map_drawing_init */
    const kith_array *map;       /* float64 or float32 [n, 2] */
    const int64_t *labels;       /* [n], or NULL: one colour */
    const char *title;           /* may be NULL */
    const char *const *names;    /* [n] what an SVG says about an item under the pointer, or NULL */
    int side;                    /* of the picture in pixels: 1600 */
    double radius;               /* of a dot, in pixels; 0: from n */
    const char *const *paths;    /* [n] images for thumbnails, or NULL for dots */
    kith_thumbnail_fn thumbnail; /* with paths */
    void *user;
    int thumbnail_size; /* pixels: 32 */
    /* Thumbnails that would cover one already drawn are left out, so that pictures stay readable. */
} kith_map_drawing;

/* The numbers above. You must set the map. */
KITH_API void kith_map_drawing_init(kith_map_drawing *drawing, size_t size);

typedef struct kith_map_report {
    int64_t n_drawn;  /* items drawn as a thumbnail */
    int64_t n_failed; /* thumbnails that could not be made */
} kith_map_report;

/* Write the picture: .svg or .png by the ending of the path (KITH_EINVAL for another). The file is
 * complete or absent. ret_report may be NULL. */
KITH_API kith_status kith_map_draw(const kith_map_drawing *drawing, const char *path,
                                   kith_map_report *ret_report, kith_error *err);

#ifdef __cplusplus
}
#endif
#endif
