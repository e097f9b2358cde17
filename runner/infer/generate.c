/* amp infer --generate: the loop that draws and prints tokens. */
#include "generate.h"
#include <unistd.h>
#include "common/clock.h"
#include "compiler/cli/option_table.h"
#include "runtime/base/interrupt.h"

enum { BYTES = 256 };

int generate_check(const InferCommand *cmd)
{
  static const char program[] = "amp infer";
  if (cmd->generate && !cmd->prompt && !cmd->prompt_file && !cmd->prompts)
    return usage_error(program,
                       "--generate needs a text to continue: --prompt TEXT or --prompt-file FILE, "
                       "or several: --prompts FILE");
  if (cmd->prompt && !*cmd->prompt)
    return usage_error(program, "--prompt is empty; give at least one token to continue from");
  if (cmd->batch > TEXTS_MOST)
    return usage_error(program, "--batch %u: at most %d texts grow at a time", cmd->batch,
                       TEXTS_MOST);
  return text_options_check(cmd);
}

/* If the text is longer than the context, each further token is computed from the last ones alone.
 * A decoder then computes all of these anew. */
static void tell_length(const TextModel *m, const InferCommand *cmd)
{
  int64_t all = cmd->text.n + (int64_t)cmd->generate - 1;
  if (all > m->most && !cmd->quiet)
    fprintf(
        stderr,
        "the text will have %lld tokens and infer `%s` reads at most %lld: later tokens depend on "
        "the last %lld alone%s\n",
        (long long)all, m->program->blocks[0].call, (long long)m->most, (long long)m->most,
        text_model_is_decoder(m) ? ", and take longer" : "");
}

ampc_status generate_check_model(const TextModel *m, const InferCommand *cmd)
{
  const PromptText *prompt = &cmd->text;
  const char *name = m->program->blocks[0].call;
  if (!prompt->numbers && !prompt->tokenizer && m->vocabulary > BYTES)
    return ampc_fail(AMPC_BAD_USAGE,
                     "%s: infer `%s` has a vocabulary of %lld tokens, so a prompt cannot "
                     "be bytes of text: --tokenizer FILE makes tokens of it, or the tokenizer of "
                     "text(..) in the job; or give token numbers in a file, --prompt-file FILE.bin",
                     m->what, name, (long long)m->vocabulary);
  tell_length(m, cmd);
  if (!text_model_is_decoder(m) && m->program->blocks[0].n_sizes && !cmd->quiet)
    fputs("the text is padded, so a number that depends on its length, such as 1 / S, is that of "
          "the padded text\n",
          stderr);
  if (m->result->rank == 3 || prompt->n >= m->most || text_model_is_decoder(m)) return AMPC_OK;
  return ampc_fail(
      AMPC_BAD_USAGE,
      "%s: the prompt has %lld tokens; infer `%s` reads %lld and returns the logits "
      "after the last one: give a prompt at least as long, or return the logits after all "
      "tokens, float[1, %lld, %lld]",
      m->what, (long long)prompt->n, name, (long long)m->most, (long long)m->most,
      (long long)m->vocabulary);
}

static void tell_times(int64_t read, int64_t tokens, double prompt, double taken)
{
  fprintf(stderr, "prompt: %lld tokens in %.2f s; ", (long long)read, prompt);
  fprintf(stderr, "%lld tokens in %.2f s (%.1f a second)\n", (long long)tokens, taken,
          (double)tokens / (taken > 0 ? taken : 1e-9));
}

ampc_status generate_start(Growing *g)
{
  const PromptText *prompt = &g->cmd->text;
  g->out.tokenizer = prompt->tokenizer;
  g->out.numbers = prompt->numbers;
  g->out.stop = g->cmd->stop;
  g->out.n_stops = g->cmd->n_stops;
  return text_out_put(&g->out, g->m->token, g->m->n, false);
}

ampc_status generate_draw(Growing *g)
{
  TextModel *m = g->m;
  ampc_status status = text_model_next(m, &g->cmd->sampling, m->program->seed, g->drawn++);
  if (status) return status;
  g->tokens++;
  g->cut = m->token[m->n - 1] != g->cmd->text.stop;
  g->ended = !g->cut || g->tokens == g->most || interrupt_requested();
  status = text_out_put(&g->out, m->token, m->n, g->ended);
  if (g->out.stopped) g->cut = false, g->ended = true;
  return status;
}

ampc_status generate_tokens(TextModel *m, const InferCommand *cmd, int64_t first, int64_t most,
                            bool timed, uint64_t *drawn, bool *cut)
{
  const int64_t read = m->n - m->done;
  const bool terminal = isatty(STDOUT_FILENO);
  const bool line = terminal || cmd->text.numbers || cmd->text.chat || cmd->line;
  Growing g = {.m = m, .cmd = cmd, .most = most, .drawn = *drawn};
  g.out = (TextOut){.to = stdout, .terminal = terminal, .line = line, .first = first};
  const double begun = seconds_now();
  ampc_status status = text_model_read(m); /* a text that it refuses is not printed */
  const double after = seconds_now();
  if (!status) status = generate_start(&g);
  while (!g.ended && !status) {
    status = generate_draw(&g);
    if (!g.ended && !status) status = text_model_read(m);
  }
  *drawn = g.drawn;
  *cut = g.cut;
  if (!status && timed) tell_times(read, g.tokens, after - begun, seconds_now() - after);
  return status;
}

ampc_status generate_run(ampc_runtime *rt, const InferCommand *cmd)
{
  const PromptText *prompt = &cmd->text;
  TextModel m;
  uint64_t drawn = 0;
  bool cut;
  if (cmd->prompts) return batch_run(rt, cmd);
  ampc_status status = text_model_open(&m, cmd->what, rt);
  if (!status) status = generate_check_model(&m, cmd);
  if (!status) status = text_model_add(&m, prompt->at, prompt->n);
  if (!status)
    status = generate_tokens(&m, cmd, prompt->chat ? prompt->n : 0, cmd->generate, !cmd->quiet,
                             &drawn, &cut);
  text_model_close(&m);
  return status;
}
