/* Names: lines for people, JSON and CSV for programs. */
#include <math.h>
#include <string.h>

#include "cli/identify.h"
#include "cli/images.h"
#include "cli/search.h"
#include "kith/experimental/found.h"

/* ---- for people ---- */

static void put_indented(const char *text) {
    fputs("  ", stdout);
    search_put(text);
}

/* "1.2 %", "0.04 %", "37 %". */
static const char *percent(double rate, char *buf, size_t bytes) {
    snprintf(buf, bytes, rate >= 0.095 ? "%.0f %%" : "%.2g %%", 100 * rate);
    return buf;
}

static void print_name(const kith_identified *x) {
    char rate[32], high[32];
    put_indented(x->name ? x->name : "unknown");
    if (x->name)
        printf(": with this evidence, %s of all asked about get a false name, at most %s",
               percent(x->false_name_rate, rate, sizeof rate),
               percent(x->false_name_high, high, sizeof high));
    if (x->name && x->is_single) fputs(" (one photo of it: promised together with all other names)", stdout);
    if (!x->name && !isnan(x->false_name_high))
        printf(": the first name would be false for %s of all asked about, at most %s",
               percent(x->false_name_rate, rate, sizeof rate),
               percent(x->false_name_high, high, sizeof high));
    if (!x->name && isnan(x->false_name_high) && x->n_candidates > 0)
        fputs(": the photos do not agree", stdout);
    putchar('\n');
}

static void print_candidates(const kith_identified *x) {
    int width = 0;
    for (int64_t i = 0; i < x->n_candidates; i++) {
        const int n = cli_text_columns(x->candidates[i].item.label, strlen(x->candidates[i].item.label));
        if (n > width) width = n;
    }
    for (int64_t i = 0; i < x->n_candidates; i++) {
        const kith_found_hit *hit = &x->candidates[i];
        printf("  %3lld  %.4f  ", (long long)(i + 1), hit->score);
        search_put(hit->item.label);
        printf("%*s", width - cli_text_columns(hit->item.label, strlen(hit->item.label)) + 2, "");
        search_put(hit->item.path ? search_shown_path(hit->item.path) : "");
        putchar('\n');
    }
}

static void print_table(const identify_things *t) {
    for (int64_t i = 0; i < t->n; i++) {
        const kith_identified *x = &t->found[i];
        int64_t first = 0;
        const int64_t n = identify_photos_of(t, i, &first);
        if (x->status != KITH_OK) continue;
        for (int64_t p = 0; p < n; p++) {
            search_put(search_shown_path(t->photo[first + p]));
            putchar('\n');
        }
        print_name(x);
        print_candidates(x);
        putchar('\n');
    }
}

/* What the promise is, in one line. */
static void print_promise(const identify_things *t) {
    const kith_identify_report *r = &t->report;
    int64_t n_named = 0, n = 0;
    char error[32], named[32];
    for (int64_t i = 0; i < t->n; i++) {
        n += t->found[i].status == KITH_OK;
        n_named += t->found[i].name != NULL;
    }
    printf("%lld of %lld named; of all asked about, at most %s get a false name\n", (long long)n_named,
           (long long)n, percent(r->error, error, sizeof error));
    printf("measured on %lld photos of %lld names, of which %s get their own\n", (long long)r->n_photos,
           (long long)r->n_names, percent(r->named, named, sizeof named));
}

static void report(const identify_things *t) {
    int64_t n_bad = 0;
    const char *first = "";
    for (int64_t i = 0; i < t->n; i++) {
        if (t->found[i].status == KITH_OK) continue;
        if (n_bad++ == 0) first = t->found[i].error.message;
    }
    cli_report_bad(n_bad, first);
    if (t->report.unlike != 0)
        fprintf(stderr,
                "kith: these photos are %s the collection's: the rate of false names was not measured on "
                "photos like "
                "them\n",
                t->report.unlike < 0 ? "less alike to all photos of the collection than new things are among"
                                     : "more alike to photos of the collection than those are to each other, "
                                       "as copies are; not like");
}

/* ---- for programs ---- */

static void put_real(kith_json *json, const char *key, double value) {
    kith_json_key(json, key);
    kith_json_real(json, value);
}

static void put_int(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    kith_json_int(json, value);
}

static void put_report(kith_json *json, const kith_identify_report *r) {
    static const char *const unlike[] = {"farther", NULL, "nearer"};
    put_real(json, "error", r->error);
    put_real(json, "evidence", r->evidence);
    put_real(json, "named", r->named);
    put_real(json, "least_error", r->least);
    put_int(json, "n_photos", r->n_photos);
    put_int(json, "n_names", r->n_names);
    put_int(json, "n_single", r->n_single);
    kith_json_key(json, "unlike");
    kith_json_string(json, unlike[r->unlike + 1]);
}

static kith_status print_json(const kith_collection *collection, const identify_things *t, kith_error *err) {
    kith_json *json = NULL;
    const kith_status status = kith_json_new(&json, err);
    if (status != KITH_OK) return status;
    kith_json_object_begin(json);
    put_report(json, &t->report);
    kith_json_key(json, "things");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < t->n; i++) {
        const kith_identified *x = &t->found[i];
        int64_t first = 0;
        const int64_t n = identify_photos_of(t, i, &first);
        kith_json_object_begin(json);
        kith_json_key(json, "photos");
        kith_json_array_begin(json);
        for (int64_t p = 0; p < n; p++) kith_json_string(json, t->photo[first + p]);
        kith_json_array_end(json);
        if (x->status == KITH_OK) {
            kith_identified_write(collection, x, json);
        } else {
            kith_json_key(json, "problem");
            kith_json_string(json, x->error.message);
        }
        kith_json_object_end(json);
    }
    kith_json_array_end(json);
    kith_json_object_end(json);
    return cli_print_json(json, err);
}

static void put_number(double value) {
    putchar(',');
    if (!isnan(value)) printf("%.6g", value);
}

/* A row for each photo; those of one thing have the same name. */
static void print_csv(const identify_things *t) {
    puts("photo,name,false_name_rate,false_name_high,evidence,best_name,best_score,nearest_id,nearest_path");
    for (int64_t i = 0; i < t->n; i++) {
        const kith_identified *x = &t->found[i];
        const kith_found_hit *hit = x->n_candidates > 0 ? x->candidates : NULL;
        int64_t first = 0;
        const int64_t n = identify_photos_of(t, i, &first);
        for (int64_t p = 0; x->status == KITH_OK && p < n; p++) {
            search_put_field(t->photo[first + p]);
            putchar(',');
            if (x->name) search_put_field(x->name);
            put_number(x->false_name_rate);
            put_number(x->false_name_high);
            put_number(x->evidence);
            putchar(',');
            if (hit) search_put_field(hit->item.label);
            put_number(hit ? hit->score : (double)NAN);
            putchar(',');
            if (hit) printf("%lld", (long long)hit->item.id);
            putchar(',');
            if (hit) search_put_field(hit->item.path);
            putchar('\n');
        }
    }
}

kith_status identify_print(const identify_command *c, kith_collection *collection, const identify_things *t,
                           kith_error *err) {
    const kith_status status = c->html ? identify_write_page(c, collection, t, err) : KITH_OK;
    if (status != KITH_OK) return status;
    report(t);
    if (c->json) return print_json(collection, t, err);
    if (c->csv) {
        print_csv(t);
        return KITH_OK;
    }
    print_table(t);
    print_promise(t);
    if (c->html) printf("%s: photos, names and why\n", c->html);
    return KITH_OK;
}
