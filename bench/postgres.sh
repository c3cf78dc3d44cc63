#!/bin/sh
# An index on PostgreSQL, loaded and asked, beside the embedded one on the same rows: postgres.sh [PREFIX [N_TEXT]]
# (build/search/glyphs, 50000). Needs the rows of bench/search_rows.sh and what scripts/postgres.sh needs. The server writes
# to disk for real (fsync on) and has memory for the graph. The text ways are given N_TEXT rows, since they take long: one
# INSERT a row, each its own transaction, then all in one; and COPY in its text form. All fill the same table, with its primary key
# and without a graph.
set -eu
cd "$(dirname "$0")/.."
prefix=${1:-build/search/glyphs}
n_text=${2:-50000}
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
ninja -C build search_postgres search_index kith_postgres >/dev/null
program=build/bench/search_postgres
KITH_POSTGRES_OPTIONS="-c fsync=on -c shared_buffers=2GB -c maintenance_work_mem=3GB -c max_wal_size=16GB"
export KITH_POSTGRES_OPTIONS
address=$(scripts/postgres.sh start bench)
work=$(mktemp -d)
trap 'rm -rf "$work"; scripts/postgres.sh stop bench' EXIT

sql() { scripts/postgres.sh sql bench; }
seconds() { date +%s.%N; }
# text NAME FILE: what psql takes for the statements of a file
text() {
    sql <<-END
	create extension if not exists vector; drop schema if exists text cascade; create schema text;
	create table text.items (id bigint primary key, path text collate "C", label text collate "C", hash text,
	    bytes bigint not null, mtime_ns bigint not null, attributes jsonb not null, embedding vector($dim) not null);
	END
    begun=$(seconds)
    (echo 'set search_path = text, public;'; cat "$2") | sql
    echo "$begun $(seconds)" | awk -v name="$1" -v n="$n_text" '{ t = $2 - $1; printf "%s: %d rows in %.1f s, %.0f rows/s\n", name, n, t, n / t }'
}
dim=$(od -A n -t d8 -j 8 -N 8 "$prefix.rows" | tr -d ' ')
$program insert "$prefix" "$n_text" >"$work/insert.sql"
(echo 'begin;'; cat "$work/insert.sql"; echo 'commit;') >"$work/one.sql"
$program copy "$prefix" "$n_text" >"$work/copy.sql"
text 'INSERT, a transaction each' "$work/insert.sql"
text 'INSERT, one transaction' "$work/one.sql"
text 'COPY text' "$work/copy.sql"
sql <<'END'
drop schema text cascade;
END
$program load "$prefix" "$address"
sql <<'END'
select 'table ' || pg_size_pretty(pg_table_size('kith.items')) || ', graph ' ||
    pg_size_pretty(pg_relation_size('kith.items_graph'));
END
$program ask "$prefix" "$address"
if [ -n "${EMBEDDED:-}" ]; then
    build/bench/search_index "$prefix" "$work/embedded.kith" 0.95
fi
