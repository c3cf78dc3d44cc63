/* GET / and /page/NAME: the page. */
#include <string.h>

#include "base/text.h"
#include "serve/routes/page.h"
#include "serve/routes/route.h"

const ki_page_file *ki_page_find(const char *path) {
    for (int i = 0; i < ki_n_page_files; i++) {
        if (strcmp(ki_page_files[i].path, path) == 0) return &ki_page_files[i];
    }
    return NULL;
}

ki_handling ki_route_page(ki_request *r) {
    const ki_page_file *file = ki_page_find(r->path);
    if (!file) return ki_answer_problem(r, 404, NULL, "this program was built without its page");
    ki_answer_bytes(r, file->type, (void *)(uintptr_t)file->bytes, file->n_bytes);
    r->answer.is_static = true;
    r->answer.cache = "no-cache";
    ki_snprintf(r->answer.etag, sizeof r->answer.etag, "%s", file->etag);
    return KI_ANSWERED;
}
