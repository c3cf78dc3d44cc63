/* What losses, miners and regularizers have in common: the record that describes a method, and the named
 * parameters it may own. */
#ifndef KI_OBJECTIVE_METHOD_H
#define KI_OBJECTIVE_METHOD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/option.h"
#include "base/real.h"
#include "base/shape.h"
#include "objective/reg/tap.h"

/* The head of every record. Its options table gives the recipe's keys, `kith list` and the checks. */
typedef struct ki_method {
    const char *name;    /* the recipe's word */
    const char *summary; /* one line */
    const char *source;  /* paper or code */
    const ki_option *options;
    size_t settings_bytes; /* of the struct that the options point into */
} ki_method;

/* The options of a method that has none. */
extern const ki_option ki_no_options[];

/* Whether the row of the loss, miner or regularizer (`what`) of that name says that a device can compute it, too.
 * Methods are compared by name, because a plugin has its own copy of the tables and of the records. */
bool ki_method_has_device(const char *what, const char *name);

/* The shapes of named tensors, wherever they are stored. */
typedef struct ki_saved {
    bool (*shape)(const void *user, const char *name, ki_shape *ret_shape); /* false: no such tensor */
    const void *user;
} ki_saved;

/* The shape of a tensor of n_dims dimensions; false when there is no state or no such tensor in it. */
bool ki_saved_shape(const ki_saved *saved, const char *name, int n_dims, ki_shape *ret_shape);

/* What the parameters' shapes depend on. 0 = not known (no such tap); a method that needs it fails
 * with a line that says so. */
typedef struct ki_sizes {
    int64_t n_classes; /* labels are 0 … n_classes - 1 for methods that own one thing per class */
    int64_t embedding; /* dim of the embedding */
    int64_t pooled;    /* dim of the pooled features */
    int64_t map;       /* channels of the map */
    int64_t
        teacher[KI_MOST_TEACHERS]; /* width of what each teacher says; 0 from the first that is not there */
    bool no_map; /* the network takes features and has none: a term that reads it is refused by name */
    /* Of an ensemble: the embedding is so many vectors of embedding / heads numbers side by side. 0: nobody said; it is
     * one. */
    int64_t heads;
    /* Over ranks: what a loss has for each class is shared out, where loss, miner and terms allow it, and this objective
     * holds part `part` of n_parts (ki_comm_part of the classes). 0 or 1 parts: everything is here. */
    int part, n_parts;
    /* A saved state that the parameters will be read from, for what a recipe and the sizes above leave open;
     * NULL: none. Used only while the objective is made. */
    const ki_saved *saved;
} ki_sizes;

typedef enum ki_init {
    KI_INIT_CONSTANT, /* a */
    KI_INIT_UNIFORM,  /* in [-a, a) */
    KI_INIT_NORMAL,   /* standard deviation a */
    KI_INIT_GLOROT,   /* uniform, +-sqrt(6 / (dim[0] + dim[1])) */
    KI_INIT_SIGNS,    /* -a or +a */
} ki_init;

/* A named parameter: learned (lr_multiplier > 0) or a buffer (0) that is only saved with the rest.
 * diff accumulates (+=) over evaluations until it is cleared; NULL for a buffer. */
typedef struct ki_state {
    char name[48]; /* "proxies", "density.alpha" */
    ki_shape shape;
    int64_t count;
    double lr_multiplier;
    ki_init init;
    double a;
    ki_real *value, *diff;
    /* Shared out over ranks: value and diff are rows `first` … of n_whole; shape and count are of those rows alone.
     * n_whole 0: everything is here. */
    int64_t first, n_whole;
    bool sums_over_ranks; /* a term makes its gradient from a map, of which a rank has only its own rows */
} ki_state;

/* A method's params function calls this once for each parameter, in a fixed order; eval receives
 * them in the same order. Extents must be > 0. A name that is already there with the same shape is
 * shared (several terms may read the proxies). */
typedef struct ki_state_list ki_state_list;
kith_status ki_state_add(ki_state_list *list, const char *name, ki_shape shape, ki_init init, double a,
                         double lr_multiplier, kith_error *err);

/* The same for a parameter of which n of shape.dim[0] rows are held here, from row `first`. */
kith_status ki_state_add_part(ki_state_list *list, const char *name, ki_shape shape, int64_t first, int64_t n,
                              ki_init init, double a, double lr_multiplier, kith_error *err);

/* The shape of all ranks' rows together. */
static inline ki_shape ki_state_whole(const ki_state *state) {
    ki_shape shape = state->shape;
    if (state->n_whole) shape.dim[0] = state->n_whole;
    return shape;
}

/* The parameter added last gets its gradient from a map. */
void ki_state_sum_over_ranks(ki_state_list *list);

/* Another copy of everything that the objective's loss learns, for a term that repeats the loss on embeddings
 * of dim numbers: the names are "PREFIX.NAME". Adds nothing when the loss learns nothing; KITH_EINVAL when
 * the objective has no loss (`method` is named in the line). */
kith_status ki_state_add_loss(ki_state_list *list, const char *method, const char *prefix, int64_t dim,
                              kith_error *err);

/* The error for a parameter whose size is not known: "density needs the number of classes". */
kith_status ki_fail_size(kith_error *err, const char *method, const char *what);

#endif
