/* kith data --doctor: what is wrong with a data set, the worst first, and a list without it. */
#include <string.h>

#include "cli/data.h"
#include "cli/images.h"
#include "kith/doctor.h"

/* Titles of the kinds, for people. */
static const char *const titles[KITH_N_FINDING_KINDS] = {
    [KITH_FINDING_UNREADABLE] = "files that cannot be read",
    [KITH_FINDING_LEAK] = "the same picture in test and in training",
    [KITH_FINDING_CONFLICT] = "the same picture in several classes",
    [KITH_FINDING_MISLABELLED] = "labels that look wrong",
    [KITH_FINDING_DUPLICATE] = "the same picture twice in a class",
    [KITH_FINDING_NEAR_LEAK] = "almost the same picture in test and in training",
    [KITH_FINDING_MISSING] = "listed files that do not exist",
    [KITH_FINDING_NOT_READ] = "files that are not read",
    [KITH_FINDING_SINGLE] = "classes with one image",
    [KITH_FINDING_EMPTY] = "classes without images",
    [KITH_FINDING_UNEVEN] = "classes with far more images than others",
    [KITH_FINDING_TINY] = "small images",
    [KITH_FINDING_EXTREME] = "very long or very wide images",
    [KITH_FINDING_NEAR] = "almost the same picture",
    [KITH_FINDING_ODD] = "odd ones out",
    [KITH_FINDING_BLURRED] = "blurred images",
    [KITH_FINDING_SHORTCUT] = "the surroundings give the classes away",
};

/* The findings of one kind, which follow each other from i on. */
static void print_kind(const kith_findings *found, int64_t i, int64_t most) {
    const kith_finding *first = &found->findings[i];
    const int64_t n = found->n_of[first->kind];
    printf("%-8s %s: %lld\n", kith_severity_name(first->severity), titles[first->kind], (long long)n);
    for (int64_t k = 0; k < n && k < most; k++) printf("  %s\n", first[k].text);
    if (n > most) printf("  … and %lld more\n", (long long)(n - most));
}

static void print_text(const data_doctor_request *r, const kith_findings *found) {
    for (int64_t i = 0; i < found->n; i += found->n_of[found->findings[i].kind])
        print_kind(found, i, r->n_shown);
    const int64_t *of = found->n_of_severity;
    printf("%s: %lld images, %lld errors, %lld warnings, %lld notes; ", r->source, (long long)found->n_items,
           (long long)of[KITH_SEVERITY_ERROR], (long long)of[KITH_SEVERITY_WARNING],
           (long long)of[KITH_SEVERITY_NOTE]);
    if (found->n_out == 0)
        puts("nothing to leave out");
    else
        printf("%lld images to leave out%s\n", (long long)found->n_out,
               r->out ? "" : " (-o FILE.csv writes a list without them)");
    if (r->out)
        printf("%s: %lld images (kith train reads it as data.root)\n", r->out,
               (long long)(found->n_items - found->n_out));
    if (r->html) printf("%s: the findings with pictures\n", r->html);
}

static void put_int(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    kith_json_int(json, value);
}

static void put_finding(kith_json *json, const kith_dataset *set, const kith_findings *found, int64_t i) {
    const kith_finding *f = &found->findings[i];
    kith_json_object_begin(json);
    kith_json_key(json, "kind");
    kith_json_string(json, kith_finding_kind_name(f->kind));
    kith_json_key(json, "severity");
    kith_json_string(json, kith_severity_name(f->severity));
    kith_json_key(json, "text");
    kith_json_string(json, f->text);
    kith_json_key(json, "score");
    kith_json_real(json, f->score);
    if (f->label >= 0) {
        kith_json_key(json, "class");
        kith_json_string(json, kith_dataset_class_name(set, f->label));
    }
    if (f->example >= 0) {
        kith_json_key(json, "example");
        kith_json_string(json, kith_dataset_item(set, f->example).path);
    }
    kith_json_key(json, "items");
    kith_json_array_begin(json);
    for (int64_t k = f->begin; k < f->begin + f->n; k++) {
        kith_json_object_begin(json);
        kith_json_key(json, "path");
        kith_json_string(json, kith_dataset_item(set, found->items[k]).path);
        kith_json_key(json, "leave_out");
        kith_json_bool(json, found->why_out[found->items[k]] >= 0);
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
    kith_json_object_end(json);
}

static kith_status print_json(const kith_dataset *set, const kith_findings *found, kith_error *err) {
    kith_json *json = NULL;
    const kith_status status = kith_json_new(&json, err);
    if (status != KITH_OK) return status;
    kith_json_object_begin(json);
    put_int(json, "images", found->n_items);
    put_int(json, "leave_out", found->n_out);
    put_int(json, "errors", found->n_of_severity[KITH_SEVERITY_ERROR]);
    put_int(json, "warnings", found->n_of_severity[KITH_SEVERITY_WARNING]);
    put_int(json, "notes", found->n_of_severity[KITH_SEVERITY_NOTE]);
    kith_json_key(json, "findings");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < found->n; i++) put_finding(json, set, found, i);
    kith_json_array_end(json);
    kith_json_object_end(json);
    return cli_print_json(json, err);
}

kith_status data_doctor(const kith_dataset *set, const data_doctor_request *r, bool *ret_has_errors,
                        kith_error *err) {
    cli_progress progress;
    kith_findings found = {0};
    KITH_OPTIONS(kith_doctor_options, options);
    KITH_OPTIONS(kith_findings_page, page);
    if (r->model->weights) options.model = r->model;
    options.no_vectors = r->no_vectors;
    options.no_shortcut = r->no_shortcut;
    options.progress = cli_show_progress;
    options.user = &progress;
    cli_progress_begin(&progress, "looking", 0);
    kith_status status = kith_dataset_examine(set, &options, &found, err);
    cli_progress_end(&progress);
    if (status == KITH_OK && r->out) status = kith_findings_write(&found, set, r->out, err);
    if (status == KITH_OK && r->html) status = kith_findings_page_write(&found, set, &page, r->html, err);
    if (status == KITH_OK && r->json) status = print_json(set, &found, err);
    if (status == KITH_OK && !r->json) print_text(r, &found);
    *ret_has_errors = found.n_of_severity[KITH_SEVERITY_ERROR] > 0;
    kith_findings_release(&found);
    return status;
}
