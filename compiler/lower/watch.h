/* The value that options.watch names. */
#pragma once
#include "lower.h"

bool watch_is_on(const Lower *l); /* the current block yields the watched value */
void watch_value(Lower *l, const char *name, Datum v); /* for a metric */
void watch_call(Lower *l, const Instance *m, Datum v); /* for the result of a layer */
bool watch_stops_updates(const Lower *l);              /* `minimize` does not update weights */
