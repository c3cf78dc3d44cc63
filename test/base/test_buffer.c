/* Buffers: escaping, base64, long lines, no memory. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "support/testing.h"

static void assert_text(ki_buffer *b, const char *wanted) {
    assert_int_equal(b->status, KITH_OK);
    if (b->n != strlen(wanted) || (b->n > 0 && memcmp(b->data, wanted, b->n) != 0))
        fail_msg("'%.*s'; wanted '%s'", (int)b->n, b->data ? b->data : "", wanted);
    ki_buffer_release(b);
}

static void test_escaping(void **state) {
    (void)state;
    static const struct {
        const char *text, *wanted;
    } rows[] = {{"", ""},
                {"plain é 漢 😀", "plain é 漢 😀"},
                {"<a href=\"x\">&'", "&lt;a href=&quot;x&quot;&gt;&amp;&#39;"},
                {"a\tb\nc\x01\x7f", "a\tb\nc\xef\xbf\xbd\xef\xbf\xbd"},
                {"\xff<\xc3", "\xef\xbf\xbd&lt;\xef\xbf\xbd"},
                {"\xef\xbf\xbd \xef\xbf\xbe \xef\xbf\xbf",
                 "\xef\xbf\xbd \xef\xbf\xbd \xef\xbf\xbd"}, /* XML has none of these */
                {"\xc0\xbc", "\xef\xbf\xbd\xef\xbf\xbd"} /* an overlong '<' */};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_buffer b = {0};
        ki_buffer_escaped(&b, rows[i].text);
        assert_text(&b, rows[i].wanted);
    }
}

/* The test vectors of RFC 4648. */
static void test_base64(void **state) {
    (void)state;
    static const char *const rows[][2] = {{"", ""},
                                          {"f", "Zg=="},
                                          {"fo", "Zm8="},
                                          {"foo", "Zm9v"},
                                          {"foob", "Zm9vYg=="},
                                          {"fooba", "Zm9vYmE="},
                                          {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        ki_buffer b = {0};
        ki_buffer_base64(&b, rows[i][0], strlen(rows[i][0]));
        assert_text(&b, rows[i][1]);
    }
}

static void test_long_lines(void **state) {
    (void)state;
    char text[3001], wanted[3100];
    memset(text, 'x', 3000);
    text[3000] = '\0';
    ki_buffer b = {0};
    ki_buffer_put(&b, "[%s]", text);
    ki_buffer_put(&b, "%d", 7);
    snprintf(wanted, sizeof wanted, "[%s]7", text);
    assert_text(&b, wanted);
}

/* After the first failure nothing is added and the failure stays. */
static void test_without_memory(void **state) {
    (void)state;
    kith_error err = {0};
    ki_buffer b = {.err = &err};
    ki_alloc_fail_after(0);
    ki_buffer_put(&b, "a");
    ki_alloc_fail_after(-1);
    ki_buffer_put(&b, "b");
    assert_int_equal(b.status, KITH_ENOMEM);
    assert_int_equal(err.status, KITH_ENOMEM);
    assert_int_equal(b.n, 0);
    ki_buffer_release(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escaping),
        cmocka_unit_test(test_base64),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
