/* kith serve: an index as a page in the browser, and as an HTTP API. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/images.h"
#include "cli/photos.h"
#include "serve/serve.h"

/* The program starts itself with this to decode images in processes of their own. */
static const char decode_images[] = "--decode-images";

/* Until a signal asks for the end. SIGHUP reads the tokens again. */
static void wait_for_end(ki_server *server, const sigset_t *signals) {
    int number = 0;
    kith_error err;
    while (sigwait(signals, &number) == 0 && number == SIGHUP) ki_server_reload(server, &err);
    /* Whoever asks a second time does not want to wait. SIGHUP is no such question: it stays blocked. */
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_UNBLOCK, &ends, NULL);
}

/* Those of the index as far as it is made, otherwise those that it will begin with. */
static void say_rates(const ki_serve_options *o) {
    kith_index *index = NULL;
    kith_calibration curve;
    if (kith_index_open(o->index, KITH_INDEX_READ, &index, NULL) == KITH_OK)
        cli_say_rates(kith_index_calibration(index));
    else if (kith_model_curve(kith_photos_model(o->photos), KITH_COSINE, &curve, NULL) == KITH_OK)
        cli_say_rates(&curve);
    kith_index_free(index);
}

/* With a folder of photos in place of the index, the server keeps its index in line with it. */
static kith_status take_photos(ki_serve_options *o, const char *folder, const char *cache,
                               kith_model_identity *who, kith_error *err) {
    kith_status status = cli_photos_open(folder, cache, &o->model, &o->photos, err);
    if (status == KITH_OK) status = kith_model_identify(kith_photos_model(o->photos), who, err);
    if (status != KITH_OK) return status;
    if (cli_photos_are_new(o->photos)) cli_say_purpose(o->model.weights);
    o->index = kith_photos_index(o->photos);
    o->model.weights = who->file; /* where it lies now */
    o->model.side = o->model.views = 0;
    say_rates(o);
    return KITH_OK;
}

/* Signals are for this thread alone: all others are made after it has blocked them. */
static void block_signals(sigset_t *signals) {
    sigemptyset(signals);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int serve(const ki_serve_options *options, const char *cache, const sigset_t *signals) {
    ki_server *server = NULL;
    kith_error err = {0};
    if (ki_server_start(options, &server, &err) != KITH_OK)
        return cli_photos_fail(options->photos, cache, &err);
    wait_for_end(server, signals);
    ki_server_drain(server);
    ki_server_free(server);
    return CLI_OK;
}

/* The facts that are named are not hidden. */
static bool take_shown(const char *list, unsigned *hidden) {
    static const char *const facts[KITH_N_FACTS] = {KITH_FACT_COLUMNS};
    for (size_t n; *list; list += n + (list[n] == ',')) {
        int j = 0;
        n = strcspn(list, ",");
        while (j < KITH_N_FACTS && (strlen(facts[j]) != n || strncmp(facts[j], list, n) != 0)) j++;
        if (j == KITH_N_FACTS) {
            cli_misused("serve",
                        "--show is '%.*s'; wanted taken, camera, lens, latitude, longitude or altitude",
                        (int)(n < 60 ? n : 60), list);
            return false;
        }
        *hidden &= ~(1u << j);
    }
    return true;
}

/* "-" is standard output. */
static int open_log(const char *path) {
    if (strcmp(path, "-") == 0) return STDOUT_FILENO;
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

int cmd_serve(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], decode_images) == 0) return ki_decoder_main();
    ki_serve_options o;
    ki_serve_options_init(&o);
    cli_list names = {0}, proxies = {0};
    const char *log = NULL, *model = NULL, *cache = NULL, *show = NULL;
    bool show_facts = false;
    int64_t body_mb = o.most_body_bytes >> 20, megapixels = o.most_pixels / 1000000,
            decoded_mb = o.most_decoded_bytes >> 20;
    const cli_option options[] = {
        CLI_INT("port", "N", &o.port, 0, 65535, "where to listen; 0: a port that is free"),
        CLI_TEXT("host", "ADDRESS", &o.host, "which address to listen on; other than loopback needs tokens"),
        CLI_TEXT("token-file", "FILE", &o.token_file,
                 "lines 'token SECRET' and 'read-only SECRET'; SIGHUP reads it again"),
        CLI_LIST("name", "HOST", &names, "a name that the server is reached by"),
        CLI_LIST("trusted-proxy", "NET", &proxies, "an address or network whose X-Forwarded-For is believed"),
        CLI_OUT("access-log", "FILE", &log, "", "a JSON line for each request; -: standard output"),
        CLI_TEXT(
            "show", "COLUMN,…", &show,
            "tell clients of these facts of photos, too: taken, camera, lens, latitude, longitude, altitude"),
        CLI_FLAG("show-facts", &show_facts, "tell them of all of these"),
        CLI_REAL("deadline", "S", &o.deadline, 1, 3600, "seconds for a whole request"),
        CLI_REAL("rate", "N", &o.rate, 0.01, 1e6, "requests per second of one address"),
        CLI_REAL("burst", "N", &o.burst, 1, 1e6, "requests of one address at once"),
        CLI_INT("connections", "N", &o.n_connections, 1, 65536, "open at a time"),
        CLI_INT("connections-each", "N", &o.n_per_address, 1, 65536, "of them, of one address"),
        CLI_INT("most-body", "MIB", &body_mb, 1, 1024, "largest request"),
        CLI_INT("most-pixels", "MILLIONS", &megapixels, 1, 1000, "largest image that is sent"),
        CLI_INT("most-decoded", "MIB", &decoded_mb, 16, 1 << 20, "decoded images of all requests in memory"),
        CLI_INT("most-hits", "N", &o.most_k, 1, 100000, "hits that can be asked for"),
        CLI_INT("queue", "N", &o.n_queue, 1, 65536,
                "requests in work at a time; others are told to come back"),
        CLI_INT("batch", "N", &o.most_batch, 1, 1024, "queries that are searched together"),
        CLI_INT("workers", "N", &o.n_workers, 0, 256, "threads for requests; 0: four per core"),
        CLI_INT("decoders", "N", &o.n_decoders, 0, 64,
                "processes that decode images; 0: one per core, and a third more"),
        CLI_TEXT(
            "model|m", "RUN|MODEL", &model,
            "what embeds photos; default: general, which came with kith. Of an index: where its model lies "
            "now, if it was moved"),
        CLI_INT("size", "N", &o.model.side, 0, 4096, CLI_SIZE_HELP),
        CLI_INT("views", "N", &o.model.views, 0, 10, CLI_VIEWS_HELP),
        CLI_TEXT("cache", "DIR", &cache, CLI_CACHE_HELP),
        CLI_REAL(
            "rescan", "S", &o.rescan, 0, 1e6,
            "seconds between two looks at the folder of photos, or more where one takes long; 0: only at the "
            "start"),
        CLI_TEXT("device", "NAME", &o.model.device, "what the model runs on (see kith list devices)"),
        CLI_END};
    const cli_usage usage = {
        .operands = "PHOTOS|INDEX",
        .least = 1,
        .most = 1,
        .options = options,
        .details =
            "Serves a folder of photos, or an index, as a page in the browser and as an HTTP API "
            "(docs/serving.md). Photos are indexed in the background, in the user's cache (kith cache): they "
            "can be "
            "searched from the first hundred on, and the folder is looked at again now and then. "
            "Changes of an index, by kith index --sync for instance, "
            "are seen within a second or two.\n\n"
            "  kith serve photos\n"
            "  kith serve birds.kith\n"
            "  kith serve birds.kith --host 0.0.0.0 --token-file tokens --name search.example.org"};
    const int parsed = cli_parse(&usage, &argc, argv);
    if (parsed != CLI_RUN) return parsed;
    if (show_facts) o.hidden = 0;
    if (show && !take_shown(show, &o.hidden)) return CLI_USAGE;
    o.model.weights = model;
    o.index = argv[1];
    o.names = names.item;
    o.n_names = names.n_items;
    o.proxies = proxies.item;
    o.n_proxies = proxies.n_items;
    o.most_body_bytes = body_mb << 20;
    o.most_pixels = megapixels * 1000000;
    o.most_decoded_bytes = decoded_mb << 20;
    if (log && (o.access_log = open_log(log)) < 0)
        return cli_failf("%s cannot be written: %s", log, strerror(errno));
    kith_error err = {0};
    kith_model_identity who;
    const bool are_photos = kith_photos_are(o.index);
    if (!are_photos && (cache || o.model.side || o.model.views))
        return cli_misused("serve", "--%s is for a folder of photos; an index says it itself",
                           cache          ? "cache"
                           : o.model.side ? "size"
                                          : "views");
    sigset_t signals;
    block_signals(&signals);
    if (are_photos && take_photos(&o, argv[1], cache, &who, &err) != KITH_OK) {
        kith_photos_free(o.photos);
        return cli_fail(&err);
    }
    const int status = serve(&o, cache, &signals);
    kith_photos_free(o.photos);
    return status;
}
