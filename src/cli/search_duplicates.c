/* kith search --duplicates: groups of the same picture in an index. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/duplicates.h"
#include "cli/images.h"
#include "cli/search.h"
#include "kith/report.h"

/* The groups, with what the index knows of their members. */
typedef struct groups {
    kith_duplicates found;
    kith_index_item *item; /* of each picture */
    char **image;          /* where it lies */
} groups;

static void groups_release(groups *g) {
    const int64_t n = g->found.begin ? g->found.begin[g->found.n_groups] : 0;
    for (int64_t i = 0; i < n; i++) {
        if (g->item) kith_index_item_release(&g->item[i]);
        if (g->image) free(g->image[i]);
    }
    free(g->item);
    free(g->image);
    kith_duplicates_release(&g->found);
}

static kith_status find(const search_command *r, kith_collection *collection, groups *g, kith_error *err) {
    const kith_index *index = kith_collection_index(collection);
    cli_progress progress;
    char buf[4096];
    KITH_OPTIONS(kith_duplicates_options, options);
    options.where = r->search.where;
    options.progress = cli_show_progress;
    options.user = &progress;
    cli_progress_begin(&progress, "looking", 0);
    kith_status status = kith_collection_duplicates(collection, &options, &g->found, err);
    cli_progress_end(&progress);
    if (status != KITH_OK) return status;
    const int64_t n = g->found.begin[g->found.n_groups];
    g->item = calloc((size_t)n + 1, sizeof *g->item);
    g->image = calloc((size_t)n + 1, sizeof *g->image);
    for (int64_t i = 0; status == KITH_OK && i < n; i++) {
        if (!g->item || !g->image)
            return cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the groups");
        const int64_t id = g->found.pictures[i].id;
        kith_error ignored;
        status = kith_index_item_get(index, id, &g->item[i], err);
        const bool is_there = kith_collection_picture(collection, id, buf, sizeof buf, &ignored) == KITH_OK;
        if (is_there && !(g->image[i] = strdup(buf)))
            status = cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the groups");
    }
    return status;
}

/* What a picture is to the first of its group, in words. */
static const char *relation(const kith_duplicate *d, bool is_first) {
    if (is_first) return "first";
    if (d->is_same_file) return "same file";
    return d->is_mirrored ? "mirrored" : "same picture";
}

static void print_table(const search_command *r, const groups *g) {
    const kith_duplicates *d = &g->found;
    const int64_t n = d->begin[d->n_groups];
    for (int64_t k = 0; k < d->n_groups; k++) {
        printf("group %lld\n", (long long)k + 1);
        for (int64_t i = d->begin[k]; i < d->begin[k + 1]; i++) {
            const kith_duplicate *p = &d->pictures[i];
            const char *path = g->item[i].path;
            printf("  %-12s  %6.4f  %8lld  ", relation(p, i == d->begin[k]), p->likeness, (long long)p->id);
            search_put(path ? search_shown_path(path) : "");
            putchar('\n');
        }
    }
    printf("%s: %lld group%s of %lld pictures that are the same, of %lld looked at\n", r->index,
           (long long)d->n_groups, d->n_groups == 1 ? "" : "s", (long long)n, (long long)d->n_looked_at);
}

static void put_picture(kith_json *json, const groups *g, int64_t i) {
    const kith_duplicate *p = &g->found.pictures[i];
    kith_json_object_begin(json);
    kith_json_key(json, "id");
    kith_json_int(json, p->id);
    kith_json_key(json, "path");
    kith_json_string(json, g->item[i].path);
    kith_json_key(json, "label");
    kith_json_string(json, g->item[i].label);
    kith_json_key(json, "likeness");
    kith_json_real32(json, (float)p->likeness);
    kith_json_key(json, "same_file");
    kith_json_bool(json, p->is_same_file);
    kith_json_key(json, "mirrored");
    kith_json_bool(json, p->is_mirrored);
    kith_json_object_end(json);
}

static kith_status print_json(const groups *g, kith_error *err) {
    const kith_duplicates *d = &g->found;
    kith_json *json = NULL;
    kith_status status = kith_json_new(&json, err);
    if (status != KITH_OK) return status;
    cli_duplicates_begin(json, d);
    for (int64_t k = 0; k < d->n_groups; k++) {
        kith_json_array_begin(json);
        for (int64_t i = d->begin[k]; i < d->begin[k + 1]; i++) put_picture(json, g, i);
        kith_json_array_end(json);
    }
    kith_json_array_end(json);
    kith_json_object_end(json);
    return cli_print_json(json, err);
}

static kith_status write_page(const search_command *r, const groups *g, kith_error *err) {
    const kith_duplicates *d = &g->found;
    const size_t n = (size_t)d->begin[d->n_groups];
    kith_page_part *part = calloc((size_t)d->n_groups + 1, sizeof *part);
    kith_page_hit *hit = calloc(n + 1, sizeof *hit);
    char(*name)[32] = calloc((size_t)d->n_groups + 1, sizeof *name);
    char title[512], about[256];
    kith_status status = KITH_OK;
    if (!part || !hit || !name) status = cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the page");
    for (int64_t k = 0; status == KITH_OK && k < d->n_groups; k++) {
        snprintf(name[k], sizeof name[k], "Group %lld", (long long)k + 1);
        part[k] = (kith_page_part){
            .title = name[k], .hits = hit + d->begin[k], .n_hits = d->begin[k + 1] - d->begin[k]};
        for (int64_t i = d->begin[k]; i < d->begin[k + 1]; i++)
            hit[i] = (kith_page_hit){.image = g->image[i],
                                     .path = search_shown_path(g->item[i].path),
                                     .label = g->item[i].label,
                                     .note = relation(&d->pictures[i], i == d->begin[k]),
                                     .id = d->pictures[i].id,
                                     .score = d->pictures[i].likeness,
                                     .false_match_rate = NAN};
    }
    if (status == KITH_OK) {
        KITH_OPTIONS(kith_hits_page, page);
        snprintf(title, sizeof title, "Duplicates in %.400s", r->index);
        snprintf(about, sizeof about,
                 "%lld groups of %lld pictures that are the same, of %lld looked at. The number says how "
                 "alike a picture "
                 "is to the first of its group.",
                 (long long)d->n_groups, (long long)n, (long long)d->n_looked_at);
        page.title = title;
        page.about = about;
        page.parts = part;
        page.n_parts = d->n_groups;
        status = kith_hits_page_write(&page, r->html, err);
    }
    free(part);
    free(hit);
    free(name);
    return status;
}

kith_status search_duplicates(const search_command *r, kith_error *err) {
    kith_collection *collection = NULL;
    groups g = {0};
    kith_status status = search_open(r, &collection, err);
    if (status == KITH_OK) status = find(r, collection, &g, err);
    if (status == KITH_OK) {
        if (g.found.n_unread > 0)
            fprintf(stderr, "kith: %lld item%s no picture that can be read\n", (long long)g.found.n_unread,
                    g.found.n_unread == 1 ? " has" : "s have");
        if (r->html) status = write_page(r, &g, err);
    }
    if (status == KITH_OK && r->json) status = print_json(&g, err);
    if (status == KITH_OK && !r->json) {
        print_table(r, &g);
        if (r->html) printf("%s: the groups as pictures\n", r->html);
    }
    groups_release(&g);
    kith_collection_free(collection);
    return status;
}
