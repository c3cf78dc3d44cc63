/* Vision transformers of other libraries at their true sizes: from the lists of their tensors' names and shapes, which network
 * they are and with which settings; all of their tensors find their places. Widths are a 32nd of the true ones, so that no file is large. And
 * files that have been changed, which are refused in one line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "net/recognise.h"
#include "net/weights.h"
#include "support/testing.h"

enum { SMALLER = 32, MOST_TENSORS = 700 };

typedef struct row {
    const char *list;
    int64_t width;
    const char *library, *settings; /* settings: parts that must be there */
} row;

static const row rows[] = {
    {"timm.vit_small_patch16_224", 384, "timm",
     "depth=12 patch=16 registers=0 grid=14 class_token=yes class_position=yes layer_scale=0 swiglu=false "
     "act=gelu"},
    {"timm.vit_small_patch14_dinov2", 384, "timm",
     "kind=dinov2 depth=12 patch=14 grid=37 class_position=yes layer_scale=1e-05"},
    {"timm.vit_small_patch14_reg4_dinov2", 384, "timm",
     "kind=dinov2 patch=14 registers=4 grid=37 class_position=no positions=antialias"},
    {"torchvision.vit_b_16", 768, "torchvision", "kind=deit depth=12 patch=16 grid=14 class_position=yes"},
    {"original.dino_vits16", 384, "timm", "kind=dino depth=12 patch=16 grid=14"},
    {"original.dinov2_vits14", 384, "the original DINOv2",
     "kind=dinov2 patch=14 grid=37 registers=0 positions=auto layer_scale=1e-05"},
    {"original.dinov2_vits14_reg", 384, "the original DINOv2",
     "kind=dinov2 registers=4 class_position=yes positions=antialias"},
    {"original.clip_vit_b_16", 768, "OpenAI's CLIP",
     "kind=clip depth=12 patch=16 grid=14 pre_norm=yes patch_bias=no"},
    {"transformers.vit_base", 768, "transformers' ViT",
     "kind=vit depth=12 patch=16 grid=14 positions=bicubic"},
    {"transformers.dinov2_small", 384, "transformers' DINOv2",
     "kind=dinov2 patch=14 grid=37 positions=bicubic"},
    {"transformers.dinov2_with_registers_small", 384, "transformers' DINOv2",
     "kind=dinov2 registers=4 positions=antialias"},
    {"transformers.clip_vit_base_patch16", 768, "transformers' CLIP",
     "kind=clip patch=16 pre_norm=yes patch_bias=no"},
    {"transformers.siglip_base_patch16_224", 768, "transformers' SigLIP",
     "kind=siglip class_token=no attention_pool=yes grid=14 patch_bias=yes"},
};

/* A change to one tensor of the list: its name becomes `to` (NULL: it is left out); or one is added. */
typedef struct change {
    const char *name, *to, *add;
    bool is_shorter; /* its first axis is, by one */
} change;

static char path[600];

static void add(kith_tensors_writer *writer, const char *name, kith_array *array) {
    kith_error err = {0};
    assert_ok(kith_array_init(KITH_F32, array->n_dims, array->dim, array, &err), &err);
    for (int64_t i = 0; i < kith_array_count(array); i++) ((float *)array->data)[i] = 1;
    assert_ok(kith_tensors_writer_add(writer, name, array, &err), &err);
}

/* "name 64x3x7x7" as an array without data, smaller. */
static void read_line(const char *line, const row *r, char name[200], kith_array *ret) {
    char shape[64];
    assert_int_equal(sscanf(line, "%199s %63s", name, shape), 2);
    *ret = (kith_array){0};
    for (char *at = shape; *at && *at != 's';) {
        const int64_t n = strtol(at, &at, 10);
        ret->dim[ret->n_dims++] = n % r->width == 0 ? n / SMALLER : n;
        at += *at == 'x';
    }
}

/* Names begin with `before`. */
static void write_file(const row *r, const char *before, const change *c) {
    static kith_array arrays[MOST_TENSORS];
    kith_error err = {0};
    kith_tensors_writer *writer = NULL;
    char name[200], full[300];
    int n = 0;
    snprintf(path, sizeof path, "%s/test/golden/net/names/%s.txt", KITH_SOURCE_DIR, r->list);
    char *text = testing_read(path), *save = NULL;
    assert_ok(kith_tensors_writer_new(&writer, &err), &err);
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        assert_in_range(n, 0, MOST_TENSORS - 2);
        read_line(line, r, name, &arrays[n]);
        const bool is_it = c && c->name && strcmp(name, c->name) == 0;
        if (is_it && c->is_shorter) arrays[n].dim[0]--;
        if (is_it && !c->is_shorter && !c->to) continue;
        snprintf(full, sizeof full, "%s%s", before, is_it && c->to ? c->to : name);
        add(writer, full, &arrays[n++]);
    }
    if (c && c->add) {
        arrays[n] = (kith_array){.n_dims = 1, .dim = {3}};
        add(writer, c->add, &arrays[n++]);
    }
    snprintf(path, sizeof path, "%s/model.safetensors", testing_folder());
    assert_ok(kith_tensors_writer_save(writer, path, &err), &err);
    kith_tensors_writer_free(writer);
    while (n > 0) kith_array_release(&arrays[--n]);
    free(text);
}

/* A file's network with its weights, as opening a model does it. */
static kith_status load(const char **ret_library, ki_recognised *ret, kith_error *err) {
    kith_status status;
    kith_error first = {0};
    kith_tensors *tensors = NULL;
    ki_named *named = NULL;
    ki_net net = {0};
    ki_arena arena = {0};
    ki_backend *backend = NULL;
    ki_params *params = NULL;
    const ki_backbone *found = NULL;
    assert_ok(kith_tensors_open(path, &tensors, &first), &first);
    assert_ok(ki_named_new(tensors, "", &named, &first), &first);
    *ret_library = ki_named_table(named) ? ki_named_table(named)->library : "";
    status = ki_backbone_recognise(named, NULL, &found, ret, err);
    if (status == KITH_OK) {
        ki_net_options options = {.backbone = found->name, .pool = ret->pool, .h = 64, .w = 64};
        assert_ok(ki_settings_parse(&arena, ret->settings, NULL, &options.settings, &first), &first);
        assert_ok(ki_net_init(&options, &net, &first), &first);
        assert_ok(ki_backend_open("ref", NULL, &backend, &first), &first);
        assert_ok(ki_params_new(net.graph, backend, &params, &first), &first);
        status = ki_weights_import_named(named, &net, params, err);
    }
    ki_params_free(params);
    ki_net_release(&net);
    ki_backend_close(backend);
    ki_arena_release(&arena);
    ki_named_free(named);
    kith_tensors_free(tensors);
    return status;
}

/* Every word of `wanted` is one of the settings. */
static void assert_settings(const char *list, const char *settings, const char *wanted) {
    char copy[300], all[KI_SETTINGS_TEXT + 2], part[100], *save = NULL;
    snprintf(copy, sizeof copy, "%s", wanted);
    snprintf(all, sizeof all, ",%s,", settings);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        snprintf(part, sizeof part, ",%s,", word);
        if (!strstr(all, part)) fail_msg("%s: no %s in %s", list, word, settings);
    }
}

static void test_lists(void **state) {
    (void)state;
    for (size_t i = 0; i < N_ROWS(rows); i++) {
        static const char *const before[] = {"", "module.backbone.", "vit."};
        for (size_t k = 0; k < N_ROWS(before); k++) {
            const char *library = NULL;
            char width[40];
            kith_error err = {0};
            ki_recognised known;
            write_file(&rows[i], before[k], NULL);
            const kith_status status = load(&library, &known, &err);
            if (status != KITH_OK) fail_msg("%s%s: %s (%s)", before[k], rows[i].list, err.message, err.hint);
            assert_string_equal(library, rows[i].library);
            assert_settings(rows[i].list, known.settings, rows[i].settings);
            snprintf(width, sizeof width, "width=%d mlp=%d", (int)(rows[i].width / SMALLER),
                     (int)(4 * rows[i].width / SMALLER));
            assert_settings(rows[i].list, known.settings, width);
        }
    }
}

/* The tower of texts has names of its own, and more of them. */
static void test_other_towers_are_left_out(void **state) {
    (void)state;
    static const struct {
        const char *list, *add;
    } files[] = {
        {"transformers.clip_vit_base_patch16", "text_model.encoder.layers.0.self_attn.q_proj.weight"},
        {"transformers.clip_vit_base_patch16", "visual_projection.weight"},
        {"transformers.siglip_base_patch16_224", "logit_scale"},
        {"original.clip_vit_b_16", "transformer.resblocks.0.ln_1.weight"}};
    for (size_t i = 0; i < N_ROWS(files); i++) {
        const char *library = NULL;
        kith_error err = {0};
        ki_recognised known;
        const row r = {.list = files[i].list, .width = 768};
        write_file(&r, "", &(change){.add = files[i].add});
        assert_ok(load(&library, &known, &err), &err);
    }
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *list;
        int64_t width;
        change change;
        const char *line;
    } files[] = {
        {"timm.vit_small_patch16_224",
         384,
         {.name = "blocks.3.mlp.fc1.bias", .to = "blocks.3.mlp.fc1.bais"},
         "1 missing (blocks.3.mlp.fc1.bias), 1 extra (blocks.3.mlp.fc1.bais)"},
        {"timm.vit_small_patch16_224",
         384,
         {.name = "blocks.11.norm2.weight"},
         "1 missing (blocks.11.norm2.weight)"},
        {"timm.vit_small_patch16_224",
         384,
         {.name = "blocks.2.norm2.weight", .is_shorter = true},
         "1 misshapen (blocks.2.norm2.weight is float32 [11], wanted [12])"},
        {"timm.vit_small_patch16_224", 384, {.add = "dist_token"}, "1 extra (dist_token)"},
        /* a part of three */
        {"transformers.vit_base",
         768,
         {.name = "encoder.layer.4.attention.attention.key.bias"},
         "1 missing (blocks.4.attn.qkv.bias)"},
        {"transformers.vit_base",
         768,
         {.name = "encoder.layer.4.attention.attention.key.weight", .is_shorter = true},
         "1 misshapen (blocks.4.attn.qkv.weight is float32 [71, 24], wanted [72, 24])"},
        {"transformers.siglip_base_patch16_224",
         768,
         {.name = "vision_model.head.attention.in_proj_bias"},
         "2 missing (attn_pool.q.bias, attn_pool.kv.bias)"},
        /* cut in thirds */
        {"transformers.siglip_base_patch16_224",
         768,
         {.name = "vision_model.head.attention.in_proj_bias", .is_shorter = true},
         "attn_pool.q.bias"},
        /* positions that are no square grid say nothing */
        {"timm.vit_small_patch16_224",
         384,
         {.name = "pos_embed", .to = "pos_embedding"},
         "the file does not say which network"},
    };
    for (size_t i = 0; i < N_ROWS(files); i++) {
        const char *library = NULL;
        kith_error err = {0};
        ki_recognised known;
        const row r = {.list = files[i].list, .width = files[i].width};
        write_file(&r, "", &files[i].change);
        if (load(&library, &known, &err) == KITH_OK) fail_msg("no '%s' for %s", files[i].line, r.list);
        if (!strstr(err.message, files[i].line)) fail_msg("no '%s' in: %s", files[i].line, err.message);
    }
}

/* A file of what makes a network of vision, and more; opened and renamed. To be closed with close_made. */
typedef struct made_file {
    kith_tensors_writer *writer;
    kith_tensors *tensors;
    ki_named *named;
    kith_array arrays[8];
    int n;
} made_file;

static void put_in(made_file *f, const char *name, kith_array array) {
    assert_in_range(f->n, 0, (int)N_ROWS(f->arrays) - 1);
    f->arrays[f->n] = array;
    add(f->writer, name, &f->arrays[f->n++]);
}

static kith_status open_made(made_file *f, kith_error *err) {
    kith_error first = {0};
    snprintf(path, sizeof path, "%s/model.safetensors", testing_folder());
    assert_ok(kith_tensors_writer_save(f->writer, path, &first), &first);
    assert_ok(kith_tensors_open(path, &f->tensors, &first), &first);
    return ki_named_new(f->tensors, "", &f->named, err);
}

static void close_made(made_file *f) {
    ki_named_free(f->named);
    kith_tensors_free(f->tensors);
    kith_tensors_writer_free(f->writer);
    while (f->n > 0) kith_array_release(&f->arrays[--f->n]);
    *f = (made_file){0};
}

static void put_signs(made_file *f, const char *library_is) {
    kith_error err = {0};
    assert_ok(kith_tensors_writer_new(&f->writer, &err), &err);
    if (strcmp(library_is, "transformers") == 0) {
        put_in(f, "embeddings.position_embeddings", (kith_array){.n_dims = 3, .dim = {1, 4, 8}});
        put_in(f, "embeddings.patch_embeddings.projection.weight",
               (kith_array){.n_dims = 4, .dim = {8, 3, 2, 2}});
        put_in(f, "encoder.layer.0.layernorm_before.weight", (kith_array){.n_dims = 1, .dim = {8}});
        return;
    }
    put_in(f, "patch_embed.proj.weight", (kith_array){.n_dims = 4, .dim = {8, 3, 2, 2}});
    put_in(f, "tokens.positions", (kith_array){.n_dims = 2, .dim = {4, 8}});
    put_in(f, "blocks.0.norm1.weight", (kith_array){.n_dims = 1, .dim = {8}});
}

/* Queries, keys and values beside what they would become. */
static void test_two_of_one(void **state) {
    (void)state;
    static const char *const third[] = {"query", "key", "value"};
    made_file f = {0};
    kith_error err = {0};
    put_signs(&f, "transformers");
    for (int i = 0; i < 3; i++) {
        char name[100];
        snprintf(name, sizeof name, "encoder.layer.0.attention.attention.%s.weight", third[i]);
        put_in(&f, name, (kith_array){.n_dims = 2, .dim = {8, 8}});
    }
    put_in(&f, "blocks.0.attn.qkv.weight", (kith_array){.n_dims = 2, .dim = {24, 8}});
    assert_int_equal(open_made(&f, &err), KITH_EFORMAT);
    if (!strstr(err.message, "are both blocks.0.attn.qkv.weight")) fail_msg("%s", err.message);
    close_made(&f);
}

/* Extents whose sum is more than a number holds: no bytes, so that a file may say so. */
static void test_extents_that_overflow(void **state) {
    (void)state;
    static const char *const third[] = {"query", "key", "value"};
    made_file f = {0};
    kith_error err = {0};
    kith_array shape;
    put_signs(&f, "transformers");
    for (int i = 0; i < 3; i++) {
        char name[100];
        snprintf(name, sizeof name, "encoder.layer.0.attention.attention.%s.weight", third[i]);
        put_in(&f, name, (kith_array){.n_dims = 2, .dim = {(int64_t)1 << 61, 0}});
    }
    assert_ok(open_made(&f, &err), &err);
    assert_true(ki_named_get(f.named, "blocks.0.attn.qkv.weight", &shape)); /* 3 * 2^61 fits */
    close_made(&f);
    put_signs(&f, "transformers");
    for (int i = 0; i < 3; i++) {
        char name[100];
        snprintf(name, sizeof name, "encoder.layer.0.attention.attention.%s.weight", third[i]);
        put_in(&f, name, (kith_array){.n_dims = 2, .dim = {(int64_t)1 << 62, 0}});
    }
    assert_ok(open_made(&f, &err), &err);
    assert_false(ki_named_get(f.named, "blocks.0.attn.qkv.weight", &shape));
    close_made(&f);
}

/* A word of config.json is one setting, whatever is in it. */
static void test_a_word_is_one_setting(void **state) {
    (void)state;
    static const char config[] = "{\"hidden_act\": \"gelu,drop_path=0.5\"}";
    made_file f = {0};
    kith_error err = {0};
    ki_contract c;
    ki_recognised known;
    const ki_backbone *found = NULL;
    put_signs(&f, "timm");
    assert_ok(open_made(&f, &err), &err);
    assert_ok(ki_contract_parse(config, sizeof config - 1, &c, &err), &err);
    assert_ok(ki_backbone_recognise(f.named, &c, &found, &known, &err), &err);
    if (strstr(known.settings, "drop_path") || !strstr(known.settings, "act=?"))
        fail_msg("%s", known.settings);
    ki_contract_release(&c);
    close_made(&f);
}

/* n empty tensors, whose names have a number each. Written by hand, because the writer compares all names. */
static void write_many(const char *format, int n) {
    snprintf(path, sizeof path, "%s/model.safetensors", testing_folder());
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    uint64_t header = 0;
    assert_int_equal(fwrite(&header, sizeof header, 1, file), 1);
    for (int i = 0; i < n; i++) {
        fputs(i == 0 ? "{\"" : ",\"", file);
        fprintf(file, format, i);
        fputs("\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}", file);
    }
    fputs("}", file);
    header = (uint64_t)ftell(file) - sizeof header;
    rewind(file);
    assert_int_equal(fwrite(&header, sizeof header, 1, file), 1);
    assert_int_equal(fclose(file), 0);
}

/* Names are looked up one by one, and a file may hold very many; first signs of a network, too, each with a prefix of its own. That was
 * minutes, and is less than a second. */
static void test_very_many_names(void **state) {
    (void)state;
    enum { MANY = 60000 };
    static const char *const formats[] = {"a.%d.b.c", "x.%d.embeddings.cls_token", "blocks.%d.norm1.weight"};
    for (size_t k = 0; k < N_ROWS(formats); k++) {
        kith_tensors *tensors = NULL;
        ki_named *named = NULL;
        kith_error err = {0};
        write_many(formats[k], MANY);
        assert_ok(kith_tensors_open(path, &tensors, &err), &err);
        const clock_t from = clock();
        assert_ok(ki_named_new(tensors, "", &named, &err), &err);
        const double seconds = (double)(clock() - from) / CLOCKS_PER_SEC;
        assert_int_equal(ki_named_count(named), MANY);
        if (seconds > 10) fail_msg("%d names like %s took %.1f s", MANY, formats[k], seconds);
        ki_named_free(named);
        kith_tensors_free(tensors);
    }
}

/* The row of the nearest width. */
static void test_rows(void **state) {
    (void)state;
    static const struct {
        int64_t width;
        const char *backbone;
    } widths[] = {{24, "vit_t"},  {192, "vit_t"},  {384, "vit_s"}, {512, "vit_s"},
                  {768, "vit_b"}, {1024, "vit_l"}, {1152, "vit_l"}};
    for (size_t i = 0; i < N_ROWS(widths); i++) {
        kith_error err = {0};
        kith_tensors_writer *writer = NULL;
        kith_tensors *tensors = NULL;
        ki_named *named = NULL;
        const ki_backbone *found = NULL;
        ki_recognised known;
        const int64_t width = widths[i].width;
        kith_array arrays[3] = {{.n_dims = 4, .dim = {width, 3, 2, 2}},
                                {.n_dims = 2, .dim = {4, width}},
                                {.n_dims = 1, .dim = {width}}};
        assert_ok(kith_tensors_writer_new(&writer, &err), &err);
        add(writer, "patch_embed.proj.weight", &arrays[0]);
        add(writer, "tokens.positions", &arrays[1]);
        add(writer, "blocks.0.norm1.weight", &arrays[2]);
        snprintf(path, sizeof path, "%s/model.safetensors", testing_folder());
        assert_ok(kith_tensors_writer_save(writer, path, &err), &err);
        assert_ok(kith_tensors_open(path, &tensors, &err), &err);
        assert_ok(ki_named_new(tensors, "", &named, &err), &err);
        assert_ok(ki_backbone_recognise(named, NULL, &found, &known, &err), &err);
        assert_string_equal(found->name, widths[i].backbone);
        ki_named_free(named);
        kith_tensors_free(tensors);
        kith_tensors_writer_free(writer);
        for (size_t k = 0; k < N_ROWS(arrays); k++) kith_array_release(&arrays[k]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_other_towers_are_left_out),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_two_of_one),
        cmocka_unit_test(test_extents_that_overflow),
        cmocka_unit_test(test_a_word_is_one_setting),
        cmocka_unit_test(test_very_many_names),
    };
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
