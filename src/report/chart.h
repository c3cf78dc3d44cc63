/* Small charts as figures of the page: lines over steps, and histograms of two kinds of pairs.
 *
 * Colours and dashes are classes of the style sheet (style.c), so that a chart follows the page's dark mode.
 * Lines differ in more than their colour. Titles and legends are HTML beside the SVG, so that they keep their
 * size when the drawing shrinks. */
#ifndef KI_CHART_H
#define KI_CHART_H

#include "base/buffer.h"
#include "report/series.h"

enum { KI_MOST_LINES = 8 };

typedef struct ki_chart_line {
    const char *name;
    const ki_series *series;
} ki_chart_line;

typedef struct ki_chart {
    const char *title, *caption; /* caption may be NULL */
    int n_lines;
    ki_chart_line line[KI_MOST_LINES];
    bool is_share; /* values are fractions, shown as percent */
    bool may_log;  /* a logarithmic axis when the values span a factor of 50 and are all above 0 */
    bool is_wide;
    double mark_step; /* a step to mark with `mark`, or negative */
    const char *mark;
} ki_chart;

/* Every point is marked where there are few. One or two points are marks without a line. Curves of more than a few hundred
 * points are drawn as the mean over runs of points, in a band from the minimum to the maximum of each run. */
void ki_chart_put(ki_buffer *to, const ki_chart *chart);

typedef struct ki_histogram {
    const char *title, *caption, *axis;
    size_t n_bins;
    const double *edge;     /* [n_bins + 1], rising */
    const double *count[2]; /* positive and negative pairs, [n_bins] each, not below 0; NULL: none */
} ki_histogram;

/* Each bar is a share of all pairs of its kind. */
void ki_histogram_put(ki_buffer *to, const ki_histogram *histogram);

/* A short piece of line i for legends. */
void ki_chart_key(ki_buffer *to, int i);

#endif
