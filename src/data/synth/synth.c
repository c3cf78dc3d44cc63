/* Writing the built-in data set. Everything is written to a folder beside the target, which is renamed after
 * the last file. So a run that stops half-way leaves nothing behind under the target's name. */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/parallel.h"
#include "data/dataset/dataset.h"
#include "data/synth/glyph.h"
#include "io/file.h"

enum { MOST_CLASSES = 100000, MOST_IMAGES = 100000, ROUND = 16 };

KI_OPTIONS_INIT(kith_synth_options, .n_classes = 200, .n_images = 20, .side = 64, .seed = 1, .noise = 10,
                .jitter = 1)

static kith_status check(const kith_synth_options *s, kith_error *err) {
    if (s->n_classes < 1 || s->n_classes > MOST_CLASSES)
        return ki_fail(err, KITH_EINVAL, "n_classes is %jd; wanted 1 … %d", (intmax_t)s->n_classes,
                       MOST_CLASSES);
    if (s->n_images < 1 || s->n_images > MOST_IMAGES)
        return ki_fail(err, KITH_EINVAL, "n_images is %jd; wanted 1 … %d", (intmax_t)s->n_images,
                       MOST_IMAGES);
    if (s->side < 16 || s->side > 512)
        return ki_fail(err, KITH_EINVAL, "side is %jd; wanted 16 … 512", (intmax_t)s->side);
    if (!(s->noise >= 0 && s->noise <= 100))
        return ki_fail(err, KITH_EINVAL, "noise is %g; wanted 0 … 100", s->noise);
    if (!(s->jitter >= 0 && s->jitter <= 3))
        return ki_fail(err, KITH_EINVAL, "jitter is %g; wanted 0 … 3", s->jitter);
    return KITH_OK;
}

static kith_status write_file(const char *path, const ki_bytes *bytes, kith_error *err) {
    FILE *file = fopen(path, "wb");
    if (!file) return ki_fail(err, KITH_EIO, "%s: %s", path, strerror(errno));
    const bool is_written = fwrite(bytes->data, 1, bytes->n, file) == bytes->n;
    if (fclose(file) != 0 || !is_written) return ki_fail(err, KITH_EIO, "%s: %s", path, strerror(errno));
    return KITH_OK;
}

typedef struct job {
    const kith_synth_options *options;
    const char *dir;
    int64_t first;
    atomic_int status; /* of the first class that failed */
    kith_error *err;
} job;

static kith_status write_class(const job *j, uint32_t class_, ki_image *image, ki_bytes *bytes,
                               kith_error *err) {
    ki_path path;
    KI_TRY(ki_path_print(&path, err, "%s/glyph%05u", j->dir, class_));
    if (mkdir(path.s, 0777) != 0) return ki_fail(err, KITH_EIO, "%s: %s", path.s, strerror(errno));
    const ki_glyph glyph = ki_glyph_make(j->options->seed, class_);
    for (uint32_t i = 0; i < (uint32_t)j->options->n_images; i++) {
        KI_TRY(ki_glyph_draw(&glyph, j->options, class_, i, image, err));
        KI_TRY(ki_png_encode(image, bytes, err));
        KI_TRY(ki_path_print(&path, err, "%s/glyph%05u/%05u.png", j->dir, class_, i));
        KI_TRY(write_file(path.s, bytes, err));
    }
    return KITH_OK;
}

static void write_classes(void *context, int64_t begin, int64_t end) {
    job *j = context;
    ki_image image = {0};
    ki_bytes bytes = {0};
    for (int64_t c = begin; c < end; c++) {
        kith_error err = {0};
        const kith_status status = write_class(j, (uint32_t)(j->first + c), &image, &bytes, &err);
        int none = KITH_OK;
        if (status != KITH_OK) {
            if (atomic_compare_exchange_strong(&j->status, &none, (int)status) && j->err) *j->err = err;
            break;
        }
    }
    ki_image_release(&image);
    ki_bytes_release(&bytes);
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw) {
    (void)info, (void)type, (void)ftw;
    return remove(path);
}

/* Absent or an empty folder. */
static kith_status check_free(const char *dir, kith_error *err) {
    DIR *open_dir = opendir(dir);
    if (!open_dir) {
        if (errno == ENOENT) return KITH_OK;
        return ki_fail(err, KITH_EIO, "%s: %s", dir, strerror(errno));
    }
    int why = 0;
    const bool is_empty = !ki_dir_next(open_dir, &why);
    closedir(open_dir);
    if (why) return ki_fail(err, KITH_EIO, "%s: %s", dir, strerror(why));
    if (is_empty) return KITH_OK;
    ki_fail(err, KITH_EINVAL, "%s is not empty", dir);
    return ki_hint(err, KITH_EINVAL, "name a new folder, or remove this one first");
}

kith_status kith_synth_write(const char *dir, const kith_synth_options *options, kith_progress_fn progress,
                             void *user, kith_error *err) {
    KI_NEED(err, dir);
    kith_status status = KITH_OK;
    ki_path target, aside;
    bool is_made = false;
    KI_OPTIONS_TAKE(kith_synth_options, o, options, err);
    KI_TRY(check(&o, err));
    KI_TRY(ki_path_print(&target, err, "%s", dir));
    for (size_t n = strlen(target.s); n > 1 && target.s[n - 1] == '/'; n--) target.s[n - 1] = '\0';
    KI_TRY(check_free(target.s, err));
    KI_TRY(ki_path_print(&aside, err, "%.3900s.%ld.partial", target.s, (long)getpid()));
    if (mkdir(aside.s, 0777) != 0) return ki_fail(err, KITH_EIO, "%s: %s", aside.s, strerror(errno));
    is_made = true;
    job j = {.options = &o, .dir = aside.s, .err = err};
    atomic_init(&j.status, KITH_OK);
    for (; j.first < o.n_classes; j.first += ROUND) {
        const int64_t n = o.n_classes - j.first < ROUND ? o.n_classes - j.first : ROUND;
        ki_parallel_for(n, 1, write_classes, &j);
        status = (kith_status)atomic_load(&j.status);
        if (status != KITH_OK) goto done;
        if (progress && progress(user, (j.first + n) * o.n_images, o.n_classes * o.n_images)) {
            status = ki_fail(err, KITH_ECANCELED, "stopped after %jd of %jd classes", (intmax_t)(j.first + n),
                             (intmax_t)o.n_classes);
            goto done;
        }
    }
    if (rename(aside.s, target.s) != 0) {
        status = ki_fail(err, KITH_EIO, "%s: %s", target.s, strerror(errno));
        goto done;
    }
    is_made = false;
done:
    if (is_made) nftw(aside.s, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return status;
}
