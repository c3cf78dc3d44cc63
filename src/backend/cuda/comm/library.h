/* NCCL's library, found when it is wanted: the few calls and numbers of its interface that kith uses. They are written down
 * here, so that building kith needs no nccl.h; where that header is found, library.c compares (NCCL's own names for these
 * are in the comments). They have not changed since NCCL 2.0. */
#ifndef KI_CUDA_COMM_LIBRARY_H
#define KI_CUDA_COMM_LIBRARY_H

#include <cuda_runtime_api.h>
#include <stddef.h>

#include "base/error.h"

enum { KI_NCCL_ID_BYTES = 128 };
enum { KI_NCCL_BYTE = 0, KI_NCCL_FLOAT = 7 }; /* ncclInt8, ncclFloat32 */
enum { KI_NCCL_SUM = 0 };                     /* ncclSum */
enum { KI_NCCL_OK = 0 };                      /* ncclSuccess */
enum { KI_NCCL_LEAST = 20900 };               /* 2.9: the first whose calls may be captured */

typedef struct ki_nccl_id {
    char bytes[KI_NCCL_ID_BYTES];
} ki_nccl_id; /* ncclUniqueId */

typedef struct ki_nccl {
    char path[512]; /* what was loaded */
    int version;    /* 22809: 2.28.9 */
    int (*get_version)(int *ret_version);
    int (*get_id)(ki_nccl_id *ret_id);
    int (*init)(void **ret_comm, int size, ki_nccl_id id, int rank);
    int (*destroy)(void *comm);
    int (*abort)(void *comm);
    int (*all_reduce)(const void *from, void *to, size_t n, int type, int op, void *comm,
                      cudaStream_t stream);
    int (*all_gather)(const void *from, void *to, size_t n_each, int type, void *comm, cudaStream_t stream);
    int (*broadcast)(const void *from, void *to, size_t n, int type, int root, void *comm,
                     cudaStream_t stream);
    int (*group_start)(void);
    int (*group_end)(void);
    const char *(*error_text)(int error);
} ki_nccl;

/* The library: the file that the variable KITH_NCCL names, else libnccl.so.2 where the system looks. It stays loaded.
 * KITH_EUNSUPPORTED with one line: not found, not NCCL, or older than 2.9. */
kith_status ki_nccl_load(const ki_nccl **ret_nccl, kith_error *err);

/* A failed call as an error. */
kith_status ki_nccl_fail(const ki_nccl *nccl, int error, const char *call, kith_error *err);

#endif
