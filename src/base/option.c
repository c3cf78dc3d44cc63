/* Options tables: defaults, parsing, and their text for lists. */
#include "base/option.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { MOST_OPTIONS = 64 };

/* A default is converted to the type of its field and to no other: the default of a REAL may be a value that
 * no integer has, such as NAN. */
static void set_default(const ki_option *o, void *field) {
    const ki_value *none = NULL;
    switch (o->type) {
    case KI_OPTION_T_REAL: memcpy(field, &o->def, sizeof o->def); break;
    case KI_OPTION_T_INT: memcpy(field, &(int64_t){(int64_t)o->def}, sizeof(int64_t)); break;
    case KI_OPTION_T_BOOL: memcpy(field, &(bool){o->def != 0}, sizeof(bool)); break;
    case KI_OPTION_T_CHOICE: memcpy(field, &(int){(int)o->def}, sizeof(int)); break;
    case KI_OPTION_T_TEXT: memcpy(field, &o->def_text, sizeof o->def_text); break;
    case KI_OPTION_T_TREE: memcpy(field, &none, sizeof none); break;
    case KI_OPTION_T_END: break;
    }
}

void ki_options_default(const ki_option *table, void *settings) {
    for (const ki_option *o = table; o->type != KI_OPTION_T_END; o++)
        set_default(o, (char *)settings + o->offset);
}

kith_status ki_fail_unknown(kith_error *err, const char *what, const char *found, const char *const *names,
                            size_t n_names) {
    ki_fail(err, KITH_ENOTFOUND, "unknown %s '%.60s'", what, found);
    const char *near = ki_nearest(found, names, n_names);
    if (near) return ki_hint(err, KITH_ENOTFOUND, "did you mean '%s'?", near);
    char list[200] = "";
    size_t used = 0;
    for (size_t i = 0; i < n_names; i++) {
        const int n = ki_snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
        if (n < 0 || (size_t)n >= sizeof list - used) {
            list[used] = '\0';
            break;
        }
        used += (size_t)n;
    }
    return ki_hint(err, KITH_ENOTFOUND, "known: %s", list);
}

double ki_options_real(const ki_option *table, const void *settings, const char *name, double without) {
    double value = without;
    for (const ki_option *o = table; o->type != KI_OPTION_T_END; o++) {
        if (o->type == KI_OPTION_T_REAL && strcmp(o->name, name) == 0)
            memcpy(&value, (const char *)settings + o->offset, sizeof value);
    }
    return value;
}

const char *ki_option_default_text(const ki_option *option, char *buf, size_t buf_bytes) {
    switch (option->type) {
    case KI_OPTION_T_REAL:
    case KI_OPTION_T_INT: ki_snprintf(buf, buf_bytes, "%.10g", option->def); break;
    case KI_OPTION_T_BOOL: ki_snprintf(buf, buf_bytes, "%s", option->def != 0 ? "true" : "false"); break;
    case KI_OPTION_T_CHOICE: ki_snprintf(buf, buf_bytes, "%s", option->choices[(int)option->def]); break;
    case KI_OPTION_T_TEXT:
    case KI_OPTION_T_TREE:
    case KI_OPTION_T_END:
        ki_snprintf(buf, buf_bytes, "%s", option->def_text ? option->def_text : "none");
        break;
    }
    return buf;
}

static const char *end_text(double end, char *buf, size_t buf_bytes) {
    if (isinf(end))
        ki_snprintf(buf, buf_bytes, "%s", end < 0 ? "-inf" : "inf");
    else
        ki_snprintf(buf, buf_bytes, "%.10g", end);
    return buf;
}

const char *ki_option_range_text(const ki_option *option, char *buf, size_t buf_bytes) {
    char least[32], most[32];
    size_t used = 0;
    switch (option->type) {
    case KI_OPTION_T_REAL:
    case KI_OPTION_T_INT:
        ki_snprintf(buf, buf_bytes, "%s … %s", end_text(option->least, least, sizeof least),
                    end_text(option->most, most, sizeof most));
        break;
    case KI_OPTION_T_BOOL: ki_snprintf(buf, buf_bytes, "true|false"); break;
    case KI_OPTION_T_CHOICE:
        buf[0] = '\0';
        for (int i = 0; option->choices[i]; i++) {
            const int n = ki_snprintf(buf + used, buf_bytes - used, "%s%s", i ? "|" : "", option->choices[i]);
            if (n < 0 || (size_t)n >= buf_bytes - used) break;
            used += (size_t)n;
        }
        break;
    case KI_OPTION_T_TEXT: ki_snprintf(buf, buf_bytes, "text"); break;
    case KI_OPTION_T_TREE:
    case KI_OPTION_T_END: ki_snprintf(buf, buf_bytes, "see help"); break;
    }
    return buf;
}

static kith_status fail_value(kith_error *err, const char *where, const ki_option *o, const ki_value *v) {
    char found[80], range[160];
    ki_fail(err, KITH_EINVAL, "%s: %s is %s", where, o->name, ki_value_describe(v, found, sizeof found));
    return ki_hint(err, KITH_EINVAL, "wanted %s: %s",
                   o->type == KI_OPTION_T_INT    ? "a whole number"
                   : o->type == KI_OPTION_T_REAL ? "a number"
                                                 : "one value",
                   ki_option_range_text(o, range, sizeof range));
}

static bool parse_bool(const char *text, bool *ret) {
    if (!strcmp(text, "true") || !strcmp(text, "yes") || !strcmp(text, "on")) return *ret = true, true;
    if (!strcmp(text, "false") || !strcmp(text, "no") || !strcmp(text, "off")) return *ret = false, true;
    return false;
}

static kith_status parse_one(const ki_option *o, const ki_value *v, const char *where, void *settings,
                             kith_error *err) {
    void *field = (char *)settings + o->offset;
    if (o->type == KI_OPTION_T_TREE) {
        memcpy(field, &v, sizeof v);
        return KITH_OK;
    }
    if (v->kind != KI_VALUE_SCALAR) return fail_value(err, where, o, v);
    double real = 0;
    int64_t whole = 0;
    bool yes = false;
    switch (o->type) {
    case KI_OPTION_T_REAL:
        if (!ki_parse_double(v->text, &real) || !(real >= o->least && real <= o->most))
            return fail_value(err, where, o, v);
        memcpy(field, &real, sizeof real);
        return KITH_OK;
    case KI_OPTION_T_INT:
        if (!ki_parse_whole(v->text, &whole) || (double)whole < o->least || (double)whole > o->most)
            return fail_value(err, where, o, v);
        memcpy(field, &whole, sizeof whole);
        return KITH_OK;
    case KI_OPTION_T_BOOL:
        if (!parse_bool(v->text, &yes)) return fail_value(err, where, o, v);
        memcpy(field, &yes, sizeof yes);
        return KITH_OK;
    case KI_OPTION_T_CHOICE:
        for (int i = 0; o->choices[i]; i++) {
            if (strcmp(o->choices[i], v->text) == 0) {
                memcpy(field, &i, sizeof i);
                return KITH_OK;
            }
        }
        return fail_value(err, where, o, v);
    case KI_OPTION_T_TEXT: memcpy(field, &v->text, sizeof v->text); return KITH_OK;
    case KI_OPTION_T_TREE:
    case KI_OPTION_T_END: break;
    }
    return ki_fail(err, KITH_EINTERNAL, "%s: option %s has no type", where, o->name);
}

static bool is_listed(const char *key, const char *const *names) {
    for (; names && *names; names++) {
        if (strcmp(*names, key) == 0) return true;
    }
    return false;
}

static kith_status fail_key(kith_error *err, const char *where, const ki_option *table,
                            const char *const *also, const ki_value *v) {
    const char *names[MOST_OPTIONS];
    size_t n = 0;
    for (const ki_option *o = table; o->type != KI_OPTION_T_END && n < MOST_OPTIONS; o++)
        names[n++] = o->name;
    for (; also && *also && n < MOST_OPTIONS; also++) names[n++] = *also;
    ki_fail_unknown(err, "option", v->key, names, n);
    return ki_prefix(err, KITH_ENOTFOUND, "%s", where);
}

kith_status ki_options_parse(const ki_option *table, const ki_value *map, const char *const *also,
                             const char *where, void *settings, kith_error *err) {
    ki_options_default(table, settings);
    if (!map || map->kind == KI_VALUE_NULL) return KITH_OK;
    if (map->kind != KI_VALUE_MAP) {
        char found[80];
        return ki_fail(err, KITH_EINVAL, "%s is %s; wanted a map of options", where,
                       ki_value_describe(map, found, sizeof found));
    }
    for (const ki_value *v = map->first; v; v = v->next) {
        if (is_listed(v->key, also)) continue;
        const ki_option *o = table;
        while (o->type != KI_OPTION_T_END && strcmp(o->name, v->key) != 0) o++;
        if (o->type == KI_OPTION_T_END) return fail_key(err, where, table, also, v);
        KI_TRY(parse_one(o, v, where, settings, err));
    }
    return KITH_OK;
}
