#!/bin/sh
# The bar chart of README.md: R@1 of unseen classes on CUB-200-2011, from the results in research/results/cub.
#
#     research/draw-chart.sh > docs/pictures/results.svg
#
# A bar is the mean of a row's seeds. test_readme checks that the picture is what this prints.
set -eu
cd "$(dirname "$0")/.."

# bars LABEL ROW LABEL ROW …: one line "LABEL|mean|seeds" per pair; ROW is the name of files in research/results/cub.
bars() {
    while [ $# -gt 1 ]; do
        cat "research/results/cub/$2"-seed[0-9].json | grep -o '"test": {"recall": {"1": [0-9.e-]*' |
            awk -v label="$1" '{ sum += $NF } END { printf "%s|%.1f|%d\n", label, 100 * sum / NR, NR }'
        shift 2
    done
}

untrained() {
    grep -o '"untrained": {"recall": {"1": [0-9.e-]*' research/results/cub/binomial-seed0.json | awk '{ printf "%.1f", 100 * $NF }'
}

{
    bars "N-pair, 10 x 10" npair-10x10 "  + density adaptivity" npair-density \
        "contrastive" contrastive "  + density adaptivity" contrastive-density \
        "binomial" binomial "  + energy confusion" binomial-confusion \
        "binomial, HORDE's way" binomial-own "  + HORDE" binomial-horde-own \
        "AM-softmax, JRD's way" amsoftmax-own "  + joint similarity" amsoftmax-jrd-own \
        "RAW + VTHM" raw-vthm "RAW + VTHM, MS's way" raw-vthm-own
} | awk -F'|' -v untrained="$(untrained)" '
    function x(v) { return 210 + (v - 44) * 30 }   # 44 to 60 percent
    { label[NR] = $1; mean[NR] = $2 }
    END {
        top = 58; bottom = top + 26 * NR
        print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 " bottom + 30 "\" font-family=\"sans-serif\" font-size=\"13\">"
        print "<style>text{fill:#444}.b{font-weight:bold}.g{stroke:#8886}.l{fill:#7b9cc9}.r{fill:#c8553d}" \
              ".u{stroke:#555}@media (prefers-color-scheme:dark){text{fill:#ccc}.u{stroke:#bbb}}</style>"
        print "<title>R@1 of unseen classes on CUB-200-2011</title>"
        print "<text class=\"b\" x=\"12\" y=\"20\">R@1 of unseen classes in percent: CUB-200-2011, GoogLeNet, mean of three seeds</text>"
        for (v = 45; v <= 60; v += 5)
            printf "<path class=\"g\" d=\"M%d %dV%d\"/><text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", x(v), top, bottom, x(v), bottom + 18, v
        for (i = 1; i <= NR; i++) {
            added = label[i] ~ /^ /
            sub(/^ */, "", label[i])
            y = top + 26 * (i - 1)
            printf "<text x=\"200\" y=\"%d\" text-anchor=\"end\">%s</text>", y + 18, label[i]
            printf "<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"18\"/>", added ? "r" : "l", x(untrained), y + 4, x(mean[i]) - x(untrained)
            printf "<text x=\"%.1f\" y=\"%d\">%.1f</text>\n", x(mean[i]) + 6, y + 18, mean[i]
        }
        printf "<path class=\"u\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\">the ImageNet network before training: %.1f</text>\n", x(untrained), top - 8, bottom, x(untrained) - 8, top - 14, untrained
        print "</svg>"
    }'
