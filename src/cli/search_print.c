/* What was found: a table for people, JSON and CSV for programs, arrays. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/search.h"
#include "kith/experimental/json.h"

void search_found_release(search_found *f) {
    const int64_t n = f->hits.begin ? f->hits.begin[f->hits.n_queries] : 0;
    for (int64_t i = 0; f->item && i < n; i++) kith_index_item_release(&f->item[i]);
    free(f->item);
    free(f->false_match_rate);
    kith_hits_release(&f->hits);
    *f = (search_found){0};
}

kith_status search_found_take(const kith_index *index, kith_hits *hits, search_found *ret, kith_error *err) {
    const kith_calibration *curve = kith_index_calibration(index);
    const int64_t n = hits->begin[hits->n_queries];
    search_found f = {.hits = *hits, .has_rates = curve != NULL};
    *hits = (kith_hits){0};
    f.item = calloc((size_t)n + 1, sizeof *f.item);
    f.false_match_rate = calloc((size_t)n + 1, sizeof *f.false_match_rate);
    kith_status status = KITH_OK;
    if (!f.item || !f.false_match_rate)
        status = cli_error(err, KITH_ENOMEM, NULL, "not enough memory for %lld hits", (long long)n);
    for (int64_t i = 0; status == KITH_OK && i < n; i++) {
        status = kith_index_item_get(index, f.hits.hits[i].id, &f.item[i], err);
        f.false_match_rate[i] = curve ? kith_calibration_false_match_rate(curve, f.hits.hits[i].score) : NAN;
    }
    if (status == KITH_OK)
        *ret = f;
    else
        search_found_release(&f);
    return status;
}

/* ---- for people ---- */

const char *search_shown_path(const char *path) {
    char here[4096];
    if (!path || !getcwd(here, sizeof here)) return path;
    const size_t n = strlen(here);
    return n > 1 && strncmp(path, here, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

enum { N_COLUMNS = 6 };
typedef struct cells {
    char rank[24], score[24], rate[24], id[24];
    const char *text[N_COLUMNS];
} cells;

/* The row of hit i; empty where nothing is known. */
static void fill_cells(const search_found *f, int64_t i, int64_t rank, cells *c) {
    const kith_index_item *item = &f->item[i];
    snprintf(c->rank, sizeof c->rank, "%lld", (long long)rank);
    snprintf(c->score, sizeof c->score, "%.4f", f->hits.hits[i].score);
    snprintf(c->id, sizeof c->id, "%lld", (long long)f->hits.hits[i].id);
    if (isnan(f->false_match_rate[i]))
        snprintf(c->rate, sizeof c->rate, "%s", f->has_rates ? "high" : "");
    else
        snprintf(c->rate, sizeof c->rate, "%.2g %%", 100 * f->false_match_rate[i]);
    const char *const text[N_COLUMNS] = {c->rank, c->score,
                                         c->rate, item->label ? item->label : "",
                                         c->id,   item->path ? search_shown_path(item->path) : ""};
    memcpy(c->text, text, sizeof text);
}

void search_put(const char *text) {
    for (const char *at = text; *at; at++) {
        const unsigned char c = (unsigned char)*at;
        /* those above 127 are two bytes in UTF-8 */
        const bool is_high = c == 0xC2 && ((unsigned char)at[1] & 0xE0) == 0x80;
        putchar(is_high || c < ' ' || c == 127 ? '?' : c);
        at += is_high;
    }
}

static void print_cells(const char *const *text, const int *width) {
    static const bool is_right[N_COLUMNS] = {true, true, true, false, true, false};
    int blanks = 2;
    for (int c = 0; c < N_COLUMNS; c++) {
        if (width[c] == 0) continue;
        const int pad = width[c] - cli_text_columns(text[c], strlen(text[c]));
        printf("%*s", blanks + (is_right[c] ? pad : 0), "");
        search_put(text[c]);
        blanks = 2 + (is_right[c] ? 0 : pad);
    }
    putchar('\n');
}

static void print_query(const search_found *f, int64_t q, int64_t offset) {
    static const char *const heads[N_COLUMNS] = {"", "score", "false-match rate", "label", "id", "path"};
    const int64_t begin = f->hits.begin[q], end = f->hits.begin[q + 1];
    int width[N_COLUMNS] = {0};
    cells row;
    if (begin == end) {
        puts("  nothing found");
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        fill_cells(f, i, offset + i - begin + 1, &row);
        for (int c = 0; c < N_COLUMNS; c++) {
            const int n = cli_text_columns(row.text[c], strlen(row.text[c]));
            if (n > width[c]) width[c] = n;
        }
    }
    for (int c = 0; c < N_COLUMNS; c++) {
        const int n = (int)strlen(heads[c]);
        if (width[c] > 0 && width[c] < n) width[c] = n;
    }
    print_cells(heads, width);
    for (int64_t i = begin; i < end; i++) {
        fill_cells(f, i, offset + i - begin + 1, &row);
        print_cells(row.text, width);
    }
}

static void print_table(const search_request *r, const search_queries *queries, const search_found *f) {
    for (int64_t q = 0; q < queries->n; q++) {
        if (q > 0) putchar('\n');
        if (queries->name)
            search_put(search_shown_path(queries->name[q]));
        else
            printf("row %lld", (long long)q);
        putchar('\n');
        print_query(f, q, r->search.offset);
    }
}

/* ---- for programs ---- */

static kith_status print_json(const search_queries *queries, const search_found *f, kith_error *err) {
    kith_json *json = NULL;
    kith_status status = kith_json_new(&json, err);
    if (status != KITH_OK) return status;
    kith_json_object_begin(json);
    kith_json_key(json, "queries");
    kith_json_array_begin(json);
    for (int64_t q = 0; q < queries->n; q++) {
        kith_json_object_begin(json);
        kith_json_key(json, "query");
        if (queries->name)
            kith_json_string(json, queries->name[q]);
        else
            kith_json_int(json, q);
        kith_json_key(json, "hits");
        kith_json_array_begin(json);
        for (int64_t i = f->hits.begin[q]; i < f->hits.begin[q + 1]; i++) {
            kith_json_object_begin(json);
            kith_json_key(json, "id");
            kith_json_int(json, f->hits.hits[i].id);
            kith_json_key(json, "score");
            kith_json_real32(json, (float)f->hits.hits[i].score);
            kith_json_key(json, "path");
            kith_json_string(json, f->item[i].path);
            kith_json_key(json, "label");
            kith_json_string(json, f->item[i].label);
            kith_json_key(json, "false_match_rate");
            kith_json_real(json, f->false_match_rate[i]);
            kith_json_object_end(json);
        }
        kith_json_array_end(json);
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
    kith_json_object_end(json);
    return cli_print_json(json, err);
}

/* In quotes, which are doubled inside. */
static void put_field(const char *text) {
    putchar('"');
    for (; text && *text; text++) {
        if (*text == '"') putchar('"');
        putchar(*text);
    }
    putchar('"');
}

static void print_csv(const search_request *r, const search_queries *queries, const search_found *f) {
    puts("query,rank,id,score,false_match_rate,label,path");
    for (int64_t q = 0; q < queries->n; q++) {
        for (int64_t i = f->hits.begin[q]; i < f->hits.begin[q + 1]; i++) {
            if (queries->name)
                put_field(queries->name[q]);
            else
                printf("%lld", (long long)q);
            printf(",%lld,%lld,%.9g,", (long long)(r->search.offset + i - f->hits.begin[q] + 1),
                   (long long)f->hits.hits[i].id, f->hits.hits[i].score);
            if (!isnan(f->false_match_rate[i])) printf("%.9g", f->false_match_rate[i]);
            putchar(',');
            put_field(f->item[i].label);
            putchar(',');
            put_field(f->item[i].path);
            putchar('\n');
        }
    }
}

/* ids.npy has its scores in ids.scores.npy. Lists that are shorter end with id -1 and score NaN. */
static kith_status write_arrays(const search_request *r, const search_found *f, kith_error *err) {
    int64_t k = 0;
    for (int64_t q = 0; q < f->hits.n_queries; q++) {
        const int64_t n = f->hits.begin[q + 1] - f->hits.begin[q];
        if (n > k) k = n;
    }
    char scores_path[4096];
    const size_t stem = strlen(r->out) - strlen(".npy");
    const int length = snprintf(scores_path, sizeof scores_path, "%.*s.scores.npy", (int)stem, r->out);
    if (length < 0 || (size_t)length >= sizeof scores_path)
        return cli_error(err, KITH_EINVAL, NULL, "--out is longer than 4,000 bytes");
    kith_array ids = {0}, scores = {0};
    const int64_t dim[2] = {f->hits.n_queries, k};
    kith_status status = kith_array_init(KITH_I64, 2, dim, &ids, err);
    if (status == KITH_OK) status = kith_array_init(KITH_F32, 2, dim, &scores, err);
    for (int64_t q = 0; status == KITH_OK && q < dim[0]; q++) {
        const int64_t begin = f->hits.begin[q], n = f->hits.begin[q + 1] - begin;
        for (int64_t i = 0; i < k; i++) {
            ((int64_t *)ids.data)[q * k + i] = i < n ? f->hits.hits[begin + i].id : -1;
            ((float *)scores.data)[q * k + i] = i < n ? (float)f->hits.hits[begin + i].score : NAN;
        }
    }
    if (status == KITH_OK) status = kith_npy_write(scores_path, &scores, err);
    if (status == KITH_OK) status = kith_npy_write(r->out, &ids, err);
    if (status == KITH_OK && !r->json && !r->csv)
        printf("%s: int64 [%lld, %lld]\n%s: float32 [%lld, %lld]\n", r->out, (long long)dim[0],
               (long long)dim[1], scores_path, (long long)dim[0], (long long)dim[1]);
    kith_array_release(&ids);
    kith_array_release(&scores);
    return status;
}

kith_status search_print(const search_request *r, const kith_index *index, const search_queries *queries,
                         const search_found *f, kith_error *err) {
    kith_status status = r->html ? search_write_page(r, index, queries, f, err) : KITH_OK;
    if (status == KITH_OK && r->explain) status = search_write_explanation(r, index, queries, f, err);
    if (status == KITH_OK && r->out) status = write_arrays(r, f, err);
    if (status != KITH_OK) return status;
    if (r->json) return print_json(queries, f, err);
    if (r->csv)
        print_csv(r, queries, f);
    else if (!r->out)
        print_table(r, queries, f);
    if (r->html && !r->csv) printf("%s: the hits as pictures\n", r->html);
    if (r->explain && !r->csv) printf("%s: why the first hit matches\n", r->explain);
    return KITH_OK;
}
