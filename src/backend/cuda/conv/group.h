/* Convolutions of one network together: their weights are packed in one launch before a forward, their
 * weight gradients added to the masters' in one launch at the end of a backward, or in a few launches on the way.
 *
 * The planner calls each kernel separately, so groups form by themselves: `pack` only puts a convolution into
 * the queue, the first forward packs everything in the queue, and the convolutions that were in the queue
 * together are a group from then on. Backward runs in the opposite order: the first trained member of the
 * group comes last and unpacks for all. */
#ifndef KI_CUDA_CONV_GROUP_H
#define KI_CUDA_CONV_GROUP_H

#include "backend/cuda/conv/kernels.h"
#include "backend/cuda/conv/way.h"

/* Convolutions whose weights are to be packed before the next forward. */
typedef struct ki_conv_queue {
    void **item;
    size_t n, capacity;
} ki_conv_queue;

/* The backend's one queue, which lives as long as it. */
kith_status ki_conv_queue_of(ki_backend *backend, ki_conv_queue **ret_queue, kith_error *err);

typedef struct ki_conv_group ki_conv_group;

typedef struct ki_conv_member {
    ki_pack_item pack;
    int n_unpack; /* weights, bias */
    ki_unpack_item unpack[2];
    int first_unpack, first_unpack_block; /* among those of the group */
    bool is_trained;
    ki_number type;
    ki_conv_group *group; /* NULL before the first forward */
} ki_conv_member;

kith_status ki_conv_pack_later(ki_backend *backend, ki_conv_member *member, kith_error *err);
/* Pack what is queued, if anything. The first time for a group allocates and waits. */
kith_status ki_conv_pack_now(ki_backend *backend, kith_error *err);
/* The member whose backward comes last; it calls ki_conv_unpack when all gradients are queued, which adds them
 * to the masters'. */
bool ki_conv_is_last(const ki_conv_member *member);
/* Add the gradients of this member and of those whose backward came before, except what was added before in this backward. The
 * last one must do so. */
kith_status ki_conv_unpack(ki_backend *backend, const ki_conv_member *member, cudaStream_t stream,
                           kith_error *err);
void ki_conv_member_leave(ki_backend *backend, ki_conv_member *member);

#endif
