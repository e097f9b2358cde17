/* Writes pictures as PNG by libpng, which is loaded when the first one is written. */
#pragma once
#include "common/file.h"

/* libpng and most readers of pictures refuse longer sides. */
enum { PICTURE_LONGEST = 1000000 };

/* Appends a PNG to an open file: `height` rows of `width` pixels, top row first, without gaps. A
 * pixel has `channels` bytes: 1 for grey, 3 for red, green, blue. Sides are from 1 to
 * PICTURE_LONGEST. AMPC_RUN_FAILED: libpng is not on this machine, or out of memory. AMPC_BAD_FILE:
 * writing failed. */
ampc_status picture_write_png(FileWriter *file, const uint8_t *pixels, int64_t width,
                              int64_t height, int channels);
