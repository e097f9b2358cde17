/* Signals as requests: Ctrl-C (SIGINT), SIGTERM and SIGHUP request the end, SIGUSR1 requests a
 * save. A signal that was ignored when the program began, as under nohup, stays ignored.
 *
 * Note [interrupts]
 * A program catches these signals from its first line to its end. At first a request to end takes
 * effect at once: a message and status 130. While something is held (a running compiler, a
 * temporary file), the request waits for the release. After interrupt_ask the program itself checks
 * for requests; the training loop does so between two steps. Then only a second request ends the
 * process at once. It does not count right after the first: timeout(1), terminals and shells send
 * some signals twice. */
#pragma once
#include <stdbool.h>

/* ---- for main() ---- */

/* Begins to catch signals; call it before anything is opened. The message names `program`. */
void interrupt_begin(const char *program);
/* Says that from here on the program itself checks for requests. */
void interrupt_ask(void);
/* The same for the prompt of `amp repl`. Ctrl-C is only a request, even if repeated; SIGTERM and
 * SIGHUP end the session. If the input is not a terminal, signals also interrupt reading a line. */
void interrupt_prompt(bool terminal);

/* ---- for the training loop; works without interrupt_begin, too ---- */

void interrupt_catch(void); /* also: write() to a pipe without a reader returns an error */
void interrupt_restore(void);

/* ---- for all ---- */

void interrupt_hold(void);    /* may nest; any thread may call it */
void interrupt_release(void); /* does not return if the process is to end */
bool interrupt_requested(void);
bool interrupt_ending(void);    /* true if an end is requested by more than Ctrl-C at a prompt */
void interrupt_calm(void);      /* forgets a Ctrl-C at a prompt */
bool interrupt_take_save(void); /* has a save been requested since the last call? */
