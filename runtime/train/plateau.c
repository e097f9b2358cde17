/* Lowers settings when a metric stops improving, as torch.optim.lr_scheduler.ReduceLROnPlateau.
 * Each evaluation of the metric's block is one call of its step(). Checkpoints store the state of a
 * plateau and the current value of its setting, so a resumed run lowers the setting at the same
 * step as an uninterrupted run. If a resumed run repeats an evaluation, it counts once. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "judge.h"

/* Whether the value is an improvement. A value that is not finite never is. */
static bool is_better(const ampc_plateau *p, const PlateauState *s, double value)
{
  if (!isfinite(value) || !s->found) return isfinite(value);
  if (p->absolute)
    return p->highest ? value > s->best + p->threshold : value < s->best - p->threshold;
  return p->highest ? value > s->best * (p->threshold + 1) : value < s->best * (1 - p->threshold);
}

/* Returns the length of "opt.lr" in the setting "opt.lr.start". */
static int name_length(const char *setting)
{
  const char *dot = strrchr(setting, '.');
  return dot ? (int)(dot - setting) : (int)strlen(setting);
}

static void tell_lowered(const ampc_program *p, const ampc_plateau *plateau, const PlateauState *s,
                         double value, ampc_tell *tell, void *to)
{
  const char *name = p->settings[plateau->setting].name;
  const char *metric = p->metrics[plateau->metric].name;
  char line[256];
  int n = snprintf(line, sizeof line, "%.*s is %.6g after step %lld", name_length(name), name,
                   value, (long long)s->step);
  if (s->found && n < (int)sizeof line)
    snprintf(line + n, sizeof line - (size_t)n, ": no %s better than %.6g in %lld evaluation%s",
             metric, s->best, (long long)plateau->patience + 1, plateau->patience ? "s" : "");
  tell(to, false, line);
}

static ampc_status lower(ampc_runtime *rt, const ampc_plateau *p, const PlateauState *s,
                         ampc_tell *tell, void *to)
{
  float now;
  ampc_status status = runtime_read_setting(rt, p->setting, &now);
  if (status) return status;
  double next = fmax((double)now * p->factor, p->least);
  if ((double)now - next <= p->eps) return AMPC_OK;
  status = runtime_write_setting(rt, p->setting, next);
  if (!status) tell_lowered(rt->program, p, s, next, tell, to);
  return status;
}

static ampc_status count(ampc_runtime *rt, const ampc_plateau *p, PlateauState *s, double value,
                         ampc_tell *tell, void *to)
{
  if (is_better(p, s, value)) {
    s->found = true;
    s->best = value;
    s->bad = 0;
  } else {
    s->bad++;
  }
  if (s->cooling > 0) {
    s->cooling--;
    s->bad = 0;
  }
  if (s->bad <= p->patience) return AMPC_OK;
  s->cooling = p->cooldown;
  s->bad = 0;
  return lower(rt, p, s, tell, to);
}

static bool is_of(const ampc_plateau *p, const ampc_block *b)
{
  return p->metric >= b->first_metric && p->metric - b->first_metric < b->n_metrics;
}

static bool is_counted(const PlateauState *s, int64_t step)
{
  return s->any && s->step == step;
}

bool plateau_waits_for(const ampc_runtime *rt, uint32_t block, int64_t step)
{
  const ampc_program *p = rt->program;
  bool any = false;
  for (uint32_t i = 0; i < p->n_plateaus; i++)
    any |= is_of(&p->plateaus[i], &p->blocks[block]) && !is_counted(&rt->plateau[i], step);
  return any;
}

ampc_status plateau_note(ampc_runtime *rt, uint32_t block, int64_t step, const double *values,
                         ampc_tell *tell, void *to)
{
  const ampc_program *p = rt->program;
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < p->n_plateaus && !status; i++) {
    const ampc_plateau *plateau = &p->plateaus[i];
    PlateauState *s = &rt->plateau[i];
    if (!is_of(plateau, &p->blocks[block]) || is_counted(s, step)) continue;
    if (!s->any) {
      float start;
      status = runtime_read_setting(rt, plateau->setting, &start);
      s->start = (double)start;
    }
    s->any = true;
    s->step = step;
    if (!status) status = count(rt, plateau, s, values[plateau->metric], tell, to);
  }
  return status;
}
