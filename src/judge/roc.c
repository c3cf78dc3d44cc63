/* The ROC curve as a picture: true accept rate against false accept rate, which has a logarithmic scale, because the rates
 * that matter are small. */
#include <math.h>

#include "base/argument.h"
#include "base/atomic.h"
#include "base/buffer.h"
#include "base/text.h"
#include "io/svg.h"
#include "judge/verification.h"

enum { WIDTH = 640, HEIGHT = 460, LEFT = 60, RIGHT = 24, TOP = 56, BOTTOM = 54 };

static void put_frame(ki_buffer *t, const ki_axes *a, const kith_verification *v) {
    char text[160];
    ki_svg_open_file(t, WIDTH, HEIGHT,
                     "width=\"640\" height=\"460\" font-family=\"sans-serif\" font-size=\"12\"");
    ki_buffer_put(t,
                  "<style>.axis path{stroke:#ddd}</style>\n"
                  "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n");
    ki_svg_text(t, "The same or not? (ROC curve)", "x=\"%d\" y=\"22\" font-size=\"15\"", LEFT);
    ki_snprintf(text, sizeof text,
                "AUC %.4f, EER %.2f %%, from %lld pairs of one class and %lld of two, %lld classes", v->auc,
                100 * v->eer, (long long)v->n_same, (long long)v->n_different, (long long)v->n_classes);
    ki_svg_text(t, text, "x=\"%d\" y=\"42\" fill=\"#555\"", LEFT);
    ki_axes_put(t, a);
    ki_svg_text(t, "false accept rate", "x=\"%d\" y=\"%d\" text-anchor=\"middle\"",
                (WIDTH + LEFT - RIGHT) / 2, HEIGHT - 14);
    ki_svg_text(t, "true accept rate, percent",
                "x=\"16\" y=\"%d\" text-anchor=\"middle\" transform=\"rotate(-90 16 %d)\"",
                (HEIGHT + TOP - BOTTOM) / 2, (HEIGHT + TOP - BOTTOM) / 2);
}

/* The line on which false accepts and false rejects are equally frequent is a curve here. */
static void put_equal_errors(ki_buffer *t, const ki_axes *a) {
    enum { N = 60 };
    ki_svg_list_open(t, "polyline", "points", "fill=\"none\" stroke=\"#aaa\" stroke-dasharray=\"4 3\"");
    for (int i = 0; i <= N; i++) {
        const double far = pow(10, a->x0 * (N - i) / (double)N);
        ki_svg_point(t, ki_axes_x(a, far), ki_axes_y(a, 1 - far));
    }
    ki_svg_list_close(t);
}

static void put_curve(ki_buffer *t, const ki_axes *a, const kith_calibration *c) {
    ki_svg_list_open(t, "polyline", "points", "fill=\"none\" stroke=\"#1b7f79\" stroke-width=\"2\"");
    for (int64_t i = 0; i < c->n; i++) {
        const double far = fmax(c->fmr[i], pow(10, a->x0));
        ki_svg_point(t, ki_axes_x(a, far), ki_axes_y(a, c->tmr[i]));
    }
    ki_svg_list_close(t);
}

static void put_marks(ki_buffer *t, const ki_axes *a, const kith_verification *v) {
    for (int i = 0; i < KITH_N_FAR; i++) {
        const kith_accept_rate *at = &v->at[i];
        if (log10(at->far_wanted) < a->x0) continue;
        const double x = ki_axes_x(a, at->far_wanted);
        if (v->has_intervals)
            ki_svg_element(t, "path", "d=\"M%.1f %.1fV%.1f\" stroke=\"#1b7f79\"", x,
                           ki_axes_y(a, at->interval.low), ki_axes_y(a, at->interval.high));
        ki_svg_element(t, "circle", "cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"#1b7f79\"", x,
                       ki_axes_y(a, at->tar));
    }
    ki_svg_element(t, "circle", "cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"#d95f02\"",
                   ki_axes_x(a, fmax(v->eer, pow(10, a->x0))), ki_axes_y(a, 1 - v->eer));
    ki_svg_text(t, "EER", "x=\"%.1f\" y=\"%.1f\" fill=\"#d95f02\"",
                ki_axes_x(a, fmax(v->eer, pow(10, a->x0))) + 6, ki_axes_y(a, 1 - v->eer) + 16);
    ki_buffer_put(t, "\n");
}

kith_status kith_verification_draw(const kith_verification *v, const char *path, kith_error *err) {
    KI_NEED(err, v, path);
    if (v->curve.n < 1 || v->n_different < 1)
        return ki_fail(err, KITH_EINVAL, "there is no ROC curve to draw: the verification was not made");
    ki_buffer t = {.err = err};
    /* As far as the pairs go, within what is legible. */
    const double decades = fmin(fmax(ceil(log10((double)v->n_different)), 1), 8);
    const ki_axes axes = {.w = WIDTH,
                          .h = HEIGHT,
                          .left = LEFT,
                          .right = RIGHT,
                          .top = TOP,
                          .bottom = BOTTOM,
                          .x0 = -decades,
                          .x1 = 0,
                          .y0 = 0,
                          .y1 = 1,
                          .is_log_x = true,
                          .scale_y = 100};
    put_frame(&t, &axes, v);
    put_equal_errors(&t, &axes);
    put_curve(&t, &axes, &v->curve);
    put_marks(&t, &axes, v);
    ki_svg_close(&t);
    kith_status status = t.status;
    if (status == KITH_OK) status = ki_file_write(path, t.data, t.n, err);
    ki_buffer_release(&t);
    return status;
}
