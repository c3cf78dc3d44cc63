/* What is timed when nobody says: names that exist, an end, and a section that makes an objective. */
#include "objective/cases.h"
#include "objective/usual.h"

static void test_usual_losses(void **state) {
    (void)state;
    const ki_sizes sizes = {.embedding = 4};
    int n = 0;
    for (const char *name; n < 100 && (name = ki_usual_loss_at(n)); n++) {
        const char *plus = strchr(name, '+');
        char recipe[128];
        snprintf(recipe, sizeof recipe, "loss: {name: %.*s}\nminer: {name: %s}",
                 (int)(plus ? (size_t)(plus - name) : strlen(name)), name, plus ? plus + 1 : "all");
        made m = made_of(recipe, &sizes);
        made_free(&m);
    }
    assert_in_range(n, 1, 99);
    for (int i = 0; i < 8; i++) assert_null(ki_usual_loss_at(n + i));
    assert_null(ki_usual_loss_at(-1));
    made m = made_of(ki_usual_section, &sizes);
    made_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_usual_losses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
