/* kith_pull_run against a hub on loopback that behaves, and one that does not. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kith/log.h"
#include "kith/pull.h"
#include "support/hub.h"
#include "support/testing.h"

enum { LARGE = 300000 };
static unsigned char large[LARGE];
static const char config[] = "{\"architecture\": \"resnet50\"}";
static const hub_file files[] = {{"model.safetensors", large, LARGE, true},
                                 {"config.json", config, sizeof config - 1, false}};

static const char *endpoint;
static char cache[512];
static kith_error err;
static kith_pulled_entry entry;
static kith_pulled *pulled;

static char logged[1 << 16];
static void take_log(void *user, kith_log_level level, const char *line) {
    (void)user, (void)level;
    const size_t n = strlen(logged);
    snprintf(logged + n, sizeof logged - n, "%s\n", line);
}

static int set_up(void **state) {
    (void)state;
    static int n_tests;
    if (!hub_has_plugin()) skip();
    hub_way = (hub_ways){0};
    endpoint = hub_start(files, N_ROWS(files));
    hub_forget();
    snprintf(cache, sizeof cache, "%s/cache %d", testing_folder(), n_tests++);
    for (size_t i = 0; i < LARGE; i++) large[i] = (unsigned char)(i * 7 + i / 251);
    logged[0] = '\0';
    kith_log_set(take_log, NULL, KITH_LOG_DEBUG);
    unsetenv("HF_TOKEN");
    unsetenv("HF_HUB_OFFLINE");
    setenv("HF_HOME", testing_folder(), 1);
    setenv("HF_HUB_DOWNLOAD_TIMEOUT", "2", 1);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    kith_log_set(NULL, NULL, KITH_LOG_DEBUG);
    kith_pulled_free(pulled);
    pulled = NULL;
    return 0;
}

static kith_pull_options options(void) {
    KITH_OPTIONS(kith_pull_options, o);
    o.endpoint = endpoint;
    o.cache = cache;
    o.wait_s = 0.01;
    return o;
}

static kith_status pull_with(const kith_pull_options *o) {
    kith_pulled_free(pulled);
    pulled = NULL;
    err = (kith_error){0};
    const kith_status status = kith_pull_run(HUB_REPO, o, &pulled, &err);
    if (status == KITH_OK) assert_true(kith_pulled_at(pulled, 0, &entry));
    return status;
}

static kith_status pull(void) {
    const kith_pull_options o = options();
    return pull_with(&o);
}

/* ---- what is on the disk ---- */

static int count(const char *command) {
    char out[64];
    testing_run(out, sizeof out, "cd '%s' 2>/dev/null && %s | wc -l", cache, command);
    return (int)strtol(out, NULL, 10);
}

static int n_parts(void) { return count("find . -name '*.incomplete'"); }

/* No weights that somebody could find, and nothing that looks complete. */
static void assert_nothing_kept(void) {
    assert_int_equal(count("find . -name model.safetensors"), 0);
    assert_int_equal(count("find . -path '*/refs/*' -type f"), 0);
    assert_int_equal(count("find . -path '*/blobs/*' -type f -size +100k -not -name '*.incomplete'"), 0);
}

static void assert_whole(void) {
    char *path = NULL, out[8];
    if (asprintf(&path, "%s/models--org--net/snapshots/" HUB_COMMIT "/model.safetensors", cache) < 0) abort();
    FILE *f = fopen(path, "rb");
    unsigned char *found = malloc(LARGE + 1);
    assert_non_null(f);
    assert_non_null(found);
    assert_int_equal(fread(found, 1, LARGE + 1, f), LARGE);
    assert_memory_equal(found, large, LARGE);
    fclose(f);
    free(found);
    free(path);
    assert_int_equal(n_parts(), 0);
    testing_run(out, sizeof out, "cat '%s'/models--org--net/refs/main | wc -c", cache);
    assert_int_equal(strtol(out, NULL, 10), 40);
}

static void assert_says(const char *text) {
    if (!strstr(err.message, text)) fail_msg("no '%s' in: %s (%s)", text, err.message, err.hint);
    assert_null(strchr(err.message, '\n'));
}

static void assert_failed(kith_status wanted, const char *text) {
    const kith_status status = pull();
    if (status != wanted)
        fail_msg("%s, wanted %s: %s", kith_status_name(status), kith_status_name(wanted), err.message);
    assert_says(text);
    assert_nothing_kept();
}

/* ---- a hub that behaves ---- */

static void test_pull(void **state) {
    (void)state;
    assert_ok(pull(), &err);
    assert_whole();
    assert_string_equal(entry.repo, HUB_REPO);
    assert_string_equal(entry.commit, HUB_COMMIT);
    assert_int_equal(entry.bytes, LARGE);
    assert_int_equal(entry.n_fetched, LARGE + (int64_t)sizeof config - 1);
    assert_null(entry.backbone);
    /* Python's layout: links, and contents under their hashes. */
    assert_int_equal(count("find . -type l -name model.safetensors -lname '../../blobs/*'"), 1);
    assert_int_equal(count("find . -type l -name config.json"), 1);
    assert_int_equal(count("find . -path './.locks/models--org--net/*.lock'"), 2);
    assert_int_equal(hub_count("hub HEAD /org/net/resolve/main/model.safetensors\n"), 1);
    assert_int_equal(hub_count("hub GET /org/net/resolve/" HUB_COMMIT "/model.safetensors\n"), 1);
    assert_int_equal(hub_count("storage GET /model.safetensors?signature=x%3D\n"), 1);
    assert_int_equal(hub_count("storage HEAD"), 0);
    hub_forget();
    assert_ok(pull(), &err);
    assert_int_equal(entry.n_fetched, 0);
    assert_int_equal(hub_count("GET"), 0);
}

static void test_relative_redirect(void **state) {
    (void)state;
    hub_way.is_relative = true;
    setenv("HF_TOKEN", HUB_TOKEN, 1);
    assert_ok(pull(), &err);
    assert_whole();
    assert_int_equal(hub_count("hub HEAD /moved/resolve/main/model.safetensors token\n"), 1);
}

static void test_revision(void **state) {
    (void)state;
    const kith_pull_options o = options();
    assert_ok(kith_pull_run(HUB_REPO "@refs/pr/1", &o, &pulled, &err), &err);
    assert_int_equal(count("cat models--org--net/refs/refs/pr/1 | grep " HUB_COMMIT), 1);
    char file[4096];
    assert_ok(kith_pull_find("hub:" HUB_REPO "@refs/pr/1", &o, file, sizeof file, &err), &err);
    assert_ok(kith_pull_find(HUB_REPO "@" HUB_COMMIT, &o, file, sizeof file, &err), &err);
    assert_int_equal(kith_pull_find(HUB_REPO, &o, file, sizeof file, &err), KITH_ENOTFOUND);
    assert_string_equal(err.hint, "fetch it with kith pull " HUB_REPO);
    assert_int_equal(kith_pull_find(HUB_REPO "@" HUB_COMMIT, &o, file, 20, &err), KITH_EINVAL);
}

/* transformers has a second file. */
static void test_preprocessor(void **state) {
    (void)state;
    static const char of_transformers[] = "{\"model_type\": \"vit\"}", processor[] = "{\"size\": 224}";
    const hub_file three[] = {files[0],
                              {"config.json", of_transformers, sizeof of_transformers - 1, false},
                              {"preprocessor_config.json", processor, sizeof processor - 1, false}};
    hub_start(three, 2);
    assert_ok(pull(), &err);
    assert_int_equal(count("find . -name preprocessor_config.json"), 0);
    hub_start(three, 3);
    assert_ok(pull(), &err);
    assert_int_equal(count("find . -type l -name preprocessor_config.json"), 1);
}

/* The names of many classes make config.json large; what it says is wanted all the same. */
static void test_large_config(void **state) {
    (void)state;
    static char text[2 << 20];
    static const char processor[] = "{\"size\": 224}", begin[] = "{\"model_type\": \"vit\", \"a\": \"";
    memset(text, 'a', sizeof text);
    memcpy(text, begin, sizeof begin - 1);
    memcpy(text + sizeof text - 2, "\"}", 2);
    const hub_file three[] = {files[0],
                              {"config.json", text, sizeof text, false},
                              {"preprocessor_config.json", processor, sizeof processor - 1, false}};
    hub_start(three, 3);
    assert_ok(pull(), &err);
    assert_int_equal(count("find . -type l -name '*config.json'"), 2);
}

static void test_without_config(void **state) {
    (void)state;
    hub_start(files, 1);
    assert_ok(pull(), &err);
    assert_whole();
    assert_int_equal(count("find . -name config.json"), 0);
}

/* ---- the token ---- */

static void test_token(void **state) {
    (void)state;
    hub_way.wants_token = true;
    setenv("HF_TOKEN", HUB_TOKEN "\n", 1);
    assert_ok(pull(), &err);
    assert_whole();
    assert_true(hub_count("storage ") > 0);
    const char *asked = hub_asked();
    for (const char *line = asked; *line; line = strchr(line, '\n') + 1) {
        const bool is_hub = strncmp(line, "hub", 3) == 0;
        const char *end = strchr(line, '\n');
        const bool has_token = end - line > 6 && strncmp(end - 6, " token", 6) == 0;
        if (is_hub != has_token) fail_msg("the token goes to the wrong place: %.*s", (int)(end - line), line);
    }
    assert_null(strstr(logged, HUB_TOKEN));
}

static void test_token_of_the_file(void **state) {
    (void)state;
    char path[600];
    hub_way.wants_token = true;
    assert_failed(KITH_ENOTFOUND, "has no repository org/net that may be read without a token");
    snprintf(path, sizeof path, "%s/token", testing_folder());
    testing_write(path, HUB_TOKEN "\n");
    assert_ok(pull(), &err);
    setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1", 1);
    hub_forget();
    assert_int_equal(pull(), KITH_ENOTFOUND);
    assert_int_equal(hub_count("token"), 0);
    unsetenv("HF_HUB_DISABLE_IMPLICIT_TOKEN");
    unlink(path);
}

static void test_token_is_never_shown(void **state) {
    (void)state;
    hub_way.wants_token = true;
    setenv("HF_TOKEN", "hf_secret but wrong", 1);
    assert_failed(KITH_EINVAL, "HF_TOKEN is not a token");
    assert_null(strstr(err.message, "secret"));
    setenv("HF_TOKEN", "hf_secret\r\nX: y", 1);
    assert_failed(KITH_EINVAL, "HF_TOKEN is not a token");
    setenv("HF_TOKEN", "hf_secret-of-another", 1);
    assert_failed(KITH_ENOTFOUND, "with this token");
    assert_null(strstr(err.message, "secret"));
    assert_null(strstr(logged, "secret"));
}

/* ---- what the hub may refuse ---- */

static void test_statuses(void **state) {
    (void)state;
    static const struct {
        int status;
        const char *head;
        kith_status wanted;
        const char *text, *hint;
    } rows[] = {
        {401, "", KITH_ENOTFOUND, "has no repository org/net", "HF_TOKEN"},
        {403, "X-Error-Code: GatedRepo\r\n", KITH_EIO, "wants its terms to be accepted first", "HF_TOKEN"},
        {403, "", KITH_EIO, "refuses model.safetensors of org/net: status 403", "HF_TOKEN"},
        {404, "X-Error-Code: RepoNotFound\r\n", KITH_ENOTFOUND, "has no repository org/net",
         "check the name"},
        {404, "X-Error-Code: RevisionNotFound\r\n", KITH_ENOTFOUND, "org/net has no revision 'main'", ""},
        {418, "", KITH_EIO, "status 418", ""},
        {429, "", KITH_EIO, "status 429", "HF_TOKEN"},
        {500, "", KITH_EIO, "status 500", ""},
        {302, "Location: file:///etc/passwd\r\n", KITH_EFORMAT, "not an http address", ""},
        {302, "", KITH_EFORMAT, "not an http address", ""},
    };
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        hub_way = (hub_ways){.n_refusals = 1000, .refusal = rows[i].status, .refusal_head = rows[i].head};
        hub_forget();
        assert_failed(rows[i].wanted, rows[i].text);
        if (!strstr(err.hint, rows[i].hint)) fail_msg("no '%s' in: %s", rows[i].hint, err.hint);
        const bool is_tried_again = rows[i].status == 429 || rows[i].status >= 500;
        assert_int_equal(hub_count("HEAD"), is_tried_again ? 5 : 1);
    }
}

static void test_refusals_that_pass(void **state) {
    (void)state;
    static const int statuses[] = {408, 429, 500, 502, 503, 504};
    for (size_t i = 0; i < N_ROWS(statuses); i++) {
        hub_way = (hub_ways){.n_refusals = 2, .refusal = statuses[i]};
        set_up(NULL);
        hub_way = (hub_ways){.n_refusals = 2, .refusal = statuses[i]};
        assert_ok(pull(), &err);
        assert_whole();
    }
    assert_non_null(strstr(logged, "status 504; trying again in 0.01 s"));
}

static void test_retry_after(void **state) {
    (void)state;
    hub_way = (hub_ways){.n_refusals = 1, .refusal = 429, .refusal_head = "Retry-After: 1\r\n"};
    assert_ok(pull(), &err);
    assert_non_null(strstr(logged, "trying again in 1 s"));
}

static void test_no_such_file(void **state) {
    (void)state;
    static const hub_file shards[] = {{"model.safetensors.index.json", "{}", 2, false}};
    static const hub_file bin[] = {{"pytorch_model.bin", "x", 1, true}};
    hub_start(shards, 1);
    assert_failed(KITH_EUNSUPPORTED, "the weights of org/net are in several files");
    hub_start(bin, 1);
    assert_failed(KITH_EUNSUPPORTED, "only pytorch_model.bin");
    hub_start(files + 1, 1);
    assert_failed(KITH_ENOTFOUND, "org/net has no file model.safetensors at revision main");
}

/* ---- bytes that are not right ---- */

static void test_wrong_hash(void **state) {
    (void)state;
    hub_way.flips_bit = true;
    assert_failed(KITH_EFORMAT, "model.safetensors is damaged: its SHA-256 is");
    assert_int_equal(n_parts(), 0);
    hub_way.flips_bit = false;
    assert_ok(pull(), &err);
    assert_whole();
    set_up(NULL);
    hub_way.etag = "0123456789012345678901234567890123456789"; /* git's, of both */
    assert_failed(KITH_EFORMAT, "config.json is damaged: its git hash is ");
}

static void test_no_hash(void **state) {
    (void)state;
    hub_way.says_no_etag = true;
    assert_failed(KITH_EFORMAT, "states no hash of model.safetensors");
    assert_non_null(strstr(err.hint, "--unverified"));
    kith_pull_options o = options();
    o.unverified = true;
    assert_ok(pull_with(&o), &err);
    assert_true(entry.is_unverified);
    assert_whole();
    set_up(NULL);
    hub_way.says_odd_etag = true;
    assert_failed(KITH_EFORMAT, "states no hash of model.safetensors");
    assert_ok(
        pull_with(&(kith_pull_options){
            .size = sizeof o, .endpoint = endpoint, .cache = cache, .unverified = true, .most_bytes = LARGE}),
        &err);
    assert_whole();
}

static void test_hostile_sizes(void **state) {
    (void)state;
    static const struct {
        const char *size, *text;
    } rows[] = {{"99999999999999999", "at most"},
                {"299999", "more than the 299999 bytes"},
                {"300001", "300000 of the 300001 bytes"}};
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        hub_way = (hub_ways){.size = rows[i].size};
        hub_start(files, 1);
        const kith_status status = pull();
        assert_true(status == KITH_EFORMAT || status == KITH_EIO);
        assert_says(rows[i].text);
        assert_nothing_kept();
    }
    set_up(NULL);
    hub_way = (hub_ways){.says_no_size = true};
    hub_start(files, 1);
    assert_failed(KITH_EFORMAT, "does not say how large model.safetensors");
    hub_way = (hub_ways){.sends_more = true};
    assert_failed(KITH_EFORMAT, "sends more than the 300000 bytes");
    kith_pull_options o = options();
    o.most_bytes = LARGE - 1;
    hub_way = (hub_ways){0};
    assert_int_equal(pull_with(&o), KITH_EFORMAT);
    assert_says("at most 0.3 MB are fetched");
}

static void test_no_commit(void **state) {
    (void)state;
    hub_way.says_no_commit = true;
    assert_failed(KITH_EFORMAT, "does not answer as a hub does: it names no commit");
}

static void test_endless_heads_and_bodies(void **state) {
    (void)state;
    hub_way.is_endless = true;
    assert_failed(KITH_EFORMAT, "the head of the answer has more than 256 KiB");
    hub_way = (hub_ways){.n_idle_body = 3 << 20};
    assert_failed(KITH_EFORMAT, "answers with status 302 and more than 1 MiB");
    hub_way = (hub_ways){.is_relative = true, .location = "/moved/resolve/main/model.safetensors"};
    assert_failed(KITH_EFORMAT, "redirects more than 10 times");
}

/* ---- connections that break ---- */

static void test_cut_then_resumed(void **state) {
    (void)state;
    hub_way = (hub_ways){.n_cuts = 2, .cut_after = 100000};
    assert_ok(pull(), &err);
    assert_whole();
    assert_int_equal(hub_count("storage GET /model.safetensors?signature=x%3D range=100000\n"), 1);
    assert_int_equal(hub_count("storage GET /model.safetensors?signature=x%3D range=200000\n"), 1);
}

static void test_the_next_pull_resumes(void **state) {
    (void)state;
    hub_way = (hub_ways){.n_cuts = 100, .cut_after = 20000};
    assert_failed(KITH_EIO, "");
    assert_int_equal(n_parts(), 1);
    kith_pulled *list = NULL;
    const kith_pull_options o = options();
    assert_ok(kith_pull_list(&o, &list, &err), &err);
    assert_int_equal(kith_pulled_count(list), 1);
    assert_true(kith_pulled_at(list, 0, &entry));
    assert_int_equal(entry.bytes, 100000);
    assert_string_equal(entry.commit, "");
    kith_pulled_free(list);
    hub_way = (hub_ways){0};
    hub_forget();
    assert_ok(pull(), &err);
    assert_whole();
    assert_int_equal(entry.n_fetched, 200000);
    assert_int_equal(hub_count("range=100000\n"), 2); /* asked of the hub and of the storage */
    assert_non_null(strstr(logged, "going on after 0.1 of 0.3 MB"));
}

static void test_ranges_that_are_not_kept(void **state) {
    (void)state;
    for (int way = 0; way < 3; way++) {
        set_up(NULL);
        hub_way = (hub_ways){.n_cuts = 1,
                             .cut_after = 100000,
                             .ignores_range = way == 0,
                             .refuses_range = way == 1,
                             .lies_range = way == 2};
        assert_ok(pull(), &err);
        assert_whole();
    }
}

/* A part of something else: the hash tells, and the next pull begins anew. */
static void test_a_part_that_is_wrong(void **state) {
    (void)state;
    hub_way = (hub_ways){.n_cuts = 100, .cut_after = 20000};
    assert_failed(KITH_EIO, "");
    char out[64];
    testing_run(out, sizeof out,
                "cd '%s' && printf x | dd of=\"$(find . -name '*.incomplete')\" conv=notrunc 2>&1", cache);
    hub_way = (hub_ways){0};
    assert_failed(KITH_EFORMAT, "is damaged");
    assert_int_equal(n_parts(), 0);
    assert_ok(pull(), &err);
    assert_whole();
    /* and one that is too long */
    set_up(NULL);
    hub_way = (hub_ways){.n_cuts = 100, .cut_after = 20000};
    assert_failed(KITH_EIO, "");
    testing_run(out, sizeof out, "cd '%s' && truncate -s 1M \"$(find . -name '*.incomplete')\"", cache);
    hub_way = (hub_ways){0};
    assert_ok(pull(), &err);
    assert_whole();
}

static void test_stall(void **state) {
    (void)state;
    setenv("HF_HUB_DOWNLOAD_TIMEOUT", "1", 1);
    hub_way.n_stalls = 1;
    hub_start(files, 1); /* only the weights have a body */
    assert_ok(pull(), &err);
    assert_whole();
    assert_int_equal(hub_count("range=150000\n"), 2);
}

static void test_nobody_listens(void **state) {
    (void)state;
    endpoint = "http://127.0.0.1:1";
    assert_failed(KITH_EIO, "http://127.0.0.1:1 cannot be reached");
    assert_null(strstr(logged, "no encryption"));
    endpoint = "http://no-such-host.invalid";
    assert_failed(KITH_EIO, "http://no-such-host.invalid cannot be reached");
    static const char said[] =
        "http://no-such-host.invalid has no encryption: whoever is on the way there can change what comes";
    assert_non_null(strstr(logged, said));
    assert_null(strstr(logged, "token"));
    setenv("HF_TOKEN", HUB_TOKEN, 1);
    assert_failed(KITH_EIO, "http://no-such-host.invalid cannot be reached");
    assert_non_null(strstr(logged, "can change what comes; the token is not sent"));
    unsetenv("HF_TOKEN");
    endpoint = "ftp://127.0.0.1";
    assert_failed(KITH_EINVAL, "the endpoint is not an address that can be used");
    setenv("HTTP_PROXY", "", 1);
}

static void test_redirect_to_nowhere(void **state) {
    (void)state;
    hub_way.location = "file:///etc/passwd";
    assert_failed(KITH_EFORMAT, "not an http address");
    hub_way.location = "http://127.0.0.1:1/x";
    assert_failed(KITH_EIO, "http://127.0.0.1:1 cannot be reached");
}

/* ---- stopping, waiting, two at once ---- */

static int stop_early(void *user, int64_t n_done, int64_t n_all) {
    int64_t *most = user;
    if (n_all > 0 && n_done > *most) *most = n_done;
    return n_done > 100000;
}

static void test_stop(void **state) {
    (void)state;
    int64_t most = 0;
    kith_pull_options o = options();
    o.progress = stop_early;
    o.user = &most;
    hub_way.delay_ms = 300;
    assert_int_equal(pull_with(&o), KITH_ECANCELED);
    assert_true(most > 100000);
    assert_nothing_kept();
    assert_int_equal(n_parts(), 1);
    hub_way.delay_ms = 0;
    assert_ok(pull(), &err);
    assert_whole();
}

static void *pull_beside(void *argument) {
    kith_status *ret = argument;
    kith_error mine = {0};
    kith_pulled *got = NULL;
    const kith_pull_options o = options();
    *ret = kith_pull_run(HUB_REPO, &o, &got, &mine);
    kith_pulled_free(got);
    return NULL;
}

static void test_two_at_once(void **state) {
    (void)state;
    enum { N = 4 };
    pthread_t thread[N];
    kith_status status[N];
    hub_way.delay_ms = 400;
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, pull_beside, &status[i]), 0);
    for (int i = 0; i < N; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(status[i], KITH_OK);
    }
    assert_whole();
    assert_int_equal(hub_count("storage GET"), 1); /* the others waited, and found it */
}

static void test_not_removed_while_it_is_fetched(void **state) {
    (void)state;
    assert_ok(pull(), &err);
    char out[1024];
    testing_run(out, sizeof out, "find '%s/.locks' -name '*.lock' | head -1 | tr -d '\\n'", cache);
    const int fd = open(out, O_RDWR);
    const kith_pull_options o = options();
    int64_t bytes = 0;
    assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
    assert_int_equal(kith_pull_remove(HUB_REPO, &o, &bytes, &err), KITH_EINVAL);
    assert_says("org/net is being fetched by another process");
    assert_whole();
    close(fd);
    assert_ok(kith_pull_remove(HUB_REPO, &o, &bytes, &err), &err);
    assert_int_equal(bytes, LARGE + sizeof config - 1);
    assert_int_equal(count("find . -path '*models--org--net*' -not -path './.locks*'"), 0);
    assert_int_equal(kith_pull_remove(HUB_REPO, &o, &bytes, &err), KITH_ENOTFOUND);
}

/* ---- offline, and a cache of others ---- */

static void test_offline(void **state) {
    (void)state;
    setenv("HF_HUB_OFFLINE", "1", 1);
    assert_failed(KITH_EUNSUPPORTED,
                  "org/net is not in the hub's cache, and HF_HUB_OFFLINE forbids to fetch it");
    assert_int_equal(hub_count("hub"), 0);
    setenv("HF_HUB_OFFLINE", "0", 1);
    assert_ok(pull(), &err);
    setenv("HF_HUB_OFFLINE", "TRUE", 1);
    hub_forget();
    assert_ok(pull(), &err);
    assert_int_equal(entry.bytes, LARGE);
    assert_int_equal(hub_count("hub"), 0);
}

/* Files of Python: also a repository of something else, a part with its own name, a link to nothing. */
static void test_a_cache_of_python(void **state) {
    (void)state;
    char out[4096];
    assert_int_equal(
        testing_run(
            out, sizeof out,
            "mkdir -p '%s' && cd '%s' && mkdir -p models--a--b/blobs models--a--b/refs/refs/pr "
            "models--a--b/snapshots/" HUB_COMMIT " datasets--a--b/snapshots/x models--gpt2/snapshots/x "
            "models--c--d/blobs models--c--d/snapshots/" HUB_COMMIT " .locks/models--a--b && "
            "printf 1234567 > models--a--b/blobs/e && printf " HUB_COMMIT " > models--a--b/refs/main && "
            "printf " HUB_COMMIT " > models--a--b/refs/refs/pr/7 && "
            "ln -s ../../blobs/e models--a--b/snapshots/" HUB_COMMIT "/model.safetensors && "
            "ln -s ../../blobs/gone models--c--d/snapshots/" HUB_COMMIT "/model.safetensors && "
            "printf 123 > models--c--d/blobs/e.0123abcd.incomplete && touch CACHEDIR.TAG version.txt",
            cache, cache),
        0);
    const kith_pull_options o = options();
    kith_pulled *list = NULL;
    char file[4096];
    assert_ok(kith_pull_list(&o, &list, &err), &err);
    assert_int_equal(kith_pulled_count(list), 2);
    assert_true(kith_pulled_at(list, 0, &entry));
    assert_string_equal(entry.name, "a/b");
    assert_string_equal(entry.revision, "main refs/pr/7");
    assert_int_equal(entry.bytes, 7);
    assert_true(kith_pulled_at(list, 1, &entry));
    assert_string_equal(entry.name, "c/d");
    assert_string_equal(entry.commit, "");
    assert_int_equal(entry.bytes, 3);
    kith_pulled_free(list);
    assert_ok(kith_pull_find("a/b", &o, file, sizeof file, &err), &err);
    assert_int_equal(kith_pull_find("c/d@" HUB_COMMIT, &o, file, sizeof file, &err), KITH_ENOTFOUND);
    int64_t bytes = 0;
    assert_ok(kith_pull_remove("a/b@refs/pr/7", &o, &bytes, &err), &err);
    assert_int_equal(bytes, 7);
    assert_int_equal(count("find models--a--b -type f -o -type l"), 0);
}

/* A folder where a link leads out of the cache: the link goes, what it leads to stays. */
static void test_remove_follows_no_link(void **state) {
    (void)state;
    char out[256], file[600];
    assert_ok(pull(), &err);
    snprintf(file, sizeof file, "%s/precious", testing_folder());
    testing_write(file, "x");
    testing_run(out, sizeof out,
                "cd '%s/models--org--net' && ln -s '%s' blobs/outside && ln -s '%s' snapshots/out", cache,
                file, testing_folder());
    const kith_pull_options o = options();
    int64_t bytes = 0;
    assert_ok(kith_pull_remove(HUB_REPO, &o, &bytes, &err), &err);
    assert_int_equal(access(file, F_OK), 0);
    unlink(file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_pull),
        TEST(test_relative_redirect),
        TEST(test_revision),
        TEST(test_preprocessor),
        TEST(test_large_config),
        TEST(test_without_config),
        TEST(test_token),
        TEST(test_token_of_the_file),
        TEST(test_token_is_never_shown),
        TEST(test_statuses),
        TEST(test_refusals_that_pass),
        TEST(test_retry_after),
        TEST(test_no_such_file),
        TEST(test_wrong_hash),
        TEST(test_no_hash),
        TEST(test_hostile_sizes),
        TEST(test_no_commit),
        TEST(test_endless_heads_and_bodies),
        TEST(test_cut_then_resumed),
        TEST(test_the_next_pull_resumes),
        TEST(test_ranges_that_are_not_kept),
        TEST(test_a_part_that_is_wrong),
        TEST(test_stall),
        TEST(test_nobody_listens),
        TEST(test_redirect_to_nowhere),
        TEST(test_stop),
        TEST(test_two_at_once),
        TEST(test_not_removed_while_it_is_fetched),
        TEST(test_offline),
        TEST(test_a_cache_of_python),
        TEST(test_remove_follows_no_link),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
