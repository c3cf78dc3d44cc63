/* Reading case files, and running one op of a case. */
#include "support/op_case.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "support/testing.h"

/* The words of a line. A word that was asked for is crossed off; a word that is left at the end is a mistake. */
typedef struct words {
    const char *line;
    int n;
    char key[24][24];
    double value[24];
    bool has_value[24], used[24];
} words;

static void words_split(const char *line, words *ret_words) {
    *ret_words = (words){.line = line};
    char copy[200];
    snprintf(copy, sizeof copy, "%s", line);
    char *rest = NULL;
    for (char *word = strtok_r(copy, " \t\r\n", &rest); word; word = strtok_r(NULL, " \t\r\n", &rest)) {
        if (ret_words->n == 24) fail_msg("too many words in case: %s", line);
        const int i = ret_words->n++;
        size_t letters = 0;
        while (isalpha((unsigned char)word[letters]) || word[letters] == '_') letters++;
        if (i == 0) letters = strlen(word); /* conv2d, l2_norm */
        if (letters == 0 || letters >= sizeof ret_words->key[0])
            fail_msg("bad word '%s' in case: %s", word, line);
        memcpy(ret_words->key[i], word, letters);
        if (word[letters] == '\0') continue;
        char *end = NULL;
        ret_words->value[i] = strtod(word + letters, &end);
        ret_words->has_value[i] = true;
        if (*end) fail_msg("bad number in word '%s' of case: %s", word, line);
    }
}

static int word_find(words *w, const char *key) {
    for (int i = 1; i < w->n; i++) {
        if (strcmp(w->key[i], key) != 0) continue;
        w->used[i] = true;
        return i;
    }
    return -1;
}

static bool flag(words *w, const char *key) {
    const int i = word_find(w, key);
    if (i >= 0 && w->has_value[i]) fail_msg("'%s' takes no number in case: %s", key, w->line);
    return i >= 0;
}

static double real_or(words *w, const char *key, double otherwise) {
    const int i = word_find(w, key);
    if (i >= 0 && !w->has_value[i]) fail_msg("'%s' needs a number in case: %s", key, w->line);
    return i >= 0 ? w->value[i] : otherwise;
}

static int64_t size_or(words *w, const char *key, int64_t otherwise) {
    return (int64_t)real_or(w, key, (double)otherwise);
}

static int64_t size(words *w, const char *key) {
    const int64_t value = size_or(w, key, -1);
    if (value < 0) fail_msg("'%s' is missing in case: %s", key, w->line);
    return value;
}

static ki_shape map_shape(words *w) {
    const int64_t ih = size(w, "ih");
    return KI_SHAPE4(size(w, "mb"), size(w, "ic"), ih, size_or(w, "iw", ih));
}

/* A map when ih is given, else vectors. */
static ki_shape any_shape(words *w) {
    return word_find(w, "ih") >= 0 ? map_shape(w) : KI_SHAPE2(size(w, "mb"), size(w, "ic"));
}

/* Tokens when nt is given, a map when ih is, else vectors. */
static ki_shape rows_shape(words *w) {
    if (word_find(w, "nt") < 0) return any_shape(w);
    return KI_SHAPE3(size(w, "mb"), size(w, "nt"), size(w, "ic"));
}

/* conv2d: mb ic ih [iw] oc kh [kw] [sh sw ph pw] [groups] [bias] [folded eps] */
static void parse_conv2d(words *w, op_case *c) {
    c->src[0] = map_shape(w);
    ki_conv_attr *a = &c->attr.conv;
    a->oc = size(w, "oc");
    a->kh = size(w, "kh");
    a->kw = size_or(w, "kw", a->kh);
    a->sh = size_or(w, "sh", 1);
    a->sw = size_or(w, "sw", a->sh);
    a->ph = size_or(w, "ph", 0);
    a->pw = size_or(w, "pw", a->ph);
    a->groups = size_or(w, "groups", 0);
    a->bias = flag(w, "bias");
    c->folded = flag(w, "folded");
}

/* batch_norm: mb ic [ih [iw]] [eps] [momentum] [frozen] [add] */
static void parse_batch_norm(words *w, op_case *c) {
    c->src[0] = any_shape(w);
    c->attr.bn = (ki_bn_attr){.eps = real_or(w, "eps", 1e-5), .momentum = real_or(w, "momentum", 0.1)};
    c->frozen = flag(w, "frozen");
    c->added = flag(w, "add");
    if (c->added) c->src[c->n_src++] = c->src[0];
}

/* relu: mb ic [ih [iw] | nt] */
static void parse_relu(words *w, op_case *c) { c->src[0] = rows_shape(w); }

/* pool: mb ic ih [iw] max|avg k s [p] [ceil] [count_pad] */
static void parse_pool(words *w, op_case *c) {
    c->src[0] = map_shape(w);
    const bool is_max = flag(w, "max");
    c->attr.pool = (ki_pool_attr){
        .average = flag(w, "avg"),
        .k = size(w, "k"),
        .s = size(w, "s"),
        .p = size_or(w, "p", 0),
        .ceil_mode = flag(w, "ceil"),
        .count_pad = flag(w, "count_pad"),
    };
    if (is_max == c->attr.pool.average) fail_msg("one of max and avg is wanted in case: %s", w->line);
}

/* lrn: mb ic ih [iw] [size] [alpha] [beta] [k] */
static void parse_lrn(words *w, op_case *c) {
    c->src[0] = map_shape(w);
    c->attr.lrn = (ki_lrn_attr){.size = size_or(w, "size", 5),
                                .alpha = real_or(w, "alpha", 1e-4),
                                .beta = real_or(w, "beta", 0.75),
                                .k = real_or(w, "k", 1)};
}

/* concat: mb ih [iw] ca [cb cc cd ce cf cg ch] [masked] */
static void parse_concat(words *w, op_case *c) {
    const int64_t mb = size(w, "mb"), ih = size(w, "ih"), iw = size_or(w, "iw", ih);
    c->n_src = 0;
    for (char letter = 'a'; letter <= 'h'; letter++) {
        const char key[] = {'c', letter, '\0'};
        const int64_t ic = size_or(w, key, 0);
        if (ic > 0) c->src[c->n_src++] = KI_SHAPE4(mb, ic, ih, iw);
    }
    c->masked = flag(w, "masked");
}

/* add: mb ic [ih [iw] | nt] */
static void parse_add(words *w, op_case *c) {
    c->n_src = 2;
    c->src[0] = c->src[1] = rows_shape(w);
}

/* linear: mb ic [nt] oc [bias] [add] */
static void parse_linear(words *w, op_case *c) {
    c->src[0] = rows_shape(w);
    c->attr.linear.oc = size(w, "oc");
    c->attr.linear.bias = flag(w, "bias");
    c->added = flag(w, "add");
    if (!c->added) return;
    c->src[c->n_src] = c->src[0];
    c->src[c->n_src++].dim[c->src[0].n_dims - 1] = c->attr.linear.oc;
}

/* dropout: mb ic [ih [iw] | nt] p */
static void parse_dropout(words *w, op_case *c) {
    c->src[0] = rows_shape(w);
    c->attr.dropout.p = real_or(w, "p", 0.5);
}

/* global_pool: mb ic ih [iw] avg|max|both|gem */
static void parse_global_pool(words *w, op_case *c) {
    c->src[0] = map_shape(w);
    c->attr.global_pool.how = flag(w, "avg")   ? KI_GLOBAL_AVG
                              : flag(w, "max") ? KI_GLOBAL_MAX
                              : flag(w, "gem") ? KI_GLOBAL_GEM
                                               : KI_GLOBAL_BOTH;
    if (c->attr.global_pool.how == KI_GLOBAL_BOTH && !flag(w, "both"))
        fail_msg("one of avg, max, both, gem is wanted in case: %s", w->line);
}

/* l2_norm: mb ic [eps] */
static void parse_l2_norm(words *w, op_case *c) {
    c->src[0] = any_shape(w);
    c->attr.l2_norm.eps = real_or(w, "eps", 1e-12);
}

/* attend: mb ic ih [iw] heads */
static void parse_attend(words *w, op_case *c) {
    c->n_src = 2;
    c->src[0] = c->src[1] = map_shape(w);
    c->src[1].dim[1] *= size(w, "heads");
}

/* unfold: mb ic [ih [iw]] heads */
static void parse_unfold(words *w, op_case *c) {
    c->src[0] = any_shape(w);
    c->src[0].dim[0] *= size(w, "heads");
}

/* layer_norm: mb ic [ih [iw] | nt] [eps] [rms] */
static void parse_layer_norm(words *w, op_case *c) {
    c->src[0] = rows_shape(w);
    c->attr.layer_norm.eps = real_or(w, "eps", 1e-5);
    c->attr.layer_norm.rms = flag(w, "rms");
}

static const char *const act_names[] = {[KI_ACT_GELU] = "gelu",
                                        [KI_ACT_GELU_TANH] = "gelu_tanh",
                                        [KI_ACT_SILU] = "silu",
                                        [KI_ACT_QUICK_GELU] = "quick_gelu",
                                        [KI_ACT_SIGMOID] = "sigmoid",
                                        [KI_ACT_HARD_SWISH] = "hard_swish",
                                        [KI_ACT_HARD_SIGMOID] = "hard_sigmoid"};

/* act: mb ic [ih [iw] | nt], and gelu, gelu_tanh, quick_gelu, silu, sigmoid, hard_swish or hard_sigmoid */
static void parse_act(words *w, op_case *c) {
    c->src[0] = rows_shape(w);
    size_t how = 0;
    while (how < N_ROWS(act_names) && !flag(w, act_names[how])) how++;
    if (how == N_ROWS(act_names)) fail_msg("no function in case: %s", w->line);
    c->attr.act.how = (ki_act)how;
}

/* glu: mb ic nt (ic: of the source) */
static void parse_glu(words *w, op_case *c) { c->src[0] = rows_shape(w); }

/* layer_scale: mb ic [ih [iw] | nt] */
static void parse_layer_scale(words *w, op_case *c) {
    c->src[0] = rows_shape(w);
    c->added = flag(w, "add");
    if (c->added) c->src[c->n_src++] = c->src[0];
}

/* drop_path: mb ic [ih [iw] | nt] p */
static void parse_drop_path(words *w, op_case *c) {
    c->src[0] = rows_shape(w);
    c->attr.drop_path.p = real_or(w, "p", 0.5);
}

/* gate: mb ic ih [iw] */
static void parse_gate(words *w, op_case *c) {
    c->n_src = 2;
    c->src[0] = map_shape(w);
    c->src[1] = KI_SHAPE2(c->src[0].dim[0], c->src[0].dim[1]);
}

/* grn: mb ic ih [iw] [eps] */
static void parse_grn(words *w, op_case *c) {
    c->src[0] = map_shape(w);
    c->attr.grn.eps = real_or(w, "eps", 1e-6);
}

/* tokens: mb ic ih [iw] [class] [classpos] [registers] [gh [gw]] [antialias|bilinear] [offset] */
static void parse_tokens(words *w, op_case *c) {
    ki_tokens_attr *a = &c->attr.tokens;
    c->src[0] = map_shape(w);
    a->has_class = flag(w, "class");
    a->has_class_position = flag(w, "classpos");
    a->registers = size_or(w, "registers", 0);
    a->grid_h = size_or(w, "gh", 0);
    a->grid_w = size_or(w, "gw", a->grid_h);
    a->how = flag(w, "antialias")  ? KI_POSITIONS_BICUBIC_ANTIALIAS
             : flag(w, "bilinear") ? KI_POSITIONS_BILINEAR
                                   : KI_POSITIONS_BICUBIC;
    a->offset = real_or(w, "offset", 0);
}

/* grid: mb ic ih [iw] [skip] (ih, iw: of the map that is made) */
static void parse_grid(words *w, op_case *c) {
    const ki_shape map = map_shape(w);
    c->attr.grid = (ki_grid_attr){.skip = size_or(w, "skip", 0), .h = map.dim[2], .w = map.dim[3]};
    c->src[0] = KI_SHAPE3(map.dim[0], c->attr.grid.skip + map.dim[2] * map.dim[3], map.dim[1]);
}

/* token: mb ic nt at */
static void parse_token(words *w, op_case *c) {
    c->src[0] = rows_shape(w);
    c->attr.token.at = size_or(w, "at", 0);
}

/* probe: mb ic nt n */
static void parse_probe(words *w, op_case *c) {
    c->src[0] = rows_shape(w);
    c->attr.probe.n = size_or(w, "n", 1);
}

/* attention: mb ic nt heads [ns: tokens of q, when k and v are a source of their own], or mb ic heads window [h w] [shift]; ic: of
 * the output */
static void parse_attention(words *w, op_case *c) {
    ki_attention_attr *a = &c->attr.attention;
    const int64_t mb = size(w, "mb"), ic = size(w, "ic"), ns = size_or(w, "ns", 0);
    a->heads = size(w, "heads");
    a->window = size_or(w, "window", 0);
    a->shift = size_or(w, "shift", 0);
    a->h = size_or(w, "h", a->window ? 1 : 0);
    a->w = size_or(w, "w", a->h);
    const int64_t rows = a->window ? mb * a->h * a->w : mb,
                  nt = a->window ? a->window * a->window : size(w, "nt");
    c->src[0] = KI_SHAPE3(rows, nt, 3 * ic);
    if (ns == 0) return;
    c->n_src = 2;
    c->src[0] = KI_SHAPE3(mb, ns, ic);
    c->src[1] = KI_SHAPE3(mb, nt, 2 * ic);
}

/* windows: mb ic ih [iw] side [shift] [back] (ih, iw: of the grid) */
static void parse_windows(words *w, op_case *c) {
    const ki_shape map = map_shape(w);
    ki_windows_attr *a = &c->attr.windows;
    *a = (ki_windows_attr){.side = size(w, "side"),
                           .shift = size_or(w, "shift", 0),
                           .h = map.dim[2],
                           .w = map.dim[3],
                           .back = flag(w, "back")};
    const int64_t n = (a->h + a->side - 1) / a->side * ((a->w + a->side - 1) / a->side);
    c->src[0] = a->back ? KI_SHAPE3(map.dim[0] * n, a->side * a->side, map.dim[1])
                        : KI_SHAPE3(map.dim[0], a->h * a->w, map.dim[1]);
}

/* merge: mb ic ih [iw] */
static void parse_merge(words *w, op_case *c) {
    const ki_shape map = map_shape(w);
    c->attr.merge = (ki_merge_attr){.h = map.dim[2], .w = map.dim[3]};
    c->src[0] = KI_SHAPE3(map.dim[0], map.dim[2] * map.dim[3], map.dim[1]);
}

/* then_gelu and so on. */
static void parse_then(words *w, op_case *c) {
    for (size_t how = 0; how < N_ROWS(act_names) && !c->has_act; how++) {
        char word[32];
        snprintf(word, sizeof word, "then_%s", act_names[how]);
        c->has_act = flag(w, word);
        c->act = (ki_act)how;
    }
    c->infer |= c->has_act;
}

void op_case_parse(const char *line, op_case *ret_case) {
    static void (*const parse[])(words *, op_case *) = {
#define X(NAME, name) [KI_OP_##NAME] = parse_##name,
#include "device/op.def"
#undef X
    };
    words w;
    words_split(line, &w);
    *ret_case = (op_case){.n_src = 1};
    snprintf(ret_case->line, sizeof ret_case->line, "%s", line);
    int kind = KI_OP_INPUT + 1; /* an input is not run */
    while (kind < KI_N_OPS && strcmp(ki_op_name((ki_op_kind)kind), w.key[0]) != 0) kind++;
    if (kind == KI_N_OPS) fail_msg("no op '%s' in case: %s", w.key[0], line);
    ret_case->kind = (ki_op_kind)kind;
    parse[kind](&w, ret_case);
    ret_case->mb = size(&w, "mb");
    ret_case->first = (uint64_t)size_or(&w, "first", 0);
    ret_case->infer = flag(&w, "infer");
    ret_case->relu = flag(&w, "relu");
    parse_then(&w, ret_case);
    ret_case->plain = flag(&w, "plain");
    ret_case->diff = flag(&w, "diff");
    ret_case->ties = flag(&w, "ties");
    for (int i = 1; i < w.n; i++) {
        if (!w.used[i]) fail_msg("%s has no word '%s' in case: %s", w.key[0], w.key[i], line);
    }
}

int op_cases_read(const char *name, op_case *ret_cases) {
    char path[1024], line[256];
    snprintf(path, sizeof path, "%s/test/cases/%s.txt", KITH_TESTING_SOURCE_DIR, name);
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("no case file %s", path);
    int n = 0;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "#\n")] = '\0';
        size_t length = strlen(line);
        while (length > 0 && isspace((unsigned char)line[length - 1])) line[--length] = '\0';
        if (length == 0) continue;
        if (n == OP_MAX_CASES) fail_msg("more than %d cases in %s", OP_MAX_CASES, path);
        op_case_parse(line, &ret_cases[n++]);
    }
    fclose(file);
    if (n == 0) fail_msg("no cases in %s", path);
    return n;
}

static ki_real *host_new(int64_t n) {
    ki_real *values = calloc((size_t)n, sizeof *values);
    if (!values) abort();
    return values;
}

static kith_status device_new(op_run *run, size_t bytes, void *ret_ptr, kith_error *err) {
    if (bytes == 0) return KITH_OK;
    void *ptr = NULL;
    KI_TRY(run->backend->type->memory.alloc(run->backend, bytes, &ptr, err));
    memcpy(ret_ptr, &ptr, sizeof ptr);
    return KITH_OK;
}

/* Bytes of all ones: NaN in every float format, -1 as an index. */
static kith_status device_poison(op_run *run, void *ptr, size_t bytes, kith_error *err) {
    if (!ptr || bytes == 0) return KITH_OK;
    void *ones = malloc(bytes);
    if (!ones) abort();
    memset(ones, 0xff, bytes);
    kith_status status = run->backend->type->memory.upload(run->backend, ptr, ones, bytes, err);
    if (status == KITH_OK) status = run->backend->type->memory.sync(run->backend, err);
    free(ones);
    return status;
}

static ki_edge edge_of(const op_run *run, ki_shape shape, bool is_plain) {
    ki_edge edge = {.shape = shape, .layout = shape.n_dims == 4 && !is_plain ? KI_NATIVE : KI_PLAIN};
    edge.bytes = run->backend->type->memory.edge_bytes(run->backend, &edge.shape, edge.layout);
    if (run->gap && edge.layout == KI_NATIVE) edge.pitch = shape.dim[1] + run->gap;
    return edge;
}

/* The memory that a tensor of the edge takes, including the gaps of a slice. */
static size_t room_of(const ki_edge *edge) {
    return edge->pitch ? edge->bytes / (size_t)edge->shape.dim[1] * (size_t)edge->pitch : edge->bytes;
}

static void param_add(op_run *run, ki_param_decl decl) {
    const char *dot = strrchr(decl.name, '.');
    op_param *p = &run->param[run->n_params++];
    *p = (op_param){.name = dot ? dot + 1 : decl.name,
                    .slot = decl.slot,
                    .trained = decl.trained,
                    .shape = decl.shape,
                    .n = ki_shape_count(&decl.shape),
                    .fan_in = decl.fan_in};
    p->value = host_new(p->n);
    p->diff = host_new(p->n);
}

/* Uniform with variance 1: a tenth of the time normal numbers take. */
static ki_real draw_one(ki_rng *rng) { return (ki_real)((ki_rng_double(rng) - 0.5) * 3.4641016151377544); }

/* Values of the size they have in a network, never exactly at a kink. */
static void draw(op_run *run) {
    uint32_t stream = 0;
    for (int i = 0; i < run->c->n_src; i++) {
        ki_rng rng = ki_rng_at(11, KI_RNG_TEST, stream++, 0);
        for (int64_t j = 0; j < run->n_src[i]; j++) {
            run->src[i][j] = draw_one(&rng);
            if (run->c->ties) run->src[i][j] = (ki_real)floor((double)run->src[i][j]);
        }
    }
    ki_rng rng = ki_rng_at(11, KI_RNG_TEST, stream++, 0);
    for (int64_t j = 0; j < run->n_dst; j++) run->diff_dst[j] = draw_one(&rng);
    for (int i = 0; i < run->n_params; i++) {
        op_param *p = &run->param[i];
        const bool is_scale =
            p->slot == KI_VAR || p->slot == KI_GAMMA ||
            (p->slot == KI_W && (run->spec.kind == KI_OP_BATCH_NORM || run->spec.kind == KI_OP_LAYER_NORM ||
                                 run->spec.kind == KI_OP_GLOBAL_POOL));
        rng = ki_rng_at(11, KI_RNG_TEST, stream++, 0);
        for (int64_t j = 0; j < p->n; j++) {
            if (is_scale)
                p->value[j] = (ki_real)(0.5 + ki_rng_double(&rng));
            else
                p->value[j] =
                    (ki_real)((double)draw_one(&rng) * (p->fan_in ? sqrt(1.0 / (double)p->fan_in) : 0.5));
        }
    }
    run->step = 3;
}

static kith_status run_infer_shapes(op_run *run, ki_shape *ret_dst, kith_error *err) {
    const op_case *c = run->c;
    const ki_op *op = ki_op_at(c->kind);
    ki_node node = {.kind = c->kind, .name = "op", .attr = c->attr, .n_src = c->added ? 1 : c->n_src};
    ki_shape src[KI_MAX_SRC];
    for (int i = 0; i < c->n_src; i++) {
        src[i] = c->src[i];
        src[i].dim[0] /= c->mb;
    }
    KI_TRY(op->infer(&run->arena, &node, src, err));
    for (int i = 0; i < node.n_params; i++) param_add(run, node.param[i]);
    if (c->folded) {
        static const struct {
            const char *name;
            int slot;
        } rows[] = {{"bn.running_mean", KI_MEAN},
                    {"bn.running_var", KI_VAR},
                    {"bn.gamma", KI_GAMMA},
                    {"bn.beta", KI_BETA}};
        for (size_t i = 0; i < N_ROWS(rows); i++)
            param_add(run,
                      (ki_param_decl){
                          .name = rows[i].name, .slot = rows[i].slot, .shape = KI_SHAPE1(c->attr.conv.oc)});
    }
    *ret_dst = node.shape;
    ret_dst->dim[0] *= c->mb;
    return KITH_OK;
}

static kith_status run_bind(op_run *run, kith_error *err) {
    const ki_kernel_spec *spec = &run->spec;
    const bool is_training = spec->mode == KI_TRAIN;
    ki_binding b = {0};
    for (int i = 0; i < spec->n_src; i++) {
        KI_TRY(device_new(run, room_of(&spec->src[i]), &run->device_src[i], err));
        KI_TRY(device_poison(run, run->device_src[i], room_of(&spec->src[i]), err));
        if (spec->wants_diff_src[i])
            KI_TRY(device_new(run, room_of(&spec->src[i]), &run->device_diff_src[i], err));
        b.src[i] = run->device_src[i];
        b.diff_src[i] = run->device_diff_src[i];
    }
    KI_TRY(device_new(run, room_of(&spec->dst), &run->device_dst, err));
    b.dst = run->device_dst;
    b.n_diff_dst = run->info.joins ? 2 : 1;
    for (int i = 0; is_training && i < b.n_diff_dst; i++) {
        KI_TRY(device_new(run, room_of(&spec->dst), &run->device_diff_dst[i], err));
        KI_TRY(device_poison(run, run->device_diff_dst[i], room_of(&spec->dst), err));
        b.diff_dst[i] = run->device_diff_dst[i];
    }
    if (is_training) /* in inference the planner keeps no workspaces */
        KI_TRY(device_new(run, run->info.workspace_bytes, &run->device_workspace, err));
    KI_TRY(device_new(run, run->info.scratch_bytes, &run->device_scratch, err));
    KI_TRY(device_new(run, run->info.late_bytes, &run->device_late, err));
    b.workspace = run->device_workspace;
    b.scratch = run->device_scratch;
    b.late = run->device_late;
    for (int i = 0; i < run->n_params; i++) {
        op_param *p = &run->param[i];
        KI_TRY(device_new(run, (size_t)p->n * sizeof(ki_real), &p->device_value, err));
        if (p->trained && is_training)
            KI_TRY(device_new(run, (size_t)p->n * sizeof(ki_real), &p->device_diff, err));
        b.param[p->slot] = (ki_param_slot){p->device_value, p->device_diff};
    }
    KI_TRY(device_new(run, sizeof run->step, &run->device_step, err));
    b.step = run->device_step;
    if (run->c->first) {
        KI_TRY(device_new(run, sizeof run->c->first, &run->device_first, err));
        KI_TRY(run->backend->type->memory.upload(run->backend, run->device_first, &run->c->first,
                                                 sizeof run->c->first, err));
        KI_TRY(run->backend->type->memory.sync(run->backend, err));
        b.first = run->device_first;
    }
    return run->kernel->type->bind(run->kernel, &b, err);
}

kith_status op_run_init(op_run *run, const op_case *c, ki_backend *backend, kith_error *err) {
    return op_run_init_sliced(run, c, backend, 0, err);
}

kith_status op_run_init_sliced(op_run *run, const op_case *c, ki_backend *backend, int64_t gap,
                               kith_error *err) {
    *run = (op_run){.c = c, .backend = backend, .attr = c->attr, .gap = gap};
    ki_shape dst;
    KI_TRY(run_infer_shapes(run, &dst, err));
    const ki_kernel_type *type = backend->type->kernels.of[c->kind];
    if (!type)
        return ki_fail(err, KITH_EUNSUPPORTED, "backend %s has no %s", backend->type->name,
                       ki_op_name(c->kind));

    const bool is_training = !c->infer && !c->folded;
    run->fused_relu = c->relu && type->fuses_relu;
    run->fused_act = c->has_act && type->fuses_act && type->fuses_act(c->act);
    run->fused_mask = c->masked && backend->type->kernels.can_mask_concat;
    run->fused_add =
        c->added && (type->fuses_add || (c->kind == KI_OP_BATCH_NORM && backend->type->kernels.can_fuse_add));
    run->folded_bn = c->folded && backend->type->kernels.can_fold_bn;
    /* The sum must come before ReLU. */
    if (c->added && !run->fused_add) run->fused_relu = false;
    ki_kernel_spec *spec = &run->spec;
    *spec = (ki_kernel_spec){
        .kind = c->kind,
        .attr = &run->attr,
        .mode = is_training ? KI_TRAIN : KI_INFER,
        .n_src = c->added && !run->fused_add ? 1 : c->n_src,
        .dst = edge_of(run, dst, false),
        .has_relu = run->fused_relu,
        .has_act = run->fused_act,
        .act = c->act,
        .has_add = run->fused_add,
        .has_folded_bn = run->folded_bn,
        .bn_eps = 1e-5,
        .frozen_stats = c->frozen,
        .wants_diff_params = is_training,
        .may_be_late = gap == 0,
        .masked_src = run->fused_mask ? (1u << c->n_src) - 1 : 0,
        .seed = 5,
        .node = 7,
    };
    run->n_dst = ki_shape_count(&dst);
    run->dst = host_new(run->n_dst);
    run->diff_dst = host_new(run->n_dst);
    for (int i = 0; i < c->n_src; i++) {
        spec->src[i] = edge_of(run, c->src[i], c->plain);
        spec->wants_diff_src[i] = is_training && (!c->plain || c->diff);
        run->n_src[i] = ki_shape_count(&c->src[i]);
        run->src[i] = host_new(run->n_src[i]);
        run->diff_src[i] = host_new(run->n_src[i]);
    }
    draw(run);
    KI_TRY(type->create(backend, spec, &run->info, &run->kernel, err));
    return run_bind(run, err);
}

void op_run_release(op_run *run) {
    if (!run->backend) return;
    const ki_backend_type *type = run->backend->type;
    if (run->kernel) run->kernel->type->free(run->kernel);
    void *const device[] = {run->device_dst,       run->device_diff_dst[0], run->device_diff_dst[1],
                            run->device_workspace, run->device_scratch,     run->device_late,
                            run->device_step,      run->device_first};
    for (size_t i = 0; i < N_ROWS(device); i++) type->memory.free(run->backend, device[i]);
    for (int i = 0; i < KI_MAX_SRC; i++) {
        type->memory.free(run->backend, run->device_src[i]);
        type->memory.free(run->backend, run->device_diff_src[i]);
        free(run->src[i]);
        free(run->diff_src[i]);
    }
    for (int i = 0; i < run->n_params; i++) {
        type->memory.free(run->backend, run->param[i].device_value);
        type->memory.free(run->backend, run->param[i].device_diff);
        free(run->param[i].value);
        free(run->param[i].diff);
    }
    free(run->dst);
    free(run->diff_dst);
    ki_arena_release(&run->arena);
    *run = (op_run){0};
}

static const op_param *param_at(const op_run *run, int slot) {
    for (int i = 0; i < run->n_params; i++) {
        if (run->param[i].slot == slot) return &run->param[i];
    }
    return NULL;
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static double act_of(ki_act how, double x) {
    const double inner = x / 6 + 0.5, hard = inner < 0 ? 0 : inner > 1 ? 1 : inner;
    switch (how) {
    case KI_ACT_GELU: return x * (1 + erf(x / sqrt(2))) / 2;
    case KI_ACT_GELU_TANH: return x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x));
    case KI_ACT_QUICK_GELU: return x * sigmoid(1.702 * x);
    case KI_ACT_SILU: return x * sigmoid(x);
    case KI_ACT_SIGMOID: return sigmoid(x);
    case KI_ACT_HARD_SWISH: return x * hard;
    case KI_ACT_HARD_SIGMOID: return hard;
    }
    return x;
}

/* What the host does if the kernel fuses less. */
static void host_after_forward(op_run *run) {
    if (run->c->folded && !run->folded_bn) {
        const ki_shape *s = &run->spec.dst.shape;
        const ki_real *mean = param_at(run, KI_MEAN)->value, *var = param_at(run, KI_VAR)->value;
        const ki_real *gamma = param_at(run, KI_GAMMA)->value, *beta = param_at(run, KI_BETA)->value;
        for (int64_t i = 0; i < run->n_dst; i++) {
            const int64_t c = i / (s->dim[2] * s->dim[3]) % s->dim[1];
            const double istd = 1 / sqrt((double)var[c] + run->spec.bn_eps);
            run->dst[i] = (ki_real)((double)gamma[c] * ((double)run->dst[i] - (double)mean[c]) * istd +
                                    (double)beta[c]);
        }
    }
    for (int64_t i = 0; run->c->added && !run->fused_add && i < run->n_dst; i++)
        run->dst[i] += run->src[1][i];
    for (int64_t i = 0; run->c->relu && !run->fused_relu && i < run->n_dst; i++)
        run->dst[i] = run->dst[i] > 0 ? run->dst[i] : 0;
    for (int64_t i = 0; run->c->has_act && !run->fused_act && i < run->n_dst; i++)
        run->dst[i] = (ki_real)act_of(run->c->act, (double)run->dst[i]);
}

kith_status op_run_forward(op_run *run, kith_error *err) {
    const ki_backend_type *type = run->backend->type;
    const ki_kernel_spec *spec = &run->spec;
    for (int i = 0; i < spec->n_src; i++)
        KI_TRY(type->memory.import(run->backend, &spec->src[i], run->device_src[i], run->src[i], err));
    for (int i = 0; i < run->n_params; i++) {
        op_param *p = &run->param[i];
        KI_TRY(type->memory.upload(run->backend, p->device_value, p->value, (size_t)p->n * sizeof *p->value,
                                   err));
    }
    KI_TRY(type->memory.upload(run->backend, run->device_step, &run->step, sizeof run->step, err));
    KI_TRY(device_poison(run, run->device_dst, room_of(&spec->dst), err));
    KI_TRY(device_poison(run, run->device_workspace, run->info.workspace_bytes, err));
    KI_TRY(device_poison(run, run->device_scratch, run->info.scratch_bytes, err));
    if (run->kernel->type->pack) KI_TRY(run->kernel->type->pack(run->kernel, err));
    KI_TRY(run->kernel->type->forward(run->kernel, err));
    KI_TRY(type->memory.export(run->backend, &spec->dst, run->device_dst, run->dst, err));
    for (int i = 0; i < run->n_params; i++) { /* running statistics change */
        op_param *p = &run->param[i];
        if (!p->trained)
            KI_TRY(type->memory.download(run->backend, p->device_value, p->value,
                                         (size_t)p->n * sizeof *p->value, err));
    }
    KI_TRY(type->memory.sync(run->backend, err));
    host_after_forward(run);
    return KITH_OK;
}

/* diff_dst into the device buffers: whole, or as two parts that sum to it. */
static kith_status import_diff_dst(op_run *run, kith_error *err) {
    const ki_backend_type *type = run->backend->type;
    const ki_edge *edge = &run->spec.dst;
    ki_real *part[2] = {host_new(run->n_dst), host_new(run->n_dst)};
    for (int64_t i = 0; i < run->n_dst; i++) {
        const bool is_cut = run->c->relu && !run->fused_relu && !(run->dst[i] > 0);
        const ki_real diff = is_cut ? 0 : run->diff_dst[i];
        part[1][i] = run->info.joins ? diff * (ki_real)0.25 : 0;
        part[0][i] = diff - part[1][i];
    }
    kith_status status = KITH_OK;
    for (int i = 0; status == KITH_OK && i < (run->info.joins ? 2 : 1); i++)
        status = type->memory.import(run->backend, edge, run->device_diff_dst[i], part[i], err);
    if (status == KITH_OK && run->info.mask_in_join && !run->info.joins) {
        const void *const parts[] = {run->device_diff_dst[0]};
        status =
            type->kernels.join(run->backend, edge, 1, parts, run->device_dst, run->device_diff_dst[0], err);
    }
    if (status == KITH_OK) status = type->memory.sync(run->backend, err);
    free(part[0]);
    free(part[1]);
    return status;
}

kith_status op_run_backward(op_run *run, kith_error *err) {
    const ki_backend_type *type = run->backend->type;
    const ki_kernel_spec *spec = &run->spec;
    KI_TRY(import_diff_dst(run, err));
    const uint64_t next_step = run->step + 1; /* the planner increases it before backward runs */
    KI_TRY(type->memory.upload(run->backend, run->device_step, &next_step, sizeof next_step, err));
    if (!run->info.backward_reads_dst) KI_TRY(device_poison(run, run->device_dst, room_of(&spec->dst), err));
    for (int i = 0; i < spec->n_src; i++) {
        if (!run->info.backward_reads_src)
            KI_TRY(device_poison(run, run->device_src[i], room_of(&spec->src[i]), err));
        KI_TRY(device_poison(run, run->device_diff_src[i], room_of(&spec->src[i]), err));
    }
    KI_TRY(device_poison(run, run->device_scratch, run->info.scratch_bytes, err));
    KI_TRY(device_poison(run, run->device_late, run->info.late_bytes, err));
    for (int i = 0; i < run->n_params; i++) {
        op_param *p = &run->param[i];
        if (!p->device_diff) continue;
        if (!run->keeps_diffs) memset(p->diff, 0, (size_t)p->n * sizeof *p->diff);
        KI_TRY(
            type->memory.upload(run->backend, p->device_diff, p->diff, (size_t)p->n * sizeof *p->diff, err));
    }
    if (!run->info.shares_diff) KI_TRY(run->kernel->type->backward(run->kernel, err));
    if (run->info.is_late) KI_TRY(run->kernel->type->settle(run->kernel, err));
    for (int i = 0; i < spec->n_src; i++) {
        if (!run->device_diff_src[i]) continue;
        const bool is_shared = run->info.shares_diff || (run->info.shares_added && i == 1);
        const void *diff = is_shared ? run->device_diff_dst[0] : run->device_diff_src[i];
        KI_TRY(type->memory.export(run->backend, &spec->src[i], diff, run->diff_src[i], err));
    }
    for (int i = 0; i < run->n_params; i++) {
        op_param *p = &run->param[i];
        if (p->device_diff)
            KI_TRY(type->memory.download(run->backend, p->device_diff, p->diff,
                                         (size_t)p->n * sizeof *p->diff, err));
    }
    KI_TRY(type->memory.sync(run->backend, err));
    for (int64_t j = 0; run->c->added && !run->fused_add && j < run->n_dst; j++)
        run->diff_src[1][j] = run->c->relu && !(run->dst[j] > 0) ? 0 : run->diff_dst[j];
    for (int i = 0; run->c->masked && !run->fused_mask && i < spec->n_src; i++) {
        for (int64_t j = 0; j < run->n_src[i]; j++) {
            if (!(run->src[i][j] > 0)) run->diff_src[i][j] = 0;
        }
    }
    return KITH_OK;
}

static bool gaps_are_intact(op_run *run, const ki_edge *edge, const void *device) {
    if (!edge->pitch || !device) return true;
    const size_t bytes = room_of(edge), pixels = bytes / (size_t)edge->pitch;
    const size_t n_pixels = edge->bytes / (size_t)edge->shape.dim[1]; /* times the bytes of an element */
    unsigned char *host = malloc(bytes);
    kith_error err;
    if (!host) abort();
    assert_ok(run->backend->type->memory.download(run->backend, device, host, bytes, &err), &err);
    assert_ok(run->backend->type->memory.sync(run->backend, &err), &err);
    const size_t count = (size_t)(ki_shape_count(&edge->shape) / edge->shape.dim[1]);
    const size_t element = n_pixels / count, c = (size_t)edge->shape.dim[1] * element,
                 pitch = (size_t)edge->pitch * element;
    bool intact = pixels > 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = c; k < pitch; k++) intact &= host[i * pitch + k] == 0xff;
    }
    free(host);
    return intact;
}

bool op_run_gaps_are_intact(op_run *run) {
    bool intact = gaps_are_intact(run, &run->spec.dst, run->device_dst);
    for (int i = 0; i < run->spec.n_src; i++)
        intact &= gaps_are_intact(run, &run->spec.src[i], run->device_diff_src[i]);
    return intact;
}

double op_relative_l2(const ki_real *a, const ki_real *b, int64_t n) {
    double error = 0, total = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)a[i] - (double)b[i];
        error += d * d;
        total += (double)b[i] * (double)b[i];
    }
    return total > 0 ? sqrt(error / total) : sqrt(error);
}
