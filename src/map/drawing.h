/* An embedding map as shapes on a square canvas, before it becomes SVG or PNG. */
#ifndef KI_DRAWING_H
#define KI_DRAWING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "kith/map.h"

typedef struct ki_drawing_mark {
    double x, y; /* pixels from the top left */
    uint8_t colour[3];
    int32_t thumbnail; /* place in thumbnails, or -1: a dot */
} ki_drawing_mark;

typedef struct ki_drawing {
    int size, thumbnail_size;
    double radius;
    const char *title;
    const char *const *names; /* [n_marks], or NULL */
    int64_t n_marks;
    ki_drawing_mark *mark;
    int64_t n_thumbnails;
    uint8_t *rgb; /* [n_thumbnails, thumbnail_size, thumbnail_size, 3] */
} ki_drawing;

kith_status ki_drawing_init(const kith_map_drawing *from, ki_drawing *ret_drawing,
                            kith_map_report *ret_report, kith_error *err);
void ki_drawing_release(ki_drawing *drawing);

/* How marks become SVG. */
typedef struct ki_drawing_style {
    int n_places;                                            /* digits after the point */
    int border;                                              /* of pictures, in their label's colour */
    void (*put_title)(void *user, int64_t i, ki_buffer *to); /* a <title> for mark i; NULL: none */
    void (*put_uri)(void *user, const uint8_t *rgb, int size, ki_buffer *to); /* a picture as a data: URI */
    void *user;
} ki_drawing_style;

/* The marks alone, as elements for a drawing that is size by size. */
void ki_drawing_marks(const ki_drawing *drawing, const ki_drawing_style *style, ki_buffer *to);
/* The whole picture as a file's bytes, added to the buffer. */
void ki_drawing_svg(const ki_drawing *drawing, ki_buffer *to);
void ki_drawing_png(const ki_drawing *drawing, ki_buffer *to);

/* PNG bytes of an RGB image. */
void ki_drawing_encode(const uint8_t *rgb, int width, int height, ki_buffer *to);

#endif
