/* Event files: records with checksums, appended. */
#include "io/events.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/text.h"

enum { HEAD_BYTES = 12, TAIL_BYTES = 4, MOST_TRIES = 1000 };

/* Field numbers: Event, SessionLog, Summary, Summary.Value, SummaryMetadata, SummaryMetadata.PluginData, TensorProto,
 * TensorShapeProto, TensorShapeProto.Dim. */
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5, EVENT_SESSION = 7 };
enum { SESSION_STATUS = 1, SESSION_START = 1 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { METADATA_PLUGIN = 1, PLUGIN_NAME = 1 };
enum { TENSOR_TYPE = 1, TENSOR_SHAPE = 2, TENSOR_STRING = 8, SHAPE_DIM = 2, DIM_SIZE = 1, TYPE_STRING = 7 };
/* Wire types. */
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct ki_events {
    int fd;
    char *path;
    off_t n_bytes; /* of whole records */
    unsigned char *record;
    size_t n, capacity;
};

uint32_t ki_crc32c(const void *bytes, size_t n) {
    const unsigned char *p = bytes;
    uint32_t crc = ~(uint32_t)0;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

/* A CRC of bytes that contain CRCs is weak, so TFRecords rotate theirs and add a constant. */
static uint32_t masked_crc(const void *bytes, size_t n) {
    const uint32_t crc = ki_crc32c(bytes, n);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static unsigned char *put_fixed(unsigned char *p, uint64_t value, int n) {
    for (int i = 0; i < n; i++) *p++ = (unsigned char)(value >> 8 * i & 0xff);
    return p;
}

static unsigned char *put_varint(unsigned char *p, uint64_t value) {
    for (; value >= 0x80; value >>= 7) *p++ = (unsigned char)(value | 0x80);
    *p++ = (unsigned char)value;
    return p;
}

static unsigned char *put_key(unsigned char *p, int field, int wire) {
    return put_varint(p, (uint64_t)field << 3 | (uint64_t)wire);
}

static size_t varint_bytes(uint64_t value) {
    size_t n = 1;
    for (; value >= 0x80; value >>= 7) n++;
    return n;
}

/* Key, length and tag; key and float. */
static size_t value_bytes(const char *tag) {
    const size_t n = strlen(tag);
    return 1 + varint_bytes(n) + n + 1 + 4;
}

static size_t summary_bytes(const ki_events_scalar *scalars, size_t n) {
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t value = value_bytes(scalars[i].tag);
        bytes += 1 + varint_bytes(value) + value;
    }
    return bytes;
}

static unsigned char *put_summary(unsigned char *p, const ki_events_scalar *scalars, size_t n) {
    p = put_key(p, EVENT_SUMMARY, WIRE_BYTES);
    p = put_varint(p, summary_bytes(scalars, n));
    for (size_t i = 0; i < n; i++) {
        const size_t tag_bytes = strlen(scalars[i].tag);
        uint32_t bits;
        memcpy(&bits, &scalars[i].value, sizeof bits);
        p = put_key(p, SUMMARY_VALUE, WIRE_BYTES);
        p = put_varint(p, value_bytes(scalars[i].tag));
        p = put_key(p, VALUE_TAG, WIRE_BYTES);
        p = put_varint(p, tag_bytes);
        memcpy(p, scalars[i].tag, tag_bytes);
        p = put_key(p + tag_bytes, VALUE_SIMPLE, WIRE_FIXED32);
        p = put_fixed(p, bits, 4);
    }
    return p;
}

/* Make room for an event with `bytes` of body after its time and step; returns where the body begins. */
static kith_status begin(ki_events *e, double wall_time, int64_t step, size_t bytes, unsigned char **ret,
                         kith_error *err) {
    enum { MOST_OTHER = HEAD_BYTES + TAIL_BYTES + 2 * 11 };
    KI_TRY(ki_grow(&e->record, &e->capacity, bytes + MOST_OTHER, 1, "an event", err));
    uint64_t bits;
    memcpy(&bits, &wall_time, sizeof bits);
    unsigned char *p = put_key(e->record + HEAD_BYTES, EVENT_WALL_TIME, WIRE_FIXED64);
    p = put_fixed(p, bits, 8);
    if (step != 0) p = put_varint(put_key(p, EVENT_STEP, WIRE_VARINT), (uint64_t)step);
    *ret = p;
    return KITH_OK;
}

static kith_status fail_write(const ki_events *e, int why, kith_error *err) {
    return ki_fail(err, KITH_EIO, "cannot write %s: %s", e->path, strerror(why));
}

/* Frame the event that ends at `end`, and write it. */
static kith_status finish(ki_events *e, unsigned char *end, kith_error *err) {
    const size_t n = (size_t)(end - e->record) - HEAD_BYTES, total = n + HEAD_BYTES + TAIL_BYTES;
    put_fixed(e->record, n, 8);
    put_fixed(e->record + 8, masked_crc(e->record, 8), 4);
    put_fixed(end, masked_crc(e->record + HEAD_BYTES, n), TAIL_BYTES);
    for (size_t done = 0; done < total;) {
        const ssize_t got = write(e->fd, e->record + done, total - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            const int why = errno;
            if (ftruncate(e->fd, e->n_bytes) != 0) errno = 0; /* report the first failure */
            return fail_write(e, why, err);
        }
        done += (size_t)got;
    }
    e->n_bytes += (off_t)total;
    return KITH_OK;
}

static kith_status open_file(ki_events *e, const char *folder, double wall_time, kith_error *err) {
    char host[65] = "localhost";
    if (gethostname(host, sizeof host - 1) != 0) errno = 0;
    const size_t bytes = strlen(folder) + 160;
    KI_TRY(ki_alloc_or(&e->path, bytes, 1, "a file name", err));
    for (int i = 0; i < MOST_TRIES; i++) {
        ki_snprintf(e->path, bytes, "%s/events.out.tfevents.%010lld.%s.%ld.%d", folder, (long long)wall_time,
                    host, (long)getpid(), i);
        e->fd = open(e->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
        if (e->fd >= 0) return KITH_OK;
        if (errno != EEXIST) break;
    }
    return fail_write(e, errno, err);
}

static kith_status write_head(ki_events *e, double wall_time, int64_t step, kith_error *err) {
    static const char version[] = "brain.Event:2";
    unsigned char *p = NULL;
    KI_TRY(begin(e, wall_time, 0, sizeof version + 2, &p, err));
    p = put_varint(put_key(p, EVENT_FILE_VERSION, WIRE_BYTES), sizeof version - 1);
    memcpy(p, version, sizeof version - 1);
    KI_TRY(finish(e, p + sizeof version - 1, err));
    if (step <= 0) return KITH_OK;
    /* A session that starts at `step` makes readers drop later events of older files. */
    KI_TRY(begin(e, wall_time, step, 4, &p, err));
    p = put_varint(put_key(p, EVENT_SESSION, WIRE_BYTES), 2);
    p = put_varint(put_key(p, SESSION_STATUS, WIRE_VARINT), SESSION_START);
    return finish(e, p, err);
}

kith_status ki_events_open(const char *folder, double wall_time, int64_t step, ki_events **ret_events,
                           kith_error *err) {
    kith_status status;
    ki_events *e = NULL;
    KI_CHECK(ki_zalloc_or(&e, 1, sizeof *e, "an event file", err));
    e->fd = -1;
    KI_CHECK(open_file(e, folder, wall_time, err));
    status = write_head(e, wall_time, step, err);
    if (status != KITH_OK) {
        if (unlink(e->path) != 0) errno = 0;
        goto done;
    }
    *ret_events = e;
    e = NULL;
done:
    ki_events_close(e);
    return status;
}

void ki_events_close(ki_events *events) {
    if (!events) return;
    if (events->fd >= 0) close(events->fd);
    ki_free(events->path);
    ki_free(events->record);
    ki_free(events);
}

const char *ki_events_path(const ki_events *events) { return events->path; }

kith_status ki_events_add(ki_events *events, double wall_time, int64_t step, const ki_events_scalar *scalars,
                          size_t n, kith_error *err) {
    unsigned char *p = NULL;
    if (n == 0) return KITH_OK;
    KI_TRY(begin(events, wall_time, step, 11 + summary_bytes(scalars, n), &p, err));
    return finish(events, put_summary(p, scalars, n), err);
}

/* ---- texts ---- */

/* A field of bytes: key, length and bytes. */
static void put_field(ki_buffer *to, int field, const void *bytes, size_t n) {
    unsigned char head[11];
    const unsigned char *end = put_varint(put_key(head, field, WIRE_BYTES), n);
    ki_buffer_add(to, head, (size_t)(end - head));
    ki_buffer_add(to, bytes, n);
}

/* Four spaces before every line make it a block of code in Markdown. */
static void put_code(ki_buffer *to, const char *text) {
    for (const char *line = text; *line;) {
        const size_t n = strcspn(line, "\n");
        ki_buffer_add(to, "    ", 4);
        ki_buffer_add(to, line, n);
        ki_buffer_add(to, "\n", 1);
        line += n + (line[n] == '\n');
    }
}

/* The value of a text: a vector of one string, marked for the plugin "text". */
static void put_text_value(ki_buffer *to, const char *tag, const ki_buffer *code) {
    static const unsigned char plugin[] = {PLUGIN_NAME << 3 | WIRE_BYTES, 4, 't', 'e', 'x', 't'},
                               metadata[] = {METADATA_PLUGIN << 3 | WIRE_BYTES, sizeof plugin},
                               type_and_shape[] = {TENSOR_TYPE << 3 | WIRE_VARINT, TYPE_STRING,
                                                   TENSOR_SHAPE << 3 | WIRE_BYTES, 4,
                                                   SHAPE_DIM << 3 | WIRE_BYTES,    2,
                                                   DIM_SIZE << 3 | WIRE_VARINT,    1};
    ki_buffer marked = {.err = to->err}, tensor = {.err = to->err};
    ki_buffer_add(&marked, metadata, sizeof metadata);
    ki_buffer_add(&marked, plugin, sizeof plugin);
    ki_buffer_add(&tensor, type_and_shape, sizeof type_and_shape);
    put_field(&tensor, TENSOR_STRING, code->data, code->n);
    if (to->status == KITH_OK) to->status = marked.status != KITH_OK ? marked.status : tensor.status;
    put_field(to, VALUE_TAG, tag, strlen(tag));
    put_field(to, VALUE_METADATA, marked.data, marked.n);
    put_field(to, VALUE_TENSOR, tensor.data, tensor.n);
    ki_buffer_release(&marked);
    ki_buffer_release(&tensor);
}

kith_status ki_events_add_text(ki_events *events, double wall_time, int64_t step, const char *tag,
                               const char *text, kith_error *err) {
    kith_status status;
    unsigned char *p = NULL;
    ki_buffer code = {.err = err}, value = {.err = err}, summary = {.err = err};
    put_code(&code, text);
    KI_CHECK(code.status);
    put_text_value(&value, tag, &code);
    KI_CHECK(value.status);
    put_field(&summary, SUMMARY_VALUE, value.data, value.n);
    KI_CHECK(summary.status);
    KI_CHECK(begin(events, wall_time, step, 11 + summary.n, &p, err));
    p = put_varint(put_key(p, EVENT_SUMMARY, WIRE_BYTES), summary.n);
    memcpy(p, summary.data, summary.n);
    status = finish(events, p + summary.n, err);
done:
    ki_buffer_release(&code);
    ki_buffer_release(&value);
    ki_buffer_release(&summary);
    return status;
}
