/* What a way consists of, and making one: for way.c and the files of tune.h, which know the libraries. */
#ifndef KI_CUDA_CONV_WAY_PARTS_H
#define KI_CUDA_CONV_WAY_PARTS_H

#include "backend/cuda/conv/cudnn_graph.h"
#include "backend/cuda/gemm/lt.h"
#include "backend/cuda/libraries.h"

typedef enum ki_conv_way_kind { KI_WAY_PLAIN, KI_WAY_DEPTHWISE, KI_WAY_LT, KI_WAY_CUDNN } ki_conv_way_kind;

enum { KI_CONV_TEXT = 640 };

struct ki_conv_way {
    ki_backend *backend;
    ki_cuda_libraries *libraries;
    ki_conv_problem problem;
    ki_conv_way_kind kind;
    /* cuDNN */
    ki_cudnn_form form;
    bool packs_dst; /* cuDNN sees dst without a pitch, in the workspace; it is copied */
    ki_cudnn_graph graph;
    ki_cudnn_setting setting;
    cudnnBackendDescriptor_t plan, pointers;
    /* cuBLASLt */
    ki_lt_product product;
    ki_lt_call call;
    cublasLtMatmulAlgo_t algo;

    size_t workspace_bytes; /* in all */
    size_t packed_bytes;    /* of it, at its beginning, dst without a pitch */
    double seconds;
    ki_conv_io io;
    char text[KI_CONV_TEXT]; /* the way as it is remembered */
};

/* Are the rows of dst adjacent, without gaps? And the same problem with such a dst. */
bool ki_conv_dst_is_packed(const ki_conv_problem *problem);
ki_conv_problem ki_conv_packed(const ki_conv_problem *problem);

/* The way that a text describes; KITH_EUNSUPPORTED when it is not possible here. */
kith_status ki_conv_way_parse(ki_backend *backend, const ki_conv_problem *problem, const char *text,
                              ki_conv_way **ret_way, kith_error *err);

kith_status ki_conv_way_plain(ki_backend *backend, const ki_conv_problem *problem, ki_conv_way **ret_way,
                              kith_error *err);
/* Our own kernels for depthwise convolutions; KITH_EUNSUPPORTED where they do not fit. */
kith_status ki_conv_way_depthwise(ki_backend *backend, const ki_conv_problem *problem, ki_conv_way **ret_way,
                                  kith_error *err);
/* Is the pass a product of matrices? Then its sizes. */
bool ki_conv_product(const ki_backend *backend, const ki_conv_problem *problem, ki_lt_product *ret_product);
kith_status ki_conv_way_lt(ki_backend *backend, const ki_conv_problem *problem,
                           const cublasLtMatmulAlgo_t *algo, size_t workspace_bytes, ki_conv_way **ret_way,
                           kith_error *err);
kith_status ki_conv_way_cudnn(ki_backend *backend, const ki_conv_problem *problem, ki_cudnn_form form,
                              bool packs_dst, const ki_cudnn_setting *setting, ki_conv_way **ret_way,
                              kith_error *err);

#endif
