/* Forks a process for each compile. It has a copy of the texts, sends the diagnostics, and then
 * answers requests until it is killed or the socket closes. */
#include "worker.h"
#include "ampc_plan.h"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKER_QUOTED(x) #x
#define WORKER_TEXT(x)   WORKER_QUOTED(x)

enum { LOOK_MS = 20 }; /* how often a compile looks for edits */

struct Worker {
  pid_t process;
  Stream stream, *client;
};

/* ---- the process ---- */

/* A job may name any file as its data, so the process loses the streams of the protocol: its stdin
 * is empty, and its stdout is stderr, which editors show as a log. */
static void limit_process(void)
{
  int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
#ifndef __SANITIZE_ADDRESS__ /* it reserves terabytes */
  const rlim_t most = (rlim_t)WORKER_GIB << 30;
  setrlimit(RLIMIT_AS, &(struct rlimit){most, most});
#endif
}

static _Noreturn void work(int socket, const Options *options, const char *const *uris, bool utf8)
{
  Analysis a;
  Stream s = {.in = socket, .out = socket};
  const char *body;
  size_t size;
  limit_process();
  analysis_open(&a, options, uris, utf8);
  json_t *out = analysis_diagnostics(&a);
  while (message_write(&s, out) && message_read(&s, &body, &size) == RECEIVED_message) {
    json_t *request = message_parse(body, size);
    json_decref(out);
    out = json_pack("{s:o}", "result", analysis_answer(&a, request));
    json_decref(request);
  }
  analysis_close(&a);
  _exit(0);
}

/* ---- the server's side ---- */

/* Waits for the end of the process, and says why it ended. */
static const char *why_ended(Worker *w)
{
  int status;
  waitpid(w->process, &status, 0);
  w->process = 0;
  if (WIFEXITED(status) && WEXITSTATUS(status) == AMPC_RUN_FAILED)
    return "the compile needs more than " WORKER_TEXT(WORKER_GIB) " GiB of memory";
  return "the compiler crashes, which is a bug in amp: please report it";
}

/* Waits for a message of the worker. Returns false with *why if it takes too long; or without, if
 * the client sends an edit, which makes the message useless. */
static bool wait_for_answer(Worker *w, const char **why)
{
  *why = NULL;
  for (int ms = 0; !message_waits(&w->stream, LOOK_MS); ms += LOOK_MS) {
    if (message_announced(w->client, "textDocument/didChange")) return false;
    if (ms < WORKER_SECONDS * 1000) continue;
    *why = "the compile takes longer than " WORKER_TEXT(WORKER_SECONDS) " seconds";
    return false;
  }
  return true;
}

/* Returns the next message of the worker. NULL: there is none, and *why says why, as above. */
static json_t *receive(Worker *w, const char **why)
{
  const char *body;
  size_t size;
  if (!wait_for_answer(w, why)) return NULL;
  Received r = message_read(&w->stream, &body, &size);
  json_t *message = r == RECEIVED_message ? message_parse(body, size) : NULL;
  if (!message)
    *why = r == RECEIVED_end ? why_ended(w) : "the server cannot read the answer of the compiler";
  return message;
}

Worker *worker_start(const Options *options, const char *const *uris, bool utf8, Stream *client,
                     json_t **first, const char **why)
{
  int ends[2];
  Worker *w = calloc(1, sizeof *w);
  *first = NULL;
  *why = "this machine cannot start a process";
  if (!w || socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) {
    free(w);
    return NULL;
  }
  w->process = fork();
  if (w->process == 0) {
    close(ends[0]);
    work(ends[1], options, uris, utf8);
  }
  close(ends[1]);
  w->stream = (Stream){.in = ends[0], .out = ends[0]};
  w->client = client;
  if (w->process > 0) *first = receive(w, why);
  if (*first) return w;
  worker_end(w);
  return NULL;
}

json_t *worker_ask(Worker *w, const json_t *request, const char **why)
{
  *why = "the worker has gone";
  json_t *answer = message_write(&w->stream, request) ? receive(w, why) : NULL;
  json_t *result = json_incref(json_object_get(answer, "result"));
  json_decref(answer);
  return result;
}

void worker_end(Worker *w)
{
  if (!w) return;
  if (w->process > 0) {
    kill(w->process, SIGKILL);
    waitpid(w->process, NULL, 0);
  }
  close(w->stream.in);
  free(w->stream.at);
  free(w);
}
