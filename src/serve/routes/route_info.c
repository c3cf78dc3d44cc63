/* GET /api/v1/info: what is served, and what may be asked. */
#include "kith/calibration.h"
#include "kith/version.h"
#include "serve/routes/route.h"
#include "serve/search/samples.h"
#include "serve/server.h"

enum { N_POINTS = 50 };

static void put_facts(kith_json *json, const ki_column_facts *f) {
    kith_json_object_begin(json);
    kith_json_key(json, "name");
    kith_json_string(json, f->name);
    kith_json_key(json, "type");
    kith_json_string(json, kith_value_type_name(f->type));
    if (f->type == KITH_VALUE_TEXT) {
        kith_json_key(json, "values");
        if (f->is_known && f->n_values >= 0) {
            kith_json_array_begin(json);
            for (int64_t i = 0; i < f->n_values; i++) kith_json_string(json, f->value[i]);
            kith_json_array_end(json);
        } else {
            kith_json_null(json);
        }
    } else {
        const double end[2] = {f->least, f->most};
        for (int i = 0; i < 2; i++) {
            kith_json_key(json, i == 0 ? "min" : "max");
            if (!f->has_range)
                kith_json_null(json);
            else if (f->type == KITH_VALUE_INT)
                kith_json_int(json, (int64_t)end[i]);
            else
                kith_json_real(json, end[i]);
        }
    }
    kith_json_object_end(json);
}

/* About N_POINTS points of the curve, the loosest and the strictest among them. */
static void put_curve(kith_json *json, const kith_calibration *curve) {
    if (!curve || curve->n == 0) {
        kith_json_null(json);
        return;
    }
    const int64_t n = curve->n < N_POINTS ? curve->n : N_POINTS;
    const double *const list[2] = {curve->fmr, curve->threshold};
    kith_json_object_begin(json);
    for (int i = 0; i < 2; i++) {
        kith_json_key(json, i == 0 ? "false_match_rate" : "threshold");
        kith_json_array_begin(json);
        for (int64_t p = 0; p < n; p++)
            kith_json_real(json, list[i][n == 1 ? 0 : p * (curve->n - 1) / (n - 1)]);
        kith_json_array_end(json);
    }
    kith_json_key(json, "source");
    kith_json_string(json, curve->source);
    kith_json_object_end(json);
}

static void put_limits(kith_json *json, const ki_serve_options *o) {
    kith_json_object_begin(json);
    kith_json_key(json, "body_bytes");
    kith_json_int(json, o->most_body_bytes);
    kith_json_key(json, "pixels");
    kith_json_int(json, o->most_pixels);
    kith_json_key(json, "decoded_bytes");
    kith_json_int(json, o->most_decoded_bytes);
    kith_json_key(json, "k");
    kith_json_int(json, o->most_k);
    kith_json_key(json, "queue");
    kith_json_int(json, o->n_queue);
    kith_json_object_end(json);
}

ki_handling ki_route_info(ki_request *r) {
    kith_json *json = NULL;
    kith_error err;
    const kith_status status = kith_json_new(&json, &err);
    if (status != KITH_OK) return ki_answer_error(r, status, &err);
    const ki_catalog *c = r->catalog;
    kith_json_object_begin(json);
    kith_json_key(json, "version");
    kith_json_string(json, kith_version());
    kith_json_key(json, "items");
    kith_json_int(json, c->info.n_items);
    kith_json_key(json, "dim");
    kith_json_int(json, c->info.dim);
    kith_json_key(json, "metric");
    kith_json_string(json, kith_metric_name(c->info.metric));
    kith_json_key(json, "tier");
    kith_json_string(json, kith_index_tier_name(c->info.tier));
    kith_json_key(json, "model");
    kith_json_string(json, *c->info.model ? c->info.model : NULL);
    kith_json_key(json, "missing_model");
    kith_json_string(json, *c->missing_model ? c->missing_model : NULL);
    kith_json_key(json, "can_embed");
    kith_json_bool(json, c->model);
    kith_json_key(json, "can_explain");
    kith_json_bool(json, c->model && c->info.metric == KITH_COSINE);
    kith_json_key(json, "is_calibrated");
    kith_json_bool(json, c->info.is_calibrated);
    kith_json_key(json, "generation");
    kith_json_int(json, c->info.generation);
    kith_json_key(json, "is_indexing");
    kith_json_bool(json, ki_server_indexer(r->server));
    kith_json_key(json, "read_only");
    kith_json_bool(json, r->access < KI_ACCESS_ALL);
    kith_json_key(json, "can_name");
    kith_json_bool(json, r->access >= KI_ACCESS_WRITE && ki_server_options(r->server)->edit);
    kith_json_key(json, "who");
    kith_json_string(json, *r->who ? r->who : NULL);
    kith_json_key(json, "columns");
    kith_json_array_begin(json);
    for (int64_t i = 0; i < c->n_facts; i++) put_facts(json, &c->facts[i]);
    kith_json_array_end(json);
    kith_json_key(json, "calibration");
    put_curve(json, kith_index_calibration(c->index));
    kith_json_key(json, "samples");
    ki_samples_put(json, r->catalog);
    kith_json_key(json, "limits");
    put_limits(json, ki_server_options(r->server));
    kith_json_object_end(json);
    return ki_answer_json(r, json);
}
