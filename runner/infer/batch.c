/* amp infer --prompts: continues the prompts of a file, several at a time. A text that ends gives
 * its place to the next prompt. The random numbers of a text depend on the number of its prompt
 * alone, not on its place. Results are written in the order of the prompts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/bytes.h"
#include "common/clock.h"
#include "compiler/base/json.h"
#include "generate.h"

enum { PLACES = 8, DRAWS = 32 }; /* DRAWS: bits of the number of a draw within a text */

typedef struct Grown { /* the text of a prompt */
  Growing g;
  FILE *to;          /* collects the text; NULL: it has not begun, or is complete */
  char *text;        /* the prompt and its continuation */
  size_t size, from; /* from: where the continuation begins */
  bool failed;       /* no token can be drawn */
} Grown;

typedef struct Batch {
  const InferCommand *cmd;
  TextModel *model;     /* of each place */
  Grown **in;           /* what grows there, or NULL */
  Grown *text;          /* of each prompt */
  uint32_t n, places;   /* prompts; texts that grow at a time */
  uint32_t begun, done; /* prompts: texts that have begun, results that are written */
  int64_t tokens;
  ampc_status failed; /* of the first text that failed; `why` says how */
  const char *why;
  Arena *arena;
  double since, told; /* seconds */
  bool terminal;
} Batch;

/* Names the line of the prompt in the last message. */
static ampc_status failed_at(const Batch *b, int64_t prompt, ampc_status status)
{
  return ampc_fail(status, "%s:%u: %s", b->cmd->prompts, b->cmd->text.each[prompt].line,
                   ampc_last_error());
}

/* The same for a step of several texts, one of which has failed. */
static ampc_status failed_in_step(const Batch *b, ampc_status status)
{
  uint32_t first = UINT32_MAX, last = 0;
  for (uint32_t i = 0; i < b->places; i++) {
    if (!b->in[i]) continue;
    const uint32_t line = b->cmd->text.each[b->in[i] - b->text].line;
    if (line < first) first = line;
    if (line > last) last = line;
  }
  if (first >= last)
    return ampc_fail(status, "%s:%u: %s", b->cmd->prompts, last, ampc_last_error());
  return ampc_fail(status, "%s: one of the texts of lines %u to %u: %s", b->cmd->prompts, first,
                   last, ampc_last_error());
}

/* ---- results ---- */

static void write_result(const Prompt *prompt, const Grown *t)
{
  Arena *arena = arena_create();
  Text text = text_new(arena);
  text_add_json_bytes(&text, t->text + t->from, t->size - t->from);
  printf("{%s, \"text\": %s, \"tokens\": %lld, \"end\": \"%s\"}\n", prompt->shown, text.at,
         (long long)t->g.tokens,
         t->failed  ? "error"
         : t->g.cut ? "length"
                    : "stop");
  arena_destroy(arena);
}

static bool is_complete(const Grown *t)
{
  return t->text && !t->to;
}

/* Writes the complete results before which no other one is missing; with `all` also the others. */
static ampc_status write_results(Batch *b, bool all)
{
  if (b->told && b->done < b->n && is_complete(&b->text[b->done])) fputs("\r\x1b[K", stderr);
  for (; b->done < b->n && (all || is_complete(&b->text[b->done])); b->done++) {
    Grown *t = &b->text[b->done];
    if (!is_complete(t)) continue;
    write_result(&b->cmd->text.each[b->done], t);
    free(t->text);
    t->text = NULL;
  }
  if (fflush(stdout) == 0 && !ferror(stdout)) return AMPC_OK;
  return ampc_fail(AMPC_RUN_FAILED, "the results cannot be written: %s", strerror(errno));
}

static void tell_progress(Batch *b)
{
  const bool end = b->done == b->n;
  const double now = seconds_now(), taken = now > b->since ? now - b->since : 1e-9;
  if (b->cmd->quiet || (!end && (!b->terminal || now - b->told < 0.2))) return;
  b->told = now;
  if (b->terminal) fputs("\r\x1b[K", stderr);
  if (!end) fprintf(stderr, "%u of ", b->done);
  fprintf(stderr, "%u prompts: %lld tokens in %.2f s (%.1f a second)%s", b->n, (long long)b->tokens,
          taken, (double)b->tokens / taken, end ? "\n" : "");
}

/* ---- steps ---- */

/* Begins the text of the next prompt in a place. */
static ampc_status begin_text(Batch *b, uint32_t place)
{
  TextModel *m = &b->model[place];
  const Prompt *prompt = &b->cmd->text.each[b->begun];
  Grown *t = b->in[place] = &b->text[b->begun];
  ampc_status status = text_model_clear(m);
  if (!status) status = text_model_add(m, prompt->at, prompt->n);
  if (status) return status;
  t->to = open_memstream(&t->text, &t->size);
  if (!t->to) return ampc_fail(AMPC_RUN_FAILED, "out of memory for texts");
  t->g = (Growing){.m = m,
                   .cmd = b->cmd,
                   .most = b->cmd->generate,
                   .drawn = (uint64_t)b->begun++ << DRAWS,
                   .out = {.to = t->to, .first = b->cmd->text.chat ? prompt->n : 0}};
  status = generate_start(&t->g);
  t->from = t->size;
  return status;
}

/* Draws a token of the text in a place, which it leaves if it ends. */
static ampc_status draw(Batch *b, uint32_t place)
{
  Grown *t = b->in[place];
  ampc_status status = generate_draw(&t->g);
  t->failed = status != AMPC_OK;
  if (t->failed && !b->failed) {
    b->failed = failed_at(b, t - b->text, status);
    b->why = arena_strdup(b->arena, ampc_last_error());
  }
  if (!t->failed) b->tokens++;
  if (!t->failed && !t->g.ended) return AMPC_OK;
  const bool good = fclose(t->to) == 0;
  t->to = NULL;
  b->in[place] = NULL;
  return good ? AMPC_OK : ampc_fail(AMPC_RUN_FAILED, "out of memory for texts");
}

/* Computes a token of each text. */
static ampc_status take_step(Batch *b)
{
  TextModel *reads[TEXTS_MOST];
  uint32_t n = 0;
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < b->places && !status; i++) {
    if (!b->in[i] && b->begun < b->n) status = begin_text(b, i);
    if (b->in[i]) reads[n++] = &b->model[i];
  }
  if (!status && (status = text_models_read(reads, n))) status = failed_in_step(b, status);
  for (uint32_t i = 0; i < b->places && !status; i++)
    if (b->in[i]) status = draw(b, i);
  return status;
}

/* ---- the run ---- */

/* Checks all prompts before the first one is continued. */
static ampc_status check_prompts(const Batch *b)
{
  TextModel *m = b->model;
  ampc_status status = generate_check_model(m, b->cmd);
  for (uint32_t i = 0; i < b->n && !status; i++) {
    const Prompt *p = &b->cmd->text.each[i];
    m->n = 0;
    status = text_model_add(m, p->at, p->n);
    if (!status && p->n > m->most)
      status =
          ampc_fail(AMPC_BAD_USAGE, "the prompt has %lld tokens; infer `%s` reads at most %lld",
                    (long long)p->n, m->program->blocks[0].call, (long long)m->most);
    if (status) return failed_at(b, i, status);
  }
  return status;
}

/* The memory that is told before counts one text. */
static void tell_memory(const Batch *b)
{
  const int64_t *bytes = b->model->program->space_bytes;
  char text[AMPC_BYTES_ROOM];
  if (b->cmd->quiet || b->places < 2) return;
  fprintf(stderr, "%u texts at a time: %s more for each\n", b->places,
          ampc_bytes_text(bytes[AMPC_CACHE] + bytes[AMPC_INPUT] + bytes[AMPC_WORK], text));
}

ampc_status batch_run(ampc_runtime *rt, const InferCommand *cmd)
{
  Batch b = {.cmd = cmd, .n = cmd->text.n_each, .terminal = isatty(STDERR_FILENO)};
  const uint32_t asked = cmd->batch ? cmd->batch : PLACES, most = asked < b.n ? asked : b.n;
  ampc_status status = AMPC_OK;
  Arena *arena = b.arena = arena_create();
  b.model = arena_array(arena, TextModel, most);
  b.in = arena_array(arena, Grown *, most);
  b.text = arena_array(arena, Grown, b.n);
  while (!status && b.places < most) status = text_model_open(&b.model[b.places++], cmd->what, rt);
  if (!status) status = check_prompts(&b);
  if (!status) tell_memory(&b);
  b.since = seconds_now();
  while (!status && b.done < b.n) {
    status = take_step(&b);
    if (!status) status = write_results(&b, false);
    if (!status) tell_progress(&b);
  }
  if (status) { /* what is complete is kept */
    b.why = arena_strdup(arena, ampc_last_error());
    write_results(&b, true);
    b.failed = status;
  }
  for (uint32_t i = 0; i < b.places; i++) text_model_close(&b.model[i]);
  for (uint32_t i = 0; i < b.n; i++) {
    if (b.text[i].to) fclose(b.text[i].to);
    free(b.text[i].text);
  }
  if (b.failed) ampc_fail(b.failed, "%s", b.why);
  arena_destroy(arena);
  return b.failed;
}
