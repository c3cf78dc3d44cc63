/* Reading the sides of training batches: `sides` of the `input:` section. */
#include "base/text.h"
#include "data/input.h"

static kith_status fail_list(const ki_value *list, kith_error *err) {
    char found[80];
    ki_fail(err, KITH_EINVAL, "input: sides is %s; wanted 1 to %d rising whole numbers from 1 to 4096",
            ki_value_describe(list, found, sizeof found), KI_MOST_CROP_SIDES);
    return ki_hint(err, KITH_EINVAL, "as in sides: [128, 160, 192]");
}

static kith_status read_list(const ki_value *list, ki_crop_sides *ret, kith_error *err) {
    int64_t before = 0;
    if (list->kind != KI_VALUE_LIST || list->n_items < 1 || list->n_items > KI_MOST_CROP_SIDES)
        return fail_list(list, err);
    *ret = (ki_crop_sides){0};
    for (const ki_value *v = list->first; v; v = v->next) {
        int64_t side = 0;
        if (v->kind != KI_VALUE_SCALAR || !ki_parse_whole(v->text, &side) || side <= before || side > 4096)
            return fail_list(list, err);
        ret->side[ret->n++] = (int32_t)side;
        before = side;
    }
    return KITH_OK;
}

kith_status ki_input_sides(const ki_value *map, const kith_transform *train, ki_crop_sides *ret,
                           kith_error *err) {
    const ki_value *list = ki_value_get(map, "sides");
    ki_crop_sides sides = {0};
    char text[120];
    bool has_own = false;
    *ret = sides;
    if (!list || list->kind == KI_VALUE_NULL || (list->kind == KI_VALUE_LIST && list->n_items == 0))
        return KITH_OK;
    KI_TRY(read_list(list, &sides, err));
    for (int i = 0; i < sides.n; i++) has_own |= sides.side[i] == train->crop_to;
    if (!has_own) {
        ki_fail(err, KITH_EINVAL, "input: crop is %d and no batch has it: sides is %s", train->crop_to,
                ki_crop_sides_text(&sides, text, sizeof text));
        return ki_hint(err, KITH_EINVAL, "make crop one of the sides");
    }
    if (sides.n > 1) *ret = sides;
    return KITH_OK;
}
