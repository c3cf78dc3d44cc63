/* Bounds of a share that was counted: how large it may be, how small. */
#ifndef KI_SHARE_H
#define KI_SHARE_H

/* One-sided bounds at this level (0.95) of a probability, where x of n independent trials were met (Clopper and Pearson 1934). Both may be
 * fractions: trials that hang together count as fewer. n is above 0, x from 0 to n. */
double ki_share_high(double x, double n, double level);
double ki_share_low(double x, double n, double level);

/* Independent trials, none of them met, that bound a share by `share` at this level: 299 for 0.01 at 0.95. */
double ki_share_trials(double share, double level);

#endif
