/* amp infer --generate: the loop that draws and prints tokens. */
#include "generate.h"
#include <unistd.h>
#include "common/clock.h"
#include "compiler/cli/option_table.h"
#include "runtime/base/interrupt.h"
#include "text_out.h"

enum { BYTES = 256 };

int generate_check(const InferCommand *cmd)
{
  static const char program[] = "amp infer";
  if (cmd->generate && !cmd->prompt && !cmd->prompt_file)
    return usage_error(program,
                       "--generate needs a text to continue: --prompt TEXT or --prompt-file FILE");
  if (cmd->prompt && !*cmd->prompt)
    return usage_error(program, "--prompt is empty; give at least one token to continue from");
  return text_options_check(cmd);
}

static ampc_status check_prompt(const TextModel *m, const PromptText *prompt)
{
  const char *name = m->program->blocks[0].call;
  if (!prompt->numbers && !prompt->tokenizer && m->vocabulary > BYTES)
    return ampc_fail(AMPC_BAD_USAGE,
                     "%s: infer `%s` has a vocabulary of %lld tokens, so a prompt cannot "
                     "be bytes of text: --tokenizer FILE makes tokens of it, or the tokenizer of "
                     "text(..) in the job; or give token numbers in a file, --prompt-file FILE.bin",
                     m->what, name, (long long)m->vocabulary);
  if (m->result->rank == 3 || prompt->n >= m->most || text_model_is_decoder(m)) return AMPC_OK;
  return ampc_fail(
      AMPC_BAD_USAGE,
      "%s: the prompt has %lld tokens; infer `%s` reads %lld and returns the logits "
      "after the last one: give a prompt at least as long, or return the logits after all "
      "tokens, float[1, %lld, %lld]",
      m->what, (long long)prompt->n, name, (long long)m->most, (long long)m->most,
      (long long)m->vocabulary);
}

/* If the text is longer than the context, each further token is computed from the last ones alone.
 * A decoder then computes all of these anew. */
static void tell_length(const TextModel *m, const InferCommand *cmd)
{
  int64_t all = m->n + (int64_t)cmd->generate - 1;
  if (all > m->most && !cmd->quiet)
    fprintf(
        stderr,
        "the text will have %lld tokens and infer `%s` reads at most %lld: later tokens depend on "
        "the last %lld alone%s\n",
        (long long)all, m->program->blocks[0].call, (long long)m->most, (long long)m->most,
        text_model_is_decoder(m) ? ", and take longer" : "");
}

static void tell_times(int64_t read, int64_t tokens, double prompt, double taken)
{
  fprintf(stderr, "prompt: %lld tokens in %.2f s; ", (long long)read, prompt);
  fprintf(stderr, "%lld tokens in %.2f s (%.1f a second)\n", (long long)tokens, taken,
          (double)tokens / (taken > 0 ? taken : 1e-9));
}

ampc_status generate_tokens(TextModel *m, const InferCommand *cmd, int64_t first, int64_t most,
                            bool timed, uint64_t *drawn, bool *cut)
{
  const PromptText *prompt = &cmd->text;
  const int64_t read = m->n - m->done;
  TextOut w = {.to = stdout,
               .tokenizer = prompt->tokenizer,
               .numbers = prompt->numbers,
               .terminal = isatty(STDOUT_FILENO),
               .first = first,
               .stop = cmd->stop,
               .n_stops = cmd->n_stops};
  w.line = w.terminal || prompt->numbers || prompt->chat || cmd->line;
  ampc_status status = text_out_put(&w, m->token, m->n, false);
  double begun = seconds_now(), after = begun;
  int64_t i = 0;
  *cut = true;
  for (bool end = false; !end && !w.stopped && !status; i++) {
    status = text_model_read(m);
    if (i == 0) after = seconds_now();
    if (!status) status = text_model_next(m, &cmd->sampling, m->program->seed, (*drawn)++);
    if (!status && m->token[m->n - 1] == prompt->stop) *cut = false;
    end = !*cut || i + 1 == most || interrupt_requested();
    if (!status) status = text_out_put(&w, m->token, m->n, end);
  }
  if (w.stopped) *cut = false;
  if (!status && timed) tell_times(read, i, after - begun, seconds_now() - after);
  return status;
}

ampc_status generate_run(ampc_runtime *rt, const InferCommand *cmd)
{
  const PromptText *prompt = &cmd->text;
  TextModel m;
  uint64_t drawn = 0;
  bool cut;
  ampc_status status = text_model_open(&m, cmd->what, rt);
  if (!status) status = check_prompt(&m, prompt);
  if (!status) status = text_model_add(&m, prompt->at, prompt->n);
  if (!status) tell_length(&m, cmd);
  if (!status)
    status = generate_tokens(&m, cmd, prompt->chat ? prompt->n : 0, cmd->generate, !cmd->quiet,
                             &drawn, &cut);
  text_model_close(&m);
  return status;
}
