/* Declares the device's records of a table.def: those of the rows marked BOTH.
 *
 *     #define X(name, device) KI_DECLARE_##device(ki_cuda_loss, name)
 *     #include "objective/loss/table.def"
 *     #undef X */
#ifndef KI_OBJECTIVE_CUDA_DECLARE_H
#define KI_OBJECTIVE_CUDA_DECLARE_H

#define KI_DECLARE_HOST(type, name)
#define KI_DECLARE_BOTH(type, name) extern const type type##_##name;

#endif
