/* kith index: make an index, keep it up to date, look after it. */
#include "cli/index.h"

#include <math.h>
#include <string.h>

#include "cli/images.h"

typedef kith_status (*index_action)(const index_request *request, kith_error *err);

/* What can be done to an index that is there; one of them at a time. */
typedef struct asked {
    bool sync, add, renew, info, compact, check, groups, names_xmp;
    const char *names, *names_folders;
} asked;

/* The action, or NULL when the usage was wrong and said so. */
static index_action choose(const index_request *r, const asked *a, const char *out, const char *to) {
    const struct {
        const char *name;
        bool is_asked, takes_operands;
        index_action action;
    } rows[] = {{"-o INDEX", out != NULL, true, index_make},
                {"--to ADDRESS", to != NULL, true, index_put},
                {"--sync", a->sync, true, index_sync},
                {"--add", a->add, true, index_add},
                {"--renew-model", a->renew, false, index_renew},
                {"--remove", r->remove.n_items > 0, false, index_remove},
                {"--groups", a->groups, true, index_groups},
                {"--info", a->info, false, index_show},
                {"--compact", a->compact, false, index_compact},
                {"--check", a->check, false, index_check},
                {"--facets", r->facets != NULL, false, index_facets},
                {"--calibrate", r->calibrate != NULL, false, index_calibrate},
                {"--names", a->names != NULL, false, index_names},
                {"--names-xmp", a->names_xmp, false, index_names},
                {"--names-folders", a->names_folders != NULL, false, index_names}};
    int found = -1;
    for (int i = 0; i < (int)(sizeof rows / sizeof rows[0]); i++) {
        if (!rows[i].is_asked) continue;
        if (found >= 0) {
            cli_misused("index", "%s and %s are both given; wanted one", rows[found].name, rows[i].name);
            return NULL;
        }
        found = i;
    }
    if (found < 0) {
        cli_misused(
            "index",
            "wants -o INDEX or --to ADDRESS for a new one, or one of --sync, --add, --remove, --renew-model, "
            "--groups, --info, --facets, --calibrate, --names, --names-xmp, --names-folders, --compact and "
            "--check");
        return NULL;
    }
    if (!rows[found].takes_operands && r->n_operands > 0) {
        cli_misused("index", "'%.60s' is one too many; %s wants the index alone", r->operands[0],
                    rows[found].name);
        return NULL;
    }
    return rows[found].action;
}

/* What is there at a server knows its model. */
static int check_making(const index_request *r, const char *to) {
    const char *dot = strrchr(r->operands[0], '.');
    const bool are_vectors = r->n_operands == 1 && dot && strcmp(dot, ".npy") == 0;
    if (!are_vectors && r->labels)
        return cli_misused("index",
                           "--labels is for vectors (E.npy); images have the names of their folders");
    if (to && !cli_is_address(to))
        return cli_misused("index", "--to is '%.60s'; wanted postgresql://host/database, or -o for a folder",
                           to);
    if (r->model.side && r->model.height)
        return cli_misused("index", "--size and --crop are both given; wanted one");
    return CLI_RUN;
}

/* An index that is there remembers how its items were embedded; --renew-model embeds them anew. */
static int check_kept(const index_request *r, index_action action) {
    const struct {
        const char *name;
        bool is_given, is_renewed;
    } rows[] = {{"views", r->model.views != 0, true},  {"size", r->model.side != 0, true},
                {"crop", r->model.height != 0, true},  {"resize", r->model.resize != NULL, true},
                {"pool", r->model.pool != NULL, true}, {"first", r->first > 0, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!rows[i].is_given || (action == index_renew && rows[i].is_renewed)) continue;
        return cli_misused("index", "--%s is for a new index (-o INDEX)%s; one that is there keeps its own",
                           rows[i].name, rows[i].is_renewed ? " or --renew-model" : "");
    }
    return CLI_RUN;
}

/* --groups takes no operand but "all"; what is said of groups is for it alone. */
static int check_groups(index_request *r, index_action action) {
    if (action != index_groups) {
        if (!isnan(r->error) || r->html)
            return cli_misused("index", "--%s is for --groups", r->html ? "html" : "error");
        return CLI_RUN;
    }
    r->groups_all = r->n_operands == 1 && strcmp(r->operands[0], "all") == 0;
    if (r->n_operands > 0 && !r->groups_all)
        return cli_misused("index", "'%.60s' is one too many; --groups wants the index alone, or all",
                           r->operands[0]);
    if (isnan(r->error)) r->error = 0.01;
    return CLI_RUN;
}

/* Where names go, and in which form. */
static int check_names(index_request *r, const asked *a, const char *xmp) {
    if (xmp && !a->names_xmp) return cli_misused("index", "--xmp is for --names-xmp");
    if (r->copy && !a->names_folders) return cli_misused("index", "--copy is for --names-folders");
    r->names_to = a->names ? a->names : a->names_folders ? a->names_folders : xmp;
    r->names_form = a->names_xmp ? KITH_NAMES_XMP : a->names_folders ? KITH_NAMES_FOLDERS : KITH_NAMES_CSV;
    return CLI_RUN;
}

static int check_facts(const index_request *r, index_action action) {
    const bool reads =
        action == index_make || action == index_put || action == index_sync || action == index_add;
    if (r->exif && r->no_exif) return cli_misused("index", "--exif and --no-exif are both given; wanted one");
    if (!reads && (r->exif || r->no_exif || r->meta))
        return cli_misused("index", "%s is for a new index, --sync and --add",
                           r->meta   ? "--meta"
                           : r->exif ? "--exif"
                                     : "--no-exif");
    if (r->where && action != index_facets) return cli_misused("index", "--where is for --facets");
    return CLI_RUN;
}

static int check_all(index_request *r, const asked *a, index_action action, const char *to, const char *xmp) {
    const bool makes = action == index_make || action == index_put;
    int status = check_names(r, a, xmp);
    if (status == CLI_RUN && action == index_add && r->n_operands == 0)
        status = cli_misused("index", "--add wants files or folders");
    if (status == CLI_RUN) status = check_facts(r, action);
    if (status == CLI_RUN) status = check_groups(r, action);
    if (status != CLI_RUN) return status;
    return makes ? check_making(r, to) : check_kept(r, action);
}

static int run(index_action action, const index_request *r) {
    kith_error err = {0};
    cli_catch_signals();
    const kith_status status = action(r, &err);
    if (status == KITH_OK) return CLI_OK;
    if (status != KITH_ECANCELED || !cli_stop_signal()) return cli_fail(&err);
    if (action == index_renew) {
        fprintf(stderr, "kith: stopped; the index is as it was, and the same command goes on\n");
    } else if (action == index_make || action == index_put || action == index_sync || action == index_add) {
        char index[4096];
        const size_t n = cli_quote(r->index, index, sizeof index);
        fprintf(stderr, "kith: stopped; go on with: kith index %s --sync\n",
                n < sizeof index ? index : "INDEX");
    }
    return 128 + cli_stop_signal();
}

int cmd_index(int argc, char **argv) {
    static const char *const metrics[] = {"cosine", "inner", "sqeuclidean", NULL};
    static const char *const splits[] = {"auto", "train", "validation", "test", "all", NULL};
    index_request r = {.recall = 0.99, .most = 20, .error = NAN};
    asked a = {0};
    const char *out = NULL, *to = NULL, *model = NULL, *xmp = NULL;
    int metric = 0, split = 0;
    kith_model_options_init(&r.model, sizeof r.model);
    const cli_option options[] = {
        CLI_OUT_FOLDER("out|o", "INDEX", &out, "make a new index in this folder"),
        CLI_TEXT("to", "ADDRESS", &to,
                 "keep it on PostgreSQL: postgresql://host/database (docs/postgresql.md)"),
        CLI_TEXT("model|m", "RUN|MODEL", &model,
                 "what embeds the images; default: general, which came with kith. Of an index that is there: "
                 "where "
                 "its model lies now"),
        CLI_FLAG("sync", &a.sync,
                 "embed what is new or changed in its folders (or in those named, from now on), drop what is "
                 "gone"),
        CLI_FLAG("force", &r.force, "let --sync drop more than half of the items"),
        CLI_FLAG("add", &a.add, "embed these files and folders too"),
        CLI_LIST("remove", "PATTERN", &r.remove,
                 "drop items by their path, until --add names them: 'oak/*.jpg', or a folder"),
        CLI_FLAG("renew-model", &a.renew,
                 "embed all of it anew, by --model or by what lies now where its model lay; the index that "
                 "is there "
                 "is used until the new one is complete"),
        CLI_FLAG(
            "groups", &a.groups,
            "put together what belongs together, of the items without a label (--groups all: of all), and "
            "number the groups in the column group"),
        CLI_REAL("error", "RATE", &r.error, 0.0001, 0.5,
                 "of the pairs that --groups puts together at most this part may be wrong; default: 0.01"),
        CLI_OUT("html", "OUT.html", &r.html, ".html", "also write the groups as a page of pictures"),
        CLI_FLAG("info", &a.info, "say what the index is"),
        CLI_TEXT("calibrate", "DATA", &r.calibrate,
                 "measure false-match rates (for --same) on a data set with classes, not on its own labels"),
        CLI_OUT("names", "FILE.csv", &a.names, ".csv", "write the names, and who decided them, as a table"),
        CLI_FLAG("names-xmp", &a.names_xmp,
                 "write the names as XMP sidecars (photo.jpg.xmp) beside the photos"),
        CLI_OUT_FOLDER("xmp", "DIR", &xmp, "of --names-xmp: into this folder instead"),
        CLI_OUT_FOLDER("names-folders", "DIR", &a.names_folders,
                       "make a folder for each name, with links to its photos: what kith train takes"),
        CLI_FLAG("copy", &r.copy, "of --names-folders: copies instead of links"),
        CLI_FLAG("compact", &a.compact, "write the index anew, without what was removed"),
        CLI_FLAG("check", &a.check, "read everything and compare the checksums"),
        CLI_TEXT("labels|y", "FILE", &r.labels,
                 "classes of the vectors: .npy, .txt or .csv; numbers or names"),
        CLI_TEXT("meta", "ITEMS.csv", &r.meta,
                 "a row for each vector: path, label, and any other columns for --where; for photos a row "
                 "for each "
                 "path, which --sync reads again when the file has changed"),
        CLI_TEXT("dataset", "KIND", &r.kind,
                 "the images are a data set of this layout (see kith list datasets)"),
        CLI_CHOICE("split", "NAME", &split, splits,
                   "which part of a data set or of a recipe's; auto: all, and test for --calibrate"),
        CLI_CHOICE("metric", "NAME", &metric, metrics, "how similar two vectors are"),
        CLI_REAL("recall", "X", &r.recall, 0.5, 0.9999,
                 "the part of the true nearest neighbours that a search of a large index must find"),
        CLI_INT(
            "first", "N", &r.first, 0, 65536,
            "of vectors whose first N values are vectors, too (objective.nested): find candidates by these, "
            "in less memory, and compare them whole; 0: by all"),
        CLI_TEXT("tap", "NAME", &r.model.tap, "what to index; default: embedding, else pooled"),
        CLI_TEXT("resize", "HOW", &r.model.resize, CLI_RESIZE_HELP),
        CLI_INT("crop", "PIXELS", &r.model.height, 0, 4096, "side of the model's input; 0: the model's"),
        CLI_INT("size", "N", &r.model.side, 0, 4096, CLI_SIZE_HELP),
        CLI_INT("views", "N", &r.model.views, 0, 10, CLI_VIEWS_HELP),
        CLI_TEXT("backbone", "NAME", &r.model.backbone, "the network, where its file and tensors do not say"),
        CLI_TEXT("settings", "K=V,…", &r.model.settings, "the backbone's own options"),
        CLI_TEXT("pool", "HOW", &r.model.pool, "avg, max, both, gem, class, class_avg or attention"),
        CLI_TEXT("device", "NAME", &r.model.device, "what the model runs on (see kith list devices)"),
        CLI_TEXT("precision", "NAME", &r.model.precision, "of the model: float32 or, on cuda, bf16"),
        CLI_FLAG("tf32", &r.model.tf32, "cuda, float32: let the model's products use TF32"),
        CLI_INT("batch", "N", &r.model.batch, 0, 65536, "images per pass; 0: 32, on a device 128"),
        CLI_FLAG("exif", &r.exif,
                 "with --sync: read date, camera and place (EXIF) of all photos, not only of new ones"),
        CLI_FLAG("no-exif", &r.no_exif, "do not read them, now and later; those that are there go"),
        CLI_TEXT("facets", "COLUMN,…", &r.facets, "count the values of these columns"),
        CLI_TEXT("where", "EXPRESSION", &r.where, "of --facets: only items that this holds for"),
        CLI_INT("most", "N", &r.most, 1, 100000, "of --facets: values or ranges of a column"),
        CLI_FLAG("json", &r.json, "print the result as JSON"),
        CLI_END};
    const cli_usage usage = {
        .operands = "PHOTOS… | E.npy | INDEX",
        .least = 1,
        .most = -1,
        .options = options,
        .details =
            "Makes an index that kith search asks, and keeps it up to date:\n\n"
            "  kith index PHOTOS/ -o INDEX\n"
            "  kith index PHOTOS/ -o INDEX --model RUN\n"
            "  kith index E.npy -o INDEX --labels Y.npy --meta items.csv\n"
            "  kith index FEATURES.npy -o INDEX --model RUN\n"
            "  kith index INDEX --sync\n"
            "  kith index INDEX --groups --html groups.html\n"
            "  kith index PHOTOS/ --to postgresql://host/database --model RUN\n\n"
            "Folders are walked to the bottom; the folder below PHOTOS names the class of an image, however "
            "deep it lies. A data set that kith knows, or a recipe (.yaml), will do too. Files that cannot "
            "be read are left out and named. An index is a folder, or a schema on PostgreSQL: after a crash "
            "at any moment it holds the last commit."};
    const int parsed = cli_parse(&usage, &argc, argv);
    if (parsed != CLI_RUN) return parsed;
    r.model.width = r.model.height;
    r.model.weights = model;
    const int first = out || to ? 1 : 2;
    r.index = out ? out : to ? to : argv[1];
    r.operands = (const char *const *)(argv + first);
    r.n_operands = argc - first;
    r.metric = (kith_metric)metric;
    r.has_split = split > 0;
    r.split = split > 0 && split <= KITH_N_SPLITS ? (kith_split)(split - 1) : KITH_SPLIT_ALL;
    const index_action action = choose(&r, &a, out, to);
    if (!action) return CLI_USAGE;
    const int status = check_all(&r, &a, action, to, xmp);
    return status == CLI_RUN ? run(action, &r) : status;
}
