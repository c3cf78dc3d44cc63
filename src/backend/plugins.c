/* Looking for plugins, loading them, and keeping what was found.
 *
 * A plugin is looked for beside the code that loads it, never in the current folder and never by a bare name:
 * KITH_PLUGINS (a folder) if it is set; otherwise, starting from the folder of libkith or of the program it
 * is linked into, kith/ (libkith is in lib/), ../LIB/kith/ (the program is in bin/) and LIB/kith/ (a build
 * folder). */
#include "backend/plugin.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/path.h"
#include "core/text.h"

/* If a plugin is linked in, as in tests, it is used as it is and no file is looked for. */
extern const ki_plugin ki_plugin_cuda __attribute__((weak));

typedef struct slot {
    const char *name;
    bool is_device;
    const char *what;    /* it is for, at the beginning of errors */
    const char *makes;   /* hint: where it is built */
    const char *instead; /* hint: what can be done without it */
    const ki_plugin *built_in;
    bool is_settled; /* plugin or failure is there */
    const ki_plugin *plugin;
    kith_error failure;
} slot;

/* Devices first. */
static slot slots[] = {{.name = "cuda",
                        .is_device = true,
                        .what = "device cuda",
                        .makes = "nvcc and cuDNN are",
                        .instead = "use device cpu",
                        .built_in = &ki_plugin_cuda},
                       {.name = "postgres",
                        .what = "an index on PostgreSQL",
                        .makes = "libpq is (libpq-dev)",
                        .instead = "keep the index in a folder"}};
enum { N_SLOTS = sizeof slots / sizeof slots[0] };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const char *ki_plugin_name_at(int i) {
    return i >= 0 && i < N_SLOTS && slots[i].is_device ? slots[i].name : NULL;
}

/* The folder of the file that this code was loaded from. */
static bool own_folder(ki_path *ret) {
    Dl_info info;
    char resolved[sizeof ret->s];
    if (!dladdr((const void *)slots, &info) || !info.dli_fname) return false;
    /* For a program this is the name it was called by; /proc knows where it is. */
    const char *path = strchr(info.dli_fname, '/') && realpath(info.dli_fname, resolved) ? resolved : NULL;
    if (!path) path = realpath("/proc/self/exe", resolved);
    if (!path || !strrchr(path, '/')) return false;
    return ki_path_print(ret, NULL, "%.*s", (int)(strrchr(path, '/') - path), path) == KITH_OK;
}

enum { MOST_PLACES = 3 };

/* Where the plugin may be. */
static kith_status places(const slot *s, ki_path ret[MOST_PLACES], int *ret_n, kith_error *err) {
    const char *told = secure_getenv("KITH_PLUGINS");
    ki_path here;
    int n = 0;
    if (told && *told) {
        *ret_n = 1;
        const kith_status status = ki_path_print(&ret[0], err, "%s/libkith-%s.so", told, s->name);
        return status == KITH_OK ? KITH_OK : ki_prefix(err, status, "KITH_PLUGINS");
    }
    if (!own_folder(&here))
        return ki_fail(err, KITH_EUNSUPPORTED, "%s: kith cannot tell which folder it runs from", s->what);
    n += ki_path_print(&ret[n], NULL, "%s/kith/libkith-%s.so", here.s, s->name) == KITH_OK;
    n += ki_path_print(&ret[n], NULL, "%s/../" KITH_LIBDIR "/kith/libkith-%s.so", here.s, s->name) == KITH_OK;
    n += ki_path_print(&ret[n], NULL, "%s/" KITH_LIBDIR "/kith/libkith-%s.so", here.s, s->name) == KITH_OK;
    *ret_n = n;
    return KITH_OK;
}

/* Which of the places is the right one depends on how kith was installed: all are named. */
static kith_status fail_missing(const slot *s, const ki_path *place, int n, kith_error *err) {
    char words[sizeof err->message] = "";
    for (int i = 0; i < n; i++) {
        const size_t at = strlen(words);
        ki_snprintf(words + at, sizeof words - at, "%s%.200s",
                    i == 0      ? ""
                    : i + 1 < n ? ", "
                                : " or ",
                    place[i].s);
    }
    ki_fail(err, KITH_EUNSUPPORTED, "%s: there is no plugin %s", s->what, words);
    return ki_hint(err, KITH_EUNSUPPORTED, "'make' builds it where %s; KITH_PLUGINS names its folder; or %s",
                   s->makes, s->instead);
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

static kith_status open_file(const slot *s, const char *path, const ki_plugin **ret, kith_error *err) {
    if (is_cut(path)) {
        ki_fail(err, KITH_EUNSUPPORTED, "%s: %s is shorter than its headers say", s->what, path);
        return ki_hint(err, KITH_EUNSUPPORTED, "build or install kith anew, or %s", s->instead);
    }
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        ki_fail(err, KITH_EUNSUPPORTED, "%s: %s", s->what, dlerror());
        return ki_hint(err, KITH_EUNSUPPORTED,
                       "install what it names, or put its folder into LD_LIBRARY_PATH; or %s", s->instead);
    }
    const char *interface = dlsym(object, "kith_plugin_interface");
    ki_plugin_fn *get = NULL;
    void *symbol = dlsym(object, "kith_plugin");
    memcpy(&get, &symbol, sizeof get);
    if (!interface || !get) {
        ki_fail(err, KITH_EUNSUPPORTED, "%s: %s is no plugin of kith", s->what, path);
        ki_hint(err, KITH_EUNSUPPORTED, "build or install kith anew, or %s", s->instead);
    } else if (strcmp(interface, KI_PLUGIN_INTERFACE) != 0) {
        ki_fail(err, KITH_EUNSUPPORTED, "%s: %s belongs to another build of kith (%.12s; wanted %.12s)",
                s->what, path, interface, KI_PLUGIN_INTERFACE);
        ki_hint(err, KITH_EUNSUPPORTED, "build or install both together, or %s", s->instead);
    } else {
        const ki_plugin *plugin = get(ki_process_now());
        if (plugin && (s->is_device ? (bool)plugin->backend : (bool)plugin->remote))
            return *ret = plugin, KITH_OK;
        /* It stays loaded: its code has run, and may have left something that points to it. */
        ki_fail(err, KITH_EUNSUPPORTED, "%s: %s has nothing to offer (its entry returned none)", s->what,
                path);
        return ki_hint(err, KITH_EUNSUPPORTED, "build or install kith anew, or %s", s->instead);
    }
    dlclose(object);
    return KITH_EUNSUPPORTED;
}

static kith_status look(const slot *s, const ki_plugin **ret, kith_error *err) {
    ki_path place[MOST_PLACES];
    if (s->built_in) return *ret = s->built_in, KITH_OK;
    int n = 0;
    KI_TRY(places(s, place, &n, err));
    for (int i = 0; i < n; i++) {
        if (ki_is_file("%s", place[i].s)) return open_file(s, place[i].s, ret, err);
    }
    return fail_missing(s, place, n, err);
}

kith_status ki_plugin_load(const char *name, const ki_plugin **ret_plugin, kith_error *err) {
    for (int i = 0; i < N_SLOTS; i++) {
        slot *s = &slots[i];
        if (strcmp(s->name, name) != 0) continue;
        pthread_mutex_lock(&lock);
        if (!s->is_settled) look(s, &s->plugin, &s->failure);
        s->is_settled = true;
        pthread_mutex_unlock(&lock);
        if (s->plugin) return *ret_plugin = s->plugin, KITH_OK;
        if (err) *err = s->failure;
        return s->failure.status;
    }
    return ki_fail(err, KITH_ENOTFOUND, "no plugin is called '%.60s'", name);
}

const ki_plugin *ki_plugin_of(const ki_backend *backend) {
    const ki_plugin *found = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < N_SLOTS; i++) {
        if (slots[i].plugin && slots[i].plugin->backend == backend->type) found = slots[i].plugin;
    }
    pthread_mutex_unlock(&lock);
    return found;
}
