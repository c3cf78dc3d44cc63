/* What a pull reads before it trusts anything: names, addresses, heads of answers; hashes; where the cache is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hub/answer.h"
#include "hub/cache.h"
#include "hub/git_hash.h"
#include "hub/url.h"
#include "support/testing.h"

/* ---- names ---- */

static void test_names(void **state) {
    (void)state;
    static const struct {
        const char *text, *repo, *revision;
    } good[] = {
        {"timm/resnet50.a1_in1k", "timm/resnet50.a1_in1k", "main"},
        {"hub:timm/resnet50.a1_in1k", "timm/resnet50.a1_in1k", "main"},
        {"a/b@v1.0", "a/b", "v1.0"},
        {"a/b@refs/pr/1", "a/b", "refs/pr/1"},
        {"Org-1/na_me.x@0123456789abcdef0123456789abcdef01234567", "Org-1/na_me.x",
         "0123456789abcdef0123456789abcdef01234567"},
        {"resnet50", "timm/resnet50.a1_in1k", "main"},
        {"hub:resnet50@v2", "timm/resnet50.a1_in1k", "v2"},
    };
    for (size_t i = 0; i < N_ROWS(good); i++) {
        ki_hub_name name;
        kith_error err = {0};
        assert_ok(ki_hub_name_parse(good[i].text, &name, &err), &err);
        assert_string_equal(name.repo, good[i].repo);
        assert_string_equal(name.revision, good[i].revision);
        assert_string_equal(name.file, "model.safetensors");
    }
}

static void test_names_that_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",          "hub:",       "/",       "a/",
        "/b",        "../x",       "a/..",    "a/../b",
        "a/b/c",     "/etc/x",     "a//b",    "a/b@",
        "a/b@../x",  "a/b@/x",     "a/b@x/",  "a/b@x//y",
        "a/b@.x",    "a/b@x/.y",   "a b/c",   "a/b c",
        "a/b\n",     "a/b\x1b[2J", "a/b%2e",  "a\\b/c",
        "a/.b",      "a/b.",       "-a/b",    "a/b-",
        "a/b--c",    "a/b..c",     "a/b.git", "a/b@x\ny",
        "a/b@x?y=1", "a/b@x%2Fy",  "a/b@x#y", "h\xc3\xa9/b",
        "a/b@@x",    "a:b/c",      "a/b?x",   "file:///etc/passwd",
    };
    for (size_t i = 0; i < N_ROWS(bad); i++) {
        ki_hub_name name;
        kith_error err = {0};
        const kith_status status = ki_hub_name_parse(bad[i], &name, &err);
        if (status != KITH_EINVAL) fail_msg("'%s' gives %s", bad[i], kith_status_name(status));
        for (const char *s = err.message; *s; s++) {
            if ((unsigned char)*s < ' ') fail_msg("'%s' is shown with its control characters", bad[i]);
        }
    }
    char longest[2000];
    memset(longest, 'a', sizeof longest);
    longest[1] = '/', longest[sizeof longest - 1] = '\0';
    ki_hub_name name;
    for (size_t n = 90; n < sizeof longest; n += 50) { /* never more than the buffers have */
        longest[n] = '\0';
        const bool is_good = ki_hub_name_parse(longest, &name, NULL) == KITH_OK;
        assert_int_equal(is_good, n - 2 <= 96);
        longest[n] = 'a';
    }
}

static void test_unknown_short_names(void **state) {
    (void)state;
    ki_hub_name name;
    kith_error err = {0};
    assert_int_equal(ki_hub_name_parse("resnet5", &name, &err), KITH_ENOTFOUND);
    assert_non_null(strstr(err.message, "did you mean resnet50?"));
    assert_non_null(strstr(err.hint, "resnet50-tv"));
}

/* Every row can be pulled by its name and found by its repository. */
static void test_table(void **state) {
    (void)state;
    const ki_hub_row *row = NULL;
    size_t n = 0;
    for (; (row = ki_hub_row_at(n)); n++) {
        ki_hub_name name, full;
        kith_error err = {0};
        char text[400];
        assert_ok(ki_hub_name_parse(row->name, &name, &err), &err);
        assert_ptr_equal(name.row, row);
        assert_ok(ki_hub_name_parse(row->repo, &full, &err), &err);
        assert_ptr_equal(full.row, row);
        assert_string_equal(ki_hub_name_text(&full, text, sizeof text), row->name);
        assert_true(*row->licence && *row->summary && *row->backbone);
    }
    assert_true(n >= 3);
    assert_null(ki_hub_row_of_repo("org/net"));
}

/* ---- addresses ---- */

static void test_addresses(void **state) {
    (void)state;
    ki_hub_url url, other;
    kith_error err = {0};
    assert_ok(ki_hub_url_parse("https://HuggingFace.co:443/x", "it", &url, &err), &err);
    assert_string_equal(url.origin, "https://huggingface.co");
    assert_true(url.is_https && !url.is_loopback);
    assert_ok(ki_hub_url_parse("http://127.0.0.1:8080", "it", &url, &err), &err);
    assert_true(!url.is_https && url.is_loopback);
    assert_ok(ki_hub_url_parse("http://[::1]:8080/", "it", &url, &err), &err);
    assert_true(url.is_loopback);
    assert_ok(ki_hub_url_parse("http://127.evil.example/", "it", &url, &err), &err);
    assert_false(url.is_loopback);
    assert_ok(ki_hub_url_parse("https://a.example/hub/", "it", &url, &err), &err);
    assert_ok(ki_hub_url_of_file(&url, "o/n", "refs/pr/1", "config.json", &other, &err), &err);
    assert_string_equal(other.text, "https://a.example/hub/o/n/resolve/refs%2Fpr%2F1/config.json");
    assert_true(ki_hub_url_same_origin(&url, &other));
}

static void test_addresses_that_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      "huggingface.co",
                                      "file:///etc/passwd",
                                      "ftp://a.example/",
                                      "https://",
                                      "https:///x",
                                      "https://me:secret@a.example/",
                                      "https://a.example@evil.example/",
                                      "https://a.example\\@evil.example/",
                                      "https://a.example#@evil.example/",
                                      "https://a.example:x/",
                                      "https://a.example:123456/",
                                      "https://a example/",
                                      "https://a.example/\r\nX: y",
                                      "https://[::1/",
                                      "https://.a/",
                                      "HTTPS://a.example/"};
    for (size_t i = 0; i < N_ROWS(bad); i++) {
        ki_hub_url url;
        kith_error err = {0};
        if (ki_hub_url_parse(bad[i], "HF_ENDPOINT", &url, &err) != KITH_EINVAL)
            fail_msg("'%s' is taken", bad[i]);
        assert_null(strstr(err.message, "secret"));
    }
}

static void test_redirects(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *wanted; /* NULL: refused */
    } rows[] = {
        {"https://a.example/x", "https://cdn.example/y?z=%20", "https://cdn.example/y?z=%20"},
        {"https://a.example:444/x?q", "/y", "https://a.example:444/y"},
        {"http://127.0.0.1:1/x", "http://127.0.0.1:2/y", "http://127.0.0.1:2/y"},
        {"http://127.0.0.1:1/x", "https://a.example/y", "https://a.example/y"},
        {"https://a.example/x", "http://a.example/x", NULL},
        {"https://a.example/x", "//evil.example/x", NULL},
        {"https://a.example/x", "file:///etc/passwd", NULL},
        {"http://127.0.0.1:1/x", "file:///etc/passwd", NULL},
        {"https://a.example/x", "", NULL},
        {"https://a.example/x", "y", NULL},
        {"https://a.example/x", "/y z", NULL},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_hub_url from, to;
        kith_error err = {0};
        assert_ok(ki_hub_url_parse(rows[i].from, "it", &from, &err), &err);
        const kith_status status = ki_hub_url_follow(&from, rows[i].to, &to, &err);
        if (!rows[i].wanted) {
            if (status == KITH_OK) fail_msg("%s to %s is followed", rows[i].from, rows[i].to);
            continue;
        }
        assert_ok(status, &err);
        assert_string_equal(to.text, rows[i].wanted);
    }
}

/* ---- answers ---- */

static void take(ki_hub_answer *a, const char *line) {
    kith_error err = {0};
    assert_ok(ki_hub_answer_line(a, line, strlen(line), &err), &err);
}

static void test_answers(void **state) {
    (void)state;
    ki_hub_answer a;
    ki_hub_answer_init(&a);
    take(&a, "HTTP/1.1 100 Continue\r\n");
    take(&a, "ETag: \"of the first\"\r\n");
    take(&a, "HTTP/2 302 \r\n");
    assert_int_equal(a.status, 302);
    assert_string_equal(a.etag, "");
    take(&a, "x-linked-ETAG: \"abc\"\r\n");
    take(&a, "ETag: W/\"def\"\r\n");
    take(&a, "X-Linked-Size:  102\t\r\n");
    take(&a, "Content-Length: 7\r\n");
    take(&a, "X-Repo-Commit: 0123456789abcdef0123456789abcdef01234567\r\n");
    take(&a, "Location: https://cdn.example/x\r\n");
    take(&a, "Content-Range: bytes 5-9/10\r\n");
    take(&a, "X-Error-Code: EntryNotFound\r\n");
    assert_string_equal(a.linked_etag, "abc");
    assert_string_equal(a.etag, "def");
    assert_int_equal(a.linked_size, 102);
    assert_int_equal(a.length, 7);
    assert_int_equal(a.range_first, 5);
    assert_int_equal(a.range_all, 10);
    assert_int_equal(strlen(a.commit), 40);
    assert_string_equal(a.location, "https://cdn.example/x");
    assert_string_equal(a.error_code, "EntryNotFound");
    take(&a, "Content-Length: 8\r\n"); /* the first of two counts */
    assert_int_equal(a.length, 7);
}

static void test_hostile_answers(void **state) {
    (void)state;
    static const char *const lines[] = {"Content-Length: -1",
                                        "Content-Length: 99999999999999999999999",
                                        "Content-Length: 1e3",
                                        "Content-Length:",
                                        "X-Linked-Size: 0x10",
                                        "Content-Range: bytes 9-5/10",
                                        "Content-Range: bytes 5-10/10",
                                        "Content-Range: bytes 5-",
                                        "Content-Range: bytes */10",
                                        "X-Repo-Commit: 0123456789ABCDEF0123456789abcdef01234567",
                                        "X-Repo-Commit: ../../../../../../../../../../../../etc/pas",
                                        "X-Repo-Commit: 0123456789abcdef0123456789abcdef012345678",
                                        "ETag: a b",
                                        "ETag: \x1b[2J",
                                        "Location: a b",
                                        ":",
                                        "no colon"};
    ki_hub_answer a, empty;
    ki_hub_answer_init(&a);
    ki_hub_answer_init(&empty);
    for (size_t i = 0; i < N_ROWS(lines); i++) take(&a, lines[i]);
    empty.n_head_bytes = a.n_head_bytes;
    assert_memory_equal(&a, &empty, sizeof a);
    char *longest = malloc(300 << 10);
    assert_non_null(longest);
    memset(longest, 'x', 300 << 10);
    memcpy(longest, "Location: ", 10);
    assert_ok(ki_hub_answer_line(&a, longest, 100 << 10, NULL), (&(kith_error){0}));
    assert_string_equal(a.location, "");
    assert_int_equal(ki_hub_answer_line(&a, longest, 100 << 10, NULL), KITH_OK);
    assert_int_equal(ki_hub_answer_line(&a, longest, 100 << 10, NULL), KITH_EFORMAT);
    free(longest);
}

/* ---- hashes ---- */

/* The examples of FIPS 180; git's name of an empty file and of "hello\n". */
static void test_hashes(void **state) {
    (void)state;
    static const struct {
        const char *text, *hex;
    } plain[] = {{"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
                 {"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
                 {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                  "84983e441c3bd26ebaae4aa1f95129e5e54670f1"}};
    char hex[41];
    ki_git_hash hash;
    for (size_t i = 0; i < N_ROWS(plain); i++) {
        ki_git_hash_plain(&hash);
        ki_git_hash_add(&hash, plain[i].text, strlen(plain[i].text));
        ki_git_hash_finish(&hash, hex);
        assert_string_equal(hex, plain[i].hex);
    }
    ki_git_hash_plain(&hash);
    for (int i = 0; i < 1000000; i++) ki_git_hash_add(&hash, "a", 1);
    ki_git_hash_finish(&hash, hex);
    assert_string_equal(hex, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    ki_git_hash_begin(&hash, 0);
    ki_git_hash_finish(&hash, hex);
    assert_string_equal(hex, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
    ki_git_hash_begin(&hash, 6);
    ki_git_hash_add(&hash, "hello\n", 6);
    ki_git_hash_finish(&hash, hex);
    assert_string_equal(hex, "ce013625030ba8dba906f756967f9e9ca394464a");
}

/* ---- the cache ---- */

static void test_where_the_cache_is(void **state) {
    (void)state;
    static const char *const names[] = {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"};
    static const char *const wanted[] = {"/1", "/2", "/3/hub", "/4/huggingface/hub",
                                         "/h/.cache/huggingface/hub"};
    ki_path path;
    kith_error err = {0};
    setenv("HOME", "/h", 1);
    for (size_t first = 0; first <= N_ROWS(names); first++) {
        for (size_t i = 0; i < N_ROWS(names); i++) {
            char value[8];
            snprintf(value, sizeof value, "/%zu", i + 1);
            if (i < first)
                setenv(names[i], "", 1); /* empty is as good as none */
            else
                setenv(names[i], value, 1);
        }
        assert_ok(ki_hub_cache_folder(NULL, &path, &err), &err);
        assert_string_equal(path.s, wanted[first]);
    }
    setenv("HF_HUB_CACHE", "~/c", 1);
    assert_ok(ki_hub_cache_folder(NULL, &path, &err), &err);
    assert_string_equal(path.s, "/h/c");
    assert_ok(ki_hub_cache_folder("/given", &path, &err), &err);
    assert_string_equal(path.s, "/given");
    for (size_t i = 0; i < N_ROWS(names); i++) unsetenv(names[i]);
}

static void test_repository_of_a_path(void **state) {
    (void)state;
    char repo[KI_HUB_REPO] = "";
    assert_true(ki_hub_repo_of_path("/c/models--o--n.x/snapshots/0123/model.safetensors", repo));
    assert_string_equal(repo, "o/n.x");
    assert_true(ki_hub_repo_of_path("models--o--n/snapshots/0123/f", repo));
    static const char *const others[] = {"model.safetensors",
                                         "/model.safetensors",
                                         "/c/models--o--n/blobs/0123/f",
                                         "/c/models--o--n/snapshots/f",
                                         "/c/datasets--o--n/snapshots/0123/f",
                                         "/c/models--gpt2/snapshots/0123/f",
                                         "/c/models--/snapshots/0123/f",
                                         "/c/models--..--n/snapshots/0123/f",
                                         ""};
    for (size_t i = 0; i < N_ROWS(others); i++) {
        if (ki_hub_repo_of_path(others[i], repo)) fail_msg("%s is taken for one of %s", others[i], repo);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_names_that_are_refused),
        cmocka_unit_test(test_unknown_short_names),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_addresses_that_are_refused),
        cmocka_unit_test(test_redirects),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_hostile_answers),
        cmocka_unit_test(test_hashes),
        cmocka_unit_test(test_where_the_cache_is),
        cmocka_unit_test(test_repository_of_a_path),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
