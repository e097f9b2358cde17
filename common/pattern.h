/* Patterns that match names of parameters. `*` stands for any text in a segment ("conv*" matches
 * the second segment of "features.conv1"), `**` for any number of segments, including none. A
 * pattern also matches everything below a name that it matches: "encoder" matches all of its
 * parameters. */
#pragma once
#include <stdbool.h>

enum { PATTERN_WILDCARDS = 16 }; /* most wildcards in a pattern of `rename` */

/* Whether a name matches. `whole`: the pattern must match all of it, as for names of modules. */
bool pattern_matches(const char *pattern, const char *name, bool whole);
/* Writes the wildcards of a pattern in their order, `*` as 1 and `**` as 2, up to
 * PATTERN_WILDCARDS. Returns how many there are. */
int pattern_wildcards(const char *pattern, unsigned char out[PATTERN_WILDCARDS]);
/* Renames `name` if `from` matches it: in `to`, each wildcard is replaced by the text that the
 * corresponding wildcard of `from` stands for, and the rest of the name follows. Both have the same
 * wildcards. The caller frees the result. NULL: no match, or with *out_lost out of memory. */
char *pattern_rename(const char *from, const char *to, const char *name, bool *out_lost);
