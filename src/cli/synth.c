/* kith synth: write the built-in data set. */
#include "cli/cli.h"
#include "kith/data.h"

static int show_progress(void *user, int64_t n_done, int64_t n_all) {
    (void)n_all;
    cli_progress_update(user, n_done, NULL);
    return 0;
}

int cmd_synth(int argc, char **argv) {
    KITH_OPTIONS(kith_synth_options, s);
    int64_t seed = (int64_t)s.seed;
    const cli_option options[] = {CLI_INT("classes", "N", &s.n_classes, 1, 100000,
                                          "glyph classes; the first half trains, the rest tests"),
                                  CLI_INT("images", "N", &s.n_images, 1, 100000, "images per class"),
                                  CLI_INT("size", "N", &s.side, 16, 512, "side of an image in pixels"),
                                  CLI_INT("seed", "N", &seed, 0, INT64_MAX, "same seed, same files"),
                                  CLI_FLAG("colour", &s.colour, "coloured ink and ground"),
                                  CLI_FLAG("background", &s.background, "a texture behind the glyph"),
                                  CLI_REAL("noise", "X", &s.noise, 0, 100, "noise in grey levels"),
                                  CLI_REAL("jitter", "X", &s.jitter, 0, 3, "how unsteady the hand is"),
                                  CLI_END};
    const cli_usage usage = {
        .operands = "DIR",
        .least = 1,
        .most = 1,
        .options = options,
        .details = "Writes a folder of PNG images per class into DIR, which must be new or empty."};
    const int status = cli_parse(&usage, &argc, argv);
    if (status != CLI_RUN) return status;
    s.seed = (uint64_t)seed;
    kith_error err;
    cli_progress progress;
    cli_progress_begin(&progress, "drawing", s.n_classes * s.n_images);
    const kith_status done = kith_synth_write(argv[1], &s, show_progress, &progress, &err);
    cli_progress_end(&progress);
    if (done != KITH_OK) return cli_fail(&err);
    printf("%s: %jd classes of %jd images, %jd x %jd pixels\n", argv[1], (intmax_t)s.n_classes,
           (intmax_t)s.n_images, (intmax_t)s.side, (intmax_t)s.side);
    return CLI_OK;
}
