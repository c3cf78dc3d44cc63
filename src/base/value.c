/* Trees of a parsed document: building and looking things up. */
#include "base/value.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

const ki_value *ki_value_get(const ki_value *map, const char *key) {
    if (!map || map->kind != KI_VALUE_MAP) return NULL;
    for (const ki_value *v = map->first; v; v = v->next) {
        if (strcmp(v->key, key) == 0) return v;
    }
    return NULL;
}

const ki_value *ki_value_at(const ki_value *list, size_t i) {
    const ki_value *v = list ? list->first : NULL;
    while (v && i--) v = v->next;
    return v;
}

const char *ki_value_describe(const ki_value *value, char *buf, size_t buf_bytes) {
    switch (value ? value->kind : KI_VALUE_NULL) {
    case KI_VALUE_NULL: ki_snprintf(buf, buf_bytes, "nothing"); break;
    case KI_VALUE_SCALAR: ki_snprintf(buf, buf_bytes, "'%.60s'", value->text); break;
    case KI_VALUE_LIST: ki_snprintf(buf, buf_bytes, "a list of %zu", value->n_items); break;
    case KI_VALUE_MAP: ki_snprintf(buf, buf_bytes, "a map of %zu", value->n_items); break;
    }
    return buf;
}

ki_value *ki_value_new(ki_arena *arena, ki_value_kind kind, const char *text) {
    ki_value *value = ki_arena_alloc(arena, 1, sizeof *value);
    if (!value) return NULL;
    value->kind = kind;
    if (text) {
        value->text = ki_arena_strdup(arena, text);
        if (!value->text) return NULL;
    }
    return value;
}

void ki_value_append(ki_value *parent, const char *key, ki_value *item) {
    item->key = key;
    item->next = NULL;
    if (parent->last)
        parent->last->next = item;
    else
        parent->first = item;
    parent->last = item;
    parent->n_items++;
}

void ki_value_drop_nothings(ki_value *v) {
    ki_value **link = &v->first;
    v->last = NULL;
    v->n_items = 0;
    while (*link) {
        ki_value *item = *link;
        if (v->kind == KI_VALUE_MAP && item->kind == KI_VALUE_NULL) {
            *link = item->next;
            continue;
        }
        ki_value_drop_nothings(item);
        v->last = item;
        v->n_items++;
        link = &item->next;
    }
}
