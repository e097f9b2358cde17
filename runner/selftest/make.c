/* Makes cases from the rows of an op's entry: reads the text of a row and fills the inputs. */
#include "run.h"
#include "ops/table.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

double case_attr(const Case *t, const char *name)
{
  const OpInfo *op = op_row(t->test->op);
  uint32_t k;
  if (!attr_find(op, name, &k)) return 0;
  return op->signature.attr[k].kind == ATTR_float ? t->attr[k].f : (double)t->attr[k].i;
}

int64_t case_int(const Case *t, const char *name)
{
  return (int64_t)case_attr(t, name);
}

int case_axis(const Case *t)
{
  int axis = (int)case_int(t, "dim");
  return axis < 0 ? axis + (int)t->in[0].rank : axis;
}

/* ---- filling ---- */

/* Values at which functions are often wrong: zeros, ties, infinities, the limits of f16, of exp and
 * of subnormal numbers, integers, values near 1. */
static const double specials[] = {
    0,          -0.0,      1,        -1,       0.5,    -0.5,   1.5,      2.5,       -2.5,
    INFINITY,   -INFINITY, NAN,      65504,    65519,  65520,  -65520,   0x1p-24,   0x1p-25,
    0x1.8p-25,  0x1p-14,   6e-8,     1e-40,    -1e-40, 1e30,   -1e30,    88,        89,
    -88,        -104,      11.0,     12.0,     -17,    3.4e38, -3.4e38,  0x1p-149,  10,
    -10,        20,        -20,      100,      -100,   3e-5,   0x1p-126, 0.7071067, 1e-3,
    -0.9999999, -1e-7,     0x1.8p-1, -0x1p-126};
enum { N_SPECIALS = sizeof specials / sizeof *specials };

static double between(uint64_t *random, double low, double high)
{
  return low + (high - low) * number_uniform(random);
}

/* Returns a magnitude from 2^-12 to 2^12 with either sign. */
static double any_size(uint64_t *random)
{
  double size = exp2(between(random, -12, 12));
  return number_random(random) & 1 ? size : -size;
}

/* Returns a small number of either sign, so that sums and products fit every type. */
static double fill_integer(DType d, char how, uint64_t *random)
{
  if (d == AMPC_BOOL || how == 'c') return (double)(number_random(random) & 1);
  double x = floor(between(random, d == AMPC_U8 ? 0 : -50, 51));
  return how == 'q' && x == 0 ? 3 : x;
}

static double fill_float(char how, uint64_t *random)
{
  switch (how) {
  case 'e':
    return 0.1;
  case 'g':
    return between(random, -9, 9);
  case 'd':
    return between(random, -1, 1);
  case 'm':
    return between(random, -8, 0);
  case 'o':
    return between(random, 0.98, 1.02);
  case 'p':
    return exp2(between(random, -6, 6));
  case 'q':
    return copysign(between(random, 0.5, 2.5), between(random, -1, 1));
  case 's':
    return between(random, -100, 100);
  case 't':
    return between(random, -0.999, 0.999);
  case 'w':
    return any_size(random);
  case 'y':
    return between(random, 0.001, 0.999);
  case 'v':
    return between(random, 0.5, 3);
  case 'z':
    return copysign(between(random, 0.1, 2.5), between(random, -1, 1));
  default:
    return between(random, -3, 3);
  }
}

/* Fills a tensor as the letter `how` says. w: every magnitude and the special values; e: 0.1
 * everywhere; n: -3..3; g: -9..9; s: -100..100; d: a gradient, -1..1; y: a probability; t: a tanh;
 * m: the log of a probability; o: near 1; p: positive; v: 0.5..3; q: a divisor; z: not near 0; c:
 * integers 0 or 1; k: a label, which the caller fills in. */
void tensor_fill(Tensor *t, char how, uint64_t *random)
{
  for (int64_t i = 0; i < t->n; i++) {
    double x =
        dtype_is_float(t->dtype) ? fill_float(how, random) : fill_integer(t->dtype, how, random);
    t->at[i] = number_round(t->dtype, x);
  }
  if (how != 'w' || !dtype_is_float(t->dtype) || t->n < 2 * N_SPECIALS) return;
  int64_t shift = (int64_t)(number_random(random) % (N_SPECIALS / 2));
  for (int64_t i = 0; i < N_SPECIALS; i++) {
    t->at[(i * 3 + shift) % t->n] = number_round(t->dtype, specials[i]);
  }
}

Tensor tensor_like(Arena *a, DType d, uint32_t rank, const int64_t *dim)
{
  Tensor t = {.present = true, .dtype = d, .rank = rank, .n = 1};
  for (uint32_t k = 0; k < rank; k++) t.n *= t.dim[k] = dim[k];
  t.at = arena_array(a, double, t.n);
  return t;
}

/* ---- reading rows: Note [rows] ---- */

bool row_word(const char **s, RowWord *out)
{
  size_t size = strcspn(*s, " "), key = strcspn(*s, "=");
  *out = (RowWord){*s, size, key < size ? key : 0};
  *s += size + strspn(*s + size, " ");
  return size > 0;
}

const char *row_words(const char *row)
{
  RowWord types;
  row_word(&row, &types);
  return row;
}

/* Reads dims such as "7x33", and returns their number. "s" is a scalar. */
static uint32_t read_dims(const char **s, int64_t *dim)
{
  uint32_t rank = 0;
  if (**s == 's') {
    (*s)++;
    return 0;
  }
  for (;;) {
    char *end;
    dim[rank++] = strtoll(*s, &end, 10);
    *s = end;
    if (**s != 'x') return rank;
    (*s)++;
  }
}

/* Reads and fills an input: "7x33", "l:7x33{1,2,...}", "7x33~p" (filled by letter p); "-":
 * absent. */
static Tensor read_input(Arena *a, const char *s, DType type, char how, uint64_t *random)
{
  if (*s == '-') return (Tensor){0};
  if (s[1] == ':') {
    type = number_type(*s);
    s += 2;
  }
  int64_t dim[MAX_RANK];
  uint32_t rank = read_dims(&s, dim);
  Tensor t = tensor_like(a, type, rank, dim);
  if (*s != '{') {
    tensor_fill(&t, *s == '~' ? s[1] : how, random);
    return t;
  }
  for (int64_t i = 0; i < t.n; i++) {
    char *end;
    t.at[i] = number_round(type, strtod(s + 1, &end));
    s = end;
    assert(*s == (i + 1 < t.n ? ',' : '}'));
  }
  return t;
}

/* Reads attribute `shape`, the first seven attributes of a signature: the rank and six sizes. */
static void read_shape(Case *t, const char *s)
{
  t->shape[0] = read_dims(&s, t->shape + 1);
  t->attr[0].i = t->shape[0];
  for (int64_t d = 0; d < t->shape[0]; d++) t->attr[d + 1].i = t->shape[d + 1];
}

/* Reads an attribute. op_tests_check has checked that the op has it. */
static void read_attr(Case *t, const char *key, size_t size, const char *value)
{
  const OpSignature *s = &op_row(t->test->op)->signature;
  if (size == 5 && memcmp(key, "shape", size) == 0) {
    read_shape(t, value);
    return;
  }
  if (size == 4 && memcmp(key, "tf32", size) == 0) {
    t->tf32 = true;
    return;
  }
  if (size == 6 && memcmp(key, "result", size) == 0) {
    t->result = *value;
    return;
  }
  for (uint32_t k = 0; k < s->n_attrs; k++) {
    if (strlen(s->attr[k].name) != size || memcmp(s->attr[k].name, key, size) != 0) continue;
    if (s->attr[k].kind == ATTR_float)
      t->attr[k].f = strtod(value, NULL);
    else if (s->attr[k].kind == ATTR_dtype)
      t->attr[k].i = number_type(*value);
    else
      t->attr[k].i = strtoll(value, NULL, 10);
    return;
  }
  assert(!"an attribute that the op does not have");
}

/* Sets the defaults of the signature, then the attributes of the row. */
static void read_attrs(Case *t)
{
  const OpSignature *signature = &op_row(t->test->op)->signature;
  RowWord w;
  for (uint32_t k = 0; k < signature->n_attrs; k++) t->attr[k] = signature->attr[k].value;
  for (const char *s = t->words; row_word(&s, &w);)
    if (w.key) read_attr(t, w.at, w.key, w.at + w.key + 1);
}

/* Fills an input with labels of all classes; with more than two, one is the ignored label. */
static void fill_labels(Case *t, uint32_t input, uint64_t *random)
{
  Tensor *x = &t->in[input];
  uint64_t classes = (uint64_t)t->in[0].dim[case_axis(t)];
  for (int64_t i = 0; i < x->n; i++) x->at[i] = (double)(number_random(random) % classes);
  if (x->n > 2) x->at[1] = case_attr(t, "ignore_index");
}

/* Makes the inputs. The entry's letter says how to fill an input if the row does not. */
static void read_inputs(Arena *a, Case *t, uint64_t *random)
{
  RowWord w;
  for (const char *s = t->words; row_word(&s, &w);) {
    if (w.key) continue;
    assert(t->n_in < TEST_MAX_IN);
    const char *fills = t->test->fills; /* a chain may have more inputs than its op */
    char how = t->n_in < strlen(fills) ? fills[t->n_in] : 'n';
    t->in[t->n_in] = read_input(a, w.at, t->type, how, random);
    if (how == 'k' && !memchr(w.at, '{', w.size)) fill_labels(t, t->n_in, random);
    t->n_in++;
  }
}

/* Returns a seed that depends on the op's name, so that a new op changes no others' numbers. */
static uint64_t first_random(OpKind op, char letter)
{
  uint64_t h = (uint64_t)letter;
  for (const char *s = op_row(op)->name; *s; s++) h = h * 31 + (uint64_t)*s;
  return h;
}

/* Makes the case of one op in one type from a row of its entry. */
static Case make_case(Arena *a, const OpTest *test, const char *row, char letter)
{
  uint64_t random = first_random(test->op, letter);
  Case t = {.test = test, .words = row_words(row), .type = number_type(letter)};
  read_attrs(&t);
  read_inputs(a, &t, &random);
  return t;
}

void case_row_make(Arena *a, const OpTest *test, const char *row, CaseList *out)
{
  for (const char *s = row; *s && *s != ' '; s++) {
    Case t = make_case(a, test, row, *s);
    vec_push(a, out, t);
  }
}

void cases_make(Arena *a, const TestRun *run, CaseList *out)
{
  for (uint32_t op = 0; op < OP_COUNT; op++) {
    const OpTest *test = op_test_find((OpKind)op);
    if (!test_wanted(run, (OpKind)op)) continue;
    for (const char *const *row = test->cases; row && *row; row++)
      case_row_make(a, test, *row, out);
  }
  for (uint32_t i = 0; i < out->n; i++) case_expect(a, &out->at[i]);
}
