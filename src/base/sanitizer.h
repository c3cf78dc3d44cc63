/* Which sanitizer this is compiled with: gcc and clang say it in different ways.
 *
 * KI_CLONES(...) before a function compiles it once for each of the named instruction sets and once for the
 * baseline. One of them is chosen when the program is loaded. That is before the runtime of a sanitizer is
 * set up, and would end the program there, so under a sanitizer there is only the baseline version. */
#ifndef KI_SANITIZER_H
#define KI_SANITIZER_H

#if defined(__has_feature)
#define KI_HAS_FEATURE(name) __has_feature(name)
#else
#define KI_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || KI_HAS_FEATURE(address_sanitizer)
#define KI_ASAN 1
#else
#define KI_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__) || KI_HAS_FEATURE(thread_sanitizer)
#define KI_TSAN 1
#else
#define KI_TSAN 0
#endif

/* Either of them: memory has a shadow that is larger than any limit. */
#define KI_SANITIZED (KI_ASAN + KI_TSAN)

#if defined(__x86_64__) && defined(__linux__) && !KI_ASAN && !KI_TSAN
#define KI_CLONES(...) __attribute__((target_clones(__VA_ARGS__, "default")))
#else
#define KI_CLONES(...)
#endif

#endif
