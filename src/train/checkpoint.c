/* Writing and reading checkpoints. */
#include "train/checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "io/tensors.h"
#include "net/model_file.h"

/* Format 3, of kith 0.1, had no checksum and no description of the network. */
static const char format_key[] = "kith.checkpoint", format_version[] = "4", format_unsealed[] = "3",
                  recipe_key[] = "kith.recipe_sha256", best_key[] = "kith.best_sha256",
                  seal_key[] = "kith.checksum";

/* The standing as two lists of numbers. The same code writes and reads them. */
enum { MOST_COUNTS = 64, MOST_REALS = 7 * (KITH_MOST_K + 4) + 3 };

typedef struct numbers {
    bool is_reading;
    int64_t count[MOST_COUNTS];
    double real[MOST_REALS];
    int n_counts, n_reals;
} numbers;

static void count(numbers *n, int64_t *value) {
    if (n->is_reading)
        *value = n->count[n->n_counts];
    else
        n->count[n->n_counts] = *value;
    n->n_counts++;
}

static void flag(numbers *n, bool *value) {
    int64_t as_count = *value;
    count(n, &as_count);
    *value = as_count != 0;
}

static void real(numbers *n, double *value) {
    if (n->is_reading)
        *value = n->real[n->n_reals];
    else
        n->real[n->n_reals] = *value;
    n->n_reals++;
}

static void walk_scores(numbers *n, ki_scores *s) {
    flag(n, &s->is_there);
    count(n, &s->step);
    count(n, &s->n_query);
    count(n, &s->n_classes);
    count(n, &s->n_lone);
    for (int i = 0; i < KITH_MOST_K; i++) real(n, &s->recall[i]);
    real(n, &s->map_at_r);
    real(n, &s->r_precision);
    real(n, &s->alike);
    real(n, &s->seconds);
}

static void walk(numbers *n, ki_standing *s) {
    int64_t seed = (int64_t)s->sampler.seed, epoch = s->sampler.epoch;
    count(n, &s->step);
    count(n, &seed);
    count(n, &epoch);
    count(n, &s->sampler.number);
    s->sampler.seed = (uint64_t)seed;
    s->sampler.epoch = (uint32_t)epoch;
    count(n, &s->last_eval);
    count(n, &s->best_step);
    count(n, &s->n_without_gain);
    count(n, &s->n_threads);
    count(n, &s->n_images);
    count(n, &s->log_bytes);
    flag(n, &s->is_stopped);
    flag(n, &s->has_warned_alike);
    flag(n, &s->has_warned_margin);
    flag(n, &s->has_warned_drowned);
    count(n, &s->n_alike);
    count(n, &s->n_margin);
    count(n, &s->n_drowned);
    real(n, &s->best_score);
    real(n, &s->seconds);
    real(n, &s->wall_seconds);
    walk_scores(n, &s->untrained);
    walk_scores(n, &s->untrained_validation);
    walk_scores(n, &s->best_validation);
    walk_scores(n, &s->best_seen);
    walk_scores(n, &s->last_validation);
    walk_scores(n, &s->last_seen);
    walk_scores(n, &s->best_test);
}

kith_status ki_checkpoint_save(const char *path, ki_learner *learner, const ki_net *net,
                               const ki_standing *standing, const char *recipe_hash, kith_error *err) {
    kith_status status;
    kith_tensors_writer *writer = NULL;
    ki_standing copy = *standing;
    numbers n = {0};
    char step[32];
    ki_snprintf(step, sizeof step, "%lld", (long long)standing->step);
    walk(&n, &copy);
    const kith_array counts = {KITH_I64, 1, {n.n_counts}, n.count},
                     reals = {KITH_F64, 1, {n.n_reals}, n.real};
    KI_CHECK(kith_tensors_writer_new(&writer, err));
    KI_CHECK(ki_learner_save(learner, writer, err));
    KI_CHECK(kith_tensors_writer_add(writer, "run/counts", &counts, err));
    KI_CHECK(kith_tensors_writer_add(writer, "run/reals", &reals, err));
    KI_CHECK(kith_tensors_writer_metadata(writer, format_key, format_version, err));
    KI_CHECK(kith_tensors_writer_metadata(writer, recipe_key, recipe_hash, err));
    KI_CHECK(kith_tensors_writer_metadata(writer, "kith.step", step, err));
    KI_CHECK(kith_tensors_writer_metadata(writer, best_key, standing->best_hash, err));
    KI_CHECK(ki_model_metadata_write(net, writer, err));
    KI_CHECK(ki_tensors_writer_seal(writer, seal_key, err));
    KI_CHECK(kith_tensors_writer_save(writer, path, err));
done:
    kith_tensors_writer_free(writer);
    return status;
}

static kith_status read_standing(const kith_tensors *tensors, ki_standing *ret, kith_error *err) {
    kith_array counts, reals;
    numbers n = {.is_reading = true}, wanted = {0};
    ki_standing standing = {0};
    walk(&wanted, &standing);
    KI_TRY(kith_tensors_get(tensors, "run/counts", &counts, err));
    KI_TRY(kith_tensors_get(tensors, "run/reals", &reals, err));
    if (counts.dtype != KITH_I64 || reals.dtype != KITH_F64 || kith_array_count(&counts) != wanted.n_counts ||
        kith_array_count(&reals) != wanted.n_reals)
        return ki_fail(err, KITH_EFORMAT,
                       "run/counts and run/reals have %lld and %lld numbers; wanted %d and %d",
                       (long long)kith_array_count(&counts), (long long)kith_array_count(&reals),
                       wanted.n_counts, wanted.n_reals);
    memcpy(n.count, counts.data, (size_t)wanted.n_counts * sizeof *n.count);
    memcpy(n.real, reals.data, (size_t)wanted.n_reals * sizeof *n.real);
    walk(&n, &standing);
    if (standing.step < 0 || standing.sampler.number < 0 || standing.n_images < 0 || standing.log_bytes < 0)
        return ki_fail(err, KITH_EFORMAT, "run/counts holds a negative step or count");
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
    const bool is_ours = strcmp(version, format_version) == 0;
    if (is_ours && seal == KI_SEAL_NONE) return ki_fail(err, KITH_EFORMAT, "its checksum is missing");
    if (!is_ours && strcmp(version, format_unsealed) != 0) {
        ki_fail(err, KITH_EUNSUPPORTED, "a checkpoint of format %.20s; this kith reads %s and %s", version,
                format_unsealed, format_version);
        return ki_hint(err, KITH_EUNSUPPORTED, "use the kith that wrote it, or a newer one");
    }
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
