/* Every layout as a miniature copy: its classes, splits and boxes; and what is wrong with broken ones. */
#include "data/dataset/dataset.h"

#include <math.h>
#include <unistd.h>

#include <zlib.h>

#include "base/alloc.h"
#include "data/mat_file.h"
#include "data/miniature.h"
#include "kith/log.h"

static kith_dataset *open_set(const char *kind, const char *root) {
    kith_dataset *set = NULL;
    kith_error err = {0};
    assert_ok(kith_dataset_open(kind, root, &set, &err), &err);
    return set;
}

static void assert_refused(const char *kind, const char *root, kith_status status, const char *text) {
    kith_dataset *set = NULL;
    kith_error err = {0};
    const kith_status got = kith_dataset_open(kind, root, &set, &err);
    if (got != status || !strstr(err.message, text))
        fail_msg("%s: '%s'; wanted %s '%s'", kith_status_name(got), err.message, kith_status_name(status),
                 text);
    assert_null(set);
}

static void assert_split(const kith_dataset *set, kith_split split, int64_t n_images, int32_t n_classes) {
    kith_split_summary s;
    kith_error err = {0};
    assert_ok(kith_dataset_summary(set, split, &s, &err), &err);
    if (s.n_images != n_images || s.n_classes != n_classes)
        fail_msg("%s: %d images of %d classes; wanted %d of %d", kith_split_name(split), (int)s.n_images,
                 (int)s.n_classes, (int)n_images, n_classes);
}

/* CRLF ends, a byte order mark, a name with a space, a missing file, a class without images. */
static void test_cub(void **state) {
    (void)state;
    char root[4096];
    snprintf(root, sizeof root, "%s", in_folder("cub"));
    put_text(in_folder("cub/images.txt"),
             "\xef\xbb\xbf"
             "1 001.A/one.jpg\r\n2 001.A/two words.jpg\r\n4 101.Ünïcode/three.jpg\r\n3 "
             "100.B/gone.jpg\r\n\r\n5 101.Ünïcode/x.jpg");
    put_text(in_folder("cub/image_class_labels.txt"), "1 1\r\n2 1\r\n3 100\r\n4 101\r\n5 101\r\n");
    put_text(in_folder("cub/bounding_boxes.txt"), "1 60.0 27.5 325.0 304.0\n99 0 0 1 1\n");
    put_text(in_folder("cub/classes.txt"), "1 001.A\n100 100.B\n101 101.Ünïcode\n150 150.Empty\n");
    put_image(in_folder("cub/images/001.A/one.jpg"), "ok_rgb.jpg");
    put_image(in_folder("cub/images/001.A/two words.jpg"), "ok_rgb.jpg");
    put_image(in_folder("cub/images/101.Ünïcode/three.jpg"), "ok_rgb.jpg");
    put_image(in_folder("cub/images/101.Ünïcode/x.jpg"), "ok_rgb.jpg");
    kith_dataset *set = open_set(NULL, root);
    assert_string_equal(kith_dataset_kind(set), "cub");
    assert_int_equal(kith_dataset_count(set), 4);
    assert_int_equal(kith_dataset_n_classes(set), 4);
    assert_int_equal(kith_dataset_n_missing(set), 1);
    assert_non_null(strstr(kith_dataset_missing(set, 0), "100.B/gone.jpg"));
    assert_null(kith_dataset_missing(set, 1));
    assert_split(set, KITH_SPLIT_TRAIN, 2, 1);
    assert_split(set, KITH_SPLIT_TEST, 2, 1);
    assert_string_equal(kith_dataset_class_name(set, kith_dataset_item(set, 2).label), "101.Ünïcode");
    assert_int_equal(kith_dataset_class_count(set, 3), 0);
    const kith_item one = kith_dataset_item(set, 0);
    assert_true(one.has_box && one.box[1] == 27.5 && one.box[2] == 325);
    assert_false(kith_dataset_item(set, 1).has_box);
    kith_dataset_free(set);

    put_text(in_folder("cub/image_class_labels.txt"), "1 1\n2 1\n3 100\n4 x\n5 101\n");
    assert_refused("cub", root, KITH_EFORMAT,
                   "image_class_labels.txt line 4: found '4 x'; wanted 'NUMBER CLASS'");
    put_text(in_folder("cub/image_class_labels.txt"), "1 1\n2 1\n3 100\n4 101\n");
    assert_refused("cub", root, KITH_EFORMAT, "no line for image 5");
    put_text(in_folder("cub/image_class_labels.txt"), "1 1\n2 1\n3 100\n4 101\n5 101\n6 101\n");
    assert_refused("cub", root, KITH_EFORMAT, "line 6");
    put_text(in_folder("cub/images.txt"), "1 a.jpg\n1 b.jpg\n");
    assert_refused("cub", root, KITH_EFORMAT, "images.txt has number 1 twice");
}

static void test_sop(void **state) {
    (void)state;
    put_text(in_folder("sop/Ebay_train.txt"),
             "image_id class_id super_class_id path\n1 1 1 bicycle_final/a_0.JPG\n2 1 1 "
             "bicycle_final/a_1.JPG\n3 2 1 bicycle_final/b_0.JPG\n");
    put_text(in_folder("sop/Ebay_test.txt"),
             "image_id class_id super_class_id path\r\n59552 11319 2 cabinet_final/c_0.JPG\r\n");
    static const char *const names[] = {"bicycle_final/a_0", "bicycle_final/a_1", "bicycle_final/b_0",
                                        "cabinet_final/c_0"};
    for (int i = 0; i < 4; i++) put_image(in_folder("sop/%s.JPG", names[i]), "ok_rgb.jpg");
    kith_dataset *set = open_set(NULL, in_folder("sop"));
    assert_string_equal(kith_dataset_kind(set), "sop");
    assert_split(set, KITH_SPLIT_TRAIN, 3, 2);
    assert_split(set, KITH_SPLIT_TEST, 1, 1);
    kith_split_summary s;
    kith_error err = {0};
    assert_ok(kith_dataset_summary(set, KITH_SPLIT_TRAIN, &s, &err), &err);
    assert_int_equal(s.n_single, 1);
    assert_int_equal(s.per_class_max, 2);
    kith_dataset_free(set);
    put_text(in_folder("sop/Ebay_test.txt"), "image_id class_id super_class_id path\n1 2\n");
    assert_refused("sop", in_folder("sop"), KITH_EFORMAT,
                   "Ebay_test.txt line 2: found '1 2'; wanted 'IMAGE CLASS");
}

static void test_inshop(void **state) {
    (void)state;
    put_text(in_folder("inshop/Eval/list_eval_partition.txt"),
             "4\nimage_name item_id evaluation_status\n"
             "img/WOMEN/Dresses/id_00000002/02_1_front.jpg                       id_00000002 train\n"
             "img/WOMEN/Dresses/id_00000007/01_1_front.jpg id_00000007 query\n"
             "img/WOMEN/Dresses/id_00000007/01_2_side.jpg id_00000007 gallery\n"
             "img/WOMEN/Dresses/id_00000007/01_3_back.jpg id_00000007 gallery\n");
    static const char *const names[] = {"id_00000002/02_1_front", "id_00000007/01_1_front",
                                        "id_00000007/01_2_side", "id_00000007/01_3_back"};
    for (int i = 0; i < 4; i++)
        put_image(in_folder("inshop/Img/img/WOMEN/Dresses/%s.jpg", names[i]), "ok_rgb.jpg");
    kith_dataset *set = open_set(NULL, in_folder("inshop"));
    assert_string_equal(kith_dataset_kind(set), "inshop");
    assert_split(set, KITH_SPLIT_TRAIN, 1, 1);
    assert_split(set, KITH_SPLIT_TEST, 3, 1);
    kith_split_summary s;
    kith_error err = {0};
    assert_ok(kith_dataset_summary(set, KITH_SPLIT_TEST, &s, &err), &err);
    assert_int_equal(s.n_query, 1);
    assert_int_equal(s.n_gallery, 2);
    kith_dataset_free(set);
    put_text(in_folder("inshop/Eval/list_eval_partition.txt"),
             "9\nimage_name item_id evaluation_status\nimg/a.jpg id_1 train\n");
    assert_refused("inshop", in_folder("inshop"), KITH_EFORMAT, "promises 9 images and lists 1");
    put_text(in_folder("inshop/Eval/list_eval_partition.txt"),
             "1\nimage_name item_id evaluation_status\nimg/a.jpg id_1 tarin\n");
    assert_refused("inshop", in_folder("inshop"), KITH_EFORMAT, "line 3");
    /* Without the number of images the head stands in the first line; further down it is an image like any other. */
    put_text(in_folder("inshop/Eval/list_eval_partition.txt"),
             "image_name item_id evaluation_status\n"
             "img/WOMEN/Dresses/id_00000002/02_1_front.jpg id_00000002 train\n"
             "img/WOMEN/Dresses/id_00000007/01_1_front.jpg id_00000007 query\n"
             "img/WOMEN/Dresses/id_00000007/01_2_side.jpg id_00000007 gallery\n");
    set = open_set("inshop", in_folder("inshop"));
    assert_split(set, KITH_SPLIT_TRAIN, 1, 1);
    assert_split(set, KITH_SPLIT_TEST, 2, 1);
    kith_dataset_free(set);
    put_text(in_folder("inshop/Eval/list_eval_partition.txt"),
             "1\nimage_name item_id evaluation_status\nimage_name item_id evaluation_status\n");
    assert_refused("inshop", in_folder("inshop"), KITH_EFORMAT, "line 3");
}

static void test_omniglot(void **state) {
    (void)state;
    static const char *const names[] = {
        "images_background/Greek/character01/0001_01", "images_background/Greek/character01/0001_02",
        "images_background/Greek/character02/0002_01", "images_background/Futurama/character01/0003_01",
        "images_evaluation/Tengwar/character01/0004_01"};
    for (int i = 0; i < 5; i++) put_image(in_folder("omniglot/%s.png", names[i]), "ok_grey_1.png");
    put_text(in_folder("omniglot/images_background/Greek/character02/.DS_Store"), "x");
    kith_dataset *set = open_set(NULL, in_folder("omniglot"));
    assert_string_equal(kith_dataset_kind(set), "omniglot");
    assert_split(set, KITH_SPLIT_TRAIN, 4, 3);
    assert_split(set, KITH_SPLIT_TEST, 1, 1);
    assert_string_equal(kith_dataset_class_name(set, 0), "Futurama/character01");
    kith_dataset_free(set);
}

static void test_folder(void **state) {
    (void)state;
    put_image(in_folder("photos/émile/1.JPG"), "ok_rgb.jpg");
    put_image(in_folder("photos/émile/deeper/2.webp"), "ok_lossy.webp");
    put_image(in_folder("photos/anna/1.jpeg"), "ok_rgb.jpg");
    put_text(in_folder("photos/anna/notes.txt"), "x");
    put_image(in_folder("photos/bert/1.png"), "ok_rgb.png");
    make_folders(in_folder("photos/zoe/"));
    put_text(in_folder("photos/README"), "x");
    kith_dataset *set = open_set(NULL, in_folder("photos"));
    assert_string_equal(kith_dataset_kind(set), "folder");
    assert_int_equal(kith_dataset_n_classes(set), 4);
    assert_string_equal(kith_dataset_class_name(set, 0), "anna");
    assert_string_equal(kith_dataset_class_name(set, 3), "émile");
    assert_split(set, KITH_SPLIT_TRAIN, 2, 2); /* anna, bert */
    assert_split(set, KITH_SPLIT_TEST, 2, 1);  /* zoe is empty, émile has two */
    kith_dataset_free(set);

    put_image(in_folder("parts/train/a/1.jpg"), "ok_rgb.jpg");
    put_image(in_folder("parts/train/b/1.jpg"), "ok_rgb.jpg");
    put_image(in_folder("parts/val/c/1.jpg"), "ok_rgb.jpg");
    put_image(in_folder("parts/test/d/1.jpg"), "ok_rgb.jpg");
    set = open_set(NULL, in_folder("parts"));
    assert_split(set, KITH_SPLIT_TRAIN, 2, 2);
    assert_split(set, KITH_SPLIT_VALIDATION, 1, 1);
    assert_split(set, KITH_SPLIT_TEST, 1, 1);
    kith_dataset_free(set);

    make_folders(in_folder("hollow/a/"));
    assert_refused(NULL, in_folder("hollow"), KITH_EIO, "lists no images");
    make_folders(in_folder("nothing/"));
    assert_refused(NULL, in_folder("nothing"), KITH_EIO, "no data set found");
    assert_refused(NULL, in_folder("absent"), KITH_EIO, "there is no such folder or file");
    assert_refused("cup", in_folder("photos"), KITH_ENOTFOUND, "unknown data set 'cup'");
}

static void test_csv(void **state) {
    (void)state;
    put_image(in_folder("list/img/a, b.jpg"), "ok_rgb.jpg");
    put_image(in_folder("list/img/c.jpg"), "ok_rgb.jpg");
    put_image(in_folder("list/ü.png"), "ok_rgb.png");
    put_text(in_folder("list/all.csv"),
             "label,path,split,role,x,y,w,h\r\n"
             "\"dog, \"\"Rex\"\"\",\"img/a, b.jpg\",train,,,,,\r\n"
             "cat,img/c.jpg,test,query,1,2,3.5,4\r\n"
             "cat,ü.png,test,gallery,,,,\r\n"
             "cat,missing.jpg,validation,,,,,\r\n");
    kith_dataset *set = open_set(NULL, in_folder("list/all.csv"));
    assert_string_equal(kith_dataset_kind(set), "csv");
    assert_int_equal(kith_dataset_n_missing(set), 1);
    assert_split(set, KITH_SPLIT_TRAIN, 1, 1);
    assert_split(set, KITH_SPLIT_TEST, 2, 1);
    assert_string_equal(kith_dataset_class_name(set, 0), "dog, \"Rex\"");
    const kith_item cat = kith_dataset_item(set, 1);
    assert_true(cat.has_box && cat.box[2] == 3.5);
    assert_int_equal(cat.role, KITH_ROLE_QUERY);
    assert_false(kith_dataset_item(set, 2).has_box);
    kith_dataset_free(set);

    put_text(in_folder("list/halves.csv"), "path,label\nimg/c.jpg,b\nü.png,a\n");
    set = open_set(NULL, in_folder("list/halves.csv"));
    assert_split(set, KITH_SPLIT_TRAIN, 1, 1);
    assert_split(set, KITH_SPLIT_TEST, 1, 1);
    kith_dataset_free(set);

    static const struct {
        const char *text, *wanted;
    } bad[] = {
        {"", "the manifest is empty"},
        {"path,class\na.jpg,1\n",
         "manifest line 1: found 'path,class'; wanted a header with the columns path and label"},
        {"path,label,split\na.jpg,1,trian\n",
         "manifest line 2: found 'trian' as split; wanted train, validation or test"},
        {"path,label,role\na.jpg,1,qery\n", "found 'qery' as role; wanted query, gallery or both"},
        {"path,label\na.jpg,\n", "manifest line 2"},
        {"path,label\n\"a.jpg,1\n", "a closing quote"},
        {"path,label\n\"a.jpg\"x,1\n", "a comma or the line's end"},
        {"path,label,x\na.jpg,1,2\n", "all of x, y, w, h or none"},
        {"path,label,x,y,w,h\nimg/c.jpg,1,2,3,4,no\n", "four numbers as x, y, w, h"},
        {"path,label,x,y,w,h\nimg/c.jpg,1,2,3,4,0\n", "w and h above 0"},
        {"path,label,x,y,w,h\nimg/a name so long that the box is behind what is shown of a line/which is "
         "cut/after 80.jpg,1,5,,0,0\n",
         "manifest line 2: found x 5, no y, w 0, h 0; wanted four numbers"},
        {"path,label,label\nimg/c.jpg,1,2\n",
         "manifest line 1: found the column label twice; wanted it once"},
        {"w,path,x,y,h,label,w\n", "found the column w twice"},
        {"path,label\nimg/\x01.jpg,1\n", "control character"},
        {"path,label\nimg/c.jpg,\x1b[31mred\n",
         "manifest line 2: found '?[31mred' as label; wanted a name without control characters"},
        {"path,label\nimg/c.jpg,\"a\nb\"\n", "found 'a?b' as label; wanted a name without"},
        {"path,label,group\nimg/c.jpg,1,a\x7f\n", "found 'a?' as group; wanted a name without"},
        {"path,label,superclass\nimg/c.jpg,1,\x01\n", "found '?' as superclass; wanted a name without"},
    };
    for (size_t i = 0; i < N_ROWS(bad); i++) {
        put_text(in_folder("list/bad.csv"), bad[i].text);
        assert_refused(NULL, in_folder("list/bad.csv"), KITH_EFORMAT, bad[i].wanted);
    }
    put_text(in_folder("list/gone.csv"), "path,label\nnope.jpg,1\nnor.jpg,2\n");
    assert_refused(NULL, in_folder("list/gone.csv"), KITH_EIO, "none of the 2 listed images is there");
}

static void put_be32(uint8_t *p, uint32_t v) {
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void put_idx(const char *path, int n_dims, const uint32_t *dim, const uint8_t *data, size_t n,
                    bool gzip) {
    uint8_t bytes[4096];
    put_be32(bytes, 0x800u + (uint32_t)n_dims);
    for (int i = 0; i < n_dims; i++) put_be32(bytes + 4 + 4 * i, dim[i]);
    const size_t header = 4 + 4 * (size_t)n_dims;
    memcpy(bytes + header, data, n);
    if (!gzip) {
        put_bytes(path, bytes, header + n);
        return;
    }
    make_folders(path);
    gzFile file = gzopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, bytes, (unsigned)(header + n)), (int)(header + n));
    assert_int_equal(gzclose(file), Z_OK);
}

static void test_idx(void **state) {
    (void)state;
    uint8_t pixels[5 * 6];
    for (int i = 0; i < 30; i++) pixels[i] = (uint8_t)(i * 8);
    const uint8_t labels[5] = {7, 0, 7, 9, 3};
    put_idx(in_folder("idx/train-images-idx3-ubyte.gz"), 3, (uint32_t[]){5, 3, 2}, pixels, 30, true);
    put_idx(in_folder("idx/train-labels-idx1-ubyte.gz"), 1, (uint32_t[]){5}, labels, 5, true);
    put_idx(in_folder("idx/t10k-images-idx3-ubyte"), 3, (uint32_t[]){2, 3, 2}, pixels, 12, false);
    put_idx(in_folder("idx/t10k-labels-idx1-ubyte"), 1, (uint32_t[]){2}, labels, 2, false);
    kith_dataset *set = open_set(NULL, in_folder("idx"));
    assert_string_equal(kith_dataset_kind(set), "idx");
    assert_split(set, KITH_SPLIT_TRAIN, 5, 4);
    assert_split(set, KITH_SPLIT_TEST, 2, 2);
    assert_int_equal(kith_dataset_n_classes(set), 10);
    assert_string_equal(kith_dataset_class_name(set, kith_dataset_item(set, 3).label), "9");
    ki_image image = {0};
    ki_bytes bytes = {0};
    kith_error err = {0};
    const ki_decode how = {0};
    assert_ok(ki_dataset_pixels(set, 6, &how, &bytes, &image, &err), &err);
    assert_int_equal(image.w, 2);
    assert_int_equal(image.h, 3);
    assert_memory_equal(image.data, pixels + 6, 6);
    assert_ok(kith_dataset_split_first(set, 5, &err), &err); /* digits 0 to 4 train, of both files */
    assert_split(set, KITH_SPLIT_TRAIN, 3, 2);
    assert_split(set, KITH_SPLIT_TEST, 4, 2);
    ki_image_release(&image);
    kith_dataset_free(set);

    put_idx(in_folder("idx/t10k-labels-idx1-ubyte"), 1, (uint32_t[]){3}, labels, 3, false);
    assert_refused(NULL, in_folder("idx"), KITH_EFORMAT, "there are 2 images and 3 labels");
    put_idx(in_folder("idx/t10k-labels-idx1-ubyte"), 1, (uint32_t[]){3}, labels, 2, false);
    assert_refused(NULL, in_folder("idx"), KITH_EFORMAT,
                   "the labels file promises 3 bytes of data and has 2");
    put_idx(in_folder("idx/t10k-images-idx3-ubyte"), 3, (uint32_t[]){0xffffffff, 0xffffffff, 2}, pixels, 12,
            false);
    assert_refused(NULL, in_folder("idx"), KITH_EFORMAT, "the images file promises");
    unlink(in_folder("idx/t10k-labels-idx1-ubyte"));
    assert_refused(NULL, in_folder("idx"), KITH_EIO, "t10k-images is there and t10k-labels is not");
    /* a gzip file cut off */
    assert_int_equal(truncate(in_folder("idx/train-images-idx3-ubyte.gz"), 30), 0);
    assert_refused(NULL, in_folder("idx"), KITH_EFORMAT, "train-images-idx3-ubyte.gz");
}

/* A gzipped header that promises more than the packed bytes can hold, a few bytes that unpack to many without being
 * promised, and data that ends early: refused, and no memory taken for what is not there. */
static void test_idx_bombs(void **state) {
    (void)state;
    static uint8_t zeros[16 << 20], packed[1 << 16];
    static const struct {
        uint32_t n_images;
        size_t n_data, most_memory;
        const char *wanted;
    } rows[] = {
        {0xffffffff, 100, 1 << 20, "unpacks to 3367254359280 bytes, more than the "},
        {1 << 20, 100, 1 << 20, "can hold"},
        {2, sizeof zeros - 16, 1 << 20, "promises 1568 bytes of data and has more"},
        {20, 10000, 1 << 20, "promises 15680 bytes of data and has 10000"},
    };
    char path[4096];
    snprintf(path, sizeof path, "%s", in_folder("bomb/train-images-idx3-ubyte.gz"));
    put_idx(in_folder("bomb/train-labels-idx1-ubyte"), 1, (uint32_t[]){2}, zeros, 2, false);
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        const uint32_t head[] = {0x803, rows[i].n_images, 28, 28};
        for (int k = 0; k < 4; k++) put_be32(zeros + 4 * k, head[k]);
        z_stream z = {.next_in = zeros, .avail_in = (unsigned)(16 + rows[i].n_data)};
        z.next_out = packed;
        z.avail_out = sizeof packed;
        assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        put_bytes(path, packed, sizeof packed - z.avail_out);
        deflateEnd(&z);
        kith_memory_stats before, after;
        kith_memory_stats_get(&before);
        assert_refused("idx", in_folder("bomb"), rows[i].n_images == 0xffffffff ? KITH_EINVAL : KITH_EFORMAT,
                       rows[i].wanted);
        kith_memory_stats_get(&after);
        if (after.peak_bytes - before.peak_bytes > rows[i].most_memory)
            fail_msg("row %zu took %zu bytes", i, (size_t)(after.peak_bytes - before.peak_bytes));
    }
}

/* ---- Cars196 ---- */

/* Both byte orders, packed and not. */
static void test_cars_one_folder(void **state) {
    (void)state;
    const car cars[] = {{"car_ims/000001.jpg", 1},
                        {"car_ims/000002.jpg", 98},
                        {"car_ims/000003.jpg", 99},
                        {"car_ims/gone.jpg", 99}};
    for (int i = 1; i <= 3; i++) put_image(in_folder("cars/car_ims/00000%d.jpg", i), "ok_rgb.jpg");
    for (int way = 0; way < 4; way++) {
        put_mat(in_folder("cars/cars_annos.mat"), "relative_im_path", cars, 4, 196, way & 1, way & 2);
        kith_dataset *set = open_set(NULL, in_folder("cars"));
        assert_string_equal(kith_dataset_kind(set), "cars");
        assert_int_equal(kith_dataset_n_classes(set), 196);
        assert_int_equal(kith_dataset_n_missing(set), 1);
        assert_split(set, KITH_SPLIT_TRAIN, 2, 2);
        assert_split(set, KITH_SPLIT_TEST, 1, 1);
        const kith_item item = kith_dataset_item(set, 1);
        assert_string_equal(kith_dataset_class_name(set, item.label), "Car 98");
        assert_true(item.has_box && item.box[0] == 10 && item.box[1] == 0 && item.box[2] == 10 &&
                    item.box[3] == 5);
        kith_dataset_free(set);
    }
}

static void test_cars_devkit(void **state) {
    (void)state;
    const car train[] = {{"00001.jpg", 14}, {"00002.jpg", 120}},
              test[] = {{"00001.jpg", 14}, {"00002.jpg", 196}};
    char test_list[4096];
    snprintf(test_list, sizeof test_list, "%s", in_folder("kit/devkit/cars_test_annos_withlabels.mat"));
    put_mat(in_folder("kit/devkit/cars_train_annos.mat"), "fname", train, 2, 0, false, true);
    put_mat(test_list, "fname", test, 2, 0, false, true);
    put_mat(in_folder("kit/devkit/cars_meta.mat"), NULL, NULL, 0, 196, false, true);
    for (int i = 1; i <= 2; i++) {
        put_image(in_folder("kit/cars_train/0000%d.jpg", i), "ok_rgb.jpg");
        put_image(in_folder("kit/cars_test/0000%d.jpg", i), "ok_rgb.jpg");
    }
    kith_dataset *set = open_set(NULL, in_folder("kit"));
    assert_string_equal(kith_dataset_kind(set), "cars");
    assert_split(set, KITH_SPLIT_TRAIN, 2, 1);
    assert_split(set, KITH_SPLIT_TEST, 2, 2);
    kith_dataset_free(set);
    const car unlabelled[] = {{"00001.jpg", 0}};
    put_mat(test_list, "fname", unlabelled, 1, 0, false, false);
    assert_refused(NULL, in_folder("kit"), KITH_EFORMAT, "annotation 1 (00001.jpg) has no class");
    put_mat(test_list, "path", test, 2, 0, false, false);
    assert_refused(NULL, in_folder("kit"), KITH_EFORMAT, "annotation 1 has no fname");
    put_mat(test_list, NULL, NULL, 0, 5, false, false);
    assert_refused(NULL, in_folder("kit"), KITH_EFORMAT,
                   "cars_test_annos_withlabels.mat: there is no struct array 'annotations'");
    put_text(test_list, "this is no MATLAB file at all, only text");
    assert_refused(NULL, in_folder("kit"), KITH_EFORMAT, "is not a MATLAB file");
    char hdf[600] = "MATLAB 7.3 MAT-file";
    memcpy(hdf + 512, "\x89HDF\r\n\x1a\n", 8);
    put_bytes(test_list, hdf, sizeof hdf);
    assert_refused(NULL, in_folder("kit"), KITH_EUNSUPPORTED, "is a MATLAB file of version 7.3 (HDF5)");
    unlink(test_list);
    assert_refused(NULL, in_folder("kit"), KITH_EIO, "cars_test_annos_withlabels.mat is not there");
}

static char log_lines[4096];
static void keep_log(void *user, kith_log_level level, const char *line) {
    (void)user;
    (void)level;
    strncat(log_lines, line, sizeof log_lines - strlen(log_lines) - 1);
}

static kith_dataset *open_and_listen(const char *root) {
    log_lines[0] = '\0';
    kith_log_set(keep_log, NULL, KITH_LOG_INFO);
    kith_dataset *set = open_set(NULL, root);
    kith_log_set(NULL, NULL, KITH_LOG_INFO);
    return set;
}

/* The list of one layout beside the images of the other. */
static void test_cars_both_layouts(void **state) {
    (void)state;
    const car all[] = {{"car_ims/000001.jpg", 1}, {"car_ims/000002.jpg", 99}, {"car_ims/000003.jpg", 100}};
    const car train[] = {{"00001.jpg", 14}}, test[] = {{"00001.jpg", 196}};
    put_mat(in_folder("both/cars_annos.mat"), "relative_im_path", all, 3, 196, false, true);
    put_mat(in_folder("both/devkit/cars_train_annos.mat"), "fname", train, 1, 0, false, true);
    put_mat(in_folder("both/devkit/cars_test_annos_withlabels.mat"), "fname", test, 1, 0, false, true);
    put_image(in_folder("both/cars_train/00001.jpg"), "ok_rgb.jpg");
    put_image(in_folder("both/cars_test/00001.jpg"), "ok_rgb.jpg");
    kith_dataset *set = open_and_listen(in_folder("both"));
    assert_int_equal(kith_dataset_count(set), 2);
    assert_int_equal(kith_dataset_n_missing(set), 0);
    assert_non_null(strstr(log_lines, "both layouts of Cars196; read is devkit/"));
    kith_dataset_free(set);
    for (int i = 1; i <= 3; i++) put_image(in_folder("both/car_ims/00000%d.jpg", i), "ok_rgb.jpg");
    set = open_and_listen(in_folder("both"));
    assert_int_equal(kith_dataset_count(set), 3);
    assert_non_null(strstr(log_lines, "both layouts of Cars196; read is cars_annos.mat"));
    kith_dataset_free(set);
}

/* Every bit of a list flipped, every length cut: read or refused with one line, within memory in proportion to the
 * file's length. */
static void test_cars_damaged(void **state) {
    (void)state;
    const car cars[] = {{"a.jpg", 1}, {"b.jpg", 99}};
    for (int way = 0; way < 2; way++) {
        put_mat(in_folder("cars_annos.mat"), "fname", cars, 2, 2, false, way);
        ki_bytes whole = {0};
        kith_error err = {0};
        assert_ok(ki_bytes_read(&whole, in_folder("cars_annos.mat"), &err), &err);
        const size_t n_bits = 8 * whole.n;
        for (size_t i = 0; i < n_bits + whole.n; i++) {
            const size_t n = i < n_bits ? whole.n : i - n_bits;
            uint8_t *bytes =
                malloc(n ? n : 1); /* exactly, so that the sanitizer sees a read behind the end */
            assert_non_null(bytes);
            memcpy(bytes, whole.data, n);
            if (i < n_bits) bytes[i / 8] ^= (uint8_t)(1 << i % 8);
            kith_memory_stats before, after;
            kith_memory_stats_get(&before);
            kith_dataset *set = NULL;
            assert_ok(ki_dataset_new(&ki_dataset_cars, "root", &set, &err), &err);
            err = (kith_error){0};
            const kith_status status = ki_cars_parse(set, "root", "list.mat", bytes, n, "fname", &err);
            kith_memory_stats_get(&after);
            if (status != KITH_OK && (!strstr(err.message, "list.mat") || strchr(err.message, '\n')))
                fail_msg("change %zu: '%s' does not name the file in one line", i, err.message);
            if (after.peak_bytes - before.peak_bytes > 4096 * n + (1 << 20))
                fail_msg("change %zu: %zu bytes of memory for a file of %zu", i,
                         (size_t)(after.peak_bytes - before.peak_bytes), n);
            kith_dataset_free(set);
            free(bytes);
        }
        ki_bytes_release(&whole);
    }
}

/* ---- groups ---- */

/* No group is in two splits; how many classes validate and test. */
static void assert_whole(const kith_dataset *set, int64_t n_validation, int64_t n_test) {
    int8_t split[100] = {0}, of_class[100] = {0};
    int n[KITH_N_SPLITS] = {0};
    for (size_t i = 0; i < set->n_items; i++) {
        const ki_item *item = &set->item[i];
        const int8_t own = (int8_t)(item->split + 1);
        if (item->group && split[item->group] && split[item->group] != own)
            fail_msg("group %d is in two splits", item->group);
        split[item->group] = own;
        n[item->split] += of_class[item->label] == 0;
        of_class[item->label] = own;
    }
    if (n[KITH_SPLIT_VALIDATION] != n_validation || n[KITH_SPLIT_TEST] != n_test)
        fail_msg("%d classes validate and %d test; wanted %d and %d", n[KITH_SPLIT_VALIDATION],
                 n[KITH_SPLIT_TEST], (int)n_validation, (int)n_test);
}

/* Classes 3k, 3k + 1 and 3k + 2 share a session each, the last six of `n` none; x.jpg is every photo. */
static kith_dataset *make_groups(const char *name, int n, const char *split) {
    char path[4096];
    snprintf(path, sizeof path, "%s", in_folder("%s/manifest.csv", name));
    put_image(in_folder("%s/x.jpg", name), "ok_rgb.jpg");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "path,group,label%s\n", *split ? ",split" : "");
    for (int c = 0; c < n; c++) {
        for (int i = 0; i < 2; i++) {
            fprintf(file, "x.jpg,");
            if (c < n - 6 && i == 0) fprintf(file, "session %d", c / 3);
            fprintf(file, ",c%02d%s%s\n", c, *split ? "," : "", split);
        }
    }
    fclose(file);
    return open_set("csv", path);
}

static void test_super_classes(void **state) {
    (void)state;
    put_image(in_folder("super/x.jpg"), "ok_rgb.jpg");
    put_text(in_folder("super/list.csv"),
             "path,label,superclass\nx.jpg,a,tool\nx.jpg,b,tool\nx.jpg,c,\nx.jpg,d,pet\n");
    kith_dataset *set = open_set(NULL, in_folder("super/list.csv"));
    assert_int_equal(kith_dataset_n_super_classes(set), 2);
    assert_int_equal(set->class_[0].super, set->class_[1].super);
    assert_int_equal(set->class_[2].super, 0);
    assert_true(set->class_[3].super > 0 && set->class_[3].super != set->class_[0].super);
    kith_dataset_free(set);
    put_text(in_folder("super/bad.csv"), "path,label,superclass\nx.jpg,a,tool\nx.jpg,a,pet\n");
    assert_refused(NULL, in_folder("super/bad.csv"), KITH_EFORMAT,
                   "the class 'a' is of super-class 'tool' and of 'pet'");
}

static void test_groups(void **state) {
    (void)state;
    kith_dataset *set = make_groups("groups", 30, "");
    kith_error err = {0};
    assert_int_equal(kith_dataset_n_groups(set), 8);
    assert_whole(set, 0, 15); /* half, of 8 units of three classes and 6 of one */
    assert_ok(kith_dataset_hold_out(set, 0.2, 1, &err), &err);
    assert_whole(set, 3, 15);
    kith_dataset_free(set);
    /* Folds are as even as units of three let them be, and each class is held out once. */
    int64_t n_held = 0;
    for (int fold = 0; fold < 4; fold++) {
        set = make_groups("folds", 30, "train");
        assert_ok(kith_dataset_hold_out_fold(set, 4, fold, 7, &err), &err);
        kith_split_summary s;
        assert_ok(kith_dataset_summary(set, KITH_SPLIT_VALIDATION, &s, &err), &err);
        assert_true(s.n_classes == 7 || s.n_classes == 8);
        assert_whole(set, s.n_classes, 0);
        n_held += s.n_classes;
        kith_dataset_free(set);
    }
    assert_int_equal(n_held, 30);
    /* A part smaller than any unit takes one. */
    set = make_groups("small", 9, "train");
    for (size_t i = 0; i < set->n_items; i++) {
        if (set->item[i].label >= 3) set->item[i].split = KITH_SPLIT_TEST;
    }
    assert_int_equal(kith_dataset_hold_out(set, 0.5, 1, &err), KITH_EINVAL);
    assert_non_null(
        strstr(err.message, "3 training classes, which their groups join into 1; wanted at least 2"));
    assert_int_equal(kith_dataset_hold_out_fold(set, 2, 0, 1, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "join into 1; wanted at least one for each of 2 folds"));
    assert_int_equal(kith_dataset_split_first(set, 2, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "the group 'session 0' is in train and, with "));
    kith_dataset_free(set);
    /* One group over all classes leaves none for the test. */
    put_text(in_folder("groups/free.csv"), "path,label,group\nx.jpg,a,g\nx.jpg,b,g\nx.jpg,c,\n");
    kith_dataset_free(open_and_listen(in_folder("groups/free.csv")));
    assert_string_equal(log_lines, "");
    put_text(in_folder("groups/one.csv"), "path,label,group\nx.jpg,a,g\nx.jpg,b,g\nx.jpg,b,h\nx.jpg,c,h\n");
    set = open_and_listen(in_folder("groups/one.csv"));
    assert_whole(set, 0, 0);
    assert_non_null(strstr(log_lines, "groups join all 3 classes into one: no class can be held out"));
    kith_dataset_free(set);
    put_text(in_folder("groups/parted.csv"),
             "path,label,split,group\nx.jpg,a,train,g\nx.jpg,b,test,h\nx.jpg,a,test,g\n");
    assert_refused(NULL, in_folder("groups/parted.csv"), KITH_EINVAL, "the group 'g' is in train and, with ");
}

/* ---- held-out classes ---- */

static kith_dataset *make_classes(const char *name, int n_classes) {
    char path[4096];
    snprintf(path, sizeof path, "%s", in_folder("%s/manifest.csv", name));
    put_image(in_folder("%s/x.jpg", name), "ok_rgb.jpg");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "path,label,split\n");
    for (int c = 0; c < n_classes; c++) {
        for (int i = 0; i < 3; i++)
            fprintf(file, "x.jpg,\"class \"\"%d\"\"\",%s\n", c, c < n_classes / 2 ? "train" : "test");
    }
    fclose(file);
    return open_set("csv", path);
}

static void test_hold_out(void **state) {
    (void)state;
    kith_dataset *set = make_classes("held", 100), *other = make_classes("held", 100);
    kith_error err = {0};
    assert_ok(kith_dataset_hold_out(set, 0.2, 7, &err), &err);
    assert_split(set, KITH_SPLIT_TRAIN, 120, 40);
    assert_split(set, KITH_SPLIT_VALIDATION, 30, 10);
    assert_split(set, KITH_SPLIT_TEST, 150, 50);
    assert_ok(kith_dataset_hold_out(other, 0.2, 8, &err), &err);
    int n_same = 0;
    for (int64_t i = 0; i < 300; i++)
        n_same += kith_dataset_item(set, i).split == kith_dataset_item(other, i).split;
    assert_true(n_same < 300); /* another seed, other classes */
    char path[4096];
    snprintf(path, sizeof path, "%s", in_folder("split.csv"));
    assert_ok(kith_dataset_split_write(set, path, &err), &err);
    assert_ok(kith_dataset_split_read(other, path, &err), &err);
    for (int64_t i = 0; i < 300; i++)
        assert_int_equal(kith_dataset_item(set, i).split, kith_dataset_item(other, i).split);
    assert_ok(kith_dataset_hold_out(other, 0.2, 7, &err), &err); /* a second time starts anew */
    for (int64_t i = 0; i < 300; i++)
        assert_int_equal(kith_dataset_item(set, i).split, kith_dataset_item(other, i).split);
    put_text(path, "class,split\nnobody,train\n");
    assert_int_equal(kith_dataset_split_read(other, path, &err), KITH_EFORMAT);
    assert_non_null(strstr(err.message, "wanted a class of this data set"));
    put_text(path, "class,split\n\"class \"\"0\"\"\",train\n");
    assert_int_equal(kith_dataset_split_read(other, path, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "the class 'class \"1\"' is not in the file"));
    assert_int_equal(kith_dataset_hold_out(other, 1, 7, &err), KITH_EINVAL);
    kith_dataset_free(set);
    kith_dataset_free(other);
}

/* Over many seeds and sizes: folds are disjoint, together all training classes, and differ by at most one. */
static void test_folds(void **state) {
    (void)state;
    kith_dataset *set = make_classes("folds", 46);
    kith_error err = {0};
    for (uint64_t seed = 0; seed < 300; seed++) {
        const int n_folds = 2 + (int)(seed % 9);
        int times[46] = {0};
        for (int fold = 0; fold < n_folds; fold++) {
            assert_ok(kith_dataset_hold_out_fold(set, n_folds, fold, seed, &err), &err);
            int n = 0;
            for (int c = 0; c < 46; c++) {
                const kith_split split = kith_dataset_item(set, 3 * c).split;
                for (int i = 1; i < 3; i++) assert_int_equal(kith_dataset_item(set, 3 * c + i).split, split);
                if (c >= 23) assert_int_equal(split, KITH_SPLIT_TEST);
                if (split == KITH_SPLIT_VALIDATION) times[c]++, n++;
            }
            assert_in_range(n, 23 / n_folds, (23 + n_folds - 1) / n_folds);
        }
        for (int c = 0; c < 23; c++) assert_int_equal(times[c], 1);
    }
    assert_int_equal(kith_dataset_hold_out_fold(set, 24, 0, 1, &err), KITH_EINVAL);
    assert_int_equal(kith_dataset_hold_out_fold(set, 5, 5, 1, &err), KITH_EINVAL);
    assert_int_equal(kith_dataset_hold_out_fold(set, 5, -1, 1, &err), KITH_EINVAL);
    assert_int_equal(kith_dataset_hold_out_fold(set, 1, 0, 1, &err), KITH_EINVAL);
    assert_non_null(strstr(err.message, "fold 0 of 1; wanted at least 2 folds"));
    kith_dataset_free(set);
}

static void test_scan(void **state) {
    (void)state;
    put_image(in_folder("mixed/a/1.jpg"), "ok_rgb.jpg");
    put_image(in_folder("mixed/a/2.jpg"), "ok_exif_6.jpg");
    put_image(in_folder("mixed/a/3.jpg"), "bad_cut.jpg");
    put_image(in_folder("mixed/b/4.jpg"), "bad_text.jpg");
    kith_dataset *set = open_set(NULL, in_folder("mixed"));
    kith_error err = {0};
    kith_scan scan = {0};
    kith_memory_stats before, after;
    kith_memory_stats_get(&before);
    assert_ok(kith_dataset_scan(set, false, NULL, NULL, &scan, &err), &err);
    assert_int_equal(scan.n_bad, 1); /* the cut file's header is sound */
    assert_int_equal(scan.width[0], 18);
    assert_int_equal(scan.width[2], 27);
    kith_scan_release(&scan);
    assert_ok(kith_dataset_scan(set, true, NULL, NULL, &scan, &err), &err);
    assert_int_equal(scan.n_read, 2);
    assert_int_equal(scan.n_bad, 2);
    assert_non_null(strstr(scan.bad[0], "a/3.jpg"));
    assert_non_null(strstr(scan.why[0], "the file ends before the image does"));
    kith_scan_release(&scan);
    kith_memory_stats_get(&after);
    assert_int_equal(after.live_bytes, before.live_bytes);
    kith_dataset_free(set);
}

static void test_no_memory(void **state) {
    (void)state;
    const char *const roots[] = {"cub", "sop", "inshop", "omniglot", "photos", "list/all.csv"};
    put_text(in_folder("cub/images.txt"), "1 001.A/one.jpg\n2 101.Ünïcode/x.jpg");
    put_text(in_folder("cub/image_class_labels.txt"), "1 1\n2 101\n");
    put_text(in_folder("sop/Ebay_test.txt"), "59552 11319 2 cabinet_final/c_0.JPG\r\n");
    put_text(in_folder("inshop/Eval/list_eval_partition.txt"),
             "img/WOMEN/Dresses/id_00000002/02_1_front.jpg id_2 train\n");
    for (size_t i = 0; i < N_ROWS(roots); i++) {
        bool has_failed = true;
        int64_t n = 0;
        for (; has_failed && n < 400; n++) {
            kith_memory_stats before, after;
            kith_memory_stats_get(&before);
            kith_dataset *set = NULL;
            kith_error err = {0};
            char root[4096];
            snprintf(root, sizeof root, "%s", in_folder("%s", roots[i]));
            ki_alloc_fail_after(n);
            const kith_status status = kith_dataset_open(i == 4 ? "folder" : NULL, root, &set, &err);
            has_failed = ki_alloc_failed();
            ki_alloc_fail_after(-1);
            if (status != (has_failed ? KITH_ENOMEM : KITH_OK))
                fail_msg("%s, allocation %d: %s %s", roots[i], (int)n, kith_status_name(status), err.message);
            kith_dataset_free(set);
            kith_memory_stats_get(&after);
            assert_int_equal(after.live_bytes, before.live_bytes);
        }
        assert_false(has_failed);
        assert_true(n > 3);
    }
}

static void test_cub_complete(void **state) {
    (void)state;
    const char *root = testing_shared("data/CUB_200_2011");
    if (!root) skip();
    kith_dataset *set = open_set(NULL, root);
    assert_split(set, KITH_SPLIT_TRAIN, 5864, 100);
    assert_split(set, KITH_SPLIT_TEST, 5924, 100);
    assert_int_equal(kith_dataset_n_missing(set), 0);
    kith_dataset_free(set);
}

static void test_fashion_mnist(void **state) {
    (void)state;
    const char *root = "/usr/share/datasets/fashion-mnist";
    if (access(root, R_OK) != 0) skip();
    kith_dataset *set = open_set(NULL, root);
    assert_split(set, KITH_SPLIT_TRAIN, 60000, 10);
    assert_split(set, KITH_SPLIT_TEST, 10000, 10);
    kith_dataset_free(set);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cub),
        cmocka_unit_test(test_sop),
        cmocka_unit_test(test_inshop),
        cmocka_unit_test(test_omniglot),
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_idx),
        cmocka_unit_test(test_idx_bombs),
        cmocka_unit_test(test_cars_one_folder),
        cmocka_unit_test(test_cars_devkit),
        cmocka_unit_test(test_cars_both_layouts),
        cmocka_unit_test(test_cars_damaged),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_super_classes),
        cmocka_unit_test(test_hold_out),
        cmocka_unit_test(test_folds),
        cmocka_unit_test(test_scan),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_cub_complete),
        cmocka_unit_test(test_fashion_mnist),
    };
    return cmocka_run_group_tests_name("data/dataset", tests, NULL, NULL);
}
