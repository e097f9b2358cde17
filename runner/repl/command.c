/* The table of all commands of `amp repl`, and the search for one by the beginning of its name. */
#include "commands.h"
#include "compiler/help/help.h"
#include "common/terminal.h"
#include "runtime/plan/types.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct Command {
  const char *name, *usage, *help;
  CommandRun *run;
} Command;

static CommandRun command_quit, command_help;

static const Command commands[] = {
    {"open", "FILE", "open another job; weights and typed input are dropped", command_open},
    {"reload", "[!]",
     "read the job's file again; weights with the same path and shape stay, and typed input; "
     ":reload! drops typed declarations",
     command_reload},
    {"undo", "", "take back the last declaration, assignment or setting; weights stay",
     command_undo},
    {"write", "FILE",
     "write the session as a program for amp train and ampc; :write! overwrites a file",
     command_write},
    {"save", "FILE", "write a checkpoint", command_save},
    {"load", "FILE", "load a checkpoint: weights, optimizers and the position in the data",
     command_load},
    {"resume", "[FILE]",
     "load a checkpoint and train to the end of the job, as amp train --resume; alone: the "
     "checkpoint of the job's resume=",
     command_resume},
    {"set", "[KEY=VALUE]",
     "change a setting: :set opt.lr=1e-4, or :set lr=1e-4 if no other name ends so; without VALUE: "
     "print it; alone: list all",
     command_set},
    {"const", "[NAME=VALUE]", "replace a const of the job; alone: list the replaced ones",
     command_const},
    {"precision", "[WORD]",
     "change to " AMPC_NARROW_LIST "f32 or tf32; weights and optimizers stay", command_precision},
    {"train", "[N]",
     "train N steps (100, 10k, 1e6), or to the end of the job; Ctrl-C stops after a step",
     command_train},
    {"step", "", "train one step", command_step},
    {"eval", "", "run the eval blocks", command_eval},
    {"infer", "[BLOCK] [INPUT]",
     "run an infer block on a file, on NAME=FILE for each argument, or on a call: "
     "fashion(\"t10k\")",
     command_infer},
    {"generate", "[BLOCK] [N] TEXT",
     "continue a text with N tokens (default: 64) of a language model, as amp infer --generate; "
     "BLOCK: if there are several infer blocks",
     command_generate},
    {"show", "NAME|EXPR",
     "print a parameter; for the next batch its data, a variable, a metric or a layer (fc1); an "
     "expression of these, as :show argmax(net(x), dim=-1) == y; or samples of any data, as "
     ":show faces(\"test\")[0][0:4]. Images of data are drawn",
     command_show},
    {"image", "NAME|EXPR", "draw a value of :show as images: [h, w], [c, h, w] or [h, w, c]",
     command_image},
    {"hist", "NAME|EXPR", "draw a histogram of a value of :show: weights, data, activations",
     command_hist},
    {"type", "EXPR", "print type and shape of an expression, and the reason; nothing is run",
     command_type},
    {"params", "[PATTERN]", "list parameters: shape, type, optimizer, norm", command_params},
    {"loss", "", "plot the loss of the steps trained in this session", command_loss},
    {"scaler", "", "print the loss scale and the number of skipped steps", command_scaler},
    {"grad", "PATH", "print a parameter's gradient for the next batch; nothing is updated",
     command_grad},
    {"probe", "[PATH]",
     "report how large the values of the next step are, the worst first; all values of one layer: "
     ":probe net.fc1",
     command_probe},
    {"profile", "[N]",
     "measure N of the next steps (default: 10), and report the time of each command, layer and "
     "line; nothing is updated",
     command_profile},
    {"memory", "", "print bytes on the device, by purpose", command_memory},
    {"time", "EXPR", "measure how long an expression takes", command_time},
    {"graph", "[PASS]", "print the graph after a pass (default: simplify)", command_graph},
    {"casts", "[NAME]", "list casts with lines and reasons; with NAME: those of one name or path",
     command_casts},
    {"kernel", "[NAME [edit|reload]]", "print the text of a kernel; edit it; run the edited text",
     command_kernel},
    {"ptx", "NAME", "print the PTX of a kernel", command_ptx},
    {"sass", "NAME", "print the machine code of a kernel", command_sass},
    {"blame", "LINE", "print which line of the compiler wrote a line that :kernel shows",
     command_blame},
    {"diff", "pass|ckpt|precision A B", "print the differences of two passes, files or precisions",
     command_diff},
    {"explain", "[DEVICE] [LINE]",
     "print types with reasons, casts, tensor cores and times predicted for the device in use, or "
     "for another one: :explain h200; with LINE: those of one line",
     command_explain},
    {"help", "[NAME]",
     "list the commands; with NAME: explain a command, a group of commands or a name of the "
     "language: :help Conv2d",
     command_help},
    {"quit", "", "end the session, as Ctrl-D does", command_quit},
};
/* The groups of :help, each with its first command. */
static const char *const groups[][2] = {{"files", "open"},  {"settings", "set"}, {"run", "train"},
                                        {"values", "show"}, {"cost", "probe"},   {"code", "graph"},
                                        {"session", "help"}};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

const char *command_name_at(uint32_t i)
{
  return i < COMMAND_COUNT ? commands[i].name : NULL;
}

/* Finds the command of this name, or the only one whose name begins with it. */
static const Command *find(Repl *r, const char *word, size_t n)
{
  const Command *found = NULL;
  char all[256] = "";
  uint32_t matches = 0;
  for (const Command *c = commands; c < commands + COMMAND_COUNT; c++) {
    if (strncmp(c->name, word, n) != 0) continue;
    if (c->name[n] == 0) return c;
    size_t used = strlen(all);
    snprintf(all + used, sizeof all - used, "%s:%s", matches ? ", " : "", c->name);
    matches++;
    found = c;
  }
  if (matches == 1) return found;
  const char *names[COMMAND_COUNT];
  char text[64];
  snprintf(text, sizeof text, "%.*s", (int)(n < 60 ? n : 60), word);
  for (uint32_t i = 0; i < COMMAND_COUNT; i++) names[i] = commands[i].name;
  const char *near = diag_nearest(text, names, COMMAND_COUNT);
  if (matches && n)
    repl_error(r, ":%s is ambiguous: %s", text, all);
  else if (near)
    repl_error(r, "no command :%s; did you mean :%s?", text, near);
  else
    repl_error(r, "no command :%s; :help lists them", text);
  return NULL;
}

static bool takes_file(const Command *c)
{
  return strncmp(c->usage + (*c->usage == '['), "FILE", 4) == 0;
}

/* Returns the argument without quotes: the name of a file may be quoted, as in the language. */
static const char *unquoted(Repl *r, const Command *c, const char *arg)
{
  size_t n = strlen(arg);
  bool quoted = takes_file(c) && n >= 2 && *arg == '"' && arg[n - 1] == '"';
  return quoted ? arena_strndup(r->arena, arg + 1, n - 2) : arg;
}

bool command_is_said(const char *text, const char *rest)
{
  size_t n = name_size(text);
  bool blank = rest > text + n, word = in_name(*rest) || (*rest && strchr("\"/.~*", *rest));
  if (*rest && !(blank && word)) return false;
  if (strpbrk(rest, "{\n") || is_name(text, n, "const") || is_name(text, n, "precision"))
    return false;
  for (const Command *c = commands; c < commands + COMMAND_COUNT; c++)
    if (is_name(text, n, c->name)) return *rest ? *c->usage : !*c->usage || *c->usage == '[';
  return false;
}

/* Runs `:name argument`. An argument for a command that takes none is rejected here. */
bool command_run(Repl *r, const char *text)
{
  const char *word = text + (*text == ':');
  size_t n = 0;
  word += strspn(word, " \t");
  while (isalpha((unsigned char)word[n])) n++;
  const Command *c = find(r, word, n);
  if (!c) return false;
  const char *arg = word + n + strspn(word + n, " \t\n");
  if (!*c->usage && *arg) return repl_error(r, ":%s takes no argument, got %s", c->name, arg);
  return c->run(r, unquoted(r, c, arg));
}

static bool command_quit(Repl *r, const char *arg)
{
  (void)arg;
  r->quit = true;
  return true;
}

/* Adds a command and its help text, which begins at column `left` or further right. */
static void put_usage(Text *out, const Command *c, int left)
{
  char *head = arena_printf(out->arena, ":%s %s", c->name, c->usage);
  int size = (int)strlen(head) + 2;
  text_entry(out, head, c->help, size > left ? size : left);
}

static bool begins_a_command(const char *word)
{
  for (const Command *c = commands; c < commands + COMMAND_COUNT; c++)
    if (strncmp(c->name, word, strlen(word)) == 0) return true;
  return false;
}

/* Adds the help of a name of the language. False: no help. *said: an error was printed, because a
 * name is similar and no command begins like it. */
static bool help_word(Repl *r, const char *name, Text *out, bool *said)
{
  bool any = help_on(name, out);
  const char *near = any || begins_a_command(name) ? NULL : help_nearest(out->arena, name);
  *said = near != NULL;
  if (near) repl_error(r, "no `%s`; did you mean `%s`?", name, near);
  return any;
}

/* Returns the group that begins with the command; NULL: none does. */
static const char *group_at(const Command *c)
{
  for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
    if (strcmp(groups[i][1], c->name) == 0) return groups[i][0];
  return NULL;
}

/* Adds the help of the commands of a group. False: there is no such group. */
static bool help_group(const char *name, Text *out)
{
  const Command *c = commands, *end = commands + COMMAND_COUNT;
  while (c < end && (!group_at(c) || strcmp(group_at(c), name) != 0)) c++;
  if (c == end) return false;
  do put_usage(out, c++, 32);
  while (c < end && !group_at(c));
  return true;
}

/* Explains `:help :train`, the command; for `:help train` the statement, too. */
static bool help_with(Repl *r, const char *arg, Text *out)
{
  bool command = *arg == ':', said = false;
  if (help_group(arg, out)) return true;
  if (command) arg++;
  bool word = !command && help_word(r, arg, out, &said);
  if (said || (word && !begins_a_command(arg))) return word;
  const Command *c = find(r, arg, strlen(arg));
  if (c && word) text_puts(out, "\n");
  if (c) put_usage(out, c, 0);
  return c != NULL;
}

/* Lists all commands by group. A command and its arguments stay in one line. */
static void help_all_commands(Text *out)
{
  int width = line_columns(), used = 0;
  text_wrap(out,
            "Type a declaration, a statement or an expression of the language, or a command:", 0,
            width);
  for (const Command *c = commands; c < commands + COMMAND_COUNT; c++) {
    int size = (int)(strlen(c->name) + strlen(c->usage)) + 3 + !!*c->usage;
    const char *group = group_at(c);
    if (group) used = width;
    if (used + size > width) {
      text_printf(out, "\n%-8s", group ? group : "");
      used = 8;
    }
    text_printf(out, "  :%s%s%s", c->name, *c->usage ? " " : "", c->usage);
    used += size;
  }
  text_puts(out, "\n");
  text_wrap(out,
            ":help values explains a group, :help :train a command, :help Conv2d a name of the "
            "language. A command may be shortened. A declaration replaces the one of the same "
            "name; an assignment, x = ones(3), is remembered. An open bracket continues the "
            "input. Tab completes, Up recalls an input, Ctrl-R searches the history. Ctrl-C stops "
            "a command or drops typed text; Ctrl-D ends the session. <3> in a message is the "
            "third input.",
            0, width);
  text_puts(out, "\n");
}

static bool command_help(Repl *r, const char *arg)
{
  bool any = true;
  Arena *arena = arena_create();
  Text text = text_new(arena);
  if (*arg)
    any = help_with(r, arg, &text);
  else
    help_all_commands(&text);
  fputs(text.at, stdout);
  arena_destroy(arena);
  return any;
}
