/* The page of hits. */
#include "report/hits.h"

#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "kith/reliability.h"
#include "kith/version.h"
#include "report/heat.h"
#include "report/report.h"
#include "report/thumbnail.h"

enum {
    SIDE = 240, /* of a picture in the page; on the screen it is about 160 wide, or 180 of a phone's 400 */
    HEAT_SIDE = 120
}; /* of a heat map, half as wide as that */

typedef struct painter {
    const kith_hits_page *page;
    ki_thumbnails pictures;
    ki_image heat;
    ki_buffer *to;
} painter;

static const char style[] =
    ".found{list-style:none;margin:0;padding:0;display:grid;gap:14px 12px;"
    "grid-template-columns:repeat(auto-fill,minmax(150px,1fr))}\n"
    ".found li{min-width:0}\n"
    ".found img,.asked img,.found .blank,.asked .blank{display:block;width:100%;height:auto;aspect-ratio:1;"
    "object-fit:contain;background:var(--bg);border:1px solid var(--line);border-radius:6px;font-size:.8rem;"
    "padding:0;overflow:hidden;overflow-wrap:anywhere;text-align:center}\n"
    ".found .blank,.asked .blank{display:grid;padding:6px}\n"
    ".asked{display:flex;flex-wrap:wrap;gap:10px;margin:0 0 16px}\n"
    ".asked>*{width:150px;flex:none}.asked img,.asked .blank{border-color:var(--c0);border-width:2px}\n"
    ".why{display:flex;flex-wrap:wrap;gap:4px;margin-top:4px}.why img{width:calc(50% - 2px)}\n"
    ".found p{margin:.15rem 0 0;line-height:1.35;overflow-wrap:anywhere}\n"
    ".score{font-weight:650;font-variant-numeric:tabular-nums}\n"
    ".rate{color:var(--quiet);font-size:.85rem;font-variant-numeric:tabular-nums}\n"
    ".path{color:var(--quiet);font-size:.75rem}\n"
    "h2{overflow-wrap:anywhere}\n"
    "@media(max-width:640px){.found{grid-template-columns:repeat(auto-fill,minmax(130px,1fr));gap:10px}"
    ".asked>*{width:120px}}\n";

static void put_image(painter *p, const ki_image *image, const char *words, const char *more) {
    ki_buffer_put(p->to, "<img width=\"%d\" height=\"%d\" alt=\"%s", (int)image->w, (int)image->h, words);
    ki_buffer_escaped(p->to, more ? more : "");
    ki_buffer_put(p->to, "\" src=\"");
    ki_thumbnail_image_uri(&p->pictures, image, p->to);
    ki_buffer_put(p->to, "\">");
}

/* `words` say what it is to whoever cannot see it. */
static kith_status put_picture(painter *p, const char *image, const char *words, const char *more) {
    kith_error why = {0};
    const ki_image *small = NULL;
    const kith_status status = image ? ki_thumbnail_fit(&p->pictures, image, SIDE, &small, &why) : KITH_OK;
    if (status == KITH_ENOMEM) return ki_fail(p->to->err, status, "%s", why.message);
    if (!small) {
        ki_buffer_put(p->to, "<span class=\"blank\">");
        ki_buffer_escaped(p->to, status == KITH_OK ? "no picture" : why.message);
        ki_buffer_put(p->to, "</span>");
        return p->to->status;
    }
    put_image(p, small, words, more);
    return p->to->status;
}

/* One heat map. Its picture is on the page already, or its place says why not. */
static kith_status put_heat(painter *p, const char *image, const kith_explanation *why,
                            const kith_shares *shares, const char *words) {
    kith_error ignored = {0};
    const ki_image *small = NULL;
    kith_status status = ki_thumbnail_fit(&p->pictures, image, HEAT_SIDE, &small, &ignored);
    if (status == KITH_OK) status = ki_heat_lay(small, why, shares, &p->heat, &ignored);
    if (status == KITH_ENOMEM) return ki_fail(p->to->err, status, "%s", ignored.message);
    if (status == KITH_OK) put_image(p, &p->heat, words, NULL);
    return p->to->status;
}

static kith_status put_why(painter *p, const kith_page_part *part, const kith_page_hit *hit) {
    const kith_explanation *why = hit->why;
    if (!why || !hit->image || why->n > part->n_images) return KITH_OK;
    ki_buffer_put(p->to, "<div class=\"why\">");
    for (int64_t i = 0; i < why->n; i++)
        KI_TRY(put_heat(p, part->images[i], why, &why->query[i], "what matches in the query"));
    KI_TRY(put_heat(p, hit->image, why, &why->hit, "what matches in this picture"));
    ki_buffer_put(p->to, "</div>");
    return p->to->status;
}

static void put_line(painter *p, const char *class, const char *text) {
    if (!text || !*text) return;
    ki_buffer_put(p->to, "<p class=\"%s\">", class);
    ki_buffer_escaped(p->to, text);
    ki_buffer_put(p->to, "</p>");
}

static kith_status put_hit(painter *p, const kith_page_part *part, const kith_page_hit *hit, int64_t rank) {
    char words[64], number[KI_NUMBER_TEXT];
    ki_snprintf(words, sizeof words, "picture %lld%s", (long long)rank, hit->label ? ": " : "");
    ki_buffer_put(p->to, "<li>");
    KI_TRY(put_picture(p, hit->image, words, hit->label));
    if (!isnan(hit->score)) {
        ki_buffer_put(p->to, "<p><span class=\"score\">%.3f</span>", hit->score);
        if (hit->error_rate > 0)
            ki_buffer_put(p->to, " <span class=\"rate\">about %s such hits %s wrong</span>",
                          kith_rate_words(hit->error_rate, words, sizeof words),
                          hit->error_rate < 0.4 ? "is" : "are");
        else if (!isnan(hit->false_match_rate))
            ki_buffer_put(p->to, " <span class=\"rate\">false-match rate %s %%</span>",
                          ki_number_text(100 * hit->false_match_rate, 2, number));
        ki_buffer_put(p->to, "</p>");
    }
    put_line(p, "name", hit->label);
    put_line(p, "rate", hit->note);
    put_line(p, "path", hit->path);
    if (!hit->path && hit->id >= 0) ki_buffer_put(p->to, "<p class=\"path\">id %lld</p>", (long long)hit->id);
    KI_TRY(put_why(p, part, hit));
    ki_buffer_put(p->to, "</li>\n");
    return p->to->status;
}

static void put_legend(painter *p, const kith_page_part *part) {
    const kith_explanation *why = NULL;
    for (int64_t i = 0; i < part->n_hits && !why; i++) why = part->hits[i].why;
    if (!why) return;
    if (*why->estimate) {
        ki_buffer_put(p->to, "<p class=\"note\">The colours are an estimate: ");
        ki_buffer_escaped(p->to, why->estimate);
        ki_buffer_put(p->to, ".</p>\n");
    }
    ki_buffer_put(p->to,
                  "<p class=\"note\">Below the first hits: what of the query, and last what of the hit, "
                  "matches. Yellow adds most to the score, blue takes from it; what is pale was not "
                  "looked at.</p>\n");
}

static kith_status put_part(painter *p, const kith_page_part *part) {
    ki_buffer_put(p->to, "<section>\n<h2>");
    ki_buffer_escaped(p->to, part->title ? part->title : "");
    ki_buffer_put(p->to, "</h2>\n");
    if (part->n_images > 0) ki_buffer_put(p->to, "<div class=\"asked\">");
    for (int64_t i = 0; i < part->n_images; i++) {
        ki_buffer_put(p->to, "<div>");
        KI_TRY(put_picture(p, part->images[i], "the query", NULL));
        ki_buffer_put(p->to, "</div>");
    }
    if (part->n_images > 0) ki_buffer_put(p->to, "</div>\n");
    if (part->n_hits == 0) ki_buffer_put(p->to, "<p class=\"note\">Nothing found.</p>\n");
    if (part->n_hits > 0) ki_buffer_put(p->to, "<ol class=\"found\">\n");
    for (int64_t i = 0; i < part->n_hits; i++) KI_TRY(put_hit(p, part, &part->hits[i], i + 1));
    if (part->n_hits > 0) ki_buffer_put(p->to, "</ol>\n");
    put_legend(p, part);
    ki_buffer_put(p->to, "</section>\n");
    return p->to->status;
}

static void put_head(painter *p) {
    ki_buffer *to = p->to;
    ki_page_begin(to);
    ki_buffer_escaped(to, p->page->title);
    ki_buffer_put(to, " · kith");
    ki_page_style(to);
    ki_buffer_put(to, "%s</style>\n</head>\n<body>\n<header>\n<h1>", style);
    ki_buffer_escaped(to, p->page->title);
    ki_buffer_put(to, "</h1>\n");
    put_line(p, "subtitle", p->page->about);
    ki_buffer_put(to, "</header>\n<main>\n");
}

kith_status ki_hits_make(const kith_hits_page *page, ki_buffer *to, kith_error *err) {
    painter p = {.page = page, .to = to};
    kith_status status = KITH_OK;
    const int64_t n = page->n_parts < page->most_parts ? page->n_parts : page->most_parts;
    to->err = err;
    put_head(&p);
    for (int64_t i = 0; i < n; i++) KI_CHECK(put_part(&p, &page->parts[i]));
    if (n < page->n_parts)
        ki_buffer_put(to, "<p class=\"note\">%lld more are not shown.</p>\n", (long long)(page->n_parts - n));
    ki_buffer_put(to, "</main>\n<footer>kith %s. One file: nothing is loaded from anywhere else.</footer>\n",
                  kith_version());
    ki_buffer_put(to, "</body>\n</html>\n");
    status = to->status;
done:
    ki_thumbnails_release(&p.pictures);
    ki_image_release(&p.heat);
    return status;
}
