/* Parses PTX text into instructions: names, types, operands, labels. ptx.def has the costs of
 * instructions; walk_value.c computes their results. */
#include <stdlib.h>
#include <string.h>
#include "compiler/base/names.h"
#include "ptx_parts.h"

typedef struct Named { /* a register, a label or a variable in shared memory */
  const char *name;
  uint64_t at;
} Named;
typedef VEC(Named) Names;

typedef struct Reader {
  Arena *arena;
  const char *s; /* the rest of the text */
  const char *why;
  Names variables; /* variables of the file and the kernel, in shared and constant memory */
  Names registers, labels, params;
  NameIndex register_index, label_index;
  uint64_t shared;        /* bytes of shared memory so far */
  uint64_t file_shared;   /* of them, bytes of variables outside of kernels */
  uint32_t n_file;        /* number of these variables */
  VEC(uint8_t) constants; /* constant memory from PTX_CONST_BASE on */
  VEC(PtxInstruction) code;
  VEC(const char *) targets; /* for each instruction: the label that it jumps to; or NULL */
} Reader;

static bool fail(Reader *r, const char *what, const char *text, size_t n)
{
  if (!r->why) r->why = arena_printf(r->arena, "%s: %.*s", what, (int)(n > 60 ? 60 : n), text);
  return false;
}

/* ---- words ---- */

static bool is_word(char ch)
{
  return ch && strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$%.:", ch);
}

/* Skips blanks and `//` comments. */
static void skip(Reader *r)
{
  for (;;) {
    r->s += strspn(r->s, " \t\r\n");
    if (r->s[0] != '/' || r->s[1] != '/') return;
    r->s += strcspn(r->s, "\n");
  }
}

/* Reads the next word; "" if the text continues with something else. The colon of a label is not
 * read. */
static const char *word(Reader *r)
{
  skip(r);
  size_t n = 0;
  while (is_word(r->s[n]) && !(r->s[n] == ':' && r->s[n + 1] != ':' && (!n || r->s[n - 1] != ':')))
    n++;
  const char *out = arena_strndup(r->arena, r->s, n);
  r->s += n;
  return out;
}

static bool take(Reader *r, char ch)
{
  skip(r);
  if (*r->s != ch) return false;
  r->s++;
  return true;
}

static bool expect(Reader *r, char ch)
{
  if (take(r, ch)) return true;
  return fail(r, arena_printf(r->arena, "expected `%c`", ch), r->s, strcspn(r->s, "\n"));
}

static const Named *find(const Names *names, const char *name)
{
  for (uint32_t i = 0; i < names->n; i++)
    if (strcmp(names->at[i].name, name) == 0) return &names->at[i];
  return NULL;
}

/* ---- operands ---- */

/* Returns the index of a register; NO_NAME: no register of that name is declared. */
static uint32_t register_of(Reader *r, const char *name)
{
  return name_find(r->arena, &r->register_index, r->registers.at, r->registers.n,
                   sizeof *r->registers.at, name);
}

static void declare(Reader *r, const char *name)
{
  if (register_of(r, name) == NO_NAME) vec_push(r->arena, &r->registers, (Named){name, 0});
}

/* Reads a declaration of registers: .reg .b32 %r<27>, low; */
static bool read_registers(Reader *r)
{
  const char *name = "";
  word(r);
  word(r);
  do {
    name = word(r);
    if (take(r, '<')) {
      unsigned long n = strtoul(word(r), NULL, 10);
      for (unsigned long i = 0; i < n; i++) declare(r, arena_printf(r->arena, "%s%lu", name, i));
      if (!expect(r, '>')) return false;
    } else if (*name) {
      declare(r, name);
    }
  } while (take(r, ','));
  return expect(r, ';');
}

/* Reads a number. 0f3F800000 and 0d3FF0000000000000 are bits of floats; others are integers. */
static bool number_of(const char *s, uint64_t *bits)
{
  bool minus = *s == '-';
  char *end;
  s += minus;
  if (*s < '0' || *s > '9') return false;
  bool raw = s[0] == '0' && s[1] && strchr("fFdD", s[1]);
  *bits = strtoull(raw ? s + 2 : s, &end, raw ? 16 : 0);
  if (minus) *bits = 0 - *bits;
  return *end == 0 || strcmp(end, "U") == 0;
}

static bool special_of(const char *name, PtxOperand *out)
{
  static const struct {
    const char *name;
    PtxSpecial special;
  } all[] = {{"%tid.x", SPECIAL_tid},       {"%ntid.x", SPECIAL_ntid}, {"%ctaid.x", SPECIAL_ctaid},
             {"%nctaid.x", SPECIAL_nctaid}, {"%laneid", SPECIAL_lane}, {"%warpid", SPECIAL_warp},
             {"%tid.y", SPECIAL_zero},      {"%tid.z", SPECIAL_zero},  {"%ctaid.y", SPECIAL_zero},
             {"%ctaid.z", SPECIAL_zero},    {"%ntid.y", SPECIAL_one},  {"%ntid.z", SPECIAL_one},
             {"%nctaid.y", SPECIAL_one},    {"%nctaid.z", SPECIAL_one}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (strcmp(all[i].name, name) == 0) {
      *out = (PtxOperand){OPERAND_special, .at = all[i].special};
      return true;
    }
  return false;
}

/* Reads an operand. A result `_` is discarded: it is declared as a register that is never read. */
static bool read_operand(Reader *r, PtxOperand *out)
{
  bool negated = take(r, '!'), minus = take(r, '-');
  const char *at = r->s, *name = word(r);
  const Named *variable = find(&r->variables, name);
  const Named *param = find(&r->params, name);
  *out = (PtxOperand){OPERAND_number, .negated = negated};
  if (variable) {
    out->bits = variable->at;
  } else if (param) {
    out->bits = param->at;
  } else if (number_of(name, &out->bits)) {
    if (minus) out->bits = 0 - out->bits;
  } else if (special_of(name, out)) {
  } else if ((out->at = register_of(r, name)) != NO_NAME) {
    out->kind = OPERAND_register;
  } else {
    return fail(r, "unknown operand", *name ? name : at, strcspn(at, "\n"));
  }
  return true;
}

/* Reads one operand, or several in braces. */
static bool read_group(Reader *r, PtxOperand at[PTX_VECTOR], uint8_t *n)
{
  *n = 0;
  if (!take(r, '{')) {
    *n = 1;
    return read_operand(r, at);
  }
  do {
    if (*n == PTX_VECTOR) return fail(r, "too long a vector", r->s, strcspn(r->s, "\n"));
    if (!read_operand(r, &at[(*n)++])) return false;
  } while (take(r, ','));
  return expect(r, '}');
}

/* Reads an address: [base], [base+8], [base+-8]. */
static bool read_address(Reader *r, PtxInstruction *i)
{
  if (!expect(r, '[') || !read_operand(r, &i->in[i->n_in++])) return false;
  if (take(r, '+')) {
    PtxOperand offset;
    if (!read_operand(r, &offset)) return false;
    i->offset = (int64_t)offset.bits;
  }
  return expect(r, ']');
}

/* ---- instructions ---- */

static bool read_inputs(Reader *r, PtxInstruction *i)
{
  while (take(r, ',')) {
    uint8_t n;
    PtxOperand group[PTX_VECTOR];
    if (!read_group(r, group, &n)) return false;
    if (i->n_in + n > PTX_VECTOR) return fail(r, "too many operands", i->name, strlen(i->name));
    memcpy(&i->in[i->n_in], group, n * sizeof *group);
    i->n_in = (uint8_t)(i->n_in + n);
  }
  return true;
}

static bool read_memory(Reader *r, PtxInstruction *i)
{
  uint8_t n;
  if (i->op == PTX_OP_ld || i->op == PTX_OP_ldmatrix)
    return read_group(r, i->to, &i->n_to) && expect(r, ',') && read_address(r, i);
  if (i->op == PTX_OP_st) {
    PtxOperand values[PTX_VECTOR];
    if (!read_address(r, i) || !expect(r, ',') || !read_group(r, values, &n)) return false;
    if (n >= PTX_VECTOR) return fail(r, "too long a vector", i->name, strlen(i->name));
    memcpy(&i->in[1], values, n * sizeof *values);
    i->n_in = (uint8_t)(1 + n);
    return true;
  }
  if (i->op == PTX_OP_atom && (!read_group(r, i->to, &i->n_to) || !expect(r, ','))) return false;
  return read_address(r, i) && read_inputs(r, i);
}

/* Reads the operands of an instruction other than a branch: first the results, if it has any. */
static bool read_operands(Reader *r, PtxInstruction *i)
{
  switch (ptx_form(i->op)) {
  case FORM_memory:
    return read_memory(r, i);
  case FORM_barrier:
    return read_group(r, i->in, &i->n_in) && read_inputs(r, i);
  case FORM_value:
  case FORM_vote:
  case FORM_shuffle:
  case FORM_matrix:
    if (i->op == PTX_OP_ldmatrix) return read_memory(r, i);
    if (!read_group(r, i->to, &i->n_to)) return false;
    if (take(r, '|') && !read_operand(r, &i->to[i->n_to++])) return false;
    return read_inputs(r, i);
  default:
    return true;
  }
}

static bool read_guard(Reader *r, PtxInstruction *i)
{
  return !take(r, '@') || read_operand(r, &i->guard);
}

/* Reads an instruction from its guard to the semicolon. */
static bool read_instruction(Reader *r)
{
  PtxInstruction i = {0};
  if (!read_guard(r, &i)) return false;
  const char *target = NULL;
  i.name = word(r);
  const char *why = ptx_instruction(&i);
  if (why) return fail(r, why, i.name, strlen(i.name));
  if (i.op == PTX_OP_bra)
    target = word(r);
  else if (!read_operands(r, &i))
    return false;
  if (!ptx_cost(&i)) return fail(r, "instruction without a cost", i.name, strlen(i.name));
  vec_push(r->arena, &r->code, i);
  vec_push(r->arena, &r->targets, target);
  return expect(r, ';');
}

/* ---- declarations ---- */

/* Reads initial values such as = {1, 2, 3}, of `bytes` each, into constant memory from `at` on.
 * Missing values are 0. An entry that is not a number, such as an address, ends the list. */
static void read_constants(Reader *r, uint64_t at, uint64_t bytes, uint64_t size)
{
  uint64_t value = 0;
  while (r->constants.n < at + size) vec_push(r->arena, &r->constants, 0);
  if (!take(r, '=') || !take(r, '{')) return;
  for (uint64_t end = at + size; at + bytes <= end; at += bytes) {
    bool minus = take(r, '-');
    if (!number_of(word(r), &value)) return;
    if (minus) value = 0 - value;
    memcpy(&r->constants.at[at], &value, bytes);
    if (!take(r, ',')) return;
  }
}

/* Reads a variable: .shared .align 4 .b8 name[128]; the elements may have any type. */
static bool read_variable(Reader *r)
{
  const char *line = r->s, *name = "";
  bool shared = false;
  uint64_t align = 1, size = 1, bytes;
  for (const char *w; *(w = word(r)); name = w) {
    if (strcmp(w, ".shared") == 0) shared = true;
    if (strcmp(w, ".align") == 0) align = strtoull(word(r), NULL, 10);
    PtxType t = w[0] == '.' ? ptx_type_named(w + 1) : PTX_none;
    if (t) size = ptx_type_bytes(t);
  }
  bytes = size;
  if (take(r, '[')) {
    const char *count = word(r);
    size *= *count ? strtoull(count, NULL, 10) : 1; /* []: sized at the launch */
    if (!expect(r, ']')) return false;
  }
  if (!align) align = 1;
  r->shared = (r->shared + align - 1) / align * align;
  if (!shared) read_constants(r, r->shared, bytes, size);
  r->s += strcspn(r->s, ";");
  if (!*name || !expect(r, ';')) return fail(r, "declaration", line, strcspn(line, "\n"));
  vec_push(r->arena, &r->variables, (Named){name, shared ? r->shared : PTX_CONST_BASE + r->shared});
  r->shared += size;
  return true;
}

static bool skip_to(Reader *r, char ch)
{
  const char *end = strchr(r->s, ch);
  if (!end) return fail(r, "cut off", r->s, strcspn(r->s, "\n"));
  r->s = end + 1;
  return true;
}

static bool begins(const char *s, const char *with)
{
  return strncmp(s, with, strlen(with)) == 0;
}

/* Reads a statement between a kernel's braces. Inline assembly may contain braces, too. */
static bool read_statement(Reader *r)
{
  skip(r);
  if (begins(r->s, ".shared")) return read_variable(r);
  if (begins(r->s, ".reg")) return read_registers(r);
  if (begins(r->s, ".local")) return fail(r, "local memory", r->s, strcspn(r->s, "\n"));
  if (*r->s == '.') return skip_to(r, begins(r->s, ".loc") ? '\n' : ';');
  const char *start = r->s, *name = word(r);
  if (*name && take(r, ':')) {
    vec_push(r->arena, &r->labels, (Named){name, r->code.n});
    return true;
  }
  r->s = start;
  return read_instruction(r);
}

/* Sets the targets of branches, and marks the first instructions of basic blocks. */
static bool resolve(Reader *r)
{
  for (uint32_t i = 0; i < r->code.n; i++) {
    PtxInstruction *p = &r->code.at[i];
    if (i + 1 < r->code.n && (p->pipe == PIPE_branch)) r->code.at[i + 1].leads = true;
    if (!r->targets.at[i]) continue;
    uint32_t at = name_find(r->arena, &r->label_index, r->labels.at, r->labels.n,
                            sizeof *r->labels.at, r->targets.at[i]);
    if (at == NO_NAME || r->labels.at[at].at >= r->code.n)
      return fail(r, "no such label", r->targets.at[i], strlen(r->targets.at[i]));
    p->target = (uint32_t)r->labels.at[at].at;
  }
  for (uint32_t i = 0; i < r->labels.n; i++)
    if (r->labels.at[i].at < r->code.n) r->code.at[r->labels.at[i].at].leads = true;
  return true;
}

static bool read_params(Reader *r)
{
  if (!expect(r, '(')) return false;
  while (!take(r, ')')) {
    const char *name = "", *w;
    uint32_t n = r->params.n; /* vec_push may increment n before it evaluates this */
    while (*(w = word(r))) name = w;
    vec_push(r->arena, &r->params, (Named){name, n});
    take(r, ',');
    if (!*name) return fail(r, "parameter", r->s, strcspn(r->s, "\n"));
  }
  return true;
}

/* Reads a kernel from its name on. Its variables lie after those of the file. */
static bool read_kernel(Reader *r, PtxKernel *out)
{
  int depth = 0;
  Reader fresh = {.arena = r->arena,
                  .s = r->s,
                  .variables = {r->variables.at, r->n_file, r->variables.cap},
                  .shared = r->file_shared,
                  .file_shared = r->file_shared,
                  .n_file = r->n_file,
                  .constants = {r->constants.at, r->constants.n, r->constants.cap}};
  *r = fresh;
  out->name = word(r);
  declare(r, "_");
  if (!read_params(r)) return false;
  while (*r->s && *r->s != '{') r->s++; /* .maxntid 256, 1, 1 */
  do {
    if (take(r, '{'))
      depth++;
    else if (take(r, '}'))
      depth--;
    else if (!*r->s || !read_statement(r))
      return fail(r, "kernel is cut off", out->name, strlen(out->name));
  } while (depth);
  if (!resolve(r)) return false;
  *out = (PtxKernel){.name = out->name,
                     .at = r->code.at,
                     .n = r->code.n,
                     .n_registers = r->registers.n,
                     .n_params = r->params.n,
                     .shared = (uint32_t)r->shared,
                     .constants = r->constants.at,
                     .n_constants = r->constants.n};
  while (out->counts < out->n && out->at[out->counts].op != PTX_OP_atom) out->counts++;
  return r->code.n > 0 || fail(r, "empty kernel", out->name, strlen(out->name));
}

static bool read_top(Reader *r, PtxText *out)
{
  PtxKernel k = {0};
  skip(r);
  if (begins(r->s, ".version") || begins(r->s, ".target") || begins(r->s, ".address_size"))
    return skip_to(r, '\n');
  const char *line = r->s, *w = word(r);
  while (strcmp(w, ".visible") == 0 || strcmp(w, ".weak") == 0 || strcmp(w, ".extern") == 0)
    line = r->s, w = word(r);
  if (strcmp(w, ".entry") == 0) {
    if (!read_kernel(r, &k)) return false;
    vec_push(r->arena, &out->kernels, k);
    return true;
  }
  r->s = line;
  if (strcmp(w, ".shared") == 0 || strcmp(w, ".const") == 0 || strcmp(w, ".global") == 0) {
    r->variables.n = r->n_file;
    r->shared = r->file_shared;
    bool good = read_variable(r);
    r->file_shared = r->shared;
    r->n_file = r->variables.n;
    return good;
  }
  return fail(r, "not understood", line + strspn(line, " \n"), strcspn(line, "\n"));
}

bool ptx_read(Arena *arena, const char *text, PtxText *out, const char **why)
{
  Reader r = {.arena = arena, .s = text};
  *out = (PtxText){0};
  for (skip(&r); *r.s; skip(&r))
    if (!read_top(&r, out)) {
      *why = r.why;
      return false;
    }
  return true;
}

const PtxKernel *ptx_find(const PtxText *p, const char *name)
{
  for (uint32_t i = 0; i < p->kernels.n; i++)
    if (strcmp(p->kernels.at[i].name, name) == 0) return &p->kernels.at[i];
  return NULL;
}
