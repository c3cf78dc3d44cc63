#!/usr/bin/env python3
"""Draw the lines of bench/search_growth as a picture: search_growth_plot.py LINES.tsv OUT.svg

Three panels over the number of rows, both axes in powers of ten: time of the build and of a query, and memory."""
import math
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, GAP = 300, 230, 58, 14, 34, 42, 8
FONT = 'font-family="sans-serif"'
PANELS = [
    ("build, seconds of processors", [("build_cpu_s", "build", "#1f6fb4")]),
    ("one query, ms", [("p50_ms", "median", "#1f6fb4"), ("p99_ms", "99 of 100", "#c8501e")]),
    ("memory, MiB", [("build_mib", "build, most", "#1f6fb4"), ("search_mib", "search", "#c8501e")]),
]


def read(path):
    lines = [line.rstrip("\n").split("\t") for line in open(path) if "\t" in line]
    names = next(line for line in lines if line[0] == "rows")
    rows = [dict(zip(names, line)) for line in lines if line[0] != "rows"]
    return sorted(rows, key=lambda row: int(row["rows"]))


def powers(values):
    least, most = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return least, max(most, least + 1)


def power_text(power):
    digits = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return {0: "1", 1: "10", -1: "0.1", -2: "0.01"}.get(power, "10" + digits)


def panel(rows, left, title, series):
    points = {key: [(int(r["rows"]), float(r[key])) for r in rows if float(r[key]) > 0] for key, _, _ in series}
    x0, x1 = powers([int(r["rows"]) for r in rows])
    y0, y1 = powers([y for line in points.values() for _, y in line])
    right, bottom = left + WIDTH - RIGHT, TOP + HEIGHT - BOTTOM

    def at(x, y):
        return (left + LEFT + (math.log10(x) - x0) / (x1 - x0) * (right - left - LEFT),
                bottom - (math.log10(y) - y0) / (y1 - y0) * (bottom - TOP))

    out = ['<text x="%d" y="20" font-size="13" font-weight="bold" fill="#222">%s</text>' % (left + LEFT, title)]
    for power in range(y0, y1 + 1):
        y = at(10 ** x0, 10.0 ** power)[1]
        out.append('<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" font-size="11" text-anchor="end" fill="#444">%s</text>'
                   % (left + LEFT, y, right, left + LEFT - 6, y + 4, power_text(power)))
    for power in range(x0, x1 + 1):
        x = at(10 ** power, 10.0 ** y0)[0]
        out.append('<path d="M%.1f %dv4" stroke="#444"/><text x="%.1f" y="%d" font-size="11" text-anchor="middle" fill="#444">%s</text>'
                   % (x, bottom, x, bottom + 18, power_text(power)))
    out.append('<text x="%d" y="%d" font-size="11" text-anchor="middle" fill="#444">rows</text>' % ((left + LEFT + right) / 2, bottom + 34))
    for n, (key, name, colour) in enumerate(series):
        places = [at(x, y) for x, y in points[key]]
        out.append('<polyline fill="none" stroke="%s" stroke-width="2" points="%s"/>' % (colour, " ".join("%.1f,%.1f" % p for p in places)))
        out += ['<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (x, y, colour) for x, y in places]
        if len(series) > 1:
            out.append('<text x="%d" y="%d" font-size="11" fill="%s">%s</text>' % (left + LEFT + 8, TOP + 14 + 14 * n, colour, name))
    return out


def main():
    lines, target = sys.argv[1:]
    rows = read(lines)
    width = len(PANELS) * (WIDTH + GAP)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" %s role="img">' % (width, TOP + HEIGHT, width, TOP + HEIGHT, FONT),
           "<title>An index as it grows: time of the build, time of a query, memory</title>",
           '<rect width="100%" height="100%" fill="white"/>']
    for i, (title, series) in enumerate(PANELS):
        out += panel(rows, i * (WIDTH + GAP), title, series)
    open(target, "w").write("\n".join(out + ["</svg>", ""]))


main()
