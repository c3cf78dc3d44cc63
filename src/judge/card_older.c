/* Variants of earlier cards. They had a block for each where today's have the list `variants`, and two kinds of R@1 inside the
 * first block where today's have variants of their own. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "judge/card.h"

/* All that there were, in the order of today's lists. */
static const ki_card_variant older[] = {
    {.name = "all_orders", .transform = "pca", .fitted_on = "training"},
    {.name = "all_orders_white", .transform = "pca_white", .fitted_on = "training"},
    {.name = "all_orders_each_white", .transform = "each_white_pca", .fitted_on = "training"},
    {.name = "embedding_white", .transform = "white", .fitted_on = "training"},
    {.name = "transductive", .transform = "pca", .fitted_on = "test"},
    {.name = "transductive_white", .transform = "pca_white", .fitted_on = "test"},
    {.name = "order_2", .transform = "none"},
    {.name = "order_3", .transform = "none"},
    {.name = "order_4", .transform = "none"},
    {.name = "order_5", .transform = "none"},
    {.name = "order_6", .transform = "none"},
    {.name = "order_7", .transform = "none"},
    {.name = "order_8", .transform = "none"},
    {.name = "side_by_side", .transform = "none"}};

bool ki_card_older_variant(const ki_value *root, size_t i, ki_card_variant *ret) {
    for (size_t k = 0; k < sizeof older / sizeof older[0]; k++) {
        char path[64];
        ki_snprintf(path, sizeof path, "%s.recall.1", older[k].name);
        if (!ki_card_find(root, path) || i-- > 0) continue;
        *ret = older[k];
        return true;
    }
    return false;
}

/* Earlier and today's; a number stands for N. Order 1 is the embedding. */
static const char *const moved[][2] = {{"all_orders.order_recall_at_1.1", "test.recall.1"},
                                       {"all_orders.order_recall_at_1.N", "order_N.recall.1"},
                                       {"all_orders.side_by_side_recall_at_1", "side_by_side.recall.1"}};

/* Is the path of this form? Then its number, or nothing, is in *ret_n. */
static bool is_of_form(const char *path, const char *form, char ret_n[2]) {
    ret_n[0] = ret_n[1] = '\0';
    for (; *form; form++, path++) {
        if (*form == 'N' && *path >= '2' && *path <= '9')
            ret_n[0] = *path;
        else if (*form != *path)
            return false;
    }
    return *path == '\0';
}

bool ki_card_moved_path(const char *path, char *ret_path, size_t bytes) {
    char n[2];
    for (size_t i = 0; i < 2 * (sizeof moved / sizeof moved[0]); i++) {
        const char *const *names = moved[i / 2], *from = names[i % 2], *to = names[1 - i % 2];
        if (!is_of_form(path, from, n)) continue;
        ki_snprintf(ret_path, bytes, "%s", to);
        char *place = strchr(ret_path, 'N');
        if (place) *place = n[0];
        return true;
    }
    return false;
}
