/* Settings of a program: their places in STATE; reading and writing them. */
#include <stdio.h>
#include <string.h>
#include "common/needs.h"
#include "common/number.h"
#include "runtime.h"

ampc_ref runtime_setting_place(const ampc_program *p, uint32_t i)
{
  uint32_t slots = ampc_metric_slots(p->metrics, p->n_metrics);
  return (ampc_ref){AMPC_STATE, ampc_state_setting(p->n_optimizers, slots, i)};
}

ampc_status runtime_read_setting(ampc_runtime *rt, uint32_t i, float *out)
{
  return ampc_read(rt, runtime_setting_place(rt->program, i), out, sizeof *out);
}

ampc_status runtime_write_setting(ampc_runtime *rt, uint32_t i, double number)
{
  float value = (float)number;
  return ampc_write(rt, runtime_setting_place(rt->program, i), &value, sizeof value);
}

/* Fails with a message that lists the program's settings. A long list is truncated. */
static ampc_status no_setting(const ampc_program *p, const char *setting)
{
  char names[256] = "";
  for (uint32_t i = 0; i < p->n_settings; i++) {
    size_t used = strlen(names);
    snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", p->settings[i].name);
  }
  return ampc_fail(AMPC_BAD_USAGE, "no setting `%s` in %s; it has: %s", setting, p->source,
                   p->n_settings ? names : "none");
}

ampc_status ampc_set(ampc_runtime *rt, const char *setting, double value)
{
  NEEDS(rt && setting);
  const ampc_program *p = rt->program;
  uint32_t i = 0;
  while (i < p->n_settings && strcmp(p->settings[i].name, setting) != 0) i++;
  if (i == p->n_settings) return no_setting(p, setting);
  if (!ampc_in_domain(p->settings[i].domain, value))
    return ampc_fail(AMPC_BAD_USAGE, "setting `%s` is %.9g; it must be %s", setting, value,
                     ampc_domain_text(p->settings[i].domain));
  rt->given[i] = true;
  return runtime_write_setting(rt, i, value);
}

ampc_status ampc_set_lengths(ampc_runtime *rt, const int64_t *steps)
{
  NEEDS(rt && steps);
  const ampc_program *p = rt->program;
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < p->n_settings && !status; i++) {
    int64_t n = 0;
    for (uint32_t b = 0; b < p->n_blocks && b < 64; b++)
      if (p->settings[i].steps_of >> b & 1) n += steps[b];
    if (p->settings[i].every > 1) n /= p->settings[i].every;
    if (p->settings[i].steps_of && !rt->given[i])
      status = runtime_write_setting(rt, i, n > 0 ? (double)n : 1);
  }
  return status;
}
