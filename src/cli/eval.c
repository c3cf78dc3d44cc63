/* kith eval: retrieval and clustering metrics of embeddings, or of a model on a data set. */
#include "cli/eval.h"
#include "cli/images.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "kith/data.h"
#include "kith/text.h"

static int show_progress(void *user, int64_t done, int64_t all) {
    cli_progress *progress = user;
    progress->total = all;
    cli_progress_update(progress, done, NULL);
    return 0;
}

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
        int i = options->n_k;
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

static int parse_metrics(const char *list, bool wants[EVAL_N]) {
    static const char *const names[] = {"all",      "retrieval",   "clustering", "recall", "precision_at_1",
                                        "map_at_r", "r_precision", "map",        "mrr",    "nmi",
                                        "ami",      "f1"};
    for (const char *at = list; *at;) {
        char word[32];
        const size_t n = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), at);
        const bool all = strcmp(word, "all") == 0;
        bool is_known = all || strcmp(word, "retrieval") == 0 || strcmp(word, "clustering") == 0;
        for (int m = 0; m < EVAL_N; m++) {
            const bool is_group = all || strcmp(word, m < EVAL_NMI ? "retrieval" : "clustering") == 0;
            const bool is_this = strcmp(word, eval_metric_names[m]) == 0;
            wants[m] |= is_group || is_this;
            is_known |= is_this;
        }
        if (!is_known) return cli_unknown("eval", "metric", word, names, sizeof names / sizeof names[0]);
        at += n + (at[n] == ',');
    }
    return CLI_RUN;
}

/* The rows that take part, for clustering: all, or those of query and gallery, each once. */
static kith_status cluster(const eval_set *set, eval_result *r, kith_error *err) {
    const int64_t n = set->embedding.dim[0];
    bool *is_in = malloc((size_t)n + 1);
    int64_t *label = malloc((size_t)n * sizeof *label + 1), *found = malloc((size_t)n * sizeof *found + 1);
    kith_array rows = {0};
    kith_kmeans_result result = {0};
    kith_status status = KITH_OK;
    if (!is_in || !label || !found)
        status = cli_error(err, KITH_ENOMEM, NULL, "not enough memory for the clusters");
    int64_t n_in = 0;
    if (status == KITH_OK) {
        memset(is_in, !set->query || !set->gallery, (size_t)n);
        for (int64_t i = 0; i < set->n_query; i++) is_in[set->query[i]] = true;
        for (int64_t i = 0; i < set->n_gallery; i++) is_in[set->gallery[i]] = true;
        for (int64_t i = 0; i < n; i++) n_in += is_in[i];
        status =
            kith_array_init(set->embedding.dtype, 2, (int64_t[]){n_in, set->embedding.dim[1]}, &rows, err);
    }
    if (status == KITH_OK) {
        const size_t bytes = (size_t)set->embedding.dim[1] * kith_dtype_bytes(set->embedding.dtype);
        int64_t at = 0;
        for (int64_t i = 0; i < n; i++) {
            if (!is_in[i]) continue;
            memcpy((char *)rows.data + (size_t)at * bytes,
                   (const char *)set->embedding.data + (size_t)i * bytes, bytes);
            label[at++] = set->labels[i];
        }
        /* As many clusters as classes. */
        kith_clustering same;
        status = kith_clustering_compare(label, label, n_in, &same, err);
        r->kmeans.n_clusters = same.n_classes;
    }
    if (status == KITH_OK) {
        cli_progress progress;
        cli_progress_begin(&progress, "k-means", 0);
        r->kmeans.progress = show_progress;
        r->kmeans.user = &progress;
        status = kith_kmeans(&rows, &r->kmeans, &result, err);
        cli_progress_end(&progress);
    }
    if (status == KITH_OK) {
        for (int64_t i = 0; i < n_in; i++) found[i] = result.cluster[i];
        r->kmeans_objective = result.objective;
        status = kith_clustering_compare(found, label, n_in, &r->clustering, err);
        r->has_clustering = status == KITH_OK;
    }
    kith_kmeans_result_release(&result);
    kith_array_release(&rows);
    free(is_in);
    free(label);
    free(found);
    return status;
}

static kith_status judge(const eval_set *set, const kith_retrieval_options *options, eval_result *r,
                         kith_error *err) {
    const double began = cli_seconds_now();
    const kith_retrieval_input input = {.embedding = &set->embedding,
                                        .labels = set->labels,
                                        .n_labels = set->n_labels,
                                        .query = set->query,
                                        .n_query = set->n_query,
                                        .gallery = set->gallery,
                                        .n_gallery = set->n_gallery};
    bool wants_retrieval = false, wants_clustering = false;
    for (int m = 0; m < EVAL_NMI; m++) wants_retrieval |= r->wants[m];
    for (int m = EVAL_NMI; m < EVAL_N; m++) wants_clustering |= r->wants[m];
    kith_status status = KITH_OK;
    if (wants_retrieval) {
        cli_progress progress;
        kith_retrieval_options shown = *options;
        cli_progress_begin(&progress, "ranking", 0);
        shown.progress = show_progress;
        shown.user = &progress;
        status = kith_retrieval_run(&input, &shown, &r->retrieval, err);
        cli_progress_end(&progress);
        r->has_retrieval = status == KITH_OK;
        if (status == KITH_OK && r->bootstrap.n_draws > 0) {
            status = kith_retrieval_bootstrap(&r->retrieval, &r->bootstrap, &r->intervals, err);
            r->has_intervals = status == KITH_OK;
        }
    }
    if (status == KITH_OK && wants_clustering) status = cluster(set, r, err);
    r->seconds = cli_seconds_now() - began;
    return status;
}

typedef struct arguments {
    eval_files files;
    eval_model model;
    const char *k, *metrics;
    int metric;
    int64_t restarts, iterations, seed, bootstrap;
    bool by_class, classes, json, compare;
} arguments;

static int run(const arguments *a, const kith_retrieval_options *options, eval_result *result) {
    kith_error err = {0};
    eval_set set;
    kith_status status = a->model.data || a->model.recipe ? eval_set_embed(&a->model, &set, &err)
                                                          : eval_set_read(&a->files, &set, &err);
    if (status != KITH_OK) return cli_fail(&err);
    status = judge(&set, options, result, &err);
    if (status == KITH_OK && a->json) status = eval_print_json(result, &set.card, &err);
    if (status == KITH_OK && !a->json) eval_print_text(result, &set.card);
    kith_retrieval_release(&result->retrieval);
    eval_set_release(&set);
    return status == KITH_OK ? CLI_OK : cli_fail(&err);
}

static int check_sources(const arguments *a, int argc) {
    const bool has_data = a->model.data || a->model.recipe;
    const bool has_files = a->files.embedding || a->files.query || a->files.gallery;
    if (has_data && has_files)
        return cli_misused("eval", "wants embeddings or a model and a data set, not both");
    if (has_data && argc < 2 && !a->model.backbone) return cli_misused("eval", "wants a MODEL or --backbone");
    if (!has_data && argc > 1) return cli_misused("eval", "wants --data DIR for the model to embed");
    if (!has_data && !has_files)
        return cli_misused("eval", "wants --embedding E.npy --labels Y.npy, or MODEL --data DIR");
    if (a->files.embedding && !a->files.labels) return cli_misused("eval", "wants --labels Y.npy");
    if (has_files && !a->files.embedding && !(a->files.query && a->files.gallery))
        return cli_misused("eval", "wants --embedding, or both --query and --gallery");
    return CLI_RUN;
}

int cmd_eval(int argc, char **argv) {
    static const char *const metrics[] = {"cosine", "inner", "sqeuclidean", NULL};
    static const char *const splits[] = {"train", "validation", "test", NULL};
    arguments a = {.k = "1,2,4,8", .metrics = "all", .restarts = 1, .iterations = 25, .bootstrap = 1000};
    a.model.split = KITH_SPLIT_TEST;
    a.model.kind = "auto";
    const cli_option options[] = {
        CLI_TEXT("embedding|e", "E.npy", &a.files.embedding, "embeddings [n, dim]"),
        CLI_TEXT("labels|y", "Y.npy", &a.files.labels, "their classes [n], integers"),
        CLI_TEXT("query", "Q.npy", &a.files.query,
                 "row numbers (or a uint8 mask) of the queries; or embeddings"),
        CLI_TEXT("gallery", "G.npy", &a.files.gallery,
                 "row numbers (or a uint8 mask) of the gallery; or embeddings"),
        CLI_TEXT("query-labels", "Y.npy", &a.files.query_labels, "when --query holds embeddings"),
        CLI_TEXT("gallery-labels", "Y.npy", &a.files.gallery_labels, "when --gallery holds embeddings"),
        CLI_TEXT("k", "LIST", &a.k, "K of R@K"),
        CLI_TEXT("metrics", "LIST", &a.metrics,
                 "all, retrieval, clustering, or any of recall, precision_at_1, map_at_r, r_precision, map, "
                 "mrr, nmi, ami, f1"),
        CLI_CHOICE("metric", "NAME", &a.metric, metrics, "what is near"),
        CLI_INT("bootstrap", "N", &a.bootstrap, 0, 1000000, "draws for the 95 % intervals; 0: none"),
        CLI_FLAG("by-class", &a.by_class, "draw classes instead of queries for the intervals"),
        CLI_INT("restarts", "N", &a.restarts, 1, 1000, "of k-means"),
        CLI_INT("iterations", "N", &a.iterations, 1, 100000, "of k-means, at most"),
        CLI_INT("seed", "N", &a.seed, 0, INT64_MAX, "of k-means and the intervals"),
        CLI_FLAG("per-class", &a.classes, "one line per class, too"),
        CLI_TEXT("data", "DIR", &a.model.data, "data set for a model to embed"),
        CLI_TEXT("dataset", "KIND", &a.model.kind, "its layout (see kith list datasets)"),
        CLI_TEXT("recipe", "FILE", &a.model.recipe, "take the data set from a recipe's data section"),
        CLI_CHOICE("split", "NAME", &a.model.split, splits, "which part of the data set"),
        CLI_TEXT("resize", "HOW", &a.model.resize, CLI_RESIZE_HELP),
        CLI_INT("crop", "PIXELS", &a.model.crop, 0, 4096, "side of the model's input; 0: the model's"),
        CLI_TEXT("backbone", "NAME", &a.model.backbone, "where the model file does not say"),
        CLI_TEXT("settings", "K=V,…", &a.model.settings, "the backbone's own options"),
        CLI_TEXT("tap", "NAME", &a.model.tap, "what to judge; default: embedding, else pooled"),
        CLI_TEXT("pool", "HOW", &a.model.pool, "global pooling: avg, max or both"),
        CLI_TEXT("device", "NAME", &a.model.device, "what the model and the ranking run on: cpu or cuda"),
        CLI_TEXT("precision", "NAME", &a.model.precision, "of the model: float32 or, on cuda, bf16"),
        CLI_FLAG("tf32", &a.model.tf32, "cuda, float32: let the model's products use TF32"),
        CLI_INT("batch", "N", &a.model.batch, 0, 65536, "images per pass; 0: 32"),
        CLI_TEXT("save-embedding", "E.npy", &a.model.save_embedding, "keep what the model made"),
        CLI_TEXT("save-labels", "Y.npy", &a.model.save_labels, "and its labels"),
        CLI_FLAG("compare", &a.compare, "print two results of --json side by side: --compare A.json B.json"),
        CLI_FLAG("json", &a.json, "print the result as JSON, in fractions"),
        CLI_END};
    const cli_usage usage = {
        .operands = "[MODEL | RUN | A.json B.json]",
        .least = 0,
        .most = 2,
        .options = options,
        .details =
            "kith eval --embedding E.npy --labels Y.npy judges embeddings made elsewhere;\n"
            "kith eval MODEL --data DIR embeds a data set and judges the result; the folder of a run is its "
            "model;\n"
            "kith eval --compare A.json B.json says which of two results is better, and whether they may be "
            "compared."};
    const int parsed = cli_parse(&usage, &argc, argv);
    if (parsed != CLI_RUN) return parsed;
    if (a.compare) {
        kith_error err = {0};
        if (argc != 3) return cli_misused("eval", "--compare wants two files: A.json B.json");
        return eval_compare(argv[1], argv[2], &err) == KITH_OK ? CLI_OK : cli_fail(&err);
    }
    if (argc > 2) return cli_misused("eval", "'%.60s' is one too many; wants one MODEL", argv[2]);
    char path[4096];
    if (argc == 2) a.model.model = cli_model_path(argv[1], path, sizeof path);
    int status = check_sources(&a, argc);
    kith_retrieval_options retrieval = {.metric = (kith_metric)a.metric, .device = a.model.device};
    eval_result result = {.metric = (kith_metric)a.metric, .shows_classes = a.classes};
    if (status == CLI_RUN) status = parse_k(a.k, &retrieval);
    if (status == CLI_RUN) status = parse_metrics(a.metrics, result.wants);
    if (status != CLI_RUN) return status;
    result.bootstrap = kith_bootstrap_defaults();
    result.bootstrap.n_draws = a.bootstrap;
    result.bootstrap.by_class = a.by_class;
    result.bootstrap.seed = (uint64_t)a.seed;
    result.kmeans = kith_kmeans_defaults(0);
    result.kmeans.n_restarts = a.restarts;
    result.kmeans.n_iterations = a.iterations;
    result.kmeans.seed = (uint64_t)a.seed;
    result.kmeans.normalize = a.metric == KITH_COSINE;
    result.kmeans.device = a.model.device;
    return run(&a, &retrieval, &result);
}
