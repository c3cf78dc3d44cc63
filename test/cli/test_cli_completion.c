/* kith completion: bash completes for real; zsh and fish read their scripts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/testing.h"

static char output[1 << 16];

static int set_up(void **state) {
    (void)state;
    return testing_run(output, sizeof output,
                       "cd %s && for s in bash zsh fish; do %s completion $s > script.$s || exit 1; done && "
                       "mkdir -p files/deep && cd files && touch x.npy 'y z.npy' r.yaml m.safetensors p.txt",
                       testing_folder(), testing_program());
}

/* What bash offers for the words, the last of which is being typed; one a line, in `output`. */
static void complete(const char *words) {
    if (testing_run(
            output, sizeof output,
            "cd %s/files && bash -c 'source ../script.bash && COMP_WORDS=(kith %s) && "
            "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) && _kith && printf \"%%s\\n\" \"${COMPREPLY[@]}\" | sort'",
            testing_folder(), words) != 0)
        fail_msg("%s: %s", words, output);
}

static void test_bash(void **state) {
    (void)state;
    static const struct {
        const char *words, *wanted;
    } rows[] = {
        {"tr", "train\n"},
        {"-v tr", "train\n"},
        {"help rep", "report\nreproduce\n"},
        {"train --dev", "--device\n"},
        {"train --device cu", "cuda\n"},
        {"train --device = cu", "cuda\n"},
        {"train --precision \"\"", "bf16\nfloat32\n"},
        {"train --set optim.we", "optim.weight_decay=\n"},
        {"train -s batch.cl", "batch.classes=\n"},
        {"train \"\"", "deep\nr.yaml\n"},
        {"report \"\"", "deep\n"},
        {"map --save \"\"", "deep\nx.npy\ny z.npy\n"},
        {"map -y x", "x.npy\n"},
        {"objective r.yaml --state \"\"", "deep\nm.safetensors\n"},
        {"map --seed \"\"", "\n"},
        {"map --metric c", "cosine\n"},
        {"list lo", "losses\n"},
        {"list losses ci", "circle\n"},
        {"bench k", "knn\n"},
        {"bench knn --dev", "--device\n"},
        {"bench objective --loss ci", "circle\n"},
        {"completion f", "fish\n"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        complete(rows[i].words);
        if (strcmp(output, rows[i].wanted) != 0)
            fail_msg("kith %s: '%s'; wanted '%s'", rows[i].words, output, rows[i].wanted);
    }
}

/* Every command of the table, and every option that its help names, in all three scripts. */
static void test_nothing_is_left_out(void **state) {
    (void)state;
    static const char *const commands[] = {
#define X(name, summary) #name,
#include "cli/table.def"
#undef X
    };
    char path[4096], *script[2];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/script.%s", testing_folder(), i ? "fish" : "zsh");
        script[i] = testing_read(path);
    }
    for (size_t i = 0; i < N_ROWS(commands); i++) {
        static char help[sizeof output];
        char words[128];
        snprintf(words, sizeof words, "%s", commands[i]);
        complete(words);
        snprintf(words, sizeof words, "%s\n", commands[i]);
        if (!strstr(output, words)) fail_msg("no command %s: %s", commands[i], output);
        assert_int_equal(testing_run(help, sizeof help, "%s help %s", testing_program(), commands[i]), 0);
        snprintf(words, sizeof words, "%s -", commands[i]);
        complete(words);
        for (const char *at = strstr(help, "\noptions:"); at && (at = strstr(at, "--"));) {
            char name[64];
            const int n = (int)strcspn(at, " \n");
            const bool is_option = at[-1] == ' ' && n > 2 && at[2] >= 'a' && at[2] <= 'z';
            snprintf(name, sizeof name, "%.*s\n", n, at);
            /* Options open their line; "--x" inside a sentence is somebody else's. */
            const bool opens = is_option && (at[-2] == ' ' || at[-2] == ',') && at[-3] != '.';
            if (opens && !strstr(output, name)) fail_msg("kith %s has no %s: %s", commands[i], name, output);
            snprintf(name, sizeof name, "--%.*s", n - 2, at + 2);
            if (opens && strcmp(name, "--help") != 0 && !strstr(script[0], name))
                fail_msg("zsh has no %s", name);
            snprintf(name, sizeof name, "-l %.*s ", n - 2, at + 2);
            if (opens && strncmp(name, "-l help", 7) != 0 && !strstr(script[1], name))
                fail_msg("fish has no %s", name);
            at += n;
        }
    }
    free(script[0]);
    free(script[1]);
}

static void check_shell(const char *shell) {
    if (testing_run(output, sizeof output, "command -v %s", shell) != 0) skip();
    if (testing_run(output, sizeof output, "%s -n %s/script.%s", shell, testing_folder(), shell) != 0 ||
        *output)
        fail_msg("%s: %s", shell, output);
}

static void test_zsh(void **state) {
    (void)state;
    check_shell("zsh");
}

/* fish can be asked what it would offer. */
static void test_fish(void **state) {
    (void)state;
    check_shell("fish");
    if (testing_run(
            output, sizeof output,
            "cd %s/files && HOME=%s fish -c 'source ../script.fish; complete -C \"kith train --device cu\"; "
            "complete -C \"kith list losses circ\"; complete -C \"kith rep\"'",
            testing_folder(), testing_folder()) != 0)
        fail_msg("%s", output);
    static const char *const wanted[] = {"cuda\t", "circle\n", "report\t", "reproduce\t"};
    for (size_t i = 0; i < N_ROWS(wanted); i++) {
        if (!strstr(output, wanted[i])) fail_msg("no '%s' in: %s", wanted[i], output);
    }
}

static void test_unknown_shell(void **state) {
    (void)state;
    assert_int_equal(testing_run(output, sizeof output, "%s completion bsh", testing_program()), 2);
    assert_non_null(strstr(output, "unknown shell 'bsh'; did you mean 'bash'?"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bash), cmocka_unit_test(test_nothing_is_left_out), cmocka_unit_test(test_zsh),
        cmocka_unit_test(test_fish), cmocka_unit_test(test_unknown_shell),
    };
    return cmocka_run_group_tests_name("cli/completion", tests, set_up, testing_tear_down);
}
