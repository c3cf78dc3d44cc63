/* A run started with relative paths, used from another folder, moved with its data, moved alone, and without its data. */
#include "kith/train.h"
#include "train/tiny.h"

static char output[TINY_OUTPUT];

static void shell(const char *fmt, ...) KITH_PRINTF(1, 2);
static void shell(const char *fmt, ...) {
    char command[8192];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    if (testing_run(output, sizeof output, "cd %s && %s", testing_folder(), command) != 0)
        fail_msg("%s: %s", command, output);
}

/* FOLDER/NAME/{data,split.csv,recipe.yaml,runs/x}: the run has all but its last steps and its result. */
static void make_project(const char *name, const char *more) {
    tiny_make();
    shell("mkdir %s && cp -r tiny %s/data && sed 's|root: .*/tiny|root: data|' tiny.yaml > %s/recipe.yaml",
          name, name, name);
    shell("cd %s && %s train recipe.yaml --out runs/x -q %s", name, testing_program(), more);
    shell(
        "cp -r %s/runs/x %s-whole && find %s/runs/x -name result.json -o -name model.safetensors -o -name "
        "'step-*30.safetensors' | xargs rm",
        name, name, name);
}

static void assert_same_model(const char *a, const char *b) {
    shell("cmp %s/model.safetensors %s/model.safetensors", a, b);
}

static int count_pictures(const char *run) {
    char *page = tiny_read(run, "report.html");
    int n = 0;
    for (const char *at = page; (at = strstr(at, "src=\"data:image/")); at++) n++;
    free(page);
    return n;
}

static void test_from_another_folder(void **state) {
    (void)state;
    make_project("here", "");
    const int n_pictures = count_pictures("here/runs/x");
    assert_true(n_pictures > 0);
    shell("mkdir other && cd other && %s train ../here/runs/x --resume -q", testing_program());
    assert_same_model("here-whole", "here/runs/x");
    shell("cd other && %s report ../here/runs/x", testing_program());
    assert_int_equal(count_pictures("here/runs/x"), n_pictures);
    shell("cd other && %s eval ../here/runs/x --recipe ../here/runs/x/recipe.yaml", testing_program());
    shell("cd other && %s data ../here/runs/x/recipe.yaml", testing_program());
    shell(
        "cd other && %s map ../here/runs/x/test/embedding.npy --images ../here/runs/x/test/paths.txt "
        "--perplexity 4 --iterations 20 -o map.svg",
        testing_program());
    if (!strstr(output, " 0 could not be read")) fail_msg("%s", output);
    /* A new run from the old one's recipe has the same data, and so has the run after that. */
    shell("cd other && %s train ../here/runs/x/recipe.yaml --out ../again -q --no-report", testing_program());
    shell("%s data again/recipe.yaml", testing_program());
    /* What --set names is relative to where one is. */
    shell(
        "cp -r here/data other/copy && cd other && %s train ../here/runs/x/recipe.yaml -s data.root=copy "
        "--out "
        "../copied -q --no-report",
        testing_program());
    shell("%s data copied/recipe.yaml", testing_program());
}

/* Another place, another name for the run, and nothing left of the old. */
static void test_moved_with_its_data(void **state) {
    (void)state;
    make_project("first", "");
    const int n_pictures = count_pictures("first/runs/x");
    shell("mv first second && mv second/runs/x second/runs/y && %s train second/runs/y --resume -q",
          testing_program());
    assert_same_model("first-whole", "second/runs/y");
    shell("rm second/runs/y/report.html && %s report second/runs/y", testing_program());
    assert_int_equal(count_pictures("second/runs/y"), n_pictures);
}

/* The folder of several runs has a recipe of its own. */
static void test_several_runs_moved(void **state) {
    (void)state;
    make_project("many", "-s seeds=2 -s optim.steps=6 -s checkpoint.every=3");
    shell("rm -f many/runs/x/seed-*/checkpoints/*6.safetensors");
    shell("mv many few && %s train few/runs/x --resume -q", testing_program());
    assert_same_model("many-whole/seed-1", "few/runs/x/seed-1");
}

static void test_moved_alone(void **state) {
    (void)state;
    make_project("alone", "");
    const int n_pictures = count_pictures("alone/runs/x");
    shell("mkdir deep && mv alone/runs/x deep/x && %s train deep/x --resume -q", testing_program());
    assert_same_model("alone-whole", "deep/x");
    shell("rm deep/x/report.html && %s report deep/x", testing_program());
    assert_int_equal(count_pictures("deep/x"), n_pictures);
}

/* Images that are gone do not cost the page that has them. */
static void test_a_page_with_pictures_is_kept(void **state) {
    (void)state;
    make_project("kept", "");
    shell("mv kept/data data2");
    if (testing_run(output, sizeof output, "cd / && %s train %s/kept/runs/x --resume -q", testing_program(),
                    testing_folder()) != 1 ||
        !strstr(output, "kept/data: ") || !strstr(output, "--set data.root=…"))
        fail_msg("%s", output);
    shell(
        "mv data2 kept/data && mv kept-whole kept/runs/whole && rm -r kept/data && cp "
        "kept/runs/whole/report.html before.html");
    if (testing_run(output, sizeof output, "%s report %s/kept/runs/whole", testing_program(),
                    testing_folder()) != 1)
        fail_msg("%s", output);
    if (!strstr(output, "report.html is kept: it has ") || !strstr(output, "No such file"))
        fail_msg("%s", output);
    shell("cmp before.html kept/runs/whole/report.html");
    shell(
        "%s report kept/runs/whole -o without.html && rm kept/runs/whole/report.html && %s report "
        "kept/runs/whole",
        testing_program(), testing_program());
}

/* The model that came with kith is found from everywhere; a path of its name would be found nowhere. */
static void test_names_are_no_paths(void **state) {
    (void)state;
    tiny_make();
    assert_int_equal(setenv("KITH_MODELS", testing_folder(), 1), 0);
    shell("%s train tiny.yaml --out teacher -q --no-report -s optim.steps=2 -s eval.every=2",
          testing_program());
    shell("cp teacher/model.safetensors general.safetensors");
    make_project("taught",
                 "-s 'teachers=[{weights: general}]' -s 'objective.regularizers=[{name: match, weight: 1}]'");
    shell("mkdir aside && cd aside && %s train ../taught/runs/x --resume -q", testing_program());
    assert_same_model("taught-whole", "taught/runs/x");
    shell(
        "cd aside && %s train ../taught/runs/x/recipe.yaml --out ../begun -q --no-report -s "
        "model.weights=general",
        testing_program());
    shell(
        "grep -q 'weights: general' begun/recipe.yaml && cp -r begun aside/moved && cd aside && "
        "%s train moved/recipe.yaml --out ../again-begun -q --no-report",
        testing_program());
    assert_same_model("begun", "again-begun");
    if (testing_run(output, sizeof output,
                    "cd %s/aside && %s train ../begun/recipe.yaml --out ../none -s model.weights=hub:no-such",
                    testing_folder(), testing_program()) == 0 ||
        !strstr(output, "no-such") || strstr(output, "aside/hub:"))
        fail_msg("%s", output);
    unsetenv("KITH_MODELS");
}

/* All tar files of a text are found, and none may be missing. */
static void test_several_tars(void **state) {
    (void)state;
    tiny_make();
    shell("mkdir tars && cd tiny && tar cf ../tars/a.tar glyph0000* && tar cf ../tars/b.tar glyph0001*");
    shell("cd tars && %s train ../tiny.yaml -s data.root=a.tar::b.tar --out x -q --no-report",
          testing_program());
    shell("mkdir behind && cd behind && %s train ../tars/x/recipe.yaml --out ../all -q --no-report",
          testing_program());
    assert_same_model("tars/x", "all");
    shell("cd tars && %s train x/recipe.yaml --out ../set -s data.root=b.tar::a.tar -q --no-report",
          testing_program());
    shell(
        "cd behind && %s train ../set/recipe.yaml --out ../set-again -s "
        "data.root=../tars/b.tar::../tars/a.tar "
        "-q --no-report",
        testing_program());
    assert_same_model("set", "set-again");
    if (testing_run(output, sizeof output,
                    "cd %s/tars && %s train x/recipe.yaml --out y -s "
                    "data.root=a.tar::c.tar::b.tar",
                    testing_folder(), testing_program()) == 0 ||
        !strstr(output, "c.tar: there is no such file"))
        fail_msg("%s", output);
}

/* The report and the map call classes by their names. */
static void test_classes_have_names(void **state) {
    (void)state;
    tiny_make();
    shell("cp -r tiny named && mv named/glyph00012 'named/wren & <Owl>'");
    shell("%s train tiny.yaml --out birds -s data.root=named -q", testing_program());
    char *page = tiny_read("birds", "report.html");
    static const char *const wanted[] = {"<title>class glyph00013: ", "<title>class wren &amp; &lt;Owl&gt;: ",
                                         "alt=\"query of class glyph", "<span>✓ glyph"};
    for (size_t i = 0; i < N_ROWS(wanted); i++) {
        if (!strstr(page, wanted[i])) fail_msg("no '%s' in the page", wanted[i]);
    }
    free(page);
    shell(
        "%s map birds/test/embedding.npy -y birds/test/labels.npy --names birds/test/classes.txt "
        "--perplexity 4 "
        "--iterations 20 -o birds.svg",
        testing_program());
    char *svg = tiny_read(".", "birds.svg");
    if (!strstr(svg, "<title>wren &amp; &lt;Owl&gt;</title>")) fail_msg("no name in the map: %.1000s", svg);
    free(svg);
    /* A run without the file has numbers. */
    shell("rm birds/test/classes.txt birds/report.html && %s report birds", testing_program());
    page = tiny_read("birds", "report.html");
    if (strstr(page, "class glyph") || !strstr(page, "<title>class 1")) fail_msg("no numbers in the page");
    free(page);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_another_folder),          cmocka_unit_test(test_moved_with_its_data),
        cmocka_unit_test(test_several_runs_moved),           cmocka_unit_test(test_moved_alone),
        cmocka_unit_test(test_a_page_with_pictures_is_kept), cmocka_unit_test(test_classes_have_names),
        cmocka_unit_test(test_names_are_no_paths),           cmocka_unit_test(test_several_tars),
    };
    return cmocka_run_group_tests_name("train/moved", tests, NULL, testing_tear_down);
}
