/* Options of the verbs that write text: the tokenizer, the template, and how tokens are drawn. */
#include <stddef.h>
#include <string.h>
#include "infer.h"

static int read_stop(const OptionGiven *given)
{
  InferCommand *cmd = given->into;
  uint32_t n = cmd->n_stops++;
  if (!*given->value) return option_wrong(given, "expected a text of at least one byte");
  cmd->stop = arena_grow(given->arena, cmd->stop, n * sizeof *cmd->stop,
                         (n + 1) * sizeof *cmd->stop, _Alignof(const char *));
  cmd->stop[n] = given->value;
  return OPTIONS_GO_ON;
}

#define FIELD(name) .field = offsetof(InferCommand, name)

const OptionRow text_options[] = {
    {"tokenizer", 0, "FILE",
     "text is for this tokenizer.json or .model (default: that of the job's text or "
     "jsonl)",
     .kind = OPTION_text, FIELD(tokenizer), .with = "generate"},
    {"template", 0, "TEXT", "another template, as jsonl reads it", .kind = OPTION_text,
     FIELD(template), .with = "chat"},
    {"temperature", 0, "T",
     "below 1 favours probable tokens; 0 always takes the most probable one (default 1)",
     .kind = OPTION_real, FIELD(sampling.temperature), .domain = AMPC_NOT_NEGATIVE,
     .expected = "0 or more", .with = "generate"},
    {"top-k", 0, "K", "draw among the K most probable tokens (default: all)", .kind = OPTION_number,
     FIELD(sampling.top_k), .least = 1, .with = "generate"},
    {"top-p", 0, "P",
     "draw among the smallest set of most probable tokens that sum to P or more (default 1: all)",
     .kind = OPTION_real, FIELD(sampling.top_p), .domain = AMPC_UNIT, .with = "generate"},
    {"min-p", 0, "P",
     "draw among tokens at least P times as probable as the most probable one (default 0: all)",
     .kind = OPTION_real, FIELD(sampling.min_p), .domain = AMPC_UNIT, .with = "generate"},
    {"repetition-penalty", 0, "R",
     "above 1 makes tokens of the prompt and of the text so far less probable (default 1)",
     .kind = OPTION_real, FIELD(sampling.repetition_penalty), .domain = AMPC_POSITIVE,
     .with = "generate"},
    {"stop", 0, "TEXT", "end before this text or at this special token; may be given several times",
     .kind = OPTION_call, .read = read_stop, .with = "generate"},
    {0}};

void text_options_check(const InferCommand *cmd)
{
  const Sampling *s = &cmd->sampling;
  if (s->temperature == 0 && (s->top_k || s->top_p < 1 || s->min_p > 0))
    fprintf(stderr,
            "warning:%s%s%s: no effect with --temperature 0, which always takes the most "
            "probable token\n",
            s->top_k ? " --top-k" : "", s->top_p < 1 ? " --top-p" : "",
            s->min_p > 0 ? " --min-p" : "");
}
