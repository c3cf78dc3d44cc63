#!/bin/sh
# How well models find unseen classes without any training, on four kinds of images, and how fast they are.
#
#     research/general/judge.sh [-o OUT] [-n N] [NAME=]MODEL[@SIDE] …   R@1 of every model, then their speed; -n: N images of a class
#     research/general/judge.sh -s [-o OUT] [NAME=]MODEL[@SIDE] …    speed alone
#     research/general/judge.sh -t -o OUT NAME@SIDE …                only draw the table of what is in OUT
#
# MODEL is a file or a run; SIDE the side of its input in pixels (224). The first model is what the others are compared with. All
# models see the same views: photos with the shorter side 8/7 of SIDE, then the centre crop; drawings squashed to SIDE, because a crop
# cuts strokes. Fewer images of a class make the task another one: compare results of one N only. Results are files in OUT (judged): NAME.SET.json, and NAME.speed with the images per second of processor time on one
# thread. A result that is there is not made again.
# Environment: KITH, IMAGES (what layout.py wrote), CUB, OMNIGLOT, ROUNDS (3).
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
KITH=${KITH:-$here/build/kith} IMAGES=${IMAGES:-data/general} CUB=${CUB:-data/CUB_200_2011} OMNIGLOT=${OMNIGLOT:-data/omniglot}
ROUNDS=${ROUNDS:-3}
out=judged what=all most=1000000
sets='cub flowers caltech omniglot'

fail() {
    echo "judge.sh: $1" >&2
    exit 1
}

# name_of, file_of, side_of: the parts of [NAME=]MODEL[@SIDE].
side_of() {
    case $1 in *@*) echo "${1##*@}" ;; *) echo 224 ;; esac
}
file_of() {
    f=${1%@*}
    echo "${f#*=}"
}
name_of() {
    case $1 in *=*) echo "${1%%=*}" ;; *) basename "$(file_of "$1")" .safetensors ;; esac
}

# manifest SET: the judged images, at most $most of a class, as a CSV.
manifest() {
    case $1 in
    cub)
        awk '{ split($2, part, "/"); if (part[1] + 0 > 100) print $2 "," part[1] }' "$CUB/images.txt" | sed "s|^|$(cd "$CUB" && pwd)/images/|"
        ;;
    omniglot)
        (cd "$OMNIGLOT/images_evaluation" && find "$PWD" -name '*.png') | sort | awk -F/ '{ print $0 "," $(NF - 2) "_" $(NF - 1) }'
        ;;
    *) awk -F, '$3 == "test" { print $1 "," $2 }' "$IMAGES/$1.csv" | sed "s|^|$(cd "$IMAGES" && pwd)/|" ;;
    esac | awk -F, -v most="$most" 'BEGIN { print "path,label,split" } ++n[$2] <= most { print $0 ",test" }' > "$out/$1.csv.part"
    mv "$out/$1.csv.part" "$out/$1.csv"
}

# judge MODEL SET
judge() {
    name=$(name_of "$1") side=$(side_of "$1") result=$out/$(name_of "$1").$2.json
    [ ! -s "$result" ] || return 0
    resize=shorter$((side * 8 / 7))
    [ "$2" != omniglot ] || resize=squash$side
    echo "$name on $2" >&2
    "$KITH" eval "$(file_of "$1")" --data "$out/$2.csv" --dataset csv --split test --metrics recall --resize "$resize" --crop "$side" \
        --json > "$result.part" || fail "kith eval failed on $2"
    mv "$result.part" "$result"
}

# Processor seconds, user and system, of embedding STEPS batches of 8.
seconds() {
    { LC_ALL=C bash -c 'TIMEFORMAT="%U %S"; time "$@" > /dev/null 2>&1' time "$KITH" bench embed --weights "$(file_of "$1")" \
        --batch 8 --size "$(side_of "$1")" --threads 1 --steps "$2"; } 2>&1 | awk '{ print $1 + $2 }'
}

# One turn: a long run less a short one, so that what is done once does not count.
turn() {
    file=$(file_of "$1")
    [ ! -d "$file" ] || fail "$file is a run; speed wants its model.safetensors"
    short=$(seconds "$1" 2) long=$(seconds "$1" 12)
    echo "$short $long" | awk '{ printf "%.1f\n", 80 / ($2 - $1) }' >> "$out/$(name_of "$1").speed"
}

median() {
    sort -n "$1" | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# recall FILE: R@1 and its interval in percent.
recall() {
    tr -d ' \n' < "$1" | sed -n 's/^{"recall":{"1":\([0-9.e-]*\).*"intervals":{.*"recall":{"1":\[\([0-9.e-]*\),\([0-9.e-]*\)\].*/\1 \2 \3/p' |
        awk '{ printf "%.1f %.1f %.1f", 100 * $1, 100 * $2, 100 * $3 }'
}

table() {
    echo "| model, side | CUB-200-2011, 101 to 200 | Flowers-102, held out | Caltech-101, held out | Omniglot, evaluation | mean | of the first | images/s | of the first |"
    echo "|---|---|---|---|---|---|---|---|---|"
    first='' fast=''
    for model; do
        name=$(name_of "$model") line="$name, $(side_of "$model")" sum=''
        for set in $sets; do
            r=$out/$name.$set.json
            if [ -s "$r" ]; then
                # shellcheck disable=SC2046 # three numbers
                set -- $(recall "$r")
                line="$line | $1 ($2 to $3)" sum="$sum $1"
            else
                line="$line | "
            fi
        done
        mean=$(echo "$sum" | awk -v n="$(echo "$sets" | wc -w)" 'NF == n { for (i = 1; i <= NF; i++) s += $i; printf "%.2f", s / NF }')
        speed=''
        [ ! -s "$out/$name.speed" ] || speed=$(median "$out/$name.speed")
        first=${first:-$mean} fast=${fast:-$speed}
        echo "$line | $mean | $(echo "$mean $first" | awk 'NF == 2 { printf "%.3f", $1 / $2 }') | $speed | $(echo "$speed $fast" | awk 'NF == 2 { printf "%.2f", $1 / $2 }')" |
            sed 's/^/| /; s/$/ |/'
    done
}

while getopts o:n:sth option; do
    case $option in
    o) out=$OPTARG ;;
    n) most=$OPTARG ;;
    s) what=speed ;;
    t) what=table ;;
    *) sed -n '2,/^set -eu/{/^set -eu/d;s/^# \{0,1\}//;p;}' "$0" && exit 1 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || fail 'name a model: [NAME=]MODEL[@SIDE]'
[ $what = table ] || [ -x "$KITH" ] || fail "$KITH is not there; run make first, or set KITH"
mkdir -p "$out"
[ $what != all ] || for set in $sets; do
    case $set in cub) data=$CUB/images.txt ;; omniglot) data=$OMNIGLOT/images_evaluation ;; *) data=$IMAGES/$set.csv ;; esac
    [ -e "$data" ] || fail "$data is not there; set IMAGES, CUB and OMNIGLOT to where the images are"
    manifest "$set"
    for model; do judge "$model" "$set"; done
done
[ $what = table ] || {
    for model; do rm -f "$out/$(name_of "$model").speed"; done
    round=0
    while [ $((round += 1)) -le "$ROUNDS" ]; do
        for model; do turn "$model"; done
    done
}
table "$@"
