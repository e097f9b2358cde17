/* Prints a profile: for each block that ran a sentence, and for train blocks tables of commands and
 * their sums, the longest first. */
#include <string.h>
#include "profile.h"

enum { USUAL_ROWS = 12, LINE_ROOM = 31 };

static double share_of(double us, const ProfileBlock *b)
{
  return b->us > 0 ? 100 * us / b->us : 0;
}

static const char *limit_name(const ProfileRow *r)
{
  return r->memory < 0 ? "-" : r->memory < r->arithmetic ? "FLOPs" : "memory";
}

static void put_commands(const Measured *m, const ProfileBlock *b, Table *t)
{
  t->columns[t->key].title = "command";
  for (const ProfileRow *r = m->rows + b->first; r < m->rows + b->first + b->n; r++)
    TABLE_ROW(t, r->us, {r->row->name}, {inspect_line_number(m->in, r->row)}, {r->work},
              {r->row->types}, {r->row->shape}, {.amount = -1}, {.amount = r->us},
              {.amount = share_of(r->us, b)}, {.amount = r->predicted},
              {.amount = profile_limit(r)}, {limit_name(r)}, {.amount = profile_idle(m, r)});
  table_put(t);
}

/* Returns "16: h = relu(fc1(x))" for a line, cut to LINE_ROOM bytes. */
static const char *sum_text(const Measured *m, const ProfileSum *s, SumBy by)
{
  if (by != BY_LINE) return s->name;
  if (!s->first->place.source) return "(no line)";
  const char *source = inspect_line_text(m->in, s->first->place);
  const char *text = arena_printf(m->in->c->arena, "%s: %s", s->name, source);
  if (strlen(text) <= LINE_ROOM) return text;
  return arena_printf(m->in->c->arena, "%.*s..", LINE_ROOM - 2, text);
}

static void put_sums(const Measured *m, const ProfileBlock *b, SumBy by, Table *t)
{
  ProfileSums sums = profile_sums(m, b, by);
  t->columns[t->key].title = sum_names[by];
  for (uint32_t i = 0; i < sums.n; i++) {
    const ProfileSum *s = &sums.at[i];
    TABLE_ROW(t, s->us, {sum_text(m, s, by)}, {"-"}, {"-"}, {"-"}, {"-"},
              {.amount = by == BY_LINE ? -1 : (double)s->commands}, {.amount = s->us},
              {.amount = share_of(s->us, b)}, {.amount = s->predicted}, {.amount = s->limit}, {"-"},
              {.amount = s->idle});
  }
  text_puts(t->out, "\n");
  table_put(t);
}

/* Says how long a run of the block's step takes, and what the training loop does beside it. */
static void say_block(const Measured *m, const ProfileBlock *b, Table *t)
{
  double predicted = 0, own = b->step_us - (m->threads ? b->us : b->wait_us);
  for (uint32_t i = b->first; i < b->first + b->n; i++) predicted += m->rows[i].predicted;
  const char *model =
      m->gpu ? arena_printf(t->arena, ", predicted %s", time_text(t->arena, predicted)) : "";
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
  table_say(t, 2, "\ntime: measured, the mean of the runs");
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
  Table t;
  TableView view = m->in->c->options.view;
  if (!view.top) view.top = view.wide ? UINT32_MAX : USUAL_ROWS; /* --top sorts the rows */
  table_open(&t, m->in->c->arena, NULL, &view,
             "command:key<28|line:number!4|work:!5|types:!8|shape:!9|commands:count!6|time:time~|"
             "of step:share~|predicted:time!1|limit:time~!3|limited by:!7|idle:time~!2");
  say_steps(m, &t);
  for (const ProfileBlock *b = m->blocks; b < m->blocks + m->n_blocks; b++) {
    say_block(m, b, &t);
    if (m->in->c->graph->blocks.at[b->block].kind != AMPC_TRAIN) continue;
    put_commands(m, b, &t);
    for (SumBy by = 0; by < SUM_BY_COUNT; by++) put_sums(m, b, by, &t);
  }
  explain_columns(m, &t);
  table_close(&t);
}
