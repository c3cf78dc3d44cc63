/* What the checksum of a seal covers. The sums of the entries are added, so that the order of metadata in the JSON
 * does not count, because no reader guarantees it. Each sum includes the entry's name, so that two entries cannot be
 * exchanged unnoticed. */
#include <stdio.h>
#include <string.h>

#include "base/checksum.h"
#include "base/text.h"
#include "io/tensors.h"

uint64_t ki_tensors_sum_array(const char *name, const kith_array *array) {
    uint64_t sum = ki_checksum(name, strlen(name) + 1, 0);
    const int64_t kind[2] = {(int64_t)array->dtype, array->n_dims};
    sum = ki_checksum(kind, sizeof kind, sum);
    sum = ki_checksum(array->dim, (size_t)array->n_dims * sizeof *array->dim, sum);
    return ki_checksum(array->data, (size_t)kith_array_count(array) * kith_dtype_bytes(array->dtype), sum);
}

uint64_t ki_tensors_sum_metadata(const char *key, const char *value) {
    return ki_checksum(value, strlen(value) + 1, ki_checksum(key, strlen(key) + 1, 1));
}

void ki_tensors_seal_text(uint64_t sum, char ret_text[17]) {
    ki_snprintf(ret_text, 17, "%016llx", (unsigned long long)sum);
}
