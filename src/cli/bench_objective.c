/* kith bench objective: value and gradient of losses, beside the two matrix products alone. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/bench.h"
#include "cli/cli.h"
#include "kith/experimental/bench.h"
#include "kith/experimental/json.h"
#include "kith/experimental/list.h"
#include "kith/objective.h"
#include "kith/text.h"

enum { MOST_RECIPES = 64, MOST_BATCHES = 32 };

static int64_t peak_rss(void) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (int64_t)use.ru_maxrss * 1024;
}

static void put_real(kith_json *json, const char *key, double value) {
    kith_json_key(json, key);
    kith_json_real(json, value);
}

static void put_int(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    kith_json_int(json, value);
}

static void put_row(kith_json *json, const char *name, const kith_bench_objective_result *r) {
    kith_json_object_begin(json);
    kith_json_key(json, "objective");
    kith_json_string(json, name);
    put_int(json, "batch", r->batch);
    put_int(json, "dim", r->dim);
    put_int(json, "steps", r->n_steps);
    put_int(json, "threads", r->n_threads);
    put_real(json, "milliseconds", 1e3 * r->seconds);
    put_real(json, "product_milliseconds", 1e3 * r->product_seconds);
    put_real(json, "allocations_per_step", r->allocations_per_step);
    put_int(json, "work_bytes", (int64_t)r->work_bytes);
    put_int(json, "peak_rss_bytes", peak_rss());
    put_real(json, "value", r->value);
    kith_json_object_end(json);
}

static void print_row(const char *name, const kith_bench_objective_result *r) {
    printf("%-28s %7jd %11.3f %12.3f %8.2f %10.1f %8.2f %12.6g\n", name, (intmax_t)r->batch, 1e3 * r->seconds,
           1e3 * r->product_seconds, r->product_seconds > 0 ? r->seconds / r->product_seconds : 0,
           (double)r->work_bytes / 1048576, r->allocations_per_step, r->value);
    fflush(stdout);
}

/* "LOSS+MINER" is a loss with a miner. */
static void recipe_of(const char *name, char *recipe, size_t bytes) {
    const char *plus = strchr(name, '+');
    const int n_loss = plus ? (int)(plus - name) : (int)strlen(name);
    snprintf(recipe, bytes, "loss: {name: %.*s}\n%s%s%s", n_loss, name, plus ? "miner: {name: " : "",
             plus ? plus + 1 : "", plus ? "}" : "");
}

static int parse_batches(const char *list, int64_t *batch) {
    int n = 0;
    char copy[256];
    snprintf(copy, sizeof copy, "%s", list);
    for (char *at = copy; at && n < MOST_BATCHES;) {
        char *comma = strchr(at, ',');
        if (comma) *comma = '\0';
        if (!kith_parse_int(at, &batch[n]) || batch[n] < 1) return -1;
        n++;
        at = comma ? comma + 1 : NULL;
    }
    return n;
}

int bench_objective(int argc, char **argv) {
    cli_list names = {0};
    const char *batches = "128,512,2048", *recipe = NULL, *device = NULL;
    int64_t dim = 512, images = 2, steps = 0, batch[MOST_BATCHES];
    bool json = false, all = false, no_products = false;
    const cli_option options[] = {
        CLI_LIST("loss", "NAME", &names, "a loss, or LOSS+MINER"),
        CLI_TEXT("recipe", "TEXT", &recipe, "an objective section as YAML instead"),
        CLI_FLAG("all", &all, "every loss there is"),
        CLI_TEXT("batch", "N,N,…", &batches, "items per batch"),
        CLI_INT("dim", "N", &dim, 1, 65536, "dimension of the embedding"),
        CLI_INT("images", "N", &images, 1, 65536, "items per class"),
        CLI_INT("steps", "N", &steps, 0, 100000, "timed evaluations; 0: by the time one takes"),
        CLI_FLAG("no-products", &no_products, "leave the two matrix products out (saves their memory)"),
        CLI_TEXT("device", "NAME", &device, "where it is evaluated: cpu, or cuda (its evaluations in a row)"),
        CLI_FLAG("json", &json, "print the result as JSON"),
        CLI_END};
    const cli_usage usage = {
        .operands = "objective",
        .least = 1,
        .most = 1,
        .options = options,
        .details = "Times value + gradient, in turn with S = X X^T and G X alone (medians)."};
    const int parsed = cli_parse(&usage, &argc, argv);
    if (parsed != CLI_RUN) return parsed;
    const int n_batches = parse_batches(batches, batch);
    if (n_batches < 1) return cli_misused("bench", "--batch is '%s'; wanted numbers with commas", batches);
    const char *name[MOST_RECIPES] = {NULL};
    int n_names = 0;
    kith_list_entry entry;
    for (const char *usual; !all && !names.n_items && (usual = kith_bench_objective_name(n_names));)
        name[n_names++] = usual;
    for (; !all && n_names < names.n_items; n_names++) name[n_names] = names.item[n_names];
    for (int i = 0; all && n_names < MOST_RECIPES && kith_list_entry_at("losses", i, &entry); i++)
        name[n_names++] = entry.name;
    if (recipe) name[0] = "recipe", n_names = 1;

    kith_error err = {0};
    kith_json *out = NULL;
    if (json && kith_json_new(&out, &err) != KITH_OK) return cli_fail(&err);
    if (json)
        kith_json_array_begin(out);
    else
        printf("%-28s %7s %11s %12s %8s %10s %8s %12s\n", "objective", "batch", "ms", "products ms", "ratio",
               "work MiB", "allocs", "value");
    kith_status status = KITH_OK;
    for (int i = 0; i < n_names && status == KITH_OK; i++) {
        for (int b = 0; b < n_batches && status == KITH_OK; b++) {
            char text[256];
            recipe_of(name[i], text, sizeof text);
            const kith_bench_objective_options bench = {.size = sizeof(kith_bench_objective_options),
                                                        .recipe = recipe ? recipe : text,
                                                        .batch = batch[b],
                                                        .dim = dim,
                                                        .images = images,
                                                        .n_steps = steps,
                                                        .no_products = no_products,
                                                        .device = device};
            kith_bench_objective_result result;
            status = kith_bench_objective_run(&bench, &result, &err);
            if (status != KITH_OK) break;
            if (json)
                put_row(out, name[i], &result);
            else
                print_row(name[i], &result);
        }
    }
    if (json && status == KITH_OK) {
        const char *line = NULL;
        kith_json_array_end(out);
        status = kith_json_finish(out, &line, &err);
        if (status == KITH_OK) puts(line);
    }
    kith_json_free(out);
    return status == KITH_OK ? CLI_OK : cli_fail(&err);
}
