/* `running = 0.9 * running + 0.1 * x.mean(0)` in a method, where `running` is a Buffer of its
 * module: the rest of the step reads the new value, and the buffer takes it over together with the
 * step. */
#include "lower.h"
#include "watch.h"
#include <string.h>

/* Floats take any number; integers are counts and places, of which a float would lose some. */
static bool type_fits(const ParamSlot *p, DType d)
{
  if (dtype_is_float(p->dtype)) return true;
  return p->dtype == AMPC_BOOL ? d == AMPC_BOOL : dtype_is_integer(d);
}

/* In the buffer's type, cut off from differentiation: a buffer lives on, and a gradient does not go
 * into the past. */
static Value buffer_value(Lower *l, ParamSlot *p, const char *name, Datum v, Span span)
{
  Value x = as_tensor(l, v, span);
  if (!x.id) return x;
  const Node *n = ir_node(l->g, x);
  if (n->rank != p->rank || memcmp(n->dim, p->dim, p->rank * sizeof *p->dim) != 0) {
    fail(l, E306, span, "Buffer `%s` is %s, the value is %s", name,
         d_text(l, (Datum){.kind = D_param, .as.param = p}), d_text(l, v));
    diag_note(l->c, p->span, "it is made here");
    return (Value){0};
  }
  if (!type_fits(p, n->dtype)) {
    fail(l, E306, span, "Buffer `%s` is %s, the value is %s", name,
         d_text(l, (Datum){.kind = D_param, .as.param = p}), d_text(l, d_tensor(x)));
    diag_help(l->c, p->dtype == AMPC_BOOL ? "a comparison gives bool: `x != 0`" : "`.to(%s)`",
              ir_dtype_name(p->dtype));
    return (Value){0};
  }
  x = ir_append(l->c, &l->at, OP_detach, &x, 1, NULL);
  return ir_append(l->c, &l->at, OP_cast, &x, 1, ATTRS({"dtype", {.i = p->dtype}}));
}

void assign_buffer(Lower *l, ParamSlot *p, const char *name, Datum v, Span span)
{
  if (d_is(v, D_error)) return;
  if (!l->training) {
    fail(l, E210, span,
         "Buffer `%s` is assigned outside of training: it is updated together with a "
         "step of a train block",
         name);
    diag_help(l->c, "`if training { %s = ... }`", name);
    return;
  }
  if (l->at.loop) {
    fail(l, E210, span, "Buffer `%s` cannot be assigned in `scan`", name);
    diag_help(l->c, "carry the value, and assign it behind the loop");
    return;
  }
  Value old = param_value(l, p, span); /* of this version, which the value replaces */
  Value x = old.id ? buffer_value(l, p, name, v, span) : old;
  if (!x.id) return;
  p->node = x;
  if (watch_stops_updates(l)) return;
  ir_append(l->c, &l->at, OP_buffer_update, &x, 1, ATTRS({"param", {.i = p->index}}));
}
