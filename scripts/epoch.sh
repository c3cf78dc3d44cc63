# shellcheck shell=sh
# When what is passed on was made, for all dates in it: SOURCE_DATE_EPOCH, else the time of the last commit; sourced, not run.
[ -n "${SOURCE_DATE_EPOCH:-}" ] || SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null) || SOURCE_DATE_EPOCH=
[ -n "$SOURCE_DATE_EPOCH" ] || {
    echo "no commit says what date to write: set SOURCE_DATE_EPOCH (seconds since 1970)" >&2
    exit 1
}
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022
