/* kith bench train, kith bench embed. */
#include "kith/experimental/bench.h"

#include "cli/bench.h"
#include "cli/cli.h"
#include "kith/experimental/json.h"

static void json_real(kith_json *json, const char *key, double value) {
    kith_json_key(json, key);
    kith_json_real(json, value);
}

static void json_int(kith_json *json, const char *key, int64_t value) {
    kith_json_key(json, key);
    kith_json_int(json, value);
}

static void json_text(kith_json *json, const char *key, const char *value) {
    kith_json_key(json, key);
    kith_json_string(json, value);
}

static int print_json(const kith_bench_options *o, const kith_bench_result *r) {
    kith_error err = {0};
    kith_json *json = NULL;
    if (kith_json_new(&json, &err) != KITH_OK) return cli_fail(&err);
    kith_json_object_begin(json);
    json_text(json, "bench", o->train ? "train" : "embed");
    json_text(json, "backbone", r->backbone);
    json_text(json, "device", r->device);
    json_text(json, "precision", r->precision);
    json_int(json, "batch", r->batch);
    json_int(json, "height", r->height);
    json_int(json, "width", r->width);
    json_int(json, "threads", r->n_threads);
    json_int(json, "steps", r->n_steps);
    json_real(json, "images_per_second", r->images_per_second);
    json_real(json, "step_seconds", r->step_seconds);
    json_real(json, "fastest_seconds", r->fastest_seconds);
    json_real(json, "plan_seconds", r->plan_seconds);
    json_real(json, "gflop_per_image", r->gflop_per_image);
    json_real(json, "gflops", r->gflops);
    json_real(json, "allocations_per_step", r->allocations_per_step);
    json_real(json, "reorders_per_step", r->reorders_per_step);
    json_int(json, "peak_rss_bytes", (int64_t)r->peak_rss_bytes);
    json_int(json, "activation_bytes", (int64_t)r->activation_bytes);
    json_int(json, "unshared_activation_bytes", (int64_t)r->unshared_activation_bytes);
    json_int(json, "device_bytes", (int64_t)r->device_bytes);
    json_real(json, "loss", r->loss);
    json_real(json, "checksum", r->checksum);
    if (o->profile) {
        json_real(json, "copy_bytes_per_second", r->copy_bytes_second);
        kith_json_key(json, "profile");
        kith_json_array_begin(json);
        for (int i = 0; i < r->n_rows; i++) {
            kith_json_object_begin(json);
            json_text(json, "what", r->row[i].name);
            json_real(json, "calls", r->row[i].calls);
            json_real(json, "seconds", r->row[i].seconds);
            json_real(json, "bytes", r->row[i].bytes);
            kith_json_object_end(json);
        }
        kith_json_array_end(json);
    }
    kith_json_object_end(json);
    return cli_print_json(json, &err) == KITH_OK ? CLI_OK : cli_fail(&err);
}

static void print_profile(const kith_bench_result *r) {
    double seconds = 0, bytes = 0;
    for (int i = 0; i < r->n_rows; i++) seconds += r->row[i].seconds, bytes += r->row[i].bytes;
    printf(
        "  kernel by kernel %.3f ms; a copy moves %.0f GB/s; at least %.2f GB a step: %.0f %% of that rate "
        "in "
        "the step as timed\n",
        1e3 * seconds, 1e-9 * r->copy_bytes_second, 1e-9 * bytes,
        100 * bytes / r->step_seconds / (r->copy_bytes_second > 0 ? r->copy_bytes_second : 1));
    printf("  %-26s %7s %9s %6s %9s %7s %7s\n", "what", "calls", "ms", "share", "MB", "GB/s", "of copy");
    for (int i = 0; i < r->n_rows; i++) {
        const kith_bench_row *row = &r->row[i];
        const double rate = row->seconds > 0 ? row->bytes / row->seconds : 0;
        printf("  %-26s %7.0f %9.3f %5.1f%% %9.1f %7.0f %6.0f%%\n", row->name, row->calls, 1e3 * row->seconds,
               100 * row->seconds / (seconds > 0 ? seconds : 1), 1e-6 * row->bytes, 1e-9 * rate,
               100 * rate / (r->copy_bytes_second > 0 ? r->copy_bytes_second : 1));
    }
}

static void print_text(const kith_bench_options *o, const kith_bench_result *r) {
    const double mib = 1024.0 * 1024.0;
    printf("%s %s on %s, %s: batch %lld of %lldx%lld, %lld threads, %lld steps\n",
           o->train ? "train" : "embed", r->backbone, r->device, r->precision, (long long)r->batch,
           (long long)r->height, (long long)r->width, (long long)r->n_threads, (long long)r->n_steps);
    printf("  %.2f images/s (median step %.1f ms, fastest %.1f ms; planned in %.2f s)\n",
           r->images_per_second, 1e3 * r->step_seconds, 1e3 * r->fastest_seconds, r->plan_seconds);
    printf("  %.1f GFLOP/s (%.2f GFLOP per image)\n", r->gflops, r->gflop_per_image);
    printf("  peak memory %.0f MiB, activations %.0f MiB (%.0f MiB without reuse)\n",
           (double)r->peak_rss_bytes / mib, (double)r->activation_bytes / mib,
           (double)r->unshared_activation_bytes / mib);
    if (r->device_bytes) printf("  the device gave %.0f MiB\n", (double)r->device_bytes / mib);
    printf("  %g allocations and %g reorders per step\n", r->allocations_per_step, r->reorders_per_step);
    if (o->objective || o->recipe) printf("  loss %.6g\n", r->loss);
    if (o->profile) print_profile(r);
}

static int bench_engine(int argc, char **argv, bool train) {
    const char *backbone = NULL, *weights = NULL, *device = NULL, *settings = NULL, *tap = NULL;
    const char *precision = NULL, *objective = NULL, *recipe = NULL;
    int64_t batch = 0, size = 0, channels = 0, threads = 0, steps = 0, embedding = 0, images = 0;
    bool json = false, frozen = false, tf32 = false, deterministic = false, profile = false, plain = false;
    const cli_option options[] = {
        CLI_TEXT("backbone", "NAME", &backbone, "the network (see kith list backbones)"),
        CLI_TEXT("weights", "FILE", &weights, "its weights; speed does not depend on them"),
        CLI_TEXT("settings", "K=V,…", &settings, "the backbone's own options"),
        CLI_INT("batch", "N", &batch, 0, 65536, "images per step; 0: the recipe's, else 32"),
        CLI_INT("size", "PIXELS", &size, 0, 16384, "height and width; 0: the backbone's"),
        CLI_INT("channels", "N", &channels, 0, KITH_MOST_CHANNELS, "of the images; 0: the backbone's"),
        CLI_INT("embedding", "N", &embedding, 0, 65536,
                "size of the embedding layer; 0: 512 to train, none to embed"),
        CLI_TEXT("tap", "NAME", &tap, "where the gradient starts, what is read"),
        CLI_INT("threads", "N", &threads, 0, 256, "0: all cores allowed"),
        CLI_INT("steps", "N", &steps, 0, 4096, "timed steps; 0: about 10 seconds of them"),
        CLI_TEXT("device", "NAME", &device, "what it runs on (see kith list devices); cuda:1 is the second"),
        CLI_TEXT("precision", "NAME", &precision, "float32 or, on cuda, bf16"),
        CLI_FLAG("tf32", &tf32, "cuda, float32: let products use TF32"),
        CLI_FLAG("deterministic", &deterministic, "the same bits in every run, also on cuda"),
        CLI_TEXT("objective", "YAML", &objective, "train the step of a run: {loss: NAME, miner: NAME}"),
        CLI_TEXT("recipe", "FILE", &recipe,
                 "the same, with a recipe's network, batch, objective and optimizer"),
        CLI_INT("images", "N", &images, 0, 65536, "with an objective: images of a class in a batch; 0: 4"),
        CLI_FLAG("plain-plan", &plain, "copy at every concat, merge no convolutions: to compare with"),
        CLI_FLAG("profile", &profile, "with an objective: what the time is spent on"),
        CLI_FLAG("frozen-bn", &frozen, "train with the batch norms' running statistics"),
        CLI_FLAG("json", &json, "print the result as JSON"),
        CLI_END};
    const cli_usage usage = {
        .operands = train ? "train" : "embed", .least = 1, .most = 1, .options = options};
    const int parsed = cli_parse(&usage, &argc, argv);
    if (parsed != CLI_RUN) return parsed;
    if (!backbone && !weights && !recipe) return cli_misused("bench", "wants --backbone NAME");
    kith_error err = {0};
    kith_bench_result result;
    const kith_model_options model = {.size = sizeof(kith_model_options),
                                      .backbone = backbone,
                                      .weights = weights,
                                      .settings = settings,
                                      .height = size,
                                      .width = size,
                                      .channels = channels,
                                      .embedding = embedding,
                                      .device = device,
                                      .precision = precision,
                                      .tf32 = tf32,
                                      .deterministic = deterministic};
    const kith_bench_options bench = {.size = sizeof(kith_bench_options),
                                      .model = &model,
                                      .objective = objective,
                                      .recipe = recipe,
                                      .images_per_class = images,
                                      .profile = profile,
                                      .plain_plan = plain,
                                      .train = train,
                                      .tap = tap,
                                      .batch = batch,
                                      .n_steps = steps,
                                      .n_threads = threads,
                                      .frozen_bn = frozen};
    if (kith_bench_run(&bench, &result, &err) != KITH_OK) return cli_fail(&err);
    if (json) return print_json(&bench, &result);
    print_text(&bench, &result);
    return CLI_OK;
}

int bench_train(int argc, char **argv) { return bench_engine(argc, argv, true); }
int bench_embed(int argc, char **argv) { return bench_engine(argc, argv, false); }
