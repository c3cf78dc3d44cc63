/* Photos without an index: the entry in the cache, its syncs, and the cache as a whole. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "collection/made_collection.h"

enum { N_CLASSES = 30, N_IMAGES = 10, N_ALL = N_CLASSES * N_IMAGES };

/* Before each test: no cache, and the same photos. */
static int begin(void **state) {
    (void)state;
    setenv("KITH_MODELS", made_path("models"), 1);
    setenv("XDG_CACHE_HOME", made_path("caches"), 1);
    made_shell("rm -rf * && mkdir models caches");
    made_model("models/general.safetensors", 1);
    made_photos("photos", N_CLASSES, N_IMAGES);
    return 0;
}

static kith_photos *open_photos(const char *folder) {
    kith_photos *photos = NULL;
    kith_error err;
    assert_ok(kith_photos_open(made_path(folder), NULL, &photos, &err), &err);
    return photos;
}

static kith_sync_report sync_photos(kith_photos *photos) {
    kith_sync_report report;
    kith_error err;
    assert_ok(kith_photos_sync(photos, NULL, &report, &err), &err);
    return report;
}

static int64_t count_items(const kith_photos *photos) {
    kith_index *index = NULL;
    kith_index_info info;
    kith_error err;
    assert_ok(kith_index_open(kith_photos_index(photos), KITH_INDEX_READ, &index, &err), &err);
    kith_index_info_get(index, &info);
    kith_index_free(index);
    return info.n_items;
}

/* Searches the photos for one of them; returns the number of hits. */
static int64_t search(kith_photos *photos, const char *photo) {
    kith_error err;
    kith_found found;
    kith_collection *collection = NULL;
    KITH_OPTIONS(kith_collection_open_options, how);
    KITH_OPTIONS(kith_search_request, request);
    const kith_query_part part = {.id = -1, .image = {.path = made_path(photo)}, .weight = 1};
    how.shared = kith_photos_model(photos);
    request.parts = &part;
    request.n_parts = 1;
    assert_ok(kith_collection_open(kith_photos_index(photos), &how, &collection, &err), &err);
    assert_ok(kith_collection_search(collection, &request, 1, NULL, &found, &err), &err);
    const int64_t n = found.n_hits;
    if (n > 0) assert_non_null(found.hits[0].picture);
    kith_found_release(&found);
    kith_collection_free(collection);
    return n;
}

static void test_made_once_then_only_synced(void **state) {
    (void)state;
    struct stat info;
    kith_photos *photos = open_photos("photos");
    assert_string_equal(strrchr(kith_photos_index(photos), '/'), "/index");
    assert_int_equal(count_items(photos), 0);
    kith_sync_report report = sync_photos(photos);
    assert_int_equal(report.n_added, N_ALL);
    kith_sync_report_release(&report);
    assert_int_equal(search(photos, "photos/glyph00003/00001.png"), 10);
    kith_photos_free(photos);
    /* Found again, also by another name of the folder. */
    made_shell("ln -s photos other");
    photos = open_photos("other");
    assert_int_equal(count_items(photos), N_ALL);
    report = sync_photos(photos);
    assert_int_equal(report.n_same, N_ALL);
    assert_int_equal(report.n_added, 0);
    kith_sync_report_release(&report);
    kith_photos_free(photos);
    /* For the user alone. */
    assert_int_equal(stat(made_path("caches/kith"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    assert_int_equal(stat(made_path("caches/kith/photos"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
}

/* What the progress of a sync has seen. */
typedef struct watching {
    kith_photos *photos;
    int64_t n_calls, first_ready, last_done, last_all; /* first_ready: items when the first were ready */
    int64_t n_hits;
    bool ends_there;        /* stop, … */
    bool dies_there;        /* … or be killed, when some are ready */
    kith_sync_reason other; /* of a second sync meanwhile */
} watching;

static int watch(void *user, const kith_photos_progress *p) {
    watching *w = user;
    kith_error err;
    w->n_calls++;
    w->last_done = p->n_done;
    w->last_all = p->n_photos;
    if (p->n_ready == 0 || w->first_ready > 0) return 0;
    w->first_ready = p->n_ready;
    if (w->dies_there) raise(SIGKILL);
    w->n_hits = search(w->photos, "photos/glyph00000/00000.png");
    kith_photos *second = open_photos("photos");
    kith_sync_report report;
    assert_int_equal(kith_photos_sync(second, NULL, &report, &err), KITH_EINVAL);
    w->other = report.reason;
    kith_sync_report_release(&report);
    kith_photos_free(second);
    return w->ends_there;
}

/* While one process writes, others search what is there, and are told who writes. */
static void test_searched_while_it_is_made(void **state) {
    (void)state;
    kith_error err;
    watching w = {.photos = open_photos("photos")};
    KITH_OPTIONS(kith_photos_sync_options, options);
    options.progress = watch;
    options.user = &w;
    assert_ok(kith_photos_sync(w.photos, &options, NULL, &err), &err);
    assert_int_equal(w.first_ready, 96);
    assert_int_equal(w.n_hits, 10);
    assert_int_equal(w.other, KITH_SYNC_BUSY);
    assert_int_equal(w.last_all, N_ALL);
    assert_int_equal(w.last_done, N_ALL);
    kith_photos_free(w.photos);
}

static void test_stopped_and_gone_on_with(void **state) {
    (void)state;
    kith_error err;
    watching w = {.photos = open_photos("photos"), .ends_there = true};
    KITH_OPTIONS(kith_photos_sync_options, options);
    options.progress = watch;
    options.user = &w;
    assert_int_equal(kith_photos_sync(w.photos, &options, NULL, &err), KITH_ECANCELED);
    const int64_t n = count_items(w.photos);
    assert_true(n >= 96 && n < N_ALL);
    kith_sync_report report = sync_photos(w.photos);
    assert_int_equal(report.n_same, n);
    assert_int_equal(report.n_added, N_ALL - n);
    kith_sync_report_release(&report);
    kith_photos_free(w.photos);
}

/* kill -9 in the middle: nothing that was committed is embedded a second time. The process is another program, because a child of a
 * process with threads has none of them. */
static void test_killed_and_gone_on_with(void **state) {
    (void)state;
    char output[4096];
    const int status = testing_run(output, sizeof output, "'%s' killed %s", testing_self(), testing_folder());
    assert_int_equal(status, 128 + SIGKILL);
    kith_photos *photos = open_photos("photos");
    const int64_t n = count_items(photos);
    assert_int_equal(n, 96);
    kith_sync_report report = sync_photos(photos);
    assert_int_equal(report.n_same, n);
    assert_int_equal(report.n_added, N_ALL - n);
    kith_sync_report_release(&report);
    assert_int_equal(count_items(photos), N_ALL);
    kith_photos_free(photos);
}

static void test_photos_come_and_go(void **state) {
    (void)state;
    kith_photos *photos = open_photos("photos");
    kith_sync_report report = sync_photos(photos);
    kith_sync_report_release(&report);
    made_shell(
        "rm photos/glyph00001/00001.png && mv photos/glyph00002/00002.png photos/glyph00003/moved.png && "
        "cp photos/glyph00004/00004.png photos/new.png && printf x >> photos/new.png");
    report = sync_photos(photos);
    assert_int_equal(report.n_removed, 1);
    assert_int_equal(report.n_moved, 1);
    assert_int_equal(report.n_added, 1);
    assert_int_equal(report.n_same, N_ALL - 2);
    kith_sync_report_release(&report);
    kith_photos_free(photos);
}

/* An empty folder is fine, unless it held photos before: then a disk may be missing. */
static void test_no_photos(void **state) {
    (void)state;
    kith_error err = {0};
    kith_sync_report report;
    made_shell("mkdir few none");
    kith_photos *photos = open_photos("few");
    report = sync_photos(photos);
    assert_int_equal(report.n_files, 0);
    kith_sync_report_release(&report);
    made_shell("cp photos/glyph00001/00001.png few");
    report = sync_photos(photos);
    assert_int_equal(report.n_added, 1);
    kith_sync_report_release(&report);
    made_shell("rm few/00001.png");
    assert_int_equal(kith_photos_sync(photos, NULL, &report, &err), KITH_EINVAL);
    assert_int_equal(report.reason, KITH_SYNC_MOST_REMOVED);
    assert_non_null(strstr(err.message, "few holds no photos any more"));
    kith_sync_report_release(&report);
    assert_int_equal(count_items(photos), 1);
    made_shell("rmdir few");
    assert_int_equal(kith_photos_sync(photos, NULL, &report, &err), KITH_EIO);
    assert_int_equal(report.reason, KITH_SYNC_SOURCE_MISSING);
    kith_sync_report_release(&report);
    assert_int_equal(count_items(photos), 1);
    kith_photos_free(photos);
}

static void expect_unopened(const char *folder, const kith_photos_options *options, kith_status status,
                            const char *words, const char *hint) {
    kith_error err = {0};
    kith_photos *photos = NULL;
    assert_int_equal(kith_photos_open(folder, options, &photos, &err), status);
    assert_null(photos);
    if (!strstr(err.message, words)) fail_msg("'%s' does not say '%s'", err.message, words);
    if (!strstr(err.hint, hint)) fail_msg("hint '%s' does not say '%s'", err.hint, hint);
}

static void test_what_cannot_be_opened(void **state) {
    (void)state;
    expect_unopened(made_path("nowhere"), NULL, KITH_EIO, "nowhere: No such file or directory", "");
    expect_unopened(made_path("models/general.safetensors"), NULL, KITH_EIO, "is not a folder", "");
    /* A cache that cannot be made; the user is told of another place for it. */
    KITH_OPTIONS(kith_photos_options, options);
    options.cache = made_path("models/general.safetensors");
    expect_unopened(made_path("photos"), &options, KITH_EIO, "cannot make the folder", "--cache DIR");
    setenv("XDG_CACHE_HOME", made_path("models/general.safetensors"), 1);
    expect_unopened(made_path("photos"), NULL, KITH_EIO, "cannot make the folder", "XDG_CACHE_HOME");
    setenv("XDG_CACHE_HOME", made_path("caches"), 1);
    setenv("KITH_MODELS", made_path("nowhere"), 1);
    expect_unopened(made_path("photos"), NULL, KITH_ENOTFOUND, "general is not installed", "--model");
}

/* The folder of the cache: as it is given, else XDG_CACHE_HOME if that is absolute, else the home folder. */
static void test_where_the_cache_is(void **state) {
    (void)state;
    char folder[1024], here[1024], wanted[1100];
    kith_error err;
    const char *home = getenv("HOME");
    char *before = home ? strdup(home) : NULL;
    assert_non_null(getcwd(here, sizeof here));
    assert_ok(kith_cache_folder("some/where", folder, sizeof folder, &err), &err);
    snprintf(wanted, sizeof wanted, "%s/some/where", here);
    assert_string_equal(folder, wanted);
    setenv("XDG_CACHE_HOME", "/var/caches", 1);
    assert_ok(kith_cache_folder(NULL, folder, sizeof folder, &err), &err);
    assert_string_equal(folder, "/var/caches/kith");
    setenv("HOME", "/users/somebody", 1);
    setenv("XDG_CACHE_HOME", "relative", 1);
    assert_ok(kith_cache_folder(NULL, folder, sizeof folder, &err), &err);
    assert_string_equal(folder, "/users/somebody/.cache/kith");
    unsetenv("XDG_CACHE_HOME");
    assert_ok(kith_cache_folder(NULL, folder, sizeof folder, &err), &err);
    assert_string_equal(folder, "/users/somebody/.cache/kith");
    assert_int_equal(kith_cache_folder(NULL, folder, 5, &err), KITH_EINVAL);
    if (before)
        setenv("HOME", before, 1);
    else
        unsetenv("HOME");
    free(before);
}

static void test_what_are_photos(void **state) {
    (void)state;
    made_shell("mkdir index && touch index/manifest.json");
    assert_true(kith_photos_are(made_path("photos")));
    assert_false(kith_photos_are(made_path("index")));
    assert_false(kith_photos_are(made_path("nowhere")));
    assert_false(kith_photos_are(made_path("models/general.safetensors")));
    assert_false(kith_photos_are("postgresql://host/database"));
    assert_false(kith_photos_are(NULL));
}

/* Vectors of two models never meet: another model, or another side of its input, is another entry. */
static void test_an_entry_for_each_model(void **state) {
    (void)state;
    char first[1024], second[1024];
    kith_error err;
    KITH_OPTIONS(kith_model_options, model);
    KITH_OPTIONS(kith_photos_options, options);
    kith_photos *photos = open_photos("photos");
    kith_sync_report report = sync_photos(photos);
    kith_sync_report_release(&report);
    snprintf(first, sizeof first, "%s", kith_photos_index(photos));
    kith_photos_free(photos);
    options.model = &model;
    model.side = 48;
    assert_ok(kith_photos_open(made_path("photos"), &options, &photos, &err), &err);
    snprintf(second, sizeof second, "%s", kith_photos_index(photos));
    assert_string_not_equal(first, second);
    assert_int_equal(count_items(photos), 0);
    kith_photos_free(photos);
    made_model("models/general.safetensors", 2); /* as a later release brings it */
    photos = open_photos("photos");
    assert_string_not_equal(kith_photos_index(photos), first);
    assert_string_not_equal(kith_photos_index(photos), second);
    assert_int_equal(count_items(photos), 0);
    kith_photos_free(photos);
    made_model("models/general.safetensors", 1);
    photos = open_photos("photos");
    assert_string_equal(kith_photos_index(photos), first);
    assert_int_equal(count_items(photos), N_ALL);
    kith_photos_free(photos);
}

static void test_a_record_of_others(void **state) {
    (void)state;
    char entry[1024], path[1100];
    kith_error err = {0};
    kith_photos *photos = open_photos("photos");
    snprintf(entry, sizeof entry, "%s", kith_photos_index(photos));
    *strrchr(entry, '/') = '\0';
    kith_photos_free(photos);
    snprintf(path, sizeof path, "%s/entry.json", entry);
    static const char other[] =
        "{\"format\": 1, \"photos\": \"/other\", \"model\": \"\", \"model_sha256\": \"\", "
        "\"preprocess\": \"\"}";
    static const char *const bad[] = {"{}", "no JSON", other};
    for (size_t i = 0; i < N_ROWS(bad); i++) {
        testing_write(path, bad[i]);
        assert_int_equal(kith_photos_open(made_path("photos"), NULL, &photos, &err), KITH_EFORMAT);
        assert_non_null(strstr(err.hint, "kith cache --remove photos-"));
    }
}

/* An index that was damaged: a line says that it can be made anew. */
static void test_a_damaged_index(void **state) {
    (void)state;
    char path[1100];
    kith_error err = {0};
    kith_photos *photos = open_photos("photos");
    snprintf(path, sizeof path, "%s/manifest.json", kith_photos_index(photos));
    kith_photos_free(photos);
    testing_write(path, "{\"format\": 1");
    assert_int_equal(kith_photos_open(made_path("photos"), NULL, &photos, &err), KITH_EFORMAT);
    assert_non_null(strstr(err.hint, "it is made anew: kith cache --remove photos-"));
    kith_cache *cache = NULL;
    kith_cache_removed removed;
    kith_cache_entry e;
    assert_ok(kith_cache_open(NULL, &cache, &err), &err);
    assert_true(kith_cache_at(cache, 0, &e));
    assert_int_equal(e.n_photos, -1);
    assert_ok(kith_cache_remove(cache, made_path("photos"), &removed, &err), &err);
    kith_cache_free(cache);
    photos = open_photos("photos");
    assert_int_equal(count_items(photos), 0);
    kith_photos_free(photos);
}

/* A process that was killed right after it had made the index: the next one notes the model. */
static void test_an_index_without_notes(void **state) {
    (void)state;
    char path[1024];
    kith_error err;
    kith_index *index = NULL;
    kith_index_info info;
    KITH_OPTIONS(kith_index_options, o);
    kith_photos *photos = open_photos("photos");
    snprintf(path, sizeof path, "%s", kith_photos_index(photos));
    kith_photos_free(photos);
    assert_ok(kith_index_open(path, KITH_INDEX_READ, &index, &err), &err);
    kith_index_info_get(index, &info);
    char model[80], words[512];
    snprintf(model, sizeof model, "%s", info.model);
    snprintf(words, sizeof words, "%s", info.preprocess);
    o.dim = info.dim;
    o.model = model;
    o.preprocess = words;
    kith_index_free(index);
    made_shell("rm -r caches/kith/photos/*/index");
    assert_ok(kith_index_create(path, &o, &index, &err), &err);
    kith_index_free(index);
    photos = open_photos("photos");
    kith_sync_report report = sync_photos(photos);
    kith_sync_report_release(&report);
    kith_photos_free(photos);
    /* It is opened by its own notes. */
    KITH_OPTIONS(kith_collection_open_options, how);
    kith_collection *collection = NULL;
    kith_model *own = NULL;
    assert_ok(kith_collection_open(path, &how, &collection, &err), &err);
    assert_ok(kith_collection_model(collection, &own, &err), &err);
    kith_collection_free(collection);
}

/* ---- the cache ---- */

static kith_cache *open_cache(void) {
    kith_cache *cache = NULL;
    kith_error err;
    assert_ok(kith_cache_open(NULL, &cache, &err), &err);
    return cache;
}

/* A cache of three folders, the first used longest ago; the entries' names in the order that a list has. */
static void fill(void) {
    static const char *const folders[] = {"one", "two", "three"};
    for (int i = 0; i < 3; i++) {
        char used[1200];
        char command[256];
        snprintf(command, sizeof command, "mkdir %s && cp -r photos/glyph0000%d %s", folders[i], i,
                 folders[i]);
        made_shell(command);
        kith_photos *photos = open_photos(folders[i]);
        kith_sync_report report = sync_photos(photos);
        kith_sync_report_release(&report);
        snprintf(used, sizeof used, "%s/../used", kith_photos_index(photos));
        const struct timespec when[2] = {{1000 + i, 0}, {1000 + i, 0}};
        assert_int_equal(utimensat(AT_FDCWD, used, when, 0), 0);
        kith_photos_free(photos);
    }
}

static void test_the_list(void **state) {
    (void)state;
    char wanted[1024];
    kith_cache_entry e;
    kith_cache *cache = open_cache();
    assert_int_equal(kith_cache_count(cache), 0); /* there is none yet */
    assert_false(kith_cache_at(cache, 0, &e));
    kith_cache_free(cache);
    fill();
    made_shell("rm -r one");
    kith_photos *photos = open_photos("three");
    cache = open_cache();
    assert_int_equal(kith_cache_count(cache), 3);
    assert_true(kith_cache_at(cache, 0, &e));
    assert_string_equal(strrchr(e.folder, '/'), "/three");
    assert_true(e.is_used && e.is_there && e.bytes > 0);
    assert_int_equal(e.n_photos, N_IMAGES);
    assert_true(strncmp(e.model, "general (convnet4, 28 px, ", 26) == 0);
    assert_true(e.used > 1000000000);
    assert_true(kith_cache_at(cache, 2, &e));
    snprintf(wanted, sizeof wanted, "%s/one", testing_folder());
    assert_string_equal(e.folder, wanted);
    assert_false(e.is_there || e.is_used);
    assert_int_equal(e.used, 1000);
    kith_cache_free(cache);
    kith_photos_free(photos);
}

static kith_cache_removed remove_from(kith_cache *cache, const char *which) {
    kith_cache_removed removed;
    kith_error err;
    assert_ok(kith_cache_remove(cache, which, &removed, &err), &err);
    return removed;
}

static void test_removing(void **state) {
    (void)state;
    kith_error err = {0};
    kith_cache_entry e;
    kith_cache_removed removed;
    fill();
    made_shell(
        "rm -r one && cd caches/kith/photos && mkdir .left-0123456789ab-0123456789ab.99 && touch "
        "$(echo .left-*.99)/file");
    kith_photos *photos = open_photos("three");
    kith_cache *cache = open_cache();
    assert_int_equal(kith_cache_remove(cache, "nothing", &removed, &err), KITH_ENOTFOUND);
    assert_non_null(strstr(err.message, "holds nothing of nothing"));
    removed = remove_from(cache, made_path("one")); /* whose folder is gone */
    assert_int_equal(removed.n, 1);
    assert_true(removed.bytes > 0);
    assert_true(kith_cache_at(cache, 1, &e));
    removed = remove_from(cache, e.name);
    assert_int_equal(removed.n, 1);
    removed = remove_from(cache, NULL); /* what is used stays */
    assert_int_equal(removed.n, 0);
    assert_int_equal(removed.n_used, 1);
    kith_cache_free(cache);
    assert_int_equal(count_items(photos), N_IMAGES);
    kith_photos_free(photos);
    cache = open_cache();
    assert_int_equal(kith_cache_count(cache), 1);
    assert_int_equal(remove_from(cache, NULL).n, 1);
    kith_cache_free(cache);
    made_shell("test -z \"$(ls -A caches/kith/photos)\"");
}

static void test_the_limit(void **state) {
    (void)state;
    kith_error err;
    kith_cache_entry e;
    kith_cache_removed removed;
    fill();
    kith_cache *cache = open_cache();
    assert_true(kith_cache_at(cache, 0, &e));
    /* Room for two: the one that was used longest ago goes. */
    assert_ok(kith_cache_limit(cache, 2 * e.bytes + 1000, &removed, &err), &err);
    assert_int_equal(removed.n, 1);
    kith_cache_free(cache);
    cache = open_cache();
    assert_int_equal(kith_cache_count(cache), 2);
    for (int64_t i = 0; i < 2; i++) {
        assert_true(kith_cache_at(cache, i, &e));
        assert_string_not_equal(strrchr(e.folder, '/'), "/one");
    }
    assert_ok(kith_cache_limit(cache, INT64_MAX, &removed, &err), &err);
    assert_int_equal(removed.n, 0);
    /* What is used does not go, even if the rest is too large for it. */
    kith_photos *photos = open_photos("two");
    assert_ok(kith_cache_limit(cache, 0, &removed, &err), &err);
    assert_int_equal(removed.n, 1);
    assert_int_equal(removed.n_used, 1);
    assert_int_equal(count_items(photos), N_IMAGES);
    kith_photos_free(photos);
    kith_cache_free(cache);
}

/* A cache may share its folder with photos and models of the user's own: those are never entries. */
static void test_what_others_made(void **state) {
    (void)state;
    kith_error err = {0};
    kith_cache_removed removed;
    static const char *const names[] = {"oak", ".git", ".oak.99", "a.safetensors",
                                        "oak-0123456789ab-0123456789ab"};
    fill();
    made_shell(
        "mkdir caches/kith/models && cd caches/kith && echo 1 >models/a.safetensors && touch models/.hidden "
        "&& "
        "cd photos && mkdir oak .git .oak.99 linked && echo 1 >oak/1.jpg && echo 1 >.git/HEAD && "
        "echo 1 >.oak.99/1.jpg && echo 1 >linked/1.jpg && mkdir oak-0123456789ab-0123456789ab && "
        "echo 1 >oak-0123456789ab-0123456789ab/1.jpg && ln -s linked link-0123456789ab-0123456789ab && "
        "ln -s linked .link-0123456789ab-0123456789ab.99 && echo 1 >file-0123456789ab-0123456789ab && "
        "ln -s ../models/a.safetensors ../models/$(printf %064d 0).safetensors && "
        "cd .. && find . -path '*oak*' -o -name '*link*' -o -path '*/.*/*' -o -path '*models*' | sort "
        ">../before");
    kith_cache *cache = open_cache();
    assert_int_equal(kith_cache_count(cache), 3);
    for (size_t i = 0; i < N_ROWS(names); i++)
        assert_int_equal(kith_cache_remove(cache, names[i], &removed, &err), KITH_ENOTFOUND);
    assert_ok(kith_cache_limit(cache, INT64_MAX, &removed, &err), &err);
    assert_int_equal(removed.n, 0);
    assert_ok(kith_cache_limit(cache, 0, &removed, &err), &err);
    assert_int_equal(removed.n, 3);
    kith_cache_free(cache);
    cache = open_cache();
    assert_int_equal(kith_cache_count(cache), 0);
    assert_int_equal(remove_from(cache, NULL).n, 0);
    kith_cache_free(cache);
    made_shell(
        "cd caches/kith && find . -path '*oak*' -o -name '*link*' -o -path '*/.*/*' -o -path '*models*' | "
        "sort "
        ">../after && cmp ../before ../after && test -f photos/file-0123456789ab-0123456789ab");
}

/* An entry that was damaged can be removed, as long as nothing lies in it that is not kith's. */
static void test_damaged_entries(void **state) {
    (void)state;
    kith_cache_entry e;
    fill();
    made_shell(
        "cd caches/kith/photos && echo '{' >$(echo one-*)/entry.json && rm two-*/entry.json && rm -r "
        "three-*/* && "
        "touch $(echo two-*)/entry.json.tmp-12-0");
    kith_cache *cache = open_cache();
    assert_int_equal(kith_cache_count(cache), 3);
    for (int64_t i = 0; i < 3; i++) {
        assert_true(kith_cache_at(cache, i, &e));
        assert_null(e.folder);
    }
    kith_cache_free(cache);
    made_shell("touch $(echo caches/kith/photos/one-*)/1.jpg");
    cache = open_cache();
    assert_int_equal(remove_from(cache, NULL).n, 2);
    kith_cache_free(cache);
    made_shell("test -f caches/kith/photos/one-*/1.jpg");
}

/* The record of another entry: what it says is not believed. A name that is not UTF-8 is in its record as well as can be. */
static void test_records_and_names(void **state) {
    (void)state;
    kith_cache_entry e;
    fill();
    made_shell(
        "cd caches/kith/photos && cp one-*/entry.json two-*/entry.json && rm -r ../../../three "
        "three-* && mv ../../../two \"../../../$(printf 'b\\377d')\"");
    kith_photos *photos = open_photos("b\377d");
    kith_photos_free(photos);
    kith_cache *cache = open_cache();
    assert_int_equal(kith_cache_count(cache), 3);
    assert_true(kith_cache_at(cache, 0, &e));
    assert_non_null(e.folder);
    assert_non_null(strstr(e.folder,
                           "b\xef\xbf\xbd"
                           "d"));
    assert_int_equal(remove_from(cache, made_path("one")).n, 1);
    kith_cache_free(cache);
    cache = open_cache();
    assert_int_equal(kith_cache_count(cache), 2);
    assert_int_equal(remove_from(cache, NULL).n, 2);
    kith_cache_free(cache);
}

/* Backup programs leave out a folder that kith made, and no other. */
static void test_the_tag(void **state) {
    (void)state;
    kith_error err;
    kith_photos *photos = NULL;
    KITH_OPTIONS(kith_photos_options, options);
    kith_photos_free(open_photos("photos"));
    made_shell(
        "grep -q '^Signature: 8a477f597d28d172789f06886806bc55' caches/kith/CACHEDIR.TAG && mkdir own");
    options.cache = made_path("own");
    assert_ok(kith_photos_open(made_path("photos"), &options, &photos, &err), &err);
    kith_photos_free(photos);
    made_shell("test -d own/photos && test ! -e own/CACHEDIR.TAG");
}

/* With a cache named beside them, the photos themselves would be where the entries lie. */
static void test_photos_where_entries_lie(void **state) {
    (void)state;
    KITH_OPTIONS(kith_photos_options, options);
    options.cache = testing_folder();
    expect_unopened(made_path("photos"), &options, KITH_EINVAL, "would lie among the photos", "--cache DIR");
    made_shell("test -z \"$(find photos -name 'photos-*')\" && test ! -e photos/CACHEDIR.TAG");
}

/* The part of test_killed_and_gone_on_with that is killed. */
static int be_killed(void) {
    kith_error err;
    watching w = {.dies_there = true};
    char path[1024];
    KITH_OPTIONS(kith_photos_sync_options, options);
    options.progress = watch;
    options.user = &w;
    snprintf(path, sizeof path, "%s/photos", testing_argument(2));
    if (kith_photos_open(path, NULL, &w.photos, &err) != KITH_OK) return 3;
    return kith_photos_sync(w.photos, &options, NULL, &err) == KITH_OK ? 4 : 5;
}

int main(void) {
    if (testing_argument(1) && strcmp(testing_argument(1), "killed") == 0) return be_killed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_made_once_then_only_synced, begin),
        cmocka_unit_test_setup(test_searched_while_it_is_made, begin),
        cmocka_unit_test_setup(test_stopped_and_gone_on_with, begin),
        cmocka_unit_test_setup(test_killed_and_gone_on_with, begin),
        cmocka_unit_test_setup(test_photos_come_and_go, begin),
        cmocka_unit_test_setup(test_no_photos, begin),
        cmocka_unit_test_setup(test_what_cannot_be_opened, begin),
        cmocka_unit_test_setup(test_where_the_cache_is, begin),
        cmocka_unit_test_setup(test_what_are_photos, begin),
        cmocka_unit_test_setup(test_an_entry_for_each_model, begin),
        cmocka_unit_test_setup(test_a_record_of_others, begin),
        cmocka_unit_test_setup(test_a_damaged_index, begin),
        cmocka_unit_test_setup(test_an_index_without_notes, begin),
        cmocka_unit_test_setup(test_the_list, begin),
        cmocka_unit_test_setup(test_removing, begin),
        cmocka_unit_test_setup(test_the_limit, begin),
        cmocka_unit_test_setup(test_what_others_made, begin),
        cmocka_unit_test_setup(test_damaged_entries, begin),
        cmocka_unit_test_setup(test_records_and_names, begin),
        cmocka_unit_test_setup(test_the_tag, begin),
        cmocka_unit_test_setup(test_photos_where_entries_lie, begin),
    };
    return cmocka_run_group_tests_name("photos", tests, NULL, testing_tear_down);
}
