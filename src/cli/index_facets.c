/* kith index INDEX --facets taken,camera: how many items have which value. */
#include <math.h>
#include <string.h>

#include "cli/index.h"
#include "kith/experimental/found.h"

static void print_facets(const char *column, const kith_facets *f) {
    printf("%s: %lld item%s, %lld without\n", column, (long long)f->n_items, f->n_items == 1 ? "" : "s",
           (long long)(f->n_allowed - f->n_items));
    for (int64_t i = 0; i < f->n_values; i++) {
        const kith_facet_value *v = &f->values[i];
        printf("%8lld  ", (long long)v->n);
        if (v->text)
            printf("%s\n", v->text);
        else if (v->low == v->high)
            printf("%.10g\n", v->low);
        else
            printf("%.10g to %.10g\n", v->low, v->high);
    }
    if (f->type == KITH_VALUE_TEXT && f->n_distinct > f->n_values)
        printf("%8s  %lld more\n", "", (long long)(f->n_distinct - f->n_values));
}

static kith_status tell(const index_request *r, const kith_index *index, const char *column, kith_json *json,
                        kith_error *err) {
    kith_facets facets = {0};
    const kith_status status = kith_index_facets(index, column, r->where, r->most, &facets, err);
    if (status != KITH_OK) return status;
    if (json) {
        kith_json_object_begin(json);
        kith_facets_write(column, &facets, json);
        kith_json_object_end(json);
    } else {
        print_facets(column, &facets);
    }
    kith_facets_release(&facets);
    return KITH_OK;
}

static kith_status tell_all(const index_request *r, const kith_index *index, kith_json *json,
                            kith_error *err) {
    const char *at = r->facets;
    for (size_t n; *at; at += n + (at[n] == ',')) {
        char column[100];
        n = strcspn(at, ",");
        snprintf(column, sizeof column, "%.*s", (int)(n < 90 ? n : 90), at);
        const kith_status status = tell(r, index, column, json, err);
        if (status != KITH_OK) return status;
    }
    return KITH_OK;
}

kith_status index_facets(const index_request *r, kith_error *err) {
    kith_collection *collection = NULL;
    kith_json *json = NULL;
    kith_status status = index_open(r, KITH_INDEX_READ, &collection, err);
    if (status == KITH_OK && r->json) status = kith_json_new(&json, err);
    if (json) kith_json_object_begin(json);
    if (json) kith_json_key(json, "facets");
    if (json) kith_json_array_begin(json);
    if (status == KITH_OK) status = tell_all(r, kith_collection_index(collection), json, err);
    kith_collection_free(collection);
    if (status != KITH_OK || !json) {
        kith_json_free(json);
        return status;
    }
    kith_json_array_end(json);
    kith_json_object_end(json);
    return cli_print_json(json, err);
}
