/* A reader on top of zlib that stops after any number of bytes. */
#include "io/inflate.h"

#include <limits.h>
#include <zlib.h>

#include "base/alloc.h"

enum { MOST_RATIO = 1032 };

struct ki_inflate {
    z_stream z;
    const char *name;
    size_t n_left; /* packed bytes not yet given to zlib, whose counters are 32 bits */
    bool is_begun, is_at_end;
};

/* zlib's own memory is counted and can fail on demand, like all other memory. */
static void *take(void *opaque, unsigned n, unsigned size) {
    (void)opaque;
    return ki_alloc(n, size);
}

static void give_back(void *opaque, void *ptr) {
    (void)opaque;
    ki_free(ptr);
}

bool ki_inflate_is_gzip(const void *bytes, size_t n) {
    const unsigned char *b = bytes;
    return n >= 2 && b[0] == 0x1f && b[1] == 0x8b;
}

bool ki_inflate_can_make(size_t n_packed, uint64_t n_unpacked) { return n_unpacked / MOST_RATIO <= n_packed; }

kith_status ki_inflate_new(const void *packed, size_t n_packed, const char *name, ki_inflate **ret,
                           kith_error *err) {
    enum { ANY_WRAPPER = 32 + MAX_WBITS };
    ki_inflate *in = NULL;
    KI_TRY(ki_zalloc_or(&in, 1, sizeof *in, "a packed file", err));
    in->name = name;
    in->n_left = n_packed;
    in->z = (z_stream){.next_in = (Bytef *)(uintptr_t)packed, .zalloc = take, .zfree = give_back};
    if (inflateInit2(&in->z, ANY_WRAPPER) != Z_OK) {
        ki_free(in);
        return ki_fail_memory(err, sizeof(z_stream), "a packed file");
    }
    in->is_begun = true;
    *ret = in;
    return KITH_OK;
}

void ki_inflate_free(ki_inflate *in) {
    if (!in) return;
    if (in->is_begun) inflateEnd(&in->z);
    ki_free(in);
}

static void feed(ki_inflate *in) {
    if (in->z.avail_in > 0) return;
    in->z.avail_in = in->n_left < UINT_MAX ? (unsigned)in->n_left : UINT_MAX;
    in->n_left -= in->z.avail_in;
}

/* Another gzip member may follow; anything else after the end is ignored, as gunzip does. */
static void end_member(ki_inflate *in) {
    feed(in);
    in->is_at_end = !ki_inflate_is_gzip(in->z.next_in, in->z.avail_in) || inflateReset(&in->z) != Z_OK;
}

kith_status ki_inflate_read(ki_inflate *in, void *dst, size_t n, size_t *ret_n, kith_error *err) {
    size_t done = 0;
    while (done < n && !in->is_at_end) {
        const unsigned room = n - done < UINT_MAX ? (unsigned)(n - done) : UINT_MAX;
        feed(in);
        in->z.next_out = (Bytef *)dst + done;
        in->z.avail_out = room;
        const int code = inflate(&in->z, Z_NO_FLUSH);
        done += room - in->z.avail_out;
        if (code == Z_STREAM_END)
            end_member(in);
        else if (code == Z_MEM_ERROR)
            return ki_fail_memory(err, (size_t)1 << MAX_WBITS, "a packed file");
        else if (code == Z_BUF_ERROR || (code == Z_OK && in->z.avail_in == 0 && in->n_left == 0 && done < n))
            return ki_fail(err, KITH_EFORMAT, "%s is cut off: its packed data ends in the middle", in->name);
        else if (code != Z_OK)
            return ki_fail(err, KITH_EFORMAT, "%s is damaged: %s", in->name,
                           in->z.msg ? in->z.msg : "its packed data cannot be unpacked");
    }
    *ret_n = done;
    return KITH_OK;
}
