/* :ptx and :sass print the output of NVRTC and nvdisasm for a kernel. Neither needs a GPU. */
#include "commands.h"
#include "compiler/kernel/kernels.h"
#include "runner/jit/child.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Compiles the session's program for a GPU, also if the session runs on the CPU: kernels have the
 * same names on both. NULL after a message. */
static Compiled *compile_device(Repl *r, const char *name, uint32_t *out_kernel)
{
  Compiled *p = program_compile(r, &(Request){.target = "sm_80"});
  if (p && kernel_find(r, p->c->program, name, out_kernel)) return p;
  compiled_drop(p);
  return NULL;
}

/* Prints a kernel: `make` compiles the whole program to PTX or a cubin; `show` prints one
 * kernel. */
static bool emit(Repl *r, const char *command, const char *name,
                 bool (*make)(Compile *c, Text *out),
                 bool (*show)(Repl *r, const char *kernel, const Text *text))
{
  uint32_t kernel;
  if (!*name) return repl_error(r, "%s needs a kernel; :kernel lists them", command);
  Compiled *p = compile_device(r, name, &kernel);
  if (!p) return false;
  Text text = text_new(p->c->arena);
  bool good = make(p->c, &text);
  r->failed = r->failed || !good;
  if (good) good = show(r, p->c->program->kernels[kernel].name, &text);
  compiled_drop(p);
  return good;
}

/* Prints the text from ".visible .entry NAME(" to its closing brace. */
static bool show_ptx(Repl *r, const char *kernel, const Text *text)
{
  char head[256];
  snprintf(head, sizeof head, ".entry %.200s(", kernel);
  const char *at = strstr(text->at, head);
  while (at && at > text->at && at[-1] != '\n') at--;
  const char *end = at ? strstr(at, "\n}") : NULL;
  if (!end) return repl_error(r, "the PTX has no %s", kernel);
  printf("%.*s\n", (int)(end + 2 - at), at);
  return true;
}

bool command_ptx(Repl *r, const char *arg)
{
  return emit(r, ":ptx", arg, emit_ptx, show_ptx);
}

/* Prints section .text.NAME of the output of nvdisasm. */
static bool print_section(Repl *r, FILE *from, const char *kernel)
{
  char *line = NULL, head[256];
  size_t size = 0;
  bool inside = false, found = false;
  snprintf(head, sizeof head, ".text.%.200s:", kernel);
  while (getline(&line, &size, from) > 0) {
    if (strncmp(line, ".text.", 6) == 0) inside = strncmp(line, head, strlen(head)) == 0;
    if (strstr(line, ".section")) inside = false;
    if (inside) fputs(line, stdout);
    found |= inside;
  }
  free(line);
  return found || repl_error(r, "the machine code has no %s", kernel);
}

/* Disassembles the file: nvdisasm reads only files, and prints all kernels in it. */
static bool disassemble(Repl *r, char *path, const char *kernel)
{
  char program[PATH_MAX];
  if (!child_find("nvdisasm", program)) return false; /* command_sass has checked this */
  int input = child_file("", 0), output = child_file("", 0);
  char *argv[] = {program, "-c", path, NULL};
  int status = input >= 0 && output >= 0 ? child_run(argv, NULL, input, output) : -1;
  FILE *from = status >= 0 && lseek(output, 0, SEEK_SET) == 0 ? fdopen(output, "r") : NULL;
  bool good = from ? print_section(r, from, kernel)
                   : repl_error(r, "cannot run nvdisasm: %s", strerror(errno));
  if (input >= 0) close(input);
  if (from) fclose(from);
  if (!from && output >= 0) close(output);
  return good && status == 0;
}

/* Prints the kernel's machine code. `text` holds the bytes of a cubin. */
static bool show_sass(Repl *r, const char *kernel, const Text *text)
{
  char path[] = "/tmp/amp-XXXXXX";
  int fd = mkstemp(path);
  if (fd < 0) return repl_error(r, "cannot write in /tmp: %s", strerror(errno));
  bool good = write(fd, text->at, text->n) == (ssize_t)text->n;
  good = close(fd) == 0 && good;
  good = good ? disassemble(r, path, kernel) : repl_error(r, "cannot write %s", path);
  unlink(path);
  return good;
}

bool command_sass(Repl *r, const char *arg)
{
  char program[PATH_MAX];
  if (!child_find("nvdisasm", program))
    return repl_error(r, "nvdisasm is not on this machine; the CUDA toolkit contains it");
  return emit(r, ":sass", arg, emit_cubin, show_sass);
}
