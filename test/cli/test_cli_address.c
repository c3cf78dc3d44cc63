/* The address of a server where a file belongs: no message repeats the password in it. */
#include <stdio.h>
#include <string.h>

#include "support/testing.h"

static char output[65536];

static const char *const addresses[] = {
    "postgresql://me:s3cr3t@127.0.0.1:1/db",
    "postgres://me:pre/s3cr3t@127.0.0.1:1/db",
    "postgresql://me:12/s3cr3t@127.0.0.1:1/db",
    "postgresql://me:pre?s3cr3t@127.0.0.1:1/db",
    "postgresql://me:pre#s3cr3t@127.0.0.1:1/db",
    "postgresql://me:pre s3cr3t@127.0.0.1:1/db",
    "postgresql://me:s3cr3t@x@127.0.0.1:1/db",
    "postgresql://me:pre@s3/s3cr3t@127.0.0.1:1/db",
    "postgresql://127.0.0.1:1/db?user=me&password=s3cr3t",
    "POSTGRESQL://me:s3cr3t@127.0.0.1:1/db",
    "postgresql://me:s3cr3t",
    ("postgresql://a-user-with-a-long-name-that-fills-a-message-up:xxxxxxxxxxxxxxxxxxxxxxxs3cr3t@127.0.0.1:1/"
     "db"),
};

static const char *const commands[] = {
    "eval \"$A\"",
    "eval --embeddings \"$A\" --labels \"$A\"",
    "data \"$A\"",
    "embed \"$A\" --model \"$A\" -o x.npy",
    "index \"$A\" -o new.kith --model \"$A\"",
    "index \"$A\" -o new.kith --model=\"$A\"",
    "index \"$A\" --info",
    "index --to=\"$A\" photos",
    "index \"$A\" --add \"$A\"",
    "index \"$A\" \"$A\" \"$A\"",
    "search \"$A\" photo.jpg",
    "search none.kith \"$A\"",
    "search \"$A\" \"$A\" --model \"$A\"",
    "serve \"$A\" --port 0",
    "serve none.kith --token-file \"$A\" --port 0",
    "train \"$A\"",
    "train none.yaml --set \"data.root=$A\"",
    "report \"$A\"",
    "map \"$A\" -o x.html",
    "export \"$A\" -o x.onnx",
    "import \"$A\" -o x.safetensors",
    "list \"$A\"",
    "\"$A\"",
    "reproduce \"$A\"",
    "eval x.npy y.npy \"$A\"",
};

static void test_no_message_repeats_it(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(addresses); i++) {
        /* Every command with some addresses, and some with all. */
        for (size_t j = i % 4; j < N_ROWS(commands); j += i < 2 ? 1 : 4) {
            testing_run(output, sizeof output, "cd '%s' && A='%s' && timeout 30 %s %s", testing_folder(),
                        addresses[i], testing_program(), commands[j]);
            if (strstr(output, "s3cr3t")) fail_msg("%s of %s: %s", commands[j], addresses[i], output);
        }
    }
}

/* In a recipe, too, where the program does not see it. */
static void test_in_a_file(void **state) {
    (void)state;
    char path[1200], text[512];
    snprintf(path, sizeof path, "%s/r.yaml", testing_folder());
    for (size_t i = 0; i < N_ROWS(addresses); i++) {
        snprintf(text, sizeof text, "data: {root: \"%s\"}\nmodel: {backbone: convnet4, embedding: 8}\n",
                 addresses[i]);
        testing_write(path, text);
        const int status = testing_run(output, sizeof output, "cd '%s' && timeout 30 %s data r.yaml",
                                       testing_folder(), testing_program());
        if (status == 0) fail_msg("%s", output);
        if (strstr(output, "s3cr3t")) fail_msg("%s: %s", addresses[i], output);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_message_repeats_it),
        cmocka_unit_test(test_in_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
