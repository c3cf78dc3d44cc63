/* libFuzzer target: what strangers say to kith pull. The first line is a name and an address; the rest is read as the head of an
 * answer, line by line, whose Location is followed, and as a config.json. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hub/answer.h"
#include "hub/cache.h"
#include "hub/name.h"
#include "hub/url.h"
#include "net/contract.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take(bool is_right) {
    if (!is_right) abort();
}

/* A name that is taken can be a part of a path and of an address. */
static void read_name(const char *text) {
    ki_hub_name name;
    ki_hub_url endpoint, url;
    kith_error err;
    ki_path path;
    char repo[KI_HUB_REPO];
    ki_hub_repo_of_path(text, repo);
    if (ki_hub_name_parse(text, &name, &err) != KITH_OK) return;
    take(!strstr(name.repo, "..") && !strstr(name.revision, "..") && name.revision[0] != '/');
    take(ki_hub_repo_folder("/c", name.repo, &path, &err) == KITH_OK && !strchr(path.s + 3, '/'));
    take(ki_hub_url_parse("https://hub.example", "it", &endpoint, &err) == KITH_OK);
    take(ki_hub_url_of_file(&endpoint, name.repo, name.revision, name.file, &url, &err) == KITH_OK);
    take(ki_hub_url_same_origin(&endpoint, &url));
}

static void read_head(const char *text) {
    ki_hub_answer answer;
    ki_hub_url from, to;
    kith_error err;
    ki_hub_answer_init(&answer);
    for (const char *s = text; *s;) {
        const size_t n = strcspn(s, "\n");
        if (ki_hub_answer_line(&answer, s, n, &err) != KITH_OK) return;
        s += n + (s[n] == '\n');
    }
    take(answer.length >= -1 && answer.linked_size >= -1 && answer.range_first < answer.range_all + 1);
    take(!*answer.commit || strspn(answer.commit, "0123456789abcdef") == 40);
    take(ki_hub_url_parse("https://hub.example", "it", &from, &err) == KITH_OK);
    if (ki_hub_url_follow(&from, answer.location, &to, &err) == KITH_OK) take(to.is_https);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = calloc(size + 1, 1);
    ki_hub_url url;
    ki_contract contract;
    kith_error err;
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    char *rest = strchr(text, '\n');
    if (rest) *rest++ = '\0';
    read_name(text);
    ki_hub_url_parse(text, "it", &url, &err);
    if (rest) {
        read_head(rest);
        const kith_status status = ki_contract_parse(rest, strlen(rest), &contract, &err);
        take(!contract.is_there || (contract.side > 0 && strlen(contract.resize) < sizeof contract.resize));
        if (status == KITH_OK) (void)ki_contract_add_processor(rest, strlen(rest), &contract, &err);
        take(!contract.is_there || (contract.side > 0 && strlen(contract.resize) < sizeof contract.resize));
        ki_contract_release(&contract);
    }
    free(text);
    return 0;
}
