/* Elaborates `def backward(dy)` of an op after the call, with autocast off: Note [own backward] in
 * own.h. Its scope has the inputs of the op's node, the outputs, sizes and numbers. */
#include "own.h"
#include "compiler/lower/model/model.h"

/* True if backward is needed: where something is differentiated, and not inside backward itself.
 * jvp transposes backward in any block, so an op that backward calls needs its own backward, which
 * may call the first op again. Each jvp therefore goes two calls deep, and its nodes may be
 * differentiated again by another jvp. */
static bool is_wanted(const Lower *l)
{
  bool trains = l->run && l->g->blocks.at[l->run->block].kind == AMPC_TRAIN &&
                !l->g->regions.at[l->at.region].no_grad;
  return (trains || l->in_jvp) && l->in_backward <= 2 * l->in_jvp;
}

static void bind_operand(Lower *l, Scope *s, const OwnTensor *t, Value op, uint32_t i)
{
  scope_bind(l, s, t->name, d_tensor(own_operand(l->c, &l->at, op, i)), t->span);
}

/* Binds the names of the forward signature, then the gradients of the outputs. */
static bool bind_operands(Lower *l, const OwnDecl *decl, Scope *s, Value op)
{
  const OwnOp *own = own_of(ir_node(l->g, op));
  Args gradients = {.span = decl->backward->name.span};
  for (uint32_t i = 0; i < own->n_inputs; i++) bind_operand(l, s, &own->input[i], op, i);
  for (uint32_t i = 0; i < own->n_outputs; i++)
    bind_operand(l, s, &own->output[i], op, own->n_inputs + i);
  for (uint32_t i = 0; i < own->n_outputs; i++) {
    Value dy = own_operand(l->c, &l->at, op, own->n_inputs + own->n_outputs + i);
    args_push(l, &gradients, d_tensor(dy), decl->backward->params.at[i].name.span);
  }
  return bind_params(l, s, "backward", &decl->backward->params, &gradients);
}

/* Checks one gradient: it has the shape of its input, or is `none` for an input without a gradient,
 * such as integers. */
static bool gradient_of_input(Lower *l, Value op, uint32_t i, Datum d, Span span, Value *out)
{
  const OwnOp *own = own_of(ir_node(l->g, op));
  *out = (Value){0};
  if (d_is(d, D_none)) return true;
  if (d_is(d, D_error) || !(*out = as_tensor(l, d, span)).id) return false;
  const Node *x = ir_in(l->c, ir_node(l->g, op), i), *dx = ir_node(l->g, *out);
  if (!dtype_is_float(x->dtype)) {
    fail(l, E703, span, "backward of %s returns a gradient for `%s`, which is %s", own->name,
         own->input[i].name, ir_type_text(l->c, x));
    return diag_help(l->c, "return `none` for an input that has no gradient");
  }
  if (ir_same_dims(x, dx) && dtype_is_float(dx->dtype)) return true;
  fail(l, E703, span, "backward of %s returns %s for `%s`, which is %s", own->name,
       ir_type_text(l->c, dx), own->input[i].name, ir_type_text(l->c, x));
  return diag_note(l->c, own->input[i].span, "`%s` is declared here", own->input[i].name);
}

static void take_gradients(Lower *l, Value op, Datum v, Span span)
{
  const OwnOp *own = own_of(ir_node(l->g, op));
  Value gradients[MAX_SIGNATURE];
  bool good = true;
  uint32_t n = v.kind == D_list ? v.n : v.kind != D_none;
  if (d_is(v, D_error)) return;
  if (n != own->n_inputs) {
    fail(l, E703, span, "backward of %s returns %u value%s, but the op takes %u tensor%s",
         own->name, n, &"s"[n == 1], own -> n_inputs, &"s"[own->n_inputs == 1]);
    diag_help(
        l->c,
        "return a gradient for each tensor in order, and `none` for a tensor that has no gradient");
    return;
  }
  for (uint32_t i = 0; i < n; i++)
    good = gradient_of_input(l, op, i, v.kind == D_list ? v.as.list[i] : v, span, &gradients[i]) &&
           good;
  if (good) own_backward(l->c, &l->at, op, gradients);
}

void lower_own_backward(Lower *l, const OwnDecl *decl, Scope *s, Value op)
{
  if (!is_wanted(l)) return;
  const Function *def = decl->backward;
  Cursor at = l->at;
  const char *label = arena_printf(l->arena, "backward of %s", decl->decl->name.text);
  l->at.region = region_push(l, REGION_off, false, def->name.span, label);
  l->in_backward++;
  Frame frame = {.kind = FRAME_function, .scope = scope_new(l, s, decl->file, NULL)};
  uint32_t errors = diag_error_count(l->c);
  if (bind_operands(l, decl, frame.scope, op)) exec_block(l, &frame, &def->body);
  Span span = frame.returned ? frame.result_span : def->name.span;
  if (diag_error_count(l->c) == errors)
    take_gradients(l, op, frame.returned ? frame.result : d_of(D_none), span);
  l->in_backward--;
  l->at = at;
}
