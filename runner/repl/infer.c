/* :infer and :generate run an infer block of the session with the weights of the session. The block
 * is compiled alone and runs on a twin. */
#include "commands.h"
#include "runner/infer/generate.h"
#include "runtime/state/saved.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads the inputs. A text with a parenthesis is the call that reads the data, such as
 * `faces("test")`. Any other text is a list of input files. */
static void read_inputs(Arena *arena, const char *text, InferCommand *cmd)
{
  if (strchr(text, '(')) {
    cmd->data = text;
    return;
  }
  cmd->inputs = arena_array(arena, InferInput, strlen(text) / 2 + 1);
  for (size_t n; *text; text += n + strspn(text + n, " \t\n")) {
    n = strcspn(text, " \t\n");
    infer_split(arena, arena_strndup(arena, text, n), &cmd->inputs[cmd->n_inputs].name,
                &cmd->inputs[cmd->n_inputs].file);
    cmd->n_inputs++;
  }
}

/* Removes the first word from *arg and returns it if it names a block, or if it is a name and no
 * file; else returns NULL. */
static const char *take_block(Compile *c, const char **arg)
{
  size_t n = strcspn(*arg, " \t\n");
  const char *word = arena_strndup(c->arena, *arg, n);
  const char *rest = *arg + n + strspn(*arg + n, " \t\n");
  bool name = name_size(word) == n && *rest != '(' && access(word, F_OK) != 0;
  if (!n || !(name || infer_choose_block(c, word))) return NULL;
  *arg = rest;
  return word;
}

static bool run_block(Repl *r, Options *options, InferCommand *cmd)
{
  Request q = {.infer = options, .quiet = options->decode};
  Compiled *p = program_compile(r, &q);
  ampc_runtime *rt;
  if (!p && q.quiet) {
    options->decode = false;
    q.quiet = false;
    p = program_compile(r, &q);
    if (p)
      puts("no decoder can be derived: each token is computed from all tokens before it;\n"
           "a number that depends on the length of the text is that of the padded text");
  }
  if (!p) return false;
  bool good = repl_check(r, live_twin(r, p, NULL, &rt));
  cmd->known_classes = r->live ? r->live->c->program->classes : NULL;
  good = good && (!r->rt || repl_check(r, state_carry_averages(r->rt, rt))) &&
         repl_check(r, cmd->generate ? generate_run(rt, cmd) : infer_run(rt, cmd));
  ampc_free(rt);
  compiled_drop(p);
  return good;
}

typedef const Function *Begin(Compile *c, InferCommand *cmd, const char *arg);

/* Runs the block that `begin` returns, or prints its error. */
static bool run_command(Repl *r, const char *arg, InferCommand *cmd, Begin *begin)
{
  Ast file;
  Compile *c = program_parse(r, &file);
  if (!c) return false;
  c->options.input = r->job ? r->job : "the session";
  cmd->train.data_dir = r->data_dir;
  const Function *block = begin(c, cmd, arg);
  if (block) c->options.infer_block = block->name.text;
  bool good = block ? run_block(r, &c->options, cmd) : repl_check(r, AMPC_BAD_USAGE);
  prompt_close(cmd);
  compile_destroy(c);
  return good;
}

static const Function *begin_infer(Compile *c, InferCommand *cmd, const char *arg)
{
  const char *word = take_block(c, &arg);
  const Function *block = infer_choose_block(c, word);
  if (!block && word)
    ampc_fail(AMPC_BAD_USAGE, "%s; there is no file %s", arena_strdup(c->arena, ampc_last_error()),
              word);
  if (!block) return NULL;
  read_inputs(c->arena, arg, cmd);
  return infer_choose_inputs(c, cmd, block) ? block : NULL;
}

bool command_infer(Repl *r, const char *arg)
{
  return run_command(r, arg, &(InferCommand){.quiet = true}, begin_infer);
}

/* Takes the first word as the name of the block only if the session has several blocks: else it may
 * be a word of the text. */
static const Function *begin_generate(Compile *c, InferCommand *cmd, const char *arg)
{
  enum { TOKENS = 64 };
  static const char blanks[] = " \t\n";
  const Function *block = infer_choose_block(c, NULL);
  if (!block) {
    size_t n = strcspn(arg, blanks);
    block = infer_choose_block(c, arena_strndup(c->arena, arg, n));
    arg += n + strspn(arg + n, blanks);
  }
  const size_t digits = strspn(arg, "0123456789");
  const bool counted = digits && arg[digits] && strchr(blanks, arg[digits]);
  const unsigned long long n = counted ? strtoull(arg, NULL, 10) : TOKENS;
  if (counted) arg += digits + strspn(arg + digits, blanks);
  cmd->generate = n <= UINT32_MAX ? (uint32_t)n : 0;
  cmd->prompt = arg;
  if (block && (!cmd->generate || !*arg))
    ampc_fail(AMPC_BAD_USAGE, ":generate takes a number of tokens, from 1 to %u, and a text",
              UINT32_MAX);
  else if (block && !generate_begin(cmd, c, block))
    return block;
  return NULL;
}

bool command_generate(Repl *r, const char *arg)
{
  InferCommand cmd = {
      .quiet = true, .line = true, .what = ":generate", .sampling = SAMPLING_DEFAULT};
  return run_command(r, arg, &cmd, begin_generate);
}
