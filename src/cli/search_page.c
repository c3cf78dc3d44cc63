/* kith search --html: the hits as a page of pictures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/search.h"
#include "kith/report.h"

/* The parts of the page. Strings belong to the queries and their answers. */
typedef struct page_parts {
    kith_page_part *part;  /* [queries] */
    kith_page_hit *hit;    /* [hits] of all queries */
    const char **query;    /* [queries, parts of a query] */
    char **item;           /* [queries]: pictures of items that are queries */
    char (*title)[32];     /* of queries that have no name */
    kith_explanation *why; /* [hits]; empty where there is none */
    int64_t n, n_hits;
} page_parts;

/* What is explained by heat maps: it takes another look at the images, and room on the page. */
enum { MOST_QUERIES_EXPLAINED = 20, MOST_HITS_EXPLAINED = 3 };

static void page_parts_release(page_parts *p) {
    for (int64_t i = 0; p->why && i < p->n_hits; i++) kith_explanation_release(&p->why[i]);
    for (int64_t i = 0; p->item && i < p->n; i++) free(p->item[i]);
    free(p->why);
    free(p->part);
    free(p->hit);
    free(p->query);
    free(p->item);
    free(p->title);
}

static bool page_parts_init(page_parts *p, const search_queries *queries) {
    *p = (page_parts){.n = queries->n};
    for (int64_t q = 0; q < queries->n; q++) p->n_hits += queries->found[q].n_hits;
    const size_t n = (size_t)p->n, n_hits = (size_t)p->n_hits;
    p->part = calloc(n + 1, sizeof *p->part);
    p->hit = calloc(n_hits + 1, sizeof *p->hit);
    p->query = calloc(n * (size_t)queries->n_parts + 1, sizeof *p->query);
    p->item = calloc(n + 1, sizeof *p->item);
    p->title = calloc(n + 1, sizeof *p->title);
    p->why = calloc(n_hits + 1, sizeof *p->why);
    return p->part && p->hit && p->query && p->item && p->title && p->why;
}

static void fill_hits(const kith_found *found, kith_page_hit *hit) {
    for (int64_t i = 0; i < found->n_hits; i++) {
        const kith_found_hit *from = &found->hits[i];
        hit[i] = (kith_page_hit){.image = from->picture ? from->picture : from->item.path,
                                 .path = search_shown_path(from->item.path),
                                 .label = from->item.label,
                                 .id = from->item.id,
                                 .score = from->score,
                                 .false_match_rate = from->false_match_rate,
                                 .error_rate = from->error_rate};
    }
}

/* Where an image cannot be read, or the vectors cannot be taken apart, there is no heat map. */
static void explain_hits(const search_command *c, kith_collection *collection, const search_queries *queries,
                         int64_t q, kith_page_hit *hit, kith_explanation *why) {
    if (queries->rows.data || q >= MOST_QUERIES_EXPLAINED) return;
    for (int64_t i = 0; i < queries->found[q].n_hits && i < MOST_HITS_EXPLAINED; i++) {
        kith_error ignored;
        if (search_explain(c, collection, queries, q, i, &why[i], &ignored) == KITH_OK) hit[i].why = &why[i];
    }
}

/* The images of query q; of a vector there are none. */
static int64_t fill_images(const kith_collection *collection, const search_queries *queries, int64_t q,
                           page_parts *p) {
    const kith_query_part *part = queries->parts + q * queries->n_parts;
    const char **image = p->query + q * queries->n_parts;
    char path[4096];
    kith_error ignored;
    if (queries->rows.data) return 0;
    for (int64_t i = 0; i < queries->n_parts; i++) {
        image[i] = part[i].image.path;
        if (part[i].id < 0) continue;
        if (kith_collection_picture(collection, part[i].id, path, sizeof path, &ignored) != KITH_OK) return 0;
        image[i] = p->item[q] = strdup(path);
        if (!image[i]) return 0;
    }
    return queries->n_parts;
}

static void fill_parts(const search_command *c, kith_collection *collection, const search_queries *queries,
                       page_parts *p) {
    int64_t at = 0;
    for (int64_t q = 0; q < queries->n; q++) {
        const int64_t n_hits = queries->found[q].n_hits;
        fill_hits(&queries->found[q], p->hit + at);
        explain_hits(c, collection, queries, q, p->hit + at, p->why + at);
        p->part[q] = (kith_page_part){.title = search_title(queries, q, p->title[q], sizeof p->title[q]),
                                      .images = p->query + q * queries->n_parts,
                                      .n_images = fill_images(collection, queries, q, p),
                                      .hits = p->hit + at,
                                      .n_hits = n_hits};
        at += n_hits;
    }
}

static void describe(const search_command *c, const search_queries *queries, char *text, size_t bytes) {
    const kith_search_request *s = &c->search;
    const kith_found none = {.limit = NAN}, *first = queries->n > 0 ? queries->found : &none;
    char limit[64] = "", from[64] = "";
    if (!isnan(first->limit)) snprintf(limit, sizeof limit, ", at least as near as %.4g", first->limit);
    if (s->offset > 0) snprintf(from, sizeof from, " behind the first %lld", (long long)s->offset);
    snprintf(text, bytes, "The %lld most similar%s of %lld items%s%s%s%s%s.", (long long)s->k, from,
             (long long)first->n_allowed, limit, s->where ? ", where " : "", s->where ? s->where : "",
             s->hide_duplicates ? ", each picture once" : "",
             c->has_crop ? "; a part of the query's image" : "");
}

kith_status search_write_page(const search_command *c, kith_collection *collection,
                              const search_queries *queries, kith_error *err) {
    page_parts p;
    kith_status status = KITH_OK;
    char title[512], about[1024];
    if (!page_parts_init(&p, queries)) {
        status = cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the page");
    } else {
        KITH_OPTIONS(kith_hits_page, page);
        fill_parts(c, collection, queries, &p);
        snprintf(title, sizeof title, "Found in %.400s", c->shown);
        describe(c, queries, about, sizeof about);
        page.title = title;
        page.about = about;
        page.parts = p.part;
        page.n_parts = queries->n;
        status = kith_hits_page_write(&page, c->html, err);
    }
    page_parts_release(&p);
    return status;
}
