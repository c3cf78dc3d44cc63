/* Which combinations of a grid go on: the rounds before are gone through again from their results, so that every process, now or
 * later, comes to the same. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/path.h"
#include "reproduce/grid.h"
#include "reproduce/one_run.h"

/* The score that decides, of a result. */
static kith_status read_score(const ki_outcome *there, const char *path, const char *by, double *ret_score,
                              kith_error *err) {
    *ret_score = ki_outcome_real(there, "validation", by);
    if (!isnan(*ret_score)) return KITH_OK;
    ki_fail(err, KITH_EFORMAT, "%s has no %s of validation classes, which decides about its grid", path, by);
    return ki_hint(err, KITH_EFORMAT, "remove the file to run it again");
}

/* What a run of a grid came to: NaN if it failed. *ret_missing: there is no result yet, or it is one of another recipe. */
static kith_status score_of(const ki_jobs *r, const ki_job *j, double *ret_score, bool *ret_missing,
                            kith_error *err) {
    kith_status status;
    ki_arena arena = {0};
    ki_outcome there = {0};
    ki_run *u = NULL;
    *ret_score = NAN;
    *ret_missing = false;
    KI_CHECK(ki_zalloc_or(&u, 1, sizeof *u, "a run", err));
    status = ki_run_open(r, j, u, err);
    if (status != KITH_OK && status != KITH_ENOMEM) { /* its turn has said what is wrong with it */
        status = KITH_OK;
        goto done;
    }
    KI_CHECK(status);
    if (ki_is_file("%s", u->result.s)) {
        KI_CHECK(ki_outcome_read(u->result.s, &arena, &there, err));
        *ret_missing = strcmp(there.experiment, u->origin.experiment) != 0;
        if (!*ret_missing) KI_CHECK(read_score(&there, u->result.s, j->row->in->by, ret_score, err));
    } else {
        *ret_missing = !ki_is_file("%s", u->failure.s);
    }
done:
    if (u) ki_recipe_free(u->recipe);
    ki_free(u);
    ki_arena_release(&arena);
    return status;
}

/* Is it the first job of its seed that is about the grid, up to a pass? */
static bool brings_seed(const ki_jobs *r, size_t i, const ki_list_grid *g, size_t pass) {
    for (size_t j = 0; j <= i; j++) {
        const ki_job *other = &r->job[j];
        if (other->row->in == g && other->pass <= pass && other->seed == r->job[i].seed) return j == i;
    }
    return false;
}

/* The mean over the seeds of the job's pass and those before. *ret_missing has memory of the caller, filled in where a
 * result is missing. */
static kith_status mean_score(const ki_jobs *r, const ki_job *of, const ki_list_row *row, double *ret_mean,
                              ki_job *ret_missing, kith_error *err) {
    double sum = 0, n = 0, score = NAN;
    for (size_t i = 0; i < r->n_jobs && !ret_missing->row; i++) {
        bool is_missing = false;
        if (!brings_seed(r, i, of->row->in, of->pass)) continue;
        const ki_job wanted = {row, r->job[i].seed, of->pass};
        KI_TRY(score_of(r, &wanted, &score, &is_missing, err));
        if (is_missing) *ret_missing = wanted;
        sum += score;
        n++;
    }
    *ret_mean = n > 0 ? sum / n : NAN;
    return KITH_OK;
}

kith_status ki_halving_goes_on(const ki_jobs *r, const ki_job *j, ki_halving_verdict *ret, kith_error *err) {
    const ki_list_grid *g = j->row->in;
    kith_status status = KITH_OK;
    bool *alive = NULL;
    double *score = NULL;
    *ret = (ki_halving_verdict){.goes_on = true};
    if (!g || j->row->rung == 0) return KITH_OK;
    KI_CHECK(ki_alloc_or(&alive, g->n_settings, sizeof *alive, "a grid", err));
    KI_CHECK(ki_zalloc_or(&score, g->n_settings, sizeof *score, "a grid", err));
    for (size_t s = 0; s < g->n_settings; s++) alive[s] = true;
    for (size_t rung = 0; rung < j->row->rung && !ret->missing.row; rung++) {
        for (size_t s = 0; s < g->n_settings && !ret->missing.row; s++) {
            const ki_list_row *row = &g->row[rung * g->n_settings + s];
            if (alive[s]) KI_CHECK(mean_score(r, j, row, &score[s], &ret->missing, err));
        }
        if (ret->missing.row) break;
        ret->failed |= alive[j->row->setting] && isnan(score[j->row->setting]);
        ki_grid_halve(g, score, alive);
    }
    ret->goes_on = !ret->missing.row && alive[j->row->setting];
done:
    ki_free(alive);
    ki_free(score);
    return status;
}
