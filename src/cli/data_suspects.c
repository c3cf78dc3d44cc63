/* kith data --duplicates --model: images whose label looks wrong, because their nearest neighbours agree on another class. */
#include <stdlib.h>

#include "cli/data.h"
#include "cli/images.h"

void data_suspects_release(data_suspects *s) {
    kith_suspects_release(&s->found);
    kith_vectors_free(s->vectors);
    kith_model_free(s->model);
    *s = (data_suspects){0};
}

static kith_status embed(const kith_dataset *set, data_suspects *s, kith_error *err) {
    const int64_t n = kith_dataset_count(set);
    cli_progress progress;
    int64_t *items = calloc((size_t)n + 1, sizeof *items);
    if (!items) return cli_error(err, KITH_ENOMEM, NULL, "not enough memory for %lld items", (long long)n);
    for (int64_t i = 0; i < n; i++) items[i] = i;
    KITH_OPTIONS(kith_embed_options, how);
    how.most_bad = -1;
    how.progress = cli_show_progress;
    how.user = &progress;
    cli_progress_begin(&progress, "embedding", n);
    const kith_status status = kith_model_embed_items(s->model, set, items, n, &how, &s->vectors, err);
    cli_progress_end(&progress);
    free(items);
    return status;
}

kith_status data_suspects_find(const kith_dataset *set, const data_duplicates_request *r, data_suspects *ret,
                               kith_error *err) {
    data_suspects s = {0};
    kith_array rows;
    KITH_OPTIONS(kith_suspects_options, options);
    options.most = r->n_suspects;
    options.device = r->model.device;
    kith_status status = kith_model_open(&r->model, &s.model, err);
    if (status == KITH_OK) status = embed(set, &s, err);
    if (status == KITH_OK) status = kith_vectors_array(s.vectors, &rows, err);
    if (status == KITH_OK)
        status = kith_suspects_find(&rows, kith_vectors_labels(s.vectors), &options, &s.found, err);
    if (status == KITH_OK)
        *ret = s;
    else
        data_suspects_release(&s);
    return status;
}

/* The image that a suspect is. */
static kith_item item_of(const data_suspects *s, const kith_dataset *set, int64_t i) {
    return kith_dataset_item(set, kith_vectors_items(s->vectors)[s->found.suspects[i].row]);
}

void data_suspects_print(const data_suspects *s, const kith_dataset *set) {
    const kith_suspects *f = &s->found;
    for (int64_t i = 0; i < f->n; i++) {
        const kith_suspect *p = &f->suspects[i];
        if (i == 0) puts("labels that look wrong, and what the neighbours are instead");
        printf("  %3.0f %% %s, %3.0f %% %s  %s\n", 100 * p->agreement, kith_dataset_class_name(set, p->label),
               100 * p->other_agreement, kith_dataset_class_name(set, p->other), item_of(s, set, i).path);
    }
    printf("%s: %lld of %lld images have more neighbours of another class than of their own%s\n",
           kith_dataset_root(set), (long long)f->n_found, (long long)f->n_judged,
           f->n < f->n_found ? "; the worst are shown" : "");
}

void data_suspects_put(const data_suspects *s, const kith_dataset *set, kith_json *json) {
    kith_json_key(json, "judged");
    kith_json_int(json, s->found.n_judged);
    kith_json_key(json, "disagreeing");
    kith_json_int(json, s->found.n_found);
    kith_json_key(json, "suspects");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < s->found.n; i++) {
        const kith_suspect *p = &s->found.suspects[i];
        kith_json_object_begin(json);
        kith_json_key(json, "path");
        kith_json_string(json, item_of(s, set, i).path);
        kith_json_key(json, "class");
        kith_json_string(json, kith_dataset_class_name(set, p->label));
        kith_json_key(json, "agreement");
        kith_json_real(json, p->agreement);
        kith_json_key(json, "other_class");
        kith_json_string(json, kith_dataset_class_name(set, p->other));
        kith_json_key(json, "other_agreement");
        kith_json_real(json, p->other_agreement);
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
}
