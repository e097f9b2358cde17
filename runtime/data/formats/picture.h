/* Pictures: JPEG by libjpeg-turbo, PNG by libpng. Both are loaded when the first picture is read,
 * so that nobody else needs them. */
#pragma once
#include "ampc_plan.h"

/* A rectangle of a picture: whole pixels from (x, y) on. */
typedef struct PictureArea {
  int64_t x, y, width, height;
} PictureArea;

typedef struct Picture Picture;

/* Takes the bytes of a file, which stay the caller's and must outlive the picture, and reads its
 * size. `path` is for messages. A file that is damaged is AMPC_BAD_FILE here or in picture_read.
 * `upright`: the picture is turned as its Exif orientation says, and all sizes and places below are
 * those of what that gives. */
ampc_status picture_open(const char *path, const uint8_t *bytes, int64_t size, bool upright,
                         Picture **out);
int64_t picture_width(const Picture *p);
int64_t picture_height(const Picture *p);
int picture_orientation(const Picture *p); /* Exif's, 1 to 8: whether it is turned or not */

/* Whether picture_read can give the picture at 1 / `shrink` of its size (2, 4 or 8), for little
 * work; then its width and height are (w + shrink - 1) / shrink, likewise. */
bool picture_shrinks(const Picture *p, int shrink);

/* Writes the pixels of an area, red, green, blue, without gaps, to `to`; the area is one of the
 * picture as shrunk. All of the file is read, whatever the area, so that damage shows everywhere.
 * Once. */
ampc_status picture_read(Picture *p, int shrink, PictureArea area, uint8_t *to);
void picture_close(Picture *p); /* NULL is fine */
