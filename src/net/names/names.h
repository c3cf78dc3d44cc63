/* Names of other libraries: a file's tensors under the names that our networks give them (docs/adr/0142).
 *
 * Each library's network is a table of rules, one `const ki_naming` and one row of names/table.def. A rule says what a tensor is
 * called there and here; what no rule names keeps its name. So a table lists the differences only, and a file with a network's own names
 * needs none.
 *
 *     static const ki_names_rule rules[] = {
 *         KI_NAME("encoder.layer.#.layernorm_before.*", "blocks.#.norm1.*"),
 *         KI_NAME_JOIN("encoder.layer.#.attention.attention.query.*", "blocks.#.attn.qkv.*", 0, 3),
 *         KI_NAME_UNWANTED("pooler.*"),
 *         KI_NAME_END};
 *     const ki_naming ki_names_vit_transformers = {
 *         .library = "transformers' ViT",
 *         .signs = {"embeddings.cls_token", "encoder.layer.0.layernorm_before.weight"},
 *         .rules = rules};
 *
 * Patterns. `#` is a number, `*` any characters, also none, and at most one of a pattern; everything else is itself. In our name
 * the first `#` is the first number, `#+1` and `#-2` (one digit) are that number changed; `*` is what `*` was.
 *
 * Order. The first rule that matches decides. If its change is KI_NAMES_AGAIN, the rules after it see the new name, so that a beginning
 * may be turned first (KI_NAME_AGAIN("features.1.*", "layers.0.blocks.*")). After KI_NAMES_CUT they see the old one,
 * so that several of our tensors may be cut out of one of theirs.
 *
 * Prefix. A model that is a part of another one is called what its owner calls it (`vit.`, `visual.`, `module.backbone.`). The prefix is
 * whatever stands before the first sign in the file; rules see names without it. A file in which two prefixes have all signs, as
 * a student and its teacher, is refused. Tensors elsewhere in the file (a text tower, a
 * classifier, an optimizer) are left out, unless a rule that begins with `/` names them: such a rule is of whole
 * names, KI_NAME("/classifier.*", "head.*").
 *
 * Axes of 1 at the beginning or end of a shape never matter ([1, n, c] for [n, c], [c, 1, 1] for [c], [o, i, 1, 1] for [o, i]) in a file that is
 * read.
 *
 * A table can also be used the other way, for a file that the library reads (ki_names_write), if all that it changes are names and
 * axes of 1: then KI_NAME_AXES and KI_NAME_BEHIND say the axes. A backbone's record names that table. One that only has to say
 * axes, because the names are the library's, is in no row of table.def, and has no signs. */
#ifndef KI_NAMES_H
#define KI_NAMES_H

#include <stdbool.h>

#include "kith/array.h"

enum { KI_NAMES_LONGEST = 256, KI_NAMES_SIGNS = 4, KI_NAMES_PARTS = 4 };
enum { KI_NAMES_MOST_EXTENT = 1 << 30 }; /* of an axis (ki_named_extent) */

typedef enum ki_names_change {
    KI_NAMES_SAME,
    KI_NAMES_AGAIN,
    KI_NAMES_JOIN, /* it is part `part` of the `of` that make our tensor, one after the other along the first axis */
    KI_NAMES_CUT,       /* ours is `count` of the `of` equal parts of its first axis, from part `part` on */
    KI_NAMES_TRANSPOSE, /* [a, b] is our [b, a] */
} ki_names_change;

typedef struct ki_names_rule {
    const char *theirs;
    const char *ours; /* NULL: the tensor is not wanted */
    ki_names_change change;
    int part, of, count;
    int axes, before; /* of their tensor: so many axes, or so many of 1 before ours; both 0: as ours */
    bool
        is_read_only; /* another name of a tensor that a rule before has: files that are written have that one's */
} ki_names_rule;

/* Rows of a table of rules; KI_NAME_END is the last. */
#define KI_NAME(theirs_, ours_) \
    { .theirs = (theirs_), .ours = (ours_) }
#define KI_NAME_READ(theirs_, ours_) \
    { .theirs = (theirs_), .ours = (ours_), .is_read_only = true }
#define KI_NAME_AXES(theirs_, ours_, axes_) \
    { .theirs = (theirs_), .ours = (ours_), .axes = (axes_) }
#define KI_NAME_BEHIND(theirs_, ours_, before_) \
    { .theirs = (theirs_), .ours = (ours_), .before = (before_) }
#define KI_NAME_UNWANTED(theirs_) \
    { .theirs = (theirs_) }
#define KI_NAME_AGAIN(theirs_, ours_) \
    { .theirs = (theirs_), .ours = (ours_), .change = KI_NAMES_AGAIN }
#define KI_NAME_TRANSPOSE(theirs_, ours_) \
    { .theirs = (theirs_), .ours = (ours_), .change = KI_NAMES_TRANSPOSE }
#define KI_NAME_JOIN(theirs_, ours_, part_, of_) \
    { .theirs = (theirs_), .ours = (ours_), .change = KI_NAMES_JOIN, .part = (part_), .of = (of_) }
#define KI_NAME_CUT(theirs_, ours_, part_, of_, count_)                                             \
    {                                                                                               \
        .theirs = (theirs_), .ours = (ours_), .change = KI_NAMES_CUT, .part = (part_), .of = (of_), \
        .count = (count_)                                                                           \
    }
#define KI_NAME_END \
    { .theirs = NULL }

typedef struct ki_naming {
    const char *library; /* for log lines: "transformers' ViT" */
    /* Patterns of names that must all be in the file, and, after a `!`, that must not, all below the same prefix. The first is no `!`. */
    const char *signs[KI_NAMES_SIGNS];
    const ki_names_rule *rules; /* ends with KI_NAME_END */
} ki_naming;

/* The i-th row of names/table.def, or NULL. */
const ki_naming *ki_names_at(int i);

/* What the library calls our tensor, and its shape there: `shape` is that of ours. What no rule names stays as it is. KITH_EFORMAT: the
 * name is too long. */
kith_status ki_names_write(const ki_naming *table, const char *ours, char ret_theirs[KI_NAMES_LONGEST],
                           kith_array *shape, kith_error *err);

/* A file's tensors under our names. It borrows the file, which must outlive it. */
typedef struct ki_named ki_named;

/* The tensors whose names begin with `prefix` (""), renamed by the first table whose signs are there. None is, or the file is kith's
 * own: names stay as they are. KITH_EFORMAT: a name is too long, or two tensors are the same one of ours. KITH_EINVAL: there are two networks. */
kith_status ki_named_new(const kith_tensors *tensors, const char *prefix, ki_named **ret_named,
                         kith_error *err);
void ki_named_free(ki_named *named); /* NULL is fine */

/* The table that was used, or NULL. */
const ki_naming *ki_named_table(const ki_named *named);

int ki_named_count(const ki_named *named);
const char *ki_named_name(const ki_named *named, int i);   /* ours */
const char *ki_named_theirs(const ki_named *named, int i); /* in the file; of the first part */

/* Type and shape of our tensor, without data. False: there is none, or a part of it is missing, or its parts do not fit. */
bool ki_named_get(const ki_named *named, const char *name, kith_array *ret_shape);
/* Extent of an axis of our tensor, counted from the end if negative, without axes of 1 at the beginning; 0: there is none, or it is more
 * than KI_NAMES_MOST_EXTENT, as only an empty tensor may claim. So callers may multiply two of them. */
int64_t ki_named_extent(const ki_named *named, const char *name, int axis);
/* How many there are of something numbered: one more than the largest # of a name that matches, 0 if none does. */
int64_t ki_named_depth(const ki_named *named, const char *pattern);
/* Is there a tensor of the file that matches, under their names and without the prefix? Also of those that are not wanted. */
bool ki_named_file_has(const ki_named *named, const char *pattern);

/* Our tensor's n values as float32. KITH_ENOTFOUND; KITH_ESHAPE if it has not n of them; KITH_ENUMERIC as kith_array_convert. */
kith_status ki_named_values(const ki_named *named, const char *name, float *ret_values, int64_t n,
                            kith_error *err);

#endif
