/* Building the quadtree and summing repulsion over it. */
#include "map/quadtree.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

/* 20 bits of each coordinate above 24 bits of point number. */
enum { LEVELS = 20, NUMBER_BITS = 24 };

kith_status ki_quadtree_init(int32_t n_points, ki_quadtree *ret_tree, kith_error *err) {
    kith_status status = KITH_OK;
    ki_quadtree t = {.n_points = n_points};
    if (n_points >= 1 << NUMBER_BITS)
        return ki_fail(err, KITH_EINVAL, "%d points; a map holds fewer than %d", (int)n_points,
                       1 << NUMBER_BITS);
    /* Every inner node with one child only repeats it: these are skipped, so inner nodes < leaves. */
    t.most_nodes = 2 * n_points + 1;
    KI_CHECK(ki_alloc_or(&t.node, (size_t)t.most_nodes, sizeof *t.node, "tree nodes", err));
    KI_CHECK(ki_alloc_or(&t.code, (size_t)n_points, sizeof *t.code, "curve places", err));
    KI_CHECK(ki_alloc_or(&t.spare, (size_t)n_points, sizeof *t.spare, "curve places", err));
    *ret_tree = t;
    return KITH_OK;
done:
    ki_quadtree_release(&t);
    return status;
}

void ki_quadtree_release(ki_quadtree *tree) {
    ki_free(tree->node);
    ki_free(tree->code);
    ki_free(tree->spare);
    *tree = (ki_quadtree){0};
}

static uint64_t spread(uint64_t x) { /* bit i to bit 2 i */
    x = (x | x << 16) & UINT64_C(0x0000ffff0000ffff);
    x = (x | x << 8) & UINT64_C(0x00ff00ff00ff00ff);
    x = (x | x << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    x = (x | x << 2) & UINT64_C(0x3333333333333333);
    return (x | x << 1) & UINT64_C(0x5555555555555555);
}

static void radix_sort(uint64_t *code, uint64_t *spare, int32_t n) {
    for (int shift = NUMBER_BITS; shift < 64; shift += 8) {
        int32_t begin[257] = {0};
        for (int32_t i = 0; i < n; i++) begin[(code[i] >> shift & 255) + 1]++;
        for (int b = 0; b < 256; b++) begin[b + 1] += begin[b];
        for (int32_t i = 0; i < n; i++) spare[begin[code[i] >> shift & 255]++] = code[i];
        memcpy(code, spare, (size_t)n * sizeof *code);
    }
}

static int quarter(uint64_t code, int level) {
    return (int)(code >> (NUMBER_BITS + 2 * (LEVELS - 1 - level)) & 3);
}

/* The node over code[begin, end), whose codes agree in all levels above `level`. */
static void build(ki_quadtree *t, int32_t begin, int32_t end, int level, double side) {
    const uint64_t first = t->code[begin], last = t->code[end - 1];
    while (level < LEVELS && quarter(first, level) == quarter(last, level)) level++, side /= 2;
    const int32_t me = t->n_nodes++;
    ki_quadnode node = {.n = (double)(end - begin)};
    if (end - begin == 1 || level >= LEVELS) {
        for (int32_t i = begin; i < end; i++) {
            const int64_t p = (int64_t)(t->code[i] & ((1 << NUMBER_BITS) - 1));
            node.x += t->xy[2 * p];
            node.y += t->xy[2 * p + 1];
        }
    } else {
        node.side2 = side * side;
        for (int32_t from = begin; from < end;) {
            int32_t to = from + 1;
            while (to < end && quarter(t->code[to], level) == quarter(t->code[from], level)) to++;
            const int32_t child = t->n_nodes;
            build(t, from, to, level + 1, side / 2);
            node.x += t->node[child].x * t->node[child].n;
            node.y += t->node[child].y * t->node[child].n;
            from = to;
        }
    }
    node.x /= node.n;
    node.y /= node.n;
    node.after = t->n_nodes;
    t->node[me] = node;
}

void ki_quadtree_build(ki_quadtree *t, const double *xy) {
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int32_t i = 0; i < 2 * t->n_points; i++) {
        low[i % 2] = fmin(low[i % 2], xy[i]);
        high[i % 2] = fmax(high[i % 2], xy[i]);
    }
    const double side = fmax(fmax(high[0] - low[0], high[1] - low[1]), 1e-300) * (1 + 1e-9);
    const double scale = (double)(1 << LEVELS) / side;
    for (int32_t i = 0; i < t->n_points; i++) {
        const uint64_t x = (uint64_t)((xy[2 * i] - low[0]) * scale),
                       y = (uint64_t)((xy[2 * i + 1] - low[1]) * scale);
        t->code[i] = (spread(x) | spread(y) << 1) << NUMBER_BITS | (uint64_t)(uint32_t)i;
    }
    radix_sort(t->code, t->spare, t->n_points);
    t->xy = xy;
    t->n_nodes = 0;
    build(t, 0, t->n_points, 0, side);
}

void ki_quadtree_repel(const ki_quadtree *t, double x, double y, double theta2, double *ret_force,
                       double *ret_z) {
    double fx = 0, fy = 0, z = 0;
    for (int32_t i = 0; i < t->n_nodes;) {
        const ki_quadnode *node = t->node + i;
        const double dx = x - node->x, dy = y - node->y, d2 = dx * dx + dy * dy;
        if (node->side2 < theta2 * d2 || node->side2 == 0) {
            const double w = 1 / (1 + d2), nw = node->n * w;
            z += nw;
            fx += nw * w * dx;
            fy += nw * w * dy;
            i = node->after;
        } else {
            i++;
        }
    }
    ret_force[0] = fx;
    ret_force[1] = fy;
    *ret_z = z;
}
