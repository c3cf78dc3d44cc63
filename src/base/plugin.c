/* Looking for plugins and loading them.
 *
 * A plugin is looked for beside the code that loads it, never in the current folder and never by a bare name:
 * KITH_PLUGINS (a folder) if it is set; otherwise, starting from the folder of libkith or of the program it
 * is linked into, kith/ (libkith is in lib/), ../LIB/kith/ (the program is in bin/) and LIB/kith/ (a build
 * folder). */
#include "base/plugin.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/own_folder.h"
#include "base/path.h"
#include "base/text.h"

enum { MOST_PLACES = 3 };

/* Where the plugin may be. */
static kith_status places(const ki_plugin_ask *ask, ki_path ret[MOST_PLACES], int *ret_n, kith_error *err) {
    const char *told = secure_getenv("KITH_PLUGINS");
    ki_path folder;
    const char *name = ask->name;
    int n = 0;
    if (told && *told) {
        *ret_n = 1;
        const kith_status status = ki_path_print(&ret[0], err, "%s/libkith-%s.so", told, name);
        return status == KITH_OK ? KITH_OK : ki_prefix(err, status, "KITH_PLUGINS");
    }
    if (!ki_own_folder(&folder))
        return ki_fail(err, KITH_EUNSUPPORTED, "%s: kith cannot tell which folder it runs from", ask->what);
    n += ki_path_print(&ret[n], NULL, "%s/kith/libkith-%s.so", folder.s, name) == KITH_OK;
    n += ki_path_print(&ret[n], NULL, "%s/../" KITH_LIBDIR "/kith/libkith-%s.so", folder.s, name) == KITH_OK;
    n += ki_path_print(&ret[n], NULL, "%s/" KITH_LIBDIR "/kith/libkith-%s.so", folder.s, name) == KITH_OK;
    *ret_n = n;
    return KITH_OK;
}

/* Which of the places is the right one depends on how kith was installed: all are named. */
static kith_status fail_missing(const ki_plugin_ask *ask, const ki_path *place, int n, kith_error *err) {
    char words[sizeof err->message] = "";
    for (int i = 0; i < n; i++) {
        const size_t at = strlen(words);
        ki_snprintf(words + at, sizeof words - at, "%s%.200s",
                    i == 0      ? ""
                    : i + 1 < n ? ", "
                                : " or ",
                    place[i].s);
    }
    ki_fail(err, KITH_EUNSUPPORTED, "%s: there is no plugin %s", ask->what, words);
    return ki_hint(err, KITH_EUNSUPPORTED, "'make' builds it where %s; KITH_PLUGINS names its folder; or %s",
                   ask->makes, ask->instead);
}

/* Is the file shorter than its own headers say, for example an incomplete copy? The system's loader does not check
 * this: the process would be killed when it touches the missing part. Files that are not ELF are left to the loader. */
static bool is_cut(const char *path) {
    ElfW(Ehdr) head;
    ElfW(Phdr) part;
    struct stat file;
    FILE *f = fopen(path, "rbe");
    bool is_short = false;
    if (f && fstat(fileno(f), &file) == 0 && fread(&head, sizeof head, 1, f) == 1 &&
        memcmp(head.e_ident, ELFMAG, SELFMAG) == 0) {
        const size_t size = (size_t)file.st_size;
        is_short = head.e_phoff > size || fseeko(f, (off_t)head.e_phoff, SEEK_SET) != 0;
        for (int i = 0; !is_short && i < head.e_phnum; i++) {
            is_short =
                fread(&part, sizeof part, 1, f) != 1 ||
                (part.p_type == PT_LOAD && (part.p_filesz > size || part.p_offset > size - part.p_filesz));
        }
    }
    if (f) fclose(f);
    return is_short;
}

static kith_status hint_anew(const ki_plugin_ask *ask, kith_error *err) {
    return ki_hint(err, KITH_EUNSUPPORTED, "build or install kith anew, or %s", ask->instead);
}

static kith_status open_file(const ki_plugin_ask *ask, const char *path, const void **ret, kith_error *err) {
    if (is_cut(path)) {
        ki_fail(err, KITH_EUNSUPPORTED, "%s: %s is shorter than its headers say", ask->what, path);
        return hint_anew(ask, err);
    }
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        ki_fail(err, KITH_EUNSUPPORTED, "%s: %s", ask->what, dlerror());
        return ki_hint(err, KITH_EUNSUPPORTED, "install %s, or put its folder into LD_LIBRARY_PATH; or %s",
                       ask->needs ? ask->needs : "what it names", ask->instead);
    }
    const char *interface = dlsym(object, "kith_plugin_interface");
    ki_plugin_fn *get = NULL;
    void *symbol = dlsym(object, "kith_plugin");
    memcpy(&get, &symbol, sizeof get);
    if (!interface || !get) {
        ki_fail(err, KITH_EUNSUPPORTED, "%s: %s is no plugin of kith", ask->what, path);
        hint_anew(ask, err);
    } else if (strcmp(interface, KI_PLUGIN_INTERFACE) != 0) {
        ki_fail(err, KITH_EUNSUPPORTED, "%s: %s belongs to another build of kith (%.12s; wanted %.12s)",
                ask->what, path, interface, KI_PLUGIN_INTERFACE);
        ki_hint(err, KITH_EUNSUPPORTED, "build or install both together, or %s", ask->instead);
    } else {
        const void *record = get(ki_process_now());
        if (record && (!ask->is_there || ask->is_there(record))) return *ret = record, KITH_OK;
        /* It stays loaded: its code has run, and may have left something that points to it. */
        ki_fail(err, KITH_EUNSUPPORTED, "%s: %s has nothing to offer (its entry returned none)", ask->what,
                path);
        return hint_anew(ask, err);
    }
    dlclose(object);
    return KITH_EUNSUPPORTED;
}

kith_status ki_plugin_open(const ki_plugin_ask *ask, const void **ret, kith_error *err) {
    ki_path place[MOST_PLACES];
    int n = 0;
    KI_TRY(places(ask, place, &n, err));
    for (int i = 0; i < n; i++) {
        if (ki_is_file("%s", place[i].s)) return open_file(ask, place[i].s, ret, err);
    }
    return fail_missing(ask, place, n, err);
}
