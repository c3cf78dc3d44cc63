# What doxygen reads instead of a page: its own commands begin with @ and \, which mean nothing in our pages; links to a
# heading of the same page become plain text, since it names headings otherwise; and every page has a name of its own.
function plain_links(text,    before, link, end) {
    while (match(text, /\[[^]]*\]\(#[^)]*\)/)) {
        before = substr(text, 1, RSTART - 1)
        link = substr(text, RSTART + 1, RLENGTH - 1)
        end = substr(text, RSTART + RLENGTH)
        sub(/\]\(#[^)]*\)$/, "", link)
        text = before link end
    }
    return text
}
/^```/ { in_code = !in_code }
{
    line = $0
    if (!in_code) {
        line = plain_links(line)
        n = split(line, part, "`")
        line = ""
        for (i = 1; i <= n; i++) {
            if (i % 2) gsub(/[@\\]/, "\\\\&", part[i])
            line = line (i > 1 ? "`" : "") part[i]
        }
    }
    if (FNR == 1 && line ~ /^# / && FILENAME ~ /\/(docs|examples|research)\//) {
        name = FILENAME
        sub(/^.*\/(docs|examples|research)\//, "", name)
        before = substr(FILENAME, 1, length(FILENAME) - length(name))
        if (match(before, /(examples|research)\/$/)) name = substr(before, RSTART) name
        gsub(/[^A-Za-z0-9]/, "_", name)
        line = line " {#page_" name "}"
    }
    if (FNR == 1 && FILENAME ~ /(^|\/)README\.md$/ && line !~ /\{#/) line = line " {#mainpage}"
    print line
}
