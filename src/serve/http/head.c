/* Reading headers, and refusing heads that can be read in two ways. */
#include "serve/http/head.h"

#include <microhttpd.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/text.h"

/* ---- values ---- */

typedef struct lines {
    const char *name;
    int n;
    const char *first;
    ki_buffer list;
} lines;

static enum MHD_Result add_line(void *context, enum MHD_ValueKind kind, const char *name, const char *value) {
    lines *l = context;
    (void)kind;
    if (strcasecmp(name, l->name) != 0) return MHD_YES;
    if (!value) value = "";
    if (l->n == 0) l->first = value;
    if (l->n > 0) ki_buffer_add(&l->list, ", ", 2);
    ki_buffer_add(&l->list, value, strlen(value));
    l->n++;
    return MHD_YES;
}

const char *ki_head_value(ki_request *r, const char *name) {
    lines l = {.name = name};
    MHD_get_connection_values(r->connection, MHD_HEADER_KIND, add_line, &l);
    const char *value = l.first;
    if (l.n > 1) {
        ki_buffer_add(&l.list, "", 1);
        value = l.list.status == KITH_OK ? ki_arena_strdup(&r->texts, l.list.data) : NULL;
        if (!value) value = ""; /* no memory: a value that gives nobody anything */
    }
    ki_buffer_release(&l.list);
    return value;
}

/* ---- faults ---- */

/* Later versions refuse a NUL themselves. */
enum { CUTS_IN_PLACE = MHD_VERSION < 0x00097800 };

typedef struct head {
    const char *end; /* behind what was looked at, if each line began where the one before ended */
    bool has_nul;
    bool is_odd; /* a name or value that some read as two lines, or under another name */
    bool has_coding;
    bool has_length;
    bool is_twofold;
    char length[24];
} head;

static void look_at_body(head *h, const char *name, const char *value) {
    if (strcasecmp(name, "Transfer-Encoding") == 0) {
        h->is_twofold |= h->has_coding || h->has_length || strcasecmp(value, "chunked") != 0;
        h->has_coding = true;
    } else if (strcasecmp(name, "Content-Length") == 0) {
        h->is_twofold |= h->has_coding || !*value || strspn(value, "0123456789") != strlen(value) ||
                         strlen(value) >= sizeof h->length ||
                         (h->has_length && strcmp(h->length, value) != 0);
        h->has_length = true;
        ki_snprintf(h->length, sizeof h->length, "%s", value);
    }
}

/* RFC 9110: letters, digits and these. A name with a blank at its end is another one for some. */
static bool is_token(const char *name) {
    static const char marks[] =
        "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    return *name && strspn(name, marks) == strlen(name);
}

static enum MHD_Result look(void *context, enum MHD_ValueKind kind, const char *name, size_t n_name,
                            const char *value, size_t n_value) {
    head *h = context;
    (void)kind;
    h->has_nul |= strlen(name) != n_name || (value && strlen(value) != n_value);
    /* libmicrohttpd up to 0.9.77 cuts lines apart where they lie: a name begins behind the two bytes that ended the line before. If it does
     * not, that line had a NUL inside, or was continued on the next, or did not end with CR LF. */
    h->has_nul |= CUTS_IN_PLACE && name != h->end;
    h->end = value ? value + n_value + 2 : NULL;
    h->is_odd |= !is_token(name) || (value && strpbrk(value, "\r\n"));
    look_at_body(h, name, value ? value : "");
    return MHD_YES;
}

const char *ki_head_fault(const ki_request *r, const char *method, const char *version, const char *url_end) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    head h = {.end = version + strlen(version) + 2};
    MHD_get_connection_values_n(r->connection, MHD_HEADER_KIND, look, &h);
    const bool is_whole = !CUTS_IN_PLACE || (version == url_end + 1 && info && h.end &&
                                             h.end + 2 == method + info->header_size);
    if (h.has_nul || !is_whole)
        return "a line of the request's head holds a NUL, is continued, or does not end with CR LF";
    if (h.is_odd) return "a header's name is no name, or its value holds a CR";
    /* HTTP/1.0 has no chunks, and may have gone through somebody who does not know them. */
    if (h.is_twofold || (h.has_coding && strcmp(version, MHD_HTTP_VERSION_1_0) == 0))
        return "how long the body of the request is can be read in two ways";
    return NULL;
}
