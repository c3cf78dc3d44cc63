/* kith train: from a recipe, or from photos alone, to a model. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/busy.h"
#include "cli/cli.h"
#include "cli/recipes.h"
#include "cli/train_photos.h"
#include "kith/text.h"
#include "kith/train.h"
#include "kith/tune.h"

enum { BAR_WIDTH = 20 };
static const double BAR_SECONDS = 0.1, LINE_SECONDS = 10;

typedef struct display {
    bool is_terminal, is_quiet, is_drawn, has_said_stopping;
    double drawn; /* when */
    cli_busy busy;
} display;

static void clear_line(display *d) {
    if (d->is_drawn && d->is_terminal) fputs("\r\033[K", stderr);
    d->is_drawn = false;
}

static void print_run(const kith_train_event *e) {
    if (e->n_runs > 1) fprintf(stderr, "run %lld/%lld ", (long long)e->run_number, (long long)e->n_runs);
}

/* Columns of the terminal; a line that wraps could not be redrawn. */
static int terminal_width(void) {
    const int columns = cli_columns(STDERR_FILENO);
    return columns ? columns : 80;
}

static void append(char *line, size_t bytes, const char *fmt, ...) KITH_PRINTF(3, 4);
static void append(char *line, size_t bytes, const char *fmt, ...) {
    const size_t used = strlen(line);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line + used, bytes - used, fmt, ap);
    va_end(ap);
}

static void draw_step(display *d, const kith_train_event *e) {
    const double now = cli_seconds_now();
    if (now - d->drawn < (d->is_terminal ? BAR_SECONDS : LINE_SECONDS)) return;
    char line[1024] = "", left[32];
    if (e->n_runs > 1)
        append(line, sizeof line, "run %lld/%lld ", (long long)e->run_number, (long long)e->n_runs);
    if (d->is_terminal) {
        const int n_full = (int)(e->n_steps ? BAR_WIDTH * e->step / e->n_steps : 0);
        char bar[BAR_WIDTH + 1];
        for (int i = 0; i < BAR_WIDTH; i++) bar[i] = i < n_full ? '#' : '.';
        bar[BAR_WIDTH] = '\0';
        append(line, sizeof line, "[%s] ", bar);
    } else {
        append(line, sizeof line, "step ");
    }
    append(line, sizeof line, "%lld/%lld", (long long)e->step, (long long)e->n_steps);
    if (e->step < e->n_steps && e->seconds_left > 0)
        append(line, sizeof line, "  %s left", cli_time_text(e->seconds_left, left, sizeof left));
    if (e->images_per_second > 0) append(line, sizeof line, "  %.0f img/s", e->images_per_second);
    if (e->n_terms > 1) append(line, sizeof line, "  total %.4g", e->total);
    for (int i = 0; i < e->n_terms; i++)
        append(line, sizeof line, "  %s %.4g", e->terms[i].name, e->terms[i].value);
    clear_line(d);
    if (d->is_terminal)
        fprintf(stderr, "%.*s", terminal_width() - 1, line);
    else
        fprintf(stderr, "%s\n", line);
    fflush(stderr);
    d->is_drawn = d->is_terminal;
    d->drawn = now;
}

/* Work between steps shows how far it is, so that nobody thinks the program hangs. */
static void draw_busy(display *d, const kith_train_event *e) {
    const double now = cli_seconds_now();
    const double left = cli_busy_left(&d->busy, now, e);
    char line[256];
    if (now - d->drawn < (d->is_terminal ? 5 * BAR_SECONDS : LINE_SECONDS)) return;
    clear_line(d);
    print_run(e);
    fprintf(stderr, "%s%s", cli_busy_text(e, left, line, sizeof line), d->is_terminal ? "" : "\n");
    fflush(stderr);
    d->is_drawn = d->is_terminal;
    d->drawn = now;
}

static int on_event(void *user, const kith_train_event *e) {
    display *d = user;
    if (cli_stop_signal() && !d->has_said_stopping) {
        clear_line(d);
        fputs("kith: stopping after this step; press Ctrl-C again to stop at once\n", stderr);
        d->has_said_stopping = true;
    }
    if (d->is_quiet && e->kind != KITH_TRAIN_WARNING) return cli_stop_signal() != 0;
    switch (e->kind) {
    case KITH_TRAIN_STEP: draw_step(d, e); break;
    case KITH_TRAIN_BEGIN:
        clear_line(d);
        print_run(e);
        fprintf(stderr, "%s; %lld steps%s, in %s\n", e->text, (long long)e->n_steps,
                e->step > 0 ? " (resumed)" : "", e->run);
        d->drawn = cli_seconds_now();
        break;
    case KITH_TRAIN_EVAL:
        clear_line(d);
        print_run(e);
        if (e->text)
            fprintf(stderr, "%s: ", e->text);
        else
            fprintf(stderr, "step %lld: ", (long long)e->step);
        fprintf(stderr, "%s R@1 %.2f, MAP@R %.2f%s\n", e->split, 100 * e->recall_at_1, 100 * e->map_at_r,
                e->is_best ? ", the best so far" : "");
        break;
    case KITH_TRAIN_WARNING:
        clear_line(d);
        fprintf(stderr, "kith: warning: %s\n", e->text);
        break;
    case KITH_TRAIN_NOTE:
        clear_line(d);
        fprintf(stderr, "%s\n", e->text);
        break;
    case KITH_TRAIN_BUSY: draw_busy(d, e); break;
    case KITH_TRAIN_SAVED: break;
    }
    return cli_stop_signal() != 0;
}

/* runs/NAME, or runs/NAME-2 … if that exists. A search on photos goes on in the folder that it began. */
static void name_run(const char *source, bool is_photos, char *ret, size_t bytes) {
    char path[4200];
    struct stat info;
    size_t end = strlen(source);
    while (end > 1 && source[end - 1] == '/') end--;
    size_t begin = end;
    while (begin > 0 && source[begin - 1] != '/') begin--;
    const char *name = source + begin;
    int n = (int)strcspn(name, "./{:");
    if (n == 0) name = "photos", n = (int)strlen(name); /* "." and the like */
    snprintf(ret, bytes, "runs/%.*s", n, name);
    for (int k = 2; stat(ret, &info) == 0 && k < 100000; k++) {
        snprintf(path, sizeof path, "%s/tried.jsonl", ret);
        if (is_photos && stat(path, &info) == 0) return;
        snprintf(ret, bytes, "runs/%.*s-%d", n, name, k);
    }
}

static void print_estimate(const char *name, const kith_estimate *now, const kith_estimate *before) {
    if (now->n == 0) return;
    printf("  %-6s %6.2f", name, 100 * now->mean);
    if (now->n > 1)
        printf("  (95 %% interval of %lld runs: %.2f to %.2f)", (long long)now->n, 100 * now->low,
               100 * now->high);
    else if (!isnan(now->low) && !isnan(now->high))
        printf("  (95 %% interval: %.2f to %.2f)", 100 * now->low, 100 * now->high);
    if (before->n > 0) printf("  untrained %.2f", 100 * before->mean);
    putchar('\n');
}

static void print_result(const kith_train_result *r) {
    char time[32];
    if (r->test.recall_at_1.n > 0) {
        printf("unseen classes (test), in percent:\n");
        print_estimate("R@1", &r->test.recall_at_1, &r->untrained.recall_at_1);
        print_estimate("MAP@R", &r->test.map_at_r, &r->untrained.map_at_r);
        print_estimate("NMI", &r->test.nmi, &r->untrained.nmi);
    }
    if (r->test.recall_at_1.n == 0 && r->validation.recall_at_1.n > 0) {
        printf("validation classes, which the model was chosen on, in percent:\n");
        print_estimate("R@1", &r->validation.recall_at_1, &(kith_estimate){0});
        print_estimate("MAP@R", &r->validation.map_at_r, &(kith_estimate){0});
    }
    if (strcmp(r->selection, "test") == 0)
        printf("the best step was chosen on these same classes, so these figures are too good\n");
    if (r->n_runs == 1)
        printf("%s: model of step %lld of %lld (%s), %s of training, %.0f img/s\n", r->run,
               (long long)r->step, (long long)r->n_steps,
               strcmp(r->selection, "last") == 0   ? "the last"
               : strcmp(r->selection, "test") == 0 ? "the best on the test classes"
                                                   : "the best on validation classes",
               cli_time_text(r->seconds, time, sizeof time), r->images_per_second);
    else
        printf("%s: %lld runs, %s of training\n", r->run, (long long)r->n_runs,
               cli_time_text(r->seconds, time, sizeof time));
}

static int print_recipe(const kith_train_options *options) {
    char *text = NULL;
    kith_error err;
    if (kith_train_recipe(options, &text, &err) != KITH_OK) return cli_fail(&err);
    fputs(text, stdout);
    kith_string_free(text);
    return CLI_OK;
}

static int train(const kith_train_options *options) {
    kith_error err;
    kith_train_result result;
    cli_catch_signals();
    const kith_status status = kith_train_run(options, &result, &err);
    clear_line(options->user);
    if (status == KITH_ECANCELED && cli_stop_signal() && cli_is_first_rank()) {
        char run[4096];
        const size_t n = cli_quote(options->out, run, sizeof run);
        fprintf(stderr, "kith: %s\nkith: resume it with: kith train %s --resume\n", err.message,
                n < sizeof run ? run : "RUN");
        return 128 + cli_stop_signal();
    }
    /* The first rank speaks for all, unless this one has failed alone. */
    if (status == KITH_ECANCELED && !cli_is_first_rank()) return CLI_FAILURE;
    if (status != KITH_OK) return cli_fail(&err);
    if (cli_is_first_rank()) print_result(&result);
    return CLI_OK;
}

/* What is given for photos alone, as text. */
typedef struct photos_wish {
    const char *minutes, *model, *seed, *precision;
    bool has_recipe_options; /* --set and the like */
} photos_wish;

static int read_wish(const photos_wish *wish, kith_tune_options *options) {
    double seed = 0;
    if (wish->has_recipe_options || wish->precision)
        return cli_failf(
            "--set, --print-recipe, --precision and --allow-test-selection are for recipes, and %s holds "
            "photos",
            options->photos);
    if (wish->minutes && (!kith_parse_real(wish->minutes, &options->minutes) || !(options->minutes > 0)))
        return cli_failf("--minutes is '%s'; wanted a number above 0", wish->minutes);
    if (wish->seed &&
        (!kith_parse_real(wish->seed, &seed) || !(seed >= 0) || seed > 9e15 || seed != floor(seed)))
        return cli_failf("--seed is '%s'; wanted a whole number", wish->seed);
    options->seed = (int64_t)seed;
    options->model = wish->model;
    return CLI_OK;
}

/* The command that goes on: with all that was given, because with another model, say, it would be another search. */
static void say_how_to_go_on(const photos_wish *wish, const kith_tune_options *o) {
    const struct {
        const char *option, *value;
    } given[] = {{"", o->photos},           {" -o", o->out},          {" --minutes", wish->minutes},
                 {" --model", wish->model}, {" --device", o->device}, {" --seed", wish->seed}};
    fputs("kith: go on with: kith train", stderr);
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        char word[4096];
        if (!given[i].value) continue;
        cli_quote(given[i].value, word, sizeof word);
        fprintf(stderr, "%s %s", given[i].option, word);
    }
    fputc('\n', stderr);
}

static int train_photos(const photos_wish *wish, kith_tune_options *options) {
    kith_error err;
    kith_tune_result result;
    const int wrong = read_wish(wish, options);
    if (wrong != CLI_OK) return wrong;
    cli_catch_signals();
    const kith_status status = kith_tune_run(options, &result, &err);
    clear_line(options->user);
    if (status == KITH_ECANCELED && cli_stop_signal()) {
        fprintf(stderr, "kith: %s\n", err.message);
        say_how_to_go_on(wish, options);
        return 128 + cli_stop_signal();
    }
    if (status != KITH_OK) return cli_fail(&err);
    cli_print_tune(&result);
    return CLI_OK;
}

static bool has_file(const char *folder, const char *name) {
    char path[4200];
    struct stat info;
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n > 0 && (size_t)n < sizeof path && stat(path, &info) == 0;
}

/* A search that was stopped before it made a run. */
static bool is_unfinished_search(const char *run) {
    return has_file(run, "tried.jsonl") && !has_file(run, "recipe.yaml");
}

static int refuse_unfinished(const char *run) {
    char word[4096];
    cli_quote(run, word, sizeof word);
    return cli_failf("%s holds a search that is not done; go on with: kith train PHOTOS -o %s", run, word);
}

int cmd_train(int argc, char **argv) {
    cli_list sets = {0};
    photos_wish wish = {0};
    const char *out = NULL, *device = NULL, *precision = NULL, *seed = NULL;
    bool resume = false, prints = false, allows_test = false, no_report = false, is_quiet = false;
    const cli_option options[] = {
        CLI_TEXT("out|o", "RUN", &out, "the run folder; runs/RECIPE or runs/PHOTOS without it"),
        CLI_LIST("set|s", "KEY=VALUE", &sets, "override a key, as in optim.lr=1e-4"),
        CLI_TEXT("minutes", "M", &wish.minutes, "of PHOTOS: about how long it may take; 5 without it"),
        CLI_TEXT("model", "NAME", &wish.model,
                 "of PHOTOS: what to start from: a file, a run, hub:NAME; else general"),
        CLI_FLAG("resume", &resume, "resume the run in the folder"),
        CLI_FLAG("print-recipe", &prints, "print the recipe with every default and stop"),
        CLI_TEXT("device", "NAME", &device, "cpu, cuda, cuda:1 …"),
        CLI_TEXT("precision", "NAME", &precision, "float32 or, on cuda, bf16"),
        CLI_TEXT("seed", "N", &seed, "seed of all random choices except the split"),
        CLI_FLAG("allow-test-selection", &allows_test,
                 "choose the best step on the test classes; the result says so"),
        CLI_FLAG("no-report", &no_report, "do not write report.html at the end"),
        CLI_FLAG("quiet|q", &is_quiet, "no progress, only warnings and the result"),
        CLI_END};
    const cli_usage usage = {
        .operands = "PHOTOS|FILE.yaml|recipe:NAME|RUN",
        .least = 1,
        .most = 1,
        .options = options,
        .details =
            "PHOTOS is a folder of photos, one folder for each class (or train/ and test/ of such\n"
            "folders), a manifest (.csv) or a tar file: finds the best model in --minutes (5), by trying\n"
            "ways to train on held-out classes, and says what it brings.\n"
            "A third of the classes is held out for the test (--seed draws which). If nothing is\n"
            "better than the pretrained model by more than chance, that model is the result. The same\n"
            "command goes on where it was stopped, and with more minutes it goes on searching.\n\n"
            "Trains the network the recipe describes and leaves everything in the run folder: the model,\n"
            "checkpoints, a log (log.jsonl, TensorBoard events), the result card (result.json) and\n"
            "report.html. recipe:NAME is a recipe that came with kith (kith list recipes); so is NAME "
            "alone,\n"
            "if there is no file or folder of that name. Resume an interrupted run with\n"
            "`kith train RUN --resume`: the model will have the same bits as without the interruption."};
    char *command = cli_command_text(argc, argv);
    const int status = cli_parse(&usage, &argc, argv);
    if (status != CLI_RUN) {
        free(command);
        return status;
    }
    char device_set[80], precision_set[80], seed_set[80], folder[4096], file[CLI_RECIPE_BYTES];
    const char *source = argv[1];
    const int taken = cli_recipe_take("train", true, is_quiet || prints, &source, file);
    if (taken != CLI_RUN) {
        free(command);
        return taken;
    }
    if (device) snprintf(device_set, sizeof device_set, "device=%s", device);
    if (precision) snprintf(precision_set, sizeof precision_set, "precision=%s", precision);
    if (seed) snprintf(seed_set, sizeof seed_set, "seed=%s", seed);
    const char *all[CLI_MOST_ITEMS + 3];
    size_t n = 0;
    for (int i = 0; i < sets.n_items; i++) all[n++] = sets.item[i];
    if (device) all[n++] = device_set;
    if (precision) all[n++] = precision_set;
    if (seed) all[n++] = seed_set;
    const bool is_photos = kith_tune_can(source);
    struct stat info;
    const bool is_there = stat(source, &info) == 0, is_run = !is_photos && is_there && S_ISDIR(info.st_mode);
    if (!is_photos && is_there && (wish.minutes || wish.model)) {
        free(command);
        return cli_misused("train",
                           "--model and --minutes are for photos; a recipe says --set model.weights=…, and "
                           "optim.steps or optim.epochs");
    }
    if (is_run && is_unfinished_search(source)) {
        free(command);
        return refuse_unfinished(source);
    }
    if (!out && is_run) out = source;
    if (!out) {
        name_run(source, is_photos, folder, sizeof folder);
        out = folder;
    }
    display d = {.is_terminal = isatty(STDERR_FILENO), .is_quiet = is_quiet};
    wish.seed = seed;
    wish.precision = precision;
    wish.has_recipe_options = sets.n_items > 0 || prints || allows_test;
    kith_tune_options tune_options = {.size = sizeof tune_options,
                                      .photos = source,
                                      .out = out,
                                      .device = device,
                                      .no_report = no_report,
                                      .command = command,
                                      .notify = on_event,
                                      .user = &d};
    if (is_photos) {
        const int ended = train_photos(&wish, &tune_options);
        free(command);
        return ended;
    }
    const kith_train_options train_options = {.size = sizeof(kith_train_options),
                                              .recipe = source,
                                              .sets = all,
                                              .n_sets = (int64_t)n,
                                              .out = out,
                                              .resume = resume,
                                              .allow_test_selection = allows_test,
                                              .no_report = no_report,
                                              .command = command,
                                              .notify = on_event,
                                              .user = &d};
    const int exit_status = prints ? print_recipe(&train_options) : train(&train_options);
    free(command);
    return exit_status;
}
