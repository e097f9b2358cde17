/* Runs of several ranks. All ranks go through the same steps and decide alike. The first one leads:
 * it alone prints, logs and writes checkpoints.
 *
 * What ranks decide from metrics, the scale or the loss needs no agreement, because the members
 * have exchanged these numbers. Ranks must agree on what depends on their surroundings. Signals and
 * the clock: all exchange their wishes after each step and each batch of an evaluation
 * (session_poll). Files: the first rank decides (session_choose). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/base/interrupt.h"
#include "common/clock.h"
#include "train.h"

static Ranks *ranks_of(const Session *s)
{
  return s->run.rt->members.ranks;
}

bool session_leads(const Session *s)
{
  return !ranks_of(s) || ranks_of(s)->rank == 0;
}

ampc_status session_agree(const Session *s, ampc_status status)
{
  return ranks_agree(ranks_of(s), status);
}

typedef struct Wish { /* what a rank wants after a step */
  unsigned char end, save, late;
} Wish;

ampc_status session_poll(Session *s)
{
  Ranks *r = ranks_of(s);
  Wish own = {.end = interrupt_requested(),
              .save = interrupt_take_save(),
              .late = seconds_now() >= s->deadline};
  Wish *all = r ? calloc((size_t)r->size, sizeof *all) : NULL;
  ampc_status status = AMPC_OK;
  if (r && !all) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  if (r) {
    all[r->rank] = own;
    status = ranks_gather(r, all, sizeof *all);
  }
  for (int i = 0; r && i < r->size; i++) {
    own.end |= all[i].end;
    own.save |= all[i].save;
    own.late |= all[i].late;
  }
  free(all);
  s->ending = s->ending || own.end;
  s->save_asked = s->save_asked || own.save;
  s->out_of_time = s->out_of_time || own.late;
  return status;
}

ampc_status session_choose(const Session *s, bool *choice)
{
  Ranks *r = ranks_of(s);
  if (!r) return AMPC_OK;
  char *all = calloc((size_t)r->size, 1);
  if (!all) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  all[r->rank] = *choice;
  ampc_status status = ranks_gather(r, all, 1);
  *choice = all[0];
  free(all);
  return status;
}

void session_stepped(const Session *s, double seconds)
{
  if (ranks_of(s)) ranks_step(ranks_of(s), seconds);
}

void session_busy(const Session *s)
{
  if (ranks_of(s)) ranks_busy(ranks_of(s));
}

ampc_status session_share(const Session *s, uint32_t block)
{
  const Members *m = &s->run.rt->members;
  if (m->all == 1) return AMPC_OK;
  if (!s->run.data->share)
    return ampc_fail(AMPC_BAD_USAGE, "this source of data cannot be shared out to %u ranks",
                     m->all / m->n);
  return s->run.data->share(s->run.batches[block], m->first, m->first + m->n, m->all);
}

/* ---- the same run on all ranks ---- */

enum { TEXT = 8192 };

typedef struct Facts {
  char text[TEXT];
  size_t size;
} Facts;

__attribute__((format(printf, 2, 3))) static void add(Facts *f, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  int n = vsnprintf(f->text + f->size, TEXT - f->size, format, args);
  va_end(args);
  f->size = f->size + (size_t)n < TEXT ? f->size + (size_t)n : TEXT - 1;
}

static void add_run(Facts *f, const Session *s)
{
  const ampc_program *p = s->run.program;
  const ampc_train_options *o = s->run.options;
  add(f, "%s for %s in %s\n", p->source, p->target, p->precision);
  add(f, "model %016llx\n", (unsigned long long)p->model_hash);
  add(f, "settings %s\n", p->config ? p->config : "");
  for (uint32_t i = 0; i < p->n_settings; i++) {
    float value = 0;
    runtime_read_setting(s->run.rt, i, &value);
    add(f, "%s = %.9g\n", p->settings[i].name, (double)value);
  }
  add(f, "seed %llu\nstep %lld\n", (unsigned long long)s->seed, (long long)s->run.steps);
  add(f, "--resume %s\n--save %s\n", o->resume ? o->resume : "", o->save ? o->save : "");
  add(f, "--steps %lld\n--max-time %g\n", (long long)o->steps, o->max_time);
  add(f, "--save-every %lld\n--log %lld\n", (long long)o->save_every, (long long)o->log);
  add(f, "--limit-batches %lld\n", (long long)o->limit_batches);
  add(f, "--overfit-batches %lld\n", (long long)o->overfit_batches);
  add(f, "--early-stop %lld\n--keep-last %lld\n", (long long)o->early_stop,
      (long long)o->keep_last);
  add(f, "--keep-best %lld\n", (long long)o->keep_best);
}

ampc_status session_same(const Session *s)
{
  Facts run = {.size = 0}, data = {.size = 0};
  const ampc_program *p = s->run.program;
  if (!ranks_of(s)) return AMPC_OK;
  add_run(&run, s);
  for (uint32_t i = 0; i < p->n_blocks; i++)
    if (s->run.batches[i])
      add(&data, "block %s: %lld batches\n", p->blocks[i].name,
          (long long)s->run.data->per_epoch(s->run.batches[i]));
  ampc_status status = ranks_same(ranks_of(s), "the run", run.text);
  return status ? status : ranks_same(ranks_of(s), "the data", data.text);
}
