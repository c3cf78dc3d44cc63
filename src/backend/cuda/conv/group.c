/* Groups of convolutions: finding them, packing and unpacking all their weights in one launch. */
#include "backend/cuda/conv/group.h"

#include <string.h>

#include "backend/cuda/cuda.h"

struct ki_conv_group {
    ki_conv_member **member; /* a member that left is NULL */
    size_t n, n_left;
    const ki_conv_member *last_backward; /* NULL: no member is trained */
    int n_pack_blocks, n_unpack, n_unpack_blocks;
    int n_due, n_due_blocks; /* the first of them, not added yet in this backward */
    ki_pack_item *pack;      /* device memory; unpack follows it */
    ki_unpack_item *unpack;
};

kith_status ki_conv_pack_later(ki_backend *backend, ki_conv_member *member, kith_error *err) {
    ki_conv_queue *queue = NULL;
    KI_TRY(ki_conv_queue_of(backend, &queue, err));
    for (size_t i = 0; i < queue->n; i++) {
        if (queue->item[i] == member) return KITH_OK;
    }
    KI_TRY(ki_grow(&queue->item, &queue->capacity, queue->n + 1, sizeof *queue->item, "a queue", err));
    queue->item[queue->n++] = member;
    return KITH_OK;
}

static void group_free(ki_backend *backend, ki_conv_group *group) {
    if (!group) return;
    for (size_t i = 0; i < group->n; i++) {
        if (group->member[i]) group->member[i]->group = NULL;
    }
    ki_cuda_free(backend, group->pack);
    ki_free(group->member);
    ki_free(group);
}

static bool is_group(const ki_conv_group *group, const ki_conv_queue *queue) {
    if (!group || group->n != queue->n) return false;
    for (size_t i = 0; i < queue->n; i++) {
        if (group->member[i] != queue->item[i]) return false;
    }
    return true;
}

/* The items of all members, with their blocks numbered consecutively. */
static void list_items(ki_conv_group *group, ki_pack_item *pack, ki_unpack_item *unpack) {
    for (size_t i = 0; i < group->n; i++) {
        ki_conv_member *m = group->member[i];
        m->first_unpack = group->n_unpack;
        m->first_unpack_block = group->n_unpack_blocks;
        pack[i] = m->pack;
        pack[i].first_block = group->n_pack_blocks;
        group->n_pack_blocks += m->pack.tiling.n_blocks;
        if (m->is_trained && !group->last_backward) group->last_backward = m;
        for (int k = 0; k < m->n_unpack; k++) {
            ki_unpack_item *item = &unpack[group->n_unpack++];
            *item = m->unpack[k];
            item->first_block = group->n_unpack_blocks;
            group->n_unpack_blocks += item->is_bias
                                          ? (item->form.oc + KI_UNPACK_BIAS_BLOCK - 1) / KI_UNPACK_BIAS_BLOCK
                                          : item->tiling.n_blocks;
        }
    }
    group->n_due = group->n_unpack;
    group->n_due_blocks = group->n_unpack_blocks;
}

static kith_status group_new(ki_backend *backend, const ki_conv_queue *queue, kith_error *err) {
    const size_t n = queue->n, pack_bytes = ki_round_up(n * sizeof(ki_pack_item), 256),
                 bytes = pack_bytes + 2 * n * sizeof(ki_unpack_item);
    ki_conv_group *group = NULL;
    char *host = NULL;
    void *device = NULL;
    kith_status status = KITH_OK;
    KI_CHECK(ki_zalloc_or(&group, 1, sizeof *group, "convolutions", err));
    KI_CHECK(ki_zalloc_or(&group->member, n, sizeof *group->member, "convolutions", err));
    KI_CHECK(ki_zalloc_or(&host, 1, bytes, "convolutions", err));
    for (size_t i = 0; i < n; i++) {
        ki_conv_member *m = queue->item[i];
        if (m->group) group_free(backend, m->group); /* the network has changed around it */
        group->member[group->n++] = m;
    }
    list_items(group, (ki_pack_item *)(void *)host, (ki_unpack_item *)(void *)(host + pack_bytes));
    KI_CHECK(backend->type->memory.alloc(backend, bytes, &device, err));
    group->pack = device;
    group->unpack = (ki_unpack_item *)(void *)((char *)device + pack_bytes);
    KI_CHECK(backend->type->memory.upload(backend, device, host, bytes, err));
    KI_CHECK(backend->type->memory.sync(backend, err));
    for (size_t i = 0; i < n; i++) group->member[i]->group = group;
    group = NULL;
done:
    ki_free(host);
    if (group) {
        for (size_t i = 0; i < group->n; i++) group->member[i] = NULL;
        group_free(backend, group);
    }
    return status;
}

kith_status ki_conv_pack_now(ki_backend *backend, kith_error *err) {
    ki_conv_queue *queue = NULL;
    KI_TRY(ki_conv_queue_of(backend, &queue, err));
    if (queue->n == 0) return KITH_OK;
    const ki_conv_member *first = queue->item[0];
    if (!is_group(first->group, queue)) {
        ki_conv_tune_end(backend);
        KI_TRY(group_new(backend, queue, err));
    }
    const ki_conv_group *group = first->group;
    queue->n = 0;
    backend->n_reorders++;
    KI_CUDA(ki_cuda_pack(group->pack, (int)group->n, group->n_pack_blocks, first->type,
                         ki_cuda_of(backend)->stream));
    return KITH_OK;
}

bool ki_conv_is_last(const ki_conv_member *member) {
    return !member->group || member->group->last_backward == member;
}

kith_status ki_conv_unpack(ki_backend *backend, const ki_conv_member *member, cudaStream_t stream,
                           kith_error *err) {
    ki_conv_group *group = member->group;
    if (!group) return ki_fail(err, KITH_EINTERNAL, "a convolution's backward before any forward");
    const int first = member->first_unpack, first_block = member->first_unpack_block;
    const int n = group->n_due - first, n_blocks = group->n_due_blocks - first_block;
    const bool is_last = group->last_backward == member;
    group->n_due = is_last ? group->n_unpack : first;
    group->n_due_blocks = is_last ? group->n_unpack_blocks : first_block;
    if (n_blocks == 0) return KITH_OK;
    backend->n_reorders++;
    KI_CUDA(ki_cuda_unpack(group->unpack + first, n, first_block, n_blocks, stream));
    return KITH_OK;
}

void ki_conv_member_leave(ki_backend *backend, ki_conv_member *member) {
    ki_conv_queue *queue = NULL;
    ki_conv_group *group = member->group;
    if (ki_conv_queue_of(backend, &queue, NULL) == KITH_OK) {
        for (size_t i = 0; i < queue->n; i++) {
            if (queue->item[i] != member) continue;
            memmove(&queue->item[i], &queue->item[i + 1], (--queue->n - i) * sizeof *queue->item);
            break;
        }
    }
    if (!group) return;
    member->group = NULL;
    for (size_t i = 0; i < group->n; i++) {
        if (group->member[i] != member) continue;
        group->member[i] = NULL;
        group->n_left++;
    }
    if (group->n_left == group->n) group_free(backend, group);
}
