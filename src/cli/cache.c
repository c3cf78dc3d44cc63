/* kith cache: the indexes of photos that were made without being asked for. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/photos.h"
#include "kith/experimental/json.h"
#include "kith/text.h"

/* "20G", "1.5 GB", "300M": with powers of 1000, as disks are sold. Who writes 20 does not mean 20 bytes, so a number alone is none. */
static bool parse_bytes(const char *text, int64_t *ret) {
    static const char units[] = "kMGT";
    char number[32];
    double value = 0, unit;
    const size_t n = strspn(text, "0123456789.");
    const char *rest = text + n;
    if (n == 0 || n >= sizeof number) return false;
    memcpy(number, text, n);
    number[n] = '\0';
    if (!kith_parse_real(number, &value)) return false;
    while (*rest == ' ') rest++;
    const char *at = *rest == 'K' ? units : *rest ? strchr(units, *rest) : NULL;
    if (!at) return false;
    unit = pow(1000, (double)(at - units) + 1);
    rest++;
    if (*rest == 'B') rest++;
    if (*rest || value * unit > 9e18) return false;
    *ret = (int64_t)(value * unit);
    return true;
}

static const char *size_text(int64_t bytes, char buf[32]) {
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    double value = (double)bytes;
    int unit = 0;
    while (value >= 1000 && unit < 4) value /= 1000, unit++;
    snprintf(buf, 32, "%.*f %s", unit == 0 ? 0 : 1, value, units[unit]);
    return buf;
}

static const char *date_text(int64_t seconds, char buf[32]) {
    const time_t when = (time_t)seconds;
    struct tm at;
    if (!localtime_r(&when, &at) || strftime(buf, 32, "%Y-%m-%d %H:%M", &at) == 0) snprintf(buf, 32, "?");
    return buf;
}

/* ---- the list ---- */

static void print_entry(const kith_cache_entry *e) {
    char size[32], date[32];
    printf("%s\n", e->folder ? e->folder : e->name);
    printf("    %s%s, used %s%s\n", size_text(e->bytes, size),
           e->folder && !e->is_there ? ", the folder is gone" : "", date_text(e->used, date),
           e->is_used ? ", in use" : "");
    if (e->folder && e->n_photos >= 0)
        printf("    %" PRId64 " photos, model %s\n", e->n_photos, e->model);
    else if (e->folder)
        printf("    the index cannot be read, model %s\n", e->model);
    else
        printf("    %s\n", strstr(e->name, ".safetensors") ? "a model that indexes were made with"
                                                           : "not an index of this version of kith");
    if (e->folder) printf("    %s\n", e->name);
}

static void put_text(kith_json *json, const char *key, const char *text) {
    kith_json_key(json, key);
    kith_json_string(json, text);
}

static void put_int(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    if (value < 0)
        kith_json_null(json);
    else
        kith_json_int(json, value);
}

static void put_bool(kith_json *json, const char *key, bool value) {
    kith_json_key(json, key);
    kith_json_bool(json, value);
}

static int print_json(const kith_cache *cache, const char *folder) {
    kith_error err = {0};
    kith_json *json = NULL;
    kith_cache_entry e;
    if (kith_json_new(&json, &err) != KITH_OK) return cli_fail(&err);
    kith_json_object_begin(json);
    put_text(json, "cache", folder);
    kith_json_key(json, "entries");
    kith_json_array_begin(json);
    for (int64_t i = 0; kith_cache_at(cache, i, &e); i++) {
        kith_json_object_begin(json);
        put_text(json, "name", e.name);
        put_text(json, "photos", e.folder);
        put_bool(json, "is_there", e.is_there);
        put_bool(json, "is_used", e.is_used);
        put_text(json, "model", e.model);
        put_int(json, "n_photos", e.n_photos);
        put_int(json, "bytes", e.bytes);
        put_int(json, "used", e.used);
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
    kith_json_object_end(json);
    return cli_print_json(json, &err) == KITH_OK ? CLI_OK : cli_fail(&err);
}

static int print(const kith_cache *cache, const char *folder) {
    char size[32];
    kith_cache_entry e;
    int64_t bytes = 0;
    for (int64_t i = 0; kith_cache_at(cache, i, &e); i++) {
        print_entry(&e);
        bytes += e.bytes;
    }
    const int64_t n = kith_cache_count(cache);
    if (n == 0)
        printf("%s: empty\n", folder);
    else
        printf("%s: %" PRId64 " entr%s of %s\n", folder, n, n == 1 ? "y" : "ies", size_text(bytes, size));
    return CLI_OK;
}

/* ---- what goes ---- */

static int finish(kith_status status, const kith_cache_removed *removed, const kith_error *err) {
    char size[32];
    if (status != KITH_OK) return cli_fail(err);
    printf("%" PRId64 " entr%s removed, %s freed", removed->n, removed->n == 1 ? "y" : "ies",
           size_text(removed->bytes, size));
    if (removed->n_used > 0)
        printf("; %" PRId64 " left, because a process uses %s", removed->n_used,
               removed->n_used == 1 ? "it" : "them");
    putchar('\n');
    return CLI_OK;
}

static int act(kith_cache *cache, const char *folder, const char *which, int64_t limit, bool clears,
               bool json) {
    kith_error err = {0};
    kith_cache_removed removed = {0};
    if (which || clears)
        return finish(kith_cache_remove(cache, clears ? NULL : which, &removed, &err), &removed, &err);
    if (limit >= 0) return finish(kith_cache_limit(cache, limit, &removed, &err), &removed, &err);
    return json ? print_json(cache, folder) : print(cache, folder);
}

int cmd_cache(int argc, char **argv) {
    const char *given = NULL, *which = NULL, *limit_text = NULL;
    bool clears = false, json = false;
    int64_t limit = -1;
    const cli_option options[] = {
        CLI_TEXT("remove", "PHOTOS|NAME", &which,
                 "remove the indexes of this folder, or the entry of this name"),
        CLI_FLAG("clear", &clears, "remove all of it"),
        CLI_TEXT("limit", "SIZE", &limit_text,
                 "remove what was used least recently, until the rest has at most this size: 20G, 500M"),
        CLI_TEXT("cache", "DIR", &given, CLI_CACHE_HELP),
        CLI_FLAG("json", &json, "print the list as JSON"),
        CLI_END};
    const cli_usage usage = {
        .options = options,
        .details =
            "kith serve PHOTOS and kith search PHOTOS keep their indexes in the user's cache. This lists "
            "them, those "
            "used last first, and removes them. What a process uses stays. An index that was removed is made "
            "anew when it is wanted again."};
    const int parsed = cli_parse(&usage, &argc, argv);
    if (parsed != CLI_RUN) return parsed;
    if ((which != NULL) + clears + (limit_text != NULL) > 1)
        return cli_misused("cache", "wants one of --remove, --clear and --limit");
    if (limit_text && !parse_bytes(limit_text, &limit))
        return cli_misused("cache", "--limit is '%.40s'; wanted a size such as 20G or 500M, with its unit",
                           limit_text);
    char folder[4096];
    kith_error err = {0};
    kith_cache *cache = NULL;
    if (kith_cache_folder(given, folder, sizeof folder, &err) != KITH_OK ||
        kith_cache_open(folder, &cache, &err) != KITH_OK)
        return cli_fail(&err);
    const int status = act(cache, folder, which, limit, clears, json);
    kith_cache_free(cache);
    return status;
}
