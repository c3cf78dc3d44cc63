/* Writing items as rows of a manifest, with the columns that csv.c reads. */
#include "data/dataset/dataset.h"
#include "data/dataset/table.h"

ki_list_rows ki_list_rows_of(const kith_dataset *set) {
    ki_list_rows m = {0};
    for (size_t i = 0; i < set->n_items; i++) {
        const ki_item *item = &set->item[i];
        m.roles |= item->role != KITH_ROLE_BOTH;
        m.boxes |= item->has_box;
        m.supers |= item->label >= 0 && set->class_[item->label].super > 0 && set->supers;
        m.groups |= item->group > 0 && set->groups;
    }
    return m;
}

void ki_list_rows_head(const ki_list_rows *m, ki_buffer *out) {
    ki_buffer_put(out, "path,label,split%s%s%s%s\n", m->roles ? ",role" : "", m->boxes ? ",x,y,w,h" : "",
                  m->groups ? ",group" : "", m->supers ? ",superclass" : "");
}

void ki_list_rows_row(const ki_list_rows *m, const kith_dataset *set, const ki_item *item, const char *path,
                      kith_split split, ki_buffer *out) {
    static const char *const roles[] = {
        [KITH_ROLE_BOTH] = "both", [KITH_ROLE_QUERY] = "query", [KITH_ROLE_GALLERY] = "gallery"};
    const ki_class *c = &set->class_[item->label];
    ki_table_put(out, path);
    ki_buffer_add(out, ",", 1);
    ki_table_put(out, m->names ? c->name : c->key);
    ki_buffer_put(out, ",%s", kith_split_name(split));
    if (m->roles) ki_buffer_put(out, ",%s", roles[item->role]);
    for (int i = 0; m->boxes && i < 4; i++) {
        ki_buffer_add(out, ",", 1);
        if (item->has_box) ki_buffer_put(out, "%.9g", (double)item->box[i]);
    }
    if (m->groups) ki_buffer_add(out, ",", 1);
    if (m->groups && item->group) ki_table_put(out, set->groups->class_[item->group - 1].key);
    if (m->supers) ki_buffer_add(out, ",", 1);
    if (m->supers && c->super) ki_table_put(out, set->supers->class_[c->super - 1].key);
    ki_buffer_add(out, "\n", 1);
}
