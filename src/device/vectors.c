/* Memory for vectors on a device or the host, and the copy between the two. */
#include "device/vectors.h"

#include "base/alloc.h"

kith_status ki_vectors_init(ki_backend *backend, bool on_device, int64_t n_room, int64_t dim, ki_vectors *ret,
                            kith_error *err) {
    kith_status status;
    ki_vectors v = {.dim = dim, .n_room = n_room, .backend = backend};
    size_t row_bytes, bytes;
    if (!ki_mul_size((size_t)dim, sizeof *v.host, &row_bytes) ||
        !ki_mul_size((size_t)n_room, row_bytes, &bytes))
        return ki_fail_memory(err, SIZE_MAX, "vectors");
    KI_CHECK(ki_alloc_or(&v.label, (size_t)n_room, sizeof *v.label, "labels", err));
    KI_CHECK(ki_alloc_or(&v.item, (size_t)n_room, sizeof *v.item, "items", err));
    if (on_device) {
        void *memory = NULL;
        KI_CHECK(backend->type->memory.alloc(backend, bytes ? bytes : 1, &memory, err));
        v.device = memory;
    } else {
        KI_CHECK(ki_alloc_or(&v.host, (size_t)n_room, row_bytes, "vectors", err));
    }
    *ret = v;
    return KITH_OK;
done:
    ki_vectors_release(&v);
    return status;
}

void ki_vectors_release(ki_vectors *v) {
    if (v->device) v->backend->type->memory.free(v->backend, v->device);
    ki_free(v->host);
    ki_free(v->label);
    ki_free(v->item);
    ki_free(v->role);
    *v = (ki_vectors){0};
}

kith_status ki_vectors_host(ki_vectors *v, const float **ret_rows, kith_error *err) {
    float *rows = NULL;
    if (!v->host) {
        ki_backend *backend = v->backend;
        KI_TRY(ki_alloc_or(&rows, (size_t)v->n, (size_t)v->dim * sizeof *rows, "vectors", err));
        kith_status status = KITH_OK;
        if (v->n > 0)
            status = backend->type->memory.download(backend, v->device, rows,
                                                    (size_t)(v->n * v->dim) * sizeof *rows, err);
        if (status == KITH_OK) status = backend->type->memory.sync(backend, err);
        if (status != KITH_OK) {
            ki_free(rows);
            return status;
        }
        v->host = rows;
    }
    *ret_rows = v->host;
    return KITH_OK;
}
