/* Prints tensors: all elements of a small one, the corners of a large one, and the range. */
#include "repl.h"
#include "runner/job/plot.h"
#include "common/terminal.h"
#include "runner/selftest/number.h"
#include "runtime/plan/types.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  ALL = 1000 /* elements that are printed without gaps */,
  EDGE = 3 /* at each side of a gap */
};

/* Reads the elements at `place`; if q is given, the elements of parameter q in place.space. */
static ampc_status read_as(ampc_runtime *rt, ampc_ref place, const ampc_param *q, HostTensor *out)
{
  const ampc_program *p = ampc_program_of(rt);
  ampc_dtype dtype = out->dtype;
  int64_t bytes = out->elements * ampc_element_size(p, dtype);
  void *raw = malloc((size_t)bytes + 1);
  size_t elements = (size_t)out->elements + 1;
  out->at = malloc(elements * (sizeof *out->at + sizeof *out->whole));
  ampc_status status = raw && out->at ? ampc_wait(rt) : ampc_fail(AMPC_RUN_FAILED, "out of memory");
  if (!status)
    status = q ? ampc_read_param(rt, q, place.space, raw) : ampc_read(rt, place, raw, bytes);
  if (!status) number_decode(dtype, p->real64, raw, out->elements, out->at);
  if (!status && dtype == AMPC_I64) {
    out->whole = (int64_t *)(out->at + elements);
    memcpy(out->whole, raw, (size_t)bytes);
  }
  if (status) {
    free(out->at);
    out->at = NULL;
  }
  free(raw);
  return status;
}

static HostTensor empty_tensor(ampc_dtype dtype, uint32_t rank, const int64_t *dim)
{
  HostTensor t = {.dtype = dtype, .rank = rank, .elements = 1};
  for (uint32_t i = 0; i < rank; i++) t.elements *= t.dim[i] = dim[i];
  return t;
}

ampc_status tensor_read(ampc_runtime *rt, ampc_ref place, ampc_dtype dtype, uint32_t rank,
                        const int64_t *dim, HostTensor *out)
{
  *out = empty_tensor(dtype, rank, dim);
  return read_as(rt, place, NULL, out);
}

ampc_status tensor_read_param(ampc_runtime *rt, const ampc_param *q, ampc_space space,
                              HostTensor *out)
{
  *out = empty_tensor(q->dtype, q->rank, q->dim);
  return read_as(rt, (ampc_ref){space, 0}, q, out);
}

/* ---- one number ---- */

typedef enum Form { FORM_integer, FORM_truth, FORM_plain, FORM_exponent } Form;

/* All elements of a tensor are printed with the same form and width, so that columns are
 * aligned. */
typedef struct Style {
  Form form;
  int width;
} Style;

static int write_number(const Style *s, const HostTensor *t, int64_t at, char text[40])
{
  double v = t->at[at];
  if (t->whole) return snprintf(text, 40, "%" PRId64, t->whole[at]);
  if (s->form == FORM_integer) return snprintf(text, 40, "%.0f", v);
  if (s->form == FORM_truth) return snprintf(text, 40, "%s", v != 0 ? "true" : "false");
  if (isnan(v)) return snprintf(text, 40, "nan");
  return snprintf(text, 40, s->form == FORM_plain ? "%.4f" : "%.4e", v);
}

/* ---- the walk: rows of rows, with gaps ---- */

typedef struct Printer {
  const HostTensor *t;
  Style style;
  bool gaps;
  bool measure; /* only widths are measured, nothing is printed */
  int columns;  /* columns of the terminal; 0: rows are not wrapped */
  double least, most;
} Printer;

static bool in_gap(const Printer *p, uint32_t axis, int64_t i)
{
  int64_t n = p->t->dim[axis];
  return p->gaps && n > 2 * EDGE && i >= EDGE && i < n - EDGE;
}

/* Notes a magnitude. The smallest and the largest decide between plain digits and exponents. */
static void see(Printer *p, double v)
{
  if (isfinite(v) && v != 0) {
    if (fabs(v) < p->least) p->least = fabs(v);
    if (fabs(v) > p->most) p->most = fabs(v);
  }
}

/* Measures the width of a number, or prints it. */
static void put_number(Printer *p, int64_t at)
{
  char text[40];
  int n = write_number(&p->style, p->t, at, text);
  if (!p->measure)
    printf("%*s", p->style.width, text);
  else if (n > p->style.width)
    p->style.width = n;
}

/* Prints the separator of two elements or two rows. A row that is wider than the terminal continues
 * below its first element. */
static void put_comma(const Printer *p, uint32_t axis, int64_t i)
{
  int width = p->style.width + 2, room = p->columns - (int)p->t->rank - 1;
  int64_t fit = p->columns && room > width ? room / width : INT64_MAX;
  bool row = axis + 1 == p->t->rank, breaks = !row || (!p->gaps && i % fit == 0);
  printf(breaks ? ",\n" : ", ");
  for (uint32_t k = 0; breaks && k <= axis; k++) putchar(' ');
}

/* Visits the printed elements in order. `first_look`: only collects their magnitudes. */
static void walk(Printer *p, uint32_t axis, int64_t at, bool first_look)
{
  const HostTensor *t = p->t;
  bool text = !p->measure && !first_look;
  if (axis == t->rank) {
    first_look ? see(p, t->at[at]) : put_number(p, at);
    return;
  }
  if (text) putchar('[');
  for (int64_t i = 0; i < t->dim[axis]; i++) {
    if (text && i > 0) put_comma(p, axis, i);
    if (in_gap(p, axis, i)) {
      if (text) printf("...");
      i = t->dim[axis] - EDGE - 1;
      continue;
    }
    walk(p, axis + 1, at * t->dim[axis] + i, first_look);
  }
  if (text) putchar(']');
}

/* Walks twice: over the magnitudes of the numbers, then over their widths. */
static void choose_style(Printer *p)
{
  p->style.form = p->t->dtype == AMPC_BOOL     ? FORM_truth
                  : ampc_is_float(p->t->dtype) ? FORM_plain
                                               : FORM_integer;
  p->least = INFINITY;
  walk(p, 0, 0, true);
  bool plain = p->most < 1e5 && (p->most == 0 || p->most >= 1e-3);
  if (p->style.form == FORM_plain && !plain) p->style.form = FORM_exponent;
  p->measure = true;
  walk(p, 0, 0, false);
  p->measure = false;
}

void tensor_print(const HostTensor *t)
{
  char type[AMPC_TYPE_ROOM];
  Printer p = {.t = t, .gaps = t->elements > ALL, .columns = terminal_columns(STDOUT_FILENO)};
  choose_style(&p);
  walk(&p, 0, 0, false);
  printf("%s%s\n", t->rank > 1 ? "\n" : "  ", ampc_type_text(type, t->dtype, t->rank, t->dim));
}

/* Prints integers exactly, and floats with five digits. */
static void print_ends(const HostTensor *t, double least, double most)
{
  int64_t low = INT64_MAX, high = INT64_MIN;
  for (int64_t i = 0; t->whole && i < t->elements; i++) {
    if (t->whole[i] < low) low = t->whole[i];
    if (t->whole[i] > high) high = t->whole[i];
  }
  if (t->whole)
    printf("range: %" PRId64 " to %" PRId64, low, high);
  else
    printf("range: %.*g to %.*g", ampc_is_float(t->dtype) ? 5 : 17, least,
           ampc_is_float(t->dtype) ? 5 : 17, most);
}

/* Prints range, mean and deviation of the finite elements; others are counted. A single element has
 * no range. The deviation needs a second loop, because the difference of large squares loses
 * digits. */
void tensor_print_range(const HostTensor *t)
{
  double least = INFINITY, most = -INFINITY, sum = 0, squares = 0;
  int64_t n = 0, zeros = 0;
  if (t->elements == 1) return;
  for (int64_t i = 0; i < t->elements; i++) {
    double v = t->at[i];
    zeros += v == 0;
    if (!isfinite(v)) continue;
    n++;
    sum += v;
    if (v < least) least = v;
    if (v > most) most = v;
  }
  double mean = n ? sum / (double)n : 0;
  for (int64_t i = 0; i < t->elements; i++)
    if (isfinite(t->at[i])) squares += (t->at[i] - mean) * (t->at[i] - mean);
  if (!n) {
    printf("range: no finite element of %" PRId64 "\n", t->elements);
    return;
  }
  print_ends(t, least, most);
  printf(", mean %.5g, deviation %.5g", mean, sqrt(squares / (double)n));
  if (zeros) printf(", %.1f %% zeros", 100.0 * (double)zeros / (double)t->elements);
  if (n < t->elements) printf(", %" PRId64 " not finite", t->elements - n);
  putchar('\n');
}

Look look_of_data(const char *text)
{
  const char *open = strrchr(text, '[');
  size_t digits = open ? strspn(open + 1, "0123456789") : 0;
  return digits && strcmp(open + 1 + digits, "]") == 0 ? LOOK_sample : LOOK_data;
}

bool tensor_look(Repl *r, const HostTensor *t, Look look)
{
  char type[AMPC_TYPE_ROOM];
  bool data = look == LOOK_sample || (look == LOOK_data && t->rank > 2);
  bool drawn = (data || look == LOOK_picture) && picture_draw(t, data);
  ampc_type_text(type, t->dtype, t->rank, t->dim);
  if (!drawn && look == LOOK_picture)
    return repl_error(r,
                      "%s is no image: [h, w], [c, h, w] or [h, w, c] with 1 or 3 channels, or "
                      "several with one more axis in front",
                      type);
  if (look == LOOK_bars)
    plot_bars(t->at, (size_t)t->elements, !ampc_is_float(t->dtype)), puts(type);
  else if (!drawn)
    tensor_print(t);
  if (look != LOOK_value) tensor_print_range(t);
  return true;
}
