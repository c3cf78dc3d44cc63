/* A hub on loopback, for the tests of kith pull: two servers on free ports of 127.0.0.1, the hub and the storage that it
 * redirects to. They have one repository, org/net, and behave as the test says. Everything that was asked is written down. */
#ifndef KITH_TESTING_HUB_H
#define KITH_TESTING_HUB_H

#include <stdbool.h>
#include <stddef.h>

#define HUB_REPO "org/net"
#define HUB_COMMIT "0123456789abcdef0123456789abcdef01234567"
#define HUB_TOKEN "hf_a-secret-that-nobody-may-see"

/* A file of the repository. */
typedef struct hub_file {
    const char *name;
    const void *data;
    size_t n;
    bool is_large; /* as git-lfs has it: SHA-256, and the bytes come from the storage */
} hub_file;

/* How it behaves; all 0: as the real one does. Numbers count down. */
typedef struct hub_ways {
    int n_refusals, refusal;  /* the next answers of the hub have this status … */
    const char *refusal_head; /* … and these lines */
    int n_cuts;               /* so many bodies … */
    size_t cut_after;         /* … end after these bytes, and the connection with them */
    int n_stalls;             /* so many bodies stop in the middle and the connection stays */
    bool ignores_range, refuses_range, lies_range;
    bool says_no_etag, says_odd_etag, says_no_size, says_no_commit;
    const char *size, *etag; /* said instead of the truth */
    const char *location;    /* of the redirect, instead of the storage */
    bool is_relative;        /* the hub first redirects to a path of its own */
    bool wants_token;        /* 401 without it */
    bool sends_more;         /* than it promised */
    bool flips_bit;          /* in the body of a large file */
    bool is_endless;         /* the head never ends */
    size_t n_idle_body;      /* bytes with a redirect */
    int delay_ms;            /* before a large file's second half */
} hub_ways;

extern hub_ways hub_way;

/* Start both servers, unless they run; the files are borrowed. Returns the hub's address, "http://127.0.0.1:PORT". */
const char *hub_start(const hub_file *files, size_t n_files);
int hub_storage_port(void);
/* What was asked since the last call of hub_forget, a line each: "hub HEAD /org/net/… token range=100". */
const char *hub_asked(void);
void hub_forget(void);
/* How many lines of that hold all of this. */
int hub_count(const char *text);

/* Is libkith-hub.so there? Otherwise the test calls skip(). */
bool hub_has_plugin(void);

#endif
