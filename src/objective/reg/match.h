/* Settings of the match term, as a recipe gives them; read by match.c and match.cu.
 *
 * A learned linear map of the student's embedding should give the teacher's. x_i is the student's embedding [d] (with heads: all of them
 * side by side), t_i the teacher's row [w], y_i = W x_i + b:
 *
 *   form cosine    L = 1/m sum_i (1 - cos(y_i, t_i))
 *                  dL/dy_i = -(t_i/|t_i| - cos(y_i, t_i) y_i/|y_i|) / (m |y_i|)
 *   form squared   L = 1/(m w) sum_i |y_i - t_i|^2
 *                  dL/dy_i = 2 (y_i - t_i) / (m w)
 *   both           dL/dx_i = W^T dL/dy_i,  dL/dW = sum_i dL/dy_i x_i^T,  dL/db = sum_i dL/dy_i
 *
 * W and b are learned with the network and belong to the term: checkpoints have them, the model file does not. Terms with the same
 * teacher share them. No class is looked at, so every row counts. */
#ifndef KI_OBJECTIVE_MATCH_H
#define KI_OBJECTIVE_MATCH_H

#include <stdint.h>

enum { KI_MATCH_COSINE, KI_MATCH_SQUARED };

/* The parameters, in order. */
enum { KI_MATCH_WEIGHT, KI_MATCH_BIAS };

typedef struct ki_match_settings {
    int64_t teacher;
    int form;
    double lr_multiplier;
} ki_match_settings;

#endif
