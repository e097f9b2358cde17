/* Pictures that are decoded as a whole: BMP, which needs no library, WebP and TIFF. */
#pragma once
#include "ampc_plan.h"

typedef struct WholePicture {
  const char *path;
  const uint8_t *bytes; /* of the file; the caller owns them */
  int64_t size, width, height;
  int orientation; /* Exif's number */
  char why[200];   /* message of a library */
  int64_t at;      /* position of a library in `bytes` */
} WholePicture;

typedef struct WholeKind {
  ampc_status (*open)(WholePicture *p); /* sets width, height, orientation */
  /* Writes all rows to `rgb`: red, green, blue, without gaps; width * height is within limits. */
  ampc_status (*read)(WholePicture *p, uint8_t *rgb);
} WholeKind;

/* Returns the kind of a picture by its first bytes; NULL: none of these. */
const WholeKind *picture_whole(const uint8_t *bytes, int64_t size);
