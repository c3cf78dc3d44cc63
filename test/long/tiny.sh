#!/bin/bash
# Sourced: a folder with a little of everything kith reads, and the commands that read it.
#   tiny_make KITH FOLDER    makes it (nothing random but what kith seeds itself)
#   tiny_commands            prints one line per command: NAME|FILES IT WRITES|ARGUMENTS
# Commands run inside the folder. Of a folder that is written, the named file in it counts.
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1

# A run that takes a minute of CPU time hangs, and so does one that waits for minutes; the clock alone would take a
# busy machine for a hang.
export TINY_SECONDS=300
tiny_limits() { ulimit -t 60; }

tiny_recipe() {
    cat <<'EOF'
data: {root: tiny, validation: 0.3}
input: {resize: squash20, crop: 16, channels: 1}
model: {backbone: convnet4, embedding: 4, settings: {width: 4}}
batch: {classes: 2, images: 2}
objective: {loss: binomial}
optim: {lr: 3e-3, steps: 6}
eval: {every: 3}
checkpoint: {every: 2}
loader: {workers: 1}
threads: 1
log_every: 2
EOF
}

# The bytes of these numbers.
tiny_bytes() {
    local value
    for value; do printf '%b' "\\0$(printf %o "$value")"; done
}

# Eight images of 2 x 2 pixels in four classes.
tiny_idx() {
    local i
    {
        tiny_bytes 0 0 8 3 0 0 0 8 0 0 0 2 0 0 0 2
        for i in 0 1 2 3 4 5 6 7; do tiny_bytes $((i * 9)) $((i * 7)) $((i * 5)) $((i * 3)); done
    } | gzip -9n >idx/train-images-idx3-ubyte.gz
    tiny_bytes 0 0 8 1 0 0 0 8 0 1 2 3 0 1 2 3 >idx/train-labels-idx1-ubyte
}

tiny_make() {
    local kith=$1 corpus
    corpus=$(cd "$(dirname "${BASH_SOURCE[0]}")/../corpus" && pwd)
    (
        set -e
        mkdir -p "$2" && cd "$2"
        mkdir -p idx cars/car_ims list
        "$kith" synth tiny --classes 10 --images 3 --size 16 >/dev/null 2>&1
        tiny_idx
        cp "$corpus/mat/ok_matio_wide.mat" cars/cars_annos.mat
        for i in 1 2 3; do cp "$corpus/image/ok_rgb.jpg" cars/car_ims/00000$i.jpg; done
        { echo path,label && for f in tiny/*/*.png; do echo "$f,$(basename "$(dirname "$f")")"; done; } >all.csv
        tiny_recipe >tiny.yaml
        cp tiny.yaml list/plain.yaml
        cat >list/tables.yaml <<'EOF'
title: Tiny
order:
  - {groups: [base], seeds: 1}
tables: [{name: all, title: All}]
rows:
  - {name: plain, group: base, table: all}
EOF
        "$kith" train tiny.yaml --out run -q >/dev/null
        "$kith" eval run --data tiny --bootstrap 10 --save-embedding e.npy --save-labels y.npy --json >a.json
        "$kith" eval -e e.npy -y y.npy --bootstrap 10 --json >b.json
        "$kith" embed run tiny -o all.npy >/dev/null 2>&1
        cp -r run half
        rm -f half/model.safetensors half/result.json half/report.html half/checkpoints/*6.safetensors
    )
}

tiny_commands() {
    cat <<'EOF'
list||list losses
data||data tiny --check
data_split|split.csv|data tiny --validation 0.3 -o split.csv
data_cars||data cars
data_idx||data idx
data_csv||data all.csv
data_recipe||data tiny.yaml
synth|drawn/glyph00001/00001.png|synth drawn --classes 2 --images 2 --size 16
embed|out.npy out.paths.txt out.labels.txt|embed run tiny -o out.npy
embed_save|saved.safetensors|embed run tiny/glyph00001 -o out.npy --save saved.safetensors
eval|out.npy labels.npy|eval run --data tiny --bootstrap 10 --save-embedding out.npy --save-labels labels.npy
eval_npy||eval -e e.npy -y y.npy --bootstrap 10
compare||eval --compare a.json b.json
train|new/model.safetensors|train tiny.yaml --out new -q
resume|half/model.safetensors|train half --resume -q
report|page.html|report run -o page.html
map|map.svg places.npy|map e.npy -y y.npy --perplexity 4 --iterations 20 -o map.svg --save places.npy
map_images|map.svg|map all.npy --images all.paths.txt --perplexity 4 --iterations 20 -o map.svg
objective|grads/grad_embedding.npy|objective tiny.yaml --embedding e.npy --labels y.npy -o grads
plot|plot.svg|objective tiny.yaml --plot plot.svg
reproduce|page.md|reproduce list/tables.yaml --out results --runs runs --page page.md --notes notes.md --pictures pictures -s eval.select=last -s eval.watch_test=true -q
EOF
}
