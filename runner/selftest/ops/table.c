/* The list of families, look-up, and the check that the tables are complete. */
#include "table.h"
#include "reference.h"
#include <stdlib.h>
#include <string.h>

/* The only list of families, each a file of this folder, in the order of compiler/graph/ops.def. */
#define FAMILIES(F)                                                                                \
  F(leaves)                                                                                        \
  F(moves)                                                                                         \
  F(indices)                                                                                       \
  F(unary)                                                                                         \
  F(binary)                                                                                        \
  F(reductions)                                                                                    \
  F(along)                                                                                         \
  F(rows)                                                                                          \
  F(losses)                                                                                        \
  F(products)                                                                                      \
  F(attention)                                                                                     \
  F(convolutions)                                                                                  \
  F(batch_norm)                                                                                    \
  F(pools)                                                                                         \
  F(resample)                                                                                      \
  F(random)                                                                                        \
  F(schedules)                                                                                     \
  F(step)                                                                                          \
  F(optimizers)

#define DECLARED(name) extern const OpFamily family_##name;
FAMILIES(DECLARED)
#define LISTED(name) &family_##name,
static const OpFamily *const all_families[] = {FAMILIES(LISTED)};
enum { N_FAMILIES = sizeof all_families / sizeof *all_families };

const OpTest *op_test_find(OpKind op)
{
  for (uint32_t i = 0; i < N_FAMILIES; i++) {
    const OpFamily *f = all_families[i];
    for (uint32_t k = 0; k < f->n; k++)
      if (f->tests[k].op == op) return &f->tests[k];
  }
  return NULL;
}

/* ---- the check ---- */

typedef struct Check {
  const OpFamily *const *families;
  uint32_t n;
  Text *faults;
  const OpTest *test; /* the entry under check */
  const char *file;
} Check;

static const char *op_name(const Check *c)
{
  return op_row(c->test->op)->name;
}

static void fault_if(const Check *c, bool wrong, const char *what)
{
  if (wrong) text_printf(c->faults, "op '%s' %s %s\n", op_name(c), what, c->file);
}

/* Counts the entries of an op, which must have one, and makes the last entry the current one. */
static uint32_t find_entries(Check *c, OpKind op)
{
  uint32_t count = 0;
  for (uint32_t i = 0; i < c->n; i++) {
    const OpFamily *f = c->families[i];
    for (uint32_t k = 0; k < f->n; k++) {
      if (f->tests[k].op != op) continue;
      c->test = &f->tests[k];
      c->file = f->file;
      count++;
    }
  }
  return count;
}

/* Reports an op without an entry. ops.def groups the ops of a family, so the entry belongs into the
 * file of the previous op's entry. */
static void report_missing(Check *c, OpKind op)
{
  c->file = c->families[0]->file;
  for (uint32_t before = op; before-- > 0;)
    if (find_entries(c, (OpKind)before)) break;
  text_printf(c->faults, "op '%s' has no selftest entry: add one to %s\n", op_row(op)->name,
              c->file);
}

static bool has_attr(OpKind op, const char *name, size_t size)
{
  const OpSignature *s = &op_row(op)->signature;
  for (uint32_t k = 0; k < s->n_attrs; k++)
    if (strlen(s->attr[k].name) == size && memcmp(s->attr[k].name, name, size) == 0) return true;
  return false;
}

/* ---- rows, which make.c reads ---- */

/* Checks that the op has the attribute: make.c cannot set others. */
static void check_attr(const Check *c, const char *name, size_t size)
{
  static const char own[][8] = {"shape", "tf32", "result"}; /* attributes of the case itself */
  bool known = has_attr(c->test->op, name, size);
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    known = known || (strlen(own[i]) == size && memcmp(own[i], name, size) == 0);
  if (!known)
    text_printf(c->faults, "op '%s' has no attribute '%.*s', which a case in %s gives\n",
                op_name(c), (int)size, name, c->file);
}

/* True if in "7x33{...}" the number of values in the braces is the product of the dims. */
static bool values_fit(const char *word, size_t size)
{
  const char *open = memchr(word, '{', size), *type = memchr(word, ':', size);
  int64_t want = 1, given = 1;
  if (!open) return true;
  for (const char *s = type ? type + 1 : word; *s >= '0' && *s <= '9';) {
    char *end;
    want *= strtoll(s, &end, 10);
    s = *end == 'x' ? end + 1 : end;
  }
  for (const char *s = open; s < word + size; s++) given += *s == ',';
  return given == want;
}

static void check_row(const Check *c, const char *row)
{
  uint32_t n = 0;
  RowWord w;
  for (const char *s = row_words(row); row_word(&s, &w); n += !w.key) {
    if (w.key)
      check_attr(c, w.at, w.key);
    else if (!values_fit(w.at, w.size))
      text_printf(c->faults, "op '%s': a case in %s gives more or fewer values than '%.*s' has\n",
                  op_name(c), c->file, (int)strcspn(w.at, "{"), w.at);
  }
  if (n > TEST_MAX_IN)
    text_printf(c->faults, "op '%s': a case in %s has %u inputs, more than TEST_MAX_IN\n",
                op_name(c), c->file, n);
}

static void check_rows(const Check *c)
{
  const OpTest *t = c->test;
  for (const char *const *row = t->cases; row && *row; row++) check_row(c, *row);
  for (const char *const *row = t->gradients; row && *row; row++) check_row(c, *row);
  for (const ChainRow *chain = t->chains; chain && chain->graph; chain++) check_row(c, chain->row);
}

/* Checks the fields that the suites use without a check of their own. */
static void check_words(const Check *c)
{
  const OpTest *t = c->test;
  bool computed = t->cases && t->reference, moved = t->reference == reference_moved;
  fault_if(c, computed && t->reference == reference_map && !t->element,
           "has no ELEMENT, which MAP takes its numbers from: see");
  fault_if(c, computed && (moved || t->reference == reference_picked) && !t->move,
           "has no function that MOVE or PICK takes its places from: see");
  fault_if(c, (computed || t->gradients || t->chains) && !t->fills,
           "does not say how its inputs are filled: see");
  fault_if(c, computed && !t->result, "does not say of which type its result is: see");
  fault_if(c, t->per_term > 0 && !t->terms, "has a bound for each term and no terms: see");
}

static void check_entry(const Check *c)
{
  const OpTest *t = c->test;
  bool differentiable = op_row(t->op)->gradient != grad_none;
  bool gradients = t->gradients || t->chains;
  fault_if(c, !t->cases && !t->no_cases,
           "has no forward cases: add CASES, or NO_CASES with the reason, in");
  fault_if(c, t->cases && (!t->shape || !t->reference), "has cases and no reference: name one in");
  fault_if(c, differentiable && !gradients && !t->no_gradient,
           "has a gradient rule and no gradient case: add GRADIENTS or CHAINS, or NO_GRADIENT with "
           "the reason, in");
  fault_if(c, !differentiable && t->gradients, "has gradient cases and no gradient rule: see");
  fault_if(c, (t->cases && t->no_cases) || (gradients && t->no_gradient),
           "has cases and a reason for having none: see");
}

void op_tests_check(const OpFamily *const *families, uint32_t n, Text *faults)
{
  Check c = {families, n, faults, NULL, NULL};
  for (uint32_t op = 0; op < OP_COUNT; op++) {
    uint32_t entries = find_entries(&c, (OpKind)op);
    if (entries == 0) {
      report_missing(&c, (OpKind)op);
    } else if (entries > 1) {
      text_printf(faults, "op '%s' has %u selftest entries: one of them is in %s\n", op_name(&c),
                  entries, c.file);
    } else {
      check_entry(&c);
      check_words(&c);
      check_rows(&c);
    }
  }
}

void op_tests_check_all(Text *faults)
{
  op_tests_check(all_families, N_FAMILIES, faults);
}
