/* Prints descriptions of matrix products, convolutions and attention in an emitted text. They are
 * constants, since sizes do not change from step to step. Equal layers have equal products, so each
 * description is printed once, under the label of the first command that has it. */
#include "compiler/base/names.h"
#include "program_parts.h"

typedef struct Description {
  const char *text; /* its fields as C; NameIndex needs it first */
  const char *name;
} Description;

typedef struct Described { /* a command with a description */
  const char *label;       /* NameIndex needs it first */
  const char *name;        /* name of the description */
} Described;

struct Products {
  VEC(Description) texts;
  VEC(Described) commands;
  NameIndex by_text, by_label;
};

Products *products_create(Compile *c)
{
  Products *x = arena_new(c->arena, Products);
  *x = (Products){.texts = {0}};
  return x;
}

static const char *gemm_text(Printer *p, const ampc_gemm *d)
{
  Text t = text_new(p->c->arena);
  field_integer(&t, "m", d->m);
  field_integer(&t, "n", d->n);
  field_integer(&t, "k", d->k);
  field_integer(&t, "batch", d->batch);
  field_integer(&t, "lda", d->lda);
  field_integer(&t, "ldb", d->ldb);
  field_integer(&t, "ldc", d->ldc);
  field_integer(&t, "stride_a", d->stride_a);
  field_integer(&t, "stride_b", d->stride_b);
  field_integer(&t, "stride_c", d->stride_c);
  if (d->more_m) field_integer(&t, "more_m", d->more_m);
  if (d->more_n) field_integer(&t, "more_n", d->more_n);
  if (d->more_k) field_integer(&t, "more_k", d->more_k);
  field_truth(&t, "trans_a", d->trans_a);
  field_truth(&t, "trans_b", d->trans_b);
  field_truth(&t, "accumulate", d->accumulate);
  field_truth(&t, "tf32", d->tf32);
  field_truth(&t, "has_bias", d->has_bias);
  field_truth(&t, "relu", d->relu);
  field_text(&t, "a_type", ampc_type_of(d->a_type)->constant);
  field_text(&t, "b_type", ampc_type_of(d->b_type)->constant);
  field_text(&t, "c_type", ampc_type_of(d->c_type)->constant);
  if (d->has_bias) field_text(&t, "bias_type", ampc_type_of(d->bias_type)->constant);
  field_integer(&t, "workspace", d->workspace);
  field_integer(&t, "line", d->line);
  return t.at;
}

static const char *conv_text(Printer *p, const ampc_conv *d)
{
  static const char *const kinds[] = {"AMPC_CONV_FORWARD", "AMPC_CONV_DATA", "AMPC_CONV_WEIGHT"};
  Text t = text_new(p->c->arena);
  field_text(&t, "kind", kinds[d->kind]);
  field_integer(&t, "n", d->n);
  field_integer(&t, "c", d->c);
  field_integer(&t, "k", d->k);
  field_integer(&t, "groups", d->groups);
  field_integer(&t, "spatial", d->spatial);
  field_text(&t, "in", dims(p, d->in, d->spatial));
  field_text(&t, "kernel", dims(p, d->kernel, d->spatial));
  field_text(&t, "out", dims(p, d->out, d->spatial));
  field_text(&t, "stride", dims(p, d->stride, d->spatial));
  field_text(&t, "pad", dims(p, d->pad, d->spatial));
  field_text(&t, "dilation", dims(p, d->dilation, d->spatial));
  field_truth(&t, "accumulate", d->accumulate);
  field_truth(&t, "tf32", d->tf32);
  field_truth(&t, "has_bias", d->has_bias);
  field_text(&t, "x_type", ampc_type_of(d->x_type)->constant);
  field_text(&t, "w_type", ampc_type_of(d->w_type)->constant);
  field_text(&t, "y_type", ampc_type_of(d->y_type)->constant);
  if (d->has_bias) field_text(&t, "bias_type", ampc_type_of(d->bias_type)->constant);
  field_integer(&t, "workspace", d->workspace);
  if (d->grid) {
    const char *columns = p->c->program->kernels[d->columns].name;
    field_text(&t, "columns", arena_printf(p->c->arena, "K_%s", columns));
    field_integer(&t, "grid", d->grid);
    field_integer(&t, "block", d->block);
  }
  field_integer(&t, "line", d->line);
  return t.at;
}

static const char *operand_text(Printer *p, uint32_t argument, int64_t first, const int64_t *stride,
                                uint32_t n)
{
  Text t = text_new(p->c->arena);
  field_integer(&t, "argument", argument);
  field_integer(&t, "first", first);
  field_text(&t, "stride", dims(p, stride, n));
  return arena_printf(p->c->arena, "{%s}", t.at);
}

static const char *attention_text(Printer *p, const ampc_attention *d)
{
  Text t = text_new(p->c->arena);
  field_truth(&t, "backward", d->backward);
  field_truth(&t, "causal", d->causal);
  field_integer(&t, "n", d->n);
  field_integer(&t, "l", d->l);
  field_integer(&t, "s", d->s);
  field_integer(&t, "heads", d->heads);
  field_integer(&t, "d", d->d);
  field_integer(&t, "e", d->e);
  const struct {
    const char *name;
    const ampc_attention_operand *operand;
  } all[] = {{"q", &d->q},   {"k", &d->k},   {"v", &d->v},   {"y", &d->y},  {"sums", &d->sums},
             {"dy", &d->dy}, {"dq", &d->dq}, {"dk", &d->dk}, {"dv", &d->dv}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const ampc_attention_operand *o = all[i].operand;
    if (o->argument)
      field_text(&t, all[i].name, operand_text(p, o->argument, o->first, o->stride, 3));
  }
  const ampc_attention_mask *m = &d->mask;
  if (m->argument) field_text(&t, "mask", operand_text(p, m->argument, m->first, m->stride, 4));
  field_number(p, &t, "scale", d->scale);
  field_number(p, &t, "p", d->p);
  field_integer(&t, "each", d->each);
  field_integer(&t, "state", d->state);
  field_integer(&t, "stream", d->stream);
  field_text(&t, "type", ampc_type_of(d->type)->constant);
  field_integer(&t, "line", d->line);
  return t.at;
}

/* Returns the name of the description with this text; prints the description if it is new.
 * Products, convolutions and attention have different fields, so one table is enough. */
static const char *described(Printer *p, Products *x, const char *type, const char *label,
                             const char *text)
{
  Arena *a = p->c->arena;
  uint32_t i = name_find(a, &x->by_text, x->texts.at, x->texts.n, sizeof *x->texts.at, text);
  if (i != NO_NAME) return x->texts.at[i].name;
  vec_push(a, &x->texts, (Description){text, label});
  EMIT(p, "\nstatic const %s %s = {\n", type, label);
  EMIT_WRAPPED(p, "  ", "  %s};\n", text);
  return label;
}

void put_products(Printer *p, Products *x, const ampc_command *commands, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    const ampc_command *k = &commands[i];
    const char *name = NULL;
    if (k->kind == AMPC_GEMM)
      name = described(p, x, "ampc_gemm", k->label, gemm_text(p, &k->as.gemm.desc));
    if (k->kind == AMPC_CONV)
      name = described(p, x, "ampc_conv", k->label, conv_text(p, &k->as.conv.desc));
    if (k->kind == AMPC_LAUNCH_KERNEL && k->as.launch.library) /* the kernel has the label */
      name = described(p, x, "ampc_attention", arena_printf(p->c->arena, "A_%s", k->label),
                       attention_text(p, k->as.launch.library));
    if (name) vec_push(p->c->arena, &x->commands, (Described){k->label, name});
    if (k->kind == AMPC_REPEAT) put_products(p, x, k->as.repeat.commands, k->as.repeat.n_commands);
  }
}

const char *product_name(Printer *p, Products *x, const ampc_command *command)
{
  uint32_t i = name_find(p->c->arena, &x->by_label, x->commands.at, x->commands.n,
                         sizeof *x->commands.at, command->label);
  return x->commands.at[i].name;
}
