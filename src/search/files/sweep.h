/* Files of the folder that the manifest does not name. */
#ifndef KI_SEARCH_SWEEP_H
#define KI_SEARCH_SWEEP_H

/* Removes them: those of commits that were not finished, and of commits that were replaced. Whoever reads them has them open.
 * Only with the lock. Nothing is removed when the manifest cannot be read; what cannot be removed stays. */
void ki_sweep(const char *folder);

/* Removes the files of the index, and nothing else that lies in the folder. Only with the lock. */
void ki_sweep_away(const char *folder);

#endif
