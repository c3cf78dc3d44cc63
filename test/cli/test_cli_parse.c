/* The option parser, with a command of its own. The program's helpers are no library: they are
 * compiled into this test. */
#include "cli/busy.c"
#include "cli/cli.c"
#include "cli/destination.c"
#include "cli/progress.c"
#include "cli/signals.c"
#include "cli/wrap.c"
#include "support/testing.h"

#include <stdlib.h>
#include <unistd.h>

static char output[16384];

/* Run `call` with standard output and error in `output`. */
static void capture(void (*call)(void *context), void *context) {
    char path[4200];
    snprintf(path, sizeof path, "%s/output", testing_folder());
    fflush(stdout);
    fflush(stderr);
    const int saved_out = dup(STDOUT_FILENO), saved_err = dup(STDERR_FILENO);
    FILE *file = fopen(path, "w+");
    assert_non_null(file);
    dup2(fileno(file), STDOUT_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    call(context);
    fflush(stdout);
    fflush(stderr);
    dup2(saved_out, STDOUT_FILENO);
    dup2(saved_err, STDERR_FILENO);
    close(saved_out);
    close(saved_err);
    rewind(file);
    output[fread(output, 1, sizeof output - 1, file)] = '\0';
    fclose(file);
}

typedef struct sample {
    const char *line; /* the words after the command */
    bool json;
    int64_t batch;
    double rate;
    const char *out;
    cli_list set;
    int tap;
    int least, most;
    int status, argc;
    char words[4096], *argv[100];
} sample;

static const char *const taps[] = {"pooled", "embedding", NULL};

static sample make_sample(const char *line) {
    return (sample){.line = line, .batch = 32, .rate = 0.5, .most = -1};
}

static void parse(void *context) {
    sample *s = context;
    const cli_option options[] = {
        CLI_FLAG("json", &s->json, "print JSON"),
        CLI_INT("batch", "N", &s->batch, 1, 64, "items per step"),
        CLI_REAL("rate", "R", &s->rate, 0, INFINITY, "how fast"),
        CLI_TEXT("out|o", "FILE", &s->out, "where the result goes"),
        CLI_LIST("set", "KEY=VALUE", &s->set, "change a setting"),
        CLI_CHOICE("tap", "TAP", &s->tap, taps, "what is read"),
        CLI_END,
    };
    const cli_usage usage = {.operands = "FILE…", .least = s->least, .most = s->most, .options = options};
    snprintf(s->words, sizeof s->words, "help %s", s->line);
    s->argc = 0;
    for (char *word = strtok(s->words, " "); word; word = strtok(NULL, " ")) s->argv[s->argc++] = word;
    s->status = cli_parse(&usage, &s->argc, s->argv);
}

static void test_forms_of_an_option(void **state) {
    (void)state;
    static const char *const lines[] = {
        "--batch 8 --rate 1e-3 --out x --json --set a=1 --set b=2 --tap embedding in1 in2",
        "--batch=8 --rate=1e-3 --out=x --json --set=a=1 --set=b=2 --tap=embedding in1 in2",
        "in1 --batch 8 -o x --rate 1e-3 in2 --set a=1 --json --tap embedding --set b=2",
        "--batch 4 --batch 8 -ox --rate 1e-3 --set a=1 --json --tap embedding --set b=2 -- in1 in2",
    };
    for (size_t i = 0; i < N_ROWS(lines); i++) {
        sample s = make_sample(lines[i]);
        capture(parse, &s);
        assert_string_equal(output, "");
        assert_int_equal(s.status, CLI_RUN);
        assert_true(s.json);
        assert_int_equal(s.batch, 8);
        assert_true(s.rate == 1e-3);
        assert_string_equal(s.out, "x");
        assert_int_equal(s.set.n_items, 2);
        assert_string_equal(s.set.item[0], "a=1");
        assert_string_equal(s.set.item[1], "b=2");
        assert_int_equal(s.tap, 1);
        assert_int_equal(s.argc, 3);
        assert_string_equal(s.argv[1], "in1");
        assert_string_equal(s.argv[2], "in2");
    }
}

static void test_nothing_given_leaves_the_defaults(void **state) {
    (void)state;
    sample s = make_sample("");
    capture(parse, &s);
    assert_int_equal(s.status, CLI_RUN);
    assert_int_equal(s.argc, 1);
    assert_false(s.json);
    assert_int_equal(s.batch, 32);
    assert_null(s.out);
}

static void test_odd_words(void **state) {
    (void)state;
    sample s = make_sample("--rate -0 - -- --json");
    s.rate = 7;
    capture(parse, &s);
    assert_string_equal(output, "");
    assert_true(s.rate == 0);
    assert_int_equal(s.argc, 3);
    assert_string_equal(s.argv[1], "-");
    assert_string_equal(s.argv[2], "--json");
    assert_false(s.json);
}

static void test_misuse_is_one_line_and_status_2(void **state) {
    (void)state;
    static const struct {
        const char *line, *wanted;
    } rows[] = {
        {"--batch 0", "--batch is '0'; wanted a whole number from 1 to 64"},
        {"--batch 65", "--batch is '65'; wanted a whole number from 1 to 64"},
        {"--batch=eight", "--batch is 'eight'; wanted a whole number from 1 to 64"},
        {"--batch=", "--batch is ''; wanted a whole number from 1 to 64"},
        {"--rate -1", "--rate is '-1'; wanted a number from 0"},
        {"--rate nan", "--rate is 'nan'; wanted a number from 0"},
        {"--tap pool", "--tap is 'pool'; wanted one of pooled, embedding"},
        {"--json=yes", "--json takes no value"},
        {"--out", "--out wants a value (FILE)"},
        {"-o", "-o wants a value (FILE)"},
        {"--out --json", "--out wants a value (FILE)"},
        {"--bacth 8", "unknown option '--bacth'; did you mean '--batch'?"},
        {"--bacth=8", "unknown option '--bacth'; did you mean '--batch'?"},
        {"--zzzzzzz", "unknown option '--zzzzzzz'"},
        {"-x", "unknown option '-x'"},
        {"--bat 8", "unknown option '--bat'; did you mean '--batch'?"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        sample s = make_sample(rows[i].line);
        char wanted[300];
        snprintf(wanted, sizeof wanted, "kith: help: %s (see kith help help)\n", rows[i].wanted);
        capture(parse, &s);
        assert_string_equal(output, wanted);
        assert_int_equal(s.status, CLI_USAGE);
    }
}

static void test_number_of_operands(void **state) {
    (void)state;
    sample s = make_sample("a b c");
    s.least = 1, s.most = 2;
    capture(parse, &s);
    assert_int_equal(s.status, CLI_USAGE);
    assert_string_equal(output, "kith: help: 'c' is one too many; wants FILE… (see kith help help)\n");
    s.line = "";
    capture(parse, &s);
    assert_int_equal(s.status, CLI_USAGE);
    assert_string_equal(output, "kith: help: wants FILE… (see kith help help)\n");
    s.line = "a b";
    capture(parse, &s);
    assert_int_equal(s.status, CLI_RUN);
}

static void test_too_many_items(void **state) {
    (void)state;
    char line[1000] = "";
    for (int i = 0; i <= CLI_MOST_ITEMS; i++) strncat(line, "--set=a ", sizeof line - strlen(line) - 1);
    sample s = make_sample(line);
    capture(parse, &s);
    assert_int_equal(s.status, CLI_USAGE);
    assert_string_equal(output, "kith: help: --set is given more than 64 times (see kith help help)\n");
}

static void test_help_is_made_from_the_rows(void **state) {
    (void)state;
    sample s = make_sample("a b --bacth --help");
    s.least = s.most = 1;
    capture(parse, &s);
    assert_int_equal(s.status, CLI_OK);
    static const char *const wanted[] = {
        "usage: kith help [options] FILE…\n",
        "\n  --json                  print JSON\n",
        "\n  --batch N               items per step (default 32)\n",
        "\n  --rate R                how fast (default 0.5)\n",
        "\n  -o, --out FILE          where the result goes\n",
        "\n  --set KEY=VALUE         change a setting (may be repeated)\n",
        "\n  --tap TAP               what is read: pooled, embedding (default pooled)\n",
        "\n  --help                  show this text\n",
    };
    for (size_t i = 0; i < N_ROWS(wanted); i++) {
        if (!strstr(output, wanted[i])) fail_msg("no '%s' in: %s", wanted[i], output);
    }
}

static void wrap(void *context) { cli_print_wrapped(stdout, context, 26); }

static void test_long_help_is_wrapped(void **state) {
    (void)state;
    static char text[] =
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen";
    capture(wrap, text);
    assert_string_equal(output,
                        "one two three four five six seven eight nine ten eleven\n"
                        "                          twelve thirteen fourteen fifteen\n");
}

static int longest_line(const char *text) {
    int most = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const int n = cli_text_columns(line, strcspn(line, "\n"));
        if (n > most) most = n;
    }
    return most;
}

/* Help fits the width that COLUMNS says, and uses it. */
static void test_help_fits_columns(void **state) {
    (void)state;
    static const int widths[] = {40, 60, 84, 120};
    int before = 0;
    for (size_t i = 0; i < N_ROWS(widths); i++) {
        assert_int_equal(
            testing_run(output, sizeof output, "COLUMNS=%d %s help train", widths[i], testing_program()), 0);
        const int longest = longest_line(output);
        if (longest > widths[i] || longest <= before)
            fail_msg("the longest line has %d columns, of COLUMNS=%d: %s", longest, widths[i], output);
        before = longest;
    }
    /* Nonsense is not a width. */
    assert_int_equal(testing_run(output, sizeof output, "COLUMNS=x %s help train", testing_program()), 0);
    assert_true(longest_line(output) <= 84);
    assert_int_equal(testing_run(output, sizeof output, "COLUMNS=1 %s help train", testing_program()), 0);
    assert_true(longest_line(output) > 40);
}

static void paragraphs(void *context) { cli_print_paragraphs(context); }

static void test_paragraphs(void **state) {
    (void)state;
    static char text[] = "one\ntwo\n\nthree:\n  four\n  five\nsix\n";
    capture(paragraphs, text);
    assert_string_equal(output, "one two\n\nthree:\n  four\n  five\nsix\n");
}

static void fail_twice(void *context) {
    kith_error err = {.message = "x.npy: no header"};
    int *status = context;
    status[0] = cli_fail(&err);
    snprintf(err.hint, sizeof err.hint, "is it an .npy file?");
    status[1] = cli_fail(&err);
}

static void test_fail_prints_message_and_hint(void **state) {
    (void)state;
    int status[2] = {0};
    capture(fail_twice, status);
    assert_string_equal(output, "kith: x.npy: no header\nkith: x.npy: no header (is it an .npy file?)\n");
    assert_int_equal(status[0], 1);
    assert_int_equal(status[1], 1);
}

/* A run whose clock says it began `seconds` ago. */
static void run_progress(void *context) {
    const double seconds = *(const double *)context;
    cli_progress p;
    cli_progress_begin(&p, "embedding", 200);
    p.began -= 2 * seconds;
    p.drawn -= 2 * seconds;
    cli_progress_update(&p, 25, NULL); /* the first count is late: the pace begins with it */
    p.pace.began -= seconds;
    p.drawn -= seconds;
    cli_progress_update(&p, 50, NULL);
    cli_progress_update(&p, 51, NULL); /* too soon after the line before */
    cli_progress_update(&p, 200, "loss 0.31");
    cli_progress_end(&p);
}

static void test_progress_in_a_pipe(void **state) {
    (void)state;
    double seconds = 0;
    capture(run_progress, &seconds);
    assert_string_equal(output, "");
    seconds = 100;
    capture(run_progress, &seconds);
    assert_string_equal(output,
                        "embedding 25/200\nembedding 50/200, 10:00 left\nembedding 200/200, loss 0.31\n");
}

/* No time is promised before it means something. */
static void test_pace(void **state) {
    (void)state;
    cli_pace pace = {0};
    assert_true(isnan(cli_pace_left(&pace, 900, 0, 100)));     /* nothing done yet */
    assert_true(isnan(cli_pace_left(&pace, 1000, 8, 100)));    /* the first count */
    assert_true(isnan(cli_pace_left(&pace, 1001.9, 10, 100))); /* too soon after it */
    assert_true(isnan(cli_pace_left(&pace, 1050, 8, 100)));    /* nothing done since */
    assert_true(cli_pace_left(&pace, 1010, 28, 100) == 36);
    assert_true(isnan(cli_pace_left(&pace, 1060, 100, 100)));
}

static void check_busy(cli_busy *busy, const kith_train_event *e, double now, const char *wanted) {
    char line[256];
    assert_string_equal(wanted, cli_busy_text(e, cli_busy_left(busy, now, e), line, sizeof line));
}

/* Judging shows its count and, once it means something, the time left, for each split on its own. */
static void test_judging_line(void **state) {
    (void)state;
    cli_busy busy = {0};
    kith_train_event e = {
        .n_steps = 150, .text = "judging", .split = "validation", .n_done = 32, .n_all = 889};
    check_busy(&busy, &e, 10, "step 0/150  judging validation 32/889");
    e.n_done = 132;
    check_busy(&busy, &e, 20, "step 0/150  judging validation 132/889, 1:15 left");
    e.split = "test", e.n_done = 232, e.n_all = 1000;
    check_busy(&busy, &e, 30, "step 0/150  judging test 232/1000");
    e.split = NULL, e.step = 150;
    check_busy(&busy, &e, 31, "step 150/150  judging 232/1000");
}

/* What is printed can be typed. */
static void test_words_for_a_shell(void **state) {
    (void)state;
    static const struct {
        const char *word, *wanted;
    } rows[] = {{"runs/a-1", "runs/a-1"}, {"my run", "'my run'"}, {"", "''"},         {"it's", "'it'\\''s'"},
                {"$HOME", "'$HOME'"},     {"~/run", "'~/run'"},   {"a\nb", "'a\nb'"}, {"x=é", "'x=é'"}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char text[64], cut[4], printed[64];
        assert_int_equal(cli_quote(rows[i].word, text, sizeof text), strlen(rows[i].wanted));
        assert_string_equal(text, rows[i].wanted);
        assert_int_equal(0, testing_run(printed, sizeof printed, "printf %%s %s", text));
        assert_string_equal(printed, rows[i].word);
        assert_int_equal(cli_quote(rows[i].word, cut, sizeof cut), strlen(rows[i].wanted));
        assert_int_equal(strlen(cut), strlen(rows[i].wanted) < 3 ? strlen(rows[i].wanted) : 3);
    }
    char *words[] = {"train", "my recipe.yaml", "-s", "data.root=a b"};
    char *line = cli_command_text(4, words);
    assert_string_equal(line, "kith train 'my recipe.yaml' -s 'data.root=a b'");
    free(line);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms_of_an_option),
        cmocka_unit_test(test_nothing_given_leaves_the_defaults),
        cmocka_unit_test(test_odd_words),
        cmocka_unit_test(test_misuse_is_one_line_and_status_2),
        cmocka_unit_test(test_number_of_operands),
        cmocka_unit_test(test_too_many_items),
        cmocka_unit_test(test_help_is_made_from_the_rows),
        cmocka_unit_test(test_long_help_is_wrapped),
        cmocka_unit_test(test_help_fits_columns),
        cmocka_unit_test(test_paragraphs),
        cmocka_unit_test(test_fail_prints_message_and_hint),
        cmocka_unit_test(test_progress_in_a_pipe),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_judging_line),
        cmocka_unit_test(test_words_for_a_shell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
