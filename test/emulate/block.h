/* Running blocks of an emulated kernel, one fiber per thread. */
#ifndef KI_EMULATE_BLOCK_H
#define KI_EMULATE_BLOCK_H

#include <functional>

#include "emulate/emulate.h"

/* Run n blocks that are alive at the same time, each as its `here` says (the thread is set). Those of an odd number
 * run their last thread first. */
void ki_emulate_blocks_run(const std::function<void()> &thread_body, const ki_emulate_here *here, int n);

#endif
