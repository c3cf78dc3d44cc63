/* Images from files, prepared as a model wants them. */
#include "cli/images.h"

#include <stdio.h>
#include <string.h>

void cli_say_model(const char *named, kith_model *model) {
    char title[512];
    if (named && strcmp(named, "general") != 0) return;
    fprintf(stderr, "kith: model: %s\n", kith_model_title(model, title, sizeof title));
}

void cli_say_purpose(const char *named) {
    if (!named)
        fprintf(
            stderr,
            "kith: general finds the same object, scene or picture again; for fine kinds, such as species, "
            "kith pull dinov2-s brings a stronger model\n");
}

void cli_say_rates(const kith_calibration *curve) {
    static const char before[] = ", at ", after[] = " px";
    const char *at = curve ? strstr(curve->source, before) : NULL;
    if (!at || !cli_ends_with(at, after)) return;
    fprintf(
        stderr,
        "kith: false-match rates are those of the model at %.*s pixels, not at this side; measure them: kith "
        "index INDEX --calibrate DATA\n",
        (int)(strlen(at) - (sizeof before - 1) - (sizeof after - 1)), at + sizeof before - 1);
}

int cli_show_progress(void *user, int64_t done, int64_t all) {
    cli_progress *progress = user;
    progress->total = all;
    cli_progress_update(progress, done, NULL);
    return 0;
}

void cli_report_bad(int64_t n_bad, const char *first) {
    if (n_bad > 0)
        fprintf(stderr, "kith: %lld image%s could not be read and %s left out; the first: %s\n",
                (long long)n_bad, n_bad == 1 ? "" : "s", n_bad == 1 ? "is" : "are", first);
}
