/* kith import, kith export --torch and --half: state dicts of PyTorch in and out, and half-width files, as a user types them. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kith/array.h"
#include "support/testing.h"

static char output[65536];

#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

static const char *in_folder(const char *name) {
    static char path[16][512];
    static int turn;
    turn = (turn + 1) % 16;
    snprintf(path[turn], sizeof path[turn], "%s/%s", testing_folder(), name);
    return path[turn];
}

static kith_tensors *open_tensors(const char *name) {
    kith_error err;
    kith_tensors *tensors = NULL;
    assert_ok(kith_tensors_open(in_folder(name), &tensors, &err), &err);
    return tensors;
}

static void assert_value(const kith_tensors *tensors, const char *name, int64_t at, double wanted) {
    kith_array view;
    kith_error err;
    assert_ok(kith_tensors_get(tensors, name, &view, &err), &err);
    assert_int_equal(view.dtype, KITH_F32);
    const double found = (double)((const float *)view.data)[at];
    if (found != wanted) fail_msg("%s[%d] is %g, wanted %g", name, (int)at, found, wanted);
}

/* test/corpus/make_pth.py says what the tensors hold: the i-th of the file i + 0.25, i + 0.5 … */
static void test_pth(void **state) {
    (void)state;
    static const char *const files[] = {"ok_state_dict", "ok_module_cadene", "ok_checkpoint", "ok_half",
                                        "ok_parameters"};
    for (size_t i = 0; i < N_ROWS(files); i++) {
        if (run("%s import %s/test/corpus/pth/%s.pth --backbone convnet4 --settings width=4 --channels 1 -o "
                "%s",
                testing_program(), testing_source(), files[i], in_folder("m.safetensors")) != 0)
            fail_msg("%s: %s", files[i], output);
        kith_tensors *m = open_tensors("m.safetensors");
        assert_value(m, "conv1.weight", 0, 0.25);
        assert_value(m, "conv1.weight", 35, 9);
        assert_value(m, "bn1.running_var", 3, 5);
        assert_value(m, "conv4.weight", 1, 18.5);
        assert_value(m, "fc.weight", 11, 27);
        assert_value(m, "fc.bias", 2, 25.75);
        assert_string_equal(kith_tensors_metadata(m, "kith.backbone"), "convnet4");
        assert_int_equal(kith_tensors_count(m), 22);
        kith_tensors_free(m);
        assert_int_equal(run("%s embed %s --generate 2", testing_program(), in_folder("m.safetensors")), 0);
    }
}

/* Out and in again: the embedding layer goes by the classifier's name, and batch norms have counters. */
static void test_round_trip(void **state) {
    (void)state;
    const char *program = testing_program();
    assert_int_equal(
        run("%s embed --backbone resnet50 --crop 64 --embedding 8 --seed 5 --save %s --generate 2", program,
            in_folder("r.safetensors")),
        0);
    assert_int_equal(
        run("%s export %s --torch -o %s", program, in_folder("r.safetensors"), in_folder("t.safetensors")),
        0);
    kith_tensors *own = open_tensors("r.safetensors"), *torch = open_tensors("t.safetensors");
    kith_array a, b;
    kith_error err;
    assert_ok(kith_tensors_get(own, "embedding.weight", &a, &err), &err);
    assert_ok(kith_tensors_get(torch, "fc.weight", &b, &err), &err);
    assert_int_equal(b.dim[0], 8);
    assert_int_equal(b.dim[1], 2048);
    assert_memory_equal(a.data, b.data, 8 * 2048 * sizeof(float));
    /* What torchvision's resnet50(num_classes=8).state_dict() has: 320 entries, 53 of them counters. */
    assert_int_equal(kith_tensors_count(torch), 320);
    assert_ok(kith_tensors_get(torch, "layer4.2.bn3.num_batches_tracked", &b, &err), &err);
    assert_int_equal(b.n_dims, 0);
    assert_int_equal(b.dtype, KITH_I64);
    kith_tensors_free(torch);
    assert_int_equal(run("%s import %s --backbone resnet50 -o %s", program, in_folder("t.safetensors"),
                         in_folder("i.safetensors")),
                     0);
    kith_tensors *again = open_tensors("i.safetensors");
    assert_ok(kith_tensors_get(own, "layer3.5.conv2.weight", &a, &err), &err);
    assert_ok(kith_tensors_get(again, "layer3.5.conv2.weight", &b, &err), &err);
    assert_memory_equal(a.data, b.data, (size_t)kith_array_count(&a) * sizeof(float));
    kith_tensors_free(own);
    kith_tensors_free(again);
}

/* Half as large, read as any model; what it cannot be is refused before anything is written. */
static void test_half(void **state) {
    (void)state;
    const char *program = testing_program();
    assert_int_equal(run("%s embed --backbone convnet4 --embedding 8 --seed 5 --save %s --generate 2",
                         program, in_folder("own.safetensors")),
                     0);
    assert_int_equal(
        run("%s export %s --half -o %s", program, in_folder("own.safetensors"), in_folder("h.safetensors")),
        0);
    assert_non_null(strstr(output, "the model, its weights in float16"));
    kith_tensors *half = open_tensors("h.safetensors");
    kith_array a;
    kith_error err;
    assert_ok(kith_tensors_get(half, "conv2.weight", &a, &err), &err);
    assert_int_equal(a.dtype, KITH_F16);
    assert_ok(kith_tensors_get(half, "bn2.running_var", &a, &err), &err);
    assert_int_equal(a.dtype, KITH_F32);
    kith_tensors_free(half);
    assert_int_equal(run("%s embed %s --generate 2", program, in_folder("h.safetensors")), 0);
    static const char *const misused[] = {"--torch -o %s/no.safetensors", "--normalize -o %s/no.safetensors",
                                          "--tap map -o %s/no.safetensors", "-o %s/no.onnx"};
    for (size_t i = 0; i < N_ROWS(misused); i++) {
        char arguments[400];
        snprintf(arguments, sizeof arguments, misused[i], testing_folder());
        assert_int_equal(run("%s export %s --half %s", program, in_folder("own.safetensors"), arguments), 2);
    }
    assert_int_not_equal(access(in_folder("no.safetensors"), F_OK), 0);
    assert_int_not_equal(access(in_folder("no.onnx"), F_OK), 0);
}

/* The source would be lost: by its name, by another name for it, and by that of its folder. */
static void test_the_source_is_not_written_over(void **state) {
    (void)state;
    const char *program = testing_program(), *folder = testing_folder();
    assert_int_equal(
        run("cd %s && mkdir over && %s embed --backbone convnet4 --seed 5 --save over/model.safetensors "
            "--generate 2 && "
            "cp over/model.safetensors kept && ln over/model.safetensors hard.safetensors && ln -s "
            "over/model.safetensors soft.safetensors",
            folder, program),
        0);
    static const char *const rows[] = {
        "export over/model.safetensors --half -o over/model.safetensors",
        "export over --half -o over/model.safetensors", "export over --torch -o hard.safetensors",
        "export over/model.safetensors --half -o soft.safetensors",
        "import over/model.safetensors --backbone convnet4 -o hard.safetensors"};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        assert_int_equal(run("cd %s && %s %s", folder, program, rows[i]), 2);
        if (!strstr(output, "wanted another")) fail_msg("%s: %s", rows[i], output);
        assert_one_line_of(output);
        assert_int_equal(run("cd %s && cmp kept over/model.safetensors", folder), 0);
    }
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *arguments;
        int status;
        const char *text;
    } rows[] = {
        {"bad_system.pth --backbone convnet4 -o x.safetensors", 1,
         "the pickle names posix.system; wanted tensors and nothing else"},
        {"bad_eval.pth --backbone convnet4 -o x.safetensors", 1, "the pickle names __builtin__.eval"},
        {"bad_legacy.pth --backbone convnet4 -o x.safetensors", 1,
         "bad_legacy.pth is a pickle without a zip archive, which torch.save wrote before PyTorch 1.6; "
         "wanted a state "
         "dict in safetensors or as torch.save writes it (in PyTorch 1.13 or later: torch.save(torch.load("},
        {"bad_empty.pth --backbone convnet4 -o x.safetensors", 1,
         "bad_empty.pth is empty; wanted a state dict"},
        {"bad_whole_model.pth --backbone convnet4 -o x.safetensors", 1,
         "the pickle names torch.nn.modules.linear.Linear"},
        {"ok_state_dict.pth --backbone resnet50 -o x.safetensors", 1, "tensors do not fit resnet50: "},
        {"ok_state_dict.pth --backbone nosuch -o x.safetensors", 1, "unknown backbone 'nosuch'"},
        {"ok_state_dict.pth -o x.safetensors", 2, "wants --backbone NAME"},
        {"ok_state_dict.pth --backbone convnet4", 2, "wants --out FILE"},
        {"absent.pth --backbone convnet4 -o x.safetensors", 1, "absent.pth"},
    };
    struct stat info;
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const int status = run("cd %s && cp -f %s/test/corpus/pth/*.pth . && %s import %s", testing_folder(),
                               testing_source(), testing_program(), rows[i].arguments);
        const char *end = strchr(output, '\n');
        if (status != rows[i].status || !strstr(output, rows[i].text) || !end || end[1])
            fail_msg("'%s': status %d, wanted %d and one line with '%s': %s", rows[i].arguments, status,
                     rows[i].status, rows[i].text, output);
        if (stat(in_folder("kith-was-here"), &info) == 0) fail_msg("%s was executed", rows[i].arguments);
        if (stat(in_folder("x.safetensors"), &info) == 0) fail_msg("%s left a file", rows[i].arguments);
    }
}

/* Files that are neither: the line says what was found. */
static void test_no_weights(void **state) {
    (void)state;
    static const struct {
        const char *file, *text;
    } rows[] = {
        {"\x80\x04\x95", "is a pickle without a zip archive"},
        {"\x1f\x8b\x08",
         "is packed by gzip; wanted a state dict in safetensors or as torch.save writes it (unpack"},
        {"version https://git-lfs.github.com/spec/v1\n", "is a pointer of Git LFS, not the file itself"},
        {"<!DOCTYPE html>\n<title>404</title>\n", "is a web page"},
        {"\x5a\x01\xfe and more",
         "begins with 5a 01 fe 20 61 6e 64 20, as no file of weights does; wanted a state dict"},
        {"weird", "begins with 77 65 69 72 64, as no file of weights does"},
        {"\xff\xff\xff\xff\xff\xff\xff\xff{\"a\":", "is not a safetensors file: a header of"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        testing_write(in_folder("found.pth"), rows[i].file);
        const int status = run("%s import %s --backbone convnet4 -o %s", testing_program(),
                               in_folder("found.pth"), in_folder("x.safetensors"));
        if (status != 1 || !strstr(output, rows[i].text))
            fail_msg("status %d, wanted 1 and '%s': %s", status, rows[i].text, output);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pth),      cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_half),     cmocka_unit_test(test_the_source_is_not_written_over),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_no_weights),
    };
    return cmocka_run_group_tests_name("net/import", tests, NULL, testing_tear_down);
}
