/* Addresses of indexes on a server, and the passwords that people put into them. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

bool cli_is_address(const char *path) {
    return strncmp(path, "postgresql://", strlen("postgresql://")) == 0 ||
           strncmp(path, "postgres://", strlen("postgres://")) == 0;
}

static int hex(char c) {
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c | 0x20) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Give it to libpq in the way it is meant to be given, and take it out of the text: from `begin` (with a ':' or '&' before it) to
 * `end`. */
static void take(char *begin, char *end, char *from) {
    char *password = calloc((size_t)(end - begin) + 1, 1), *to = password;
    if (!password) return;
    for (const char *at = begin; at < end; at++) {
        const bool is_code = *at == '%' && end - at > 2 && hex(at[1]) >= 0 && hex(at[2]) >= 0;
        *to++ = is_code ? (char)(hex(at[1]) * 16 + hex(at[2])) : *at;
        if (is_code) at += 2;
    }
    setenv("PGPASSWORD", password, 1);
    memset(password, 0, (size_t)(end - begin));
    free(password);
    const size_t n = strlen(end);
    memmove(from, end, n + 1);
    memset(from + n + 1, 0, (size_t)(end - from)); /* what the list of processes would show */
}

static void take_from_user(char *address) {
    char *user = strstr(address, "://") + 3, *at = NULL;
    const size_t n = strcspn(user, "/?");
    for (size_t i = 0; i < n; i++) at = user[i] == '@' ? user + i : at;
    char *colon = at ? memchr(user, ':', (size_t)(at - user)) : NULL;
    if (colon) take(colon + 1, at, colon);
}

static void take_from_settings(char *address) {
    static const char key[] = "password=";
    char *at = strchr(address, '?');
    while (at && strncmp(at + 1, key, strlen(key)) != 0) at = strchr(at + 1, '&');
    if (!at) return;
    char *begin = at + 1 + strlen(key), *end = begin + strcspn(begin, "&#");
    const bool is_first = *at == '?' && *end == '&';
    if (is_first)
        take(begin, end, at + 1), memmove(at + 1, at + 2, strlen(at + 2) + 1);
    else
        take(begin, end, at);
}

const char *cli_index_path(char *path) {
    if (!cli_is_address(path)) return path;
    take_from_user(path);
    take_from_settings(path);
    return path;
}
