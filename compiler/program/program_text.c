/* Prints the values of a plan as C. */
#include "compiler/base/user_text.h"
#include "program_parts.h"
#include <math.h>
#include <string.h>

const char *quoted(Printer *p, const char *s)
{
  return string_literal(p->c->arena, s);
}

const char *comment_of(Printer *p, const char *name)
{
  return comment_text(p->c->arena, name, strlen(name), 200);
}

/* Returns a number as C, which has no literal for infinity. */
const char *number(Printer *p, double v)
{
  if (isinf(v)) return v > 0 ? "(1.0 / 0.0)" : "(-1.0 / 0.0)";
  return arena_number(p->c->arena, v, 6);
}

const char *truth(bool b)
{
  return b ? "true" : "false";
}

/* Returns the sizes in braces; {0} for a scalar, because C has no empty initialiser. */
const char *dims(Printer *p, const int64_t *dim, uint32_t rank)
{
  Text t = text_new(p->c->arena);
  text_puts(&t, "{");
  for (uint32_t i = 0; i < rank; i++) text_printf(&t, "%s%lld", i ? ", " : "", (long long)dim[i]);
  text_puts(&t, rank ? "}" : "0}");
  return t.at;
}

/* ---- fields ---- */

void field_text(Text *t, const char *name, const char *value)
{
  text_printf(t, "%s.%s = %s", t->n ? ", " : "", name, value);
}

void field_integer(Text *t, const char *name, long long v)
{
  if (v) text_printf(t, "%s.%s = %lld", t->n ? ", " : "", name, v);
}

void field_number(Printer *p, Text *t, const char *name, double v)
{
  if (v != 0) field_text(t, name, number(p, v));
}

void field_truth(Text *t, const char *name, bool v)
{
  if (v) field_text(t, name, "true");
}
