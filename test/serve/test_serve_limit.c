/* Limits per address: buckets, connections, a table that is full. */
#include <stdio.h>
#include <string.h>

#include "serve/http/limit.h"
#include "support/testing.h"

static ki_limits *make(double rate, double burst, int64_t most) {
    ki_limits *l = NULL;
    kith_error err;
    assert_ok(ki_limits_new(rate, burst, most, &l, &err), &err);
    return l;
}

static ki_address address(const char *text) {
    ki_address a;
    assert_true(ki_address_parse(text, strlen(text), &a));
    return a;
}

static void test_a_bucket(void **state) {
    (void)state;
    ki_limits *l = make(2, 3, 10);
    const ki_address one = address("1.2.3.4"), other = address("1.2.3.5");
    double wait = 0;
    for (int i = 0; i < 3; i++) assert_true(ki_limits_admit(l, &one, 100, &wait));
    assert_false(ki_limits_admit(l, &one, 100, &wait));
    assert_true(wait > 0.49 && wait < 0.51);
    assert_true(ki_limits_admit(l, &other, 100, &wait)); /* the others do not notice */
    assert_true(ki_limits_admit(l, &one, 100.5, &wait));
    assert_false(ki_limits_admit(l, &one, 100.5, &wait));
    /* It never holds more than the burst. */
    for (int i = 0; i < 3; i++) assert_true(ki_limits_admit(l, &one, 1000, &wait));
    assert_false(ki_limits_admit(l, &one, 1000, &wait));
    ki_limits_free(l);
}

static void test_one_client_has_64_bits_of_addresses(void **state) {
    (void)state;
    ki_limits *l = make(1, 1, 10);
    const ki_address a = address("2001:db8::1"), b = address("2001:db8::2:3:4:5"),
                     c = address("2001:db8:0:1::1");
    double wait = 0;
    assert_true(ki_limits_admit(l, &a, 1, &wait));
    assert_false(ki_limits_admit(l, &b, 1, &wait));
    assert_true(ki_limits_admit(l, &c, 1, &wait));
    ki_limits_free(l);
}

static void test_connections(void **state) {
    (void)state;
    ki_limits *l = make(1, 1, 2);
    const ki_address a = address("1.2.3.4"), b = address("1.2.3.5");
    const int64_t first = ki_limits_connect(l, &a, 1), second = ki_limits_connect(l, &a, 1);
    assert_true(first >= 0 && second >= 0);
    assert_int_equal(ki_limits_connect(l, &a, 1), -1);
    assert_true(ki_limits_connect(l, &b, 1) >= 0);
    ki_limits_disconnect(l, first);
    assert_true(ki_limits_connect(l, &a, 1) >= 0);
    ki_limits_free(l);
}

/* A hundred thousand addresses fit, because old ones make room; one that is connected does not. */
static void test_a_full_table(void **state) {
    (void)state;
    ki_limits *l = make(1, 5, 1);
    const ki_address kept = address("9.9.9.9");
    double wait = 0;
    char text[32];
    assert_true(ki_limits_connect(l, &kept, 0) >= 0);
    for (int i = 0; i < 100000; i++) {
        snprintf(text, sizeof text, "10.%d.%d.%d", i >> 16, i >> 8 & 255, i & 255);
        const ki_address a = address(text);
        if (!ki_limits_admit(l, &a, 1 + i * 1e-6, &wait)) fail_msg("%s is refused", text);
    }
    assert_int_equal(ki_limits_connect(l, &kept, 2), -1);
    ki_limits_free(l);
}

/* Neighbours do not share a place: all of a network can be connected at once. */
static void test_a_whole_network(void **state) {
    (void)state;
    ki_limits *l = make(1, 5, 1);
    char text[32];
    int n_refused = 0;
    for (int i = 0; i < 2048; i++) {
        snprintf(text, sizeof text, "10.0.%d.%d", i >> 8, i & 255);
        const ki_address a = address(text);
        n_refused += ki_limits_connect(l, &a, 1) < 0;
    }
    if (n_refused > 0) fail_msg("%d of 2048 are refused", n_refused);
    ki_limits_free(l);
}

/* An address has its share of each thing, and keeps its place in the table as long as it holds something. */
static void test_shares(void **state) {
    (void)state;
    ki_limits *l = make(1, 5, 1);
    const ki_address a = address("2001:db8::1"), same = address("2001:db8::2"), b = address("1.2.3.4");
    int64_t place = 0, again = 0, theirs = 0;
    assert_true(ki_limits_take(l, &a, KI_SHARE_BODY, 60, 100, 1, &place));
    assert_true(place >= 0);
    assert_false(ki_limits_take(l, &same, KI_SHARE_BODY, 41, 100, 1, &again));
    assert_true(ki_limits_take(l, &same, KI_SHARE_BODY, 40, 100, 1, &again));
    assert_int_equal(place, again);
    assert_true(ki_limits_take(l, &a, KI_SHARE_WORK, 100, 100, 1, &again));
    assert_true(ki_limits_take(l, &b, KI_SHARE_BODY, 100, 100, 1, &theirs));
    char text[32];
    double wait = 0;
    for (int i = 0; i < 100000; i++) {
        snprintf(text, sizeof text, "10.%d.%d.%d", i >> 16, i >> 8 & 255, i & 255);
        const ki_address many = address(text);
        ki_limits_admit(l, &many, 2 + i * 1e-6, &wait);
    }
    assert_false(ki_limits_take(l, &a, KI_SHARE_BODY, 1, 100, 3, &again));
    ki_limits_give_back(l, place, KI_SHARE_BODY, 100);
    assert_true(ki_limits_take(l, &a, KI_SHARE_BODY, 100, 100, 3, &again));
    assert_false(ki_limits_take(l, &a, KI_SHARE_WORK, 1, 100, 3, &again));
    ki_limits_free(l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_bucket),        cmocka_unit_test(test_one_client_has_64_bits_of_addresses),
        cmocka_unit_test(test_connections),     cmocka_unit_test(test_a_full_table),
        cmocka_unit_test(test_a_whole_network), cmocka_unit_test(test_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
