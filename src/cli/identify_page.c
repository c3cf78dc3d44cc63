/* kith identify --html: each photo with its name, the nearest photos of the names it was weighed against, and why the first looks alike. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/identify.h"
#include "cli/search.h"
#include "kith/report.h"

/* Heat maps take another look at the photos, and room on the page. */
enum { MOST_EXPLAINED = 50 };

typedef struct page_parts {
    kith_page_part *part;  /* [things] */
    kith_page_hit *hit;    /* [things, names] */
    char (*title)[512];    /* [things] */
    kith_explanation *why; /* [things], of the first name */
} page_parts;

static void release(page_parts *p, int64_t n) {
    for (int64_t i = 0; p->why && i < n; i++) kith_explanation_release(&p->why[i]);
    free(p->part);
    free(p->hit);
    free(p->title);
    free(p->why);
}

static bool init(page_parts *p, int64_t n, int64_t k) {
    p->part = calloc((size_t)n + 1, sizeof *p->part);
    p->hit = calloc((size_t)(n * k) + 1, sizeof *p->hit);
    p->title = calloc((size_t)n + 1, sizeof *p->title);
    p->why = calloc((size_t)n + 1, sizeof *p->why);
    return p->part && p->hit && p->title && p->why;
}

/* Where a photo cannot be read any more, or vectors cannot be taken apart, there is no heat map. */
static bool explain(kith_collection *collection, const kith_query_image *photos, int64_t n,
                    const char *picture, kith_explanation *ret) {
    kith_error ignored;
    kith_model *model = NULL;
    const kith_query_image hit = {.path = picture};
    if (!picture || n > 16) return false;
    return kith_collection_model(collection, &model, &ignored) == KITH_OK &&
           kith_model_explain(model, photos, n, &hit, NULL, ret, &ignored) == KITH_OK;
}

static void write_title(const identify_things *t, int64_t i, char *title, size_t bytes) {
    const kith_identified *x = &t->found[i];
    int64_t first = 0;
    identify_photos_of(t, i, &first);
    const char *path = search_shown_path(t->photo[first]);
    if (x->name)
        snprintf(title, bytes, "%.160s: %.160s, at most %.2g %% false%s", path, x->name,
                 100 * x->false_name_high,
                 x->is_single ? " (one photo of it: together with all other names)" : "");
    else
        snprintf(title, bytes, "%.160s: unknown", path);
}

static kith_status fill(const identify_command *c, kith_collection *collection, const identify_things *t,
                        page_parts *p, int64_t *ret_n, kith_error *err) {
    kith_query_image *images = calloc((size_t)t->n_photos + 1, sizeof *images);
    if (!images) return cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the page");
    for (int64_t i = 0; i < t->n_photos; i++)
        images[i] = (kith_query_image){.path = t->photo[i], .weight = 1};
    *ret_n = 0;
    for (int64_t i = 0; i < t->n; i++) {
        const kith_identified *x = &t->found[i];
        kith_page_hit *hit = p->hit + i * c->how.k;
        int64_t first = 0;
        const int64_t n = identify_photos_of(t, i, &first);
        if (x->status != KITH_OK) continue;
        for (int64_t j = 0; j < x->n_candidates; j++) {
            const kith_found_hit *from = &x->candidates[j];
            hit[j] = (kith_page_hit){.image = from->picture ? from->picture : from->item.path,
                                     .path = search_shown_path(from->item.path),
                                     .label = from->item.label,
                                     .id = from->item.id,
                                     .score = from->score,
                                     .false_match_rate = NAN};
        }
        if (*ret_n < MOST_EXPLAINED && x->n_candidates > 0 &&
            explain(collection, images + first, n, x->candidates[0].picture, &p->why[i]))
            hit[0].why = &p->why[i];
        write_title(t, i, p->title[i], sizeof p->title[i]);
        p->part[(*ret_n)++] = (kith_page_part){.title = p->title[i],
                                               .images = (const char *const *)t->photo + first,
                                               .n_images = n,
                                               .hits = hit,
                                               .n_hits = x->n_candidates};
    }
    free(images);
    return KITH_OK;
}

kith_status identify_write_page(const identify_command *c, kith_collection *collection,
                                const identify_things *t, kith_error *err) {
    page_parts p = {0};
    char title[512], about[512];
    kith_status status = KITH_OK;
    KITH_OPTIONS(kith_hits_page, page);
    if (!init(&p, t->n, c->how.k))
        status = cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the page");
    if (status == KITH_OK) status = fill(c, collection, t, &p, &page.n_parts, err);
    if (status == KITH_OK) {
        snprintf(title, sizeof title, "Named by %.400s", c->shown);
        snprintf(about, sizeof about,
                 "Names with at most %.3g %% of false ones, measured on %lld photos of %lld names. Of each "
                 "name the nearest "
                 "photo; the first is the name in question.",
                 100 * t->report.error, (long long)t->report.n_photos, (long long)t->report.n_names);
        page.title = title;
        page.about = about;
        page.parts = p.part;
        status = kith_hits_page_write(&page, c->html, err);
    }
    release(&p, t->n);
    return status;
}
