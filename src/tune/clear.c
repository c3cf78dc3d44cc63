/* Removing what a short run or an earlier winner left: with more minutes another way may win, and its run begins anew in the same folder. */
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "tune/tune.h"

/* Of a run, besides the model, which stays until the next one takes its place. recipe.yaml goes last: as long as it is there, whoever
 * was killed in between knows that there is something to clear. */
static const char *const run_files[] = {"checkpoints", "test",       "log.jsonl",  "run.json", "result.json",
                                        "pairs.json",  "paths.json", "split.csv",  "data.csv", "report.html",
                                        "MODEL.md",    "tune.json",  "recipe.yaml"};

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at) {
    (void)info;
    (void)kind;
    (void)at;
    (void)remove(path);
    return 0;
}

void ki_tune_remove(const char *path) { (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

static void remove_events(const char *folder) {
    ki_path path;
    DIR *dir = opendir(folder);
    if (!dir) return;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (strncmp(e->d_name, "events.out.", 11) == 0 &&
            ki_path_print(&path, NULL, "%s/%s", folder, e->d_name) == KITH_OK)
            (void)unlink(path.s);
    }
    closedir(dir);
}

void ki_tune_clear_run(const ki_tune *t) {
    ki_path path;
    remove_events(t->folder);
    for (size_t i = 0; i < sizeof run_files / sizeof run_files[0]; i++) {
        if (ki_path_print(&path, NULL, "%s/%s", t->folder, run_files[i]) == KITH_OK) ki_tune_remove(path.s);
    }
}
