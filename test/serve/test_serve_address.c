/* Addresses, networks, who a client behind proxies is, which Host and Origin are ours. */
#include <string.h>

#include "serve/http/address.h"
#include "support/testing.h"

static ki_address address(const char *text) {
    ki_address a;
    if (!ki_address_parse(text, strlen(text), &a)) fail_msg("'%s' was not read", text);
    return a;
}

static void test_texts(void **state) {
    (void)state;
    static const char *const good[][2] = {
        {"127.0.0.1", "127.0.0.1"}, {"::1", "::1"}, {"[fd00::2]", "fd00::2"}, {"::ffff:1.2.3.4", "1.2.3.4"}};
    static const char *const bad[] = {"", "1.2.3", "localhost", "[::1", "1.2.3.4 ", "1.2.3.4:80", "::g"};
    char buf[KI_ADDRESS_TEXT];
    for (size_t i = 0; i < N_ROWS(good); i++) {
        const ki_address a = address(good[i][0]);
        assert_string_equal(ki_address_text(&a, buf), good[i][1]);
    }
    for (size_t i = 0; i < N_ROWS(bad); i++) {
        ki_address a;
        if (ki_address_parse(bad[i], strlen(bad[i]), &a)) fail_msg("'%s' was read", bad[i]);
    }
}

static void test_loopback(void **state) {
    (void)state;
    const ki_address yes[] = {address("127.0.0.1"), address("127.200.3.4"), address("::1")};
    const ki_address no[] = {address("128.0.0.1"), address("10.0.0.1"), address("::2"), address("0.0.0.0")};
    for (size_t i = 0; i < N_ROWS(yes); i++) assert_true(ki_address_is_loopback(&yes[i]));
    for (size_t i = 0; i < N_ROWS(no); i++) assert_false(ki_address_is_loopback(&no[i]));
}

static void test_networks(void **state) {
    (void)state;
    kith_error err;
    ki_network n;
    static const struct {
        const char *network, *address;
        bool has;
    } row[] = {
        {"10.0.0.0/8", "10.255.0.1", true}, {"10.0.0.0/8", "11.0.0.1", false},
        {"10.1.2.3", "10.1.2.3", true},     {"10.1.2.3", "10.1.2.4", false},
        {"10.1.2.0/31", "10.1.2.1", true},  {"10.1.2.0/31", "10.1.2.2", false},
        {"fd00::/8", "fd12::1", true},      {"fd00::/8", "fe00::1", false},
        {"0.0.0.0/0", "9.9.9.9", true},     {"0.0.0.0/0", "fd00::1", false},
    };
    for (size_t i = 0; i < N_ROWS(row); i++) {
        const ki_address a = address(row[i].address);
        assert_ok(ki_network_parse(row[i].network, &n, &err), &err);
        if (ki_network_has(&n, 1, &a) != row[i].has) fail_msg("%s in %s", row[i].address, row[i].network);
    }
    static const char *const bad[] = {"",           "x",         "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1",
                                      "fd00::/129", "1.2.3.4/8x"};
    for (size_t i = 0; i < N_ROWS(bad); i++)
        assert_int_equal(ki_network_parse(bad[i], &n, &err), KITH_EINVAL);
}

static void test_clients_behind_proxies(void **state) {
    (void)state;
    kith_error err;
    ki_network proxy[2];
    assert_ok(ki_network_parse("127.0.0.1", &proxy[0], &err), &err);
    assert_ok(ki_network_parse("10.0.0.0/8", &proxy[1], &err), &err);
    static const struct {
        const char *peer, *forwarded, *client;
    } row[] = {
        {"9.9.9.9", "1.2.3.4", "9.9.9.9"}, /* whoever is no proxy may say what it wants */
        {"127.0.0.1", NULL, "127.0.0.1"},
        {"127.0.0.1", "1.2.3.4", "1.2.3.4"},
        {"127.0.0.1", "6.6.6.6, 1.2.3.4", "1.2.3.4"}, /* what the client wrote itself does not count */
        {"127.0.0.1", "6.6.6.6,1.2.3.4 , 10.0.0.7", "1.2.3.4"}, /* two proxies */
        {"127.0.0.1", "10.0.0.7", "10.0.0.7"},
        {"127.0.0.1", "unknown", "127.0.0.1"},
        {"127.0.0.1", "", "127.0.0.1"},
        {"127.0.0.1", ",", "127.0.0.1"},
    };
    char buf[KI_ADDRESS_TEXT];
    for (size_t i = 0; i < N_ROWS(row); i++) {
        const ki_address peer = address(row[i].peer);
        const ki_address client = ki_address_of_client(&peer, row[i].forwarded, proxy, 2);
        assert_string_equal(ki_address_text(&client, buf), row[i].client);
    }
}

static void test_hosts(void **state) {
    (void)state;
    static const char *const names[] = {"search.example.org"};
    static const char *const ours[] = {"localhost",     "LocalHost:8017",     "127.0.0.1",
                                       "127.0.0.1:80",  "[::1]:8017",         "[::1]",
                                       "192.168.1.5:1", "search.example.org", "Search.Example.Org:443"};
    static const char *const foreign[] = {
        "",     "evil.example",           "localhost.evil.example", "example.org", "search.example.org.evil",
        "[::1", "127.0.0.1.evil.example", "127.0.0.1:80@evil",      "localhost:x"};
    for (size_t i = 0; i < N_ROWS(ours); i++) {
        if (!ki_host_is_ours(ours[i], names, 1)) fail_msg("'%s' is ours", ours[i]);
    }
    for (size_t i = 0; i < N_ROWS(foreign); i++) {
        if (ki_host_is_ours(foreign[i], names, 1)) fail_msg("'%s' is foreign", foreign[i]);
    }
    assert_false(ki_host_is_ours(NULL, names, 1));
}

static void test_origins(void **state) {
    (void)state;
    assert_true(ki_origin_is_ours(NULL, "localhost:8017"));
    assert_true(ki_origin_is_ours("http://localhost:8017", "localhost:8017"));
    assert_true(ki_origin_is_ours("https://search.example.org", "search.example.org"));
    static const char *const foreign[] = {
        "http://localhost:8018", "http://evil.example", "null", "", "http://localhost:8017.evil.example",
        "localhost:8017"};
    for (size_t i = 0; i < N_ROWS(foreign); i++) {
        if (ki_origin_is_ours(foreign[i], "localhost:8017")) fail_msg("'%s' is foreign", foreign[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),    cmocka_unit_test(test_loopback),
        cmocka_unit_test(test_networks), cmocka_unit_test(test_clients_behind_proxies),
        cmocka_unit_test(test_hosts),    cmocka_unit_test(test_origins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
