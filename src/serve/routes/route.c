/* Finding the route of a path. */
#include "serve/routes/route.h"

#include <string.h>

#include "base/text.h"
#include "serve/routes/page.h"

const ki_route ki_routes[] = {
#define X(name, method, path, access, where, ...) \
    {#name, method, path, access, where, ki_route_##name, __VA_ARGS__},
#include "serve/routes/routes.def"
#undef X
};
const int ki_n_routes = (int)(sizeof ki_routes / sizeof ki_routes[0]);

/* Up to 18 digits, which always fit. */
static bool read_id(const char **at, int64_t *ret_id) {
    const size_t n = strspn(*at, "0123456789");
    if (n == 0 || n > 18) return false;
    int64_t id = 0;
    for (size_t i = 0; i < n; i++) id = 10 * id + ((*at)[i] - '0');
    *ret_id = id;
    *at += n;
    return true;
}

static bool matches(const char *pattern, const char *path, int64_t *ret_id) {
    for (; *pattern; pattern++) {
        if (*pattern == '#') {
            if (!read_id(&path, ret_id)) return false;
        } else if (*path++ != *pattern) {
            return false;
        }
    }
    return *path == '\0';
}

const ki_route *ki_route_find(const char *method, const char *path, int64_t *ret_id, const char **ret_allow) {
    const bool is_get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    const bool is_post = strcmp(method, "POST") == 0;
    *ret_allow = NULL;
    /* Files of the page are below it; which there are, the build knows. */
    if (ki_page_find(path)) path = "/";
    for (int i = 0; i < ki_n_routes; i++) {
        const ki_route *r = &ki_routes[i];
        if (!matches(r->path, path, ret_id)) continue;
        if (r->method == KI_GET ? is_get : is_post) return r;
        *ret_allow = r->method == KI_GET ? "GET, HEAD" : "POST";
    }
    return NULL;
}
