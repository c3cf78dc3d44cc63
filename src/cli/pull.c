/* kith pull: weights by name, from the Hugging Face hub. */
#include "kith/pull.h"

#include <string.h>

#include "cli/cli.h"

enum { MB = 1000000 };

/* ---- fetching ---- */

static int show_progress(void *user, int64_t n_done, int64_t n_all) {
    cli_progress *progress = user;
    progress->total = (n_all + MB - 1) / MB;
    if (n_all > 0) cli_progress_update(progress, n_done < n_all ? n_done / MB : progress->total, NULL);
    return cli_stop_signal() != 0;
}

static void print_pulled(const kith_pulled_entry *e) {
    const bool is_short = strcmp(e->name, e->repo) != 0;
    printf("%s%s%s%s: %.1f MB, %s; commit %.12s%s%s\n", e->name, is_short ? " (" : "",
           is_short ? e->repo : "", is_short ? ")" : "", (double)e->bytes / MB,
           e->n_fetched ? "fetched" : "was in the cache", e->commit, e->licence ? "; licence " : "",
           e->licence ? e->licence : "");
    if (e->is_unverified) printf("its hash was not stated, so it was not checked\n");
    if (e->backbone)
        printf("weights of %s: use them as hub:%s\n", e->backbone, e->name);
    else
        printf("kith has no network with its tensors (kith list backbones shows those it has)\n");
    printf("%s\n", e->file);
}

static int pull(const char *name, kith_pull_options *options, bool json);

/* ---- printing ---- */

static void json_text(kith_json *json, const char *key, const char *text) {
    kith_json_key(json, key);
    if (text)
        kith_json_string(json, text);
    else
        kith_json_null(json);
}

static void json_entry(kith_json *json, const kith_pulled_entry *e) {
    kith_json_object_begin(json);
    json_text(json, "name", e->name);
    json_text(json, "repo", e->repo);
    json_text(json, "revision", e->revision);
    json_text(json, "commit", e->commit);
    json_text(json, "file", e->file);
    json_text(json, "backbone", e->backbone);
    json_text(json, "licence", e->licence);
    kith_json_key(json, "bytes");
    kith_json_int(json, e->bytes);
    kith_json_key(json, "fetched_bytes");
    kith_json_int(json, e->n_fetched);
    kith_json_key(json, "unverified");
    kith_json_bool(json, e->is_unverified);
    kith_json_object_end(json);
}

static int print_json(const kith_pulled *pulled, bool is_list) {
    kith_error err = {0};
    kith_json *json = NULL;
    kith_pulled_entry e;
    if (kith_json_new(&json, &err) != KITH_OK) return cli_fail(&err);
    if (is_list) kith_json_array_begin(json);
    for (int64_t i = 0; kith_pulled_at(pulled, i, &e); i++) json_entry(json, &e);
    if (is_list) kith_json_array_end(json);
    return cli_print_json(json, &err) == KITH_OK ? CLI_OK : cli_fail(&err);
}

static int pull(const char *name, kith_pull_options *options, bool json) {
    kith_error err = {0};
    kith_pulled *pulled = NULL;
    kith_pulled_entry e;
    cli_progress progress;
    int status = CLI_OK;
    cli_catch_signals();
    cli_progress_begin(&progress, "MB", 0);
    options->progress = show_progress;
    options->user = &progress;
    const kith_status got = kith_pull_run(name, options, &pulled, &err);
    cli_progress_end(&progress);
    if (got != KITH_OK) return cli_fail(&err);
    if (json)
        status = print_json(pulled, false);
    else if (kith_pulled_at(pulled, 0, &e))
        print_pulled(&e);
    kith_pulled_free(pulled);
    return status;
}

/* ---- the cache ---- */

static int list(const kith_pull_options *options, bool json) {
    kith_error err = {0};
    kith_pulled *pulled = NULL;
    kith_pulled_entry e;
    int status = CLI_OK, width = 4;
    if (kith_pull_list(options, &pulled, &err) != KITH_OK) return cli_fail(&err);
    for (int64_t i = 0; kith_pulled_at(pulled, i, &e); i++) {
        if ((int)strlen(e.name) > width) width = (int)strlen(e.name);
    }
    if (json) {
        status = print_json(pulled, true);
    } else if (kith_pulled_count(pulled) == 0) {
        printf(
            "no weights in the hub's cache; kith list weights shows what kith pull knows by short names\n");
    } else {
        printf("%-*s  %10s  %-12s  %s\n", width, "name", "MB", "commit", "revision, file");
        for (int64_t i = 0; kith_pulled_at(pulled, i, &e); i++)
            printf("%-*s  %10.1f  %-12.12s  %s%s%s\n", width, e.name, (double)e.bytes / MB,
                   *e.commit ? e.commit : "-", *e.commit ? e.revision : "a part; kith pull goes on with it",
                   *e.revision ? "  " : "", e.file);
    }
    kith_pulled_free(pulled);
    return status;
}

static int remove_one(const char *name, const kith_pull_options *options) {
    kith_error err = {0};
    int64_t bytes = 0;
    if (kith_pull_remove(name, options, &bytes, &err) != KITH_OK) return cli_fail(&err);
    printf("%s: removed, %.1f MB freed\n", name, (double)bytes / MB);
    return CLI_OK;
}

int cmd_pull(int argc, char **argv) {
    bool lists = false, json = false;
    const char *removed = NULL;
    KITH_OPTIONS(kith_pull_options, o);
    const cli_option options[] = {
        CLI_FLAG("list", &lists, "show the weights in the cache, with their sizes"),
        CLI_TEXT("remove", "NAME", &removed,
                 "remove weights from the cache; NAME@REVISION: one revision of them"),
        CLI_FLAG("unverified", &o.unverified, "also take a file whose hash the hub does not state"),
        CLI_FLAG("json", &json, "print the result as JSON"), CLI_END};
    const cli_usage usage = {
        .operands = "[NAME[@REVISION]]",
        .most = 1,
        .options = options,
        .details =
            "Fetches model.safetensors and config.json of a repository on the Hugging Face hub. NAME is\n"
            "ORG/NAME as in timm/resnet50.a1_in1k, or a short name (kith list weights). Wherever a command\n"
            "takes weights, hub:NAME stands for them from then on. No other command opens a connection.\n"
            "\n"
            "Files are checked against the hash that the hub states. If it is interrupted, the same command\n"
            "goes on where it stopped. They lie in the hub's own cache, which Python shares: HF_HUB_CACHE, "
            "else\n"
            "HF_HOME/hub, else ~/.cache/huggingface/hub. HF_ENDPOINT names another hub, HF_TOKEN a token "
            "for\n"
            "private repositories, HF_HUB_OFFLINE=1 forbids connections, https_proxy names a proxy, "
            "SSL_CERT_FILE\n"
            "a file of certificates."};
    const int parsed = cli_parse(&usage, &argc, argv);
    if (parsed != CLI_RUN) return parsed;
    if ((argc == 2) + lists + (removed != NULL) != 1)
        return cli_misused("pull", "wants a NAME, --list or --remove NAME, one of them");
    if (lists) return list(&o, json);
    if (removed) return remove_one(removed, &o);
    return pull(argv[1], &o, json);
}
