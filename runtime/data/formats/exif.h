/* The orientation of a picture: how to turn it upright. Cameras store it with the pixels (Exif 2.3,
 * tag 0x0112 Orientation). */
#pragma once
#include "picture.h"

/* Returns the orientation: 1 is upright as stored; 2 to 8 are as in Exif. Also returns 1 if the tag
 * is missing or has another value. `tiff` is Exif's TIFF data; any bytes are allowed. */
int exif_orientation(const uint8_t *tiff, int64_t size);

bool exif_swaps(int orientation); /* true: rows become columns */

/* Returns the stored area that corresponds to an area of the upright picture. `width` and `height`
 * are the sizes of the stored picture. */
PictureArea exif_stored(int orientation, PictureArea upright, int64_t width, int64_t height);

/* Copies pixels of three bytes from a stored area to the same area upright, `upright.width` x
 * `upright.height`. */
void exif_turn(int orientation, const uint8_t *stored, PictureArea upright, uint8_t *to);
