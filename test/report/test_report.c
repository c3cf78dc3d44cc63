/* The report of a run: what it holds, what it leaves out, and that nothing in a run's files can get into
 * the page as markup. */
#include <dirent.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/file.h"
#include "kith/log.h"
#include "kith/report.h"
#include "report/made_run.h"
#include "report/markup.h"

static char output[65536];
#define run_command(...) testing_run(output, sizeof output, __VA_ARGS__)

/* A small run, new for every test. */
static made_run small;
static char folder[512], images[512];

static const char *in_run(const char *name) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int set_up(void **state) {
    (void)state;
    snprintf(images, sizeof images, "%s/images", testing_folder());
    if (access(images, R_OK) != 0) {
        KITH_OPTIONS(kith_synth_options, s);
        s.n_classes = 6, s.n_images = 8, s.side = 32;
        kith_error err;
        assert_ok(kith_synth_write(images, &s, NULL, NULL, &err), &err);
    }
    snprintf(folder, sizeof folder, "%s/run", testing_folder());
    assert_int_equal(run_command("rm -rf %s", folder), 0);
    small = (made_run){.folder = folder,
                       .images = images,
                       .n_test = 48,
                       .n_classes = 6,
                       .dim = 24,
                       .n_steps = 600,
                       .n_logged = 60,
                       .seed = 3};
    made_whole(&small);
    return 0;
}

static kith_report_options quick(void) {
    KITH_OPTIONS(kith_report_options, o);
    o.n_queries = 4;
    o.n_neighbors = 3;
    return o;
}

static char *page_of(const kith_report_options *options) {
    kith_error err = {0};
    char *page = NULL;
    size_t n = 0;
    assert_ok(kith_report_write(folder, options, &err), &err);
    assert_ok(ki_file_read(in_run("report.html"), 8 << 20, &page, &n, &err), &err);
    assert_int_equal(strlen(page), n);
    assert_well_formed(page);
    return page;
}

static void assert_holds(const char *page, const char *text) {
    if (!strstr(page, text)) fail_msg("no '%s' in the page", text);
}
static void assert_lacks(const char *page, const char *text) {
    const char *at = strstr(page, text);
    if (at) fail_msg("'%s' in the page: %.120s", text, at);
}

static int count_of(const char *page, const char *text) {
    int n = 0;
    for (const char *at = page; (at = strstr(at, text)); at += strlen(text)) n++;
    return n;
}

static void test_holds_every_part(void **state) {
    (void)state;
    const kith_report_options o = quick();
    char *page = page_of(&o);
    static const char *const parts[] = {"<h1>run</h1>",
                                        "binomial + horde on convnet4, 64-d; data: images",
                                        ">61.5<small> %</small>",
                                        "95 % interval 60.3 to 62.8; untrained 34.1",
                                        "The model of step 360 was chosen by its MAP@R on validation classes",
                                        "0123456789abcdef0123456789abcdef01234567",
                                        "id=\"seen\"",
                                        "unseen: validation classes",
                                        "seen: 100 training classes, 5,864 images",
                                        "R@1 by each variant alone, validation classes",
                                        ">the embedding<",
                                        "order 2<",
                                        "Total loss",
                                        "<b>horde</b>",
                                        "Learning rate",
                                        "Gradient norm: embedding",
                                        "Images per second",
                                        "Pairs that count",
                                        "Warning at step 40: 3 images could not be read &amp; were replaced",
                                        "Nearest neighbour wrong",
                                        "Nearest neighbour right",
                                        "class=\"right\"",
                                        "class=\"wrong\"",
                                        "✓",
                                        "✗",
                                        "data:image/",
                                        "class=\"map\"",
                                        "Distances of test pairs",
                                        "Weights of training pairs",
                                        "backbone: convnet4"};
    for (size_t i = 0; i < N_ROWS(parts); i++) assert_holds(page, parts[i]);
    assert_lacks(page, "Left out");
    assert_int_equal(count_of(page, "<div class=\"hits\""), 4);
    assert_int_equal(count_of(page, "<div class=\"right\"") + count_of(page, "<div class=\"wrong\""), 12);
    ki_free(page);
}

/* Two scores of the test classes are two marks, not a line; and where no training classes were scored nothing speaks of a
 * seen curve. */
static void test_curves_where_measured(void **state) {
    (void)state;
    const kith_report_options o = quick();
    assert_int_equal(
        run_command("cd '%s' && sed -i '/\"split\":\"seen\"/d' log.jsonl && for step in 0 600; do echo "
                    "'{\"kind\":\"eval\",\"step\":'$step',\"split\":\"test\",\"recall\":{\"1\":0.5},"
                    "\"map_at_r\":0.25}' >> log.jsonl; done",
                    folder),
        0);
    char *page = page_of(&o);
    assert_lacks(page, "seen curve");
    assert_lacks(page, "Seen against unseen");
    assert_holds(page, "<h2>Unseen classes</h2>");
    assert_holds(page, "unseen: validation classes");
    const char *test = strstr(page, "data-n=\"unseen: test classes\"");
    assert_non_null(test);
    const char *points = strstr(test, "points=\"");
    assert_non_null(points);
    if (strncmp(points, "points=\"\"", 9) != 0) fail_msg("a line of two points: %.200s", test);
    assert_int_equal(strncmp(strstr(points, ">"), ">\n<circle class=\"dot c1\"", 24), 0);
    ki_free(page);
}

/* Nothing is fetched: pictures are data, and the only addresses are names of namespaces. */
static void test_loads_nothing(void **state) {
    (void)state;
    const kith_report_options o = quick();
    char *page = page_of(&o);
    assert_int_equal(count_of(page, "src=\""), count_of(page, "src=\"data:image/"));
    assert_int_equal(count_of(page, "href=\""), count_of(page, "href=\"data:"));
    assert_int_equal(count_of(page, "://"), count_of(page, "'http://www.w3.org/2000/svg'"));
    assert_lacks(page, "url(");
    assert_lacks(page, "@import");
    ki_free(page);
}

static void test_same_folder_same_bytes(void **state) {
    (void)state;
    const kith_report_options o = quick();
    char *one = page_of(&o), *two = page_of(&o);
    assert_string_equal(one, two);
    ki_free(one);
    ki_free(two);
}

static void test_missing_parts_are_named(void **state) {
    (void)state;
    static const struct {
        const char *file, *says, *lacks;
    } rows[] = {
        {"log.jsonl", "Left out: the run folder has no log.jsonl.", "Total loss"},
        {"result.json", "No result yet: the run was interrupted or is still going on, at step 600 of 5,000.",
         ">61.5<"},
        {"run.json", "Left out: the run folder has no run.json.", "0123456789abcdef"},
        {"recipe.yaml", "Left out: the run folder has no recipe.yaml.", "backbone: convnet4"},
        {"test", "Left out: the run folder has no test folder.", "data:image/"},
        {"pairs.json", "Left out: the run folder has no pairs.json.", "Distances of test pairs"},
        {"test/paths.txt", "Left out: ", "data:image/"}};
    const kith_report_options o = quick();
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        made_whole(&small);
        assert_int_equal(run_command("rm -r %s", in_run(rows[i].file)), 0);
        char *page = page_of(&o);
        assert_holds(page, rows[i].says);
        assert_lacks(page, rows[i].lacks);
        ki_free(page);
    }
    /* Nothing but the log of a run that has just begun. */
    assert_int_equal(
        run_command("cd %s && rm -rf result.json run.json recipe.yaml test pairs.json && head -n 3 "
                    "log.jsonl > l && mv l log.jsonl",
                    folder),
        0);
    char *page = page_of(&o);
    assert_holds(page, "Total loss");
    assert_int_equal(count_of(page, "Left out: "), 6);
    ki_free(page);
}

static void keep_line(void *user, kith_log_level level, const char *line) {
    (void)level;
    snprintf(user, 512, "%s", line);
}

/* A damaged file costs its own part, in one line that says what is wrong with it. */
static void test_damaged_parts_are_named(void **state) {
    (void)state;
    static const struct {
        const char *command, *says;
    } rows[] = {
        {"truncate -s 900 test/embedding.npy", "test/embedding.npy"},
        {"truncate -s 40 test/labels.npy", "test/labels.npy"},
        {"cp test/embedding.npy test/labels.npy",
         "test/labels.npy is float32 with 2 dimensions; wanted integers [48]"},
        {"head -n 40 test/paths.txt > p && mv p test/paths.txt", "holds 40 paths for 48 embeddings"},
        {"echo '{' > pairs.json", "pairs.json:"},
        {"echo '{\"distance\":{\"edges\":[0,1,1],\"positive\":[1,2]}}' > pairs.json",
         "&#39;distance&#39; in pairs.json is not n counts of each kind and n + 1 rising edges"},
        {"echo '[1]' > result.json", "result.json: wanted a JSON object"},
    };
    const kith_report_options o = quick();
    char line[512] = "";
    kith_log_set(keep_line, line, KITH_LOG_WARNING);
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        made_whole(&small);
        line[0] = '\0';
        assert_int_equal(run_command("cd %s && %s", folder, rows[i].command), 0);
        char *page = page_of(&o);
        assert_holds(page, rows[i].says);
        assert_holds(page, "Left out: ");
        if (!line[0]) fail_msg("no warning for: %s", rows[i].command);
        ki_free(page);
    }
    kith_log_set(NULL, NULL, KITH_LOG_WARNING);
}

/* A run that scored no test images, or whose loss has no pairs, is nothing to warn of. */
static void test_histograms_that_no_run_has(void **state) {
    (void)state;
    const kith_report_options o = quick();
    char line[512] = "";
    made_whole(&small);
    assert_int_equal(run_command("echo '{}' > %s", in_run("pairs.json")), 0);
    kith_log_set(keep_line, line, KITH_LOG_WARNING);
    char *page = page_of(&o);
    kith_log_set(NULL, NULL, KITH_LOG_WARNING);
    assert_holds(page, "no test images were scored");
    assert_holds(page, "the loss gives no weights to pairs");
    assert_string_equal(line, "");
    ki_free(page);
}

/* Images that were moved away leave frames without pictures, and one line. */
static void test_images_that_are_gone(void **state) {
    (void)state;
    const kith_report_options o = quick();
    small.images = NULL;
    made_test(&small);
    char *page = page_of(&o);
    assert_lacks(page, "data:image/");
    assert_holds(page, "16 pictures could not be read; the first: ");
    assert_holds(page, "pictures of the map that could not be read, and are dots: ");
    assert_int_equal(count_of(page, ">no picture<"), 16);
    assert_holds(page, "<circle cx=");
    ki_free(page);
}

/* Whatever stands in a run's files is text. */
static void test_hostile_text_is_escaped(void **state) {
    (void)state;
    static const char evil[] = "</script><script>alert(1)</script>\\\" onload=alert(1) x='&\\u0001";
    char text[8192], nested[600] = "";
    memset(nested, '[', 500);
    snprintf(text, sizeof text,
             "{\"kind\":\"step\",\"step\":1,\"total\":1,\"lr\":null,\"terms\":{\"%s\":2}}\n"
             "{\"kind\":\"eval\",\"step\":1,\"split\":\"%s\",\"recall\":{\"1\":0.5}}\n"
             "{\"kind\":\"warning\",\"text\":\"%s\"}\n{\"kind\":\"%s\",\"step\":\"%s\"}\n"
             "{\"kind\":\"step\",\"step\":1e999}\n{\"kind\":\"step\",\"step\":-4,\"total\":1}\nnull\n\n%"
             "s\n\xff\xfe\n"
             "{\"kind\":\"step\",\"step\":2,\"total\":1e99,\"terms\":{\"a\":1e-300,\"b\":true}}\n"
             "{\"kind\":\"step\",\"step\":3,\"total\":\"<b>\",\"terms\":7,\"lr\":{\"a\":{\"b\":1}}}\n{"
             "\"kind\":\"st",
             evil, evil, evil, evil, evil, nested);
    made_text(&small, "log.jsonl", text);
    snprintf(text, sizeof text,
             "{\"selection\":\"%s\",\"selection_metric\":\"%s\",\"%s\":\"%s\",\"step\":3,\"test\":{"
             "\"recall\":{\"1\":0.5}}}",
             evil, evil, evil, evil);
    made_text(&small, "result.json", text);
    made_text(&small, "run.json", text);
    made_text(&small, "recipe.yaml",
              "model: {backbone: \"<img src=x onerror=alert(1)>\", embedding: '<i>'}\n"
              "data: {root: \"</style><script>alert(1)</script>\"}\nobjective: {loss: {name: \"<u>\"}, "
              "regularizers: "
              "[{name: \"</section>\"}, 3]}\n");
    FILE *f = made_open(&small, "test/paths.txt");
    for (int i = 0; i < 48; i++) fprintf(f, "x/\"><script>alert(%d)</script>\xff\t'.jpg\n", i);
    fclose(f);
    const kith_report_options o = quick();
    char *page = page_of(&o);
    static const char *const never[] = {"<script>alert",        "<img src=x", "<u>", "<i>",
                                        " onload=alert(1) x='", "\xff",       "\x01"};
    for (size_t i = 0; i < N_ROWS(never); i++) assert_lacks(page, never[i]);
    assert_int_equal(count_of(page, "<script>"), 1);
    assert_holds(page, "6 of 13 lines of the log could not be read (the first is line 5)");
    assert_holds(page, "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot; onload");
    ki_free(page);
}

static void test_selection_on_test_is_said(void **state) {
    (void)state;
    made_text(&small, "result.json",
              "{\"step\":10,\"selection\":\"test\",\"test\":{\"recall\":{\"1\":0.5}}}");
    const kith_report_options o = quick();
    char *page = page_of(&o);
    assert_holds(page,
                 "<p class=\"warn\">The model of step 10 was chosen <b>on the test classes themselves</b>");
    ki_free(page);
}

/* Three seeds at 60.5, 61.5 and 63.5: mean 61.83, t(2) = 4.303, s = 1.5275: ± 3.79. */
static void test_repeated_runs(void **state) {
    (void)state;
    static const double shift[] = {-0.01, 0, 0.02};
    assert_int_equal(run_command("rm -rf %s && mkdir %s", folder, folder), 0);
    for (int i = 0; i < 3; i++) {
        char sub[600];
        made_run run = small;
        snprintf(sub, sizeof sub, "%s/seed-%d", folder, i + 8);
        run.folder = sub;
        made_whole(&run);
        made_result(&run, shift[i]);
    }
    made_text(&small, "result.json",
              "{\"selection\":\"validation\",\"test\":{\"recall\":{\"1\":{\"mean\":0.61833,\"low\":0.58,"
              "\"high\":0.657}}}}");
    const kith_report_options o = quick();
    char *page = page_of(&o);
    const char *first = strstr(page, ">seed-8</a>"), *last = strstr(page, ">seed-10</a>");
    assert_true(first && last && first < last);
    assert_holds(page, "<b>61.8</b> <span class=\"quiet\">± 3.8</span>");
    assert_holds(page, "95 % interval 58.0 to 65.7");
    assert_holds(page, "Curves and pictures below are of seed-8.");
    assert_holds(page, "Total loss");
    ki_free(page);
    /* Folds of seeds. */
    assert_int_equal(
        run_command("cd %s && mkdir fold-1 fold-2 && mv seed-8 seed-9 fold-1 && mv seed-10 fold-2", folder),
        0);
    page = page_of(&o);
    assert_holds(page, "<a href=\"fold-1/seed-9/report.html\">fold-1/seed-9</a>");
    assert_holds(page, "Curves and pictures below are of fold-1/seed-8.");
    assert_holds(page, "<b>61.8</b> <span class=\"quiet\">± 3.8</span>");
    ki_free(page);
}

static void test_no_run_is_one_line(void **state) {
    (void)state;
    kith_error err = {0};
    char empty[600];
    snprintf(empty, sizeof empty, "%s/empty", testing_folder());
    mkdir(empty, 0777);
    assert_int_equal(kith_report_write("/nonexistent/run", NULL, &err), KITH_EIO);
    assert_string_equal(err.message, "/nonexistent/run: there is no such folder");
    assert_int_equal(kith_report_write(empty, NULL, &err), KITH_EFORMAT);
    assert_non_null(strstr(err.message, "holds nothing of a run"));
    assert_int_equal(run_command("ls %s | wc -l", empty), 0);
    assert_string_equal(output, "0\n");
    kith_report_options o = quick();
    o.out = "/nonexistent/report.html";
    assert_int_equal(kith_report_write(folder, &o, &err), KITH_EIO);
    o.n_neighbors = 33;
    assert_int_equal(kith_report_write(folder, &o, &err), KITH_EINVAL);
    assert_string_equal(err.message, "33 neighbours; wanted 1 to 32");
}

static void test_command_line(void **state) {
    (void)state;
    assert_int_equal(run_command("%s report %s", testing_program(), folder), 0);
    assert_non_null(strstr(output, "/run/report.html\n"));
    assert_int_equal(run_command("%s report %s -o %s/other.html --points 0 --queries 0", testing_program(),
                                 folder, testing_folder()),
                     0);
    assert_int_equal(run_command("grep -c 'id=\"map\"' %s/other.html", testing_folder()), 1);
    assert_int_equal(run_command("%s report %s/none", testing_program(), folder), 1);
    assert_int_equal(strcspn(output, "\n") + 1, strlen(output));
    assert_int_equal(run_command("%s report", testing_program()), 2);
}

/* Every allocation in turn: no memory is an error or costs a picture, and nothing is lost or half
 * written. */
/* The folder of kith train PHOTOS: what was tried, and what more photos would bring. */
static void test_how_it_was_found(void **state) {
    (void)state;
    const kith_report_options options = quick();
    char *page = page_of(&options);
    assert_lacks(page, "How the model was found");
    ki_free(page);
    made_text(
        &small, "tune.json",
        "{\"n_photos_used\": 48, \"n_train_classes\": 4, \"n_duplicates\": 0, \"n_leaks\": 3, \"findings\": ["
        "{\"kind\": \"leak\", \"text\": \"<i>.jpg twice\", \"left_out\": [\"a/<i>.jpg\"]}, "
        "{\"kind\": \"near\", \"text\": \"b and c look alike\", \"left_out\": []}], \"why\": \"<b> gained "
        "2.0 "
        "points\", "
        "\"advice\": \"twice as many classes would likely bring little\", \"curve_of\": \"a layer\", "
        "\"curve\": ["
        "{\"of\": \"classes\", \"classes\": 2, \"gain_recall_at_1\": 0.01, \"gain_map_at_r\": 0.02}, "
        "{\"of\": \"classes\", \"classes\": 4, \"gain_recall_at_1\": 0.03, \"gain_map_at_r\": 0.04}], "
        "\"tried\": ["
        "{\"way\": \"as it is\", \"rounds\": 2, \"folds\": 4, \"recall_at_1\": 0.5, \"map_at_r\": 0.25, "
        "\"gain_recall_at_1\": 0, \"gain_map_at_r\": 0, \"gain\": 0, \"gain_within\": 0, \"won\": false}, "
        "{\"way\": \"a layer\", \"rounds\": 2, \"folds\": 4, \"recall_at_1\": 0.52, \"map_at_r\": 0.3, "
        "\"gain_recall_at_1\": 0.02, \"gain_map_at_r\": 0.05, \"gain\": 0.035, \"gain_within\": 0.012, "
        "\"won\": true}]}");
    page = page_of(&options);
    static const char *const parts[] = {
        "How the model was found",
        "&lt;b&gt; gained 2.0 points.",
        "<b>a layer</b>, the winner",
        "+3.5 <span class=\"quiet\">± 1.2</span>",
        "classes that train</dt><dd>4</dd>",
        "left out: in the test, too</dt><dd>3</dd>",
        "Photos that were left out</summary>\n<ul>\n<li>&lt;i&gt;.jpg twice</li>",
        "only noted of the photos</summary>\n<ul>\n<li>b and c look alike</li>",
        "twice as many classes would likely bring little.",
        "Gain by classes"};
    for (size_t i = 0; i < N_ROWS(parts); i++) assert_holds(page, parts[i]);
    assert_lacks(page, "there twice");
    if (strstr(page, "a layer</b>") > strstr(page, "as it is")) fail_msg("the best way is not the first");
    ki_free(page);
    made_text(&small, "tune.json", "{\"why\":");
    page = page_of(&options);
    assert_lacks(page, "How the model was found");
    ki_free(page);
}

static void test_without_memory(void **state) {
    (void)state;
    kith_report_options o = quick();
    kith_error err = {0};
    char *page = page_of(&o);
    kith_memory_stats before, after;
    kith_memory_stats_get(&before);
    assert_ok(kith_report_write(folder, &o, &err), &err);
    kith_memory_stats_get(&after);
    const int64_t n = (int64_t)(after.n_allocations - before.n_allocations);
    int n_failed = 0;
    for (int64_t i = 0; i < n; i += 1 + i / 60) {
        kith_memory_stats_get(&before);
        ki_alloc_fail_after(i);
        const kith_status status = kith_report_write(folder, &o, &err);
        ki_alloc_fail_after(-1);
        kith_memory_stats_get(&after);
        if (status != KITH_OK && status != KITH_ENOMEM)
            fail_msg("allocation %lld: %s", (long long)i, err.message);
        n_failed += status == KITH_ENOMEM;
        if (after.live_bytes != before.live_bytes)
            fail_msg("allocation %lld of %lld: %lld bytes lost", (long long)i, (long long)n,
                     (long long)(after.live_bytes - before.live_bytes));
    }
    print_message("%lld allocations, %d failures\n", (long long)n, n_failed);
    assert_true(n_failed > 20);
    char *again = page_of(&o);
    assert_string_equal(page, again);
    ki_free(page);
    ki_free(again);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_holds_every_part, set_up),
        cmocka_unit_test_setup(test_curves_where_measured, set_up),
        cmocka_unit_test_setup(test_loads_nothing, set_up),
        cmocka_unit_test_setup(test_same_folder_same_bytes, set_up),
        cmocka_unit_test_setup(test_missing_parts_are_named, set_up),
        cmocka_unit_test_setup(test_damaged_parts_are_named, set_up),
        cmocka_unit_test_setup(test_histograms_that_no_run_has, set_up),
        cmocka_unit_test_setup(test_images_that_are_gone, set_up),
        cmocka_unit_test_setup(test_hostile_text_is_escaped, set_up),
        cmocka_unit_test_setup(test_selection_on_test_is_said, set_up),
        cmocka_unit_test_setup(test_repeated_runs, set_up),
        cmocka_unit_test_setup(test_no_run_is_one_line, set_up),
        cmocka_unit_test_setup(test_command_line, set_up),
        cmocka_unit_test_setup(test_how_it_was_found, set_up),
        cmocka_unit_test_setup(test_without_memory, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
