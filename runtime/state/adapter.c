/* See adapter.h. */
#include "adapter.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/file.h"

/* Returns the path of the description beside a file; NULL: out of memory. The caller frees it. */
static char *config_name(const char *path)
{
  char *folder = file_folder(path);
  char *name = folder ? file_join(folder, "adapter_config.json") : NULL;
  free(folder);
  return name;
}

ampc_status adapter_config_write(const char *path, const char *config)
{
  const char *slash = strrchr(path, '/');
  if (strcmp(slash ? slash + 1 : path, "adapter_model.safetensors") != 0) return AMPC_OK;
  char *name = config_name(path);
  ampc_status status = name
                           ? file_write(name, &file_adapter_config, config, (int64_t)strlen(config))
                           : ampc_fail(AMPC_RUN_FAILED, "out of memory for adapter_config.json");
  free(name);
  return status;
}

/* ---- checks ---- */

/* Compares what the results depend on; dropout may change. `ours`: a run has written the text, so
 * its patterns are paths. PEFT's patterns may also be ends of names, and are not compared. */
static ampc_status compare_configs(const char *path, const char *source, const json_t *has,
                                   const json_t *wanted, bool ours)
{
  static const char *const keys[] = {"r",        "lora_alpha",   "use_rslora",
                                     "use_dora", "rank_pattern", "alpha_pattern"};
  size_t n = sizeof keys / sizeof *keys - (ours ? 0 : 2);
  for (size_t i = 0; i < n; i++) {
    const json_t *a = json_object_get(has, keys[i]), *b = json_object_get(wanted, keys[i]);
    bool dora = i == 3, same = dora ? !json_is_true(a) : !a || json_equal(a, b);
    if (json_is_number(a) && json_is_number(b)) same = json_number_value(a) == json_number_value(b);
    if (same) continue;
    char *was = json_dumps(a, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    char *is = json_dumps(b, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    ampc_status status = ampc_fail(AMPC_BAD_FILE, "%s: its adapter has \"%s\": %s, that of %s %s",
                                   path, keys[i], was ? was : "?", source,
                                   is     ? is
                                   : dora ? "has no such thing"
                                          : "?");
    free(was);
    free(is);
    return status;
  }
  return AMPC_OK;
}

/* Returns the description of the adapter: from the metadata, or from the file that PEFT writes. */
static json_t *read_config(const char *path, const TensorFile *f)
{
  const char *text = tensor_file_get(f, ADAPTER_KEY), *slash = strrchr(path, '/');
  if (text) return json_loads(text, 0, NULL);
  if (strcmp(slash ? slash + 1 : path, "adapter_model.safetensors") != 0) return NULL;
  char *name = config_name(path), *bytes = NULL;
  int64_t size;
  json_t *root = NULL;
  if (name && access(name, R_OK) == 0 && !file_read(FILE_WEIGHTS, name, &bytes, &size))
    root = json_loadb(bytes, (size_t)size, 0, NULL);
  free(bytes);
  free(name);
  return root;
}

ampc_status adapter_check(const ampc_runtime *rt, const char *path, const TensorFile *f)
{
  const ampc_program *p = rt->program;
  const char *has = tensor_file_get(f, BASE_KEY);
  char wanted[17];
  snprintf(wanted, sizeof wanted, "%016llx", (unsigned long long)rt->given_hash);
  if (has && rt->given_hash && strcmp(has, wanted) != 0)
    return ampc_fail(
        AMPC_BAD_FILE,
        "%s: its adapters were trained with other frozen weights than those that `load` of %s now "
        "reads",
        path, p->source);
  json_t *config = p->adapter ? read_config(path, f) : NULL;
  json_t *own = config ? json_loads(p->adapter, 0, NULL) : NULL;
  ampc_status status =
      own ? compare_configs(path, p->source, config, own, tensor_file_get(f, ADAPTER_KEY) != NULL)
          : AMPC_OK;
  json_decref(config);
  json_decref(own);
  return status;
}
