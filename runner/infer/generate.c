/* amp infer --generate: the loop that draws and prints tokens. */
#include "generate.h"
#include <unistd.h>
#include "common/clock.h"
#include "text_model.h"
#include "text_out.h"

enum { BYTES = 256 };

static ampc_status check_prompt(const TextModel *m, const PromptText *prompt)
{
  const char *name = m->program->blocks[0].call;
  if (!prompt->numbers && !prompt->tokenizer && m->vocabulary > BYTES)
    return ampc_fail(AMPC_BAD_USAGE,
                     "--generate: infer `%s` has a vocabulary of %lld tokens, so a prompt cannot "
                     "be bytes of text: --tokenizer FILE makes tokens of it; or give token numbers "
                     "in a file, --prompt-file FILE.bin",
                     name, (long long)m->vocabulary);
  for (int64_t i = 0; i < prompt->n; i++)
    if (prompt->at[i] >= m->vocabulary)
      return ampc_fail(
          AMPC_BAD_USAGE,
          "--generate: %s %lld of the prompt is %lld; infer `%s` takes numbers below %lld",
          prompt->numbers || prompt->tokenizer ? "token" : "byte", (long long)i,
          (long long)prompt->at[i], name, (long long)m->vocabulary);
  if (m->result->rank == 3 || prompt->n >= m->most || text_model_is_decoder(m)) return AMPC_OK;
  return ampc_fail(
      AMPC_BAD_USAGE,
      "--generate: the prompt has %lld tokens; infer `%s` reads %lld and returns the logits "
      "after the last one: give a prompt at least as long, or return the logits after all "
      "tokens, float[1, %lld, %lld]",
      (long long)prompt->n, name, (long long)m->most, (long long)m->most, (long long)m->vocabulary);
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

static void tell_times(const InferCommand *cmd, uint32_t tokens, double prompt, double taken)
{
  const int64_t n = cmd->text.n;
  if (cmd->quiet) return;
  fprintf(stderr, "prompt: %lld tokens in %.2f s; ", (long long)n, prompt);
  fprintf(stderr, "%u tokens in %.2f s (%.1f a second)\n", tokens, taken,
          tokens / (taken > 0 ? taken : 1e-9));
}

ampc_status generate_run(ampc_runtime *rt, const InferCommand *cmd)
{
  const PromptText *prompt = &cmd->text;
  TextModel m;
  TextOut w = {.to = stdout,
               .tokenizer = prompt->tokenizer,
               .numbers = prompt->numbers,
               .terminal = isatty(STDOUT_FILENO),
               .first = prompt->chat ? prompt->n : 0,
               .stop = cmd->stop,
               .n_stops = cmd->n_stops};
  w.line = w.terminal || prompt->numbers || prompt->chat;
  ampc_status status = text_model_open(&m, "--generate", rt);
  if (!status) status = check_prompt(&m, prompt);
  if (!status) status = text_model_add(&m, prompt->at, prompt->n);
  if (!status) status = text_out_put(&w, m.token, m.n, false);
  double begun = seconds_now(), first = begun;
  if (!status) tell_length(&m, cmd);
  uint32_t i = 0;
  for (bool end = false; !end && !w.stopped && !status; i++) {
    status = text_model_read(&m);
    if (i == 0) first = seconds_now();
    if (!status) status = text_model_next(&m, &cmd->sampling, m.program->seed, i);
    bool stop = !status && m.token[m.n - 1] == prompt->stop;
    end = stop || i + 1 == cmd->generate;
    if (!status) status = text_out_put(&w, m.token, m.n, end);
  }
  if (!status) tell_times(cmd, i, first - begun, seconds_now() - first);
  text_model_close(&m);
  return status;
}
