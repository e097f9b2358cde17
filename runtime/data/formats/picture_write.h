/* Pictures out: PNG by libpng, which is loaded when the first one is written. */
#pragma once
#include "runtime/plan/file.h"

/* libpng refuses sides that are longer, and so do most who read pictures. */
enum { PICTURE_LONGEST = 1000000 };

/* Adds to an open file the PNG of `height` rows of `width` pixels, top row first, without gaps:
 * `channels` bytes each, 1 for grey or 3 for red, green, blue. Sides are from 1 to PICTURE_LONGEST.
 * AMPC_RUN_FAILED: libpng is not on this machine, or out of memory; AMPC_BAD_FILE: writing failed.
 */
ampc_status picture_write_png(FileWriter *file, const uint8_t *pixels, int64_t width,
                              int64_t height, int channels);
