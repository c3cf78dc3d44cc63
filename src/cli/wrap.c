/* Text laid out for the width of the reader's terminal. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"
#include "kith/text.h"

enum { USUAL_WIDTH = 84, LEAST_WIDTH = 30, MOST_WIDTH = 1000 };

int cli_columns(int fd) {
    const char *said = getenv("COLUMNS");
    struct winsize size;
    int64_t n = 0;
    if (said && kith_parse_int(said, &n) && n >= LEAST_WIDTH) return n < MOST_WIDTH ? (int)n : MOST_WIDTH;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= LEAST_WIDTH) return size.ws_col;
    return 0;
}

static int width(FILE *to) {
    const int columns = cli_columns(fileno(to));
    return columns ? columns : USUAL_WIDTH;
}

int cli_text_columns(const char *text, size_t n) {
    int columns = 0;
    for (size_t i = 0; i < n && text[i]; i++) columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}

int cli_help_column(void) { return width(stdout) < 60 ? 8 : 26; }

/* The words of one paragraph; *at is the current column. */
static void put_words(FILE *to, const char *text, size_t n, int column, int *at) {
    const int most = width(to);
    const char *end = text + n;
    bool is_first = true;
    for (const char *word = text; word < end;) {
        word += strspn(word, " \n");
        if (word >= end) break;
        size_t length = strcspn(word, " \n");
        if (length > (size_t)(end - word)) length = (size_t)(end - word);
        const int columns = cli_text_columns(word, length);
        if (!is_first && *at + 1 + columns > most) {
            fprintf(to, "\n%*s", column, "");
            *at = column;
        } else if (!is_first) {
            putc(' ', to);
            ++*at;
        }
        fprintf(to, "%.*s", (int)length, word);
        *at += columns;
        word += length;
        is_first = false;
    }
}

void cli_print_wrapped(FILE *to, const char *text, int column) {
    int at = column;
    put_words(to, text, strlen(text), column, &at);
    putc('\n', to);
}

/* To the end of the paragraph that begins here: an empty line, or one that is indented. */
static size_t paragraph_length(const char *text) {
    size_t n = 0;
    for (;;) {
        n += strcspn(text + n, "\n");
        if (!text[n] || text[n + 1] == '\n' || text[n + 1] == ' ' || !text[n + 1]) return n;
        if (*text == ' ') return n; /* an indented line is kept as a line */
        n++;
    }
}

void cli_print_paragraphs(const char *text) {
    while (*text) {
        const int indent = (int)strspn(text, " ");
        const size_t n = paragraph_length(text);
        int at = indent;
        printf("%*s", indent, "");
        put_words(stdout, text, n, indent ? indent + 2 : 0, &at);
        putchar('\n');
        text += n + (text[n] == '\n');
        if (*text == '\n') {
            putchar('\n');
            text++;
        }
    }
}
