/* kith train over ranks, as a user types it: it follows one process, repeats to the bit, is resumed with another number of
 * ranks, embeds to the bits of one process, fails in one line, and survives the death of a rank. */
#include "train/rank_runs.h"

static void need_mpirun(void) {
    if (!mpirun_is_there()) skip();
}

static void ranks_train(int n, const char *out, const char *arguments) {
    rank_runs_train("", n, out, arguments);
}

static void one_train(const char *out, const char *arguments) { rank_runs_train("", 1, out, arguments); }

#define FIFTY "--set optim.steps=50 --set eval.select=last --set checkpoint.keep=100 "

static void test_fifty_steps_follow_one_process(void **state) {
    (void)state;
    need_mpirun();
    one_train("one", FIFTY);
    ranks_train(3, "three", FIFTY);
    rank_runs_near("three", "one", 1e-3);
    ranks_train(3, "again", FIFTY);
    tiny_assert_same("three", "again", "model.safetensors");
    tiny_assert_same("three", "again", "test/embedding.npy");
}

/* Every rank has the same averages (compared before every checkpoint), and no more to sum than what learns. */
static void test_part_of_a_network_and_its_average(void **state) {
    (void)state;
    need_mpirun();
    static const char part[] =
        "--set optim.steps=12 --set eval.select=last --set optim.ema=0.8 --set model.freeze=pool1 "
        "--set optim.layer_decay=0.8";
    one_train("part", part);
    ranks_train(3, "parts", part);
    rank_runs_near("parts", "part", 1e-3);
}

/* A checkpoint says nothing of ranks: 3 have begun, one process or two go on. */
static void test_resume_with_another_number_of_ranks(void **state) {
    (void)state;
    need_mpirun();
    const char *folder = testing_folder();
    assert_true(tiny_exists("again", "checkpoints/step-00000012.safetensors"));
    assert_int_equal(testing_run(rank_runs_said, sizeof rank_runs_said,
                                 "cd %s && rm again/result.json again/checkpoints/step-0000001[3-9]* "
                                 "again/checkpoints/step-0000002* again/checkpoints/step-0000003* "
                                 "again/checkpoints/step-0000004* again/checkpoints/step-0000005* && "
                                 "cp -r again two",
                                 folder),
                     0);
    one_train("again", FIFTY "--resume");
    rank_runs_near("again", "one", 1e-3);
    ranks_train(2, "two", FIFTY "--resume");
    rank_runs_near("two", "one", 1e-3);
}

/* The third rank never has an image, and still has parameters to update as the others do. */
static void test_a_rank_without_images(void **state) {
    (void)state;
    need_mpirun();
    static const char pairs[] =
        "--set batch.sampler=shuffled --set batch.size=2 --set model.bn=frozen "
        "--set objective.loss=amsoftmax --set optim.steps=8 --set eval.select=last";
    one_train("alone", pairs);
    ranks_train(3, "idle", pairs);
    rank_runs_near("idle", "alone", 1e-3);
}

/* Each rank computes its images in chunks of its own, also a rank that has none. */
static void test_chunks(void **state) {
    (void)state;
    need_mpirun();
#define OF_CHUNKS \
    "--set model.bn=frozen --set optim.steps=12 --set optim.accumulate=2 --set eval.select=last "
    one_train("whole", OF_CHUNKS "--set batch.classes=5");
    ranks_train(3, "chunks", OF_CHUNKS "--set batch.classes=5 --set batch.cached=true --set batch.chunk=2");
    rank_runs_near("chunks", "whole", 1e-3);
    one_train("few",
              OF_CHUNKS "--set batch.sampler=shuffled --set batch.size=2 --set objective.loss=amsoftmax");
    ranks_train(3, "few-chunks",
                OF_CHUNKS
                "--set batch.sampler=shuffled --set batch.size=2 --set objective.loss=amsoftmax "
                "--set batch.cached=true --set batch.chunk=1");
    rank_runs_near("few-chunks", "few", 1e-3);
}

/* With weights that stay as they are, two ranks embed what one process embeds, each its half. */
static void test_evaluation_has_the_bits_of_one_process(void **state) {
    (void)state;
    need_mpirun();
    static const char still[] =
        "--set model.bn=frozen --set optim.lr=1e-30 --set optim.steps=1 --set eval.select=last";
    one_train("still", still);
    ranks_train(2, "halves", still);
    tiny_assert_same("still", "halves", "test/embedding.npy");
    tiny_assert_same("still", "halves", "test/labels.npy");
    tiny_assert_same("still", "halves", "test/paths.txt");
    /* Every figure of the card but times. */
    const int status = testing_run(
        rank_runs_said, sizeof rank_runs_said,
        "cd %s && for r in still halves; do tr ',' '\\n' <$r/result.json | "
        "grep -E '\"(R@|recall|map|r_precision|nmi|ami|f1|low|high|mrr|queries|[0-9]+)' >$r.figures; done; "
        "wc -l <still.figures; [ $(wc -l <still.figures) -gt 20 ] && diff still.figures halves.figures",
        testing_folder());
    if (status != 0) fail_msg("the cards differ: %s", rank_runs_said);
}

/* Proxies are shared out over ranks, and so are their moments: checkpoints have them as one process writes them. 4 of the 7
 * training classes take part in a step, 3 of them the batch's. */
#define PROXIES "--set 'objective.loss={name: amsoftmax, sample: 0.5, lr_multiplier: 1}' --set optim.clip=1 "

static void near_tensor(const char *a, const char *b, const char *file, const char *name, double most) {
    char path[2][4096];
    kith_tensors *tensors[2];
    kith_array view[2];
    kith_error err;
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof path[i], "%s/%s/checkpoints/%s", testing_folder(), i ? b : a, file);
        assert_ok(kith_tensors_open(path[i], &tensors[i], &err), &err);
        assert_ok(kith_tensors_get(tensors[i], name, &view[i], &err), &err);
    }
    assert_int_equal(view[0].n_dims, view[1].n_dims);
    assert_int_equal(view[0].dim[0], view[1].dim[0]);
    double largest = 0, off = 0;
    for (int64_t i = 0; i < kith_array_count(&view[0]); i++) {
        const double u = (double)((float *)view[0].data)[i], v = (double)((float *)view[1].data)[i];
        largest = fmax(largest, fabs(v));
        off = fmax(off, fabs(u - v));
    }
    if (!(off <= most * largest))
        fail_msg("%s of %s and %s are %g apart; the largest is %g", name, a, b, off, largest);
    for (int i = 0; i < 2; i++) kith_tensors_free(tensors[i]);
}

static void near_proxies(const char *a, const char *b, const char *file) {
    static const char *const names[] = {"objective/proxies", "optim/proxies.m", "optim/proxies.v"};
    for (int i = 0; i < 3; i++) near_tensor(a, b, file, names[i], 1e-3);
}

static void test_proxies_over_ranks(void **state) {
    (void)state;
    need_mpirun();
    one_train("one-p", PROXIES FIFTY);
    ranks_train(3, "three-p", PROXIES FIFTY);
    near_proxies("three-p", "one-p", "step-00000012.safetensors");
    near_proxies("three-p", "one-p", "step-00000050.safetensors");
    rank_runs_near("three-p", "one-p", 1e-3);
    char *one = tiny_read("one-p", "pairs.json"), *three = tiny_read("three-p", "pairs.json");
    assert_non_null(strstr(one, "\"weight\""));
    assert_non_null(strstr(three, "\"weight\""));
    free(one);
    free(three);
    assert_int_equal(testing_run(rank_runs_said, sizeof rank_runs_said,
                                 "cd %s && rm three-p/result.json three-p/checkpoints/step-0000001[3-9]* "
                                 "three-p/checkpoints/step-000000[2-5]* && cp -r three-p two-p",
                                 testing_folder()),
                     0);
    one_train("three-p", PROXIES FIFTY "--resume");
    near_proxies("three-p", "one-p", "step-00000050.safetensors");
    ranks_train(2, "two-p", PROXIES FIFTY "--resume");
    near_proxies("two-p", "one-p", "step-00000050.safetensors");
}

/* Images that cannot be read count over all ranks: two in either half of the test images, and four that the training batches of
 * two ranks come across, three at most allowed. */
static void damage(const char *folder, const char *names) {
    assert_int_equal(testing_run(rank_runs_said, sizeof rank_runs_said,
                                 "cd %s && cp -r tiny %s && for n in %s; do echo none >%s/$n.png; done",
                                 testing_folder(), folder, names, folder),
                     0);
}

static void refuse(int n, const char *folder, const char *arguments, const char *text) {
    const int status = testing_run(
        rank_runs_said, sizeof rank_runs_said,
        MPIRUN
        " -np %d %s train %s --out %s/%s-%d --no-report -q --set data.root=%s/%s --set loader.bad=3 %s 2>&1",
        n, testing_program(), tiny_make(), testing_folder(), folder, n, testing_folder(), folder, arguments);
    if (status == 0 || !strstr(rank_runs_said, text))
        fail_msg("%d ranks, status %d: %s", n, status, rank_runs_said);
}

static void test_unreadable_images_of_all_ranks(void **state) {
    (void)state;
    need_mpirun();
    tiny_make();
    damage("dark", "glyph00009/00000 glyph00009/00001 glyph00017/00000 glyph00017/00001");
    refuse(1, "dark", "", "images that cannot be read: 4");
    refuse(2, "dark", "", "images that cannot be read: 4 on all ranks, more than the 3 allowed");
    damage("dim", "glyph00000/00000 glyph00001/00001 glyph00002/00002 glyph00003/00003");
    refuse(2, "dim",
           "--set optim.steps=12 --set log_every=1 --set eval.test=false --set eval.seen=false "
           "--set eval.select=last --set data.validation=0",
           "images that cannot be read: 4, more than the 3 allowed");
}

/* Each of four ranks has one image, which is like itself; the batch has four. */
static void test_collapse_is_of_the_whole_batch(void **state) {
    (void)state;
    need_mpirun();
    ranks_train(
        4, "apart",
        "--set 'batch={classes: 2, images: 2}' --set optim.steps=15 --set log_every=1 --set eval.every=0 "
        "--set eval.select=last");
    char *log = tiny_read("apart", "log.jsonl");
    const char *warning = strstr(log, "are alike");
    if (warning) fail_msg("it warns: %.200s", warning);
    free(log);
}

static int count(const char *text, const char *word) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, word)); at++) n++;
    return n;
}

static void test_a_failure_is_told_once(void **state) {
    (void)state;
    need_mpirun();
    const int status =
        testing_run(rank_runs_said, sizeof rank_runs_said, MPIRUN " -np 2 %s train %s/none.yaml 2>&1",
                    testing_program(), testing_folder());
    assert_int_not_equal(status, 0);
    if (count(rank_runs_said, "kith: ") != 1 || !strstr(rank_runs_said, "none.yaml"))
        fail_msg("it says: %s", rank_runs_said);
}

/* A rank is killed: the job ends, its checkpoints are good, and one process goes on. */
static void test_a_rank_that_dies(void **state) {
    (void)state;
    need_mpirun();
    const int status =
        testing_run(rank_runs_said, sizeof rank_runs_said,
                    "export K=%s; " MPIRUN
                    " -np 2 sh -c 'if [ \"$OMPI_COMM_WORLD_RANK\" = 1 ]; then "
                    "( until ls %s/dies/checkpoints/step-*.safetensors >/dev/null 2>&1; do sleep 0.01; done; "
                    "kill -9 $$ ) & "
                    "fi; exec \"$K\" train %s --out %s/dies --no-report -q --set optim.steps=100000' 2>&1",
                    testing_program(), testing_folder(), tiny_make(), testing_folder());
    assert_int_not_equal(status, 0);
    if (!strstr(rank_runs_said, "signal 9")) fail_msg("it says: %s", rank_runs_said);
    assert_true(!tiny_exists("dies", "result.json"));
    /* The same run, though it is asked to stop earlier than it would have. */
    const int resumed = testing_run(rank_runs_said, sizeof rank_runs_said,
                                    "timeout -s INT 2 %s train %s/dies --resume --no-report 2>&1",
                                    testing_program(), testing_folder());
    if (resumed == 1 || !strstr(rank_runs_said, "(resumed)"))
        fail_msg("status %d: %s", resumed, rank_runs_said);
}

/* A job must not become several runs of one process each. */
static void test_without_the_plugin(void **state) {
    (void)state;
    const int status = testing_run(rank_runs_said, sizeof rank_runs_said,
                                   "OMPI_COMM_WORLD_SIZE=2 KITH_PLUGINS=%s %s train %s --out %s/never 2>&1",
                                   testing_folder(), testing_program(), tiny_make(), testing_folder());
    assert_int_not_equal(status, 0);
    if (!strstr(rank_runs_said, "training over ranks: there is no plugin "))
        fail_msg("it says: %s", rank_runs_said);
    assert_true(!tiny_exists("never", "recipe.yaml"));
}

/* Each rank shows its images to the teacher; of three, the last has images without a class alone. */
static void test_a_teacher_and_images_without_a_class(void **state) {
    (void)state;
    need_mpirun();
    char arguments[4600];
    snprintf(arguments, sizeof arguments, "--set optim.steps=12 --set eval.select=last %s",
             rank_runs_taught());
    one_train("taught", arguments);
    ranks_train(2, "taught-2", arguments);
    ranks_train(3, "taught-3", arguments);
    rank_runs_near("taught-2", "taught", 1e-3);
    rank_runs_near("taught-3", "taught", 1e-3);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fifty_steps_follow_one_process),
                                       cmocka_unit_test(test_part_of_a_network_and_its_average),
                                       cmocka_unit_test(test_resume_with_another_number_of_ranks),
                                       cmocka_unit_test(test_a_rank_without_images),
                                       cmocka_unit_test(test_chunks),
                                       cmocka_unit_test(test_evaluation_has_the_bits_of_one_process),
                                       cmocka_unit_test(test_proxies_over_ranks),
                                       cmocka_unit_test(test_unreadable_images_of_all_ranks),
                                       cmocka_unit_test(test_a_teacher_and_images_without_a_class),
                                       cmocka_unit_test(test_collapse_is_of_the_whole_batch),
                                       cmocka_unit_test(test_a_failure_is_told_once),
                                       cmocka_unit_test(test_a_rank_that_dies),
                                       cmocka_unit_test(test_without_the_plugin)};
    return cmocka_run_group_tests(tests, NULL, testing_tear_down);
}
