/* Train an embedding from C, and ask it for the nearest image.
 *
 *     train FOLDER RUN [STEPS]
 *
 * FOLDER holds one folder of images per class (`kith synth FOLDER` draws such a set); the first half of the
 * classes trains, the rest are never shown to the network. The run can be interrupted with Ctrl-C and started
 * again: it goes on where it was. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <kith/kith.h>

static volatile sig_atomic_t must_stop;
static void on_signal(int number) {
    (void)number;
    must_stop = 1;
}

/* Called after every step and for everything worth knowing; not 0 asks for a stop. */
static int on_event(void *user, const kith_train_event *event) {
    (void)user;
    if (event->kind == KITH_TRAIN_EVAL)
        printf("step %lld: %s classes, R@1 %.1f %%\n", (long long)event->step, event->split,
               100 * event->recall_at_1);
    if (event->kind == KITH_TRAIN_WARNING) printf("warning: %s\n", event->text);
    return must_stop;
}

/* The cosine of rows i and j. */
static double product(const kith_array *x, int64_t i, int64_t j) {
    const float *a = (const float *)x->data + i * x->dim[1], *b = (const float *)x->data + j * x->dim[1];
    double ab = 0, aa = 0;
    for (int64_t k = 0; k < x->dim[1]; k++)
        ab += (double)a[k] * (double)b[k], aa += (double)b[k] * (double)b[k];
    return aa > 0 ? ab * ab / aa * (ab < 0 ? -1 : 1)
                  : 0; /* grows with the cosine; row i is the same for all */
}

/* A run leaves the test images' embeddings in RUN/test; which is nearest to the first? */
static int show_nearest(const char *run, kith_error *err) {
    char path[1200];
    kith_array x = {0}, labels = {0};
    snprintf(path, sizeof path, "%s/test/embedding.npy", run);
    if (kith_npy_read(path, &x, err) != KITH_OK) return 1;
    snprintf(path, sizeof path, "%s/test/labels.npy", run);
    if (kith_npy_read(path, &labels, err) != KITH_OK) {
        kith_array_release(&x);
        return 1;
    }
    int64_t best = 1;
    for (int64_t i = 2; i < x.dim[0]; i++) {
        if (product(&x, 0, i) > product(&x, 0, best)) best = i;
    }
    const int64_t *label = labels.data;
    printf("nearest to test image 0 (class %lld) is %lld (class %lld)\n", (long long)label[0],
           (long long)best, (long long)label[best]);
    kith_array_release(&x);
    kith_array_release(&labels);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: train FOLDER RUN [STEPS]\n");
        return 2;
    }
    static const char recipe[] =
        "input:     {resize: squash32, crop: 28, channels: 1, mirror: false}\n"
        "model:     {backbone: convnet4, embedding: 32, settings: {width: 32}}\n"
        "batch:     {classes: 8, images: 4}\n"
        "objective: {loss: {name: binomial}}\n"
        "optim:     {name: adam, lr: 5e-3, steps: 60}\n"
        "eval:      {every: 30}\n";
    char root[1024], steps[64];
    snprintf(root, sizeof root, "data.root=%s", argv[1]);
    snprintf(steps, sizeof steps, "optim.steps=%s", argc > 3 ? argv[3] : "60");
    const char *const sets[] = {root, steps};
    KITH_OPTIONS(kith_train_options, options);
    options.recipe_text = recipe;
    options.sets = sets;
    options.n_sets = 2;
    options.out = argv[2];
    options.resume = true;
    options.notify = on_event;
    kith_train_result result;
    kith_error err;
    signal(SIGINT, on_signal);
    const kith_status status = kith_train_run(&options, &result, &err);
    if (status == KITH_ECANCELED) {
        printf("%s; run this again to go on\n", err.message);
        return 0;
    }
    if (status != KITH_OK) {
        fprintf(stderr, "%s (%s)\n", err.message, err.hint);
        return 1;
    }
    printf("unseen classes: R@1 %.1f %%, before training %.1f %%; the model is %s/model.safetensors\n",
           100 * result.test.recall_at_1.mean, 100 * result.untrained.recall_at_1.mean, result.run);
    if (show_nearest(argv[2], &err) == 0) return 0;
    fprintf(stderr, "%s\n", err.message);
    return 1;
}
