/* Install into an empty folder, then compile and run a program against what was installed, as a
 * user of the library would: pkg-config, shared and static. */
#include <stdio.h>
#include <string.h>

#include "base/sanitizer.h"
#include "house/elf.h"
#include "kith/version.h"
#include "support/testing.h"

static char output[65536], root[128];

#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

/* Enough to need everything the library stands on: a network is built, planned and run. */
static const char program[] =
    "#include <kith/kith.h>\n"
    "#include <stdio.h>\n"
    "#include <string.h>\n"
    "int main(void) {\n"
    "    static float images[2 * 3 * 32 * 32], out[2 * 16];\n"
    "    kith_error err;\n"
    "    kith_model *model = NULL;\n"
    "    kith_model_options options = {.size = sizeof(kith_model_options), .backbone = \"convnet4\", "
    ".channels = 3, .height = 32, .width = 32,\n"
    "                                  .embedding = 16};\n"
    "    for (int i = 0; i < 2 * 3 * 32 * 32; i++) images[i] = (float)(i % 7);\n"
    "    if (kith_model_open(&options, &model, &err) != KITH_OK ||\n"
    "        kith_model_embed_floats(model, images, 2, \"embedding\", out, &err) != KITH_OK) {\n"
    "        fprintf(stderr, \"%s\\n\", err.message);\n"
    "        return 1;\n"
    "    }\n"
    "    kith_model_free(model);\n"
    "    printf(\"%s %s\\n\", kith_version(), out[0] != out[1] ? \"differ\" : \"same\");\n"
    "    return strcmp(kith_version(), KITH_VERSION) != 0;\n"
    "}\n";

static void assert_runs(int status) {
    if (status != 0) fail_msg("exit status %d: %s", status, output);
}

static int install(void **state) {
    (void)state;
    snprintf(root, sizeof root, "%s/stage", testing_folder());
    char path[128];
    snprintf(path, sizeof path, "%s/user.c", testing_folder());
    FILE *file = fopen(path, "w");
    if (!file || fputs(program, file) < 0 || fclose(file) != 0) return -1;
    const int status =
        run("DESTDIR=%s cmake --install \"$(dirname %s)\" --prefix /opt/kith", root, testing_program());
    if (status != 0) print_error("%s\n", output);
    return status;
}

static void test_everything_is_there(void **state) {
    (void)state;
    static const char *const files[] = {
        "bin/kith",
        "lib/libkith.so",
        "lib/libkith.so.0.2",
        "lib/libkith.a",
        "lib/pkgconfig/kith.pc",
        "share/man/man1/kith.1",
        "share/bash-completion/completions/kith",
        "share/zsh/site-functions/_kith",
        "share/fish/vendor_completions.d/kith.fish",
        "share/kith/recipes/quickstart.yaml",
        "share/kith/recipes/features.yaml",
        "include/kith/status.h",
        "include/kith/log.h",
        "include/kith/array.h",
        "include/kith/kith.h",
        "include/kith/experimental/bench.h",
    };
    for (size_t i = 0; i < N_ROWS(files); i++) {
        if (run("test -s %s/opt/kith/%s", root, files[i]) != 0) fail_msg("%s was not installed", files[i]);
    }
    assert_runs(run("test -s %s/opt/kith/lib/libkith.so.%s", root, KITH_VERSION));
    assert_runs(run("%s/opt/kith/bin/kith --version", root));
    assert_string_equal(output, "kith " KITH_VERSION "\n");
}

static void test_soname(void **state) {
    (void)state;
    assert_runs(run("readelf -d %s/opt/kith/lib/libkith.so", root));
    assert_non_null(strstr(output, "Library soname: [libkith.so.0.2]"));
}

/* The recipes are found where they were installed, from any folder. */
static void test_recipes_are_found(void **state) {
    (void)state;
    char wanted[256];
    snprintf(wanted, sizeof wanted, "source    %s/opt/kith/share/kith/recipes/photos.yaml\n", root);
    assert_runs(run("cd / && COLUMNS=500 %s/opt/kith/bin/kith list recipes photos", root));
    if (!strstr(output, wanted)) fail_msg("no '%s' in: %s", wanted, output);
    assert_runs(run("cd / && %s/opt/kith/bin/kith train recipe:photos --print-recipe", root));
}

/* So is the model where none is named, with what the tree says of it. */
static void test_the_model_is_found(void **state) {
    (void)state;
    if (run("test -f %s/models/general.safetensors", testing_source()) != 0) skip();
    assert_runs(
        run("cd %s && for file in models/*.safetensors models/*.md; do [ ! -f \"$file\" ] || "
            "cmp \"$file\" %s/opt/kith/share/kith/\"$file\" || exit 1; done",
            testing_source(), root));
    assert_runs(
        run("cd %s && unset KITH_MODELS && %s/opt/kith/bin/kith synth drawn --classes 2 --images 2 && "
            "%s/opt/kith/bin/kith embed drawn -o drawn.npy 2>&1",
            testing_folder(), root, root));
    assert_non_null(strstr(output, "kith: model: general ("));
    assert_non_null(strstr(output, "drawn.npy: float32 [4, 256]"));
}

static void test_no_path_of_the_build_is_installed(void **state) {
    (void)state;
    assert_runs(
        run("cat %s/opt/kith/lib/pkgconfig/kith.pc %s/opt/kith/share/man/man1/kith.1 "
            "%s/opt/kith/lib/cmake/kith/*",
            root, root, root));
    assert_null(strstr(output, KITH_SOURCE_DIR));
    assert_false(testing_has_placeholder(output));
}

static void test_no_folder_of_the_build_is_searched(void **state) {
    (void)state;
    char find[512];
    snprintf(find, sizeof find, "printf '%%s\\n' %s/opt/kith/bin/kith %s/opt/kith/lib/libkith.so", root,
             root);
    assert_runs(elf_bad_paths(output, sizeof output, find, KITH_SOURCE_DIR));
    assert_string_equal(output, "");
    assert_runs(run("ldd %s/opt/kith/bin/kith", root));
    assert_null(strstr(output, "not found"));
}

static void compile_and_run(const char *mode, const char *libs) {
    if (KI_ASAN || KI_TSAN) skip(); /* the program would have to be built with the sanitizers too */
    assert_runs(
        run("cd %s && export PKG_CONFIG_PATH=%s/opt/kith/lib/pkgconfig && "
            "cc -std=c11 -Wall -Wextra -Werror $(pkg-config --cflags kith) user.c -o user-%s %s && "
            "LD_LIBRARY_PATH=%s/opt/kith/lib ./user-%s",
            testing_folder(), root, mode, libs, root, mode));
    assert_string_equal(output, KITH_VERSION " differ\n");
}

static void test_shared(void **state) {
    (void)state;
    compile_and_run("shared", "$(pkg-config --libs kith)");
    assert_runs(run("ldd %s/user-shared", testing_folder()));
    assert_non_null(strstr(output, "libkith.so.0.2"));
}

static void test_static(void **state) {
    (void)state;
    compile_and_run("static", "$(pkg-config --static --libs kith | sed 's/-lkith/-l:libkith.a/')");
    assert_runs(run("ldd %s/user-static", testing_folder()));
    assert_null(strstr(output, "libkith"));
}

/* A project of somebody else's, by find_package. */
static void build_project(const char *target) {
    if (KI_ASAN || KI_TSAN) skip();
    assert_runs(
        run("cd %s && mkdir -p %s && cp user.c %s && printf '%%s\\n' 'cmake_minimum_required(VERSION 3.20)' "
            "'project(user C)' 'find_package(kith 0.2 REQUIRED)' 'add_executable(user user.c)' "
            "'target_link_libraries(user kith::%s)' > %s/CMakeLists.txt && "
            "cmake -S %s -B %s/build -DCMAKE_PREFIX_PATH=%s/opt/kith > /dev/null && cmake --build %s/build > "
            "/dev/null",
            testing_folder(), target, target, target, target, target, target, root, target));
    assert_runs(run("%s/%s/build/user", testing_folder(), target));
    assert_string_equal(output, KITH_VERSION " differ\n");
    assert_runs(run("ldd %s/%s/build/user", testing_folder(), target));
}

static void test_cmake_shared(void **state) {
    (void)state;
    build_project("kith");
    assert_non_null(strstr(output, "libkith.so.0.2"));
}

static void test_cmake_static(void **state) {
    (void)state;
    build_project("static");
    assert_null(strstr(output, "libkith"));
}

/* Another minor version is another library. */
static void test_cmake_refuses_another_version(void **state) {
    (void)state;
    assert_runs(
        run("mkdir -p %s/other && printf 'cmake_minimum_required(VERSION 3.20)\\nproject(user C)\\n"
            "find_package(kith 0.1 REQUIRED)\\n' > %s/other/CMakeLists.txt",
            testing_folder(), testing_folder()));
    assert_int_not_equal(run("cmake -S %s/other -B %s/other/build -DCMAKE_PREFIX_PATH=%s/opt/kith",
                             testing_folder(), testing_folder(), root),
                         0);
    assert_non_null(strstr(output, "not accepted"));
}

/* The program in README.md, as it stands there. */
static void test_the_program_of_the_readme(void **state) {
    (void)state;
    if (KI_ASAN || KI_TSAN) skip();
    assert_runs(
        run("cd %s && awk '/^```$/ { on = 0 } on; /^```c$/ { on = 1 }' %s/README.md > embed.c && "
            "export PKG_CONFIG_PATH=%s/opt/kith/lib/pkgconfig && "
            "for compiler in 'gcc -std=c99' 'g++ -x c++ -std=c++20'; do "
            "$compiler -Wall -Wextra -Wpedantic -Werror embed.c $(pkg-config --cflags --libs kith) && "
            "LD_LIBRARY_PATH=%s/opt/kith/lib ./a.out %s/docs/pictures/report.png || exit 1; done",
            testing_folder(), testing_source(), root, root, testing_source()));
    float first = 0, second = 0;
    assert_int_equal(sscanf(output, "%f %f …", &first, &second), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_is_there),
        cmocka_unit_test(test_soname),
        cmocka_unit_test(test_recipes_are_found),
        cmocka_unit_test(test_the_model_is_found),
        cmocka_unit_test(test_no_path_of_the_build_is_installed),
        cmocka_unit_test(test_no_folder_of_the_build_is_searched),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_static),
        cmocka_unit_test(test_cmake_shared),
        cmocka_unit_test(test_cmake_static),
        cmocka_unit_test(test_cmake_refuses_another_version),
        cmocka_unit_test(test_the_program_of_the_readme),
    };
    return cmocka_run_group_tests(tests, install, NULL);
}
