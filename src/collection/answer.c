/* What is known of a hit: its item, its false-match rate, the chance that it is wrong, its picture; as a struct and as JSON. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "collection/ask.h"
#include "kith/experimental/found.h"
#include "search/index_handle.h"

/* A picture that is the item's path belongs to the item: most are. */
void ki_hit_clear(kith_found_hit *hit) {
    if (hit->picture != hit->item.path) ki_free((char *)(uintptr_t)hit->picture);
    hit->picture = NULL;
    kith_index_item_release(&hit->item);
}

void kith_found_release(kith_found *found) {
    if (!found) return;
    for (int64_t i = 0; i < found->n_hits; i++) ki_hit_clear(&found->hits[i]);
    ki_free(found->hits);
    ki_free(found->row);
    *found = (kith_found){0};
}

static kith_status fill_hit(const kith_collection *c, kith_found_hit *hit, kith_error *err) {
    char path[4096];
    kith_index_item item = {0};
    KI_TRY(kith_index_item_get(c->index, hit->item.id, &item, err));
    ki_hit_clear(hit);
    hit->item = item;
    const char *picture = ki_collection_picture_file(c, item.path, path, sizeof path);
    hit->picture = picture == path ? ki_strdup(picture) : picture;
    return hit->picture || !picture ? KITH_OK : ki_fail_memory(err, strlen(picture), "a path");
}

kith_status kith_found_fill(const kith_collection *collection, kith_found *found, kith_error *err) {
    KI_NEED(err, collection, found);
    KI_TRY(ki_collection_has_index(collection, err));
    for (int64_t i = 0; i < found->n_hits; i++) KI_TRY(fill_hit(collection, &found->hits[i], err));
    return KITH_OK;
}

/* ---- JSON ---- */

static void write_value(const kith_value *value, kith_json *json) {
    switch (value->type) {
    case KITH_VALUE_INT: kith_json_int(json, value->integer); break;
    case KITH_VALUE_REAL: kith_json_real(json, value->real); break;
    case KITH_VALUE_TEXT: kith_json_string(json, value->text); break;
    default: kith_json_null(json); break;
    }
}

void ki_item_write(const kith_collection *c, const kith_index_item *item, bool has_picture, kith_json *json) {
    kith_json_key(json, "label");
    kith_json_string(json, item->label);
    kith_json_key(json, "path");
    kith_json_string(json, c->index ? ki_index_shown(c->index, item->path) : item->path);
    kith_json_key(json, "values");
    kith_json_object_begin(json);
    const int64_t n_columns = item->values && c->index ? ki_index_committed(c->index)->n_columns : 0;
    for (int64_t i = 0; i < n_columns; i++) {
        if (ki_index_hides(c->index, kith_index_column(c->index, i).name)) continue;
        kith_json_key(json, kith_index_column(c->index, i).name);
        write_value(&item->values[i], json);
    }
    kith_json_object_end(json);
    kith_json_key(json, "image");
    kith_json_bool(json, has_picture);
}

static void write_error_rate(const kith_found_hit *hit, kith_json *json) {
    kith_json_key(json, "error_rate");
    kith_json_real(json, hit->error_rate);
    kith_json_key(json, "error_rate_interval");
    if (isnan(hit->error_rate)) {
        kith_json_null(json);
        return;
    }
    kith_json_array_begin(json);
    kith_json_real(json, hit->error_rate_low);
    kith_json_real(json, hit->error_rate_high);
    kith_json_array_end(json);
}

void ki_hits_write(const kith_collection *collection, const kith_found_hit *hits, int64_t n,
                   kith_json *json) {
    kith_json_array_begin(json);
    for (int64_t i = 0; i < n; i++) {
        const kith_found_hit *hit = &hits[i];
        kith_json_object_begin(json);
        kith_json_key(json, "id");
        kith_json_int(json, hit->item.id);
        kith_json_key(json, "score");
        kith_json_real32(json, (float)hit->score);
        kith_json_key(json, "false_match_rate");
        kith_json_real(json, hit->false_match_rate);
        write_error_rate(hit, json);
        ki_item_write(collection, &hit->item, hit->picture != NULL, json);
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
}

void kith_found_write(const kith_collection *collection, const kith_found *found, kith_json *json) {
    if (!collection || !found || !json) return;
    kith_json_key(json, "n_allowed");
    kith_json_int(json, found->n_allowed);
    kith_json_key(json, "is_exact");
    kith_json_bool(json, found->is_exact);
    kith_json_key(json, "hits");
    ki_hits_write(collection, found->hits, found->n_hits, json);
}

static void write_int(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    kith_json_int(json, value);
}

static void write_real(kith_json *json, const char *key, double value) {
    kith_json_key(json, key);
    kith_json_real(json, value);
}

void kith_facets_write(const char *column, const kith_facets *f, kith_json *json) {
    if (!column || !f || !json) return;
    kith_json_key(json, "column");
    kith_json_string(json, column);
    kith_json_key(json, "type");
    kith_json_string(json, kith_value_type_name(f->type));
    write_int(json, "items", f->n_items);
    write_int(json, "without", f->n_allowed - f->n_items);
    write_int(json, "different", f->n_distinct);
    kith_json_key(json, "values");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < f->n_values; i++) {
        const kith_facet_value *v = &f->values[i];
        kith_json_object_begin(json);
        if (v->text) {
            kith_json_key(json, "text");
            kith_json_string(json, v->text);
        } else if (v->low == v->high) {
            write_real(json, "number", v->low);
        } else {
            write_real(json, "from", v->low);
            write_real(json, "below", v->high);
        }
        write_int(json, "items", v->n);
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
}
