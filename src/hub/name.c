/* Reading names, and the table of short ones. */
#include "hub/name.h"

#include <string.h>

#include "base/text.h"

static const ki_hub_row rows[] = {
#define X(name_, repo_, file_, backbone_, input_, licence_, summary_) \
    {.name = (name_),                                                 \
     .repo = (repo_),                                                 \
     .file = (file_),                                                 \
     .backbone = (backbone_),                                         \
     .input = (input_),                                               \
     .licence = (licence_),                                           \
     .summary = (summary_)},
#include "hub/table.def"
#undef X
};
enum { N_ROWS = sizeof rows / sizeof rows[0], MOST_PART = 96 };

static const char prefix[] = "hub:", usual_file[] = "model.safetensors", usual_revision[] = "main";

const ki_hub_row *ki_hub_row_at(size_t i) { return i < N_ROWS ? &rows[i] : NULL; }

const ki_hub_row *ki_hub_row_of_repo(const char *repo) {
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strcmp(rows[i].repo, repo) == 0) return &rows[i];
    }
    return NULL;
}

bool ki_hub_is_name(const char *text) { return strncmp(text, prefix, sizeof prefix - 1) == 0; }

bool ki_hub_is_hex(const char *text, size_t n) {
    return strspn(text, "0123456789abcdef") == n && text[n] == '\0';
}

/* Not isalnum, which follows the locale. */
static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_part(const char *s, size_t n) {
    if (n < 1 || n > MOST_PART || !is_word(s[0]) || !is_word(s[n - 1])) return false;
    for (size_t i = 0; i < n; i++) {
        if (!is_word(s[i]) && s[i] != '-' && s[i] != '.') return false;
    }
    return true;
}

/* ORG/NAME, as huggingface_hub's validate_repo_id has it. */
static bool is_repo(const char *s) {
    const char *slash = strchr(s, '/');
    const size_t n = strlen(s);
    if (!slash || !is_part(s, (size_t)(slash - s)) || !is_part(slash + 1, strlen(slash + 1))) return false;
    return !strstr(s, "--") && !strstr(s, "..") && !(n >= 4 && strcmp(s + n - 4, ".git") == 0);
}

/* A name of git, of the characters that people use in them. */
static bool is_revision(const char *s) {
    const size_t n = strlen(s);
    if (n < 1 || n >= KI_HUB_REVISION || !is_word(s[n - 1])) return false;
    for (size_t i = 0; i < n; i++) {
        const bool begins = i == 0 || s[i - 1] == '/';
        if (!is_word(s[i]) && (begins || (s[i] != '-' && s[i] != '.' && s[i] != '/'))) return false;
    }
    return !strstr(s, "..");
}

/* "resnet50, resnet50-tv, …": as many of the names as there is room for. */
static void list_names(char *buf, size_t bytes) {
    static const char more[] = ", …";
    size_t used = 0;
    for (size_t i = 0; i < N_ROWS; i++) {
        if (used + strlen(rows[i].name) + strlen(", ") + sizeof more > bytes) {
            ki_snprintf(buf + used, bytes - used, "%s", more);
            return;
        }
        used += (size_t)ki_snprintf(buf + used, bytes - used, "%s%s", i ? ", " : "", rows[i].name);
    }
}

static kith_status find_row(const char *word, const ki_hub_row **ret_row, kith_error *err) {
    const char *names[N_ROWS];
    char known[140] = "";
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strcmp(rows[i].name, word) == 0) {
            *ret_row = &rows[i];
            return KITH_OK;
        }
        names[i] = rows[i].name;
    }
    list_names(known, sizeof known);
    const char *nearest = ki_nearest(word, names, N_ROWS);
    ki_fail(err, KITH_ENOTFOUND, "there are no weights with the short name '%s'%s%s%s", word,
            nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
    return ki_hint(err, KITH_ENOTFOUND,
                   "known are %s (kith list weights); other repositories of the hub are ORG/NAME", known);
}

/* Bytes that a terminal would act on are not shown. */
static const char *shown(const char *text, char buf[64]) {
    size_t n = 0;
    for (; text[n] && n < 60; n++) buf[n] = (unsigned char)text[n] < ' ' || text[n] == 127 ? '?' : text[n];
    buf[n] = '\0';
    return buf;
}

kith_status ki_hub_name_parse(const char *text, ki_hub_name *ret, kith_error *err) {
    char word[KI_HUB_REPO + KI_HUB_REVISION], buf[64];
    const char *s = ki_hub_is_name(text) ? text + sizeof prefix - 1 : text;
    ki_hub_name name = {.file = usual_file};
    const size_t n = strlen(s);
    if (n >= sizeof word)
        return ki_fail(err, KITH_EINVAL, "the name '%s…' is too long; wanted ORG/NAME or ORG/NAME@REVISION",
                       shown(s, buf));
    memcpy(word, s, n + 1);
    char *at = strchr(word, '@');
    const char *revision = at ? at + 1 : usual_revision;
    if (at) *at = '\0';
    if (!is_revision(revision))
        return ki_fail(err, KITH_EINVAL,
                       "'%s' is not a revision; wanted a branch, a tag or a commit (NAME@REVISION)",
                       shown(revision, buf));
    if (is_repo(word)) {
        memcpy(name.repo, word, strlen(word) + 1);
        name.row = ki_hub_row_of_repo(word);
    } else if (is_part(word, strlen(word))) {
        KI_TRY(find_row(word, &name.row, err));
        memcpy(name.repo, name.row->repo, strlen(name.row->repo) + 1);
    } else {
        ki_fail(err, KITH_EINVAL, "'%s' is not a name of weights; wanted ORG/NAME, or a short name",
                shown(word, buf));
        return ki_hint(err, KITH_EINVAL, "kith list weights shows the short names");
    }
    if (name.row) name.file = name.row->file;
    memcpy(name.revision, revision, strlen(revision) + 1);
    *ret = name;
    return KITH_OK;
}

const char *ki_hub_name_text(const ki_hub_name *name, char *buf, size_t bytes) {
    const bool is_usual = strcmp(name->revision, usual_revision) == 0;
    ki_snprintf(buf, bytes, "%s%s%s", name->row ? name->row->name : name->repo, is_usual ? "" : "@",
                is_usual ? "" : name->revision);
    return buf;
}
