/* Row programs (see the note in ops.def) as kernels.
 *
 * The axis that is reduced may stand anywhere: the shape is [outer, n, inner]. With inner = 1 a row
 * is contiguous and a block walks it; else neighbouring columns are taken together, and what the
 * program keeps once a row is an array over them. Channels (Note [channels] in ops.def) are columns
 * whose rows are cut into parts, a result each. */
#include "kernel_parts.h"
#include <assert.h>
#include <ctype.h>
#include <string.h>

typedef enum RowKind {
  ROW_sum,
  ROW_max,
  ROW_min,
  ROW_first,
  ROW_let,
  ROW_each,
  ROW_row,
  ROW_part
} RowKind;

typedef struct Statement {
  RowKind kind;
  const char *name; /* NULL for each, row */
  const char *best; /* ROW_first: name of the greatest or smallest value */
  const char *code;
  size_t size;
} Statement;

enum { MAX_STATEMENTS = 24 };

typedef struct Row {
  Kernel *k;
  Value v;
  const Node *n, *x; /* the op and its input 0 */
  Space space;
  uint32_t from, to; /* axes that make the row */
  int64_t outer, length, inner;
  int64_t parts; /* of a column of channels; 0: whole rows */
  bool columns;  /* inner > 1, or channels */
  bool integers; /* reductions of integers */
  Statement code[MAX_STATEMENTS];
  uint32_t n_code;
  const char *locals[MAX_STATEMENTS + 1];
  uint32_t n_locals;
} Row;

/* ---- reading the program
 * --------------------------------------------------------------------------- */

static const char *skip_space(const char *s, const char *end)
{
  while (s < end && isspace((unsigned char)*s)) s++;
  return s;
}

static bool take(const char **s, const char *end, const char *word)
{
  size_t n = strlen(word);
  if ((size_t)(end - *s) <= n || memcmp(*s, word, n) != 0 || !isspace((unsigned char)(*s)[n]))
    return false;
  *s = skip_space(*s + n, end);
  return true;
}

static void add_statement(Row *r, Statement s)
{
  assert(r->n_code < MAX_STATEMENTS);
  r->code[r->n_code++] = s;
}

/* argmax k = E is two reductions: the greatest E, then the first index that has it. */
static void add_arg(Row *r, RowKind kind, Statement s)
{
  Statement best = s;
  best.kind = kind;
  best.name = arena_printf(r->k->c->arena, "%s_best", s.name);
  add_statement(r, best);
  s.kind = ROW_first;
  s.best = best.name;
  add_statement(r, s);
}

static void read_statement(Row *r, const char *s, const char *end)
{
  static const char *const words[] = {"sum", "max",  "min", "argmax", "argmin",
                                      "let", "each", "row", "part"};
  static const RowKind kinds[] = {ROW_sum, ROW_max,  ROW_min, ROW_max, ROW_min,
                                  ROW_let, ROW_each, ROW_row, ROW_part};
  uint32_t w = 0;
  s = skip_space(s, end);
  while (w < sizeof words / sizeof *words && !take(&s, end, words[w])) w++;
  assert(w < sizeof words / sizeof *words);
  Statement out = {.kind = kinds[w]};
  if (kinds[w] < ROW_each) {
    const char *equals = memchr(s, '=', (size_t)(end - s)), *stop = equals;
    while (isspace((unsigned char)stop[-1])) stop--;
    out.name = arena_strndup(r->k->c->arena, s, (size_t)(stop - s));
    s = skip_space(equals + 1, end);
  }
  out.code = s;
  out.size = (size_t)(end - s);
  if (words[w][0] == 'a')
    add_arg(r, kinds[w], out);
  else
    add_statement(r, out);
}

static void read_program(Row *r)
{
  for (const char *s = op_info[r->n->op].code; *s;) {
    const char *end = s + strcspn(s, ";");
    read_statement(r, s, end);
    s = *end ? end + 1 : end;
  }
}

/* ---- expressions
 * ------------------------------------------------------------------------------------ */

static const char *element_index(const Row *r, const Access *a)
{
  const Kernel *k = r->k;
  Access whole = access_whole(&r->space);
  if (memcmp(&whole, a, sizeof whole) == 0) return "i";
  const char *row = r->columns ? "o" : "row";
  return index_sum(k, index_part(k, &r->space, a, 0, r->from, row),
                   index_part(k, &r->space, a, r->from, r->to, "c"),
                   index_part(k, &r->space, a, r->to, r->space.rank, "column"), 0);
}

static const char *row_index(const Row *r)
{
  if (!r->columns) return "row";
  return arena_printf(r->k->c->arena, "o * %lld + column", (long long)r->inner);
}

static uint32_t uses(const Statement *s, uint32_t n, char sign, uint32_t input)
{
  uint32_t found = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t each = s[i].kind == ROW_first ? 3 : 1; /* prints its expression three times */
    for (size_t at = 0; at + 1 < s[i].size; at++)
      if (s[i].code[at] == sign && (uint32_t)(s[i].code[at + 1] - '0') == input) found += each;
  }
  return found;
}

typedef struct Body { /* operands of the statements of one loop */
  Operand element[MAX_SIGNATURE];
  const char *row_value[MAX_SIGNATURE];
} Body;

static Operand with_variable(const Row *r, Value v, Operand o, uint32_t times)
{
  const Kernel *k = r->k;
  Value root = value_root(k->g, v);
  if (times < 2 || is_literal(ir_node(k->g, root))) return o;
  const char *name = arena_printf(k->c->arena, "t%u", root.id);
  EMIT(k->p, "const %s %s = %s;\n", o.real ? "real" : "long long", name, o.text);
  return (Operand){name, o.real};
}

static void load_elements(const Row *r, Body *b, const Statement *s, uint32_t n)
{
  for (uint32_t i = 0; i < r->n->n_in; i++) {
    uint32_t times = uses(s, n, '$', i);
    if (!times || !r->n->in[i].id) continue;
    Access a = access_broadcast(&r->space, value_shape(r->k->g, r->n->in[i]));
    Operand o = load_operand(r->k, r->n->in[i], element_index(r, &a));
    b->element[i] = with_variable(r, r->n->in[i], r->integers ? o : as_real(r->k, o), times);
  }
}

static void load_row_values(const Row *r, Body *b, const Statement *s, uint32_t n)
{
  for (uint32_t i = 0; i < r->n->n_in; i++) {
    uint32_t times = uses(s, n, '@', i);
    if (!times) continue;
    bool one = ir_elements(value_shape(r->k->g, r->n->in[i])) == 1;
    Operand o = load_operand(r->k, r->n->in[i], one ? "0" : row_index(r));
    b->row_value[i] = with_variable(r, r->n->in[i], o, times).text;
  }
}

static const char *expression(const Row *r, const Body *b, const Statement *s)
{
  CodeScope scope = {.k = r->k,
                     .n = r->n,
                     .element = b->element,
                     .row_value = b->row_value,
                     .index = "i",
                     .column = "c",
                     .length = r->length,
                     .length_text = r->parts ? "n" : NULL,
                     .locals = r->locals,
                     .local_suffix = r->columns ? "[j]" : "",
                     .integers = r->integers};
  return code_text(&scope, s->code, s->size);
}

/* ---- loops
 * ------------------------------------------------------------------------------------------- */

static void open(const Row *r, const char *line)
{
  EMIT(r->k->p, "%s\n", line);
  r->k->p->indent++;
}

static void close(const Row *r, const char *line)
{
  r->k->p->indent--;
  EMIT(r->k->p, "%s\n", line);
}

static void put_column(const Row *r)
{
  EMIT(r->k->p, "const %s column = first + j;\n", r->k->index_type);
}

static void put_index(const Row *r)
{
  const char *t = r->k->index_type;
  if (r->parts)
    EMIT(r->k->p, "const %s i = c * %lld + column;\n", t, (long long)r->inner);
  else if (r->columns)
    EMIT(r->k->p, "const %s i = (o * %lld + c) * %lld + column;\n", t, (long long)r->length,
         (long long)r->inner);
  else
    EMIT(r->k->p, "const %s i = row * %lld + c;\n", t, (long long)r->length);
}

static void open_elements(const Row *r, bool reduces)
{
  Arena *a = r->k->c->arena;
  long long n = r->length;
  const char *t = r->k->index_type;
  if (r->columns) {
    open(r, r->parts ? arena_printf(a, "for (%s c = begin; c < end; c++) {", t)
                     : arena_printf(a, "for (%s c = 0; c < %lld; c++) {", t, n));
    open(r, "EACH_COLUMN(j, width) {");
    put_column(r);
  } else if (reduces) {
    open(r, arena_printf(a, "ROW_REDUCE(%s, c, %lld, {", t, n));
  } else {
    open(r, arena_printf(a, "ROW_EACH(%s, c, %lld) {", t, n));
  }
  put_index(r);
}

static void close_elements(const Row *r, bool reduces)
{
  if (r->columns) close(r, "}");
  close(r, reduces && !r->columns ? "});" : "}");
}

/* ---- reductions
 * ---------------------------------------------------------------------------------------- */

static const char *part_type(const Row *r, const Statement *s)
{
  return s->kind == ROW_first || r->integers ? "long long" : "real";
}

static const char *part_start(const Row *r, const Statement *s)
{
  if (s->kind == ROW_first) return arena_printf(r->k->c->arena, "%lld", (long long)r->length);
  if (s->kind == ROW_sum) return r->integers ? "0" : "R(0.0)";
  if (s->kind == ROW_max) return r->integers ? "-0x7fffffffffffffffLL - 1" : "-ampc_inf()";
  return r->integers ? "0x7fffffffffffffffLL" : "ampc_inf()";
}

static const char *joined(const Row *r, const Statement *s) /* "row_sum", "row_min_int" */
{
  static const char *const names[] = {
      [ROW_sum] = "sum", [ROW_max] = "max", [ROW_min] = "min", [ROW_first] = "min"};
  bool ints = r->integers || s->kind == ROW_first;
  return arena_printf(r->k->c->arena, "%s%s", names[s->kind], ints ? "_int" : "");
}

static void put_part(const Row *r, const Body *b, const Statement *s)
{
  Arena *a = r->k->c->arena;
  const char *part = arena_printf(a, r->columns ? "%s[j]" : "ROW_PUT(%s_part)", s->name);
  const char *e = expression(r, b, s);
  if (s->kind == ROW_sum) {
    EMIT(r->k->p, "%s += %s;\n", part, e);
    return;
  }
  if (s->kind == ROW_first)
    e = arena_printf(a, "%s == %s%s || %s != %s ? c : %lld", e, s->best, r->columns ? "[j]" : "", e,
                     e, (long long)r->length);
  EMIT(r->k->p, "%s = ampc_%s(%s, %s);\n", part, joined(r, s), part, e);
}

static void put_start(const Row *r, const Statement *s)
{
  const char *t = part_type(r, s), *start = part_start(r, s);
  if (!r->columns) {
    EMIT(r->k->p, "ROW_PART(%s, %s_part, %s);\n", t, s->name, start);
    return;
  }
  EMIT(r->k->p, "%s %s[COLUMNS];\n", t, s->name);
  EMIT(r->k->p, "EACH_COLUMN(j, width) %s[j] = %s;\n", s->name, start);
}

static void put_reductions(Row *r, const Statement *s, uint32_t n)
{
  Body b = {0};
  for (uint32_t i = 0; i < n; i++) put_start(r, &s[i]);
  if (!r->columns) load_row_values(r, &b, s, n);
  open_elements(r, true);
  if (r->columns) load_row_values(r, &b, s, n);
  load_elements(r, &b, s, n);
  for (uint32_t i = 0; i < n; i++) put_part(r, &b, &s[i]);
  close_elements(r, true);
  for (uint32_t i = 0; i < n; i++) {
    if (!r->columns)
      EMIT(r->k->p, "const %s %s = row_%s(%s_part);\n", part_type(r, &s[i]), s[i].name,
           joined(r, &s[i]), s[i].name);
    r->locals[r->n_locals++] = s[i].name;
  }
}

static bool mentions(const Statement *s, const char *name)
{
  if (s->kind == ROW_first && strcmp(s->best, name) == 0) return true;
  size_t n = strlen(name);
  for (size_t at = 0; at + n <= s->size; at++) {
    const char *w = s->code + at;
    bool begins = at == 0 || !(isalnum((unsigned char)w[-1]) || w[-1] == '_' || w[-1] == '$');
    bool ends = at + n == s->size || !(isalnum((unsigned char)w[n]) || w[n] == '_');
    if (begins && ends && memcmp(w, name, n) == 0) return true;
  }
  return false;
}

/* Reductions that do not wait for each other share a loop. */
static uint32_t count_together(const Row *r, uint32_t at)
{
  uint32_t n = 0;
  for (; at + n < r->n_code && r->code[at + n].kind <= ROW_first; n++) {
    for (uint32_t i = 0; i < n; i++)
      if (mentions(&r->code[at + n], r->code[at + i].name)) return n;
  }
  return n;
}

/* ---- results
 * --------------------------------------------------------------------------------------------- */

static void put_let(Row *r, const Statement *s)
{
  Body b = {0};
  if (r->columns) {
    EMIT(r->k->p, "real %s[COLUMNS];\n", s->name);
    EMIT(r->k->p, "EACH_COLUMN(j, width) %s[j] = %s;\n", s->name, expression(r, &b, s));
  } else {
    EMIT(r->k->p, "const real %s = %s;\n", s->name, expression(r, &b, s));
  }
  r->locals[r->n_locals++] = s->name;
}

/* The result, then the elementwise nodes that joined. `shape` is that of the result; its element
 * lies at `index`, address() knows the others. */
static void put_results(const Row *r, const Node *shape, const char *index, const char *value,
                        const char *(*address)(const Row *r, const Access *a))
{
  Kernel *k = r->k;
  Chain ch;
  chain_begin(&ch, k, space_of(shape));
  put_value(k, r->v, value, index);
  const char **at = arena_array(k->c->arena, const char *, ch.loads.n + 1);
  for (uint32_t i = 0; i < ch.loads.n; i++) at[i] = address(r, &ch.loads.at[i].access);
  chain_put(&ch, at, index);
}

static void put_each(const Row *r, const Statement *s)
{
  Body b = {0};
  if (!r->columns) load_row_values(r, &b, s, 1);
  open_elements(r, false);
  if (r->columns) load_row_values(r, &b, s, 1);
  load_elements(r, &b, s, 1);
  put_results(r, r->x, "i", expression(r, &b, s), element_index);
  close_elements(r, false);
}

/* Of an operand in the shape of the op's result: one value a row. */
static const char *row_address(const Row *r, const Access *a)
{
  Space s = space_of(r->n);
  Access whole = access_whole(&s);
  if (memcmp(&whole, a, sizeof whole) == 0) return row_index(r);
  const char *row = r->columns ? arena_printf(r->k->c->arena, "(%s)", row_index(r)) : "row";
  return index_sum(r->k, index_part(r->k, &s, a, 0, s.rank, row), NULL, NULL, a->offset);
}

static void put_row(const Row *r, const Statement *s)
{
  Body b = {0};
  open(r, r->columns ? "EACH_COLUMN(j, width) {" : "ROW_ONCE {");
  if (r->columns) put_column(r);
  load_row_values(r, &b, s, 1);
  put_results(r, r->n, row_index(r), expression(r, &b, s), row_address);
  close(r, "}");
}

/* Value `value` of part o of each column. */
static void put_part_value(const Row *r, const Statement *s, uint32_t value)
{
  Body b = {0};
  Arena *a = r->k->c->arena;
  const char *part = value ? arena_printf(a, "(%lld + o)", (long long)(value * r->parts)) : "o";
  open(r, "EACH_COLUMN(j, width) {");
  put_column(r);
  const Kernel *k = r->k;
  EMIT(k->p, "%s[%s * %lld + column] = %s; // %%%u %s\n", k->arg_names[argument_of(k, r->v)], part,
       (long long)r->inner, stored(k, r->n->dtype, expression(r, &b, s)), r->v.id,
       op_info[r->n->op].name);
  close(r, "}");
}

static void put_program(Row *r)
{
  uint32_t values = 0;
  for (uint32_t i = 0; i < r->n_code;) {
    const Statement *s = &r->code[i];
    uint32_t together = count_together(r, i);
    if (together) put_reductions(r, s, together);
    if (s->kind == ROW_let) put_let(r, s);
    if (s->kind == ROW_each) put_each(r, s);
    if (s->kind == ROW_row) put_row(r, s);
    if (s->kind == ROW_part) put_part_value(r, s, values++);
    i += together ? together : 1;
  }
}

/* ---- the kernel
 * -------------------------------------------------------------------------------------------- */

static void measure(Row *r)
{
  RowShape shape = row_shape(r->k->g, r->v);
  r->space = space_of(r->x);
  r->from = shape.from;
  r->to = shape.to;
  r->outer = shape.outer;
  r->length = shape.length;
  r->inner = shape.inner;
  r->parts = shape.parts;
  r->columns = r->inner > 1 || r->parts;
}

/* The rows of part o: as even as can be, and never none. */
static void put_bounds(const Row *r)
{
  const char *t = r->k->index_type;
  long long n = r->length, parts = r->parts;
  EMIT(r->k->p, "const %s begin = (%s)(%lldll * o / %lld);\n", t, t, n, parts);
  EMIT(r->k->p, "const %s end = (%s)(%lldll * (o + 1) / %lld);\n", t, t, n, parts);
  if (strstr(op_info[r->n->op].code, "$n")) EMIT(r->k->p, "const real n = (real)(end - begin);\n");
}

void emit_row(Kernel *k)
{
  Row r = {.k = k, .v = k->group->anchor};
  r.n = ir_node(k->g, r.v);
  r.x = ir_node(k->g, r.n->in[0]);
  bool indices = r.n->op == OP_argmax || r.n->op == OP_argmin;
  r.integers = !dtype_is_float(r.x->dtype) && (indices || !dtype_is_float(r.n->dtype));
  measure(&r);
  read_program(&r);
  if (r.columns)
    EMIT(k->p, "COLUMN_LOOP(%s, o, first, width, %lld, %lld) {\n", k->index_type,
         (long long)(r.parts ? r.parts : r.outer), (long long)r.inner);
  else
    EMIT(k->p, "ROW_LOOP(%s, row, %lld) {\n", k->index_type, (long long)r.outer);
  k->p->indent++;
  if (r.parts) put_bounds(&r);
  put_program(&r);
  k->p->indent--;
  EMIT(k->p, "}\n");
}
