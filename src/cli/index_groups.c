/* kith index --groups: what belongs together, though it has no name. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/images.h"
#include "cli/index.h"
#include "cli/search.h"
#include "kith/experimental/json.h"
#include "kith/groups.h"
#include "kith/report.h"

enum { SHOWN = 20 /* groups that are printed */ };

/* The path and the picture of an item, which may have neither. */
typedef struct shown_item {
    kith_index_item item;
    char picture[4096];
} shown_item;

static kith_status show_item(kith_collection *collection, int64_t id, shown_item *ret, kith_error *err) {
    kith_error ignored;
    const kith_status status = kith_index_item_get(kith_collection_index(collection), id, &ret->item, err);
    if (kith_collection_picture(collection, id, ret->picture, sizeof ret->picture, &ignored) != KITH_OK)
        ret->picture[0] = '\0';
    return status;
}

/* ---- in words ---- */

static const char *plural(int64_t n) { return n == 1 ? "" : "s"; }

static void say_error(const kith_groups *g) {
    const double wrong = 100 * (1 - g->precision);
    if (g->is_measured)
        printf(
            "; of 100 pairs put together about %.2g %s wrong (measured on %lld names; %.3g of 100 pairs that "
            "belong together are)\n",
            wrong, wrong == 1 ? "is" : "are", (long long)g->n_labels, 100 * g->recall);
    else if (g->level > 1)
        printf("; too many pairs with names would be wrong: a larger --error puts more together\n");
    else
        printf(
            "; of 100 pairs put together about %.3g may be wrong (an estimate: too few pairs have names "
            "to measure it)\n",
            100 * g->error);
}

static kith_status print_words(const index_request *r, kith_collection *collection, const kith_groups *g,
                               kith_error *err) {
    printf("%s: %lld group%s of %lld photo%s, %lld alone", r->index, (long long)g->n_groups,
           plural(g->n_groups), (long long)(g->n_items - g->n_alone), plural(g->n_items - g->n_alone),
           (long long)g->n_alone);
    say_error(g);
    for (int64_t i = 0; i < g->n_groups && i < SHOWN; i++) {
        shown_item item = {0};
        const kith_status status = show_item(collection, g->groups[i].medoid, &item, err);
        if (status != KITH_OK) return status;
        if (i == 0) printf("  %8s  %8s  %8s  %s\n", "group", "photos", "id", "like");
        printf("  %8lld  %8lld  %8lld  ", (long long)g->groups[i].number,
               (long long)(g->begin[i + 1] - g->begin[i]), (long long)g->groups[i].medoid);
        search_put(item.item.path ? search_shown_path(item.item.path) : "");
        putchar('\n');
        kith_index_item_release(&item.item);
    }
    if (g->n_groups > SHOWN) printf("  and %lld smaller ones\n", (long long)(g->n_groups - SHOWN));
    return KITH_OK;
}

/* ---- as JSON ---- */

static void put_int(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    kith_json_int(json, value);
}

static void put_real(kith_json *json, const char *key, double value) {
    kith_json_key(json, key);
    kith_json_real(json, value);
}

static kith_status put_group(kith_json *json, kith_collection *collection, const kith_groups *g, int64_t i,
                             kith_error *err) {
    shown_item item = {0};
    const kith_status status = show_item(collection, g->groups[i].medoid, &item, err);
    if (status != KITH_OK) return status;
    kith_json_object_begin(json);
    put_int(json, "group", g->groups[i].number);
    put_int(json, "size", g->begin[i + 1] - g->begin[i]);
    put_int(json, "medoid", g->groups[i].medoid);
    kith_json_key(json, "path");
    kith_json_string(json, item.item.path);
    put_real(json, "cohesion", g->groups[i].cohesion);
    kith_json_key(json, "ids");
    kith_json_array_begin(json);
    for (int64_t j = g->begin[i]; j < g->begin[i + 1]; j++) kith_json_int(json, g->ids[j]);
    kith_json_array_end(json);
    kith_json_object_end(json);
    kith_index_item_release(&item.item);
    return KITH_OK;
}

static kith_status print_json(const index_request *r, kith_collection *collection, const kith_groups *g,
                              kith_error *err) {
    kith_json *json = NULL;
    kith_status status = kith_json_new(&json, err);
    if (status != KITH_OK) return status;
    kith_json_object_begin(json);
    kith_json_key(json, "index");
    kith_json_string(json, r->index);
    put_int(json, "items", g->n_items);
    put_int(json, "alone", g->n_alone);
    put_int(json, "new", g->n_new);
    put_real(json, "error", g->error);
    put_real(json, "level", g->level);
    kith_json_key(json, "measured");
    kith_json_bool(json, g->is_measured);
    put_int(json, "names", g->n_labels);
    put_int(json, "pairs", g->n_pairs);
    put_real(json, "precision", g->precision);
    put_real(json, "recall", g->recall);
    kith_json_key(json, "groups");
    kith_json_array_begin(json);
    for (int64_t i = 0; status == KITH_OK && i < g->n_groups; i++)
        status = put_group(json, collection, g, i, err);
    kith_json_array_end(json);
    kith_json_object_end(json);
    if (status == KITH_OK) return cli_print_json(json, err);
    kith_json_free(json);
    return status;
}

/* ---- as a page ---- */

typedef struct group_page {
    kith_page_part *part;
    kith_page_hit *hit;
    shown_item *item;
    char (*name)[64];
} group_page;

static kith_status fill_page(group_page *p, kith_collection *collection, const kith_groups *g,
                             kith_error *err) {
    for (int64_t k = 0; k < g->n_groups; k++) {
        const int64_t begin = g->begin[k], end = g->begin[k + 1];
        snprintf(p->name[k], sizeof p->name[k], "Group %lld: %lld photos", (long long)g->groups[k].number,
                 (long long)(end - begin));
        p->part[k] = (kith_page_part){.title = p->name[k], .hits = p->hit + begin, .n_hits = end - begin};
        for (int64_t i = begin; i < end; i++) {
            shown_item *item = &p->item[i];
            const kith_status status = show_item(collection, g->ids[i], item, err);
            if (status != KITH_OK) return status;
            p->hit[i] = (kith_page_hit){.image = item->picture[0] ? item->picture : NULL,
                                        .path = search_shown_path(item->item.path),
                                        .label = item->item.label,
                                        .note = i == begin ? "represents it" : NULL,
                                        .id = g->ids[i],
                                        .score = NAN,
                                        .false_match_rate = NAN};
        }
    }
    return KITH_OK;
}

static kith_status write_page(const index_request *r, kith_collection *collection, const kith_groups *g,
                              kith_error *err) {
    const size_t n = (size_t)g->begin[g->n_groups];
    group_page p = {.part = calloc((size_t)g->n_groups + 1, sizeof *p.part),
                    .hit = calloc(n + 1, sizeof *p.hit),
                    .item = calloc(n + 1, sizeof *p.item),
                    .name = calloc((size_t)g->n_groups + 1, sizeof *p.name)};
    char title[512], about[256];
    kith_status status = KITH_OK;
    if (!p.part || !p.hit || !p.item || !p.name)
        status = cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the page");
    if (status == KITH_OK) status = fill_page(&p, collection, g, err);
    if (status == KITH_OK) {
        KITH_OPTIONS(kith_hits_page, page);
        snprintf(title, sizeof title, "Groups in %.400s", r->index);
        snprintf(about, sizeof about,
                 "%lld groups of %lld photos that belong together, %lld alone. The first of a group "
                 "represents it.",
                 (long long)g->n_groups, (long long)n, (long long)g->n_alone);
        page.title = title;
        page.about = about;
        page.parts = p.part;
        page.n_parts = g->n_groups;
        status = kith_hits_page_write(&page, r->html, err);
    }
    for (size_t i = 0; p.item && i < n; i++) kith_index_item_release(&p.item[i].item);
    free(p.part);
    free(p.hit);
    free(p.item);
    free(p.name);
    return status;
}

kith_status index_groups(const index_request *r, kith_error *err) {
    kith_collection *collection = NULL;
    kith_groups groups = {0};
    cli_progress progress;
    KITH_OPTIONS(kith_groups_options, options);
    options.error = r->error;
    options.all = r->groups_all;
    options.progress = index_show_progress;
    options.user = &progress;
    kith_status status = index_open(r, KITH_INDEX_WRITE, &collection, err);
    if (status != KITH_OK) return status;
    cli_progress_begin(&progress, "comparing", 0);
    status = kith_collection_group(collection, &options, &groups, err);
    cli_progress_end(&progress);
    if (status == KITH_ENOTFOUND && !r->groups_all)
        snprintf(err->hint, sizeof err->hint, "--groups all groups what has a label, too");
    if (status == KITH_OK && r->html) status = write_page(r, collection, &groups, err);
    if (status == KITH_OK)
        status = r->json ? print_json(r, collection, &groups, err) : print_words(r, collection, &groups, err);
    if (status == KITH_OK && r->html && !r->json) printf("%s: the groups as pictures\n", r->html);
    kith_groups_release(&groups);
    kith_collection_free(collection);
    return status;
}
