/* Makes, compares and prints compile-time values. fail(), the only function with which the pass
 * reports a mistake, is also here. */
#include "value.h"
#include "elaborate.h"
#include <math.h>

Datum d_bool(bool v)
{
  return (Datum){.kind = D_bool, .as.truth = v};
}

Datum d_int(int64_t v)
{
  return (Datum){.kind = D_int, .as.integer = v};
}

Datum d_float(double v)
{
  return (Datum){.kind = D_float, .as.number = v};
}

Datum d_str(const char *s)
{
  return (Datum){.kind = D_str, .n = (uint32_t)strlen(s), .as.text = s};
}

Datum d_word(const char *s)
{
  return (Datum){.kind = D_word, .as.text = s};
}

Datum d_dtype(DType d)
{
  return (Datum){.kind = D_dtype, .as.dtype = d};
}

/* Counts an item of a list. Depth and total saturate above their limits: they cannot overflow. */
static void count_item(Datum *list, Datum item)
{
  enum { DEEP = UINT8_MAX - 1, MANY = 2 * MAX_LIST };
  uint32_t total = item.kind == D_list ? item.total + 1 : 1;
  uint32_t depth = item.kind == D_list ? item.depth + 1u : 1;
  if (depth > list->depth) list->depth = (uint8_t)(depth < DEEP ? depth : DEEP);
  list->total = list->total + total < MANY ? list->total + total : MANY;
  list->holds |= item.kind == D_list ? item.holds : 1u << item.kind;
}

Datum d_list(const Datum *at, uint32_t n)
{
  Datum list = {.kind = D_list, .depth = 1, .n = n, .as.list = at};
  for (uint32_t i = 0; i < n; i++) count_item(&list, at[i]);
  return list;
}

/* Returns a list with copies of the elements, so `v` can change afterwards. */
Datum d_list_of(Lower *l, const DatumVec *v)
{
  Datum *copy = arena_array(l->arena, Datum, v->n);
  if (v->n) memcpy(copy, v->at, v->n * sizeof *copy);
  return d_list(copy, v->n);
}

/* Returns a tensor; for value 0, a failed append, a D_error, so its users stay silent. */
Datum d_tensor(Value v)
{
  return v.id ? (Datum){.kind = D_tensor, .as.tensor = v} : d_of(D_error);
}

/* Returns `x.shape`: the sizes as a list of ints. */
Datum d_sizes(Lower *l, const int64_t *dim, uint32_t rank)
{
  Datum *at = arena_array(l->arena, Datum, rank);
  for (uint32_t i = 0; i < rank; i++) at[i] = d_int(dim[i]);
  return d_list(at, rank);
}

bool d_is_number(Datum d)
{
  return d.kind == D_int || d.kind == D_float;
}

/* True for values that can become an operand node. A parameter gets a node when it is read; a
 * schedule is arithmetic on the step. */
bool d_is_tensor(Datum d)
{
  return d.kind == D_tensor || d.kind == D_param || d.kind == D_schedule;
}

/* True if the value, or a value in its lists, is of this kind. Members need this check: `layers =
 * [Linear(4, 4), Linear(4, 4)]` owns modules though it is a list. */
bool d_contains(Datum d, DatumKind kind)
{
  return d.kind == kind || (d.kind == D_list && d.holds >> kind & 1);
}

double d_number(Datum d)
{
  return d.kind == D_int ? (double)d.as.integer : d.as.number;
}

static bool lists_equal(Datum a, Datum b, uint32_t *left)
{
  if (a.n != b.n || a.total != b.total) return false;
  for (uint32_t i = 0; i < a.n; i++)
    if (!d_equal(a.as.list[i], b.as.list[i], left)) return false;
  return true;
}

static bool texts_equal(const char *a, const char *b, uint32_t *left)
{
  size_t n = strlen(a), cost = n / BYTES_PER_WORK;
  *left = cost < *left ? *left - (uint32_t)cost : 0;
  return *left && strcmp(a, b) == 0;
}

/* Compares like Python's ==: 1 == 1.0, lists are compared element by element, and modules and
 * tensors are equal only to themselves. */
static bool numbers_equal(Datum a, Datum b)
{
  if (a.kind == D_int && b.kind == D_int) return a.as.integer == b.as.integer;
  return d_number(a) == d_number(b);
}

bool d_equal(Datum a, Datum b, uint32_t *left)
{
  if (!*left || !--*left) return false;
  if (d_is_number(a) && d_is_number(b)) return numbers_equal(a, b);
  if (a.kind != b.kind) return false;
  switch ((DatumKind)a.kind) {
  case D_none:
    return true;
  case D_bool:
    return a.as.truth == b.as.truth;
  case D_str:
  case D_word:
    return texts_equal(a.as.text, b.as.text, left);
  case D_list:
    return lists_equal(a, b, left);
  case D_dtype:
    return a.as.dtype == b.as.dtype;
  case D_op:
    return a.as.op == b.as.op;
  case D_tensor:
    return a.as.tensor.id == b.as.tensor.id;
  case D_own:
  case D_class:
  case D_instance:
  case D_param:
    return a.as.object == b.as.object;
  case D_function:
    return a.as.function->def == b.as.function->def && a.as.function->self == b.as.function->self;
  default:
    return false;
  }
}

/* Returns a help that suggests a replacement where a tensor is used as a condition. */
static const char *truth_help(const Lower *l, const char *place)
{
  bool branch = strcmp(place, "`if`") == 0;
  if (branch && l->run && l->training)
    return "`where(condition, a, b)` chooses element by element, `every n { }` by the number of "
           "the "
           "step";
  if (branch || strcmp(place, "`... if ...`") == 0)
    return "`where(condition, a, b)` chooses element by element";
  return "tensors are combined with `&`, `|` and `~`";
}

const char *const type_of_help =
    "pass precision decides float types later; write `x.to(y.dtype)` without a test";

/* Returns the truth value, like Python's bool(): zero, "", [] and none are false. A tensor has
 * no truth value at compile time. `if x > 0` is the most common mistake, so a help says what to
 * write. */
int d_truth(Lower *l, Datum d, Span span, const char *place)
{
  switch ((DatumKind)d.kind) {
  case D_error:
    return -1;
  case D_none:
    return 0;
  case D_bool:
    return d.as.truth;
  case D_int:
    return d.as.integer != 0;
  case D_float:
    return d.as.number != 0;
  case D_str:
  case D_list:
    return d.n != 0;
  case D_tensor:
  case D_param:
  case D_schedule:
  case D_type_of:
    fail(l, E307, span, "%s needs a compile-time value, got %s", place, d_kind_text(l, d));
    diag_help(l->c, "%s", d.kind == D_type_of ? type_of_help : truth_help(l, place));
    return -1;
  default:
    return 1;
  }
}

static void text_of(Lower *l, Text *t, Datum d, size_t most);

/* Adds the text of a list. Strings are quoted only there, as in Python: str(["a"]) is ["a"]. */
static void list_text(Lower *l, Text *t, Datum d, size_t most)
{
  text_puts(t, d.tuple ? "(" : "[");
  for (uint32_t i = 0; i < d.n && t->n <= most; i++) {
    bool quoted = d.as.list[i].kind == D_str;
    if (i) text_puts(t, ", ");
    if (quoted) text_puts(t, "\"");
    text_of(l, t, d.as.list[i], most);
    if (quoted) text_puts(t, "\"");
  }
  text_puts(t, d.tuple ? ")" : "]");
}

/* Adds a float as Python prints it: the shortest digits that read back as the same number. */
static void float_text(Text *t, double v)
{
  const char *s = arena_number(t->arena, v, 1);
  text_puts(t, s);
  if (isfinite(v) && !strpbrk(s, ".e")) text_puts(t, ".0");
}

/* Returns "f32[32, 10]", the same text as for a tensor of that shape. */
static const char *param_text(Lower *l, const ParamSlot *p)
{
  return arena_printf(l->arena, "%s%s", ir_dtype_name(p->dtype),
                      ir_sizes_text(l->arena, p->dim, p->rank));
}

/* Returns the text of kinds that need no formatting; NULL: text_of() formats the value. */
static const char *name_of(Lower *l, Datum d)
{
  switch ((DatumKind)d.kind) {
  case D_error:
    return "?";
  case D_absent:
  case D_none:
    return "none";
  case D_bool:
    return d.as.truth ? "true" : "false";
  case D_dtype:
    return ir_dtype_name(d.as.dtype);
  case D_type_of:
    return "the type of a float tensor";
  case D_function:
    return d.as.function->def->name.text;
  case D_native:
    return d.as.native->name;
  case D_own:
    return d.as.own->decl->name.text;
  case D_op:
    return op_row(d.as.op)->name;
  case D_class:
    return d.as.class->name;
  case D_instance:
    return d.as.instance->class->name;
  case D_param:
    return param_text(l, d.as.param);
  case D_tensor:
    return ir_type_text(l->c, ir_node(l->g, d.as.tensor));
  case D_init:
    return "an initialiser";
  case D_schedule:
    return "a schedule";
  case D_optimizer:
    return d.as.optimizer->name;
  case D_dim:
    return "a dim";
  default:
    return NULL;
  }
}

/* Adds the text that str() returns and messages show. Stops shortly after `most` bytes. */
static void text_of(Lower *l, Text *t, Datum d, size_t most)
{
  const char *name = name_of(l, d);
  if (name)
    text_puts(t, name);
  else if (d.kind == D_int)
    text_printf(t, "%lld", (long long)d.as.integer);
  else if (d.kind == D_float)
    float_text(t, d.as.number);
  else if (d.kind == D_list)
    list_text(l, t, d, most);
  else if (d.kind == D_statistics)
    text_printf(t, "the statistics of metric %s", d.as.statistics->name);
  else
    text_add(t, d.as.text, strnlen(d.as.text, most + 1));
}

/* Truncates to at most `most` bytes, at the start of a UTF-8 character. */
static void cut(Text *t, size_t most)
{
  t->n = most;
  while (t->n && ((unsigned char)t->at[t->n] & 0xc0) == 0x80) t->n--;
  t->at[t->n] = 0;
}

const char *d_whole_text(Lower *l, Datum d)
{
  Text t = text_new(l->arena);
  text_of(l, &t, d, MAX_LIST);
  if (t.n > MAX_LIST + 1) cut(&t, MAX_LIST + 1);
  return t.at;
}

const char *d_text(Lower *l, Datum d)
{
  enum { SHOWN = 400 };
  Text t = text_new(l->arena);
  text_of(l, &t, d, SHOWN);
  if (t.n <= SHOWN) return t.at;
  cut(&t, SHOWN);
  text_puts(&t, "...");
  return t.at;
}

/* Returns the text, after its kind if the text alone could be misread: "int 3", `str "3"`, "list
 * [3]". The text of a tensor already begins with its type. */
static const char *kind_text(Lower *l, Datum d, const char *text)
{
  static const char *const kinds[][2] = {
      [D_bool] = {"bool ", ""},         [D_int] = {"int ", ""},
      [D_float] = {"float ", ""},       [D_str] = {"str \"", "\""},
      [D_list] = {"list ", ""},         [D_dtype] = {"dtype ", ""},
      [D_function] = {"function ", ""}, [D_native] = {"function ", ""},
      [D_op] = {"function ", ""},       [D_class] = {"module ", ", not yet built"},
      [D_instance] = {"a module ", ""}, [D_optimizer] = {"optimizer ", ""},
      [D_statistics] = {NULL, NULL}, /* the last kind: the size of the table */
  };
  const char *const *kind = kinds[d.kind];
  if (d.tuple && d.kind == D_list) return arena_printf(l->arena, "tuple %s", text);
  return kind[0] ? arena_printf(l->arena, "%s%s%s", kind[0], text, kind[1]) : text;
}

const char *d_kind_text(Lower *l, Datum d)
{
  return kind_text(l, d, d_text(l, d));
}

const char *d_answer_text(Lower *l, Datum d)
{
  return kind_text(l, d, d_whole_text(l, d));
}

/* Reports a mistake. The result can be returned at once: `return fail(...)`. */
Datum fail(Lower *l, ErrorCode code, Span span, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  diag_error(l->c, code, span, "%s", arena_vprintf(l->arena, fmt, ap));
  va_end(ap);
  if (diag_error_count(l->c) > MAX_ERRORS) l->stopped = true;
  return d_of(D_error);
}

/* Returns the program text at `span` on one line, for messages. Long text ends in "...". */
const char *source_text(Lower *l, Span span)
{
  enum { SHOWN = 200 };
  Place p = diag_place(l->c, span);
  if (!p.source || span.end <= span.start) return "";
  const char *start = p.source->text + (span.start - p.source->base);
  uint32_t n = span.end - span.start, shown = n < SHOWN ? n : SHOWN;
  while (shown < n && ((unsigned char)start[shown] & 0xc0) == 0x80) shown--;
  char *text = arena_printf(l->arena, "%.*s%s", (int)shown, start, shown < n ? "..." : "");
  char *to = text;
  for (const char *s = text; *s; s++) {
    bool ends = *s == '\n';
    *to++ = ends ? ' ' : *s;
    if (ends) s += strspn(s + 1, " ");
  }
  *to = 0;
  return text;
}
