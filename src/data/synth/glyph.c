/* Strokes of glyphs: making a class, drawing an image. */
#include "data/synth/glyph.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/real.h"
#include "base/rng.h"

/* Pieces a curve is flattened to between two control points. */
enum { PIECES = 8, N_WAVES = 3, LATTICE = 17 };

static double between(ki_rng *rng, double a, double b) { return a + (b - a) * ki_rng_double(rng); }

ki_glyph ki_glyph_make(uint64_t seed, uint32_t class_) {
    ki_rng rng = ki_rng_at(seed, KI_RNG_SYNTH, class_, 0);
    ki_glyph g = {.n_strokes = 2 + (int)ki_rng_below(&rng, 3)};
    for (int s = 0; s < g.n_strokes; s++) {
        const int n = 2 + (int)ki_rng_below(&rng, KI_GLYPH_MOST_POINTS - 1);
        g.stroke[s].n_points = n;
        double x = 0, y = 0;
        for (int p = 0; p < n; p++) {
            /* Strokes are long: each point is far from the one before. */
            double nx = 0, ny = 0;
            int tries = 0;
            do {
                nx = between(&rng, -1, 1);
                ny = between(&rng, -1, 1);
            } while (p > 0 && ki_length(nx - x, ny - y) < 0.7 && ++tries < 8);
            g.stroke[s].x[p] = x = nx;
            g.stroke[s].y[p] = y = ny;
        }
    }
    return g;
}

/* How one image differs from its class. */
typedef struct hand {
    double a[4], dx, dy; /* affine: (a0 x + a1 y + dx, a2 x + a3 y + dy) */
    struct {
        double fx, fy, phase, amp_x, amp_y;
    } wave[N_WAVES]; /* elastic: a few long waves */
    double radius;   /* of the pen, in units of the half side */
    double tremble;  /* of the control points */
} hand;

static hand draw_hand(ki_rng *rng, double jitter) {
    hand h = {0};
    const double turn = 0.22 * jitter * ki_rng_normal(rng), shear = 0.15 * jitter * ki_rng_normal(rng);
    const double size = 0.66 * (1 + jitter * between(rng, -0.22, 0.15)),
                 ratio = 1 + jitter * between(rng, -0.15, 0.15);
    const double c = cos(turn) * size, s = sin(turn) * size;
    h.a[0] = c * ratio;
    h.a[1] = (c * shear - s) / ratio;
    h.a[2] = s * ratio;
    h.a[3] = (s * shear + c) / ratio;
    h.dx = jitter * between(rng, -0.18, 0.18);
    h.dy = jitter * between(rng, -0.18, 0.18);
    for (int i = 0; i < N_WAVES; i++) {
        h.wave[i].fx = between(rng, -3, 3);
        h.wave[i].fy = between(rng, -3, 3);
        h.wave[i].phase = between(rng, 0, 6.283185307179586);
        h.wave[i].amp_x = 0.045 * jitter * ki_rng_normal(rng);
        h.wave[i].amp_y = 0.045 * jitter * ki_rng_normal(rng);
    }
    h.radius = 0.055 * exp(jitter * between(rng, -0.5, 0.5));
    h.tremble = 0.06 * jitter;
    return h;
}

static void move_point(const hand *h, double *x, double *y) {
    double px = *x, py = *y;
    for (int i = 0; i < N_WAVES; i++) {
        const double s = sin(h->wave[i].fx * *x + h->wave[i].fy * *y + h->wave[i].phase);
        px += h->wave[i].amp_x * s;
        py += h->wave[i].amp_y * s;
    }
    *x = h->a[0] * px + h->a[1] * py + h->dx;
    *y = h->a[2] * px + h->a[3] * py + h->dy;
}

/* Ink along a straight piece: full inside the pen's radius, fading over one pixel. All in pixels. */
static void ink_piece(double x0, double y0, double x1, double y1, double r, int n, float *cover) {
    const double ux = x1 - x0, uy = y1 - y0, length2 = ux * ux + uy * uy, reach = r + 1;
    const int left = (int)floor(fmin(x0, x1) - reach), right = (int)ceil(fmax(x0, x1) + reach);
    const int top = (int)floor(fmin(y0, y1) - reach), bottom = (int)ceil(fmax(y0, y1) + reach);
    for (int y = top < 0 ? 0 : top; y <= bottom && y < n; y++) {
        for (int x = left < 0 ? 0 : left; x <= right && x < n; x++) {
            const double vx = x - x0, vy = y - y0;
            double t = length2 > 0 ? (vx * ux + vy * uy) / length2 : 0;
            t = t < 0 ? 0 : t > 1 ? 1 : t;
            const double d = ki_length(vx - t * ux, vy - t * uy);
            const double ink = r - d + 0.5;
            const float value = (float)(ink < 0 ? 0 : ink > 1 ? 1 : ink);
            if (value > cover[y * n + x]) cover[y * n + x] = value;
        }
    }
}

/* Catmull-Rom through the points; the ends are doubled. */
static double spline(const double *v, int n, int i, double t) {
    const double a = v[i > 0 ? i - 1 : 0], b = v[i], c = v[i + 1], d = v[i + 2 < n ? i + 2 : n - 1];
    return 0.5 * (2 * b + t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a))));
}

static void ink_glyph(const ki_glyph *g, const hand *h, ki_rng *rng, int n, float *cover) {
    const double half = n / 2.0;
    for (int s = 0; s < g->n_strokes; s++) {
        const int n_points = g->stroke[s].n_points;
        double x[KI_GLYPH_MOST_POINTS], y[KI_GLYPH_MOST_POINTS];
        for (int p = 0; p < n_points; p++) {
            x[p] = g->stroke[s].x[p] + h->tremble * ki_rng_normal(rng);
            y[p] = g->stroke[s].y[p] + h->tremble * ki_rng_normal(rng);
        }
        const double press = h->radius * exp(0.15 * ki_rng_normal(rng)) * half;
        double last_x = 0, last_y = 0;
        for (int k = 0; k <= (n_points - 1) * PIECES; k++) {
            const int i = k / PIECES < n_points - 1 ? k / PIECES : n_points - 2;
            const double t = (double)(k - i * PIECES) / (double)PIECES;
            double px = spline(x, n_points, i, t), py = spline(y, n_points, i, t);
            move_point(h, &px, &py);
            px = half * (1 + px) - 0.5;
            py = half * (1 + py) - 0.5;
            if (k > 0) ink_piece(last_x, last_y, px, py, press < 0.5 ? 0.5 : press, n, cover);
            last_x = px;
            last_y = py;
        }
    }
}

/* Smooth noise in [-1, 1]: random values on coarse lattices, interpolated, finer ones weaker. */
typedef struct texture {
    float value[2][LATTICE][LATTICE];
} texture;

static double texture_at(const texture *t, double x, double y) {
    double sum = 0;
    for (int o = 0; o < 2; o++) {
        const double cells = o == 0 ? 5 : LATTICE - 1;
        const double fx = x * cells, fy = y * cells;
        const int ix = (int)fx, iy = (int)fy;
        const double tx = fx - ix, ty = fy - iy;
        const float(*v)[LATTICE] = t->value[o];
        const double top = v[iy][ix] + tx * (v[iy][ix + 1] - v[iy][ix]);
        const double bottom = v[iy + 1][ix] + tx * (v[iy + 1][ix + 1] - v[iy + 1][ix]);
        sum += (o == 0 ? 0.65 : 0.35) * (top + ty * (bottom - top));
    }
    return sum;
}

/* Ground and ink, at least 90 grey levels apart in every channel's mean. */
static void draw_colours(ki_rng *rng, bool colour, double ground[3], double ink[3]) {
    const double base = between(rng, 150, 250), depth = between(rng, 90, base - 10);
    for (int c = 0; c < 3; c++) {
        const double tint = colour ? between(rng, -60, 60) : 0, shade = colour ? between(rng, -60, 60) : 0;
        ground[c] = base + tint;
        ink[c] = base - depth + shade;
    }
}

kith_status ki_glyph_draw(const ki_glyph *glyph, const kith_synth_options *s, uint32_t class_, uint32_t image,
                          ki_image *ret_image, kith_error *err) {
    kith_status status = KITH_OK;
    const int n = (int)s->side, channels = s->colour ? 3 : 1;
    float *cover = NULL;
    texture *paper = NULL;
    KI_CHECK(ki_image_shape(ret_image, n, n, channels, err));
    KI_CHECK(ki_zalloc_or(&cover, (size_t)n * (size_t)n, sizeof *cover, "a glyph", err));
    KI_CHECK(ki_zalloc_or(&paper, 1, sizeof *paper, "a texture", err));
    ki_rng rng = ki_rng_at(s->seed, KI_RNG_SYNTH, class_, image + 1);
    const hand h = draw_hand(&rng, s->jitter);
    ink_glyph(glyph, &h, &rng, n, cover);
    double ground[3], ink[3];
    draw_colours(&rng, s->colour, ground, ink);
    if (s->background) {
        for (int o = 0; o < 2; o++) {
            for (int i = 0; i < LATTICE * LATTICE; i++)
                paper->value[o][i / LATTICE][i % LATTICE] = 2 * ki_rng_float(&rng) - 1;
        }
    }
    uint8_t *out = ret_image->data;
    for (int y = 0; y < n; y++) {
        for (int x = 0; x < n; x++) {
            const double ink_here = (double)cover[y * n + x];
            const double grain = s->background ? 70 * texture_at(paper, (double)x / n, (double)y / n) : 0;
            const double noise = s->noise > 0 ? s->noise * ki_rng_normal(&rng) : 0;
            for (int c = 0; c < channels; c++) {
                const double under = ground[c] + grain, v = under + (ink[c] - under) * ink_here + noise;
                *out++ = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v + 0.5);
            }
        }
    }
done:
    ki_free(cover);
    ki_free(paper);
    return status;
}
