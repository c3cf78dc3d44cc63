/* kith same: do photos show the same thing? */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/images.h"
#include "cli/search.h"
#include "kith/identify.h"
#include "kith/report.h"

enum { MOST_PHOTOS = 100 };

typedef struct same_command {
    const char *const *photo; /* [n] */
    int64_t n;
    const char *index; /* whose curve and model count; NULL: the model's own */
    kith_model_options how;
    double error;
    bool json;
    const char *html, *explain;
} same_command;

typedef struct pair {
    int64_t a, b;
    kith_sameness what;
} pair;

typedef struct same_state {
    kith_collection *collection;
    kith_model *model; /* the collection's, or one of its own */
    kith_calibration curve;
    bool has_curve;
    float *rows;
    int64_t dim;
    pair *pairs;
    int64_t n_pairs;
} same_state;

static void release(same_state *s) {
    if (!s->collection) kith_model_free(s->model);
    kith_collection_free(s->collection);
    free(s->rows);
    free(s->pairs);
}

/* ---- what is compared ---- */

static kith_status open_model(const same_command *c, same_state *s, kith_error *err) {
    kith_status status = kith_model_open(&c->how, &s->model, err);
    if (status != KITH_OK) return status;
    cli_say_model(c->how.weights, s->model);
    status = kith_model_curve(s->model, KITH_COSINE, &s->curve, err);
    s->has_curve = status == KITH_OK;
    return status == KITH_ENOTFOUND ? KITH_OK : status;
}

static kith_status open_collection(const same_command *c, same_state *s, kith_error *err) {
    KITH_OPTIONS(kith_collection_open_options, how);
    how.model = &c->how;
    kith_status status = kith_collection_open(c->index, &how, &s->collection, err);
    if (status == KITH_OK) status = kith_collection_model(s->collection, &s->model, err);
    if (status != KITH_OK) return status;
    const kith_calibration *curve = kith_index_calibration(kith_collection_index(s->collection));
    s->has_curve = curve != NULL;
    if (curve) s->curve = *curve;
    return KITH_OK;
}

static kith_status compare(const same_command *c, same_state *s, kith_error *err) {
    s->dim = kith_model_dim(s->model);
    s->rows = calloc((size_t)(c->n * s->dim), sizeof *s->rows);
    s->pairs = calloc((size_t)(c->n * c->n), sizeof *s->pairs);
    if (!s->rows || !s->pairs) return cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the photos");
    kith_status status = kith_model_embed_files(s->model, c->photo, c->n, NULL, s->rows, NULL, err);
    for (int64_t a = 0; a < c->n; a++) {
        for (int64_t b = a + 1; status == KITH_OK && b < c->n; b++) {
            pair *p = &s->pairs[s->n_pairs++];
            *p = (pair){.a = a, .b = b};
            status = kith_same(s->has_curve ? &s->curve : NULL, s->rows + a * s->dim, s->rows + b * s->dim,
                               s->dim, c->error, &p->what, err);
        }
    }
    return status;
}

/* ---- for people ---- */

/* "1 of 12,000 looks", "30 of 100 look": as many as one can imagine. */
static const char *one_of(double rate, char *buf, size_t bytes) {
    const double n = rate > 0 ? 1 / rate : 0, unit = n > 0 ? pow(10, fmax(0, floor(log10(n)) - 1)) : 1;
    const long long whole = (long long)(floor(n / unit + 0.5) * unit);
    if (rate <= 0)
        snprintf(buf, bytes, "none looks");
    else if (rate >= 0.095)
        snprintf(buf, bytes, "%.0f of 100 look", 100 * rate);
    else if (whole >= 1000000)
        snprintf(buf, bytes, "1 of %lld,%03lld,%03lld looks", whole / 1000000, whole / 1000 % 1000,
                 whole % 1000);
    else if (whole >= 1000)
        snprintf(buf, bytes, "1 of %lld,%03lld looks", whole / 1000, whole % 1000);
    else
        snprintf(buf, bytes, "1 of %lld looks", whole);
    return buf;
}

static const char *verdict(const kith_sameness *s) {
    return s->verdict == KITH_VERDICT_SAME        ? "the same thing"
           : s->verdict == KITH_VERDICT_DIFFERENT ? "different things"
                                                  : "cannot say";
}

static void print_one(const same_command *c, const same_state *s) {
    const kith_sameness *w = &s->pairs[0].what;
    char looks[48], less[48];
    if (!s->has_curve) {
        printf(
            "%s (score %.4f): there is no curve of false-match rates; --index names a collection that has "
            "one\n",
            verdict(w), w->score);
        return;
    }
    printf(
        "%s (score %.4f): of pairs of different things %s this alike; of pairs of the same thing %s less "
        "alike\n",
        verdict(w), w->score, one_of(w->false_match_rate, looks, sizeof looks),
        one_of(w->missed_rate, less, sizeof less));
    if (!c->index)
        printf(
            "measured on the model's own classes, photos of all kinds: of kinds of one thing (species, "
            "letters) far more pairs look alike; --index COLLECTION goes by the labels of yours\n");
    if (w->verdict == KITH_VERDICT_UNSURE)
        printf("at most %.3g %% wrong was asked for (--error)\n", 100 * c->error);
}

static void print_table(const same_command *c, const same_state *s) {
    printf("   score  different as alike  same less alike  verdict     photos\n");
    for (int64_t i = 0; i < s->n_pairs; i++) {
        const pair *p = &s->pairs[i];
        char alike[32] = "", less[32] = "";
        if (s->has_curve) {
            snprintf(alike, sizeof alike, "%.2g %%", 100 * p->what.false_match_rate);
            snprintf(less, sizeof less, "%.2g %%", 100 * p->what.missed_rate);
        }
        printf("%8.4f  %18s  %15s  %-10s  ", p->what.score, alike, less, kith_verdict_name(p->what.verdict));
        search_put(search_shown_path(c->photo[p->a]));
        fputs("  ", stdout);
        search_put(search_shown_path(c->photo[p->b]));
        putchar('\n');
    }
}

/* ---- for programs ---- */

static void put_real(kith_json *json, const char *key, double value) {
    kith_json_key(json, key);
    kith_json_real(json, value);
}

static void put_text(kith_json *json, const char *key, const char *value) {
    kith_json_key(json, key);
    kith_json_string(json, value);
}

static kith_status print_json(const same_command *c, const same_state *s, kith_error *err) {
    kith_json *json = NULL;
    const kith_status status = kith_json_new(&json, err);
    if (status != KITH_OK) return status;
    kith_json_object_begin(json);
    put_real(json, "error", c->error);
    put_text(json, "source", s->has_curve ? s->curve.source : NULL);
    kith_json_key(json, "pairs");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < s->n_pairs; i++) {
        const pair *p = &s->pairs[i];
        kith_json_object_begin(json);
        put_text(json, "a", c->photo[p->a]);
        put_text(json, "b", c->photo[p->b]);
        kith_json_key(json, "score");
        kith_json_real32(json, (float)p->what.score);
        put_real(json, "false_match_rate", p->what.false_match_rate);
        put_real(json, "missed_rate", p->what.missed_rate);
        put_text(json, "verdict", kith_verdict_name(p->what.verdict));
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
    kith_json_object_end(json);
    return cli_print_json(json, err);
}

/* ---- why ---- */

static kith_status explain(const same_command *c, const same_state *s, const pair *p, kith_explanation *ret,
                           kith_error *err) {
    const kith_query_image a = {.path = c->photo[p->a], .weight = 1},
                           b = {.path = c->photo[p->b], .weight = 1};
    return kith_model_explain(s->model, &a, 1, &b, NULL, ret, err);
}

static kith_status draw(const same_command *c, const same_state *s, kith_error *err) {
    kith_explanation why = {0};
    const pair *p = &s->pairs[0];
    const kith_query_image a = {.path = c->photo[p->a], .weight = 1},
                           b = {.path = c->photo[p->b], .weight = 1};
    kith_status status = explain(c, s, p, &why, err);
    if (status == KITH_OK && *why.estimate)
        fprintf(stderr, "kith: %s is an estimate: %s\n", c->explain, why.estimate);
    if (status == KITH_OK) status = kith_explanation_draw(&why, &a, &b, c->explain, err);
    kith_explanation_release(&why);
    return status;
}

typedef struct page_parts {
    kith_page_part *part;
    kith_page_hit *hit;
    kith_explanation *why;
    char (*title)[512];
} page_parts;

static void fill_page(const same_command *c, const same_state *s, page_parts *x) {
    enum { MOST_EXPLAINED = 50 };
    for (int64_t i = 0; i < s->n_pairs; i++) {
        const pair *p = &s->pairs[i];
        kith_error ignored;
        x->hit[i] = (kith_page_hit){.image = c->photo[p->b],
                                    .path = c->photo[p->b],
                                    .id = -1,
                                    .score = p->what.score,
                                    .false_match_rate = p->what.false_match_rate};
        if (i < MOST_EXPLAINED && explain(c, s, p, &x->why[i], &ignored) == KITH_OK)
            x->hit[i].why = &x->why[i];
        snprintf(x->title[i], sizeof x->title[i], "%.200s and %.200s: %s", c->photo[p->a], c->photo[p->b],
                 verdict(&p->what));
        x->part[i] = (kith_page_part){
            .title = x->title[i], .images = &c->photo[p->a], .n_images = 1, .hits = &x->hit[i], .n_hits = 1};
    }
}

static kith_status write_page(const same_command *c, const same_state *s, kith_error *err) {
    const size_t n = (size_t)s->n_pairs;
    page_parts x = {calloc(n, sizeof *x.part), calloc(n, sizeof *x.hit), calloc(n, sizeof *x.why),
                    calloc(n, sizeof *x.title)};
    kith_status status = KITH_OK;
    char about[256];
    KITH_OPTIONS(kith_hits_page, page);
    if (!x.part || !x.hit || !x.why || !x.title) {
        status = cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the page");
    } else {
        fill_page(c, s, &x);
        snprintf(about, sizeof about,
                 "Verdicts with at most %.3g %% wrong; the rate is of pairs of different things that "
                 "look this alike.",
                 100 * c->error);
        page.title = "The same or not";
        page.about = about;
        page.parts = x.part;
        page.n_parts = s->n_pairs;
        status = kith_hits_page_write(&page, c->html, err);
    }
    for (size_t i = 0; x.why && i < n; i++) kith_explanation_release(&x.why[i]);
    free(x.part);
    free(x.hit);
    free(x.why);
    free(x.title);
    return status;
}

/* ---- the whole ---- */

static kith_status run(const same_command *c, kith_error *err) {
    same_state s = {0};
    kith_status status = c->index ? open_collection(c, &s, err) : open_model(c, &s, err);
    if (status == KITH_OK && s.has_curve) cli_say_rates(&s.curve);
    if (status == KITH_OK) status = compare(c, &s, err);
    if (status == KITH_OK && c->explain) status = draw(c, &s, err);
    if (status == KITH_OK && c->html) status = write_page(c, &s, err);
    if (status == KITH_OK && c->json) {
        status = print_json(c, &s, err);
    } else if (status == KITH_OK) {
        if (s.n_pairs == 1)
            print_one(c, &s);
        else
            print_table(c, &s);
        if (c->html) printf("%s: the pairs as pictures\n", c->html);
        if (c->explain) printf("%s: why they look alike\n", c->explain);
    }
    release(&s);
    return status;
}

int cmd_same(int argc, char **argv) {
    same_command c = {.error = 0.01};
    kith_model_options_init(&c.how, sizeof c.how);
    const cli_option options[] = {
        CLI_REAL("error", "RATE", &c.error, 1e-9, 0.5,
                 "'same' and 'different' are said where at most this rate of pairs is judged wrongly"),
        CLI_TEXT("index", "INDEX", &c.index, "a collection whose model and false-match rates count"),
        CLI_TEXT("model|m", "RUN|MODEL", &c.how.weights,
                 "what embeds photos; default: general, which came with kith"),
        CLI_INT("size", "N", &c.how.side, 0, 4096, CLI_SIZE_HELP),
        CLI_TEXT("device", "NAME", &c.how.device, "what the model runs on (see kith list devices)"),
        CLI_FLAG("json", &c.json, "print the pairs as JSON"),
        CLI_OUT("html", "OUT.html", &c.html, ".html", "also write the pairs and why as a page"),
        CLI_OUT("explain", "OUT.png", &c.explain, ".png .jpg",
                "also draw what of two photos matches, as heat maps"),
        CLI_END};
    const cli_usage usage = {
        .operands = "A.jpg B.jpg…",
        .least = 2,
        .most = MOST_PHOTOS,
        .options = options,
        .details =
            "Says whether photos show the same thing, with the rate of errors: how many pairs of "
            "different things look as much alike, and how many of the same thing less. Of more than "
            "two photos all pairs are compared. The exit status is 0 whatever the verdict.\n\n"
            "  kith same a.jpg b.jpg\n"
            "  kith same a.jpg b.jpg c.jpg --index birds.kith --error 0.001"};
    const int parsed = cli_parse(&usage, &argc, argv);
    if (parsed != CLI_RUN) return parsed;
    c.photo = (const char *const *)(argv + 1);
    c.n = argc - 1;
    if (c.index && c.how.side) return cli_misused("same", "--size is for a model; an index says it itself");
    if (c.explain && c.n > 2)
        return cli_misused("same", "--explain is for two photos; wanted --html for %d", argc - 1);
    kith_error err = {0};
    return run(&c, &err) == KITH_OK ? CLI_OK : cli_fail(&err);
}
