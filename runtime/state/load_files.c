/* The tensors that a `load` clause reads: from one safetensors file, or from the shards that a
 * Hugging Face index file names: {"weight_map": {"fc.weight": "model-00001-of-00002.safetensors",
 * ..}}. */
#include <stdlib.h>
#include <string.h>
#include "load.h"

static ampc_status lost(const Loading *x)
{
  return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", x->path);
}

/* Opens the next file. It takes ownership of `path`. */
static ampc_status open_file(Loading *x, char *path)
{
  if (!path) return lost(x);
  ampc_status status = tensor_file_read_any(path, &x->files[x->n_files]);
  if (status)
    free(path);
  else
    x->n_files++;
  return status;
}

static bool is_index(const char *path)
{
  static const char ending[] = ".json";
  size_t n = strlen(path);
  return n >= sizeof ending && strcmp(path + n - (sizeof ending - 1), ending) == 0;
}

/* ---- an index and its shards ---- */

static ampc_status bad_index(const Loading *x, const char *what, const char *name)
{
  return ampc_fail(AMPC_BAD_FILE, "%s is no index of safetensors files: %s%s", x->path, what, name);
}

/* Reads the weight map. The caller releases *out_root. */
static ampc_status read_index(const Loading *x, json_t **out_root, const json_t **out_map)
{
  char *text;
  int64_t size;
  ampc_status status = file_read(FILE_WEIGHTS, x->path, &text, &size);
  if (status) return status;
  json_error_t error;
  *out_root = json_loadb(text, (size_t)size, JSON_REJECT_DUPLICATES, &error);
  free(text);
  *out_map = json_object_get(*out_root, "weight_map");
  return json_is_object(*out_map)
             ? AMPC_OK
             : bad_index(x, "it has no \"weight_map\": ",
                         *out_root ? "it is JSON of another kind" : error.text);
}

/* Whether the name is allowed: shards are in the folder of the index, so it names no folder. */
static bool is_shard_name(const char *name)
{
  return name && *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Opens each file once, in the order in which the map first names them. */
static ampc_status open_shards(Loading *x, const json_t *map, json_t *opened)
{
  const char *name;
  json_t *file, *slot;
  ampc_status status = AMPC_OK;
  char *folder = file_folder(x->path);
  x->files = calloc(json_object_size(map) + 1, sizeof *x->files);
  if (!x->files || !folder) status = lost(x);
  json_object_foreach((json_t *)(uintptr_t)map, name, file)
  {
    const char *shard = json_string_value(file);
    if (!status && !is_shard_name(shard))
      status = bad_index(x, "a shard must be a file name without a folder; see ", name);
    if (status || json_object_get(opened, shard)) continue;
    status = open_file(x, file_join(folder, shard));
    if (status) continue;
    slot = json_integer((json_int_t)x->n_files - 1);
    if (json_object_set_new(opened, shard, slot) != 0) status = lost(x);
  }
  free(folder);
  return status;
}

/* Checks that each shard contains the tensors that the index claims. */
static ampc_status check_shards(const Loading *x, const json_t *map, const json_t *opened)
{
  const char *name;
  json_t *file;
  json_object_foreach((json_t *)(uintptr_t)map, name, file)
  {
    const json_t *slot = json_object_get(opened, json_string_value(file));
    const TensorFile *f = &x->files[json_integer_value(slot)];
    if (!json_object_get(f->header, name))
      return ampc_fail(AMPC_BAD_FILE, "%s lacks tensor %s, although %s lists it there", f->path,
                       name, x->path);
  }
  return AMPC_OK;
}

static ampc_status open_index(Loading *x)
{
  json_t *root = NULL, *opened = json_object();
  const json_t *map = NULL;
  ampc_status status = opened ? read_index(x, &root, &map) : lost(x);
  if (!status) status = open_shards(x, map, opened);
  if (!status) status = check_shards(x, map, opened);
  json_decref(root);
  json_decref(opened);
  return status;
}

/* ---- the tensors ---- */

/* Whether a tensor is optimizer state in a checkpoint of ours: that is no initial value. */
static bool is_state_of_ours(const TensorFile *f, const char *name)
{
  return strncmp(name, "optimizer.", 10) == 0 && tensor_file_get(f, "ampc.version");
}

/* Returns "fc.weight" for its average "optimizer.opt.ema/fc.weight"; NULL: not an average. */
static const char *averaged(const Loading *x, const LoadTensor *t)
{
  const char *ema = x->averages && t->left ? strstr(t->name, ".ema/") : NULL;
  return ema ? ema + 5 : NULL;
}

/* Replaces weights by their averages, which then have the names of the weights. */
static void take_averages(Loading *x)
{
  for (uint32_t i = 0; i < x->n; i++) {
    const char *name = averaged(x, &x->at[i]);
    for (uint32_t k = 0; k < x->n && name; k++)
      if (strcmp(x->at[k].name, name) == 0) x->at[k].left = true;
    if (!name) continue;
    x->at[i].name = name;
    x->at[i].left = false;
  }
}

static void list_tensors(Loading *x)
{
  const char *name;
  json_t *entry;
  for (uint32_t i = 0; i < x->n_files; i++) json_object_foreach(x->files[i].header, name, entry)
    {
      if (strcmp(name, "__metadata__") == 0) continue;
      x->at[x->n++] = (LoadTensor){.file = &x->files[i],
                                   .name = name,
                                   .entry = tensor_entry(entry),
                                   .left = is_state_of_ours(&x->files[i], name)};
    }
}

ampc_status load_files_open(Loading *x)
{
  ampc_status status;
  size_t n = 0;
  if (is_index(x->path)) {
    status = open_index(x);
  } else {
    x->files = calloc(1, sizeof *x->files);
    status = x->files ? open_file(x, strdup(x->path)) : lost(x);
  }
  for (uint32_t i = 0; i < x->n_files; i++) n += json_object_size(x->files[i].header);
  if (status) return status;
  x->at = calloc(n + 1, sizeof *x->at);
  if (!x->at) return lost(x);
  list_tensors(x);
  take_averages(x);
  return AMPC_OK;
}

void load_files_close(Loading *x)
{
  for (uint32_t i = 0; i < x->n; i++) free(x->at[i].ours);
  free(x->at);
  for (uint32_t i = 0; i < x->n_files; i++) {
    char *path = (char *)(uintptr_t)x->files[i].path;
    tensor_file_free(&x->files[i]);
    free(path);
  }
  free(x->files);
}
