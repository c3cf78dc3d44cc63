/* kith reproduce: a list of recipes, run one after the other, and the page of their results. */
#include "kith/experimental/reproduce.h"

#include <stdlib.h>
#include <string.h>

#include "cli/busy.h"
#include "cli/cli.h"

static const double LINE_SECONDS = 10;

typedef struct display {
    bool is_quiet, is_verbose;
    double drawn;
    cli_busy busy;
} display;

static void show_train(display *d, const kith_train_event *e) {
    const double now = cli_seconds_now();
    const bool is_busy = e->kind == KITH_TRAIN_BUSY;
    const double left = is_busy ? cli_busy_left(&d->busy, now, e) : 0;
    char line[256];
    if (e->kind == KITH_TRAIN_WARNING) fprintf(stderr, "kith: warning: %s\n", e->text);
    if (d->is_quiet) return;
    if (e->kind == KITH_TRAIN_EVAL && d->is_verbose)
        fprintf(stderr, "  step %lld: %s R@1 %.2f\n", (long long)e->step, e->split, 100 * e->recall_at_1);
    if ((e->kind != KITH_TRAIN_STEP && !is_busy) || now - d->drawn < LINE_SECONDS) return;
    if (is_busy)
        fprintf(stderr, "  %s\n", cli_busy_text(e, left, line, sizeof line));
    else
        fprintf(stderr, "  step %lld/%lld  %.0f img/s  total %.4g\n", (long long)e->step,
                (long long)e->n_steps, e->images_per_second, e->total);
    d->drawn = now;
}

static int on_event(void *user, const kith_reproduce_event *e) {
    display *d = user;
    if (e->kind == KITH_REPRODUCE_TRAIN) {
        show_train(d, e->train);
        return cli_stop_signal() != 0;
    }
    if (!d->is_quiet || e->kind == KITH_REPRODUCE_FAILED || e->kind == KITH_REPRODUCE_STALE ||
        e->kind == KITH_REPRODUCE_OTHER_DATA) {
        fprintf(stderr, "%lld/%lld %s seed %lld: ", (long long)e->number, (long long)e->n, e->row,
                (long long)e->seed);
        switch (e->kind) {
        case KITH_REPRODUCE_BEGIN:
            fprintf(stderr, "runs in %s", e->text);
            if (e->seconds > 0) fprintf(stderr, ", about %.0f s", e->seconds);
            fputc('\n', stderr);
            break;
        case KITH_REPRODUCE_DONE:
            fprintf(stderr, "R@1 %.2f in %.1f s, %s\n", 100 * e->recall_at_1, e->seconds, e->text);
            break;
        case KITH_REPRODUCE_SKIPPED: fprintf(stderr, "has a result, R@1 %.2f\n", 100 * e->recall_at_1); break;
        case KITH_REPRODUCE_STALE:
            fprintf(stderr, "%s is the result of another version of the recipe; --renew runs it again\n",
                    e->text);
            break;
        case KITH_REPRODUCE_OTHER_DATA:
            fprintf(stderr, "%s is the result of other data; --renew runs it again\n", e->text);
            break;
        case KITH_REPRODUCE_FAILED: fprintf(stderr, "failed: %s\n", e->text); break;
        case KITH_REPRODUCE_LATE:
            fprintf(stderr, "left for later: it would take about %.0f s\n", e->seconds);
            break;
        case KITH_REPRODUCE_DROPPED: fprintf(stderr, "%s\n", e->text); break;
        case KITH_REPRODUCE_WAITS: fprintf(stderr, "waits for the result of %s\n", e->text); break;
        case KITH_REPRODUCE_BUSY: fprintf(stderr, "another process runs it\n"); break;
        case KITH_REPRODUCE_TRAIN: break;
        }
    }
    d->drawn = cli_seconds_now();
    return cli_stop_signal() != 0;
}

static int reproduce(const kith_reproduce_options *o, bool only_table) {
    kith_error err = {0};
    kith_reproduce_summary s = {0};
    kith_status status = KITH_OK;
    if (!only_table) {
        cli_catch_signals();
        status = kith_reproduce_run(o, &s, &err);
        if (!cli_is_first_rank() && status == KITH_ECANCELED) return CLI_FAILURE; /* the first says why */
        if (s.n > 0 && cli_is_first_rank()) { /* otherwise the error says everything */
            printf("%lld runs: %lld done, %lld had a result, %lld have one of another recipe", (long long)s.n,
                   (long long)s.n_done, (long long)s.n_skipped, (long long)s.n_stale);
            if (s.n_other_data > 0) printf(", %lld have one of other data", (long long)s.n_other_data);
            if (s.n_dropped > 0) printf(", %lld dropped by halving", (long long)s.n_dropped);
            if (s.n_waiting > 0) printf(", %lld wait for others", (long long)s.n_waiting);
            printf(", %lld failed, %lld left for later, %lld run by another process\n", (long long)s.n_failed,
                   (long long)s.n_late, (long long)s.n_busy);
        }
    }
    if (status != KITH_OK && !(status == KITH_ECANCELED && cli_stop_signal())) return cli_fail(&err);
    if (!cli_is_first_rank()) return s.n_failed > 0 ? CLI_FAILURE : CLI_OK;
    kith_error table_err = {0};
    kith_reproduce_paths at;
    if (kith_reproduce_table(o, &table_err) != KITH_OK ||
        kith_reproduce_places(o, &at, &table_err) != KITH_OK)
        return cli_fail(&table_err);
    printf("%s\n", at.page);
    if (status == KITH_ECANCELED) {
        fprintf(stderr, "kith: %s\nkith: the same command resumes it\n", err.message);
        return 128 + cli_stop_signal();
    }
    return s.n_failed > 0 ? CLI_FAILURE : CLI_OK;
}

int cmd_reproduce(int argc, char **argv) {
    KITH_OPTIONS(kith_reproduce_options, o);
    cli_list sets = {0};
    display d = {0};
    bool only_table = false;
    const cli_option options[] = {
        CLI_INT("seeds", "N", &o.seeds, 1, 64, "seeds per row, where the list does not say how many"),
        CLI_INT("seed-from", "S", &o.seed_from, 0, 1e15, "the first seed"),
        CLI_TEXT("only", "PATTERNS", &o.only, "rows whose names match, as in '*-resnet50,cub-*'"),
        CLI_LIST("set|s", "KEY=VALUE", &sets, "override a key of every recipe, as in data.root=…"),
        CLI_TEXT("out|o", "FOLDER", &o.out,
                 "results, one small JSON file per row and seed; results/LIST without it"),
        CLI_TEXT("runs", "FOLDER", &o.runs, "run folders; runs/LIST without it"),
        CLI_FLAG("keep-models", &o.keep_models, "leave models and checkpoints in the run folders"),
        CLI_FLAG("renew", &o.renew,
                 "run again what has a result of another version of the recipe or of other data"),
        CLI_REAL("minutes", "M", &o.minutes, 0, 1e6,
                 "begin no run that would end after this many minutes; 0: no limit"),
        CLI_FLAG("table", &only_table, "run nothing, only write the page"),
        CLI_TEXT("page", "FILE", &o.page, "the page of tables; OUT.md without it"),
        CLI_TEXT("notes", "FILE", &o.notes, "text for the page, in blocks; OUT-notes.md without it"),
        CLI_TEXT("pictures", "FOLDER", &o.pictures, "the page's drawings; OUT-pictures without it"),
        CLI_FLAG("verbose|v", &d.is_verbose, "print every evaluation"),
        CLI_FLAG("quiet|q", &d.is_quiet, "no progress, only failures"),
        CLI_END};
    const cli_usage usage = {.operands = "LIST.yaml",
                             .least = 1,
                             .most = 1,
                             .options = options,
                             .details =
                                 "Runs the recipes of the list in its order, as many seeds as asked for, and "
                                 "writes each result as it\n"
                                 "is reached; what is there already is not run again, so the same command "
                                 "goes on after a stop. A run\n"
                                 "that fails is recorded and the next one goes on. At the end the page of "
                                 "tables is made from the\n"
                                 "results alone. Exit status 1: a run failed."};
    char *command = cli_command_text(argc, argv);
    const int status = cli_parse(&usage, &argc, argv);
    if (status != CLI_RUN) {
        free(command);
        return status;
    }
    o.list = argv[1];
    o.sets = sets.item;
    o.n_sets = (int64_t)sets.n_items;
    o.command = command;
    o.notify = on_event;
    o.user = &d;
    const int exit_status = reproduce(&o, only_table);
    free(command);
    return exit_status;
}
