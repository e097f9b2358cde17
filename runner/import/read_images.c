/* Images in another size, or at computed places. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include "read_ops.h"

/* ---- resizing ---- */

static const char *transformation(Reader *r)
{
  return attr_word(r, "coordinate_transformation_mode",
                   r->opset < 11 ? "asymmetric" : "half_pixel");
}

/* The mode of `interpolate` for these attributes; NULL: it has none. */
static const char *resize_mode(Reader *r, uint32_t axes)
{
  const char *mode = attr_word(r, "mode", "nearest"), *place = transformation(r);
  const char *nearest =
      attr_word(r, "nearest_mode", r->opset < 11 ? "floor" : "round_prefer_floor");
  bool antialias = attr_number(r, "antialias", 0) != 0;
  bool half = strcmp(place, "half_pixel") == 0 || strcmp(place, "pytorch_half_pixel") == 0;
  const char *end = strcmp(place, "align_corners") == 0 ? ", align_corners=true" : half ? "" : NULL;
  if (strcmp(mode, "nearest") == 0) {
    if (strcmp(place, "asymmetric") == 0 && strcmp(nearest, "floor") == 0)
      return "mode=\"nearest\"";
    if (half && strcmp(nearest, "round_prefer_ceil") == 0) return "mode=\"nearest-exact\"";
    return NULL;
  }
  if (!end) return NULL;
  if (antialias) return NULL; /* onnx has other weights than PyTorch */
  if (strcmp(mode, "linear") == 0)
    return text(r, "mode=\"%slinear\"%s", axes == 1 ? "" : axes == 2 ? "bi" : "tri", end);
  bool cubic = strcmp(mode, "cubic") == 0 && axes == 2 &&
               (float)attr_real(r, "cubic_coeff_a", -0.75) == -0.75f;
  return cubic ? text(r, "mode=\"bicubic\"%s", end) : NULL;
}

/* Why `interpolate` lacks the mode. */
static const char *lacked_mode(Reader *r)
{
  const char *mode = attr_word(r, "mode", "nearest"), *place = transformation(r), *more = "";
  if (strcmp(mode, "nearest") == 0)
    return text(r, "with mode=nearest, %s, nearest_mode=%s", place,
                attr_word(r, "nearest_mode", "default"));
  if (strcmp(mode, "cubic") == 0)
    more = text(r, ", cubic_coeff_a=%s", float_text(r, attr_real(r, "cubic_coeff_a", -0.75)));
  return text(r, "with mode=%s, %s, antialias=%d%s", mode, place,
              (int)attr_number(r, "antialias", 0), more);
}

/* Reads the scales of the image's axes into *all. False: they are computed, change samples or
 * channels, or PyTorch computes other pixels: with aligned corners if scale * size is no whole
 * number, before opset 11 if the image shrinks. *one: an axis gets one pixel. */
static bool read_scales(Reader *r, const Value *v, uint32_t axes, bool aligned, const char **all,
                        bool *one)
{
  int64_t size;
  if (!v || !v->tensor || rank_of(v) != 1 || !size_of(v, 0, &size) || size != axes + 2)
    return false;
  for (uint32_t i = 0; i < axes + 2; i++) {
    double scale = tensor_real(v->tensor, i);
    if ((i < 2 && scale != 1) || (r->opset < 11 && scale < 1)) return false;
    *one = *one || (i >= 2 && size_of(in(r, 0), i, &size) && floor(scale * (double)size) == 1);
    if (aligned && scale != nearbyint(scale) &&
        (!size_of(in(r, 0), i, &size) || scale * (double)size != nearbyint(scale * (double)size)))
      return false;
    if (i >= 2) *all = text(r, "%s%s%s", *all, i > 2 ? ", " : "", float_text(r, scale));
  }
  return true;
}

/* The argument of `interpolate` for the size of the result; NULL: it lacks one. */
static const char *resize_size(Reader *r, uint32_t axes, bool aligned, bool *one)
{
  const Value *x = in(r, 0), *scales = in(r, r->opset < 11 ? 1 : 2), *sizes = in(r, 3);
  const char *all = "";
  if (!sizes)
    return read_scales(r, scales, axes, aligned, &all, one) ? text(r, "scale_factor=[%s]", all)
                                                            : NULL;
  bool fits = sizes->kind == VALUE_items && sizes->n == axes + 2 && is_size(x, 0, sizes->item[0]) &&
              is_size(x, 1, sizes->item[1]);
  for (uint32_t i = 2; fits && i < axes + 2; i++)
    *one = *one || (!sizes->item[i].text && sizes->item[i].n == 1);
  return fits ? text(r, "size=[%s]", list_text(r, sizes->item + 2, axes)) : NULL;
}

void read_resize(Reader *r)
{
  const Value *x = in(r, 0);
  const char *place = transformation(r);
  int64_t rank = rank_of(x);
  bool one = false;
  in(r, 1); /* roi: only for a transformation that is refused */
  if (rank < 3 || rank > 5) return refuse(r, "of a tensor of fewer than 3 or more than 5 axes");
  uint32_t axes = (uint32_t)rank - 2;
  bool stretch = strcmp(attr_word(r, "keep_aspect_ratio_policy", "stretch"), "stretch") == 0;
  if (!stretch || attr_number(r, "exclude_outside", 0) || attribute(r, "axes"))
    return refuse(r, "with axes, exclude_outside or keep_aspect_ratio_policy");
  const char *mode = resize_mode(r, axes);
  attribute(r, "extrapolation_value");
  attribute(r, "cubic_coeff_a");
  if (!mode) return refuse(r, lacked_mode(r));
  const char *size = resize_size(r, axes, strcmp(place, "align_corners") == 0, &one);
  if (!size)
    return refuse(r, in(r, 3) ? "with sizes that are computed or change samples or channels"
                              : "with scales that are computed or that interpolate lacks");
  if (one && strcmp(place, "pytorch_half_pixel") == 0)
    return refuse(r, "to one pixel, with pytorch_half_pixel");
  give(r, text(r, "interpolate(%s, %s, %s)", whole_ref(r, x), size, mode));
}
