/* Entries: their names, their records, who uses them.
 *
 * Whoever uses an entry holds a shared lock on its file `used`. Who removes it takes the exclusive one, and gives the folder another
 * name before anything in it goes: a process that waited for the lock finds that the file is not at its path any more, and begins anew. */
#include "collection/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/text.h"
#include "collection/cache.h"
#include "io/json.h"
#include "kith/eval.h"

enum { FORMAT = 1, NAME_BYTES = 40 };

/* ---- the name ---- */

static void hash_texts(const char *one, const char *two, char ret[65]) {
    kith_hash hash = {0};
    kith_hash_add(&hash, one, strlen(one) + 1);
    kith_hash_add(&hash, two, strlen(two) + 1);
    kith_hash_finish(&hash, ret);
}

/* The last name of the folder, of letters, digits and signs that no shell minds. */
static void write_last_name(const char *folder, char ret[NAME_BYTES + 1]) {
    static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    const char *slash = strrchr(folder, '/'), *at = slash && slash[1] ? slash + 1 : "root";
    size_t n = 0;
    while (*at == '.') at++; /* hidden entries are those that are being removed */
    for (; *at && n < NAME_BYTES; at++) ret[n++] = strchr(fine, *at) ? *at : '_';
    ret[n] = '\0';
}

void ki_entry_name(const ki_entry_record *record, char ret_name[KI_ENTRY_NAME]) {
    char name[NAME_BYTES + 1], folder[65], model[65];
    write_last_name(record->folder, name);
    hash_texts(record->folder, "", folder);
    hash_texts(record->hash, record->words, model);
    ki_snprintf(ret_name, KI_ENTRY_NAME, "%s-%.*s-%.*s", name, KI_ENTRY_DIGITS, folder, KI_ENTRY_DIGITS,
                model);
}

bool ki_entry_fits(const char *entry, const ki_entry_record *record) {
    char name[KI_ENTRY_NAME];
    const char *slash = strrchr(entry, '/'), *own = slash ? slash + 1 : entry;
    const bool is_altered = strstr(record->folder, "\xef\xbf\xbd") != NULL;
    ki_entry_name(record, name);
    if (!is_altered) return strcmp(own, name) == 0;
    const size_t n = strlen(own), n_model = 1 + KI_ENTRY_DIGITS;
    return n > n_model && strcmp(own + n - n_model, name + strlen(name) - n_model) == 0;
}

/* ---- the record ---- */

static kith_status write_record(const char *entry, const ki_entry_record *r, kith_error *err) {
    kith_json *json = NULL;
    ki_path path;
    const struct {
        const char *key, *text;
    } rows[] = {
        {"photos", r->folder}, {"model", r->model}, {"model_sha256", r->hash}, {"preprocess", r->words}};
    KI_TRY(ki_path_print(&path, err, "%s/entry.json", entry));
    KI_TRY(kith_json_new(&json, err));
    kith_json_object_begin(json);
    kith_json_key(json, "format");
    kith_json_int(json, FORMAT);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        kith_json_key(json, rows[i].key);
        kith_json_string(json, rows[i].text);
    }
    kith_json_object_end(json);
    const kith_status status = ki_json_save(json, path.s, err);
    kith_json_free(json);
    return status;
}

static const char *text_of(const ki_value *root, const char *key) {
    const ki_value *value = ki_value_get(root, key);
    return value && value->kind == KI_VALUE_SCALAR && value->is_quoted ? value->text : NULL;
}

kith_status ki_entry_read(const char *entry, ki_arena *arena, ki_entry_record *ret, kith_error *err) {
    ki_path path;
    ki_value *root = NULL;
    KI_TRY(ki_path_print(&path, err, "%s/entry.json", entry));
    KI_TRY(ki_json_read(path.s, arena, &root, err));
    const ki_value *format = ki_value_get(root, "format");
    *ret = (ki_entry_record){.folder = text_of(root, "photos"),
                             .model = text_of(root, "model"),
                             .hash = text_of(root, "model_sha256"),
                             .words = text_of(root, "preprocess")};
    if (format && format->kind == KI_VALUE_SCALAR && strcmp(format->text, "1") == 0 && ret->folder &&
        ret->model && ret->hash && ret->words)
        return KITH_OK;
    *ret = (ki_entry_record){0};
    return ki_fail(err, KITH_EFORMAT, "%s is not a record of this version of kith", path.s);
}

/* JSON holds UTF-8 alone: a folder with another name is compared by its hash, in the entry's name. */
static kith_status check_record(const char *entry, const ki_entry_record *wanted, kith_error *err) {
    ki_arena arena = {0};
    ki_entry_record found;
    kith_status status = ki_entry_read(entry, &arena, &found, err);
    const bool is_same = status == KITH_OK &&
                         (!ki_is_utf8(wanted->folder) || strcmp(found.folder, wanted->folder) == 0) &&
                         strcmp(found.hash, wanted->hash) == 0 && strcmp(found.words, wanted->words) == 0;
    if (status == KITH_OK && !is_same)
        status = ki_fail(err, KITH_EFORMAT, "%s belongs to other photos or another model", entry);
    ki_arena_release(&arena);
    return status;
}

/* ---- who uses it ---- */

/* The file, with a lock of that kind; -1 where there is no such lock now (EWOULDBLOCK), or no such file (another errno). */
static int hold(const char *entry, int flags, int kind) {
    ki_path path;
    struct stat held, now;
    if (ki_path_print(&path, NULL, "%s/used", entry) != KITH_OK) return -1;
    const int fd = open(path.s, flags | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) return -1;
    if (flock(fd, kind) == 0 && fstat(fd, &held) == 0 && stat(path.s, &now) == 0 &&
        held.st_dev == now.st_dev && held.st_ino == now.st_ino)
        return fd;
    const int why = errno;
    close(fd);
    errno = why;
    return -1;
}

kith_status ki_entry_open(const char *cache, const ki_entry_record *record, ki_path *ret_entry, int *ret_used,
                          kith_error *err) {
    enum { MOST_TRIES = 100 };
    char name[KI_ENTRY_NAME];
    ki_path photos;
    int used = -1;
    ki_entry_name(record, name);
    KI_TRY(ki_cache_make(cache, "photos", &photos, err));
    for (int i = 0; used < 0 && i < MOST_TRIES; i++) { /* again while somebody removes it */
        KI_TRY(ki_cache_make(photos.s, name, ret_entry, err));
        used = hold(ret_entry->s, O_CREAT, LOCK_SH);
    }
    if (used < 0)
        return ki_fail(err, KITH_EIO, "%s/used cannot be locked: %s", ret_entry->s, strerror(errno));
    futimens(used, NULL);
    kith_status status = KITH_OK;
    if (ki_is_file("%s/entry.json", ret_entry->s))
        status = check_record(ret_entry->s, record, err);
    else
        status = write_record(ret_entry->s, record, err);
    if (status == KITH_OK)
        *ret_used = used;
    else
        close(used);
    return status;
}

bool ki_entry_is_used(const char *entry) {
    const int fd = hold(entry, 0, LOCK_EX | LOCK_NB);
    const bool is_used = fd < 0 && errno == EWOULDBLOCK;
    if (fd >= 0) close(fd);
    return is_used;
}

bool ki_entry_remove(const char *entry) {
    ki_path away;
    const int fd = hold(entry, O_CREAT, LOCK_EX | LOCK_NB); /* also of one that is just being made */
    const char *slash = strrchr(entry, '/');
    if (fd < 0 && errno == EWOULDBLOCK) return false;
    if (slash &&
        ki_path_print(&away, NULL, "%.*s/.%s.%ld", (int)(slash - entry), entry, slash + 1, (long)getpid()) ==
            KITH_OK &&
        rename(entry, away.s) == 0)
        ki_cache_remove_folder(away.s);
    if (fd >= 0) close(fd);
    return true;
}
