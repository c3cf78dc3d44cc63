/* Blocks: a fiber per thread that waits. A fiber runs thread after thread as long as they end without
 * waiting, so kernels without barriers cost little more than calls. Of a cooperative launch all blocks are alive; one
 * runs until it ends or cannot go on without the others. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <map>
#include <vector>

#include "emulate/block.h"
#include "emulate/emulate.h"

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

ki_emulate_here ki_emulate_now;

namespace {

enum wait { NOT_STARTED, READY, AT_BLOCK, AT_WARP, SPINS, ENDED };

struct fiber;

struct copy {
    void *to;
    const void *from;
    unsigned bytes;
    int group;
};

struct thread {
    wait state;
    fiber *on; /* the fiber whose stack it lives on, while it waits */
    const char *file;
    int line;
    unsigned mask;
    uint64_t value;
    uint64_t seen[32];
    std::vector<copy> copies;
    int n_groups;
};

struct fiber {
#if defined(__x86_64__)
    void *sp;
#else
    ucontext_t context;
#endif
};

const size_t STACK_BYTES = 256 * 1024;

struct block {
    ki_emulate_here here;
    bool backwards, has_ended;
    int n_started;
    std::vector<thread> threads;
    std::map<ki_emulate_site *, std::vector<unsigned char>> arrays;
};

std::vector<block> blocks; /* of the launch that runs */
block *alive;              /* the one that runs */
std::vector<fiber *> &idle =
    *new std::vector<fiber *>; /* never freed: its fibers live as long as the process */
fiber scheduler;
fiber *running;
const std::function<void()> *body;
int n_threads, current;

int thread_at(int i) { return alive->backwards ? n_threads - 1 - i : i; }
thread *thread_of(int t) { return &alive->threads[(size_t)t]; }

#if defined(__x86_64__)
extern "C" void ki_emulate_switch(void **save, void *load);
asm(R"(
.text
.globl ki_emulate_switch
.hidden ki_emulate_switch
.type ki_emulate_switch, @function
ki_emulate_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size ki_emulate_switch, .-ki_emulate_switch
)");
void switch_to(fiber *from, fiber *to) { ki_emulate_switch(&from->sp, to->sp); }
#else
void switch_to(fiber *from, fiber *to) { swapcontext(&from->context, &to->context); }
#endif

void enter(int t) {
    current = t;
    const unsigned x = ki_emulate_now.n_threads.x, y = ki_emulate_now.n_threads.y, u = (unsigned)t;
    ki_emulate_now.thread = {u % x, u / x % y, u / x / y};
}

/* Runs threads not yet started, until none is left; then it is idle. */
__attribute__((no_sanitize("address"))) void fiber_main() {
    for (;;) {
        while (alive->n_started < n_threads) {
            const int t = thread_at(alive->n_started++);
            enter(t);
            thread_of(t)->state = READY;
            (*body)();
            thread_of(current)->state = ENDED;
        }
        idle.push_back(running);
        switch_to(running, &scheduler);
    }
}

fiber *fiber_new() {
    fiber *made = new fiber;
    char *stack = (char *)mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) abort();
#if defined(__x86_64__)
    void **top = (void **)(stack + STACK_BYTES);
    *--top = nullptr; /* where fiber_main would return to: it does not; and the stack is as after a call */
    *--top = (void *)fiber_main;
    for (int i = 0; i < 6; i++) *--top = nullptr;
    made->sp = top;
#else
    getcontext(&made->context);
    made->context.uc_stack.ss_sp = stack;
    made->context.uc_stack.ss_size = STACK_BYTES;
    made->context.uc_link = nullptr;
    makecontext(&made->context, fiber_main, 0);
#endif
    return made;
}

void resume(fiber *f) {
    running = f;
    switch_to(&scheduler, f);
}

/* The running thread waits. */
thread *wait_here(wait state, unsigned mask, uint64_t value, const char *file, int line) {
    const int t = current;
    thread *self = thread_of(t);
    self->state = state, self->on = running, self->file = file, self->line = line;
    self->mask = mask, self->value = value;
    switch_to(running, &scheduler);
    enter(t);
    return self;
}

void where(int t) {
    static const char *const states[] = {
        "not started", "ready", "at a block barrier", "at a warp exchange", "waiting for another block",
        "ended"};
    const thread *a = thread_of(t);
    fprintf(stderr, "  thread %d: %s", t, states[a->state]);
    if (a->state == AT_BLOCK || a->state == AT_WARP || a->state == SPINS)
        fprintf(stderr, " %s:%d", a->file, a->line);
    if (a->state == AT_WARP) fprintf(stderr, " with mask %08x", a->mask);
    fprintf(stderr, "\n");
}

[[noreturn]] void divergence() {
    fprintf(stderr, "emulated kernel: threads of block (%u, %u, %u) wait for each other in vain\n",
            ki_emulate_now.block.x, ki_emulate_now.block.y, ki_emulate_now.block.z);
    /* One thread for each distinct place. */
    for (int t = 0; t < n_threads; t++) {
        const thread *a = thread_of(t);
        bool is_first = true;
        for (int u = 0; u < t && is_first; u++) {
            const thread *b = thread_of(u);
            is_first =
                !(a->state == b->state && a->file == b->file && a->line == b->line && a->mask == b->mask);
        }
        if (is_first) where(t);
    }
    abort();
}

/* Everybody at the same barrier? */
bool release_block() {
    const thread *first = thread_of(0);
    for (const thread &t : alive->threads) {
        if (t.state != AT_BLOCK || t.line != first->line || t.file != first->file) return false;
    }
    for (thread &t : alive->threads) t.state = READY;
    return true;
}

bool release_warp(int from) {
    bool released = false;
    const int n = n_threads - from < 32 ? n_threads - from : 32;
    for (int lane = 0; lane < n; lane++) {
        const thread *a = thread_of(from + lane);
        if (a->state != AT_WARP) continue;
        const unsigned mask = a->mask;
        if (!(mask >> lane & 1)) divergence();
        bool all = true;
        uint64_t seen[32];
        memset(seen, 0xff, sizeof seen);
        for (int i = 0; i < n && all; i++) {
            if (!(mask >> i & 1)) continue;
            const thread *b = thread_of(from + i);
            all = b->state == AT_WARP && b->line == a->line && b->file == a->file && b->mask == mask;
            seen[i] = b->value;
        }
        if (!all) continue;
        for (int i = 0; i < n; i++) {
            if (!(mask >> i & 1)) continue;
            thread *b = thread_of(from + i);
            memcpy(b->seen, seen, sizeof seen);
            b->state = READY;
        }
        released = true;
    }
    return released;
}

void resume_ready() {
    for (int i = 0; i < n_threads; i++) {
        const thread *t = thread_of(thread_at(i));
        if (t->state == READY) resume(t->on);
    }
}

/* Runs the block until it ends or only another block can help. Returns whether anything happened. */
bool run_block() {
    bool moved = alive->n_started < n_threads;
    ki_emulate_now = alive->here;
    for (thread &t : alive->threads) {
        if (t.state != SPINS) continue;
        t.state = READY;
        resume(t.on);
        moved |= t.state != SPINS;
    }
    for (;;) {
        while (alive->n_started < n_threads) {
            fiber *f = nullptr;
            if (idle.empty()) {
                f = fiber_new();
            } else {
                f = idle.back();
                idle.pop_back();
            }
            resume(f);
        }
        bool all_ended = true, any_spins = false;
        for (const thread &t : alive->threads) all_ended &= t.state == ENDED, any_spins |= t.state == SPINS;
        alive->has_ended = all_ended;
        if (all_ended) return true;
        bool released = release_block();
        for (int from = 0; from < n_threads; from += 32) released |= release_warp(from);
        if (!released && any_spins) return moved;
        if (!released) divergence();
        resume_ready();
        moved = true;
    }
}

} // namespace

void ki_emulate_sync_block(const char *file, int line) { wait_here(AT_BLOCK, 0, 0, file, line); }

void ki_emulate_spin(const char *file, int line) { wait_here(SPINS, 0, 0, file, line); }

const uint64_t *ki_emulate_exchange(unsigned mask, uint64_t value, const char *file, int line) {
    return wait_here(AT_WARP, mask, value, file, line)->seen;
}

/* A copy may be made at any time until it is waited for: at once in one block, as late as possible in the next. */
static void make(const copy &c) {
    if (c.from)
        memcpy(c.to, c.from, c.bytes);
    else
        memset(c.to, 0, c.bytes);
}

void ki_emulate_copy_later(void *to, const void *from, unsigned bytes) {
    thread *self = thread_of(current);
    const copy c = {to, from, bytes, self->n_groups};
    if (alive->backwards)
        make(c);
    else
        self->copies.push_back(c);
}

void ki_emulate_copies_close() { thread_of(current)->n_groups++; }

void ki_emulate_copies_wait(int but_the_last) {
    thread *self = thread_of(current);
    size_t n = 0;
    for (; n < self->copies.size() && self->copies[n].group < self->n_groups - but_the_last; n++)
        make(self->copies[n]);
    self->copies.erase(self->copies.begin(), self->copies.begin() + (ptrdiff_t)n);
}

void *ki_emulate_array(ki_emulate_site *site, size_t bytes) {
    if (site->block_number != ki_emulate_now.block_number) {
        std::vector<unsigned char> &memory = alive->arrays[site];
        if (memory.empty()) memory.assign(bytes, 0xff);
        *site = {memory.data(), ki_emulate_now.block_number};
    }
    return site->memory;
}

void ki_emulate_misaligned(const void *ptr, unsigned bytes) {
    fprintf(stderr, "emulated kernel: %p is not aligned to %u bytes\n", ptr, bytes);
    abort();
}

void ki_emulate_blocks_run(const std::function<void()> &thread_body, const ki_emulate_here *here, int n) {
    body = &thread_body;
    n_threads = (int)(here->n_threads.x * here->n_threads.y * here->n_threads.z);
    blocks.resize((size_t)n);
    for (int b = 0; b < n; b++) {
        block *made = &blocks[(size_t)b];
        made->here = here[b];
        made->backwards = here[b].block_number % 2 != 0;
        made->has_ended = false;
        made->n_started = 0;
        made->arrays.clear();
        made->threads.resize((size_t)n_threads);
        for (thread &t : made->threads) {
            t.state = NOT_STARTED;
            t.copies.clear();
            t.n_groups = 0;
        }
    }
    for (int n_left = n; n_left > 0;) {
        bool moved = false;
        for (block &b : blocks) {
            if (b.has_ended) continue;
            alive = &b;
            moved |= run_block();
            n_left -= b.has_ended;
        }
        if (!moved) divergence();
    }
}
