/* libFuzzer target: any bytes as a run's log, and every curve of it drawn. */
#include <stdint.h>
#include <stdlib.h>

#include "report/chart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kith_error err;
    ki_log_file log = {0};
    ki_buffer page = {.err = &err};
    if (ki_log_parse((const char *)data, size, &log, &err) != KITH_OK) return 0;
    for (size_t i = 0; i < log.n_series; i++) {
        const ki_series *s = log.series + i;
        const ki_chart chart = {.title = s->name,
                                .n_lines = 1,
                                .line = {{.name = s->name, .series = s}},
                                .is_share = i % 2,
                                .may_log = i % 3,
                                .mark_step = (double)i,
                                .mark = s->name};
        ki_chart_put(&page, &chart);
    }
    ki_buffer_release(&page);
    ki_log_release(&log);
    return 0;
}
