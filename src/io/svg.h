/* SVG written into a buffer: the drawing, its elements, and axes with round numbers.
 *
 * The caller writes attributes as they appear in the file ("class=\"dot\" r=\"%.1f\""); they must not contain data from
 * outside. Texts may, and are escaped here. Numbers follow the thread's locale, as a buffer's do. */
#ifndef KI_SVG_H
#define KI_SVG_H

#include "base/buffer.h"

/* A drawing of w by h units: a file of its own, with its namespace and more attributes (NULL: none), or part of a page,
 * with a class for its style sheet and a label for screen readers. */
void ki_svg_open_file(ki_buffer *to, int w, int h, const char *attributes);
void ki_svg_open_in_page(ki_buffer *to, const char *class_, int w, int h, const char *label);
void ki_svg_close(ki_buffer *to);

/* <name attributes/>, without a line's end. */
void ki_svg_element(ki_buffer *to, const char *name, const char *attributes, ...) KITH_PRINTF(3, 4);
/* <text attributes>text</text> and a line's end. */
void ki_svg_text(ki_buffer *to, const char *text, const char *attributes, ...) KITH_PRINTF(3, 4);
/* <name attributes list=" … "/> and a line's end: the points of a polyline, the steps of a path. */
void ki_svg_list_open(ki_buffer *to, const char *name, const char *list, const char *attributes, ...)
    KITH_PRINTF(4, 5);
void ki_svg_point(ki_buffer *to, double x, double y);
void ki_svg_list_close(ki_buffer *to);

/* A frame in a drawing, and the ranges of its axes. */
typedef struct ki_axes {
    int w, h, left, right, top, bottom; /* the drawing, and the margins around the frame */
    double x0, x1, y0, y1;              /* ranges; already log10 where is_log_y, is_log_x */
    bool is_log_y, is_log_x;
    double scale_y; /* shown = value * scale_y: 100 for percent */
} ki_axes;

double ki_axes_x(const ki_axes *axes, double x);
double ki_axes_y(const ki_axes *axes, double y);

enum { KI_MOST_TICKS = 12 };
/* Round numbers from low to high, about `wanted` of them: 1, 2 or 5 times a power of ten. With is_log the range is
 * log10 and the ticks are powers of ten, with 2 and 5 between them when there are few. Returns how many. */
int ki_axes_ticks(double low, double high, bool is_log, int wanted, double ret[KI_MOST_TICKS]);
/* Grid lines and numbers, in a group of class "axis". */
void ki_axes_put(ki_buffer *to, const ki_axes *axes);

#endif
