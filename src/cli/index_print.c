/* What kith index says: one line about the index and what was done, or all of it as JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/images.h"
#include "cli/index.h"
#include "kith/experimental/json.h"

int index_show_progress(void *user, int64_t n_done, int64_t n_all) {
    cli_show_progress(user, n_done, n_all);
    return cli_stop_signal() != 0;
}

static void put_int(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    kith_json_int(json, value);
}

static void put_real(kith_json *json, const char *key, double value) {
    kith_json_key(json, key);
    kith_json_real(json, value);
}

/* What is not known is null. */
static void put_text(kith_json *json, const char *key, const char *value) {
    kith_json_key(json, key);
    kith_json_string(json, value && *value ? value : NULL);
}

static void put_report(kith_json *json, const kith_sync_report *r) {
    kith_json_key(json, "files");
    kith_json_object_begin(json);
    put_int(json, "looked_at", r->n_files);
    put_int(json, "same", r->n_same);
    put_int(json, "touched", r->n_touched);
    put_int(json, "moved", r->n_moved);
    put_int(json, "changed", r->n_changed);
    put_int(json, "added", r->n_added);
    put_int(json, "removed", r->n_removed);
    put_int(json, "left_out", r->n_excluded);
    put_int(json, "relabelled", r->n_relabelled);
    put_int(json, "with_other_values", r->n_revalued);
    put_int(json, "grouped", r->n_grouped);
    put_int(json, "unreadable", r->n_bad);
    kith_json_key(json, "unreadable_files");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < r->n_named; i++) kith_json_string(json, r->bad[i]);
    kith_json_array_end(json);
    kith_json_object_end(json);
}

static void put_reliability(kith_json *json, kith_collection *collection) {
    kith_error ignored;
    kith_reliability *r = malloc(sizeof *r);
    kith_json_key(json, "reliability");
    if (r && kith_collection_reliability(collection, r, &ignored) == KITH_OK) {
        kith_json_object_begin(json);
        put_int(json, "trials", r->n_present);
        put_int(json, "labels", r->n_labels);
        kith_json_object_end(json);
    } else {
        kith_json_null(json);
    }
    free(r);
}

static void put_index(kith_json *json, const index_request *request, kith_collection *collection,
                      const kith_collection_info *of) {
    const kith_index_info info = of->index;
    put_text(json, "index", request->index);
    put_int(json, "items", info.n_items);
    put_int(json, "removed", info.n_removed);
    put_int(json, "removed_by_hand", info.n_excluded);
    put_int(json, "dim", info.dim);
    put_text(json, "metric", kith_metric_name(info.metric));
    put_text(json, "model_sha256", info.model);
    put_text(json, "model", of->model);
    put_text(json, "preprocess", info.preprocess);
    put_text(json, "tier", kith_index_tier_name(info.tier));
    put_int(json, "bits", info.bits);
    put_int(json, "first", info.first);
    put_int(json, "lists", info.n_lists);
    put_real(json, "recall", info.recall);
    put_real(json, "recall_wanted", info.recall_wanted);
    put_int(json, "file_bytes", info.file_bytes);
    put_int(json, "memory_bytes", info.memory_bytes);
    put_int(json, "segments", info.n_segments);
    put_int(json, "commit", info.generation);
    put_int(json, "format", info.format);
    kith_json_key(json, "calibrated");
    kith_json_bool(json, info.is_calibrated);
    put_text(json, "calibration_source", of->false_match_rates ? of->false_match_rates->source : NULL);
    put_reliability(json, collection);
    kith_json_key(json, "columns");
    kith_json_object_begin(json);
    for (int64_t i = 0; i < info.n_columns; i++) {
        const kith_column column = kith_index_column(kith_collection_index(collection), i);
        kith_json_key(json, column.name);
        kith_json_string(json, kith_value_type_name(column.type));
    }
    kith_json_object_end(json);
}

static kith_status print_json(const index_request *request, kith_collection *collection,
                              const kith_collection_info *info, const kith_sync_report *report,
                              kith_error *err) {
    kith_json *json = NULL;
    kith_status status = kith_json_new(&json, err);
    if (status != KITH_OK) return status;
    kith_json_object_begin(json);
    put_index(json, request, collection, info);
    if (report) put_report(json, report);
    kith_json_object_end(json);
    return cli_print_json(json, err);
}

static void print_report(const kith_sync_report *r) {
    const struct {
        const char *word;
        int64_t n;
    } parts[] = {{"added", r->n_added},
                 {"changed", r->n_changed},
                 {"moved", r->n_moved},
                 {"relabelled", r->n_relabelled},
                 {"touched", r->n_touched},
                 {"removed", r->n_removed},
                 {"with other values", r->n_revalued},
                 {"grouped", r->n_grouped},
                 {"as before", r->n_same},
                 {"left out (removed by hand)", r->n_excluded}};
    const char *between = "; ";
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].n == 0) continue;
        printf("%s%lld %s", between, (long long)parts[i].n, parts[i].word);
        between = ", ";
    }
}

void index_print_measured(const kith_sync_report *report) {
    if (report->measured != KITH_OK)
        fprintf(stderr, "kith: the index is complete, but its false-match rates were not measured: %s\n",
                report->measured_error.message);
    if (report->grouped != KITH_OK)
        fprintf(stderr, "kith: the index is complete, but what is new is in no group: %s\n",
                report->grouped_error.message);
}

kith_status index_print(const index_request *request, kith_collection *collection,
                        const kith_sync_report *report, kith_error *err) {
    kith_collection_info of;
    const kith_status status = kith_collection_info_get(collection, &of, err);
    if (status != KITH_OK) return status;
    if (report) cli_report_bad(report->n_bad, report->n_named > 0 ? report->bad[0] : "");
    if (request->json) return print_json(request, collection, &of, report, err);
    printf("%s: %lld item%s of %lld values", request->index, (long long)of.index.n_items,
           of.index.n_items == 1 ? "" : "s", (long long)of.index.dim);
    if (report) print_report(report);
    putchar('\n');
    return KITH_OK;
}

/* "12.3 MB". */
static void print_bytes(const char *what, int64_t bytes) {
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    double value = (double)bytes;
    int unit = 0;
    while (value >= 1000 && unit < 4) value /= 1000, unit++;
    printf("%-12s%.*f %s\n", what, unit == 0 ? 0 : 1, value, units[unit]);
}

static void print_columns(const kith_index *index, int64_t n) {
    printf("%-12s", "columns");
    for (int64_t i = 0; i < n; i++) {
        const kith_column column = kith_index_column(index, i);
        printf("%s%s (%s)", i ? ", " : "", column.name, kith_value_type_name(column.type));
    }
    puts(n == 0 ? "none" : "");
}

static void print_sources(const kith_collection_info *of) {
    printf("%-12s", "images");
    for (int64_t i = 0; i < of->n_sources; i++) printf("%*s%s\n", i ? 12 : 0, "", of->sources[i]);
    if (of->n_sources == 0) puts("not known: made from vectors");
}

static void print_tier(const kith_index_info *info) {
    printf("%-12s%s", "search", kith_index_tier_name(info->tier));
    if (info->tier == KITH_TIER_EXACT) {
        puts(": every vector is compared");
        return;
    }
    if (info->tier == KITH_TIER_GRAPH) {
        puts(": the server's (HNSW) finds candidates, whose vectors are compared");
        return;
    }
    printf(": codes of %lld bit%s", (long long)info->bits, info->bits == 1 ? "" : "s");
    if (info->first > 0) printf(" of the first %lld values", (long long)info->first);
    if (info->n_lists > 0) printf(" in %lld lists", (long long)info->n_lists);
    printf(", recall %.4f measured on own rows (wanted %.4g)\n", info->recall, info->recall_wanted);
}

static void print_false_match_rates(const kith_calibration *curve) {
    printf("%-12s", "same");
    if (!curve)
        puts("false-match rates not known: see --calibrate");
    else
        printf("false-match rates known: --same works%s%s\n", *curve->source ? ", measured on: " : "",
               curve->source);
}

/* *ret NULL: not known. It is freed with free. */
static void read_reliability(kith_collection *collection, kith_reliability **ret) {
    kith_error ignored;
    *ret = malloc(sizeof **ret);
    if (*ret && kith_collection_reliability(collection, *ret, &ignored) == KITH_OK) return;
    free(*ret);
    *ret = NULL;
}

static void print_reliability(kith_collection *collection) {
    kith_reliability *r = NULL;
    read_reliability(collection, &r);
    printf("%-12s", "wrong hits");
    if (r)
        printf("known: from %lld trials of %lld labels\n", (long long)r->n_present, (long long)r->n_labels);
    else
        puts("not known: takes 10 labels with two items each");
    free(r);
}

static void print_info(const kith_collection_info *of, kith_collection *collection) {
    const kith_index *index = kith_collection_index(collection);
    const kith_index_info info = of->index;
    printf("%-12s%lld", "items", (long long)info.n_items);
    if (info.n_removed > 0)
        printf(", and %lld removed (--compact frees their space)", (long long)info.n_removed);
    if (info.n_excluded > 0)
        printf("\n%-12s%lld removed by hand: --sync leaves them out, --add takes them back", "left out",
               (long long)info.n_excluded);
    printf("\n%-12s%lld values, %s\n", "vectors", (long long)info.dim, kith_metric_name(info.metric));
    printf("%-12s%s\n", "model", of->model ? of->model : *info.model ? info.model : "not known");
    if (*info.preprocess) printf("%-12s%s\n", "input", info.preprocess);
    print_sources(of);
    print_columns(index, info.n_columns);
    print_tier(&info);
    print_false_match_rates(of->false_match_rates);
    print_reliability(collection);
    print_bytes("on disk", info.file_bytes);
    print_bytes("in memory", info.memory_bytes);
}

kith_status index_show(const index_request *request, kith_error *err) {
    kith_collection *collection = NULL;
    kith_collection_info of;
    kith_status status = index_open(request, KITH_INDEX_READ, &collection, err);
    if (status == KITH_OK) status = kith_collection_info_get(collection, &of, err);
    if (status == KITH_OK && request->json)
        status = print_json(request, collection, &of, NULL, err);
    else if (status == KITH_OK)
        print_info(&of, collection);
    kith_collection_free(collection);
    return status;
}
