/* `kith reproduce` as users type it: order, skipping, stopping, killing, failures, what is left behind. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kith/card.h"
#include "support/mpirun.h"
#include "train/tiny.h"

static char output[TINY_OUTPUT];

/* Two recipes on the tiny data set and a list of four rows: FOLDER/list/tables.yaml. */
static void make_list(void) {
    static bool is_made;
    char text[4096];
    if (is_made) return;
    tiny_make();
    if (testing_run(output, sizeof output,
                    "cd %s && mkdir -p list && cp tiny.yaml list/plain.yaml && "
                    "(cat tiny.yaml | sed 's/loss: binomial/loss: triplet/') > list/other.yaml",
                    testing_folder()) != 0)
        fail_msg("%s", output);
    snprintf(text, sizeof text, "%s/list/tables.yaml", testing_folder());
    testing_write(text,
                  "title: Tiny\n"
                  "order:\n"
                  "  - {groups: [base], seeds: 1}\n"
                  "  - {groups: [base, more], seeds: all}\n"
                  "tables: [{name: all, title: All}]\n"
                  "rows:\n"
                  "  - {name: plain, group: base, table: all}\n"
                  "  - {name: other, group: base, table: all, baseline: plain}\n"
                  "  - {name: short, recipe: plain, set: [optim.steps=4], group: more, table: all}\n"
                  "  - {name: plain-all, of: plain, block: all_orders, group: more, table: all}\n");
    is_made = true;
}

/* The command for results in FOLDER/OUT. */
static const char *command(const char *out, const char *arguments) {
    static char text[8192];
    const char *folder = testing_folder();
    make_list();
    snprintf(text, sizeof text,
             "%s reproduce %s/list/tables.yaml --out %s/%s/results --runs %s/%s/runs --page %s/%s/page.md "
             "--notes %s/%s/notes.md --pictures %s/%s/pictures -s eval.select=last -s eval.watch_test=true "
             "-s optim.steps=6 -s eval.every=3 %s",
             testing_program(), folder, folder, out, folder, out, folder, out, folder, out, folder, out,
             arguments);
    return text;
}

static int reproduce(const char *out, const char *arguments) {
    char make[4096];
    snprintf(make, sizeof make, "%s/%s", testing_folder(), out);
    mkdir(make, 0777);
    return testing_run(output, sizeof output, "%s", command(out, arguments));
}

static double number(const char *out, const char *name, const char *at) {
    char file[4096];
    kith_error err;
    kith_card *result = NULL;
    double value = NAN;
    snprintf(file, sizeof file, "%s/%s/results/%s.json", testing_folder(), out, name);
    assert_ok(kith_card_read(file, &result, &err), &err);
    if (!kith_card_real(result, at, &value)) fail_msg("%s has no %s", file, at);
    kith_card_free(result);
    return value;
}

static void wants(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

/* Overrides of the list, of the table and of the row, and --set: the later wins. */
static void test_overrides_in_order(void **state) {
    (void)state;
    char path[4096];
    make_list();
    snprintf(path, sizeof path, "%s/list/sets.yaml", testing_folder());
    testing_write(path,
                  "title: Sets\n"
                  "set: [optim.steps=3, batch.classes=2]\n"
                  "tables: [{name: a, title: A, set: [optim.steps=4, seed=5]}, {name: b, title: B}]\n"
                  "rows:\n"
                  "  - {name: in-a, recipe: plain, table: a}\n"
                  "  - {name: own-steps, recipe: plain, table: a, set: [optim.steps=5]}\n"
                  "  - {name: in-b, recipe: plain, table: b}\n");
    if (testing_run(output, sizeof output,
                    "cd %s && %s reproduce list/sets.yaml --seeds 1 --out sets/results -q -s eval.every=0 "
                    "-s eval.select=last",
                    testing_folder(), testing_program()) != 0)
        fail_msg("%s", output);
    assert_true(number("sets", "in-a-seed0", "result.steps") == 4);
    assert_true(number("sets", "own-steps-seed0", "result.steps") == 5);
    assert_true(number("sets", "in-b-seed0", "result.steps") == 3);
    /* A table's overrides are checked as a row's are. */
    testing_write(path, "tables: [{name: a, title: A, set: 3}]\nrows: [{name: plain, table: a}]\n");
    assert_int_not_equal(0, testing_run(output, sizeof output, "cd %s && %s reproduce list/sets.yaml --table",
                                        testing_folder(), testing_program()));
    wants("a: set is ");
}

/* Ranks train each run together: every run is done once, and the first rank writes and speaks. */
static void test_over_ranks(void **state) {
    (void)state;
    if (!mpirun_is_there()) skip();
    char path[4096];
    snprintf(path, sizeof path, "%s/ranks", testing_folder());
    mkdir(path, 0777);
    int status =
        testing_run(output, sizeof output, MPIRUN " -np 2 %s 2>&1", command("ranks", "--seeds 2 -v"));
    if (status != 0) fail_msg("status %d: %s", status, output);
    wants("6 runs: 6 done, 0 had a result");
    const char *once = strstr(output, "runs: ");
    if (strstr(once + 1, "runs: ")) fail_msg("more than one rank speaks: %s", output);
    assert_int_equal(0, reproduce("alone", "--seeds 2 -q"));
    assert_true(fabs(number("ranks", "plain-seed1", "result.test.map_at_r") -
                     number("alone", "plain-seed1", "result.test.map_at_r")) < 1e-3);
    /* What has a result is not run again; a run that fails on all ranks is recorded, and the next is done. */
    status = testing_run(output, sizeof output, MPIRUN " -np 2 %s 2>&1",
                         command("ranks", "--seeds 1 -q --renew -s model.weights=none.safetensors"));
    if (status == 0) fail_msg("it does not fail: %s", output);
    wants("0 done");
}

/* ---- where files go ---- */

/* A list of one's own beside docs/results of others: its files are named after it, and nothing of theirs is touched. */
static void test_files_are_named_after_the_list(void **state) {
    (void)state;
    static const char *const files[] = {"results/mine/plain-seed0.json", "results/mine.md",
                                        "results/mine-pictures/both.svg"};
    const char *folder = testing_folder();
    make_list();
    char path[4096];
    snprintf(path, sizeof path, "%s/own/mine.yaml", folder);
    if (testing_run(output, sizeof output,
                    "cd %s && mkdir -p own/docs/results && cp tiny.yaml own/plain.yaml && "
                    "echo '<!-- losses -->' > own/docs/results-notes.md && echo '{}' > "
                    "own/docs/results/old-seed0.json",
                    folder) != 0)
        fail_msg("%s", output);
    testing_write(path,
                  "title: Mine\n"
                  "tables: [{name: all, title: All}]\n"
                  "rows: [{name: plain, table: all}]\n"
                  "curves: [{name: both, title: Both, rows: [plain]}]\n");
    if (testing_run(
            output, sizeof output,
            "cd %s/own && %s reproduce mine.yaml --seeds 1 -s eval.select=last -s eval.watch_test=true "
            "-s optim.steps=6 -s eval.every=3 -q",
            folder, testing_program()) != 0)
        fail_msg("%s", output);
    wants("results/mine.md\n");
    for (size_t i = 0; i < N_ROWS(files); i++) {
        if (!tiny_exists("own", files[i])) fail_msg("no %s", files[i]);
    }
    if (tiny_exists("own", "docs/results.md")) fail_msg("docs/results.md was written");
}

/* What the page needs is looked at before hours of training, not behind them. */
static void test_the_page_is_checked_before_training(void **state) {
    (void)state;
    static const struct {
        const char *prepare, *wants;
    } rows[] = {{"echo '<!-- losses -->' > notes.md", "no place for block losses"},
                {"mkdir page.md", "page.md"}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char out[32];
        snprintf(out, sizeof out, "early%zu", i);
        if (testing_run(output, sizeof output, "mkdir -p %s/%s && cd %s/%s && %s", testing_folder(), out,
                        testing_folder(), out, rows[i].prepare) != 0)
            fail_msg("%s", output);
        assert_int_equal(reproduce(out, "--seeds 1 --only plain"), 1);
        wants(rows[i].wants);
        if (strstr(output, "runs in") || tiny_exists(out, "results/plain-seed0.json"))
            fail_msg("it was trained first: %s", output);
    }
}

/* ---- what is run ---- */

static void test_order_and_results(void **state) {
    (void)state;
    static const char *const lines[] = {"1/6 plain seed 0: runs", "2/6 other seed 0: runs",
                                        "3/6 short seed 0: runs", "4/6 plain seed 1: runs",
                                        "5/6 other seed 1: runs", "6/6 short seed 1: runs"};
    static const char *const files[] = {"results/plain-seed0.json",
                                        "results/plain-seed1.json",
                                        "results/other-seed0.json",
                                        "results/other-seed1.json",
                                        "results/short-seed0.json",
                                        "results/short-seed1.json",
                                        "page.md"};
    if (reproduce("whole", "--seeds 2") != 0) fail_msg("%s", output);
    const char *at = output;
    for (size_t i = 0; i < N_ROWS(lines); i++) {
        const char *found = strstr(at, lines[i]);
        if (!found) fail_msg("no '%s' in its place: %s", lines[i], output);
        at = found;
    }
    wants("6 runs: 6 done, 0 had a result, 0 have one of another recipe, 0 failed, 0 left for later");
    for (size_t i = 0; i < N_ROWS(files); i++) {
        if (!tiny_exists("whole", files[i])) fail_msg("no %s", files[i]);
    }
    static const char *const numbers[] = {"result.test.recall.1", "result.test.recall.8",
                                          "result.test.map_at_r", "result.test.r_precision",
                                          "result.test.nmi",      "result.test.ami",
                                          "result.test.f1",       "result.wall_seconds",
                                          "result.img_per_s",     "result.best_on_test.recall.1",
                                          "curves.seen.2.1",      "curves.test.0.0"};
    for (size_t i = 0; i < N_ROWS(numbers); i++) (void)number("whole", "plain-seed1", numbers[i]);
    assert_true(number("whole", "plain-seed1", "seed") == 1);
    assert_true(number("whole", "short-seed0", "result.steps") == 6); /* --set goes behind the row's own */
    /* Nothing large stays, and no path of this machine gets out. */
    if (testing_run(output, sizeof output, "find %s/whole/runs -name '*.safetensors' | grep .",
                    testing_folder()) == 0)
        fail_msg("left: %s", output);
    if (testing_run(output, sizeof output, "grep -l '%s' %s/whole/results/* %s/whole/page.md",
                    testing_folder(), testing_folder(), testing_folder()) == 0)
        fail_msg("paths in: %s", output);
}

/* The same command once more does nothing and leaves every byte. */
static void test_there_is_skipped(void **state) {
    (void)state;
    if (reproduce("again", "--seeds 1") != 0) fail_msg("%s", output);
    char *before = tiny_read("again", "results/other-seed0.json"), *page = tiny_read("again", "page.md");
    if (reproduce("again", "--seeds 1") != 0) fail_msg("%s", output);
    wants("3 runs: 0 done, 3 had a result");
    char *after = tiny_read("again", "results/other-seed0.json"), *page_after = tiny_read("again", "page.md");
    assert_string_equal(before, after);
    assert_string_equal(page, page_after);
    free(before);
    free(after);
    free(page);
    free(page_after);
}

static void test_only_and_seed_from(void **state) {
    (void)state;
    if (reproduce("some", "--seeds 1 --seed-from 7 --only 'oth*,nothing'") != 0) fail_msg("%s", output);
    wants("1 runs: 1 done");
    assert_true(tiny_exists("some", "results/other-seed7.json"));
    assert_int_equal(1, reproduce("some", "--only nothing"));
    wants("no row of");
}

/* Results of other data are named and left; --renew replaces them. The data set is the test's own. */
static void test_results_of_other_data(void **state) {
    (void)state;
    char more[4096];
    make_list();
    if (testing_run(output, sizeof output, "cd '%s' && cp -r tiny grown", testing_folder()) != 0)
        fail_msg("%s", output);
    snprintf(more, sizeof more, "--only plain -s data.root=%s/grown", testing_folder());
    if (reproduce("grown-out", more) != 0) fail_msg("%s", output);
    wants("3 runs: 3 done");
    if (testing_run(output, sizeof output,
                    "cd '%s/grown' && cd \"$(ls | head -1)\" && cp \"$(ls | head -1)\" more.png",
                    testing_folder()) != 0)
        fail_msg("%s", output);
    if (reproduce("grown-out", more) != 0) fail_msg("%s", output);
    wants("plain-seed0.json is the result of other data; --renew runs it again");
    wants("3 runs: 0 done, 0 had a result, 0 have one of another recipe, 3 have one of other data");
    /* One is run again: the page has two data sets, and each mean is over one of them. */
    snprintf(more, sizeof more, "--only plain --seeds 1 --renew -s data.root=%s/grown", testing_folder());
    if (reproduce("grown-out", more) != 0) fail_msg("%s", output);
    wants("1 runs: 1 done");
    if (reproduce("grown-out", more) != 0) fail_msg("%s", output);
    wants("1 runs: 0 done, 1 had a result");
    snprintf(more, sizeof more, "%s/grown-out/page.md", testing_folder());
    char *page = testing_read(more);
    if (!strstr(page, "| plain | 2 |") || !strstr(page, "): seed 0.")) fail_msg("%s", page);
    free(page);
    /* Without the data nothing can be said against a result. */
    if (testing_run(output, sizeof output, "rm -r '%s/grown'", testing_folder()) != 0) fail_msg("%s", output);
    snprintf(more, sizeof more, "--only plain --seeds 1 -s data.root=%s/grown", testing_folder());
    if (reproduce("grown-out", more) != 0) fail_msg("%s", output);
    wants("1 runs: 0 done, 1 had a result");
}

/* Rows of a reproduction are compared over their seeds, query by query; what was of other data is refused. */
static void test_rows_are_compared(void **state) {
    (void)state;
    char path[2][4096];
    if (reproduce("compared", "--seeds 2 --only 'plain,other'") != 0) fail_msg("%s", output);
    for (int i = 0; i < 2; i++)
        snprintf(path[i], sizeof path[i], "%s/compared/results/%s", testing_folder(), i ? "other" : "plain");
    assert_int_equal(0, testing_run(output, sizeof output, "%s eval --compare '%s' '%s'", testing_program(),
                                    path[0], path[1]));
    wants("queries and over runs (2 of A, 2 of B).\n");
    assert_int_equal(0,
                     testing_run(output, sizeof output, "%s eval --compare '%s-seed0.json' '%s-seed1.json'",
                                 testing_program(), path[0], path[1]));
    wants("A and B are each one run");
    assert_int_equal(0, testing_run(output, sizeof output,
                                    "sed -i 's/\"data_sha256\": \"..../\"data_sha256\": \"0123/g' "
                                    "'%s-seed1.json'",
                                    path[1]));
    assert_int_equal(1, testing_run(output, sizeof output, "%s eval --compare '%s' '%s'", testing_program(),
                                    path[0], path[1]));
    wants("not the same queries: ");
    assert_int_equal(tiny_count_lines(output), 1);
}

/* Another recipe's result is neither taken nor overwritten, unless asked. */
static void test_stale_results(void **state) {
    (void)state;
    if (reproduce("stale", "--seeds 1 --only plain") != 0) fail_msg("%s", output);
    const double before = number("stale", "plain-seed0", "result.steps");
    if (reproduce("stale", "--seeds 1 --only plain -s optim.steps=8") != 0) fail_msg("%s", output);
    wants("is the result of another version of the recipe; --renew runs it again");
    assert_true(number("stale", "plain-seed0", "result.steps") == before);
    if (reproduce("stale", "--seeds 1 --only plain -s optim.steps=8 --renew") != 0) fail_msg("%s", output);
    assert_true(number("stale", "plain-seed0", "result.steps") == 8);
    /* Where files lie and how they are read changes no number: not another recipe. */
    if (reproduce("stale", "--seeds 1 --only plain -s optim.steps=8 -s loader.workers=2") != 0)
        fail_msg("%s", output);
    wants("1 runs: 0 done, 1 had a result");
}

static void test_no_run_past_the_time(void **state) {
    (void)state;
    if (reproduce("late", "--seeds 1 --only plain") != 0) fail_msg("%s", output);
    /* By what the first run took, the next would end too late. */
    if (reproduce("late", "--seeds 1 -s optim.steps=6 --minutes 0.00001") != 0) fail_msg("%s", output);
    wants("left for later");
    wants("3 runs: 0 done, 1 had a result, 0 have one of another recipe, 0 failed, 2 left for later");
    assert_false(tiny_exists("late", "results/other-seed0.json"));
}

/* Started three times at once, each run is one process's, and the results are those of one process. */
static void test_side_by_side(void **state) {
    (void)state;
    char make[4096];
    snprintf(make, sizeof make, "%s/sides", testing_folder());
    mkdir(make, 0777);
    const char *one = command("sides", "--seeds 2");
    if (testing_run(output, sizeof output, "(%s) & (%s) & (%s) & wait", one, one, one) != 0)
        fail_msg("%s", output);
    int n_done = 0, n_processes = 0;
    for (const char *at = output; (at = strstr(at, "6 runs: ")); at++, n_processes++)
        n_done += (int)strtol(at + strlen("6 runs: "), NULL, 10);
    if (n_done != 6 || n_processes != 3)
        fail_msg("%d processes did %d runs: %s", n_processes, n_done, output);
    assert_true(number("sides", "other-seed1", "result.test.map_at_r") ==
                number("whole", "other-seed1", "result.test.map_at_r"));
    /* One that is taken is left alone. */
    if (testing_run(output, sizeof output, "ls %s/sides/runs | grep claim", testing_folder()) == 0)
        fail_msg("left: %s", output);
    if (reproduce("taken", "--seeds 1 --only plain") != 0) fail_msg("%s", output);
    if (testing_run(output, sizeof output,
                    "cd %s/taken && rm results/*.json && for f in runs/plain-*; do flock $f.claim %s; done",
                    testing_folder(), command("taken", "--seeds 1 --only plain")) != 0)
        fail_msg("%s", output);
    wants("another process runs it");
    wants("1 run by another process");
    assert_false(tiny_exists("taken", "results/plain-seed0.json"));
}

/* A search of settings: classes held out of the training classes are all that is looked at. */
static void test_search_on_validation_classes(void **state) {
    (void)state;
    char path[4096];
    make_list();
    snprintf(path, sizeof path, "%s/list/search.yaml", testing_folder());
    testing_write(
        path,
        "set: [data.validation=0.5, eval.select=validation, eval.test=false, eval.watch_test=false]\n"
        "tables: [{name: all, title: All}]\n"
        "rows:\n"
        "  - {name: plain, block: validation, table: all}\n"
        "  - {name: fast, recipe: plain, set: [optim.lr=1e-2], block: validation, table: all, "
        "baseline: plain}\n");
    if (testing_run(
            output, sizeof output,
            "cd %s && %s reproduce list/search.yaml --seeds 1 --out search/results --runs search/runs --page "
            "search.md -s optim.steps=6 -s eval.every=2",
            testing_folder(), testing_program()) != 0)
        fail_msg("%s", output);
    wants("2 runs: 2 done");
    (void)number("search", "fast-seed0", "result.validation.recall.1");
    assert_true(number("search", "fast-seed0", "result.n_images") == 0);
    char *result = tiny_read("search", "results/fast-seed0.json"), *page = tiny_read(".", "search.md");
    assert_null(strstr(result, "\"test\""));
    assert_null(strstr(result, "untrained\""));
    assert_non_null(strstr(page, "percent on validation classes"));
    assert_non_null(strstr(page, "the test classes were not looked at"));
    free(result);
    free(page);
}

/* ---- grids ---- */

static int grid(const char *out, const char *arguments) {
    make_list();
    return testing_run(output, sizeof output,
                       "cd %s && %s reproduce list/%s.yaml --seeds 2 --out %s/results --runs %s/runs --page "
                       "%s.md %s 2>&1",
                       testing_folder(), testing_program(),
                       strcmp(out, "whole-grid") == 0 ? "grid" : "halving", out, out, out, arguments);
}

static void make_grids(void) {
    static const char row[] =
        "rows:\n"
        "  - name: g\n"
        "    recipe: plain\n"
        "    set: [data.validation=0.4, eval.every=0, eval.select=last, batch.classes=2]\n"
        "    grid: {optim.lr: [1e-5, 1e-2], objective.loss: [{name: binomial, beta: 40}, contrastive]}\n";
    char path[4096], text[2048];
    make_list();
    snprintf(path, sizeof path, "%s/list/halving.yaml", testing_folder());
    snprintf(text, sizeof text, "%s    halving: {keep: 1/2, steps: [2, 4, 8]}\n", row);
    testing_write(path, text);
    snprintf(path, sizeof path, "%s/list/grid.yaml", testing_folder());
    snprintf(text, sizeof text, "%s    by: recall.1\n", row);
    testing_write(path, text);
}

/* The mean over the two seeds. */
static double grid_score(const char *out, const char *row) {
    double sum = 0;
    char name[64];
    for (int seed = 0; seed < 2; seed++) {
        snprintf(name, sizeof name, "%.40s-seed%d", row, seed);
        sum += number(out, name, "result.validation.map_at_r");
    }
    return sum / 2;
}

/* All combinations, and what they come to with the most steps. */
static void make_whole_grid(void) {
    static bool is_made;
    if (is_made) return;
    make_grids();
    if (grid("whole-grid", "-s optim.steps=8") != 0) fail_msg("%s", output);
    wants("8 runs: 8 done");
    is_made = true;
}

static void test_grid(void **state) {
    (void)state;
    make_whole_grid();
    char *page = tiny_read(".", "whole-grid.md"), *result = tiny_read("whole-grid", "results/g-4-seed1.json");
    assert_non_null(
        strstr(page, "## Grid: g\n\nR@1 of the validation classes in percent, of 4 combinations.\n"));
    assert_non_null(strstr(page, "| 1 | `1e-5` | `{name: binomial, beta: 40}` | "));
    assert_non_null(strstr(page, "| 4 | `1e-2` | `contrastive` | "));
    assert_non_null(strstr(page, "\nThe best: `--set 'optim.lr="));
    assert_null(strstr(page, "`--set optim.steps"));
    assert_null(strstr(page, "several seeds"));
    assert_null(strstr(result, "\"test\"")); /* nobody has looked at them */
    free(page);
    free(result);
}

static void test_halving(void **state) {
    (void)state;
    char row[32], name[64];
    double score[4], cut[4];
    make_whole_grid();
    if (grid("halving", "") != 0) fail_msg("%s", output);
    wants("24 runs: 14 done, 0 had a result, 0 have one of another recipe, 10 dropped by halving, 0 failed");
    for (int round = 0, n = 4; round < 3; round++, n /= 2) {
        const int steps = 2 << round;
        int n_there = 0;
        for (int i = 0; i < 4; i++) {
            snprintf(row, sizeof row, "g-%d-%d", i + 1, steps);
            snprintf(name, sizeof name, "results/%s-seed0.json", row);
            const bool is_there = tiny_exists("halving", name);
            n_there += is_there;
            if (round > 0) { /* the best of the round before, and no other */
                int n_better = 0;
                for (int j = 0; j < 4; j++) n_better += cut[j] > cut[i] || (cut[j] == cut[i] && j < i);
                if (is_there != (n_better < n)) fail_msg("%s: %d did better, and %d go on", row, n_better, n);
            }
            score[i] = is_there ? grid_score("halving", row) : -1;
            snprintf(name, sizeof name, "g-%d", i + 1);
            if (is_there && steps == 8) assert_true(score[i] == grid_score("whole-grid", name));
        }
        assert_int_equal(n_there, n);
        memcpy(cut, score, sizeof cut);
    }
    char *page = tiny_read(".", "halving.md");
    assert_non_null(strstr(page, "| | optim.lr | objective.loss | 2 | 4 | 8 |\n"));
    assert_non_null(strstr(page, "\n48 steps were taken; all combinations to the end take 64 (75 %).\n"));
    assert_non_null(strstr(page, " `--set optim.epochs=0` `--set optim.steps=8`\n"));
    free(page);
    assert_int_equal(grid("halving", ""), 0);
    wants("24 runs: 0 done, 14 had a result");
    /* What decides is in every result. */
    static const char edit[] = "sed -i s/map_%s_r/map_%s_r/ %s/halving/results/g-1-2-seed0.json";
    assert_int_equal(testing_run(output, sizeof output, edit, "at", "of", testing_folder()), 0);
    const int status = grid("halving", "");
    wants("g-1-2-seed0.json has no map_at_r of validation classes, which decides about its grid (remove");
    assert_int_equal(status, 1);
    assert_int_equal(testing_run(output, sizeof output, edit, "of", "at", testing_folder()), 0);
}

/* A round waits for the whole round before. With it, the same command goes on to the same end. */
static void test_halving_goes_on(void **state) {
    (void)state;
    make_grids();
    assert_int_equal(grid("stopped", "--only 'g-*-4'"), 0);
    wants("g-1-4 seed 0: waits for the result of g-1-2-seed0\n");
    wants("8 runs: 0 done, 0 had a result, 0 have one of another recipe, 8 wait for others, 0 failed");
    assert_int_equal(grid("stopped", "--only 'g-[123]-2,g-*-4'"), 0);
    wants("14 runs: 6 done, 0 had a result, 0 have one of another recipe, 8 wait for others, 0 failed");
    assert_int_equal(grid("stopped", ""), 0);
    wants("24 runs: 8 done, 6 had a result, 0 have one of another recipe, 10 dropped by halving");
    if (!tiny_exists("halving", "results")) test_halving(NULL);
    assert_int_equal(
        testing_run(output, sizeof output,
                    "cd %s && ls halving/results > a && ls stopped/results > b && cmp a b", testing_folder()),
        0);
}

static void test_grids_look_at_no_test_classes(void **state) {
    (void)state;
    make_grids();
    assert_int_equal(grid("looks", "-s eval.test=true"), 1);
    wants("kith: g-1-2: eval.test or eval.watch_test is true; a grid is chosen by validation classes");
    assert_int_equal(grid("looks", "-s data.validation=0"), 1);
    wants("kith: g-1-2: no classes are held out; wanted data.validation for a grid");
    if (strstr(output, "runs in")) fail_msg("something was run: %s", output);
}

/* eval as a whole does not bring the test classes back, and a combination that failed is said to have failed. */
static void test_grids_with_a_failure(void **state) {
    (void)state;
    char path[4096];
    make_list();
    snprintf(path, sizeof path, "%s/list/halving.yaml", testing_folder());
    testing_write(
        path,
        "rows:\n"
        "  - {name: g, recipe: plain, set: [data.validation=0.4], grid: {batch.classes: [2, 30], eval: "
        "[{test: true, every: 0}]}, halving: {keep: 1/2, steps: [2, 4]}}\n");
    assert_int_equal(grid("fails", "--seeds 1"), 1);
    wants("g-2-2 seed 0: failed: ");
    wants("g-2-4 seed 0: it failed with fewer steps\n");
    wants("4 runs: 2 done, ");
    make_grids();
}

/* What decides about a grid is one of the scores that a run writes. */
static void test_grids_by_a_recall(void **state) {
    (void)state;
    char path[4096];
    make_list();
    snprintf(path, sizeof path, "%s/list/halving.yaml", testing_folder());
    testing_write(path,
                  "rows:\n"
                  "  - {name: g, recipe: plain, set: [data.validation=0.4, 'eval.k=[1, 4]', "
                  "batch.classes=2], grid: {optim.lr: [1e-3, 1e-2]}, by: recall.3}\n");
    assert_int_equal(grid("by", ""), 1);
    wants("kith: g-1: by is 'recall.3', and eval.k is [1, 4]; wanted one of these\n");
    if (strstr(output, "runs in")) fail_msg("something was run: %s", output);
    if (grid("by", "-s 'eval.k=[1, 3]' -s optim.steps=2 --seeds 1") != 0) fail_msg("%s", output);
    wants("2 runs: 2 done");
    make_grids();
}

/* Variants of a run: in its result, with their curves, in the notes of the page, and as lines of a drawing. */
static void test_variants(void **state) {
    (void)state;
    char path[4096];
    make_list();
    snprintf(path, sizeof path, "%s/list/variants.yaml", testing_folder());
    testing_write(path,
                  "tables: [{name: all, title: All}]\n"
                  "rows:\n"
                  "  - {name: plain, table: all, set: ['objective.regularizers=[{name: horde, orders: 3, "
                  "dimension: 16, embedding: 8}]']}\n"
                  "  - {name: whole, of: plain, block: all_orders, table: all}\n"
                  "  - {name: on-test, of: plain, block: transductive_white, table: all}\n"
                  "  - {name: one, of: plain, block: order_3, table: all}\n"
                  "curves: [{name: lines, title: Lines, variants: plain}]\n");
    if (testing_run(output, sizeof output,
                    "cd %s && %s reproduce list/variants.yaml --seeds 1 --out variants/results --runs "
                    "variants/runs --page variants.md --pictures variants -s optim.steps=6 -s eval.every=2 "
                    "-s eval.select=last",
                    testing_folder(), testing_program()) != 0)
        fail_msg("%s", output);
    assert_true(number("variants", "plain-seed0", "curves.variants.seen.order_3.3.0") == 6);
    const double last = number("variants", "plain-seed0", "curves.variants.test.order_2.1.1");
    assert_true(fabs(last - number("variants", "plain-seed0", "result.order_2.recall.1")) < 1e-6);
    char *page = tiny_read(".", "variants.md"), *lines = tiny_read("variants", "lines.svg"), note[128];
    static const char *const names[] = {"test", "order_2", "order_3", "side_by_side"};
    double recall[N_ROWS(names)];
    for (size_t i = 0; i < N_ROWS(names); i++) {
        snprintf(note, sizeof note, "result.%s.recall.1", names[i]);
        recall[i] = 100 * number("variants", "plain-seed0", note);
    }
    snprintf(note, sizeof note,
             "* whole: R@1 without the PCA: embedding %.1f, order_2 %.1f, order_3 %.1f, side_by_side %.1f.\n",
             recall[0], recall[1], recall[2], recall[3]);
    if (!strstr(page, note)) fail_msg("no '%s' in %s", note, page);
    assert_non_null(strstr(page, "* on-test: transductive: its PCA is fitted on the test images"));
    snprintf(note, sizeof note, "| one | 1 | %.1f |", recall[2]);
    if (!strstr(page, note)) fail_msg("no '%s' in %s", note, page);
    assert_non_null(strstr(lines, ">embedding<"));
    assert_non_null(strstr(lines, ">order 3<"));
    free(page);
    free(lines);
}

/* ---- what goes wrong ---- */

static void test_a_failing_run_is_recorded(void **state) {
    (void)state;
    char list[4096];
    make_list();
    /* `other` wants more classes than there are; the rows behind it are run all the same. */
    snprintf(list, sizeof list, "%s/list/other.yaml", testing_folder());
    assert_int_equal(
        0,
        testing_run(output, sizeof output,
                    "cd %s/list && cp other.yaml other.good && sed -i 's/classes: 3/classes: 30/' other.yaml",
                    testing_folder()));
    assert_int_equal(1, reproduce("failing", "--seeds 1"));
    wants("2/3 other seed 0: failed:");
    wants("30 classes per batch asked of 9");
    wants("3 runs: 2 done, 0 had a result, 0 have one of another recipe, 1 failed");
    assert_true(tiny_exists("failing", "results/other-seed0.failed.json"));
    assert_true(tiny_exists("failing", "results/short-seed0.json"));
    char *page = tiny_read("failing", "page.md");
    assert_non_null(strstr(page, "## Runs that failed\n\n* other, seed 0: "));
    free(page);
    /* Mended, it is run by the next call, and the record of the failure goes. */
    assert_int_equal(
        0, testing_run(output, sizeof output, "cd %s/list && mv other.good other.yaml", testing_folder()));
    if (reproduce("failing", "--seeds 1") != 0) fail_msg("%s", output);
    wants("3 runs: 1 done, 2 had a result");
    assert_false(tiny_exists("failing", "results/other-seed0.failed.json"));
}

/* A mistake in the last recipe is said before the first is run. */
static void test_every_recipe_is_checked_first(void **state) {
    (void)state;
    static const struct {
        const char *edit, *wanted;
    } rows[] = {{"s/triplet/tripelt/", "kith: other: unknown loss 'tripelt' (did you mean 'triplet'?)"},
                {"s/embedding:/embeding:/", "embeding"}};
    make_list();
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        assert_int_equal(0, testing_run(output, sizeof output,
                                        "cd %s/list && cp other.yaml other.good && sed -i %s other.yaml",
                                        testing_folder(), rows[i].edit));
        const int status = reproduce("checked", "--seeds 1");
        char said[TINY_OUTPUT];
        snprintf(said, sizeof said, "%s", output);
        assert_int_equal(0, testing_run(output, sizeof output, "cd %s/list && mv other.good other.yaml",
                                        testing_folder()));
        assert_int_equal(status, 1);
        if (!strstr(said, rows[i].wanted) || tiny_count_lines(said) > 1) fail_msg("%s", said);
        assert_false(tiny_exists("checked", "results"));
    }
}

static void test_broken_results_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *wanted;
    } rows[] = {
        {"{\"row\": \"plain\"", "plain-seed0.json"},
        {"", "plain-seed0.json"},
        {"[1]", "is no result of kith reproduce"},
        {"{\"row\": \"plain\", \"recipe\": \"plain\", \"seed\": \"x\"}", "is no result of kith reproduce"},
        {"{\"row\": \"plain\", \"recipe\": \"plain\", \"seed\": 0, \"experiment_sha256\": \"e\", "
         "\"recipe_sha256\": "
         "\"c\", \"result\": {\"test\": {}}}",
         "wanted row, recipe, seed, hashes and a recall"},
    };
    char path[4096], make[4096];
    make_list();
    snprintf(make, sizeof make, "%s/broken", testing_folder());
    mkdir(make, 0777);
    snprintf(path, sizeof path, "%s/broken/results", testing_folder());
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/broken/results/plain-seed0.json", testing_folder());
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        testing_write(path, rows[i].text);
        for (int table = 0; table < 2; table++) {
            assert_int_equal(1, reproduce("broken", table ? "--table" : "--seeds 1"));
            wants(rows[i].wanted);
            wants("remove the file to run it again");
            if (strstr(output, ": runs in")) fail_msg("something was run: %s", output);
        }
        assert_false(tiny_exists("broken", "page.md"));
    }
}

static void test_bad_lists(void **state) {
    (void)state;
    static const struct {
        const char *text, *wanted;
    } rows[] = {
        {"rows: []\n", "there are no rows"},
        {"rows: [{name: a}]\nbows: 1\n", "did you mean 'rows'?"},
        {"rows: [{name: a, papr: {A: 1}}]\n", "did you mean 'paper'?"},
        {"rows: [{name: a/b}]\n", "wanted a name for a file"},
        {"rows: [{name: ..}]\n", "wanted a name for a file"},
        {"rows: [{name: a}, {name: a}]\n", "there are two rows called a"},
        {"rows: [{name: abc, baseline: abd}]\n", "did you mean 'abc'?"},
        {"rows: [{name: a, table: t}]\n", "there is no table t"},
        {"rows: [{name: a, of: b}, {name: b, of: a}]\n", "`of` names a row with runs of its own"},
        {"rows: [{name: a, paper: {A: x}}]\n", "wanted a number"},
        {"rows: [{name: a, set: 3}]\n", "wanted a list"},
        {"rows: [{name: a}]\norder: [{groups: [g]}]\n", "no row is in group g"},
        {"rows: [{name: a, group: g}]\norder: [{groups: [g], seeds: 0}]\n", "wanted all, or a number from 1"},
        {"rows: [{name: a}]\norders: [{title: t, rows: {b: 1}}]\n", "unknown row 'b'"},
        {"rows: [{name: a}]\ncurves: [{name: c, rows: [b]}]\n", "unknown row 'b'"},
        {"- 1\n", "wanted a map with rows"},
        {"rows: [{name: a, grid: {}}]\n", "a: grid is a map of 0; wanted keys with lists"},
        {"rows: [{name: a, grid: {optim.lr: 1}}]\n", "a: grid.optim.lr is '1'; wanted a list of values"},
        {"rows: [{name: a, grid: {a.b: [1]}, table: t}]\n", "a row with a grid goes without"},
        {"rows: [{name: a, halving: {steps: [1, 2]}}]\n", "a: halving goes with a grid"},
        {"rows: [{name: a, grid: {a.b: [1]}, halving: {keep: 2, steps: [1, 2]}}]\n", "halving.keep is '2'"},
        {"rows: [{name: a, grid: {a.b: [1]}, halving: {steps: [2, 2]}}]\n", "wanted rising numbers"},
        {"rows: [{name: a, grid: {a.b: [1]}, halving: {steps: [2]}}]\n", "wanted 2 to 16 rising numbers"},
        {"rows: [{name: a, grid: {a.b: [1]}, halving: {stops: [2]}}]\n", "did you mean 'steps'?"},
        {"rows: [{name: a, grid: {optim.steps: [1]}, halving: {steps: [1, 2]}}]\n",
         "a: grid has optim.steps, which is what halving sets"},
        {"rows: [{name: a, grid: {optim.epochs: [1]}, halving: {steps: [1, 2]}}]\n", "what halving sets"},
        {"rows: [{name: a, grid: {seed: [1]}}]\n", "grid has seed; --seeds runs every combination"},
        {"rows: [{name: a, grid: {seeds: [1]}}]\n", "grid has seeds; --seeds runs every combination"},
        {"rows: [{name: a, grid: {eval.test: [true]}}]\n", "does not look at the test classes"},
        {"rows: [{name: a, grid: {eval.watch_test: [true]}}]\n", "does not look at the test classes"},
        {"rows: [{name: a, grid: {folds: [2]}}]\n", "grid has folds; scores of different validation"},
        {"rows: [{name: a, grid: {data.fold: [2]}}]\n", "grid has data.fold; scores of different"},
        {"rows: [{name: a, grid: {data.folds: [2]}}]\n", "grid has data.folds; scores of different"},
        {"rows: [{name: a, grid: {data.0.validation: [0.1]}}]\n", "scores of different validation classes"},
        {"rows: [{name: a, grid: {data.split_seed: [1]}}]\n", "scores of different validation classes"},
        {"rows: [{name: a, grid: {a.b: [1]}, by: nmi}]\n", "by is 'nmi'; wanted map_at_r"},
        {"rows: [{name: a, grid: {a.b: [1]}, by: recall.x}]\n", "by is 'recall.x'; wanted map_at_r"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/bad.yaml", testing_folder());
        testing_write(path, rows[i].text);
        assert_int_equal(1, testing_run(output, sizeof output, "%s reproduce %s --table --page %s/bad.md",
                                        testing_program(), path, testing_folder()));
        wants(rows[i].wanted);
        if (tiny_count_lines(output) > 1) fail_msg("more than one line: %s", output);
    }
}

static void test_a_recipe_that_selects_on_test_fails(void **state) {
    (void)state;
    assert_int_equal(1, reproduce("habit", "--seeds 1 --only plain -s eval.select=test"));
    wants("chooses nothing on test classes");
    assert_false(tiny_exists("habit", "results/plain-seed0.json"));
}

/* ---- stopping and killing ---- */

static pid_t start(const char *out) {
    char make[4096];
    snprintf(make, sizeof make, "%s/%s", testing_folder(), out);
    mkdir(make, 0777);
    const char *line = command(out, "--seeds 1 -s optim.steps=40 -s eval.every=20 > /dev/null 2>&1");
    char whole[8300];
    snprintf(whole, sizeof whole, "exec %s", line);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return pid;
    execl("/bin/sh", "sh", "-c", whole, (char *)NULL);
    _exit(127);
}

static int finish(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void sleep_ms(int ms) {
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    nanosleep(&t, NULL);
}

static void assert_same_figures(const char *a, const char *b) {
    static const char *const names[] = {"plain-seed0", "other-seed0", "short-seed0"};
    static const char *const numbers[] = {"result.test.recall.1", "result.test.map_at_r", "result.test.nmi",
                                          "result.step", "result.best_on_test.step"};
    for (size_t i = 0; i < N_ROWS(names); i++) {
        for (size_t k = 0; k < N_ROWS(numbers); k++) {
            const double x = number(a, names[i], numbers[k]), y = number(b, names[i], numbers[k]);
            if (x != y) fail_msg("%s of %s: %.17g, undisturbed %.17g", numbers[k], names[i], y, x);
        }
    }
}

/* SIGKILL at many moments; then the same command goes on to the undisturbed figures. */
static void test_killed_and_gone_on_with(void **state) {
    (void)state;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    assert_int_equal(0, finish(start("calm")));
    clock_gettime(CLOCK_MONOTONIC, &end);
    const double whole_ms =
        1e3 * (double)(end.tv_sec - begin.tv_sec) + 1e-6 * (double)(end.tv_nsec - begin.tv_nsec);
    int n_killed = 0;
    for (int i = 1; i <= 8; i++) {
        const pid_t pid = start("killed");
        sleep_ms((int)(whole_ms * i / 20));
        kill(pid, SIGKILL);
        n_killed += finish(pid) == 128 + SIGKILL;
    }
    if (n_killed < 2) fail_msg("only %d of 8 were killed in time", n_killed);
    assert_int_equal(0, finish(start("killed")));
    assert_same_figures("calm", "killed");
    assert_int_equal(
        1, testing_run(output, sizeof output, "ls %s/killed/results | grep tmp-", testing_folder()));
}

/* What a killed process left half written goes when its run is taken up again; others may be at theirs. */
static void test_leftovers_are_cleared(void **state) {
    (void)state;
    assert_int_equal(0, testing_run(output, sizeof output,
                                    "mkdir -p %s/left/results && cd %s/left/results && touch "
                                    "plain-seed0.json.tmp-1-0 other-seed0.json.tmp-1-0",
                                    testing_folder(), testing_folder()));
    if (reproduce("left", "--seeds 1 --only plain") != 0) fail_msg("%s", output);
    assert_false(tiny_exists("left", "results/plain-seed0.json.tmp-1-0"));
    assert_true(tiny_exists("left", "results/other-seed0.json.tmp-1-0"));
}

/* SIGTERM: the step is finished and saved, the page is written, the status says what happened. */
static void test_stopped_and_gone_on_with(void **state) {
    (void)state;
    int status = 0;
    for (int ms = 400; ms >= 25; ms /= 2) { /* until one is caught at work */
        assert_int_equal(0, testing_run(output, sizeof output, "rm -rf %s/stopped", testing_folder()));
        const pid_t pid = start("stopped");
        for (int waited = 0; waited < 5000 && !tiny_exists("stopped", "runs"); waited += 5) sleep_ms(5);
        sleep_ms(ms);
        kill(pid, SIGTERM);
        status = finish(pid);
        if (status == 128 + SIGTERM) break;
    }
    assert_int_equal(status, 128 + SIGTERM);
    assert_true(tiny_exists("stopped", "page.md"));
    assert_int_equal(0, finish(start("stopped")));
    if (!tiny_exists("calm", "page.md")) assert_int_equal(0, finish(start("calm")));
    assert_same_figures("calm", "stopped");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overrides_in_order),
        cmocka_unit_test(test_files_are_named_after_the_list),
        cmocka_unit_test(test_the_page_is_checked_before_training),
        cmocka_unit_test(test_order_and_results),
        cmocka_unit_test(test_there_is_skipped),
        cmocka_unit_test(test_over_ranks),
        cmocka_unit_test(test_only_and_seed_from),
        cmocka_unit_test(test_stale_results),
        cmocka_unit_test(test_rows_are_compared),
        cmocka_unit_test(test_results_of_other_data),
        cmocka_unit_test(test_no_run_past_the_time),
        cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_variants),
        cmocka_unit_test(test_search_on_validation_classes),
        cmocka_unit_test(test_grid),
        cmocka_unit_test(test_halving),
        cmocka_unit_test(test_halving_goes_on),
        cmocka_unit_test(test_grids_look_at_no_test_classes),
        cmocka_unit_test(test_grids_with_a_failure),
        cmocka_unit_test(test_grids_by_a_recall),
        cmocka_unit_test(test_a_failing_run_is_recorded),
        cmocka_unit_test(test_every_recipe_is_checked_first),
        cmocka_unit_test(test_broken_results_are_refused),
        cmocka_unit_test(test_bad_lists),
        cmocka_unit_test(test_a_recipe_that_selects_on_test_fails),
        cmocka_unit_test(test_killed_and_gone_on_with),
        cmocka_unit_test(test_leftovers_are_cleared),
        cmocka_unit_test(test_stopped_and_gone_on_with),
    };
    return cmocka_run_group_tests_name("reproduce", tests, NULL, testing_tear_down);
}
