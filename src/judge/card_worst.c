/* The worst queries and the hardest negatives in a card. */
#include "judge/card.h"

static void key_int(kith_json *json, const char *key, int64_t value) {
    const ki_card_entry e = ki_entry_int(key, value);
    ki_card_put_entry(json, &e);
}

static void key_real(kith_json *json, const char *key, double value) {
    const ki_card_entry e = ki_entry_real(key, value);
    ki_card_put_entry(json, &e);
}

/* Which row it is, into the object that is open. */
static void put_row(kith_json *json, const kith_card_options *o, int64_t row, int64_t label) {
    const ki_card_entry path = ki_entry_text("path", o->paths ? o->paths[row] : NULL),
                        class = ki_entry_text("class", o->classes ? o->classes[row] : NULL);
    key_int(json, "row", row);
    ki_card_put_entry(json, &path);
    key_int(json, "label", label);
    ki_card_put_entry(json, &class);
}

static void put_hit(kith_json *json, const kith_card_options *o, const kith_worst_hit *hit) {
    kith_json_object_begin(json);
    put_row(json, o, hit->row, hit->label);
    key_real(json, "score", hit->score);
    kith_json_object_end(json);
}

static void put_query(kith_json *json, const kith_card_options *o, int64_t i) {
    const kith_worst *w = o->worst;
    const kith_worst_hit *hit = w->nearest + i * w->n_nearest;
    kith_json_object_begin(json);
    put_row(json, o, w->queries[i].row, w->queries[i].label);
    key_real(json, "average_precision", w->queries[i].average_precision);
    key_int(json, "first_hit", w->queries[i].first_hit);
    kith_json_key(json, "nearest");
    kith_json_array_begin(json);
    for (int64_t j = 0; j < w->n_nearest && hit[j].row >= 0; j++) put_hit(json, o, &hit[j]);
    kith_json_array_end(json);
    kith_json_object_end(json);
}

static void put_negative(kith_json *json, const kith_card_options *o, const kith_hard_negative *n) {
    kith_json_object_begin(json);
    put_row(json, o, n->row, n->label);
    kith_json_key(json, "negative");
    put_hit(json, o, &n->negative);
    kith_json_key(json, "positive");
    put_hit(json, o, &n->positive);
    key_real(json, "margin", n->margin);
    kith_json_object_end(json);
}

void ki_card_put_worst(kith_json *json, const kith_card_options *o) {
    const kith_worst *w = o->worst;
    kith_json_key(json, "worst");
    kith_json_object_begin(json);
    key_int(json, "judged", w->n_judged);
    key_int(json, "wrong", w->n_wrong);
    kith_json_key(json, "queries");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < w->n; i++) put_query(json, o, i);
    kith_json_array_end(json);
    kith_json_key(json, "negatives");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < w->n_negatives; i++) put_negative(json, o, &w->negatives[i]);
    kith_json_array_end(json);
    kith_json_object_end(json);
}
