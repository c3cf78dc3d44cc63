/* Reading the token file, and comparing in constant time. */
#include "serve/http/token.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/text.h"
#include "kith/eval.h"

enum { MOST_FILE_BYTES = 65536 };

static void digest(const char *text, size_t n, char ret_hex[65]) {
    kith_hash hash = {0};
    kith_hash_add(&hash, text, n);
    kith_hash_finish(&hash, ret_hex);
}

static bool is_secret(const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (text[i] <= ' ' || text[i] > '~') return false;
    }
    return n >= KI_LEAST_TOKEN;
}

static size_t next_word(const char *line, size_t n, size_t at) {
    while (at < n && (line[at] == ' ' || line[at] == '\t')) at++;
    return at;
}

/* The name before the secret, into `token`; returns where the secret begins, or n when there is no name. */
static size_t take_who(const char *line, size_t n, size_t at, ki_token *token) {
    size_t end = at;
    while (end < n && (unsigned char)line[end] > ' ' && line[end] != 0x7f) end++;
    if (end == at || end - at > KI_MOST_WHO) return n;
    memcpy(token->who, line + at, end - at);
    token->who[end - at] = '\0';
    return ki_is_utf8(token->who) ? next_word(line, n, end) : n;
}

/* "token SECRET", without blanks at its ends. */
static kith_status parse_line(const char *line, size_t n, int number, const char *name, ki_tokens *ret,
                              kith_error *err) {
    const size_t n_kind = strcspn(line, " \t");
    const char *kinds[] = {"read-only", "token", "write"};
    const ki_access access[] = {KI_ACCESS_READ, KI_ACCESS_ALL, KI_ACCESS_WRITE};
    size_t at = next_word(line, n, n_kind < n ? n_kind : n);
    for (int i = 0; i < 3; i++) {
        ki_token token = {.access = access[i]};
        if (strlen(kinds[i]) != n_kind || strncmp(line, kinds[i], n_kind) != 0) continue;
        if (token.access == KI_ACCESS_WRITE) at = take_who(line, n, at, &token);
        if (!is_secret(line + at, n - at)) break;
        if (ret->n == KI_MOST_TOKENS)
            return ki_fail(err, KITH_EFORMAT, "%s has more than %d tokens", name, KI_MOST_TOKENS);
        ret->token[ret->n] = token;
        digest(line + at, n - at, ret->token[ret->n++].digest);
        return KITH_OK;
    }
    ki_fail(
        err, KITH_EFORMAT,
        "%s: line %d is not 'token SECRET', 'read-only SECRET' or 'write NAME SECRET' with a secret of at "
        "least %d letters",
        name, number, KI_LEAST_TOKEN);
    return ki_hint(err, KITH_EFORMAT, "make a secret with: openssl rand -hex 24");
}

kith_status ki_tokens_parse(const char *text, const char *name, ki_tokens *ret_tokens, kith_error *err) {
    ki_tokens tokens = {.n = 0};
    int number = 0;
    for (const char *line = text; *line;) {
        const size_t whole = strcspn(line, "\n");
        size_t begin = 0, end = whole;
        while (begin < end && strchr(" \t\r", line[begin])) begin++;
        while (end > begin && strchr(" \t\r", line[end - 1])) end--;
        number++;
        if (end > begin && line[begin] != '#')
            KI_TRY(parse_line(line + begin, end - begin, number, name, &tokens, err));
        line += whole + (line[whole] == '\n');
    }
    if (tokens.n == 0) return ki_fail(err, KITH_EFORMAT, "%s has no tokens", name);
    *ret_tokens = tokens;
    return KITH_OK;
}

/* May anybody but the owner and this process read or write it? Where a file has a list of who may (systemd makes one for credentials),
 * the bits of its group are the most that the list gives to anybody. */
static bool is_open_to_others(int fd, const struct stat *info) {
    struct {
        struct posix_acl_xattr_header head;
        struct posix_acl_xattr_entry entry[32];
    } list;
    if (info->st_mode & (S_IRWXO | S_IWGRP)) return true;
    if (!(info->st_mode & S_IRWXG)) return false;
    const ssize_t n = fgetxattr(fd, "system.posix_acl_access", &list, sizeof list);
    if (n < (ssize_t)sizeof list.head || le32toh(list.head.a_version) != POSIX_ACL_XATTR_VERSION) return true;
    const size_t n_entries = ((size_t)n - sizeof list.head) / sizeof list.entry[0];
    for (size_t i = 0; i < n_entries; i++) {
        const unsigned tag = le16toh(list.entry[i].e_tag);
        if (le16toh(list.entry[i].e_perm) == 0 || tag == ACL_USER_OBJ || tag == ACL_MASK) continue;
        if (tag != ACL_USER || le32toh(list.entry[i].e_id) != geteuid()) return true;
    }
    return false;
}

kith_status ki_tokens_read(const char *path, ki_tokens *ret_tokens, kith_error *err) {
    char text[MOST_FILE_BYTES + 1];
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = -1;
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) n = read(fd, text, sizeof text);
    const int why = fd < 0 || n < 0 ? errno : 0;
    const bool is_open = n >= 0 && is_open_to_others(fd, &info);
    if (fd >= 0) close(fd);
    if (n < 0)
        return ki_fail(err, KITH_EIO, "%s cannot be read: %s", path, why ? strerror(why) : "not a file");
    if (is_open) {
        explicit_bzero(text, sizeof text);
        ki_fail(err, KITH_EINVAL, "%s can be read or written by others than its owner (mode %03o)", path,
                (unsigned)info.st_mode & 0777);
        return ki_hint(err, KITH_EINVAL, "chmod 600 %s", path);
    }
    if (n > MOST_FILE_BYTES || memchr(text, '\0', (size_t)n))
        return ki_fail(err, KITH_EFORMAT, "%s is not a file of tokens", path);
    text[n] = '\0';
    const kith_status status = ki_tokens_parse(text, path, ret_tokens, err);
    explicit_bzero(text, sizeof text);
    return status;
}

/* All of both strings is looked at, whatever they are. */
static bool is_equal(const char a[65], const char b[65]) {
    volatile unsigned char differences = 0;
    for (int i = 0; i < 64; i++) differences |= (unsigned char)(a[i] ^ b[i]);
    return differences == 0;
}

ki_access ki_tokens_check(const ki_tokens *tokens, const char *authorization) {
    char who[KI_MOST_WHO + 1];
    return ki_tokens_find(tokens, authorization, who);
}

ki_access ki_tokens_find(const ki_tokens *tokens, const char *authorization, char ret_who[KI_MOST_WHO + 1]) {
    static const char scheme[] = "Bearer ";
    char given[65];
    ki_access found = KI_ACCESS_OPEN;
    ret_who[0] = '\0';
    if (!authorization || strncasecmp(authorization, scheme, strlen(scheme)) != 0) return found;
    digest(authorization + strlen(scheme), strlen(authorization + strlen(scheme)), given);
    for (int i = 0; i < tokens->n; i++) {
        if (!is_equal(given, tokens->token[i].digest) || tokens->token[i].access <= found) continue;
        found = tokens->token[i].access;
        memcpy(ret_who, tokens->token[i].who, sizeof tokens->token[i].who);
    }
    return found;
}
