/* CUB-200-2011: images.txt, image_class_labels.txt, bounding_boxes.txt and classes.txt, each line
 * beginning with an image's (or class's) number. The first 100 classes train, the others test. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "data/dataset/dataset.h"
#include "data/dataset/lines.h"

enum { LAST_TRAINING_CLASS = 100 };

typedef struct row {
    int64_t id;
    int64_t place; /* of equal numbers the earlier line comes first */
    ki_text path;
    int64_t class_id; /* 0: no line in the labels file */
    double box[4];
    bool has_box;
} row;

typedef struct rows {
    row *row;
    size_t n, capacity;
} rows;

static int compare_ids(const void *a, const void *b) {
    const row *x = a, *y = b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return x->place < y->place ? -1 : 1;
}

static row *find(const rows *all, int64_t id) {
    size_t low = 0, high = all->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (all->row[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < all->n && all->row[low].id == id ? &all->row[low] : NULL;
}

static kith_status parse_images(const char *text, size_t n, rows *all, kith_error *err) {
    ki_lines lines = ki_lines_of("images.txt", text, n);
    ki_text line, word, path;
    while (ki_lines_next(&lines, &line)) {
        ki_text rest = line;
        int64_t id = 0;
        if (!ki_text_word(&rest, &word) || !ki_text_int(word, &id) || !ki_text_rest(&rest, &path))
            return ki_lines_fail(&lines, line, "'NUMBER PATH'", err);
        KI_TRY(ki_grow(&all->row, &all->capacity, all->n + 1, sizeof *all->row, "images", err));
        all->row[all->n] = (row){.id = id, .place = (int64_t)all->n, .path = path};
        all->n++;
    }
    if (all->n) qsort(all->row, all->n, sizeof *all->row, compare_ids);
    for (size_t i = 1; i < all->n; i++) {
        if (all->row[i].id == all->row[i - 1].id)
            return ki_fail(err, KITH_EFORMAT, "images.txt has number %jd twice", (intmax_t)all->row[i].id);
    }
    return KITH_OK;
}

static kith_status parse_labels(const char *text, size_t n, rows *all, kith_error *err) {
    ki_lines lines = ki_lines_of("image_class_labels.txt", text, n);
    ki_text line, word, label;
    while (ki_lines_next(&lines, &line)) {
        ki_text rest = line;
        int64_t id = 0, class_id = 0;
        if (!ki_text_word(&rest, &word) || !ki_text_int(word, &id) || !ki_text_word(&rest, &label) ||
            !ki_text_int(label, &class_id) || class_id < 1)
            return ki_lines_fail(&lines, line, "'NUMBER CLASS' with CLASS from 1", err);
        row *r = find(all, id);
        if (!r) return ki_lines_fail(&lines, line, "a number that images.txt has", err);
        r->class_id = class_id;
    }
    return KITH_OK;
}

static kith_status parse_boxes(const char *text, size_t n, rows *all, kith_error *err) {
    ki_lines lines = ki_lines_of("bounding_boxes.txt", text, n);
    ki_text line, word;
    while (ki_lines_next(&lines, &line)) {
        ki_text rest = line;
        int64_t id = 0;
        bool good = ki_text_word(&rest, &word) && ki_text_int(word, &id);
        double box[4] = {0};
        for (int i = 0; i < 4; i++)
            good = good && ki_text_word(&rest, &word) && ki_text_double(word, &box[i]);
        if (!good) return ki_lines_fail(&lines, line, "'NUMBER X Y WIDTH HEIGHT'", err);
        row *r = find(all, id);
        if (!r) continue; /* boxes of images that were taken out */
        memcpy(r->box, box, sizeof box);
        r->has_box = true;
    }
    return KITH_OK;
}

static kith_status class_of(kith_dataset *set, int64_t id, int32_t *ret_label, kith_error *err) {
    char key[24];
    const int length = ki_snprintf(key, sizeof key, "%jd", (intmax_t)id);
    return ki_dataset_class(set, key, (size_t)length, ret_label, err);
}

/* Names for the classes; a class's key is its number. */
static kith_status parse_names(kith_dataset *set, const char *text, size_t n, kith_error *err) {
    ki_lines lines = ki_lines_of("classes.txt", text, n);
    ki_text line, word, name;
    while (ki_lines_next(&lines, &line)) {
        ki_text rest = line;
        int64_t id = 0;
        int32_t label = 0;
        if (!ki_text_word(&rest, &word) || !ki_text_int(word, &id) || !ki_text_rest(&rest, &name))
            return ki_lines_fail(&lines, line, "'NUMBER NAME'", err);
        KI_TRY(class_of(set, id, &label, err));
        KI_TRY(ki_dataset_name_class(set, label, name.s, name.n, err));
    }
    return KITH_OK;
}

kith_status ki_cub_parse(kith_dataset *set, const char *folder, const char *images, size_t n_images,
                         const char *labels, size_t n_labels, const char *boxes, size_t n_boxes,
                         const char *names, size_t n_names, kith_error *err) {
    kith_status status = KITH_OK;
    rows all = {0};
    KI_CHECK(parse_images(images, n_images, &all, err));
    KI_CHECK(parse_labels(labels, n_labels, &all, err));
    KI_CHECK(parse_boxes(boxes, n_boxes, &all, err));
    KI_CHECK(parse_names(set, names, n_names, err));
    for (size_t i = 0; i < all.n; i++) {
        const row *r = &all.row[i];
        if (r->class_id == 0) {
            status = ki_fail(err, KITH_EFORMAT, "image_class_labels.txt has no line for image %jd",
                             (intmax_t)r->id);
            goto done;
        }
        int32_t label = 0;
        ki_item *item = NULL;
        KI_CHECK(class_of(set, r->class_id, &label, err));
        KI_CHECK(ki_dataset_add(set, folder, r->path.s, r->path.n, label,
                                r->class_id <= LAST_TRAINING_CLASS ? KITH_SPLIT_TRAIN : KITH_SPLIT_TEST,
                                &item, err));
        item->has_box = r->has_box;
        for (int k = 0; k < 4; k++) item->box[k] = (float)r->box[k];
    }
done:
    ki_free(all.row);
    return status;
}

static bool found(const char *root) {
    return ki_is_file("%s/images.txt", root) && ki_is_file("%s/image_class_labels.txt", root);
}

static kith_status read_list(const char *root, const char *name, bool must, ki_bytes *bytes,
                             kith_error *err) {
    ki_path path;
    KI_TRY(ki_path_print(&path, err, "%s/%s", root, name));
    if (!must && !ki_is_file("%s", path.s)) return KITH_OK;
    return ki_bytes_read(bytes, path.s, err);
}

static kith_status read_cub(kith_dataset *set, const char *root, kith_error *err) {
    kith_status status = KITH_OK;
    ki_bytes images = {0}, labels = {0}, boxes = {0}, names = {0};
    ki_path folder;
    KI_CHECK(ki_path_print(&folder, err, "%s/images", root));
    KI_CHECK(read_list(root, "images.txt", true, &images, err));
    KI_CHECK(read_list(root, "image_class_labels.txt", true, &labels, err));
    KI_CHECK(read_list(root, "bounding_boxes.txt", false, &boxes, err));
    KI_CHECK(read_list(root, "classes.txt", false, &names, err));
    KI_CHECK(ki_cub_parse(set, folder.s, (char *)images.data, images.n, (char *)labels.data, labels.n,
                          (char *)boxes.data, boxes.n, (char *)names.data, names.n, err));
done:
    ki_bytes_release(&images);
    ki_bytes_release(&labels);
    ki_bytes_release(&boxes);
    ki_bytes_release(&names);
    return status == KITH_OK ? status : ki_prefix(err, status, "%s", root);
}

const ki_dataset_kind ki_dataset_cub = {
    .name = "cub",
    .summary =
        "CUB-200-2011 (images.txt, image_class_labels.txt, images/); classes 1-100 train, the rest test",
    .found = found,
    .read = read_cub,
};
