/* Indexes on PostgreSQL as a plugin: the record, and the two symbols that libkith-postgres.so exports. */
#include "base/plugin.h"
#include "search/postgres/tables.h"

static const ki_remote_type remote = {
    .open = ki_pg_open,
    .close = ki_pg_close,
    .name = ki_pg_name,
    .create = ki_pg_create,
    .state = ki_pg_state,
    .generation = ki_pg_generation,
    .add = ki_pg_add,
    .remove = ki_pg_remove,
    .restamp = ki_pg_restamp,
    .set = ki_pg_set,
    .move = ki_pg_move,
    .exclude = ki_pg_exclude,
    .exclude_file = ki_pg_exclude_file,
    .include = ki_pg_include,
    .excluded = ki_pg_excluded,
    .count_excluded = ki_pg_count_excluded,
    .commit = ki_pg_commit,
    .count = ki_pg_count,
    .ids = ki_pg_ids,
    .values = ki_pg_count_values,
    .item = ki_pg_item,
    .vectors = ki_pg_vectors,
    .labels = ki_pg_labels,
    .stamps = ki_pg_stamps,
    .nearest = ki_pg_nearest,
};

KITH_API extern const char kith_plugin_interface[];
const char kith_plugin_interface[] = KI_PLUGIN_INTERFACE;

KITH_API ki_plugin_fn kith_plugin;
const void *kith_plugin(ki_process *process) {
    ki_process_adopt(process);
    return &remote;
}
