/* The page of findings: a summary, then a section for each kind, in the order of the findings. */
#include "report/findings/findings.h"

#include <string.h>

#include "base/text.h"
#include "kith/version.h"
#include "report/report.h"
#include "report/thumbnail.h"

enum { SIDE = 176, MOST_OF_GROUP = 6, BEYOND = 500 };

typedef struct painter {
    const kith_findings *found;
    const kith_dataset *set;
    const kith_findings_page *page;
    ki_thumbnails pictures;
    ki_buffer *to;
} painter;

static const char style[] =
    ".kinds{list-style:none;margin:16px 0 0;padding:0;display:grid;gap:8px;"
    "grid-template-columns:repeat(auto-fill,minmax(min(270px,100%),1fr))}\n"
    ".kinds a{display:flex;height:100%;gap:10px;align-items:baseline;padding:9px "
    "12px;background:var(--card);color:var(--ink);"
    "border:1px solid var(--line);border-left:4px solid var(--tone);border-radius:8px;text-decoration:none}\n"
    ".kinds a:hover{border-color:var(--tone)}.kinds b{margin-left:auto;font-variant-numeric:tabular-nums}\n"
    "a:focus-visible,summary:focus-visible{outline:3px solid var(--c0);outline-offset:2px}\n"
    ".error{--tone:var(--wrong)}.warning{--tone:var(--warn)}.note-kind{--tone:var(--c0)}\n"
    "section.kind{border-top:4px solid var(--tone);scroll-margin-top:8px}\n"
    "h2{display:flex;flex-wrap:wrap;gap:4px 10px;align-items:baseline}\n"
    ".badge{font-size:.75rem;font-weight:600;color:var(--tone);border:1px solid "
    "var(--tone);border-radius:99px;"
    "padding:1px 9px}\n"
    ".count{color:var(--quiet);font-weight:400;font-variant-numeric:tabular-nums}\n"
    ".say{display:grid;grid-template-columns:max-content minmax(0,75ch);gap:2px 14px;margin:.6rem 0 1rem}\n"
    ".say dt{font-weight:500}\n"
    ".faults{list-style:none;margin:0;padding:0;display:grid;gap:16px 14px;"
    "grid-template-columns:repeat(auto-fill,minmax(150px,1fr))}\n"
    ".faults.two{grid-template-columns:repeat(auto-fill,minmax(min(300px,100%),1fr))}\n"
    ".faults.wide{display:flex;flex-wrap:wrap;gap:12px}\n"
    ".faults.wide>li{padding:8px;border:1px solid var(--line);border-radius:10px}\n"
    ".faults>li{min-width:0}\n"
    ".side{display:grid;grid-template-columns:1fr 1fr;gap:6px}\n"
    ".row{display:flex;flex-wrap:wrap;gap:8px}.row .shot{width:152px}\n"
    ".shot{margin:0;min-width:0;position:relative}\n"
    ".shot .frame{position:relative;display:grid;place-items:center;aspect-ratio:1;background:var(--bg);"
    "border:1px solid var(--line);border-radius:6px;overflow:hidden}\n"
    ".shot img{display:block;max-width:100%;max-height:100%;width:auto;height:auto}\n"
    ".shot .blank{width:100%;height:100%;padding:8px;aspect-ratio:auto;background:none;font-size:.75rem;"
    "overflow:hidden;overflow-wrap:anywhere;text-align:center}\n"
    ".border .frame img{width:100%;height:100%;object-fit:fill}\n"
    ".border .frame::after{content:\"\";position:absolute;inset:20%;background:rgb(124 116 104/.94)}\n"
    ".out{position:absolute;left:5px;top:5px;font-size:.72rem;line-height:1.3;padding:1px "
    "7px;border-radius:99px;"
    "background:var(--card);color:var(--wrong);border:1px solid var(--wrong);z-index:1}\n"
    "figcaption{font-size:.85rem;margin-top:3px}\n"
    "figcaption p,.faults>li>p{margin:0;line-height:1.35;overflow-wrap:anywhere}\n"
    ".path{color:var(--quiet);font-size:.75rem}.class{font-weight:600}\n"
    ".faults>li>p{font-size:.85rem;color:var(--quiet);margin-top:3px}\n"
    ".lines{margin:.4rem 0;padding-left:1.2rem}.lines li{overflow-wrap:anywhere}\n"
    "@media(max-width:640px){.say{grid-template-columns:minmax(0,1fr)}.say dd{margin-bottom:.4rem}"
    ".faults{grid-template-columns:repeat(auto-fill,minmax(130px,1fr));gap:12px 10px}"
    ".row .shot{width:132px}}\n";

static const char *tone_of(kith_severity severity) {
    return severity == KITH_SEVERITY_ERROR     ? "error"
           : severity == KITH_SEVERITY_WARNING ? "warning"
                                               : "note-kind";
}

static void put_text(painter *p, const char *before, const char *text, const char *after) {
    ki_buffer_put(p->to, "%s", before);
    ki_buffer_escaped(p->to, text);
    ki_buffer_put(p->to, "%s", after);
}

/* ---- pictures ---- */

static const char *class_of(const painter *p, int64_t item) {
    const int32_t label = p->set->item[item].label;
    return label >= 0 && ki_dataset_is_class(p->set, label) ? p->set->class_[label].name : NULL;
}

static kith_status shrink(painter *p, int64_t item, kith_error *why) {
    ki_thumbnails *t = &p->pictures;
    const ki_decode how = {.least_side = SIDE, .background = {255, 255, 255}};
    KI_TRY(ki_dataset_pixels(p->set, item, &how, &t->file, &t->image, why));
    return ki_resample_fit(&t->scratch.resampler, &t->image, SIDE, &t->base, why);
}

static void put_alt(painter *p, int64_t item, const char *words) {
    const char *class = class_of(p, item);
    put_text(p, " alt=\"", words, class ? ", class " : "");
    if (class) ki_buffer_escaped(p->to, class);
    ki_buffer_put(p->to, "\"");
}

/* `words` say what it is to whoever cannot see it. A picture that cannot be read is named by the reason. */
static kith_status put_frame(painter *p, int64_t item, const char *words) {
    kith_error why = {0};
    const kith_status status = shrink(p, item, &why);
    if (status == KITH_ENOMEM) return ki_fail(p->to->err, status, "%s", why.message);
    ki_buffer_put(p->to, "<div class=\"frame\">");
    if (status == KITH_OK) {
        const ki_image *image = &p->pictures.base;
        ki_buffer_put(p->to, "<img loading=\"lazy\" width=\"%d\" height=\"%d\"", (int)image->w,
                      (int)image->h);
        put_alt(p, item, words);
        ki_buffer_put(p->to, " src=\"");
        ki_thumbnail_image_uri(&p->pictures, image, p->to);
        ki_buffer_put(p->to, "\">");
    } else {
        put_text(p, "<span class=\"blank\">", why.message, "</span>");
    }
    ki_buffer_put(p->to, "</div>");
    return p->to->status;
}

/* A picture with its name. `role`: "is in", "looks like"; NULL: the class alone. */
static kith_status put_shot(painter *p, int64_t item, const char *words, const char *role) {
    const char *class = class_of(p, item);
    ki_buffer_put(p->to, "<figure class=\"shot\">");
    if (p->found->why_out[item] >= 0) ki_buffer_put(p->to, "<span class=\"out\">left out</span>");
    KI_TRY(put_frame(p, item, words));
    ki_buffer_put(p->to, "<figcaption>");
    if (class && role) put_text(p, "<p>", role, " ");
    if (class)
        put_text(p, role ? "<span class=\"class\">" : "<p class=\"class\">", class,
                 role ? "</span></p>" : "</p>");
    put_text(p, "<p class=\"path\">", ki_dataset_item_name(p->set, (size_t)item),
             "</p></figcaption></figure>");
    return p->to->status;
}

/* ---- findings ---- */

static void put_score(painter *p, const kith_finding *f) {
    ki_buffer *to = p->to;
    if (f->kind == KITH_FINDING_MISLABELLED)
        ki_buffer_put(to, "<p>score %.2f</p>", f->score);
    else if (f->kind == KITH_FINDING_BLURRED)
        ki_buffer_put(to, "<p>sharpness %.2f</p>", f->score);
    else if (f->kind == KITH_FINDING_ODD)
        ki_buffer_put(to, "<p>unlike the rest: %.1f</p>", f->score);
    else if (f->kind == KITH_FINDING_TINY && f->score > 0)
        ki_buffer_put(to, "<p>%.0f pixels</p>", f->score);
    else if (f->kind == KITH_FINDING_EXTREME)
        ki_buffer_put(to, "<p>1 : %.3g</p>", f->score);
    else if (f->kind == KITH_FINDING_NEAR || f->kind == KITH_FINDING_NEAR_LEAK)
        ki_buffer_put(to, "<p>cosine %.3f</p>", f->score);
}

static const int64_t *items_of(const painter *p, const kith_finding *f) { return p->found->items + f->begin; }

static kith_status put_pair(painter *p, const kith_finding *f, bool is_turned) {
    ki_buffer_put(p->to, "<div class=\"side\">");
    KI_TRY(put_shot(p, items_of(p, f)[0], is_turned ? "a picture whose label looks wrong" : "an odd picture",
                    "is in"));
    if (f->example >= 0)
        KI_TRY(put_shot(p, f->example, is_turned ? "the picture it looks like" : "the nearest of its class",
                        is_turned ? "looks like" : "the nearest in"));
    ki_buffer_put(p->to, "</div>");
    return p->to->status;
}

static kith_status put_group(painter *p, const kith_finding *f, int64_t most) {
    ki_buffer_put(p->to, "<div class=\"row\">");
    for (int64_t i = 0; i < f->n && i < most; i++) {
        const int64_t item = items_of(p, f)[i];
        char words[64];
        ki_snprintf(words, sizeof words, "picture %lld of %lld", (long long)i + 1, (long long)f->n);
        KI_TRY(put_shot(p, item, words, kith_split_name((kith_split)p->set->item[item].split)));
    }
    ki_buffer_put(p->to, "</div>");
    if (f->n > most) ki_buffer_put(p->to, "<p>and %lld more</p>", (long long)(f->n - most));
    return p->to->status;
}

static kith_status put_finding(painter *p, const kith_finding *f, ki_finding_look look) {
    ki_buffer_put(p->to, "<li>");
    switch (f->n > 0 ? look : KI_LOOK_LINE) {
    case KI_LOOK_EACH: KI_TRY(put_shot(p, items_of(p, f)[0], "a picture", NULL)); break;
    case KI_LOOK_TURNED:
    case KI_LOOK_OWN: KI_TRY(put_pair(p, f, look == KI_LOOK_TURNED)); break;
    case KI_LOOK_GROUP: KI_TRY(put_group(p, f, MOST_OF_GROUP)); break;
    case KI_LOOK_BORDER: KI_TRY(put_group(p, f, f->n)); break;
    default: put_text(p, "<p>", f->text, "</p>"); break;
    }
    if (look == KI_LOOK_BORDER) put_text(p, "<p>", f->text, "</p>");
    put_score(p, f);
    ki_buffer_put(p->to, "</li>\n");
    return p->to->status;
}

/* ---- sections ---- */

/* A list may have found more than was planted: what the set had itself next to it. */
static double found_of_100(const kith_finding_measured *m) {
    return m->n_planted <= 0 || m->n_right >= m->n_planted ? 100
                                                           : 100 * (double)m->n_right / (double)m->n_planted;
}

static void put_measured(painter *p, kith_finding_kind kind) {
    kith_finding_measured m;
    char count[KI_NUMBER_TEXT];
    for (int64_t i = 0; kith_finding_measured_at(kind, i, &m); i++) {
        ki_buffer_put(p->to, i == 0 ? "Of 100 that this list named on sets with planted errors, " : "; ");
        ki_buffer_put(p->to, "%.0f were planted on ",
                      m.n_named ? 100 * (double)m.n_right / (double)m.n_named : 0.0);
        ki_buffer_escaped(p->to, m.set);
        ki_buffer_put(p->to, " (%s images; it found %.0f of 100)", ki_count_text((double)m.n_images, count),
                      found_of_100(&m));
    }
    ki_buffer_put(p->to, ". Some of the others are errors that the sets had themselves. Yours may differ.");
}

static void put_words(painter *p, kith_finding_kind kind, const ki_finding_words *w) {
    kith_finding_measured m;
    const bool is_measured = kith_finding_measured_at(kind, 0, &m);
    put_text(p, "<p class=\"about\">", w->what, "</p>\n<dl class=\"say\">");
    put_text(p, "<dt>Why it matters</dt><dd>", w->why, "</dd>");
    put_text(p, "<dt>What to do</dt><dd>", w->advice, "</dd><dt>How sure</dt><dd>");
    if (is_measured)
        put_measured(p, kind);
    else
        ki_buffer_escaped(p->to, w->sure ? w->sure : "Not measured: look for yourself.");
    ki_buffer_put(p->to, "</dd></dl>\n");
}

static const char *list_class(ki_finding_look look) {
    return look == KI_LOOK_GROUP                           ? "faults wide"
           : look == KI_LOOK_BORDER                        ? "faults wide border"
           : look == KI_LOOK_TURNED || look == KI_LOOK_OWN ? "faults two"
           : look == KI_LOOK_EACH                          ? "faults"
                                                           : "lines";
}

/* The findings of one kind, which follow each other from `first` on. */
static kith_status put_section(painter *p, int64_t first) {
    const kith_finding *f = &p->found->findings[first];
    const ki_finding_words *w = ki_finding_words_of(f->kind);
    const int64_t n = p->found->n_of[f->kind], most = p->page->most_shown, shown = n < most ? n : most;
    const char *name = kith_finding_kind_name(f->kind), *severity = kith_severity_name(f->severity);
    char count[KI_NUMBER_TEXT];
    ki_buffer_put(
        p->to,
        "<section class=\"kind %s\" id=\"%s\" aria-labelledby=\"%s-title\">\n<h2 id=\"%s-title\">%s "
        "<span class=\"count\">%s</span> <span class=\"badge\">%s</span></h2>\n",
        tone_of(f->severity), name, name, name, w->title, ki_count_text((double)n, count), severity);
    put_words(p, f->kind, w);
    ki_buffer_put(p->to, "<ol class=\"%s\">\n", list_class(w->look));
    for (int64_t i = 0; i < shown; i++) KI_TRY(put_finding(p, &f[i], w->look));
    ki_buffer_put(p->to, "</ol>\n");
    if (shown < n) {
        ki_buffer_put(p->to, "<details><summary>%s more, without pictures</summary>\n<ol class=\"lines\">\n",
                      ki_count_text((double)(n - shown), count));
        for (int64_t i = shown; i < n && i < shown + BEYOND; i++) put_text(p, "<li>", f[i].text, "</li>\n");
        ki_buffer_put(p->to, "</ol>\n");
        if (n > shown + BEYOND)
            ki_buffer_put(p->to, "<p>and %s more (kith data --doctor --json has all)</p>\n",
                          ki_count_text((double)(n - shown - BEYOND), count));
        ki_buffer_put(p->to, "</details>\n");
    }
    ki_buffer_put(p->to, "</section>\n");
    return p->to->status;
}

static void put_counts(painter *p) {
    const kith_findings *f = p->found;
    char a[KI_NUMBER_TEXT], b[KI_NUMBER_TEXT];
    ki_buffer_put(
        p->to, "<p class=\"subtitle\">%s images in %lld classes · %lld errors, %lld warnings, %lld notes · ",
        ki_count_text((double)f->n_items, a), (long long)p->set->n_classes,
        (long long)f->n_of_severity[KITH_SEVERITY_ERROR], (long long)f->n_of_severity[KITH_SEVERITY_WARNING],
        (long long)f->n_of_severity[KITH_SEVERITY_NOTE]);
    if (f->n_out > 0)
        ki_buffer_put(p->to, "%s to leave out</p>\n", ki_count_text((double)f->n_out, b));
    else
        ki_buffer_put(p->to, "nothing to leave out</p>\n");
    if (p->page->options) put_text(p, "<p class=\"subtitle\">", p->page->options, "</p>\n");
}

static void put_kinds(painter *p) {
    const kith_findings *f = p->found;
    char count[KI_NUMBER_TEXT];
    if (f->n == 0) return;
    ki_buffer_put(p->to, "<nav aria-label=\"What was found\"><ul class=\"kinds\">\n");
    for (int64_t i = 0; i < f->n; i += f->n_of[f->findings[i].kind]) {
        const kith_finding *first = &f->findings[i];
        ki_buffer_put(p->to, "<li><a class=\"%s\" href=\"#%s\"><span>%s</span><b>%s</b></a></li>\n",
                      tone_of(first->severity), kith_finding_kind_name(first->kind),
                      ki_finding_words_of(first->kind)->title,
                      ki_count_text((double)f->n_of[first->kind], count));
    }
    ki_buffer_put(p->to, "</ul></nav>\n");
}

/* A folder's own name: what follows the last slash. */
static void put_title(painter *p) {
    const char *root = p->page->title ? p->page->title : kith_dataset_root(p->set);
    size_t n = strlen(root);
    char name[256];
    while (n > 1 && root[n - 1] == '/') n--;
    size_t begin = n;
    while (begin > 0 && root[begin - 1] != '/') begin--;
    ki_snprintf(name, sizeof name, "%.*s", (int)(n - begin), root + begin);
    ki_buffer_escaped(p->to, p->page->title ? p->page->title : name);
}

kith_status ki_findings_make(const kith_findings *findings, const kith_dataset *set,
                             const kith_findings_page *page, ki_buffer *to, kith_error *err) {
    painter p = {.found = findings, .set = set, .page = page, .to = to};
    kith_status status;
    to->err = err;
    ki_page_begin(to);
    put_title(&p);
    ki_buffer_put(to, " · kith doctor");
    ki_page_style(to);
    ki_buffer_put(to, "%s</style>\n</head>\n<body>\n<header>\n<h1>What is wrong with ", style);
    put_title(&p);
    ki_buffer_put(to, "</h1>\n");
    put_counts(&p);
    put_kinds(&p);
    ki_buffer_put(to, "</header>\n<main>\n");
    if (findings->n == 0) ki_buffer_put(to, "<section><p class=\"about\">Nothing was found.</p></section>\n");
    for (int64_t i = 0; i < findings->n; i += findings->n_of[findings->findings[i].kind])
        KI_CHECK(put_section(&p, i));
    ki_buffer_put(to, "</main>\n<footer>kith %s. One file: nothing is loaded from anywhere else.</footer>\n",
                  kith_version());
    ki_buffer_put(to, "</body>\n</html>\n");
    status = to->status;
done:
    ki_thumbnails_release(&p.pictures);
    return status;
}
