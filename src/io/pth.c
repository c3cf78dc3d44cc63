/* A .pth file is a zip archive: NAME/data.pkl describes the tensors, NAME/data/KEY holds the numbers of a storage. */
#include "io/pth.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/pickle.h"
#include "io/zip.h"

typedef struct file {
    ki_zip zip;
    ki_zip_entry pickle;
    size_t folder; /* bytes of "NAME/" in the entries' names */
    const char *name;
} file;

static bool ends(const ki_zip_entry *e, const char *end) {
    const size_t n = strlen(end);
    return e->name_length >= n && memcmp(e->name + e->name_length - n, end, n) == 0;
}

static kith_status find_pickle(file *f, kith_error *err) {
    ki_zip_entry e = {0};
    bool more = true;
    size_t at = 0;
    int n_found = 0;
    for (;;) {
        KI_TRY(ki_zip_next(&f->zip, &at, &e, &more, err));
        if (!more) break;
        if (ends(&e, "/byteorder") && (e.n != 6 || memcmp(e.data, "little", 6) != 0))
            return ki_fail(err, KITH_EUNSUPPORTED,
                           "%s was written on a big-endian machine; wanted little-endian", f->name);
        if (!ends(&e, "/data.pkl")) continue;
        f->pickle = e;
        f->folder = e.name_length - strlen("data.pkl");
        n_found++;
    }
    if (n_found == 1) return KITH_OK;
    return ki_fail(err, KITH_EFORMAT, "%s holds %d pickles; wanted one, as torch.save writes it", f->name,
                   n_found);
}

/* The numbers of a storage: NAME/data/KEY. */
static kith_status find_storage(const file *f, const char *key, ki_zip_entry *ret, kith_error *err) {
    bool more = true;
    size_t at = 0;
    const size_t n = strlen(key);
    for (;;) {
        ki_zip_entry e = {0};
        KI_TRY(ki_zip_next(&f->zip, &at, &e, &more, err));
        if (!more) return ki_fail(err, KITH_EFORMAT, "%s has no storage '%.60s'", f->name, key);
        if (e.name_length == f->folder + 5 + n && memcmp(e.name, f->pickle.name, f->folder) == 0 &&
            memcmp(e.name + f->folder, "data/", 5) == 0 && memcmp(e.name + f->folder + 5, key, n) == 0)
            return *ret = e, KITH_OK;
    }
}

/* Numbers side by side in the order of their indices? */
static bool is_contiguous(const ki_pickle_tensor *t) {
    int64_t wanted = 1;
    for (int i = t->n_dims - 1; i >= 0; i--) {
        if (t->dim[i] != 1 && t->stride[i] != wanted) return false;
        wanted *= t->dim[i];
    }
    return true;
}

static kith_status add_tensor(const file *f, const ki_pickle_tensor *t, kith_tensors_writer *to,
                              kith_error *err) {
    ki_zip_entry e = {0};
    kith_array view = {.dtype = t->dtype, .n_dims = t->n_dims};
    size_t bytes = 0;
    memcpy(view.dim, t->dim, sizeof view.dim);
    const int64_t n = kith_array_count(&view);
    KI_TRY(find_storage(f, t->storage, &e, err));
    if (n < 0 || n > t->numbers || t->offset > t->numbers - n)
        return ki_fail(err, KITH_EFORMAT, "%s: tensor %.100s is larger than its storage", f->name, t->name);
    if (!ki_mul_size((size_t)t->numbers, kith_dtype_bytes(t->dtype), &bytes) || bytes != e.n)
        return ki_fail(err, KITH_EFORMAT, "%s: the storage of %.100s has %zu bytes; wanted %zu", f->name,
                       t->name, e.n, bytes);
    if (!is_contiguous(t)) {
        ki_fail(err, KITH_EUNSUPPORTED, "%s: tensor %.100s is a view with gaps or in another order", f->name,
                t->name);
        return ki_hint(err, KITH_EUNSUPPORTED, "in PyTorch, save it with .contiguous()");
    }
    const char *data = (const char *)e.data + (size_t)t->offset * kith_dtype_bytes(t->dtype);
    view.data = (void *)(uintptr_t)data;
    return kith_tensors_writer_add(to, t->name, &view, err);
}

/* What people have instead of a .pth file, by the bytes it begins with. */
static const struct {
    size_t at, n;
    const char *bytes, *what, *hint;
} others[] = {
    {0, 1, "\x80", "a pickle without a zip archive, which torch.save wrote before PyTorch 1.6",
     "in PyTorch 1.13 or later: torch.save(torch.load(OLD, map_location='cpu', weights_only=True), NEW)"},
    {257, 5, "ustar", "a tar archive", "unpack it, and name the file of weights in it"},
    {0, 2, "\x1f\x8b", "packed by gzip", "unpack it with gunzip"},
    {0, 23, "version https://git-lfs", "a pointer of Git LFS, not the file itself",
     "get the file with `git lfs pull`"},
    {0, 1, "<", "a web page", "download the file again; the server may have answered with an error"},
};

static kith_status fail_no_zip(const unsigned char *bytes, size_t n, const char *name, kith_error *err) {
    static const char wanted[] = "wanted a state dict in safetensors or as torch.save writes it";
    if (n == 0) {
        ki_fail(err, KITH_EFORMAT, "%s is empty; %s", name, wanted);
        return ki_hint(err, KITH_EFORMAT, "download or copy the file again");
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (n < others[i].at + others[i].n || memcmp(bytes + others[i].at, others[i].bytes, others[i].n) != 0)
            continue;
        ki_fail(err, KITH_EFORMAT, "%s is %s; %s", name, others[i].what, wanted);
        return ki_hint(err, KITH_EFORMAT, "%s", others[i].hint);
    }
    char hex[3 * 8 + 1] = "";
    for (size_t i = 0; i < n && i < 8; i++) ki_snprintf(hex + 3 * i, 4, " %02x", bytes[i]);
    ki_fail(err, KITH_EFORMAT, "%s begins with%s, as no file of weights does; %s", name, hex, wanted);
    return ki_hint(err, KITH_EFORMAT, "look at it with `file`, or download it again");
}

kith_status ki_pth_parse(const void *bytes, size_t n, const char *name, kith_tensors_writer *to,
                         kith_error *err) {
    kith_status status;
    ki_arena arena = {0};
    ki_pickle pickle = {0};
    file f = {.name = name};
    if (!ki_zip_is(bytes, n)) return fail_no_zip(bytes, n, name, err);
    KI_CHECK(ki_zip_open(bytes, n, name, &f.zip, err));
    KI_CHECK(find_pickle(&f, err));
    KI_CHECK(ki_pickle_parse(f.pickle.data, f.pickle.n, name, &arena, &pickle, err));
    if (pickle.n == 0) {
        status = ki_fail(err, KITH_EFORMAT, "%s: the state dict has no tensors", name);
        goto done;
    }
    for (size_t i = 0; i < pickle.n; i++) KI_CHECK(add_tensor(&f, &pickle.tensor[i], to, err));
done:
    ki_arena_release(&arena);
    return status;
}
