/* See adapter.h. */
#include "adapter.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/file.h"

ampc_status adapter_config_write(const char *path, const char *config)
{
  const char *slash = strrchr(path, '/');
  if (strcmp(slash ? slash + 1 : path, "adapter_model.safetensors") != 0) return AMPC_OK;
  char *folder = file_folder(path);
  char *name = folder ? file_join(folder, "adapter_config.json") : NULL;
  ampc_status status = name
                           ? file_write(name, &file_adapter_config, config, (int64_t)strlen(config))
                           : ampc_fail(AMPC_RUN_FAILED, "out of memory for adapter_config.json");
  free(folder);
  free(name);
  return status;
}

ampc_status base_check(const ampc_runtime *rt, const char *path, const TensorFile *f)
{
  const char *has = tensor_file_get(f, BASE_KEY);
  char wanted[17];
  snprintf(wanted, sizeof wanted, "%016llx", (unsigned long long)rt->given_hash);
  if (!has || !rt->given_hash || strcmp(has, wanted) == 0) return AMPC_OK;
  return ampc_fail(
      AMPC_BAD_FILE,
      "%s: its adapters were trained beside other weights than those that `load` of %s "
      "now reads",
      path, rt->program->source);
}
