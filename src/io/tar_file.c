/* Which members tar files have, and reading them in place. One mutex guards the list of files; it is held while a name is looked up and
 * while a file is listed that nobody holds, never while contents are read. */
#include "io/tar_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/file.h"

enum { MOST_OPEN = 200 }; /* files that stay open; others are opened for every read */
enum { MOST_LISTED = 4 }; /* files that nobody holds, and whose members are remembered */
enum { MOST_PATH = 4096 };

typedef struct member {
    uint64_t hash; /* of its name */
    int64_t at, bytes;
} member;

struct ki_tar {
    char *path;
    uint64_t hash;
    int64_t bytes, mtime_ns; /* of the file when it was listed */
    member *member;          /* by hash, then by place */
    size_t n_members, capacity;
    int64_t n_holders;
    bool is_old;   /* another file has its name now; whoever holds it keeps it */
    uint64_t used; /* when it was last looked into */
    int fd;        /* -1: not open */
    char *damage;
};

static struct {
    pthread_mutex_t mutex;
    ki_tar **tar;
    size_t n, capacity;
    size_t last; /* where the last one was found */
    int n_open;
    uint64_t now;
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static uint64_t hash_of(const char *s, size_t n) { /* FNV-1a */
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < n; i++) hash = (hash ^ (unsigned char)s[i]) * UINT64_C(1099511628211);
    return hash;
}

static int64_t mtime_of(const struct stat *info) {
    return (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

/* ---- listing ---- */

static void free_tar(ki_tar *tar) {
    if (!tar) return;
    if (tar->fd >= 0) close(tar->fd);
    ki_free(tar->path);
    ki_free(tar->member);
    ki_free(tar->damage);
    ki_free(tar);
}

static int compare_members(const void *a, const void *b) {
    const member *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static kith_status walk(ki_tar *tar, ki_tar_walk *w, ki_tar_visit_fn visit, void *context, kith_error *err) {
    for (;;) {
        ki_tar_entry entry;
        bool more = false;
        kith_error why = {0};
        const kith_status status = ki_tar_next(w, &entry, &more, &why);
        if (status == KITH_EFORMAT) {
            tar->damage = ki_strdup(why.message);
            return tar->damage ? KITH_OK : ki_fail_memory(err, sizeof why.message, "a tar file");
        }
        if (status != KITH_OK) {
            if (err) *err = why;
            return status;
        }
        if (!more) return KITH_OK;
        if (visit) KI_TRY(visit(context, w, &entry, err));
        if (!entry.is_file || entry.is_odd) continue;
        KI_TRY(ki_grow(&tar->member, &tar->capacity, tar->n_members + 1, sizeof *tar->member,
                       "members of a tar file", err));
        tar->member[tar->n_members++] =
            (member){hash_of(entry.name, strlen(entry.name)), entry.at, entry.bytes};
    }
}

static kith_status check_packed(const char *path, ki_tar_walk *w, kith_error *err) {
    unsigned char begin[6];
    if (w->source.n_bytes < (int64_t)sizeof begin) return KITH_OK;
    KI_TRY(ki_tar_read(w, begin, sizeof begin, 0, err));
    const char *by = ki_packed_by(begin, sizeof begin);
    if (!by) return KITH_OK;
    ki_fail(err, KITH_EUNSUPPORTED, "%s is packed (%s); wanted a plain .tar, whose members are read in place",
            path, by);
    return ki_hint(err, KITH_EUNSUPPORTED,
                   "unpack it first, as with `gunzip`; photos hardly become smaller by it");
}

static kith_status list_file(const char *path, ki_tar_visit_fn visit, void *context, ki_tar **ret_tar,
                             kith_error *err) {
    kith_status status = KITH_OK;
    ki_tar *tar = NULL;
    ki_tar_walk *w = NULL;
    struct stat info;
    long long n = 0;
    int fd = -1;
    KI_TRY(ki_file_open(path, KI_FILE_ONLY, &fd, &n, err));
    KI_CHECK(ki_zalloc_or(&tar, 1, sizeof *tar, "a tar file", err));
    tar->fd = -1;
    KI_CHECK(ki_zalloc_or(&w, 1, sizeof *w, "a tar file", err));
    w->source = (ki_tar_source){.fd = fd, .n_bytes = n, .name = path};
    tar->path = ki_strdup(path);
    if (!tar->path) {
        status = ki_fail_memory(err, strlen(path), "a tar file");
        goto done;
    }
    tar->hash = hash_of(path, strlen(path));
    tar->bytes = n;
    if (fstat(fd, &info) == 0) tar->mtime_ns = mtime_of(&info);
    KI_CHECK(check_packed(path, w, err));
    KI_CHECK(walk(tar, w, visit, context, err));
    if (tar->n_members) qsort(tar->member, tar->n_members, sizeof *tar->member, compare_members);
    *ret_tar = tar;
    tar = NULL;
done:
    if (fd >= 0) close(fd);
    ki_free(w);
    free_tar(tar);
    return status;
}

/* ---- the list of files; mutex held ---- */

static kith_status add_tar(ki_tar *tar, kith_error *err) {
    KI_TRY(ki_grow(&all.tar, &all.capacity, all.n + 1, sizeof *all.tar, "tar files", err));
    all.tar[all.n++] = tar;
    return KITH_OK;
}

static void remove_tar(size_t i) {
    all.n_open -= all.tar[i]->fd >= 0;
    free_tar(all.tar[i]);
    all.tar[i] = all.tar[--all.n];
    if (all.n > 0) return;
    ki_free(all.tar);
    all.tar = NULL;
    all.capacity = 0;
}

static ki_tar *find_tar(const char *path, size_t n) {
    const uint64_t hash = hash_of(path, n);
    for (size_t k = 0; k < all.n; k++) {
        const size_t i = (all.last + k) % all.n;
        ki_tar *tar = all.tar[i];
        if (tar->is_old || tar->hash != hash || strlen(tar->path) != n || memcmp(tar->path, path, n) != 0)
            continue;
        all.last = i;
        tar->used = ++all.now;
        return tar;
    }
    return NULL;
}

/* Make room for one more that nobody holds. */
static void forget_oldest(void) {
    size_t n = 0, oldest = 0;
    for (size_t i = 0; i < all.n; i++) {
        if (all.tar[i]->n_holders > 0) continue;
        if (n++ == 0 || all.tar[i]->used < all.tar[oldest]->used) oldest = i;
    }
    if (n >= MOST_LISTED) remove_tar(oldest);
}

/* The tar file of that name, listed now if nobody holds it and it is new or has changed. NULL: there is none. */
static ki_tar *tar_named(const char *path, size_t n) {
    char name[MOST_PATH];
    struct stat info;
    if (n >= sizeof name) return NULL;
    ki_tar *tar = find_tar(path, n), *made = NULL;
    if (tar && tar->n_holders > 0) return tar;
    memcpy(name, path, n);
    name[n] = '\0';
    if (stat(name, &info) != 0 || !S_ISREG(info.st_mode)) return NULL;
    if (tar && tar->bytes == (int64_t)info.st_size && tar->mtime_ns == mtime_of(&info)) return tar;
    if (tar) {
        remove_tar(all.last);
        all.last = 0;
    }
    forget_oldest();
    if (list_file(name, NULL, NULL, &made, NULL) != KITH_OK) return NULL;
    made->used = ++all.now;
    if (add_tar(made, NULL) == KITH_OK) return made;
    free_tar(made);
    return NULL;
}

static const member *find_member(const ki_tar *tar, const char *name) {
    const uint64_t hash = hash_of(name, strlen(name));
    size_t low = 0, high = tar->n_members; /* the last one with the hash is before `high` */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (tar->member[middle].hash <= hash)
            low = middle + 1;
        else
            high = middle;
    }
    return high > 0 && tar->member[high - 1].hash == hash ? &tar->member[high - 1] : NULL;
}

static const member *find(const char *path, ki_tar **ret_tar) {
    for (const char *at = path; (at = strstr(at, ".tar/")); at++) {
        ki_tar *tar = tar_named(path, (size_t)(at - path) + 4);
        const member *m = tar ? find_member(tar, at + 5) : NULL;
        if (tar) *ret_tar = tar;
        if (tar) return m;
    }
    return NULL;
}

/* ---- holding ---- */

/* Mutex held. *tar is in the list, held once more; it is another one where the same file is held already. */
static kith_status hold(ki_tar **tar, kith_error *err) {
    ki_tar *known = find_tar((*tar)->path, strlen((*tar)->path));
    if (known && known->n_holders > 0 && known->bytes == (*tar)->bytes &&
        known->mtime_ns == (*tar)->mtime_ns) {
        free_tar(*tar);
        *tar = known;
        known->n_holders++;
        return KITH_OK;
    }
    KI_TRY(add_tar(*tar, err));
    (*tar)->n_holders = 1;
    if (!known) return KITH_OK;
    known->is_old = true;
    if (known->n_holders == 0) remove_tar(all.last);
    all.last = 0;
    return KITH_OK;
}

kith_status ki_tar_hold(const char *path, ki_tar_visit_fn visit, void *context, ki_tar **ret_tar,
                        kith_error *err) {
    ki_tar *tar = NULL;
    KI_TRY(list_file(path, visit, context, &tar, err));
    pthread_mutex_lock(&all.mutex);
    const kith_status status = hold(&tar, err);
    pthread_mutex_unlock(&all.mutex);
    if (status == KITH_OK)
        *ret_tar = tar;
    else
        free_tar(tar);
    return status;
}

ki_tar *ki_tar_hold_of(const char *path) {
    ki_tar *tar = NULL;
    if (!strstr(path, ".tar/")) return NULL;
    pthread_mutex_lock(&all.mutex);
    if (!find(path, &tar)) tar = NULL;
    if (tar) tar->n_holders++;
    pthread_mutex_unlock(&all.mutex);
    return tar;
}

static void drop(const ki_tar *tar) {
    for (size_t i = 0; i < all.n; i++) {
        if (all.tar[i] != tar) continue;
        remove_tar(i);
        all.last = 0;
        return;
    }
}

void ki_tar_let_go(ki_tar *tar) {
    if (!tar) return;
    pthread_mutex_lock(&all.mutex);
    if (--tar->n_holders == 0) drop(tar);
    pthread_mutex_unlock(&all.mutex);
}

const char *ki_tar_damage(const ki_tar *tar) { return tar->damage; }

/* ---- parts ---- */

/* Its own descriptor; KITH_EIO when the file is not the one that was listed. */
static kith_status open_own(const ki_tar *tar, int *ret_fd, kith_error *err) {
    long long n = 0;
    KI_TRY(ki_file_open(tar->path, KI_FILE_ONLY, ret_fd, &n, err));
    if (n == tar->bytes) return KITH_OK;
    close(*ret_fd);
    *ret_fd = -1;
    return ki_fail(err, KITH_EIO, "%s has changed since it was listed: %lld bytes, then %jd", tar->path, n,
                   (intmax_t)tar->bytes);
}

/* Mutex held. */
static kith_status open_member(ki_tar *tar, const member *m, ki_member *ret, kith_error *err) {
    int fd = tar->fd;
    if (fd < 0) KI_TRY(open_own(tar, &fd, err));
    *ret = (ki_member){.fd = fd, .at = m->at, .bytes = m->bytes};
    if (tar->fd < 0 && all.n_open < MOST_OPEN) {
        tar->fd = fd;
        all.n_open++;
    }
    if (tar->fd < 0) return KITH_OK;
    ret->tar = tar;
    tar->n_holders++;
    return KITH_OK;
}

kith_status ki_member_open(const char *path, ki_member *ret, kith_error *err) {
    if (strstr(path, ".tar/")) {
        ki_tar *tar = NULL;
        pthread_mutex_lock(&all.mutex);
        const member *m = find(path, &tar);
        const kith_status status = m ? open_member(tar, m, ret, err) : KITH_OK;
        pthread_mutex_unlock(&all.mutex);
        if (m) return status;
        if (tar) return ki_fail(err, KITH_EIO, "cannot open %s: the tar file has no such member", path);
    }
    long long n = 0;
    *ret = (ki_member){.fd = -1};
    KI_TRY(ki_file_open(path, KI_FILE_ONLY, &ret->fd, &n, err));
    ret->bytes = n;
    return KITH_OK;
}

kith_status ki_member_read(const ki_member *part, const char *path, void *dst, size_t n, int64_t from,
                           size_t *ret_n, kith_error *err) {
    size_t done = 0;
    if (part->at > 0 && (int64_t)n > part->bytes - from) n = (size_t)(part->bytes - from);
    while (done < n) {
        const off_t at = (off_t)(part->at + from + (int64_t)done);
        const ssize_t got = pread(part->fd, (char *)dst + done, n - done, at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return ki_fail(err, KITH_EIO, "cannot read %s: %s", path, strerror(errno));
        if (got == 0) break;
        done += (size_t)got;
    }
    *ret_n = done;
    return KITH_OK;
}

void ki_member_close(ki_member *part) {
    if (part->tar) {
        pthread_mutex_lock(&all.mutex);
        /* One that was listed only because it was asked for stays listed. */
        if (--part->tar->n_holders == 0 && part->tar->is_old) drop(part->tar);
        pthread_mutex_unlock(&all.mutex);
    } else if (part->fd >= 0) {
        close(part->fd);
    }
    *part = (ki_member){.fd = -1};
}

bool ki_member_look(const char *path, int64_t *ret_bytes, int64_t *ret_mtime_ns) {
    struct stat info;
    int64_t bytes = 0, mtime_ns = 0;
    bool is_there = false;
    if (strstr(path, ".tar/")) {
        ki_tar *tar = NULL;
        pthread_mutex_lock(&all.mutex);
        const member *m = find(path, &tar);
        is_there = m != NULL;
        if (m) bytes = m->bytes, mtime_ns = tar->mtime_ns;
        pthread_mutex_unlock(&all.mutex);
    }
    if (!is_there && stat(path, &info) == 0) {
        is_there = true;
        bytes = info.st_size;
        mtime_ns = mtime_of(&info);
    }
    if (is_there && ret_bytes) *ret_bytes = bytes;
    if (is_there && ret_mtime_ns) *ret_mtime_ns = mtime_ns;
    return is_there;
}
