/* Queues in which nothing waits. */
#include "device/host_queue.h"

#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "device/backend.h"

/* ki_mark is each backend's own; this is what is behind the pointer here. */
typedef struct set_mark {
    double at; /* seconds */
} set_mark;

static kith_status host_alloc(ki_backend *backend, size_t bytes, void **ret_ptr, kith_error *err) {
    return backend->type->memory.alloc(backend, bytes, ret_ptr, err);
}

static void host_free(ki_backend *backend, void *ptr) { backend->type->memory.free(backend, ptr); }

static kith_status copy(ki_backend *backend, ki_queue queue, void *dst, const void *src, size_t bytes,
                        kith_error *err) {
    (void)queue;
    KI_TRY(backend->type->memory.sync(backend, err));
    return backend->type->memory.upload(backend, dst, src, bytes, err);
}

static kith_status mark_new(ki_backend *backend, ki_mark **ret_mark, kith_error *err) {
    set_mark *mark = NULL;
    (void)backend;
    KI_TRY(ki_zalloc_or(&mark, 1, sizeof *mark, "a mark", err));
    *ret_mark = (ki_mark *)(void *)mark;
    return KITH_OK;
}

static void mark_free(ki_backend *backend, ki_mark *mark) {
    (void)backend;
    ki_free(mark);
}

static kith_status mark_set(ki_backend *backend, ki_mark *mark, ki_queue queue, kith_error *err) {
    (void)queue;
    KI_TRY(backend->type->memory.sync(backend, err));
    ((set_mark *)(void *)mark)->at = ki_seconds_now();
    return KITH_OK;
}

static kith_status mark_follow(ki_backend *backend, const ki_mark *mark, ki_queue queue, kith_error *err) {
    (void)backend, (void)mark, (void)queue, (void)err;
    return KITH_OK;
}

static kith_status mark_wait(ki_backend *backend, const ki_mark *mark, kith_error *err) {
    (void)backend, (void)mark, (void)err;
    return KITH_OK;
}

static kith_status mark_seconds(ki_backend *backend, const ki_mark *from, const ki_mark *to,
                                double *ret_seconds, kith_error *err) {
    (void)backend, (void)err;
    *ret_seconds = ((const set_mark *)(const void *)to)->at - ((const set_mark *)(const void *)from)->at;
    return KITH_OK;
}

static kith_status memory(ki_backend *backend, size_t *ret_used, size_t *ret_all, kith_error *err) {
    (void)backend, (void)err;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    *ret_all = (size_t)sysconf(_SC_PHYS_PAGES) * page;
    *ret_used = *ret_all - (size_t)sysconf(_SC_AVPHYS_PAGES) * page;
    return KITH_OK;
}

const ki_queue_type ki_host_queues = {.host_alloc = host_alloc,
                                      .host_free = host_free,
                                      .copy = copy,
                                      .mark_new = mark_new,
                                      .mark_free = mark_free,
                                      .mark_set = mark_set,
                                      .mark_follow = mark_follow,
                                      .mark_wait = mark_wait,
                                      .mark_seconds = mark_seconds,
                                      .memory = memory};
