/* The value that options.watch asks for: watch.c. */
#pragma once
#include "lower.h"

void watch_value(Lower *l, const char *name, Datum v); /* of a metric */
void watch_call(Lower *l, const Instance *m, Datum v); /* what a layer gave */
bool watch_stops_updates(const Lower *l);              /* `minimize` leaves the weights alone */
void watch_end(Lower *l, Scope *s);                    /* of the block's own names */
