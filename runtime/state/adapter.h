/* Files of adapters, as PEFT reads them: a safetensors file with the trained parameters, and
 * adapter_config.json beside it. A checkpoint of ours has the text of that file in its metadata. */
#pragma once
#include "runtime/runtime.h"
#include "safetensors.h"

#define AMPC_PEFT_PREFIX "base_model.model." /* names in PEFT's files begin with it */
#define ADAPTER_KEY      "ampc.adapter"
#define BASE_KEY         "ampc.base"

/* Writes adapter_config.json, the text `config`, into the folder of `path` if the name of `path` is
 * PEFT's, adapter_model.safetensors; else nothing, because PEFT does not read such a file. */
ampc_status adapter_config_write(const char *path, const char *config);
/* Refuses a file of adapters that were trained with other frozen weights than the runtime has
 * loaded, or whose scaling differs from the program's. Reads the metadata of the file, or PEFT's
 * adapter_config.json beside it. A file that does not say it passes. */
ampc_status adapter_check(const ampc_runtime *rt, const char *path, const TensorFile *f);
