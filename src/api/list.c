/* The tables of the layers, seen as one list. A kind is one row of `kinds` and one function that
 * fills an entry from the layer's own record. */
#include "kith/experimental/list.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/option.h"
#include "base/text.h"
#include "data/effect/effect.h"
#include "device/backend.h"
#include "hub/name.h"
#include "kith/data.h"
#include "net/backbone.h"
#include "objective/objective.h"
#include "optim/optim.h"
#include "train/recipe.h"

typedef struct entry {
    const char *name, *summary, *source;
    const ki_option *options; /* NULL: none */
    bool cpu_only;
    char note[512];
} entry;

static bool backbone_at(int i, entry *ret) {
    const ki_backbone *b = ki_backbone_at(i);
    if (b) *ret = (entry){b->name, b->summary, b->source, b->options, false, ""};
    return b != NULL;
}

/* A device that cannot be used is in the list too, with a reason. */
static bool device_at(int i, entry *ret) {
    const char *name = ki_backend_name_at(i);
    const ki_backend_type *type = NULL;
    kith_error err = {0};
    int number = 0;
    if (!name) return false;
    *ret = (entry){.name = name, .summary = "a plugin that could not be loaded"};
    if (ki_backend_find(name, &type, &number, &err) == KITH_OK) {
        ret->summary = type->summary;
        if (!type->describe || type->describe(ret->note, sizeof ret->note, &err) == KITH_OK) return true;
    }
    ki_snprintf(ret->note, sizeof ret->note, "not here: %s", err.message);
    return true;
}

static bool method_at(const char *what, const ki_method *m, entry *ret) {
    if (m)
        *ret = (entry){m->name, m->summary, m->source, m->options, !ki_method_has_device(what, m->name), ""};
    return m != NULL;
}

static bool loss_at(int i, entry *ret) {
    const ki_loss *loss = i < 0 ? NULL : ki_loss_at((size_t)i);
    return method_at("loss", loss ? &loss->method : NULL, ret);
}

static bool miner_at(int i, entry *ret) {
    const ki_miner *miner = i < 0 ? NULL : ki_miner_at((size_t)i);
    return method_at("miner", miner ? &miner->method : NULL, ret);
}

static bool regularizer_at(int i, entry *ret) {
    const ki_reg *reg = i < 0 ? NULL : ki_reg_at((size_t)i);
    return method_at("regularizer", reg ? &reg->method : NULL, ret);
}

static bool optimizer_at(int i, entry *ret) {
    const ki_optim_method *m = ki_optim_method_at(i);
    if (m) *ret = (entry){m->name, m->summary, m->source, m->options, false, ""};
    return m != NULL;
}

static bool effect_at(int i, entry *ret) {
    const ki_effect_kind *kind = ki_effect_at(i);
    if (kind) *ret = (entry){kind->name, kind->summary, kind->source, kind->options, false, ""};
    return kind != NULL;
}

/* What is in recipes/, as found when the build was configured (cmake/kith_recipes.cmake). */
static bool recipe_at(int i, entry *ret) {
    static const entry rows[] = {
#define X(name, summary) {name, summary, "recipes/" name ".yaml", NULL, false, ""},
#include "kith_recipes.def"
#undef X
    };
    if (i < 0 || (size_t)i >= sizeof rows / sizeof rows[0]) return false;
    *ret = rows[i];
    return true;
}

/* Short names of kith pull; the source is the repository on the hub. */
static bool weights_at(int i, entry *ret) {
    const ki_hub_row *row = i < 0 ? NULL : ki_hub_row_at((size_t)i);
    if (!row) return false;
    *ret = (entry){.name = row->name, .summary = row->summary, .source = row->repo};
    ki_snprintf(ret->note, sizeof ret->note, "backbone %s, licence %s; kith pull %s fetches them",
                row->backbone, row->licence, row->name);
    return true;
}

static bool dataset_at(int i, entry *ret) {
    const char *name = i < 0 ? NULL : kith_dataset_kind_name(i);
    if (name) *ret = (entry){name, kith_dataset_kind_summary(i), NULL, NULL, false, ""};
    return name != NULL;
}

/* The sections of a recipe; its top level is called recipe. */
static bool section_at(int i, entry *ret) {
    static const entry schedule = {
        "optim.schedule", "how the learning rate moves", NULL, ki_schedule_options, false, ""};
    const ki_recipe_section *section = i < 0 ? NULL : ki_recipe_section_at((size_t)i);
    if (section) {
        *ret = (entry){
            *section->name ? section->name : "recipe", section->summary, NULL, section->options, false, ""};
        return true;
    }
    if (i <= 0 || !ki_recipe_section_at((size_t)i - 1)) return false;
    *ret = schedule;
    return true;
}

static const struct kind {
    const char *name, *summary;
    bool (*at)(int i, entry *ret);
} kinds[] = {
    {"backbones", "networks under an embedding", backbone_at},
    {"weights", "pretrained, with a short name for kith pull and hub:NAME", weights_at},
    {"losses", "what pulls and pushes pairs; each also takes normalize (true|false)", loss_at},
    {"miners", "which pairs and triplets count", miner_at},
    {"regularizers", "further terms; each also takes weight (1), warmup (0 steps), normalize",
     regularizer_at},
    {"optimizers", "how parameters follow their gradients; each also takes what section optim has",
     optimizer_at},
    {"effects", "changes of colour and so on of training images (input.effects)", effect_at},
    {"datasets", "layouts of labelled images that are read", dataset_at},
    {"sections", "what a recipe for kith train may say", section_at},
    {"recipes", "ready to train with; installed under share/kith/recipes", recipe_at},
    {"devices", "what a network can run on", device_at},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

bool kith_list_kind_at(int64_t i, kith_list_kind *ret_kind) {
    if (!ret_kind || i < 0 || i >= N_KINDS) return false;
    *ret_kind = (kith_list_kind){kinds[i].name, kinds[i].summary};
    return true;
}

static bool find(const char *kind, int64_t i, entry *ret) {
    if (!kind || i < 0 || i > INT_MAX) return false;
    for (int k = 0; k < N_KINDS; k++) {
        if (strcmp(kinds[k].name, kind) == 0) return kinds[k].at((int)i, ret);
    }
    return false;
}

static int count_options(const ki_option *options) {
    int n = 0;
    while (options && options[n].type != KI_OPTION_T_END) n++;
    return n;
}

bool kith_list_entry_at(const char *kind, int64_t i, kith_list_entry *ret_entry) {
    entry e;
    if (!ret_entry || !find(kind, i, &e)) return false;
    *ret_entry = (kith_list_entry){.name = e.name,
                                   .summary = e.summary,
                                   .source = e.source,
                                   .n_options = count_options(e.options),
                                   .cpu_only = e.cpu_only};
    memcpy(ret_entry->note, e.note, sizeof e.note);
    return true;
}

bool kith_list_option_at(const char *kind, int64_t i, int64_t k, kith_list_option *ret_option) {
    entry e;
    if (!ret_option || !find(kind, i, &e) || k < 0 || k >= count_options(e.options)) return false;
    const ki_option *o = &e.options[k];
    *ret_option = (kith_list_option){.name = o->name, .help = o->help, .source = o->source};
    ki_option_default_text(o, ret_option->default_text, sizeof ret_option->default_text);
    ki_option_range_text(o, ret_option->range, sizeof ret_option->range);
    return true;
}
