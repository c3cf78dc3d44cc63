/* When the loss is no longer a finite number: the images it was computed from.
 *
 * A device reports late, so the items of the last steps are kept, for as many steps as there may be between
 * two reads of its values. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "train/run.h"

enum { MOST_STEPS = 256 };

kith_status ki_train_recent_make(ki_train_state *run, kith_error *err) {
    ki_recent *r = &run->recent;
    const int64_t accumulate = run->recipe->optim.accumulate;
    const int64_t steps = run->recipe->log_every < MOST_STEPS ? run->recipe->log_every : MOST_STEPS;
    r->n_slots = steps * accumulate;
    KI_TRY(ki_alloc_or(&r->item, (size_t)r->n_slots, (size_t)run->batch * sizeof *r->item, "items", err));
    KI_TRY(ki_zalloc_or(&r->n, (size_t)r->n_slots, sizeof *r->n, "items", err));
    return ki_zalloc_or(&r->step, (size_t)r->n_slots, sizeof *r->step, "items", err);
}

void ki_train_recent_release(ki_train_state *run) {
    ki_free(run->recent.item);
    ki_free(run->recent.n);
    ki_free(run->recent.step);
}

void ki_train_recent_add(ki_train_state *run, const ki_loader_batch *batch) {
    ki_recent *r = &run->recent;
    const int64_t slot = r->n_added++ % r->n_slots;
    r->n[slot] = batch->n_all;
    r->step[slot] = run->at.step;
    memcpy(r->item + slot * run->batch, batch->items, (size_t)batch->n_all * sizeof *r->item);
}

/* Paths of the images of a step; free them with ki_free. */
static const char **images_of(const ki_train_state *run, int64_t step, int64_t *ret_n) {
    const ki_recent *r = &run->recent;
    int64_t n = 0;
    for (int64_t s = 0; s < r->n_slots; s++) n += r->step[s] == step ? r->n[s] : 0;
    const char **images = ki_alloc((size_t)n + 1, sizeof *images);
    *ret_n = 0;
    for (int64_t s = 0; images && s < r->n_slots; s++) {
        if (r->step[s] != step) continue;
        for (int64_t i = 0; i < r->n[s]; i++)
            images[(*ret_n)++] = run->set->item[r->item[s * run->batch + i]].path;
    }
    return images;
}

/* The first of them in a line: CLASS/FILE is enough to find one. */
static void list_names(const char *const *images, int64_t n, char *ret, size_t bytes) {
    size_t used = 0;
    ret[0] = '\0';
    for (int64_t i = 0; i < n; i++) {
        const char *name = images[i] + strlen(images[i]);
        for (int n_slashes = 0; name > images[i]; name--) {
            if (name[-1] == '/' && ++n_slashes == 2) break;
        }
        const int k = ki_snprintf(ret + used, bytes - used, "%s%s", i ? ", " : "", name);
        if (k < 0 || (size_t)k + sizeof ", …" >= bytes - used) {
            ki_snprintf(ret + used, bytes - used, "%s…", i ? ", " : "");
            return;
        }
        used += (size_t)k;
    }
}

kith_status ki_train_fail_numeric(ki_train_state *run, int64_t step, const char *what, kith_error *err) {
    char why[200], names[170], text[320];
    int64_t n = 0;
    kith_error ignored;
    ki_snprintf(why, sizeof why, "%.*s", (int)sizeof why - 1, what);
    const char **images = images_of(run, step, &n);
    list_names(images, n, names, sizeof names);
    ki_snprintf(text, sizeof text, "stopped at step %lld: %s", (long long)step + 1, why);
    if (images && ki_record_add_text(run->record, "note", step, text, images, n, &ignored) != KITH_OK)
        ki_train_notify(run, &(kith_train_event){.kind = KITH_TRAIN_WARNING, .text = ignored.message});
    ki_free(images);
    ki_fail(err, KITH_ENUMERIC, "step %lld: %s; the batch: %s (all %lld in log.jsonl)", (long long)step + 1,
            why, names, (long long)n);
    /* Look at the disk again, because a file may have been damaged since it was written. */
    ki_checkpoint good = {0};
    int64_t good_step = -1;
    const bool is_sound =
        ki_train_find_checkpoint(run, &good, &good_step, &ignored) == KITH_OK && good_step >= 0;
    ki_checkpoint_release(&good);
    if (is_sound)
        return ki_hint(err, KITH_ENUMERIC,
                       "lower optim.lr or set optim.clip; the checkpoint of step %lld is still good",
                       (long long)good_step);
    return ki_hint(err, KITH_ENUMERIC, "lower optim.lr or set optim.clip, and begin again");
}
