/* Photos whose header cannot be read: empty files, pages saved as .jpg, copies that were cut short at once. They are left out before anything is
 * computed. One that breaks later in the file is found when it is embedded. */
#include <string.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/parallel.h"
#include "base/text.h"
#include "data/image/image.h"
#include "tune/tune.h"

enum { ROUND = 512 };

typedef struct probe {
    const kith_dataset *set;
    int64_t first;
    bool *is_bad; /* [n_items] */
} probe;

static kith_status look_at(const kith_dataset *set, int64_t item, ki_bytes *bytes, kith_error *err) {
    int32_t w = 0, h = 0;
    KI_TRY(ki_bytes_read(bytes, set->item[item].path, err));
    return ki_image_probe(bytes->data, bytes->n, &w, &h, err);
}

static void look_at_range(void *context, int64_t begin, int64_t end) {
    const probe *p = context;
    ki_bytes bytes = {0};
    kith_error err;
    for (int64_t i = p->first + begin; i < p->first + end; i++) {
        const kith_status status = look_at(p->set, i, &bytes, &err);
        p->is_bad[i] = status != KITH_OK && status != KITH_ENOMEM;
    }
    ki_bytes_release(&bytes);
}

/* Why the first of them cannot be. */
static void say(ki_tune *t, const kith_dataset *set, const bool *is_bad) {
    ki_bytes bytes = {0};
    kith_error err = {0};
    int64_t n = 0, first = -1;
    for (size_t i = 0; i < set->n_items; i++) {
        if (is_bad[i] && n++ == 0) first = (int64_t)i;
    }
    t->n_unread = n;
    if (n == 0) return;
    (void)look_at(set, first, &bytes, &err);
    ki_bytes_release(&bytes);
    ki_tune_say(t, "left out: %lld photo%s that cannot be read%s %s: %s", (long long)n, n == 1 ? "" : "s",
                n == 1 ? ":" : ", the first", set->item[first].path, err.message);
}

kith_status ki_tune_find_unread(ki_tune *t, const kith_dataset *set, bool *is_out, kith_error *err) {
    kith_status status = KITH_OK;
    probe p = {.set = set};
    const int64_t n = (int64_t)set->n_items;
    KI_TRY(ki_zalloc_or(&p.is_bad, set->n_items + 1, sizeof *p.is_bad, "photos", err));
    ki_snprintf(t->busy, sizeof t->busy, "looking at the photos");
    for (; p.first < n; p.first += ROUND) {
        const int64_t m = n - p.first < ROUND ? n - p.first : ROUND;
        ki_parallel_for(m, 8, look_at_range, &p);
        if (ki_tune_busy(t, p.first + m, n) != 0) {
            status = ki_tune_stopped(err);
            goto done;
        }
    }
    for (int64_t i = 0; i < n; i++) is_out[i] |= p.is_bad[i];
    say(t, set, p.is_bad);
done:
    ki_free(p.is_bad);
    return status;
}
