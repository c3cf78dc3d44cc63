/* The model that came with kith, by its name. */
#ifndef KI_NET_GENERAL_H
#define KI_NET_GENERAL_H

#include "base/error.h"

#define KI_GENERAL "general"

/* Its file, absolute, into ret_file [bytes]: where kith_model_find says. KITH_ENOTFOUND: it is not installed. */
kith_status ki_general_find(char *ret_file, size_t bytes, kith_error *err);

#endif
