/* How many cores and how much memory the process may use, as far as the system says so. */
#ifndef KI_CORES_H
#define KI_CORES_H

#include <stdint.h>

/* Cores' worth of time that the control group of the process, or one above it, is limited to (a container's
 * --cpus, a service's CPUQuota), rounded up; 0: not limited. `root` is put before every path that is read:
 * "" outside tests. Reads cgroup v2's cpu.max and v1's cpu.cfs_quota_us. */
int ki_cores_quota(const char *root);

/* How many threads to use: OMP_NUM_THREADS if it is set, else the number of cores that the process may be scheduled on, or
 * its quota if that is less. At least 1. */
int ki_cores_allowed(void);

/* The same for each of n processes that share the machine, or the control group. Where the processes were bound to cores of their own
 * it is those. */
int ki_cores_each(int64_t n_processes);

/* Bytes that the control group of the process, or one above it, is limited to (memory.max, v1's memory.limit_in_bytes); 0:
 * not limited. */
int64_t ki_memory_quota(const char *root);

/* Bytes of the machine, or the quota if that is less; 0: not known. */
int64_t ki_memory_allowed(void);

/* What a cache or a budget may have: the bytes wanted, or one part of `parts` of the memory that is allowed if that is less. */
int64_t ki_memory_part(int64_t wanted, int parts);

#endif
