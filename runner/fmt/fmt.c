/* amp fmt: writes jobs in the layout of compiler/fmt/. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "compiler/cli/options.h"
#include "compiler/diag/diag.h"
#include "compiler/fmt/fmt.h"
#include "compiler/syntax/source.h"
#include "runner/runner.h"

typedef struct FmtCommand {
  bool check;
} FmtCommand;

static const OptionRow fmt_options[] = {
    {"check", 0, NULL, "change nothing; name the files whose layout differs, and exit with 1",
     .kind = OPTION_flag, .field = offsetof(FmtCommand, check)},
    {0}};

const OptionTable fmt_verb = {
    .program = "amp fmt",
    .usage = "[options] FILE...",
    .about = "Changes indentation, blanks and empty lines of jobs to one layout, and names the "
             "files that it changes. Comments, line breaks and aligned columns stay. A file with "
             "syntax errors is left as it is. The FILE - is stdin; its result goes to stdout.",
    .groups = (const OptionGroup[]){{fmt_options, 0}, {NULL, 0}},
    .notes = "exit status: 0 done; 1 a file has errors or, with --check, another layout; 2 bad "
             "usage; 3 a file cannot be read or written"};

static int failed(const char *text)
{
  fprintf(stderr, "amp fmt: error: %s\n", text);
  return AMPC_BAD_FILE;
}

/* Writes the result, or tells that the file differs. */
static int finish(const FmtCommand *cmd, Arena *arena, const char *path, bool same, const Text *out)
{
  if (!cmd->check && strcmp(path, "-") == 0) {
    fwrite(out->at, 1, out->n, stdout);
    return AMPC_OK;
  }
  if (same) return AMPC_OK;
  if (!cmd->check && file_is_special(path))
    return failed(arena_printf(arena, "%s is not a regular file; `amp fmt -` formats stdin",
                               arena_shown(arena, path, "")));
  if (!cmd->check && file_write(path, &file_job, out->at, (int64_t)out->n))
    return failed(ampc_last_error());
  printf("%s\n", arena_shown(arena, path, ""));
  return cmd->check;
}

/* Returns the exit status for one file. */
static int format_file(const FmtCommand *cmd, const char *path)
{
  Options options = options_default();
  Compile *c = compile_create(&options);
  const char *why, *from = strcmp(path, "-") == 0 ? "/dev/stdin" : path;
  uint32_t size;
  int status = 1;
  const char *text = source_read(c->arena, FILE_JOB, from, &size, &why);
  Text out = text_new(c->arena);
  if (!text)
    status =
        failed(arena_printf(c->arena, "cannot read %s: %s", arena_shown(c->arena, from, ""), why));
  else if (fmt_text(c, from, text, size, &out))
    status = finish(cmd, c->arena, path, out.n == size && memcmp(out.at, text, size) == 0, &out);
  diag_finish(c);
  compile_destroy(c);
  return status;
}

int fmt_main(int argc, char **argv)
{
  Arena *arena = arena_create();
  Operands files = {argv, argc};
  FmtCommand cmd = {0};
  int status;
  bool good = options_read(&fmt_verb, arena, &files, &cmd, &status);
  if (good) status = files.n ? 0 : usage_error("amp fmt", "no file was given");
  for (int i = 0; i < files.n && good; i++) {
    int one = format_file(&cmd, files.at[i]);
    if (one > status) status = one;
  }
  arena_destroy(arena);
  return status;
}
