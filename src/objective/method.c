/* Settings by the name of their option. */
#include "objective/method.h"

#include <math.h>
#include <string.h>

/* The END row when there is no such option: a number is then NAN, a choice empty, a tree NULL. */
static const ki_option *find(const ki_method *method, const char *name) {
    const ki_option *option = method->options;
    while (option->type != KI_OPTION_T_END && strcmp(option->name, name) != 0) option++;
    return option;
}

static const void *field(const void *settings, const ki_option *option) {
    return (const char *)settings + option->offset;
}

double ki_method_number(const ki_method *method, const void *settings, const char *name) {
    const ki_option *option = find(method, name);
    switch (option->type) {
    case KI_OPTION_T_REAL: return *(const double *)field(settings, option);
    case KI_OPTION_T_INT: return (double)*(const int64_t *)field(settings, option);
    case KI_OPTION_T_BOOL: return *(const bool *)field(settings, option) ? 1 : 0;
    case KI_OPTION_T_CHOICE: return *(const int *)field(settings, option);
    default: return NAN; /* not a number, and visibly so */
    }
}

double ki_method_real(const ki_method *method, const void *settings, const char *name) {
    return ki_method_number(method, settings, name);
}

int64_t ki_method_int(const ki_method *method, const void *settings, const char *name) {
    return (int64_t)ki_method_number(method, settings, name);
}

bool ki_method_bool(const ki_method *method, const void *settings, const char *name) {
    return ki_method_number(method, settings, name) != 0;
}

const char *ki_method_choice(const ki_method *method, const void *settings, const char *name) {
    const ki_option *option = find(method, name);
    if (option->type != KI_OPTION_T_CHOICE) return "";
    return option->choices[*(const int *)field(settings, option)];
}

const ki_value *ki_method_tree(const ki_method *method, const void *settings, const char *name) {
    const ki_option *option = find(method, name);
    return option->type == KI_OPTION_T_TREE ? *(const ki_value *const *)field(settings, option) : NULL;
}
