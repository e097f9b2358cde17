/* Prints the tables of `amp inspect`: the commands of each block, or with --by their groups. */
#include <string.h>
#include "compiler/cost/gpu.h"
#include "inspect.h"

const char *inspect_usage_text(Arena *arena, const Usage *u)
{
  Text t = text_new(arena);
  if (!u->known) return "-";
  text_printf(&t, "%d", u->registers);
  if (u->shared) text_printf(&t, ", %s", bytes_text(arena, u->shared));
  if (u->spilled) text_printf(&t, ", %s spilled", bytes_text(arena, u->spilled));
  return t.at;
}

/* ---- columns ---- */

/* Returns the columns. If they do not fit, those that the user can most easily do without are
 * dropped first (numbers after `!`). Column template is kept if it names libraries. `@`: the usage
 * on each architecture. */
static const char *columns_of(const Inspection *in, const InspectView *view)
{
  bool libraries = false;
  for (uint32_t i = 0; i < in->rows.n; i++) libraries |= in->rows.at[i].facts.library != NULL;
  if (view->by != BY_NONE)
    return arena_printf(in->c->arena, "name<%s %s",
                        view->by == BY_KERNEL ? "20 types!4 shape!5 times!2"
                                              : "12 commands!2 backward_commands!3",
                        view->gpu ? "launches!1 bytes instructions!3 predicted_us of_predicted "
                                    "measured_us"
                                  : "read written of_bytes!1 flops");
  if (view->gpu)
    return "name<24 where!4 types!7<11 shape!8 threads!5 instructions_per_element!3 bytes "
           "l2_bytes!6 predicted_us measured_us bound roof!2 ops!9<16 why!1<18";
  return arena_printf(in->c->arena,
                      "name<26 where!1 types!2<14 shape!4 launch!7 frame%s<12 read written flops "
                      "@!3<12 ops!5<16",
                      libraries ? "" : "!6");
}

/* ---- rows ---- */

static void add_commands(const Inspection *in, uint16_t block, bool predicted, FactTable *t)
{
  for (uint32_t i = 0; i < in->rows.n; i++) {
    const CommandRow *r = &in->rows.at[i];
    const char *usage[INSPECT_ARCHS];
    if (r->block != block) continue;
    for (uint32_t k = 0; k < in->n_archs; k++)
      usage[k] = inspect_usage_text(t->of.arena, &r->usage[k]);
    facts_row(t, predicted ? r->facts.predicted_us : r->facts.bytes, &r->facts, usage);
  }
}

static void add_groups(const FactRows *groups, InspectSum by, const Facts *all, FactTable *t)
{
  t->of.sorted = all->predicted_us >= 0;
  for (uint32_t i = 0; i < groups->n; i++) {
    Facts group = groups->at[i];
    group.name = inspect_group_name(t->of.arena, by, &group);
    facts_shares(&group, all);
    facts_row(t, t->of.sorted ? group.predicted_us : group.bytes, &group, NULL);
  }
}

/* ---- sums ---- */

/* The sum of FLOPs leaves out commands whose FLOPs are not counted. */
static void say_sums(const Facts *all, Table *t)
{
  table_say(t, 2, "  %.0f commands: %s read, %s written, %s FLOPs", all->commands,
            bytes_text(t->arena, all->read), bytes_text(t->arena, all->written),
            count_text(t->arena, all->flops > 0 ? all->flops : 0));
}

static void say_predicted(const Facts *all, Table *t)
{
  Arena *a = t->arena;
  bool measured = all->measured_us > 0;
  table_say(t, 2, "  %.0f commands, %.0f nodes of a CUDA graph: %s moved (%s unavoidable)",
            all->commands, all->launches, bytes_text(a, all->bytes),
            bytes_text(a, all->unavoidable));
  table_say(t, 2, "  %s instructions in our kernels; predicted time %s%s%s",
            count_text(a, all->instructions > 0 ? all->instructions : 0),
            time_text(a, all->predicted_us), measured ? ", measured " : "",
            measured ? time_text(a, all->measured_us) : "");
}

/* Prints title, rows and sums of a block that has commands. */
static void put_block(const Inspection *in, const InspectView *view, uint16_t block, FactTable *t)
{
  FactRows rows = {0};
  Facts all = inspect_facts(in, block, view->by, &rows);
  if (!rows.n) return;
  if (view->gpu) all.unavoidable = gpu_unavoidable(in, block, all.bytes);
  table_say(&t->of, 2, "\n%s", inspect_block_text(in, block));
  if (view->by != BY_NONE)
    add_groups(&rows, view->by, &all, t);
  else
    add_commands(in, block, view->gpu != NULL, t);
  table_put(&t->of);
  if (view->gpu)
    say_predicted(&all, &t->of);
  else
    say_sums(&all, &t->of);
}

/* ---- the whole ---- */

static void put_title(const Inspection *in, const InspectView *view, Table *t)
{
  Text head = text_new(t->arena);
  const ampc_program *p = in->c->program;
  const Gpu *gpu = view->gpu ? gpu_find(view->gpu->name) : NULL;
  uint32_t kernels = 0;
  for (uint32_t i = 0; i < in->rows.n; i++) kernels += in->rows.at[i].is == COMMAND_kernel;
  text_printf(&head, "%s: %s, ", p->source, p->precision);
  if (gpu)
    text_printf(&head, "predicted for %s (%s)", gpu->model, gpu->arch);
  else
    text_puts(&head, in->c->options.target);
  if (view->by != BY_NONE)
    text_printf(&head, ", by %s", inspect_by[view->by].name);
  else if (!gpu)
    text_printf(&head, ", %u commands, %u of them kernels", in->rows.n, kernels);
  for (uint32_t i = 0; i < in->n_archs && !gpu; i++)
    text_printf(&head, "%s%s", i ? ", " : "; ", in->arch[i]);
  if (in->n_archs && !gpu) text_puts(&head, ": registers, shared memory, spills");
  table_say(t, 2, "%s", head.at);
}

static void put_assumptions(const GpuRequest *request, Table *t)
{
  const Gpu *g = gpu_find(request->name);
  table_say(
      t, 0,
      "\npredicted: the largest of the times for memory, L2, issue, tensor cores and "
      "the latency of the longest warp, plus %.1f us for each node. %s: %d multiprocessors "
      "at %d MHz, %.0f of %.0f GB/s from DRAM, %.0f GB/s from L2, %.0f TFLOP/s in 16 bits, %.0f in "
      "tf32; products with a large k reach 0.83 of these, convolutions 0.67. %s",
      g->node, g->model, g->multiprocessors, g->mhz, g->dram, g->dram_peak, g->l2, g->tensor16,
      g->tensor_tf32, request->no_cudnn ? "No cuDNN: own kernels." : "With cuDNN.");
}

int inspect_table(const Inspection *in, const InspectView *view)
{
  FactTable t;
  facts_open(&t, in->c->arena, NULL, &in->c->options.view, columns_of(in, view), in->arch,
             in->n_archs);
  if (view->by != BY_NONE) t.of.columns[t.of.key].title = inspect_by[view->by].name;
  put_title(in, view, &t.of);
  for (uint32_t i = 0; i < in->c->graph->blocks.n; i++) put_block(in, view, (uint16_t)i, &t);
  if (view->gpu) put_assumptions(view->gpu, &t.of);
  if (view->note) table_say(&t.of, 0, "\n%s", view->note);
  table_close(&t.of);
  return 0;
}
