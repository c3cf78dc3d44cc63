/* .pth files: the tensors of a state dict that torch.save wrote (PyTorch 1.6 and later). Nothing in them is executed. */
#ifndef KI_PTH_H
#define KI_PTH_H

#include "base/error.h"
#include "kith/array.h"

/* Add every tensor of the file to the writer, under its name in the state dict; the writer borrows the file's bytes.
 * KITH_EFORMAT: damaged, or no state dict; of a file that is no zip archive the line says what it is.
 * KITH_EUNSUPPORTED: anything in it that is no tensor of kith's types. */
kith_status ki_pth_parse(const void *bytes, size_t n, const char *name, kith_tensors_writer *to,
                         kith_error *err);

#endif
