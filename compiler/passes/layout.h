/* Inside pass layout. */
#pragma once
#include "compiler/graph/ops.h"

/* Pads the channels of convolutions that tensor cores compute. Needs the final layouts. */
void pad_channels(Compile *c);
