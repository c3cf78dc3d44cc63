/* GET /api/v1/items/ID/image and /thumb: the picture of an item, decoded and encoded again. */
#include <string.h>
#include <sys/stat.h>

#include "core/text.h"
#include "serve/picture.h"
#include "serve/route.h"
#include "serve/server.h"

enum { IMAGE_SIDE = 2048, IMAGE_QUALITY = 90, THUMB_SIDE = 256, THUMB_QUALITY = 82 };

/* The file of the item, whose answer changes when the file does. */
static bool find_file(ki_request *r, int64_t side, char *path, size_t path_bytes) {
    kith_index_item item = {0};
    struct stat info;
    bool is_there = kith_index_item_get(r->catalog->index, r->id, &item, NULL) == KITH_OK;
    if (is_there)
        is_there = ki_catalog_picture(r->catalog, item.path, path, path_bytes) && stat(path, &info) == 0;
    kith_index_item_release(&item);
    if (!is_there) {
        ki_answer_problem(r, 404, NULL, "there is no picture of item %lld", (long long)r->id);
        return false;
    }
    ki_snprintf(r->answer.etag, sizeof r->answer.etag, "\"%llx-%llx-%llx-%llx\"", (long long)r->id,
                (long long)info.st_size, (long long)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec,
                (long long)side);
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

ki_handling ki_route_thumb(ki_request *r) {
    kith_error err;
    int64_t side = THUMB_SIDE;
    const kith_status status = ki_request_number(r, "side", 16, IMAGE_SIDE, THUMB_SIDE, &side, &err);
    return status == KITH_OK ? answer(r, side, THUMB_QUALITY) : ki_answer_error(r, status, &err);
}
