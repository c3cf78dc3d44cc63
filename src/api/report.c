/* kith_report_write: the page made in memory and written whole. */
#include "kith/report.h"

#include <stdio.h>

#include "core/argument.h"
#include "core/atomic.h"
#include "core/buffer.h"
#include "core/text.h"
#include "report/report.h"

KI_OPTIONS_INIT(kith_report_options, .n_queries = 12, .n_neighbors = 8, .n_points = 1500)

static kith_status check(const kith_report_options *o, kith_error *err) {
    const struct {
        const char *what;
        int64_t found, least, most;
    } rows[] = {{"queries", o->n_queries, 0, 100},
                {"neighbours", o->n_neighbors, 1, 32},
                {"points on the map", o->n_points, 0, 5000}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].found < rows[i].least || rows[i].found > rows[i].most)
            return ki_fail(err, KITH_EINVAL, "%lld %s; wanted %lld to %lld", (long long)rows[i].found,
                           rows[i].what, (long long)rows[i].least, (long long)rows[i].most);
    }
    return KITH_OK;
}

kith_status kith_report_write(const char *run, const kith_report_options *options, kith_error *err) {
    KI_NEED(err, run);
    KI_OPTIONS_TAKE(kith_report_options, o, options, err);
    kith_status status = KITH_OK;
    ki_buffer page = {.err = err};
    char path[4096];
    KI_TRY(check(&o, err));
    const int n = ki_snprintf(path, sizeof path, "%s/report.html", run);
    if (!o.out && (n < 0 || (size_t)n >= sizeof path))
        return ki_fail(err, KITH_EINVAL, "the run folder's name is longer than %zu letters",
                       sizeof path - sizeof "/report.html");
    KI_CHECK(ki_report_make(run, &o, &page, err));
    status = ki_file_write(o.out ? o.out : path, page.data, page.n, err);
done:
    ki_buffer_release(&page);
    return status;
}
