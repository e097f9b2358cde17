/* Prints a profile: for each block that ran a sentence, and for train blocks tables of commands and
 * their sums, the longest first. */
#include <string.h>
#include "profile.h"

enum { USUAL_ROWS = 12 };

static void put_commands(const Measured *m, const ProfileBlock *b, FactTable *t)
{
  FactRows rows = {0};
  Facts all = inspect_facts(m->in, b->block, BY_NONE, &rows);
  t->of.columns[t->of.key].title = "command";
  for (Facts *f = rows.at; f < rows.at + rows.n; f++) {
    f->commands = -1;
    facts_shares(f, &all);
    facts_row(t, f->measured_us, f, NULL);
  }
  table_put(&t->of);
}

/* Which line, types and shape the commands of a group have is left out. */
static void put_sums(const Measured *m, const ProfileBlock *b, InspectSum by, FactTable *t)
{
  FactRows rows = {0};
  Facts all = inspect_facts(m->in, b->block, by, &rows);
  facts_sort(&rows, "measured_us");
  t->of.columns[t->of.key].title = inspect_by[by].name;
  for (uint32_t i = 0; i < rows.n; i++) {
    Facts f = rows.at[i];
    f.name = inspect_group_name(t->of.arena, by, &f);
    f.where = f.work = f.types = f.shape = f.limited_by = NULL;
    if (by == BY_LINE) f.commands = -1;
    facts_shares(&f, &all);
    facts_row(t, f.measured_us, &f, NULL);
  }
  text_puts(t->of.out, "\n");
  table_put(&t->of);
}

/* Says how long a run of the block's step takes, and what the training loop does beside it. */
static void say_block(const Measured *m, const ProfileBlock *b, Table *t)
{
  FactRows rows = {0};
  Facts all = inspect_facts(m->in, b->block, BY_NONE, &rows);
  double own = b->step_us - (m->threads ? b->us : b->wait_us);
  const char *model =
      m->gpu ? arena_printf(t->arena, ", predicted %s", time_text(t->arena, all.predicted_us)) : "";
  const char *waits =
      m->threads ? "" : arena_printf(t->arena, ", waiting %s", time_text(t->arena, b->wait_us));
  table_say(t, 2, "\n%s: %s in %u commands%s", inspect_block_text(m->in, b->block),
            time_text(t->arena, b->us), b->n, model);
  table_say(t, 4, "  mean of %lld run%s; the host: loader %s, copies %s, calls %s%s",
            (long long)b->runs, b->runs == 1 ? "" : "s", time_text(t->arena, b->load_us),
            time_text(t->arena, b->upload_us), time_text(t->arena, own > 0 ? own : 0), waits);
}

static void say_steps(const Measured *m, Table *t)
{
  const ampc_program *p = m->in->c->program;
  const char *threads =
      m->threads ? arena_printf(t->arena, ", %u thread%s", m->threads, m->threads == 1 ? "" : "s")
                 : "";
  table_say(t, 2, "%s: %s on %s%s", p->source, p->precision, m->device, threads);
  if (m->plain_us > 0)
    table_say(t, 2, "a step takes %s; %s while commands are timed (medians of %u step%s each)",
              time_text(t->arena, m->plain_us), time_text(t->arena, m->timed_us), m->steps,
              m->steps == 1 ? "" : "s");
}

static void explain_columns(const Measured *m, Table *t)
{
  table_say(t, 2, "\nmeasured: the mean of the runs");
  if (m->gpu) {
    table_say(t, 2, "predicted: as by ampc --explain, for a machine that does nothing else");
    table_say(t, 2,
              "limit: the time for the operands in memory, each once, or for the FLOPs at the peak "
              "rate, whichever is longer, on %s",
              m->gpu->model);
  } else {
    table_say(t, 2, "predicted: nothing, because amp has no figures of this GPU");
  }
  if (m->threads) table_say(t, 2, "idle: the mean time in which a thread does not compute");
}

void profile_print(const Measured *m)
{
  FactTable t;
  TableView view = m->in->c->options.view;
  if (!view.top) view.top = view.wide ? UINT32_MAX : USUAL_ROWS; /* --top sorts the rows */
  facts_open(&t, m->in->c->arena, NULL, &view,
             "name<28 where!4 work!5 types!8 shape!9 commands!6 measured_us~ of_measured~ "
             "predicted_us!1 limit_us~!3 limited_by!7 idle_us~!2",
             NULL, 0);
  say_steps(m, &t.of);
  for (const ProfileBlock *b = m->blocks; b < m->blocks + m->n_blocks; b++) {
    say_block(m, b, &t.of);
    if (m->in->c->graph->blocks.at[b->block].kind != AMPC_TRAIN) continue;
    put_commands(m, b, &t);
    for (InspectSum by = BY_WORK; by <= BY_LINE; by++) put_sums(m, b, by, &t);
  }
  explain_columns(m, &t.of);
  table_close(&t.of);
}
