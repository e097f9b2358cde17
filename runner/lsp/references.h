/* The places of a name in the files of a job. */
#pragma once
#include "names.h"

typedef VEC(Span) Spans;

/* Returns the name around q->offset and its meaning, of which one place sets *token; NULL: it is no
 * name of the files. */
const VisibleName *references_target(const Query *q, const Token **token);
/* Adds all places of a name, in the order of the sources; with `everywhere` false, in q->source.
 * Adds places that may be one to `unclear`, which may be NULL: members of a value whose module is
 * unknown. */
void references_find(const Query *q, const VisibleName *target, bool everywhere, Spans *out,
                     Spans *unclear);
