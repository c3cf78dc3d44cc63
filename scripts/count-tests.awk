# Count the tests in ctest's JUnit report. A CMocka program counts as the tests it ran, any other
# program, or one that ended before it could count, as one. Tests of another tier ("skipped: make test-browser runs these")
# are named before the counts.
function finish() {
    if (name == "") return
    if (state == "failed" && n_failed == 0) n_failed = 1
    if (n_passed + n_failed + n_skipped == 0) {
        if (state == "skipped") n_skipped = 1
        else n_passed = 1
    }
    if (tier != "") printf "%d tests of %s are skipped: make %s runs them\n", n_skipped, name, tier
    passed += n_passed; failed += n_failed; skipped += n_skipped
    name = ""
}
/^\t<testcase / {
    finish()
    name = $2
    gsub(/^name="|"$/, "", name)
    tier = ""
    state = /status="fail"/ ? "failed" : "passed"
    n_passed = n_failed = n_skipped = 0
    in_head = 1
}
# Only exit status 77 is a skip; "unable to find executable" and the like are failures.
in_head && /^\t\t<skipped / { state = /SKIP_RETURN_CODE/ ? "skipped" : "failed" }
/<system-out>/ { in_head = 0 }
/(^|<system-out>)skipped: make test-[a-z]+ runs these$/ { tier = $3 }
# CMocka 1.1.7 and newer write "[  SKIPPED ] tests: 2 test(s)".
function count_of(line) {
    sub(/ test\(s\).*/, "", line)
    sub(/.* /, "", line)
    return line + 0
}
/^\[  PASSED  \] ([a-z]+: )?[0-9]+ test\(s\)/ { n_passed += count_of($0) }
/^\[  FAILED  \] ([a-z]+: )?[0-9]+ test\(s\)/ { n_failed += count_of($0) }
/^\[  SKIPPED \] ([a-z]+: )?[0-9]+ test\(s\)/ { n_skipped += count_of($0) }
END {
    finish()
    printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
    exit failed > 0
}
