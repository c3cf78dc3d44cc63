#!/bin/sh
# A PostgreSQL server with pgvector for tests and measurements: postgres.sh start|restart|stop|url|sql [NAME [DATABASE]]
#
#   start    unpack the server when it is not there yet, make an empty cluster, run it on a loopback port, print its address
#   restart  end it as a crash would, and run it again with the same cluster, port and address
#   stop     end it and remove the cluster; what was unpacked stays
#   url      print the address of one that runs
#   sql      run statements from standard input there, rows printed bare
#
# Debian 12 has no pgvector, so that Debian 13's packages are unpacked into a folder, with lists and cache of their own:
# nothing is installed, and nothing outside the folder is written. Needs root for chroot; the server itself runs as an ordinary
# user. Who is not root gets PGlite (scripts/pglite.mjs) from npm's registry instead, with Node.js: it serves one client at a
# time, is not restarted, and has one database. Exits 77 with one line where there can be no server here, or not this one.
#
#   KITH_POSTGRES_KIND     debian or pglite (default: debian for root, pglite for others)
#   KITH_POSTGRES          the folder (default: build/postgres)
#   KITH_POSTGRES_DISK     the size of a disk of its own for the cluster, as mount's size=: 64m, to see it full
#   KITH_POSTGRES_OPTIONS  more options of the server: "-c shared_buffers=1GB"
#   KITH_DEBIAN_MIRROR     where packages come from
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=scripts/network.sh
. scripts/network.sh
word=${1:-} name=${2:-main}
mkdir -p "${KITH_POSTGRES:=build/postgres}"
folder=$(cd "$KITH_POSTGRES" && pwd)
root=$folder/root
cluster=/srv/$name # inside root
state=$folder/$name
user=kith uid=65534 gid=65534

cannot() {
    echo "no PostgreSQL server: $*" >&2
    exit 77
}
fail() {
    echo "postgres.sh: $*" >&2
    exit 1
}

# ---- the packages ----

apt() {
    # shellcheck disable=SC2086
    apt-get -qq -o Dir::Etc::SourceList="$folder/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State="$folder/apt" -o Dir::State::status="$folder/apt/status" -o Dir::Cache="$folder/apt/cache" \
        -o Dir::Log="$folder/apt" -o APT::Sandbox::User=root -o APT::Install-Recommends=false \
        -o APT::Update::Error-Mode=any $apt_options "$@"
}

# A network that did not answer is not asked again for ten minutes, for several tests want a server.
cannot_fetch() {
    echo "$*" >"$folder/silent"
    cannot "$*"
}
check_silence() {
    [ -z "$(find "$folder/silent" -mmin -10 2>/dev/null)" ] || cannot "$(cat "$folder/silent")"
}

unpack() {
    mkdir -p "$folder/apt/lists/partial" "$folder/apt/cache/archives/partial"
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    [ -r $keys ] || cannot "$keys is not there; install debian-archive-keyring"
    mirror=${KITH_DEBIAN_MIRROR:-http://deb.debian.org/debian}
    check_silence
    mirror_answers "$mirror/dists/trixie/InRelease" || cannot_fetch "$mirror does not answer within $KITH_PATIENCE s"
    echo "deb [signed-by=$keys] $mirror trixie main" >"$folder/apt/sources.list"
    : >"$folder/apt/status"
    { apt update && apt --download-only -y install dash postgresql-17 postgresql-17-pgvector; } \
        >"$folder/apt/log" 2>&1 || cannot_fetch "Debian's packages cannot be fetched: $(grep -m 1 '^E:' "$folder/apt/log")"
    rm -rf "$root.part"
    mkdir -p "$root.part"
    for package in "$folder"/apt/cache/archives/*.deb; do dpkg-deb -x "$package" "$root.part"; done
    mkdir -p "$root.part/srv" "$root.part/dev" "$root.part/etc"
    # The loader of Debian 13 looks in /usr; the links that a package's script would make are made here.
    for link in bin sbin lib lib64; do
        [ -e "$root.part/$link" ] || [ ! -d "$root.part/usr/$link" ] || ln -s "usr/$link" "$root.part/$link"
    done
    mknod -m 666 "$root.part/dev/null" c 1 3 2>/dev/null || cannot "device files cannot be made here"
    echo "$user:x:$uid:$gid::/srv:/bin/sh" >"$root.part/etc/passwd"
    echo "$user:x:$gid:" >"$root.part/etc/group"
    mv "$root.part" "$root"
    rm -rf "$folder/apt"
}

# ---- PGlite ----

packages="@electric-sql/pglite@0.5.14 @electric-sql/pglite-pgvector@0.0.15"
fetch_pglite() {
    check_silence
    registry_answers || cannot_fetch "npm's registry does not answer within $KITH_PATIENCE s"
    rm -rf "$folder/pglite.part"
    mkdir -p "$folder/pglite.part"
    echo '{ "private": true }' >"$folder/pglite.part/package.json"
    # shellcheck disable=SC2086
    (cd "$folder/pglite.part" && npm install $npm_options --cache "$folder/npm" $packages) \
        >"$folder/npm.log" 2>&1 || cannot_fetch "PGlite cannot be fetched: $(grep -m 1 'npm error' "$folder/npm.log")"
    mv "$folder/pglite.part" "$folder/pglite"
    rm -rf "$folder/npm"
}

start_pglite() {
    for tool in node npm setsid flock; do
        command -v $tool >/dev/null || cannot "not root, and $tool for PGlite is not there"
    done
    [ -z "${KITH_POSTGRES_DISK:-}${KITH_POSTGRES_OPTIONS:-}" ] || cannot "PGlite has no disk and no options"
    exec 9>"$folder/lock"
    flock 9 # one fetches, the others wait
    [ -d "$folder/pglite" ] || fetch_pglite
    cp scripts/pglite.mjs "$folder/pglite/pglite.mjs.$$"
    mv "$folder/pglite/pglite.mjs.$$" "$folder/pglite/pglite.mjs"
    exec 9>&-
    rm -rf "$state"
    mkdir -p "$state"
    free_port >"$state/port"
    echo pglite >"$state/kind"
    : >"$state/log"
    setsid node "$folder/pglite/pglite.mjs" "$(cat "$state/port")" >>"$state/log" 2>&1 </dev/null &
    echo $! >"$state/pid"
    i=0
    until grep -q '^ready' "$state/log"; do
        is_running || fail "PGlite ended: $(tail -n 1 "$state/log")"
        i=$((i + 1))
        [ $i -lt 1500 ] || fail "PGlite does not answer: $(tail -n 1 "$state/log")"
        sleep 0.1
    done
    address
}

# ---- the server ----

kind() { cat "$state/kind" 2>/dev/null || echo debian; }
programs=/usr/lib/postgresql/17/bin
inside() {
    program=$1
    shift
    env -i HOME=/srv PATH=$programs:/usr/bin:/usr/sbin:/bin:/sbin chroot --userspec=$uid:$gid "$root" \
        "$programs/$program" "$@"
}

# A port that nothing listens on, as far as one can know.
free_port() {
    while :; do
        port=$(awk 'BEGIN { srand(); print int(20000 + 40000 * rand()) }' </dev/null)
        port=$((20000 + (port + $$ * 7919) % 40000))
        grep -qi ":$(printf %04X $port) " /proc/net/tcp /proc/net/tcp6 2>/dev/null || break
        sleep 1
    done
    echo "$port"
}

# Runs until the server ends: in a mount namespace of its own when the cluster has a disk of its own.
run_server() {
    # shellcheck disable=SC2086
    inside postgres -D "$cluster" -p "$1" -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off \
        -c max_connections=50 ${KITH_POSTGRES_OPTIONS:-} >>"$state/log" 2>&1 </dev/null
}

make_cluster() {
    if [ -n "${KITH_POSTGRES_DISK:-}" ]; then
        mount -t tmpfs -o "size=$KITH_POSTGRES_DISK,mode=0777" none "$root$cluster" 2>/dev/null ||
            cannot "no disk of its own can be mounted here"
        chown $uid:$gid "$root$cluster"
    fi
    od -An -N16 -tx1 /dev/urandom | tr -d ' \n' >"$state/password"
    cp "$state/password" "$root/srv/$name.password"
    chown $uid "$root/srv/$name.password"
    inside initdb -D "$cluster" -U $user -A scram-sha-256 --pwfile="/srv/$name.password" -E UTF8 --locale=C -N \
        --set wal_level=minimal --set max_wal_senders=0 >"$state/log" 2>&1 ||
        fail "initdb failed: $(tail -n 1 "$state/log")"
    rm -f "$root/srv/$name.password"
}

address() {
    if [ "$(kind)" = pglite ]; then
        echo "postgresql://postgres@127.0.0.1:$(cat "$state/port")/postgres?sslmode=disable&application_name=pglite"
        return
    fi
    echo "postgresql://$user@127.0.0.1:$(cat "$state/port")/postgres?passfile=$state/pgpass"
}
is_ready() { inside pg_isready -q -h 127.0.0.1 -p "$(cat "$state/port")"; }
is_running() { [ -s "$state/pid" ] && kill -0 "$(cat "$state/pid")" 2>/dev/null; }

# The cluster is made, and the server run, in one process whose namespace ends with it.
serve() {
    if [ "$1" = new ]; then make_cluster; fi
    run_server "$(cat "$state/port")"
}

launch() {
    private=
    [ -z "${KITH_POSTGRES_DISK:-}" ] || private="unshare --mount"
    # shellcheck disable=SC2086
    setsid $private "$0" serve "$name" "$1" >>"$state/launch" 2>&1 </dev/null &
    echo $! >"$state/pid"
    i=0
    until is_ready; do
        is_running || {
            cat "$state/launch" >&2
            grep -q '^no PostgreSQL server' "$state/launch" && exit 77
            fail "the server ended: $(tail -n 1 "$state/log")"
        }
        i=$((i + 1))
        [ $i -lt 1500 ] || {
            end KILL
            fail "the server does not answer: $(tail -n 1 "$state/log")"
        }
        sleep 0.1
    done
}

# The process group of the server's session.
end() {
    [ -s "$state/pid" ] || return 0
    leader=$(cat "$state/pid")
    kill -s "$1" -- "-$leader" 2>/dev/null || true
    i=0
    while kill -0 -- "-$leader" 2>/dev/null && [ $i -lt 100 ]; do sleep 0.1 && i=$((i + 1)); done
    kill -s KILL -- "-$leader" 2>/dev/null || true
    rm -f "$state/pid"
}

case $word in
start)
    if is_running; then address && exit 0; fi
    if [ "$(id -u)" != 0 ] && [ -z "${KITH_POSTGRES_KIND:-}" ]; then KITH_POSTGRES_KIND=pglite; fi
    if [ "${KITH_POSTGRES_KIND:-debian}" = pglite ]; then start_pglite && exit 0; fi
    [ "$(id -u)" = 0 ] || cannot "unpacking Debian 13's packages and chroot need root"
    for tool in apt-get dpkg-deb chroot setsid flock; do
        command -v $tool >/dev/null || cannot "$tool is not there"
    done
    exec 9>"$folder/lock"
    flock 9 # one unpacks, the others wait
    [ -d "$root" ] || unpack
    exec 9>&-
    rm -rf "$state" "${root:?}$cluster"
    mkdir -p "$state" "$root$cluster"
    chown $uid:$gid "$root$cluster"
    free_port >"$state/port"
    : >"$state/log"
    launch new
    (umask 077 && echo "*:*:*:$user:$(cat "$state/password")" >"$state/pgpass")
    rm -f "$state/password"
    address
    ;;
serve) serve "$3" ;;
restart)
    is_running || fail "it does not run"
    [ "$(kind)" = debian ] || cannot "PGlite is not restarted"
    [ -z "${KITH_POSTGRES_DISK:-}" ] || fail "a cluster with a disk of its own ends with its server"
    end KILL
    rm -f "$root$cluster/postmaster.pid"
    launch old
    address
    ;;
stop)
    end INT
    rm -rf "$state" "${root:?}$cluster"
    ;;
sql)
    is_running || fail "it does not run"
    if [ "$(kind)" = pglite ]; then
        [ "${3:-postgres}" = postgres ] || cannot "PGlite has one database"
        command -v psql >/dev/null || cannot "psql is not there"
        exec psql -X -q -A -t -v ON_ERROR_STOP=1 "$(address)"
    fi
    PGPASSWORD=$(cut -d: -f5 "$state/pgpass") chroot --userspec=$uid:$gid "$root" $programs/psql -X -q -A -t \
        -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$(cat "$state/port")" -U $user "${3:-postgres}"
    ;;
url)
    is_running || fail "it does not run; start it with: scripts/postgres.sh start"
    address
    ;;
*) fail "wanted start, restart, stop, url or sql, and a name if there shall be several" ;;
esac
