/* The `input:` section of a recipe: how images become network input, for training and for testing.
 *
 *     input: {resize: squash256, crop: 227, mirror: true}
 *     input: {resize: none, augment: resized, scale: [0.16, 1], crop: 227, test_resize: shorter256}
 *     input: {resize: atmost256, augment: resized, crop: 160, sides: [128, 160, 192], test_crop: 192}
 *     input: {resize: none, augment: multiscale, scale: [0.8, 1.8], crop: 256, test_resize: squash293}
 *
 * Channel order, mean and std are not part of it: they belong to the model (kith_preprocess). */
#ifndef KI_INPUT_H
#define KI_INPUT_H

#include "base/option.h"
#include "data/transform/crop_sides.h"

extern const ki_option ki_input_options[];

/* Defaults where map is NULL. ret_train is random, ret_test is not (centre crop, no mirror). */
kith_status ki_input_parse(const ki_value *map, kith_transform *ret_train, kith_transform *ret_test,
                           kith_error *err);

/* The sides of training batches, which map (may be NULL) has for a training transform; none where they are the transform's own alone. */
kith_status ki_input_sides(const ki_value *map, const kith_transform *train, ki_crop_sides *ret_sides,
                           kith_error *err);

/* "squash256", "pad256", "shorter256", "atmost512", "none". */
kith_status ki_resize_parse(const char *text, kith_resize *ret_resize, int *ret_to, kith_error *err);
/* The reverse, into buf, which is returned. */
const char *ki_resize_text(const kith_transform *transform, char *buf, size_t buf_bytes);
/* "bilinear", "bicubic", "lanczos". */
kith_status ki_filter_parse(const char *text, kith_filter *ret_filter, kith_error *err);
const char *ki_filter_name(kith_filter filter);

#endif
