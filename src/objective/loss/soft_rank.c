/* Ranks with a sigmoid instead of a step. */
#include "objective/loss/soft_rank.h"

#include "base/real.h"

ki_soft_rank ki_soft_rank_of(const ki_row *row, int64_t i, ki_real inverse_temperature) {
    ki_soft_rank rank = {.pos = 1};
    for (int64_t j = 0; j < row->n; j++) {
        if (row->pair[j] == KI_PAIR_NONE || j == i) continue;
        const ki_real z = (row->s[j] - row->s[i]) * inverse_temperature, e = ki_exp(z < 0 ? z : -z);
        *(row->pair[j] == KI_PAIR_POSITIVE ? &rank.pos : &rank.neg) += (double)((z < 0 ? e : 1) / (1 + e));
    }
    return rank;
}

void ki_soft_rank_backward(const ki_row *row, int64_t i, ki_real inverse_temperature, ki_soft_rank by) {
    const ki_real pos = inverse_temperature * (ki_real)by.pos, neg = inverse_temperature * (ki_real)by.neg;
    double sum = 0;
    for (int64_t j = 0; j < row->n; j++) {
        if (row->pair[j] == KI_PAIR_NONE || j == i) continue;
        const ki_real z = (row->s[j] - row->s[i]) * inverse_temperature, e = ki_exp(z < 0 ? z : -z);
        const ki_real g = (row->pair[j] == KI_PAIR_POSITIVE ? pos : neg) * e / ((1 + e) * (1 + e));
        row->g[j] += g;
        sum += (double)g;
    }
    row->g[i] -= (ki_real)sum;
}
