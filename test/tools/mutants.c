/* Mutants of C files: one small change each, such as a tired programmer makes.
 *
 *   mutants list FILE…          every mutant, one a line: FILE, NUMBER, LINE, KIND, CHANGE (tabs between)
 *   mutants shuffle SEED FILE…  the same lines in an order that only the seed decides
 *   mutants apply FILE NUMBER   FILE with that mutant, on standard output; the lines stay where they were
 *
 * Only the bodies of functions are changed: no comment, string, character, preprocessor line (so no macro's body),
 * table or declaration outside of a function. It relies on the project's layout (.clang-format) to tell a product
 * from a pointer: a binary operator has a space on both sides. The caller has to find out which mutants do not
 * compile. scripts/mutate.sh runs the tests against them. */
#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what, const char *about) {
    fprintf(stderr, "mutants: %s: %s\n", about, what);
    exit(2);
}

static void *grown(void *array, size_t n, size_t one) {
    if (n & (n - 1)) return array; /* room is always the next power of two */
    void *more = realloc(array, (n ? 2 * n : 1) * one);
    if (!more) die("out of memory", "realloc");
    return more;
}

typedef enum token_kind { WORD, NUMBER, TEXT, MARK } token_kind;

typedef struct token {
    token_kind kind;
    size_t at, length, line;
    bool is_code;           /* in the body of a function */
    bool begins, is_spaced; /* first of a statement; a space on both sides */
    size_t partner;         /* of a bracket: the other one */
} token;

typedef struct source {
    const char *path;
    char *text;
    size_t bytes;
    token *tokens;
    size_t n;
} source;

typedef struct mutant {
    const char *path, *kind;
    size_t number, line, at, length;
    char *old, *new;
} mutant;

typedef struct mutants {
    mutant *list;
    size_t n;
} mutants;

static bool is(const source *s, size_t i, const char *word) {
    return i < s->n && s->tokens[i].kind != TEXT && s->tokens[i].length == strlen(word) &&
           memcmp(s->text + s->tokens[i].at, word, s->tokens[i].length) == 0;
}

static bool is_one_of(const source *s, size_t i, const char *const *words) {
    for (; *words; words++) {
        if (is(s, i, *words)) return true;
    }
    return false;
}

/* Reading: tokens, then brackets, then which of them are code and where statements begin. */

static size_t length_of_mark(const char *at) {
    static const char *const longer[] = {"<<=", ">>=", "...", "->", "++", "--", "<<", ">>",
                                         "<=",  ">=",  "==",  "!=", "&&", "||", "+=", "-=",
                                         "*=",  "/=",  "%=",  "&=", "|=", "^=", NULL};
    for (const char *const *mark = longer; *mark; mark++) {
        if (strncmp(at, *mark, strlen(*mark)) == 0) return strlen(*mark);
    }
    return 1;
}

static size_t length_of_number(const char *at) {
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '.' || at[n] == '_' ||
           ((at[n] == '+' || at[n] == '-') && n && strchr("eEpP", at[n - 1]) && at[1] != 'x'))
        n++;
    return n;
}

static size_t length_of_text(const char *at) {
    size_t n = 1;
    while (at[n] && at[n] != at[0]) n += at[n] == '\\' && at[n + 1] ? 2 : 1;
    return n + (at[n] != 0);
}

static size_t end_of_preprocessor_line(const char *text, size_t at) {
    while (text[at] && text[at] != '\n') at += text[at] == '\\' && text[at + 1] ? 2 : 1;
    return at;
}

static void add_token(source *s, token_kind kind, size_t at, size_t length, size_t line) {
    s->tokens = grown(s->tokens, s->n, sizeof *s->tokens);
    const char after = s->text[at + length];
    s->tokens[s->n++] = (token){.kind = kind,
                                .at = at,
                                .length = length,
                                .line = line,
                                .is_spaced = at && isspace((unsigned char)s->text[at - 1]) &&
                                             (after == 0 || isspace((unsigned char)after))};
}

static void read_tokens(source *s) {
    size_t line = 1, at = 0;
    bool is_line_start = true;
    while (s->text[at]) {
        const char *here = s->text + at;
        size_t length = 1;
        if (*here == '#' && is_line_start) {
            length = end_of_preprocessor_line(s->text, at) - at;
        } else if (strncmp(here, "/*", 2) == 0) {
            const char *end = strstr(here + 2, "*/");
            length = end ? (size_t)(end + 2 - here) : strlen(here);
        } else if (strncmp(here, "//", 2) == 0) {
            length = end_of_preprocessor_line(s->text, at) - at;
        } else if (!isspace((unsigned char)*here)) {
            token_kind kind = MARK;
            if (isalpha((unsigned char)*here) || *here == '_') {
                kind = WORD;
                while (isalnum((unsigned char)here[length]) || here[length] == '_') length++;
            } else if (isdigit((unsigned char)*here) || (*here == '.' && isdigit((unsigned char)here[1]))) {
                kind = NUMBER;
                length = length_of_number(here);
            } else if (*here == '"' || *here == '\'') {
                kind = TEXT;
                length = length_of_text(here);
            } else {
                length = length_of_mark(here);
            }
            add_token(s, kind, at, length, line);
            is_line_start = false;
        }
        for (size_t i = 0; i < length; i++) {
            if (here[i] == '\n') line++, is_line_start = true;
        }
        at += length;
    }
}

static void match_brackets(source *s) {
    size_t *open = malloc((s->n + 1) * sizeof *open), n_open = 0;
    if (!open) die("out of memory", s->path);
    for (size_t i = 0; i < s->n; i++) {
        if (s->tokens[i].kind != MARK) continue;
        const char c = s->text[s->tokens[i].at];
        if (s->tokens[i].length == 1 && strchr("([{", c)) open[n_open++] = i;
        if (s->tokens[i].length == 1 && strchr(")]}", c)) {
            if (n_open == 0) die("a bracket closes that never opened", s->path);
            const size_t other = open[--n_open];
            s->tokens[i].partner = other, s->tokens[other].partner = i;
        }
    }
    if (n_open) die("a bracket never closes", s->path);
    free(open);
}

/* A block of statements, not a list of values or members. */
static bool is_block(const source *s, size_t brace) {
    static const char *const before[] = {"else", "do", ";", "{", "}", ":", NULL};
    if (is(s, brace - 1, ")")) return s->text[s->tokens[brace].at - 1] == ' '; /* (type){…} has no space */
    return is_one_of(s, brace - 1, before);
}

static void mark_statements(source *s, size_t from, size_t to);

static void mark_block(source *s, size_t brace) {
    s->tokens[brace + 1].begins = true;
    mark_statements(s, brace + 1, s->tokens[brace].partner);
}

static void mark_statements(source *s, size_t from, size_t to) {
    static const char *const with_condition[] = {"if", "for", "while", "switch", NULL};
    bool is_label = false;
    for (size_t i = from; i < to; i++) {
        if (is_one_of(s, i, with_condition) && is(s, i + 1, "(")) {
            i = s->tokens[i + 1].partner;
            s->tokens[i + 1].begins = true;
        } else if (is(s, i, "(") || is(s, i, "[")) {
            i = s->tokens[i].partner;
        } else if (is(s, i, "{")) {
            if (is_block(s, i)) mark_block(s, i);
            i = s->tokens[i].partner;
            s->tokens[i + 1].begins = true; /* no statement that could be removed follows a list of values */
        } else if (is(s, i, ";") || is(s, i, "else") || is(s, i, "do")) {
            s->tokens[i + 1].begins = true;
        } else if (is(s, i, "case") || is(s, i, "default")) {
            is_label = true;
        } else if (is_label && is(s, i, ":")) {
            s->tokens[i + 1].begins = true;
            is_label = false;
        }
    }
}

static void find_bodies(source *s) {
    for (size_t i = 1; i < s->n; i++) {
        if (!is(s, i, "{")) continue;
        const size_t end = s->tokens[i].partner;
        if (is(s, i - 1, ")")) {
            for (size_t k = i; k <= end; k++) s->tokens[k].is_code = true;
            if (end + 1 >= s->n) add_token(s, MARK, s->bytes, 0, s->tokens[end].line);
            mark_block(s, i);
        } else if (s->tokens[i - 1].kind == TEXT) {
            continue; /* extern "C" { … */
        }
        i = end;
    }
}

static source read_source(const char *path) {
    source s = {.path = path};
    FILE *file = fopen(path, "rb");
    if (!file) die("cannot be opened", path);
    for (int c; (c = fgetc(file)) != EOF;) {
        s.text = grown(s.text, s.bytes, 1);
        s.text[s.bytes++] = (char)c;
    }
    fclose(file);
    s.text = grown(s.text, s.bytes, 1);
    s.text[s.bytes] = 0;
    read_tokens(&s);
    match_brackets(&s);
    find_bodies(&s);
    return s;
}

static void release_source(source *s) { free(s->text), free(s->tokens); }

/* Changing. */

static char *cut(const char *text, size_t length) {
    char *copy = calloc(length + 1, 1);
    if (!copy) die("out of memory", "calloc");
    memcpy(copy, text, length);
    return copy;
}

static void add_mutant(mutants *all, const source *s, size_t first, size_t last, const char *kind,
                       const char *new) {
    const token *a = &s->tokens[first], *b = &s->tokens[last];
    const size_t length = b->at + b->length - a->at;
    all->list = grown(all->list, all->n, sizeof *all->list);
    all->list[all->n] = (mutant){.path = s->path,
                                 .kind = kind,
                                 .line = a->line,
                                 .at = a->at,
                                 .length = length,
                                 .old = cut(s->text + a->at, length),
                                 .new = cut(new, strlen(new))};
    all->n++;
}

static void swap_operators(mutants *all, const source *s, size_t i) {
    static const struct {
        const char *kind, *a, *b;
    } pairs[] = {{"sum", "+", "-"},         {"sum", "+=", "-="},   {"product", "*", "/"},
                 {"product", "*=", "/="},   {"border", "<", "<="}, {"border", ">", ">="},
                 {"equal", "==", "!="},     {"logic", "&&", "||"}, {"bits", "&", "|"},
                 {"bits", "&=", "|="},      {"shift", "<<", ">>"}, {"step", "++", "--"},
                 {"truth", "true", "false"}};
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        const bool is_binary = s->tokens[i].kind == MARK && strcmp(pairs[k].kind, "step") != 0;
        if (is_binary && !s->tokens[i].is_spaced) continue;
        if (is(s, i, pairs[k].a)) add_mutant(all, s, i, i, pairs[k].kind, pairs[k].b);
        if (is(s, i, pairs[k].b)) add_mutant(all, s, i, i, pairs[k].kind, pairs[k].a);
    }
    if (s->tokens[i].is_spaced && is(s, i, "%")) add_mutant(all, s, i, i, "remainder", "/");
    if (!s->tokens[i].is_spaced && is(s, i, "!")) add_mutant(all, s, i, i, "not", "");
    /* A sign, not a difference: there is no operand before it. */
    const token *before = &s->tokens[i - 1];
    const bool has_left =
        before->kind == WORD || before->kind == NUMBER || is(s, i - 1, ")") || is(s, i - 1, "]");
    if (is(s, i, "-") && !s->tokens[i].is_spaced && (!has_left || is(s, i - 1, "return")))
        add_mutant(all, s, i, i, "sign", "");
}

/* name[3] after a type: one element more changes nothing, and one less is a mistake that only the mutant has. */
static bool is_declared_length(const source *s, size_t i) {
    return i >= 3 && is(s, i - 1, "[") && is(s, i + 1, "]") && s->tokens[i - 2].kind == WORD &&
           (s->tokens[i - 3].kind == WORD || is(s, i - 3, "*") || is(s, i - 3, ",")) &&
           !is(s, i - 3, "return");
}

static void change_constant(mutants *all, const source *s, size_t i) {
    const token *t = &s->tokens[i];
    char digits[64], suffix[8] = "", new[128];
    if (t->length >= sizeof digits || is_declared_length(s, i)) return;
    snprintf(digits, sizeof digits, "%.*s", (int)t->length, s->text + t->at);
    if (digits[0] == '0' && t->length > 1 && digits[1] != '.')
        return; /* hexadecimal and octal: bits, not a quantity */
    const bool is_real = strpbrk(digits, ".eE") != NULL;
    char *end;
    const double real = strtod(digits, &end);
    snprintf(suffix, sizeof suffix, "%s", end);
    for (int step = 1; step >= -1; step -= 2) {
        if (is_real) {
            char text[64];
            snprintf(text, sizeof text, "%.17g", real + step);
            snprintf(new, sizeof new, "%s%s%s%s%s", real + step < 0 ? "(" : "", text,
                     strpbrk(text, ".e") ? "" : ".0", suffix, real + step < 0 ? ")" : "");
        } else {
            const int64_t value = (int64_t)strtoull(digits, NULL, 10) + step;
            snprintf(new, sizeof new, value < 0 ? "(%" PRId64 "%s)" : "%" PRId64 "%s", value, suffix);
        }
        add_mutant(all, s, i, i, "constant", new);
    }
}

static void negate_condition(mutants *all, const source *s, size_t i) {
    if (!(is(s, i, "if") || is(s, i, "while")) || !is(s, i + 1, "(")) return;
    const token *open = &s->tokens[i + 1], *close = &s->tokens[open->partner];
    const size_t length = close->at + close->length - open->at;
    char *new = calloc(length + 4, 1);
    if (!new) die("out of memory", s->path);
    snprintf(new, length + 4, "(!%.*s)", (int)length, s->text + open->at);
    add_mutant(all, s, i + 1, open->partner, "condition", new);
    free(new);
}

/* Remove a call, an assignment or a jump. */
static void remove_statement(mutants *all, const source *s, size_t i) {
    static const char *const jumps[] = {"break", "continue", "goto", NULL};
    static const char *const keywords[] = {"if", "for",    "while", "switch", "return",
                                           "do", "sizeof", "case",  "else",   NULL};
    static const char *const then[] = {"(",  "[",  "->", ".",  "=",  "+=", "-=",  "*=",  "/=",
                                       "%=", "&=", "|=", "^=", "++", "--", "<<=", ">>=", NULL};
    if (!s->tokens[i].begins) return;
    const bool is_jump = is_one_of(s, i, jumps);
    const bool is_pre_step = is(s, i, "++") || is(s, i, "--");
    const bool is_through = is(s, i, "*") && !s->tokens[i].is_spaced;
    const bool is_expression =
        s->tokens[i].kind == WORD && !is_one_of(s, i, keywords) && is_one_of(s, i + 1, then);
    if (!(is_jump || is_pre_step || is_through || is_expression)) return;
    size_t end = i;
    while (end < s->n && !is(s, end, ";")) {
        if (is(s, end, "}") || is(s, end, ")")) return;
        end = is(s, end, "(") || is(s, end, "[") || is(s, end, "{") ? s->tokens[end].partner + 1 : end + 1;
    }
    char *new = calloc(s->tokens[end].line - s->tokens[i].line + 2, 1);
    if (!new) die("out of memory", s->path);
    memset(new, '\n', s->tokens[end].line - s->tokens[i].line);
    strcat(new, ";");
    add_mutant(all, s, i, end, "statement", new);
    free(new);
}

static void find_mutants(mutants *all, const source *s) {
    const size_t first = all->n;
    for (size_t i = 1; i < s->n; i++) {
        if (!s->tokens[i].is_code || s->tokens[i].kind == TEXT) continue;
        if (s->tokens[i].kind == NUMBER) {
            change_constant(all, s, i);
        } else {
            swap_operators(all, s, i);
            negate_condition(all, s, i);
        }
        remove_statement(all, s, i);
    }
    for (size_t k = first; k < all->n; k++) all->list[k].number = k - first;
}

static void print_flat(const char *text) {
    bool was_space = false;
    for (; *text; text++) {
        const bool is_space = isspace((unsigned char)*text);
        if (!is_space || !was_space) putchar(is_space ? ' ' : *text);
        was_space = is_space;
    }
}

static void print_mutant(const mutant *m) {
    printf("%s\t%zu\t%zu\t%s\t", m->path, m->number, m->line, m->kind);
    print_flat(m->old);
    if (strcmp(m->kind, "statement") == 0) {
        printf(" removed");
    } else {
        printf(" -> ");
        print_flat(m->new);
    }
    putchar('\n');
}

static uint64_t next_random(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void shuffle(mutants *all, uint64_t seed) {
    for (size_t k = all->n; k > 1; k--) {
        const size_t other = next_random(&seed) % k;
        const mutant last = all->list[k - 1];
        all->list[k - 1] = all->list[other], all->list[other] = last;
    }
}

static void release_mutants(mutants *all) {
    for (size_t i = 0; i < all->n; i++) free(all->list[i].old), free(all->list[i].new);
    free(all->list);
}

static void apply(const char *path, const char *number) {
    source s = read_source(path);
    mutants all = {0};
    find_mutants(&all, &s);
    char *end;
    const size_t k = strtoull(number, &end, 10);
    if (*end || end == number || k >= all.n) die("no mutant has this number", number);
    const mutant *m = &all.list[k];
    fwrite(s.text, 1, m->at, stdout);
    fputs(m->new, stdout);
    fwrite(s.text + m->at + m->length, 1, s.bytes - m->at - m->length, stdout);
    release_mutants(&all);
    release_source(&s);
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "apply") == 0) {
        apply(argv[2], argv[3]);
        return 0;
    }
    const bool is_shuffled = argc > 3 && strcmp(argv[1], "shuffle") == 0;
    if (!is_shuffled && !(argc > 2 && strcmp(argv[1], "list") == 0)) {
        fprintf(stderr, "usage: mutants list FILE… | shuffle SEED FILE… | apply FILE NUMBER\n");
        return 2;
    }
    mutants all = {0};
    for (int i = is_shuffled ? 3 : 2; i < argc; i++) {
        source s = read_source(argv[i]);
        find_mutants(&all, &s);
        release_source(&s);
    }
    if (is_shuffled) shuffle(&all, strtoull(argv[2], NULL, 10));
    for (size_t k = 0; k < all.n; k++) print_mutant(&all.list[k]);
    release_mutants(&all);
    return 0;
}
