/* Choosing items to begin with. Ids have gaps where items were removed, so only the index knows which there are. */
#include "serve/search/samples.h"

#include "base/error.h"
#include "base/text.h"
#include "collection/ask.h"
#include "search/index_handle.h"
#include "serve/search/facts.h"
#include "serve/search/item_json.h"

enum { N_SHOWN = 8, WINDOW = 4096 };

static kith_status choose_from_all(ki_catalog *c, kith_error *err) {
    int64_t *ids = NULL, n = 0;
    KI_TRY(kith_index_ids(c->index, NULL, &ids, &n, err));
    const int64_t most = n < KI_N_SAMPLES ? n : KI_N_SAMPLES;
    for (int64_t i = 0; i < most; i++) c->sample[c->n_samples++] = ids[i * n / most];
    kith_ids_free(ids);
    return KITH_OK;
}

/* A list of all ids would be large: the first one of each of some stretches. */
static kith_status choose_from_stretches(ki_catalog *c, kith_error *err) {
    const int64_t end = ki_index_manifest(c->index)->next_id;
    for (int64_t i = 0; i < KI_N_SAMPLES; i++) {
        char where[80];
        int64_t *ids = NULL, n = 0;
        const long long first = (long long)(end / KI_N_SAMPLES * i);
        ki_snprintf(where, sizeof where, "id >= %lld and id < %lld", first, first + WINDOW);
        KI_TRY(kith_index_ids(c->index, where, &ids, &n, err));
        if (n > 0) c->sample[c->n_samples++] = ids[0];
        kith_ids_free(ids);
    }
    return KITH_OK;
}

kith_status ki_samples_choose(ki_catalog *c, kith_error *err) {
    return c->info.n_items <= KI_MOST_FACT_ITEMS ? choose_from_all(c, err) : choose_from_stretches(c, err);
}

static bool put_one(kith_json *json, const ki_catalog *c, int64_t id) {
    kith_index_item item = {0};
    char path[4096];
    const bool is_good = kith_index_item_get(c->index, id, &item, NULL) == KITH_OK &&
                         ki_collection_picture_file(c->collection, item.path, path, sizeof path);
    if (is_good) {
        kith_json_object_begin(json);
        kith_json_key(json, "id");
        kith_json_int(json, id);
        ki_item_put(json, c, &item);
        kith_json_object_end(json);
    }
    kith_index_item_release(&item);
    return is_good;
}

void ki_samples_put(kith_json *json, ki_catalog *c) {
    const int64_t n = c->n_samples, step = n > N_SHOWN ? n / N_SHOWN : 1;
    const int64_t turn = n > 0 ? (int64_t)(atomic_fetch_add(&c->turn, 1) % (uint_least64_t)n) : 0;
    int n_put = 0;
    kith_json_array_begin(json);
    /* Every step-th first, so that those that are shown together are spread over the index; then those between. */
    for (int64_t first = 0; first < step; first++) {
        for (int64_t at = first; at < n && n_put < N_SHOWN; at += step)
            n_put += put_one(json, c, c->sample[(at + turn) % n]);
    }
    kith_json_array_end(json);
}
