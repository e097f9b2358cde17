/* :show and :grad print values of the training step. The step runs on a twin, so the session does
 * not change. */
#include "commands.h"
#include "compiler/command/command.h"
#include "compiler/graph/ir.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const ampc_param *find_param(const ampc_program *p, const char *path)
{
  for (uint32_t i = 0; i < p->n_params; i++)
    if (strcmp(p->params[i].path, path) == 0) return &p->params[i];
  return NULL;
}

/* Finds a parameter by its name with the model, as layer_find returns it; NULL: it is a layer. */
static const ampc_param *find_named(const ampc_program *p, const char *name)
{
  const ampc_param *q = find_param(p, name);
  const char *dot = strchr(name, '.');
  return q || !dot ? q : find_param(p, dot + 1);
}

/* Prints the values of t and their range, and frees t. `read`: the status of reading t. False after
 * a message. */
static bool show_tensor(Repl *r, ampc_status read, HostTensor *t, Look look)
{
  if (!repl_check(r, read)) return false;
  bool good = tensor_look(r, t, look);
  free(t->at);
  return good;
}

/* Prints "f16[32, 512] job.amp:12:7 reason". */
static void print_why(Compile *c, const Node *n)
{
  Span span = diag_user_span(c, n->span);
  printf("%s", ir_type_text(c, n));
  if (span.end) {
    Place at = diag_place(c, span);
    printf("  %s:%u:%u", at.source->shown, at.line, at.column);
  }
  const char *why = ir_why_text(c, n);
  printf("%s%s\n", *why ? "  " : "", why);
}

/* ---- parameters ---- */

/* Prints the stored type, and each other type in which the parameter is read. */
static void explain_param(Compile *c, const char *path)
{
  const Graph *g = c->graph;
  uint32_t seen = 0;
  bool said = false;
  for (uint32_t i = 1; i < g->nodes.n; i++) {
    const Node *n = &g->nodes.at[i], *from = op_has(n, T_casts) ? ir_node(g, n->in[0]) : n;
    const Parameter *p = ir_parameter(g, from);
    if (!p || strcmp(p->path, path) != 0) continue;
    if (n == from && !said) {
      print_why(c, n);
      said = true;
    }
    if (n != from && !(seen >> n->dtype & 1)) {
      printf("read as ");
      print_why(c, n);
      seen |= 1u << n->dtype;
    }
  }
}

/* Shows a parameter with the values of the running program. The reasons for types are in the graph
 * after pass precision, so the program is compiled up to there. */
static bool show_param(Repl *r, const char *path, Look look)
{
  if (!live_ready(r)) return false;
  const ampc_program *p = r->live->c->program;
  const ampc_param *q = find_param(p, path);
  Compiled *typed = program_compile(r, &(Request){.dump_after = "precision"});
  if (!typed) return false;
  HostTensor t;
  ampc_space space = q->buffer ? AMPC_BUFFER : AMPC_MASTER;
  bool good = show_tensor(r, tensor_read_param(r->rt, q, space, &t), &t, look);
  if (good && look < LOOK_picture) explain_param(typed->c, path);
  compiled_drop(typed);
  return good;
}

/* ---- values of the train block ---- */

/* Finds the block of the next step by name, because `p` lacks blocks that the running program
 * has. */
static bool block_index(const Repl *r, const ampc_program *p, uint32_t *out)
{
  uint32_t own;
  if (!train_block(r, r->live->c->program, &own)) return false;
  for (*out = 0; *out < p->n_blocks; ++*out)
    if (strcmp(p->blocks[*out].name, r->live->c->program->blocks[own].name) == 0) return true;
  return false;
}

/* Runs the next step on a twin, with a program that outputs the value. */
static bool show_watched(Repl *r, Compiled *p, Look look, uint32_t *out_block)
{
  ampc_runtime *twin = NULL;
  const ampc_program *g = p->c->program;
  if (!live_ready(r) || !block_index(r, g, out_block)) return false;
  uint32_t block = *out_block, n = 0;
  for (uint32_t i = 0; i < g->n_outputs; i++) n += g->outputs[i].block == block;
  if (!n) return repl_error(r, "block %s does not compute this value", g->blocks[block].name);
  int64_t samples = 0;
  bool good = repl_check(r, live_twin(r, p, NULL, &twin)) &&
              repl_check(r, live_try_batch(r, twin, block, &samples));
  if (good && samples != g->blocks[block].batch)
    good = repl_error(r, "the next batch is the smaller last one of its epoch; :step trains on it");
  good = good && outputs_print(r, twin, block, look);
  ampc_free(twin);
  return good;
}

/* Prints the reason of the output's input, because an output is only a copy. */
static void explain_watched(Compile *c, const char *block)
{
  const Graph *g = c->graph;
  for (uint32_t i = 0; i < g->outputs.n; i++)
    if (strcmp(g->blocks.at[g->outputs.at[i].block].name, block) == 0)
      print_why(c, ir_in(c, ir_node(g, g->outputs.at[i].value), 0));
}

/* Returns 1 if the value was shown, 0 after a message, -1 if no train block has this value. */
static int show_value(Repl *r, const char *text, Look look)
{
  const char *kept = arena_strdup(r->arena, text);
  Compiled *typed = program_compile(r, &(Request){.dump_after = "precision", .watch = kept});
  if (!typed) return 0;
  bool found = typed->c->graph->outputs.n > 0, good = false;
  if (found) {
    Compiled *p = program_compile(r, &(Request){.watch = kept});
    uint32_t block;
    good = p && show_watched(r, p, look, &block);
    if (good && look < LOOK_picture) explain_watched(typed->c, p->c->program->blocks[block].name);
    compiled_drop(p);
  } else if (typed->c->answer) {
    good = answer_print(r, typed->c, look);
    found = true;
  }
  compiled_drop(typed);
  return found ? good : -1;
}

/* Returns the eval block that has this metric; NULL: none has it. */
static const ampc_block *eval_of_metric(const ampc_program *p, const char *name)
{
  for (uint32_t i = 0; i < p->n_blocks; i++)
    for (uint32_t k = 0; p->blocks[i].kind == AMPC_EVAL && k < p->blocks[i].n_metrics; k++)
      if (strcmp(p->metrics[p->blocks[i].first_metric + k].name, name) == 0) return &p->blocks[i];
  return NULL;
}

bool is_data(const Repl *r, const char *text)
{
  const Ast *ast = r->latest->c->ast;
  for (uint32_t i = 0; i < ast->n; i++)
    for (uint32_t k = 0; ast->at[i]->kind == DECL_train && k < ast->at[i]->as.run.names.n; k++)
      if (is_name(text, name_size(text), ast->at[i]->as.run.names.at[k].text)) return true;
  return false;
}

/* Shows a layer or parameter by the end of its name. */
static bool show_end(Repl *r, const char *name, Look look)
{
  const ampc_param *q = find_named(r->latest->c->program, name);
  if (q) return show_param(r, q->path, look);
  int shown = show_value(r, name, look);
  return shown < 0 ? repl_error(r, "the next step does not compute %s", name) : shown == 1;
}

/* Shows a parameter, a value of the train block, or an expression of the session. If a name is
 * several of these, the first kind in this order is shown. */
static bool show(Repl *r, const char *arg, Look look)
{
  const char *ambiguous;
  if (!*arg) return repl_error(r, "expected a name or an expression, as in :show fc1.weight");
  Compiled *latest = program_latest(r);
  if (!latest) return false;
  if (find_param(latest->c->program, arg)) return show_param(r, arg, look);
  bool data = is_data(r, arg), alone = data && !arg[name_size(arg)];
  if (look == LOOK_range && data) look = look_of_data(arg);
  /* Brackets make an expression of the name. Then the step has no updates, which data do not need,
   * and nothing that only these need. */
  int shown = show_value(r, alone ? arena_printf(r->arena, "(%s)", arg) : arg, look);
  if (shown >= 0) return shown == 1;
  const char *name = layer_find(r, arg, &ambiguous);
  const ampc_block *eval = eval_of_metric(latest->c->program, arg);
  if ((eval || name || ambiguous) && !value_compiles(r, arg)) {
    if (name) return show_end(r, name, look);
    if (eval)
      return repl_error(r, "`%s` is a metric of block %s; :eval computes it", arg, eval->name);
    return repl_error(r, "%s is ambiguous: %s", arg, ambiguous);
  }
  return value_show(r, arg, look);
}

bool command_show(Repl *r, const char *arg)
{
  return show(r, arg, LOOK_range);
}

bool command_hist(Repl *r, const char *arg)
{
  return show(r, arg, LOOK_bars);
}

bool command_image(Repl *r, const char *arg)
{
  return show(r, arg, LOOK_picture);
}

/* ---- gradients ---- */

/* Whether the command with this label reads the complete gradients of the optimizer. */
static bool is_looked_at(Compile *c, const char *label, int optimizer)
{
  const Graph *g = c->graph;
  for (uint32_t i = 1; i < g->groups.n; i++) {
    const Node *n = ir_node(g, g->groups.at[i].anchor);
    uint32_t at;
    bool looks = op_has(n, T_effect) && !op_has(n, T_running) &&
                 attr_find(op_of(n), "optimizer", &at) && n->attr[at].i == optimizer;
    if (looks && strcmp(command_of(g, i)->name, label) == 0) return true;
  }
  return false;
}

/* Makes a copy of the program in which the steps of the block end before the optimizer begins. If
 * the optimizer is in any variant, it is in the one where all `every` fire. False: the block does
 * not train with the optimizer. */
static bool cut_steps(Compile *c, uint32_t block, int optimizer, ampc_program *out)
{
  const ampc_program *p = c->program;
  ampc_block *blocks = arena_array(c->arena, ampc_block, p->n_blocks + 1);
  memcpy(blocks, p->blocks, p->n_blocks * sizeof *blocks);
  *out = *p;
  out->blocks = blocks;
  bool cut = false;
  for (uint32_t v = 0; v < blocks[block].n_variants; v++) {
    ampc_step *step = &blocks[block].variant[v];
    uint32_t i = 0;
    while (i < step->n_commands && !is_looked_at(c, step->commands[i].label, optimizer)) i++;
    cut = cut || i < step->n_commands;
    step->n_commands = i;
  }
  return cut;
}

/* Cuts the program before the first optimizer that trains parameter q in the block. Returns q, or
 * the share of q that has the gradients of that optimizer. NULL: the block does not train q. */
static const ampc_param *cut_program(Compile *c, uint32_t block, const ampc_param *q,
                                     ampc_program *out)
{
  const ampc_program *p = c->program;
  if (cut_steps(c, block, q->optimizer, out)) return q;
  for (uint32_t i = 0; i < p->n_shares; i++)
    if (strcmp(p->shares[i].path, q->path) == 0 && cut_steps(c, block, p->shares[i].optimizer, out))
      return &p->shares[i];
  return NULL;
}

/* Prints the gradient that the optimizer will use. In memory it is still multiplied by the loss
 * scale. */
static bool show_gradient(Repl *r, ampc_runtime *twin, const ampc_param *q)
{
  ampc_state state;
  HostTensor t;
  double sum = 0;
  if (!repl_check(r, ampc_get_state(twin, &state)) ||
      !repl_check(r, tensor_read_param(twin, q, AMPC_GRAD, &t)))
    return false;
  for (int64_t i = 0; i < t.elements; i++) {
    t.at[i] /= (double)state.scale;
    sum += t.at[i] * t.at[i];
  }
  tensor_print(&t);
  tensor_print_range(&t);
  printf("norm %.5g", sqrt(sum));
  if (state.scale != 1) printf("; divided by the loss scale %g", (double)state.scale);
  putchar('\n');
  free(t.at);
  return true;
}

/* Runs :grad: a twin runs a step that ends before the optimizer begins. */
bool command_grad(Repl *r, const char *arg)
{
  uint32_t block;
  if (!*arg) return repl_error(r, ":grad needs a parameter, as in :grad fc1.weight");
  if (!live_ready(r)) return false;
  Compile *c = r->live->c;
  const char *ambiguous, *name = layer_find(r, arg, &ambiguous);
  const ampc_param *q = find_param(c->program, arg);
  if (!q && name) q = find_named(c->program, name);
  if (!q && ambiguous) return repl_error(r, "%s is ambiguous: %s", arg, ambiguous);
  if (!q) return repl_error(r, "no parameter %s; :params lists them", arg);
  if (q->buffer || q->optimizer < 0)
    return repl_error(r, "%s has no gradient: %s", arg,
                      q->buffer && !q->fixed ? "it is a buffer" : "it is not trained");
  if (!train_block(r, c->program, &block)) return repl_error(r, "the program has no train block");
  ampc_program cut;
  if (!(q = cut_program(c, block, q, &cut)))
    return repl_error(r, "block %s does not train %s", c->program->blocks[block].name, arg);
  ampc_runtime *twin = NULL;
  int64_t samples;
  bool good = repl_check(r, live_twin(r, r->live, &cut, &twin)) &&
              repl_check(r, live_try_batch(r, twin, block, &samples)) && show_gradient(r, twin, q);
  ampc_free(twin);
  return good;
}
