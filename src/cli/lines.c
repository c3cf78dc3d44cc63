/* Lists in text files, one entry to a line. */
#include "cli/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

kith_status cli_read_lines(const char *path, char **ret_text, const char ***ret_lines, int64_t *ret_n,
                           kith_error *err) {
    FILE *file = fopen(path, "rb");
    if (!file) return cli_error(err, KITH_EIO, NULL, "%s cannot be read: %s", path, strerror(errno));
    size_t used = 0, room = 1 << 16;
    char *text = malloc(room);
    for (size_t got = 1; text && got > 0; used += got) {
        if (used + 1 >= room) {
            char *more = realloc(text, room *= 2);
            if (!more) free(text);
            text = more;
            if (!text) break;
        }
        got = fread(text + used, 1, room - used - 1, file);
    }
    fclose(file);
    size_t n_lines = 1;
    for (size_t i = 0; text && i < used; i++) n_lines += text[i] == '\n';
    const char **lines = calloc(n_lines + 1, sizeof *lines);
    if (!text || !lines) {
        free(text);
        free(lines);
        return cli_error(err, KITH_ENOMEM, NULL, "no memory for the lines of %s", path);
    }
    text[used] = '\0';
    int64_t n = 0;
    for (char *line = text; *line;) {
        char *end = line + strcspn(line, "\r\n");
        char *next = end + strspn(end, "\r\n");
        *end = '\0';
        if (*line) lines[n++] = line;
        line = next;
    }
    *ret_text = text;
    *ret_lines = lines;
    *ret_n = n;
    return KITH_OK;
}

kith_status cli_read_paths(const char *path, int64_t n, char **ret_text, const char ***ret_paths,
                           kith_error *err) {
    int64_t n_found = 0;
    const kith_status status = cli_read_lines(path, ret_text, ret_paths, &n_found, err);
    if (status != KITH_OK || n_found == n) return status;
    return cli_error(err, KITH_ESHAPE, NULL, "%s holds %lld paths for %lld rows", path, (long long)n_found,
                     (long long)n);
}
