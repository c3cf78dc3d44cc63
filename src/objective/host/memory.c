/* Cross-batch memory: embeddings change slowly, so those of the last batches can still be used as negatives
 * and positives. They are constants: they get no gradient.
 *
 * Source: Wang et al., Cross-Batch Memory for Embedding Learning, CVPR 2020. */
#include <string.h>

#include "objective/state.h"

typedef struct settings {
    int64_t size, warmup;
} settings;

static const ki_option options[] = {
    KI_OPTION_INT(settings, size, 0, 0, 1e7, "embeddings remembered", "XBM: a large part of the data set"),
    KI_OPTION_INT(settings, warmup, 1000, 0, 1e9, "steps before they count", "XBM: 1,000 iterations"),
    KI_OPTION_END};

/* Class ids are kept as ki_real beside the embeddings: exact up to here in float. */
enum { MOST_LABEL = 1 << 24 };

kith_status ki_memory_parse(const ki_value *section, ki_memory *memory, kith_error *err) {
    settings o;
    KI_TRY(ki_options_parse(options, section, NULL, "objective.memory", &o, err));
    memory->size = o.size;
    memory->warmup = o.warmup;
    return KITH_OK;
}

kith_status ki_memory_params(ki_memory *memory, const ki_sizes *sizes, ki_state_list *list, kith_error *err) {
    if (!sizes->embedding) return ki_fail_size(err, "objective.memory", "the embedding's dimension");
    KI_TRY(ki_state_add(list, "memory.embedding", KI_SHAPE2(memory->size, sizes->embedding), KI_INIT_CONSTANT,
                        0, 0, err));
    memory->embedding = list->added[list->n_added - 1];
    KI_TRY(ki_state_add(list, "memory.label", KI_SHAPE1(memory->size), KI_INIT_CONSTANT, 0, 0, err));
    memory->label = list->added[list->n_added - 1];
    KI_TRY(ki_state_add(list, "memory.state", KI_SHAPE1(2), KI_INIT_CONSTANT, 0, 0, err));
    memory->state = list->added[list->n_added - 1];
    return KITH_OK;
}

/* The state may have come from a file, so its numbers are limited to the size of the ring. */
static int64_t within(ki_real value, int64_t most) {
    return value > 0 ? (value < (ki_real)most ? (int64_t)value : most) : 0;
}

int64_t ki_memory_columns(const ki_memory *memory, uint64_t step) {
    if (memory->size == 0 || step < (uint64_t)memory->warmup) return 0;
    return within(memory->state->value[0], memory->size);
}

void ki_memory_labels(const ki_memory *memory, int64_t n, int32_t *label) {
    for (int64_t i = 0; i < n; i++) label[i] = (int32_t)within(memory->label->value[i], MOST_LABEL);
}

void ki_memory_push(ki_memory *memory, const ki_real *x, const int32_t *label, int64_t m, int64_t dim) {
    if (memory->size == 0) return;
    int64_t filled = within(memory->state->value[0], memory->size);
    int64_t next = within(memory->state->value[1], memory->size) % memory->size;
    const int64_t first = m > memory->size ? m - memory->size : 0;
    for (int64_t i = first; i < m; i++) {
        memcpy(memory->embedding->value + next * dim, x + i * dim, (size_t)dim * sizeof *x);
        memory->label->value[next] = (ki_real)label[i];
        next = (next + 1) % memory->size;
        if (filled < memory->size) filled++;
    }
    memory->state->value[0] = (ki_real)filled;
    memory->state->value[1] = (ki_real)next;
}
