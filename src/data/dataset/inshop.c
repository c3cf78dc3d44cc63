/* In-Shop Clothes Retrieval: list_eval_partition.txt (at the root or in Eval/): the number of images, a
 * header line, then 'PATH ITEM train|query|gallery'. Queries are searched in the gallery. */
#include <stdio.h>

#include "data/dataset/dataset.h"
#include "data/dataset/lines.h"

kith_status ki_inshop_parse(kith_dataset *set, const char *folder, const char *text, size_t n,
                            kith_error *err) {
    ki_lines lines = ki_lines_of("list_eval_partition.txt", text, n);
    ki_text line, path, item_id, part;
    int64_t n_promised = -1, n_found = 0;
    while (ki_lines_next(&lines, &line)) {
        ki_text rest = line;
        if (lines.number == 1 && ki_text_int(line, &n_promised)) continue;
        if (!ki_text_word(&rest, &path) || !ki_text_word(&rest, &item_id) || !ki_text_word(&rest, &part))
            return ki_lines_fail(&lines, line, "'PATH ITEM train|query|gallery'", err);
        if (lines.number <= 2 && ki_text_is(path, "image_name")) continue;
        const bool is_query = ki_text_is(part, "query"), is_gallery = ki_text_is(part, "gallery");
        if (!is_query && !is_gallery && !ki_text_is(part, "train"))
            return ki_lines_fail(&lines, line, "train, query or gallery as the third word", err);
        int32_t label = 0;
        ki_item *item = NULL;
        KI_TRY(ki_dataset_class(set, item_id.s, item_id.n, &label, err));
        KI_TRY(ki_dataset_add(set, folder, path.s, path.n, label,
                              is_query || is_gallery ? KITH_SPLIT_TEST : KITH_SPLIT_TRAIN, &item, err));
        item->role = is_query ? KITH_ROLE_QUERY : is_gallery ? KITH_ROLE_GALLERY : KITH_ROLE_BOTH;
        n_found++;
    }
    if (n_promised >= 0 && n_promised != n_found) {
        ki_fail(err, KITH_EFORMAT, "list_eval_partition.txt promises %jd images and lists %jd",
                (intmax_t)n_promised, (intmax_t)n_found);
        return ki_hint(err, KITH_EFORMAT,
                       "the file may be cut off: fetch it again, or correct its first line");
    }
    return KITH_OK;
}

static const char *const list_places[] = {"list_eval_partition.txt", "Eval/list_eval_partition.txt"};
enum { N_PLACES = sizeof list_places / sizeof list_places[0] };

static bool found(const char *root) {
    for (int i = 0; i < N_PLACES; i++) {
        if (ki_is_file("%s/%s", root, list_places[i])) return true;
    }
    return false;
}

static kith_status read_inshop(kith_dataset *set, const char *root, kith_error *err) {
    kith_status status = KITH_OK;
    ki_bytes bytes = {0};
    ki_path path, folder;
    KI_CHECK(ki_path_print(&path, err, "%s/%s", root, list_places[0]));
    if (!ki_is_file("%s", path.s)) KI_CHECK(ki_path_print(&path, err, "%s/%s", root, list_places[1]));
    /* The archive unpacks img/ either at the root or in Img/. */
    KI_CHECK(ki_path_print(&folder, err, "%s%s", root, ki_is_folder("%s/Img/img", root) ? "/Img" : ""));
    KI_CHECK(ki_bytes_read(&bytes, path.s, err));
    status = ki_inshop_parse(set, folder.s, (char *)bytes.data, bytes.n, err);
    if (status != KITH_OK) ki_prefix(err, status, "%s", root);
done:
    ki_bytes_release(&bytes);
    return status;
}

const ki_dataset_kind ki_dataset_inshop = {
    .name = "inshop",
    .summary = "In-Shop Clothes Retrieval (list_eval_partition.txt): train, query and gallery as listed",
    .found = found,
    .read = read_inshop,
};
