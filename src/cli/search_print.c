/* What was found: a table for people, JSON and CSV for programs, arrays. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/search.h"
#include "kith/experimental/found.h"

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

/* The chance that a hit is wrong; where nothing is known of that, its false-match rate. */
static void fill_rate(const search_queries *queries, const kith_found_hit *hit, cells *c) {
    if (queries->has_errors)
        kith_rate_words(hit->error_rate, c->rate, sizeof c->rate);
    else if (isnan(hit->false_match_rate))
        snprintf(c->rate, sizeof c->rate, "%s", queries->has_rates ? "high" : "");
    else
        snprintf(c->rate, sizeof c->rate, "%.2g %%", 100 * hit->false_match_rate);
}

/* The row of a hit; empty where nothing is known. */
static void fill_cells(const search_queries *queries, const kith_found_hit *hit, int64_t rank, cells *c) {
    const kith_index_item *item = &hit->item;
    snprintf(c->rank, sizeof c->rank, "%lld", (long long)rank);
    snprintf(c->score, sizeof c->score, "%.4f", hit->score);
    snprintf(c->id, sizeof c->id, "%lld", (long long)item->id);
    fill_rate(queries, hit, c);
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

static void print_query(const search_queries *queries, const kith_found *f, int64_t offset) {
    const char *const heads[N_COLUMNS] = {
        "", "score", queries->has_errors ? "wrong" : "false-match rate", "label", "id", "path"};
    int width[N_COLUMNS] = {0};
    cells row;
    if (f->n_hits == 0) {
        puts("  nothing found");
        return;
    }
    for (int64_t i = 0; i < f->n_hits; i++) {
        fill_cells(queries, &f->hits[i], offset + i + 1, &row);
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
    for (int64_t i = 0; i < f->n_hits; i++) {
        fill_cells(queries, &f->hits[i], offset + i + 1, &row);
        print_cells(row.text, width);
    }
}

/* The first hit of them all of which `value` is known. */
static double first_known(const search_queries *queries, bool is_error) {
    for (int64_t q = 0; q < queries->n; q++) {
        const kith_found *f = &queries->found[q];
        for (int64_t i = 0; i < f->n_hits; i++) {
            const double value = is_error ? f->hits[i].error_rate : f->hits[i].false_match_rate;
            if (!isnan(value)) return value;
        }
    }
    return (double)NAN;
}

/* What the numbers mean, once. */
static void print_meaning(const search_queries *queries) {
    char words[32];
    const double value = first_known(queries, queries->has_errors);
    if (isnan(value)) return;
    kith_rate_words(value, words, sizeof words);
    if (queries->has_errors)
        printf(
            "\nabout %s such hits %s wrong, if %.3g %% of the queries show something that is not in the "
            "index "
            "(--unknown); from %lld trials of %lld labels\n",
            words, value < 0.4 ? "is" : "are", 100 * queries->unknown, (long long)queries->n_trials,
            (long long)queries->n_labels);
    else
        printf(
            "\n%s pairs of different things looks this alike. How often a hit is wrong is known of an index "
            "with labels: name some (folders per thing, or --labels), and bring it up to date (kith index "
            "INDEX --sync)\n",
            words);
}

static void print_table(const search_command *c, const search_queries *queries) {
    char title[32];
    for (int64_t q = 0; q < queries->n; q++) {
        if (q > 0) putchar('\n');
        search_put(search_shown_path(search_title(queries, q, title, sizeof title)));
        putchar('\n');
        print_query(queries, &queries->found[q], c->search.offset);
    }
    print_meaning(queries);
}

/* ---- for programs ---- */

static kith_status print_json(const kith_collection *collection, const search_queries *queries,
                              kith_error *err) {
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
            kith_json_int(json, queries->id ? queries->id[q] : q);
        kith_found_write(collection, &queries->found[q], json);
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
    kith_json_object_end(json);
    return cli_print_json(json, err);
}

void search_put_field(const char *text) {
    putchar('"');
    for (; text && *text; text++) {
        if (*text == '"') putchar('"');
        putchar(*text);
    }
    putchar('"');
}

static void put_number(double value) {
    putchar(',');
    if (!isnan(value)) printf("%.9g", value);
}

static void print_csv(const search_command *c, const search_queries *queries) {
    puts("query,rank,id,score,false_match_rate,label,path,error_rate,error_rate_low,error_rate_high");
    for (int64_t q = 0; q < queries->n; q++) {
        const kith_found *f = &queries->found[q];
        for (int64_t i = 0; i < f->n_hits; i++) {
            const kith_found_hit *hit = &f->hits[i];
            if (queries->name)
                search_put_field(queries->name[q]);
            else
                printf("%lld", (long long)(queries->id ? queries->id[q] : q));
            printf(",%lld,%lld,%.9g,", (long long)(c->search.offset + i + 1), (long long)hit->item.id,
                   hit->score);
            if (!isnan(hit->false_match_rate)) printf("%.9g", hit->false_match_rate);
            putchar(',');
            search_put_field(hit->item.label);
            putchar(',');
            search_put_field(hit->item.path);
            put_number(hit->error_rate);
            put_number(hit->error_rate_low);
            put_number(hit->error_rate_high);
            putchar('\n');
        }
    }
}

/* ids.npy has its scores in ids.scores.npy. Lists that are shorter end with id -1 and score NaN. */
static kith_status write_arrays(const search_command *c, const search_queries *queries, kith_error *err) {
    int64_t k = 0;
    for (int64_t q = 0; q < queries->n; q++) {
        if (queries->found[q].n_hits > k) k = queries->found[q].n_hits;
    }
    char scores_path[4096];
    const size_t stem = strlen(c->out) - strlen(".npy");
    const int length = snprintf(scores_path, sizeof scores_path, "%.*s.scores.npy", (int)stem, c->out);
    if (length < 0 || (size_t)length >= sizeof scores_path)
        return cli_error(err, KITH_EINVAL, NULL, "--out is longer than 4,000 bytes");
    kith_array ids = {0}, scores = {0};
    const int64_t dim[2] = {queries->n, k};
    kith_status status = kith_array_init(KITH_I64, 2, dim, &ids, err);
    if (status == KITH_OK) status = kith_array_init(KITH_F32, 2, dim, &scores, err);
    for (int64_t q = 0; status == KITH_OK && q < dim[0]; q++) {
        const kith_found *f = &queries->found[q];
        for (int64_t i = 0; i < k; i++) {
            ((int64_t *)ids.data)[q * k + i] = i < f->n_hits ? f->hits[i].item.id : -1;
            ((float *)scores.data)[q * k + i] = i < f->n_hits ? (float)f->hits[i].score : NAN;
        }
    }
    if (status == KITH_OK) status = kith_npy_write(scores_path, &scores, err);
    if (status == KITH_OK) status = kith_npy_write(c->out, &ids, err);
    if (status == KITH_OK && !c->json && !c->csv)
        printf("%s: int64 [%lld, %lld]\n%s: float32 [%lld, %lld]\n", c->out, (long long)dim[0],
               (long long)dim[1], scores_path, (long long)dim[0], (long long)dim[1]);
    kith_array_release(&ids);
    kith_array_release(&scores);
    return status;
}

kith_status search_print(const search_command *c, kith_collection *collection, const search_queries *queries,
                         kith_error *err) {
    kith_status status = c->html ? search_write_page(c, collection, queries, err) : KITH_OK;
    if (status == KITH_OK && c->explain) status = search_write_explanation(c, collection, queries, err);
    if (status == KITH_OK && c->out) status = write_arrays(c, queries, err);
    if (status != KITH_OK) return status;
    if (c->json) return print_json(collection, queries, err);
    if (c->csv)
        print_csv(c, queries);
    else if (!c->out)
        print_table(c, queries);
    if (c->html && !c->csv) printf("%s: the hits as pictures\n", c->html);
    if (c->explain && !c->csv) printf("%s: why the first hit matches\n", c->explain);
    return KITH_OK;
}
