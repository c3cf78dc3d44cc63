/* What evaluation needs of files: hashes for result cards, and results read back. */
#include "kith/eval.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/text.h"
#include "core/value.h"
#include "io/file.h"
#include "io/json.h"

struct kith_result {
    ki_arena arena;
    ki_value *root;
};

kith_status kith_result_read(const char *path, kith_result **ret_result, kith_error *err) {
    kith_result *r = NULL;
    KI_TRY(ki_zalloc_or(&r, 1, sizeof *r, "result", err));
    kith_status status = ki_json_read(path, &r->arena, &r->root, err);
    if (status == KITH_OK && r->root->kind != KI_VALUE_MAP) {
        char found[96];
        status = ki_fail(err, KITH_EFORMAT, "%s holds %s; wanted a result of kith eval --json", path,
                         ki_value_describe(r->root, found, sizeof found));
    }
    if (status != KITH_OK) {
        kith_result_free(r);
        return status;
    }
    *ret_result = r;
    return KITH_OK;
}

void kith_result_free(kith_result *result) {
    if (!result) return;
    ki_arena_release(&result->arena);
    ki_free(result);
}

static const ki_value *find(const kith_result *result, const char *path) {
    const ki_value *at = result->root;
    while (at && *path) {
        char key[128];
        const size_t n = strcspn(path, ".");
        if (n >= sizeof key) return NULL;
        memcpy(key, path, n);
        key[n] = '\0';
        int64_t i = 0;
        if (at->kind == KI_VALUE_LIST)
            at = ki_parse_int64(key, &i) && i >= 0 ? ki_value_at(at, (size_t)i) : NULL;
        else
            at = ki_value_get(at, key);
        path += n + (path[n] == '.');
    }
    return at;
}

const char *kith_result_text(const kith_result *result, const char *path) {
    const ki_value *value = find(result, path);
    return value && value->kind == KI_VALUE_SCALAR ? value->text : NULL;
}

bool kith_result_real(const kith_result *result, const char *path, double *ret_value) {
    const char *text = kith_result_text(result, path);
    return text && ki_parse_double(text, ret_value);
}

const char *kith_result_key(const kith_result *result, const char *path, size_t i) {
    const ki_value *map = find(result, path);
    const ki_value *entry = map && map->kind == KI_VALUE_MAP ? ki_value_at(map, i) : NULL;
    return entry ? entry->key : NULL;
}
