/* Text of a page that people wrote, kept in blocks by name. */
#include <string.h>

#include "base/alloc.h"
#include "data/dataset/dataset.h"
#include "io/file.h"
#include "reproduce/page.h"

enum { MOST_BYTES = 1 << 20, MOST_BLOCKS = 128 };

/* The name in a line `<!-- NAME -->`, or NULL. */
static const char *block_name(const char *line, size_t n, size_t *ret_n) {
    static const char open[] = "<!-- ", close[] = " -->";
    const size_t both = sizeof open - 1 + sizeof close - 1;
    while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\r')) n--;
    if (n <= both || strncmp(line, open, sizeof open - 1) != 0) return NULL;
    if (strncmp(line + n - (sizeof close - 1), close, sizeof close - 1) != 0) return NULL;
    *ret_n = n - both;
    return memchr(line + sizeof open - 1, ' ', *ret_n) ? NULL : line + sizeof open - 1;
}

static bool has_place(const ki_list *list, const char *name) {
    static const char *const fixed[] = {"top", "gains", "orders", "curves", "end"};
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        if (strcmp(fixed[i], name) == 0) return true;
    }
    for (size_t i = 0; i < list->n_tables; i++) {
        if (strcmp(list->table[i].name, name) == 0) return true;
    }
    return false;
}

static kith_status add_block(ki_notes *notes, const ki_list *list, const char *name, size_t n,
                             kith_error *err) {
    if (notes->n == MOST_BLOCKS) return ki_fail(err, KITH_EFORMAT, "more than %d blocks", MOST_BLOCKS);
    const char *copy = ki_arena_strndup(&notes->arena, name, n);
    if (!copy) return ki_fail_memory(err, n, "notes");
    for (size_t i = 0; i < notes->n; i++) {
        if (strcmp(notes->name[i], copy) == 0)
            return ki_fail(err, KITH_EFORMAT, "block %.60s is there twice", copy);
    }
    if (!has_place(list, copy)) {
        ki_fail(err, KITH_EFORMAT, "the page has no place for block %.60s", copy);
        return ki_hint(err, KITH_EFORMAT, "wanted top, the name of a table, gains, orders, curves or end");
    }
    notes->name[notes->n++] = copy;
    return KITH_OK;
}

static kith_status parse(ki_notes *notes, const ki_list *list, const char *text, kith_error *err) {
    const char *begin = text; /* of the block's text */
    for (const char *line = text;;) {
        const size_t n = strcspn(line, "\n");
        size_t n_name = 0;
        const char *name = block_name(line, n, &n_name);
        if (name || !line[n]) {
            const char *end = name ? line : line + n;
            while (end > begin && (end[-1] == '\n' || end[-1] == ' ')) end--;
            while (begin < end && *begin == '\n') begin++;
            if (notes->n > 0) {
                notes->text[notes->n - 1] = ki_arena_strndup(&notes->arena, begin, (size_t)(end - begin));
                if (!notes->text[notes->n - 1]) return ki_fail_memory(err, (size_t)(end - begin), "notes");
            } else if (end > begin) {
                ki_fail(err, KITH_EFORMAT, "there is text before the first block");
                return ki_hint(err, KITH_EFORMAT, "begin with a line <!-- top -->");
            }
        }
        if (name) KI_TRY(add_block(notes, list, name, n_name, err));
        if (!line[n]) return KITH_OK;
        line += n + 1;
        if (name) begin = line;
    }
}

kith_status ki_notes_read(const char *path, const ki_list *list, ki_notes *ret, kith_error *err) {
    kith_status status;
    ki_notes notes = {0};
    char *text = NULL;
    size_t n = 0;
    *ret = notes;
    if (!path || !ki_is_file("%s", path)) return KITH_OK;
    KI_CHECK(ki_file_read(path, MOST_BYTES, &text, &n, err));
    notes.name = ki_arena_alloc(&notes.arena, MOST_BLOCKS, sizeof *notes.name);
    notes.text = ki_arena_alloc(&notes.arena, MOST_BLOCKS, sizeof *notes.text);
    if (!notes.name || !notes.text) KI_CHECK(ki_fail_memory(err, MOST_BLOCKS, "notes"));
    status = parse(&notes, list, text, err);
    if (status != KITH_OK) ki_prefix(err, status, "%s", path);
done:
    ki_free(text);
    if (status != KITH_OK) ki_notes_release(&notes);
    if (status == KITH_OK) *ret = notes;
    return status;
}

void ki_notes_release(ki_notes *notes) {
    ki_arena_release(&notes->arena);
    *notes = (ki_notes){0};
}

void ki_notes_put(const ki_notes *notes, const char *name, ki_buffer *to) {
    for (size_t i = 0; i < notes->n; i++) {
        if (strcmp(notes->name[i], name) == 0 && notes->text[i] && *notes->text[i])
            ki_buffer_put(to, "%s\n\n", notes->text[i]);
    }
}
