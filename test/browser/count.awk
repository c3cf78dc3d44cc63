# How many cases run.mjs has, from its files and without Node: awk -f count.awk *.mjs. run.mjs holds it against what it ran.
FNR == 1 || /^\];/ { n_sites = 1 }
/^export const tokenCases/ { n_sites = 2 } # with kith serve and with the stand-in
/^    name: / && opened == FNR - 1 { n += n_sites } # { name: '…', run }
/^ +'/ && opened == FNR - 1 { n++ }                 # ['…', run]
/^(  |    )[\[{]$/ { opened = FNR }
END { print n }
