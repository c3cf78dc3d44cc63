/* The queues of a backend whose memory is the host's: every call is finished when it returns, so copies are plain copies and a
 * mark is the time it was set. */
#ifndef KI_DEVICE_HOST_QUEUE_H
#define KI_DEVICE_HOST_QUEUE_H

#include "device/queue.h"

/* For backends with is_host, whose memory calls it uses. */
extern const ki_queue_type ki_host_queues;

#endif
