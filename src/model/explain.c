/* A cosine taken apart: the feature maps of all pictures, their vectors in double, and the shares of their positions. */
#include "kith/explain.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/text.h"
#include "model/handle.h"
#include "model/pictures.h"
#include "model/query.h"
#include "model/shares.h"

/* The pictures of the query come first, n_views of each image; the last one is the hit. */
typedef struct explaining {
    kith_model *model;
    int64_t n, n_views;
    char estimate[256]; /* kith_explanation */
    ki_pictures pictures;
    ki_shares shares;
    int64_t rows, columns, dim; /* of a map, and of a whole vector */
    float *weights, *bias;      /* the linear layer's; NULL: none */
    float *gamma, *beta;        /* of a layer norm before it; NULL: none */
    float *map;                 /* [pictures, heads * channels, positions] */
    double *vector, *norm;      /* [pictures, dim], [pictures, heads] */
    double *query, *factor;     /* [dim], and how often each picture's vector counts in it */
    double *weight;             /* of each picture */
    double *other, *part;       /* [dim], [positions]: scratch */
} explaining;

static void explaining_release(explaining *x) {
    ki_pictures_release(&x->pictures);
    ki_free(x->weights);
    ki_free(x->bias);
    ki_free(x->gamma);
    ki_free(x->beta);
    ki_free(x->map);
    ki_free(x->vector);
    ki_free(x->norm);
    ki_free(x->query);
    ki_free(x->factor);
    ki_free(x->weight);
    ki_free(x->other);
    ki_free(x->part);
}

/* ---- what makes the vectors ---- */

/* A parameter's values, or NULL when the network has none of this name. */
static kith_status read_param(const ki_params *params, const char *layer, const char *name, float **ret,
                              int64_t *ret_rows, kith_error *err) {
    char full[128];
    ki_snprintf(full, sizeof full, "%s.%s", layer, name);
    const ki_param *param = ki_params_find(params, full);
    if (!param) return KITH_OK;
    KI_TRY(ki_alloc_or(ret, (size_t)param->n, sizeof **ret, "a linear layer", err));
    *ret_rows = param->shape.dim[0];
    return ki_params_get(params, param, *ret, err);
}

/* The node that heads read, and the pool before it or NULL. Between them there may be a layer norm, *ret_norm, which a sum can have. */
static kith_status find_pool(const ki_net *net, const ki_node **ret_last, const ki_node **ret_norm,
                             const ki_node **ret_pool, kith_error *err) {
    int at = 0;
    KI_TRY(ki_graph_find_tap(net->graph, "pooled", &at, err));
    const ki_node *node = ki_graph_node(net->graph, at);
    if (node->kind == KI_OP_UNFOLD) node = ki_graph_node(net->graph, node->src[0]);
    *ret_last = node;
    *ret_norm = node->kind == KI_OP_LAYER_NORM && !node->attr.layer_norm.rms ? node : NULL;
    if (*ret_norm) node = ki_graph_node(net->graph, node->src[0]);
    *ret_pool = node->kind == KI_OP_GLOBAL_POOL ? node : NULL;
    return KITH_OK;
}

/* Why the vectors are no sum over the positions of the map, which then are the averages of the maps instead; or nothing. What the network
 * has between its pool and its heads (net/backbone.h, neck) is in the sum if it is a norm, and not if it has a function. */
static kith_status find_why_not(explaining *x, const ki_node **ret_norm, kith_error *err) {
    static const char instead[] = "shown are the shares of the cosine of both averaged feature maps";
    const ki_net *net = &x->model->net;
    const ki_node *last = NULL, *pool = NULL;
    KI_TRY(find_pool(net, &last, ret_norm, &pool, err));
    *x->estimate = '\0';
    if (net->pool > KI_POOLING_GEM)
        ki_snprintf(x->estimate, sizeof x->estimate,
                    "the vectors are pooled by '%s' and no sum over the positions; %s",
                    ki_pooling_names[net->pool], instead);
    else if (!pool)
        ki_snprintf(x->estimate, sizeof x->estimate,
                    "%s has more than a pool between its map and its vectors (%.40s), which are no sum over "
                    "the positions; %s",
                    net->backbone->name, last->name, instead);
    return KITH_OK;
}

/* The linear layer between the pool and the model's tap. */
static kith_status read_layer(explaining *x, const char *layer, kith_error *err) {
    ki_shares *s = &x->shares;
    KI_TRY(read_param(x->model->params, layer, "weight", &x->weights, &s->dim, err));
    KI_TRY(read_param(x->model->params, layer, "bias", &x->bias, &s->dim, err));
    s->weights = x->weights;
    s->bias = x->bias;
    return KITH_OK;
}

static kith_status read_norm(explaining *x, const ki_node *norm, kith_error *err) {
    int64_t n = 0;
    if (!norm) return KITH_OK;
    KI_TRY(read_param(x->model->params, norm->name, "weight", &x->gamma, &n, err));
    KI_TRY(read_param(x->model->params, norm->name, "bias", &x->beta, &n, err));
    x->shares.gamma = x->gamma;
    x->shares.beta = x->beta;
    x->shares.eps = norm->attr.layer_norm.eps;
    return KITH_OK;
}

/* How the vectors are made of the map. */
static kith_status describe_vectors(explaining *x, const char *tap, const ki_node *norm, kith_error *err) {
    const ki_net *net = &x->model->net;
    const bool is_embedding = strcmp(tap, "embedding") == 0, is_logits = strcmp(tap, "logits") == 0;
    ki_shares *s = &x->shares;
    float *power = NULL;
    int64_t n_powers = 0;
    s->pool = (ki_global_pool)net->pool;
    KI_TRY(read_param(x->model->params, "pool", "p", &power, &n_powers, err));
    s->power = power ? (double)*power : 0;
    ki_free(power);
    s->unit_heads = is_embedding && net->heads > 1;
    KI_TRY(read_norm(x, norm, err));
    if (!is_embedding && !is_logits) return KITH_OK;
    return read_layer(x, is_embedding ? "embedding" : net->backbone->classifier, err);
}

/* The map's shape, and what is made of it. */
static kith_status describe(explaining *x, kith_error *err) {
    const ki_net *net = &x->model->net;
    const char *tap = kith_model_tap(x->model, NULL);
    const ki_node *norm = NULL;
    int n_dims = 0;
    int64_t dim[KITH_MAX_DIMS];
    if (strcmp(tap, "embedding") != 0 && strcmp(tap, "logits") != 0 && strcmp(tap, "pooled") != 0)
        return ki_fail(err, KITH_EUNSUPPORTED,
                       "the vectors are the tap '%s'; wanted ones that are made by pooling", tap);
    KI_TRY(kith_model_tap_shape(x->model, ki_net_features_tap(net), &n_dims, dim, err));
    KI_TRY(find_why_not(x, &norm, err));
    ki_shares *s = &x->shares;
    s->heads = net->heads;
    s->channels = s->dim = dim[0] / net->heads;
    x->rows = dim[1], x->columns = dim[2];
    s->positions = x->rows * x->columns;
    s->pool = KI_GLOBAL_AVG;
    if (!*x->estimate) KI_TRY(describe_vectors(x, tap, norm, err));
    x->dim = s->heads * s->dim;
    return KITH_OK;
}

/* ---- from images to vectors ---- */

static kith_status make_room(explaining *x, kith_error *err) {
    const ki_shares *s = &x->shares;
    const size_t n = (size_t)x->pictures.room, dim = (size_t)x->dim;
    const size_t n_map = (size_t)(s->heads * s->channels * s->positions);
    KI_TRY(ki_alloc_or(&x->map, n, n_map * sizeof *x->map, "feature maps", err));
    KI_TRY(ki_alloc_or(&x->vector, n * dim, sizeof *x->vector, "vectors", err));
    KI_TRY(ki_alloc_or(&x->norm, n * (size_t)s->heads, sizeof *x->norm, "norms", err));
    KI_TRY(ki_alloc_or(&x->factor, n, sizeof *x->factor, "weights", err));
    KI_TRY(ki_alloc_or(&x->weight, n, sizeof *x->weight, "weights", err));
    KI_TRY(ki_alloc_or(&x->query, dim, sizeof *x->query, "a query", err));
    KI_TRY(ki_alloc_or(&x->other, dim, sizeof *x->other, "a vector", err));
    return ki_alloc_or(&x->part, (size_t)s->positions, sizeof *x->part, "shares", err);
}

static kith_status make_vectors(explaining *x, kith_error *err) {
    const ki_shares *s = &x->shares;
    KI_TRY(ki_pictures_embed(&x->pictures, ki_net_features_tap(&x->model->net), x->map, err));
    for (int64_t i = 0; i < x->pictures.n; i++)
        KI_TRY(ki_shares_vector(s, x->map + i * s->heads * s->channels * s->positions, x->vector + i * x->dim,
                                x->norm + i * s->heads, err));
    return KITH_OK;
}

/* ---- shares ---- */

/* Add the shares of one picture: its vector's product with factor * direction. A mirror image is mirrored back. */
static kith_status add_shares(explaining *x, int64_t picture, const double *direction, double factor,
                              kith_shares *to, kith_error *err) {
    const ki_shares *s = &x->shares;
    double rest = 0;
    for (int64_t i = 0; i < x->dim; i++) x->other[i] = factor * direction[i];
    KI_TRY(ki_shares_product(s, x->map + picture * s->heads * s->channels * s->positions,
                             x->norm + picture * s->heads, x->other, x->part, &rest, err));
    for (int64_t row = 0; row < x->rows; row++) {
        for (int64_t column = 0; column < x->columns; column++) {
            const bool is_mirrored = x->pictures.picture[picture].is_mirrored;
            const int64_t from = is_mirrored ? x->columns - 1 - column : column;
            to->share[row * x->columns + column] += x->part[row * x->columns + from];
        }
    }
    to->rest += rest;
    return KITH_OK;
}

/* What the network saw of the picture, in pixels of the image that it was made from. */
static void place(const explaining *x, int64_t picture, kith_shares *to) {
    const ki_picture *p = &x->pictures.picture[picture];
    double seen[4];
    ki_transform_view(&x->pictures.transform, p->image.w, p->image.h, seen);
    const double across = p->part[2] / p->image.w, down = p->part[3] / p->image.h;
    to->view[0] = p->part[0] + across * seen[0];
    to->view[1] = p->part[1] + down * seen[1];
    to->view[2] = across * seen[2];
    to->view[3] = down * seen[3];
    to->width = p->full_w;
    to->height = p->full_h;
}

static double product(const double *a, const double *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static double cosine(const double *a, const double *b, int64_t n) {
    const double norms = sqrt(product(a, a, n) * product(b, b, n));
    return norms > 0 ? product(a, b, n) / norms : 0; /* with a vector of zeros it is 0 */
}

/* The cosine of the vectors as the network makes them. */
static kith_status score_vectors(const explaining *x, double *ret_score, kith_error *err) {
    kith_status status;
    const int64_t n_asked = x->n * x->n_views, dim = kith_model_dim(x->model);
    const size_t n = (size_t)((n_asked + 1) * dim);
    float *values = NULL;
    double *rows = NULL, *query = NULL, *factor = NULL;
    KI_CHECK(ki_alloc_or(&values, n, sizeof *values, "vectors", err));
    KI_CHECK(ki_alloc_or(&rows, n, sizeof *rows, "vectors", err));
    KI_CHECK(ki_alloc_or(&query, (size_t)dim, sizeof *query, "a query", err));
    KI_CHECK(ki_alloc_or(&factor, (size_t)n_asked, sizeof *factor, "weights", err));
    KI_CHECK(ki_pictures_embed(&x->pictures, NULL, values, err));
    for (size_t i = 0; i < n; i++) rows[i] = (double)values[i];
    KI_CHECK(ki_query_sum(rows, dim, x->weight, n_asked, query, factor, err));
    *ret_score = cosine(query, rows + n_asked * dim, dim);
done:
    ki_free(values);
    ki_free(rows);
    ki_free(query);
    ki_free(factor);
    return status;
}

static kith_status share(explaining *x, kith_explanation *to, kith_error *err) {
    const int64_t n_asked = x->n * x->n_views;
    const double *hit = x->vector + n_asked * x->dim;
    const double norms = sqrt(product(x->query, x->query, x->dim) * product(hit, hit, x->dim));
    const double scale = norms > 0 ? 1 / norms : 0; /* the cosine with a vector of zeros is 0 */
    to->score = scale * product(x->query, hit, x->dim);
    memcpy(to->estimate, x->estimate, sizeof to->estimate);
    if (*x->estimate) KI_TRY(score_vectors(x, &to->score, err));
    for (int64_t i = 0; i < n_asked; i++)
        KI_TRY(add_shares(x, i, hit, scale * x->factor[i], &to->query[i / x->n_views], err));
    for (int64_t i = 0; i < x->n; i++) place(x, i * x->n_views, &to->query[i]);
    KI_TRY(add_shares(x, n_asked, x->query, scale, &to->hit, err));
    place(x, n_asked, &to->hit);
    return KITH_OK;
}

static kith_status make_explanation(const explaining *x, kith_explanation *to, kith_error *err) {
    const size_t n = (size_t)x->shares.positions;
    to->rows = x->rows;
    to->columns = x->columns;
    KI_TRY(ki_zalloc_or(&to->query, (size_t)x->n, sizeof *to->query, "an explanation", err));
    to->n = x->n;
    for (int64_t i = 0; i < x->n; i++)
        KI_TRY(ki_zalloc_or(&to->query[i].share, n, sizeof(double), "shares", err));
    return ki_zalloc_or(&to->hit.share, n, sizeof(double), "shares", err);
}

void kith_explanation_release(kith_explanation *why) {
    if (!why) return;
    for (int64_t i = 0; i < why->n; i++) ki_free(why->query[i].share);
    ki_free(why->query);
    ki_free(why->hit.share);
    *why = (kith_explanation){0};
}

kith_status kith_model_explain(kith_model *model, const kith_query_image *query, int64_t n,
                               const kith_query_image *hit, const kith_query_options *options,
                               kith_explanation *ret_explanation, kith_error *err) {
    KI_NEED(err, model, query, hit, ret_explanation);
    KI_NEED_COUNT(err, n);
    KI_OPTIONS_TAKE(kith_query_options, o, options, err);
    kith_status status;
    kith_explanation why = {0};
    explaining x = {.model = model, .n = n, .n_views = o.flips ? 2 : 1};
    if (model->options.views > 1)
        return ki_fail(err, KITH_EUNSUPPORTED, "%lld views make a vector; an explanation is of one",
                       (long long)model->options.views);
    KI_TRY(ki_query_check(query, n, err));
    if (!hit->path && !hit->bytes && !hit->pixels)
        return ki_fail(err, KITH_EINVAL, "the hit has neither a path nor bytes; wanted its image");
    KI_CHECK(describe(&x, err));
    KI_CHECK(ki_pictures_init(&x.pictures, model, n * x.n_views + 1, err));
    KI_CHECK(make_room(&x, err));
    for (int64_t i = 0; i < n; i++)
        KI_CHECK(ki_pictures_add(&x.pictures, &query[i], o.flips, o.most_pixels, err));
    KI_CHECK(ki_pictures_add(&x.pictures, hit, false, o.most_pixels, err));
    KI_CHECK(make_vectors(&x, err));
    ki_query_weights(query, n, x.n_views, x.weight);
    KI_CHECK(ki_query_sum(x.vector, x.dim, x.weight, n * x.n_views, x.query, x.factor, err));
    KI_CHECK(make_explanation(&x, &why, err));
    KI_CHECK(share(&x, &why, err));
    *ret_explanation = why;
    why = (kith_explanation){0};
done:
    kith_explanation_release(&why);
    explaining_release(&x);
    return status;
}
