/* Finding passwords in addresses. */
#include "base/redact.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"

static const char *const schemes[] = {"postgresql://", "postgres://"};
static const char key[] = "password=";
static const char digits[] = "0123456789";

/* Behind the scheme of an address; NULL: this is none. Whatever its letters: one in capitals is taken for a file, and named as it is. */
static char *behind_scheme(char *text) {
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (strncasecmp(text, schemes[i], strlen(schemes[i])) == 0) return text + strlen(schemes[i]);
    }
    return NULL;
}

/* Behind the ':' of "user:"; NULL: there is none. An address of IPv6 has a '[' before it. */
static char *behind_user(char *rest) {
    const size_t n = strcspn(rest, ":/?#@[ ");
    return rest[n] == ':' ? rest + n + 1 : NULL;
}

/* Is this the port of "host:5432/db", or of the first of several hosts? */
static bool is_port(const char *text) { return strchr(",/?#", text[strspn(text, digits)]) != NULL; }

/* ---- messages ---- */

static void hide(char *begin, const char *end) {
    const size_t n = (size_t)(end - begin), n_stars = n < 3 ? n : 3;
    memset(begin, '*', n_stars);
    memmove(begin + n_stars, end, strlen(end) + 1);
}

static void hide_behind_user(char *rest) {
    char *password = behind_user(rest);
    if (!password) return;
    const size_t n = strcspn(password, " '\"");
    const char *at = memrchr(password, '@', n);
    if (!at && is_port(password)) return;
    if (!at) at = strrchr(password, '@'); /* with a blank in it */
    hide(password, at ? at : password + n);
}

void ki_redact(char *text) {
    for (char *at = text; (at = strcasestr(at, "postgres")); at++) {
        char *rest = behind_scheme(at);
        if (rest) hide_behind_user(rest);
    }
    /* Also in "host=h password=p", which is no address of kith's, but of other programs'. */
    for (char *value = text; (value = strcasestr(value, key));) {
        value += strlen(key);
        hide(value, value + strcspn(value, "&# '\""));
    }
}

/* ---- addresses ---- */

typedef struct range {
    char *begin, *end; /* the password */
    char *from, *to;   /* what goes with it */
} range;

/* Passwords should be written with %XX for '/', '?', '#' and '@', but people copy them as they are. */
static kith_status find_behind_user(char *rest, range *ret, kith_error *err) {
    static const char *const ends[] = {"/?#", "?#", ""};
    char *password = behind_user(rest), *at = NULL;
    for (size_t i = 0; password && !at && i < sizeof ends / sizeof ends[0]; i++)
        at = memrchr(password, '@', strcspn(password, ends[i]));
    if (!at) {
        if (!password || is_port(password)) return KITH_OK;
        ki_fail(err, KITH_EINVAL, "the address of the server has no port behind its ':'");
        return ki_hint(err, KITH_EINVAL, "wanted postgresql://user@host:5432/database#index");
    }
    const char *settings = password + strcspn(password, "?#");
    if (is_port(password) && at > settings) return KITH_OK;
    if (is_port(password) || (at < settings && memchr(at + 1, '@', (size_t)(settings - at - 1)))) {
        ki_fail(err, KITH_EINVAL, "the address of the server has a '@' behind a '/'");
        return ki_hint(
            err, KITH_EINVAL,
            "write '/' and '@' in a password as %%2F and %%40, and '@' in a database's name as %%40");
    }
    *ret = (range){password, at, password - 1, at};
    return KITH_OK;
}

static void find_setting(char *rest, range *ret) {
    char *at = strchr(rest, '?');
    while (at && strncmp(at + 1, key, strlen(key)) != 0) at = strchr(at + 1, '&');
    if (!at) return;
    char *begin = at + 1 + strlen(key), *end = begin + strcspn(begin, "&#");
    /* Of "?password=x&more" the '?' stays. */
    *ret = *at == '?' && *end == '&' ? (range){begin, end, at + 1, end + 1} : (range){begin, end, at, end};
}

static int hex(char c) {
    static const char letters[] = "0123456789abcdef";
    const char *at = c ? strchr(letters, c | 0x20) : NULL;
    return at ? (int)(at - letters) : -1;
}

/* Without its %XX. */
static kith_status decode(const range *r, char **ret, kith_error *err) {
    char *password = NULL, *to;
    KI_TRY(ki_zalloc_or(&password, (size_t)(r->end - r->begin) + 1, 1, "a password", err));
    to = password;
    for (const char *at = r->begin; at < r->end; at++) {
        if (*at != '%') {
            *to++ = *at;
            continue;
        }
        const int code =
            r->end - at > 2 && hex(at[1]) >= 0 && hex(at[2]) >= 0 ? hex(at[1]) * 16 + hex(at[2]) : 0;
        if (code == 0) {
            explicit_bzero(password, (size_t)(to - password));
            ki_free(password);
            ki_fail(err, KITH_EINVAL,
                    "the password in the address of the server has a '%%' without two digits behind it");
            return ki_hint(err, KITH_EINVAL, "write '%%' in a password as %%25");
        }
        *to++ = (char)code;
        at += 2;
    }
    *ret = password;
    return KITH_OK;
}

static kith_status take(const range *r, char **password, kith_error *err) {
    char *found = NULL;
    if (!r->begin) return KITH_OK;
    KI_TRY(decode(r, &found, err));
    if (*password) explicit_bzero(*password, strlen(*password));
    ki_free(*password);
    *password = found;
    const size_t n = strlen(r->to), n_gone = (size_t)(r->to - r->from);
    memmove(r->from, r->to, n + 1);
    memset(r->from + n + 1, 0, n_gone - 1); /* what the list of processes would show */
    return KITH_OK;
}

kith_status ki_address_take_password(char *address, char **ret_password, kith_error *err) {
    char *rest = behind_scheme(address), *password = NULL;
    range user = {0}, setting = {0};
    if (!rest) {
        *ret_password = NULL;
        return KITH_OK;
    }
    KI_TRY(find_behind_user(rest, &user, err));
    KI_TRY(take(&user, &password, err));
    find_setting(rest, &setting);
    const kith_status status = take(&setting, &password, err); /* it counts, as for libpq */
    if (status == KITH_OK)
        *ret_password = password;
    else
        ki_free(password);
    return status;
}
