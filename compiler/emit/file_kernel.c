/* Kernels with a frame of their own: templates/<op>.cu with its holes filled. See
 * templates/README.md for the form of those files. */
#include "command.h"
#include "embedded.h"
#include "kernel.h"
#include <string.h>

typedef struct Hole {
  const char *name, *text;
} Hole;

typedef struct Filling {
  Hole holes[24];
  const char *words[8]; /* that hold */
  uint32_t n_holes, n_words;
} Filling;

static void fill(Filling *f, const char *name, const char *text)
{
  f->holes[f->n_holes++] = (Hole){name, text};
}

static void holds(Filling *f, const char *word, bool yes)
{
  if (yes) f->words[f->n_words++] = word;
}

static bool does_hold(const Filling *f, const char *word, size_t n)
{
  for (uint32_t i = 0; i < f->n_words; i++) {
    if (strlen(f->words[i]) == n && memcmp(f->words[i], word, n) == 0) return true;
  }
  return false;
}

/* Strips "@word " off a line; false when the line does not stand. */
static bool line_stands(const Filling *f, const char **line, size_t *n)
{
  if (*n == 0 || **line != '@') return true;
  const char *word = *line + 1;
  bool negated = *word == '!';
  word += negated;
  size_t length = strcspn(word, " \n");
  bool yes = does_hold(f, word, length) != negated;
  size_t used = (size_t)(word - *line) + length;
  used += used < *n; /* the blank */
  *line += used;
  *n -= used;
  return yes;
}

static const char *hole_text(const Filling *f, const char *name, size_t n)
{
  for (uint32_t i = 0; i < f->n_holes; i++) {
    if (strlen(f->holes[i].name) == n && memcmp(f->holes[i].name, name, n) == 0)
      return f->holes[i].text;
  }
  return NULL;
}

static void put_line(Printer *p, const Filling *f, const char *path, uint32_t number,
                     const char *line, size_t n)
{
  Text t;
  text_init(&t, p->c->arena);
  for (size_t i = 0; i < n; i++) {
    size_t length = 0;
    if (line[i] == '$') {
      while (i + 1 + length < n &&
             (strchr("abcdefghijklmnopqrstuvwxyz_0123456789", line[i + 1 + length])))
        length++;
    }
    const char *text = length ? hole_text(f, line + i + 1, length) : NULL;
    if (text) {
      text_puts(&t, text);
      i += length;
    } else {
      text_add(&t, line + i, 1);
    }
  }
  printer_text(p, path, number, t.at, t.n + (t.n == 0));
}

static void put_template(Printer *p, const Filling *f, const char *op)
{
  const char *name = arena_printf(p->c->arena, "%s.cu", op);
  const EmbeddedFile *file = embedded_find(name);
  const char *path = arena_printf(p->c->arena, "templates/%s", name);
  uint32_t number = 1;
  for (const char *line = file->text; *line; number++) {
    size_t n = strcspn(line, "\n");
    const char *rest = line + n + (line[n] == '\n'), *text = line;
    if (line_stands(f, &text, &n)) put_line(p, f, path, number, text, n);
    line = rest;
  }
}

/* The C type of a scalar that lies in STATE (float there even where real is double) or was
 * computed. */
static const char *scalar_type(const Node *n)
{
  if (n->place.space == AMPC_STATE && n->dtype == AMPC_F32) return "float";
  static const char *const types[AMPC_DTYPE_COUNT] = {
      [AMPC_F32] = "real",          [AMPC_F16] = "f16",       [AMPC_BF16] = "bf16",
      [AMPC_I32] = "int",           [AMPC_I64] = "long long", [AMPC_U8] = "unsigned char",
      [AMPC_BOOL] = "unsigned char"};
  return types[n->dtype];
}

static const char *scalar_load(const Node *n, const char *name, Arena *a)
{
  if (n->dtype == AMPC_F16) return arena_printf(a, "from_f16(*%s)", name);
  if (n->dtype == AMPC_BF16) return arena_printf(a, "from_bf16(*%s)", name);
  return arena_printf(a, "(real)*%s", name);
}

static void fill_inputs(Compile *c, const Node *n, Filling *f)
{
  const OpSignature *s = op_signature(n->op);
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!n->in[i].id) continue;
    const Node *in = ir_node(c->graph, value_root(c->graph, n->in[i]));
    fill(f, arena_printf(c->arena, "%s_type", s->input[i].name), scalar_type(in));
  }
}

static void fill_optimizer(Compile *c, const Node *n, uint32_t group, Filling *f)
{
  const Optimizer *o = &c->graph->optimizers.at[n->attr[0].i];
  int64_t each = (o->count + GRAD_NORM_PARTIALS - 1) / GRAD_NORM_PARTIALS;
  fill(f, "n", arena_printf(c->arena, "%lld", (long long)o->count));
  fill(f, "each", arena_printf(c->arena, "%lld", (long long)(each + 15) / 16 * 16));
  holds(f, "clip", o->clip);
  holds(f, "moment", o->momentum);
  holds(f, "nesterov", o->momentum && o->nesterov);
  holds(f, "plain", o->momentum && !o->nesterov);
  holds(f, "decoupled", o->kind == OPT_adamw);
  KernelArgs args = kernel_args(c, group);
  for (uint32_t i = 0; i < args.n; i++) {
    holds(f, "copy16", args.at[i].role == ARG_copy16);
    holds(f, "copybf", args.at[i].role == ARG_copybf);
  }
}

static void fill_metric(Compile *c, const Node *n, Filling *f)
{
  const Node *value = ir_node(c->graph, value_root(c->graph, n->in[0]));
  fill(f, "type", scalar_type(value));
  fill(f, "load", scalar_load(value, "value", c->arena));
  fill(f, "samples", arena_printf(c->arena, "%lld", (long long)n->attr[1].i));
  holds(f, "loss", c->graph->metrics.at[n->attr[0].i].is_loss);
}

static void fill_accumulate(Compile *c, const Node *n, Filling *f)
{
  int64_t elements = ir_elements(ir_node(c->graph, n->in[0]));
  fill(f, "n", arena_printf(c->arena, "%lld", (long long)elements));
}

/* One kernel after its comment. */
void emit_file_kernel(Printer *p, uint32_t group)
{
  Compile *c = p->c;
  const Node *n = ir_node(c->graph, c->graph->groups.at[group].anchor);
  Filling f = {.n_holes = 0};
  fill(&f, "kernel", command_name(c, group));
  fill(&f, "partials", arena_printf(c->arena, "%d", GRAD_NORM_PARTIALS));
  fill(&f, "optimizers", arena_printf(c->arena, "%u", c->graph->optimizers.n));
  fill_inputs(c, n, &f);
  switch (n->op) {
  case OP_metric:
    fill_metric(c, n, &f);
    break;
  case OP_grad_accumulate:
    fill_accumulate(c, n, &f);
    break;
  case OP_scaler_update:
    break;
  default:
    fill_optimizer(c, n, group, &f);
  }
  put_template(p, &f, op_info[n->op].name);
}
