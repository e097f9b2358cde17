/* Resizing by a triangle filter that is as wide as a pixel of the result: bilinear with
 * antialiasing, as PyTorch's interpolate(mode="bilinear", antialias=True) and Pillow's BILINEAR. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* One axis: pixel `i` of the result lies around source place begin + (i + 0.5) * scale; only source
 * pixels [first, last) exist. */
typedef struct ResizeAxis {
  double begin, scale;
  int64_t first, last;
  int64_t size;  /* pixels of the result */
  bool mirrored; /* the result is turned round */
} ResizeAxis;

/* From rows of red, green, blue to [3, y->size, x->size]. `from` has rows [y->first, y->last) of
 * columns [x->first, x->last). False: there is no memory. */
bool resize(const uint8_t *from, const ResizeAxis *x, const ResizeAxis *y, uint8_t *to);
