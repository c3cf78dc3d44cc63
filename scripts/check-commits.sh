#!/bin/sh
# Fail when a commit's message is not laid out as CONTRIBUTING.md says:
#
#     scripts/check-commits.sh                    the commits since the last tag
#     scripts/check-commits.sh --message FILE     one message: what scripts/hooks/commit-msg asks
#
# The first line is "area: what it does" with one or more areas in small letters, at most 72 columns and no full stop; the second is
# blank. Git's own lines (Merge, Revert, fixup!) are let through in a hook, and merges are not looked at later. Whether the line is
# imperative, and whether a body is needed to say why, only a reader can tell. Commits older than this script keep the messages they have.
set -eu

check() { # MESSAGE's file, what it is called
    awk -v name="$2" '
        function wrong(text) { printf "%s: %s\n", name, text; n_wrong++ }
        function columns(text) { gsub(/[\200-\277]/, "", text); return length(text) }
        /^# -+ >8 -+$/ { exit }
        /^#/ { next }
        { n++ }
        n == 1 {
            if (/^(Merge|Revert) / || /^(fixup|squash|amend)! /) exit
            if (columns($0) > 72) wrong("the first line has " columns($0) " columns; wanted: at most 72. Put the rest into the body")
            word = "[a-z][a-z0-9_./-]*"
            if ($0 !~ "^" word "(, " word ")*: [^ ]")
                wrong("the first line is \"" $0 "\"; wanted: \"area: imperative line\", as in \"io: read rows of a .npy file\"")
            if (/\.$/) wrong("the first line ends with a full stop; wanted: none")
        }
        n == 2 && NF { wrong("the second line is \"" $0 "\"; wanted: a blank line before the body") }
        END {
            if (n == 0) wrong("the message is empty")
            exit n_wrong > 0
        }' "$1"
}
export LC_ALL=C

if [ "${1:-}" = --message ]; then
    check "$2" "commit message"
    exit
fi

cd "$(dirname "$0")/.."
if [ "$(git rev-parse --show-toplevel 2>/dev/null)" != "$(pwd -P)" ]; then
    echo "no repository here: messages of commits are not looked at"
    exit 0
fi
if [ "$(git rev-parse --is-shallow-repository)" = true ]; then
    echo "a shallow clone: messages of commits are not looked at"
    exit 0
fi
first=$(git log --diff-filter=A --format=%H -- scripts/check-commits.sh | tail -n 1)
[ -n "$first" ] || exit 0
tag=$(git describe --tags --abbrev=0 2>/dev/null || true)
message=$(mktemp)
trap 'rm -f "$message"' EXIT
status=0
for commit in $(git rev-list --no-merges HEAD "^$first^@" ${tag:+"^$tag"}); do
    git log -1 --format=%B "$commit" >"$message"
    check "$message" "$(git rev-parse --short "$commit")" || status=1
done
[ "$status" = 0 ] || echo "git rebase -i rewords a commit; git config core.hooksPath scripts/hooks asks at once"
exit "$status"
