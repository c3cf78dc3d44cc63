/* What is not read: its kinds, by the endings of names, and what is said of each. */
#include "data/dataset/unread.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "data/image/image.h"

static const struct {
    const char *endings;    /* or NULL: not known by its name */
    const char *one, *many; /* when they are counted */
    const char *why;        /* behind a path; NULL: ki_heif_open says it */
} kinds[KI_N_UNREAD] = {
    [KI_UNREAD_GIF] = {".gif", "GIF", "GIFs", "a GIF"},
    [KI_UNREAD_BMP] = {".bmp .dib", "BMP", "BMPs", "a BMP"},
    [KI_UNREAD_TIFF] = {".tif .tiff", "TIFF", "TIFFs", "a TIFF"},
    [KI_UNREAD_RAW] = {".dng .cr2 .cr3 .crw .nef .nrw .arw .sr2 .srf .raf .orf .rw2 .pef .srw .x3f .3fr .iiq "
                       ".erf .kdc .mrw .dcr",
                       "raw file", "raw files", "a camera's raw file"},
    [KI_UNREAD_VIDEO] = {".mp4 .mov .m4v .avi .mkv .webm .3gp .mts .m2ts .mpg .mpeg .wmv .flv", "video",
                         "videos", "a video"},
    [KI_UNREAD_HEIF] = {KI_HEIF_ENDINGS, "HEIC or AVIF image", "HEIC or AVIF images", NULL},
    [KI_UNREAD_PICTURE] = {".jp2 .jxl .ico .psd .svg", "picture of another format",
                           "pictures of other formats", "a format that is not read"},
    [KI_UNREAD_OUTSIDE] = {NULL, "image in no class folder", "images in no class folder",
                           "in no class folder"},
    [KI_UNREAD_BESIDE] = {NULL, "folder beside train and test", "folders beside train and test",
                          "a folder beside train and test"},
    [KI_UNREAD_NAME] = {NULL, "name that cannot be kept", "names that cannot be kept",
                        "its name has a control character, goes through .., or is too long; rename it"},
    [KI_UNREAD_LINK] = {NULL, "link in a circle or to nowhere", "links in a circle or to nowhere",
                        "a link in a circle or to nowhere"},
    [KI_UNREAD_DEPTH] = {NULL, "folder nested too deep", "folders nested too deep",
                         "folders nested too deep"},
    [KI_UNREAD_TAR] = {".tar", "tar file beside folders", "tar files beside folders",
                       "a tar file beside folders; to read it, name it itself"},
    [KI_UNREAD_MEMBER] = {NULL, "link or special file in a tar file", "links or special files in tar files",
                          "a link, a device or a sparse file"},
    [KI_UNREAD_LABEL] = {NULL, "image without a label", "images without a label",
                         "no usable label beside it (.cls or .json)"},
    [KI_UNREAD_SHARD] = {NULL, "damaged or missing tar file", "damaged or missing tar files", "damaged"},
};

bool ki_name_ends(const char *name, const char *endings) {
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name) return false;
    const size_t n = strlen(dot);
    for (const char *at = endings; *at; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        if (length == n && strncasecmp(dot, at, n) == 0) return true;
        at += length;
    }
    return false;
}

bool ki_is_image_name(const char *name) {
    if (ki_name_ends(name, KI_PLAIN_ENDINGS)) return true;
    return ki_name_ends(name, KI_HEIF_ENDINGS) && ki_heif_open(NULL) == KITH_OK;
}

ki_unread_kind ki_unread_kind_of(const char *name) {
    for (int i = 0; i < KI_N_UNREAD; i++) {
        if (kinds[i].endings && ki_name_ends(name, kinds[i].endings)) return (ki_unread_kind)i;
    }
    return KI_UNREAD_NONE;
}

/* One line, whatever the name is. */
static void put_path(ki_buffer *out, const char *path) {
    for (; *path; path++) {
        if ((unsigned char)*path < 0x20 || *path == 0x7f)
            ki_buffer_put(out, "\\x%02x", (unsigned)(unsigned char)*path);
        else
            ki_buffer_add(out, path, 1);
    }
}

kith_status ki_unread_add(ki_unread *u, ki_arena *arena, ki_unread_kind kind, const char *path,
                          kith_error *err) {
    return ki_unread_add_why(u, arena, kind, path, NULL, err);
}

kith_status ki_unread_add_why(ki_unread *u, ki_arena *arena, ki_unread_kind kind, const char *path,
                              const char *reason, kith_error *err) {
    const bool is_shard = kind == KI_UNREAD_SHARD && u->n_of[kind] < KI_MOST_UNREAD_NAMED;
    if (u->n < KI_MOST_UNREAD_NAMED || is_shard) {
        ki_buffer line = {.err = err};
        kith_error why = {0};
        put_path(&line, path);
        if (reason)
            ki_buffer_put(&line, ": %s", reason);
        else if (kinds[kind].why)
            ki_buffer_put(&line, ": %s", kinds[kind].why);
        else if (ki_heif_open(&why) != KITH_OK)
            ki_buffer_put(&line, ": %s", why.message);
        ki_buffer_add(&line, "", 1);
        const char *name = line.status == KITH_OK ? ki_arena_strdup(arena, line.data) : NULL;
        ki_buffer_release(&line);
        if (!name) return ki_fail_memory(err, strlen(path), "a file name");
        if (u->n < KI_MOST_UNREAD_NAMED) u->name[u->n] = name;
        if (is_shard) {
            ki_unread_shard *shard = &u->shard[u->n_of[kind]];
            *shard = (ki_unread_shard){.path = ki_arena_strdup(arena, path), .why = name};
            if (!shard->path) return ki_fail_memory(err, strlen(path), "a file name");
        }
    }
    u->n++;
    u->n_of[kind]++;
    return KITH_OK;
}

int64_t ki_unread_n_shards(const ki_unread *u) {
    const int64_t n = u->n_of[KI_UNREAD_SHARD];
    return n < KI_MOST_UNREAD_NAMED ? n : KI_MOST_UNREAD_NAMED;
}

bool ki_unread_has_formats(const ki_unread *u) {
    for (int i = 0; i < KI_N_UNREAD; i++) {
        if (i != KI_UNREAD_TAR && kinds[i].endings && kinds[i].why && u->n_of[i] > 0) return true;
    }
    return false;
}

kith_status ki_unread_finish(ki_unread *u, ki_arena *arena, kith_error *err) {
    ki_buffer text = {.err = err};
    for (int i = 0; i < KI_N_UNREAD; i++) {
        if (u->n_of[i] == 0) continue;
        ki_buffer_put(&text, "%s%jd %s", text.n > 0 ? ", " : "", (intmax_t)u->n_of[i],
                      u->n_of[i] == 1 ? kinds[i].one : kinds[i].many);
    }
    ki_buffer_add(&text, "", 1);
    kith_status status = text.status;
    u->kinds = status == KITH_OK ? ki_arena_strdup(arena, text.data) : NULL;
    ki_buffer_release(&text);
    if (status == KITH_OK && !u->kinds) status = ki_fail_memory(err, 1, "a text");
    return status;
}
