/* kith data --duplicates: the same picture more than once in a data set. In training and in test it makes results look better
 * than they are; in two classes one of the labels is wrong. With a model also labels that look wrong (data_suspects.c). */
#include "cli/data.h"
#include "cli/duplicates.h"
#include "cli/images.h"

/* What is wrong with a group. */
typedef struct spread {
    bool over_splits; /* test, and training or validation */
    bool over_classes;
} spread;

static spread spread_of(const kith_dataset *set, const kith_duplicates *d, int64_t group) {
    const kith_item first = kith_dataset_item(set, d->pictures[d->begin[group]].id);
    spread s = {0};
    for (int64_t i = d->begin[group]; i < d->begin[group + 1]; i++) {
        const kith_item item = kith_dataset_item(set, d->pictures[i].id);
        s.over_splits |= (item.split == KITH_SPLIT_TEST) != (first.split == KITH_SPLIT_TEST);
        s.over_classes |= item.label != first.label;
    }
    return s;
}

static void print_text(const char *source, const kith_dataset *set, const kith_duplicates *d) {
    const bool has_classes = kith_dataset_n_classes(set) > 0;
    int64_t n_splits = 0, n_classes = 0;
    for (int64_t k = 0; k < d->n_groups; k++) {
        const spread s = spread_of(set, d, k);
        n_splits += s.over_splits;
        n_classes += s.over_classes;
        printf("group %lld%s%s\n", (long long)k + 1, s.over_splits ? ", in training and test" : "",
               s.over_classes ? ", in several classes" : "");
        for (int64_t i = d->begin[k]; i < d->begin[k + 1]; i++) {
            const kith_item item = kith_dataset_item(set, d->pictures[i].id);
            printf("  %-10s  %s\n", has_classes ? kith_split_name(item.split) : "", item.path);
        }
    }
    printf("%s: %lld groups of %lld pictures that are the same, of %lld looked at", source,
           (long long)d->n_groups, (long long)d->begin[d->n_groups], (long long)d->n_looked_at);
    if (has_classes)
        printf("; %lld in training and test, %lld in several classes", (long long)n_splits,
               (long long)n_classes);
    putchar('\n');
}

static void put_group(kith_json *json, const kith_dataset *set, const kith_duplicates *d, int64_t k) {
    const spread s = spread_of(set, d, k);
    kith_json_object_begin(json);
    kith_json_key(json, "in_training_and_test");
    kith_json_bool(json, s.over_splits);
    kith_json_key(json, "in_several_classes");
    kith_json_bool(json, s.over_classes);
    kith_json_key(json, "pictures");
    kith_json_array_begin(json);
    for (int64_t i = d->begin[k]; i < d->begin[k + 1]; i++) {
        const kith_item item = kith_dataset_item(set, d->pictures[i].id);
        kith_json_object_begin(json);
        kith_json_key(json, "path");
        kith_json_string(json, item.path);
        kith_json_key(json, "class");
        kith_json_string(json, kith_dataset_class_name(set, item.label));
        kith_json_key(json, "split");
        kith_json_string(json, kith_split_name(item.split));
        kith_json_key(json, "likeness");
        kith_json_real32(json, (float)d->pictures[i].likeness);
        kith_json_key(json, "mirrored");
        kith_json_bool(json, d->pictures[i].is_mirrored);
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
    kith_json_object_end(json);
}

static kith_status print_json(const kith_dataset *set, const kith_duplicates *d, const data_suspects *doubts,
                              kith_error *err) {
    kith_json *json = NULL;
    kith_status status = kith_json_new(&json, err);
    if (status != KITH_OK) return status;
    cli_duplicates_begin(json, d);
    for (int64_t k = 0; k < d->n_groups; k++) put_group(json, set, d, k);
    kith_json_array_end(json);
    if (doubts->vectors) data_suspects_put(doubts, set, json);
    kith_json_object_end(json);
    return cli_print_json(json, err);
}

kith_status data_duplicates(const kith_dataset *set, const data_duplicates_request *r, kith_error *err) {
    cli_progress progress;
    kith_duplicates found = {0};
    data_suspects doubts = {0};
    KITH_OPTIONS(kith_duplicates_options, options);
    options.progress = cli_show_progress;
    options.user = &progress;
    if (r->model.weights && kith_dataset_n_classes(set) == 0)
        return cli_error(err, KITH_EINVAL, "leave --model out, or put each class into a folder of its own",
                         "%.300s has no class folders, so that no label can look wrong", r->source);
    cli_progress_begin(&progress, "looking", 0);
    kith_status status = kith_dataset_duplicates(set, &options, &found, err);
    cli_progress_end(&progress);
    if (status == KITH_OK && r->model.weights) status = data_suspects_find(set, r, &doubts, err);
    if (status == KITH_OK && r->json) status = print_json(set, &found, &doubts, err);
    if (status == KITH_OK && !r->json) {
        print_text(r->source, set, &found);
        if (doubts.vectors) data_suspects_print(&doubts, set);
    }
    data_suspects_release(&doubts);
    kith_duplicates_release(&found);
    return status;
}
