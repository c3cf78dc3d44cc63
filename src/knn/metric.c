/* Names of metrics. */
#include <string.h>

#include "base/argument.h"
#include "base/option.h"
#include "kith/knn.h"

static const char *const metric_names[] = {"cosine", "inner", "sqeuclidean"};

const char *kith_metric_name(kith_metric metric) { return (unsigned)metric < 3 ? metric_names[metric] : "?"; }

kith_status kith_metric_parse(const char *name, kith_metric *ret_metric, kith_error *err) {
    KI_NEED(err, name, ret_metric);
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, metric_names[i]) != 0) continue;
        *ret_metric = (kith_metric)i;
        return KITH_OK;
    }
    return ki_fail_unknown(err, "metric", name, metric_names, 3);
}
