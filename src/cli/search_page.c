/* kith search --html: the hits as a page of pictures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/search.h"
#include "kith/report.h"

const char *search_image(const kith_index *index, const char *path, char *buf, size_t buf_bytes) {
    const char *folder = kith_index_note(index, "folder");
    if (!path || path[0] == '/' || !folder) return path;
    const int n = snprintf(buf, buf_bytes, "%s/%s", folder, path);
    return n > 0 && (size_t)n < buf_bytes ? buf : path;
}

/* The parts of the page. Strings belong to the queries, the hits and `image`. */
typedef struct page_parts {
    kith_page_part *part;
    kith_page_hit *hit;
    char **image;          /* [hits] */
    const char **query;    /* [queries, n_query_images] */
    char (*row)[32];       /* titles of queries that are rows */
    kith_explanation *why; /* [hits]; empty where there is none */
} page_parts;

/* What is explained by heat maps: it takes another look at the images, and room on the page. */
enum { MOST_QUERIES_EXPLAINED = 20, MOST_HITS_EXPLAINED = 3 };

static void page_parts_release(page_parts *p, int64_t n_hits) {
    for (int64_t i = 0; p->image && i < n_hits; i++) free(p->image[i]);
    for (int64_t i = 0; p->why && i < n_hits; i++) kith_explanation_release(&p->why[i]);
    free(p->why);
    free(p->image);
    free(p->part);
    free(p->hit);
    free(p->query);
    free(p->row);
}

static bool fill_hits(const kith_index *index, const search_found *f, page_parts *p) {
    char buf[8192];
    const int64_t n = f->hits.begin[f->hits.n_queries];
    for (int64_t i = 0; i < n; i++) {
        const kith_index_item *item = &f->item[i];
        const char *image = search_image(index, item->path, buf, sizeof buf);
        if (image && !(p->image[i] = strdup(image))) return false;
        p->hit[i] = (kith_page_hit){.image = p->image[i],
                                    .path = search_shown_path(item->path),
                                    .label = item->label,
                                    .id = f->hits.hits[i].id,
                                    .score = f->hits.hits[i].score,
                                    .false_match_rate = f->false_match_rate[i]};
    }
    return true;
}

/* Where an image cannot be read, or the vectors cannot be taken apart, there is no heat map. */
static void explain_hits(const search_request *r, const kith_index *index, const search_queries *queries,
                         const search_found *f, page_parts *p) {
    const int64_t n = queries->n < MOST_QUERIES_EXPLAINED ? queries->n : MOST_QUERIES_EXPLAINED;
    for (int64_t q = 0; queries->embedder && q < n; q++) {
        const int64_t begin = f->hits.begin[q], end = f->hits.begin[q + 1];
        for (int64_t i = begin; i < end && i < begin + MOST_HITS_EXPLAINED; i++) {
            kith_error ignored;
            if (search_explain(r, index, queries, f, q, i, &p->why[i], &ignored) == KITH_OK)
                p->hit[i].why = &p->why[i];
        }
    }
}

static void fill_parts(const search_request *r, const search_queries *queries, const search_found *f,
                       page_parts *p) {
    const int64_t n_images = queries->name ? 1 + r->also.n_items + r->unlike.n_items : 0;
    for (int64_t q = 0; q < queries->n; q++) {
        const char **image = p->query + q * n_images;
        if (queries->name) image[0] = queries->name[q];
        for (int i = 0; queries->name && i < r->also.n_items; i++) image[1 + i] = r->also.item[i];
        for (int i = 0; queries->name && i < r->unlike.n_items; i++)
            image[1 + r->also.n_items + i] = r->unlike.item[i];
        snprintf(p->row[q], sizeof p->row[q], "row %lld", (long long)q);
        p->part[q] = (kith_page_part){.title = queries->name ? queries->name[q] : p->row[q],
                                      .images = image,
                                      .n_images = n_images,
                                      .hits = p->hit + f->hits.begin[q],
                                      .n_hits = f->hits.begin[q + 1] - f->hits.begin[q]};
    }
}

static void describe(const search_request *r, const search_found *f, char *text, size_t bytes) {
    const kith_search_options *s = &r->search;
    char limit[64] = "", from[64] = "";
    if (s->has_limit) snprintf(limit, sizeof limit, ", at least as near as %.4g", s->limit);
    if (s->offset > 0) snprintf(from, sizeof from, " behind the first %lld", (long long)s->offset);
    snprintf(text, bytes, "The %lld most similar%s of %lld items%s%s%s%s.", (long long)s->k, from,
             (long long)f->hits.n_allowed, limit, s->where ? ", where " : "", s->where ? s->where : "",
             r->has_crop ? "; a part of the query's image" : "");
}

kith_status search_write_page(const search_request *r, const kith_index *index, const search_queries *queries,
                              const search_found *f, kith_error *err) {
    const size_t n = (size_t)queries->n, n_hits = (size_t)f->hits.begin[queries->n];
    const size_t n_images = 1 + (size_t)(r->also.n_items + r->unlike.n_items);
    page_parts p = {.part = calloc(n + 1, sizeof *p.part),
                    .hit = calloc(n_hits + 1, sizeof *p.hit),
                    .image = calloc(n_hits + 1, sizeof *p.image),
                    .query = calloc(n * n_images + 1, sizeof *p.query),
                    .row = calloc(n + 1, sizeof *p.row),
                    .why = calloc(n_hits + 1, sizeof *p.why)};
    kith_status status = KITH_OK;
    char title[512], about[1024];
    if (!p.part || !p.hit || !p.image || !p.query || !p.row || !p.why || !fill_hits(index, f, &p)) {
        status = cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the page");
    } else {
        KITH_OPTIONS(kith_hits_page, page);
        explain_hits(r, index, queries, f, &p);
        fill_parts(r, queries, f, &p);
        snprintf(title, sizeof title, "Found in %.400s", r->index);
        describe(r, f, about, sizeof about);
        page.title = title;
        page.about = about;
        page.parts = p.part;
        page.n_parts = queries->n;
        status = kith_hits_page_write(&page, r->html, err);
    }
    page_parts_release(&p, (int64_t)n_hits);
    return status;
}
