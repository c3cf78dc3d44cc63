/* A process that has given up everything but computing: for code that reads what strangers send.
 *
 * After ki_sandbox_enter it can read and write the descriptors it has, take and return memory up to a limit, and start threads. It
 * cannot open a file, make a connection, start a program, or make memory executable. Anything else ends it at once. */
#ifndef KI_SANDBOX_H
#define KI_SANDBOX_H

#include <stdint.h>

#include "base/error.h"

/* memory_bytes: what it may take from now on. KITH_EUNSUPPORTED where the kernel has no filter for system calls, or the
 * processor is another than x86-64 and ARM64. */
kith_status ki_sandbox_enter(uint64_t memory_bytes, kith_error *err);

#endif
