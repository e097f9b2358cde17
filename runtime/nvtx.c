/* The part of NVTX 3 that connects a program with a tool. A tool that starts a program sets
 * NVTX_INJECTION64_PATH to its own library. NVTX has no library: the program loads that of the tool
 * and calls its InitializeInjectionNvtx2. This function asks for a table of places, and stores the
 * tool's functions in the places that it supports. Numbers and structs are those of
 * nvtx3/nvtxDetail/nvtxTypes.h. */
#include "nvtx.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_CALLBACKS = 1, TABLE_VERSION = 3, VERSION = 3 };
/* Modules of functions; of these only two functions are called. No module has more than COUNT. */
enum { CORE = 1, MODULES = 7, CORE_PUSH = 9, CORE_POP = 11, COUNT = 16 };
typedef void Function(void);
typedef struct Callbacks { /* NvtxExportTableCallbacks */
  size_t size;
  int (*get)(int module, Function ****out_places, unsigned *out_n);
} Callbacks;
typedef struct Version { /* NvtxExportTableVersionInfo */
  size_t size;
  uint32_t version, reserved;
  void (*set_version_of_tool)(uint32_t version);
} Version;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static Function *functions[MODULES][COUNT]; /* of the tool, by NvtxCallbackIdCore and so on */
static Nvtx nvtx;

/* The tool may store its functions through the pointers of this array, which ends with NULL. */
static int give_places(int module, Function ****out_places, unsigned *out_n)
{
  static Function **places[MODULES][COUNT + 1];
  if (module < CORE || module >= MODULES) return 0;
  for (int i = 0; i < COUNT; i++) places[module][i] = &functions[module][i];
  if (out_places) *out_places = places[module];
  if (out_n) *out_n = COUNT;
  return 1;
}

static void take_version(uint32_t version)
{
  (void)version;
}

static const void *give_table(uint32_t table)
{
  static const Callbacks callbacks = {sizeof callbacks, give_places};
  static const Version version = {sizeof version, VERSION, 0, take_version};
  return table == TABLE_CALLBACKS ? (const void *)&callbacks
         : table == TABLE_VERSION ? (const void *)&version
                                  : NULL;
}

static void connect(void)
{
  int (*start)(const void *(*)(uint32_t)) = NULL;
  const char *path = getenv("NVTX_INJECTION64_PATH");
  void *tool = path ? dlopen(path, RTLD_LAZY) : NULL;
  void *found = tool ? dlsym(tool, "InitializeInjectionNvtx2") : NULL;
  memcpy(&start, &found, sizeof start); /* ISO C has no such cast */
  if (!start || !start(give_table)) return;
  nvtx.push = (int (*)(const char *))functions[CORE][CORE_PUSH];
  nvtx.pop = (int (*)(void))functions[CORE][CORE_POP];
}

const Nvtx *nvtx_open(void)
{
  pthread_once(&once, connect);
  return nvtx.push && nvtx.pop ? &nvtx : NULL;
}
