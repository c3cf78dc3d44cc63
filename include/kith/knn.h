/* Exact nearest neighbours, k-means and principal components over embedding matrices.
 *
 * A matrix is a kith_array [n, dim] of float32, float64, float16 or bfloat16, borrowed for the call.
 * Every call checks that all values are finite and names the first row that is not (KITH_ENUMERIC).
 * Nothing here depends on the number of threads: the same input gives the same bits. */
#ifndef KITH_KNN_H
#define KITH_KNN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kith/array.h"
#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- nearest neighbours ---- */

typedef enum kith_metric {
    KITH_COSINE, /* x.y / |x||y|; a zero row has similarity 0 to everything; larger is nearer. A length is 0, or 1e-140 and more */
    KITH_INNER,  /* x.y, larger is nearer */
    KITH_SQEUCLIDEAN, /* |x - y|^2, smaller is nearer */
} kith_metric;

/* "cosine", "inner", "sqeuclidean"; and back (KITH_ENOTFOUND suggests the nearest name). */
KITH_API const char *kith_metric_name(kith_metric metric);
KITH_API kith_status kith_metric_parse(const char *name, kith_metric *ret_metric, kith_error *err);

/* One neighbour: its row in the gallery, and its similarity or squared distance, rounded to float32; the last bits may
 * differ between devices. Where the gallery has fewer than k other rows, the tail of a list is filled with index -1 and a
 * NaN score. */
typedef struct kith_neighbor {
    double score;
    int64_t index;
} kith_neighbor;

typedef struct kith_knn_options {
    size_t size; /* of the struct: set by kith_knn_options_init */
    kith_metric metric;
    /* Order and membership of the lists. false: by float32 scores, whose rounding decides between neighbours
     * that differ by less than about 1e-6 of |x||y|. true: by float64 scores of the given values; lists are
     * re-ranked where float32 cannot decide, at some cost for long lists. Squared Euclidean distances, which
     * cancel in float32, are always in float64 order. */
    bool exact;
    kith_progress_fn progress; /* may be NULL; in units of matrix tiles */
    void *user;
    const char *device; /* "cpu" (default), "cuda" or "cuda:1"; float64 decisions stay on the host */
} kith_knn_options;

/* Cosine, not exact, on the CPU. */
KITH_API void kith_knn_options_init(kith_knn_options *options, size_t size);

/* A gallery prepared for search: a copy of the matrix in the layout of the product kernel, n * dim
 * floats (on a device too, when one is named). Searching does not change it: several threads may search one
 * gallery. The array must
 * outlive the gallery (exact order reads it again). */
typedef struct kith_gallery kith_gallery;

/* KITH_EINVAL for no rows, KITH_ENUMERIC for values that are not finite, KITH_ENOTFOUND for an unknown device. */
KITH_API kith_status kith_gallery_new(const kith_array *rows, const kith_knn_options *options,
                                      kith_gallery **ret_gallery, kith_error *err);
KITH_API void kith_gallery_free(kith_gallery *gallery); /* NULL is fine */

/* The k nearest gallery rows of every query row, nearest first, ties by lower index.
 * ret_neighbors [n_query, k] belongs to the caller. `self` (may be NULL) gives for every query the
 * gallery row that is the query itself and must not be found, or -1. k >= 1; an empty gallery is
 * KITH_EINVAL, k larger than the gallery fills the tails. */
KITH_API kith_status kith_gallery_search(const kith_gallery *gallery, const kith_array *query,
                                         const int64_t *self, int64_t k, kith_neighbor *ret_neighbors,
                                         kith_error *err);

/* The k nearest other rows of every row of the gallery. Half the products of a search with
 * query = gallery: each is used for both of its rows. Memory besides ret_neighbors [n, k] and the
 * gallery: n * (64 … 256) candidates of 8 bytes. */
KITH_API kith_status kith_gallery_self(const kith_gallery *gallery, int64_t k, kith_neighbor *ret_neighbors,
                                       kith_error *err);

/* ---- k-means ---- */

typedef struct kith_kmeans_options {
    size_t size; /* of the struct: set by kith_kmeans_options_init */
    int64_t n_clusters;
    int64_t n_iterations; /* at most, per restart */
    int64_t n_restarts;   /* the run with the least objective is kept; ties: the first */
    uint64_t seed;
    double tolerance;     /* stop when the objective falls by less than this part; 0: when nothing moves */
    bool normalize;       /* L2-normalise the rows first */
    bool is_random_start; /* distinct rows at random instead of k-means++ */
    kith_progress_fn progress; /* may be NULL; in units of iterations over all restarts */
    void *user;
    const char *device; /* of the distances: "cpu" (default), "cuda" or "cuda:1" */
} kith_kmeans_options;

/* 25 iterations, 1 restart, tolerance 0, seed 0, normalised, k-means++; You must set n_clusters. */
KITH_API void kith_kmeans_options_init(kith_kmeans_options *options, size_t size);

typedef struct kith_kmeans_result {
    kith_array centroids; /* float32 [n_clusters, dim] */
    int64_t *cluster;     /* [n], the nearest centroid; ties by lower index */
    int64_t *size;        /* [n_clusters]; 0 where the last assignment left none */
    double objective;     /* sum of squared distances to the nearest centroid, in float64 */
    int64_t n_iterations; /* of the kept run */
    int64_t n_refilled;   /* empty clusters that were given a new centre, in the kept run */
    int64_t restart;      /* which one was kept */
} kith_kmeans_result;

/* Lloyd's iterations; a row is compared only with the centroids whose moves may have changed which one is
 * nearest. An empty cluster takes the row that is farthest from its own centroid. n_clusters from 1 to n. */
KITH_API kith_status kith_kmeans(const kith_array *rows, const kith_kmeans_options *options,
                                 kith_kmeans_result *ret_result, kith_error *err);
KITH_API void kith_kmeans_result_release(kith_kmeans_result *result); /* fine on a zeroed struct */

/* ---- principal components ---- */

typedef enum kith_pca_method {
    KITH_PCA_AUTO,       /* exact up to dim 3000 or when most components are wanted */
    KITH_PCA_EXACT,      /* eigenvectors of the covariance matrix, float64 (LAPACK) */
    KITH_PCA_RANDOMIZED, /* subspace iteration from a random start (Halko, Martinsson and Tropp 2011) */
} kith_pca_method;

typedef struct kith_pca_options {
    size_t size; /* of the struct: set by kith_pca_options_init */
    int64_t n_components;
    kith_pca_method method;
    uint64_t seed; /* randomised only */
    bool whiten;   /* projected rows have variance 1 in every component */
} kith_pca_options;

/* Automatic method, seed 0, not whitened; You must set n_components. */
KITH_API void kith_pca_options_init(kith_pca_options *options, size_t size);

typedef struct kith_pca {
    kith_array mean;       /* float64 [dim] */
    kith_array components; /* float64 [n_components, dim], orthonormal rows, largest variance first; the
                              entry of largest magnitude of each is positive */
    kith_array variance;   /* float64 [n_components], of the projected rows (divided by n - 1) */
    double total_variance;
    bool whiten; /* may be changed after fitting */
} kith_pca;

/* n_components from 1 to min(n - 1, dim); n >= 2. */
KITH_API kith_status kith_pca_fit(const kith_array *rows, const kith_pca_options *options, kith_pca *ret_pca,
                                  kith_error *err);
/* Centred rows times components: float32 [n, n_components], a new array. Whitened: divided by the components'
 * standard deviations; components without variance (under 1e-12 of the whole) are 0. */
KITH_API kith_status kith_pca_apply(const kith_pca *pca, const kith_array *rows, kith_array *ret_projected,
                                    kith_error *err);
KITH_API void kith_pca_release(kith_pca *pca); /* fine on a zeroed struct */

#ifdef __cplusplus
}
#endif
#endif
