#!/bin/sh
# Pack a folder into parts of a limited size, and put them together again.
#
#     scripts/split-folder.sh pack FOLDER OUT [MIB]     OUT.part00, OUT.part01 … of at most MIB (44) each
#     scripts/split-folder.sh unpack OUT FOLDER         all parts that are there, into FOLDER
set -eu
case "${1:-}" in
pack)
    [ $# -ge 3 ] || { sed -n '2,5p' "$0" >&2; exit 2; }
    rm -f "$3".part*
    tar -C "$(dirname "$2")" -chf - "$(basename "$2")" | split -b "${4:-44}m" -d -a 2 - "$3.part"
    ls -l "$3".part*
    ;;
unpack)
    [ $# -eq 3 ] || { sed -n '2,5p' "$0" >&2; exit 2; }
    mkdir -p "$3"
    cat "$2".part* | tar -C "$3" -xf -
    ;;
*)
    sed -n '2,5p' "$0" >&2
    exit 2
    ;;
esac
