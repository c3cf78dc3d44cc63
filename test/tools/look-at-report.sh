#!/bin/sh
# Pictures of a report as a browser shows it: look-at-report.sh REPORT.html OUT-PREFIX
# At 1280 and 400 pixels, light and dark; fails when the page writes to the console. Wants chromium, which
# nothing else here needs.
set -eu
report=$(realpath "$1")
out=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
shot() { # NAME WIDTH HEIGHT [FLAGS]
    name=$1 width=$2 height=$3
    shift 3
    # A frame, because a window has a least width that is above 400.
    printf '<!DOCTYPE html><style>body{margin:0}iframe{border:0;width:%spx;height:%spx}</style><iframe src="file://%s"></iframe>' \
        "$width" "$height" "$report" >"$work/frame.html"
    chromium --headless=new --no-sandbox --disable-gpu --hide-scrollbars --enable-logging=stderr \
        --user-data-dir="$work/profile" --window-size="$width,$height" --virtual-time-budget=4000 \
        --screenshot="$out-$name.png" "$@" "file://$work/frame.html" >"$work/log" 2>&1
    if grep -F CONSOLE "$work/log"; then
        echo "$name: the page wrote to the console" >&2
        exit 1
    fi
    echo "$out-$name.png"
}
shot 1280 1280 "${HEIGHT_1280:-6500}"
shot 400 400 "${HEIGHT_400:-10500}"
shot 1280-dark 1280 "${HEIGHT_1280:-6500}" --blink-settings=preferredColorScheme=0

# The read-outs: a pointer over the first chart writes a step and a value below it.
sed 's|</body>|<script>(function(){var s=document.querySelector("svg.chart"),r=s.getBoundingClientRect();s.dispatchEvent(new PointerEvent("pointermove",{clientX:r.left+r.width/2,clientY:r.top+5}))})()</script></body>|' \
    "$report" >"$work/pointed.html"
chromium --headless=new --no-sandbox --disable-gpu --user-data-dir="$work/profile" --virtual-time-budget=4000 \
    --dump-dom "file://$work/pointed.html" 2>/dev/null >"$work/dom"
if ! grep -o '<p class="readout">step [^<]*' "$work/dom"; then
    echo "no read-out under the pointer" >&2
    exit 1
fi
