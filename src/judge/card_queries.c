/* What the queries of a run came to: as its card says or, in folders of runs made before cards said it, from the test
 * embeddings that lie beside the card. */
#include <math.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "judge/card.h"
#include "judge/per_query.h"
#include "kith/array.h"

static const char result_name[] = "/result.json";

static bool is_in_folder(const char *path) {
    const size_t n = strlen(path), tail = strlen(result_name);
    return n > tail && strcmp(path + n - tail, result_name) == 0;
}

/* Everything that is read to judge again. */
typedef struct kept {
    kith_array rows, labels;
    kith_retrieval found;
} kept;

static void kept_release(kept *k) {
    kith_array_release(&k->rows);
    kith_array_release(&k->labels);
    kith_retrieval_release(&k->found);
}

static kith_status read_beside(const kith_card *card, const char *name, kith_array *ret, kith_error *err) {
    const char *path = ki_card_path(card);
    ki_path at;
    KI_TRY(ki_path_print(&at, err, "%.*s/test/%s", (int)(strlen(path) - strlen(result_name)), path, name));
    return kith_npy_read(at.s, ret, err);
}

/* Are these the vectors that the card is about? Fixed roles of queries and gallery, which are not kept, make it fewer queries,
 * and a folder that was changed another score. */
static bool is_of_card(const kith_card *card, const kept *k) {
    double n = 0, map_at_r = 0;
    return kith_card_real(card, "test.queries", &n) && (int64_t)n == k->rows.dim[0] &&
           kith_card_real(card, "test.map_at_r", &map_at_r) && fabs(map_at_r - k->found.mean.map_at_r) < 1e-6;
}

static kith_status judge_again(const kith_card *card, kept *k, kith_error *err) {
    KITH_OPTIONS(kith_retrieval_options, options);
    KI_TRY(read_beside(card, "embedding.npy", &k->rows, err));
    KI_TRY(read_beside(card, "labels.npy", &k->labels, err));
    if (k->labels.dtype != KITH_I64 || k->labels.n_dims != 1 || k->rows.n_dims != 2)
        return ki_fail(err, KITH_EFORMAT, "%s: its test folder holds no embeddings", ki_card_path(card));
    options.n_k = 0;
    for (const char *key;
         options.n_k < KITH_MOST_K && (key = kith_card_key(card, "test.recall", options.n_k));
         options.n_k++) {
        if (!ki_parse_int64(key, &options.k[options.n_k]))
            return ki_fail(err, KITH_EFORMAT, "%s: R@%s", ki_card_path(card), key);
    }
    const kith_retrieval_input input = {
        .embedding = &k->rows, .labels = k->labels.data, .n_labels = k->labels.dim[0]};
    return kith_retrieval_run(&input, &options, &k->found, err);
}

kith_status ki_card_queries(const kith_card *card, const char *block, ki_per_query *ret, kith_error *err) {
    kept k = {0};
    kith_error why = {0};
    KI_TRY(ki_per_query_read(card, block, ret, err));
    if (ret->n > 0 || strcmp(block, "test.") != 0 || !is_in_folder(ki_card_path(card))) return KITH_OK;
    kith_status status = judge_again(card, &k, &why);
    if (status == KITH_OK && is_of_card(card, &k)) status = ki_per_query_pack(&k.found, ret, &why);
    kept_release(&k);
    if (status != KITH_ENOMEM) return KITH_OK; /* the folder does not have them */
    if (err) *err = why;
    return status;
}
