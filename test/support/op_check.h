/* Checks of kernels on more than one backend (support/op_case.h runs them). A check that fails ends the test
 * with the case's line; `how` says which backend or setting it was. */
#ifndef KITH_OP_CHECK_H
#define KITH_OP_CHECK_H

#include "support/op_case.h"

/* The backend of a device; NULL options for its defaults. If this machine has no such device, the program ends
 * as skipped (77). */
ki_backend *op_backend(const char *device, const ki_backend_options *options);

/* Forward and, unless the case is for inference, backward. */
void op_run_step(op_run *run);

/* Output, running statistics and gradients of a are those of b to within `tolerance`, relative L2. The worst so far
 * is kept in *worst. */
void op_check_near(const op_run *a, const op_run *b, const char *how, double tolerance, double *worst);
/* They are the same bits. */
void op_check_same(const op_run *a, const op_run *b, const char *how);
/* Two backwards give parameters twice the gradient of one, over the small cases of ops that the backend has.
 * Returns how many parameters were looked at. */
int op_check_accumulates(ki_backend *backend, const char *how);

#endif
