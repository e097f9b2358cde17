/* The value that options.watch asks for. */
#pragma once
#include "lower.h"

bool watch_is_on(const Lower *l);                      /* the block that runs gives a value */
void watch_value(Lower *l, const char *name, Datum v); /* of a metric */
void watch_call(Lower *l, const Instance *m, Datum v); /* what a layer gave */
bool watch_stops_updates(const Lower *l);              /* `minimize` leaves the weights alone */
