/* GET /api/v1/items/ID/image and /thumb: the picture of an item, decoded and encoded again. */
#include <string.h>

#include "base/text.h"
#include "io/tar_file.h"
#include "serve/routes/picture.h"
#include "serve/routes/route.h"
#include "serve/server.h"

enum { IMAGE_SIDE = 2048, IMAGE_QUALITY = 90, THUMB_SIDE = 256, THUMB_QUALITY = 82 };

/* The file of the item, whose answer changes when the file does. */
static bool find_file(ki_request *r, int64_t side, char *path, size_t path_bytes) {
    int64_t bytes = 0, mtime_ns = 0;
    const kith_collection *collection = r->catalog->collection;
    if (kith_collection_picture(collection, r->id, path, path_bytes, NULL) != KITH_OK ||
        !ki_member_look(path, &bytes, &mtime_ns)) {
        ki_answer_problem(r, 404, NULL, "there is no picture of item %lld", (long long)r->id);
        return false;
    }
    ki_snprintf(r->answer.etag, sizeof r->answer.etag, "\"%llx-%llx-%llx-%llx\"", (long long)r->id,
                (long long)bytes, (long long)mtime_ns, (long long)side);
    return true;
}

static ki_handling answer(ki_request *r, int64_t side, int quality) {
    char path[4096];
    if (!find_file(r, side, path, sizeof path)) return KI_ANSWERED;
    const char *known = ki_request_header(r, "If-None-Match");
    r->answer.cache = "private, max-age=3600";
    /* Nothing has to be decoded for a browser that has it. */
    if (known && strstr(known, r->answer.etag)) return ki_answer_bytes(r, "image/jpeg", NULL, 0);
    return ki_picture_answer(r, path, (int32_t)side, quality);
}

ki_handling ki_route_image(ki_request *r) { return answer(r, IMAGE_SIDE, IMAGE_QUALITY); }

typedef struct thumb_arguments {
    int64_t side;
} thumb_arguments;

const ki_option ki_thumb_arguments[] = {
    KI_OPTION_INT(thumb_arguments, side, THUMB_SIDE, 16, IMAGE_SIDE, "pixels, of the longer side", ""),
    KI_OPTION_END};

ki_handling ki_route_thumb(ki_request *r) {
    kith_error err;
    thumb_arguments given;
    const kith_status status = ki_request_arguments(r, ki_thumb_arguments, &given, &err);
    return status == KITH_OK ? answer(r, given.side, THUMB_QUALITY) : ki_answer_error(r, status, &err);
}
