/* A manifest: a CSV file whose header names the columns path and label, and maybe split
 * (train|validation|test), role (query|gallery|both), x, y, w, h (a box in pixels) , group (what must not be parted
 * between splits) and superclass (of the class). Paths are relative to the manifest's folder. Without a split column the first half of the classes, in order of
 * appearance, trains. */
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "data/dataset/dataset.h"
#include "data/dataset/table.h"

typedef struct columns {
    int path, label, split, role, group, super, box[4];
} columns;

static const char *const box_names[4] = {"x", "y", "w", "h"};

/* Of columns that are passed over any number may have one name. */
static kith_status check_once(const ki_table *t, kith_error *err) {
    static const char *const names[] = {"path", "label", "split", "role",  "x",
                                        "y",    "w",     "h",     "group", "superclass"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        const int first = ki_table_column(t, names[k]);
        for (size_t i = (size_t)(first + 1); first >= 0 && i < t->n_fields; i++) {
            if (ki_text_is(t->field[i], names[k]))
                return ki_fail(err, KITH_EFORMAT, "%s line %jd: found the column %s twice; wanted it once",
                               t->lines.name, (intmax_t)t->lines.number, names[k]);
        }
    }
    return KITH_OK;
}

static kith_status read_header(ki_table *t, columns *ret, kith_error *err) {
    bool more = false;
    KI_TRY(ki_table_next(t, &more, err));
    if (!more)
        return ki_fail(err, KITH_EFORMAT, "the manifest is empty; wanted a header with path and label");
    *ret = (columns){.path = ki_table_column(t, "path"),
                     .label = ki_table_column(t, "label"),
                     .split = ki_table_column(t, "split"),
                     .role = ki_table_column(t, "role"),
                     .group = ki_table_column(t, "group"),
                     .super = ki_table_column(t, "superclass")};
    if (ret->path < 0 || ret->label < 0)
        return ki_lines_fail(&t->lines, t->line, "a header with the columns path and label", err);
    KI_TRY(check_once(t, err));
    int n_box = 0;
    for (int i = 0; i < 4; i++) {
        ret->box[i] = ki_table_column(t, box_names[i]);
        n_box += ret->box[i] >= 0;
    }
    if (n_box != 0 && n_box != 4) return ki_lines_fail(&t->lines, t->line, "all of x, y, w, h or none", err);
    return KITH_OK;
}

static bool split_of(ki_text text, kith_split *ret) {
    if (ki_text_is(text, "train")) return *ret = KITH_SPLIT_TRAIN, true;
    if (ki_text_is(text, "validation") || ki_text_is(text, "val")) return *ret = KITH_SPLIT_VALIDATION, true;
    if (ki_text_is(text, "test")) return *ret = KITH_SPLIT_TEST, true;
    return false;
}

static bool role_of(ki_text text, uint8_t *ret) {
    if (text.n == 0 || ki_text_is(text, "both")) return *ret = KITH_ROLE_BOTH, true;
    if (ki_text_is(text, "query")) return *ret = KITH_ROLE_QUERY, true;
    if (ki_text_is(text, "gallery")) return *ret = KITH_ROLE_GALLERY, true;
    return false;
}

/* The line alone may be cut off before the field. */
static kith_status fail_field(const ki_table *t, const char *column, ki_text found, const char *wanted,
                              kith_error *err) {
    return ki_fail(err, KITH_EFORMAT, "%s line %jd: found '%.*s' as %s; wanted %s", t->lines.name,
                   (intmax_t)t->lines.number, found.n > 80 ? 80 : (int)found.n, found.s, column, wanted);
}

static kith_status fail_box(const ki_table *t, const columns *at, kith_error *err) {
    char found[200] = "";
    for (int i = 0, n = 0; i < 4; i++) {
        const ki_text text = ki_table_field(t, at->box[i]);
        const char *before = text.n ? "" : "no ", *blank = text.n ? " " : "";
        n += ki_snprintf(found + n, sizeof found - (size_t)n, "%s%s%s%s%.*s", i ? ", " : "", before,
                         box_names[i], blank, text.n > 30 ? 30 : (int)text.n, text.s);
    }
    return ki_fail(err, KITH_EFORMAT,
                   "%s line %jd: found %s; wanted four numbers as x, y, w, h, w and h above 0", t->lines.name,
                   (intmax_t)t->lines.number, found);
}

/* Names are shown on terminals and pages; folders with such names are not read, either. */
static kith_status check_name(const ki_table *t, const char *column, ki_text name, kith_error *err) {
    for (size_t i = 0; i < name.n; i++) {
        if ((unsigned char)name.s[i] < 0x20 || name.s[i] == 0x7f)
            return fail_field(t, column, name, "a name without control characters", err);
    }
    return KITH_OK;
}

static kith_status read_row(kith_dataset *set, const char *folder, const ki_table *t, const columns *at,
                            kith_error *err) {
    const ki_text path = ki_table_field(t, at->path), label_text = ki_table_field(t, at->label);
    if (path.n == 0 || label_text.n == 0) return ki_lines_fail(&t->lines, t->line, "a path and a label", err);
    const ki_text super = ki_table_field(t, at->super), group = ki_table_field(t, at->group);
    KI_TRY(check_name(t, "label", label_text, err));
    KI_TRY(check_name(t, "superclass", super, err));
    KI_TRY(check_name(t, "group", group, err));
    kith_split split = KITH_SPLIT_TRAIN;
    const ki_text split_text = ki_table_field(t, at->split), role = ki_table_field(t, at->role);
    if (at->split >= 0 && !split_of(split_text, &split))
        return fail_field(t, "split", split_text, "train, validation or test", err);
    int32_t label = 0;
    ki_item *item = NULL;
    KI_TRY(ki_dataset_class(set, label_text.s, label_text.n, &label, err));
    KI_TRY(ki_dataset_add(set, folder, path.s, path.n, label, split, &item, err));
    if (!role_of(role, &item->role)) return fail_field(t, "role", role, "query, gallery or both", err);
    if (super.n) KI_TRY(ki_dataset_super_class(set, label, super.s, super.n, err));
    if (group.n) {
        int32_t number = 0;
        KI_TRY(ki_dataset_group(set, group.s, group.n, &number, err));
        item->group = number;
    }
    if (at->box[0] < 0 || ki_table_field(t, at->box[0]).n == 0) return KITH_OK;
    for (int i = 0; i < 4; i++) {
        double value = 0;
        if (!ki_text_double(ki_table_field(t, at->box[i]), &value) || !(value > -1e6 && value < 1e6) ||
            (i >= 2 && value <= 0))
            return fail_box(t, at, err);
        item->box[i] = (float)value;
    }
    item->has_box = true;
    return KITH_OK;
}

kith_status ki_csv_parse(kith_dataset *set, const char *folder, const char *text, size_t n, kith_error *err) {
    kith_status status = KITH_OK;
    ki_table t = ki_table_of("manifest", text, n);
    columns at = {0};
    bool more = false;
    KI_CHECK(read_header(&t, &at, err));
    for (;;) {
        KI_CHECK(ki_table_next(&t, &more, err));
        if (!more) break;
        KI_CHECK(read_row(set, folder, &t, &at, err));
    }
    status = at.split < 0 ? ki_dataset_halve(set, err) : ki_dataset_check_groups(set, err);
done:
    ki_table_release(&t);
    return status;
}

static bool found(const char *root) {
    const char *dot = strrchr(root, '.');
    return dot && strcasecmp(dot, ".csv") == 0 && ki_is_file("%s", root);
}

static kith_status read_csv(kith_dataset *set, const char *root, kith_error *err) {
    kith_status status = KITH_OK;
    ki_bytes bytes = {0};
    ki_path folder;
    KI_CHECK(ki_path_print(&folder, err, "%s", root));
    char *slash = strrchr(folder.s, '/');
    if (slash) *slash = '\0';
    KI_CHECK(ki_bytes_read(&bytes, root, err));
    status = ki_csv_parse(set, slash ? folder.s : ".", (char *)bytes.data, bytes.n, err);
    if (status != KITH_OK) ki_prefix(err, status, "%s", root);
done:
    ki_bytes_release(&bytes);
    return status;
}

const ki_dataset_kind ki_dataset_csv = {
    .name = "csv",
    .summary =
        "a CSV manifest: path, label and maybe split, role (query|gallery), box (x,y,w,h), group, superclass",
    .found = found,
    .read = read_csv,
};
