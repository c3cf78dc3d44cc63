/* The page of hits: every picture is in it, nothing of a camera is, and what cannot be read is named. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kith/report.h"
#include "markup.h"
#include "support/testing.h"

static char output[65536];

static int count(const char *text, const char *what) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++) n++;
    return n;
}

static const char *in_folder(const char *name) {
    static char path[8][1024];
    static int at;
    char *to = path[at = (at + 1) % 8];
    snprintf(to, sizeof path[0], "%s/%s", testing_folder(), name);
    return to;
}

static void make_glyphs(void) {
    if (testing_run(output, sizeof output,
                    "cd %s && rm -rf glyphs && %s synth glyphs --classes 2 --images 2 --colour",
                    testing_folder(), testing_program()) != 0)
        fail_msg("%s", output);
}

static kith_status write_page(const kith_page_part *parts, int64_t n, int64_t most, kith_error *err) {
    KITH_OPTIONS(kith_hits_page, page);
    page.title = "Found in <birds> & \"bees\"";
    page.about = "The 3 most similar.";
    page.parts = parts;
    page.n_parts = n;
    page.most_parts = most;
    return kith_hits_page_write(&page, in_folder("hits.html"), err);
}

static void test_pictures(void **state) {
    (void)state;
    kith_error err = {0};
    make_glyphs();
    testing_write(in_folder("no.png"), "no");
    const char *const query[] = {in_folder("glyphs/glyph00000/00000.png")};
    const kith_page_hit hits[] = {
        {.image = query[0],
         .path = "a/<b>.png",
         .label = "x\"y",
         .id = 7,
         .score = 0.93214,
         .false_match_rate = 0.0123},
        {.image = in_folder("glyphs/glyph00001/00001.png"), .id = 8, .score = 0.5, .false_match_rate = NAN},
        {.image = in_folder("no.png"), .path = "no.png", .id = 9, .score = 0.25, .false_match_rate = NAN},
        {.id = 11, .score = NAN, .false_match_rate = NAN, .note = "mirrored"}};
    const kith_page_part parts[] = {
        {"one", query, 1, hits, 4}, {"two", NULL, 0, hits, 1}, {"three", NULL, 0, NULL, 0}};
    assert_ok(write_page(parts, 3, 1000, &err), &err);
    char *page = testing_read(in_folder("hits.html"));
    assert_well_formed(page);
    assert_int_equal(count(page, "<section>"), 3);
    assert_int_equal(count(page, "src=\"data:image/"), 1 + 2 + 1);
    assert_int_equal(count(page, "<span class=\"score\">0.932</span>"), 2);
    assert_non_null(strstr(page, "false-match rate 1.2 %"));
    assert_non_null(strstr(page, "a/&lt;b&gt;.png"));
    assert_null(strstr(page, "<b>"));
    assert_non_null(strstr(page, "id 8"));
    assert_non_null(strstr(page, "none of JPEG, PNG")); /* why the third has no picture */
    assert_non_null(strstr(page, "no picture"));
    assert_non_null(strstr(page, "mirrored"));
    assert_non_null(strstr(page, "Nothing found."));
    assert_null(strstr(page, "http://"));
    assert_null(strstr(page, "https://"));
    assert_ok(write_page(parts, 3, 1000, &err), &err);
    char *again = testing_read(in_folder("hits.html"));
    assert_string_equal(page, again);
    free(again);
    free(page);
    assert_ok(write_page(parts, 3, 2, &err), &err);
    page = testing_read(in_folder("hits.html"));
    assert_int_equal(count(page, "<section>"), 2);
    assert_non_null(strstr(page, "1 more are not shown."));
    free(page);
}

static void test_refusals(void **state) {
    (void)state;
    kith_error err = {0};
    KITH_OPTIONS(kith_hits_page, page);
    assert_int_equal(kith_hits_page_write(&page, in_folder("no.html"), &err), KITH_EINVAL);
    assert_string_equal(err.message, "the page has no title");
    page.title = "x";
    page.n_parts = 1;
    assert_int_equal(kith_hits_page_write(&page, in_folder("no.html"), &err), KITH_EINVAL);
    page.n_parts = 0;
    assert_int_equal(kith_hits_page_write(&page, in_folder("none/no.html"), &err), KITH_EIO);
    assert_int_not_equal(testing_run(output, sizeof output, "test -e %s", in_folder("no.html")), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pictures), cmocka_unit_test(test_refusals)};
    const int n_failed = cmocka_run_group_tests_name("report/hits", tests, NULL, NULL);
    testing_clean_up();
    return n_failed;
}
