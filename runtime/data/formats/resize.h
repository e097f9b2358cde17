/* Resizing by a triangle filter as wide as a pixel of the result: bilinear with antialiasing, like
 * PyTorch's interpolate(mode="bilinear", antialias=True) and Pillow's BILINEAR. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* One axis: the centre of pixel `i` of the result is at begin + (i + 0.5) * scale in the source.
 * Only source pixels [first, last) exist. */
typedef struct ResizeAxis {
  double begin, scale;
  int64_t first, last;
  int64_t size;  /* pixels of the result */
  bool mirrored; /* the result is mirrored */
} ResizeAxis;

/* Resizes rows of red, green, blue to planes [3, y->size, x->size]. `from` has rows [y->first,
 * y->last) of columns [x->first, x->last). False: out of memory. */
bool resize(const uint8_t *from, const ResizeAxis *x, const ResizeAxis *y, uint8_t *to);
