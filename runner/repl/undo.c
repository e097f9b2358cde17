/* :undo takes back the last change of the program: a typed declaration or statement, or a setting.
 * The state of training is not taken back. */
#include "commands.h"
#include "runtime/runtime.h"
#include <stdio.h>
#include <string.h>

Assignment *assignments_copy(Arena *arena, const Assignment *from, uint32_t n)
{
  Assignment *to = arena_array(arena, Assignment, n + 1);
  for (uint32_t i = 0; i < n; i++) to[i] = from[i];
  return to;
}

/* Returns the first line of an input, at most 60 characters of it. */
const char *input_shown(Repl *r, const Part *input)
{
  enum { SHOWN = 60 };
  size_t line = strcspn(input->text, "\n"), n = line < SHOWN ? line : SHOWN;
  while (n && n < line && ((unsigned char)input->text[n] & 0xc0) == 0x80) n--;
  return arena_printf(r->arena, "%s %.*s%s", input->name, (int)n, input->text,
                      n < input->size ? " .." : "");
}

Past past_of(Repl *r, const char *change)
{
  Past past = {.change = change, .options = r->options};
  past.declared = r->declared.n;
  past.said = r->said.n;
  past.options.consts = assignments_copy(r->arena, r->options.consts, r->options.n_consts);
  past.options.settings = assignments_copy(r->arena, r->options.settings, r->options.n_settings);
  for (uint32_t i = 0; i < r->sets.n; i++) vec_push(r->arena, &past.sets, r->sets.at[i]);
  return past;
}

void past_restore(Repl *r, const Past *past)
{
  r->options = past->options;
  r->sets = past->sets;
  r->declared.n = past->declared;
  r->said.n = past->said;
}

/* Writes back the number that :set replaced. A plateau may have lowered it, so it need be neither
 * in r->sets nor in the job. */
static ampc_status write_setting(Repl *r, const Past *past)
{
  uint32_t i;
  if (!past->key || !r->rt || !setting_index(ampc_program_of(r->rt), past->key, &i)) return AMPC_OK;
  return runtime_write_setting(r->rt, i, (double)past->value);
}

bool command_undo(Repl *r, const char *arg)
{
  (void)arg;
  if (!r->pasts.n) return repl_error(r, "there is no input to take back");
  const Past *past = &r->pasts.at[r->pasts.n - 1];
  if (!repl_check(r, write_setting(r, past))) return false;
  r->pasts.n--;
  past_restore(r, past);
  program_forget(r);
  printf("took back %s\n", arena_shown(r->arena, past->change, ""));
  return program_latest(r) != NULL;
}
