/* Values of statements, and numbers as they are on the wire. */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "search/postgres/link.h"

/* ---- the wire: big-endian ---- */

static void put32(char *to, uint32_t value) {
    for (int i = 0; i < 4; i++) to[i] = (char)(value >> (24 - 8 * i));
}

uint32_t ki_pg_get32(const char *from) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) value = value << 8 | (unsigned char)from[i];
    return value;
}

uint64_t ki_pg_get64(const char *from) { return (uint64_t)ki_pg_get32(from) << 32 | ki_pg_get32(from + 4); }

/* int16 dim, int16 0, float32 [dim] */
void ki_pg_put_vector(char *to, const float *row, int64_t dim) {
    put32(to, (uint32_t)dim << 16);
    for (int64_t i = 0; i < dim; i++) {
        uint32_t bits;
        memcpy(&bits, &row[i], sizeof bits);
        put32(to + 4 + 4 * i, bits);
    }
}

kith_status ki_pg_get_vector(const ki_link *link, const PGresult *result, int row, int column, int64_t dim,
                             float *ret_row, kith_error *err) {
    const char *from = PQgetvalue(result, row, column);
    const size_t n = (size_t)PQgetlength(result, row, column);
    if (n != ki_pg_vector_bytes(dim) || ki_pg_get32(from) >> 16 != (uint32_t)dim)
        return ki_fail(err, KITH_EFORMAT, "%s: a vector has %zu bytes; wanted %zu, for %lld values",
                       link->name, n, ki_pg_vector_bytes(dim), (long long)dim);
    for (int64_t i = 0; i < dim; i++) {
        const uint32_t bits = ki_pg_get32(from + 4 + 4 * i);
        memcpy(&ret_row[i], &bits, sizeof bits);
    }
    return KITH_OK;
}

/* ---- values ---- */

static int add(ki_pg_values *v, const char *value, int bytes, int is_binary) {
    const size_t n = (size_t)v->n + 1;
    if (v->status == KITH_OK)
        v->status = ki_grow(&v->value, &v->capacity, n, sizeof *v->value, "values", NULL);
    if (v->status == KITH_OK)
        v->status = ki_grow(&v->bytes, &v->capacities[0], n, sizeof *v->bytes, "values", NULL);
    if (v->status == KITH_OK)
        v->status = ki_grow(&v->is_binary, &v->capacities[1], n, sizeof *v->is_binary, "values", NULL);
    if (v->status != KITH_OK) return 0;
    v->value[v->n] = value;
    v->bytes[v->n] = bytes;
    v->is_binary[v->n] = is_binary;
    return ++v->n;
}

int ki_pg_text(ki_pg_values *v, const char *text) {
    const char *copy = text ? ki_arena_strdup(&v->arena, text) : NULL;
    if (text && !copy) v->status = KITH_ENOMEM;
    return add(v, copy, 0, 0);
}

int ki_pg_int(ki_pg_values *v, int64_t value) {
    char text[24];
    ki_snprintf(text, sizeof text, "%lld", (long long)value);
    return ki_pg_text(v, text);
}

int ki_pg_ints(ki_pg_values *v, const int64_t *value, int64_t n) {
    ki_buffer text = {0};
    ki_buffer_put(&text, "{");
    for (int64_t i = 0; i < n; i++) ki_buffer_put(&text, i ? ",%lld" : "%lld", (long long)value[i]);
    ki_buffer_add(&text, "}", 2); /* with its NUL */
    if (text.status != KITH_OK) v->status = KITH_ENOMEM;
    const int number = ki_pg_text(v, text.status == KITH_OK ? text.data : "{}");
    ki_buffer_release(&text);
    return number;
}

int ki_pg_vector(ki_pg_values *v, const float *row, int64_t dim) {
    char *bytes = ki_arena_alloc(&v->arena, ki_pg_vector_bytes(dim), 1);
    if (bytes)
        ki_pg_put_vector(bytes, row, dim);
    else
        v->status = KITH_ENOMEM;
    return add(v, bytes, (int)ki_pg_vector_bytes(dim), 1);
}

void ki_pg_values_release(ki_pg_values *v) {
    ki_arena_release(&v->arena);
    ki_free(v->value);
    ki_free(v->bytes);
    ki_free(v->is_binary);
    *v = (ki_pg_values){0};
}
