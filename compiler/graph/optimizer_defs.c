/* Prints defs of the layer library: one for each row of optimizers.def, and one for each op with
 * T_schedule.
 *
 *   def SGD(model, lr, momentum=0.0, .., nesterov: bool = false, .., clip_norm=none, ..) {
 *     return _optimizer("SGD", model, clip_norm, skip_above, accumulate, lr=lr, ..)
 *   }
 *   def linear_schedule(start: finite, end: finite, steps: positive = none, ..) {
 *     return _schedule("linear", [start, end, steps, warmup])
 *   }
 */
#include "optimizers.h"
#include "common/number.h"
#include <string.h>

/* ---- optimizers ---- */

/* Prints ", betas: list = [0.9, 0.999]". */
static void put_list(Text *out, const OptimizerInfo *row, const OptimizerArgument *a)
{
  text_printf(out, ", %s: list = [", a->name);
  for (uint32_t i = 0; i < a->n; i++)
    text_printf(out, "%s%s", i ? ", " : "", row->setting_default[a->first + i]);
  text_puts(out, "]");
}

static void put_setting(Text *out, const OptimizerInfo *row, const OptimizerArgument *a)
{
  const char *value = row->setting_default[a->first];
  if (a->n > 1)
    put_list(out, row, a);
  else
    text_printf(out, value ? ", %s=%s" : ", %s", a->name, value);
}

/* Prints the arguments in the order of PyTorch: settings, flags, then those that PyTorch lacks. */
static void put_def(Text *out, const OptimizerInfo *row)
{
  const OptimizerArgument *end = row->argument + row->n_arguments;
  text_printf(out, "def %s(model", row->name);
  for (const OptimizerArgument *a = row->argument; a < end; a++)
    if (!a->flag && !a->optional) put_setting(out, row, a);
  for (const OptimizerArgument *a = row->argument; a < end; a++)
    if (a->flag)
      text_printf(out, ", %s: bool = %s", a->name,
                  row->flag_default[a->first] ? row->flag_default[a->first] : "false");
  text_puts(
      out,
      ", clip_norm=none, clip_value=none, skip_above=none, accumulate=1, ema=none, clamp=none");
  text_printf(out, ") {\n  return _optimizer(\"%s\", model, clip_norm, skip_above, accumulate",
              row->name);
  for (const OptimizerArgument *a = row->argument; a < end; a++)
    text_printf(out, ", %s=%s", a->name, a->name);
  text_puts(out, ")\n}\n");
}

/* ---- schedules ---- */

/* Prints ", end" for each input of a schedule; in the signature with domain and default. */
static void put_inputs(Text *out, const OpSignature *sig, bool signature)
{
  for (uint32_t i = 1; i < sig->n_inputs; i++) {
    const InputInfo *in = &sig->input[i];
    ampc_domain domain = AMPC_FINITE;
    text_printf(out, "%s%s", i > 1 ? ", " : "", in->name);
    if (!signature) continue;
    setting_domain(in->name, AMPC_FINITE, &domain);
    text_printf(out, ": %s", ampc_domain_name(domain));
    if (in->default_text) text_printf(out, " = %s", in->default_text);
  }
}

static void put_schedule(Text *out, const OpInfo *op)
{
  const char *name = op->name + strlen("schedule_");
  text_printf(out, "def %s_schedule(", name);
  put_inputs(out, &op->signature, true);
  text_printf(out, ") {\n  return _schedule(\"%s\", [", name);
  put_inputs(out, &op->signature, false);
  text_puts(out, "])\n}\n");
}

Text table_defs(Arena *arena)
{
  Text out = text_new(arena);
  for (OptimizerKind k = 0; k < OPT_COUNT; k++) put_def(&out, optimizer_row(k));
  for (OpKind op = 0; op < OP_COUNT; op++)
    if (op_row(op)->traits & T_schedule) put_schedule(&out, op_row(op));
  return out;
}
