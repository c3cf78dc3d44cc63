/* The scripts that guard the house: each must pass on what is right and name what is wrong. */
#include <stdio.h>
#include <string.h>

#include "support/testing.h"

static char output[65536];

#define run(...) testing_run(output, sizeof output, __VA_ARGS__)

static void assert_holds(const char *text) {
    if (!strstr(output, text)) fail_msg("no '%s' in: %s", text, output);
}

static void assert_runs(int status) {
    if (status != 0) fail_msg("exit status %d: %s", status, output);
}

/* A copy of include/ and src/ to break. */
static const char *make_copy(const char *name) {
    static char copy[128];
    snprintf(copy, sizeof copy, "%s/%s", testing_folder(), name);
    assert_runs(
        run("mkdir %s && cp -r %s/include %s/src %s", copy, testing_source(), testing_source(), copy));
    return copy;
}

static void test_layers_hold(void **state) {
    (void)state;
    assert_runs(run("%s/scripts/check-layers.sh", testing_source()));
    assert_string_equal(output, "");
}

static void test_layer_violations_are_named(void **state) {
    (void)state;
    static const struct {
        const char *file, *include, *wanted;
    } rows[] = {
        {"src/base/new.c", "nn/graph.h", "src/base/new.c:1: base may not include nn/graph.h"},
        {"src/base/new.h", "io/npy.h", "src/base/new.h:1: base may not include io/npy.h"},
        {"src/nn/new.c", "backend/cpu/cpu.h", "src/nn/new.c:1: nn may not include backend/cpu/cpu.h"},
        {"src/backend/ref/new.c", "backend/cpu/cpu.h",
         "src/backend/ref/new.c:1: backend/ref may not include backend/cpu/cpu.h"},
        {"src/backend/cuda/conv/new.c", "nn/graph.h",
         "src/backend/cuda/conv/new.c:1: backend/cuda may not include nn/graph.h"},
        {"src/cli/new.c", "base/error.h", "src/cli/new.c:1: cli may not include base/error.h"},
        {"src/cli/new.c", "serve/serve.h", "src/cli/new.c:1: cli may not include serve/serve.h"},
        {"src/cli/serve.c", "serve/server.h", "src/cli/serve.c:1: cli/serve may not include serve/server.h"},
        {"src/cli/serve.c", "base/error.h", "src/cli/serve.c:1: cli/serve may not include base/error.h"},
        {"src/serve/http/new.c", "serve/search/catalog.h",
         "src/serve/http/new.c:1: serve/http may not include serve/search/catalog.h"},
        {"src/serve/search/new.c", "serve/routes/route.h",
         "src/serve/search/new.c:1: serve/search may not include serve/routes/route.h"},
        {"src/judge/new.c", "train/loop.h", "src/judge/new.c:1: judge may not include train/loop.h"},
        {"src/base/new.c", "nowhere/x.h", "src/base/new.c:1: base may not include nowhere/x.h"},
        {"include/kith/new.h", "base/error.h",
         "include/kith/new.h:1: a public header may not include base/error.h"},
        {"src/nowhere/new.c", "base/error.h", "src/nowhere/new.c:1: this folder is not in src/layers.txt"},
        {"src/objective/loss/new.c", "objective/loss/new.cuh",
         "src/objective/loss/new.c:1: objective may not include objective/loss/new.cuh"},
        {"src/objective/reg/new.c", "backend/cuda/gemm.h",
         "src/objective/reg/new.c:1: objective may not include backend/cuda/gemm.h"},
        {"src/objective/loss/new.cu", "nn/graph.h",
         "src/objective/loss/new.cu:1: objective/cuda may not include nn/graph.h"},
        {"src/base/new.cuh", "io/npy.h", "src/base/new.cuh:1: base may not include io/npy.h"},
    };
    const char *copy = make_copy("violations");
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        assert_runs(run("cd %s && mkdir -p \"$(dirname %s)\" && echo '#include \"%s\"' > %s", copy,
                        rows[i].file, rows[i].include, rows[i].file));
        assert_int_not_equal(run("%s/scripts/check-layers.sh %s", testing_source(), copy), 0);
        assert_holds(rows[i].wanted);
        assert_runs(run("rm %s/%s", copy, rows[i].file));
    }
}

static void test_includes_inside_functions_are_named(void **state) {
    (void)state;
    const char *copy = make_copy("inside");
    assert_runs(
        run("cd %s && printf 'int f(void) {\\n    g();\\n#include \"base/text.h\"\\n    return 0;\\n}\\n' > "
            "src/base/new.c",
            copy));
    assert_int_not_equal(run("%s/scripts/check-layers.sh %s", testing_source(), copy), 0);
    assert_holds("src/base/new.c:3: an include inside a function");
}

static void test_layers_reach_down(void **state) {
    (void)state;
    static const struct {
        const char *file, *include;
    } rows[] = {
        {"src/judge/new.c", "base/error.h"}, /* by way of knn */
        {"src/backend/cpu/new.c", "backend/cpu/cpu.h"},
        {"src/backend/cuda/conv/new.c", "backend/cuda/gemm/gemm.h"}, /* rooms of one layer */
        {"src/nn/op/new.c", "nn/graph.h"},
        {"src/backend/new.c", "backend/cpu/cpu.h"},
        {"src/api/new.c", "nn/graph.h"},
        {"src/objective/loss/new.c", "objective/pair/pair.h"},
        {"src/objective/loss/new.cu", "backend/cuda/number.cuh"}, /* the device part of its layer */
        {"src/objective/loss/other.cuh", "objective/loss/new.cuh"},
        {"src/cli/new.c", "kith/array.h"},
        {"src/cli/other.c", "cli/cli.h"},
        {"src/cli/serve.c", "serve/serve.h"}, /* a file with a row of its own */
        {"src/base/new.c", "here.h"},
    };
    const char *copy = make_copy("good");
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        assert_runs(run("cd %s && mkdir -p \"$(dirname %s)\" && echo '#include \"%s\"' > %s", copy,
                        rows[i].file, rows[i].include, rows[i].file));
        assert_runs(run("%s/scripts/check-layers.sh %s", testing_source(), copy));
    }
}

/* By the symbols of what was built: nothing is wrong now, and with a stricter table something is. */
static void test_layers_hold_in_symbols(void **state) {
    (void)state;
    assert_runs(run("%s/scripts/check-symbols.sh \"$(dirname %s)\"", testing_source(), testing_program()));
    assert_string_equal(output, "");
    assert_runs(
        run("sed 's/^net .*/net nn/' %s/src/layers.txt > %s/layers.txt", testing_source(), testing_folder()));
    assert_int_not_equal(run("%s/scripts/check-symbols.sh \"$(dirname %s)\" %s/layers.txt", testing_source(),
                             testing_program(), testing_folder()),
                         0);
    assert_holds("net may not call kith_tensors_open of src/io/tensors_read.c");
}

/* A branch on who keeps an index needs the header of a store or its name. */
static void test_stores_are_named_in_their_rooms_alone(void **state) {
    (void)state;
    static const struct {
        const char *file, *line;
        bool is_wrong;
    } rows[] = {
        {"src/search/new.c", "#include \"search/remote/remote.h\"", true},
        {"src/search/new.h", "#include \"search/local/local.h\"", true},
        {"src/search/new.c", "if (index->store->type == &ki_remote_store) return;", true},
        {"src/serve/new.c", "const ki_remote *r = store;", true},
        {"src/api/new.c", "ki_local_of(store)->writer->large_rows = 1;", true},
        {"src/search/new.c", "return index->store->type->check(index->store, o, ret_bytes, err);", false},
        {"src/search/remote/new.c", "#include \"search/remote/remote.h\"", false},
        {"src/search/local/new.c", "const ki_local *l = ki_local_of(store);", false},
    };
    const char *copy = make_copy("stores");
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        assert_runs(run("cd %s && echo '%s' > %s", copy, rows[i].line, rows[i].file));
        const int status = run("%s/scripts/check-names.sh %s", testing_source(), copy);
        if ((status != 0) != rows[i].is_wrong) fail_msg("%s: %d, %s", rows[i].line, status, output);
        if (rows[i].is_wrong) assert_holds(rows[i].line);
        assert_runs(run("rm %s/%s", copy, rows[i].file));
    }
}

static void test_methods_are_named_in_their_layer_alone(void **state) {
    (void)state;
    assert_runs(run("%s/scripts/check-names.sh", testing_source()));
    assert_string_equal(output, "");
}

static void test_names_of_methods_are_found(void **state) {
    (void)state;
    static const struct {
        const char *line, *wanted; /* wanted NULL: let through */
    } rows[] = {
        {"if (strcmp(name, \"raw\") == 0) x();", "src/train/new.c:1: names the method raw"},
        {"    get(o, \"density.d0\");", "src/train/new.c:1: names the method density"},
        {"    ki_density_measure(x);", "src/train/new.c:1: names the method density"},
        {"extern const ki_loss ki_loss_margin;", "src/train/new.c:1: names the method margin"},
        {"    sizes.horde_orders = 3;", "src/train/new.c:1: names the method horde"},
        {"    hint(\"try miner semihard\");", "src/train/new.c:1: names the method semihard"},
        {"#include \"objective/reg/horde.h\"", "src/train/new.c:1: includes the header of the method horde"},
        {"#  include \"objective/proxy/amsoftmax.h\" /* its settings */",
         "src/train/new.c:1: includes the header of the method amsoftmax"},
        {"#include \"objective/reg/reg.h\"", NULL},
        {"#include \"objective/reg/moments.h\"", NULL},
        {"/* HORDE Table 1: horde, \"vthm\" */", NULL},
        {"    choose(\"all\", raw_bytes, margin);", NULL},
        {"    const double hard_limit = entropy(x);", NULL},
    };
    const char *copy = make_copy("names");
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        assert_runs(run("cd %s && cat > src/train/new.c <<'END'\n%s\nEND\n", copy, rows[i].line));
        const int status = run("%s/scripts/check-names.sh %s", testing_source(), copy);
        if (!rows[i].wanted) {
            assert_runs(status);
            continue;
        }
        assert_int_not_equal(status, 0);
        assert_holds(rows[i].wanted);
    }
}

static void test_no_banned_calls(void **state) {
    (void)state;
    assert_runs(run("%s/scripts/check-banned.sh", testing_source()));
}

static void test_banned_calls_are_named(void **state) {
    (void)state;
    static const struct {
        const char *file, *line, *wanted;
    } rows[] = {
        {"src/base/new.c", "    strcpy(a, b);", "src/base/new.c:1: strcpy has no bound"},
        {"src/cli/new.c", "    n = atoi(text);", "src/cli/new.c:1: atoi cannot fail"},
        {"src/nn/new.c", "    p = malloc(9); /* why */", "src/nn/new.c:1: malloc is not counted"},
        {"src/base/alloc.h", "static void f(void *p) { free(p); }",
         "src/base/alloc.h:1: free is not counted"},
        {"src/io/new.c", "    /* x */ printf (\"y\");", "src/io/new.c:1: printf prints"},
        {"src/io/new.c", "    fprintf(stderr, 0);", "src/io/new.c:1: stderr prints"},
        {"src/io/new.c", "    if (x) exit(1);", "src/io/new.c:1: exit ends the process"},
        {"src/io/new.c", "    snprintf(s, n, \"%g\", x);", "src/io/new.c:1: snprintf follows the locale"},
        {"src/io/new.c", "    x = strtod(s, &end);", "src/io/new.c:1: strtod follows the locale"},
        {"src/data/new.c", "    return rand() % 6;", "src/data/new.c:1: rand is hidden state"},
        {"src/knn/cuda/new.cu", "    printf(\"%d\", i);", "src/knn/cuda/new.cu:1: printf prints"},
        {"src/backend/cuda/new.cuh", "    assert(i < n);",
         "src/backend/cuda/new.cuh:1: assert ends the process"},
    };
    const char *copy = make_copy("banned");
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        assert_runs(run("cd %s && mkdir -p \"$(dirname %s)\" && cat > %s <<'END'\n%s\nEND\n", copy,
                        rows[i].file, rows[i].file, rows[i].line));
        assert_int_not_equal(run("%s/scripts/check-banned.sh %s", testing_source(), copy), 0);
        assert_holds(rows[i].wanted);
        assert_runs(run("rm %s/%s", copy, rows[i].file));
    }
}

static void test_what_only_looks_banned(void **state) {
    (void)state;
    static const char *const lines[] = {
        "/* malloc(1) in a comment */",
        "/* opened\n printf(\"x\"); closed */",
        "const char *s = \"free(x)\";",
        "t->free(t);",
        "ki_free(p), json_free(q), my_printf(1);",
        "char quote = '\"'; ki_free(p); /* free(p) */",
        "ki_snprintf(buf, sizeof buf, \"%d\", 1);",
        "// exit(1)",
    };
    const char *copy = make_copy("looks");
    for (size_t i = 0; i < N_ROWS(lines); i++) {
        assert_runs(run("cd %s && cat > src/base/new.c <<'END'\n%s\nEND\n", copy, lines[i]));
        assert_runs(run("%s/scripts/check-banned.sh %s", testing_source(), copy));
    }
}

static void test_types_and_constants_are_defined_once(void **state) {
    (void)state;
    assert_runs(run("%s/scripts/check-definitions.sh", testing_source()));
    assert_string_equal(output, "");
}

/* A tree with a few types and constants. */
static const char *make_definitions(const char *name) {
    static const char base[] =
        "typedef struct ki_body {\n    int n;\n} ki_body;\n"
        "typedef struct ki_opaque ki_opaque;\nstruct ki_opaque { int n; };\n"
        "typedef enum ki_kind { KI_A, KI_B } ki_kind;\n"
        "typedef int (*ki_call_fn)(void *, int (*)(int));\n"
        "typedef kith_status ki_body_fn(int);\ntypedef unsigned ki_four[4];\n"
        "#define KI_MOST 3\n#define KI_ARGS(a, b) a b\nenum { KITH_LIMIT = 1 };\n";
    static char tree[128];
    snprintf(tree, sizeof tree, "%s/%s", testing_folder(), name);
    assert_runs(run("mkdir -p %s/include %s/src/base %s/src/map && cat > %s/src/base/base.h <<'END'\n%sEND\n",
                    tree, tree, tree, tree, base));
    return tree;
}

static void test_types_defined_twice_are_named(void **state) {
    (void)state;
    static const struct {
        const char *name, *text;
    } rows[] = {
        {"ki_body", "typedef struct ki_body {\n    int m;\n} ki_body;"},
        {"ki_body", "typedef union {\n    struct { int m; } n;\n} ki_body;"},
        {"ki_opaque", "struct ki_opaque\n{ int n; };"},
        {"ki_body", "template <typename T>\nstruct ki_body { T n; };"},
        {"ki_kind", "enum ki_kind { A };"},
        {"ki_call_fn", "typedef int ki_call_fn(void);"},
        {"ki_body_fn", "typedef int (*ki_body_fn)(int);"},
        {"ki_four", "typedef int ki_four;"},
    };
    const char *tree = make_definitions("types");
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char wanted[128];
        snprintf(wanted, sizeof wanted, "src/map/new.cuh: %s is also defined in src/base/base.h\n",
                 rows[i].name);
        assert_runs(run("cd %s && cat > src/map/new.cuh <<'END'\n%s\nEND\n", tree, rows[i].text));
        assert_int_not_equal(run("%s/scripts/check-definitions.sh %s", testing_source(), tree), 0);
        assert_string_equal(output, wanted);
    }
}

static void test_constants_defined_twice_are_named(void **state) {
    (void)state;
    static const struct {
        const char *name, *text;
    } rows[] = {
        {"KI_A", "enum { KI_A };"},
        {"KI_B", "typedef enum other {\n    OWN = (1, 2), /* KI_A */\n    KI_B = 2,\n} other;"},
        {"KI_A", "#define KI_A 7"},
        {"KI_MOST", "#  define KI_MOST"},
        {"KI_MOST", "enum { OWN = KI_A, KI_MOST = KI_B };"},
        {"KI_ARGS", "#define KI_ARGS(x) \\\n    x"},
        {"KITH_LIMIT", "static const enum { KITH_LIMIT } one;"},
    };
    const char *tree = make_definitions("constants");
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char wanted[128];
        snprintf(wanted, sizeof wanted, "src/map/new.c: %s is also defined in src/base/base.h\n",
                 rows[i].name);
        assert_runs(run("cd %s && cat > src/map/new.c <<'END'\n%s\nEND\n", tree, rows[i].text));
        assert_int_not_equal(run("%s/scripts/check-definitions.sh %s", testing_source(), tree), 0);
        assert_string_equal(output, wanted);
    }
}

static void test_what_only_looks_defined_twice(void **state) {
    (void)state;
    static const char *const texts[] = {
        "typedef struct ki_body ki_body;",
        "struct ki_body *find(struct ki_body *b);",
        "/* struct ki_body { } */",
        "const char *s = \"struct ki_body {\";",
        "typedef ki_body (*local_fn)(int);",
        "typedef ki_body local_body_fn(int);",
        "static struct ki_body b = {0};",
        "#define X struct ki_body {",
        "enum { OWN = KI_A, MORE = F(1, KI_B) };",
        "/* enum { KI_A }; */ // #define KI_A",
        "#define OWN KI_A\n#undef KI_A\n#ifdef KI_A\n#endif",
        "#define OWN \\\n#define KI_A",
        "enum own { KI_OWN, KI_OWN_A };\n#ifdef OWN\n#define KI_TWICE 1\n#else\n#define KI_TWICE 2\n#endif",
        "enum ki_kind kind_of(enum ki_kind a) { return KI_A, KI_B; }",
    };
    const char *tree = make_definitions("one_type");
    for (size_t i = 0; i < N_ROWS(texts); i++) {
        assert_runs(run("cd %s && cat > src/map/new.c <<'END'\n%s\nEND\n", tree, texts[i]));
        assert_runs(run("%s/scripts/check-definitions.sh %s", testing_source(), tree));
    }
}

/* Whoever does what docs/adding-*.md say passes the checks: all of their code in a copy of the tree. */
static void test_pages_pass(void **state) {
    (void)state;
    static const char *const checks[] = {"layers", "banned", "names", "definitions", "openings"};
    const char *copy = make_copy("pages"), *source = testing_source();
    assert_runs(
        run("mkdir %s/test %s/bench %s/examples && cd %s && awk -v root=. -v out=%s -f test/pages/cut.awk "
            "docs/adding-*.md",
            copy, copy, copy, source, copy));
    assert_holds("src/objective/loss/table.def\n");
    for (size_t i = 0; i < N_ROWS(checks); i++) {
        if (run("%s/scripts/check-%s.sh %s", source, checks[i], copy) != 0)
            fail_msg("check-%s.sh: %s", checks[i], output);
    }
}

static void test_pages_that_cannot_be_cut(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"<!-- file: src/a.c -->\n```c\n1\n```", "page.md:4: the tree has a file src/a.c"},
        {"<!-- row: src/b.def -->\n```c\n1\n```", "page.md:4: there is no src/b.def to put a block into"},
        {"<!-- into: src/a.c before: three -->\n```c\n1\n```", "0 lines of src/a.c begin with 'three'"},
        {"<!-- into: src/a.c before: t -->\n```c\n1\n```", "2 lines of src/a.c begin with 't'"},
        {"<!-- file: src/b.c -->\nno block", "the last block is not complete"},
        {"<!-- into: src/a.c before: one -->\n```c\nzero\n```", NULL},
    };
    char tree[128];
    snprintf(tree, sizeof tree, "%s/cut", testing_folder());
    assert_runs(run("mkdir -p %s/src && cd %s && printf 'one\\ntwo\\nten\\n' > src/a.c", tree, tree));
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        assert_runs(run("cd %s && cat > page.md <<'END'\n%s\nEND\n", tree, rows[i].text));
        const int status =
            run("cd %s && awk -v root=. -v out=out -f %s/test/pages/cut.awk page.md", tree, testing_source());
        assert_int_equal(status != 0, rows[i].message != NULL);
        assert_holds(rows[i].message ? rows[i].message : "src/a.c\n");
    }
    assert_runs(run("cat %s/out/src/a.c", tree));
    assert_string_equal(output, "zero\none\ntwo\nten\n");
}

static void test_sources_open_with_what_they_are_for(void **state) {
    (void)state;
    assert_runs(run("%s/scripts/check-openings.sh", testing_source()));
    assert_string_equal(output, "");
}

static void test_sources_that_do_not_are_named(void **state) {
    (void)state;
    static const struct {
        const char *file, *line;
        bool is_good;
    } rows[] = {
        {"src/base/new.c", "/* What it is for. */", true},
        {"src/base/new.cu", "// What it is for.", true},
        {"src/base/new.h", "/* .npy files. */", true},
        {"src/base/new.c", "#include <stdio.h>", false},
        {"include/kith/new.h", "#ifndef KITH_NEW_H", false},
        {"src/base/new.cuh", "", false},
        {"test/new.cpp", "/* */", false},
        {"bench/new.c", "int main(void) { return 0; } /* a program */", false},
        {"examples/new.c", " ", false},
    };
    char tree[128];
    snprintf(tree, sizeof tree, "%s/openings", testing_folder());
    assert_runs(
        run("mkdir -p %s && cd %s && mkdir -p include/kith src/base test bench examples", tree, tree));
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        char wanted[128];
        snprintf(wanted, sizeof wanted, "%s:1: ", rows[i].file);
        assert_runs(run("cd %s && printf '%%s\\n' '%s' > %s", tree, rows[i].line, rows[i].file));
        const int status = run("%s/scripts/check-openings.sh %s", testing_source(), tree);
        if (rows[i].is_good != (status == 0)) fail_msg("status %d of %s: %s", status, rows[i].line, output);
        if (!rows[i].is_good) assert_holds(wanted);
        assert_runs(run("rm %s/%s", tree, rows[i].file));
    }
}

static void test_links_lead_somewhere(void **state) {
    (void)state;
    assert_runs(run("%s/scripts/check-links.sh", testing_source()));
    assert_string_equal(output, "");
}

static void test_links_that_do_not_are_named(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool is_good;
    } rows[] = {
        {"[there](other.md), [a heading](other.md#top) and [up](../README.md)", true},
        {"[elsewhere](https://kith.example/gone.md), [below](#top)", true},
        {"`[code](gone.md)`", true},
        {"```\n[code](gone.md)\n```", true},
        {"[there](other.md) and [gone](gone.md)", false},
        {"![a picture](gone.md)", false},
        {"[a heading](gone.md#top)", false},
        {"```\ncode\n```\n[after it](gone.md)", false},
    };
    char tree[128];
    snprintf(tree, sizeof tree, "%s/links", testing_folder());
    assert_runs(run("mkdir -p %s/docs && cd %s && touch README.md docs/other.md", tree, tree));
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        assert_runs(run("cd %s/docs && printf '%%b\\n' '%s' > page.md", tree, rows[i].text));
        const int status = run("%s/scripts/check-links.sh %s", testing_source(), tree);
        if (rows[i].is_good != (status == 0)) fail_msg("status %d of %s: %s", status, rows[i].text, output);
        if (!rows[i].is_good) assert_holds("gone.md");
        if (!rows[i].is_good) assert_holds("docs/page.md:");
    }
}

/* A kernel that two builds compile: clang-tidy reads it as the emulator's does, and says what is wrong. */
static void test_tidy_reads_kernels(void **state) {
    (void)state;
    static const char database[] =
        "[\n{\n  \"directory\": \"%s\",\n  \"command\": \"nvcc --not-for-clang -x cu -c %s/new.cu\",\n"
        "  \"file\": \"%s/new.cu\"\n},\n{\n  \"directory\": \"%s\",\n  \"command\": \"c++ -DKI_EMULATE -x "
        "c++ -c "
        "%s/new.cu\",\n  \"file\": \"%s/new.cu\"\n}\n]\n";
    char tree[128], path[160], text[2048];
    if (run("command -v clang-tidy") != 0) skip();
    snprintf(tree, sizeof tree, "%s/tidy", testing_folder());
    assert_runs(run("mkdir -p %s && cp %s/.clang-tidy %s", tree, testing_source(), tree));
    snprintf(path, sizeof path, "%s/compile_commands.json", tree);
    snprintf(text, sizeof text, database, tree, tree, tree, tree, tree, tree);
    testing_write(path, text);
    snprintf(path, sizeof path, "%s/new.cu", tree);
    testing_write(path, "static int pick(bool b) { return b ? 1 : 2; }\nint picked = pick(true);\n");
    assert_runs(run("BUILD=%s %s/scripts/check-tidy.sh %s", tree, testing_source(), path));
    testing_write(path, "static int pick(bool b) { return b ? 1 : 1; }\nint picked = pick(true);\n");
    assert_int_not_equal(run("BUILD=%s %s/scripts/check-tidy.sh %s", tree, testing_source(), path), 0);
    assert_holds("bugprone-branch-clone");
    assert_runs(run("BUILD=%s %s/scripts/check-tidy.sh %s/other.cu", tree, testing_source(), tree));
    assert_holds("other.cu is not compiled here");
}

/* A report of ctest with one program of each ending. */
static void test_counting(void **state) {
    (void)state;
    static const char report[] =
        "\t<testcase name=\"a\" classname=\"a\" time=\"0\" status=\"fail\">\n\t\t<failure message=\"\"/>\n"
        "\t\t<system-out>[==========] Running 6 test(s).\n[  PASSED  ] 3 test(s).\n"
        "[  SKIPPED ] tests: 1 test(s), listed below:\n[  SKIPPED ] t2\n[  FAILED  ] 2 test(s), listed "
        "below:\n"
        "[  FAILED  ] t3\n</system-out>\n\t</testcase>\n"
        "\t<testcase name=\"skipped\" status=\"notrun\">\n\t\t<skipped message=\"SKIP_RETURN_CODE=77\"/>\n"
        "\t\t<system-out></system-out>\n"
        "\t<testcase name=\"script\" status=\"run\">\n\t\t<system-out></system-out>\n"
        "\t<testcase name=\"crash\" status=\"fail\">\n\t\t<failure "
        "message=\"\"/>\n\t\t<system-out></system-out>\n"
        "\t<testcase name=\"absent\" status=\"notrun\">\n\t\t<skipped message=\"Unable to find "
        "executable\"/>\n"
        "\t\t<system-out></system-out>\n";
    char path[128];
    snprintf(path, sizeof path, "%s/report.xml", testing_folder());
    testing_write(path, report);
    assert_int_equal(run("awk -f %s/scripts/count-tests.awk %s", testing_source(), path), 1);
    assert_string_equal(output, "4 passed, 4 failed, 2 skipped\n");
    assert_runs(run("sed -n '/\"skipped\"/,/\"crash\"/{/crash/!p}' %s | awk -f %s/scripts/count-tests.awk",
                    path, testing_source()));
    assert_string_equal(output, "1 passed, 0 failed, 1 skipped\n");
}

/* What make test leaves to another tier is named and counted. */
static void test_other_tiers_are_named(void **state) {
    (void)state;
    static const char report[] =
        "\t<testcase name=\"test_onnx\" status=\"run\">\n\t\t<system-out>skipped: make test-onnx runs these\n"
        "skipped: make test-onnx runs these\n[  PASSED  ] 1 test(s).\n[  SKIPPED ] 2 test(s), listed below:\n"
        "</system-out>\n\t</testcase>\n"
        "\t<testcase name=\"test_browser\" status=\"notrun\">\n\t\t<skipped "
        "message=\"SKIP_RETURN_CODE=77\"/>\n"
        "\t\t<system-out>skipped: make test-browser runs these\n[  SKIPPED ] 57 test(s)\n</system-out>\n"
        "\t<testcase name=\"other\" status=\"run\">\n\t\t<system-out>[==========]\n[  PASSED  ] 3 "
        "test(s).\n</system-out>\n";
    char path[128];
    snprintf(path, sizeof path, "%s/tiers.xml", testing_folder());
    testing_write(path, report);
    assert_runs(run("awk -f %s/scripts/count-tests.awk %s", testing_source(), path));
    assert_string_equal(output,
                        "2 tests of test_onnx are skipped: make test-onnx runs them\n"
                        "57 tests of test_browser are skipped: make test-browser runs them\n"
                        "4 passed, 0 failed, 59 skipped\n");
}

/* Without its tier the browser's test needs neither Node nor Chromium, and counts the cases all the same. */
static void test_the_browser_is_a_tier_of_its_own(void **state) {
    (void)state;
    assert_int_equal(
        run("mkdir %s/bin && for t in sh dirname awk; do ln -s \"$(command -v $t)\" %s/bin; done && "
            "KITH_TIER= PATH=%s/bin %s/test/browser/run.sh",
            testing_folder(), testing_folder(), testing_folder(), testing_source()),
        77);
    int n = 0;
    if (sscanf(output, "skipped: make test-browser runs these\n[  SKIPPED ] %d test(s)", &n) != 1 || n < 50)
        fail_msg("%s", output);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers_hold),
        cmocka_unit_test(test_layer_violations_are_named),
        cmocka_unit_test(test_includes_inside_functions_are_named),
        cmocka_unit_test(test_layers_reach_down),
        cmocka_unit_test(test_layers_hold_in_symbols),
        cmocka_unit_test(test_stores_are_named_in_their_rooms_alone),
        cmocka_unit_test(test_methods_are_named_in_their_layer_alone),
        cmocka_unit_test(test_names_of_methods_are_found),
        cmocka_unit_test(test_no_banned_calls),
        cmocka_unit_test(test_banned_calls_are_named),
        cmocka_unit_test(test_what_only_looks_banned),
        cmocka_unit_test(test_types_and_constants_are_defined_once),
        cmocka_unit_test(test_types_defined_twice_are_named),
        cmocka_unit_test(test_constants_defined_twice_are_named),
        cmocka_unit_test(test_what_only_looks_defined_twice),
        cmocka_unit_test(test_pages_pass),
        cmocka_unit_test(test_pages_that_cannot_be_cut),
        cmocka_unit_test(test_sources_open_with_what_they_are_for),
        cmocka_unit_test(test_sources_that_do_not_are_named),
        cmocka_unit_test(test_links_lead_somewhere),
        cmocka_unit_test(test_links_that_do_not_are_named),
        cmocka_unit_test(test_tidy_reads_kernels),
        cmocka_unit_test(test_counting),
        cmocka_unit_test(test_other_tiers_are_named),
        cmocka_unit_test(test_the_browser_is_a_tier_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
