/* kith bench: find the benchmark and run it. */
#include "cli/bench.h"

#include <string.h>

#include "cli/cli.h"

static const struct bench {
    const char *name;
    int (*run)(int argc, char **argv);
} benches[] = {
#define X(name, summary) {#name, bench_##name},
#include "cli/bench.def"
#undef X
};
enum { N_BENCHES = sizeof benches / sizeof benches[0] };

int cmd_bench(int argc, char **argv) {
    for (int i = 0; argc > 1 && i < N_BENCHES; i++) {
        if (strcmp(benches[i].name, argv[1]) == 0) return benches[i].run(argc, argv);
    }
    const cli_usage usage = {.operands = "WHAT [options]",
                             .least = 1,
                             .most = 1,
                             .details =
                                 "WHAT is one of:\n"
#define X(name, summary) "  " #name ": " summary "\n"
#include "cli/bench.def"
#undef X
                                 "kith bench WHAT --help lists the options of one."};
    const int status = cli_parse(&usage, &argc, argv);
    if (status != CLI_RUN) return status;
    const char *names[N_BENCHES];
    for (int i = 0; i < N_BENCHES; i++) names[i] = benches[i].name;
    return cli_unknown("bench", "benchmark", argv[1], names, N_BENCHES);
}
