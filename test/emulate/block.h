#ifndef KI_EMULATE_BLOCK_H
#define KI_EMULATE_BLOCK_H

#include <functional>

/* Run one block of n threads; ki_emulate_now says which. Backwards: the last thread first. */
void ki_emulate_block_run(const std::function<void()> &thread_body, int n, bool is_backwards);

#endif
