/* Collecting the values of a column. */
#include "search/files/cells.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checksum.h"

static const char *const type_names[] = {"none", "integer", "real", "text"};
const char *kith_value_type_name(kith_value_type type) { return (unsigned)type < 4 ? type_names[type] : "?"; }

void ki_cells_release(ki_cells *c) {
    ki_free(c->integer);
    ki_free(c->real);
    ki_free(c->code);
    ki_free(c->text_begin);
    ki_free(c->slot);
    ki_buffer_release(&c->texts);
    *c = (ki_cells){0};
}

static size_t slot_of(const ki_cells *c, const char *text, size_t n) {
    size_t at = (size_t)ki_checksum(text, n, 0) & (c->n_slots - 1);
    for (; c->slot[at]; at = (at + 1) & (c->n_slots - 1)) {
        if (strcmp(ki_cells_text(c, c->slot[at] - 1), text) == 0) break;
    }
    return at;
}

uint32_t ki_cells_find(const ki_cells *c, const char *text) {
    return c->n_slots ? c->slot[slot_of(c, text, strlen(text))] : 0;
}

/* A table that is at most half full. */
static kith_status grow_slots(ki_cells *c, kith_error *err) {
    if ((size_t)c->n_texts * 2 < c->n_slots) return KITH_OK;
    const size_t n = c->n_slots ? c->n_slots * 2 : 64;
    uint32_t *slot = NULL;
    KI_TRY(ki_zalloc_or(&slot, n, sizeof *slot, "texts", err));
    ki_free(c->slot);
    c->slot = slot;
    c->n_slots = n;
    for (int64_t i = 0; i < c->n_texts; i++) {
        const char *text = ki_cells_text(c, i);
        c->slot[slot_of(c, text, strlen(text))] = (uint32_t)i + 1;
    }
    return KITH_OK;
}

static kith_status add_text(ki_cells *c, const char *text, uint32_t *ret_code, kith_error *err) {
    KI_TRY(grow_slots(c, err));
    const size_t n = strlen(text), at = slot_of(c, text, n);
    if (!c->slot[at]) {
        KI_TRY(ki_grow(&c->text_begin, &c->text_capacity, (size_t)c->n_texts + 2, sizeof *c->text_begin,
                       "texts", err));
        c->texts.err = err;
        ki_buffer_add(&c->texts, text, n + 1);
        KI_TRY(c->texts.status);
        if (c->n_texts == 0) c->text_begin[0] = 0;
        c->text_begin[++c->n_texts] = (int64_t)c->texts.n;
        c->slot[at] = (uint32_t)c->n_texts;
    }
    *ret_code = c->slot[at];
    return KITH_OK;
}

kith_status ki_cells_add(ki_cells *c, const kith_value *value, kith_error *err) {
    const bool is_none = value->type == KITH_VALUE_NONE;
    const size_t needed = (size_t)c->n + 1;
    switch (c->type) {
    case KITH_VALUE_INT:
        KI_TRY(ki_grow(&c->integer, &c->capacity, needed, sizeof *c->integer, "values", err));
        c->integer[c->n] = is_none ? KI_NO_INTEGER : value->integer;
        break;
    case KITH_VALUE_REAL:
        KI_TRY(ki_grow(&c->real, &c->capacity, needed, sizeof *c->real, "values", err));
        c->real[c->n] = is_none ? NAN : value->real;
        break;
    default: {
        KI_TRY(ki_grow(&c->code, &c->capacity, needed, sizeof *c->code, "values", err));
        uint32_t code = 0;
        if (!is_none) KI_TRY(add_text(c, value->text, &code, err));
        c->code[c->n] = code;
    }
    }
    c->n++;
    return KITH_OK;
}

kith_value ki_cells_get(const ki_cells *c, int64_t row) {
    kith_value value = {.type = c->type};
    if (c->type == KITH_VALUE_INT) {
        value.integer = c->integer[row];
        if (value.integer == KI_NO_INTEGER) value.type = KITH_VALUE_NONE;
    } else if (c->type == KITH_VALUE_REAL) {
        value.real = c->real[row];
        if (isnan(value.real)) value.type = KITH_VALUE_NONE;
    } else if (c->code[row] == 0) {
        value.type = KITH_VALUE_NONE;
    } else {
        value.text = ki_cells_text(c, c->code[row] - 1);
    }
    return value;
}
