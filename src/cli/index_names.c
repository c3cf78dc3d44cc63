/* kith index --names, --names-xmp, --names-folders: names taken elsewhere. */
#include "cli/index.h"
#include "kith/names.h"

static kith_status print_json(const index_request *r, const kith_names_report *report, kith_error *err) {
    const struct {
        const char *key;
        int64_t n;
    } counts[] = {{"written", report->n_written},
                  {"folders", report->n_names},
                  {"missing", report->n_missing},
                  {"kept", report->n_kept},
                  {"renamed", report->n_renamed}};
    kith_json *json = NULL;
    kith_status status = kith_json_new(&json, err);
    if (status != KITH_OK) return status;
    kith_json_object_begin(json);
    kith_json_key(json, "index");
    kith_json_string(json, r->index);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        kith_json_key(json, counts[i].key);
        kith_json_int(json, counts[i].n);
    }
    kith_json_object_end(json);
    return cli_print_json(json, err);
}

static void print_lines(const index_request *r, const kith_names_report *report) {
    if (r->names_form == KITH_NAMES_XMP && !r->names_to)
        printf("%lld sidecars beside their photos\n", (long long)report->n_written);
    else if (r->names_form == KITH_NAMES_FOLDERS)
        printf("%lld photos of %lld names in %s\n", (long long)report->n_written, (long long)report->n_names,
               r->names_to);
    else
        printf("%lld %s in %s\n", (long long)report->n_written,
               r->names_form == KITH_NAMES_XMP ? "sidecars" : "rows", r->names_to);
    if (report->n_missing > 0)
        fprintf(stderr, "kith: %lld photos with a name are not there, and were left out\n",
                (long long)report->n_missing);
    if (report->n_kept > 0)
        fprintf(stderr, "kith: %lld sidecars of other programs stay as they are\n",
                (long long)report->n_kept);
    if (report->n_renamed > 0)
        fprintf(stderr, "kith: %lld names cannot be folders as they are: %s\n", (long long)report->n_renamed,
                report->renamed);
}

kith_status index_names(const index_request *r, kith_error *err) {
    kith_collection *collection = NULL;
    kith_names_report report = {0};
    KITH_OPTIONS(kith_names_options, options);
    options.form = r->names_form;
    options.to = r->names_to;
    options.copy = r->copy;
    kith_status status = index_open(r, KITH_INDEX_READ, &collection, err);
    if (status != KITH_OK) return status;
    status = kith_names_export(collection, &options, &report, err);
    kith_collection_free(collection);
    if (status == KITH_OK && r->json) return print_json(r, &report, err);
    if (status == KITH_OK) print_lines(r, &report);
    return status;
}
