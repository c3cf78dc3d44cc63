/* Pair weights against similarity, as in Figure 1 of the unified view: one dot per pair, and the mean
 * weight over bins of similarity as a line. */
#include <math.h>

#include "api/objective_handle.h"
#include "core/alloc.h"
#include "core/atomic.h"
#include "core/buffer.h"

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

typedef struct frame {
    double least_s, most_s, least_w, most_w;
} frame;

static double x_of(const frame *f, double s) {
    return LEFT + (s - f->least_s) / (f->most_s - f->least_s) * (WIDTH - LEFT - RIGHT);
}
static double y_of(const frame *f, double w) {
    return HEIGHT - BOTTOM - (w - f->least_w) / (f->most_w - f->least_w) * (HEIGHT - TOP - BOTTOM);
}

/* 1, 2 or 5 times a power of ten, such that about five of them span the range. */
static double tick_step(double range) {
    const double raw = range / 5, power = pow(10, floor(log10(raw))), digit = raw / power;
    return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

static void put_axes(ki_buffer *t, const frame *f, const char *title) {
    ki_buffer_put(
        t,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" "
        "fill=\"white\"/>\n",
        WIDTH, HEIGHT, WIDTH, HEIGHT);
    ki_buffer_put(
        t, "<text x=\"%d\" y=\"22\" font-size=\"15\">%s: weight of a pair against its similarity</text>\n",
        LEFT, title);
    const double step_s = tick_step(f->most_s - f->least_s), step_w = tick_step(f->most_w - f->least_w);
    const long first_s = lround(ceil(f->least_s / step_s)), last_s = lround(floor(f->most_s / step_s + 1e-9));
    const long first_w = lround(ceil(f->least_w / step_w)), last_w = lround(floor(f->most_w / step_w + 1e-9));
    for (long i = first_s; i <= last_s; i++) {
        const double s = (double)i * step_s;
        ki_buffer_put(t,
                      "<path d=\"M%.1f %dV%d\" stroke=\"#ddd\"/><text x=\"%.1f\" y=\"%d\" "
                      "text-anchor=\"middle\">%.3g</text>\n",
                      x_of(f, s), TOP, HEIGHT - BOTTOM, x_of(f, s), HEIGHT - BOTTOM + 18, s);
    }
    for (long i = first_w; i <= last_w; i++) {
        const double w = (double)i * step_w;
        ki_buffer_put(t,
                      "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" "
                      "text-anchor=\"end\">%.3g</text>\n",
                      LEFT, y_of(f, w), WIDTH - RIGHT, LEFT - 6, y_of(f, w) + 4, w);
    }
    ki_buffer_put(t, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">similarity</text>\n", (WIDTH + LEFT) / 2,
                  HEIGHT - 12);
}

/* The dots of one kind: every k-th of its pairs, so that no more than MOST_DOTS are drawn. */
static void put_dots(ki_buffer *t, const frame *f, const kith_array *weight, const kith_array *similarity,
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
        int bin = (int)((s[i] - f->least_s) / (f->most_s - f->least_s) * N_BINS);
        bin = bin < 0 ? 0 : bin > N_BINS - 1 ? N_BINS - 1 : bin;
        sum[bin] += w[i], sum_s[bin] += s[i], count[bin]++;
        if (seen++ % every == 0)
            ki_buffer_put(t, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"1.8\"/>\n", x_of(f, s[i]), y_of(f, w[i]));
    }
    ki_buffer_put(t, "</g>\n<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", colour);
    for (int b = 0; b < N_BINS; b++) {
        if (count[b])
            ki_buffer_put(t, "%.1f,%.1f ", x_of(f, sum_s[b] / (double)count[b]),
                          y_of(f, sum[b] / (double)count[b]));
    }
    ki_buffer_put(t, "\"/>\n");
}

static void put_legend(ki_buffer *t) {
    ki_buffer_put(t,
                  "<circle cx=\"%d\" cy=\"55\" r=\"4\" fill=\"#1b7f79\"/><text x=\"%d\" y=\"59\">positive "
                  "pairs</text>\n"
                  "<circle cx=\"%d\" cy=\"75\" r=\"4\" fill=\"#d95f02\"/><text x=\"%d\" y=\"79\">negative "
                  "pairs</text>\n</svg>\n",
                  WIDTH - 130, WIDTH - 120, WIDTH - 130, WIDTH - 120);
}

static frame frame_of(const kith_array *weight, const kith_array *similarity, const uint8_t *kind) {
    const float *w = weight->data, *s = similarity->data;
    frame f = {.least_s = INFINITY, .most_s = -INFINITY};
    for (int64_t i = 0; i < weight->dim[0] * weight->dim[1]; i++) {
        if (!kind[i]) continue;
        f.least_s = fmin(f.least_s, s[i]), f.most_s = fmax(f.most_s, s[i]);
        f.least_w = fmin(f.least_w, w[i]), f.most_w = fmax(f.most_w, w[i]);
    }
    if (!(f.most_s - f.least_s > 1e-6)) f.least_s = -1, f.most_s = 1;
    if (!(f.most_w - f.least_w > 1e-12)) f.most_w = f.least_w + 1;
    return f;
}

/* Columns beyond the batch do not occur here: the weights are of the batch or of proxies. */
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
    kith_array weight = {0}, similarity = {0};
    uint8_t *kind = NULL;
    ki_buffer t = {.err = err};
    kith_status status = KITH_OK;
    KI_TRY(kith_objective_weights(objective, batch, &weight, &similarity, err));
    KI_CHECK(ki_alloc_or(&kind, (size_t)(weight.dim[0] * weight.dim[1]), 1, "kinds of pairs", err));
    find_kinds(batch, weight.dim[1], ki_objective_centers(objective->core), kind);
    const frame f = frame_of(&weight, &similarity, kind);
    put_axes(&t, &f, ki_objective_loss(objective->core)->method.name);
    put_dots(&t, &f, &weight, &similarity, kind, 2, "#d95f02");
    put_dots(&t, &f, &weight, &similarity, kind, 1, "#1b7f79");
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
