# What doxygen reads instead of a header: comments become documentation, before a declaration or after a member, and
# functions that share a comment each get it. Each line of the header gives one `line` of output where possible.
function is_comment_end(line) { return line ~ /\*\/[ \t]*$/ }
{
    line = $0
    gsub(/@/, "\\@", line) # no command of doxygen's
    if (FNR == 1) sub(/^\/\* /, "/** \\file\n * ", line)
    else if (line ~ /^ *\/\* ----.*\*\/$/) line = ""
    else if (line ~ /[^ ].* \/\* / && line !~ /^[ \t]*\/?\*/) sub(/\/\* /, "/**< ", line)
    else if (line ~ /^ *\/\* /) { sub(/\/\* /, "/** ", line); doc = ""; in_doc = 1 }
    if (line ~ /^KITH_API/ && was_function) printf "%s\n", doc
    if (in_doc) doc = doc (doc == "" ? "" : "\n") line
    if (in_doc && is_comment_end(line)) in_doc = 0
    # The comment holds on for the declarations that follow it without a gap.
    is_function = (line ~ /^KITH_API/ || (is_function && line ~ /^  /))
    was_function = is_function
    print line
}
