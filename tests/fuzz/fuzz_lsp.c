/* Fuzz target for amp lsp: the input is what a client sends. Workers are not forked here, so that a
 * broken answer and a broken compile are found as well. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "compiler/cli/options.h"
#include "runner/lsp/lsp.h"
#include "runner/lsp/worker.h"

struct Worker {
  Analysis a;
  Arena *arena;
};

/* The texts are copied: the server frees them when it gets new ones. */
static void copy_texts(Worker *w, Options *options, const char *const **uris)
{
  OpenText *open = arena_array(w->arena, OpenText, options->n_open);
  const char **names = arena_array(w->arena, const char *, options->n_open);
  for (uint32_t i = 0; i < options->n_open; i++) {
    const OpenText *from = &options->open[i];
    open[i] = (OpenText){arena_strdup(w->arena, from->path),
                         arena_strndup(w->arena, from->text, from->size), from->size};
    names[i] = arena_strdup(w->arena, (*uris)[i]);
  }
  options->input = arena_strdup(w->arena, options->input);
  options->open = open;
  *uris = names;
}

Worker *worker_start(const Options *options, const char *const *uris, bool utf8, Stream *client,
                     json_t **first, const char **why)
{
  Worker *w = calloc(1, sizeof *w);
  Options own = *options;
  if (!w) abort();
  (void)client;
  *why = "";
  w->arena = arena_create();
  copy_texts(w, &own, &uris);
  analysis_open(&w->a, &own, uris, utf8);
  *first = analysis_diagnostics(&w->a);
  if (!*first) abort();
  return w;
}

json_t *worker_ask(Worker *w, const json_t *request, const char **why)
{
  *why = "";
  json_t *answer = analysis_answer(&w->a, request);
  if (!answer) abort();
  return answer;
}

void worker_end(Worker *w)
{
  if (!w) return;
  analysis_close(&w->a);
  arena_destroy(w->arena);
  free(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static int nothing;
  int ends[2];
  Options options = options_default();
  options.target = "sm_80";
  if (!nothing) nothing = open("/dev/null", O_WRONLY);
  if (pipe(ends) || write(ends[1], data, size) != (ssize_t)size) abort(); /* 64 KiB fit */
  close(ends[1]);
  lsp_serve(&options, ends[0], nothing);
  close(ends[0]);
  return 0;
}
