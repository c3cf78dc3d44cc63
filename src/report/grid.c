/* Test images with their nearest neighbours, as in Figure 3 of HORDE.
 *
 * A rule chooses which ones are shown. Of the queries looked at (all, or evenly spaced ones of a large set),
 * half are from those whose nearest neighbour is of another class, half from the others, evenly spaced
 * through the list. So the grid shows failures even if they are rare; the sentence above it says how rare. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "kith/knn.h"
#include "report/report.h"
#include "report/thumbnail.h"

enum { MOST_LOOKED_AT = 2000, SIDE = 88 };

typedef struct grid {
    ki_report *report;
    int64_t n, k;             /* queries looked at, neighbours of each */
    int64_t *row;             /* [n] of the test set */
    kith_neighbor *neighbor;  /* [n, k] */
    int64_t *wrong, *right;   /* places in row, by whether the nearest is of the same class */
    int64_t n_wrong, n_right; /* lone queries are in neither */
    ki_thumbnails thumbnails;
    uint8_t *rgb;
    int64_t n_failed;
} grid;

static const int64_t *labels_of(const grid *g) { return g->report->detail->labels.data; }

static kith_status search(grid *g, kith_error *err) {
    const ki_material *run = g->report->detail;
    const kith_array *all = &run->embedding;
    kith_status status = KITH_OK;
    kith_gallery *gallery = NULL;
    kith_array query = {0};
    int64_t *self = NULL;
    const kith_knn_options options = {.size = sizeof(kith_knn_options), .metric = KITH_COSINE, .exact = true};
    const size_t row_bytes = (size_t)all->dim[1] * kith_dtype_bytes(all->dtype);
    KI_CHECK(ki_alloc_or(&self, (size_t)g->n, sizeof *self, "query rows", err));
    KI_CHECK(kith_array_init(all->dtype, 2, (int64_t[]){g->n, all->dim[1]}, &query, err));
    for (int64_t i = 0; i < g->n; i++) {
        memcpy((char *)query.data + (size_t)i * row_bytes, (char *)all->data + (size_t)g->row[i] * row_bytes,
               row_bytes);
        self[i] = g->row[i];
    }
    KI_CHECK(kith_gallery_new(all, &options, &gallery, err));
    KI_CHECK(kith_gallery_search(gallery, &query, self, g->k, g->neighbor, err));
done:
    kith_gallery_free(gallery);
    kith_array_release(&query);
    ki_free(self);
    return status;
}

static bool is_lone(const grid *g, int64_t row) {
    const int64_t *label = labels_of(g);
    for (int64_t i = 0; i < g->report->detail->n_test; i++) {
        if (i != row && label[i] == label[row]) return false;
    }
    return true;
}

static void sort_out(grid *g) {
    const int64_t *label = labels_of(g);
    for (int64_t i = 0; i < g->n; i++) {
        const int64_t nearest = g->neighbor[i * g->k].index;
        if (nearest >= 0 && label[nearest] == label[g->row[i]])
            g->right[g->n_right++] = i;
        else if (!is_lone(g, g->row[i]))
            g->wrong[g->n_wrong++] = i;
    }
}

/* "folder/file.jpg": enough to find the image, without the location of the data set. */
static const char *path_tail(const char *path) {
    const char *tail = path + strlen(path);
    for (int n_slashes = 0; tail > path; tail--) {
        if (tail[-1] == '/' && ++n_slashes == 2) break;
    }
    return tail;
}

static const char *class_of(const grid *g, int64_t row, char buf[KI_CLASS_NUMBER]) {
    return ki_material_class(g->report->detail, labels_of(g)[row], buf);
}

static void put_class(grid *g, int64_t row, const char *before, const char *after) {
    char buf[KI_CLASS_NUMBER];
    ki_buffer_put(g->report->to, "%s", before);
    ki_buffer_escaped(g->report->to, class_of(g, row, buf));
    ki_buffer_put(g->report->to, "%s", after);
}

/* `before`, the class and `after` are the text for people who cannot see the picture. */
static void put_picture(grid *g, int64_t row, const char *before, const char *after) {
    ki_buffer *to = g->report->to;
    const ki_material *run = g->report->detail;
    kith_error why = {0};
    if (!run->path) {
        ki_buffer_put(to, "<span class=\"blank\">no picture</span>");
        return;
    }
    const kith_status status = ki_thumbnail_read(&g->thumbnails, run->path[row], SIDE, g->rgb, &why);
    if (status == KITH_ENOMEM) {
        to->status = ki_fail(to->err, status, "%s", why.message);
    } else if (status != KITH_OK) {
        char *first = g->report->why_unread;
        g->n_failed++;
        if (!*first) ki_snprintf(first, sizeof g->report->why_unread, "%.199s", why.message);
        ki_buffer_put(to, "<span class=\"blank\">no picture</span>");
    } else {
        ki_buffer_put(to, "<img width=\"%d\" height=\"%d\" alt=\"", (int)SIDE, (int)SIDE);
        put_class(g, row, before, after);
        ki_buffer_put(to, "\" src=\"");
        ki_thumbnail_uri(&g->thumbnails, g->rgb, SIDE, to);
        ki_buffer_put(to, "\">");
    }
}

static void put_title(grid *g, int64_t row, const char *before) {
    ki_buffer *to = g->report->to;
    const ki_material *run = g->report->detail;
    ki_buffer_put(to, " title=\"%s", before);
    if (run->path) ki_buffer_escaped(to, path_tail(run->path[row]));
    ki_buffer_put(to, "\">");
}

/* The line below a picture, and the end of its cell. */
static void put_caption(grid *g, int64_t row, const char *before) {
    ki_buffer_put(g->report->to, "<span>%s ", before);
    put_class(g, row, "", "</span></div>\n");
}

static void put_row(grid *g, int64_t i) {
    ki_buffer *to = g->report->to;
    const int64_t *label = labels_of(g), row = g->row[i];
    char before[64], after[64];
    const int columns = g->k < 12 ? (int)g->k + 1 : 13;
    ki_buffer_put(to, "<div class=\"hits\" style=\"--k:%d\">\n<div class=\"query\"", columns);
    put_title(g, row, "query: ");
    put_picture(g, row, "query of class ", "");
    put_caption(g, row, "query");
    for (int64_t k = 0; k < g->k && to->status == KITH_OK; k++) {
        const kith_neighbor hit = g->neighbor[i * g->k + k];
        if (hit.index < 0) break;
        const bool is_right = label[hit.index] == label[row];
        ki_buffer_put(to, "<div class=\"%s\"", is_right ? "right" : "wrong");
        ki_snprintf(before, sizeof before, "similarity %.3f: ", (double)hit.score);
        put_title(g, hit.index, before);
        ki_snprintf(after, sizeof after, ", similarity %.3f", (double)hit.score);
        put_picture(g, hit.index, is_right ? "right, class " : "wrong, class ", after);
        put_caption(g, hit.index, is_right ? "✓" : "✗");
    }
    ki_buffer_put(to, "</div>\n");
}

static void put_rows(grid *g, const char *title, const int64_t *list, int64_t n_list, int64_t n) {
    if (n == 0) return;
    ki_buffer_put(g->report->to, "<h3>%s</h3>\n", title);
    for (int64_t i = 0; i < n && g->report->to->status == KITH_OK; i++)
        put_row(g, list[(2 * i + 1) * n_list / (2 * n)]);
}

static void put_grid(grid *g) {
    ki_buffer *to = g->report->to;
    char a[KI_NUMBER_TEXT], b[KI_NUMBER_TEXT], c[KI_NUMBER_TEXT];
    const int64_t wanted = g->report->options->n_queries;
    int64_t n_wrong = wanted / 2 < g->n_wrong ? wanted / 2 : g->n_wrong;
    const int64_t n_right = wanted - n_wrong < g->n_right ? wanted - n_wrong : g->n_right;
    if (wanted - n_right > n_wrong) n_wrong = wanted - n_right < g->n_wrong ? wanted - n_right : g->n_wrong;
    const double part = (double)g->n_right / (double)(g->n_right + g->n_wrong);
    ki_buffer_put(
        to,
        "<p class=\"about\">The nearest neighbour is right for %s %% of the %s test images looked at. "
        "The grid shows %lld of the wrong and %lld of the right ones, evenly spaced through the test set "
        "of %s. A right neighbour has a solid frame and ✓, a wrong one a dashed frame and ✗; its class "
        "stands "
        "below it.</p>\n",
        ki_number_text(100 * part, 3, a), ki_count_text((double)(g->n_right + g->n_wrong), b),
        (long long)n_wrong, (long long)n_right, ki_count_text((double)g->report->detail->n_test, c));
    put_rows(g, "Nearest neighbour wrong", g->wrong, g->n_wrong, n_wrong);
    put_rows(g, "Nearest neighbour right", g->right, g->n_right, n_right);
    if (g->n_failed == 0) return;
    char line[320];
    ki_snprintf(line, sizeof line, "%lld pictures could not be read; the first: %s", (long long)g->n_failed,
                g->report->why_unread);
    ki_report_left_out(g->report, line);
}

static kith_status make_grid(grid *g, kith_error *err) {
    const int64_t n = g->report->detail->n_test;
    g->k = g->report->options->n_neighbors;
    g->n = n < MOST_LOOKED_AT ? n : MOST_LOOKED_AT;
    KI_TRY(ki_alloc_or(&g->row, (size_t)g->n, sizeof *g->row, "query rows", err));
    KI_TRY(ki_alloc_or(&g->wrong, (size_t)g->n, sizeof *g->wrong, "query rows", err));
    KI_TRY(ki_alloc_or(&g->right, (size_t)g->n, sizeof *g->right, "query rows", err));
    KI_TRY(ki_alloc_or(&g->neighbor, (size_t)g->n * (size_t)g->k, sizeof *g->neighbor, "neighbours", err));
    KI_TRY(ki_alloc_or(&g->rgb, SIDE * SIDE, 3, "a thumbnail", err));
    for (int64_t i = 0; i < g->n; i++) g->row[i] = i * n / g->n;
    KI_TRY(search(g, err));
    sort_out(g);
    if (g->n_right + g->n_wrong == 0)
        return ki_fail(err, KITH_EINVAL, "no class of the test set has two images");
    return KITH_OK;
}

kith_status ki_report_grid(ki_report *r) {
    kith_status status = KITH_OK;
    char recipe[4096];
    grid g = {.report = r};
    if (r->options->n_queries == 0 || r->detail->is_features) return KITH_OK;
    ki_report_section(r, "grid", "Nearest neighbours", NULL);
    ki_report_part(r, r->detail, KI_PART_TEST);
    if (r->detail->n_test > 0) {
        kith_error why = {0};
        const int n = ki_snprintf(recipe, sizeof recipe, "%s/recipe.yaml", r->detail->folder);
        if (r->detail->recipe && n > 0 && (size_t)n < sizeof recipe) g.thumbnails.recipe = recipe;
        g.thumbnails.paths = &r->detail->paths;
        status = make_grid(&g, &why);
        if (status == KITH_OK) {
            put_grid(&g);
        } else if (status != KITH_ENOMEM) {
            ki_report_left_out(r, why.message);
            status = KITH_OK;
        } else if (r->err) {
            *r->err = why;
        }
    }
    ki_report_section_end(r);
    ki_thumbnails_release(&g.thumbnails);
    ki_free(g.row);
    ki_free(g.wrong);
    ki_free(g.right);
    ki_free(g.neighbor);
    ki_free(g.rgb);
    return status != KITH_OK ? status : r->to->status;
}
