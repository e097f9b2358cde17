/* Sizes that a model leaves open: the job has a constant for each. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "common/shown.h"
#include "read.h"

enum { BATCH = 32 };
/* Sizes of images and of other axes, until the compiler accepts the net with them. */
static const struct {
  int64_t image, other;
} guesses[] = {{224, 16}, {48, 128}, {640, 512}, {32, 256}, {224, 2048}};
enum { N_GUESSES = sizeof guesses / sizeof *guesses };
/* Differences of the second choice. Nets of images often need multiples of 32. */
enum { MORE_SAMPLES = 5, MORE = 64 };

bool stated_size(const Value *v, size_t axis, int64_t *n)
{
  const Onnx__TensorShapeProto__Dimension *d = v->stated->dim[axis];
  *n = d->dim_value;
  return d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && *n > 0 &&
         *n <= MOST_SIZE; /* 0 is written for unknown sizes */
}

/* NULL: the file gives the axis no name. */
static const char *stated_name(const Value *v, size_t axis)
{
  const Onnx__TensorShapeProto__Dimension *d = v->stated->dim[axis];
  bool named = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
  return named && d->dim_param && *d->dim_param ? d->dim_param : NULL;
}

static bool names_later_axis(const Reader *r, const char *name)
{
  for (uint32_t k = 0; k < r->arguments.n && name; k++)
    for (size_t axis = 1; axis < r->arguments.at[k]->stated->n_dim; axis++) {
      const char *other = stated_name(r->arguments.at[k], axis);
      if (other && strcmp(other, name) == 0) return true;
    }
  return false;
}

/* Whether an axis after the first one has the name of the first argument's first. */
static bool is_named_batch(const Reader *r, const Value *v, size_t axis)
{
  const Value *first = r->arguments.at[0];
  const char *name = first->stated->n_dim ? stated_name(first, 0) : NULL;
  return name && stated_name(v, axis) && strcmp(name, stated_name(v, axis)) == 0;
}

bool counts_samples(const Reader *r, const Value *v, size_t axis)
{
  int64_t n;
  if (stated_size(v, axis, &n)) return axis == 0 && is_batch(r, v);
  /* [2, ?, 128]: the state of a recurrent layer */
  bool state = axis == 1 && v->stated->n_dim == 3 && stated_size(v, 0, &n) && !stated_name(v, 1);
  return axis == 0 ? is_batch(r, v) : state || is_named_batch(r, v, axis);
}

bool is_batch(const Reader *r, const Value *v)
{
  const Value *first = r->arguments.at[0];
  int64_t m, n;
  if (!v->stated->n_dim || !first->stated->n_dim) return false;
  bool known = stated_size(first, 0, &m), same = stated_size(v, 0, &n) && known && m == n;
  if (known || stated_size(v, 0, &n)) return same;
  return v == first || is_named_batch(r, v, 0) || !names_later_axis(r, stated_name(v, 0));
}

const char *size_key(Reader *r, const Value *v, size_t axis)
{
  const char *name = stated_name(v, axis);
  return name ? name : text(r, "%s_%d", v->name, (int)axis);
}

static Size *open_size(Reader *r, const Value *v, size_t axis)
{
  const char *key = size_key(r, v, axis);
  for (uint32_t i = 0; i < r->sizes.n; i++)
    if (strcmp(r->sizes.at[i].key, key) == 0) return &r->sizes.at[i];
  bool image = v->stated->n_dim == 4 && axis > 1 && onnx_is_float(v->type);
  vec_push(r->arena, &r->sizes,
           (Size){.key = key, .at = {image ? guesses[r->guess].image : guesses[r->guess].other}});
  return &r->sizes.at[r->sizes.n - 1];
}

/* ---- sizes that the user gives ---- */

static ampc_status bad_size(const char *given, const char *why)
{
  return ampc_fail(AMPC_BAD_USAGE, "--size %s: %s", given, why);
}

static ampc_status give_size(Reader *r, const char *given, const Value *v, size_t axis, int64_t n)
{
  int64_t stated;
  if (stated_size(v, axis, &stated)) {
    const char *why = text(r, "the file fixes the size of axis %d to %" PRId64, (int)axis, stated);
    return stated == n ? AMPC_OK : bad_size(given, why);
  }
  Size *s = open_size(r, v, axis);
  if (s->given && s->at[0] != n)
    return bad_size(given, text(r, "%s is %" PRId64 " already", s->key, s->at[0]));
  s->at[0] = n;
  s->given = true;
  return AMPC_OK;
}

/* Reads "x=3,224,224". */
static ampc_status read_size(Reader *r, const char *given)
{
  const Value *v = NULL;
  size_t length = strcspn(given, "="), axis = 1;
  for (uint32_t i = 0; i < r->arguments.n; i++) {
    const char *name = r->arguments.at[i]->name;
    if (strlen(name) == length && strncmp(name, given, length) == 0) v = r->arguments.at[i];
  }
  if (!v)
    return bad_size(given, text(r, "the model has no input of this name; the first one is %s",
                                r->arguments.n ? arena_shown(r->arena, r->arguments.at[0]->name, "")
                                               : "missing"));
  size_t rank = v->stated->n_dim;
  ampc_status status = AMPC_OK;
  for (const char *at = given + length; *at && !status; axis++) {
    char *end;
    int64_t n = strtoll(at + 1, &end, 10);
    bool number = end != at + 1 && (*end == ',' || !*end) && n > 0 && n <= MOST_SIZE;
    if (!number) return bad_size(given, "expected sizes of 1 to 2^31, as x=3,224,224");
    if (axis < rank) status = give_size(r, given, v, axis, n);
    at = end;
  }
  if (!status && axis != rank)
    status = bad_size(given, text(r, "the input has %d axes after the first one, not %d",
                                  (int)rank - 1, (int)axis - 1));
  return status;
}

/* ---- shapes of arguments ---- */

static Shape argument_shape(Reader *r, const Value *v, Vary vary)
{
  Shape s = {.rank = (uint32_t)v->stated->n_dim};
  for (uint32_t i = 0; i < s.rank; i++) {
    int64_t n;
    if (stated_size(v, i, &n)) {
      s.dim[0][i] = s.dim[1][i] = n;
    } else if (counts_samples(r, v, i)) {
      s.dim[0][i] = BATCH;
      s.dim[1][i] = BATCH + (vary == VARY_none ? 0 : MORE_SAMPLES);
    } else {
      Size *open = open_size(r, v, i);
      int64_t place = open - r->sizes.at + 1; /* several sizes stay apart */
      s.dim[0][i] = s.dim[1][i] = open->at[0];
      if (vary == VARY_more) s.dim[1][i] += MORE * place;
      if (vary == VARY_less) s.dim[1][i] = s.dim[1][i] / 2 + place;
      open->at[1] = s.dim[1][i];
    }
  }
  return s;
}

ampc_status sizes_choose(Reader *r, const char *const *given, uint32_t n, Vary vary)
{
  int64_t batch;
  const Value *first = r->arguments.n ? r->arguments.at[0] : NULL;
  if (first && first->stated->n_dim && stated_size(first, 0, &batch)) r->batch = batch;
  for (uint32_t i = 0; i < n; i++) {
    ampc_status status = read_size(r, given[i]);
    if (status) return status;
  }
  for (uint32_t i = 0; i < r->arguments.n; i++) {
    Value *v = r->arguments.at[i];
    Shape *shape = arena_new(r->arena, Shape);
    *shape = argument_shape(r, v, vary);
    v->shape = shape;
  }
  return AMPC_OK;
}

bool sizes_guess_again(const Reader *r)
{
  bool open = false;
  for (uint32_t i = 0; i < r->sizes.n; i++) open = open || !r->sizes.at[i].given;
  return open && r->guess + 1 < N_GUESSES;
}

const char *sizes_tried(Reader *r)
{
  const char *all =
      r->batch ? "" : text(r, "a batch of %d instead of %d", BATCH + MORE_SAMPLES, BATCH);
  for (uint32_t i = 0; i < r->sizes.n; i++) {
    const Size *s = &r->sizes.at[i];
    if (s->at[1] != s->at[0])
      all = text(r, "%s%s%s=%" PRId64 " instead of %" PRId64, all, *all ? ", " : "",
                 arena_shown(r->arena, s->key, ""), s->at[1], s->at[0]);
  }
  return all;
}

int64_t job_batch(const Reader *r)
{
  return r->batch ? r->batch : BATCH;
}
