/* kith_tune_run: the tuning, and its report. */
#include "kith/tune.h"

#include <string.h>

#include "base/argument.h"
#include "base/log.h"
#include "base/path.h"
#include "data/dataset/dataset.h"
#include "kith/photos.h"
#include "kith/report.h"
#include "tune/tune.h"

KI_OPTIONS_INIT(kith_tune_options, 0)

/* A manifest or tar files, as kith_dataset_open would take them. */
static bool is_list(const char *path) {
    const size_t n = strlen(path);
    return ki_names_tars(path) || (n > 4 && strcmp(path + n - 4, ".csv") == 0 && !ki_is_folder("%s", path));
}

bool kith_tune_can(const char *path) {
    if (!path) return false;
    if (is_list(path)) return true;
    if (!kith_photos_are(path)) return false;
    return !ki_is_file("%s/recipe.yaml", path) && !ki_is_file("%s/tried.jsonl", path);
}

kith_status kith_tune_run(const kith_tune_options *options, kith_tune_result *ret_result, kith_error *err) {
    kith_tune_result result = {0};
    kith_error why;
    KI_OPTIONS_TAKE(kith_tune_options, o, options, err);
    KI_TRY(ki_tune_run(&o, &result, err));
    if (kith_model_card_write(o.out, NULL, &why) != KITH_OK)
        ki_log(KITH_LOG_WARNING, "no description of the model in %s: %s", o.out, why.message);
    if (!o.no_report && kith_report_write(o.out, NULL, &why) != KITH_OK)
        ki_log(KITH_LOG_WARNING, "no report of %s: %s", o.out, why.message);
    if (ret_result) *ret_result = result;
    return KITH_OK;
}
