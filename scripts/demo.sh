#!/bin/sh
# make demo: kith makes a data set, trains a small network on half of its classes, judges it on the other half,
# writes a report, and searches the other half with one of its images; last, the model that comes with kith searches. demo.sh [FOLDER [OPTION…]]: everything goes to FOLDER (build/demo), which is made anew;
# options are for kith train. For slow machines: KITH_DEMO_CLASSES, fewer classes than 600 (then set data.train_classes, too),
# KITH_DEMO_FEW, fewer classes of the last search than 40, and KITH_DEMO_SIZE, the side of its images (empty: the model's own).
set -eu
cd "$(dirname "$0")/.."
folder=${1:-build/demo}
[ $# -eq 0 ] || shift
# Threads that wait must not spin: a laptop has other things to do.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
say() { echo "\$ $*"; "$@"; }
# recall PART FILE: the R@1 of a part of a JSON file, in per cent; without a PART the first there is.
recall() { grep -o "$1\"recall\": {\"1\": [0-9.e-]*" "$2" | head -n 1 | awk '{ printf "%.1f", 100 * $NF }'; }

rm -rf "$folder"
mkdir -p "$folder"
began=$(date +%s)
say build/kith synth --classes "${KITH_DEMO_CLASSES:-600}" "$folder/glyphs"
echo
say build/kith train recipes/demo.yaml --set "data.root=$folder/glyphs" --out "$folder/run" "$@"
echo
echo "# What any embedding should beat: cosine similarity of the pixels, on the same test images."
say build/examples/pixels "$folder/run/recipe.yaml" "$folder/pixels.npy" "$folder/labels.npy"
say build/kith eval --embedding "$folder/pixels.npy" --labels "$folder/labels.npy" --metrics retrieval \
    --bootstrap 0 --json >"$folder/pixels.out"
grep -v '^{' "$folder/pixels.out"
grep '^{' "$folder/pixels.out" >"$folder/pixels.json"
echo
echo "Images of classes never trained on whose nearest neighbour is of their class:"
echo "  by pixels            $(recall '' "$folder/pixels.json") %"
echo "  untrained network    $(recall '"untrained": {' "$folder/run/result.json") %"
echo "  trained network      $(recall '"test": {' "$folder/run/result.json") %"
echo
echo "# An index of the images of those classes, and the ones most similar to one of them."
say build/kith index "$folder/run/recipe.yaml" --split test --model "$folder/run" -o "$folder/glyphs.kith"
query=$(find "$folder/glyphs" -name 00007.png | LC_ALL=C sort | tail -n 1)
say build/kith search "$folder/glyphs.kith" "$query" -k 8 --html "$folder/hits.html"
echo
echo "# The model that comes with kith, which was made for photos, on a small folder: no training, no index to make or keep."
say build/kith synth --classes "${KITH_DEMO_FEW:-40}" --images 5 "$folder/few"
say build/kith search "$folder/few" "$folder/few/glyph00003/00001.png" -k 3 --cache "$folder/cache" \
    ${KITH_DEMO_SIZE:+--size "$KITH_DEMO_SIZE"}
echo
echo "That took $(($(date +%s) - began)) s. The report: $folder/run/report.html, the hits: $folder/hits.html"
