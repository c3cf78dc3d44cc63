/* Passwords in addresses: hidden in messages, taken out of addresses. */
#include "base/redact.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "support/testing.h"

static void test_messages(void **state) {
    (void)state;
    static const struct {
        const char *text, *shown;
    } row[] = {
        {"cannot open postgresql://me:secret@host/db: no such file",
         "cannot open postgresql://me:***@host/db: no such file"},
        {"postgres://me:se/cr?et#x@host:5/db", "postgres://me:***@host:5/db"},
        {"'postgresql://me:secret@host/db' is one too many", "'postgresql://me:***@host/db' is one too many"},
        {"postgresql://me:12/34@host/db", "postgresql://me:***@host/db"},
        {"postgresql://me:se cret@host/db: gone", "postgresql://me:***@host/db: gone"},
        {"postgresql://me:secret", "postgresql://me:***"}, /* cut off by the message */
        {"postgresql://me:x@host", "postgresql://me:*@host"},
        {"a postgresql://me:one@h/d and postgresql://me:two@h/d",
         "a postgresql://me:***@h/d and postgresql://me:***@h/d"},
        {"postgresql://h/d?user=me&password=secret&x=1", "postgresql://h/d?user=me&password=***&x=1"},
        {"postgresql://h/d?password=secret, sslpassword=other",
         "postgresql://h/d?password=*** sslpassword=***"},
        {"cannot open POSTGRESQL://me:secret@host/db", "cannot open POSTGRESQL://me:***@host/db"},
        {"postgresql://h/d?PassWord=secret#x", "postgresql://h/d?PassWord=***#x"},
        {"cannot open host=h password=secret user=me: gone", "cannot open host=h password=*** user=me: gone"},
        {"host=h password=", "host=h password="},
        {"postgresql://host:5432/db: refused", "postgresql://host:5432/db: refused"},
        {"postgresql://h1:5432,h2:5433/db", "postgresql://h1:5432,h2:5433/db"},
        {"postgresql://me@host:5432/db#birds", "postgresql://me@host:5432/db#birds"},
        {"postgresql://[::1]:5432/db", "postgresql://[::1]:5432/db"},
        {"postgresql://host/my@db", "postgresql://host/my@db"},
        {"no address: me:secret@host, postgres, postgresql:",
         "no address: me:secret@host, postgres, postgresql:"},
        {"", ""},
    };
    for (size_t i = 0; i < N_ROWS(row); i++) {
        char text[256];
        snprintf(text, sizeof text, "%s", row[i].text);
        ki_redact(text);
        if (strcmp(text, row[i].shown) != 0)
            fail_msg("%s: '%s', wanted '%s'", row[i].text, text, row[i].shown);
    }
}

static void test_addresses(void **state) {
    (void)state;
    static const struct {
        const char *address, *left, *password;
    } row[] = {
        {"postgresql://me:secret@host/db", "postgresql://me@host/db", "secret"},
        {"postgresql://me:a%20b%40c%2F1@host/db", "postgresql://me@host/db", "a b@c/1"},
        {"postgresql://me:se/cret@host/db#birds", "postgresql://me@host/db#birds", "se/cret"},
        {"postgresql://me:se?cr#et@host/db", "postgresql://me@host/db", "se?cr#et"},
        {"postgresql://me:se cret@host/db?user=a@b", "postgresql://me@host/db?user=a@b", "se cret"},
        {"postgresql://me:1234@host/db", "postgresql://me@host/db", "1234"},
        {"postgresql://me:@host/db", "postgresql://me@host/db", ""},
        {"postgresql://host/db?password=secret", "postgresql://host/db", "secret"},
        {"postgresql://host/db?password=secret#birds", "postgresql://host/db#birds", "secret"},
        {"postgresql://host/db?password=secret&x=1", "postgresql://host/db?x=1", "secret"},
        {"postgresql://host/db?x=1&password=secret&y=2", "postgresql://host/db?x=1&y=2", "secret"},
        {"postgresql://me:one@host/db?password=two", "postgresql://me@host/db", "two"},
        {"postgresql://host:5432/db", "postgresql://host:5432/db", NULL},
        {"postgresql://host:5432/db?user=a@b", "postgresql://host:5432/db?user=a@b", NULL},
        {"postgresql://h1:1,h2:2/db", "postgresql://h1:1,h2:2/db", NULL},
        {"postgresql://me:pw@h1:1,h2:2/db", "postgresql://me@h1:1,h2:2/db", "pw"},
        {"postgresql:///db", "postgresql:///db", NULL},
        {"photos/me:secret@host", "photos/me:secret@host", NULL},
    };
    for (size_t i = 0; i < N_ROWS(row); i++) {
        char address[256], *password = NULL;
        kith_error err;
        snprintf(address, sizeof address, "%s", row[i].address);
        assert_ok(ki_address_take_password(address, &password, &err), &err);
        if (strcmp(address, row[i].left) != 0) fail_msg("%s: left '%s'", row[i].address, address);
        if (!password != !row[i].password || (password && strcmp(password, row[i].password) != 0))
            fail_msg("%s: password '%s'", row[i].address, password ? password : "none");
        /* Nothing of it stays behind the end. */
        for (size_t n = strlen(address); n < strlen(row[i].address); n++) assert_int_equal(address[n], 0);
        ki_free(password);
    }
    static const char *const unclear[] = {"postgresql://me:12/34@host/db", "postgresql://me:a@34/c@host/db"};
    char *password = NULL;
    kith_error err;
    for (size_t i = 0; i < N_ROWS(unclear); i++) {
        char address[64];
        snprintf(address, sizeof address, "%s", unclear[i]);
        assert_int_equal(ki_address_take_password(address, &password, &err), KITH_EINVAL);
        assert_null(password);
        assert_non_null(strstr(err.hint, "%2F"));
        assert_null(strstr(err.message, "34"));
    }
    char code[] = "postgresql://me:100%secret@host/db";
    assert_int_equal(ki_address_take_password(code, &password, &err), KITH_EINVAL);
    assert_non_null(strstr(err.hint, "%25"));
    assert_null(strstr(err.message, "secret"));
    char cut[] = "postgresql://me:secret";
    assert_int_equal(ki_address_take_password(cut, &password, &err), KITH_EINVAL);
    assert_null(strstr(err.message, "secret"));
}

static void keep_line(void *user, kith_log_level level, const char *line) {
    (void)level;
    snprintf(user, 256, "%s", line);
}

/* Whatever fails, warns or hints goes through one of these. */
static void test_errors_and_log(void **state) {
    (void)state;
    kith_error err;
    char line[256] = "";
    ki_fail(&err, KITH_EIO, "cannot open %s", "postgresql://me:secret@host/db");
    assert_string_equal(err.message, "cannot open postgresql://me:***@host/db");
    ki_prefix(&err, KITH_EIO, "%s", "postgresql://me:other@host/db");
    assert_string_equal(err.message, "postgresql://me:***@host/db: cannot open postgresql://me:***@host/db");
    ki_hint(&err, KITH_EIO, "is %s right?", "postgresql://me:secret@host/db");
    assert_string_equal(err.hint, "is postgresql://me:***@host/db right?");
    kith_log_set(keep_line, line, KITH_LOG_INFO);
    ki_log(KITH_LOG_INFO, "serving %s", "postgresql://me:secret@host/db");
    kith_log_set(NULL, NULL, KITH_LOG_INFO);
    assert_string_equal(line, "serving postgresql://me:***@host/db");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_errors_and_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
