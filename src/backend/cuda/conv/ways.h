/* Inside algorithms.c and the files of trials.h: one way to compute a pass. */
#ifndef KI_CUDA_WAYS_H
#define KI_CUDA_WAYS_H

#include "backend/cuda/conv/cudnn_graph.h"
#include "backend/cuda/libraries.h"
#include "backend/cuda/gemm/lt.h"

typedef enum ki_conv_way { KI_WAY_PLAIN, KI_WAY_LT, KI_WAY_CUDNN } ki_conv_way;

enum { KI_CONV_TEXT = 640 };

struct ki_conv_algorithm {
    ki_backend *backend;
    ki_cuda_libraries *libraries;
    ki_conv_problem problem;
    ki_conv_way way;
    /* cuDNN */
    ki_cudnn_form form;
    bool packs_dst; /* cuDNN sees dst without a pitch, in the workspace; it is copied */
    ki_cudnn_graph graph;
    ki_cudnn_choice choice;
    cudnnBackendDescriptor_t plan, pointers;
    /* cuBLASLt */
    ki_lt_product product;
    ki_lt_call call;
    cublasLtMatmulAlgo_t algo;

    size_t workspace_bytes; /* in all */
    size_t packed_bytes;    /* of it, at its beginning, dst without a pitch */
    double seconds;
    ki_conv_io io;
    char text[KI_CONV_TEXT]; /* the choice as it is remembered */
};

/* Is dst one row after the other without gaps? And the same problem with it so. */
bool ki_conv_dst_is_packed(const ki_conv_problem *problem);
ki_conv_problem ki_conv_packed(const ki_conv_problem *problem);

/* The way a text says; KITH_EUNSUPPORTED when it is not possible here. */
kith_status ki_conv_way_parse(ki_backend *backend, const ki_conv_problem *problem, const char *text,
                              ki_conv_algorithm **ret_algorithm, kith_error *err);

kith_status ki_conv_way_plain(ki_backend *backend, const ki_conv_problem *problem,
                              ki_conv_algorithm **ret_algorithm, kith_error *err);
/* Seconds of one run, bound to io; a way that is far behind `best` seconds is not looked at closely.
 * Waits. A way that cannot be captured is an error. */
kith_status ki_conv_time(ki_conv_algorithm *algorithm, const ki_conv_io *io, double best, double *ret_seconds,
                         kith_error *err);
/* The same with several times the runs, to tell near ones apart. */
kith_status ki_conv_time_closely(ki_conv_algorithm *algorithm, const ki_conv_io *io, double *ret_seconds,
                                 kith_error *err);
/* Is the pass a product of matrices? Then its sizes. */
bool ki_conv_product(const ki_backend *backend, const ki_conv_problem *problem, ki_lt_product *ret_product);
kith_status ki_conv_way_lt(ki_backend *backend, const ki_conv_problem *problem,
                           const cublasLtMatmulAlgo_t *algo, size_t workspace_bytes,
                           ki_conv_algorithm **ret_algorithm, kith_error *err);
kith_status ki_conv_way_cudnn(ki_backend *backend, const ki_conv_problem *problem, ki_cudnn_form form,
                              bool packs_dst, const ki_cudnn_choice *choice,
                              ki_conv_algorithm **ret_algorithm, kith_error *err);

#endif
