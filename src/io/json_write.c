/* JSON text, token by token. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/atomic.h"
#include "base/error.h"
#include "base/text.h"
#include "io/json.h"
#include "kith/experimental/json.h"

enum { MOST_LEVELS = 64, NUMBER_BYTES = 64 };

struct kith_json {
    char *text;
    size_t capacity, n;
    int depth;                   /* open objects and arrays */
    bool is_object[MOST_LEVELS]; /* by level */
    bool has_items[MOST_LEVELS]; /* a comma is due */
    bool has_key;                /* a value is due */
    bool has_root;               /* the one value has begun */
    kith_status status;          /* the first failure */
    const char *why;
};

kith_status kith_json_new(kith_json **ret_json, kith_error *err) {
    KI_NEED(err, ret_json);
    return ki_zalloc_or(ret_json, 1, sizeof **ret_json, "JSON text", err);
}

void kith_json_free(kith_json *json) {
    if (!json) return;
    ki_free(json->text);
    ki_free(json);
}

void kith_json_reset(kith_json *json) {
    if (!json) return;
    *json = (kith_json){.text = json->text, .capacity = json->capacity};
}

static void go_wrong(kith_json *json, kith_status status, const char *why) {
    if (json->status != KITH_OK) return;
    json->status = status;
    json->why = why;
}

static void put(kith_json *json, const char *bytes, size_t n) {
    if (json->status != KITH_OK) return;
    if (ki_grow(&json->text, &json->capacity, json->n + n + 1, 1, "JSON text", NULL) != KITH_OK) {
        go_wrong(json, KITH_ENOMEM, "no memory");
        return;
    }
    memcpy(json->text + json->n, bytes, n);
    json->n += n;
    json->text[json->n] = '\0';
}

static void put_escaped(kith_json *json, const char *s) {
    put(json, "\"", 1);
    for (size_t left = strlen(s); left > 0;) {
        const unsigned char byte = (unsigned char)*s;
        size_t n = 1;
        char escape[8];
        if (byte == '"' || byte == '\\') {
            escape[0] = '\\';
            escape[1] = (char)byte;
            put(json, escape, 2);
        } else if (byte < 0x20 || byte == 0x7f) {
            ki_snprintf(escape, sizeof escape, "\\u%04x", byte);
            put(json, escape, 6);
        } else {
            n = ki_utf8_next(s, left);
            if (n)
                put(json, s, n);
            else
                put(json, "\xef\xbf\xbd", 3);
            if (!n) n = 1;
        }
        s += n;
        left -= n;
    }
    put(json, "\"", 1);
}

/* What comes before a value or a bracket. */
static bool begin_value(kith_json *json) {
    if (json->depth == 0) {
        if (json->has_root) go_wrong(json, KITH_EINVAL, "a second value after the first was complete");
        json->has_root = true;
    } else if (json->is_object[json->depth - 1]) {
        if (!json->has_key) go_wrong(json, KITH_EINVAL, "a value without a key in an object");
        json->has_key = false;
    } else {
        if (json->has_items[json->depth - 1]) put(json, ", ", 2);
        json->has_items[json->depth - 1] = true;
    }
    return json->status == KITH_OK;
}

static void open_level(kith_json *json, bool is_object) {
    if (!begin_value(json)) return;
    if (json->depth == MOST_LEVELS) {
        go_wrong(json, KITH_EINVAL, "nesting beyond 64 levels");
        return;
    }
    json->is_object[json->depth] = is_object;
    json->has_items[json->depth] = false;
    json->depth++;
    put(json, is_object ? "{" : "[", 1);
}

static void close_level(kith_json *json, bool is_object) {
    if (json->depth == 0 || json->is_object[json->depth - 1] != is_object || json->has_key) {
        go_wrong(json, KITH_EINVAL, "an end that matches no begin");
        return;
    }
    json->depth--;
    put(json, is_object ? "}" : "]", 1);
}

void kith_json_object_begin(kith_json *json) {
    if (!json) return;
    open_level(json, true);
}
void kith_json_object_end(kith_json *json) {
    if (!json) return;
    close_level(json, true);
}
void kith_json_array_begin(kith_json *json) {
    if (!json) return;
    open_level(json, false);
}
void kith_json_array_end(kith_json *json) {
    if (!json) return;
    close_level(json, false);
}

void kith_json_key(kith_json *json, const char *key) {
    if (!json || !key) return;
    if (json->depth == 0 || !json->is_object[json->depth - 1] || json->has_key) {
        go_wrong(json, KITH_EINVAL, "a key where none belongs");
        return;
    }
    if (json->has_items[json->depth - 1]) put(json, ", ", 2);
    json->has_items[json->depth - 1] = true;
    json->has_key = true;
    put_escaped(json, key);
    put(json, ": ", 2);
}

static void put_word(kith_json *json, const char *word) {
    if (begin_value(json)) put(json, word, strlen(word));
}

void kith_json_real(kith_json *json, double value) {
    if (!json) return;
    char text[NUMBER_BYTES];
    if (!isfinite(value)) {
        put_word(json, "null");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        ki_snprintf(text, sizeof text, "%.*g", digits, value);
        double back;
        if (ki_parse_double(text, &back) && back == value) break;
    }
    put_word(json, text);
}

void kith_json_real32(kith_json *json, float value) {
    if (!json) return;
    char text[NUMBER_BYTES];
    if (!isfinite(value)) {
        put_word(json, "null");
        return;
    }
    for (int digits = 6; digits <= 9; digits++) {
        ki_snprintf(text, sizeof text, "%.*g", digits, (double)value);
        float back;
        if (ki_parse_float(text, &back) && back == value) break;
    }
    put_word(json, text);
}

void kith_json_int(kith_json *json, int64_t value) {
    if (!json) return;
    char text[NUMBER_BYTES];
    ki_snprintf(text, sizeof text, "%lld", (long long)value);
    put_word(json, text);
}

void kith_json_bool(kith_json *json, bool value) {
    if (!json) return;
    put_word(json, value ? "true" : "false");
}
void kith_json_null(kith_json *json) {
    if (!json) return;
    put_word(json, "null");
}

void kith_json_string(kith_json *json, const char *value) {
    if (!json) return;
    if (!value)
        put_word(json, "null");
    else if (begin_value(json))
        put_escaped(json, value);
}

kith_status kith_json_finish(kith_json *json, const char **ret_text, kith_error *err) {
    KI_NEED(err, json, ret_text);
    if (json->status == KITH_OK && (!json->has_root || json->depth > 0))
        go_wrong(json, KITH_EINVAL, "the value is not complete");
    if (json->status != KITH_OK) return ki_fail(err, json->status, "cannot make JSON text: %s", json->why);
    *ret_text = json->text;
    return KITH_OK;
}

kith_status ki_json_save(kith_json *json, const char *path, kith_error *err) {
    kith_status status;
    const char *text = NULL;
    ki_atomic_file file = {0};
    KI_CHECK(kith_json_finish(json, &text, err));
    KI_CHECK(ki_atomic_open(&file, path, err));
    KI_CHECK(ki_atomic_write(&file, text, strlen(text), err));
    KI_CHECK(ki_atomic_write(&file, "\n", 1, err));
    KI_CHECK(ki_atomic_commit(&file, err));
done:
    ki_atomic_discard(&file);
    return status;
}
