/* The engine of ranks on MPI: the only file that calls MPI, and a library of its own, because it is
 * compiled against one MPI. See engine.h. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "engine.h"

#ifndef MPI_MOST /* a test has shorter messages */
#  define MPI_MOST (1 << 30)
#endif
_Static_assert(sizeof(MPI_Request) <= sizeof(EngineRequest), "a request fits");

/* Returns NULL or MPI's text for the error, in one line. */
static const char *text_of(int error)
{
  static char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (error == MPI_SUCCESS) return NULL;
  if (MPI_Error_string(error, text, &length) != MPI_SUCCESS) return "unknown error of MPI";
  for (char *end = text; (end = strchr(end, '\n'));) *end = ';';
  return text;
}

/* MPICH says "MPICH Version:\t4.0.2" in a line, Open MPI "Open MPI v4.1.4, package: ..". */
static void name(char *out, int room)
{
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "", first[32] = "", second[32] = "", third[32] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  sscanf(text, "%31s %31s %31[^, \n]", first, second, third);
  if (strcmp(second, "Version:") == 0) second[0] = 0;
  snprintf(out, (size_t)room, "%s%s%s %s", first, *second ? " " : "", second, third);
}

static const char *begin(int *rank, int *size)
{
  int given;
  int error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given);
  if (!error && given < MPI_THREAD_SERIALIZED) return "this MPI has no support for threads";
  if (!error) error = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (!error) error = MPI_Comm_rank(MPI_COMM_WORLD, rank);
  if (!error) error = MPI_Comm_size(MPI_COMM_WORLD, size);
  return text_of(error);
}

static const char *end(void)
{
  return text_of(MPI_Finalize());
}

/* The caller has told why, so MPI's own message is left out. */
static void end_all(int status)
{
  int nowhere = open("/dev/null", O_WRONLY);
  if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
  MPI_Abort(MPI_COMM_WORLD, status);
}

/* ---- moving bytes ---- */

static EngineRequest packed(MPI_Request r)
{
  EngineRequest out = 0;
  memcpy(&out, &r, sizeof r);
  return out;
}

/* Sets *out to a type of `bytes` bytes whose next element begins `apart` bytes later. The caller
 * frees it. */
static int spaced(int64_t apart, int bytes, MPI_Datatype *out)
{
  MPI_Datatype dense;
  int error = MPI_Type_contiguous(bytes, MPI_BYTE, &dense);
  if (error) return error;
  error = MPI_Type_create_resized(dense, 0, (MPI_Aint)apart, out);
  MPI_Type_free(&dense);
  return error ? error : MPI_Type_commit(out);
}

static const char *gather(void *all, int64_t apart, int bytes, EngineRequest *out)
{
  MPI_Request r = MPI_REQUEST_NULL;
  MPI_Datatype type = MPI_BYTE;
  bool dense = apart == bytes;
  int error = dense ? MPI_SUCCESS : spaced(apart, bytes, &type);
  if (!error)
    error = MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, dense ? bytes : 1, type,
                           MPI_COMM_WORLD, &r);
  if (type != MPI_BYTE) MPI_Type_free(&type);
  *out = packed(r);
  return text_of(error);
}

static const char *swap(const void *from, void *to, int64_t apart, int bytes,
                        EngineRequest *request)
{
  MPI_Request r = MPI_REQUEST_NULL;
  MPI_Datatype type = MPI_BYTE;
  bool dense = apart == bytes;
  int count = dense ? bytes : 1, error = dense ? MPI_SUCCESS : spaced(apart, bytes, &type);
  if (!error) error = MPI_Ialltoall(from, count, type, to, count, type, MPI_COMM_WORLD, &r);
  if (type != MPI_BYTE) MPI_Type_free(&type);
  *request = packed(r);
  return text_of(error);
}

static const char *start_send(int to, int tag, const void *from, int bytes, EngineRequest *out)
{
  MPI_Request r = MPI_REQUEST_NULL;
  int error = MPI_Isend(from, bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &r);
  *out = packed(r);
  return text_of(error);
}

static const char *start_receive(int from, int tag, void *to, int bytes, EngineRequest *out)
{
  MPI_Request r = MPI_REQUEST_NULL;
  int error = MPI_Irecv(to, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &r);
  *out = packed(r);
  return text_of(error);
}

static const char *test(EngineRequest *request, bool *out_done)
{
  MPI_Request r;
  int done = 0;
  memcpy(&r, request, sizeof r);
  int error = MPI_Test(&r, &done, MPI_STATUS_IGNORE);
  *request = packed(r);
  *out_done = done;
  return text_of(error);
}

static const char *heard(int tag, bool *out)
{
  int there = 0;
  int error = MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
  *out = there;
  return text_of(error);
}

extern const Engine ampc_mpi_engine;
const Engine ampc_mpi_engine = {
    .version = ENGINE_VERSION,
    .most = MPI_MOST,
    .name = name,
    .begin = begin,
    .end = end,
    .abort = end_all,
    .gather = gather,
    .swap = swap,
    .send = start_send,
    .receive = start_receive,
    .test = test,
    .heard = heard,
};
