/* make_run DIR [IMAGES [N]]: a made-up run folder of the usual size, to look at its report; IMAGES is a
 * data set of folders, N how many test images. */
#include "../report/made_run.h"

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    const made_run run = {.folder = argv[1],
                          .images = argc > 2 && argv[2][0] ? argv[2] : NULL,
                          .n_test = argc > 3 ? strtoll(argv[3], NULL, 10) : 6000,
                          .n_classes = 100,
                          .dim = 512,
                          .n_steps = 5000,
                          .n_logged = 500,
                          .seed = 1};
    made_whole(&run);
    return 0;
}
