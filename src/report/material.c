/* Reads what a run left in its folder. Damaged parts are noted and left out. */
#include "report/material.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/text.h"
#include "io/file.h"
#include "io/json.h"
#include "io/yaml.h"
#include "judge/card.h"

enum { LONGEST_PATH = 4096 };
static const size_t MOST_RECIPE = (size_t)1 << 20, MOST_PATHS = (size_t)1 << 30;

static const char *const part_file[KI_N_PARTS] = {"log.jsonl",   "result.json", "run.json",
                                                  "recipe.yaml", "test",        "pairs.json"};

const ki_value *ki_document_at(const ki_value *document, const char *path) {
    return ki_card_find(document, path);
}

const char *ki_document_text(const ki_value *document, const char *path) {
    const ki_value *v = ki_document_at(document, path);
    return v && v->kind == KI_VALUE_SCALAR ? v->text : NULL;
}

bool ki_document_real(const ki_value *document, const char *path, double *ret) {
    const char *text = ki_document_text(document, path);
    double value;
    if (!text || !ki_parse_double(text, &value) || !isfinite(value)) return false;
    *ret = value;
    return true;
}

static kith_status path_of(const ki_material *run, const char *name, char ret[LONGEST_PATH],
                           kith_error *err) {
    const int n = ki_snprintf(ret, LONGEST_PATH, "%s/%s", run->folder, name);
    if (n < 0 || n >= LONGEST_PATH)
        return ki_fail(err, KITH_EINVAL, "the run folder's name has %zu letters; wanted at most %d",
                       strlen(run->folder), LONGEST_PATH - 64);
    return KITH_OK;
}

static bool is_there(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

/* Turn a failure into a note; a lack of memory stays a failure. */
static kith_status note(ki_material *run, ki_material_part part, kith_status status, kith_error *why,
                        kith_error *err) {
    if (status == KITH_OK) return KITH_OK;
    if (status == KITH_ENOMEM) {
        if (err) *err = *why;
        return status;
    }
    run->note[part] = ki_arena_strdup(&run->arena, why->message);
    return run->note[part] ? KITH_OK : ki_fail_memory(err, sizeof why->message, "a note");
}

static kith_status note_absent(ki_material *run, ki_material_part part, kith_error *err) {
    run->note[part] = ki_arena_printf(&run->arena, "the run folder has no %s%s", part_file[part],
                                      part == KI_PART_TEST ? " folder" : "");
    run->is_absent[part] = true;
    return run->note[part] ? KITH_OK : ki_fail_memory(err, 64, "a note");
}

static kith_status read_json(ki_material *run, const char *path, ki_material_part part, const ki_value **ret,
                             kith_error *err) {
    kith_error why = {0};
    ki_value *root = NULL;
    kith_status status = ki_json_read(path, &run->arena, &root, &why);
    if (status == KITH_OK && root->kind != KI_VALUE_MAP)
        status = ki_fail(&why, KITH_EFORMAT, "%s: wanted a JSON object", path);
    if (status == KITH_OK) *ret = root;
    return note(run, part, status, &why, err);
}

static kith_status read_recipe(ki_material *run, const char *path, kith_error *err) {
    kith_error why = {0};
    size_t n = 0;
    ki_value *root = NULL;
    kith_status status = ki_file_read(path, MOST_RECIPE, &run->recipe_text, &n, &why);
    if (status != KITH_OK) return note(run, KI_PART_RECIPE, status, &why, err);
    /* The text is shown whatever it contains; facts are taken from it if it can be parsed. */
    status = ki_yaml_parse(run->recipe_text, n, path, &run->arena, &root, &why);
    if (status == KITH_ENOMEM) return note(run, KI_PART_RECIPE, status, &why, err);
    if (status == KITH_OK && root->kind == KI_VALUE_MAP) run->recipe = root;
    return KITH_OK;
}

static kith_status read_log(ki_material *run, const char *path, kith_error *err) {
    kith_error why = {0};
    return note(run, KI_PART_LOG, ki_log_read(path, &run->log, &why), &why, err);
}

static kith_status read_labels(ki_material *run, const char *path, int64_t n, kith_error *err) {
    kith_array file = {0};
    KI_TRY(kith_npy_read(path, &file, err));
    kith_status status = KITH_OK;
    const bool is_integer = file.dtype == KITH_I32 || file.dtype == KITH_I64 || file.dtype == KITH_U8;
    if (file.n_dims != 1 || !is_integer)
        status = ki_fail(err, KITH_ESHAPE, "%s is %s with %d dimensions; wanted integers [%lld]", path,
                         kith_dtype_name(file.dtype), file.n_dims, (long long)n);
    else if (file.dim[0] != n)
        status = ki_fail(err, KITH_ESHAPE, "%s holds %lld labels for %lld embeddings", path,
                         (long long)file.dim[0], (long long)n);
    else
        status = kith_array_convert(&file, KITH_I64, &run->labels, err);
    kith_array_release(&file);
    return status;
}

/* A text file line by line: the lines point into *ret_text. Free both with ki_free. */
static kith_status read_lines(const char *path, char **ret_text, const char ***ret_line, int64_t *ret_n,
                              kith_error *err) {
    size_t bytes = 0, capacity = 0;
    *ret_n = 0;
    KI_TRY(ki_file_read(path, MOST_PATHS, ret_text, &bytes, err));
    for (char *line = *ret_text; *line;) {
        char *end = line + strcspn(line, "\n");
        char *next = *end ? end + 1 : end;
        *end = '\0';
        if (end > line && end[-1] == '\r') end[-1] = '\0';
        KI_TRY(ki_grow(ret_line, &capacity, (size_t)*ret_n + 1, sizeof **ret_line, "lines of text", err));
        (*ret_line)[(*ret_n)++] = line;
        line = next;
    }
    return KITH_OK;
}

/* One path a line. Without the file, or with another number of lines, there are no pictures. */
static kith_status read_paths(ki_material *run, const char *path, int64_t n, kith_error *err) {
    int64_t n_found = 0;
    KI_TRY(read_lines(path, &run->path_text, &run->path, &n_found, err));
    run->is_features = n_found > 0 && strstr(run->path[0], ".npy#") != NULL;
    if (n_found == n && !run->is_features) return KITH_OK;
    ki_free(run->path);
    run->path = NULL;
    if (run->is_features) return KITH_OK;
    return ki_fail(err, KITH_ESHAPE, "%s holds %lld paths for %lld embeddings", path, (long long)n_found,
                   (long long)n);
}

/* Old runs have no such file. */
static kith_status read_classes(ki_material *run, kith_error *err) {
    char path[LONGEST_PATH];
    KI_TRY(path_of(run, "test/classes.txt", path, err));
    return is_there(path) ? read_lines(path, &run->class_text, &run->class_name, &run->n_classes, err)
                          : KITH_OK;
}

const char *ki_material_class(const ki_material *run, int64_t label, char buf[KI_CLASS_NUMBER]) {
    if (label >= 0 && label < run->n_classes && *run->class_name[label]) return run->class_name[label];
    ki_snprintf(buf, KI_CLASS_NUMBER, "%lld", (long long)label);
    return buf;
}

static kith_status read_test(ki_material *run, kith_error *err) {
    char path[LONGEST_PATH];
    kith_error why = {0};
    KI_TRY(path_of(run, "test/embedding.npy", path, err));
    kith_status status = kith_npy_read(path, &run->embedding, &why);
    if (status == KITH_OK && (run->embedding.n_dims != 2 || run->embedding.dim[0] < 1))
        status = ki_fail(&why, KITH_ESHAPE, "%s has %d dimensions or no rows; wanted [n, dim]", path,
                         run->embedding.n_dims);
    const int64_t n = status == KITH_OK ? run->embedding.dim[0] : 0;
    if (status == KITH_OK) {
        KI_TRY(path_of(run, "test/labels.npy", path, err));
        status = read_labels(run, path, n, &why);
    }
    if (status != KITH_OK) return note(run, KI_PART_TEST, status, &why, err);
    run->n_test = n;
    KI_TRY(path_of(run, KI_RUN_PATHS_FILE, path, err));
    KI_TRY(note(run, KI_PART_TEST, ki_run_paths_beside(path, &run->paths, &why), &why, err));
    KI_TRY(note(run, KI_PART_TEST, read_classes(run, &why), &why, err));
    KI_TRY(path_of(run, "test/paths.txt", path, err));
    return note(run, KI_PART_TEST, read_paths(run, path, n, &why), &why, err);
}

/* "seed-12" and "fold-3" are sub-runs; their number, or -1. */
static int64_t sub_run_number(const char *name) {
    int64_t number = -1;
    const char *digits = strncmp(name, "seed-", 5) == 0 || strncmp(name, "fold-", 5) == 0 ? name + 5 : "";
    if (strspn(digits, "0123456789") != strlen(digits) || !ki_parse_int64(digits, &number)) return -1;
    return number;
}

static int compare_sub_runs(const void *a, const void *b) {
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    const int64_t i = sub_run_number(x), j = sub_run_number(y);
    return i != j ? (i > j) - (i < j) : strcmp(x, y);
}

enum { MOST_SUB_RUNS = 1000 };

/* The sub-runs in folder/prefix, with the prefix before their names. */
static kith_status list_sub_runs(ki_material *run, const char *prefix, kith_error *err) {
    kith_status status = KITH_OK;
    char path[LONGEST_PATH];
    KI_TRY(path_of(run, prefix, path, err));
    DIR *dir = opendir(path);
    if (!dir) return ki_fail(err, KITH_EIO, "%s cannot be read as a folder", path);
    const size_t first = run->n_sub_runs;
    int why = 0;
    for (const char *found; (found = ki_dir_next(dir, &why));) {
        if (sub_run_number(found) < 0 || run->n_sub_runs == MOST_SUB_RUNS) continue;
        const char *name = ki_arena_strdup(&run->arena, found);
        if (!name) KI_CHECK(ki_fail_memory(err, strlen(found), "a run's name"));
        run->sub_run[run->n_sub_runs++] = name;
    }
    if (why) KI_CHECK(ki_fail(err, KITH_EIO, "%s cannot be read to its end: %s", path, strerror(why)));
    qsort(run->sub_run + first, run->n_sub_runs - first, sizeof *run->sub_run, compare_sub_runs);
    for (size_t i = first; prefix[0] && i < run->n_sub_runs; i++) {
        run->sub_run[i] = ki_arena_printf(&run->arena, "%s/%s", prefix, run->sub_run[i]);
        if (!run->sub_run[i]) KI_CHECK(ki_fail_memory(err, LONGEST_PATH, "a run's name"));
    }
done:
    closedir(dir);
    return status;
}

/* Folds may contain seeds: then the seeds are the runs. */
static kith_status find_sub_runs(ki_material *run, kith_error *err) {
    const char *top[MOST_SUB_RUNS];
    run->sub_run = ki_arena_alloc(&run->arena, MOST_SUB_RUNS, sizeof *run->sub_run);
    if (!run->sub_run) return ki_fail_memory(err, MOST_SUB_RUNS * sizeof *run->sub_run, "names of runs");
    KI_TRY(list_sub_runs(run, "", err));
    const size_t n = run->n_sub_runs;
    memcpy(top, run->sub_run, n * sizeof *top);
    run->n_sub_runs = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t before = run->n_sub_runs;
        KI_TRY(list_sub_runs(run, top[i], err));
        if (run->n_sub_runs == before && run->n_sub_runs < MOST_SUB_RUNS)
            run->sub_run[run->n_sub_runs++] = top[i];
    }
    return KITH_OK;
}

static kith_status read_part(ki_material *run, ki_material_part part, kith_error *err) {
    char path[LONGEST_PATH];
    KI_TRY(path_of(run, part_file[part], path, err));
    if (!is_there(path)) return note_absent(run, part, err);
    switch (part) {
    case KI_PART_LOG: return read_log(run, path, err);
    case KI_PART_RESULT: return read_json(run, path, part, &run->result, err);
    case KI_PART_CARD: return read_json(run, path, part, &run->card, err);
    case KI_PART_RECIPE: return read_recipe(run, path, err);
    case KI_PART_TEST: return read_test(run, err);
    default: return read_json(run, path, part, &run->pairs, err);
    }
}

kith_status ki_material_read(const char *folder, bool is_whole, ki_material *ret_run, kith_error *err) {
    kith_status status = KITH_OK;
    ki_material run = {0};
    struct stat info;
    if (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode)) {
        ki_fail(err, KITH_EIO, "%s: there is no such folder", folder);
        return ki_hint(err, KITH_EIO, "wanted the folder of a run, as kith train --out names it");
    }
    if (!(run.folder = ki_strdup(folder))) return ki_fail_memory(err, strlen(folder), "a folder's name");
    KI_CHECK(find_sub_runs(&run, err));
    bool has_any = run.n_sub_runs > 0;
    for (ki_material_part part = 0; part < KI_N_PARTS; part++) {
        if (!is_whole && part >= KI_PART_TEST) break;
        KI_CHECK(read_part(&run, part, err));
        char path[LONGEST_PATH];
        KI_CHECK(path_of(&run, part_file[part], path, err));
        has_any = has_any || is_there(path);
    }
    if (!has_any) {
        ki_fail(err, KITH_EFORMAT, "%s holds nothing of a run", folder);
        status = ki_hint(err, KITH_EFORMAT, "wanted log.jsonl, result.json, recipe.yaml or test/");
        goto done;
    }
    *ret_run = run;
    return KITH_OK;
done:
    ki_material_release(&run);
    return status;
}

void ki_material_release(ki_material *run) {
    ki_free(run->folder);
    ki_log_release(&run->log);
    ki_free(run->recipe_text);
    kith_array_release(&run->embedding);
    kith_array_release(&run->labels);
    ki_free(run->path_text);
    ki_free(run->path);
    ki_free(run->class_text);
    ki_free(run->class_name);
    ki_arena_release(&run->arena);
    *run = (ki_material){0};
}
