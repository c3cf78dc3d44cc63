/* kith_map_draw: a picture of a map, made in memory and written whole. */
#include "kith/map.h"

#include <string.h>
#include <strings.h>

#include "base/argument.h"
#include "base/atomic.h"
#include "map/drawing.h"

KI_OPTIONS_INIT(kith_map_drawing, .side = 1600, .thumbnail_size = 32)

kith_status kith_map_draw(const kith_map_drawing *drawn, const char *path, kith_map_report *ret_report,
                          kith_error *err) {
    KI_NEED(err, path);
    KI_OPTIONS_TAKE(kith_map_drawing, from, drawn, err);
    const char *end = strrchr(path, '.');
    const bool is_svg = end && strcasecmp(end, ".svg") == 0, is_png = end && strcasecmp(end, ".png") == 0;
    if (!is_svg && !is_png)
        return ki_fail(err, KITH_EINVAL, "the picture is to be '%s'; wanted a name ending in .svg or .png",
                       path);
    kith_status status = KITH_OK;
    kith_map_report report = {0};
    ki_drawing drawing = {0};
    ki_buffer bytes = {.err = err};
    KI_CHECK(ki_drawing_init(&from, &drawing, &report, err));
    if (is_svg)
        ki_drawing_svg(&drawing, &bytes);
    else
        ki_drawing_png(&drawing, &bytes);
    KI_CHECK(bytes.status);
    KI_CHECK(ki_file_write(path, bytes.data, bytes.n, err));
    if (ret_report) *ret_report = report;
done:
    ki_buffer_release(&bytes);
    ki_drawing_release(&drawing);
    return status;
}
