#!/bin/sh
# How often kith data --doctor is right where errors were planted, beside confident learning (docs/data.md).
#
#     bench/doctor.sh WORK [SEED [CUB [FLOWERS [CALTECH]]]]
#
# CUB: CUB-200-2011, of which classes 1 to 100 are taken. FLOWERS, CALTECH: folders of the classes of Flowers-102 and Caltech-101
# that `general` never saw (research/general/README.md lays them out). Odd ones out are drawn glyphs, Omniglot's characters
# (WORK/omniglot: a folder of its alphabets) and photos of another of the sets. WORK keeps what was planted and the vectors.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
work=${1:?usage: bench/doctor.sh WORK [SEED [CUB [FLOWERS [CALTECH]]]]}
seed=${2:-1}
cub=${3:-$root/../shared/data/CUB_200_2011} flowers=${4:-$work/../flowers} caltech=${5:-$work/../caltech}
plant=$root/build/bench/doctor_plant judge=$root/build/bench/doctor_judge
cmake --build build --target doctor_plant doctor_judge kith_program >/dev/null
mkdir -p "$work"
[ -d "$work/glyphs" ] || "$root/build/kith" synth "$work/glyphs" --classes 40 --images 10 --size 96 >/dev/null

# one NAME SET MOST_CLASSES OTHER
one() {
    [ -d "$2" ] || { echo "no $2: left out"; return 0; }
    folder=$work/$1-$seed
    characters=
    [ ! -d "$work/omniglot" ] || characters=$work/omniglot
    [ -f "$folder/planted.csv" ] || "$plant" "$2" "$folder" "$seed" "$3" "$work/glyphs" ${characters:+"$characters"} "$4"
    "$judge" "$folder" "$1"
}

one cub "$cub" 100 "$flowers"
one flowers "$flowers" 0 "$caltech"
one caltech "$caltech" 0 "$flowers"
