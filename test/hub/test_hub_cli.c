/* kith pull, and hub:NAME in the other commands, as a user types them. The weights are a small network that the program itself
 * saved, without its metadata: as a stranger's file. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sanitizer.h"
#include "kith/array.h"
#include "support/hub.h"
#include "support/testing.h"

static char output[65536];
static const char *endpoint;
static hub_file files[2];

/* timm's form; another size, resizing and mean than the network's own. */
static const char config[] =
    "{\"architecture\": \"convnet4\", \"pretrained_cfg\": {\"input_size\": [3, 32, 32], \"crop_pct\": 0.8, "
    "\"interpolation\": \"bicubic\", \"mean\": [0.25, 0.5, 0.75], \"std\": [0.5, 0.25, 0.125]}}";

/* In the test's folder, with $K the program; $H: has a part of the weights come? (config.json comes first, whole.) */
static int kith(const char *command) {
    return testing_run(output, sizeof output,
                       "cd %s && " TESTING_K
                       " && export HF_ENDPOINT=%s HF_HUB_CACHE=\"$PWD/the cache\" HF_HOME=\"$PWD\" H=\"grep "
                       "-rqsa data_offsets third --include=*.incomplete\" && %s",
                       testing_folder(), testing_program(), endpoint, command);
}

static void assert_holds(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

static void assert_done(const char *command, const char *text) {
    const int status = kith(command);
    if (status != 0) fail_msg("%s: exit status %d: %s", command, status, output);
    assert_holds(text);
}

static void assert_refused(const char *command, int wanted, const char *text) {
    const int found = kith(command);
    if (found != wanted) fail_msg("%s: exit status %d, wanted %d: %s", command, found, wanted, output);
    assert_holds(text);
    assert_one_line_of(output);
}

/* The tensors without what kith says of them, as somebody else would save them. */
static void strip(const char *from, const char *to) {
    kith_error err = {0};
    kith_tensors *tensors = NULL;
    kith_tensors_writer *writer = NULL;
    kith_array view;
    assert_ok(kith_tensors_open(from, &tensors, &err), &err);
    assert_ok(kith_tensors_writer_new(&writer, &err), &err);
    for (int64_t i = 0; i < kith_tensors_count(tensors); i++) {
        const char *name = kith_tensors_name(tensors, i);
        assert_ok(kith_tensors_get(tensors, name, &view, &err), &err);
        assert_ok(kith_tensors_writer_add(writer, name, &view, &err), &err);
    }
    assert_ok(kith_tensors_writer_save(writer, to, &err), &err);
    kith_tensors_writer_free(writer);
    kith_tensors_free(tensors);
}

static char *read_file(const char *path, size_t *ret_n) {
    FILE *f = fopen(path, "rb");
    char *bytes = malloc(1 << 22);
    assert_non_null(f);
    assert_non_null(bytes);
    *ret_n = fread(bytes, 1, 1 << 22, f);
    fclose(f);
    return bytes;
}

static int set_up(void **state) {
    (void)state;
    char from[600], to[600];
    size_t n = 0;
    snprintf(from, sizeof from, "%s/m.safetensors", testing_folder());
    snprintf(to, sizeof to, "%s/plain.safetensors", testing_folder());
    endpoint = "http://127.0.0.1:1";
    assert_done(
        "$K synth photos --classes 12 --images 4 && "
        "$K embed --backbone convnet4 --embedding 8 --seed 3 --generate 2 --save m.safetensors",
        "12 classes");
    strip(from, to);
    files[0] = (hub_file){"model.safetensors", read_file(to, &n), 0, true};
    files[0].n = n;
    files[1] = (hub_file){"config.json", config, sizeof config - 1, false};
    endpoint = hub_start(files, 2);
    assert_done("$K pull org/net", "org/net: ");
    assert_holds("weights of convnet4: use them as hub:org/net\n");
    return 0;
}

static int tear_down(void **state) {
    free((void *)(uintptr_t)files[0].data);
    return testing_tear_down(state);
}

/* ---- hub:NAME ---- */

static void test_everything_that_takes_weights(void **state) {
    (void)state;
    hub_forget();
    assert_done("$K embed hub:org/net photos -o a.npy", "these are the tensors of convnet4, pooled by");
    assert_holds("images prepared by shorter40 as in config.json");
    assert_done("$K embed --weights hub:org/net photos -o b.npy && cmp a.npy b.npy && echo same", "same");
    assert_done("$K eval hub:org/net --data photos --metrics retrieval", "R@1");
    assert_done("$K index photos -o p.kith --model hub:org/net", "48 items");
    assert_done("$K search p.kith photos/glyph00001/00002.png -k 2", "glyph00001");
    assert_done("$K search p.kith photos/glyph00001/00002.png -k 2 --model hub:org/net", "glyph00001");
    assert_done("$K index p.kith --sync", "48 items");
    assert_done("$K export hub:org/net -o x.onnx && ls x.onnx", "x.onnx");
    assert_done("$K import hub:org/net --backbone convnet4 -o i.safetensors", "for convnet4");
    assert_done("$K data photos --suspects --model hub:org/net; true", "");
    assert_int_equal(hub_count("hub"), 0); /* only pull opens a connection */
}

static void test_training(void **state) {
    (void)state;
    static const char recipe[] =
        "$K train \"$R/quickstart.yaml\" --out run --set data.root=photos --set model.weights=hub:org/net "
        "--set input.resize=squash32 --set input.crop=28 --set optim.steps=4 --set model.embedding=8";
    char command[1024];
    snprintf(command, sizeof command, "R=%s/recipes && rm -rf run && %s", testing_source(), recipe);
    hub_forget();
    assert_done(command, "unseen classes");
    assert_int_equal(hub_count("hub"), 0);
    assert_done("grep -q hub:org/net run/recipe.yaml && echo kept", "kept");
    /* A finished run needs the weights no more; a new one does. */
    assert_done("mv 'the cache' away && $K train run --resume; status=$?; mv away 'the cache'; exit $status",
                "");
    snprintf(
        command, sizeof command,
        "R=%s/recipes && rm -rf run && mv 'the cache' away && { %s 2>&1 | tail -1; mv away 'the cache'; }",
        testing_source(), recipe);
    assert_done(command, "hub:org/net is not in the hub's cache");
    assert_holds("(fetch it with kith pull org/net)");
}

/* Another command makes the same vectors from the same pixels: config.json was heeded. */
static void test_config_is_heeded(void **state) {
    (void)state;
    assert_done(
        "$K embed hub:org/net photos -o a.npy --save said.safetensors 2>/dev/null; "
        "head -c 30000 said.safetensors | tail -c +9 | tr ',' '\\n' | grep -a kith",
        "\"kith.preprocess.resize\": \"shorter40\"");
    assert_holds("\"kith.preprocess.filter\": \"bicubic\"");
    assert_holds("\"kith.preprocess.mean\": \"0.25");
    assert_done("$K embed said.safetensors photos -o b.npy && cmp a.npy b.npy && echo same", "same");
    assert_done(
        "mkdir -p plain && cp plain.safetensors plain/model.safetensors && "
        "$K embed plain/model.safetensors photos -o c.npy && ! cmp -s a.npy c.npy && echo other",
        "other");
    /* `hf download --local-dir` puts both into one folder. */
    assert_done(
        "cp \"$(find 'the cache' -name config.json)\" plain/ && "
        "$K embed plain/model.safetensors photos -o c.npy && cmp a.npy c.npy && echo same",
        "same");
    /* Nobody knows what one that is cut off would have said. */
    assert_refused(
        "echo '{\"pretrained_cfg\": [' > plain/config.json && "
        "$K embed plain/model.safetensors photos -o d.npy",
        1, "plain/model.safetensors: config.json:2: not JSON");
}

static void test_not_in_the_cache(void **state) {
    (void)state;
    static const char *const commands[] = {"$K embed hub:org/other photos -o x.npy",
                                           "$K embed --weights hub:org/other photos -o x.npy",
                                           "$K eval hub:org/other --data photos",
                                           "$K index photos -o x.kith --model hub:org/other",
                                           "$K export hub:org/other -o y.onnx",
                                           "$K import hub:org/other --backbone convnet4 -o y.safetensors"};
    hub_forget();
    for (size_t i = 0; i < N_ROWS(commands); i++) {
        assert_refused(commands[i], 1, "hub:org/other is not in the hub's cache");
        assert_holds("kith pull org/other");
    }
    assert_refused("$K embed hub:../x photos -o x.npy", 1, "'../x' is not a name of weights");
    assert_refused("$K eval hub:resnet5 --data photos", 1, "did you mean resnet50?");
    assert_int_equal(hub_count("hub"), 0);
    assert_done("ls x.npy x.kith y.onnx y.safetensors 2>&1 | grep -c 'No such'", "4");
}

/* ---- pull ---- */

static void test_list_and_remove(void **state) {
    (void)state;
    assert_done("HF_HUB_CACHE=\"$PWD/second\" $K pull --list", "no weights in the hub's cache");
    assert_done("export HF_HUB_CACHE=\"$PWD/second\" && $K pull org/net --json && $K pull --list",
                "\"backbone\": \"convnet4\"");
    assert_holds("org/net");
    assert_holds("second/models--org--net/snapshots/" HUB_COMMIT "/model.safetensors");
    assert_done("HF_HUB_CACHE=\"$PWD/second\" $K pull --list --json", "\"revision\": \"main\"");
    assert_done("HF_HUB_CACHE=\"$PWD/second\" $K pull --remove org/net", "org/net: removed, ");
    assert_refused("HF_HUB_CACHE=\"$PWD/second\" $K pull --remove org/net", 1,
                   "org/net is not in the hub's cache");
    assert_done("$K list weights", "timm/resnet50.a1_in1k");
}

static void test_usage(void **state) {
    (void)state;
    assert_refused("$K pull", 2, "wants a NAME, --list or --remove NAME, one of them");
    assert_refused("$K pull org/net --list", 2, "one of them");
    assert_refused("$K pull org/absent", 1, "has no repository org/absent");
    assert_refused("HF_HUB_OFFLINE=1 $K pull org/absent", 1, "HF_HUB_OFFLINE");
    assert_refused("HF_ENDPOINT=ftp://x $K pull org/net", 1, "HF_ENDPOINT is not an address");
    assert_refused("HF_ENDPOINT=https://me:secret@x $K pull org/net", 1, "HF_ENDPOINT is not an address");
    assert_null(strstr(output, "secret"));
    assert_refused("KITH_PLUGINS=/nowhere $K pull org/net", 1,
                   "kith pull: there is no plugin /nowhere/libkith-hub.so");
    assert_holds("libcurl");
    assert_refused("HF_HUB_DOWNLOAD_TIMEOUT=abc $K pull org/net", 1,
                   "HF_HUB_DOWNLOAD_TIMEOUT is 'abc'; wanted seconds, 1 to 3600");
    assert_refused("HF_HUB_DOWNLOAD_TIMEOUT=0 $K pull org/net", 1, "HF_HUB_DOWNLOAD_TIMEOUT is '0'");
    assert_refused("HF_HUB_CACHE=/etc/passwd $K pull org/net", 1,
                   "the hub's cache /etc/passwd is not a folder");
    assert_refused("HF_HUB_CACHE=/etc/passwd $K pull --list", 1,
                   "the hub's cache /etc/passwd is not a folder");
    assert_refused("HF_HUB_CACHE=/etc/passwd $K eval hub:resnet50 --data .", 1,
                   "/etc/passwd is not a folder");
    /* A token for this machine goes to no proxy; a request without one, for the weights, does. */
    assert_done(
        "export no_proxy= NO_PROXY= http_proxy=http://127.0.0.1:1/ HF_TOKEN=hf_x HF_HUB_CACHE=\"$PWD/by\"; "
        "timeout 4 $K pull org/net "
        ">/dev/null 2>&1; find by -name config.json | grep -c .",
        "1\n");
    assert_refused("HF_HUB_CACHE=/dev/null/x $K pull org/net", 1, "cannot make the folder /dev/null");
    /* A proxy that is not there, with a password that nobody may see. */
    assert_refused(
        "no_proxy= NO_PROXY= http_proxy=http://me:secret@127.0.0.1:1/ $K pull org/net 2>&1 | tail -1 | "
        "grep . ; exit 1",
        1, "cannot be reached");
    assert_null(strstr(output, "secret"));
}

/* Pressed Ctrl-C: the part stays, and the next pull goes on. */
static void test_interrupted(void **state) {
    (void)state;
    hub_way.delay_ms = 3000;
    assert_done(
        "export HF_HUB_CACHE=\"$PWD/third\" && { $K pull org/net >out 2>&1 & } && until $H; do sleep 0.1; "
        "done && kill -INT $! ; "
        "wait $!; echo status $?; cat out",
        "status 1");
    assert_holds("kith: stopped on request (the same command goes on where it stopped)");
    hub_way.delay_ms = 0;
    assert_done(
        "export HF_HUB_CACHE=\"$PWD/third\" && find third -name '*.incomplete' | grep -c . && "
        "$K pull org/net && find third -name '*.incomplete' | wc -l",
        "going on after");
    assert_holds("fetched");
    hub_way.delay_ms = 3000;
    assert_done(
        "rm -rf third && export HF_HUB_CACHE=\"$PWD/third\" && { $K pull org/net >out 2>&1 & } && until $H; "
        "do sleep 0.1; done && "
        "kill -KILL $! ; wait $!; find third -name '*.incomplete' | grep -c . && $K pull --list",
        "a part; kith pull goes on with it");
    hub_way.delay_ms = 0;
    assert_done("HF_HUB_CACHE=\"$PWD/third\" $K pull org/net", "going on after");
}

/* Two processes at once: one fetches, the other waits and finds it. */
static void test_two_processes(void **state) {
    (void)state;
    hub_way.delay_ms = 1000;
    hub_forget();
    assert_done(
        "rm -rf fourth && export HF_HUB_CACHE=\"$PWD/fourth\" && { $K pull org/net >out1 2>&1 & } && one=$! "
        "&& "
        "{ $K pull org/net >out2 2>&1 & } && two=$! && wait $one; a=$?; wait $two; echo ended $a $?; "
        "cat out1 out2; find fourth -name '*.incomplete'; "
        "cmp fourth/models--org--net/snapshots/*/model.safetensors plain.safetensors && echo whole; "
        "echo blobs $(find fourth -path '*/blobs/*' -type f | wc -l)",
        "ended 0 0");
    hub_way.delay_ms = 0;
    assert_null(strstr(output, ".incomplete"));
    assert_holds("whole");
    assert_holds("blobs 2"); /* the weights and config.json, once each */
    assert_int_equal(hub_count("storage GET"), 1);
}

/* ---- faults ---- */

/* The n-th call on the cache's files fails, or all from it on for want of space: one line and nothing that looks whole; after
 * that, a pull works. Every call with KITH_ALL_FAULTS=1 (minutes), otherwise some of them. */
static void test_faults(void **state) {
    (void)state;
    static const struct {
        const char *kind;
        bool is_deadly;
    } kinds[] = {{"enospc", false}, {"eio", false}, {"kill", true}};
    if (KI_SANITIZED) skip(); /* its runtime must be loaded before any other library */
    const int step = getenv("KITH_ALL_FAULTS") ? 1 : 13;
    for (size_t k = 0; k < N_ROWS(kinds); k++) {
        for (int at = 1 + (int)k, n_fine = 0; at < 300 && n_fine < 2; at += step) {
            char command[2048];
            snprintf(
                command, sizeof command,
                "rm -rf f && mkdir f && export HF_HUB_CACHE=\"$PWD/f\" && "
                "FAULT_ROOT=\"$PWD/f\" FAULT_KIND=%s FAULT_AT=%d FAULT_LOG=\"$PWD/faults\" LD_PRELOAD=%s "
                "$K pull org/net >out 2>err; status=$?; "
                /* whatever is found is whole */
                "for w in $(find f -name model.safetensors | tr ' ' '?'); do cmp $w plain.safetensors || "
                "exit 3; done; "
                "test ! -e f/models--org--net/refs/main || "
                "test -e f/models--org--net/snapshots/*/model.safetensors || exit 4; "
                "if test $status = 1; then test \"$(grep -c '^kith: ' err)\" = 1 || exit 5; fi; "
                "$K pull org/net >out2 2>&1 || { cat out2; exit 6; }; "
                "cmp f/models--org--net/snapshots/*/model.safetensors plain.safetensors || exit 7; "
                "cat err; echo ended $status",
                kinds[k].kind, at, testing_fault_io());
            if (kith(command) != 0) fail_msg("%s at %d: %s", kinds[k].kind, at, output);
            const bool is_fine = strstr(output, "ended 0") != NULL;
            n_fine = is_fine ? n_fine + 1 : 0;
            if (at < step && is_fine) fail_msg("%s at %d does nothing: %s", kinds[k].kind, at, output);
            if (!is_fine && !kinds[k].is_deadly && !strstr(output, "ended 1"))
                fail_msg("%s at %d: %s", kinds[k].kind, at, output);
        }
    }
}

int main(void) {
    if (!hub_has_plugin()) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_that_takes_weights),
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_config_is_heeded),
        cmocka_unit_test(test_not_in_the_cache),
        cmocka_unit_test(test_list_and_remove),
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_two_processes),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
