/* The embedding map: t-SNE of some test images, with pictures where there is room. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/svg.h"
#include "map/drawing.h"
#include "report/report.h"
#include "report/thumbnail.h"

enum { SIZE = 1000, SIDE = 34, LEAST_POINTS = 8, ITERATIONS = 400 };

typedef struct map {
    ki_report *report;
    int64_t n;
    int64_t *row;         /* [n] of the test set, evenly spaced */
    int64_t *label;       /* [n] */
    const char **path;    /* [n], or NULL */
    kith_array some, map; /* [n, dim], [n, 2] */
    ki_drawing drawing;
    ki_thumbnails thumbnails;
    kith_map_report drawn;
} map;

static kith_status read_thumbnail(void *user, const char *path, int size, uint8_t *rgb, kith_error *err) {
    return ki_thumbnail_read(user, path, size, rgb, err);
}

static kith_status choose(map *m, kith_error *err) {
    const ki_material *run = m->report->detail;
    const int64_t all = run->n_test, most = m->report->options->n_points;
    const size_t row_bytes = (size_t)run->embedding.dim[1] * kith_dtype_bytes(run->embedding.dtype);
    m->n = all < most ? all : most;
    if (m->n < LEAST_POINTS)
        return ki_fail(err, KITH_EINVAL, "%lld test images are too few for a map; wanted at least %d",
                       (long long)m->n, (int)LEAST_POINTS);
    KI_TRY(ki_alloc_or(&m->row, (size_t)m->n, sizeof *m->row, "map rows", err));
    KI_TRY(ki_alloc_or(&m->label, (size_t)m->n, sizeof *m->label, "map labels", err));
    if (run->path) KI_TRY(ki_alloc_or(&m->path, (size_t)m->n, sizeof *m->path, "map paths", err));
    KI_TRY(kith_array_init(run->embedding.dtype, 2, (int64_t[]){m->n, run->embedding.dim[1]}, &m->some, err));
    for (int64_t i = 0; i < m->n; i++) {
        const int64_t row = i * all / m->n;
        m->row[i] = row;
        m->label[i] = ((const int64_t *)run->labels.data)[row];
        if (m->path) m->path[i] = run->path[row];
        memcpy((char *)m->some.data + (size_t)i * row_bytes,
               (const char *)run->embedding.data + (size_t)row * row_bytes, row_bytes);
    }
    return KITH_OK;
}

static kith_status make_map(map *m, kith_error *err) {
    KI_TRY(choose(m, err));
    KITH_OPTIONS(kith_tsne_options, tsne);
    tsne.n_iterations = ITERATIONS;
    KI_TRY(kith_tsne(&m->some, &tsne, &m->map, NULL, err));
    const kith_map_drawing from = {.size = sizeof(kith_map_drawing),
                                   .map = &m->map,
                                   .labels = m->label,
                                   .side = SIZE,
                                   .paths = m->path,
                                   .thumbnail = read_thumbnail,
                                   .user = &m->thumbnails,
                                   .thumbnail_size = SIDE};
    return ki_drawing_init(&from, &m->drawing, &m->drawn, err);
}

static void put_title(void *user, int64_t i, ki_buffer *to) {
    const map *m = user;
    char buf[KI_CLASS_NUMBER];
    ki_buffer_put(to, "<title>class ");
    ki_buffer_escaped(to, ki_material_class(m->report->detail, m->label[i], buf));
    if (m->path) {
        const char *slash = strrchr(m->path[i], '/');
        ki_buffer_put(to, ": ");
        ki_buffer_escaped(to, slash ? slash + 1 : m->path[i]);
    }
    ki_buffer_put(to, "</title>");
}

static void put_uri(void *user, const uint8_t *rgb, int size, ki_buffer *to) {
    map *m = user;
    ki_thumbnail_uri(&m->thumbnails, rgb, size, to);
}

static void put_map(map *m) {
    ki_buffer *to = m->report->to;
    const ki_drawing_style style = {
        .n_places = 1, .border = 2, .put_title = put_title, .put_uri = put_uri, .user = m};
    ki_svg_open_in_page(to, "map", m->drawing.size, m->drawing.size, "map of test embeddings");
    ki_drawing_marks(&m->drawing, &style, to);
    ki_svg_close(to);
    if (m->drawn.n_failed == 0) return;
    char line[96];
    ki_snprintf(line, sizeof line, "pictures of the map that could not be read, and are dots: %lld",
                (long long)m->drawn.n_failed);
    ki_report_left_out(m->report, line);
}

kith_status ki_report_map(ki_report *r) {
    kith_status status = KITH_OK;
    kith_error why = {0};
    char recipe[4096];
    map m = {.report = r};
    if (r->options->n_points == 0) return KITH_OK;
    ki_report_section(r, "map", "Embedding map", NULL);
    if (r->detail->n_test == 0) {
        ki_report_part(r, r->detail, KI_PART_TEST);
        ki_report_section_end(r);
        return r->to->status;
    }
    const int n = ki_snprintf(recipe, sizeof recipe, "%s/recipe.yaml", r->detail->folder);
    if (r->detail->recipe && n > 0 && (size_t)n < sizeof recipe) m.thumbnails.recipe = recipe;
    m.thumbnails.paths = &r->detail->paths;
    status = make_map(&m, &why);
    if (status == KITH_OK) {
        char a[KI_NUMBER_TEXT], b[KI_NUMBER_TEXT];
        char which[2 * KI_NUMBER_TEXT + 40];
        if (m.n == r->detail->n_test)
            ki_snprintf(which, sizeof which, "all %s test images", ki_count_text((double)m.n, a));
        else
            ki_snprintf(which, sizeof which, "%s of the %s test images, evenly spaced",
                        ki_count_text((double)m.n, a), ki_count_text((double)r->detail->n_test, b));
        ki_buffer_put(
            r->to,
            "<p class=\"about\">t-SNE of %s: classes the network never saw. The colour is the class (with "
            "many classes colours come close). Near means alike; distances between far groups mean "
            "little.</p>\n",
            which);
        put_map(&m);
    } else if (status != KITH_ENOMEM) {
        ki_report_left_out(r, why.message);
        status = KITH_OK;
    } else if (r->err) {
        *r->err = why;
    }
    ki_report_section_end(r);
    ki_drawing_release(&m.drawing);
    ki_thumbnails_release(&m.thumbnails);
    kith_array_release(&m.some);
    kith_array_release(&m.map);
    ki_free(m.row);
    ki_free(m.label);
    ki_free(m.path);
    return status != KITH_OK ? status : r->to->status;
}
