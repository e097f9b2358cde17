/* How a picture is to be turned so that it stands upright, which cameras write beside its pixels
 * (Exif 2.3, tag 0x0112 Orientation). */
#pragma once
#include "picture.h"

/* 1: as it is stored; 2 to 8 as Exif numbers them, which is 1 where it lies between them or is not
 * there. `tiff` are the bytes of Exif's TIFF file, which may be anything. */
int exif_orientation(const uint8_t *tiff, int64_t size);

bool exif_swaps(int orientation); /* rows become columns */

/* Where an area of the picture that stands upright is stored; `width` and `height` are those of
 * the picture as it is stored. */
PictureArea exif_stored(int orientation, PictureArea upright, int64_t width, int64_t height);

/* Pixels of three bytes, from an area as it is stored to the same area upright, `upright.width` x
 * `upright.height`. */
void exif_turn(int orientation, const uint8_t *stored, PictureArea upright, uint8_t *to);
