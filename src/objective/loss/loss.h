/* A loss: a value and G = dL/ds from the pair view. NAME.h has its settings, NAME.c one record
 * `ki_loss_NAME`, NAME.cu the same for a device (cuda/loss.h); one row in table.def (proxy losses: proxy/table.def)
 * serves both. docs/adding-a-loss.md walks through one.
 *
 * A loss never sees embeddings. Embeddings are L2-normalised before the view is built when
 * `normalize` says so; the recipe's `normalize:` overrides it. */
#ifndef KI_OBJECTIVE_LOSS_H
#define KI_OBJECTIVE_LOSS_H

#include "objective/method.h"
#include "objective/pair/pairs.h"

typedef struct ki_loss_in {
    const void *settings;
    const ki_pairs *pairs;
    ki_state *const *param; /* what `params` added, in its order; a proxy loss's param[0] is its proxies */
    const ki_real *proxies; /* proxy losses: the columns as the view saw them (L2-normalised) [n, dim] */
} ki_loss_in;

typedef struct ki_loss_out {
    double value;
    /* [m, ld]: dL/ds, every entry [i, 0 … n). ki_pairs_rows clears a row before the loss fills it in; a loss
     * that does not use it clears g itself. */
    ki_real *g;
    /* A factor on all of g, for what is known only after the last row; 1 unless the loss sets it. */
    double g_scale;
    /* For each of param, cleared: add dL/dparam. Proxies get theirs by the chain rule. */
    ki_real *const *diff;
    /* Proxy losses: add dL/d(columns) that does not go through s; else NULL. */
    ki_real *diff_proxies;
} ki_loss_out;

typedef struct ki_loss {
    ki_method method;
    bool no_normalize; /* default of the recipe's `normalize` is the opposite */
    bool is_proxy;
    /* A proxy loss whose columns may be shared out over ranks: it makes its rows whole itself (ki_pairs.comm). */
    bool joins_columns;
    /* What s is, by the settings. NULL: inner products. */
    ki_measure (*measure)(const void *settings);
    /* Columns per class of a proxy loss. NULL: 1. */
    int64_t (*n_centers)(const void *settings);
    /* Parameters it owns. NULL: none. A proxy loss adds [n_classes * n_centers, embedding] first; the
     * centers of class c are the rows c * n_centers … */
    kith_status (*params)(const void *settings, const ki_sizes *sizes, ki_state_list *list, kith_error *err);
    /* How many classes a saved state was made for; 0: it does not say. NULL: nothing of it is per class. */
    int64_t (*saved_classes)(const void *settings, const ki_saved *saved);
    kith_status (*eval)(const ki_loss_in *in, ki_loss_out *out, kith_error *err);
} ki_loss;

#define X(name, device) extern const ki_loss ki_loss_##name;
#include "objective/loss/table.def"
#include "objective/proxy/table.def"
#undef X

/* All losses, pair losses first; NULL past the end. */
const ki_loss *ki_loss_at(size_t i);
/* KITH_ENOTFOUND suggests the nearest name. */
kith_status ki_loss_find(const char *name, const ki_loss **ret_loss, kith_error *err);

#endif
