# Cuts the code out of pages of the manual: awk -v root=TREE -v out=FOLDER -f cut.awk PAGE…
#
# A block of code stands behind a line that says where it belongs:
#   <!-- file: PATH -->                 a new file
#   <!-- row: PATH -->                  lines at the end of a file of the tree
#   <!-- into: PATH before: TEXT -->    lines before the one line of such a file that begins with TEXT
# Files that are new or changed are written into FOLDER, where they have the same paths, and their paths are printed. A file that
# is already there with the same text stays as it is, so that nothing is built again.
function fail(why) {
    printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"
    has_failed = 1
    exit 1
}
function text_of(path,    line, text) {
    text = ""
    while ((getline line < path) > 0) text = text line "\n"
    close(path)
    return text
}
# The text of a file of the tree, with what earlier blocks have put into it.
function changed(path) {
    if (!(path in text)) {
        text[path] = text_of(root "/" path)
        if (text[path] == "") fail("there is no " path " to put a block into")
        order[++n] = path
    }
    return text[path]
}
function put(    i, n_lines, line, result, n_found) {
    if (kind == "file") {
        if (path in text) fail(path " is written twice")
        if (text_of(root "/" path) != "") fail("the tree has a file " path)
        text[path] = block
        order[++n] = path
    } else if (kind == "row") {
        result = changed(path) block
        text[path] = result
    } else {
        n_lines = split(changed(path), line, "\n")
        result = ""
        for (i = 1; i < n_lines; i++) {
            if (index(line[i], before) == 1) {
                n_found++
                result = result block
            }
            result = result line[i] "\n"
        }
        if (n_found != 1) fail(n_found + 0 " lines of " path " begin with '" before "'")
        text[path] = result
    }
    kind = ""
}
/^<!-- (file|row|into): .* -->$/ {
    if (kind != "") fail("no block of code follows the line before")
    kind = $2
    sub(/:$/, "", kind)
    path = $3
    before = $0
    if (kind == "into" && !sub(/^.* before: /, "", before)) fail("before which line?")
    sub(/ -->$/, "", before)
    next
}
/^```/ && is_in { is_in = 0; put(); next }
/^```/ && kind != "" { is_in = 1; block = ""; next }
is_in { block = block $0 "\n" }
END {
    if (has_failed) exit 1
    if (kind != "") fail("the last block is not complete")
    for (i = 1; i <= n; i++) {
        path = out "/" order[i]
        if (text_of(path) != text[order[i]]) {
            folder = path
            sub(/\/[^\/]*$/, "", folder)
            if (system("mkdir -p '" folder "'") != 0) exit 1
            printf "%s", text[order[i]] > path
            close(path)
        }
        print order[i]
    }
}
