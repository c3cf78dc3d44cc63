/* kith list KIND NAME: one entry of every kind, and what is said of names that are none. */
#include <stdio.h>
#include <string.h>

#include "kith/experimental/list.h"
#include "support/testing.h"

static char output[1 << 16];

static int run(const char *arguments) {
    return testing_run(output, sizeof output, "COLUMNS=200 %s list %s", testing_program(), arguments);
}

static void wants(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

static void test_one_loss(void **state) {
    (void)state;
    if (run("losses circle") != 0) fail_msg("%s", output);
    wants("circle    ");
    wants("\nsource    Sun et al.");
    wants("\ndevices   cpu and cuda\n");
    wants("\n  gamma = ");
    wants("\n  margin = ");
    if (strstr(output, "contrastive")) fail_msg("another loss is shown: %s", output);
}

/* Whatever a kind has, each of its entries is shown alone with all its options, also as JSON. */
static void test_every_entry(void **state) {
    (void)state;
    kith_list_kind kind;
    kith_list_entry entry;
    kith_list_option option;
    char words[256];
    for (int k = 0; kith_list_kind_at(k, &kind); k++) {
        for (int i = 0; kith_list_entry_at(kind.name, i, &entry); i++) {
            if (i % 7 != 0) continue; /* a process each: some of every kind */
            snprintf(words, sizeof words, "%s %s", kind.name, entry.name);
            if (run(words) != 0) fail_msg("%s: %s", words, output);
            if (strncmp(output, entry.name, strlen(entry.name)) != 0) fail_msg("%s: %s", words, output);
            for (int n = 0; kith_list_option_at(kind.name, i, n, &option); n++) {
                snprintf(words, sizeof words, "\n  %s = ", option.name);
                wants(words);
            }
            snprintf(words, sizeof words, "%s %s --json", kind.name, entry.name);
            if (run(words) != 0) fail_msg("%s: %s", words, output);
            snprintf(words, sizeof words, "[{\"name\": \"%s\", ", entry.name);
            wants(words);
        }
    }
}

static void test_names_that_are_none(void **state) {
    (void)state;
    static const struct {
        const char *words, *wanted;
    } rows[] = {
        {"losses cirlce", "kith: list: unknown name among the losses 'cirlce'; did you mean 'circle'?"},
        {"miners semihrad", "did you mean 'semihard'?"},
        {"sections optmi", "did you mean 'optim'?"},
        {"losse", "unknown kind 'losse'; did you mean 'losses'?"},
        {"circle", "'circle' is one of losses; write kith list losses circle"},
        {"losses circle margin", "'margin' is one too many"},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        if (run(rows[i].words) != 2) fail_msg("%s: %s", rows[i].words, output);
        wants(rows[i].wanted);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_loss),
        cmocka_unit_test(test_every_entry),
        cmocka_unit_test(test_names_that_are_none),
    };
    return cmocka_run_group_tests_name("cli/list", tests, NULL, NULL);
}
