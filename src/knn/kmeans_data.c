/* The rows of a k-means run: normalised on the host, and on the device from the rows it has. */
#include <math.h>

#include "base/alloc.h"
#include "base/parallel.h"
#include "knn/kmeans.h"

typedef struct copying {
    const ki_rows *rows;
    bool normalize;
    float *x;
    double *norm; /* [n], or NULL */
} copying;

static void copy_rows(void *context, int64_t begin, int64_t end) {
    const copying *c = context;
    const int64_t dim = c->rows->dim;
    const size_t bytes = kith_dtype_bytes(c->rows->dtype);
    for (int64_t i = begin; i < end; i++) {
        const double norm = c->normalize ? fmax(sqrt(ki_rows_dot(c->rows, i, c->rows, i)), KI_LEAST_NORM) : 1;
        if (c->norm) c->norm[i] = norm;
        for (int64_t k = 0; k < dim; k++) {
            const ki_rows one = {c->rows->dtype, 1, 1,
                                 (const char *)c->rows->data + (size_t)(i * dim + k) * bytes, NULL};
            double x = 0;
            ki_rows_get(&one, 0, &x);
            c->x[i * dim + k] = (float)(x / norm);
        }
    }
}

/* Normalised rows on the device: from rows that it has already, divided there, or from the host's. */
static kith_status hold_rows(const ki_rows *all, const double *norm, ki_kmeans_data *data, kith_error *err) {
    const ki_rows here = {KITH_F32, data->n, data->dim, data->x, NULL};
    const ki_knn_device *d = &data->device;
    return all->there ? d->type->hold(d->backend, all, norm, &data->there, err)
                      : d->type->hold(d->backend, &here, NULL, &data->there, err);
}

kith_status ki_kmeans_data_init(ki_kmeans_data *data, const ki_rows *all, bool normalize, kith_error *err) {
    kith_status status = KITH_OK;
    const ki_knn_device *d = &data->device;
    double *norm = NULL;
    data->n = all->n;
    data->dim = all->dim;
    KI_CHECK(ki_alloc_or(&data->x, (size_t)all->n, (size_t)all->dim * sizeof(float), "rows", err));
    if (d->type && all->there && normalize)
        KI_CHECK(ki_alloc_or(&norm, (size_t)all->n, sizeof *norm, "row norms", err));
    copying copy = {all, normalize, data->x, norm};
    ki_parallel_for(all->n, 64, copy_rows, &copy);
    if (d->type) KI_CHECK(hold_rows(all, norm, data, err));
    const ki_rows x = {KITH_F32, all->n, all->dim, data->x, data->there};
    KI_CHECK(ki_panels_init(&x, KITH_SQEUCLIDEAN, NULL, &data->panels, err));
    if (d->type) KI_CHECK(d->type->load(d->backend, &data->panels, (ki_device_tile){0}, &data->loaded, err));
done:
    ki_free(norm);
    return status;
}

void ki_kmeans_data_release(ki_kmeans_data *data) {
    const ki_knn_device *d = &data->device;
    if (d->type) {
        d->type->unload(d->backend, data->loaded);
        if (data->there) d->backend->type->memory.free(d->backend, data->there);
    }
    ki_knn_device_close(&data->device);
    ki_free(data->x);
    ki_panels_release(&data->panels);
}
