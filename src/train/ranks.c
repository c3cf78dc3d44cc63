/* What the ranks of a run tell each other outside of a step: whether all is well, where the run stands, vectors.
 *
 * A rank that fails alone must not leave the others waiting in a call. So whatever a rank does alone and may fail at is
 * followed by ki_train_agree before ranks compute together again. */
#include <string.h>

#include "base/alloc.h"
#include "base/cores.h"
#include "objective/engine.h"
#include "train/run.h"

kith_status ki_train_agree(ki_train_state *run, kith_status status, kith_error *err) {
    return ki_comm_agree_on(run->comm, status, &run->must_stop, err);
}

kith_status ki_train_share_standing(ki_train_state *run, kith_error *err) {
    return ki_comm_broadcast(run->comm, &run->at, sizeof run->at, err);
}

void ki_train_share_out(const ki_train_state *run, ki_sizes *sizes) {
    if (ki_comm_is_alone(run->comm) || !run->backend->type->is_host) return;
    sizes->part = run->comm->rank;
    sizes->n_parts = run->comm->size;
}

kith_status ki_train_first_says(ki_train_state *run, bool *answer, kith_error *err) {
    return ki_comm_broadcast(run->comm, answer, sizeof *answer, err);
}

/* ---- unreadable images ---- */

static kith_status add_bad(ki_train_state *run, const int64_t *items, const int64_t *counts,
                           kith_error *err) {
    for (int r = 0; r < run->comm->size; items += counts[r++]) {
        for (int64_t i = 0; r != run->comm->rank && i < counts[r]; i++)
            KI_TRY(ki_loader_add_bad(run->loader, items[i], err));
    }
    return KITH_OK;
}

kith_status ki_train_share_bad(ki_train_state *run, kith_error *err) {
    kith_status status = KITH_OK;
    int64_t counts[KI_MOST_RANKS], n_all = 0;
    int64_t *own = NULL, *all = NULL;
    if (ki_comm_is_alone(run->comm)) return KITH_OK;
    const int64_t n = ki_loader_n_bad_here(run->loader) - run->n_bad_told;
    KI_CHECK(ki_comm_gather_counts(run->comm, n, counts, err));
    for (int r = 0; r < run->comm->size; r++) n_all += counts[r];
    if (n_all == 0) return KITH_OK;
    status = ki_alloc_or(&own, (size_t)n + 1, sizeof *own, "unreadable items", err);
    if (status == KITH_OK) status = ki_alloc_or(&all, (size_t)n_all, sizeof *all, "unreadable items", err);
    KI_CHECK(ki_train_agree(run, status, err));
    for (int64_t i = 0; i < n; i++) own[i] = ki_loader_bad_here(run->loader, run->n_bad_told + i);
    KI_CHECK(ki_comm_gather(run->comm, own, counts, sizeof *own, all, err));
    run->n_bad_told += n;
    KI_CHECK(ki_train_agree(run, add_bad(run, all, counts, err), err));
done:
    ki_free(own);
    ki_free(all);
    return status;
}

kith_status ki_train_batch_alike(ki_train_state *run, double *ret, kith_error *err) {
    const int64_t dim = run->net.embedding;
    int64_t counts[KI_MOST_RANKS], n = 0, first = 0;
    const int size = run->comm ? run->comm->size : 1, rank = run->comm ? run->comm->rank : 0;
    KI_TRY(ki_comm_gather_counts(run->comm, run->last_n, counts, err));
    for (int r = 0; r < size; n += counts[r++]) first = r == rank ? n : first;
    /* run->embedding has room for a whole batch. */
    float *own = run->embedding + first * dim;
    const kith_status status = run->last_n > 0 ? ki_learner_embedding(run->learner, own, err) : KITH_OK;
    KI_TRY(ki_train_agree(run, status, err));
    KI_TRY(ki_comm_gather(run->comm, own, counts, (size_t)dim * sizeof *own, run->embedding, err));
    *ret = ki_alike(run->embedding, n, dim);
    return KITH_OK;
}

int64_t ki_train_threads(const ki_recipe *recipe, const ki_comm *comm) {
    if (recipe->threads > 0 || ki_comm_is_alone(comm)) return recipe->threads;
    /* mpirun may have bound each rank to cores of its own. If not, the ranks of a machine share its cores. */
    return ki_cores_each(comm->n_here);
}

kith_status ki_train_choose_device(const ki_recipe *recipe, const ki_comm *comm, int *ret_device,
                                   kith_error *err) {
    const ki_backend_type *type = NULL;
    int n = 1, told = -1;
    if (ki_comm_is_alone(comm)) return KITH_OK;
    KI_TRY(ki_backend_find(recipe->device, &type, &told, err));
    if (told >= 0) return KITH_OK; /* "cuda:1" is that one for every rank */
    if (type->count) KI_TRY(type->count(&n, err));
    *ret_device = comm->here % n;
    return KITH_OK;
}

/* ---- vectors ---- */

/* What one rank has: how many rows, how wide (0: it has none), and whether they have roles. */
typedef struct held {
    int64_t n, dim, has_roles;
} held;

static kith_status gather_parts(ki_comm *comm, const int64_t *counts, ki_vectors *own, ki_vectors *all,
                                kith_error *err) {
    const float *rows = NULL;
    if (own->n > 0) KI_TRY(ki_vectors_host(own, &rows, err));
    KI_TRY(ki_comm_gather(comm, rows, counts, (size_t)all->dim * sizeof *rows, all->host, err));
    KI_TRY(ki_comm_gather(comm, own->label, counts, sizeof *own->label, all->label, err));
    KI_TRY(ki_comm_gather(comm, own->item, counts, sizeof *own->item, all->item, err));
    return all->role ? ki_comm_gather(comm, own->role, counts, sizeof *own->role, all->role, err) : KITH_OK;
}

/* Room for everybody's rows, and for roles if any rank has them: then the others' are the usual ones. */
static kith_status make_room(const held *parts, int size, ki_vectors *own, int64_t *counts, ki_vectors *ret,
                             kith_error *err) {
    int64_t n = 0, dim = 0;
    bool has_roles = false;
    for (int r = 0; r < size; r++) {
        counts[r] = parts[r].n;
        n += parts[r].n;
        if (parts[r].dim > dim) dim = parts[r].dim;
        has_roles |= parts[r].has_roles != 0;
    }
    KI_TRY(ki_vectors_init(own->backend, false, n, dim, ret, err));
    ret->n = n;
    if (!has_roles) return KITH_OK;
    KI_TRY(ki_alloc_or(&ret->role, (size_t)n, sizeof *ret->role, "roles", err));
    if (own->role) return KITH_OK;
    KI_TRY(ki_alloc_or(&own->role, (size_t)own->n + 1, sizeof *own->role, "roles", err));
    memset(own->role, KITH_ROLE_BOTH, (size_t)own->n + 1);
    return KITH_OK;
}

kith_status ki_train_gather_vectors(ki_train_state *run, kith_status status, ki_vectors *own,
                                    ki_vectors *ret_all, kith_error *err) {
    ki_comm *comm = run->comm;
    ki_vectors all = {0};
    int64_t counts[KI_MOST_RANKS];
    held *parts = NULL;
    const held mine = {.n = own->n, .dim = own->dim, .has_roles = own->role != NULL};
    KI_CHECK(ki_train_agree(run, status, err));
    KI_CHECK(ki_alloc_or(&parts, (size_t)comm->size, sizeof *parts, "counts", err));
    KI_CHECK(ki_comm_gather_each(comm, &mine, sizeof mine, parts, err));
    KI_CHECK(make_room(parts, comm->size, own, counts, &all, err));
    KI_CHECK(gather_parts(comm, counts, own, &all, err));
    *ret_all = all;
    all = (ki_vectors){0};
done:
    ki_free(parts);
    ki_vectors_release(&all);
    ki_vectors_release(own);
    return status;
}
