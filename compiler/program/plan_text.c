/* Prints --emit=plan: the commands with the places of their operands, then the spaces. Golden tests
 * compare this text. A place is space+offset in bytes. */
#include "program.h"
#include "compiler/graph/ir.h"

/* Prints work+64, or work+64+128t: 128 bytes further in each iteration. */
static void put_operand(Text *out, ampc_operand o)
{
  if (o.at.space == AMPC_NONE) {
    text_puts(out, "none");
    return;
  }
  text_printf(out, "%s+%lld", ampc_space_of(o.at.space)->name, (long long)o.at.offset);
  if (o.stride) text_printf(out, "%+lldt", (long long)o.stride);
}

/* Prints for example launch <64, 256> (work+0, master+2048, work+4096), and 7 for a number. */
static void put_plan_launch(Text *out, const ampc_launch *l)
{
  text_printf(out, "launch <%u, %u> (", l->grid, l->block);
  for (uint32_t i = 0; i < l->n_args; i++) {
    if (i) text_puts(out, ", ");
    if (l->args[i].at.space == AMPC_NONE)
      text_printf(out, "%lld%s", (long long)l->args[i].at.offset, l->args[i].stride ? "+t" : "");
    else
      put_operand(out, l->args[i]);
  }
  text_puts(out, l->library    ? ") or the library's attention"
                 : l->deferred ? ") with the next kernel"
                               : ")");
}

/* Prints for example
 *   work+0 f16[32, 512] = input+0 f16 @ copy16+0 f16^T k 784 + copy16+1024 relu
 * and += if the product adds to the present content. */
static void put_gemm(Text *out, const ampc_command *command)
{
  const ampc_gemm *d = &command->as.gemm.desc;
  put_operand(out, command->as.gemm.c);
  text_printf(out, " %s[%lld, %lld] %s ", ir_dtype_name(d->c_type), (long long)d->m,
              (long long)d->n, d->accumulate ? "+=" : "=");
  put_operand(out, command->as.gemm.a);
  text_printf(out, " %s%s @ ", ir_dtype_name(d->a_type), d->trans_a ? "^T" : "");
  put_operand(out, command->as.gemm.b);
  text_printf(out, " %s%s k %lld", ir_dtype_name(d->b_type), d->trans_b ? "^T" : "",
              (long long)d->k);
  if (d->batch != 1) text_printf(out, " batch %lld", (long long)d->batch);
  if (d->has_bias) {
    text_puts(out, " + ");
    put_operand(out, command->as.gemm.bias);
  }
  if (d->relu) text_puts(out, " relu");
  if (d->tf32) text_puts(out, " tf32");
  if (d->workspace) {
    text_printf(out, " workspace %lld at ", (long long)d->workspace);
    put_operand(out, command->as.gemm.workspace);
  }
}

static void put_sizes(Text *out, const int64_t *size, uint32_t n) /* 28x28 */
{
  for (uint32_t i = 0; i < n; i++) text_printf(out, "%s%lld", i ? "x" : "", (long long)size[i]);
}

/* Prints for example work+0 f16[28x28x32]: the sizes and the channels of one image. */
static void put_image(Text *out, ampc_operand at, ampc_dtype type, const int64_t *size,
                      uint32_t spatial, int64_t channels)
{
  put_operand(out, at);
  text_printf(out, " %s[", ir_dtype_name(type));
  put_sizes(out, size, spatial);
  text_printf(out, "x%lld]", (long long)channels);
}

static void put_x(Text *out, const ampc_command *command)
{
  const ampc_conv *d = &command->as.conv.desc;
  put_image(out, command->as.conv.x, d->x_type, d->in, d->spatial, d->c);
}

static void put_y(Text *out, const ampc_command *command)
{
  const ampc_conv *d = &command->as.conv.desc;
  put_image(out, command->as.conv.y, d->y_type, d->out, d->spatial, d->k);
}

static void put_axes(Text *out, const char *what, const int64_t *v, uint32_t n, int64_t usual)
{
  bool told = false;
  for (uint32_t i = 0; i < n; i++) told = told || v[i] != usual;
  if (!told) return;
  text_printf(out, " %s ", what);
  put_sizes(out, v, n);
}

static void put_weight(Text *out, const ampc_command *command)
{
  const ampc_conv *d = &command->as.conv.desc;
  put_operand(out, command->as.conv.w);
  text_printf(out, " %s[%lldx%lld of ", ir_dtype_name(d->w_type), (long long)d->k,
              (long long)(d->c / d->groups));
  put_sizes(out, d->kernel, d->spatial);
  text_puts(out, "]");
}

/* Prints result = operand sign operand. * is the convolution, *^T the gradient of the images, **
 * the gradient of the weight. */
static void put_conv(Text *out, const ampc_command *command)
{
  const ampc_conv *d = &command->as.conv.desc;
  bool forward = d->kind == AMPC_CONV_FORWARD, data = d->kind == AMPC_CONV_DATA;
  if (forward) put_y(out, command);
  if (data) put_x(out, command);
  if (!forward && !data) put_weight(out, command);
  text_printf(out, " %s ", d->accumulate ? "+=" : "=");
  if (forward) put_x(out, command);
  if (!forward) put_y(out, command);
  text_puts(out, forward ? " * " : data ? " *^T " : " ** ");
  if (forward || data) put_weight(out, command);
  if (!forward && !data) put_x(out, command);
  text_printf(out, " n %lld", (long long)d->n);
  put_axes(out, "stride", d->stride, d->spatial, 1);
  put_axes(out, "padding", d->pad, d->spatial, 0);
  put_axes(out, "dilation", d->dilation, d->spatial, 1);
  if (d->groups != 1) text_printf(out, " groups %lld", (long long)d->groups);
  if (d->has_bias) {
    text_puts(out, " + ");
    put_operand(out, command->as.conv.bias);
  }
  if (d->tf32) text_puts(out, " tf32");
  if (!d->workspace) return;
  text_printf(out, " workspace %lld at ", (long long)d->workspace);
  put_operand(out, command->as.conv.workspace);
}

/* Prints " f32[4096] = each member's slice of the sum, in a step's last body". */
static void put_plan_exchange(Text *out, const ampc_exchange *x)
{
  static const char *const what[] = {[AMPC_SUM] = "sum over all members",
                                     [AMPC_SLICE] = "each member's slice of the sum",
                                     [AMPC_JOIN] = "waits for all slices",
                                     [AMPC_GATHER] = "all members' slices",
                                     [AMPC_GATHER_WITH_NEXT] = "all members' slices, with the next",
                                     [AMPC_CLEAR] = "0"};
  if (x->count) text_printf(out, " %s[%lld] = ", ir_dtype_name(x->type), (long long)x->count);
  text_printf(out, "%s%s", what[x->kind], x->closing ? ", in a step's last body" : "");
}

static void put_plan_commands(Text *out, const ampc_command *commands, uint32_t n, int indent);

static void put_plan_command(Text *out, const ampc_command *command, int indent)
{
  text_printf(out, "%*s%-*s ", indent, "", 30 - indent, command->label);
  switch (command->kind) {
  case AMPC_LAUNCH_KERNEL:
    put_plan_launch(out, &command->as.launch);
    break;
  case AMPC_GEMM:
    put_gemm(out, command);
    break;
  case AMPC_CONV:
    put_conv(out, command);
    break;
  case AMPC_COPY:
    put_operand(out, command->as.copy.to);
    text_puts(out, " = ");
    put_operand(out, command->as.copy.from);
    text_printf(out, " %lld bytes", (long long)command->as.copy.bytes);
    break;
  case AMPC_FILL:
    put_operand(out, command->as.fill.to);
    text_printf(out, " = byte %u, %lld bytes", command->as.fill.value,
                (long long)command->as.fill.bytes);
    break;
  case AMPC_EXCHANGE:
    if (command->as.exchange.desc.count) put_operand(out, command->as.exchange.at);
    put_plan_exchange(out, &command->as.exchange.desc);
    break;
  case AMPC_REPEAT:
    text_printf(out, "%lld times, t = 0 ..", (long long)command->as.repeat.count);
  }
  text_printf(out, "    # line %u\n", command->line);
  if (command->kind == AMPC_REPEAT)
    put_plan_commands(out, command->as.repeat.commands, command->as.repeat.n_commands, indent + 2);
}

static void put_plan_commands(Text *out, const ampc_command *commands, uint32_t n, int indent)
{
  for (uint32_t i = 0; i < n; i++) put_plan_command(out, &commands[i], indent);
}

void emit_plan(Compile *c, Text *out)
{
  const ampc_program *p = c->program;
  for (uint32_t b = 0; b < p->n_blocks; b++) {
    for (uint32_t v = 0; v < p->blocks[b].n_variants; v++) {
      const ampc_step *s = &p->blocks[b].variant[v];
      text_printf(
          out, "%s, batch %lld%s%s: %u commands\n", p->blocks[b].name, (long long)s->batch,
          s->fires ? ", " : "",
          ir_fires_text(c->arena, p->blocks[b].period, p->blocks[b].n_periods, s->fires, " "),
          s->n_commands);
      put_plan_commands(out, s->commands, s->n_commands, 2);
    }
  }
  int64_t total = 0;
  text_puts(out, "memory\n");
  for (ampc_space s = AMPC_STATE; s < AMPC_SPACE_COUNT; s++) {
    total += p->space_bytes[s];
    if (p->space_bytes[s])
      text_printf(out, "  %-8s %12lld bytes\n", ampc_space_of(s)->name,
                  (long long)p->space_bytes[s]);
  }
  text_printf(out, "  total    %12lld bytes\n", (long long)total);
}
