/* A net as an ONNX file: what inference computes, from pixels (or features) to one tap (docs/adr/0080).
 *
 * The input is `pixels`, float [batch, channels, height, width], RGB from 0 to 255: order, scale, mean and std are a part of
 * the graph. Resizing and cropping are not; the file's metadata says how (kith.resize). A net of vectors has `features`,
 * float [batch, numbers]. The output has the tap's name and its values, [batch, …], as `kith embed` writes them. */
#ifndef KI_ONNX_H
#define KI_ONNX_H

#include "net/net.h"
#include "nn/params.h"

enum { KI_ONNX_OPSET = 17 };

typedef struct ki_onnx_options {
    const char *tap;    /* of the net */
    bool normalize;     /* vectors are divided by their length at the end */
    const char *resize; /* for the metadata; "": none */
} ki_onnx_options;

/* Write the file. KITH_ENOTFOUND for a tap that the net does not have, KITH_ESHAPE for normalize with a map. */
kith_status ki_onnx_save(const ki_net *net, const ki_params *params, const ki_onnx_options *options,
                         const char *path, kith_error *err);

#endif
