/* The devices that come as plugins, and what was found of each. */
#include "backend/plugin.h"

#include <pthread.h>
#include <string.h>

/* If a plugin is linked in, as in tests, it is used as it is and no file is looked for. */
extern const ki_plugin ki_plugin_cuda __attribute__((weak));

typedef struct slot {
    ki_plugin_ask ask;
    const ki_plugin *built_in;
    bool is_settled; /* plugin or failure is there */
    const ki_plugin *plugin;
    kith_error failure;
} slot;

static bool has_backend(const void *record) { return ((const ki_plugin *)record)->backend != NULL; }

static slot slots[] = {{.ask = {.name = "cuda",
                                .what = "device cuda",
                                .makes = "nvcc and cuDNN are",
                                .instead = "use device cpu",
                                .is_there = has_backend},
                        .built_in = &ki_plugin_cuda}};
enum { N_SLOTS = sizeof slots / sizeof slots[0] };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const char *ki_plugin_name_at(int i) { return i >= 0 && i < N_SLOTS ? slots[i].ask.name : NULL; }

static kith_status look(const slot *s, const ki_plugin **ret, kith_error *err) {
    const void *record = NULL;
    if (s->built_in) return *ret = s->built_in, KITH_OK;
    KI_TRY(ki_plugin_open(&s->ask, &record, err));
    *ret = record;
    return KITH_OK;
}

kith_status ki_plugin_load(const char *name, const ki_plugin **ret_plugin, kith_error *err) {
    for (int i = 0; i < N_SLOTS; i++) {
        slot *s = &slots[i];
        if (strcmp(s->ask.name, name) != 0) continue;
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
