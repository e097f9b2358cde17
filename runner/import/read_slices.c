/* Parts of tensors: slices, split. */
#include <inttypes.h>
#include <string.h>
#include "read_ops.h"

/* ---- slices ---- */

typedef struct Cut { /* along an axis */
  int64_t axis, step;
  Item start, stop;
} Cut;

/* Slice has its numbers in inputs; before opset 10 in attributes. False: they are computed. */
static bool read_cuts(Reader *r, Cut *cuts, uint32_t *n)
{
  Item *starts, *ends, *axes, *steps;
  uint32_t n_ends, n_axes, n_steps;
  bool all = read_list(r, 1, "starts", &starts, n) && read_list(r, 2, "ends", &ends, &n_ends),
       some = read_list(r, 3, "axes", &axes, &n_axes),
       stepped = read_list(r, 4, "steps", &steps, &n_steps);
  if (!all || *n > READ_RANK || n_ends != *n || (some && n_axes != *n) ||
      (stepped && n_steps != *n))
    return false;
  for (uint32_t i = 0; i < *n; i++) {
    const Item axis = some ? axes[i] : (Item){.n = i}, step = stepped ? steps[i] : (Item){.n = 1};
    if (axis.text || step.text || step.n < INT32_MIN || step.n > INT32_MAX) return false;
    cuts[i] = (Cut){axis.n, step.n, starts[i], ends[i]};
  }
  return true;
}

/* Python's bounds of a slice with a number as size. */
static void clamp_cut(const Cut *cut, int64_t size, int64_t *from, int64_t *end)
{
  int64_t low = cut->step < 0 ? -1 : 0, high = cut->step < 0 ? size - 1 : size;
  *from = cut->start.n < 0 ? cut->start.n + size : cut->start.n;
  *end = cut->stop.n < 0 ? cut->stop.n + size : cut->stop.n;
  *from = *from < low ? low : *from > high ? high : *from;
  *end = *end < low ? low : *end > high ? high : *end;
}

/* Makes a slice backwards one forwards, of the flipped tensor. False: the size of the axis is not
 * known. */
static bool flip_cut(const Value *x, Cut *cut)
{
  int64_t size, from, end;
  bool whole =
      cut->stop.n <= INT32_MIN && cut->start.n == -1 && !cut->start.text && !cut->stop.text;
  if (whole) {
    *cut = (Cut){cut->axis, -cut->step, {.n = 0}, {.n = INT64_MAX}};
    return true;
  }
  if (cut->start.text || cut->stop.text || !size_of(x, cut->axis, &size)) return false;
  clamp_cut(cut, size, &from, &end);
  *cut = (Cut){cut->axis, -cut->step, {.n = size - 1 - from}, {.n = size - 1 - end}};
  return true;
}

/* Returns the subscript of an axis: "", "1:", ":-1:2". Both ends are left out if they do nothing.
 */
static const char *subscript(Reader *r, const Value *x, const Cut *cut)
{
  int64_t size;
  bool known = size_of(x, cut->axis, &size);
  bool from_start = !cut->start.text && (cut->start.n == 0 || (known && cut->start.n <= -size));
  bool to_end = !cut->stop.text && (cut->stop.n >= INT32_MAX || (known && cut->stop.n >= size));
  if (cut->stop.text && cut->axis < rank_of(x)) to_end = is_size(x, (uint32_t)cut->axis, cut->stop);
  return text(r, "%s:%s%s", from_start ? "" : item_text(r, cut->start),
              to_end ? "" : item_text(r, cut->stop),
              cut->step == 1 ? "" : text(r, ":%" PRId64, cut->step));
}

void read_slice(Reader *r)
{
  Value *x = in(r, 0);
  Cut cuts[READ_RANK];
  uint32_t n;
  const char *subs[READ_RANK] = {0}, *all = "", *flips = "";
  int64_t last = -1;
  if (!read_cuts(r, cuts, &n)) return refuse(r, "with computed bounds");
  for (uint32_t i = 0; i < n; i++) {
    int64_t axis = cuts[i].axis = axis_of(x, cuts[i].axis);
    if (axis < 0 || axis >= READ_RANK) return refuse(r, "along an axis that is out of range");
    if (cuts[i].step < 0) {
      if (!flip_cut(x, &cuts[i]))
        return refuse(r, "with a negative step, and bounds or a size that are computed");
      flips = text(r, "%s%s%" PRId64, flips, *flips ? ", " : "", axis);
    }
    subs[axis] = subscript(r, x, &cuts[i]);
    if (strcmp(subs[axis], ":") != 0 && axis > last) last = axis;
  }
  const char *of = whole_ref(r, x);
  if (*flips) of = text(r, "flip(%s, [%s])", of, flips);
  for (int64_t i = 0; i <= last; i++)
    all = text(r, "%s%s%s", all, i ? ", " : "", subs[i] ? subs[i] : ":");
  if (last >= 0) return give(r, text(r, "%s[%s]", of, all));
  if (*flips) return give(r, of);
  give_value(r, x);
}

/* ---- parts ---- */

/* Parts of these sizes: "chunk(3", "split([1, 2]" */
static const char *parts_text(Reader *r, const Item *at, uint32_t n)
{
  bool same = true;
  for (uint32_t i = 0; i < n; i++) same = same && at[i].n == at[0].n && at[i].n > 0 && !at[i].text;
  return same ? text(r, "chunk(%u", n) : text(r, "split([%s]", list_text(r, at, n));
}

void read_split(Reader *r)
{
  bool sequence = strcmp(r->node->op_type, "SplitToSequence") == 0;
  Value *x = in(r, 0), *sizes = in(r, 1);
  int64_t axis = attr_number(r, "axis", 0), size;
  Item *at;
  uint32_t n;
  bool listed = read_list(r, 1, "split", &at, &n);
  const char *how = listed ? parts_text(r, at, n) : "";
  if (!listed && (sizes || sequence)) return refuse(r, "without known sizes of the parts");
  if (!listed) {
    n = (uint32_t)attr_number(r, "num_outputs", (int64_t)r->node->n_output);
    if (n != r->node->n_output)
      return refuse(r, "with num_outputs other than its number of results");
    how = text(r, "chunk(%u", n);
  } else if (sequence && rank_of(sizes) == 0) { /* equal parts; the last may be smaller */
    if (!size_of(x, axis, &size) || at[0].n < 1 || at[0].text)
      return refuse(r, "of an axis whose size depends on the arguments");
    int64_t parts = size / at[0].n + (size % at[0].n != 0);
    n = parts > MOST_ITEMS ? 0 : (uint32_t)parts;
    how = text(r, "split(%" PRId64, at[0].n);
  }
  if (n == 0 || n > MOST_ITEMS) return refuse(r, "into no parts or more than 64");
  how = text(r, "%s.%s, dim=%" PRId64 ")", whole_ref(r, x), how, axis);
  if (sequence)
    give_sequence(r, how, n);
  else
    give_results(r, how, n);
}

void read_sequence_at(Reader *r)
{
  Value *x = in(r, 0);
  int64_t i = item_at(r, in(r, 1), 0);
  if (x->kind != VALUE_parts || i < -(int64_t)x->n || i >= x->n)
    return refuse(r, "at a place that is not in a sequence of SplitToSequence");
  give_value(r, r->values.at[x->part[i < 0 ? i + x->n : i]]);
}
