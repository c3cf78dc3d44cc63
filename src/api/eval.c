/* Hashes of files, for result cards. */
#include "kith/eval.h"

#include "io/file.h"

kith_status kith_file_hash(const char *path, char ret_hex[65], kith_error *err) {
    ki_map map;
    KI_TRY(ki_map_open(path, &map, err));
    kith_hash hash = {0};
    kith_hash_add(&hash, map.bytes, map.n);
    kith_hash_finish(&hash, ret_hex);
    ki_map_release(&map);
    return KITH_OK;
}
