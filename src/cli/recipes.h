/* Recipes that came with kith, by their names. */
#ifndef CLI_RECIPES_H
#define CLI_RECIPES_H

#include "cli/cli.h"

enum { CLI_RECIPE_BYTES = 4096 };

/* The file of a recipe that came with kith (`kith list recipes`): in share/kith/recipes beside the folder of the installed program,
 * or in recipes/ of the tree that it was built in. A recipe in methods/ goes by its last name, too. false: there is none, and
 * ret_path is "". */
bool cli_recipe_file(const char *name, char ret_path[CLI_RECIPE_BYTES]);

/* *word is a path, or "recipe:NAME": then it becomes the file of that recipe, in buf. With `bare`, a word that is no path may be a
 * NAME, too. Says on standard error which it is, unless `quiet`. Returns CLI_RUN, or the exit status after a line that
 * says what is wrong. */
int cli_recipe_take(const char *command, bool bare, bool quiet, const char **word,
                    char buf[CLI_RECIPE_BYTES]);

#endif
