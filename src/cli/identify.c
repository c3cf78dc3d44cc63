/* kith identify: names for photos, with a promised rate of false ones. */
#include "cli/identify.h"

#include <stdlib.h>
#include <string.h>

#include "cli/images.h"
#include "cli/photos.h"

/* ---- the photos ---- */

static kith_status no_memory(kith_error *err) {
    return cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the photos");
}

static void things_release(identify_things *t) {
    for (int64_t i = 0; i < t->n_photos; i++) free(t->photo[i]);
    for (int64_t i = 0; t->found && i < t->n; i++) kith_identified_release(&t->found[i]);
    free(t->photo);
    free(t->parts);
    free(t->found);
}

int64_t identify_photos_of(const identify_things *t, int64_t i, int64_t *ret_first) {
    *ret_first = t->n < t->n_photos ? 0 : i;
    return t->n < t->n_photos ? t->n_photos : 1;
}

static kith_status list_photos(const identify_command *c, identify_things *t, kith_error *err) {
    kith_dataset *set = NULL;
    kith_status status = kith_dataset_open_files(c->operands, c->n_operands, &set, err);
    const int64_t n = status == KITH_OK ? kith_dataset_count(set) : 0;
    if (status == KITH_OK && n == 0)
        status = cli_error(err, KITH_ENOTFOUND, NULL, "%.300s holds no photos", c->operands[0]);
    if (status == KITH_OK) {
        t->photo = calloc((size_t)n + 1, sizeof *t->photo);
        t->parts = calloc((size_t)n + 1, sizeof *t->parts);
        if (!t->photo || !t->parts) status = no_memory(err);
    }
    for (; status == KITH_OK && t->n_photos < n; t->n_photos++) {
        char *path = strdup(kith_dataset_item(set, t->n_photos).path);
        if (!path) {
            status = no_memory(err);
            break;
        }
        t->photo[t->n_photos] = path;
        t->parts[t->n_photos] = (kith_query_part){.id = -1, .image = {.path = path}, .weight = 1};
    }
    kith_dataset_free(set);
    t->n = c->together ? 1 : t->n_photos;
    return status;
}

/* ---- asking ---- */

static kith_status ask(const identify_command *c, kith_collection *collection, identify_things *t,
                       kith_error *err) {
    cli_progress progress;
    kith_identify_options how = c->how;
    kith_identify_request *requests = calloc((size_t)t->n + 1, sizeof *requests);
    t->found = calloc((size_t)t->n + 1, sizeof *t->found);
    if (!requests || !t->found) {
        free(requests);
        return no_memory(err);
    }
    how.device = c->model.device;
    how.progress = cli_show_progress;
    how.user = &progress;
    for (int64_t i = 0; i < t->n; i++) {
        kith_identify_request_init(&requests[i], sizeof *requests);
        int64_t first = 0;
        requests[i].n_parts = identify_photos_of(t, i, &first);
        requests[i].parts = t->parts + first;
    }
    cli_progress_begin(&progress, "identifying", t->n_photos);
    const kith_status status =
        kith_collection_identify(collection, requests, t->n, &how, &t->report, t->found, err);
    cli_progress_end(&progress);
    free(requests);
    return status;
}

static kith_status open_collection(const identify_command *c, kith_collection **ret, kith_error *err) {
    KITH_OPTIONS(kith_collection_open_options, how);
    if (c->photos)
        how.shared = kith_photos_model(c->photos);
    else
        how.model = &c->model;
    return kith_collection_open(c->photos ? kith_photos_index(c->photos) : c->collection, &how, ret, err);
}

static kith_status run(const identify_command *c, kith_error *err) {
    kith_collection *collection = NULL;
    identify_things things = {0};
    kith_status status = list_photos(c, &things, err);
    if (status == KITH_OK) status = open_collection(c, &collection, err);
    if (status == KITH_OK) status = ask(c, collection, &things, err);
    if (status == KITH_OK) status = identify_print(c, collection, &things, err);
    things_release(&things);
    kith_collection_free(collection);
    return status;
}

/* The index of photos is made, or brought up to date, before it is asked. */
static int take_photos(identify_command *c) {
    kith_error err = {0};
    cli_catch_signals();
    kith_status status = cli_photos_open(c->collection, c->cache, &c->model, &c->photos, &err);
    if (status == KITH_OK) status = cli_photos_sync(c->photos, &err);
    if (status == KITH_OK) return CLI_RUN;
    kith_photos_free(c->photos);
    c->photos = NULL;
    if (status != KITH_ECANCELED || !cli_stop_signal()) return cli_fail(&err);
    fprintf(stderr, "kith: stopped; what is indexed is kept, and the same command goes on\n");
    return 128 + cli_stop_signal();
}

int cmd_identify(int argc, char **argv) {
    identify_command c = {0};
    kith_model_options_init(&c.model, sizeof c.model);
    kith_identify_options_init(&c.how, sizeof c.how);
    const cli_option options[] = {
        CLI_REAL("error", "RATE", &c.how.error, 1e-6, 0.5,
                 "names are given with at most this rate of false ones: of photos of things the collection "
                 "does not "
                 "have, and of those it has"),
        CLI_INT("names|k", "N", &c.how.k, 1, 100, "names that are shown of each, with their nearest photos"),
        CLI_FLAG("together", &c.together, "all photos show one thing: one name for all"),
        CLI_FLAG("exact", &c.how.exact, "compare every vector, whatever the size of the index"),
        CLI_TEXT("model|m", "RUN|MODEL", &c.model.weights,
                 "what embeds photos; default: general, which came with kith. Of an index: where its model "
                 "lies now, "
                 "if it was moved"),
        CLI_INT("size", "N", &c.model.side, 0, 4096, CLI_SIZE_HELP),
        CLI_TEXT("cache", "DIR", &c.cache, CLI_CACHE_HELP),
        CLI_TEXT("device", "NAME", &c.model.device, "what the model runs on (see kith list devices)"),
        CLI_FLAG("json", &c.json, "print the names as JSON"),
        CLI_FLAG("csv", &c.csv, "print the names as CSV"),
        CLI_OUT("html", "OUT.html", &c.html, ".html", "also write photos, names and why as a page"),
        CLI_END};
    const cli_usage usage = {.operands = "INDEX|PHOTOS IMAGE…|FOLDER…",
                             .least = 2,
                             .most = -1,
                             .options = options,
                             .details =
                                 "Names what is on each photo by the labels of a collection (an index, or a "
                                 "folder with a folder for each "
                                 "name), or says unknown. A name is given only where the rate of false names "
                                 "is at most --error, measured on "
                                 "the collection's own labels with each left out in turn.\n\n"
                                 "  kith identify PHOTOS photo.jpg\n"
                                 "  kith identify INDEX new/ --error 0.05 --html names.html\n"
                                 "  kith identify INDEX left.jpg right.jpg --together"};
    const int parsed = cli_parse(&usage, &argc, argv);
    if (parsed != CLI_RUN) return parsed;
    c.collection = c.shown = argv[1];
    c.operands = (const char *const *)(argv + 2);
    c.n_operands = argc - 2;
    if (c.json && c.csv) return cli_misused("identify", "--json and --csv are both given; wanted one");
    const bool are_photos = kith_photos_are(c.collection);
    if (!are_photos && (c.cache || c.model.side))
        return cli_misused("identify", "--%s is for a folder of photos; an index says it itself",
                           c.cache ? "cache" : "size");
    int status = are_photos ? take_photos(&c) : CLI_RUN;
    if (status != CLI_RUN) return status;
    kith_error err = {0};
    status = run(&c, &err) == KITH_OK ? CLI_OK : cli_photos_fail(c.photos, c.cache, &err);
    kith_photos_free(c.photos);
    return status;
}
