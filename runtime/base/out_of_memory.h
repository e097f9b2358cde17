/* Detects that memory runs out inside a library, where no malloc of ampc can report it. */
#pragma once
#include <stdbool.h>

enum { CRASH_STACK = 32 << 10 /* bytes; all registers of a processor with AMX take 11 KB */ };

/* Returns whether there is too little memory for what a library allocates in one call. Check it
 * before oneDNN generates a kernel: without memory oneDNN writes to buffers that it did not get, or
 * throws an exception that nobody catches. */
bool out_of_memory_near(void);

/* Sets handlers of crashes: a crash after memory has run out ends the process with one sentence and
 * status 5. Other crashes, and signals that a process sent, are handled as before. The sentence
 * begins with `program`, which must stay valid. The calling thread gets a stack for handlers. */
void out_of_memory_catch(const char *program);

/* Lets crash handlers run on `stack` while this thread lives. The thread's own stack may be full,
 * or in use for data (Note [signals]). */
void out_of_memory_stack(char stack[CRASH_STACK]);
