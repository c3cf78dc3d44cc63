/* Requests, redirects, new tries. */
#include "hub/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "hub/cache.h"
#include "io/file.h"

enum { MOST_REDIRECTS = 10, MOST_TRIES = 5, MOST_TOKEN = 4096, MOST_IDLE_BODY = 1 << 20 };
enum { MUCH = 1 << 20 }; /* a connection that brought so many bytes does not count as a failure */
static const double LONGEST_WAIT = 60, TIMEOUT = 30;
static const char usual_endpoint[] = "https://huggingface.co";

/* ---- opening ---- */

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* Visible ASCII alone, so that it cannot end its header's line. What is in it is never shown. */
static kith_status take_token(ki_hub_session *s, const char *text, const char *from, kith_error *err) {
    while (*text == ' ' || *text == '\t' || *text == '\r' || *text == '\n') text++;
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r\n", text[n - 1])) n--;
    for (size_t i = 0; i < n; i++) {
        if (text[i] <= ' ' || text[i] >= 127 || n > MOST_TOKEN)
            return ki_fail(err, KITH_EINVAL, "%s is not a token: wanted one word of visible ASCII", from);
    }
    if (n == 0) return KITH_OK;
    s->token = ki_strndup(text, n);
    return s->token ? KITH_OK : ki_fail_memory(err, n, "a token");
}

static kith_status read_token_file(ki_hub_session *s, kith_error *err) {
    ki_path home, path;
    char *text = NULL;
    size_t n = 0;
    const char *given = variable("HF_TOKEN_PATH");
    if (given) {
        KI_TRY(ki_path_print(&path, err, "%s", given));
    } else {
        KI_TRY(ki_hub_home(&home, err));
        KI_TRY(ki_path_print(&path, err, "%s/token", home.s));
    }
    if (!ki_is_file("%s", path.s)) return KITH_OK;
    KI_TRY(ki_file_read(path.s, MOST_TOKEN, &text, &n, err));
    const kith_status status = take_token(s, text, path.s, err);
    ki_free(text);
    return status;
}

static kith_status find_token(ki_hub_session *s, const char *given, kith_error *err) {
    if (given) return take_token(s, given, "the token", err);
    if (ki_hub_is_set("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return KITH_OK;
    const char *names[] = {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"};
    for (size_t i = 0; i < 2; i++) {
        if (variable(names[i])) return take_token(s, variable(names[i]), names[i], err);
    }
    return read_token_file(s, err);
}

/* Others refuse such a value, too: who sets it would wait in vain. */
static kith_status read_timeout(double *ret, kith_error *err) {
    const char *text = variable("HF_HUB_DOWNLOAD_TIMEOUT");
    *ret = TIMEOUT;
    if (!text || (ki_parse_double(text, ret) && *ret >= 1 && *ret <= 3600)) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "HF_HUB_DOWNLOAD_TIMEOUT is '%.40s'; wanted seconds, 1 to 3600", text);
}

/* Without encryption anybody on the way reads a token, and can change the files together with their hashes. */
static void warn_of_plain(ki_hub_session *s) {
    if (s->endpoint.is_https || s->endpoint.is_loopback) return;
    ki_log(KITH_LOG_WARNING, "%s has no encryption: whoever is on the way there can change what comes%s",
           s->endpoint.origin, s->token ? "; the token is not sent" : "");
    ki_hub_session_release(s);
}

kith_status ki_hub_session_open(ki_hub_session *s, const char *endpoint, const char *token, kith_error *err) {
    const char *from = endpoint ? "the endpoint" : "HF_ENDPOINT";
    if (!endpoint) endpoint = variable("HF_ENDPOINT");
    if (!endpoint) endpoint = usual_endpoint;
    KI_TRY(ki_hub_url_parse(endpoint, from, &s->endpoint, err));
    KI_TRY(read_timeout(&s->timeout_s, err));
    KI_TRY(find_token(s, token, err));
    warn_of_plain(s);
    return KITH_OK;
}

void ki_hub_session_release(ki_hub_session *s) {
    if (s->token) {
        volatile char *c = s->token;
        for (size_t n = strlen(s->token); n > 0; n--) *c++ = 0;
    }
    ki_free(s->token);
    s->token = NULL;
}

kith_status ki_hub_session_beat(void *session, kith_error *err) {
    const ki_hub_session *s = session;
    if (!s->progress || s->progress(s->user, s->n_done, s->n_all) == 0) return KITH_OK;
    ki_fail(err, KITH_ECANCELED, "stopped on request");
    return ki_hint(err, KITH_ECANCELED, "the same command goes on where it stopped");
}

/* ---- one request ---- */

typedef struct exchange {
    ki_hub_session *session;
    ki_hub_blob *blob; /* NULL: only the head is wanted */
    ki_hub_url url;
    ki_hub_answer answer;
    int64_t from;      /* the first byte that was asked for */
    int64_t n_idle;    /* bytes of bodies that nobody wants */
    bool has_begun;    /* the body of the file */
    bool is_range_bad; /* ask for the whole file next time */
    bool may_pass;     /* the failure: trying again could help */
} exchange;

static kith_status take_line(void *user, const char *line, size_t n, kith_error *err) {
    exchange *x = user;
    return ki_hub_answer_line(&x->answer, line, n, err);
}

/* The first bytes of the file: does it begin where it was asked to? */
static kith_status begin_body(exchange *x, kith_error *err) {
    const ki_hub_answer *a = &x->answer;
    x->has_begun = true;
    if (a->status == 200) return x->blob->n_bytes ? ki_hub_blob_restart(x->blob, err) : KITH_OK;
    if (x->from > 0 && a->range_first == x->from && a->range_all == x->blob->facts->bytes) return KITH_OK;
    x->is_range_bad = x->may_pass = true;
    return ki_fail(err, KITH_EFORMAT, "%s sends another part of %s than it was asked for", x->url.origin,
                   x->blob->file);
}

static kith_status take_body(void *user, const void *bytes, size_t n, kith_error *err) {
    exchange *x = user;
    if (!x->blob || (x->answer.status != 200 && x->answer.status != 206)) {
        x->n_idle += (int64_t)n; /* the page of a redirect or an error */
        if (x->n_idle <= MOST_IDLE_BODY) return KITH_OK;
        return ki_fail(err, KITH_EFORMAT, "%s answers with status %d and more than 1 MiB; refused",
                       x->url.origin, x->answer.status);
    }
    if (!x->has_begun) KI_TRY(begin_body(x, err));
    const int64_t before = x->blob->n_bytes;
    KI_TRY(ki_hub_blob_add(x->blob, bytes, n, err));
    x->session->n_done += x->blob->n_bytes - before;
    return ki_hub_session_beat(x->session, err);
}

static kith_status beat(void *user, kith_error *err) {
    return ki_hub_session_beat(((exchange *)user)->session, err);
}

static kith_status ask(exchange *x, kith_error *err) {
    ki_hub_session *s = x->session;
    const bool is_ours = ki_hub_url_same_origin(&x->url, &s->endpoint);
    const ki_hub_request request = {.url = x->url.text,
                                    .token = is_ours ? s->token : NULL,
                                    .head = !x->blob,
                                    .from = x->from,
                                    .timeout_s = s->timeout_s,
                                    .line = take_line,
                                    .body = take_body,
                                    .beat = beat,
                                    .user = x};
    bool may_pass = false;
    ki_hub_answer_init(&x->answer);
    x->n_idle = 0;
    const kith_status status = s->transport->ask(&request, &may_pass, err);
    x->may_pass |= may_pass;
    if (status != KITH_OK || x->answer.status) return status;
    return ki_fail(err, KITH_EFORMAT, "%s does not answer by HTTP", x->url.origin);
}

static bool is_redirect(const ki_hub_answer *a) {
    return (a->status == 301 || a->status == 302 || a->status == 303 || a->status == 307 || a->status == 308);
}

/* ---- what went wrong ---- */

/* The wanted file, for errors. */
typedef struct wanted {
    const char *repo, *revision, *file;
} wanted;

static kith_status fail_found(exchange *x, const wanted *w, kith_error *err) {
    const char *code = x->answer.error_code;
    if (strcmp(code, "RevisionNotFound") == 0)
        return ki_fail(err, KITH_ENOTFOUND, "%s has no revision '%s'", w->repo, w->revision);
    if (strcmp(code, "EntryNotFound") == 0)
        return ki_fail(err, KITH_ENOTFOUND, "%s has no file %s at revision %s", w->repo, w->file,
                       w->revision);
    ki_fail(err, KITH_ENOTFOUND, "%s has no repository %s that may be read%s", x->session->endpoint.origin,
            w->repo, x->session->token ? " with this token" : " without a token");
    return ki_hint(err, KITH_ENOTFOUND, "check the name; a private one wants a token in HF_TOKEN");
}

static kith_status fail_status(exchange *x, const wanted *w, kith_error *err) {
    const int status = x->answer.status;
    const bool is_gated = strcmp(x->answer.error_code, "GatedRepo") == 0;
    const bool is_ours = ki_hub_url_same_origin(&x->url, &x->session->endpoint);
    x->may_pass = status == 408 || status == 429 || status >= 500;
    if (is_ours && is_gated) {
        ki_fail(err, KITH_EIO, "%s wants its terms to be accepted first (status %d)", w->repo, status);
        return ki_hint(err, KITH_EIO, "accept them on its page, and set HF_TOKEN to a token of that account");
    }
    if (is_ours && (status == 401 || status == 404)) return fail_found(x, w, err);
    ki_fail(err, KITH_EIO, "%s refuses %s of %s: status %d", x->url.origin, w->file, w->repo, status);
    if (status == 403) ki_hint(err, KITH_EIO, "it may want a token with more rights (HF_TOKEN)");
    if (status == 407) ki_hint(err, KITH_EIO, "the proxy wants a user name and a password in its address");
    if (status == 429) ki_hint(err, KITH_EIO, "too many requests: wait some minutes, or set HF_TOKEN");
    return KITH_EIO;
}

/* ---- trying again ---- */

static kith_status pause_for(ki_hub_session *s, double seconds, kith_error *err) {
    const struct timespec nap = {.tv_nsec = 50 * 1000 * 1000};
    for (int n_left = (int)ceil(seconds / 0.05); n_left > 0; n_left--) {
        KI_TRY(ki_hub_session_beat(s, err));
        nanosleep(&nap, NULL);
    }
    return KITH_OK;
}

/* After failure number n_tries, which err has. Waits, or returns the failure. */
static kith_status try_again(const exchange *x, kith_status status, int n_tries, kith_error *err) {
    if (!x->may_pass || status == KITH_ECANCELED || n_tries >= MOST_TRIES) return status;
    double wait = x->session->wait_s * (double)(1 << (n_tries - 1));
    if (x->answer.retry_after > 0) wait = (double)x->answer.retry_after;
    if (wait > LONGEST_WAIT) wait = LONGEST_WAIT;
    ki_log(KITH_LOG_INFO, "%s; trying again in %.3g s", err ? err->message : "no answer", wait);
    return pause_for(x->session, wait, err);
}

/* ---- HEAD ---- */

/* What one answer of the endpoint adds. X-Linked-* of the first answer count; a plain ETag is that of the last. */
static void merge(const ki_hub_answer *a, ki_hub_answer *all) {
    if (!*all->commit) memcpy(all->commit, a->commit, sizeof all->commit);
    if (!*all->linked_etag) memcpy(all->linked_etag, a->linked_etag, sizeof all->linked_etag);
    if (all->linked_size < 0) all->linked_size = a->linked_size;
    if (*a->etag) memcpy(all->etag, a->etag, sizeof all->etag);
    if (!is_redirect(a)) all->length = a->length;
}

static kith_status head_once(exchange *x, const wanted *w, ki_hub_answer *ret_all, kith_error *err) {
    ki_hub_answer all;
    ki_hub_answer_init(&all);
    KI_TRY(ki_hub_url_of_file(&x->session->endpoint, w->repo, w->revision, w->file, &x->url, err));
    for (int i = 0; i < MOST_REDIRECTS; i++) {
        KI_TRY(ask(x, err));
        if (!is_redirect(&x->answer) && x->answer.status != 200) return fail_status(x, w, err);
        merge(&x->answer, &all);
        if (!is_redirect(&x->answer)) {
            *ret_all = all;
            return KITH_OK;
        }
        ki_hub_url next;
        KI_TRY(ki_hub_url_follow(&x->url, x->answer.location, &next, err));
        if (!ki_hub_url_same_origin(&next, &x->session->endpoint)) { /* where the bytes are: GET goes there */
            *ret_all = all;
            return KITH_OK;
        }
        x->url = next;
    }
    return ki_fail(err, KITH_EFORMAT, "%s redirects more than %d times", x->session->endpoint.origin,
                   MOST_REDIRECTS);
}

static kith_status take_facts(const exchange *x, const wanted *w, const ki_hub_answer *all, ki_hub_facts *ret,
                              kith_error *err) {
    ki_hub_facts facts = {.bytes = all->linked_size >= 0 ? all->linked_size : all->length};
    const char *etag = *all->linked_etag ? all->linked_etag : all->etag;
    if (!*all->commit) {
        ki_fail(err, KITH_EFORMAT, "%s does not answer as a hub does: it names no commit (X-Repo-Commit)",
                x->session->endpoint.origin);
        return ki_hint(err, KITH_EFORMAT, "check HF_ENDPOINT and the proxy");
    }
    if (facts.bytes < 0)
        return ki_fail(err, KITH_EFORMAT, "%s does not say how large %s of %s is; refused",
                       x->session->endpoint.origin, w->file, w->repo);
    memcpy(facts.commit, all->commit, sizeof facts.commit);
    memcpy(facts.etag, etag, sizeof facts.etag);
    if (ki_hub_is_hex(etag, 64)) facts.check = KI_HUB_SHA256;
    if (ki_hub_is_hex(etag, 40)) facts.check = KI_HUB_GIT;
    *ret = facts;
    return KITH_OK;
}

kith_status ki_hub_session_head(ki_hub_session *s, const char *repo, const char *revision, const char *file,
                                ki_hub_facts *ret_facts, bool *ret_is_missing, kith_error *err) {
    const wanted w = {repo, revision, file};
    ki_hub_answer all;
    exchange x = {.session = s};
    kith_error none;
    if (!err) err = &none;
    for (int n_tries = 1;; n_tries++) {
        x.may_pass = false;
        const kith_status status = head_once(&x, &w, &all, err);
        *ret_is_missing = status == KITH_ENOTFOUND && strcmp(x.answer.error_code, "EntryNotFound") == 0;
        if (status == KITH_OK) return take_facts(&x, &w, &all, ret_facts, err);
        KI_TRY(try_again(&x, status, n_tries, err));
    }
}

/* ---- GET ---- */

static kith_status get_once(exchange *x, const wanted *w, kith_error *err) {
    ki_hub_blob *blob = x->blob;
    KI_TRY(ki_hub_url_of_file(&x->session->endpoint, w->repo, w->revision, w->file, &x->url, err));
    if (x->is_range_bad) KI_TRY(ki_hub_blob_restart(blob, err));
    x->is_range_bad = x->has_begun = false;
    x->from = blob->n_bytes;
    for (int i = 0; i < MOST_REDIRECTS; i++) {
        KI_TRY(ask(x, err));
        const int status = x->answer.status;
        if (status == 416 && x->from > 0) {
            x->is_range_bad = x->may_pass = true;
            return ki_fail(err, KITH_EIO, "%s cannot go on with %s where it stopped", x->url.origin, w->file);
        }
        if (status == 200 || status == 206) {
            if (blob->n_bytes == blob->facts->bytes) return KITH_OK;
            x->may_pass = true;
            return ki_fail(err, KITH_EIO, "%s sent %lld of the %lld bytes of %s", x->url.origin,
                           (long long)blob->n_bytes, (long long)blob->facts->bytes, w->file);
        }
        if (!is_redirect(&x->answer)) return fail_status(x, w, err);
        ki_hub_url next;
        KI_TRY(ki_hub_url_follow(&x->url, x->answer.location, &next, err));
        x->url = next;
    }
    return ki_fail(err, KITH_EFORMAT, "%s redirects more than %d times", x->session->endpoint.origin,
                   MOST_REDIRECTS);
}

kith_status ki_hub_session_get(ki_hub_session *s, const char *repo, ki_hub_blob *blob, kith_error *err) {
    const wanted w = {repo, blob->facts->commit, blob->file};
    exchange x = {.session = s, .blob = blob};
    kith_error none;
    if (!err) err = &none;
    const int64_t other = s->n_done; /* of other files */
    for (int n_tries = 1; blob->n_bytes < blob->facts->bytes; n_tries++) {
        const int64_t before = blob->n_bytes;
        x.may_pass = false;
        s->n_done = other + blob->n_bytes;
        const kith_status status = get_once(&x, &w, err);
        s->n_done = other + blob->n_bytes;
        if (status == KITH_OK) return KITH_OK;
        if (blob->n_bytes - before >= MUCH) n_tries = 1;
        KI_TRY(try_again(&x, status, n_tries, err));
    }
    s->n_done = other + blob->n_bytes;
    return KITH_OK;
}
