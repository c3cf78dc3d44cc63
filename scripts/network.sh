# shellcheck shell=sh
# How scripts fetch packages; sourced, not run. Nobody waits longer than KITH_PATIENCE seconds (20) for a network that does not
# answer: apt and npm by themselves try several times, minutes long.
: "${KITH_PATIENCE:=20}"
# shellcheck disable=SC2034
{
    apt_options="-o Acquire::Retries=1 -o Acquire::http::Timeout=$KITH_PATIENCE -o Acquire::https::Timeout=$KITH_PATIENCE"
    npm_options="--ignore-scripts --no-audit --no-fund --fetch-retries=0 --fetch-timeout=${KITH_PATIENCE}000"
}

# mirror_answers URI: whether something answers at this file of a mirror, if only that it is not there.
mirror_answers() {
    answer=$(mktemp)
    status=0
    # shellcheck disable=SC2086
    timeout "$KITH_PATIENCE" /usr/lib/apt/apt-helper $apt_options -o Acquire::Retries=0 download-file "$1" "$answer.file" \
        >"$answer" 2>&1 || status=$?
    if grep -Eq 'Could not (resolve|connect)|Temporary failure resolving|Connection (failed|timed out)' "$answer"; then status=124; fi
    rm -f "$answer" "$answer.file" "$answer.file.FAILED"
    [ $status != 124 ]
}

# The same for npm's registry. npm is asked and not a tool for files, for it knows the registry and the proxies.
registry_answers() {
    status=0
    # shellcheck disable=SC2086
    timeout "$KITH_PATIENCE" npm ping $npm_options >/dev/null 2>&1 || status=$?
    [ $status != 124 ]
}
