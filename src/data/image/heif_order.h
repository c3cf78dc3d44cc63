/* HEIF files whose properties are in an order that newer decoders misread. */
#ifndef KI_IMAGE_HEIF_ORDER_H
#define KI_IMAGE_HEIF_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does an image's list of properties name a quarter turn before the size? Then the size is that of the turned image: libheif wrote files so
 * up to 1.15. The standard (ISO 23008-12) wants the size first, of the image before it is turned, and cameras write it so. libheif 1.19
 * turns the wrong size once more, 1.23 refuses the file.
 *
 * If `copy` is not NULL, it holds the same bytes, and such lists and sizes are put into the standard's order there. False for bytes that are no
 * such file. */
bool ki_heif_turns_first(const uint8_t *bytes, size_t n_bytes, uint8_t *copy);

#endif
