/* ki_real: the number type of reference kernels and objectives.
 *
 * The library is built with float. The gradient checks build the same files a second time with
 * KITH_REAL=double (target kith64), because central differences in float cannot detect an error of 0.4 %. Use
 * the KI_ functions below instead of expf and the like, so that one source works for both. */
#ifndef KI_REAL_H
#define KI_REAL_H

#include <float.h>
#include <math.h>

#ifndef KITH_REAL
#define KITH_REAL float
#define KITH_REAL_IS_FLOAT 1
#endif

typedef KITH_REAL ki_real;

#ifdef KITH_REAL_IS_FLOAT
#define KI_REAL_MAX FLT_MAX
#define KI_REAL_EPS FLT_EPSILON
#define ki_exp expf
#define ki_ln logf
#define ki_log1p log1pf
#define ki_sqrt sqrtf
#define ki_fabs fabsf
#define ki_pow powf
#define ki_fmax fmaxf
#define ki_fmin fminf
#else
#define KI_REAL_MAX DBL_MAX
#define KI_REAL_EPS DBL_EPSILON
#define ki_exp exp
#define ki_ln log
#define ki_log1p log1p
#define ki_sqrt sqrt
#define ki_fabs fabs
#define ki_pow pow
#define ki_fmax fmax
#define ki_fmin fmin
#endif

/* The length of a vector of two. hypot would do for any size, but its last bits changed between versions of the C library, and its
 * newest version is not on older systems. */
static inline double ki_length(double x, double y) { return sqrt(x * x + y * y); }

#endif
