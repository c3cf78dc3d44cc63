/* What the server finds and shows: the same as kith search, from images that nobody has to trust. */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "data/image/image.h"
#include "support/http.h"
#include "support/served.h"
#include "support/testing.h"

static ki_server *server;
static int port;

static int set_up(void **state) {
    (void)state;
    served_make();
    ki_serve_options o = served_options();
    o.deadline = 9; /* a decoder has a third of it */
    server = served_start(&o, &port);
    return 0;
}

static int tear_down(void **state) {
    ki_server_free(server);
    return testing_tear_down(state);
}

/* Numbers behind every `key` of a JSON text, in order. */
static int numbers(const char *text, const char *key, double *ret, int most) {
    char pattern[64];
    int n = 0;
    snprintf(pattern, sizeof pattern, "\"%s\": ", key);
    for (const char *at = text; n < most && (at = strstr(at, pattern));) {
        at += strlen(pattern);
        ret[n++] = strtod(at, NULL);
    }
    return n;
}

static http_answer search_with(const char *query, const char *photo) {
    size_t n = 0;
    char *bytes = photo ? served_photo(photo, &n) : NULL;
    http_answer a = photo ? http_post_form(port, "/api/v1/search", query, bytes, n)
                          : http_post_json(port, "/api/v1/search", query);
    free(bytes);
    return a;
}

/* The query's ids and scores are those of the command line. */
static void assert_as_command(const char *query, const char *photo, const char *command) {
    char output[65536];
    double ours[64], theirs[64], our_score[64], their_score[64];
    http_answer a = search_with(query, photo);
    if (a.status != 200) fail_msg("%s: status %d: %s", query, a.status, a.body);
    const int status = testing_run(output, sizeof output, "cd %s && %s search p.kith %s --json 2>/dev/null",
                                   testing_folder(), testing_program(), command);
    if (status != 0) fail_msg("%s: %s", command, output);
    const int n = numbers(a.body, "id", ours, 64), m = numbers(output, "id", theirs, 64);
    numbers(a.body, "score", our_score, 64);
    numbers(output, "score", their_score, 64);
    if (n != m || n == 0) fail_msg("%s: %d hits, %d by the command: %s", query, n, m, a.body);
    for (int i = 0; i < n; i++) {
        if (ours[i] != theirs[i] || our_score[i] != their_score[i])
            fail_msg("%s: hit %d is %g (%.9g), %g (%.9g) by the command", query, i, ours[i], our_score[i],
                     theirs[i], their_score[i]);
    }
    http_release(&a);
}

static void test_the_same_as_kith_search(void **state) {
    (void)state;
    const char *one = "glyph00001/00002.png";
    assert_as_command("{\"images\": [{\"part\": \"f0\"}], \"k\": 5}", one,
                      "photos/glyph00001/00002.png -k 5");
    assert_as_command("{\"images\": [{\"part\": \"f0\"}], \"k\": 3, \"offset\": 3}", one,
                      "photos/glyph00001/00002.png -k 3 --page 2");
    assert_as_command("{\"images\": [{\"part\": \"f0\", \"crop\": [8, 4, 30, 50]}], \"k\": 5}", one,
                      "photos/glyph00001/00002.png -k 5 --crop 8,4,30,50");
    assert_as_command("{\"images\": [{\"part\": \"f0\"}], \"k\": 5, \"flips\": true}", one,
                      "photos/glyph00001/00002.png -k 5 --views flips");
    assert_as_command("{\"images\": [{\"part\": \"f0\"}], \"k\": 16, \"where\": \"label != glyph00001\"}",
                      one, "photos/glyph00001/00002.png -k 16 --where 'label != glyph00001'");
    assert_as_command("{\"images\": [{\"part\": \"f0\"}], \"k\": 16, \"same\": 0.3}", one,
                      "photos/glyph00001/00002.png -k 16 --same 0.3");
}

/* An image that is larger than the network takes, where the decoder makes views smaller: still the same bits. */
static void make_large(const char *name, bool is_jpeg) {
    enum { W = 1300, H = 1111 };
    char path[1200];
    ki_image image = {0};
    ki_bytes file = {0};
    kith_error err;
    assert_ok(ki_image_shape(&image, W, H, 3, &err), &err);
    for (int i = 0; i < W * H; i++) {
        const int x = i % W, y = i / W;
        image.data[3 * i] = (uint8_t)(x * 255 / W);
        image.data[3 * i + 1] = (uint8_t)((x * x / 97 + y * 3) & 255);
        image.data[3 * i + 2] = (uint8_t)((x / 40 ^ y / 30) * 8);
    }
    assert_ok(is_jpeg ? ki_jpeg_encode(&image, 90, &file, &err) : ki_png_encode(&image, &file, &err), &err);
    snprintf(path, sizeof path, "%s/photos/%s", testing_folder(), name);
    FILE *to = fopen(path, "wb");
    if (!to || fwrite(file.data, 1, file.n, to) != file.n || fclose(to) != 0) fail_msg("no %s", path);
    ki_image_release(&image);
    ki_bytes_release(&file);
}

static void test_large_images_the_same_as_kith_search(void **state) {
    (void)state;
    static const char *const name[] = {"../large.png", "../large.jpg"};
    for (int i = 0; i < 2; i++) {
        char command[256];
        make_large(name[i], i == 1);
        snprintf(command, sizeof command, "photos/%s -k 5", name[i]);
        assert_as_command("{\"images\": [{\"part\": \"f0\"}], \"k\": 5}", name[i], command);
        snprintf(command, sizeof command, "photos/%s -k 5 --crop 80.5,41,700,503.2", name[i]);
        assert_as_command("{\"images\": [{\"part\": \"f0\", \"crop\": [80.5, 41, 700, 503.2]}], \"k\": 5}",
                          name[i], command);
        snprintf(command, sizeof command, "photos/%s -k 5 --views flips", name[i]);
        assert_as_command("{\"images\": [{\"part\": \"f0\"}], \"k\": 5, \"flips\": true}", name[i], command);
        snprintf(command, sizeof command, "photos/%s -k 5 --views flips --crop 80.5,41,700,503.2", name[i]);
        assert_as_command(
            "{\"images\": [{\"part\": \"f0\", \"crop\": [80.5, 41, 700, 503.2]}], \"k\": 5, \"flips\": true}",
            name[i], command);
    }
    /* One part as a whole and as a part: each as if it were alone. */
    double score[3][2];
    static const char *const query[] = {
        "{\"images\": [{\"part\": \"f0\"}, {\"id\": 3, \"weight\": 1e-9}], \"k\": 1, \"where\": \"id = 3\"}",
        "{\"images\": [{\"part\": \"f0\"}, {\"part\": \"f0\", \"crop\": [80.5, 41, 700, 503.2], \"weight\": "
        "1e-9}], \"k\": "
        "1, \"where\": \"id = 3\"}",
        "{\"images\": [{\"part\": \"f0\", \"crop\": [80.5, 41, 700, 503.2], \"weight\": 1e-9}, {\"part\": "
        "\"f0\"}], \"k\": "
        "1, \"where\": \"id = 3\"}"};
    for (int i = 0; i < 3; i++) {
        http_answer a = search_with(query[i], "../large.jpg");
        if (a.status != 200 || numbers(a.body, "score", score[i], 2) != 1)
            fail_msg("%d: %s", a.status, a.body);
        if (score[i][0] != score[0][0]) fail_msg("query %d: %.9g, wanted %.9g", i, score[i][0], score[0][0]);
        http_release(&a);
    }
}

/* An item is as good as its picture, up to rounding: the index was embedded in batches of another size. */
static void test_items_and_sums(void **state) {
    (void)state;
    double id[4], score[4];
    http_answer a = search_with("{\"images\": [{\"id\": 6}], \"k\": 2}", NULL);
    assert_int_equal(a.status, 200);
    assert_int_equal(numbers(a.body, "id", id, 4), 2);
    numbers(a.body, "score", score, 4);
    assert_true(id[0] == 6 && score[0] > 0.99999);
    assert_holds(a.body, "\"label\": \"glyph00001\", \"path\": \"");
    assert_holds(a.body, "\"image\": true");
    assert_holds(a.body, "{\"n_allowed\": 16, \"is_exact\": true, ");
    http_release(&a);
    /* Plus and minus: of two pictures each is as near as the other, and with one taken away it is far. */
    a = search_with("{\"images\": [{\"id\": 0}, {\"id\": 4}], \"k\": 16, \"where\": \"id in (0, 4)\"}", NULL);
    assert_int_equal(numbers(a.body, "score", score, 4), 2);
    if (!(score[0] - score[1] < 1e-5)) fail_msg("scores %g and %g", score[0], score[1]);
    http_release(&a);
    a = search_with("{\"images\": [{\"id\": 0}, {\"id\": 4, \"weight\": -1}], \"k\": 16}", NULL);
    assert_int_equal(numbers(a.body, "id", id, 1), 1);
    assert_true(id[0] == 0);
    http_release(&a);
    a = search_with("{\"images\": [{\"id\": 0}, {\"id\": 0, \"weight\": -1}]}", NULL);
    assert_int_equal(a.status, 400);
    assert_holds(a.body, "cancel out");
    http_release(&a);
}

static void test_bad_questions(void **state) {
    (void)state;
    static const struct {
        const char *query, *photo;
        int status;
        const char *why;
    } row[] = {
        {"{\"images\": [{\"id\": 99}]}", NULL, 404, "there is no item 99"},
        {"{\"images\": [{\"id\": 1}], \"where\": \"lable = x\"}", NULL, 400, "did you mean 'label'?"},
        {"{\"images\": [{\"id\": 1}], \"same\": 0.000001}", NULL, 400, "tell rates from"},
        {"{\"images\": [{\"id\": 1}], \"k\": 5000}", NULL, 400, "at most 1000"},
        {"{\"images\": [{\"part\": \"f1\"}]}", "glyph00001/00002.png", 400, "no part 'f1'"},
        {"{\"images\": [{\"part\": \"f0\", \"crop\": [100, 100, 5, 5]}]}", "glyph00001/00002.png", 400,
         "lies outside the image of 64 x 64 pixels"},
        {"{\"images\": [{\"part\": \"f0\", \"weight\": -1}]}", "glyph00001/00002.png", 400, "weight above 0"},
        {"nonsense", NULL, 400, "query"},
    };
    for (size_t i = 0; i < N_ROWS(row); i++) {
        http_answer a = search_with(row[i].query, row[i].photo);
        if (a.status != row[i].status) fail_msg("%s: status %d: %s", row[i].query, a.status, a.body);
        assert_holds(a.head, "application/problem+json");
        assert_holds(a.body, row[i].why);
        http_release(&a);
    }
}

static void test_items(void **state) {
    (void)state;
    http_answer a = http_get(port, "/api/v1/items/6");
    assert_int_equal(a.status, 200);
    assert_holds(a.body, "{\"id\": 6, \"label\": \"glyph00001\", \"path\": \"");
    assert_holds(a.body, "\"path\": \"glyph00001/00002.png\", \"values\": {}, \"image\": true, \"bytes\": ");
    http_release(&a);
}

static void assert_jpeg(const http_answer *a, int side) {
    ki_image image = {0};
    kith_error err;
    const ki_decode how = {0};
    assert_int_equal(a->status, 200);
    assert_holds(a->head, "Content-Type: image/jpeg\r\n");
    assert_holds(a->head, "Cache-Control: private, max-age=3600\r\n");
    assert_ok(ki_image_decode((const uint8_t *)a->body, a->n_body, &how, &image, &err), &err);
    const int longer = image.w > image.h ? image.w : image.h;
    if (longer != side) fail_msg("a picture of %d x %d", image.w, image.h);
    if (memmem(a->body, a->n_body, "Exif", 4)) fail_msg("what the camera wrote is in the picture");
    ki_image_release(&image);
}

static void test_pictures(void **state) {
    (void)state;
    http_answer a = http_get(port, "/api/v1/items/6/thumb?side=32");
    assert_jpeg(&a, 32);
    char header[256];
    const char *etag = strstr(a.head, "ETag: ");
    assert_non_null(etag);
    snprintf(header, sizeof header, "If-None-Match: %.*s\r\n", (int)strcspn(etag + 6, "\r"), etag + 6);
    http_release(&a);
    a = http_ask(port, "GET", "/api/v1/items/6/thumb?side=32", header, NULL, 0);
    assert_int_equal(a.status, 304);
    assert_int_equal(a.n_body, 0);
    http_release(&a);
    a = http_ask(port, "GET", "/api/v1/items/6/thumb?side=33", header, NULL, 0);
    assert_jpeg(&a, 33);
    http_release(&a);
    a = http_get(port, "/api/v1/items/6/image");
    assert_jpeg(&a, 64);
    http_release(&a);
    static const char *const bad[] = {"0", "x", "100000", "-5", ""};
    for (size_t i = 0; i < N_ROWS(bad); i++) {
        char path[64];
        snprintf(path, sizeof path, "/api/v1/items/6/thumb?side=%s", bad[i]);
        a = http_get(port, path);
        if (a.status != 400) fail_msg("side %s: status %d", bad[i], a.status);
        http_release(&a);
    }
    a = http_get(port, "/api/v1/items/99/thumb");
    assert_int_equal(a.status, 404);
    http_release(&a);
}

/* Every image of the corpus as a query: the good ones are found with, the bad ones refused in one line, by the same decoders. */
static void test_images_of_all_kinds(void **state) {
    (void)state;
    pid_t before[4], after[4];
    char folder[1024], path[2048];
    int n_good = 0, n_bad = 0;
    const int n_before = served_decoders(before, 4);
    snprintf(folder, sizeof folder, "%s/test/corpus/image", KITH_SOURCE_DIR);
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));) {
        const bool is_good = strncmp(entry->d_name, "ok_", 3) == 0;
        if (!is_good && strncmp(entry->d_name, "bad_", 4) != 0) continue;
        if (!KITH_HEIF && (strstr(entry->d_name, ".heic") || strstr(entry->d_name, ".avif"))) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        FILE *file = fopen(path, "rb");
        char *bytes = malloc(1 << 22);
        if (!file || !bytes) fail_msg("no %s", path);
        const size_t n = fread(bytes, 1, 1 << 22, file);
        fclose(file);
        http_answer a =
            http_post_form(port, "/api/v1/search", "{\"images\": [{\"part\": \"f0\"}]}", bytes, n);
        free(bytes);
        if (is_good ? a.status != 200 : a.status != 400 && a.status != 413 && a.status != 415)
            fail_msg("%s: status %d: %s", entry->d_name, a.status, a.body);
        http_release(&a);
        if (is_good)
            n_good++;
        else
            n_bad++;
    }
    closedir(list);
    if (n_good < 20 || n_bad < 10) fail_msg("only %d good and %d bad images", n_good, n_bad);
    assert_int_equal(served_decoders(after, 4), n_before);
    assert_memory_equal(before, after, (size_t)n_before * sizeof *before);
}

/* The most memory that a process has had, in KiB. */
static long most_memory(pid_t pid) {
    char path[64], line[256];
    long most = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "VmHWM:", 6) == 0) most = strtol(line + 6, NULL, 10);
    }
    fclose(file);
    return most;
}

/* A few bytes that stand for billions of pixels are refused by their header: at once, and without memory for them. */
static void test_a_pixel_bomb(void **state) {
    (void)state;
    char path[1024];
    pid_t decoder[4];
    const int n_decoders = served_decoders(decoder, 4);
    long before = most_memory(getpid()), after = 0;
    for (int i = 0; i < n_decoders; i++) before += most_memory(decoder[i]);
    snprintf(path, sizeof path, "%s/test/corpus/image/bad_bomb.png", KITH_SOURCE_DIR);
    FILE *file = fopen(path, "rb");
    char bytes[65536];
    assert_non_null(file);
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    double best = 1e9;
    for (int i = 0; i < 100 && best > 0.010; i++) { /* other programs may have the cores */
        http_answer a =
            http_post_form(port, "/api/v1/search", "{\"images\": [{\"part\": \"f0\"}]}", bytes, n);
        assert_int_equal(a.status, 413);
        if (a.seconds < best) best = a.seconds;
        http_release(&a);
    }
    if (best > 0.010) fail_msg("refused after %g s", best);
    after = most_memory(getpid());
    for (int i = 0; i < n_decoders; i++) after += most_memory(decoder[i]);
    if (before == 0 || after - before > 16 * 1024) fail_msg("%ld KiB, then %ld", before, after);
}

/* ---- decoders that die ---- */

static void *ask_with_a_photo(void *context) {
    http_answer *answer = context;
    *answer = search_with("{\"images\": [{\"part\": \"f0\"}]}", "glyph00001/00002.png");
    return NULL;
}

/* kill -9 in the middle of a request: its client is told to come back, others notice nothing. */
static void test_a_killed_decoder(void **state) {
    (void)state;
    pid_t decoder[4], after[4];
    pthread_t thread;
    http_answer unlucky = {0};
    assert_int_equal(served_decoders(decoder, 4), 2);
    kill(decoder[0], SIGSTOP); /* the first is asked first */
    pthread_create(&thread, NULL, ask_with_a_photo, &unlucky);
    wait_seconds(0.3);
    http_from("127.0.0.9");
    for (int i = 0; i < 3; i++) {
        http_answer other = {0};
        ask_with_a_photo(&other);
        assert_int_equal(other.status, 200);
        if (other.seconds > 2) fail_msg("after %g s", other.seconds);
        http_release(&other);
    }
    http_from(NULL);
    kill(decoder[0], SIGKILL);
    pthread_join(thread, NULL);
    if (unlucky.status != 503) fail_msg("status %d: %s", unlucky.status, unlucky.body);
    assert_holds(unlucky.head, "Retry-After: ");
    assert_holds(unlucky.body, "stopped its decoder");
    http_release(&unlucky);
    assert_int_equal(served_decoders(after, 4), 2);
    assert_int_not_equal(after[1], decoder[1]);
    ask_with_a_photo(&unlucky);
    assert_int_equal(unlucky.status, 200);
    http_release(&unlucky);
}

/* One that was killed while nobody asked is replaced before it is asked. */
static void test_a_decoder_killed_at_rest(void **state) {
    (void)state;
    pid_t decoder[4];
    assert_int_equal(served_decoders(decoder, 4), 2);
    kill(decoder[0], SIGKILL);
    kill(decoder[1], SIGKILL);
    wait_seconds(0.2);
    http_answer a = {0};
    ask_with_a_photo(&a);
    assert_int_equal(a.status, 200);
    http_release(&a);
}

/* One that hangs is killed at its deadline. */
static void test_a_hanging_decoder(void **state) {
    (void)state;
    pid_t decoder[4], after[4];
    http_answer a = {0};
    ask_with_a_photo(&a); /* both are there again */
    http_release(&a);
    const int n = served_decoders(decoder, 4);
    for (int i = 0; i < n; i++) kill(decoder[i], SIGSTOP);
    ask_with_a_photo(&a);
    if (a.status != 503) fail_msg("status %d", a.status);
    if (!(a.seconds > 2 && a.seconds < 9)) fail_msg("after %g s", a.seconds);
    http_release(&a);
    served_decoders(after, 4);
    for (int i = 0; i < n; i++) kill(decoder[i], SIGCONT);
    ask_with_a_photo(&a);
    assert_int_equal(a.status, 200);
    http_release(&a);
}

/* ---- duplicates and explanations ---- */

static void test_an_explanation(void **state) {
    (void)state;
    double score[1], hits[2];
    static const char *const query[] = {
        "{\"images\": [{\"part\": \"f0\"}], \"hit\": 6}",
        "{\"images\": [{\"part\": \"f0\", \"crop\": [8, 4, 30, 50]}], \"hit\": 3}",
        "{\"images\": [{\"id\": 2}], \"hit\": 9}"};
    for (size_t i = 0; i < N_ROWS(query); i++) {
        size_t n = 0;
        char *photo = served_photo("glyph00001/00002.png", &n);
        http_answer a = http_post_form(port, "/api/v1/explain", query[i], photo, n);
        free(photo);
        if (a.status != 200) fail_msg("%s: status %d: %s", query[i], a.status, a.body);
        assert_int_equal(numbers(a.body, "score", score, 1), 1);
        /* The numbers of each map and its rest are the score. */
        const char *at = a.body;
        for (int map = 0; map < 2; map++) {
            double sum = 0, rest = 0;
            at = strstr(at, "\"values\": [");
            assert_non_null(at);
            at += strlen("\"values\": [");
            for (char *end; *at != ']'; at = *end == ',' ? end + 1 : end) sum += strtod(at, &end);
            assert_int_equal(numbers(at, "rest", &rest, 1), 1);
            if (!(sum + rest - score[0] < 1e-9 && score[0] - sum - rest < 1e-9))
                fail_msg("%s: map %d has the sum %.12g, the score is %.12g", query[i], map, sum + rest,
                         score[0]);
        }
        assert_holds(a.body, "\"estimate\": null, \"query\": {");
        if (i == 0 && !(score[0] > 0.99999)) fail_msg("an image and itself: %g", score[0]);
        /* The network sees the middle of the part, told in pixels of the whole image. */
        if (i == 1)
            assert_holds(a.body,
                         "\"view\": [21.359375, 26.265625, 3.28125, 5.46875], \"width\": 64, \"height\": "
                         "64}, \"hit\"");
        http_release(&a);
    }
    /* The score is the one that a search gives. */
    http_answer a = search_with("{\"images\": [{\"id\": 2}], \"k\": 1, \"where\": \"id = 9\"}", NULL);
    assert_int_equal(numbers(a.body, "score", hits, 1), 1);
    if (!(score[0] - hits[0] < 1e-5 && hits[0] - score[0] < 1e-5))
        fail_msg("explained %g, found %g", score[0], hits[0]);
    http_release(&a);
    static const struct {
        const char *query;
        int status;
    } bad[] = {{"{\"images\": [{\"id\": 2}]}", 400},
               {"{\"images\": [{\"id\": 2}, {\"id\": 3}], \"hit\": 1}", 400},
               {"{\"images\": [{\"id\": 2}], \"hit\": 99}", 404},
               {"{\"images\": [{\"id\": 99}], \"hit\": 1}", 404}};
    for (size_t i = 0; i < N_ROWS(bad); i++) {
        a = http_post_json(port, "/api/v1/explain", bad[i].query);
        if (a.status != bad[i].status) fail_msg("%s: status %d", bad[i].query, a.status);
        http_release(&a);
    }
}

static int count(const char *text, const char *what) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++) n++;
    return n;
}

/* ---- an index that changes ---- */

static void test_a_newer_commit_is_seen(void **state) {
    (void)state;
    char output[8192];
    const int status =
        testing_run(output, sizeof output,
                    "cd %s && cp photos/glyph00001/00002.png photos/glyph00001/new.png && %s index "
                    "p.kith --sync",
                    testing_folder(), testing_program());
    if (status != 0) fail_msg("%s", output);
    double items = 0;
    for (int i = 0; i < 100 && items != 17; i++) {
        wait_seconds(0.1);
        http_answer a = http_get(port, "/api/v1/info");
        numbers(a.body, "items", &items, 1);
        http_release(&a);
    }
    if (items != 17) fail_msg("%g items", items);
    http_answer a = search_with("{\"images\": [{\"id\": 16}], \"k\": 2}", NULL);
    assert_holds(a.body, "\"path\": \"glyph00001/new.png\"");
    http_release(&a);
}

/* The copy is a duplicate, and is hidden if that is asked for. */
static void test_duplicates(void **state) {
    (void)state;
    double id[8];
    http_answer a = http_get(port, "/api/v1/duplicates");
    for (int i = 0; i < 20 && a.status == 503;
         i++) { /* on a busy machine they take longer than a request waits */
        assert_holds(a.head, "Retry-After: ");
        http_release(&a);
        a = http_get(port, "/api/v1/duplicates");
    }
    assert_int_equal(a.status, 200);
    assert_holds(
        a.body,
        "{\"n_groups\": 1, \"n_unread\": 0, \"groups\": [{\"kind\": \"same\", \"items\": [{\"id\": 6, ");
    assert_holds(a.body, "{\"id\": 16, ");
    http_release(&a);
    a = http_get(port, "/api/v1/duplicates?offset=1");
    assert_holds(a.body, "\"groups\": []");
    http_release(&a);
    a = http_get(port, "/api/v1/duplicates?limit=0");
    assert_int_equal(a.status, 400);
    http_release(&a);
    a = search_with("{\"images\": [{\"id\": 6}], \"k\": 3}", NULL);
    assert_int_equal(count(a.body, "\"score\""), 3);
    assert_int_equal(numbers(a.body, "id", id, 8), 3);
    assert_true(id[0] + id[1] == 22);
    const double next = id[2];
    http_release(&a);
    a = search_with("{\"images\": [{\"id\": 6}], \"k\": 3, \"hide_duplicates\": true}", NULL);
    assert_int_equal(a.status, 200);
    assert_int_equal(numbers(a.body, "id", id, 8), 3);
    assert_true(id[1] == next && id[2] != 16 && id[2] != 6);
    const double third = id[2];
    http_release(&a);
    a = search_with("{\"images\": [{\"id\": 6}], \"k\": 2, \"offset\": 2, \"hide_duplicates\": true}", NULL);
    assert_int_equal(numbers(a.body, "id", id, 8), 2);
    assert_true(id[0] == third);
    http_release(&a);
}

static void test_metrics(void **state) {
    (void)state;
    http_answer a = http_get(port, "/metrics");
    assert_int_equal(a.status, 200);
    assert_holds(a.head, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
    assert_holds(a.body, "kith_requests_total{route=\"search\",status=\"200\"} ");
    assert_holds(a.body, "kith_request_seconds_bucket{route=\"search\",le=\"+Inf\"} ");
    assert_holds(a.body, "kith_index_items 17\n");
    assert_holds(a.body, "kith_requests_in_work 1\n");
    http_release(&a);
}

/* What the page begins with are items that are there, also when the first ones are gone. */
static void test_samples(void **state) {
    (void)state;
    char output[4096], path[1200];
    int other_port = 0, n_seen = 0;
    bool is_seen[16] = {false};
    const int status = testing_run(output, sizeof output,
                                   "cd '%s' && cp -r p.kith gaps.kith && %s index gaps.kith --remove "
                                   "glyph00000 --remove new.png && rm -f photos/glyph00003/00000.png",
                                   testing_folder(), testing_program());
    if (status != 0) fail_msg("%s", output);
    snprintf(path, sizeof path, "%s/gaps.kith", testing_folder());
    ki_serve_options o = served_options();
    o.index = path;
    ki_server *gaps = served_start(&o, &other_port);
    for (int turn = 0; turn < 12; turn++) {
        double id[16];
        http_answer a = http_get(other_port, "/api/v1/info");
        const char *samples = strstr(a.body, "\"samples\": [");
        if (!samples) fail_msg("no samples in: %s", a.body);
        const int n = numbers(samples, "id", id, 16);
        if (n != 8) fail_msg("%d samples: %s", n, samples);
        for (int i = 0; i < n; i++) {
            if (!(id[i] >= 4 && id[i] < 16) || id[i] == 12) fail_msg("item %g is gone: %s", id[i], samples);
            n_seen += !is_seen[(int)id[i]];
            is_seen[(int)id[i]] = true;
        }
        http_release(&a);
    }
    assert_int_equal(n_seen, 11); /* all that are there take their turn; 12 has no picture any more */
    ki_server_free(gaps);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_as_kith_search),
        cmocka_unit_test(test_large_images_the_same_as_kith_search),
        cmocka_unit_test(test_items_and_sums),
        cmocka_unit_test(test_bad_questions),
        cmocka_unit_test(test_items),
        cmocka_unit_test(test_pictures),
        cmocka_unit_test(test_images_of_all_kinds),
        cmocka_unit_test(test_a_pixel_bomb),
        cmocka_unit_test(test_a_killed_decoder),
        cmocka_unit_test(test_a_decoder_killed_at_rest),
        cmocka_unit_test(test_a_hanging_decoder),
        cmocka_unit_test(test_an_explanation),
        cmocka_unit_test(test_a_newer_commit_is_seen),
        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_samples),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
