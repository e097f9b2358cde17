/* :kernel NAME edit writes a kernel's text to a file; :kernel NAME reload builds that file into the
 * running program. */
#include "commands.h"
#include "compiler/command/command.h"
#include "compiler/kernel/kernels.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILE_PATH = 512 };

/* Creates the session's folder when the first kernel is edited; kernel_forget_files removes it. */
static bool open_folder(Repl *r)
{
  if (r->edits[0]) return true;
  strcpy(r->edits, "/tmp/amp-edit-XXXXXX");
  if (mkdtemp(r->edits)) return true;
  r->edits[0] = 0;
  return repl_error(r, "cannot make a folder in /tmp: %s", strerror(errno));
}

/* Writes a kernel's path. The suffix .cu makes editors highlight the syntax, also for the CPU. */
static void file_path(const Repl *r, const char *name, char path[FILE_PATH])
{
  snprintf(path, FILE_PATH, "%s/%.200s.cu", r->edits, name);
}

/* Writes the text, but does not overwrite the user's earlier edits of the kernel. */
static bool write_text(Repl *r, const char *path, const Text *text)
{
  FILE *f = fopen(path, "wx"); /* an existing file has edits */
  if (!f && errno == EEXIST) return true;
  bool good = f && fwrite(text->at, 1, text->n, f) == text->n;
  int reason = errno;
  if (f && fclose(f) != 0) good = false;
  return good || repl_error(r, "cannot write %s: %s", path, strerror(reason));
}

/* Opens $EDITOR, which may have arguments, so the shell runs it. */
static bool run_editor(Repl *r, const char *path)
{
  const char *editor = getenv("EDITOR");
  if (!editor || !*editor) {
    printf("EDITOR is not set; edit %s, then reload\n", path);
    return true;
  }
  char command[FILE_PATH + 32];
  snprintf(command, sizeof command, "$EDITOR '%s'", path);
  fflush(stdout);
  int status = system(command);
  if (status == -1) return repl_error(r, "cannot run %s: %s", editor, strerror(errno));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  return repl_error(r, "%s exited with status %d", editor,
                    WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* Writes the emitted text to a file and opens $EDITOR on it. The edited text runs only after
 * :kernel NAME reload. */
bool kernel_edit(Repl *r, uint32_t kernel)
{
  Compile *c = r->latest->c;
  const char *name = c->program->kernels[kernel].name;
  char path[FILE_PATH];
  Text text = text_new(c->arena);
  emit_kernel(c, kernel, &text);
  if (!is_cpu_target(c)) return repl_error(r, "kernels are edited with --device cpu only");
  if (!open_folder(r)) return false;
  file_path(r, name, path);
  if (!write_text(r, path, &text) || !run_editor(r, path)) return false;
  printf(":kernel %s reload runs %s\n", name, path);
  return true;
}

/* Builds the edited text. If that fails, the kernel is unchanged. */
bool kernel_reload(Repl *r, uint32_t kernel)
{
  char path[FILE_PATH];
  uint32_t size;
  if (!live_ready(r)) return false; /* makes the latest program the live one */
  Compile *c = r->live->c;
  const char *name = c->program->kernels[kernel].name;
  file_path(r, name, path);
  const char *why,
      *text = r->edits[0] ? source_read(c->arena, FILE_NO_ROLE, path, &size, &why) : NULL;
  if (!text) return repl_error(r, "%s has no edited text; :kernel %s edit makes one", name, name);
  if (!kernels_edit(r->kernels, c, kernel, path, text, size))
    return repl_error(r, "%s; the kernel is unchanged", ampc_last_error());
  if (!repl_check(r, kernels_load(r->kernels, c, c->program))) return false;
  printf("%s runs %s\n", name,
         kernels_is_edited(r->kernels, c, kernel) ? "the edited text" : "as it was emitted");
  return true;
}

void kernel_forget_files(Repl *r)
{
  if (!r->edits[0]) return;
  char command[sizeof r->edits + 16];
  snprintf(command, sizeof command, "rm -rf '%s'", r->edits);
  if (system(command) != 0) fprintf(stderr, "amp: cannot remove %s\n", r->edits);
  r->edits[0] = 0;
}
