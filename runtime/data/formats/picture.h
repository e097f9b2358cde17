/* Pictures: JPEG by libjpeg-turbo, PNG by libpng, WebP by libwebp, TIFF by libtiff, and BMP. A
 * library is loaded when the first of its pictures is read, so programs without pictures do not
 * need it. */
#pragma once
#include "ampc_plan.h"

/* A rectangle of whole pixels of a picture, from (x, y) on. */
typedef struct PictureArea {
  int64_t x, y, width, height;
} PictureArea;

typedef struct Picture Picture;

/* Opens a picture from the bytes of a file, and reads its size. The caller owns the bytes, which
 * must outlive the picture. `path` is for messages. A damaged file gives AMPC_BAD_FILE here or in
 * picture_read. `upright`: the picture is turned as its Exif orientation says; all sizes and
 * positions below then refer to the turned picture. */
ampc_status picture_open(const char *path, const uint8_t *bytes, int64_t size, bool upright,
                         Picture **out);
int64_t picture_width(const Picture *p);
int64_t picture_height(const Picture *p);
int picture_orientation(const Picture *p); /* Exif's, 1 to 8, also if the picture is not turned */

/* Whether picture_read can decode the picture cheaply at 1 / `shrink` of its size (2, 4 or 8). Its
 * size is then (width + shrink - 1) / shrink x (height + shrink - 1) / shrink. */
bool picture_shrinks(const Picture *p, int shrink);

/* Writes the pixels of an area of the shrunk picture to `to`: red, green, blue, without gaps.
 * Always reads the whole file, so that damage anywhere is found. Call it once. */
ampc_status picture_read(Picture *p, int shrink, PictureArea area, uint8_t *to);
void picture_close(Picture *p); /* NULL is fine */
