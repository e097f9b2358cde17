/* What ranks need of MPI: the table of functions that mpi.c, a library of its own, hands to load.c.
 * The functions are thin: ranks.c decides what is sent, how long to wait, and what an error means.
 * Those that return text return NULL, or why they failed; the text is valid until the next call. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { ENGINE_VERSION = 1 }; /* changes with this file; a library of another version is refused */

typedef uintptr_t EngineRequest; /* has room for an MPI_Request */

typedef struct Engine {
  int version;
  int most;                          /* most bytes of one message */
  void (*name)(char *out, int room); /* "MPICH 4.0.2"; may be called before `begin` */
  const char *(*begin)(int *rank, int *size);
  const char *(*end)(void);
  void (*abort)(int status); /* ends all ranks */
  /* Start to move bytes; the request then goes to `test` until it is done. Row i of `all` and piece
   * i of `out` and `in` begin i * apart bytes after the first. */
  const char *(*gather)(void *all, int64_t apart, int bytes, EngineRequest *out);
  const char *(*swap)(const void *out, void *in, int64_t apart, int bytes, EngineRequest *request);
  const char *(*send)(int to, int tag, const void *from, int bytes, EngineRequest *out);
  const char *(*receive)(int from, int tag, void *to, int bytes, EngineRequest *out);
  const char *(*test)(EngineRequest *request, bool *out_done);
  /* Tells whether a message with this tag, which nobody receives yet, has come. */
  const char *(*heard)(int tag, bool *out);
} Engine;

#define ENGINE_TABLE "ampc_mpi_engine" /* the name of the table in the library */
