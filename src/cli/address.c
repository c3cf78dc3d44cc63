/* Addresses of indexes on a server, and the passwords that people put into them. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/cli.h"
#include "kith/text.h"

bool cli_is_address(const char *path) {
    return strncmp(path, "postgresql://", strlen("postgresql://")) == 0 ||
           strncmp(path, "postgres://", strlen("postgres://")) == 0;
}

/* An address may stand alone, or behind the name of an option: --to=postgresql://… One in capitals is none, but has a password. */
static char *find_address(char *word) {
    for (char *at = word; (at = strcasestr(at, "postgres")); at++) {
        const size_t n = strcspn(at, ":");
        if ((n == strlen("postgres") || strncasecmp(at, "postgresql", n) == 0) &&
            strncmp(at + n, "://", 3) == 0)
            return at;
    }
    return NULL;
}

int cli_take_passwords(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        char *address = find_address(argv[i]), *password = NULL;
        kith_error err = {0};
        if (!address) continue;
        if (kith_address_take_password(address, &password, &err) != KITH_OK) return cli_fail(&err);
        /* The way in which libpq wants to be told. */
        if (password) setenv("PGPASSWORD", password, 1);
        if (password) explicit_bzero(password, strlen(password));
        kith_string_free(password);
    }
    return CLI_OK;
}
