/* kith search: ask an index. */
#include "cli/search.h"

#include <math.h>
#include <string.h>

#include "cli/images.h"
#include "cli/photos.h"
#include "kith/text.h"

enum { MOST_PROMISED = 24 }; /* hits, as kith/collection.h says */

typedef struct arguments {
    search_command c;
    int64_t page;
    const char *crop, *views;
    bool duplicates;
} arguments;

/* "x,y,w,h" in pixels. */
static int parse_crop(const char *text, double crop[4]) {
    const char *at = text;
    for (int i = 0; i < 4; i++) {
        char word[32];
        const size_t n = strcspn(at, ",");
        const bool is_last = i == 3;
        snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), at);
        if (!kith_parse_real(word, &crop[i]) || (at[n] == ',') == is_last || (i > 1 && !(crop[i] > 0)))
            return cli_misused("search", "--crop is '%.60s'; wanted x,y,width,height in pixels", text);
        at += n + !is_last;
    }
    return CLI_RUN;
}

kith_status search_open(const search_command *c, kith_collection **ret, kith_error *err) {
    KITH_OPTIONS(kith_collection_open_options, how);
    if (c->photos)
        how.shared = kith_photos_model(c->photos);
    else
        how.model = &c->model;
    return kith_collection_open(c->index, &how, ret, err);
}

/* Whoever types the command can be told what to type next. */
static kith_status need_rates(const search_command *c, kith_collection *collection, kith_error *err) {
    if (isnan(c->search.same) || kith_index_calibration(kith_collection_index(collection))) return KITH_OK;
    char name[1024];
    const size_t n = cli_quote(c->index, name, sizeof name);
    return cli_error(
        err, KITH_EINVAL, "images with classes, or the index itself if its items have labels",
        "the index has no curve of false-match rates; make it with: kith index %s --calibrate DATA",
        n < sizeof name ? name : "INDEX");
}

static kith_status ask(const search_command *c, kith_error *err) {
    kith_collection *collection = NULL;
    search_queries queries = {0};
    kith_status status = search_open(c, &collection, err);
    if (status == KITH_OK) status = need_rates(c, collection, err);
    if (status == KITH_OK) cli_say_rates(kith_index_calibration(kith_collection_index(collection)));
    if (status == KITH_OK) status = search_ask_carefully(c, collection, &queries, err);
    if (status == KITH_OK) status = search_print(c, collection, &queries, err);
    search_queries_release(&queries);
    kith_collection_free(collection);
    return status;
}

/* The index of photos is made, or brought up to date, before it is asked. */
static int take_photos(search_command *c) {
    kith_error err = {0};
    cli_catch_signals();
    kith_status status = cli_photos_open(c->index, c->cache, &c->model, &c->photos, &err);
    const bool are_new = status == KITH_OK && cli_photos_are_new(c->photos);
    if (status == KITH_OK) status = cli_photos_sync(c->photos, &err);
    if (status == KITH_OK && are_new && !c->json && !c->csv) cli_say_purpose(c->model.weights);
    if (status == KITH_OK) {
        c->index = kith_photos_index(c->photos);
        return CLI_RUN;
    }
    kith_photos_free(c->photos);
    c->photos = NULL;
    if (status != KITH_ECANCELED || !cli_stop_signal()) return cli_fail(&err);
    fprintf(stderr, "kith: stopped; what is indexed is kept, and the same command goes on\n");
    return 128 + cli_stop_signal();
}

/* "one" and "flips" are views of the query; a number is of what is indexed. */
static int parse_views(const char *text, search_command *c) {
    c->search.flips = strcmp(text, "flips") == 0;
    if (c->search.flips || strcmp(text, "one") == 0) return CLI_RUN;
    if (kith_parse_int(text, &c->model.views) && c->model.views >= 1 && c->model.views <= 10) return CLI_RUN;
    return cli_misused("search", "--views is '%.60s'; wanted one, flips or a number from 1 to 10", text);
}

/* A promise takes as many hits as it takes, unless a number was said. */
static bool says_hits(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "-k", 2) == 0 || strncmp(argv[i], "--hits", 6) == 0) return true;
    }
    return false;
}

static int check(const arguments *a) {
    const search_command *c = &a->c;
    if (!kith_photos_are(c->index) && (c->cache || c->model.side || c->model.views))
        return cli_misused("search", "--%s is for a folder of photos; an index says it itself",
                           c->cache        ? "cache"
                           : c->model.side ? "size"
                                           : "views N");
    const char *dot = c->n_operands > 0 ? strrchr(c->operands[0], '.') : NULL;
    const bool are_rows = c->n_operands == 1 && dot && strcmp(dot, ".npy") == 0;
    const bool has_ids = c->ids.n_items > 0;
    if (a->duplicates && (c->n_operands > 0 || has_ids || c->csv || c->out || c->explain))
        return cli_misused("search", "--duplicates takes no query, and writes a table, JSON or a page");
    if (a->duplicates) return CLI_RUN;
    if (c->n_operands == 0 && !has_ids)
        return cli_misused("search", "wants a query: an image, a folder, Q.npy or --id N");
    if (c->n_operands > 0 && has_ids)
        return cli_misused("search", "--id and '%.60s' are both given; wanted one kind of query",
                           c->operands[0]);
    if (has_ids && a->crop) return cli_misused("search", "--crop is for images, not for items");
    if (are_rows && (a->crop || c->search.flips || c->also.n_items || c->unlike.n_items || c->explain))
        return cli_misused("search",
                           "--crop, --views, --and, --not and --explain are for images, not for vectors");
    if (c->json && c->csv) return cli_misused("search", "--json and --csv are both given; wanted one");
    if (!isnan(c->search.same) && !isnan(c->search.min_score))
        return cli_misused("search", "--same and --min-score are both given; wanted one");
    if (!isnan(c->search.precision) && !isnan(c->search.complete))
        return cli_misused("search", "--precision and --complete are both given; wanted one");
    return CLI_RUN;
}

int cmd_search(int argc, char **argv) {
    static const char *const reranks[] = {"none", "qe", "kr", NULL};
    static const kith_rerank_method methods[] = {KITH_RERANK_NONE, KITH_RERANK_EXPANSION,
                                                 KITH_RERANK_RECIPROCAL};
    arguments a = {.page = 1};
    search_command *c = &a.c;
    kith_search_request *s = &c->search;
    int rerank = 0;
    kith_model_options_init(&c->model, sizeof c->model);
    kith_search_request_init(s, sizeof *s);
    const cli_option options[] = {
        CLI_INT("hits|k", "N", &s->k, 1, 1000000, "hits for each query, at most"),
        CLI_INT("page", "N", &a.page, 1, 1000000, "the N-th k hits"),
        CLI_TEXT("where", "EXPR", &s->where,
                 "only items like this: 'label = tern and year >= 2020' (docs/search.md)"),
        CLI_REAL("same", "RATE", &s->same, 1e-9, 1,
                 "only hits that are the same thing, with at most this false-match rate: 0.01"),
        CLI_REAL(
            "precision", "PART", &s->precision, 0, 1,
            "as many hits as leave at most the part 1 - PART of all hits wrong, with 95 % confidence: 0.99"),
        CLI_REAL("complete", "PART", &s->complete, 0, 1,
                 "as many hits as hold a right one for this part of the queries whose thing is in the index, "
                 "with 95 % confidence: 0.95"),
        CLI_REAL("unknown", "SHARE", &s->unknown, 0, 1,
                 "the part of the queries that shows things the index does not have"),
        CLI_REAL("min-score", "S", &s->min_score, -1e30, 1e30, "only hits at least as near as this"),
        CLI_TEXT("crop", "X,Y,W,H", &a.crop, "look for this part of the image only, in pixels"),
        CLI_LIST("and", "IMAGE", &c->also, "something that also looks like this"),
        CLI_LIST("not", "IMAGE", &c->unlike, "and unlike this"),
        CLI_TEXT(
            "views", "HOW|N", &a.views,
            "flips: the mean of the image and its mirror image; one: the image. N, for a folder of photos: "
            "the mean of 1 to 10 views of every image, its own and the query's (2: and its mirror image, up "
            "to 10: and crops at its corners)"),
        CLI_CHOICE("rerank", "HOW", &rerank, reranks,
                   "a better order: qe asks again with the first hits, kr counts shared neighbours (cosine)"),
        CLI_LIST("id", "N", &c->ids,
                 "look for what is like this item of the index; each is a query of its own"),
        CLI_FLAG("hide-duplicates", &s->hide_duplicates,
                 "of several hits with the same picture only the nearest"),
        CLI_FLAG(
            "duplicates", &a.duplicates,
            "instead, groups of the same picture: copied, resized, saved again, mirrored or slightly cut"),
        CLI_FLAG("exact", &s->exact, "compare every vector, whatever the size of the index"),
        CLI_TEXT(
            "model|m", "RUN|MODEL", &c->model.weights,
            "what embeds photos; default: general, which came with kith. Of an index: where its model lies "
            "now, if it was moved"),
        CLI_INT("size", "N", &c->model.side, 0, 4096, CLI_SIZE_HELP),
        CLI_TEXT("cache", "DIR", &c->cache, CLI_CACHE_HELP),
        CLI_TEXT("device", "NAME", &c->model.device,
                 "what the model runs on, and a search that compares every vector (see kith list devices)"),
        CLI_FLAG("json", &c->json, "print the hits as JSON"),
        CLI_FLAG("csv", &c->csv, "print the hits as CSV"),
        CLI_OUT("html", "OUT.html", &c->html, ".html", "also write the hits as a page of pictures"),
        CLI_OUT("explain", "OUT.png", &c->explain, ".png .jpg",
                "also draw what of the first query and of its best hit matches, as heat maps"),
        CLI_OUT("out|o", "IDS.npy", &c->out, ".npy", "write the ids, int64 [queries, k], and IDS.scores.npy"),
        CLI_END};
    const cli_usage usage = {
        .operands = "INDEX|PHOTOS [IMAGE… | FOLDER… | Q.npy]",
        .least = 1,
        .most = -1,
        .options = options,
        .details =
            "Finds the items of an index (kith index) that are most similar to each "
            "query. Images go through the "
            "model that made the index; vectors must come from it. A folder of photos in "
            "place of the index is indexed first, in the user's cache (kith cache), and "
            "only what has changed the next time.\n\n"
            "  kith search PHOTOS photo.jpg\n"
            "  kith search INDEX photo.jpg\n"
            "  kith search INDEX photo.jpg --where 'label != tern' --json\n"
            "  kith search INDEX red.jpg --and round.jpg --not car.jpg"};
    const bool has_hits = says_hits(argc, argv);
    const int parsed = cli_parse(&usage, &argc, argv);
    if (parsed != CLI_RUN) return parsed;
    c->index = c->shown = argv[1];
    c->operands = (const char *const *)(argv + 2);
    c->n_operands = argc - 2;
    s->rerank = methods[rerank];
    if (!has_hits && (!isnan(s->precision) || !isnan(s->complete))) s->k = MOST_PROMISED;
    s->offset = (a.page - 1) * s->k;
    int status = a.views ? parse_views(a.views, c) : CLI_RUN;
    if (status == CLI_RUN) status = check(&a);
    if (status == CLI_RUN && a.crop) {
        status = parse_crop(a.crop, c->crop);
        c->has_crop = true;
    }
    kith_error err = {0};
    if (status == CLI_RUN && kith_photos_are(c->index)) status = take_photos(c);
    if (status != CLI_RUN) return status;
    const kith_status done = a.duplicates ? search_duplicates(c, &err) : ask(c, &err);
    status = done == KITH_OK ? CLI_OK : cli_photos_fail(c->photos, c->cache, &err);
    kith_photos_free(c->photos);
    return status;
}
