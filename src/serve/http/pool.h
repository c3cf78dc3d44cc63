/* Threads that do the work of requests, in the order in which it came. */
#ifndef KI_SERVE_POOL_H
#define KI_SERVE_POOL_H

#include "serve/http/request.h"

typedef struct ki_pool ki_pool;

/* `done` is called by a thread of the pool when a request has its answer. */
kith_status ki_pool_new(int64_t n_threads, void (*done)(ki_request *request), ki_pool **ret, kith_error *err);
/* Waits for what was begun; requests that still wait are answered with 503. NULL is fine. */
void ki_pool_free(ki_pool *pool);

/* Run request->then. */
void ki_pool_add(ki_pool *pool, ki_request *request);

#endif
