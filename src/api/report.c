/* kith_report_write: the page made in memory and written whole. */
#include "kith/report.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/argument.h"
#include "base/atomic.h"
#include "base/buffer.h"
#include "base/path.h"
#include "base/text.h"
#include "data/section.h"
#include "io/file.h"
#include "kith/doctor.h"
#include "report/findings/findings.h"
#include "report/heat.h"
#include "report/hits.h"
#include "report/report.h"
#include "report/views.h"
#include "train/recipe.h"

KI_OPTIONS_INIT(kith_hits_page, .most_parts = 1000)
KI_OPTIONS_INIT(kith_findings_page, .most_shown = 60)
KI_OPTIONS_INIT(kith_views_options, .n_images = 6, .n_draws = 9)
KI_OPTIONS_INIT(kith_report_options, .n_queries = 12, .n_neighbors = 8, .n_points = 1500)

static const size_t MOST_PAGE = (size_t)1 << 30;

static kith_status check(const kith_report_options *o, kith_error *err) {
    const struct {
        const char *what;
        int64_t found, least, most;
    } rows[] = {{"queries", o->n_queries, 0, 100},
                {"neighbours", o->n_neighbors, 1, 32},
                {"points on the map", o->n_points, 0, 5000}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].found < rows[i].least || rows[i].found > rows[i].most)
            return ki_fail(err, KITH_EINVAL, "%lld %s; wanted %lld to %lld", (long long)rows[i].found,
                           rows[i].what, (long long)rows[i].least, (long long)rows[i].most);
    }
    return KITH_OK;
}

/* How many pictures of images, not drawings, a page has. */
static size_t count_pictures(const char *page, size_t n) {
    static const char mark[] = "src=\"data:image/";
    size_t count = 0;
    for (const char *at = page; at && (at = memmem(at, n - (size_t)(at - page), mark, sizeof mark - 1)); at++)
        count++;
    return count;
}

/* Do not replace a page with pictures by a page without: the images may be lost. */
static kith_status check_loss(const char *path, const ki_buffer *page, const char *why, kith_error *err) {
    char *old = NULL;
    size_t n = 0;
    if (!*why || !ki_is_file("%s", path)) return KITH_OK;
    KI_TRY(ki_file_read(path, MOST_PAGE, &old, &n, err));
    const size_t n_old = count_pictures(old, n), n_new = count_pictures(page->data, page->n);
    ki_free(old);
    if (n_old <= n_new) return KITH_OK;
    ki_fail(err, KITH_EIO, "%s is kept: it has %zu pictures and the new page would have %zu; %.160s", path,
            n_old, n_new, why);
    return ki_hint(err, KITH_EIO,
                   "put the images back where the run found them, or write another file with --out");
}

kith_status kith_report_write(const char *run, const kith_report_options *options, kith_error *err) {
    KI_NEED(err, run);
    KI_OPTIONS_TAKE(kith_report_options, o, options, err);
    kith_status status = KITH_OK;
    ki_buffer page = {.err = err};
    char path[4096], why[200] = "";
    KI_TRY(check(&o, err));
    const int n = ki_snprintf(path, sizeof path, "%s/report.html", run);
    if (!o.out && (n < 0 || (size_t)n >= sizeof path))
        return ki_fail(err, KITH_EINVAL, "the run folder's name is longer than %zu letters",
                       sizeof path - sizeof "/report.html");
    KI_CHECK(ki_report_make(run, &o, &page, why, err));
    KI_CHECK(check_loss(o.out ? o.out : path, &page, why, err));
    status = ki_file_write(o.out ? o.out : path, page.data, page.n, err);
done:
    ki_buffer_release(&page);
    return status;
}

kith_status kith_model_card_write(const char *run, const char *out, kith_error *err) {
    KI_NEED(err, run);
    enum { MOST_RECIPE = 1 << 20 };
    kith_status status;
    kith_card *card = NULL, *tune = NULL;
    kith_error ignored;
    ki_path path, to;
    char *recipe = NULL;
    size_t n = 0;
    ki_buffer text = {.err = err};
    KI_CHECK(ki_path_print(&path, err, "%s/result.json", run));
    KI_CHECK(ki_path_print(&to, err, "%s/MODEL.md", run));
    KI_CHECK(kith_card_read(path.s, &card, err));
    KI_CHECK(ki_path_print(&path, err, "%s/recipe.yaml", run));
    if (ki_is_file("%s", path.s)) KI_CHECK(ki_file_read(path.s, MOST_RECIPE, &recipe, &n, err));
    KI_CHECK(ki_path_print(&path, err, "%s/tune.json", run));
    if (ki_is_file("%s", path.s) && kith_card_read(path.s, &tune, &ignored) != KITH_OK) tune = NULL;
    KI_CHECK(ki_model_card_make(card, tune, recipe, &text, err));
    status = ki_file_write(out ? out : to.s, text.data, text.n, err);
done:
    ki_buffer_release(&text);
    ki_free(recipe);
    kith_card_free(tune);
    kith_card_free(card);
    return status;
}

static kith_status check_count(const char *name, int64_t n, kith_error *err) {
    if (n >= 1 && n <= 100) return KITH_OK;
    return ki_fail(err, KITH_EINVAL, "%s is %lld; wanted 1 to 100", name, (long long)n);
}

typedef enum picture_kind { NO_PICTURE, PNG_PICTURE, JPEG_PICTURE } picture_kind;

/* What a file's name asks for. */
static picture_kind picture_of(const char *out) {
    const char *end = strrchr(out, '.');
    if (end && strcasecmp(end, ".png") == 0) return PNG_PICTURE;
    return end && strcasecmp(end, ".jpg") == 0 ? JPEG_PICTURE : NO_PICTURE;
}

static kith_status write_picture(const ki_image *picture, const char *out, kith_error *err) {
    kith_status status;
    ki_bytes file = {0};
    KI_CHECK(picture_of(out) == PNG_PICTURE ? ki_png_encode(picture, &file, err)
                                            : ki_jpeg_encode(picture, 85, &file, err));
    status = ki_file_write(out, file.data, file.n, err);
done:
    ki_bytes_release(&file);
    return status;
}

/* As a page or, by the file's name, as one picture. */
static kith_status write_views(const ki_views *views, const char *out, kith_error *err) {
    kith_status status;
    ki_buffer page = {.err = err};
    ki_image picture = {0};
    if (picture_of(out) != NO_PICTURE) {
        KI_CHECK(ki_views_picture(views, &picture, err));
        KI_CHECK(write_picture(&picture, out, err));
    } else {
        KI_CHECK(ki_views_make(views, &page, err));
        KI_CHECK(ki_file_write(out, page.data, page.n, err));
    }
done:
    ki_buffer_release(&page);
    ki_image_release(&picture);
    return status;
}

kith_status kith_explanation_draw(const kith_explanation *explanation, const kith_query_image *query,
                                  const kith_query_image *hit, const char *out, kith_error *err) {
    KI_NEED(err, explanation, query, hit, out);
    ki_image picture = {0};
    if (picture_of(out) == NO_PICTURE)
        return ki_fail(err, KITH_EINVAL, "%s ends neither in .png nor in .jpg", out);
    if (explanation->n < 1 || explanation->rows < 1 || explanation->columns < 1 || !explanation->query ||
        !explanation->hit.share)
        return ki_fail(err, KITH_EINVAL, "the explanation is empty");
    kith_status status = ki_heat_draw(explanation, query, hit, &picture, err);
    if (status == KITH_OK) status = write_picture(&picture, out, err);
    ki_image_release(&picture);
    return status;
}

kith_status kith_views_write(const char *recipe, const char *out, const kith_views_options *options,
                             kith_error *err) {
    KI_NEED(err, recipe, out);
    KI_OPTIONS_TAKE(kith_views_options, o, options, err);
    KI_TRY(ki_need_strings(o.sets, o.n_sets, "sets", err));
    KI_TRY(check_count("n_images", o.n_images, err));
    KI_TRY(check_count("n_draws", o.n_draws, err));
    kith_status status;
    ki_recipe *r = NULL;
    kith_dataset *set = NULL;
    const ki_recipe_source source = {.path = recipe, .sets = o.sets, .n_sets = (size_t)o.n_sets};
    KI_CHECK(ki_recipe_read(&source, &r, err));
    KI_CHECK(ki_data_open(r->data, &set, err));
    const ki_views views = {.title = recipe,
                            .set = set,
                            .train = r->train,
                            .test = r->test,
                            .n_images = o.n_images,
                            .n_draws = o.n_draws,
                            .seed = (uint64_t)r->seed};
    KI_CHECK(write_views(&views, out, err));
done:
    kith_dataset_free(set);
    ki_recipe_free(r);
    return status;
}

kith_status kith_hits_page_write(const kith_hits_page *page, const char *out, kith_error *err) {
    KI_NEED(err, page, out);
    KI_OPTIONS_TAKE(kith_hits_page, whole, page, err);
    kith_status status;
    ki_buffer text = {.err = err};
    KI_NEED_COUNT(err, whole.n_parts);
    if (!whole.title || (whole.n_parts > 0 && !whole.parts))
        return ki_fail(err, KITH_EINVAL, "the page has no %s", whole.title ? "parts" : "title");
    KI_CHECK(ki_hits_make(&whole, &text, err));
    status = ki_file_write(out, text.data, text.n, err);
done:
    ki_buffer_release(&text);
    return status;
}

kith_status kith_findings_page_write(const kith_findings *findings, const kith_dataset *dataset,
                                     const kith_findings_page *page, const char *out, kith_error *err) {
    KI_NEED(err, findings, dataset, page, out);
    KI_OPTIONS_TAKE(kith_findings_page, whole, page, err);
    kith_status status;
    ki_buffer text = {.err = err};
    KI_NEED_COUNT(err, whole.most_shown);
    if (findings->n_items != (int64_t)dataset->n_items)
        return ki_fail(err, KITH_EINVAL, "the findings are of %lld items; the data set has %lld",
                       (long long)findings->n_items, (long long)dataset->n_items);
    KI_CHECK(ki_findings_make(findings, dataset, &whole, &text, err));
    status = ki_file_write(out, text.data, text.n, err);
done:
    ki_buffer_release(&text);
    return status;
}
