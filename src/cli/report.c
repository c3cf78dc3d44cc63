/* kith report: the result of a training run as one HTML file, and what its model is. */
#include "kith/report.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"

/* A run that has ended, and not one of several runs. */
static bool has_model(const char *run) {
    static const char *const names[] = {"result.json", "model.safetensors"};
    char path[4096];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", run, names[i]);
        if (access(path, R_OK) != 0) return false;
    }
    return true;
}

int cmd_report(int argc, char **argv) {
    KITH_OPTIONS(kith_report_options, o);
    const cli_option options[] = {
        CLI_OUT("out|o", "FILE", &o.out, "", "the page to write, instead of RUN/report.html"),
        CLI_INT("queries", "N", &o.n_queries, 0, 100, "test images to show with their nearest neighbours"),
        CLI_INT("neighbours", "N", &o.n_neighbors, 1, 32, "nearest neighbours of each"),
        CLI_INT("points", "N", &o.n_points, 0, 5000, "test images on the map; 0: no map"), CLI_END};
    const cli_usage usage = {
        .operands = "RUN",
        .least = 1,
        .most = 1,
        .options = options,
        .details =
            "Curves, nearest neighbours, embedding map, pair histograms, result card and recipe of\n"
            "the run in folder RUN, in one file that needs nothing else. Works for a run that was\n"
            "interrupted or is still going on: the page then lacks what is not there yet. Without --out it "
            "also writes\n"
            "RUN/MODEL.md, a description of the model, when the run has ended."};
    const int parsed = cli_parse(&usage, &argc, argv);
    if (parsed != CLI_RUN) return parsed;
    kith_error err = {0};
    if (kith_report_write(argv[1], &o, &err) != KITH_OK) return cli_fail(&err);
    if (o.out) {
        printf("%s\n", o.out);
        return CLI_OK;
    }
    printf("%s/report.html\n", argv[1]);
    if (!has_model(argv[1])) return CLI_OK;
    if (kith_model_card_write(argv[1], NULL, &err) != KITH_OK) return cli_fail(&err);
    printf("%s/MODEL.md\n", argv[1]);
    return CLI_OK;
}
