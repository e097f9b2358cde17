/* See load.h. */
#include "load.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libampcmpi.so"
enum { ROOM = 1024 };

/* ---- was the process started as a rank? ---- */

/* The variables that launchers set for each process. The first row whose rank is set counts,
 * because Open MPI sets PMIX_RANK, too. SLURM_PROCID is not among them: srun sets it also if no MPI
 * connects the processes. */
static const struct {
  const char *rank, *size, *local; /* local: number among the ranks of the host */
} launchers[] = {
    /* mpirun of Open MPI */
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    /* mpirun of MPICH and Intel MPI */
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    /* srun --mpi=pmix, and others with PMIx */
    {"PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers };

/* Returns the number that a variable has, or `otherwise`. */
static int number_of(const char *variable, int otherwise)
{
  const char *text = getenv(variable);
  char *end;
  if (!text || !*text) return otherwise;
  long n = strtol(text, &end, 10);
  return *end || n < 0 || n > 1 << 24 ? otherwise : (int)n;
}

Started load_started(void)
{
  const Started alone = {NULL, 0, 1, true};
  for (int i = 0; i < LAUNCHERS; i++) {
    int rank = number_of(launchers[i].rank, -1), size = number_of(launchers[i].size, 0);
    if (rank < 0) continue;
    if (size == 1) return alone;
    return (Started){launchers[i].rank, rank, size, number_of(launchers[i].local, 0) == 0};
  }
  return alone;
}

/* ---- the library ---- */

/* Writes the folder of this program, without a slash at the end. */
static void own_folder(char out[ROOM])
{
  ssize_t n = readlink("/proc/self/exe", out, ROOM - 1);
  out[n > 0 ? n : 0] = 0;
  char *slash = strrchr(out, '/');
  if (slash) *slash = 0;
}

/* Loads the file. Otherwise adds the reason to `why`, if the file exists. */
static void *open_file(const char *path, char why[ROOM])
{
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library && strchr(path, '/') && access(path, F_OK) == 0)
    snprintf(why, ROOM, "%s", dlerror());
  return library;
}

/* Opens the library that AMPC_MPI_LIBRARY names, or looks for it beside the program, in its
 * installed folder and in the loader's folders. */
static void *open_library(char why[ROOM])
{
  char own[ROOM], path[2 * ROOM];
  const char *given = getenv("AMPC_MPI_LIBRARY");
  if (given && *given) return open_file(given, why);
  own_folder(own);
  snprintf(path, sizeof path, "%s/" LIBRARY, own);
  void *library = open_file(path, why);
  if (library) return library;
  snprintf(path, sizeof path, "%s/../" AMPC_LIBRARY_FOLDER "/" LIBRARY, own);
  library = open_file(path, why);
  if (!library) library = open_file(AMPC_INSTALLED_FOLDER "/" LIBRARY, why);
  return library ? library : open_file(LIBRARY, why);
}

ampc_status load_engine(const Started *s, const Engine **out)
{
  static const char cure[] =
      "install MPI (Debian: mpich and libmpich-dev) and build ampc again, or "
      "let AMPC_MPI_LIBRARY name the file";
  char why[ROOM] = "";
  const char *given = getenv("AMPC_MPI_LIBRARY");
  void *library = open_library(why);
  *out = NULL;
  if (!library && *why)
    return ampc_fail(AMPC_BAD_FILE, "the library for ranks cannot be loaded: %s; %s", why, cure);
  if (!library)
    return ampc_fail(AMPC_BAD_FILE,
                     "this process was started as rank %d (%s), but %s, which connects ranks, is "
                     "not there: %s",
                     s->rank, s->variable, given && *given ? given : LIBRARY, cure);
  const Engine *engine = dlsym(library, ENGINE_TABLE);
  if (!engine || engine->version != ENGINE_VERSION)
    return ampc_fail(AMPC_BAD_FILE, LIBRARY " is of another version of ampc; %s", cure);
  *out = engine;
  return AMPC_OK;
}
