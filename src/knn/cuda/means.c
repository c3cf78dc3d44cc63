/* Means of rows that are on the device, updated there: k-means passes in the members of each cluster, and no row leaves
 * the device. */
#include "knn/cuda/inside.h"
#include "knn/cuda/kernels.h"

static kith_status make(ki_backend *backend, ki_device_rows *m, kith_error *err) {
    KI_TRY(ki_knn_cuda_take(backend, m->n, m->dim, sizeof *m->x, &m->x, err));
    KI_TRY(ki_knn_cuda_take(backend, m->n, 1, sizeof *m->half, &m->half, err));
    KI_TRY(ki_knn_cuda_take(backend, m->n, m->dim, sizeof *m->mean, &m->mean, err));
    KI_TRY(ki_knn_cuda_take(backend, m->of->n, 1, sizeof *m->member, &m->member, err));
    KI_TRY(ki_knn_cuda_take(backend, m->n, 1, sizeof *m->which, &m->which, err));
    KI_TRY(ki_knn_cuda_take(backend, m->n + 1, 1, sizeof *m->begin, &m->begin, err));
    KI_TRY(ki_knn_cuda_copy_in(backend, m->of->panels->center, m->dim, sizeof *m->center, &m->center, err));
    return backend->type->memory.sync(backend, err);
}

kith_status ki_knn_cuda_means(ki_backend *backend, const ki_device_rows *of, int64_t n, ki_device_rows **ret,
                              kith_error *err) {
    ki_device_rows *m = NULL;
    if (!of->panels || !of->panels->center || !of->panels->rows.there)
        return ki_fail(err, KITH_EINTERNAL, "means of rows that are not centred on the device");
    KI_TRY(ki_zalloc_or(&m, 1, sizeof *m, "means on the device", err));
    *m = (ki_device_rows){.of = of, .n = n, .dim = of->dim, .tile = of->tile};
    const kith_status status = make(backend, m, err);
    if (status == KITH_OK)
        *ret = m;
    else
        ki_knn_cuda_unload(backend, m);
    return status;
}

static kith_status queue(ki_backend *backend, ki_device_rows *m, const ki_device_move *move,
                         kith_error *err) {
    const ki_backend_type *type = backend->type;
    cudaStream_t stream = ki_cuda_of(backend)->stream;
    KI_TRY(type->memory.upload(backend, m->which, move->which, (size_t)move->n * sizeof *m->which, err));
    KI_TRY(type->memory.upload(backend, m->begin, move->begin, (size_t)(m->n + 1) * sizeof *m->begin, err));
    KI_TRY(type->memory.upload(backend, m->member, move->member,
                               (size_t)move->begin[m->n] * sizeof *m->member, err));
    const ki_knn_moving moving = {.rows = m->of->panels->rows.there,
                                  .dim = m->dim,
                                  .n = move->n,
                                  .which = m->which,
                                  .begin = m->begin,
                                  .member = m->member,
                                  .center = m->center,
                                  .mean = m->mean,
                                  .centred = m->x,
                                  .half = m->half};
    KI_CUDA(ki_knn_move(stream, &moving));
    return KITH_OK;
}

kith_status ki_knn_cuda_move(ki_backend *backend, ki_device_rows *m, const ki_device_move *move,
                             kith_error *err) {
    if (move->begin[m->n] > m->of->n)
        return ki_fail(err, KITH_EINTERNAL, "%lld members of %lld rows", (long long)move->begin[m->n],
                       (long long)m->of->n);
    if (move->n == 0) return KITH_OK;
    const kith_status status = queue(backend, m, move, err);
    /* The uploads read the host's lists. */
    return status == KITH_OK ? backend->type->memory.sync(backend, err)
                             : (backend->type->memory.sync(backend, NULL), status);
}

kith_status ki_knn_cuda_means_read(ki_backend *backend, const ki_device_rows *m, float *ret,
                                   kith_error *err) {
    KI_TRY(backend->type->memory.download(backend, m->mean, ret, (size_t)(m->n * m->dim) * sizeof *ret, err));
    return backend->type->memory.sync(backend, err);
}
