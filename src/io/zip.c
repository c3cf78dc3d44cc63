/* Reading a zip archive: the record at its end, the list of entries it points to, the head of each entry. */
#include "io/zip.h"

#include <string.h>

enum { END_BYTES = 22, ENTRY_BYTES = 46, LOCAL_BYTES = 30, LONGEST_COMMENT = 65535 };
static const uint32_t end_mark = 0x06054b50, entry_mark = 0x02014b50, local_mark = 0x04034b50;

static uint32_t u16(const unsigned char *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }
static uint32_t u32(const unsigned char *p) { return u16(p) | u16(p + 2) << 16; }

bool ki_zip_is(const void *bytes, size_t n) { return n >= 4 && u32(bytes) == local_mark; }

static kith_status fail(const ki_zip *zip, const char *why, kith_error *err) {
    return ki_fail(err, KITH_EFORMAT, "%s is damaged: %s", zip->name, why);
}

kith_status ki_zip_open(const void *bytes, size_t n, const char *name, ki_zip *ret_zip, kith_error *err) {
    ki_zip zip = {.bytes = bytes, .n = n, .name = name};
    const size_t back = n < END_BYTES + LONGEST_COMMENT ? n : END_BYTES + LONGEST_COMMENT;
    for (size_t i = END_BYTES; i <= back; i++) {
        const unsigned char *end = zip.bytes + n - i;
        if (u32(end) != end_mark) continue;
        const size_t bytes_of_list = u32(end + 12);
        zip.directory = u32(end + 16);
        zip.n_entries = (int64_t)u16(end + 10);
        if (zip.directory == UINT32_MAX || zip.n_entries == UINT16_MAX)
            return ki_fail(err, KITH_EUNSUPPORTED, "%s has 4 GiB or 65,535 entries or more; wanted less",
                           name);
        if (zip.directory > n - i || bytes_of_list > n - i - zip.directory)
            return fail(&zip, "its list of entries lies outside of it", err);
        zip.directory_end = zip.directory + bytes_of_list;
        *ret_zip = zip;
        return KITH_OK;
    }
    return fail(&zip, "it has no list of entries at its end", err);
}

static kith_status find_data(const ki_zip *zip, const unsigned char *head, ki_zip_entry *entry,
                             kith_error *err) {
    const size_t packed = u32(head + 20), offset = u32(head + 42);
    entry->n = u32(head + 24);
    if (packed == UINT32_MAX || entry->n == UINT32_MAX || offset == UINT32_MAX)
        return ki_fail(err, KITH_EUNSUPPORTED, "%s holds an entry of 4 GiB or more; wanted less", zip->name);
    if (u16(head + 10) != 0 || (u16(head + 8) & 1) || packed != entry->n) {
        ki_fail(err, KITH_EUNSUPPORTED, "%s holds packed entries; wanted a file as torch.save writes it",
                zip->name);
        return ki_hint(err, KITH_EUNSUPPORTED, "load and save it again in PyTorch");
    }
    if (zip->n < LOCAL_BYTES || offset > zip->n - LOCAL_BYTES || u32(zip->bytes + offset) != local_mark)
        return fail(zip, "an entry is not where its list says", err);
    const unsigned char *local = zip->bytes + offset;
    const size_t begin = offset + LOCAL_BYTES + u16(local + 26) + u16(local + 28);
    if (begin > zip->n || entry->n > zip->n - begin)
        return fail(zip, "an entry is longer than the file", err);
    entry->data = zip->bytes + begin;
    return KITH_OK;
}

kith_status ki_zip_next(const ki_zip *zip, size_t *at, ki_zip_entry *ret_entry, bool *ret_more,
                        kith_error *err) {
    const size_t where = zip->directory + *at, left = zip->directory_end - where;
    *ret_more = left > 0;
    if (left == 0) return KITH_OK;
    const unsigned char *head = zip->bytes + where;
    if (left < ENTRY_BYTES || u32(head) != entry_mark) return fail(zip, "its list of entries is broken", err);
    const size_t name = u16(head + 28), rest = (size_t)u16(head + 30) + u16(head + 32);
    if (name + rest > left - ENTRY_BYTES) return fail(zip, "its list of entries is broken", err);
    ki_zip_entry entry = {.name = (const char *)head + ENTRY_BYTES, .name_length = name};
    KI_TRY(find_data(zip, head, &entry, err));
    *at += ENTRY_BYTES + name + rest;
    *ret_entry = entry;
    return KITH_OK;
}
