/* All pairs of two matrices on a device: the interface that a device fills in.
 *
 * A device computes float32 scores of the same panels as the host, but sums in another order. They are within
 * ki_panels_bound of panels that ki_panels_any_order was called on. The device keeps every candidate that it cannot
 * rule out. What its rounding cannot decide, the host decides in float64, so results are the same as the host's. */
#ifndef KI_KNN_DEVICE_H
#define KI_KNN_DEVICE_H

#include "device/backend.h"
#include "knn/topk.h"

/* A matrix in device memory, row-major. */
typedef struct ki_device_rows ki_device_rows;

/* How many rows and columns are scored at a time; 0: the device chooses. */
typedef struct ki_device_tile {
    int64_t n_rows, n_cols;
} ki_device_tile;

typedef struct ki_device_best {
    const ki_device_rows *rows, *cols;
    const int32_t *self; /* [rows]: the column that is the row itself and is left out, or -1; NULL: none */
    bool is_square;      /* row i and column i are the same thing: left out */
    int64_t k;           /* at most type->most_k */
    ki_key *ret_keys;    /* [rows, k], best first; 0 where there are no more */
    kith_progress_fn progress;
    void *user;
} ki_device_best;

/* Where irrelevant columns fall among the scores of each row's relevant ones (judge/ranks.h). For every pair
 * of different classes whose score is at least least[row], find the first place of the row's list whose score
 * is below the pair's, and add one to n_before there; if there is no such place, do nothing. Pairs whose
 * score is within the bound of the list's score at that place are not counted but passed to `unsettled`. */
typedef struct ki_device_places {
    const ki_device_rows *rows, *cols;
    const int32_t *row_class, *col_class;
    const float *least;   /* [rows]; INFINITY: the row has no list */
    const int64_t *begin; /* [rows + 1] places in score and n_before */
    const double *score;  /* descending within each list */
    int32_t *ret_n_before;
    /* n pairs (row << 32 | column), in no order; called from the calling thread. */
    void (*unsettled)(void *context, const uint64_t *pair, int64_t n);
    void *context;
    kith_progress_fn progress;
    void *user;
} ki_device_places;

/* Means to recompute: each mean c in which[0 … n - 1] becomes the mean of rows member[begin[c]] … member[begin[c + 1]
 * - 1], at least one, summed in float64 in this order and rounded to float32. All host memory. */
typedef struct ki_device_move {
    int64_t n;
    const int32_t *which;  /* [n] */
    const int64_t *begin;  /* [means + 1] */
    const int32_t *member; /* [begin[means]], no more than there are rows */
} ki_device_move;

typedef struct ki_knn_device_type {
    int64_t most_k;
    /* The panels must outlive the rows. If the device has the panels' matrix already (rows.there), the rows are made
     * from it, with the same bits, and nothing is copied. When two matrices are compared, the tile of the columns is
     * used. */
    kith_status (*load)(ki_backend *backend, const ki_panels *panels, ki_device_tile tile,
                        ki_device_rows **ret_rows, kith_error *err);
    void (*unload)(ki_backend *backend, ki_device_rows *rows); /* NULL is fine */
    kith_status (*best)(ki_backend *backend, const ki_device_best *ask, kith_error *err);
    kith_status (*place)(ki_backend *backend, const ki_device_places *ask, kith_error *err);
    /* ret_scores [rows, cols] in host memory. */
    kith_status (*scores)(ki_backend *backend, const ki_device_rows *rows, const ki_device_rows *cols,
                          float *ret_scores, kith_error *err);

    /* A copy of float32 rows, from rows.there or the host, divided by max(norm, KI_LEAST_NORM) in float64 where norm [n]
     * is not NULL; freed with backend->type->memory.free. */
    kith_status (*hold)(ki_backend *backend, const ki_rows *rows, const double *norm, float **ret_there,
                        kith_error *err);
    /* Columns from … from + width - 1 of rows.there, as a matrix of their own; freed in the same way. */
    kith_status (*columns)(ki_backend *backend, const ki_rows *rows, int64_t from, int64_t width,
                           float **ret_there, kith_error *err);
    /* n columns for `best` that are means of loaded rows (squared distances, with rows.there), with the same bits as
     * on the host. They are undefined until they are moved for the first time. Unload them like rows, before the
     * rows they are means of. */
    kith_status (*means)(ki_backend *backend, const ki_device_rows *of, int64_t n, ki_device_rows **ret_means,
                         kith_error *err);
    kith_status (*move)(ki_backend *backend, ki_device_rows *means, const ki_device_move *move,
                        kith_error *err);
    kith_status (*means_read)(ki_backend *backend, const ki_device_rows *means, float *ret_means,
                              kith_error *err);

    /* Principal components, of float32 rows: sums are in float64, in an order of the device's own. All but rows.there
     * is host memory. ret_mean [dim], summed in the order of rows; ret_squares [dim]: the sums of (x - mean)^2. */
    kith_status (*mean)(ki_backend *backend, const ki_rows *rows, double *ret_mean, double *ret_squares,
                        kith_error *err);
    /* ret [dim, dim] = the sum over the rows of (x - mean)' (x - mean). */
    kith_status (*scatter)(ki_backend *backend, const ki_rows *rows, const double *mean, double *ret,
                           kith_error *err);
    /* With Z = (X - mean) q, q [dim, n_q]: ret_back [dim, n_q] = (X - mean)' Z, or ret_inner [n_q, n_q] = Z' Z; the other
     * is NULL. */
    kith_status (*spread)(ki_backend *backend, const ki_rows *rows, const double *mean, const double *q,
                          int64_t n_q, double *ret_back, double *ret_inner, kith_error *err);
    /* ret [n, n_by] = (x - mean) by', by [n_by, dim]; rounded to float. */
    kith_status (*project)(ki_backend *backend, const ki_rows *rows, const double *mean, const double *by,
                           int64_t n_by, float *ret, kith_error *err);
} ki_knn_device_type;

/* NULL: this backend cannot do it; the host does. */
const ki_knn_device_type *ki_knn_device_of(const ki_backend *backend);

/* A device in use; `type` is NULL when the host does the work, and nothing is open. */
typedef struct ki_knn_device {
    ki_backend *backend;
    const ki_knn_device_type *type;
    bool is_borrowed; /* the backend belongs to the caller */
} ki_knn_device;

/* `name` as in kith_knn_options; NULL, "cpu" and "ref" mean the host. */
kith_status ki_knn_device_open(const char *name, ki_knn_device *ret_device, kith_error *err);
/* The device of a backend that is open, for rows in its memory: the backend itself or, when that may round products to
 * TF32, another on the same device. */
kith_status ki_knn_device_beside(ki_backend *backend, ki_knn_device *ret_device, kith_error *err);
void ki_knn_device_close(ki_knn_device *device); /* fine on a zeroed struct */

#endif
