/* HEIC and AVIF as a plugin: without it, without libheif and with both, as the program says it. */
#include <stdio.h>
#include <string.h>

#include "support/testing.h"

static char output[65536];

#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

static void assert_runs(int status) {
    if (status != 0) fail_msg("exit status %d: %s", status, output);
}

static void assert_says(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

/* A JPEG and a HEIC in one class, a PNG and an AVIF in another. */
static const char *photos(void) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/photos", testing_folder());
    assert_runs(
        run("mkdir -p %s/a %s/b && cd %s/test/corpus/image && cp ok_rgb.jpg ok_lossy_irot_90.heic %s/a && "
            "cp ok_rgb.png ok_lossy_alpha.avif %s/b",
            path, path, testing_source(), path, path));
    return path;
}

/* The program with its plugins in this folder; NULL: where it finds them by itself. */
static int kith(const char *plugins, const char *words) {
    return plugins ? run("KITH_PLUGINS=%s %s %s 2>&1", plugins, testing_program(), words)
                   : run("%s %s 2>&1", testing_program(), words);
}

static void test_the_program_does_not_link_libheif(void **state) {
    (void)state;
    assert_runs(run("readelf -dW %s \"$(dirname %s)\"/src/libkith.so", testing_program(), testing_program()));
    assert_says("NEEDED");
    if (strstr(output, "[libheif") || strstr(output, "[libx265")) fail_msg("libheif is linked:\n%s", output);
}

static void test_with_the_plugin(void **state) {
    (void)state;
    char words[4200];
    if (!KITH_HEIF) skip();
    snprintf(words, sizeof words, "data %s", photos());
    assert_runs(kith(NULL, words));
    assert_says("4 images, 2 classes");
}

/* Files that cannot be read are named with what to install; the others are used. */
static void assert_left_out(const char *plugins, const char *why) {
    char words[8400];
    snprintf(words, sizeof words, "data %s", photos());
    assert_runs(kith(plugins, words));
    assert_says("2 images, 2 classes");
    assert_says("2 HEIC or AVIF images");
    assert_says("needs libheif 1.15 or newer (Debian, Ubuntu: libheif1)");
    assert_says(why);
    snprintf(words, sizeof words, "embed --backbone convnet4 %s/a/ok_lossy_irot_90.heic -o %s/x.npy",
             photos(), testing_folder());
    assert_int_not_equal(kith(plugins, words), 0);
    assert_says("a HEIC or AVIF image needs libheif 1.15 or newer (Debian, Ubuntu: libheif1)");
    assert_says(why);
}

static void test_without_the_plugin(void **state) {
    (void)state;
    char empty[4096];
    snprintf(empty, sizeof empty, "%s/empty", testing_folder());
    assert_runs(run("mkdir -p %s", empty));
    assert_left_out(empty, "there is no plugin");
}

/* The plugin as on a machine without libheif: it links a library of a name that does not exist. */
static void test_without_libheif(void **state) {
    (void)state;
    char folder[4096];
    if (!KITH_HEIF) skip();
    snprintf(folder, sizeof folder, "%s/without", testing_folder());
    assert_runs(run(
        "mkdir -p %s && sed 's/libheif[.]so[.]1/libhe1f.so.1/' \"$(dirname %s)\"/lib/kith/libkith-heif.so "
        "> %s/libkith-heif.so",
        folder, testing_program(), folder));
    assert_left_out(folder, "libhe1f.so.1: cannot open shared object file");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_program_does_not_link_libheif),
        cmocka_unit_test(test_with_the_plugin),
        cmocka_unit_test(test_without_the_plugin),
        cmocka_unit_test(test_without_libheif),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
