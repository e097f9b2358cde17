/* Patterns of names of parameters: `*` is any text within a segment ("conv*" of "features.conv1"),
 * `**` any number of segments, none included. What a matching name contains matches too: "encoder"
 * names all parameters below it. */
#pragma once
#include <stdbool.h>

enum { PATTERN_WILDCARDS = 16 }; /* that a pattern of `rename` may have */

/* `whole`: the name itself must match, as where modules are named. */
bool pattern_matches(const char *pattern, const char *name, bool whole);
/* The wildcards of a pattern in their order, `*` as 1 and `**` as 2; at most PATTERN_WILDCARDS are
 * written. How many there are. */
int pattern_wildcards(const char *pattern, unsigned char out[PATTERN_WILDCARDS]);
/* The name that `to` makes of `name` where `from` matches it: each wildcard of `to` stands for what
 * that of `from` at the same place in their order stands for, and what follows the match is kept.
 * Both have the same wildcards. Malloced; NULL: it does not match, or *out_lost: no memory. */
char *pattern_rename(const char *from, const char *to, const char *name, bool *out_lost);
