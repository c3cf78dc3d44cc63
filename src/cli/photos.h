/* A folder of photos where a command takes an index: for kith search and kith serve. */
#ifndef CLI_PHOTOS_H
#define CLI_PHOTOS_H

#include "cli/cli.h"
#include "kith/photos.h"

#define CLI_CACHE_HELP "where the indexes of photos lie; default: XDG_CACHE_HOME/kith, else ~/.cache/kith"

/* Open the photos, and say which model it is. */
kith_status cli_photos_open(const char *folder, const char *cache, const kith_model_options *model,
                            kith_photos **ret_photos, kith_error *err);

/* Has none of them been indexed yet? */
bool cli_photos_are_new(const kith_photos *photos);

/* Bring their index up to date, with progress on standard error. While another process does so, a line says what is ready, and all is fine.
 * KITH_ECANCELED: a signal asked for the end. */
kith_status cli_photos_sync(kith_photos *photos, kith_error *err);

/* Print the error; where their index cannot be read, its hint says how it is made anew: what lies in the cache is no loss. photos NULL:
 * as cli_fail. */
int cli_photos_fail(const kith_photos *photos, const char *cache, kith_error *err);

#endif
