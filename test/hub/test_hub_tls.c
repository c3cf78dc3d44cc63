/* kith pull over TLS, with certificates of the test's own, and with either of libcurl's names. test/tools/tls_front.py stands before the
 * hub on loopback; it needs python3, the certificates need openssl: without them the test is skipped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/hub.h"
#include "support/testing.h"

static char output[65536];
static char data[8 + 128 + 4096];
static hub_file files[2];
static FILE *front; /* it ends with this process; NULL: python3 or openssl is missing */

/* What stands before the hub, by certificate; and before the storage. */
enum { GOOD, ELSEWHERE, OLD, STORAGE, N_FRONTS };
static int port[N_FRONTS];

/* Folders for LD_LIBRARY_PATH, in which a name of libcurl's is a file that cannot be loaded. */
static const char *const libraries[] = {"no-gnutls", "no-openssl"};
static bool is_there[N_ROWS(libraries)];

/* In the test's folder, with $K the program, which may not find this machine's other settings. */
static int kith(size_t library, int front_of, const char *command) {
    return testing_run(output, sizeof output,
                       "cd %s && " TESTING_K
                       " && unset SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE HF_TOKEN && "
                       "export no_proxy='*' HF_ENDPOINT=https://127.0.0.1:%d "
                       "HF_HUB_CACHE=\"$PWD/cache\" HF_HOME=\"$PWD\" LD_LIBRARY_PATH=\"$PWD/%s\" && "
                       "rm -rf cache && %s",
                       testing_folder(), testing_program(), port[front_of], libraries[library], command);
}

static void assert_pulled(size_t library, const char *command) {
    const int status = kith(library, GOOD, command);
    if (status != 0) fail_msg("%s, %s: exit status %d: %s", libraries[library], command, status, output);
    if (!strstr(output, "org/net: ")) fail_msg("%s: %s", libraries[library], output);
}

/* One line that says `text`, and nothing in the cache. */
static void assert_refused(size_t library, int front_of, const char *command, const char *text) {
    char with_rest[1024];
    snprintf(with_rest, sizeof with_rest,
             "{ %s; }; s=$?; find cache -type f 2>/dev/null | grep -v CACHEDIR; exit $s", command);
    hub_forget();
    const int status = kith(library, front_of, with_rest);
    const char *end = strchr(output, '\n');
    if (status != 1 || !end || end[1] || !strstr(output, text))
        fail_msg("%s, %s: exit status %d, wanted 1 and one line with '%s': %s", libraries[library], command,
                 status, text, output);
    if (hub_count("hub") != 0)
        fail_msg("%s, %s: the hub was asked: %s", libraries[library], command, hub_asked());
}

static void start_front(void) {
    char command[2048];
    const int hub = atoi(strrchr(hub_start(files, N_ROWS(files)), ':') + 1);
    snprintf(command, sizeof command,
             "cd %s && exec python3 %s/test/tools/tls_front.py %d good.pem:good.key:%d "
             "elsewhere.pem:elsewhere.key:%d "
             "old.pem:old.key:%d good.pem:good.key:%d",
             testing_folder(), testing_source(), (int)getpid(), hub, hub, hub, hub_storage_port());
    front = popen(command, "r");
    assert_non_null(front);
    if (fscanf(front, "%d %d %d %d", &port[GOOD], &port[ELSEWHERE], &port[OLD], &port[STORAGE]) != N_FRONTS)
        fail_msg("no ports: %s", command);
}

static int set_up(void **state) {
    (void)state;
    static char location[200];
    const char header[] =
        "{\"layer.weight\": {\"dtype\": \"F32\", \"shape\": [1024], \"data_offsets\": [0, 4096]}}";
    if (!hub_has_plugin() ||
        testing_run(output, sizeof output, "python3 -c 'import ssl' && openssl version") != 0)
        return 0; /* each test is skipped */
    memset(data, ' ', 8 + 128);
    memset(data, 0, 8);
    data[0] = (char)128;
    memcpy(data + 8, header, sizeof header - 1);
    files[0] = (hub_file){"model.safetensors", data, sizeof data, true};
    files[1] = (hub_file){"config.json", "{}", 2, false};
    if (testing_run(output, sizeof output,
                    "cd %s && %s/test/tools/certificates.sh && mkdir no-gnutls no-openssl && "
                    ": >no-gnutls/libcurl-gnutls.so.4 && : >no-openssl/libcurl.so.4",
                    testing_folder(), testing_source()) != 0)
        fail_msg("%s", output);
    start_front();
    snprintf(location, sizeof location, "https://127.0.0.1:%d/model.safetensors?signature=x", port[STORAGE]);
    hub_way.location = location;
    int n_there = 0;
    for (size_t i = 0; i < N_ROWS(libraries); i++) {
        kith(i, GOOD, "$K pull org/net");
        is_there[i] = !strstr(output, "libcurl cannot be loaded");
        n_there += is_there[i];
    }
    assert_true(n_there > 0);
    return 0;
}

#define EACH_LIBRARY(i)                            \
    for (size_t i = 0; i < N_ROWS(libraries); i++) \
        if (is_there[i])

static void test_pulled(void **state) {
    (void)state;
    if (!front) skip();
    static const char *const names[] = {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"};
    char command[200];
    EACH_LIBRARY(i) {
        for (size_t n = 0; n < N_ROWS(names); n++) {
            snprintf(command, sizeof command, "%s=$PWD/ca.pem HF_TOKEN=" HUB_TOKEN " $K pull org/net",
                     names[n]);
            hub_forget();
            assert_pulled(i, command);
            assert_true(hub_count("storage GET") > 0);
            for (const char *line = hub_asked(); (line = strstr(line, "storage")); line++) {
                const char *token = strstr(line, "token"), *end = strchr(line, '\n');
                if (token && token < end) fail_msg("the storage got the token: %s", hub_asked());
            }
            assert_true(hub_count("token") > 0);
        }
    }
}

static void test_refused(void **state) {
    (void)state;
    if (!front) skip();
    char address[64];
    EACH_LIBRARY(i) {
        /* Nobody here knows this authority; nor does one who trusts another. */
        assert_refused(i, GOOD, "$K pull org/net", "certificate");
        snprintf(address, sizeof address, "kith: https://127.0.0.1:%d cannot be reached: ", port[GOOD]);
        assert_non_null(strstr(output, address));
        assert_non_null(
            strstr(output, "(install ca-certificates, or name your authority's file in SSL_CERT_FILE)"));
        assert_refused(i, GOOD, "SSL_CERT_FILE=$PWD/other.pem $K pull org/net", "certificate");
        assert_refused(i, ELSEWHERE, "SSL_CERT_FILE=$PWD/ca.pem $K pull org/net", "certificate");
        assert_refused(i, OLD, "SSL_CERT_FILE=$PWD/ca.pem $K pull org/net", "certificate");
        assert_refused(i, GOOD, "SSL_CERT_FILE=/no/such.pem $K pull org/net", "/no/such.pem");
    }
}

/* From TLS to none. */
static void test_redirect_without(void **state) {
    (void)state;
    if (!front) skip();
    const char *before = hub_way.location;
    hub_way.location = "http://127.0.0.1:1/model.safetensors";
    EACH_LIBRARY(i) {
        assert_int_equal(kith(i, GOOD, "SSL_CERT_FILE=$PWD/ca.pem $K pull org/net"), 1);
        if (!strstr(output, "redirects from https to")) fail_msg("%s", output);
    }
    hub_way.location = before;
}

/* Without any libcurl: one line. Whatever names there are, one that cannot be loaded is passed over (set_up). */
static void test_no_libcurl(void **state) {
    (void)state;
    if (!front) skip();
    assert_int_equal(
        kith(0, GOOD, ": >no-gnutls/libcurl.so.4; $K pull org/net; s=$?; rm no-gnutls/libcurl.so.4; exit $s"),
        1);
    const char *end = strchr(output, '\n');
    if (!end || end[1] || !strstr(output, "kith pull: libcurl cannot be loaded (") ||
        !strstr(output, "libcurl4"))
        fail_msg("%s", output);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pulled),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_redirect_without),
        cmocka_unit_test(test_no_libcurl),
    };
    return cmocka_run_group_tests(tests, set_up, testing_tear_down);
}
