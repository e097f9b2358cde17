/* Signals as requests: Ctrl-C (SIGINT), SIGTERM and SIGHUP to end, SIGUSR1 to save. What was
 * ignored when the program began, as under nohup, stays ignored.
 *
 * Note [interrupts]
 * A program catches them from its first line to its end. Until somebody looks at requests, such as
 * the training loop between two steps, one to end is obeyed at once: a message, status 130. While
 * something is held (a compiler runs, a temporary file lies about), it waits for the release.
 * Where requests are looked at, a second one ends the process at once; one that comes right after
 * the first does not count, for timeout(1), terminals and shells send some twice. */
#pragma once
#include <stdbool.h>

/* ---- for main() ---- */

/* Before anything is opened; `program` stands in the message. */
void interrupt_begin(const char *program);
/* From here on somebody looks at requests, to the end of the process. */
void interrupt_ask(void);
/* The same for a prompt: Ctrl-C is only a request however often it comes; SIGTERM and SIGHUP end
 * the session. Where the input is no terminal the signals end the reading of a line. */
void interrupt_prompt(bool terminal);

/* ---- for the training loop, whose caller need not have begun ---- */

void interrupt_catch(void); /* and a pipe without a reader is an error of write() */
void interrupt_restore(void);

/* ---- for all ---- */

void interrupt_hold(void);    /* nests, in any thread */
void interrupt_release(void); /* does not return where the process is to end */
bool interrupt_requested(void);
bool interrupt_ending(void);    /* as before, but for Ctrl-C at a prompt */
void interrupt_calm(void);      /* forgets a Ctrl-C at a prompt */
bool interrupt_take_save(void); /* has a save been asked for since the last call? */
