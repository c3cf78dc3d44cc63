/* Stanford Online Products: Ebay_train.txt and Ebay_test.txt, a header line and then
 * 'IMAGE CLASS SUPERCLASS PATH'. */
#include <stdio.h>

#include "data/dataset/dataset.h"
#include "data/dataset/lines.h"

kith_status ki_sop_parse(kith_dataset *set, const char *folder, const char *text, size_t n, kith_split split,
                         kith_error *err) {
    ki_lines lines = ki_lines_of(split == KITH_SPLIT_TRAIN ? "Ebay_train.txt" : "Ebay_test.txt", text, n);
    ki_text line, number, class_, super, path;
    while (ki_lines_next(&lines, &line)) {
        ki_text rest = line;
        int64_t ignored = 0, label_number = 0;
        const bool has_all = ki_text_word(&rest, &number) && ki_text_word(&rest, &class_) &&
                             ki_text_word(&rest, &super) && ki_text_rest(&rest, &path);
        if (has_all && lines.number == 1 && ki_text_is(number, "image_id")) continue;
        if (!has_all || !ki_text_int(number, &ignored) || !ki_text_int(class_, &label_number))
            return ki_lines_fail(&lines, line, "'IMAGE CLASS SUPERCLASS PATH'", err);
        int32_t label = 0;
        KI_TRY(ki_dataset_class(set, class_.s, class_.n, &label, err));
        KI_TRY(ki_dataset_super_class(set, label, super.s, super.n, err));
        KI_TRY(ki_dataset_add(set, folder, path.s, path.n, label, split, NULL, err));
    }
    return KITH_OK;
}

static bool found(const char *root) {
    return ki_is_file("%s/Ebay_train.txt", root) && ki_is_file("%s/Ebay_test.txt", root);
}

static kith_status read_sop(kith_dataset *set, const char *root, kith_error *err) {
    kith_status status = KITH_OK;
    ki_bytes bytes = {0};
    static const struct {
        const char *name;
        kith_split split;
    } lists[] = {{"Ebay_train.txt", KITH_SPLIT_TRAIN}, {"Ebay_test.txt", KITH_SPLIT_TEST}};
    for (int i = 0; i < 2; i++) {
        ki_path path;
        KI_CHECK(ki_path_print(&path, err, "%s/%s", root, lists[i].name));
        KI_CHECK(ki_bytes_read(&bytes, path.s, err));
        status = ki_sop_parse(set, root, (char *)bytes.data, bytes.n, lists[i].split, err);
        if (status != KITH_OK) {
            ki_prefix(err, status, "%s", root);
            goto done;
        }
    }
done:
    ki_bytes_release(&bytes);
    return status;
}

const ki_dataset_kind ki_dataset_sop = {
    .name = "sop",
    .summary = "Stanford Online Products (Ebay_train.txt, Ebay_test.txt), with its own split",
    .found = found,
    .read = read_sop,
};
