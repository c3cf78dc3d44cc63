/* Settings of the relational term, as a recipe gives them; read by relational.c and relational.cu.
 *
 * The student's similarities should become the teacher's. Over the ordered pairs (i, j), i != j, of a batch of m items, s_ij the cosine of
 * the student's embeddings (with heads: their mean), t_ij the cosine of the teacher's rows:
 *
 *   form square    L = 1 / (m (m - 1)) sum_ij (s_ij - t_ij)^2
 *                  dL/ds_ij = 2 (s_ij - t_ij) / (m (m - 1))
 *   form softmax   p_ij = e^(t_ij / T') / sum_{k != i} e^(t_ik / T'),  q_ij = e^(s_ij / T) / sum_{k != i} e^(s_ik / T)
 *                  L = 1 / m sum_ij p_ij log(p_ij / q_ij)
 *                  dL/ds_ij = (q_ij - p_ij) / (m T)
 *
 * T is `temperature`, T' is `teacher_temperature`. No class is looked at, so every row counts. A batch of one item has no pair: 0.
 *
 * The targets t are not part of the pair view (pair/pairs.h). A loss of pairs is a function of s and of classes, and every miner goes with
 * every loss; a target matrix there would be a second input that none of them reads. Here it is made of a tap, like everything that
 * a regularizer reads, and G = dL/dS goes back by the chain rule that all pair losses share. */
#ifndef KI_OBJECTIVE_RELATIONAL_H
#define KI_OBJECTIVE_RELATIONAL_H

#include <stdint.h>

enum { KI_RELATIONAL_SQUARE, KI_RELATIONAL_SOFTMAX };

typedef struct ki_relational_settings {
    int64_t teacher;
    int form;
    double temperature, teacher_temperature;
} ki_relational_settings;

#endif
