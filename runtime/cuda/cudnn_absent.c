/* Describes absent GPUs to cuDNN, which then names engines and finishes plans as on the real ones.
 * So tests and `amp inspect` can show the engine of a graph without a GPU. */
#include "cudnn.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { PROPERTIES_ROOM = 1024 };

/* The properties in which GPUs differ; all others have the same values on the GPUs that we support.
 * Clocks and sizes of memory are from data sheets. */
typedef struct Model {
  int capability, multiprocessors, shared_optin, threads, blocks, l2, clock, memory_clock;
  int64_t memory;
  const char *name;
} Model;

/* The first model of the given capability is used, or of the next lower one. */
static const Model models[] = {
    {121, 48, 101376, 1536, 24, 25165824, 2520000, 4266000, 128000000000, "NVIDIA GB10"},
    {120, 170, 101376, 1536, 24, 100663296, 2407000, 14001000, 34000000000,
     "NVIDIA GeForce RTX 5090"},
    {110, 20, 232448, 1536, 24, 33554432, 1575000, 4266000, 128000000000, "NVIDIA Thor"},
    {100, 148, 232448, 2048, 32, 132644864, 1965000, 3996000, 190000000000, "NVIDIA B200"},
    {90, 132, 232448, 2048, 32, 52428800, 1980000, 3201000, 150110011392, "NVIDIA H200"},
    {89, 58, 101376, 1536, 24, 50331648, 2040000, 6251000, 23580639232, "NVIDIA L4"},
    {87, 16, 166912, 1536, 16, 4194304, 1300000, 3200000, 64000000000, "Orin"},
    {86, 84, 101376, 1536, 16, 6291456, 1740000, 6251000, 47600000000, "NVIDIA A40"},
    {80, 108, 166912, 2048, 32, 41943040, 1410000, 1593000, 84980000000, "NVIDIA A100"},
    {75, 40, 65536, 1024, 16, 4194304, 1590000, 5001000, 15640000000, "Tesla T4"},
    {70, 80, 98304, 2048, 32, 6291456, 1530000, 877000, 16900000000, "Tesla V100"},
};
enum { MODELS = sizeof models / sizeof *models };

/* Writes the properties as JSON. cuDNN requires all of these keys, and all numbers as integers. */
static void describe(const Model *m, char out[PROPERTIES_ROOM])
{
  snprintf(out, PROPERTIES_ROOM,
           "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
           "\"regsPerBlock\":65536,\"multiProcessorCount\":%d,\"warpSize\":32,"
           "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":%d,"
           "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":%d,"
           "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":%d,\"pciDeviceId\":0,\"isTccDriver\":0,"
           "\"supportCoopLaunch\":1,\"totalGlobalMem\":%lld,\"smClockRateKHz\":%d,"
           "\"memClockRateKHz\":%d,\"l2CacheSize\":%d,\"cudaDeviceId\":0,\"deviceVer\":%d,"
           "\"driverVer\":13000,\"deviceName\":\"%s\"}",
           m->multiprocessors, m->shared_optin, m->blocks, m->threads, (long long)m->memory,
           m->clock, m->memory_clock, m->l2, m->capability * 10, m->name);
}

/* Returns why cuDNN cannot finish some plans, or NULL. It compiles some engines when it finishes
 * their plans, and does not name these engines if the driver is missing. */
static const char *no_driver(void)
{
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
  if (!driver) return "cuDNN compiles its engine with NVIDIA's driver, which is not here";
  dlclose(driver);
  return NULL;
}

bool dnn_machine_of(int capability, DnnMachine *out, char why[AMPC_WHY_ROOM])
{
  char text[PROPERTIES_ROOM];
  const Model *m = models;
  *out = (DnnMachine){.capability = capability, .lacks = no_driver()};
  while (m < models + MODELS - 1 && m->capability > capability) m++;
  if (!cuda_load_dnn(&out->api, why)) return false;
  describe(m, text);
  DnnObjects o = {.api = out->api};
  DnnDescriptor d = dnn_make(&o, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "properties of a GPU");
  dnn_set(&o, d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
          (int64_t)strlen(text) + 1, text);
  dnn_finalize(&o, d);
  out->properties = d;
  if (!o.status) return true;
  snprintf(why, AMPC_WHY_ROOM, "cuDNN %zu makes no plans without a GPU: %s",
           out->api->cudnnGetVersion(), out->api->cudnnGetErrorString(o.status));
  dnn_machine_free(out);
  return false;
}

void dnn_machine_free(DnnMachine *m)
{
  if (m->properties) m->api->cudnnBackendDestroyDescriptor(m->properties);
  m->properties = NULL;
  m->api = NULL;
}
