/* Starting a command over ranks: "MPIRUN -np N COMMAND", for testing_run. */
#ifndef KITH_TEST_MPIRUN_H
#define KITH_TEST_MPIRUN_H

#include <stdlib.h>

#include "base/sanitizer.h"
#include "support/testing.h"

/* Whether ranks can be started here: mpirun is installed and the plugin was built. Not under a sanitizer, which reports
 * what MPI itself leaves behind: there the same code runs with ranks that are threads (thread_ranks.h). */
static inline bool mpirun_is_there(void) {
    char output[256];
    if (KI_ASAN || KI_TSAN) return false;
    return testing_run(output, sizeof output,
                       "command -v mpirun && ls \"$(dirname %s)\"/lib*/kith/libkith-mpi.so "
                       "\"$(dirname %s)\"/lib/*/kith/libkith-mpi.so 2>/dev/null | grep .",
                       testing_program(), testing_program()) == 0;
}

/* More ranks than cores, by root too; ranks that wait leave their core to others; only through memory: tests do not look for
 * networks. */
#define MPIRUN                                                                                      \
    "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 mpirun --oversubscribe " \
    "--bind-to none --mca mpi_yield_when_idle 1 --mca btl self,vader "                              \
    "--mca btl_vader_single_copy_mechanism none --mca plm isolated"

#endif
