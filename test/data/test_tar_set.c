/* Data sets in tar files: labels beside images, folders inside, patterns of names, and files that are damaged. */
#include <unistd.h>

#include "base/alloc.h"
#include "data/dataset/dataset.h"
#include "data/miniature.h"
#include "io/tar_writer.h"
#include "kith/log.h"

static void put_tar(const char *path, tar_writer *t) {
    tar_end(t);
    put_bytes(path, t->bytes, t->n);
    tar_release(t);
}

static void add_image(tar_writer *t, const char *name) {
    static char bytes[65536];
    char from[4096];
    snprintf(from, sizeof from, "%s/test/corpus/image/ok_rgb.jpg", KITH_SOURCE_DIR);
    FILE *file = fopen(from, "rb");
    assert_non_null(file);
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    tar_add(t, name, '0', bytes, n);
}

static kith_dataset *open_set(const char *root) {
    kith_dataset *set = NULL;
    kith_error err = {0};
    assert_ok(kith_dataset_open(NULL, root, &set, &err), &err);
    assert_string_equal(kith_dataset_kind(set), "tar");
    return set;
}

static void assert_refused(const char *root, const char *text) {
    kith_dataset *set = NULL;
    kith_error err = {0};
    const kith_status status = kith_dataset_open("tar", root, &set, &err);
    char line[2048];
    snprintf(line, sizeof line, "%s (%s)", err.message, err.hint);
    if (status == KITH_OK || !strstr(line, text)) fail_msg("'%s'; wanted '%s'", line, text);
    assert_null(strchr(line, '\n'));
}

static const char *class_of(const kith_dataset *set, int64_t i) {
    return kith_dataset_class_name(set, kith_dataset_item(set, i).label);
}

/* Labels before and behind the image, several images of a sample, classes in order of their numbers. */
static void test_labels(void **state) {
    (void)state;
    tar_writer t = {0};
    tar_add_text(&t, "0001.cls", "10\n");
    add_image(&t, "0001.jpg");
    add_image(&t, "0001.second.jpg");
    add_image(&t, "0002.jpg");
    tar_add_text(&t, "0002.json", "{\"width\": 3, \"label\": 9}");
    add_image(&t, "sub/0003.jpg");
    tar_add_text(&t, "sub/0003.json", "{\"class_name\": \"rook\", \"label\": null}");
    add_image(&t, "0004.jpg"); /* without a label */
    tar_add_text(&t, "0005.cls", "2");
    add_image(&t, "0006.jpg"); /* a broken one */
    tar_add_text(&t, "0006.json", "{\"label\": ");
    tar_add_text(&t, "0007.txt", "a caption");
    tar_add_text(&t, "0007.gif", "GIF89a");
    add_image(&t, "._0001.jpg");
    put_tar(in_folder("labels.tar"), &t);
    kith_dataset *set = open_set(in_folder("labels.tar"));
    assert_int_equal(kith_dataset_count(set), 4);
    assert_int_equal(kith_dataset_n_classes(set), 3);
    assert_string_equal(kith_dataset_class_name(set, 0), "9");
    assert_string_equal(kith_dataset_class_name(set, 1), "10");
    assert_string_equal(kith_dataset_class_name(set, 2), "rook");
    assert_string_equal(class_of(set, 0), "10");
    assert_string_equal(class_of(set, 1), "10");
    assert_string_equal(class_of(set, 2), "9");
    assert_string_equal(class_of(set, 3), "rook");
    assert_int_equal(kith_dataset_class_count(set, 1), 2);
    assert_string_equal(kith_dataset_item(set, 3).path, in_folder("labels.tar/sub/0003.jpg"));
    assert_string_equal(kith_dataset_unread_kinds(set), "1 GIF, 2 images without a label");
    assert_non_null(
        strstr(kith_dataset_unread(set, 2), "0006.jpg: no usable label beside it (.cls or .json)"));
    kith_scan scan;
    kith_error err = {0};
    assert_ok(kith_dataset_scan(set, true, NULL, NULL, &scan, &err), &err);
    assert_int_equal(scan.n_read, 4);
    assert_int_equal(scan.n_bad, 0);
    kith_scan_release(&scan);
    kith_dataset_free(set);
}

/* tar cf photos.tar photos; and train/ and test/ inside. */
static void test_folders_inside(void **state) {
    (void)state;
    tar_writer t = {0};
    tar_add(&t, "photos/", '5', NULL, 0);
    add_image(&t, "photos/rook/1.jpg");
    add_image(&t, "photos/elm/deep/1.jpg");
    put_tar(in_folder("photos.tar"), &t);
    kith_dataset *set = open_set(in_folder("photos.tar"));
    assert_string_equal(class_of(set, 0), "rook");
    assert_string_equal(class_of(set, 1), "elm");
    assert_int_equal(kith_dataset_item(set, 1).split, KITH_SPLIT_TRAIN); /* the first half by name */
    assert_int_equal(kith_dataset_item(set, 0).split, KITH_SPLIT_TEST);
    kith_dataset_free(set);
    add_image(&t, "./top/test/elm/1.jpg");
    add_image(&t, "./top/train/rook/1.jpg");
    add_image(&t, "./top/val/rook/2.jpg");
    put_tar(in_folder("parts.tar"), &t);
    set = open_set(in_folder("parts.tar"));
    assert_string_equal(class_of(set, 2), "rook");
    assert_int_equal(kith_dataset_item(set, 0).split, KITH_SPLIT_TEST);
    assert_int_equal(kith_dataset_item(set, 1).split, KITH_SPLIT_TRAIN);
    assert_int_equal(kith_dataset_item(set, 2).split, KITH_SPLIT_VALIDATION);
    kith_dataset_free(set);
    add_image(&t, "1.jpg");
    add_image(&t, "2.jpg");
    put_tar(in_folder("flat.tar"), &t);
    assert_refused(in_folder("flat.tar"), "2 images and no labels");
    /* To index it no labels are needed. */
    const char *const paths[] = {in_folder("flat.tar"), in_folder("photos.tar")};
    kith_error err = {0};
    assert_ok(kith_dataset_open_files(paths, 2, &set, &err), &err);
    assert_int_equal(kith_dataset_count(set), 4);
    assert_int_equal(kith_dataset_item(set, 0).label, -1);
    assert_string_equal(class_of(set, 2), "rook");
    assert_int_equal(kith_dataset_class_count(set, 0), 1);
    kith_dataset_free(set);
}

static void put_shard(const char *path, int first, int n) {
    tar_writer t = {0};
    char name[64], label[16];
    for (int i = first; i < first + n; i++) {
        snprintf(name, sizeof name, "%06d.cls", i);
        snprintf(label, sizeof label, "%d", i % 4);
        tar_add_text(&t, name, label);
        snprintf(name, sizeof name, "%06d.jpg", i);
        add_image(&t, name);
    }
    put_tar(path, &t);
}

static void test_patterns(void **state) {
    (void)state;
    for (int i = 8; i < 12; i++) put_shard(in_folder("sh/train-%06d.tar", i), 10 * i, 4);
    for (int i = 0; i < 2; i++) put_shard(in_folder("sh/val-%d.tar", i), 1000 + 10 * i, 4);
    kith_dataset *set = open_set(in_folder("sh/train-{000008..000011}.tar"));
    assert_int_equal(kith_dataset_count(set), 16);
    assert_string_equal(kith_dataset_root(set), in_folder("sh"));
    assert_string_equal(ki_dataset_item_name(set, 15), "train-000011.tar/000113.jpg");
    kith_dataset_free(set);
    set = open_set(in_folder("sh/{train-000008,train-000009}.tar::%s", in_folder("sh/val-{0..1}.tar")));
    assert_int_equal(kith_dataset_count(set), 16);
    assert_int_equal(kith_dataset_item(set, 7).split, KITH_SPLIT_TRAIN);
    assert_int_equal(kith_dataset_item(set, 8).split, KITH_SPLIT_VALIDATION);
    kith_dataset_free(set);
    set = open_set(in_folder("sh"));
    assert_int_equal(kith_dataset_count(set), 24);
    assert_string_equal(kith_dataset_item(set, 0).path, in_folder("sh/train-000008.tar/000080.jpg"));
    kith_dataset_free(set);
    set = open_set(in_folder("sh/train-{000010..000013}.tar"));
    assert_int_equal(kith_dataset_count(set), 8);
    assert_int_equal(kith_dataset_n_unread(set), 2);
    assert_non_null(strstr(kith_dataset_unread(set, 1), "train-000013.tar: there is no such file"));
    kith_dataset_free(set);
    put_shard(in_folder("deep/train/0.tar"), 0, 4);
    put_shard(in_folder("deep/test/0.tar"), 0, 4);
    set = open_set(in_folder("deep"));
    assert_int_equal(kith_dataset_count(set), 8);
    assert_int_equal(kith_dataset_item(set, 0).split, KITH_SPLIT_TRAIN);
    assert_int_equal(kith_dataset_item(set, 4).split, KITH_SPLIT_TEST);
    kith_dataset_free(set);
    assert_refused(in_folder("sh/train-{9..3}.tar"), "is no pattern of tar files");
    assert_refused(in_folder("sh/train-{a..c}.tar"), "is no pattern of tar files");
    assert_refused(in_folder("sh/train-{0..9999999999}.tar"), "is no pattern of tar files");
    assert_refused(in_folder("sh/train-{0..999999}.tar"), "is no pattern of tar files");
    assert_refused(in_folder("sh/train-{0..99999}{0..9}.tar"), "names more than 100000 tar files");
    assert_refused(in_folder("sh/train-{0..3.tar"), "is no pattern of tar files");
    assert_refused(in_folder("sh/none-{0..3}.tar"), "no image in any of them");
    /* Class folders beside a tar file are a set of their own. */
    put_shard(in_folder("both/x.tar"), 0, 4);
    put_image(in_folder("both/rook/1.jpg"), "ok_rgb.jpg");
    put_image(in_folder("both/elm/1.jpg"), "ok_rgb.jpg");
    kith_error err = {0};
    assert_ok(kith_dataset_open(NULL, in_folder("both"), &set, &err), &err);
    assert_string_equal(kith_dataset_kind(set), "folder");
    assert_string_equal(kith_dataset_unread_kinds(set), "1 tar file beside folders");
    kith_dataset_free(set);
}

/* A cut file is named, what comes before it is read, and the others are whole. */
static void test_damaged(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) put_shard(in_folder("cut/%d.tar", i), 10 * i, 4);
    const char *cut = in_folder("cut/1.tar");
    struct stat info;
    assert_int_equal(stat(cut, &info), 0);
    assert_int_equal(truncate(cut, info.st_size / 2), 0);
    kith_dataset *set = open_set(in_folder("cut"));
    assert_int_equal(kith_dataset_count(set), 10);
    assert_string_equal(kith_dataset_unread_kinds(set), "1 damaged or missing tar file");
    assert_non_null(strstr(kith_dataset_unread(set, 0), "cut/1.tar: damaged at byte "));
    assert_non_null(strstr(kith_dataset_unread(set, 0), "2 images before that are read"));
    kith_dataset_free(set);
    tar_writer t = {0};
    tar_add_text(&t, "readme.txt", "no image");
    put_tar(in_folder("empty.tar"), &t);
    assert_refused(in_folder("empty.tar"), "no image in it (wanted members that end in one of .jpg");
    put_text(in_folder("text.tar"),
             "This is not a tar file, but a text of a few lines that somebody named so.\n");
    assert_refused(in_folder("text.tar"), "damaged at byte 0");
    put_bytes(in_folder("packed.tar.gz"), "\x1f\x8b\x08\0\0\0\0\0", 8);
    assert_refused(in_folder("packed.tar.gz"), "is packed (gzip); wanted a plain .tar");
    /* Names that lead elsewhere, and members that are no files. */
    tar_add_text(&t, "../out.jpg", "x");
    tar_add(&t, "link.jpg", '2', NULL, 0);
    tar_add_text(&t, "1.cls", "a");
    add_image(&t, "1.jpg");
    char huge[4201];
    memset(huge, 'h', sizeof huge);
    memcpy(huge + 4196, ".jpg", 5);
    tar_add_pax(&t, "path", huge);
    add_image(&t, "cut");
    tar_add_text(&t, "2.cls", "a\tb");
    add_image(&t, "2.jpg");
    put_tar(in_folder("odd.tar"), &t);
    set = open_set(in_folder("odd.tar"));
    assert_int_equal(kith_dataset_count(set), 1);
    assert_string_equal(
        kith_dataset_unread_kinds(set),
        "2 names that cannot be kept, 1 link or special file in a tar file, 1 image without a label");
    assert_non_null(strstr(kith_dataset_unread(set, 2), "odd.tar/hhh"));
    kith_dataset_free(set);
}

/* A manifest may list members. */
static void test_manifest(void **state) {
    (void)state;
    put_shard(in_folder("list/a.tar"), 0, 4);
    put_text(in_folder("list/some.csv"),
             "path,label\na.tar/000002.jpg,x\na.tar/000009.jpg,x\na.tar/000001.jpg,y\n");
    kith_dataset *set = NULL;
    kith_error err = {0};
    assert_ok(kith_dataset_open(NULL, in_folder("list/some.csv"), &set, &err), &err);
    assert_int_equal(kith_dataset_count(set), 2);
    assert_int_equal(kith_dataset_n_missing(set), 1);
    kith_scan scan;
    assert_ok(kith_dataset_scan(set, true, NULL, NULL, &scan, &err), &err);
    assert_int_equal(scan.n_read, 2);
    kith_scan_release(&scan);
    kith_dataset_free(set);
}

static void test_no_memory(void **state) {
    (void)state;
    put_shard(in_folder("memory/train-0.tar"), 0, 4);
    put_shard(in_folder("memory/test-0.tar"), 4, 4);
    kith_memory_stats before, after;
    kith_memory_stats_get(&before);
    int64_t n = 0;
    for (;; n++) {
        kith_dataset *set = NULL;
        kith_error err = {0};
        ki_alloc_fail_after(n);
        const kith_status status = kith_dataset_open("tar", in_folder("memory"), &set, &err);
        const bool failed = ki_alloc_failed();
        ki_alloc_fail_after(-1);
        kith_dataset_free(set);
        if (!failed) break;
        if (status != KITH_ENOMEM) fail_msg("allocation %d: %s", (int)n, kith_status_name(status));
    }
    assert_true(n > 10);
    kith_memory_stats_get(&after);
    assert_int_equal(after.live_bytes, before.live_bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory),      cmocka_unit_test(test_labels),
        cmocka_unit_test(test_folders_inside), cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_damaged),        cmocka_unit_test(test_manifest),
    };
    return cmocka_run_group_tests_name("data/tar_set", tests, NULL, testing_tear_down);
}
