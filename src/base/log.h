/* Log lines from inside the library; the callback is set by kith_log_set (kith/log.h). */
#ifndef KI_LOG_H
#define KI_LOG_H

#include "kith/log.h"

void ki_log(kith_log_level level, const char *fmt, ...) KITH_PRINTF(2, 3);

#endif
