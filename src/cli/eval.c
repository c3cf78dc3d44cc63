/* kith eval: retrieval and clustering metrics of embeddings, or of a model on a data set. */
#include "cli/eval.h"

#include <string.h>

#include "cli/cli.h"
#include "cli/images.h"
#include "cli/recipes.h"
#include "kith/text.h"

/* "1,2,4,8" into rising numbers without doubles. */
static int parse_k(const char *list, kith_retrieval_options *options) {
    options->n_k = 0;
    for (const char *at = list; *at;) {
        char word[24];
        const size_t n = strcspn(at, ",");
        int64_t k = 0;
        snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), at);
        if (!kith_parse_int(word, &k) || k < 1)
            return cli_misused("eval", "--k has '%s'; wanted whole numbers from 1, as in 1,2,4,8", word);
        int64_t i = options->n_k;
        while (i > 0 && options->k[i - 1] > k) i--;
        if (i == 0 || options->k[i - 1] != k) {
            if (options->n_k == KITH_MOST_K)
                return cli_misused("eval", "--k has more than %d values", KITH_MOST_K);
            memmove(options->k + i + 1, options->k + i, (size_t)(options->n_k - i) * sizeof *options->k);
            options->k[i] = k;
            options->n_k++;
        }
        at += n + (at[n] == ',');
    }
    if (options->n_k == 0) return cli_misused("eval", "--k is empty; wanted a list as 1,2,4,8");
    return CLI_RUN;
}

static int parse_metrics(const char *list, bool wants[KITH_N_SCORES], bool *ret_verification) {
    static const char *const names[] = {
        "all",      "retrieval",   "clustering", "verification", "recall", "precision_at_1",
        "map_at_r", "r_precision", "map",        "mrr",          "nmi",    "ami",
        "f1"};
    for (const char *at = list; *at;) {
        char word[32];
        const size_t n = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), at);
        const bool all = strcmp(word, "all") == 0;
        const bool is_verification = strcmp(word, "verification") == 0;
        bool is_known =
            all || is_verification || strcmp(word, "retrieval") == 0 || strcmp(word, "clustering") == 0;
        *ret_verification |= is_verification;
        for (int m = 0; m < KITH_N_SCORES; m++) {
            const bool is_group = all || strcmp(word, m < KITH_SCORE_NMI ? "retrieval" : "clustering") == 0;
            const bool is_this = strcmp(word, kith_score_name((kith_score)m)) == 0;
            wants[m] |= is_group || is_this;
            is_known |= is_this;
        }
        if (!is_known) return cli_unknown("eval", "metric", word, names, sizeof names / sizeof names[0]);
        at += n + (at[n] == ',');
    }
    return CLI_RUN;
}

/* Each part after the ranking has its own progress line. */
static int show_part(cli_progress *progress, const char *what, int64_t done, int64_t all) {
    if (strcmp(progress->what, what) != 0) {
        cli_progress_end(progress);
        cli_progress_begin(progress, what, 0);
    }
    return cli_show_progress(progress, done, all);
}

static int show_kmeans(void *user, int64_t done, int64_t all) {
    return show_part(user, "k-means", done, all);
}

static int show_pairs(void *user, int64_t done, int64_t all) { return show_part(user, "pairs", done, all); }

/* All parts of the request. */
typedef struct judging {
    kith_judge_options all; /* points to the parts below */
    kith_retrieval_options retrieval;
    kith_bootstrap_options bootstrap;
    kith_kmeans_options kmeans;
    kith_verification_options verification;
    kith_rerank_options rerank;
} judging;

static void judging_init(judging *j) {
    kith_judge_options_init(&j->all, sizeof j->all);
    kith_retrieval_options_init(&j->retrieval, sizeof j->retrieval);
    kith_bootstrap_options_init(&j->bootstrap, sizeof j->bootstrap);
    kith_kmeans_options_init(&j->kmeans, sizeof j->kmeans);
    j->all.retrieval = &j->retrieval;
    j->all.bootstrap = &j->bootstrap;
    j->all.kmeans = &j->kmeans;
    kith_verification_options_init(&j->verification, sizeof j->verification);
    j->verification.bootstrap = &j->bootstrap;
    j->all.verification = &j->verification;
    kith_rerank_options_init(&j->rerank, sizeof j->rerank);
    j->all.rerank = &j->rerank;
}

static kith_status judge(eval_set *set, judging *how, kith_judgement *ret, kith_error *err) {
    cli_progress progress;
    how->retrieval.progress = cli_show_progress;
    how->kmeans.progress = show_kmeans;
    how->verification.progress = show_pairs;
    how->retrieval.user = how->kmeans.user = how->verification.user = &progress;
    cli_progress_begin(&progress, "ranking", 0);
    const kith_retrieval_input input = eval_set_input(set);
    const kith_status status = set->vectors ? kith_vectors_judge(set->vectors, &how->all, ret, err)
                                            : kith_judge_run(&input, &how->all, ret, err);
    cli_progress_end(&progress);
    return status;
}

typedef struct arguments {
    eval_files files;
    eval_model model;
    const char *k, *metrics, *roc;
    eval_worst_request worst;
    int metric, rerank;
    int64_t restarts, iterations, seed, bootstrap;
    bool by_class, classes, json, compare;
} arguments;

/* The card or the tables, and what --worst wants. */
static kith_status report(const arguments *a, const eval_set *set, const kith_judgement *found,
                          kith_card_options *shown, kith_error *err) {
    char *card = NULL;
    eval_worst worst = {0};
    kith_status status = KITH_OK;
    if (a->worst.most > 0) status = eval_worst_find(set, &a->worst, found, &worst, err);
    if (status == KITH_OK && a->worst.html) status = eval_worst_write_page(&worst, &a->worst, err);
    if (a->worst.most > 0) shown->worst = &worst.found;
    shown->paths = worst.path;
    shown->classes = worst.class;
    if (status == KITH_OK && a->json) status = kith_card_make(found, &set->facts, shown, &card, err);
    if (status == KITH_OK && a->json) puts(card);
    if (status == KITH_OK && !a->json) eval_print(found, &set->facts, shown);
    if (status == KITH_OK && !a->json && a->worst.most > 0) eval_worst_print(&worst);
    kith_string_free(card);
    eval_worst_release(&worst);
    return status;
}

static int run(const arguments *a, judging *how, kith_card_options *shown) {
    kith_error err = {0};
    eval_set set;
    kith_judgement found = {0};
    kith_status status = a->model.data || a->model.recipe ? eval_set_embed(&a->model, &set, &err)
                                                          : eval_set_read(&a->files, &set, &err);
    if (status != KITH_OK) return cli_fail(&err);
    status = judge(&set, how, &found, &err);
    if (status == KITH_OK && a->roc) status = kith_verification_draw(&found.verification, a->roc, &err);
    if (status == KITH_OK) status = report(a, &set, &found, shown, &err);
    kith_judgement_release(&found);
    eval_set_release(&set);
    return status == KITH_OK ? CLI_OK : cli_fail(&err);
}

static int check_sources(const arguments *a, int argc) {
    const bool has_data = a->model.data || a->model.recipe;
    const bool has_files = a->files.embedding || a->files.query || a->files.gallery;
    if (has_data && has_files)
        return cli_misused("eval", "wants embeddings or a model and a data set, not both");
    if (a->model.side && a->model.crop)
        return cli_misused("eval", "--size and --crop are both given; wanted one");
    if (!has_data && argc > 1) return cli_misused("eval", "wants --data DIR for the model to embed");
    if (!has_data && !has_files)
        return cli_misused("eval", "wants E.npy --labels Y.npy, or MODEL --data DIR");
    if (a->files.embedding && !a->files.labels) return cli_misused("eval", "wants --labels Y.npy");
    if (has_files && !a->files.embedding && !(a->files.query && a->files.gallery))
        return cli_misused("eval", "wants --embedding, or both --query and --gallery");
    if (a->worst.images && has_data)
        return cli_misused("eval", "--images is for embeddings from a file; a data set has its own");
    if (a->worst.html && !has_data && !a->worst.images)
        return cli_misused("eval", "--html wants --images PATHS, the images of the rows, one path to a line");
    return CLI_RUN;
}

static int compare(int argc, char **argv, bool json) {
    kith_error err = {0};
    if (argc != 3) return cli_misused("eval", "--compare wants two results: A B");
    return eval_compare(argv[1], argv[2], json, &err) == KITH_OK ? CLI_OK : cli_fail(&err);
}

/* What was asked for, in numbers, and on it goes. */
static int run_as_asked(const arguments *a) {
    judging how;
    judging_init(&how);
    kith_card_options shown = {.size = sizeof(kith_card_options), .per_class = a->classes, .per_query = true};
    how.retrieval.metric = how.verification.metric = (kith_metric)a->metric;
    how.retrieval.device = how.kmeans.device = a->model.device;
    int status = parse_k(a->k, &how.retrieval);
    if (status == CLI_RUN) status = parse_metrics(a->metrics, shown.scores, &how.all.has_verification);
    if (status != CLI_RUN) return status;
    how.all.has_retrieval = how.all.has_clustering = false;
    for (kith_score m = 0; m < KITH_N_SCORES; m++) {
        how.all.has_retrieval |= shown.scores[m] && m < KITH_SCORE_NMI;
        how.all.has_clustering |= shown.scores[m] && m >= KITH_SCORE_NMI;
    }
    how.all.has_verification |= a->roc != NULL;
    how.all.has_rerank = a->rerank > 0;
    if (how.all.has_rerank && !how.all.has_retrieval) /* what it is compared with */
        how.all.has_retrieval = shown.scores[KITH_SCORE_RECALL] = shown.scores[KITH_SCORE_MAP_AT_R] = true;
    how.rerank.method = a->rerank == 1 ? KITH_RERANK_EXPANSION : KITH_RERANK_RECIPROCAL;
    if (a->worst.most > 0 && !how.all.has_retrieval) /* what they are the worst by */
        how.all.has_retrieval = shown.scores[KITH_SCORE_MAP] = true;
    how.all.has_intervals = how.verification.has_intervals = a->bootstrap > 0;
    if (a->bootstrap > 0) how.bootstrap.n_draws = a->bootstrap;
    how.bootstrap.by_class = a->by_class;
    how.bootstrap.seed = how.kmeans.seed = (uint64_t)a->seed;
    how.kmeans.n_restarts = a->restarts;
    how.kmeans.n_iterations = a->iterations;
    how.kmeans.normalize = a->metric == KITH_COSINE;
    return run(a, &how, &shown);
}

int cmd_eval(int argc, char **argv) {
    static const char *const metrics[] = {"cosine", "inner", "sqeuclidean", NULL};
    static const char *const reranks[] = {"none", "qe", "kr", NULL};
    static const char *const splits[] = {"train", "validation", "test", "all", NULL};
    arguments a = {.k = "1,2,4,8", .metrics = "all", .restarts = 1, .iterations = 25, .bootstrap = 1000};
    int split = KITH_SPLIT_TEST;
    a.model.kind = "auto";
    const cli_option options[] = {
        CLI_TEXT("embedding|e", "E.npy", &a.files.embedding, "embeddings [n, dim]"),
        CLI_TEXT("labels|y", "FILE", &a.files.labels,
                 "their classes [n], or those of features named with --data: .npy, .txt or .csv; numbers or "
                 "names"),
        CLI_TEXT("query", "Q.npy", &a.files.query,
                 "row numbers (or a bool mask) of the queries; or embeddings"),
        CLI_TEXT("gallery", "G.npy", &a.files.gallery,
                 "row numbers (or a bool mask) of the gallery; or embeddings"),
        CLI_TEXT("query-labels", "FILE", &a.files.query_labels, "when --query holds embeddings"),
        CLI_TEXT("gallery-labels", "FILE", &a.files.gallery_labels, "when --gallery holds embeddings"),
        CLI_TEXT("k", "LIST", &a.k, "K of R@K"),
        CLI_TEXT("metrics", "LIST", &a.metrics,
                 "all (retrieval and clustering), retrieval, clustering, verification, or any of recall, "
                 "precision_at_1, map_at_r, r_precision, map, mrr, nmi, ami, f1"),
        CLI_CHOICE("metric", "NAME", &a.metric, metrics, "how similar two embeddings are"),
        CLI_CHOICE("rerank", "HOW", &a.rerank, reranks,
                   "R@K and MAP@R after re-ranking, too: qe (query expansion) or kr (k-reciprocal)"),
        CLI_INT("bootstrap", "N", &a.bootstrap, 0, 1000000, "draws for the 95 % intervals; 0: none"),
        CLI_FLAG("by-class", &a.by_class, "draw classes instead of queries for the intervals"),
        CLI_INT("restarts", "N", &a.restarts, 1, 1000, "of k-means"),
        CLI_INT("iterations", "N", &a.iterations, 1, 100000, "of k-means, at most"),
        CLI_INT("seed", "N", &a.seed, 0, INT64_MAX, "of k-means and the intervals"),
        CLI_FLAG("per-class", &a.classes, "one line per class, too"),
        CLI_INT("worst", "N", &a.worst.most, 0, 1000,
                "the N queries with the lowest average precision, too, and the N hardest negatives"),
        CLI_OUT("html", "OUT.html", &a.worst.html, ".html",
                "write these as a page of pictures (without --worst: 50 of each)"),
        CLI_TEXT("images", "PATHS", &a.worst.images,
                 "for --html of embeddings: a text file with one image path per row"),
        CLI_TEXT("data", "DIR", &a.model.data, "data set for a model to embed; features: a .npy file"),
        CLI_TEXT("dataset", "KIND", &a.model.kind, "its layout (see kith list datasets)"),
        CLI_TEXT("recipe", "FILE", &a.model.recipe,
                 "take the data set from the data section of a recipe (or recipe:NAME)"),
        CLI_CHOICE("split", "NAME", &split, splits, "which part of the data set"),
        CLI_TEXT("resize", "HOW", &a.model.resize, CLI_RESIZE_HELP),
        CLI_INT("crop", "PIXELS", &a.model.crop, 0, 4096, "side of the model's input; 0: the model's"),
        CLI_INT("size", "N", &a.model.side, 0, 4096, CLI_SIZE_HELP),
        CLI_INT("views", "N", &a.model.views, 0, 10, CLI_VIEWS_HELP),
        CLI_TEXT("backbone", "NAME", &a.model.backbone, "the network, where its file and tensors do not say"),
        CLI_TEXT("settings", "K=V,…", &a.model.settings, "the backbone's own options"),
        CLI_TEXT("tap", "NAME", &a.model.tap, "what to judge; default: embedding, else pooled"),
        CLI_TEXT("pool", "HOW", &a.model.pool, "avg, max, both, gem, class, class_avg or attention"),
        CLI_TEXT("device", "NAME", &a.model.device, "what the model and the ranking run on: cpu or cuda"),
        CLI_TEXT("precision", "NAME", &a.model.precision, "of the model: float32 or, on cuda, bf16"),
        CLI_FLAG("tf32", &a.model.tf32, "cuda, float32: let the model's products use TF32"),
        CLI_INT("batch", "N", &a.model.batch, 0, 65536, "images per pass; 0: 32, on a device 128"),
        CLI_OUT("save-embedding", "E.npy", &a.model.save_embedding, ".npy", "keep what the model made"),
        CLI_OUT("save-labels", "Y.npy", &a.model.save_labels, ".npy", "and its labels"),
        CLI_OUT("roc", "OUT.svg", &a.roc, ".svg", "draw the ROC curve of verification"),
        CLI_FLAG(
            "compare", &a.compare,
            "print two results side by side: --compare A B, each a file of --json, the folder of a run, or a "
            "result of kith reproduce"),
        CLI_FLAG("json", &a.json, "print the result as JSON, in fractions"),
        CLI_END};
    const cli_usage usage = {
        .operands = "[E.npy | MODEL | RUN | A B]",
        .least = 0,
        .most = 2,
        .options = options,
        .details =
            "kith eval E.npy --labels Y.npy judges embeddings made elsewhere;\n"
            "kith eval MODEL --data DIR embeds a data set and judges the result; the folder of a run is its "
            "model, and without MODEL it is the one that came with kith (general);\n"
            "kith eval --compare A B says by how much two results differ over the same queries, with a 95 % "
            "interval "
            "of the\n"
            "difference, and whether they may be compared; results/ROW stands for all seeds of a row of kith "
            "reproduce."};
    const int parsed = cli_parse(&usage, &argc, argv);
    if (parsed != CLI_RUN) return parsed;
    if (a.compare) return compare(argc, argv, a.json);
    if (argc > 2) return cli_misused("eval", "'%.60s' is one too many; wants one MODEL", argv[2]);
    if (argc == 2 && cli_ends_with(argv[1], ".npy")) {
        if (a.files.embedding) return cli_misused("eval", "'%.60s' and --embedding are both given", argv[1]);
        a.files.embedding = argv[1];
        argc = 1;
    }
    char file[CLI_RECIPE_BYTES];
    const int taken =
        a.model.recipe ? cli_recipe_take("eval", false, a.json, &a.model.recipe, file) : CLI_RUN;
    if (taken != CLI_RUN) return taken;
    a.model.split = split < KITH_N_SPLITS ? (kith_split)split : KITH_SPLIT_ALL;
    char path[4096];
    if (a.model.data) a.model.labels = a.files.labels;
    const bool wants_general = argc < 2 && (a.model.data || a.model.recipe) && !a.model.backbone;
    a.model.named = argc == 2 ? argv[1] : NULL;
    a.model.quiet = a.json;
    if (argc == 2 || wants_general) {
        kith_error why;
        if (kith_model_find(a.model.named, path, sizeof path, &why) != KITH_OK) return cli_fail(&why);
        a.model.model = path;
    }
    int status = check_sources(&a, argc);
    if (a.worst.html && a.worst.most == 0) a.worst.most = 50;
    a.worst.metric = (kith_metric)a.metric;
    a.worst.device = a.model.device;
    a.worst.name = a.model.data        ? a.model.data
                   : a.model.recipe    ? a.model.recipe
                   : a.files.embedding ? a.files.embedding
                                       : a.files.query;
    return status == CLI_RUN ? run_as_asked(&a) : status;
}
