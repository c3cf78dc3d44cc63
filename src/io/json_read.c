/* jansson parses; the tree is copied into the caller's arena. jansson's own memory does not come
 * from core/alloc.h: its allocator hook is one for the whole process, which a library must not take. */
#include <jansson.h>
#include <string.h>

#include "core/alloc.h"
#include "io/file.h"
#include "io/json.h"

enum { MOST_BYTES = 64 << 20, MOST_LEVELS = 64 };

static kith_status fail_memory(kith_error *err) {
    return ki_fail(err, KITH_ENOMEM, "no memory for a JSON document");
}

/* Bounds the recursion below, and jansson's own. */
static bool is_too_deep(const char *text, size_t n) {
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < n; i++) {
        if (in_string) {
            if (text[i] == '\\')
                i++;
            else if (text[i] == '"')
                in_string = false;
        } else if (text[i] == '"')
            in_string = true;
        else if (text[i] == '{' || text[i] == '[') {
            if (++depth > MOST_LEVELS) return true;
        } else if (text[i] == '}' || text[i] == ']')
            depth--;
    }
    return false;
}

static kith_status copy_value(const json_t *json, ki_arena *arena, ki_value **ret_value, kith_error *err) {
    ki_value *value = NULL, *item = NULL;
    if (json_is_object(json)) {
        if (!(value = ki_value_new(arena, KI_VALUE_MAP, NULL))) return fail_memory(err);
        json_t *object = (json_t *)(uintptr_t)json;
        for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
            KI_TRY(copy_value(json_object_iter_value(at), arena, &item, err));
            const char *key = ki_arena_strdup(arena, json_object_iter_key(at));
            if (!key) return fail_memory(err);
            ki_value_append(value, key, item);
        }
    } else if (json_is_array(json)) {
        if (!(value = ki_value_new(arena, KI_VALUE_LIST, NULL))) return fail_memory(err);
        for (size_t i = 0; i < json_array_size(json); i++) {
            KI_TRY(copy_value(json_array_get(json, i), arena, &item, err));
            ki_value_append(value, NULL, item);
        }
    } else if (json_is_null(json)) {
        if (!(value = ki_value_new(arena, KI_VALUE_NULL, NULL))) return fail_memory(err);
    } else if (json_is_string(json)) {
        if (!(value = ki_value_new(arena, KI_VALUE_SCALAR, json_string_value(json)))) return fail_memory(err);
    } else {
        char number[64];
        const size_t n = json_dumpb(json, number, sizeof number - 1, JSON_ENCODE_ANY);
        if (n == 0) return fail_memory(err); /* jansson's: a number always has letters */
        if (n >= sizeof number) return ki_fail(err, KITH_EINTERNAL, "a JSON number of %zu letters", n);
        number[n] = '\0';
        if (!(value = ki_value_new(arena, KI_VALUE_SCALAR, number))) return fail_memory(err);
    }
    *ret_value = value;
    return KITH_OK;
}

/* jansson has a code for it, but sets it in few places: where an allocation fails it mostly returns without a text, which
 * every error in the JSON itself has. Where it fails for the letters of a string, jansson calls the string wrong. */
kith_status ki_json_check_memory(const json_error_t *why, const char *name_for_errors, kith_error *err) {
    if (json_error_code(why) != json_error_out_of_memory && why->text[0] != '\0') return KITH_OK;
    return ki_fail(err, KITH_ENOMEM, "%s: no memory for the document", name_for_errors);
}

kith_status ki_json_parse(const char *text, size_t n, const char *name_for_errors, ki_arena *arena,
                          ki_value **ret_root, kith_error *err) {
    if (n > MOST_BYTES)
        return ki_fail(err, KITH_EFORMAT, "%s: %zu bytes of JSON; wanted at most %d", name_for_errors, n,
                       MOST_BYTES);
    if (is_too_deep(text, n))
        return ki_fail(err, KITH_EFORMAT, "%s: JSON nested deeper than %d levels", name_for_errors,
                       MOST_LEVELS);
    json_error_t why;
    json_t *json = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (!json) {
        KI_TRY(ki_json_check_memory(&why, name_for_errors, err));
        return ki_fail(err, KITH_EFORMAT, "%s:%d: not JSON: %s", name_for_errors, why.line, why.text);
    }
    const kith_status status = copy_value(json, arena, ret_root, err);
    json_decref(json);
    return status;
}

kith_status ki_json_read(const char *path, ki_arena *arena, ki_value **ret_root, kith_error *err) {
    char *text = NULL;
    size_t n = 0;
    KI_TRY(ki_file_read(path, MOST_BYTES, &text, &n, err));
    const kith_status status = ki_json_parse(text, n, path, arena, ret_root, err);
    ki_free(text);
    return status;
}
