#!/usr/bin/env bash
# The papers' tables, by one command: runs what has no result yet, then draws the pages.
#
#     research/reproduce.sh [--list] [--dry-run] [--out FOLDER] [TABLE…] [-- OPTIONS of kith reproduce]
#
#     research/reproduce.sh                                  all tables, three seeds, into reproduced/
#     CUB=/data/CUB_200_2011 research/reproduce.sh cub       one table, with data from elsewhere
#     research/reproduce.sh omniglot -- --seeds 1 --only binomial
#     research/reproduce.sh --out research/results cub       go on with the results of this repository
#
# --list says what each table needs and whether it is there; --dry-run prints the commands. The same command goes on after
# a stop. KITH, CUB, OMNIGLOT, GOOGLENET and RESNET50 name the program, the data and the weights.
set -euo pipefail

# A path that was given is one of the folder that this was started in; without one it is below the repository.
here=$PWD
at() { case $1 in /*) echo "$1" ;; *) echo "$here/$1" ;; esac }
kith=${KITH:+$(at "$KITH")}
cub=${CUB:+$(at "$CUB")}
omniglot=${OMNIGLOT:+$(at "$OMNIGLOT")}
googlenet=${GOOGLENET:+$(at "$GOOGLENET")}
resnet50=${RESNET50:+$(at "$RESNET50")}
kith=${kith:-build/kith}
cub=${cub:-data/CUB_200_2011}
omniglot=${omniglot:-data/omniglot}
googlenet=${googlenet:-weights/googlenet_bvlc.safetensors}
resnet50=${resnet50:-weights/resnet50.safetensors}
cd "$(dirname "$0")/.."

# table|list|data|weights|what it takes. The search on validation classes has one seed.
tables="\
omniglot|omniglot|$omniglot||27 runs of 3 minutes on two cores
search-setup|cub/search/setup|$cub|$googlenet|6 runs, 12 minutes on an H200
search-methods|cub/search/methods|$cub|$googlenet|35 runs, 32 minutes on an H200
cub|cub|$cub|$googlenet|155 runs stored, 3.5 hours on an H200; the list has more
resnet50|cub/fair|$cub|$resnet50|48 runs; the 3 stored took 5 minutes on an H200"

stop() {
    echo "reproduce.sh: $*" >&2
    exit 2
}

say_needs() {
    local name list data weights takes file
    while IFS='|' read -r name list data weights takes; do
        printf '%-15s %s\n' "$name" "$takes"
        for file in "$data" ${weights:+"$weights"}; do
            if [ -e "$file" ]; then printf '%-15s   %s\n' '' "$file"; else printf '%-15s   %s is missing\n' '' "$file"; fi
        done
    done <<<"$tables"
    printf '%s\n' "research/README.md says where to get them."
}

out=reproduced dry_run=false
wanted=()
while [ $# -gt 0 ]; do
    case $1 in
    --list) say_needs && exit ;;
    --help | -h) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" && exit ;;
    --dry-run) dry_run=true ;;
    --out)
        [ $# -gt 1 ] || stop "--out wants a folder"
        out=$(at "$2")
        shift
        ;;
    --) shift && break ;;
    -*) stop "unknown option '$1'; options of kith reproduce come after --" ;;
    *)
        grep -q "^$1|" <<<"$tables" || stop "unknown table '$1'; there are: $(cut -d'|' -f1 <<<"$tables" | xargs)"
        wanted+=("$1")
        ;;
    esac
    shift
done
[ -x "$kith" ] || stop "no program at $kith; run make, or set KITH"

status=0 n_skipped=0
while IFS='|' read -r name list data weights takes; do
    [ ${#wanted[@]} -eq 0 ] || [[ " ${wanted[*]} " == *" $name "* ]] || continue
    command=("$kith" reproduce "research/recipes/$list/tables.yaml" --out "$out/$name" --runs "$out/runs/$name"
        --pictures "$out/pictures" --set "data.root=$data")
    [ -z "$weights" ] || command+=(--set "model.weights=$weights")
    case $name in search-*) command+=(--seeds 1) ;; esac
    # The page of Omniglot in this repository is written by hand, since it has PyTorch's seeds beside ours.
    [ "$name" != omniglot ] || [ ! research/results -ef "$out" ] || command+=(--page "$out/omniglot/page.md")
    command+=("$@")
    if $dry_run; then
        echo "${command[*]@Q}"
        continue
    fi
    for file in "$data" ${weights:+"$weights"}; do
        if [ -e "$file" ] || [[ " $* " == *" --table "* ]]; then continue; fi
        echo "reproduce.sh: $name is skipped: $file is missing (research/reproduce.sh --list says what it needs)" >&2
        n_skipped=$((n_skipped + 1))
        continue 2
    done
    echo "== $name: $takes"
    "${command[@]}" </dev/null || status=$?
    [ "$status" -le 1 ] || exit "$status"
done <<<"$tables"
[ "$n_skipped" -eq 0 ] || status=1
exit "$status"
