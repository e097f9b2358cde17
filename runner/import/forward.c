/* Writes the steps of a call as the `forward` of its module. A value that is used once is written
 * where it is used, as far as a line allows. */
#include <stdlib.h>
#include <string.h>
#include "modules.h"

enum {
  LONGEST_INLINE = 84,    /* an expression that is written where it is used */
  SHORT = 12,             /* an operand below this gets no line of its own */
  MOST_LETTERS_LIVE = 100 /* with more live values, names are v1, v2, .. */
};

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.[]"

typedef struct Forward {
  Modules *m;
  const Call *c;
  Text out;
  VEC(uint32_t) live; /* values whose text is still needed */
  uint32_t made;      /* how many names v1, v2, .. were made */
} Forward;

/* ---- precedence ---- */

enum { LOOSEST = 0, COMPARISON = 1, PRODUCT = 5, SIGN = 6, POWER = 7, CALL = 8 };

/* The precedence of the operator " * " at `at`, which is its first space. -1: there is none. */
static int operator_at(const char *at)
{
  static const struct {
    const char *sign;
    int level;
  } all[] = {{" if ", 0},      {" < ", 1},        {" > ", 1},       {" <= ", 1},
             {" >= ", 1},      {" == ", 1},       {" != ", 1},      {" | ", 2},
             {" & ", 3},       {" + ", 4},        {" - ", 4},       {" * ", PRODUCT},
             {" / ", PRODUCT}, {" // ", PRODUCT}, {" % ", PRODUCT}, {" @ ", PRODUCT},
             {" ** ", POWER}};
  for (size_t i = 0; *at == ' ' && i < sizeof all / sizeof *all; i++)
    if (strncmp(at, all[i].sign, strlen(all[i].sign)) == 0) return all[i].level;
  return -1;
}

/* The precedence of the loosest operator outside of brackets. */
static int level_of(const char *text)
{
  int level = *text == '-' || *text == '~' ? SIGN : CALL, depth = 0;
  for (; *text; text++) {
    depth += (*text == '(' || *text == '[') - (*text == ')' || *text == ']');
    int here = depth == 0 ? operator_at(text) : -1;
    if (here >= 0 && here < level) level = here;
  }
  return level;
}

/* The precedence that an operand needs, between what is written and what follows. */
static int needed_level(const Text *before, const char *after)
{
  int level = LOOSEST;
  size_t n = before->n;
  for (size_t k = 3; k <= 4 && n >= k; k++) { /* " * " or " ** " */
    int left = operator_at(before->at + n - k);
    if (left >= level &&
        (size_t)(strchr(before->at + n - k + 1, ' ') - (before->at + n - k) + 1) == k)
      level = left + 1;
  }
  if (n && (before->at[n - 1] == '-' || before->at[n - 1] == '~')) level = SIGN;
  if (*after == '.' || *after == '[') return CALL;
  int right = operator_at(after);
  if (right == POWER || right == COMPARISON) right++;
  return right > level ? right : level;
}

/* ---- names ---- */

static bool mentions(const char *text, const char *name)
{
  size_t n = strlen(name);
  for (const char *at = text; (at = strstr(at, name)); at++) {
    bool begins = at == text || !(in_name(at[-1]) || at[-1] == '.');
    if (begins && !in_name(at[n])) return true;
  }
  return false;
}

static void forget_dead(Forward *f)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < f->live.n; i++)
    if (f->m->left[f->live.at[i]]) f->live.at[n++] = f->live.at[i];
  f->live.n = n;
}

static bool is_child(const Forward *f, const char *name)
{
  const Module *around = f->c->module;
  for (uint32_t i = 0; i < around->children.n; i++)
    if (strcmp(around->children.at[i]->name, name) == 0) return true;
  return false;
}

static bool is_free(const Forward *f, const char *name)
{
  if (is_child(f, name)) return false;
  for (uint32_t i = 0; i < f->live.n; i++)
    if (mentions(f->m->shown[f->live.at[i]], name)) return false;
  return true;
}

/* A name for a new value: that of an operand that nothing else needs, else a free letter. */
static const char *new_name(Forward *f, const uint32_t *operand, uint32_t n)
{
  forget_dead(f);
  if (f->live.n < MOST_LETTERS_LIVE) {
    for (uint32_t i = 0; i < n; i++) {
      const char *name = f->m->shown[operand[i]];
      if (name && name[0] && !name[1] && is_free(f, name)) return name;
    }
    for (const char *c = "xyzuvwabcdefghijklmnopqrst"; *c; c++)
      if (is_free(f, arena_strndup(f->m->arena, c, 1))) return arena_strndup(f->m->arena, c, 1);
  }
  const char *made;
  do made = text(f->m->r, "v%u", ++f->made);
  while (is_child(f, made));
  return made;
}

/* ---- expressions ---- */

static void add_operand(const Forward *f, Text *out, const char *after, uint32_t value)
{
  const char *shown = f->m->shown[value];
  text_printf(out, level_of(shown) < needed_level(out, after) ? "(%s)" : "%s", shown);
}

static const char *step_text(const Forward *f, const Step *s)
{
  Text out = text_new(f->m->arena);
  const Reader *r = f->m->r;
  for (const char *at = s->text; *at;) {
    char mark = *at;
    if (mark != '$' && mark != '#') {
      text_add(&out, at++, 1);
      continue;
    }
    uint32_t id = (uint32_t)strtoul(at + 1, (char **)(uintptr_t)&at, 10);
    if (mark == '$')
      add_operand(f, &out, at, id);
    else
      text_puts(&out, module_name(f->m, module_at(f->m, r->members.at[id].path), f->c->module));
  }
  return out.at;
}

static const char *call_text(const Forward *f, const Call *c)
{
  Text out = text_new(f->m->arena);
  text_printf(&out, "%s(", module_name(f->m, c->module, f->c->module));
  for (uint32_t i = 0; i < c->in.n; i++) {
    if (i) text_puts(&out, ", ");
    add_operand(f, &out, ")", c->in.at[i]);
  }
  text_puts(&out, ")");
  return out.at;
}

/* ---- statements ---- */

static void show(Forward *f, uint32_t value, const char *as)
{
  f->m->shown[value] = as;
  vec_push(f->m->arena, &f->live, value);
}

static void add_line(Forward *f, const char *target, const char *expression)
{
  text_printf(&f->out, "    %s = %s\n", target, expression);
}

/* Gives the longest of the operands a line of its own. Returns false if all are names. */
static bool shorten(Forward *f, const uint32_t *operand, uint32_t n)
{
  uint32_t longest = 0;
  for (uint32_t i = 1; i < n; i++)
    if (strlen(f->m->shown[operand[i]]) > strlen(f->m->shown[operand[longest]])) longest = i;
  const char *expression = n ? f->m->shown[operand[longest]] : "";
  if (strlen(expression) < SHORT) return false;
  f->m->shown[operand[longest]] = "";
  const char *name = new_name(f, NULL, 0);
  add_line(f, name, expression);
  f->m->shown[operand[longest]] = name;
  return true;
}

/* Shows the results of an entry: inline, or as names of a new line. */
static void add_results(Forward *f, const char *expression, const uint32_t *operand,
                        uint32_t n_operands, const uint32_t *out, uint32_t n)
{
  const char *targets = "";
  bool needed = false;
  for (uint32_t i = 0; i < n; i++) needed = needed || f->m->left[out[i]];
  if (!needed) return;
  bool returned =
      n == 1 && f->c->out.n == 1 &&
      f->c->out.at[0] == out[0]; /* the only result; if left is 1, only `return` needs it */
  bool plain =
      n == 1 && expression[strspn(expression, NAME_LETTERS)] == 0; /* the name of a tensor */
  if (plain ||
      (n == 1 && f->m->left[out[0]] == 1 && (returned || strlen(expression) <= LONGEST_INLINE))) {
    show(f, out[0], expression);
    return;
  }
  for (uint32_t i = 0; i < n; i++) {
    const char *name = new_name(f, operand, n_operands);
    targets = text(f->m->r, "%s%s%s", targets, i ? ", " : "", name);
    f->m->left[out[i]] +=
        f->m->left[out[i]] == 0; /* a target that nobody reads keeps its name here */
    show(f, out[i], name);
  }
  add_line(f, targets, expression);
}

/* ---- loops: h[0](x, mask), h[1](x, mask), .. ---- */

/* Returns how many entries from `first` on call all modules of a list, one after the other, so that
 * only argument *moving changes: it is the result of the call before. 0: there is no such loop. */
static uint32_t loop_length(const Forward *f, uint32_t first, uint32_t *moving)
{
  const Call *a = f->c->entries.at[first].call;
  const Module *list = a->module->parent;
  uint32_t n = list->children.n;
  if (list->kind != MODULE_list || n < 2 || first + n > f->c->entries.n ||
      strcmp(a->module->name, "0") != 0)
    return 0;
  for (uint32_t i = 0; i + 1 < n; i++) {
    const Call *now = f->c->entries.at[first + i].call,
               *next = f->c->entries.at[first + i + 1].call;
    if (!next || next->module != list->children.at[i + 1] || now->out.n != 1 || next->out.n != 1 ||
        next->in.n != a->in.n)
      return 0;
    if (f->m->left[now->out.at[0]] != 1) return 0;
    for (uint32_t k = 0; k < a->in.n; k++) {
      bool moves = next->in.at[k] == now->out.at[0];
      if (moves && i == 0) *moving = k;
      if (moves ? k != *moving : next->in.at[k] != now->in.at[k]) return 0;
    }
    if (next->in.at[*moving] != now->out.at[0]) return 0;
  }
  return n;
}

static void add_loop(Forward *f, uint32_t first, uint32_t n, uint32_t moving)
{
  Modules *m = f->m;
  const Call *a = f->c->entries.at[first].call, *last = f->c->entries.at[first + n - 1].call;
  uint32_t from = a->in.at[moving];
  const char *list = module_name(m, a->module->parent, f->c->module), *arguments = "";
  m->left[from]--; /* the other arguments are needed in every turn */
  const char *start = m->shown[from], *name = new_name(f, &from, 1);
  if (strcmp(start, name) != 0) add_line(f, name, start);
  for (uint32_t i = 0; i < a->in.n; i++)
    arguments =
        text(m->r, "%s%s%s", arguments, i ? ", " : "", i == moving ? name : m->shown[a->in.at[i]]);
  const char *block = is_free(f, "block")   ? "block"
                      : is_free(f, "layer") ? "layer"
                                            : new_name(f, NULL, 0);
  text_printf(&f->out, "    for %s in %s { %s = %s(%s) }\n", block, list, name, block, arguments);
  for (uint32_t i = 0; i < a->in.n; i++) m->left[a->in.at[i]] -= i == moving ? 0 : n;
  show(f, last->out.at[0], name);
}

/* ---- all ---- */

static void count_uses(Forward *f)
{
  Modules *m = f->m;
  for (uint32_t i = 0; i < f->c->entries.n; i++) {
    const Entry *e = &f->c->entries.at[i];
    const Step *s = e->step ? &m->r->steps.at[e->step - 1] : NULL;
    const uint32_t *use = s ? s->use : e->call->in.at, n = s ? s->n_use : e->call->in.n;
    for (uint32_t k = 0; k < n; k++) m->left[use[k]]++;
  }
  for (uint32_t i = 0; i < f->c->out.n; i++) m->left[f->c->out.at[i]]++;
}

/* Adds all lines of a step but the last one, which is returned. */
static const char *add_statements(Forward *f, const char *lines)
{
  int depth = 0;
  for (const char *end; (end = strchr(lines, '\n')); lines = end + 1) {
    depth -= *lines == '}';
    text_printf(&f->out, "%*s%.*s\n", 4 + 2 * depth, "", (int)(end - lines), lines);
    depth += end[-1] == '{';
  }
  return lines;
}

static void add_entry(Forward *f, const Entry *e)
{
  const Step *s = e->step ? &f->m->r->steps.at[e->step - 1] : NULL;
  const uint32_t *use = s ? s->use : e->call->in.at, n = s ? s->n_use : e->call->in.n;
  const char *expression;
  bool lines = s && strchr(s->text, '\n');
  do expression = s ? step_text(f, s) : call_text(f, e->call);
  while (!lines && strlen(expression) > LONGEST_INLINE && shorten(f, use, n));
  if (lines) expression = add_statements(f, expression);
  for (uint32_t i = 0; i < n; i++) f->m->left[use[i]]--;
  if (s)
    add_results(f, expression, use, n, s->out, s->n_out);
  else
    add_results(f, expression, use, n, e->call->out.at, e->call->out.n);
}

const char *forward_text(Modules *m, const Call *c)
{
  Forward f = {m, c, text_new(m->arena), {0}, 0};
  const char *arguments = "", *results = "";
  memset(m->left, 0, m->r->values.n * sizeof *m->left);
  count_uses(&f);
  for (uint32_t i = 0; i < c->in.n; i++) {
    const char *name =
        c->in.n < MOST_LETTERS_LIVE ? new_name(&f, NULL, 0) : text(m->r, "v%u", ++f.made);
    arguments = text(m->r, "%s%s%s", arguments, i ? ", " : "", name);
    show(&f, c->in.at[i], name);
  }
  for (uint32_t i = 0; i < c->entries.n; i++) {
    uint32_t moving = 0, n = c->entries.at[i].call ? loop_length(&f, i, &moving) : 0;
    if (n)
      add_loop(&f, i, n, moving);
    else
      add_entry(&f, &c->entries.at[i]);
    if (n) i += n - 1;
  }
  for (uint32_t i = 0; i < c->out.n; i++)
    results = text(m->r, "%s%s%s", results, i ? ", " : "", m->shown[c->out.at[i]]);
  if (f.out.n == 0 && strlen(results) + strlen(arguments) < LONGEST_INLINE - 12)
    return text(m->r, "  def forward(%s) { return %s }\n", arguments, results);
  return text(m->r, "  def forward(%s) {\n%s    return %s\n  }\n", arguments, f.out.at, results);
}
