/* Images from files, prepared as a model wants them. */
#include "cli/images.h"

#include <stdio.h>
#include <string.h>

void cli_say_model(const char *named, kith_model *model) {
    char title[512];
    if (named && strcmp(named, "general") != 0) return;
    fprintf(stderr, "kith: model: %s\n", kith_model_title(model, title, sizeof title));
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
