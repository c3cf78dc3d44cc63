/* Where the code of kith itself lies, for what is installed beside it: plugins, models. */
#ifndef KI_OWN_FOLDER_H
#define KI_OWN_FOLDER_H

#include "base/path.h"

/* The folder of the file that this code was loaded from: libkith, or the program it is linked into. False: the system does not say. */
bool ki_own_folder(ki_path *ret_folder);

#endif
