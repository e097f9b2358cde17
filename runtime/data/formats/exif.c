/* Orientation of pictures. Column u and row v of the upright picture are stored at column u and row
 * v, or at v and u if rows become columns. If the picture is mirrored along an axis, that index is
 * counted from the other end. */
#include "exif.h"
#include <string.h>

enum { ORIENTATION = 0x0112, SHORT = 3, LONG = 4, ENTRY = 12 /* bytes */ };

/* ---- the number ---- */

static uint32_t number(const uint8_t *at, int bytes, bool big)
{
  uint32_t n = 0;
  for (int i = 0; i < bytes; i++) n = n << 8 | at[big ? i : bytes - 1 - i];
  return n;
}

/* Reads the tag, which is in the first directory of the TIFF data. Entries beyond the end of the
 * bytes are ignored. */
int exif_orientation(const uint8_t *tiff, int64_t size)
{
  if (size < 8) return 1;
  bool big = memcmp(tiff, "MM\0*", 4) == 0;
  if (!big && memcmp(tiff, "II*\0", 4) != 0) return 1;
  int64_t at = number(tiff + 4, 4, big);
  if (at + 2 > size) return 1;
  int64_t n = number(tiff + at, 2, big);
  at += 2;
  for (int64_t i = 0; i < n && at + ENTRY <= size; i++, at += ENTRY) {
    if (number(tiff + at, 2, big) != ORIENTATION) continue;
    uint32_t type = number(tiff + at + 2, 2, big), count = number(tiff + at + 4, 4, big);
    if (count != 1 || (type != SHORT && type != LONG)) return 1;
    uint32_t value = number(tiff + at + 8, type == SHORT ? 2 : 4, big);
    return value >= 1 && value <= 8 ? (int)value : 1;
  }
  return 1;
}

/* ---- turning ---- */

bool exif_swaps(int orientation)
{
  return orientation >= 5;
}

static bool from_right(int orientation)
{
  return orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
}

static bool from_bottom(int orientation)
{
  return orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
}

PictureArea exif_stored(int orientation, PictureArea upright, int64_t width, int64_t height)
{
  PictureArea a = upright;
  if (exif_swaps(orientation)) a = (PictureArea){a.y, a.x, a.height, a.width};
  if (from_right(orientation)) a.x = width - a.x - a.width;
  if (from_bottom(orientation)) a.y = height - a.y - a.height;
  return a;
}

void exif_turn(int orientation, const uint8_t *stored, PictureArea upright, uint8_t *to)
{
  bool swaps = exif_swaps(orientation), right = from_right(orientation),
       bottom = from_bottom(orientation);
  int64_t width = swaps ? upright.height : upright.width,
          height = swaps ? upright.width : upright.height;
  for (int64_t v = 0; v < upright.height; v++)
    for (int64_t u = 0; u < upright.width; u++, to += 3) {
      int64_t x = swaps ? v : u, y = swaps ? u : v;
      if (right) x = width - 1 - x;
      if (bottom) y = height - 1 - y;
      memcpy(to, stored + 3 * (y * width + x), 3);
    }
}
