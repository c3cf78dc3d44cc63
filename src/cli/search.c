/* kith search: ask an index. */
#include "cli/search.h"

#include <math.h>
#include <string.h>

#include "cli/images.h"
#include "kith/rerank.h"
#include "kith/text.h"

typedef struct arguments {
    search_request r;
    double same, min_score; /* NaN: not given */
    int64_t k, page;
    const char *crop;
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

/* The threshold of a false-match rate. */
static kith_status find_limit(const arguments *a, const kith_index *index, kith_search_options *search,
                              kith_error *err) {
    search->has_limit = !isnan(a->same) || !isnan(a->min_score);
    search->limit = (double)(float)a->min_score; /* as scores are: one that was printed finds its own hit */
    if (isnan(a->same)) return KITH_OK;
    char name[1024];
    const size_t n = cli_quote(a->r.index, name, sizeof name);
    const kith_calibration *curve = kith_index_calibration(index);
    if (!curve)
        return cli_error(
            err, KITH_EINVAL, "images with classes, or the index itself if its items have labels",
            "the index has no curve of false-match rates; make it with: kith index %s --calibrate DATA",
            n < sizeof name ? name : "INDEX");
    search->limit = kith_calibration_threshold(curve, a->same);
    if (isnan(search->limit))
        return cli_error(err, KITH_EINVAL, "calibrate it with more images of more classes",
                         "--same is %g; the pairs that were measured tell rates from %.3g on", a->same,
                         kith_calibration_least(curve));
    return KITH_OK;
}

static kith_status ask(arguments *a, kith_error *err) {
    search_request *r = &a->r;
    kith_index *index = NULL;
    search_queries queries = {0};
    kith_hits hits = {0};
    search_found found = {0};
    kith_status status = kith_index_open(r->index, KITH_INDEX_READ, &index, err);
    if (status == KITH_OK) status = find_limit(a, index, &r->search, err);
    if (status == KITH_OK) status = search_queries_make(r, index, &queries, err);
    if (status == KITH_OK) {
        cli_progress progress;
        cli_progress_begin(&progress, "searching", 0);
        r->search.progress = cli_show_progress;
        r->search.user = &progress;
        status = r->rerank == SEARCH_EXPANDED
                     ? kith_index_search_expanded(index, &queries.rows, &r->search, NULL, &hits, err)
                 : r->rerank == SEARCH_RECIPROCAL
                     ? kith_index_search_reciprocal(index, &queries.rows, &r->search, NULL, &hits, err)
                     : kith_index_search(index, &queries.rows, &r->search, &hits, err);
        cli_progress_end(&progress);
    }
    if (status == KITH_OK) status = search_found_take(index, &hits, &found, err);
    if (status == KITH_OK) status = search_print(r, index, &queries, &found, err);
    search_found_release(&found);
    kith_hits_release(&hits);
    search_queries_release(&queries);
    kith_index_free(index);
    return status;
}

static int check(const arguments *a) {
    const search_request *r = &a->r;
    const char *dot = r->n_operands > 0 ? strrchr(r->operands[0], '.') : NULL;
    const bool are_rows = r->n_operands == 1 && dot && strcmp(dot, ".npy") == 0;
    if (a->duplicates && (r->n_operands > 0 || r->csv || r->out || r->explain))
        return cli_misused("search", "--duplicates takes no query, and writes a table, JSON or a page");
    if (a->duplicates) return CLI_RUN;
    if (r->n_operands == 0) return cli_misused("search", "wants a query: an image, a folder or Q.npy");
    if (are_rows && (a->crop || r->flips || r->also.n_items || r->unlike.n_items || r->explain))
        return cli_misused("search",
                           "--crop, --views, --and, --not and --explain are for images, not for vectors");
    if (r->json && r->csv) return cli_misused("search", "--json and --csv are both given; wanted one");
    if (!isnan(a->same) && !isnan(a->min_score))
        return cli_misused("search", "--same and --min-score are both given; wanted one");
    return CLI_RUN;
}

int cmd_search(int argc, char **argv) {
    static const char *const views[] = {"one", "flips", NULL}, *const reranks[] = {"none", "qe", "kr", NULL};
    arguments a = {.same = NAN, .min_score = NAN, .k = 10, .page = 1};
    search_request *r = &a.r;
    const char *model = NULL;
    int view = 0, rerank = SEARCH_PLAIN;
    kith_embedder_options_init(&r->embedder, sizeof r->embedder);
    kith_search_options_init(&r->search, sizeof r->search);
    const cli_option options[] = {
        CLI_INT("hits|k", "N", &a.k, 1, 1000000, "hits for each query, at most"),
        CLI_INT("page", "N", &a.page, 1, 1000000, "the N-th k hits"),
        CLI_TEXT("where", "EXPR", &r->search.where,
                 "only items like this: 'label = tern and year >= 2020' (docs/search.md)"),
        CLI_REAL("same", "RATE", &a.same, 1e-9, 1,
                 "only hits that are the same thing, with at most this false-match rate: 0.01"),
        CLI_REAL("min-score", "S", &a.min_score, -1e30, 1e30, "only hits at least as near as this"),
        CLI_TEXT("crop", "X,Y,W,H", &a.crop, "look for this part of the image only, in pixels"),
        CLI_LIST("and", "IMAGE", &r->also, "something that also looks like this"),
        CLI_LIST("not", "IMAGE", &r->unlike, "and unlike this"),
        CLI_CHOICE("views", "HOW", &view, views, "flips: the mean of the image and its mirror image"),
        CLI_CHOICE("rerank", "HOW", &rerank, reranks,
                   "a better order: qe asks again with the first hits, kr counts shared neighbours (cosine)"),
        CLI_FLAG(
            "duplicates", &a.duplicates,
            "instead, groups of the same picture: copied, resized, saved again, mirrored or slightly cut"),
        CLI_FLAG("exact", &r->search.exact, "compare every vector, whatever the size of the index"),
        CLI_TEXT("model|m", "RUN|MODEL", &model, "where the index's model lies now, if it was moved"),
        CLI_TEXT("device", "NAME", &r->embedder.device,
                 "what the model runs on, and a search that compares every vector (see kith list devices)"),
        CLI_FLAG("json", &r->json, "print the hits as JSON"),
        CLI_FLAG("csv", &r->csv, "print the hits as CSV"),
        CLI_OUT("html", "OUT.html", &r->html, ".html", "also write the hits as a page of pictures"),
        CLI_OUT("explain", "OUT.png", &r->explain, ".png .jpg",
                "also draw what of the first query and of its best hit matches, as heat maps"),
        CLI_OUT("out|o", "IDS.npy", &r->out, ".npy", "write the ids, int64 [queries, k], and IDS.scores.npy"),
        CLI_END};
    const cli_usage usage = {.operands = "INDEX [IMAGE… | FOLDER… | Q.npy]",
                             .least = 1,
                             .most = -1,
                             .options = options,
                             .details =
                                 "Finds the items of an index (kith index) that are most similar to each "
                                 "query. Images go through the "
                                 "model that made the index; vectors must come from it.\n\n"
                                 "  kith search INDEX photo.jpg\n"
                                 "  kith search INDEX photo.jpg --where 'label != tern' --json\n"
                                 "  kith search INDEX red.jpg --and round.jpg --not car.jpg"};
    const int parsed = cli_parse(&usage, &argc, argv);
    if (parsed != CLI_RUN) return parsed;
    char path[4096];
    if (model) r->embedder.model = cli_model_path(model, path, sizeof path);
    r->index = argv[1];
    r->operands = (const char *const *)(argv + 2);
    r->n_operands = argc - 2;
    r->flips = view == 1;
    r->rerank = (unsigned)rerank;
    r->search.device = r->embedder.device;
    r->search.k = a.k;
    r->search.offset = (a.page - 1) * a.k;
    int status = check(&a);
    if (status == CLI_RUN && a.crop) {
        status = parse_crop(a.crop, r->crop);
        r->has_crop = true;
    }
    kith_error err = {0};
    if (status != CLI_RUN) return status;
    if (a.duplicates) return search_duplicates(r, &err) == KITH_OK ? CLI_OK : cli_fail(&err);
    return ask(&a, &err) == KITH_OK ? CLI_OK : cli_fail(&err);
}
