/* Lowers `running = 0.9 * running + 0.1 * x.mean(0)` in a method, where `running` is a Buffer of
 * its module, and `net.running = ..`. The rest of the step reads the new value, and the step
 * commits it to the buffer. Updates of running statistics by layers of the library are also here.
 */
#include "model.h"
#include "compiler/lower/watch.h"
#include <string.h>

/* Checks a type. A float Buffer accepts any number. An integer Buffer holds counts or indices,
 * which a float could round, so it accepts integers only. */
static bool type_fits(const ParamSlot *p, DType d)
{
  if (dtype_is_float(p->dtype)) return true;
  return p->dtype == AMPC_BOOL ? d == AMPC_BOOL : dtype_is_integer(d);
}

/* Casts the value to the buffer's type and detaches it: a buffer keeps its value over steps, and
 * gradients do not reach back into earlier steps. */
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
  return ir_cast_asked(l->c, &l->at, x, p->dtype);
}

void assign_buffer(Lower *l, ParamSlot *p, const char *name, Datum v, Span span, bool once,
                   const Value *mix)
{
  if (d_is(v, D_error)) return;
  if (!l->training) {
    fail(
        l, E210, span,
        "Buffer `%s` is assigned outside of training; only a step of a train block updates Buffers",
        name);
    if (once)
      diag_help(l->c, "assign it in a train block");
    else
      diag_help(l->c, "`if training { %s = ... }`", name);
    return;
  }
  if (l->at.loop) {
    fail(l, E210, span, "Buffer `%s` cannot be assigned in `scan`", name);
    diag_help(l->c, "carry the value, and assign it after the loop");
    return;
  }
  Value old = param_value(l, p, span); /* this version's node, which the value replaces */
  Value x = old.id ? buffer_value(l, p, name, v, span) : old;
  if (!x.id || l->averages.end) return;
  if (p->given.id) { /* functional_call() restores it */
    p->given = x;
    return;
  }
  p->node = p->store == AMPC_F32 ? x : ir_cast_asked(l->c, &l->at, x, p->store);
  if (watch_stops_updates(l)) return;
  if (l->g->members > 1 && !(once && l->run->n_minimized))
    x = ir_append(l->c, &l->at, OP_copy, &x, 1, NULL); /* see touch() of passes/fuse/order.c */
  ir_append(l->c, &l->at, OP_buffer_update, mix ? mix : &x, mix ? 3 : 1,
            ATTRS({"param", {.i = p->index}}, {"once", {.i = once}}));
}

/* ---- running statistics ---- */

/* Sets *out to the index of the Buffer that an update writes, or to -1 if `d` is another tensor.
 * Tensors do not change, so its update is dropped. PyTorch also loses the update of a temporary. */
static bool running_buffer(Lower *l, Datum d, bool counts, Span span, int64_t *out)
{
  Value v = as_tensor(l, d, span);
  if (!v.id) return false;
  const Node *n = ir_node(l->g, v);
  while (op_has(n, T_casts)) n = ir_in(l->c, n, 0); /* casts by `policy` or to the stored type */
  *out = ir_parameter(l->g, n) ? attr_int(n, "index") : -1;
  span = diag_user_span(l->c, span);
  if (*out < 0 && d.kind == D_param)
    return refuse(l, E210, span,
                  "Buffer `%s` is assigned already; running statistics are updated once a step",
                  d.as.param->name);
  if (*out < 0) return true;
  const Parameter *p = &l->g->params.at[*out];
  const char *type = ir_dtype_name(p->dtype);
  DType wanted = counts ? AMPC_I64 : AMPC_F32;
  if (!p->buffer)
    fail(l, E209, span, "running statistics must be a Buffer, but `%s` is a Parameter", p->path);
  else if (p->dtype != wanted)
    fail(l, E209, span, "running statistics are stored as %s, Buffer `%s` is %s",
         ir_dtype_name(wanted), p->path, type);
  else
    return true;
  return diag_help(
      l->c, "pass a `Buffer([channels])`; or pass a copy, which is not updated: `%s.detach()`",
      p->path);
}

/* _running(buffer, stat, momentum, factor) updates a running statistic; _running(buffer, stat)
 * counts updates. Pass gradient adds the update to the step whose loss depends on `stat`, or on the
 * fifth argument if it is given. Does nothing if `buffer` is none, or in a call of `.ema()`. */
Datum native_running(Lower *l, Args *args)
{
  int64_t index;
  if (d_is(args->at.at[0].value, D_none)) return args->at.at[0].value;
  if (l->averages.end) return d_of(D_none);
  if (!running_buffer(l, args->at.at[0].value, args->at.n == 2, args->at.at[0].span, &index))
    return d_of(D_error);
  Value stat = as_tensor(l, args->at.at[1].value, args->at.at[1].span);
  if (!stat.id) return d_of(D_error);
  if (index < 0) return d_of(D_none);
  if (l->at.loop) {
    fail(l, E210, diag_user_span(l->c, args->span),
         "a layer that updates its running statistics cannot stand in `scan`");
    diag_help(l->c, "call it for the whole sequence before the loop, or as `.eval()`");
    return d_of(D_error);
  }
  if (args->at.n == 2) {
    ir_append(l->c, &l->at, OP_running_count, &stat, 1, ATTRS({"param", {.i = index}}));
    return d_of(D_none);
  }
  Value in[] = {stat, args->at.n > 4 ? as_tensor(l, args->at.at[4].value, args->at.at[4].span)
                                     : (Value){0}};
  ir_append(l->c, &l->at, OP_running_update, in, in[1].id ? 2 : 1,
            ATTRS({"param", {.i = index}}, {"momentum", {.f = d_number(args->at.at[2].value)}},
                  {"factor", {.f = d_number(args->at.at[3].value)}}));
  return d_of(D_none);
}
