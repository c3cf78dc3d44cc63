/* The machine: a stack, a memo, and values that are only described. Memory stays in proportion to the pickle: a value takes
 * at least one byte of it. */
#include "io/pickle.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

typedef enum kind { NOTHING, NUMBER, TEXT, MARK, GLOBAL, TUPLE, DICT, STORAGE, TENSOR } kind;

/* What a pickle may name, as module and name together. */
typedef enum global { ORDERED_DICT, REBUILD_TENSOR, REBUILD_PARAMETER, FIRST_STORAGE } global;

static const char *const globals[] = {"collections\nOrderedDict\n",
                                      "torch._utils\n_rebuild_tensor_v2\n",
                                      "torch._utils\n_rebuild_parameter\n",
                                      "torch\nFloatStorage\n",
                                      "torch\nHalfStorage\n",
                                      "torch\nDoubleStorage\n",
                                      "torch\nBFloat16Storage\n",
                                      "torch\nLongStorage\n",
                                      "torch\nIntStorage\n",
                                      "torch\nByteStorage\n",
                                      "torch\nBoolStorage\n"};
static const kith_dtype storage_types[] = {KITH_F32, KITH_F16, KITH_F64, KITH_BF16,
                                           KITH_I64, KITH_I32, KITH_U8,  KITH_U8};
enum {
    N_GLOBALS = sizeof globals / sizeof globals[0],
    MOST_DEPTH = 16,
    MOST_ENTRIES = 1 << 16,
    MOST_NAME_BYTES = 1 << 24
};

typedef struct value value;
struct value {
    kind kind;
    int64_t number;           /* NUMBER; which GLOBAL; items of a TUPLE; numbers of a STORAGE */
    const char *text;         /* TEXT; the key of a STORAGE */
    kith_dtype dtype;         /* STORAGE */
    value **item;             /* TUPLE */
    value *first, *last;      /* DICT: entries … */
    value *next, *key, *held; /* … and of an entry the next one, its key and its value */
    ki_pickle_tensor *tensor; /* TENSOR */
};

typedef struct machine {
    const unsigned char *at, *end;
    const char *name;
    ki_arena *arena;
    value **stack, **memo;
    size_t n, stack_capacity, n_memo, memo_capacity;
    size_t n_visited, name_bytes; /* entries of dicts and names made, when the tensors are collected */
    kith_error *err;
} machine;

static kith_status broken(const machine *m, const char *why) {
    return ki_fail(m->err, KITH_EFORMAT, "%s: the pickle is not that of a state dict: %s", m->name, why);
}

static kith_status take(machine *m, size_t n, const unsigned char **ret) {
    if ((size_t)(m->end - m->at) < n) return broken(m, "it ends too early");
    *ret = m->at;
    m->at += n;
    return KITH_OK;
}

static kith_status take_number(machine *m, size_t n, uint64_t *ret) {
    const unsigned char *p = NULL;
    KI_TRY(take(m, n, &p));
    *ret = 0;
    for (size_t i = 0; i < n; i++) *ret |= (uint64_t)p[i] << (8 * i);
    return KITH_OK;
}

static kith_status new_value(machine *m, kind k, value **ret) {
    *ret = ki_arena_alloc(m->arena, 1, sizeof **ret);
    if (!*ret) return ki_fail_memory(m->err, sizeof **ret, "a pickle");
    **ret = (value){.kind = k};
    return KITH_OK;
}

static kith_status push(machine *m, value *v) {
    KI_TRY(ki_grow(&m->stack, &m->stack_capacity, m->n + 1, sizeof *m->stack, "a pickle", m->err));
    m->stack[m->n++] = v;
    return KITH_OK;
}

static kith_status push_new(machine *m, kind k, int64_t number) {
    value *v = NULL;
    KI_TRY(new_value(m, k, &v));
    v->number = number;
    return push(m, v);
}

static kith_status pop(machine *m, value **ret) {
    if (m->n == 0) return broken(m, "its stack is empty");
    *ret = m->stack[--m->n];
    return KITH_OK;
}

/* Items above the last mark; the mark is removed. */
static kith_status pop_to_mark(machine *m, size_t *ret_first, size_t *ret_n) {
    size_t i = m->n;
    while (i > 0 && m->stack[i - 1]->kind != MARK) i--;
    if (i == 0) return broken(m, "a mark is missing");
    *ret_first = i;
    *ret_n = m->n - i;
    m->n = i - 1;
    return KITH_OK;
}

/* ---- opcodes ---- */

static kith_status do_text(machine *m) {
    uint64_t n = 0;
    const unsigned char *p = NULL;
    value *v = NULL;
    KI_TRY(take_number(m, 4, &n));
    KI_TRY(take(m, n, &p));
    if (memchr(p, 0, n)) return broken(m, "a text holds a NUL");
    KI_TRY(new_value(m, TEXT, &v));
    v->text = ki_arena_strndup(m->arena, (const char *)p, n);
    return v->text ? push(m, v) : ki_fail_memory(m->err, n, "a pickle");
}

static const unsigned char *line_end(const machine *m, const unsigned char *from) {
    return memchr(from, '\n', (size_t)(m->end - from));
}

static kith_status do_global(machine *m) {
    const unsigned char *first = line_end(m, m->at), *second = first ? line_end(m, first + 1) : NULL;
    if (!second) return broken(m, "it ends too early");
    const size_t n = (size_t)(second + 1 - m->at);
    const char *begin = (const char *)m->at;
    m->at = second + 1;
    for (int i = 0; i < N_GLOBALS; i++) {
        if (strlen(globals[i]) == n && memcmp(globals[i], begin, n) == 0) return push_new(m, GLOBAL, i);
    }
    const int n_module = (int)((const char *)first - begin), n_name = (int)(second - first - 1);
    ki_fail(m->err, KITH_EUNSUPPORTED, "%s: the pickle names %.*s.%.*s; wanted tensors and nothing else",
            m->name, n_module < 60 ? n_module : 60, begin, n_name < 60 ? n_name : 60,
            (const char *)first + 1);
    return ki_hint(m->err, KITH_EUNSUPPORTED,
                   "in PyTorch, save model.state_dict() alone; nothing in it was executed");
}

static kith_status do_memo_put(machine *m, size_t bytes) {
    uint64_t i = 0;
    KI_TRY(take_number(m, bytes, &i));
    if (m->n == 0 || i > m->n_memo) return broken(m, "it remembers values out of order");
    KI_TRY(ki_grow(&m->memo, &m->memo_capacity, m->n_memo + 1, sizeof *m->memo, "a pickle", m->err));
    m->memo[i] = m->stack[m->n - 1];
    if (i == m->n_memo) m->n_memo++;
    return KITH_OK;
}

static kith_status do_memo_get(machine *m, size_t bytes) {
    uint64_t i = 0;
    KI_TRY(take_number(m, bytes, &i));
    if (i >= m->n_memo) return broken(m, "it asks for a value that it did not remember");
    return push(m, m->memo[i]);
}

static kith_status make_tuple(machine *m, size_t first, size_t n) {
    value *v = NULL;
    KI_TRY(new_value(m, TUPLE, &v));
    v->number = (int64_t)n;
    v->item = ki_arena_alloc(m->arena, n + 1, sizeof(value *));
    if (!v->item) return ki_fail_memory(m->err, n, "a pickle");
    for (size_t i = 0; i < n; i++) v->item[i] = m->stack[first + i];
    return push(m, v);
}

static kith_status do_short_tuple(machine *m, size_t n) {
    if (m->n < n) return broken(m, "its stack is empty");
    m->n -= n;
    return make_tuple(m, m->n, n);
}

static kith_status do_tuple(machine *m) {
    size_t first = 0, n = 0;
    KI_TRY(pop_to_mark(m, &first, &n));
    return make_tuple(m, first, n);
}

static kith_status set_item(machine *m, value *dict, value *key, value *held) {
    value *entry = NULL;
    if (dict->kind != DICT) return broken(m, "items are set in what is no dict");
    KI_TRY(new_value(m, NOTHING, &entry));
    entry->key = key;
    entry->held = held;
    if (dict->last)
        dict->last->next = entry;
    else
        dict->first = entry;
    dict->last = entry;
    return KITH_OK;
}

static kith_status do_setitems(machine *m) {
    size_t first = 0, n = 0;
    KI_TRY(pop_to_mark(m, &first, &n));
    if (m->n == 0 || n % 2 != 0) return broken(m, "a key is without a value");
    for (size_t i = 0; i < n; i += 2)
        KI_TRY(set_item(m, m->stack[m->n - 1], m->stack[first + i], m->stack[first + i + 1]));
    return KITH_OK;
}

static kith_status do_setitem(machine *m) {
    value *key = NULL, *held = NULL;
    KI_TRY(pop(m, &held));
    KI_TRY(pop(m, &key));
    return m->n > 0 ? set_item(m, m->stack[m->n - 1], key, held) : broken(m, "its stack is empty");
}

/* ('storage', torch.FloatStorage, key, place, numbers) */
static kith_status do_persistent(machine *m) {
    value *t = NULL, *v = NULL;
    KI_TRY(pop(m, &t));
    const bool fits = t->kind == TUPLE && t->number == 5 && t->item[0]->kind == TEXT &&
                      strcmp(t->item[0]->text, "storage") == 0 && t->item[1]->kind == GLOBAL &&
                      t->item[1]->number >= FIRST_STORAGE && t->item[2]->kind == TEXT &&
                      t->item[4]->kind == NUMBER && t->item[4]->number >= 0;
    if (!fits) return broken(m, "a storage is described in another way");
    KI_TRY(new_value(m, STORAGE, &v));
    v->text = t->item[2]->text;
    v->dtype = storage_types[t->item[1]->number - FIRST_STORAGE];
    v->number = t->item[4]->number;
    return push(m, v);
}

static bool take_sizes(const value *t, int64_t *ret) {
    if (t->kind != TUPLE || t->number > KITH_MAX_DIMS) return false;
    for (int64_t i = 0; i < t->number; i++) {
        if (t->item[i]->kind != NUMBER || t->item[i]->number < 0) return false;
        ret[i] = t->item[i]->number;
    }
    return true;
}

/* (storage, offset, sizes, strides, requires_grad, hooks): the last two say nothing about the numbers. */
static kith_status rebuild_tensor(machine *m, const value *a) {
    value *v = NULL;
    ki_pickle_tensor *t = ki_arena_alloc(m->arena, 1, sizeof *t);
    if (!t) return ki_fail_memory(m->err, sizeof *t, "a pickle");
    *t = (ki_pickle_tensor){0};
    if (a->number < 4 || a->item[0]->kind != STORAGE || a->item[1]->kind != NUMBER ||
        a->item[1]->number < 0 || !take_sizes(a->item[2], t->dim) || !take_sizes(a->item[3], t->stride) ||
        a->item[2]->number != a->item[3]->number)
        return broken(m, "a tensor is described in another way");
    t->storage = a->item[0]->text;
    t->dtype = a->item[0]->dtype;
    t->numbers = a->item[0]->number;
    t->offset = a->item[1]->number;
    t->n_dims = (int)a->item[2]->number;
    KI_TRY(new_value(m, TENSOR, &v));
    v->tensor = t;
    return push(m, v);
}

static kith_status do_reduce(machine *m) {
    value *a = NULL, *f = NULL;
    KI_TRY(pop(m, &a));
    KI_TRY(pop(m, &f));
    if (f->kind != GLOBAL || a->kind != TUPLE) return broken(m, "it calls what is no function");
    if (f->number == ORDERED_DICT && a->number == 0) return push_new(m, DICT, 0);
    if (f->number == REBUILD_TENSOR) return rebuild_tensor(m, a);
    if (f->number == REBUILD_PARAMETER && a->number > 0 && a->item[0]->kind == TENSOR)
        return push(m, a->item[0]);
    return broken(m, "it calls a function with other arguments");
}

/* The attributes of an OrderedDict (_metadata: versions of layers) are left out. */
static kith_status do_build(machine *m) {
    value *attributes = NULL;
    KI_TRY(pop(m, &attributes));
    if (m->n == 0 || m->stack[m->n - 1]->kind != DICT)
        return broken(m, "it sets attributes of what is no dict");
    return KITH_OK;
}

static kith_status do_int(machine *m, size_t bytes, bool is_signed) {
    uint64_t x = 0;
    KI_TRY(take_number(m, bytes, &x));
    return push_new(m, NUMBER, is_signed ? (int64_t)(int32_t)(uint32_t)x : (int64_t)x);
}

/* A little-endian two's complement of any length; more than eight bytes are no size. */
static kith_status do_long(machine *m) {
    uint64_t n = 0, x = 0;
    KI_TRY(take_number(m, 1, &n));
    if (n > 8) return broken(m, "a number has more than eight bytes");
    KI_TRY(take_number(m, n, &x));
    if (n > 0 && n < 8 && x >> (8 * n - 1)) x |= UINT64_MAX << (8 * n);
    return push_new(m, NUMBER, (int64_t)x);
}

static kith_status do_protocol(machine *m) {
    uint64_t version = 0;
    KI_TRY(take_number(m, 1, &version));
    if (version == 2) return KITH_OK;
    return ki_fail(m->err, KITH_EUNSUPPORTED, "%s: a pickle of protocol %d; wanted 2, as torch.save writes",
                   m->name, (int)version);
}

/* A float is no part of a tensor; it is held as nothing. */
static kith_status do_float(machine *m) {
    const unsigned char *ignored = NULL;
    KI_TRY(take(m, 8, &ignored));
    return push_new(m, NOTHING, 0);
}

static kith_status step(machine *m, unsigned char code) {
    switch (code) {
    case 0x80: return do_protocol(m);
    case '}': return push_new(m, DICT, 0);
    case ')': return make_tuple(m, m->n, 0);
    case '(': return push_new(m, MARK, 0);
    case 'X': return do_text(m);
    case 'c': return do_global(m);
    case 'q': return do_memo_put(m, 1);
    case 'r': return do_memo_put(m, 4);
    case 'h': return do_memo_get(m, 1);
    case 'j': return do_memo_get(m, 4);
    case 'Q': return do_persistent(m);
    case 'K': return do_int(m, 1, false);
    case 'M': return do_int(m, 2, false);
    case 'J': return do_int(m, 4, true);
    case 0x8a: return do_long(m);
    case 't': return do_tuple(m);
    case 0x85: return do_short_tuple(m, 1);
    case 0x86: return do_short_tuple(m, 2);
    case 0x87: return do_short_tuple(m, 3);
    case 0x88: return push_new(m, NUMBER, 1);
    case 0x89: return push_new(m, NUMBER, 0);
    case 'N': return push_new(m, NOTHING, 0);
    case 'G': return do_float(m);
    case 'R': return do_reduce(m);
    case 's': return do_setitem(m);
    case 'u': return do_setitems(m);
    case 'b': return do_build(m);
    default: break;
    }
    ki_fail(m->err, KITH_EUNSUPPORTED, "%s: the pickle has opcode 0x%02x, which no state dict of tensors has",
            m->name, code);
    return ki_hint(m->err, KITH_EUNSUPPORTED,
                   "in PyTorch, save model.state_dict() alone; nothing in it was executed");
}

/* ---- what it made ---- */

static kith_status keep(machine *m, const char *path, const ki_pickle_tensor *tensor, ki_pickle *to) {
    if (to->n == to->capacity) {
        const size_t capacity = to->capacity ? 2 * to->capacity : 64;
        ki_pickle_tensor *more = ki_arena_alloc(m->arena, capacity, sizeof *more);
        if (!more) return ki_fail_memory(m->err, capacity, "a pickle");
        if (to->n > 0) memcpy(more, to->tensor, to->n * sizeof *more);
        to->tensor = more;
        to->capacity = capacity;
    }
    to->tensor[to->n] = *tensor;
    to->tensor[to->n++].name = path;
    return KITH_OK;
}

/* Tensors in dicts in dicts: their keys with dots between. Values that are no tensors are left out. A dict may be in
 * several others, and in itself, so there are limits to the depth and to the entries looked at. */
static kith_status collect(machine *m, const value *dict, const char *path, int depth, ki_pickle *to) {
    if (depth == MOST_DEPTH) return broken(m, "dicts are nested too deep");
    for (const value *e = dict->first; e; e = e->next) {
        if (++m->n_visited > MOST_ENTRIES) return broken(m, "it has more than 65,536 entries");
        if (e->key->kind != TEXT || (e->held->kind != TENSOR && e->held->kind != DICT)) continue;
        m->name_bytes += strlen(path) + strlen(e->key->text) + 2;
        if (m->name_bytes > MOST_NAME_BYTES) return broken(m, "its names are too long");
        const char *name = *path ? ki_arena_printf(m->arena, "%s.%s", path, e->key->text) : e->key->text;
        if (!name) return ki_fail_memory(m->err, 64, "a pickle");
        if (e->held->kind == TENSOR)
            KI_TRY(keep(m, name, e->held->tensor, to));
        else
            KI_TRY(collect(m, e->held, name, depth + 1, to));
    }
    return KITH_OK;
}

kith_status ki_pickle_parse(const void *bytes, size_t n, const char *name, ki_arena *arena,
                            ki_pickle *ret_pickle, kith_error *err) {
    kith_status status = KITH_OK;
    machine m = {
        .at = bytes, .end = (const unsigned char *)bytes + n, .name = name, .arena = arena, .err = err};
    ki_pickle pickle = {0};
    for (;;) {
        const unsigned char *code = NULL;
        KI_CHECK(take(&m, 1, &code));
        if (*code == '.') break;
        KI_CHECK(step(&m, *code));
    }
    if (m.n != 1 || m.stack[0]->kind != DICT) {
        status = broken(&m, "it makes no dict");
        goto done;
    }
    KI_CHECK(collect(&m, m.stack[0], "", 0, &pickle));
    *ret_pickle = pickle;
done:
    ki_free(m.stack);
    ki_free(m.memo);
    return status;
}
