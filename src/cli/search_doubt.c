/* What is known of how often hits are wrong, and queries that are unlike those that this was measured on. */
#include <math.h>
#include <stdlib.h>

#include "cli/search.h"

/* A promise in other words, where it is not what one may take it for. */
static void say_promise(const search_command *c, const kith_reliability *r) {
    const double part = c->search.complete;
    if (isnan(part)) return;
    fprintf(stderr,
            "kith: --complete %g is for all %lld names together; one name by itself would take %.0f labelled "
            "items\n",
            part, (long long)r->n_labels, ceil(1 / (1 - part) - 1 - 1e-9));
}

/* Ask again with the share of unknown things that explains the scores, and half of the misses. */
static kith_status ask_again(const search_command *c, kith_collection *collection, double unknown,
                             search_queries *ret, kith_error *err) {
    search_command other = *c;
    char words[32];
    fprintf(
        stderr,
        "kith: these queries look less like the items than those it was measured on: taken as if %s showed "
        "something that is not in the index (--unknown)\n",
        kith_rate_words(unknown, words, sizeof words));
    other.search.unknown = unknown;
    if (!isnan(other.search.complete)) other.search.complete = 1 - (1 - other.search.complete) / 2;
    search_queries_release(ret);
    const kith_status status = search_queries_ask(&other, collection, ret, err);
    ret->unknown = unknown;
    return status;
}

static kith_status check_queries(const search_command *c, kith_collection *collection,
                                 const kith_reliability *r, search_queries *ret, kith_error *err) {
    double unknown = 0;
    double *top = malloc((size_t)(ret->n + 1) * sizeof *top);
    if (!top) return cli_error(err, KITH_ENOMEM, NULL, "no memory for %lld queries", (long long)ret->n);
    for (int64_t i = 0; i < ret->n; i++) top[i] = ret->found[i].top_score;
    const bool is_unlike = kith_reliability_is_unlike(r, top, ret->n, c->search.unknown, &unknown);
    free(top);
    return is_unlike ? ask_again(c, collection, unknown, ret, err) : KITH_OK;
}

kith_status search_ask_carefully(const search_command *c, kith_collection *collection, search_queries *ret,
                                 kith_error *err) {
    kith_error why;
    kith_reliability *r = malloc(sizeof *r);
    if (!r) return cli_error(err, KITH_ENOMEM, NULL, "no memory");
    kith_status status = search_queries_ask(c, collection, ret, err);
    if (status == KITH_OK && kith_collection_reliability(collection, r, &why) == KITH_OK) {
        say_promise(c, r);
        ret->unknown = c->search.unknown;
        status = check_queries(c, collection, r, ret, err);
        ret->has_errors = true;
        ret->n_trials = r->n_present;
        ret->n_labels = r->n_labels;
    }
    free(r);
    return status;
}
