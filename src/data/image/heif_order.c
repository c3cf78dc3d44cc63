/* Boxes of ISO 14496-12: a size, four letters, contents. Those on the way here:
 *
 *     meta ── iprp ─┬─ ipco   properties, counted from 1: ispe (size), irot (turn) and others
 *                   └─ ipma   for each image, which of them it has, in the order in which they apply */
#include "data/image/heif_order.h"

#include <string.h>

/* So many steps from property to property are enough for any photo; a hostile file must not take long. */
enum { MOST_STEPS = 1 << 20 };

/* Bytes that are still to be read. */
typedef struct span {
    const uint8_t *at;
    size_t n;
} span;

/* The next bytes as a number, most significant first; 0 behind the end, where nothing is left after. */
static uint64_t take(span *s, size_t n_bytes) {
    uint64_t value = 0;
    if (s->n < n_bytes) {
        s->n = 0;
        return 0;
    }
    for (size_t i = 0; i < n_bytes; i++) value = value << 8 | s->at[i];
    s->at += n_bytes, s->n -= n_bytes;
    return value;
}

/* The next box: its letters and contents; false at the end, or where its size is wrong. */
static bool take_box(span *s, char letters[5], span *ret_inside) {
    const span before = *s;
    if (s->n < 8) return false;
    uint64_t size = take(s, 4);
    memcpy(letters, s->at, 4);
    letters[4] = '\0';
    take(s, 4);
    if (size == 1)
        size = s->n >= 8 ? take(s, 8) : 0;
    else if (size == 0)
        size = before.n; /* to the end */
    const size_t n_head = before.n - s->n;
    if (size < n_head || size > before.n) return false;
    *ret_inside = (span){s->at, (size_t)size - n_head};
    s->at += ret_inside->n, s->n -= ret_inside->n;
    return true;
}

/* The first box with these letters. */
static bool find(span in, const char *wanted, span *ret_inside) {
    char letters[5];
    while (take_box(&in, letters, ret_inside)) {
        if (strcmp(letters, wanted) == 0) return true;
    }
    return false;
}

/* Version and flags come first in some boxes. */
static uint64_t take_version(span *s, uint64_t *ret_flags) {
    const uint64_t both = take(s, 4);
    *ret_flags = both & 0xffffff;
    return both >> 24;
}

static bool is_quarter(span turn) { return turn.n > 0 && (turn.at[0] & 1) != 0; }

/* What is looked through, and the copy that is mended (or NULL). */
typedef struct order {
    const uint8_t *bytes;
    uint8_t *copy;
    span properties;
    size_t number_bytes; /* of a number in a list */
    int64_t n_steps;     /* that are left */
} order;

/* The n-th property, from 1. */
static bool find_property(order *o, uint64_t n, char letters[5], span *ret_inside) {
    span in = o->properties;
    for (; n > 0; n--) {
        if (o->n_steps-- <= 0 || !take_box(&in, letters, ret_inside)) return false;
    }
    return true;
}

/* Width and height change places; those of a property that several images have, once. */
static void turn_size(const order *o, span size) {
    const size_t at = (size_t)(size.at - o->bytes) + 4; /* behind version and flags */
    if (size.n < 12 || memcmp(o->copy + at, o->bytes + at, 8) != 0) return;
    memcpy(o->copy + at, o->bytes + at + 4, 4);
    memcpy(o->copy + at + 4, o->bytes + at, 4);
}

/* The entry at `size` moves before the one at `turn`. */
static void move_entry(const order *o, const uint8_t *turn, const uint8_t *size) {
    uint8_t *to = o->copy + (turn - o->bytes);
    memcpy(to, size, o->number_bytes);
    memcpy(to + o->number_bytes, turn, (size_t)(size - turn));
}

/* One image's list: `n` numbers of properties. */
static bool look_at(order *o, span list, uint64_t n) {
    const uint8_t *turn = NULL;
    for (; n > 0 && list.n >= o->number_bytes; n--) {
        char letters[5];
        span inside;
        const uint8_t *entry = list.at;
        const uint64_t which = take(&list, o->number_bytes) & (o->number_bytes == 2 ? 0x7fff : 0x7f);
        if (which == 0 || !find_property(o, which, letters, &inside)) continue;
        if (strcmp(letters, "irot") == 0 && is_quarter(inside) && !turn) turn = entry;
        if (strcmp(letters, "ispe") != 0) continue;
        if (turn && o->copy) {
            turn_size(o, inside);
            move_entry(o, turn, entry);
        }
        return turn != NULL;
    }
    return false;
}

bool ki_heif_turns_first(const uint8_t *bytes, size_t n_bytes, uint8_t *copy) {
    order o = {.bytes = bytes, .copy = copy, .n_steps = MOST_STEPS};
    span meta, both, lists;
    uint64_t flags;
    bool is_found = false;
    if (!find((span){bytes, n_bytes}, "meta", &meta)) return false;
    take_version(&meta, &flags);
    if (!find(meta, "iprp", &both) || !find(both, "ipco", &o.properties) || !find(both, "ipma", &lists))
        return false;
    const size_t id_bytes = take_version(&lists, &flags) == 0 ? 2 : 4;
    o.number_bytes = (flags & 1) != 0 ? 2 : 1;
    for (uint64_t n = take(&lists, 4); n > 0 && lists.n > id_bytes && o.n_steps > 0; n--) {
        take(&lists, id_bytes);
        const uint64_t n_numbers = take(&lists, 1);
        is_found |= look_at(&o, lists, n_numbers);
        const size_t n_skipped = (size_t)n_numbers * o.number_bytes;
        if (n_skipped > lists.n) break;
        lists.at += n_skipped, lists.n -= n_skipped;
    }
    return is_found;
}
