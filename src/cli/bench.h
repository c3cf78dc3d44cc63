/* The benchmarks behind `kith bench`, one function per row of bench.def. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#define X(name, summary) int bench_##name(int argc, char **argv);
#include "cli/bench.def"
#undef X

#endif
