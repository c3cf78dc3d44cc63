/* Where a program or library looks for its libraries, for the tests of what is built and installed. */
#ifndef KITH_HOUSE_ELF_H
#define KITH_HOUSE_ELF_H

#include "support/testing.h"

/* The entries of RPATH and RUNPATH of the files that the command `find` names, one to a line, as lines "FILE: [ENTRY]", that are
 * empty or relative, or, with `never` not "", begin with it. An empty entry is the current folder, so a
 * library put there by somebody else would be loaded. Returns the shell's status; 0 = all were looked at. */
static inline int elf_bad_paths(char *ret_lines, size_t ret_bytes, const char *find, const char *never) {
    return testing_run(
        ret_lines, ret_bytes,
        "set -e; %s | while IFS= read -r f; do readelf -dW \"$f\" | awk -v f=\"$f\" -v never='%s' '"
        "/\\((RPATH|RUNPATH)\\)/ { sub(/^[^[]*\\[/, \"\"); sub(/\\]$/, \"\"); n = split($0, e, \":\");"
        " if (n == 0) print f \": []\";"
        " for (i = 1; i <= n; i++) if (e[i] !~ /^(\\/|\\$ORIGIN)/ ||"
        " never != \"\" && index(e[i], never) == 1) print f \": [\" e[i] \"]\" }'; done",
        find, never);
}

#endif
