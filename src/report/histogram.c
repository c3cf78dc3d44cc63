/* Histograms of two kinds of pairs as a figure. */
#include <math.h>

#include "base/text.h"
#include "io/svg.h"
#include "report/chart.h"

static double sum_of(const double *count, size_t n) {
    double sum = 0;
    for (size_t i = 0; count && i < n; i++) sum += count[i];
    return sum;
}

static double most_share(const ki_histogram *h) {
    double most = 0;
    for (int kind = 0; kind < 2; kind++) {
        const double sum = sum_of(h->count[kind], h->n_bins);
        for (size_t i = 0; sum > 0 && i < h->n_bins; i++) most = fmax(most, h->count[kind][i] / sum);
    }
    return most;
}

/* A staircase over the bins; closed to the bottom for the area, open for the outline. */
static void put_stairs(ki_buffer *to, const ki_axes *a, const ki_histogram *h, int kind, const char *class_) {
    const double *count = h->count[kind], sum = sum_of(count, h->n_bins);
    if (!(sum > 0)) return;
    ki_svg_list_open(to, "path", "d", "class=\"%s c%d\"", class_, kind);
    ki_buffer_put(to, "M%.1f %.1f", ki_axes_x(a, h->edge[0]), ki_axes_y(a, 0));
    for (size_t i = 0; i < h->n_bins; i++)
        ki_buffer_put(to, "V%.1fH%.1f", ki_axes_y(a, count[i] / sum), ki_axes_x(a, h->edge[i + 1]));
    ki_buffer_put(to, "V%.1f", ki_axes_y(a, 0));
    ki_svg_list_close(to);
}

void ki_histogram_put(ki_buffer *to, const ki_histogram *h) {
    static const char *const names[] = {"positive pairs (same class)", "negative pairs"};
    const double most = most_share(h), first = h->edge[0], last = h->edge[h->n_bins];
    ki_axes a = {.w = 560, .h = 260, .left = 50, .right = 24, .top = 10, .bottom = 48, .scale_y = 100};
    a.is_log_x = first > 0 && last / first > 1000;
    a.x0 = a.is_log_x ? log10(first) : first;
    a.x1 = a.is_log_x ? log10(last) : last;
    a.y1 = most > 0 ? 1.05 * most : 1;
    ki_buffer_put(to, "<figure class=\"wide\">\n<figcaption><b>");
    ki_buffer_escaped(to, h->title);
    ki_buffer_put(to, "</b><span class=\"legend\">");
    for (int kind = 0; kind < 2; kind++) {
        char text[KI_NUMBER_TEXT];
        ki_buffer_put(to, "<span>");
        ki_chart_key(to, kind);
        ki_buffer_put(to, "%s <span class=\"last\">%s</span></span> ", names[kind],
                      ki_count_text(sum_of(h->count[kind], h->n_bins), text));
    }
    ki_buffer_put(to, "</span></figcaption>\n");
    ki_svg_open_in_page(to, "chart", a.w, a.h, h->title);
    ki_axes_put(to, &a);
    for (int kind = 1; kind >= 0; kind--) put_stairs(to, &a, h, kind, "band");
    for (int kind = 1; kind >= 0; kind--) put_stairs(to, &a, h, kind, "line");
    ki_svg_text(to, h->axis, "class=\"label\" x=\"%d\" y=\"%d\" text-anchor=\"middle\"",
                (a.w + a.left - a.right) / 2, a.h - 6);
    ki_svg_close(to);
    ki_buffer_put(to, "<p class=\"quiet\">");
    ki_buffer_escaped(to, h->caption);
    ki_buffer_put(to, "</p>\n</figure>\n");
}
