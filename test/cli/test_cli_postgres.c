/* kith index and kith search with an index on PostgreSQL, as a user types them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/postgres.h"

static char server[32], address[POSTGRES_ADDRESS_BYTES], output[65536];

/* In the test's folder, with $K the program and $A the address. */
static int kith(const char *command) {
    return testing_run(output, sizeof output,
                       "cd %s && " TESTING_K " && A='%s' && S=%s/scripts/postgres.sh && N=%s && %s",
                       testing_folder(), testing_program(), address, testing_source(), server, command);
}

static void assert_holds(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

static void assert_done(const char *command, const char *text) {
    const int status = kith(command);
    if (status != 0) fail_msg("%s: exit status %d: %s", command, status, output);
    assert_holds(text);
}

/* One line, that text in it, that exit status. */
static void assert_refused(const char *command, int wanted, const char *text) {
    const int found = kith(command);
    if (found != wanted) fail_msg("%s: exit status %d, wanted %d: %s", command, found, wanted, output);
    assert_holds(text);
    assert_one_line_of(output);
}

static int set_up(void **state) {
    (void)state;
    snprintf(server, sizeof server, "c%d", (int)getpid());
    snprintf(address, sizeof address, "%.1000s", postgres_start(server, ""));
    assert_done(
        "$K synth photos --classes 3 --images 4 && "
        "$K embed --backbone convnet4 --embedding 16 --seed 9 --generate 2 --save m.safetensors && "
        "$K embed --backbone convnet4 --embedding 16 --seed 8 --generate 2 --save other.safetensors && "
        "$K index photos -o p.kith --model m.safetensors",
        "p.kith: 12 items");
    if (kith("$K index photos --to \"$A\" --model m.safetensors 2>&1") != 0) {
        if (strstr(output, "there is no plugin")) postgres_skip(output);
        fail_msg("%s", output);
    }
    assert_holds(": 12 items of 16 values; 12 added\n");
    return 0;
}

static void test_search_prints_the_same(void **state) {
    (void)state;
    static const char *const searches[] = {
        "photos/glyph00001/00002.png --json",
        "photos -k 4 --csv",
        "photos/glyph00000/00001.png --where 'label != glyph00000 and not path like \"%3.png\"' --json",
        "photos/glyph00000/00001.png --and photos/glyph00002/00001.png --rerank qe --json",
        "photos/glyph00000/00001.png --min-score 0.9 --exact --json",
        "--duplicates --json",
    };
    for (size_t i = 0; i < N_ROWS(searches); i++) {
        char command[1024];
        snprintf(
            command, sizeof command,
            "$K search p.kith %s >here.txt && $K search \"$A\" %s >there.txt && cmp here.txt there.txt && "
            "test -s here.txt",
            searches[i], searches[i]);
        assert_done(command, "");
    }
}

static void test_info(void **state) {
    (void)state;
    assert_done("$K index \"$A\" --info", "items       12\n");
    assert_holds("vectors     16 values, cosine\n");
    assert_holds("/m.safetensors\n");
    assert_holds("/photos\n");
    assert_holds("search      exact: every vector is compared\n");
    assert_done("$K index \"$A\" --info --json", "\"items\": 12,");
    assert_refused("$K index \"$A\" --check 2>&1", 1, "is kept by a server, which looks after its own files");
}

/* Measured by itself, as in a folder. */
static void test_own_false_match_rates(void **state) {
    (void)state;
    assert_done(
        "$K synth many --classes 12 --images 14 && $K index many --to \"$A#own\" --model m.safetensors && "
        "$K index many -o own.kith --model m.safetensors && $K index \"$A#own\" --info",
        "false-match rates known: --same works, measured on: index\n");
    assert_done(
        "$K search own.kith many --same 0.02 --csv >here.txt && $K search \"$A#own\" many --same 0.02 "
        "--csv >there.txt && cmp here.txt there.txt && wc -l <here.txt",
        "");
}

/* The same rules as in a folder: what is as before, touched, moved, changed, new and gone. */
static void test_sync(void **state) {
    (void)state;
    assert_done("$K index photos --to \"$A\"", "; 12 as before\n");
    assert_done(
        "touch photos/glyph00000/00000.png && mv photos/glyph00000/00001.png photos/glyph00000/moved.png && "
        "cp photos/glyph00002/00000.png photos/glyph00001/00000.png && "
        "cp photos/glyph00001/00001.png photos/glyph00001/new.png && rm photos/glyph00002/00003.png && "
        "$K index \"$A\" --sync --json",
        "\"looked_at\": 12, \"same\": 8, \"touched\": 1, \"moved\": 1, \"changed\": 1, \"added\": 1, "
        "\"removed\": 1");
    assert_done("$K index p.kith --sync", "1 added, 1 changed, 1 moved, 1 touched, 1 removed, 8 as before");
    assert_done("$K index \"$A\" --sync", "; 12 as before\n");
    assert_done("$K index \"$A\" --add photos/glyph00001/00001.png", "; 1 as before\n");
    assert_done("$K index \"$A\" --remove 'glyph00001/new.png'", "11 items of 16 values; 1 removed\n");
    assert_done("$K index \"$A\" --sync",
                "11 items of 16 values; 11 as before, 1 left out (removed by hand)\n");
    assert_done("$K index \"$A\" --info --json", "\"removed_by_hand\": 1, ");
    assert_done(
        "mv photos/glyph00001/new.png photos/glyph00001/newer.png && "
        "mv photos/glyph00000/moved.png photos/glyph00000/again.png && "
        "$K search \"$A\" photos/glyph00000/again.png -k 1 --json | grep -o '\"id\": [0-9]*' >before && "
        "$K index \"$A\" --sync && $K search \"$A\" photos/glyph00000/again.png -k 1 --json >after && "
        "grep -o '\"id\": [0-9]*' after | cmp - before",
        "11 items of 16 values; 1 moved, 10 as before, 1 left out (removed by hand)\n");
    assert_done("grep -o 'glyph00000/again.png\"' after", "again.png");
    assert_done("$K index \"$A\" --add photos/glyph00001/newer.png", "12 items of 16 values; 1 added\n");
    assert_done("$K index \"$A\" --info --json", "\"removed_by_hand\": 0, ");
    assert_done("$K index \"$A\" --sync && $K index \"$A\" --compact", "12 items");
    assert_refused(
        "rm -rf saved && mv photos saved && mkdir photos && cp -r saved/glyph00000 photos && "
        "$K index \"$A\" --sync 2>&1; status=$?; rm -rf photos && mv saved photos; exit $status",
        1, "8 of the 12 items of the index are not in the folders any more");
}

/* PostgreSQL keeps UTF-8 alone; a folder keeps any name. */
static void test_names_in_another_encoding(void **state) {
    (void)state;
    assert_done(
        "mkdir latin && cp -r photos/glyph00000 latin/a && cp photos/glyph00001/00001.png \"$(printf "
        "'latin/a/M\\366we.png')\" && $K index latin --to \"$A#latin\" --model m.safetensors 2>&1",
        ": 4 items of 16 values; 4 added\n");
    assert_holds("1 image could not be read and is left out; the first: ");
    assert_holds("we.png: its name is not text in UTF-8, and PostgreSQL keeps no other\n");
    assert_done("$K index \"$A#latin\" --sync 2>/dev/null", ": 4 items of 16 values; 4 as before\n");
    assert_done("$K index latin -o latin.kith --model m.safetensors", ": 5 items of 16 values; 5 added\n");
}

static void test_another_model_is_refused(void **state) {
    (void)state;
    assert_refused("$K index photos --to \"$A\" --model other.safetensors 2>&1", 1,
                   "#kith was made with model ");
    assert_refused("$K search \"$A\" photos/glyph00000/00000.png --model other.safetensors 2>&1", 1,
                   "#kith was made with model ");
}

/* The connection is cut while rows wait to be written; the same command again does what is left. */
static void test_sync_goes_on(void **state) {
    (void)state;
    postgres_needs_server(address);
    char path[4096];
    snprintf(path, sizeof path, "%s/cut.sql", testing_folder());
    testing_write(
        path,
        "do $$ begin lock table more.items in exclusive mode; for i in 1 .. 300 loop perform pg_sleep(0.05); "
        "perform pg_stat_clear_snapshot(); if (select count(pg_terminate_backend(pid)) from pg_stat_activity "
        "where application_name = 'kith' and wait_event_type = 'Lock') > 0 then exit; end if; end loop; end "
        "$$");
    assert_done(
        "$K synth more --classes 2 --images 3 && $K index more --to \"$A#more\" --model m.safetensors",
        ": 6 items of 16 values; 6 added\n");
    assert_done("for f in more/glyph00000/*.png; do cp $f ${f%.png}b.png; done", "");
    assert_refused(
        "true; \"$S\" sql $N <cut.sql >/dev/null 2>&1 & sleep 0.5; $K index more --to \"$A#more\" 2>&1; "
        "status=$?; wait; exit $status",
        1, "the same command again goes on from there");
    assert_done("$K index more --to \"$A#more\"", ": 9 items of 16 values; 3 added, 6 as before\n");
}

static void test_usage(void **state) {
    (void)state;
    assert_refused("$K index photos --to birds.kith --model m.safetensors 2>&1", 2,
                   "--to is 'birds.kith'; wanted postgresql://host/database, or -o for a folder");
    assert_refused("KITH_MODELS=none $K index photos --to \"$A#none\" 2>&1", 1, "general is not installed");
    assert_refused("$K search \"$A#none\" photos/glyph00000/00000.png 2>&1", 1, "there is no index of kith");
    assert_refused("$K search postgresql://127.0.0.1:1/none photos/glyph00000/00000.png 2>&1", 1, "refused");
    assert_refused("KITH_PLUGINS=/nowhere $K search \"$A\" photos/glyph00000/00000.png 2>&1", 1,
                   "an index on PostgreSQL: there is no plugin /nowhere/libkith-postgres.so");
}

/* A password in the address works, and nothing repeats it: no line of output, no list of processes. */
static void test_passwords(void **state) {
    (void)state;
    postgres_needs_server(address);
    postgres_sql(
        server, "postgres",
        "create role reader login password 'a b@c/1'; grant usage on schema kith to reader; grant select on "
        "all tables in schema kith to reader",
        NULL);
    static const char *const addresses[] = {
        "reader:a%20b%40c%2F1@127.0.0.1:$P/postgres",
        "reader:a b%40c/1@127.0.0.1:$P/postgres", /* as people write it */
        "reader@127.0.0.1:$P/postgres?password=a%20b%40c%2F1&connect_timeout=5",
        "127.0.0.1:$P/postgres?user=reader&password=a%20b%40c%2F1#kith"};
    for (size_t i = 0; i < N_ROWS(addresses); i++) {
        char command[1024];
        snprintf(command, sizeof command,
                 "P=$(echo \"$A\" | sed 's/.*127.0.0.1:\\([0-9]*\\).*/\\1/'); $K index \"postgresql://%s\" "
                 "--info --json",
                 addresses[i]);
        assert_done(command, "\"items\": 12,");
        if (strstr(output, "a%20b") || strstr(output, "a b@") || strstr(output, "c/1"))
            fail_msg("the password was printed: %s", output);
        snprintf(command, sizeof command,
                 "P=$(echo \"$A\" | sed 's/.*127.0.0.1:\\([0-9]*\\).*/\\1/'); $K index \"postgresql://%s\" "
                 "--remove "
                 "glyph00000 2>&1",
                 addresses[i]);
        assert_refused(command, 1, "permission denied");
        if (strstr(output, "a%20b") || strstr(output, "a b@") || strstr(output, "c/1"))
            fail_msg("the password was printed: %s", output);
    }
    assert_done(
        "P=$(echo \"$A\" | sed 's/.*127.0.0.1:\\([0-9]*\\).*/\\1/'); "
        "PGPASSWORD='a b@c/1' $K index \"postgresql://reader@127.0.0.1:$P/postgres\" --info",
        "items       12\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search_prints_the_same),
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_own_false_match_rates),
        cmocka_unit_test(test_sync),
        cmocka_unit_test(test_names_in_another_encoding),
        cmocka_unit_test(test_another_model_is_refused),
        cmocka_unit_test(test_sync_goes_on),
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_passwords),
    };
    return cmocka_run_group_tests(tests, set_up, testing_tear_down);
}
