/* The keys of every object that the routes answer with. A route that answers with another key has it here, too. */
#include "serve/routes/answers.h"

#include <stddef.h>

static const char picture_help[] = "there is a picture to be had at /items/ID/image and /thumb";
static const char path_help[] = "from the index's folders on; a filter on path sees the same";

/* What is known of every item. */
#define ITEM_FIELDS                                                                        \
    {"id", "integer", NULL, false}, {"label", "string?", NULL, false},                     \
        {"path", "string?", path_help, false}, {"values", "object", "by column", false}, { \
        "image", "boolean", picture_help, false                                            \
    }

static const ki_schema_field problem[] = {
    {"type", "=about:blank", NULL, false},
    {"title", "string", NULL, false},
    {"status", "integer", NULL, false},
    {"detail", "string", "one line: what was found, what was wanted", false},
    {"hint", "string", "what to do", true},
    {0}};

static const ki_schema_field health[] = {{"status", "=ok", NULL, false}, {0}};

static const ki_schema_field progress[] = {
    {"state", "=looking|indexing|ready|elsewhere|failing",
     "looking: comparing files; elsewhere: another process indexes them. An index is always ready", false},
    {"photos", "integer?", "files that were found; null: not known yet", false},
    {"done", "integer?", "of them: indexed, or found to be unreadable", false},
    {"ready", "integer", "can be found by a search now", false},
    {"unreadable", "integer", "of the last look that came to its end", false},
    {"generation", "integer", "counts commits of the index", false},
    {"rate", "number?", "photos a second", false},
    {"seconds_left", "number?", NULL, false},
    {"problem", "string?", "why the photos cannot be indexed", false},
    {0}};

static const ki_schema_field item[] = {
    ITEM_FIELDS,
    {"bytes", "integer", "of the file; -1: not known; not told of samples", true},
    {"mtime", "number", "of the file, seconds since 1970; -1: not known; not told of samples", true},
    {0}};

static const ki_schema_field hit[] = {
    ITEM_FIELDS,
    {"score", "number", "by the index's metric", false},
    {"false_match_rate", "number?",
     "how often different things look this similar; null: the index has no curve", false},
    {"error_rate", "number?", "the chance that it is wrong; null: not known", false},
    {"error_rate_interval", "[2]number?", "its 95 % interval", false},
    {0}};

static const ki_schema_field found[] = {{"n_allowed", "integer", "items that may be found", false},
                                        {"is_exact", "boolean", "every vector was compared", false},
                                        {"hits", "[]Hit", "the most similar first", false},
                                        {"took_ms", "number", NULL, false},
                                        {0}};

static const ki_schema_field identified[] = {
    {"name", "string?", "the label; null: unknown", false},
    {"evidence", "number?", "of the first candidate; null: too few of the images say the same", false},
    {"false_name_rate", "number?", "of false names, if names are given from this evidence on, as measured",
     false},
    {"false_name_low", "number?", "lower bound at 95 %", false},
    {"false_name_high", "number?", "upper bound at 95 %: at most `error` where there is a name", false},
    {"is_single", "boolean", "the name has one photo: it is measured only with all others", false},
    {"candidates", "[]Hit", "the nearest photo of each name, the one in question first", false},
    {"error", "number", "as promised", false},
    {"named", "number", "of photos of known things, about this share is given its name", false},
    {"n_photos", "integer", "with a label", false},
    {"n_names", "integer", NULL, false},
    {"took_ms", "number", NULL, false},
    {0}};

static const ki_schema_field map[] = {
    {"rows", "integer", NULL, false},
    {"columns", "integer", NULL, false},
    {"values", "[]number", "rows x columns from the upper left; with rest, their sum is the score", false},
    {"rest", "number", NULL, false},
    {"view", "[4]number", "x, y, width, height of what the map covers, in pixels of the upright image",
     false},
    {"width", "integer", "of the upright image", false},
    {"height", "integer", NULL, false},
    {0}};

static const ki_schema_field explanation[] = {
    {"score", "number", NULL, false},
    {"estimate", "string?", "null: both maps sum to the score; otherwise what they are instead, and why",
     false},
    {"query", "Map", NULL, false},
    {"hit", "Map", NULL, false},
    {0}};

static const ki_schema_field duplicate[] = {
    ITEM_FIELDS,
    {"likeness", "number", "with the first of the group, -1 to 1", false},
    {"is_mirrored", "boolean", "the mirror image of the first", false},
    {0}};

static const ki_schema_field group[] = {
    {"kind", "=same|near", "the same file, or the same picture in another", false},
    {"items", "[]Duplicate", NULL, false},
    {0}};

static const ki_schema_field duplicates[] = {
    {"n_groups", "integer", NULL, false},
    {"n_unread", "integer", "items without a picture that can be read", false},
    {"groups", "[]Group", "those that limit and offset ask for", false},
    {0}};

static const ki_schema_field column[] = {{"name", "string", NULL, false},
                                         {"type", "=text|integer|real", NULL, false},
                                         {"values", "[]string?", "of text; null: more than 50", true},
                                         {"min", "number?", "of numbers", true},
                                         {"max", "number?", "of numbers", true},
                                         {0}};

static const ki_schema_field facet[] = {{"text", "string", "a value, or what dates begin with", true},
                                        {"number", "number", "a value", true},
                                        {"from", "number", "of a range: numbers from here on …", true},
                                        {"below", "number", "… that are less", true},
                                        {"items", "integer", NULL, false},
                                        {0}};

static const ki_schema_field facets[] = {
    {"column", "string", NULL, false},
    {"type", "=text|integer|real", NULL, false},
    {"items", "integer", "with a value, of those that the filter lets through", false},
    {"without", "integer", "of them without one", false},
    {"different", "integer", "values; of dates days, months or years", false},
    {"values", "[]Facet", "texts: the most frequent first; numbers and dates in their order", false},
    {0}};

static const ki_schema_field curve[] = {
    {"false_match_rate", "[]number", NULL, false},
    {"threshold", "[]number", NULL, false},
    {"source", "string", "what was measured: validation, or validation, at 192 px, or index …", false},
    {0}};

static const ki_schema_field limits[] = {{"body_bytes", "integer", NULL, false},
                                         {"pixels", "integer", "of an image that is sent", false},
                                         {"decoded_bytes", "integer", "of all requests together", false},
                                         {"k", "integer", "k + offset of a query", false},
                                         {"queue", "integer", "requests in work", false},
                                         {0}};

static const ki_schema_field info[] = {
    {"version", "string", NULL, false},
    {"items", "integer", NULL, false},
    {"dim", "integer", NULL, false},
    {"metric", "=cosine|inner|sqeuclidean", NULL, false},
    {"tier", "=exact|scan|lists|graph", NULL, false},
    {"model", "string?", "SHA-256 of the model's file", false},
    {"missing_model", "string?",
     "the last names of the model's file, if it cannot be opened; --model says where it lies now", false},
    {"can_embed", "boolean", NULL, false},
    {"can_explain", "boolean", NULL, false},
    {"is_calibrated", "boolean", NULL, false},
    {"generation", "integer", "counts commits of the index", false},
    {"is_indexing", "boolean", "photos are served that the server itself indexes: ask /progress", false},
    {"read_only", "boolean", "the token of this request is a read-only one", false},
    {"columns", "[]Column", NULL, false},
    {"calibration", "Curve?", NULL, false},
    {"samples", "[]Item", "some items with a picture, to begin with", false},
    {"limits", "Limits", NULL, false},
    {0}};

const ki_answer_schema ki_answer_schemas[] = {
    {"Problem", problem},
    {"Health", health},
    {"Progress", progress},
    {"Info", info},
    {"Column", column},
    {"Curve", curve},
    {"Limits", limits},
    {"Item", item},
    {"Found", found},
    {"Hit", hit},
    {"Explanation", explanation},
    {"Map", map},
    {"Facets", facets},
    {"Facet", facet},
    {"Duplicates", duplicates},
    {"Group", group},
    {"Duplicate", duplicate},
    {"Identified", identified},
};
const int ki_n_answer_schemas = (int)(sizeof ki_answer_schemas / sizeof ki_answer_schemas[0]);
