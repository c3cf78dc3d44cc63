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

/* Bytes that the control group of the process, or one above it, is limited to (memory.max, v1's memory.limit_in_bytes); 0:
 * not limited. */
int64_t ki_memory_quota(const char *root);

/* Bytes of the machine, or the quota if that is less; 0: not known. */
int64_t ki_memory_allowed(void);

#endif
