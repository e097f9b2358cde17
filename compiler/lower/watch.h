/* The value that options.watch names. */
#pragma once
#include "lower.h"

bool watch_is_on(const Lower *l);                      /* true if this block yields the value */
void watch_value(Lower *l, const char *name, Datum v); /* call it for a metric */
void watch_call(Lower *l, const Instance *m, Datum v); /* call it for the result of a layer */
bool watch_stops_updates(const Lower *l);              /* then `minimize` does not update weights */
