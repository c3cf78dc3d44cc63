/* Tar files: every way to write a name and a size, what is damaged, and members that are read as files. */
#include "io/tar.h"

#include <pthread.h>
#include <unistd.h>

#include "base/rng.h"
#include "io/tar_file.h"
#include "io/tar_writer.h"
#include "kith/eval.h"
#include "kith/log.h"

static ki_tar_walk *walk_of(const tar_writer *t) {
    ki_tar_walk *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->source = (ki_tar_source){.fd = -1, .bytes = t->bytes, .n_bytes = (int64_t)t->n, .name = "test"};
    return w;
}

static ki_tar_entry next(ki_tar_walk *w) {
    ki_tar_entry entry;
    bool more = false;
    kith_error err = {0};
    assert_ok(ki_tar_next(w, &entry, &more, &err), &err);
    assert_true(more);
    return entry;
}

static void assert_end(ki_tar_walk *w) {
    ki_tar_entry entry;
    bool more = true;
    kith_error err = {0};
    assert_ok(ki_tar_next(w, &entry, &more, &err), &err);
    assert_false(more);
}

static void assert_damaged(tar_writer *t, const char *text) {
    ki_tar_walk *w = walk_of(t);
    ki_tar_entry entry;
    bool more = false;
    kith_error err = {0};
    kith_status status = KITH_OK;
    do status = ki_tar_next(w, &entry, &more, &err);
    while (status == KITH_OK && more);
    if (status != KITH_EFORMAT || !strstr(err.message, text))
        fail_msg("%s '%s'; wanted '%s'", kith_status_name(status), err.message, text);
    free(w);
    tar_release(t);
}

static void test_names(void **state) {
    (void)state;
    tar_writer t = {0};
    char name[301], pax[301];
    memset(name, 'n', 300);
    memset(pax, 'p', 300);
    name[300] = pax[300] = '\0';
    tar_add_text(&t, "./a/b.txt", "one");
    const size_t at = tar_header(&t, "x.jpg", '0', 0, NULL);
    memcpy(t.bytes + at + 345, "very/long/prefix", 16);
    tar_sum(&t, at);
    tar_add(&t, "././@LongLink", 'L', name, 301);
    tar_add_text(&t, "cut", "two");
    tar_add_pax(&t, "path", pax);
    tar_add_text(&t, "cut", "three");
    tar_add(&t, "pax_global_header", 'g', "11 path=no\n", 11);
    tar_add_text(&t, "after", "four");
    tar_end(&t);
    ki_tar_walk *w = walk_of(&t);
    ki_tar_entry entry = next(w);
    assert_string_equal(entry.name, "a/b.txt");
    assert_true(entry.is_file && !entry.is_odd && entry.at == 512 && entry.bytes == 3);
    assert_string_equal(next(w).name, "very/long/prefix/x.jpg");
    assert_string_equal(next(w).name, name);
    assert_string_equal(next(w).name, pax);
    entry = next(w);
    assert_string_equal(entry.name, "after");
    assert_memory_equal(t.bytes + entry.at, "four", 4);
    assert_end(w);
    free(w);
    tar_release(&t);
}

static void test_odd_names(void **state) {
    (void)state;
    static const char *const names[] = {"/etc/passwd", "../up", "a/../b", "a/..", "tab\there", "\x7f", ""};
    static const char *const plain[] = {"a..b", "..a/b", "a/.../b", "ünï"};
    tar_writer t = {0};
    for (size_t i = 0; i < N_ROWS(names); i++) tar_add_text(&t, names[i], "x");
    for (size_t i = 0; i < N_ROWS(plain); i++) tar_add_text(&t, plain[i], "x");
    char *huge = malloc(6001);
    assert_non_null(huge);
    memset(huge, 'h', 6000);
    huge[6000] = '\0';
    memcpy(huge + 5995, "x.jpg", 5);
    tar_add_pax(&t, "path", huge);
    tar_add_text(&t, "cut", "x");
    tar_end(&t);
    ki_tar_walk *w = walk_of(&t);
    for (size_t i = 0; i < N_ROWS(names); i++) {
        if (!next(w).is_odd) fail_msg("'%s' is taken", names[i]);
    }
    for (size_t i = 0; i < N_ROWS(plain); i++) {
        if (next(w).is_odd) fail_msg("'%s' is refused", plain[i]);
    }
    const ki_tar_entry last = next(w);
    assert_true(last.is_odd);
    assert_int_equal(strlen(last.name), KI_TAR_MOST_NAME);
    assert_string_equal(last.name + KI_TAR_MOST_NAME - 6, "hx.jpg");
    assert_end(w);
    free(huge);
    free(w);
    tar_release(&t);
}

static void test_kinds(void **state) {
    (void)state;
    tar_writer t = {0};
    tar_add(&t, "folder/", '5', NULL, 0);
    tar_add(&t, "old/", '\0', NULL, 0);
    tar_header(&t, "link.jpg", '2', 5000, NULL); /* links have no contents, whatever their size says */
    tar_header(&t, "hard.jpg", '1', 5000, NULL);
    tar_add(&t, "sparse.jpg", 'S', "x", 1);
    tar_add_pax(&t, "GNU.sparse.major", "1");
    tar_add_text(&t, "sparse2.jpg", "x");
    tar_add(&t, "old.jpg", '\0', "x", 1);
    tar_add(&t, "contiguous.jpg", '7', "x", 1);
    tar_end(&t);
    static const bool is_file[] = {false, false, false, false, false, false, true, true};
    ki_tar_walk *w = walk_of(&t);
    for (size_t i = 0; i < N_ROWS(is_file); i++) {
        const ki_tar_entry entry = next(w);
        if (entry.is_file != is_file[i]) fail_msg("%s: a file %d", entry.name, entry.is_file);
    }
    assert_end(w);
    free(w);
    tar_release(&t);
}

static void test_sizes(void **state) {
    (void)state;
    tar_writer t = {0};
    tar_header(&t, "a", '0', 0, "\x80\0\0\0\0\0\0\0\0\0\0\x05");
    tar_add_bytes(&t, (char[512]){"12345"}, 512);
    tar_header(&t, "b", '0', 0, "        3 \0");
    tar_add_bytes(&t, (char[512]){"123"}, 512);
    tar_add_pax(&t, "size", "4");
    tar_header(&t, "c", '0', 0, "00000000000");
    tar_add_bytes(&t, (char[512]){"1234"}, 512);
    tar_header(&t, "d", '0', 0, "\0\0\0\0\0\0\0\0\0\0\0");
    tar_end(&t);
    ki_tar_walk *w = walk_of(&t);
    assert_int_equal(next(w).bytes, 5);
    assert_int_equal(next(w).bytes, 3);
    assert_int_equal(next(w).bytes, 4);
    assert_int_equal(next(w).bytes, 0);
    assert_end(w);
    free(w);
    tar_release(&t);
}

static void test_damaged(void **state) {
    (void)state;
    static const struct {
        const char *size, *text;
    } sizes[] = {
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "a size that is no number"}, /* -1 */
        {"\xbf\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "a size that is no number"},
        {"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", "x.jpg has 9223372036854775807 bytes"},
        {"77777777777\0", "x.jpg has 8589934591 bytes, and 1024 are left"},
        {"777777777777", "x.jpg has 68719476735 bytes"},
        {"-0000000001\0", "a size that is no number"},
        {"0000000x001\0", "a size that is no number"},
        {"00000002001\0", "x.jpg has 1025 bytes, and 1024 are left"},
    };
    tar_writer t = {0};
    for (size_t i = 0; i < N_ROWS(sizes); i++) {
        tar_header(&t, "x.jpg", '0', 0, sizes[i].size);
        tar_end(&t);
        assert_damaged(&t, sizes[i].text);
    }
    static const char *const values[] = {"-5", "99999999999999999999", "1e3", ""};
    for (size_t i = 0; i < N_ROWS(values); i++) {
        tar_add_pax(&t, "size", values[i]);
        tar_add_text(&t, "x.jpg", "");
        tar_end(&t);
        assert_damaged(&t, "x.jpg has -1 bytes");
    }
    static const char *const records[] = {"5 a=b\n", "7 a=b\n", "99 a=b\n", "6 a b\n",
                                          "a=b\n",   "6 a=bx",  "0 a=b\n",  "\n"};
    for (size_t i = 0; i < N_ROWS(records); i++) {
        tar_add(&t, "PaxHeaders/x", 'x', records[i], strlen(records[i]));
        tar_add_text(&t, "x.jpg", "x");
        tar_end(&t);
        assert_damaged(&t, "a pax header");
    }
    char *long_name = calloc(1, 70000);
    assert_non_null(long_name);
    tar_add(&t, "././@LongLink", 'L', long_name, 70000);
    free(long_name);
    tar_end(&t);
    assert_damaged(&t, "a header of more than 65536 bytes");
    tar_add_text(&t, "x.jpg", "x");
    assert_damaged(&t, "damaged at byte 1024: it ends without a mark of its end");
    tar_add_text(&t, "x.jpg", "x");
    t.n = 700;
    assert_damaged(&t, "damaged at byte 700: it ends without");
    tar_add_text(&t, "x.jpg", "x");
    t.bytes[3] ^= 1;
    assert_damaged(&t, "damaged at byte 0: a header with a wrong checksum");
    assert_damaged(&t, "damaged at byte 0: it ends");
}

/* Whatever is in the bytes: the walk ends, and what it hands out lies in the archive. */
static void test_mutations(void **state) {
    (void)state;
    tar_writer good = {0};
    char name[301] = {0};
    memset(name, 'n', 300);
    tar_add(&good, "././@LongLink", 'L', name, 301);
    tar_add_text(&good, "cut", "two");
    tar_add_pax(&good, "path", "somewhere/else.jpg");
    tar_add_pax(&good, "size", "3");
    tar_add_text(&good, "cut", "abc");
    tar_add_text(&good, "a/b.jpg", "one");
    tar_end(&good);
    ki_rng rng = ki_rng_at(1, KI_RNG_TEST, 2, 0);
    int n_damaged = 0, n_members = 0;
    for (int round = 0; round < 20000; round++) {
        tar_writer t = {0};
        tar_add_bytes(&t, good.bytes,
                      ki_rng_below(&rng, 4) ? good.n : ki_rng_below(&rng, (uint32_t)good.n + 1));
        for (uint32_t k = ki_rng_below(&rng, 4); k > 0 && t.n > 0; k--) {
            const size_t at = ki_rng_below(&rng, (uint32_t)t.n);
            t.bytes[at] = (unsigned char)ki_rng_below(&rng, 256);
            if (ki_rng_below(&rng, 4) && at / 512 * 512 + 512 <= t.n) tar_sum(&t, at / 512 * 512);
        }
        /* Exactly as long, so that a sanitizer sees a byte more. */
        unsigned char *exact = malloc(t.n ? t.n : 1);
        assert_non_null(exact);
        if (t.n) memcpy(exact, t.bytes, t.n);
        free(t.bytes);
        t.bytes = exact;
        ki_tar_walk *w = walk_of(&t);
        ki_tar_entry entry;
        bool more = false;
        kith_error err = {0};
        int n = 0;
        while (ki_tar_next(w, &entry, &more, &err) == KITH_OK && more) {
            assert_true(entry.at >= 0 && entry.bytes >= 0 && entry.at + entry.bytes <= (int64_t)t.n);
            assert_true(strlen(entry.name) <= KI_TAR_MOST_NAME);
            assert_true(++n < 100);
            n_members++;
        }
        n_damaged += err.message[0] != '\0';
        free(w);
        free(exact);
    }
    print_message("%d damaged, %d members\n", n_damaged, n_members);
    assert_true(n_damaged > 1000 && n_members > 10000);
    tar_release(&good);
}

/* ---- files ---- */

static const char *in(const char *name) {
    static char paths[4][4096];
    static int at;
    char *path = paths[at++ % 4];
    snprintf(path, 4096, "%s/%s", testing_folder(), name);
    return path;
}

static void save(const char *name, const tar_writer *t) {
    FILE *file = fopen(in(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(t->bytes, 1, t->n, file), t->n);
    assert_int_equal(fclose(file), 0);
}

static void assert_part(const char *path, const char *text) {
    ki_member part;
    kith_error err = {0};
    char buf[100] = "";
    size_t n = 0;
    int64_t bytes = 0;
    assert_ok(ki_member_open(path, &part, &err), &err);
    assert_ok(ki_member_read(&part, path, buf, sizeof buf - 1, 0, &n, &err), &err);
    ki_member_close(&part);
    buf[n] = '\0';
    assert_string_equal(buf, text);
    assert_true(ki_member_look(path, &bytes, NULL));
    assert_int_equal(bytes, strlen(text));
}

static void test_members_as_files(void **state) {
    (void)state;
    tar_writer t = {0};
    tar_add_text(&t, "a/b.txt", "first");
    tar_add_text(&t, "c.txt", "other");
    tar_add_text(&t, "a/b.txt", "second");
    tar_end(&t);
    save("x.tar", &t);
    assert_part(in("x.tar/a/b.txt"), "second"); /* as it is when the file is unpacked */
    assert_part(in("x.tar/c.txt"), "other");
    testing_write(in("plain.txt"), "plain");
    assert_part(in("plain.txt"), "plain");
    ki_member part;
    kith_error err = {0};
    assert_int_equal(ki_member_open(in("x.tar/no.txt"), &part, &err), KITH_EIO);
    assert_non_null(strstr(err.message, "no such member"));
    assert_int_equal(ki_member_open(in("y.tar/no.txt"), &part, &err), KITH_EIO);
    assert_false(ki_member_look(in("x.tar/../plain.txt"), NULL, NULL));
    char member[65], file[65];
    testing_write(in("same.txt"), "second");
    assert_ok(kith_file_hash(in("x.tar/a/b.txt"), member, &err), &err);
    assert_ok(kith_file_hash(in("same.txt"), file, &err), &err);
    assert_string_equal(member, file);
    /* Another file under its name is listed anew, unless somebody holds the old one. */
    tar_release(&t);
    tar_add_text(&t, "a/b.txt", "now longer than before");
    tar_add_text(&t, "more", "x");
    tar_end(&t);
    save("x.tar", &t);
    assert_part(in("x.tar/a/b.txt"), "now longer than before");
    tar_release(&t);
}

/* A file that is held twice is listed once; when another takes its name, that one is read. */
static void test_replaced(void **state) {
    (void)state;
    tar_writer t = {0};
    ki_tar *first = NULL, *same = NULL, *second = NULL;
    kith_error err = {0};
    ki_member open = {.fd = -1};
    char path[4096], buf[8] = "";
    size_t n = 0;
    snprintf(path, sizeof path, "%s", in("r.tar"));
    tar_add_text(&t, "m", "old");
    tar_end(&t);
    save("r.tar", &t);
    tar_release(&t);
    assert_ok(ki_tar_hold(path, NULL, NULL, &first, &err), &err);
    assert_ok(ki_tar_hold(path, NULL, NULL, &same, &err), &err);
    assert_ptr_equal(first, same);
    ki_tar_let_go(same);
    assert_ok(ki_member_open(in("r.tar/m"), &open, &err), &err);
    tar_add_text(&t, "before", "a member more");
    tar_add_text(&t, "m", "new!");
    tar_end(&t);
    save("next.tar", &t);
    tar_release(&t);
    assert_int_equal(rename(in("next.tar"), path), 0);
    assert_ok(ki_tar_hold(path, NULL, NULL, &second, &err), &err);
    assert_true(first != second);
    assert_part(in("r.tar/m"), "new!");
    assert_ok(ki_member_read(&open, "r.tar/m", buf, sizeof buf, 0, &n, &err), &err);
    assert_string_equal(buf, "old"); /* what was open stays what it was */
    ki_tar_let_go(first);
    ki_member_close(&open);
    assert_part(in("r.tar/m"), "new!");
    ki_tar_let_go(second);
    assert_part(in("r.tar/m"), "new!");
}

/* More files than are remembered, or stay open; a folder may be called x.tar. */
static void test_many_files(void **state) {
    (void)state;
    enum { N = 230 };
    static ki_tar *tar[N];
    kith_memory_stats before, after;
    kith_error err = {0};
    char name[64], text[64];
    kith_memory_stats_get(&before);
    for (int i = 0; i < N; i++) {
        tar_writer t = {0};
        snprintf(name, sizeof name, "many%d.tar", i);
        snprintf(text, sizeof text, "of file %d", i);
        tar_add_text(&t, "m", text);
        tar_end(&t);
        save(name, &t);
        tar_release(&t);
        assert_ok(ki_tar_hold(in(name), NULL, NULL, &tar[i], &err), &err);
        assert_null(ki_tar_damage(tar[i]));
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++) {
            snprintf(name, sizeof name, "many%d.tar/m", i);
            snprintf(text, sizeof text, "of file %d", i);
            assert_part(in(name), text);
        }
        if (round == 0) continue;
        for (int i = 0; i < N; i++) ki_tar_let_go(tar[i]);
    }
    kith_memory_stats_get(&after);
    assert_true(after.live_bytes <= before.live_bytes + 65536); /* of those remembered before */
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "many%d.tar/m", i);
        snprintf(text, sizeof text, "of file %d", i);
        assert_part(in(name), text);
    }
    char output[100];
    assert_int_equal(testing_run(output, sizeof output, "mkdir -p %s", in("folder.tar/sub")), 0);
    testing_write(in("folder.tar/sub/a.txt"), "in a folder");
    assert_part(in("folder.tar/sub/a.txt"), "in a folder");
}

static void *read_often(void *context) {
    for (int i = 0; i < 300; i++) {
        ki_member part;
        char name[64], buf[16];
        size_t n = 0;
        const int k = (i * 7 + (int)(intptr_t)context) % 9;
        snprintf(name, sizeof name, "%s/t%d.tar/m", testing_folder(), k);
        if (ki_member_open(name, &part, NULL) != KITH_OK) return (void *)1;
        const bool fine =
            ki_member_read(&part, name, buf, 1, 0, &n, NULL) == KITH_OK && n == 1 && buf[0] == '0' + k;
        ki_member_close(&part);
        if (!fine) return (void *)1;
    }
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    pthread_t thread[4];
    for (int i = 0; i < 9; i++) {
        tar_writer t = {0};
        char name[64];
        snprintf(name, sizeof name, "t%d.tar", i);
        tar_add(&t, "m", '0', &"012345678"[i], 1);
        tar_end(&t);
        save(name, &t);
        tar_release(&t);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, read_often, (void *)(intptr_t)i), 0);
    for (int i = 0; i < 4; i++) {
        void *bad = NULL;
        assert_int_equal(pthread_join(thread[i], &bad), 0);
        assert_null(bad);
    }
}

static void test_packed(void **state) {
    (void)state;
    ki_tar *tar = NULL;
    kith_error err = {0};
    FILE *file = fopen(in("x.tar.gz"), "wb");
    assert_non_null(file);
    fwrite("\x1f\x8b\x08\0\0\0\0\0", 1, 8, file);
    fclose(file);
    assert_int_equal(ki_tar_hold(in("x.tar.gz"), NULL, NULL, &tar, &err), KITH_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "x.tar.gz is packed (gzip); wanted a plain .tar"));
    testing_write(in("empty.tar"), "");
    assert_ok(ki_tar_hold(in("empty.tar"), NULL, NULL, &tar, &err), &err);
    assert_non_null(strstr(ki_tar_damage(tar), "damaged at byte 0"));
    ki_tar_let_go(tar);
    ki_tar_let_go(NULL);
    assert_int_equal(ki_tar_hold(in("none.tar"), NULL, NULL, &tar, &err), KITH_EIO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),      cmocka_unit_test(test_odd_names),
        cmocka_unit_test(test_kinds),      cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_damaged),    cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_many_files), cmocka_unit_test(test_members_as_files),
        cmocka_unit_test(test_threads),    cmocka_unit_test(test_packed),
        cmocka_unit_test(test_replaced),
    };
    return cmocka_run_group_tests_name("io/tar", tests, NULL, testing_tear_down);
}
