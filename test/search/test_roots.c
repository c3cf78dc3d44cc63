/* What of a path is shown. */
#include "search/roots.h"

#include <string.h>

#include "support/testing.h"

static void test_shown(void **state) {
    (void)state;
    static const struct {
        const char *sources, *path, *shown;
    } row[] = {
        {"/a/photos", "/a/photos/oak/1.jpg", "oak/1.jpg"},
        {"/a/photos", "/a/photos/1.jpg", "1.jpg"},
        {"/a/photos/", "/a/photos/1.jpg", "1.jpg"},
        {"/a/photos", "/a/photos2/oak/1.jpg", "oak/1.jpg"}, /* elsewhere: the last two names */
        {"/a/photos/1.jpg", "/a/photos/1.jpg", "1.jpg"},
        {"/a/photos\n/b/more", "/a/photos/oak/1.jpg", "photos/oak/1.jpg"},
        {"/a/photos\n/b/more", "/b/more/1.jpg", "more/1.jpg"},
        {"/a/photos\n/b/1.jpg", "/b/1.jpg", "1.jpg"},
        {"/a/photos\n/a/photos/2023", "/a/photos/2023/1.jpg", "2023/1.jpg"}, /* of the inner one */
        {"/", "/x/y/1.jpg", "x/y/1.jpg"},
        {"/", "/1.jpg", "1.jpg"},
        {"", "/x/y/1.jpg", "y/1.jpg"},
        {"/data/recipe.yaml", "/birds/images/tern/1.jpg", "tern/1.jpg"},
        {"", "/1.jpg", "1.jpg"},
        {"/a", "photos/oak/1.jpg", "photos/oak/1.jpg"},
        {"/a", "", ""},
        {"/a", "/", ""},
    };
    for (size_t i = 0; i < N_ROWS(row); i++) {
        ki_arena arena = {0};
        ki_roots roots;
        kith_error err;
        assert_ok(ki_roots_init(&roots, row[i].sources, &arena, &err), &err);
        const char *shown = ki_roots_shown(&roots, row[i].path);
        if (strcmp(shown, row[i].shown) != 0)
            fail_msg("%s of %s is shown as '%s', wanted '%s'", row[i].path, row[i].sources, shown,
                     row[i].shown);
        ki_arena_release(&arena);
    }
}

/* An index that does not say where its items come from. */
static void test_no_sources(void **state) {
    (void)state;
    ki_arena arena = {0};
    ki_roots roots;
    kith_error err;
    assert_ok(ki_roots_init(&roots, NULL, &arena, &err), &err);
    assert_string_equal(ki_roots_shown(&roots, "/srv/me/oak/1.jpg"), "oak/1.jpg");
    ki_arena_release(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shown), cmocka_unit_test(test_no_sources)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
