/* What this build of kith has: every method by kind and name, with its options, their defaults and
 * where the defaults come from. All strings are constants of the library, unless said otherwise. */
#ifndef KITH_LIST_H
#define KITH_LIST_H

#include <stdbool.h>

#include "kith/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kith_list_kind {
    const char *name;    /* "backbones" */
    const char *summary; /* one line */
} kith_list_kind;

typedef struct kith_list_entry {
    const char *name, *summary;
    const char *source; /* the paper or code it follows; may be NULL */
    int64_t n_options;
    bool cpu_only;  /* a loss, miner or regularizer that devices other than the CPU refuse */
    char note[512]; /* of a device: what is there, or why it cannot be used; else empty */
} kith_list_entry;

typedef struct kith_list_option {
    const char *name, *help;
    const char *source;    /* of the default; may be NULL */
    char default_text[80]; /* "0.1", "sqeuclidean", "true" */
    char range[160];       /* "0 … 4", "sum|mean|nonzero" */
} kith_list_option;

/* The i-th kind, from 0; false when there are no more. */
KITH_API bool kith_list_kind_at(int64_t i, kith_list_kind *ret_kind);
/* The i-th method of a kind; false when there are no more, or no such kind. */
KITH_API bool kith_list_entry_at(const char *kind, int64_t i, kith_list_entry *ret_entry);
/* The k-th option of the i-th method. */
KITH_API bool kith_list_option_at(const char *kind, int64_t i, int64_t k, kith_list_option *ret_option);

#ifdef __cplusplus
}
#endif
#endif
