/* Writing and reading checkpoints. */
#include "train/checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/text.h"
#include "io/tensors.h"
#include "net/model_file.h"

static const char format_key[] = "kith.checkpoint", format_version[] = "5",
                  recipe_key[] = "kith.recipe_sha256", best_key[] = "kith.best_sha256",
                  counts_key[] = "kith.counts", reals_key[] = "kith.reals", seal_key[] = "kith.checksum";

/* The standing as two lists of numbers, each with a list of names in the metadata. The same code writes and reads them:
 * a name that the file lacks leaves its field as it is, and a name that no field has is passed over. */
enum { MOST_NAME = 64 };

typedef struct list {
    int n;                   /* visited so far */
    ki_buffer names, values; /* to write */
    const char *said;        /* names of what is read */
    kith_array from;
} list;

typedef struct numbers {
    bool is_reading;
    const char *block;  /* what names begin with; "": nothing */
    list counts, reals; /* int64 and double: 8 bytes each */
} numbers;

/* Where the file has a number: the place of its name in the list. */
static int64_t find(const char *names, const char *name) {
    const size_t n = strlen(name);
    for (int64_t i = 0; *names; i++) {
        const size_t here = strcspn(names, " ");
        if (here == n && memcmp(names, name, n) == 0) return i;
        names += here + (names[here] == ' ');
    }
    return -1;
}

static void visit(numbers *n, list *l, const char *field, void *value) {
    char name[MOST_NAME];
    const int at = l->n++;
    ki_snprintf(name, sizeof name, "%s%s%s", n->block, *n->block ? "." : "", field);
    if (!n->is_reading) {
        ki_buffer_put(&l->names, "%s%s", at ? " " : "", name);
        ki_buffer_add(&l->values, value, 8);
        return;
    }
    const int64_t there = find(l->said, name);
    if (there < 0 || there >= kith_array_count(&l->from)) return;
    memcpy(value, (const char *)l->from.data + 8 * there, 8);
}

static void count(numbers *n, const char *name, int64_t *value) { visit(n, &n->counts, name, value); }

static void flag(numbers *n, const char *name, bool *value) {
    int64_t as_count = *value;
    count(n, name, &as_count);
    *value = as_count != 0;
}

static void real(numbers *n, const char *name, double *value) { visit(n, &n->reals, name, value); }

static void walk_scores(numbers *n, const char *block, ki_scores *s) {
    n->block = block;
    flag(n, "is_there", &s->is_there);
    count(n, "step", &s->step);
    count(n, "n_query", &s->n_query);
    count(n, "n_classes", &s->n_classes);
    count(n, "n_lone", &s->n_lone);
    for (int i = 0; i < KITH_MOST_K; i++) {
        char name[24];
        ki_snprintf(name, sizeof name, "recall.%d", i);
        real(n, name, &s->recall[i]);
    }
    real(n, "map_at_r", &s->map_at_r);
    real(n, "r_precision", &s->r_precision);
    real(n, "alike", &s->alike);
    real(n, "seconds", &s->seconds);
    n->block = "";
}

static void walk(numbers *n, ki_standing *s) {
    int64_t seed = (int64_t)s->sampler.seed, epoch = s->sampler.epoch;
    n->block = "";
    count(n, "step", &s->step);
    count(n, "sampler.seed", &seed);
    count(n, "sampler.epoch", &epoch);
    count(n, "sampler.number", &s->sampler.number);
    s->sampler.seed = (uint64_t)seed;
    s->sampler.epoch = (uint32_t)epoch;
    count(n, "last_eval", &s->last_eval);
    count(n, "best_step", &s->best_step);
    count(n, "n_without_gain", &s->n_without_gain);
    count(n, "n_threads", &s->n_threads);
    count(n, "n_images", &s->n_images);
    count(n, "log_bytes", &s->log_bytes);
    flag(n, "is_stopped", &s->is_stopped);
    flag(n, "has_warned_alike", &s->has_warned_alike);
    flag(n, "has_warned_margin", &s->has_warned_margin);
    flag(n, "has_warned_drowned", &s->has_warned_drowned);
    count(n, "n_alike", &s->n_alike);
    count(n, "n_margin", &s->n_margin);
    count(n, "n_drowned", &s->n_drowned);
    real(n, "best_score", &s->best_score);
    real(n, "seconds", &s->seconds);
    real(n, "wall_seconds", &s->wall_seconds);
    walk_scores(n, "untrained", &s->untrained);
    walk_scores(n, "untrained_validation", &s->untrained_validation);
    walk_scores(n, "best_validation", &s->best_validation);
    walk_scores(n, "best_seen", &s->best_seen);
    walk_scores(n, "last_validation", &s->last_validation);
    walk_scores(n, "last_seen", &s->last_seen);
    walk_scores(n, "best_test", &s->best_test);
}

/* The numbers as one tensor, their names as metadata. */
static kith_status add_list(kith_tensors_writer *writer, const char *name, const char *key, kith_dtype dtype,
                            list *l, kith_error *err) {
    const kith_array values = {dtype, 1, {l->n}, l->values.data};
    ki_buffer_add(&l->names, "", 1);
    KI_TRY(l->names.status);
    KI_TRY(l->values.status);
    KI_TRY(kith_tensors_writer_add(writer, name, &values, err));
    return kith_tensors_writer_metadata(writer, key, l->names.data, err);
}

static void list_release(list *l) {
    ki_buffer_release(&l->names);
    ki_buffer_release(&l->values);
}

kith_status ki_checkpoint_save(const char *path, ki_learner *learner, const ki_net *net,
                               const ki_standing *standing, const char *recipe_hash, kith_error *err) {
    kith_status status;
    kith_tensors_writer *writer = NULL;
    ki_standing copy = *standing;
    numbers n = {.counts = {.names.err = err, .values.err = err},
                 .reals = {.names.err = err, .values.err = err}};
    char step[32];
    ki_snprintf(step, sizeof step, "%lld", (long long)standing->step);
    walk(&n, &copy);
    KI_CHECK(kith_tensors_writer_new(&writer, err));
    KI_CHECK(ki_learner_save(learner, writer, err));
    KI_CHECK(add_list(writer, "run/counts", counts_key, KITH_I64, &n.counts, err));
    KI_CHECK(add_list(writer, "run/reals", reals_key, KITH_F64, &n.reals, err));
    KI_CHECK(kith_tensors_writer_metadata(writer, format_key, format_version, err));
    KI_CHECK(kith_tensors_writer_metadata(writer, recipe_key, recipe_hash, err));
    KI_CHECK(kith_tensors_writer_metadata(writer, "kith.step", step, err));
    KI_CHECK(kith_tensors_writer_metadata(writer, best_key, standing->best_hash, err));
    KI_CHECK(ki_model_metadata_write(net, writer, err));
    KI_CHECK(ki_tensors_writer_seal(writer, seal_key, err));
    KI_CHECK(kith_tensors_writer_save(writer, path, err));
done:
    list_release(&n.counts);
    list_release(&n.reals);
    kith_tensors_writer_free(writer);
    return status;
}

static int64_t count_words(const char *text) {
    int64_t n = *text != '\0';
    for (; *text; text++) n += *text == ' ';
    return n;
}

/* As many numbers as names. */
static kith_status find_list(const kith_tensors *tensors, const char *name, const char *key, kith_dtype dtype,
                             list *ret, kith_error *err) {
    KI_TRY(kith_tensors_get(tensors, name, &ret->from, err));
    if (!(ret->said = kith_tensors_metadata(tensors, key)))
        return ki_fail(err, KITH_EFORMAT, "%s has no names (%s)", name, key);
    const int64_t n = kith_array_count(&ret->from), wanted = count_words(ret->said);
    if (ret->from.dtype != dtype || n != wanted)
        return ki_fail(err, KITH_EFORMAT, "%s has %lld numbers of %s; wanted %lld of %s", name, (long long)n,
                       kith_dtype_name(ret->from.dtype), (long long)wanted, kith_dtype_name(dtype));
    return KITH_OK;
}

static kith_status read_standing(const kith_tensors *tensors, ki_standing *ret, kith_error *err) {
    numbers n = {.is_reading = true};
    /* Where the file lacks a name: as before the first step. */
    ki_standing standing = {.step = -1, .last_eval = -1, .best_step = -1};
    KI_TRY(find_list(tensors, "run/counts", counts_key, KITH_I64, &n.counts, err));
    KI_TRY(find_list(tensors, "run/reals", reals_key, KITH_F64, &n.reals, err));
    walk(&n, &standing);
    if (standing.step < 0 || standing.sampler.number < 0 || standing.n_images < 0 || standing.log_bytes < 0)
        return ki_fail(err, KITH_EFORMAT, "run/counts has no step, or a negative step or count");
    const char *best = kith_tensors_metadata(tensors, best_key);
    if (best) ki_snprintf(standing.best_hash, sizeof standing.best_hash, "%s", best);
    *ret = standing;
    return KITH_OK;
}

/* A broken seal is reported first: then nothing else in the file can be trusted, not even its format. */
static kith_status check(const kith_tensors *tensors, const char *recipe_hash, kith_error *err) {
    const char *version = kith_tensors_metadata(tensors, format_key);
    const char *hash = kith_tensors_metadata(tensors, recipe_key);
    const ki_seal seal = ki_tensors_seal(tensors, seal_key);
    if (seal == KI_SEAL_BROKEN)
        return ki_fail(err, KITH_EFORMAT, "its checksum is wrong: bytes have changed since it was written");
    if (!version || !hash) return ki_fail(err, KITH_EFORMAT, "this is no checkpoint of kith train");
    if (strcmp(version, format_version) != 0) {
        ki_fail(err, KITH_EUNSUPPORTED, "a checkpoint of format %.20s; this kith reads %s", version,
                format_version);
        return ki_hint(err, KITH_EUNSUPPORTED, "use the kith that wrote it");
    }
    if (seal == KI_SEAL_NONE) return ki_fail(err, KITH_EFORMAT, "its checksum is missing");
    if (strcmp(hash, recipe_hash) != 0)
        return ki_fail(err, KITH_EFORMAT, "the checkpoint belongs to another recipe");
    return KITH_OK;
}

kith_status ki_checkpoint_open(const char *path, const char *recipe_hash, ki_checkpoint *ret,
                               kith_error *err) {
    ki_checkpoint c = {0};
    KI_TRY(kith_tensors_open(path, &c.tensors, err));
    kith_status status = check(c.tensors, recipe_hash, err);
    if (status == KITH_OK) status = read_standing(c.tensors, &c.at, err);
    if (status != KITH_OK) {
        ki_checkpoint_release(&c);
        return ki_prefix(err, status, "%s", path);
    }
    *ret = c;
    return KITH_OK;
}

void ki_checkpoint_release(ki_checkpoint *checkpoint) {
    kith_tensors_free(checkpoint->tensors);
    *checkpoint = (ki_checkpoint){0};
}

kith_status ki_checkpoint_restore(const ki_checkpoint *checkpoint, ki_learner *learner, kith_error *err) {
    return ki_learner_load(learner, checkpoint->tensors, err);
}
