/* What the reference's ops share: making, binding and freeing a kernel. */
#include "backend/ref/ref.h"
#include "base/alloc.h"

kith_status ki_ref_kernel_new(const ki_kernel_type *type, ki_backend *backend, const ki_kernel_spec *spec,
                              ki_kernel **ret_kernel, kith_error *err) {
    if (spec->has_relu || spec->has_act || spec->has_add || spec->has_folded_bn || spec->masked_src)
        return ki_fail(err, KITH_EUNSUPPORTED, "backend ref fuses nothing into %s", ki_op_name(spec->kind));
    ki_ref_kernel *k = NULL;
    KI_TRY(ki_zalloc_or(&k, 1, sizeof *k, "a kernel", err));
    k->base = (ki_kernel){.type = type, .backend = backend};
    k->spec = *spec;
    if (spec->attr) k->attr = *spec->attr;
    k->spec.attr = &k->attr;
    *ret_kernel = &k->base;
    return KITH_OK;
}

kith_status ki_ref_bind(ki_kernel *kernel, const ki_binding *binding, kith_error *err) {
    (void)err;
    ki_ref_of(kernel)->binding = *binding;
    return KITH_OK;
}

void ki_ref_free(ki_kernel *kernel) { ki_free(kernel); }
