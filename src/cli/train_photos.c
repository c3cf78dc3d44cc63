/* kith train PHOTOS: the result for people. */
#include "cli/train_photos.h"

#include <math.h>

#include "cli/cli.h"

static void print_score(const char *name, const kith_estimate *now, const kith_estimate *before) {
    printf("  %-6s %6.2f", name, 100 * now->mean);
    if (!isnan(now->low) && !isnan(now->high))
        printf("  (95 %% interval: %.2f to %.2f)", 100 * now->low, 100 * now->high);
    if (before->n > 0) printf("  pretrained %.2f", 100 * before->mean);
    putchar('\n');
}

static void print_words(const char *text) {
    printf("%c%s.\n", text[0] >= 'a' && text[0] <= 'z' ? text[0] - 'a' + 'A' : text[0],
           text[0] ? text + 1 : "");
}

void cli_print_tune(const kith_tune_result *r) {
    char time[32], recipe[5000], quoted[8192];
    if (r->run.test.recall_at_1.n > 0) {
        printf("test classes, judged once, in percent:\n");
        print_score("R@1", &r->run.test.recall_at_1, &r->pretrained.recall_at_1);
        print_score("MAP@R", &r->run.test.map_at_r, &r->pretrained.map_at_r);
    } else {
        printf("there are too few classes to hold some out for a test: add classes, until there are six\n");
    }
    if (*r->why) print_words(r->why);
    if (*r->advice) print_words(r->advice);
    printf("%s: %s, the best of %lld ways; %s\n", r->run.run,
           r->is_pretrained ? "the pretrained model as it was" : r->winner, (long long)r->n_tried,
           cli_time_text(r->seconds, time, sizeof time));
    snprintf(recipe, sizeof recipe, "%s/recipe.yaml", r->run.run);
    cli_quote(recipe, quoted, sizeof quoted);
    printf("look at it: %s/report.html; make it again: kith train %s\n", r->run.run, quoted);
}
