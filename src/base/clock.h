/* Time, for figures and for limits. Nothing that is computed may depend on it. */
#ifndef KI_CLOCK_H
#define KI_CLOCK_H

/* Seconds on the monotonic clock. */
double ki_seconds_now(void);

#endif
