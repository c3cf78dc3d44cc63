/* Groups of the same picture as JSON: how the answer begins. */
#include "cli/duplicates.h"

void cli_duplicates_begin(kith_json *json, const kith_duplicates *found) {
    kith_json_object_begin(json);
    kith_json_key(json, "looked_at");
    kith_json_int(json, found->n_looked_at);
    kith_json_key(json, "unreadable");
    kith_json_int(json, found->n_unread);
    kith_json_key(json, "groups");
    kith_json_array_begin(json);
}
