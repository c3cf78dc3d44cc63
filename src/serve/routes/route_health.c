/* GET /healthz: does the server live? */
#include "serve/routes/route.h"

ki_handling ki_route_health(ki_request *r) {
    static const char text[] = "{\"status\": \"ok\"}";
    ki_answer_bytes(r, "application/json", (void *)(uintptr_t)text, sizeof text - 1);
    r->answer.is_static = true;
    return KI_ANSWERED;
}
