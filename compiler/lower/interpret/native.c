/* Built-ins that are not ops and cannot be written in the layer library: compile-time functions,
 * and functions of the compiler that the library calls as _name. */
#include "interpret.h"
#include "compiler/lower/block/block.h"
#include "compiler/lower/model/model.h"
#include "compiler/lower/optimizer/optimizer.h"
#include "compiler/lower/optimizer/plateau.h"
#include "compiler/base/names.h"
#include "common/number.h"
#include <math.h>

#define ARG(i)  (args->at.at[i].value)
#define SPAN(i) (args->at.at[i].span)

#define NATIVE(run, value)                                                                         \
  static Datum run(Lower *l, Args *args)                                                           \
  {                                                                                                \
    (void)l, (void)args;                                                                           \
    return value;                                                                                  \
  }

/* ---- numbers: for functions that are also ops; on a tensor, call.c calls the op ---- */

/* Rejects keywords such as `dim=`, which only tensors accept. */
static bool no_keys(Lower *l, const Args *args)
{
  for (uint32_t i = 0; i < args->at.n; i++)
    if (args->at.at[i].key)
      return refuse(l, E205, args->at.at[i].key_span,
                    "%s of compile-time values has no argument `%s`", args->native->name,
                    args->at.at[i].key);
  return true;
}

static bool one_number(Lower *l, const Args *args, double *out)
{
  return no_keys(l, args) && want_float(l, ARG(0), SPAN(0), args->native->name, out);
}

/* Truncates towards zero, as Python does. A number that does not fit is an error. */
static Datum to_int(Lower *l, double v, Span span)
{
  if (!(fabs(v) < 9.2e18)) return fail(l, E209, span, "%g does not fit an int", v);
  return d_int((int64_t)v);
}

/* Runs round, floor, ceil, which return an int as in Python, for `Linear(4, round(1.5 * n))`. */
static Datum run_rounded(Lower *l, Args *args)
{
  double v;
  if (!one_number(l, args, &v)) return d_of(D_error);
  return ARG(0).kind == D_int ? ARG(0) : to_int(l, args->native->number(v), args->span);
}

/* Runs sqrt, log, exp. A result that is not finite is an error: the operand is known here. */
static Datum run_mapped(Lower *l, Args *args)
{
  double v;
  if (!one_number(l, args, &v)) return d_of(D_error);
  double r = args->native->number(v);
  if (!isfinite(r) && isfinite(v))
    return fail(l, E209, args->span, "%s(%s) is not a finite number", args->native->name,
                d_text(l, ARG(0)));
  return d_float(r);
}

static Datum run_abs(Lower *l, Args *args)
{
  double v;
  if (!one_number(l, args, &v)) return d_of(D_error);
  return v < 0 ? number_unary(l, OPER_neg, ARG(0), args->span) : ARG(0);
}

static Datum run_sum(Lower *l, Args *args)
{
  DatumVec items = {0};
  if (!no_keys(l, args) || !iterate(l, ARG(0), SPAN(0), &items)) return d_of(D_error);
  if (!items.n) return d_int(0);
  Datum total = items.at[0];
  for (uint32_t i = 1; i < items.n; i++)
    total = apply_binary(l, OPER_add, total, items.at[i], args->span);
  return total;
}

/* Calls a def of the layer library, for functions that are easier to write in the language. */
Datum library_call(Lower *l, const char *name, Args *args)
{
  return call(l, global_value(l, l->library, file_find(l->library, name)), args);
}

/* Runs einsum(equation, x, y) or einsum(equation, [x, y]). */
static Datum run_einsum(Lower *l, Args *args)
{
  Args two = {.span = args->span};
  DatumVec items = {0};
  if (!no_keys(l, args)) return d_of(D_error);
  if (ARG(0).kind != D_str)
    return fail(l, E209, SPAN(0),
                "the first argument of einsum is an equation such as \"ij,jk->ik\", got %s",
                d_kind_text(l, ARG(0)));
  bool listed = args->at.n == 2 && ARG(1).kind == D_list;
  if (listed && !iterate(l, ARG(1), SPAN(1), &items)) return d_of(D_error);
  for (uint32_t i = 1; i < args->at.n && !listed; i++) vec_push(l->arena, &items, ARG(i));
  for (uint32_t i = 0; i < items.n; i++)
    if (!d_is_tensor(items.at[i]))
      return fail(l, E209, args->span, "einsum takes tensors, got %s", d_kind_text(l, items.at[i]));
  args_push(l, &two, ARG(0), SPAN(0));
  args_push(l, &two, d_list_of(l, &items), args->span);
  return library_call(l, "_einsum", &two);
}

/* Runs min and max of numbers or of one list. If an argument is a tensor, calls the library's
 * function: elementwise for two tensors, or along an axis. */
static Datum run_extreme(Lower *l, Args *args)
{
  const char *name = args->native->name;
  DatumVec items = {0};
  for (uint32_t i = 0; i < args->at.n; i++)
    if (d_is_tensor(ARG(i)))
      return l->settings_of ? extreme_schedule(l, args)
                            : library_call(l, arena_printf(l->arena, "_tensor_%s", name), args);
  if (!no_keys(l, args)) return d_of(D_error);
  if (args->at.n == 1) {
    if (!iterate(l, ARG(0), SPAN(0), &items)) return d_of(D_error);
  } else {
    for (uint32_t i = 0; i < args->at.n; i++) vec_push(l->arena, &items, ARG(i));
  }
  if (!items.n) return fail(l, E209, args->span, "%s of an empty list", name);
  Operator better = (Operator)args->native->value;
  Datum best = items.at[0];
  for (uint32_t i = 1; i < items.n; i++) {
    Datum wins = number_binary(l, better, items.at[i], best, args->span);
    if (d_is(wins, D_error)) return wins;
    if (wins.as.truth) best = items.at[i];
  }
  return best;
}

/* ---- conversions ---- */

/* Converts as in Python: int(2.7) is 2. */
static Datum run_int(Lower *l, Args *args)
{
  double v;
  if (ARG(0).kind == D_bool) return d_int(ARG(0).as.truth);
  if (ARG(0).kind == D_int) return ARG(0);
  return want_float(l, ARG(0), SPAN(0), "int", &v) ? to_int(l, v, args->span) : d_of(D_error);
}

static Datum run_float(Lower *l, Args *args)
{
  double v;
  if (ARG(0).kind == D_bool) return d_float(ARG(0).as.truth);
  const char *text = ARG(0).kind == D_str ? ARG(0).as.text : "";
  if (strcmp(text + (*text == '-'), "inf") == 0 || ampc_read_real(text, &v)) {
    fail(l, E209, args->span, "float needs a number, got %s", d_kind_text(l, ARG(0)));
    diag_help(l->c, "write `%s`", text);
    return d_of(D_error);
  }
  return want_float(l, ARG(0), SPAN(0), "float", &v) ? d_float(v) : d_of(D_error);
}

static Datum run_str(Lower *l, Args *args)
{
  const char *text = d_whole_text(l, ARG(0));
  size_t n = strlen(text);
  if (n > MAX_LIST) return fail(l, E209, args->span, "a str has at most %d bytes", MAX_LIST);
  return count_work(l, (uint32_t)n / BYTES_PER_WORK, args->span) ? d_str(text) : d_of(D_error);
}

static Datum run_list(Lower *l, Args *args)
{
  DatumVec items = {0};
  return iterate(l, ARG(0), SPAN(0), &items) ? d_list_of(l, &items) : d_of(D_error);
}

/* ---- lists ---- */

static Datum run_len(Lower *l, Args *args)
{
  const int64_t *dim;
  uint32_t rank;
  DatumVec items = {0};
  if (ARG(0).kind == D_str || ARG(0).kind == D_list) return d_int(ARG(0).n);
  if (d_is_tensor(ARG(0)) && tensor_dims(l, ARG(0), &dim, &rank) && rank) return d_int(dim[0]);
  return iterate(l, ARG(0), SPAN(0), &items) ? d_int(items.n) : d_of(D_error);
}

/* Reads start, stop and step of a range; *sized: a dim is among their operands. */
static bool range_numbers(Lower *l, const Args *args, int64_t v[3], bool *sized)
{
  for (uint32_t i = 0; i < args->at.n; i++) {
    *sized |= ARG(i).sized;
    if (d_is_tensor(ARG(i)))
      return refuse(l, E308, args->span, "`range(%s)` has a run-time size and cannot be unrolled",
                    source_text(l, SPAN(i)));
    if (!want_int(l, ARG(i), SPAN(i), "range", &v[args->at.n == 1 ? 1 : i])) return false;
  }
  return v[2] || refuse(l, E209, args->span, "range with step 0");
}

static Datum run_range(Lower *l, Args *args)
{
  int64_t v[3] = {0, 0, 1};
  bool sized = false;
  DatumVec items = {0};
  if (!range_numbers(l, args, v, &sized)) return d_of(D_error);
  for (int64_t i = v[0]; v[2] > 0 ? i < v[1] : i > v[1];) {
    if (items.n >= MAX_LIST)
      return fail(l, E209, args->span, "this range has more than %d elements", MAX_LIST);
    if (items.n % ELEMENTS_PER_WORK == 0 && !count_work(l, 1, args->span)) return d_of(D_error);
    vec_push(l->arena, &items, d_int(i));
    if (__builtin_add_overflow(i, v[2], &i)) break;
  }
  Datum list = d_list_of(l, &items);
  list.sized = sized;
  return list;
}

static Datum tuple_of(Lower *l, const Datum *at, uint32_t n)
{
  Datum *copy = arena_array(l->arena, Datum, n);
  memcpy(copy, at, n * sizeof *at);
  Datum d = d_list(copy, n);
  d.tuple = true;
  return d;
}

static Datum run_enumerate(Lower *l, Args *args)
{
  DatumVec items = {0};
  if (!iterate(l, ARG(0), SPAN(0), &items)) return d_of(D_error);
  for (uint32_t i = 0; i < items.n && count_work(l, 1, args->span); i++)
    items.at[i] = tuple_of(l, (Datum[]){d_int(i), items.at[i]}, 2);
  return d_list_of(l, &items);
}

static Datum run_zip(Lower *l, Args *args)
{
  uint32_t n = args->at.n, shortest = UINT32_MAX;
  DatumVec *lists = arena_array(l->arena, DatumVec, n);
  for (uint32_t i = 0; i < n; i++) {
    if (!iterate(l, ARG(i), SPAN(i), &lists[i])) return d_of(D_error);
    if (lists[i].n < shortest) shortest = lists[i].n;
  }
  DatumVec out = {0};
  Datum *row = arena_array(l->arena, Datum, n);
  for (uint32_t k = 0; k < shortest && count_work(l, n / ELEMENTS_PER_WORK + 1, args->span); k++) {
    for (uint32_t i = 0; i < n; i++) row[i] = lists[i].at[k];
    vec_push(l->arena, &out, tuple_of(l, row, n));
  }
  return d_list_of(l, &out);
}

static Datum run_reversed(Lower *l, Args *args)
{
  DatumVec items = {0};
  if (!iterate(l, ARG(0), SPAN(0), &items)) return d_of(D_error);
  for (uint32_t i = 0; i < items.n / 2; i++) {
    Datum t = items.at[i];
    items.at[i] = items.at[items.n - 1 - i];
    items.at[items.n - 1 - i] = t;
  }
  return d_list_of(l, &items);
}

/* ---- the job ---- */

static Datum run_manual_seed(Lower *l, Args *args)
{
  int64_t seed;
  if (l->run) return fail(l, E210, args->span, "`manual_seed` stands at the top of the file");
  if (!want_int(l, ARG(0), SPAN(0), "manual_seed", &seed)) return d_of(D_error);
  l->g->seed = (uint64_t)seed;
  return d_of(D_none);
}

/* ---- for the layer library ---- */

/* Runs _error("E310", "text", "help"); the help may be "". */
static Datum run_error(Lower *l, Args *args)
{
  static const struct {
    const char *text;
    ErrorCode code;
  } codes[] = {{"E209", E209}, {"E310", E310}, {"E311", E311}};
  ErrorCode code = E210;
  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
    if (strcmp(ARG(0).as.text, codes[i].text) == 0) code = codes[i].code;
  fail(l, code, args->span, "%s", ARG(1).as.text);
  if (args->at.n > 2 && *ARG(2).as.text) diag_help(l->c, "%s", ARG(2).as.text);
  return d_of(D_error);
}

/* Runs _number(value, "`p` of dropout", "unit"): returns the value if it is a number of that
 * domain. Tensors and schedules are rejected, since their values are known only at run time. */
static Datum run_number(Lower *l, Args *args)
{
  double v;
  ampc_domain domain = ampc_domain_by(ARG(2).as.text);
  if (domain == AMPC_DOMAIN_COUNT)
    library_broken("_number()", "does not know the domain ", ARG(2).as.text);
  bool good = want_in(l, ARG(0), args->span, ARG(1).as.text, domain, &v);
  return good ? ARG(0) : d_of(D_error);
}

/* Runs _count(value, "`groups` of dirac_", least, most): returns the value if it is an int in that
 * range. */
static Datum run_count(Lower *l, Args *args)
{
  int64_t v;
  bool good = want_count(l, ARG(0), args->span, ARG(1).as.text,
                         (Counts){ARG(2).as.integer, ARG(3).as.integer}, &v);
  return good ? ARG(0) : d_of(D_error);
}

/* Returns the node that computed v; skips views and casts. */
static const Node *maker(Lower *l, Value v)
{
  const Node *n = ir_node(l->g, v);
  while (op_of(n)->tmpl == TMPL_alias || op_has(n, T_casts)) n = ir_in(l->c, n, 0);
  return n;
}

/* Runs _takes_logits(x, "cross_entropy"): warns if x is already a probability. The loss would then
 * apply softmax or sigmoid twice: the net still trains, but slowly. The result of log_softmax is
 * not reported, since softmax maps it to the same probabilities. */
static Datum run_takes_logits(Lower *l, Args *args)
{
  if (ARG(0).kind != D_tensor) return d_of(D_none); /* a parameter is not the result of an op */
  const Node *n = maker(l, ARG(0).as.tensor);
  if (!op_has(n, T_squashes)) return d_of(D_none);
  diag_warning(l->c, W312, args->span, "%s takes logits, but gets the result of %s", ARG(1).as.text,
               op_of(n)->name);
  diag_note(l->c, n->span, "it is made here");
  diag_help(l->c, "leave out this %s", op_of(n)->name);
  return d_of(D_none);
}

/* Runs _takes_probabilities(x, "binary_cross_entropy"): returns x if the region computes in f32. In
 * 16 bits a probability near 0 or 1 rounds to 0 or 1, and the gradient, up to 1 / p, may not fit.
 * As in PyTorch's autocast this is an error even if x itself is f32. */
static Datum run_takes_probabilities(Lower *l, Args *args)
{
  RegionKind kind = l->g->regions.at[l->at.region].kind;
  if (!ampc_is_narrow(region_low(kind))) return ARG(0);
  fail(l, E403, args->span, "%s is not allowed under %s: its gradient may overflow", ARG(1).as.text,
       region_kind_names[kind]);
  const Node *n = ARG(0).kind == D_tensor ? maker(l, ARG(0).as.tensor) : NULL;
  if (n && n->op == OP_sigmoid) diag_note(l->c, n->span, "the sigmoid is computed here");
  diag_help(l->c, "pass the input of the sigmoid to `%s_with_logits`, or use `autocast(f32) { }`",
            ARG(1).as.text);
  return d_of(D_error);
}

/* Runs _type(x): returns the text of a value in messages, for _error(). */
NATIVE(run_type, d_str(d_text(l, ARG(0))))

NATIVE(run_is_float, d_bool(dtype_is_float(tensor_dtype(l, ARG(0)))))
NATIVE(run_is_tensor, d_bool(d_is_tensor(ARG(0))))

/* Run _is_list and _is_str. */
NATIVE(run_is_kind, d_bool(ARG(0).kind == args->native->value))

/* Runs _same(key, value): true if both are one tensor; the library then computes values once. */
static Datum run_same(Lower *l, Args *args)
{
  (void)l;
  Datum a = ARG(0), b = ARG(1);
  if (a.kind != b.kind) return d_bool(false);
  return d_bool(a.kind == D_param ? a.as.param == b.as.param : a.as.tensor.id == b.as.tensor.id);
}

/* Runs checkpoint(block, x): returns block(x); backward computes its values again instead of
 * keeping them. */
static Datum run_checkpoint(Lower *l, Args *args)
{
  Args rest = {.span = args->span};
  if (args->at.at[0].key)
    return fail(l, E205, args->at.at[0].key_span,
                "pass the function to checkpoint as the first argument, without a name");
  if (l->at.loop) return fail(l, E210, args->span, "`checkpoint` cannot stand in `scan`");
  for (uint32_t i = 1; i < args->at.n; i++) vec_push(l->arena, &rest.at, args->at.at[i]);
  uint16_t before = l->at.region;
  l->at.region = region_checkpoint(l, args->span);
  Datum v = call(l, ARG(0), &rest);
  l->at.region = before;
  return v;
}

/* Runs _copy(layer): returns a layer with equal arguments and its own parameters. */
static Datum run_copy(Lower *l, Args *args)
{
  if (ARG(0).kind != D_instance)
    return fail(l, E209, args->span, "a layer is needed, got %s", d_kind_text(l, ARG(0)));
  return instance_copy(l, ARG(0).as.instance);
}

/* Runs _members(): the number of members that share out each batch. */
static Datum run_members(Lower *l, Args *args)
{
  (void)args;
  return d_int(l->g->members);
}

/* Runs _class_f32(): returns the precision in which an op of category f32 computes in this region.
 * The library passes it to autocast() around composites. */
static Datum run_class_f32(Lower *l, Args *args)
{
  (void)args;
  RegionKind kind = l->g->regions.at[l->at.region].kind;
  if (kind == REGION_off) return d_word("off");
  return kind == REGION_tf32 ? d_word("tf32") : d_dtype(AMPC_F32);
}

/* Runs _limits(f16): returns bits, epsilon, the smallest normal and the largest number. */
static Datum run_limits(Lower *l, Args *args)
{
  if (ARG(0).kind != D_dtype || !dtype_is_float(ARG(0).as.dtype))
    return fail(l, E209, args->span, "finfo takes " AMPC_NARROW_LIST "or f32, got %s",
                d_text(l, ARG(0)));
  const ampc_type *t = ampc_type_of(ARG(0).as.dtype);
  DatumVec limits = {0};
  vec_push(l->arena, &limits, d_int(8 * t->size));
  vec_push(l->arena, &limits, d_float(ldexp(1, -t->mantissa)));
  vec_push(l->arena, &limits, d_float(t->normal));
  vec_push(l->arena, &limits, d_float(t->greatest));
  return d_list_of(l, &limits);
}

NATIVE(run_in_scan, d_bool(l->at.loop != 0))

/* Runs _init("normal", a, b, fan_out, gain, low, high, of). */
static Datum run_init(Lower *l, Args *args)
{
  static const struct {
    const char *name;
    InitKind kind;
  } kinds[] = {{"constant", INIT_constant},
               {"uniform", INIT_uniform},
               {"normal", INIT_normal},
               {"xavier_uniform", INIT_xavier_uniform},
               {"xavier_normal", INIT_xavier_normal},
               {"kaiming_uniform", INIT_kaiming_uniform},
               {"kaiming_normal", INIT_kaiming_normal},
               {"trunc_normal", INIT_trunc_normal},
               {"eye", INIT_eye},
               {"dirac", INIT_dirac},
               {"orthogonal", INIT_orthogonal},
               {"padded", INIT_padded},
               {"norms", INIT_norms},
               {"left", INIT_left},
               {"right", INIT_right}};
  Init *init = arena_new(l->arena, Init);
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (strcmp(kinds[i].name, ARG(0).as.text) == 0) init->kind = kinds[i].kind;
  init->a = d_number(ARG(1));
  init->b = d_number(ARG(2));
  init->fan_out = ARG(3).as.truth;
  init->gain = ARG(4).as.text;
  init->low = args->at.n > 5 ? d_number(ARG(5)) : 0;
  init->high = args->at.n > 5 ? d_number(ARG(6)) : 0;
  init->of = args->at.n > 7 ? ARG(7).as.param : NULL;
  return (Datum){.kind = D_init, .as.init = init};
}

/* Runs _parameter(shape, init, dtype): Parameter() of the library, with defaults filled in; and
 * _buffer(shape, init, dtype), which is saved with the model but not trained. */
NATIVE(run_parameter, make_param(l, ARG(0), ARG(1), ARG(2), args->native->value, args->span))

static const Native natives[] = {
    {"round", 1, 1, .keys = true, .run = run_rounded, .number = rint},
    {"floor", 1, 1, .keys = true, .run = run_rounded, .number = floor},
    {"ceil", 1, 1, .keys = true, .run = run_rounded, .number = ceil},
    {"sqrt", 1, 1, .keys = true, .run = run_mapped, .number = sqrt},
    {"log", 1, 1, .keys = true, .run = run_mapped, .number = log},
    {"exp", 1, 1, .keys = true, .run = run_mapped, .number = exp},
    {"abs", 1, 1, .keys = true, .run = run_abs},
    {"sum", 1, 3, .keys = true, .run = run_sum},
    {"min", 1, ANY_NUMBER, .keys = true, .run = run_extreme, .value = OPER_lt},
    {"max", 1, ANY_NUMBER, .keys = true, .run = run_extreme, .value = OPER_gt},
    {"einsum", 2, ANY_NUMBER, .keys = true, .run = run_einsum},
    {"int", 1, 1, .run = run_int},
    {"float", 1, 1, .run = run_float},
    {"str", 1, 1, .run = run_str},
    {"list", 1, 1, .run = run_list},
    {"len", 1, 1, .run = run_len},
    {"range", 1, 3, .run = run_range},
    {"enumerate", 1, 1, .run = run_enumerate},
    {"zip", 1, ANY_NUMBER, .run = run_zip},
    {"reversed", 1, 1, .run = run_reversed},
    {"checkpoint", 1, ANY_NUMBER, .keys = true, .run = run_checkpoint},
    {"member", 1, 2, .run = native_member},
    {"manual_seed", 1, 1, .run = run_manual_seed},
    {"error", 2, 3, .internal = true, .run = run_error},
    {"number", 3, 3, .internal = true, .run = run_number},
    {"count", 4, 4, .internal = true, .run = run_count},
    {"takes_logits", 2, 2, .internal = true, .run = run_takes_logits},
    {"takes_probabilities", 2, 2, .internal = true, .run = run_takes_probabilities},
    {"type", 1, 1, .internal = true, .run = run_type},
    {"is_float", 1, 1, .internal = true, .run = run_is_float},
    {"is_tensor", 1, 1, .internal = true, .run = run_is_tensor},
    {"is_list", 1, 1, .internal = true, .run = run_is_kind, .value = D_list},
    {"is_str", 1, 1, .internal = true, .run = run_is_kind, .value = D_str},
    {"same", 2, 2, .internal = true, .run = run_same},
    {"member", 1, 2, .internal = true, .run = native_member},
    {"parametrize", 3, ANY_NUMBER, .internal = true, .run = native_parametrize},
    {"copy", 1, 1, .internal = true, .run = run_copy},
    {"members", 0, 0, .internal = true, .run = run_members},
    {"class_f32", 0, 0, .internal = true, .run = run_class_f32},
    {"limits", 1, 1, .internal = true, .run = run_limits},
    {"in_scan", 0, 0, .internal = true, .run = run_in_scan},
    {"init", 5, 8, .internal = true, .run = run_init},
    {"parameter", 3, 3, .internal = true, .run = run_parameter},
    {"buffer", 3, 3, .internal = true, .run = run_parameter, .value = true},
    {"running", 2, 5, .internal = true, .run = native_running},
    {"scaler", 11, 11, .internal = true, .run = native_scaler},
    {"load", 7, 7, .internal = true, .run = native_load},
    {0},
};

static const Native *const tables[] = {
    natives,          shape_natives,   source_natives, target_natives, optimizer_natives,
    schedule_natives, plateau_natives, jvp_natives,    grad_natives,   list_natives,
    copy_natives,     given_natives,   mode_natives};

/* Finds a native. `internal`: searches the functions that only the library may call, as _name. */
const Native *native_find(const char *name, bool internal)
{
  for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
    for (const Native *n = tables[t]; n->name; n++)
      if (n->internal == internal && same_name(n->name, name)) return n;
  return NULL;
}

void native_names(Lower *l, NameVec *out)
{
  for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
    for (const Native *n = tables[t]; n->name; n++)
      if (!n->internal) vec_push(l->arena, out, n->name);
}
