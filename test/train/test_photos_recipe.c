/* recipes/photos.yaml on a small folder, from a weights file: it holds classes out, trains and scores them. So do the recipes
 * of the methods, with a small network. */
#include <string.h>

#include "support/testing.h"

static char output[65536];

/* GoogLeNet with random weights stands in for a pretrained one, in a file that has no word about what it is: what is tested is that the recipe runs as
 * documented, not what it reaches. Batches need 8 training classes, so the folder has 16. */
static void test_a_folder_of_images(void **state) {
    (void)state;
    const char *folder = testing_folder(), *program = testing_program();
    assert_int_equal(
        testing_run(output, sizeof output,
                    "cd %s && %s synth photos --classes 16 --images 4 && "
                    "%s embed --backbone googlenet --generate 1 --save said.safetensors -o x.npy && "
                    "%s export said.safetensors --torch -o weights.safetensors",
                    folder, program, program, program),
        0);
    const int status =
        testing_run(output, sizeof output,
                    "cd %s && %s train %s/recipes/photos.yaml --set data.root=photos --set "
                    "model.weights=weights.safetensors "
                    "--set input.crop=64 --set input.resize=squash72 --set optim.steps=2 --out run",
                    folder, program, testing_source());
    if (status != 0) fail_msg("%s", output);
    static const char *const parts[] = {"weights.safetensors: these are the tensors of googlenet\n",
                                        "unseen classes (test)", "untrained"};
    for (size_t i = 0; i < N_ROWS(parts); i++) {
        if (!strstr(output, parts[i])) fail_msg("no '%s' in: %s", parts[i], output);
    }
    assert_int_equal(testing_run(output, sizeof output, "cd %s && grep -c ',test$' run/data.csv", folder), 0);
    assert_string_equal(output, "32\n"); /* 8 of the 16 classes, 4 images each */
    assert_int_equal(
        testing_run(output, sizeof output, "cd %s && grep -c ' on googlenet' run/report.html", folder), 0);
}

/* The recipes of larger networks, each from a small one's file without a word about what it is. */
static void test_larger_networks(void **state) {
    (void)state;
    static const struct {
        const char *recipe, *network;
    } rows[] = {{"vit", "vit_s --settings depth=2,width=32,heads=2,grid=4"},
                {"siglip", "vit_b --settings depth=2,width=32,heads=2,grid=4,kind=siglip --pool attention"},
                {"swin", "swin_t --settings width=32,depth=1,window=2"},
                {"mobilenet", "mobilenet_v3_large"},
                {"convnext", "convnext_t --settings width=8,depth=2,blocks=1"}};
    const char *folder = testing_folder(), *program = testing_program();
    assert_int_equal(
        testing_run(output, sizeof output, "%s synth %s/larger --classes 16 --images 4", program, folder), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const int status = testing_run(
            output, sizeof output,
            "cd %s && %s embed --backbone %s --generate 1 --save plain.safetensors -o x.npy && "
            "%s export plain.safetensors --torch -o small.safetensors && "
            "%s train %s/recipes/%s.yaml --set data.root=larger --set model.weights=small.safetensors "
            "--set model.embedding=16 --set batch.classes=8 --set input.crop=64 --set input.resize=squash72 "
            "--set optim.steps=2 --set eval.every=2 --no-report --out larger-%s && "
            "test -s larger-%s/model.safetensors",
            folder, program, rows[i].network, program, program, testing_source(), rows[i].recipe,
            rows[i].recipe, rows[i].recipe);
        if (status != 0) fail_msg("%s: %s", rows[i].recipe, output);
        if (!strstr(output, "these are the tensors of")) fail_msg("%s: %s", rows[i].recipe, output);
    }
}

/* What reads the map reads tokens, too, whatever the vector is made of; an ensemble of heads wants convolutions, and says so in a line. */
static void test_methods_on_tokens(void **state) {
    (void)state;
    static const struct {
        const char *network, *pools[3];
    } nets[] = {{"vit_t --settings depth=2,width=32,heads=2,grid=4", {"class", "avg", "class_avg"}},
                {"vit_b --settings depth=2,width=32,heads=2,grid=4,kind=siglip --pool attention",
                 {"attention", "gem"}},
                {"swin_t --settings width=32,depth=1,window=2", {"avg", "both"}}};
    static const char
        *const methods[] = {"horde", "density", "joint_similarity"},
               *const ways =
                   "--set data.root=tokens --set model.weights=net.safetensors --set model.bn=batch --set "
                   "model.embedding=16 --set batch.classes=4 --set input.crop=64 --set "
                   "input.resize=squash72 --set optim.steps=2 --set eval.every=2 --no-report --quiet";
    const char *folder = testing_folder(), *program = testing_program();
    assert_int_equal(
        testing_run(output, sizeof output, "%s synth %s/tokens --classes 16 --images 4", program, folder), 0);
    for (size_t i = 0; i < N_ROWS(nets); i++) {
        assert_int_equal(testing_run(output, sizeof output,
                                     "cd %s && %s embed --backbone %s --generate 1 --save net.safetensors",
                                     folder, program, nets[i].network),
                         0);
        for (size_t p = 0; p < N_ROWS(nets[i].pools) && nets[i].pools[p]; p++) {
            for (size_t m = 0; m < (p == 0 ? N_ROWS(methods) : 1); m++) {
                const int status =
                    testing_run(output, sizeof output,
                                "cd %s && rm -rf on && %s train %s/recipes/methods/%s.yaml %s --set "
                                "model.pool=%s --out on "
                                "&& test -s on/model.safetensors",
                                folder, program, testing_source(), methods[m], ways, nets[i].pools[p]);
                if (status != 0)
                    fail_msg("%s on %s, %s: %s", methods[m], nets[i].network, nets[i].pools[p], output);
            }
        }
        const int status = testing_run(
            output, sizeof output,
            "cd %s && rm -rf on && %s train %s/recipes/methods/head_divergence.yaml %s --set model.pool=%s "
            "--out on",
            folder, program, testing_source(), ways, nets[i].pools[0]);
        if (status != 1 || !strstr(output, "names no place where heads could begin; wanted 1 head, found 4"))
            fail_msg("status %d: %s", status, output);
        assert_one_line_of(output);
    }
}

static void test_every_method_trains(void **state) {
    (void)state;
    const char *folder = testing_folder(), *program = testing_program();
    assert_int_equal(
        testing_run(output, sizeof output, "%s synth %s/small --classes 16 --images 4", program, folder), 0);
    const int status = testing_run(
        output, sizeof output,
        "cd %s && %s embed --backbone convnet4 --generate 1 --save taught.safetensors -o x.npy && for file "
        "in %s/recipes/methods/*.yaml; do name=$(basename \"$file\" .yaml); "
        "teacher=; if grep -q ^teachers \"$file\"; then teacher='--set "
        "teachers.0.weights=taught.safetensors'; fi; "
        "%s train \"$file\" $teacher --set data.root=small --set model.weights=~ --set "
        "model.backbone=convnet4 "
        "--set model.embedding=16 --set input.resize=squash36 --set input.crop=32 --set optim.steps=2 "
        "--set eval.every=2 --no-report --quiet --out method-$name && test -s method-$name/model.safetensors "
        "|| "
        "{ echo $name does not train; exit 1; }; done",
        folder, program, testing_source(), program);
    if (status != 0) fail_msg("%s", output);
}

/* Small networks stand in for the large ones, and drawn glyphs for photos: what is tested is that the recipe runs as documented. */
static void test_the_general_network(void **state) {
    (void)state;
    const char *folder = testing_folder(), *program = testing_program();
    const int status = testing_run(
        output, sizeof output,
        "cd %s && %s synth labelled --classes 20 --images 4 && %s synth others --classes 24 --images 4 "
        "--seed 2 && "
        "mkdir -p loose && n=0 && for f in labelled/*/00000.png others/*/00001.png; do n=$((n+1)); cp $f "
        "loose/$n.png; done && "
        "%s embed --backbone convnet4 --generate 1 --save one.safetensors -o x.npy && "
        "%s embed --backbone efficientnet_b0 --settings width=0.25,depth=0.3 --generate 1 --save "
        "two.safetensors "
        "-o x.npy || exit 1; "
        "%s train %s/recipes/general.yaml --set data.0.root=labelled --set data.1.root=others --set "
        "data.2.root=loose "
        "--set model.weights=~ --set model.settings.width=0.25 --set teachers.0.weights=one.safetensors "
        "--set teachers.1.weights=two.safetensors --set input.resize=squash72 --set input.crop=64 --set "
        "batch.classes=8 "
        "--set optim.epochs=2 --set eval.every=4 --out general",
        folder, program, program, program, program, program, testing_source());
    if (status != 0) fail_msg("%s", output);
    static const char *const parts[] = {"mobilenet_v3_large on labelled + others + loose: ",
                                        " and 44 without, batches of 32", "unseen classes (test)"};
    for (size_t i = 0; i < N_ROWS(parts); i++) {
        if (!strstr(output, parts[i])) fail_msg("no '%s' in: %s", parts[i], output);
    }
    assert_int_equal(testing_run(output, sizeof output,
                                 "cd %s && grep -c 'labelled + others' general/report.html && "
                                 "grep -c '\"relational_2\".*\"match_2\"' general/log.jsonl && "
                                 "%s eval general --data labelled --metrics retrieval",
                                 folder, program),
                     0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_folder_of_images), cmocka_unit_test(test_larger_networks),
        cmocka_unit_test(test_the_general_network), cmocka_unit_test(test_methods_on_tokens),
        cmocka_unit_test(test_every_method_trains)};
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
