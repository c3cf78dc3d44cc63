/* The steps from a decoded image to one item of a batch (kith_transform in kith/data.h says which).
 *
 *   decoded ─box, resize─► base ─draw a crop─► part ─(resample) crop, mirror─► view ─effects, order, mean/std─► item
 *
 * The base depends on the file and the settings alone, so it may be cached. The crop is drawn from a
 * stream named by (seed, epoch, item), the effects from another with the same name. */
#ifndef KI_TRANSFORM_H
#define KI_TRANSFORM_H

#include "base/rng.h"
#include "data/effect/effect.h"
#include "data/image/image.h"
#include "data/transform/resample.h"
#include "kith/data.h"

/* Scratch memory of one thread; zero-initialise. */
typedef struct ki_transform_scratch {
    ki_resampler resampler;
    ki_image part;
    ki_effect_view view; /* only where there are effects */
    uint32_t *row;
    size_t row_capacity;
} ki_transform_scratch;

void ki_transform_scratch_release(ki_transform_scratch *scratch);

/* What ki_decode.least_side may be for this transform. A box is in pixels of the full-size image, so the
 * image must be decoded at full size. */
int32_t ki_transform_least_side(const kith_transform *transform, bool has_box);
/* Does the transform draw random numbers? */
bool ki_transform_is_random(const kith_transform *transform);

/* box: four numbers as in kith_item, or NULL. A box that leaves the image is cut to it; one that misses
 * the image altogether is KITH_EINVAL. src and ret_base may swap their memory. */
kith_status ki_transform_base(const kith_transform *transform, const double *box, ki_image *src,
                              ki_transform_scratch *scratch, ki_image *ret_base, kith_error *err);

/* The part `from` of src as small as this transform lets it be: the items that the transform makes of the part and of dst have the same
 * bits, as long as nothing is drawn at random. It is resized, or cut to the middle where nothing is; what would become larger stays
 * as it is. An image that was decoded at a part of its size keeps the aspect that it has in full, as its base does. ret_shown: what dst
 * shows of src. src and dst are different images. */
kith_status ki_transform_shrink(const kith_transform *transform, const ki_image *src, ki_rect from,
                                ki_transform_scratch *scratch, ki_image *dst, ki_rect *ret_shown,
                                kith_error *err);
/* The same for the part in a box (x, y, width, height in pixels of the whole image; NULL: all of it), of an image that was mirrored
 * (ki_image_swap_sides) if is_mirrored says so; the box is that of the upright image all the same. ret_shown: what dst shows, in pixels of
 * full_w x full_h. KITH_EINVAL when the box misses the image. */
kith_status ki_transform_shrink_part(const kith_transform *transform, const ki_image *src, const double *box,
                                     bool is_mirrored, ki_transform_scratch *scratch, ki_image *dst,
                                     double ret_shown[4], kith_error *err);
/* The width and height that it gives a part of w x h pixels. */
void ki_transform_shrunk(const kith_transform *transform, int32_t *w, int32_t *h);

/* What one image gets: the part `from` of the base, resized to full_w x full_h; `window` of that is put at
 * (x, y) of the output, and the rest is background. */
typedef struct ki_draw {
    ki_rect from;
    int32_t full_w, full_h;
    ki_rect window;
    int32_t x, y;
    bool mirror;
    ki_rng effects; /* their stream, not begun */
} ki_draw;

ki_draw ki_transform_draw(const kith_transform *transform, int32_t base_w, int32_t base_h, ki_rng *rng);

/* The views of a test: 0 is the draw of a centre crop as it is, 1 its mirror image, then the crops at the four corners (top left, bottom right,
 * top right, bottom left), and their mirror images. Where an image is no larger than the crop, its corners are its middle. */
enum { KI_N_TEST_VIEWS = 10 };
void ki_draw_test_view(const kith_transform *transform, int view, ki_draw *draw);

/* Of an image of w x h pixels itself what a transform that is not random shows of its base: the base of a narrow image is many times as
 * large. The items have the same bits. Not for KITH_RESIZE_PAD, whose base has a margin. */
ki_draw ki_transform_draw_image(const kith_transform *transform, int32_t w, int32_t h);

/* Write one item: float [channels, crop_to, crop_to], ordered and normalised … */
kith_status ki_transform_float(const kith_transform *transform, const ki_image *base, const ki_draw *draw,
                               ki_transform_scratch *scratch, float *ret_item, kith_error *err);
/* … or bytes [crop_to, crop_to, channels], RGB, neither reordered nor normalised (a device does that). */
kith_status ki_transform_bytes(const kith_transform *transform, const ki_image *base, const ki_draw *draw,
                               ki_transform_scratch *scratch, uint8_t *ret_item, kith_error *err);

/* What a transform that is not random shows of an image of w x h pixels: x, y, width, height in these pixels. It reaches beyond
 * the image where there is background. */
void ki_transform_view(const kith_transform *transform, int32_t w, int32_t h, double ret_view[4]);

/* The side of the base if it is a square of the same size for every image and a window of it is shown, so
 * that a device can cut the window; 0 otherwise. */
int32_t ki_transform_window_side(const kith_transform *transform);
/* The whole base as bytes [side, side, channels] with side as above: a base of another size is KITH_EINTERNAL. */
kith_status ki_transform_whole(const kith_transform *transform, const ki_image *base, uint8_t *ret_item,
                               kith_error *err);

#endif
