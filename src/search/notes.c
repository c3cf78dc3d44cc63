/* The table of notes, and notes as numbers and lists. */
#include "search/notes.h"

#include <string.h>

#include "base/buffer.h"
#include "base/text.h"

const ki_note_type ki_note_types[KI_N_NOTES] = {
    [KI_NOTE_SOURCES] = {"sources", KI_NOTE_IS_PATHS, true},
    [KI_NOTE_DATASET] = {"dataset", KI_NOTE_IS_TEXT, false},
    [KI_NOTE_SPLIT] = {"split", KI_NOTE_IS_TEXT, false},
    [KI_NOTE_FOLDER] = {"folder", KI_NOTE_IS_PATH, true},
    [KI_NOTE_MODEL] = {"model", KI_NOTE_IS_PATH, true},
    [KI_NOTE_MODEL_NAME] = {"model_name", KI_NOTE_IS_TEXT, false},
    [KI_NOTE_BACKBONE] = {"backbone", KI_NOTE_IS_TEXT, false},
    [KI_NOTE_SETTINGS] = {"settings", KI_NOTE_IS_TEXT, false},
    [KI_NOTE_POOL] = {"pool", KI_NOTE_IS_TEXT, false},
    [KI_NOTE_TAP] = {"tap", KI_NOTE_IS_TEXT, false},
    [KI_NOTE_RESIZE] = {"resize", KI_NOTE_IS_TEXT, false},
    [KI_NOTE_SIDE] = {"side", KI_NOTE_IS_NUMBER, false},
    [KI_NOTE_VIEWS] = {"views", KI_NOTE_IS_NUMBER, false},
    [KI_NOTE_MEASURED] = {"measured", KI_NOTE_IS_TEXT, false},
    [KI_NOTE_NAMES] = {"names", KI_NOTE_IS_TEXT, false},
    [KI_NOTE_RELIABILITY] = {"reliability", KI_NOTE_IS_TEXT, false},
    [KI_NOTE_EXIF] = {"exif", KI_NOTE_IS_TEXT, false},
    [KI_NOTE_META] = {"meta", KI_NOTE_IS_PATH, true},
    [KI_NOTE_META_HASH] = {"meta_hash", KI_NOTE_IS_TEXT, false},
    [KI_NOTE_META_COLUMNS] = {"meta_columns", KI_NOTE_IS_TEXT, false},
    [KI_NOTE_GROUPS] = {"groups", KI_NOTE_IS_TEXT, false},
    [KI_NOTE_PLACE] = {"place", KI_NOTE_IS_PATH, false},
};

ki_note ki_note_named(const char *name) {
    int i = 0;
    while (i < KI_N_NOTES && strcmp(ki_note_types[i].name, name) != 0) i++;
    return (ki_note)i;
}

const char *ki_index_note(const kith_index *index, ki_note note) {
    return kith_index_note(index, ki_note_types[note].name);
}

kith_status ki_index_note_set(kith_index *index, ki_note note, const char *text, kith_error *err) {
    return kith_index_note_set(index, ki_note_types[note].name, text, err);
}

kith_status ki_index_note_number(const kith_index *index, ki_note note, int64_t *ret_value, kith_error *err) {
    const char *text = ki_index_note(index, note);
    *ret_value = 0;
    if (!text || ki_parse_int64(text, ret_value)) return KITH_OK;
    return ki_fail(err, KITH_EFORMAT, "the index notes '%.40s' as '%s'; wanted a whole number", text,
                   ki_note_types[note].name);
}

kith_status ki_index_note_number_set(kith_index *index, ki_note note, int64_t value, kith_error *err) {
    char text[24];
    ki_snprintf(text, sizeof text, "%lld", (long long)value);
    return ki_index_note_set(index, note, text, err);
}

kith_status ki_index_note_paths(const kith_index *index, ki_note note, ki_arena *arena,
                                const char ***ret_paths, int64_t *ret_n, kith_error *err) {
    const char *text = ki_index_note(index, note);
    int64_t n = 0;
    for (const char *at = text; at && *at; at++) n += *at == '\n';
    const char **paths = ki_arena_alloc(arena, (size_t)n + 1, sizeof *paths);
    if (!paths) return ki_fail_memory(err, (size_t)n * sizeof *paths, "paths");
    *ret_paths = paths;
    *ret_n = 0;
    for (const char *at = text; at && *at;) {
        const size_t length = strcspn(at, "\n");
        paths[*ret_n] = ki_arena_strndup(arena, at, length);
        if (!paths[(*ret_n)++]) return ki_fail_memory(err, length, "a path");
        at += length + (at[length] == '\n');
    }
    return KITH_OK;
}

kith_status ki_index_note_paths_set(kith_index *index, ki_note note, const char *const *paths, int64_t n,
                                    kith_error *err) {
    ki_buffer text = {.err = err};
    for (int64_t i = 0; i < n; i++) {
        ki_buffer_add(&text, paths[i], strlen(paths[i]));
        ki_buffer_add(&text, i + 1 < n ? "\n" : "", 1);
    }
    if (n == 0) ki_buffer_add(&text, "", 1);
    const kith_status status =
        text.status == KITH_OK ? ki_index_note_set(index, note, text.data, err) : text.status;
    ki_buffer_release(&text);
    return status;
}
