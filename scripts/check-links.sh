#!/bin/sh
# Fail when a relative link or picture of a Markdown file leads nowhere: check-links.sh [ROOT]
# Tracked files are read, or all where there is no git. Addresses (https:…), anchors of the same page and code are left out.
set -eu
cd "${1:-$(dirname "$0")/..}"
if [ -e .git ]; then git ls-files '*.md'; else find . -path ./build -prune -o -name '*.md' -print | sed 's,^\./,,'; fi | sort |
    while IFS= read -r page; do
        [ -f "$page" ] || continue
        awk '
            /^ *```/ { in_code = !in_code; next }
            in_code { next }
            {
                gsub(/`[^`]*`/, "")
                while (match($0, /\]\([^) ]+/)) {
                    print FNR, substr($0, RSTART + 2, RLENGTH - 2)
                    $0 = substr($0, RSTART + RLENGTH)
                }
            }' "$page" | while read -r line link; do
            case $link in
            *:* | '#'*) ;;
            *) [ -e "$(dirname "$page")/${link%%#*}" ] || echo "$page:$line: $link is not there" ;;
            esac
        done
    done | awk '{ print; n_wrong++ } END { exit n_wrong > 0 }'
