/* amp chat: a conversation in the terminal with the language model of a job.
 *
 * The ids of a conversation grow with it: each message adds those of its turn, in the template of
 * the chat, and the model draws those of the answer. The model computes each id once. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "runner/infer/generate.h"
#include "runner/job/input.h"
#include "runner/job/options.h"
#include "runner/runner.h"
#include "compiler/cli/options.h"
#include "runtime/base/interrupt.h"

enum { CONTEXT = 2048, MOST_TOKENS = 512 };

/* ---- the command line ---- */

#define FIELD(name) .field = offsetof(InferCommand, name)

static const OptionRow chat_options[] = {
    {"system", 0, "TEXT", "the system message, with which the conversation begins",
     .kind = OPTION_text, FIELD(system)},
    {"context", 0, "N",
     "most tokens of a conversation (default: 2048, or the `max` of the job's dim if it is less)",
     .kind = OPTION_number, FIELD(context), .least = 2},
    {"max-tokens", 0, "N", "most tokens of an answer (default 512)", .kind = OPTION_number,
     FIELD(max_tokens), .least = 1},
    {"quiet", 'q', NULL, "print answers and errors only", .kind = OPTION_flag, FIELD(quiet)},
    {NULL, 'v', NULL, "print how much memory each purpose needs, and the time of each answer",
     .kind = OPTION_flag, FIELD(verbose)},
    {0}};

const OptionTable chat_verb = {
    .program = "amp chat",
    .usage = "[options] job.amp",
    .about = "Talks with the language model of a job.",
    .groups = (const OptionGroup[]){{block_options, 0},
                                    {chat_options, 0},
                                    {text_options, 0},
                                    {fresh_options, offsetof(InferCommand, train)},
                                    {job_options, offsetof(InferCommand, compile)},
                                    {memory_options, offsetof(InferCommand, compile)},
                                    {NULL, 0}},
    .notes =
        "Each line is a message. '/help' lists the commands. Ctrl-C ends an answer, Ctrl-D the "
        "conversation. If the input is not a terminal, there is no prompt, and the exit "
        "status is 5 if a line was refused."};

/* Checks that the template can begin with the system message. */
static ampc_status check_system(const InferCommand *cmd, const char *system)
{
  Ids ids = {0};
  ampc_status status = chat_prompt(cmd->text.chat, system, "", 0, &ids);
  free(ids.at);
  return status;
}

static ampc_status begin_chat(InferCommand *cmd, Compile *c, const Function *block)
{
  ampc_status status = prompt_check_block(cmd, block);
  if (!status) status = prompt_need_dim(c, block);
  if (!status) status = prompt_open(cmd, c, cmd->what);
  if (!status && cmd->text.stop < 0)
    return ampc_fail(AMPC_BAD_USAGE,
                     "the template has no token that ends an answer: write one behind it, such as "
                     "--template '{prompt}{answer}<|endoftext|>'");
  if (!status) status = check_system(cmd, cmd->system);
  c->options.decode = true;
  c->options.text_from = 1;
  c->options.text_to = cmd->context ? cmd->context : CONTEXT;
  return status;
}

/* ---- a turn ---- */

typedef struct Talk {
  const InferCommand *cmd;
  TextModel m;
  Arena *arena;       /* of the lines */
  const char *system; /* or NULL */
  uint64_t drawn;
  uint32_t failed; /* lines that had a mistake */
  bool quit;
} Talk;

static bool has_ended(const Talk *t)
{
  return t->m.n && t->m.token[t->m.n - 1] == t->cmd->text.stop;
}

/* Appends the ids of a message. A message that does not fit changes nothing. */
static ampc_status add_message(Talk *t, const char *text, size_t n)
{
  Ids ids = {0};
  TextModel *m = &t->m;
  const int64_t from = m->n;
  Chat *chat = t->cmd->text.chat;
  ampc_status status = m->n ? chat_turn(chat, has_ended(t), text, n, &ids)
                            : chat_prompt(chat, t->system, text, n, &ids);
  if (!status && m->n + (int64_t)ids.n > m->most)
    status =
        ampc_fail(AMPC_BAD_USAGE,
                  "the context is full: it has room for %lld tokens, the conversation has %lld and "
                  "this message %zu; %s",
                  (long long)m->most, (long long)m->n, ids.n,
                  m->n ? "/reset forgets the conversation" : "--context N makes room for more");
  for (size_t i = 0; i < ids.n && !status; i++)
    status = text_model_add(m, &(int64_t){ids.at[i]}, 1);
  if (status) m->n = from;
  free(ids.at);
  return status;
}

/* Draws an answer, and says why it ends if the model did not end it. */
static ampc_status answer(Talk *t)
{
  const InferCommand *cmd = t->cmd;
  TextModel *m = &t->m;
  const int64_t from = m->n, room = m->most + 1 - from;
  const int64_t most = cmd->max_tokens ? cmd->max_tokens : MOST_TOKENS;
  bool cut;
  ampc_status status =
      generate_tokens(m, cmd, from, room < most ? room : most, cmd->verbose, &t->drawn, &cut);
  if (status || !cut) return status;
  if (m->n > m->most)
    fprintf(stderr,
            "the context of %lld tokens is full, so the answer ends here; /reset forgets the "
            "conversation\n",
            (long long)m->most);
  else if (m->n - from == most && !cmd->quiet)
    fprintf(stderr, "the answer ends after %lld tokens; --max-tokens N allows more\n",
            (long long)most);
  return AMPC_OK;
}

/* ---- commands ---- */

enum { RESET, SYSTEM, HELP, QUIT, COMMANDS };
static const char *const commands[COMMANDS][2] = {
    {"/reset", "forgets the conversation"},
    {"/system", "TEXT: begins a new conversation with this system message"},
    {"/help", "lists the commands"},
    {"/quit", "ends, as Ctrl-D does; Ctrl-C ends an answer"},
};

static ampc_status run_command(Talk *t, const char *line)
{
  const size_t n = strcspn(line, " \t");
  const char *arg = line + n + strspn(line + n, " \t"), *system = *arg ? arg : NULL;
  int which = 0;
  while (which < COMMANDS && (strncmp(commands[which][0], line, n) || commands[which][0][n]))
    which++;
  if (which == COMMANDS) {
    Text known = text_new(t->arena);
    for (int i = 0; i < COMMANDS; i++) text_printf(&known, "%s%s", i ? ", " : "", commands[i][0]);
    return ampc_fail(AMPC_BAD_USAGE, "no command %.*s; known: %s", (int)n, line, known.at);
  }
  if (which == SYSTEM) {
    ampc_status status = check_system(t->cmd, system);
    if (status) return status;
    t->system = system;
  }
  for (int i = 0; which == HELP && i < COMMANDS; i++)
    printf("%-8s  %s\n", commands[i][0], commands[i][1]);
  if (which == HELP) puts("Other lines are messages; one that begins with / needs a blank before.");
  t->quit = which == QUIT;
  if (which != RESET && which != SYSTEM) return AMPC_OK;
  if (!t->cmd->quiet)
    fprintf(stderr, "a new conversation, %s a system message\n", t->system ? "with" : "without");
  return text_model_clear(&t->m);
}

/* ---- the conversation ---- */

/* Runs a line. A mistake of the user is told, and the conversation goes on. */
static ampc_status take_line(Talk *t, const char *text, size_t size)
{
  while (size && strchr("\r\n", text[size - 1])) size--;
  char *line = arena_strndup(t->arena, text, size);
  if (!line[strspn(line, " \t")]) return AMPC_OK;
  const bool command = *line == '/';
  ampc_status status = command ? run_command(t, line) : add_message(t, line, size);
  fflush(stdout);
  if (status == AMPC_BAD_USAGE || status == AMPC_BAD_FILE) {
    fprintf(stderr, "amp chat: %s\n", ampc_last_error());
    t->failed++;
    return AMPC_OK;
  }
  return status || command ? status : answer(t);
}

static void tell_begin(const Talk *t)
{
  const InferCommand *cmd = t->cmd;
  const TextModel *m = &t->m;
  if (cmd->context > m->most)
    fprintf(stderr, "warning: --context %u: the dim of the job ends at %lld tokens\n", cmd->context,
            (long long)m->most);
  if (!cmd->quiet)
    fprintf(stderr, "infer `%s` of %s, a context of %lld tokens; /help lists the commands\n",
            m->program->blocks[0].call, m->program->source, (long long)m->most);
}

static ampc_status run_chat(ampc_runtime *rt, const InferCommand *cmd)
{
  static const InputStyle style = {.prompt = "> ", .more = "", .history = "chat_history"};
  const bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
  Talk t = {.cmd = cmd, .system = cmd->system, .arena = arena_create()};
  size_t size;
  const char *text;
  ampc_status status = text_model_open(&t.m, cmd->what, rt);
  if (cmd->context && cmd->context < t.m.most) t.m.most = cmd->context;
  if (!status) tell_begin(&t);
  interrupt_prompt(terminal);
  Input *in = input_open(&style, terminal);
  while (!status && !t.quit && !interrupt_ending() && (text = input_next(in, &size)))
    status = take_line(&t, text, size);
  if (terminal && !t.quit) putchar('\n');
  input_close(in);
  text_model_close(&t.m);
  arena_destroy(t.arena);
  if (status || (!interrupt_ending() && (terminal || !t.failed))) return status;
  if (interrupt_ending()) return ampc_fail(AMPC_INTERRUPTED, "interrupted");
  return ampc_fail(AMPC_RUN_FAILED, "%u line%s of the input %s refused", t.failed,
                   t.failed > 1 ? "s" : "", t.failed > 1 ? "were" : "was");
}

int chat_main(int argc, char **argv)
{
  const InferVerb verb = {&chat_verb, "a conversation", text_options_check, begin_chat, run_chat};
  return infer_verb_main(&verb, argc, argv);
}
