/* Packing and reading what every query came to. */
#include "judge/per_query.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "judge/card.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
static const char hits[] = "abcdefghijklmnopqrstuvwxyzABCDEF";
enum { N_LETTERS = 52, MOST_STEP = N_LETTERS * N_LETTERS * N_LETTERS - 1, NO_HIT = 'Z', LONE = 'Y' };
_Static_assert(sizeof letters == N_LETTERS + 1 && sizeof hits == KITH_MOST_K + 1, "a letter is missing");

/* ---- which queries ---- */

/* The class as a number in order of appearance: results agree also where they number their labels differently. */
static uint32_t appear(int32_t class_, uint32_t *number, uint32_t *n) {
    if (number[class_] == 0) number[class_] = ++*n;
    return number[class_];
}

static void add_number(kith_hash *hash, uint32_t value) {
    const unsigned char bytes[4] = {(unsigned char)value, (unsigned char)(value >> 8),
                                    (unsigned char)(value >> 16), (unsigned char)(value >> 24)};
    kith_hash_add(hash, bytes, sizeof bytes);
}

kith_status ki_queries_hash(const ki_sides *s, char ret[65], kith_error *err) {
    kith_hash hash = {0};
    uint32_t *number = NULL, n = 0;
    KI_TRY(ki_zalloc_or(&number, (size_t)s->n_classes, sizeof *number, "classes", err));
    add_number(&hash, (uint32_t)s->n_query);
    for (int64_t i = 0; i < s->n_query; i++) {
        add_number(&hash, appear(s->query_class[i], number, &n));
        add_number(&hash, (uint32_t)s->self[i]);
    }
    for (int64_t i = 0; i < s->n_gallery; i++) add_number(&hash, appear(s->gallery_class[i], number, &n));
    kith_hash_finish(&hash, ret);
    ki_free(number);
    return KITH_OK;
}

/* ---- packing ---- */

kith_status ki_per_query_pack(const kith_retrieval *r, ki_per_query *ret, kith_error *err) {
    ki_per_query q = {.n = r->n_query, .n_k = r->n_k};
    const size_t n = (size_t)r->n_query;
    KI_TRY(ki_alloc_or(&q.own, n * 4 + 2, 1, "outcomes of queries", err));
    char *first = q.own, *values = q.own + n + 1;
    for (size_t i = 0; i < n; i++) {
        const kith_scores *s = &r->query[i];
        const bool is_lone = isnan(s->mrr);
        int64_t at = 0;
        while (at < r->n_k && !(s->recall[at] > 0)) at++;
        first[i] = (char)(is_lone ? LONE : at < r->n_k ? hits[at] : NO_HIT);
        const int step = is_lone ? 0 : (int)lround(s->map_at_r * (double)MOST_STEP);
        values[3 * i] = letters[step / (N_LETTERS * N_LETTERS)];
        values[3 * i + 1] = letters[step / N_LETTERS % N_LETTERS];
        values[3 * i + 2] = letters[step % N_LETTERS];
    }
    first[n] = values[3 * n] = '\0';
    q.first_hit = first;
    q.map_at_r = values;
    memcpy(q.k, r->k, sizeof q.k);
    memcpy(q.sha256, r->queries_sha256, sizeof q.sha256);
    *ret = q;
    return KITH_OK;
}

void ki_per_query_release(ki_per_query *q) {
    ki_free(q->own);
    *q = (ki_per_query){0};
}

void ki_per_query_put(kith_json *json, const ki_per_query *q) {
    kith_json_key(json, "per_query");
    kith_json_object_begin(json);
    const ki_card_entry texts[] = {ki_entry_text("sha256", q->sha256),
                                   ki_entry_text("first_hit", q->first_hit),
                                   ki_entry_text("map_at_r", q->map_at_r)};
    ki_card_put_entry(json, &texts[0]);
    kith_json_key(json, "k");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < q->n_k; i++) kith_json_int(json, q->k[i]);
    kith_json_array_end(json);
    for (int i = 1; i < 3; i++) ki_card_put_entry(json, &texts[i]);
    kith_json_object_end(json);
}

/* ---- reading ---- */

static const char *text_at(const kith_card *card, const char *block, const char *name) {
    char path[96];
    ki_snprintf(path, sizeof path, "%sper_query.%s", block, name);
    return kith_card_text(card, path);
}

static bool read_k(const kith_card *card, const char *block, ki_per_query *q) {
    for (const char *text; q->n_k < KITH_MOST_K; q->n_k++) {
        char name[16];
        ki_snprintf(name, sizeof name, "k.%d", (int)q->n_k);
        if (!(text = text_at(card, block, name))) break;
        int64_t *k = &q->k[q->n_k];
        if (!ki_parse_int64(text, k) || *k < 1 || (q->n_k > 0 && *k <= k[-1])) return false;
    }
    return true;
}

static bool is_sound(const ki_per_query *q) {
    for (int64_t i = 0; i < q->n; i++) {
        const char c = q->first_hit[i], *at = strchr(hits, c);
        if (c != NO_HIT && c != LONE && !(at && at - hits < q->n_k)) return false;
    }
    return strlen(q->map_at_r) == 3 * (size_t)q->n && strspn(q->map_at_r, letters) == 3 * (size_t)q->n;
}

kith_status ki_per_query_read(const kith_card *card, const char *block, ki_per_query *ret, kith_error *err) {
    ki_per_query q = {.first_hit = text_at(card, block, "first_hit"),
                      .map_at_r = text_at(card, block, "map_at_r")};
    const char *hash = text_at(card, block, "sha256");
    *ret = (ki_per_query){0};
    if (!q.first_hit && !q.map_at_r && !hash) return KITH_OK;
    if (q.first_hit) q.n = (int64_t)strlen(q.first_hit);
    if (!q.first_hit || !q.map_at_r || !hash || strlen(hash) != 64 || !read_k(card, block, &q) ||
        !is_sound(&q))
        return ki_fail(err, KITH_EFORMAT, "%s: %sper_query is not as kith writes it", ki_card_path(card),
                       block);
    memcpy(q.sha256, hash, sizeof q.sha256);
    *ret = q;
    return KITH_OK;
}

bool ki_per_query_is_lone(const ki_per_query *q, int64_t i) { return q->first_hit[i] == LONE; }

bool ki_per_query_has(const ki_per_query *q, int64_t k) {
    bool has = k == 0;
    for (int64_t i = 0; i < q->n_k; i++) has |= q->k[i] == k;
    return has;
}

static int digit(char c) { return (int)(strchr(letters, c) - letters); }

double ki_per_query_value(const ki_per_query *q, int64_t i, int64_t k) {
    if (k == 0) {
        const char *at = q->map_at_r + 3 * i;
        return (double)((digit(at[0]) * N_LETTERS + digit(at[1])) * N_LETTERS + digit(at[2])) /
               (double)MOST_STEP;
    }
    if (q->first_hit[i] == NO_HIT) return 0;
    return q->k[strchr(hits, q->first_hit[i]) - hits] <= k;
}
