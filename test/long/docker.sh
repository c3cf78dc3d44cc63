#!/bin/bash
# contrib/Dockerfile without an engine: every RUN line of every stage in a chroot, COPY done by hand, then the image's size, and
# kith in it as the image's user with everything but its volume read-only: docker.sh [DEBIAN]   DEBIAN: 12, 13 (the ARG's default)
#
# The base image is stood in for by mmdebstrap (minbase, without documentation, as the slim images are). Layers, registries and
# what the engine itself does with EXPOSE and VOLUME are not seen. A finding is a line that fails or that this script does not
# know, an image of more than 150 MB packed (tar and gzip), or a command in it that fails. What is built is the last commit.
set -u
cd "$(dirname "$0")/../.." || exit 1
most=150000000
here=$PWD
# shellcheck source=test/long/chroot.sh
. test/long/chroot.sh
can_chroot || exit 77
began=$SECONDS
fail() { echo "$*" && exit 1; }

# Lines that go on are joined; comments and empty lines are left out.
sed -e '/^ *#/d' contrib/Dockerfile | sed -e ':a' -e '/\\$/{N;s/\\\n */ /;ba' -e '}' | sed '/^ *$/d' >"$work/lines"
debian=${1:-$(sed -n 's/^ARG DEBIAN=//p' "$work/lines")}
case $debian in
12) suite=bookworm ;;
13) suite=trixie ;;
*) fail "Debian $debian: the script knows 12 and 13" ;;
esac
slim='path-exclude=/usr/share/doc/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/lintian/*
path-exclude=/usr/share/locale/*
path-exclude=/usr/share/man/*
path-include=/usr/share/doc/*/copyright
path-include=/usr/share/locale/locale.alias'
printf '%s\n' "$slim" >"$work/slim"
make_root base "$suite" --variant=minbase --dpkgopt="$work/slim" || exit 77
git clone -q "$here" "$work/context" || exit 1
# The patterns of .dockerignore: names, or names in any folder.
grep -v '^#' contrib/Dockerfile.dockerignore | while IFS= read -r pattern; do
    case $pattern in
    \*\*/*) find "$work/context" -name "${pattern#\*\*/}" -prune -exec rm -rf {} + ;;
    *) rm -rf "${work:?}/context/$pattern" ;;
    esac
done

n_run=0 stage='' folder=/ user=0 entry='' volume=''
while IFS= read -r line <&3; do
    word=${line%% *} rest=${line#* }
    case $word in
    ARG | EXPOSE) ;;
    FROM)
        # shellcheck disable=SC2016
        [[ $rest == 'debian:${DEBIAN}-slim'* ]] || fail "FROM $rest: another base image"
        stage=final
        [[ $rest != *' AS '* ]] || stage=${rest##* }
        cp -a "$work/base" "$work/$stage" || exit 1
        folder=/ user=0
        ;;
    COPY)
        from=$work/context
        if [[ $rest == --from=* ]]; then
            from=${rest%% *} rest=${rest#* }
            from=$work/${from#--from=}
        fi
        read -ra words <<<"$rest"
        to=$work/$stage${words[-1]}
        mkdir -p "$to"
        for pattern in "${words[@]:0:${#words[@]}-1}"; do
            if [ "$pattern" = . ]; then
                cp -a "$from/." "$to" || fail "$line"
            else
                # shellcheck disable=SC2086
                cp -a "$from"/${pattern#/} "$to" || fail "$line"
            fi
        done
        ;;
    WORKDIR) folder=$rest && mkdir -p "$work/$stage$folder" ;;
    RUN)
        echo "== $stage: $line"
        in_root "$stage" "cd '$folder' && $rest" || fail "failed: $line"
        n_run=$((n_run + 1))
        ;;
    USER) user=$rest ;;
    VOLUME) volume=$rest ;;
    ENTRYPOINT) entry=${rest#'["'} entry=${entry%'"]'} ;;
    *) fail "$line: an instruction that this script does not know" ;;
    esac
done 3<"$work/lines"
[ "$stage" = final ] || fail "the last stage has a name: the script does not know which is the image"
[ "$user" != 0 ] || fail "the image's user is root"

bytes=$(tar -C "$work/final" --exclude=./proc/* --exclude=./sys/* --exclude=./dev/* -c . | gzip -6 | wc -c)
base=$(tar -C "$work/base" --exclude=./proc/* --exclude=./sys/* --exclude=./dev/* -c . | gzip -6 | wc -c)
[ "$bytes" -lt "$most" ] || fail "the image has $bytes bytes packed; wanted fewer than $most"

# As docker run --read-only --cap-drop ALL with a volume.
in_image() {
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child sh -ec '
        mount -t proc proc "$1/proc"
        mkdir -p "$1/dev/shm"
        mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"
        mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/dev/shm" && mount --bind "$2" "$1$3" && mount -t tmpfs tmpfs "$1/dev" &&
        mknod -m 666 "$1/dev/null" c 1 3 && mknod -m 666 "$1/dev/urandom" c 1 9
        cd "$1$4"
        exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/ chroot --userspec="$5:0" --groups= "$1" \
            setpriv --no-new-privs --inh-caps=-all --bounding-set=-all sh -ec "cd $4 && $6"' \
        sh "$work/final" "$work/volume" "$volume" "$folder" "$user" "$1" </dev/null
}
mkdir "$work/volume" && chown "$user" "$work/volume"
in_image "$entry --version" || fail "$entry --version failed in the image"
in_image "$entry synth glyphs --classes 20 --images 8 &&
    $entry train recipe:quickstart --out run --set data.root=glyphs --set input.resize=squash32 --set input.crop=28 \
        --set input.mirror=false --set optim.steps=20 && $entry index glyphs -o glyphs.kith --model run" >"$work/log" 2>&1 ||
    { cat "$work/log" && fail "synth, train or index failed in the image"; }
in_image "$entry search glyphs.kith glyphs/glyph00003/00001.png -k 3" | tee "$work/hits"
grep -Eq '^ *1 +1\.0000 .*00001\.png$' "$work/hits" || fail "the image itself is not the first hit"
# As it is served to others: with a token, and asked from outside.
port=18$((RANDOM % 900 + 100))
(umask 077 && echo "token $(od -An -tx1 -N24 /dev/urandom | tr -d ' \n')" >"$work/volume/tokens")
chown "$user" "$work/volume/tokens"
in_image "exec $entry serve glyphs.kith --host 0.0.0.0 --port $port --token-file tokens" >"$work/served" 2>&1 &
child=$!
answer=
for _ in $(seq 100); do
    answer=$( (exec 4<>"/dev/tcp/127.0.0.1/$port" && printf 'GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n' >&4 &&
        head -n 1 <&4) 2>/dev/null) && [ -n "$answer" ] && break
    sleep 0.2
done
kill "$child" 2>/dev/null
wait "$child" 2>/dev/null
child=
[[ $answer == *' 200 '* ]] || { cat "$work/served" && fail "GET /healthz: '$answer'"; }
echo "contrib/Dockerfile, Debian $debian: $n_run RUN lines; $((bytes / 1000000)) MB packed, $((base / 1000000)) of them the base;" \
    "version, train, index, search and serve as user $user, read-only ($((SECONDS - began)) s)"
