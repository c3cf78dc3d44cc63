/* Pair weights against similarity, as in Figure 1 of the unified view: one dot per pair, and the mean
 * weight over bins of similarity as a line. */
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/atomic.h"
#include "base/buffer.h"
#include "base/text.h"
#include "io/svg.h"
#include "objective/handle/handle.h"

enum {
    WIDTH = 720,
    HEIGHT = 440,
    LEFT = 70,
    RIGHT = 20,
    TOP = 40,
    BOTTOM = 50,
    MOST_DOTS = 3000,
    N_BINS = 40
};

static void put_axes(ki_buffer *t, const ki_axes *a, const char *loss) {
    char title[128];
    ki_snprintf(title, sizeof title, "%s: weight of a pair against its similarity", loss);
    ki_svg_open_file(t, WIDTH, HEIGHT,
                     "width=\"720\" height=\"440\" font-family=\"sans-serif\" font-size=\"12\"");
    ki_buffer_put(t,
                  "<style>.axis path{stroke:#ddd}</style>\n"
                  "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n");
    ki_svg_text(t, title, "x=\"%d\" y=\"22\" font-size=\"15\"", LEFT);
    ki_axes_put(t, a);
    ki_svg_text(t, "similarity", "x=\"%d\" y=\"%d\" text-anchor=\"middle\"", (WIDTH + LEFT) / 2, HEIGHT - 12);
}

/* The dots of one kind: every k-th of its pairs, so that no more than MOST_DOTS are drawn. */
static void put_dots(ki_buffer *t, const ki_axes *a, const kith_array *weight, const kith_array *similarity,
                     const uint8_t *kind, int wanted, const char *colour) {
    const float *w = weight->data, *s = similarity->data;
    const int64_t n = weight->dim[0] * weight->dim[1];
    double sum[N_BINS] = {0}, sum_s[N_BINS] = {0};
    int64_t count[N_BINS] = {0}, n_kind = 0, seen = 0;
    for (int64_t i = 0; i < n; i++) n_kind += kind[i] == wanted;
    const int64_t every = n_kind / MOST_DOTS + 1;
    ki_buffer_put(t, "<g fill=\"%s\" fill-opacity=\"0.35\">\n", colour);
    for (int64_t i = 0; i < n; i++) {
        if (kind[i] != wanted) continue;
        int bin = (int)((s[i] - a->x0) / (a->x1 - a->x0) * N_BINS);
        bin = bin < 0 ? 0 : bin > N_BINS - 1 ? N_BINS - 1 : bin;
        sum[bin] += w[i], sum_s[bin] += s[i], count[bin]++;
        if (seen++ % every != 0) continue;
        ki_svg_element(t, "circle", "cx=\"%.1f\" cy=\"%.1f\" r=\"1.8\"", ki_axes_x(a, s[i]),
                       ki_axes_y(a, w[i]));
        ki_buffer_put(t, "\n");
    }
    ki_buffer_put(t, "</g>\n");
    ki_svg_list_open(t, "polyline", "points", "fill=\"none\" stroke=\"%s\" stroke-width=\"2\"", colour);
    for (int b = 0; b < N_BINS; b++) {
        if (count[b])
            ki_svg_point(t, ki_axes_x(a, sum_s[b] / (double)count[b]),
                         ki_axes_y(a, sum[b] / (double)count[b]));
    }
    ki_svg_list_close(t);
}

static void put_legend(ki_buffer *t) {
    static const struct {
        const char *name, *colour;
    } kinds[] = {{"positive pairs", "#1b7f79"}, {"negative pairs", "#d95f02"}};
    for (int i = 0; i < 2; i++) {
        const int y = 55 + 20 * i;
        ki_svg_element(t, "circle", "cx=\"%d\" cy=\"%d\" r=\"4\" fill=\"%s\"", WIDTH - 130, y,
                       kinds[i].colour);
        ki_svg_text(t, kinds[i].name, "x=\"%d\" y=\"%d\"", WIDTH - 120, y + 4);
    }
    ki_svg_close(t);
}

/* Similarities along x, weights along y. */
static ki_axes axes_of(const kith_array *weight, const kith_array *similarity, const uint8_t *kind) {
    const float *w = weight->data, *s = similarity->data;
    ki_axes a = {.w = WIDTH,
                 .h = HEIGHT,
                 .left = LEFT,
                 .right = RIGHT,
                 .top = TOP,
                 .bottom = BOTTOM,
                 .x0 = INFINITY,
                 .x1 = -INFINITY,
                 .scale_y = 1};
    for (int64_t i = 0; i < weight->dim[0] * weight->dim[1]; i++) {
        if (!kind[i]) continue;
        a.x0 = fmin(a.x0, s[i]), a.x1 = fmax(a.x1, s[i]);
        a.y0 = fmin(a.y0, w[i]), a.y1 = fmax(a.y1, w[i]);
    }
    if (!(a.x1 - a.x0 > 1e-6)) a.x0 = -1, a.x1 = 1;
    if (!(a.y1 - a.y0 > 1e-12)) a.y1 = a.y0 + 1;
    return a;
}

/* The columns here are the batch or the proxies, never a memory of earlier batches. */
static void find_kinds(const kith_batch *batch, int64_t n_columns, int64_t n_centers, uint8_t *kind) {
    for (int64_t i = 0; i < batch->n; i++) {
        for (int64_t j = 0; j < n_columns; j++) {
            const bool is_same =
                n_centers ? batch->labels[i] == j / n_centers : batch->labels[i] == batch->labels[j];
            kind[i * n_columns + j] = !n_centers && i == j ? 0 : is_same ? 1 : 2;
        }
    }
}

kith_status kith_objective_plot(kith_objective *objective, const kith_batch *batch, const char *path,
                                kith_error *err) {
    KI_NEED(err, objective, batch, path);
    kith_array weight = {0}, similarity = {0};
    uint8_t *kind = NULL;
    ki_buffer t = {.err = err};
    kith_status status = KITH_OK;
    KI_TRY(kith_objective_weights(objective, batch, &weight, &similarity, err));
    KI_CHECK(ki_alloc_or(&kind, (size_t)(weight.dim[0] * weight.dim[1]), 1, "kinds of pairs", err));
    find_kinds(batch, weight.dim[1], ki_objective_centers(objective->core), kind);
    const ki_axes a = axes_of(&weight, &similarity, kind);
    put_axes(&t, &a, ki_objective_loss(objective->core)->method.name);
    put_dots(&t, &a, &weight, &similarity, kind, 2, "#d95f02");
    put_dots(&t, &a, &weight, &similarity, kind, 1, "#1b7f79");
    put_legend(&t);
    KI_CHECK(t.status);
    KI_CHECK(ki_file_write(path, t.data, t.n, err));
done:
    ki_buffer_release(&t);
    ki_free(kind);
    kith_array_release(&weight);
    kith_array_release(&similarity);
    return status;
}
