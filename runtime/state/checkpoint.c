/* Checkpoints: the state of a training run as one safetensors file.
 *
 * Tensors: every parameter and buffer under its path; moments as "optimizer.NAME.moment1/PATH",
 * averages of weights as "optimizer.NAME.ema/PATH". Metadata: counters, scaler, data position,
 * seed, config, settings. Gradients, norms, metrics and 16-bit copies are left out, because a step
 * computes them. Times and paths are left out, too, so equal states give equal bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/number.h"
#include "adapter.h"
#include "metadata.h"
#include "param.h"
#include "runtime/members.h"
#include "saved.h"
#include "common/needs.h"

static const char version[] = "2";

static ampc_status no_memory(void)
{
  return ampc_fail(AMPC_RUN_FAILED, "out of memory for a checkpoint");
}

/* ---- saving ---- */

static bool set_count(TensorFile *f, const char *const *key, int64_t value)
{
  return metadata_set(f, key, "%lld", (long long)value);
}

static const char *scaler_word(const ampc_program *p)
{
  return !p->scaler.on ? "off" : p->scaler.dynamic ? "dynamic" : "static";
}

/* Writes the scaler. A negative growth counter counts overflows in a row. It is saved as 0, so a
 * resumed run counts them anew. */
static bool set_scaler(TensorFile *f, const ampc_program *p, const ampc_state *s)
{
  return tensor_file_set(f, "ampc.scaler", scaler_word(p)) &&
         metadata_set(f, KEY("ampc.scale"), "%.9g", (double)s->scale) &&
         set_count(f, KEY("ampc.growth"), s->growth > 0 ? s->growth : 0) &&
         (!p->scaler.replay || set_count(f, KEY("ampc.replayed"), s->replayed)) &&
         (s->hysteresis < 2 || set_count(f, KEY("ampc.spared"), s->spared));
}

/* Writes the names of the classes, which `amp infer` prints, and those of columns, whose numbers it
 * keeps. */
static bool set_classes(TensorFile *f, const ampc_program *p)
{
  return (!p->classes || tensor_file_set(f, "ampc.classes", p->classes)) &&
         (!p->columns || tensor_file_set(f, "ampc.columns", p->columns));
}

/* Writes which samples the first train block reads: seed and range of the part that is drawn; "":
 * none is drawn. */
static const char *part_text(const ampc_program *p, char to[PART_ROOM])
{
  const ampc_source *s = NULL;
  for (uint32_t i = 0; i < p->n_blocks && !s; i++)
    if (p->blocks[i].kind == AMPC_TRAIN && p->blocks[i].n_sources)
      s = &p->sources[p->blocks[i].first_source];
  *to = 0;
  if (s && s->drawn)
    snprintf(to, PART_ROOM, "part=[%.9g, %.9g], part_seed=%llu", s->part_begin, s->part_end,
             (unsigned long long)s->part_seed);
  return to;
}

static bool set_part(TensorFile *f, const ampc_program *p)
{
  char text[PART_ROOM];
  return !*part_text(p, text) || tensor_file_set(f, "ampc.part", text);
}

/* Keeps the part of the checkpoint if the program has another one: its eval blocks may read samples
 * that the checkpoint was trained on. */
static void compare_part(ampc_runtime *rt, const TensorFile *f)
{
  char text[PART_ROOM];
  const char *has = tensor_file_get(f, "ampc.part");
  bool differs = has && strcmp(has, part_text(rt->program, text)) != 0;
  snprintf(rt->other_part, sizeof rt->other_part, "%s", differs ? has : "");
}

/* Writes the metadata. "format" is the key with which PyTorch marks its own files. */
static bool set_metadata(TensorFile *f, const ampc_program *p, const ampc_state *s,
                         ampc_data_position at)
{
  return tensor_file_set(f, "format", "pt") && tensor_file_set(f, "ampc.version", version) &&
         tensor_file_set(f, "ampc.job", p->name) &&
         tensor_file_set(f, "ampc.config", p->config ? p->config : "{}") && set_classes(f, p) &&
         set_part(f, p) &&
         metadata_set(f, KEY("ampc.model"), "%016llx", (unsigned long long)p->model_hash) &&
         set_count(f, KEY("ampc.seed"), s->seed) && set_count(f, KEY("ampc.body"), s->body) &&
         set_count(f, KEY("ampc.step"), s->step) && set_count(f, KEY("ampc.skipped"), s->skipped) &&
         set_scaler(f, p, s) && set_count(f, KEY("ampc.position.block"), at.block) &&
         set_count(f, KEY("ampc.position.epoch"), at.epoch) &&
         set_count(f, KEY("ampc.position.batch"), at.batch);
}

/* Writes further names of tied parameters, which `amp weights` needs. */
static bool set_aliases(TensorFile *f, const ampc_program *p)
{
  bool good = true;
  for (uint32_t i = 0; i < p->n_aliases && good; i++) {
    char *key = metadata_key(KEY("ampc.tied.", p->aliases[i].path));
    good = key && tensor_file_set(f, key, p->params[p->aliases[i].param].path);
    free(key);
  }
  return good;
}

/* Writes the early-stop state of a run that has been evaluated. */
static bool set_patience(TensorFile *f, const Patience *p)
{
  return !p->any || (metadata_set(f, KEY("ampc.early_stop.best"), "%.17g", p->best) &&
                     set_count(f, KEY("ampc.early_stop.stale"), p->stale) &&
                     set_count(f, KEY("ampc.early_stop.step"), p->step));
}

/* Writes the settings for information only: a resumed run uses its own settings. */
static ampc_status set_settings(ampc_runtime *rt, TensorFile *f)
{
  const ampc_program *p = rt->program;
  bool good = true;
  for (uint32_t i = 0; i < p->n_settings && good; i++) {
    float value;
    ampc_status status = ampc_read(rt, runtime_setting_place(p, i), &value, sizeof value);
    if (status) return status;
    good = metadata_set(f, KEY("ampc.setting.", p->settings[i].name), "%.9g", (double)value);
  }
  return good ? AMPC_OK : no_memory();
}

#define OPTIMIZER_KEY(p, i, what) KEY("ampc.optimizer.", (p)->optimizers[i].name, what)

/* Writes the number of updates that the optimizer has applied, and its loss scale if each optimizer
 * has its own. */
static bool set_optimizer(TensorFile *f, const ampc_program *p, uint32_t i, const ampc_optimizer *o)
{
  if (!set_count(f, OPTIMIZER_KEY(p, i, ".taken"), o->taken)) return false;
  if (!p->scaler.per_optimizer) return true;
  return metadata_set(f, OPTIMIZER_KEY(p, i, ".scale"), "%.9g", (double)o->scale) &&
         set_count(f, OPTIMIZER_KEY(p, i, ".growth"), o->growth > 0 ? o->growth : 0) &&
         (p->scaler.hysteresis < 2 || set_count(f, OPTIMIZER_KEY(p, i, ".spared"), o->spared));
}

static bool add_tensors(TensorFile *f, const ampc_program *p, Entries *e)
{
  bool good = true;
  for (uint32_t i = 0; i < e->n && good; i++) {
    TensorType t = entry_type(p, &e->at[i]);
    good = tensor_file_add(f, e->at[i].name, &t, &e->at[i].begin);
  }
  return good;
}

/* Writes what the adapters are, and the hash of the weights that they were trained beside. */
static bool set_adapter(TensorFile *f, ampc_runtime *rt)
{
  const ampc_program *p = rt->program;
  return (!p->adapter || tensor_file_set(f, ADAPTER_KEY, p->adapter)) &&
         (!rt->given_hash ||
          metadata_set(f, KEY(BASE_KEY), "%016llx", (unsigned long long)rt->given_hash));
}

static ampc_status fill_header(ampc_runtime *rt, Entries *e, ampc_data_position at, TensorFile *f)
{
  const ampc_program *p = rt->program;
  Saved s;
  ampc_status status = saved_open(p, &s);
  if (!status) status = saved_read(rt, &s);
  if (!status) status = set_settings(rt, f);
  bool good = !status && plateaus_write(p, s.plateau, f) && set_metadata(f, p, &s.state, at) &&
              set_aliases(f, p) && set_patience(f, &s.patience) && set_adapter(f, rt);
  for (uint32_t i = 0; i < p->n_optimizers && good; i++)
    good = set_optimizer(f, p, i, &s.optimizer[i]);
  if (!status && !(good && add_tensors(f, p, e))) status = no_memory();
  saved_free(&s);
  return status;
}

typedef struct Writing { /* of the rank that writes the file */
  TensorWriter *writer;  /* NULL: another rank writes, or writing has failed */
  ampc_status status;
  char why[ERROR_TEXT];
} Writing;

/* Other ranks send their slices of the moments, so after a failure all pieces are still read. */
static ampc_status write_piece(void *to, int64_t at, int64_t bytes, void *piece)
{
  Writing *w = to;
  (void)at;
  if (w->writer) w->status = tensor_write(w->writer, piece, bytes);
  if (!w->writer || !w->status) return AMPC_OK;
  snprintf(w->why, sizeof w->why, "%s", ampc_last_error());
  tensor_write_abandon(w->writer);
  w->writer = NULL;
  return AMPC_OK;
}

/* Writes the file; on other ranks than the first one only sends what that one writes. */
static ampc_status write_file(ampc_runtime *rt, const Entries *e, TensorFile *f, const char *path,
                              const FileKind *kind)
{
  if (rt->members.ranks && rt->members.ranks->rank) path = NULL;
  TensorWriter writer;
  Writing w = {.writer = NULL};
  if (path) w.status = tensor_write_begin(&writer, f, path, kind);
  if (path && !w.status) w.writer = &writer;
  if (w.status) snprintf(w.why, sizeof w.why, "%s", ampc_last_error());
  ampc_status status = rt->members.ranks ? AMPC_OK : w.status;
  for (uint32_t i = 0; i < e->n && !status; i++)
    status = param_move(rt, e->at[i].param, e->at[i].space, false, write_piece, &w);
  if (!status && w.writer) return tensor_write_end(&writer);
  if (w.writer) tensor_write_abandon(&writer);
  return !status && w.status ? ampc_fail(w.status, "%s", w.why) : status;
}

/* Waits for the device. A crash leaves either the old file or the new one. */
ampc_status ampc_checkpoint_save(ampc_runtime *rt, const char *path, ampc_data_position at)
{
  NEEDS(rt && path);
  Entries e;
  TensorFile f = {.fd = -1};
  ampc_status status = entries_of(rt->program, ENTRIES_checkpoint, &e);
  if (!status) status = fill_header(rt, &e, at, &f);
  rt->collects = rt->members.ranks != NULL;
  if (!status) status = write_file(rt, &e, &f, path, &file_checkpoint);
  rt->collects = false;
  tensor_file_free(&f);
  entries_free(&e);
  return status;
}

ampc_status ampc_weights_save(ampc_runtime *rt, const char *path)
{
  NEEDS(rt && path);
  Entries e;
  TensorFile f = {.fd = -1};
  const ampc_program *p = rt->program;
  ampc_status status = entries_of(p, p->adapter ? ENTRIES_adapter : ENTRIES_weights, &e);
  if (!status && !(tensor_file_set(&f, "format", "pt") && set_classes(&f, p) &&
                   set_adapter(&f, rt) && add_tensors(&f, p, &e)))
    status = no_memory();
  if (!status) status = write_file(rt, &e, &f, path, &file_weights);
  if (!status && p->adapter) status = adapter_config_write(path, p->adapter);
  tensor_file_free(&f);
  entries_free(&e);
  return status;
}

/* ---- loading: all checks first ---- */

static int64_t count_of(Metadata *m, const char *const *key, int64_t most)
{
  return metadata_count(m, key, 0, most);
}

/* Reads a count; `absent` if the file lacks it. */
static int64_t count_or(Metadata *m, const char *const *key, int64_t absent)
{
  return metadata_get(m, key) ? count_of(m, key, AMPC_MOST_STEPS) : absent;
}

static void get_scaler(Metadata *m, Saved *s)
{
  const char *word = metadata_get(m, KEY("ampc.scaler"));
  s->dynamic = word && strcmp(word, "dynamic") == 0;
  if (!m->bad && !s->dynamic && (!word || (strcmp(word, "static") && strcmp(word, "off"))))
    metadata_refuse(m, "off, static or dynamic");
  s->state.growth = count_of(m, KEY("ampc.growth"), AMPC_MOST_STEPS);
  s->state.scale = (float)metadata_real(m, KEY("ampc.scale"), AMPC_SCALE);
  s->state.replayed = count_or(m, KEY("ampc.replayed"), 0);
  s->state.spared = count_or(m, KEY("ampc.spared"), 0);
}

static void get_patience(Metadata *m, Saved *s)
{
  const char *best = metadata_get(m, KEY("ampc.early_stop.best"));
  s->patience.any = best != NULL;
  if (!best) return;
  if (!ampc_read_real(best, &s->patience.best)) metadata_refuse(m, "a finite number");
  s->patience.stale = count_of(m, KEY("ampc.early_stop.stale"), s->state.step);
  s->patience.step = count_of(m, KEY("ampc.early_stop.step"), s->state.step);
}

/* Reads counters, and the position of the next batch. The run checks later whether the epoch has
 * this position. */
static void get_counters(Metadata *m, const ampc_program *p, Saved *s, ampc_data_position *out_at)
{
  s->state.seed = metadata_count(m, KEY("ampc.seed"), INT64_MIN, INT64_MAX);
  s->state.body = count_of(m, KEY("ampc.body"), AMPC_MOST_STEPS);
  s->state.step = count_of(m, KEY("ampc.step"), s->state.body);
  s->state.skipped = count_of(m, KEY("ampc.skipped"), s->state.step);
  get_scaler(m, s);
  get_patience(m, s);
  plateaus_load(m, p, s->state.step, s->plateau);
  s->state.epoch = out_at->epoch = count_of(m, KEY("ampc.position.epoch"), AMPC_MOST_STEPS);
  out_at->block = count_of(m, KEY("ampc.position.block"), (int64_t)p->n_blocks - 1);
  out_at->batch = count_of(m, KEY("ampc.position.batch"), AMPC_MOST_STEPS);
}

static ampc_status nonsense(const Metadata *m, const char *path, const ampc_program *p)
{
  const char *key = m->key ? m->key : "a key", *found = tensor_file_get(m->file, key);
  return ampc_fail(AMPC_BAD_FILE,
                   "%s is of another model than %s, or was edited: %s is %s%s%s, expected %s", path,
                   p->source, key, found ? "`" : "missing", found ? found : "", found ? "`" : "",
                   m->expected);
}

/* Returns the most updates that an optimizer can make in `steps` steps. `steps` is 2^53 at most. */
static int64_t most_taken(const ampc_optimizer_desc *o, int64_t steps)
{
  int64_t most;
  return __builtin_mul_overflow(steps, o->updates > 1 ? o->updates : 1, &most) ? INT64_MAX : most;
}

/* Reads the state of optimizer i. If the file has only one loss scale, each optimizer gets it. */
static void get_optimizer(Metadata *m, const ampc_program *p, Saved *s, uint32_t i)
{
  ampc_optimizer *o = &s->optimizer[i];
  int64_t most = most_taken(&p->optimizers[i], s->state.step);
  s->has[i] = true;
  o->taken = count_of(m, OPTIMIZER_KEY(p, i, ".taken"), most);
  if (!p->scaler.per_optimizer) return;
  o->scale = s->state.scale;
  if (metadata_get(m, OPTIMIZER_KEY(p, i, ".scale")))
    o->scale = (float)metadata_real(m, OPTIMIZER_KEY(p, i, ".scale"), AMPC_SCALE);
  o->growth = count_or(m, OPTIMIZER_KEY(p, i, ".growth"), s->state.growth);
  o->spared = count_or(m, OPTIMIZER_KEY(p, i, ".spared"), s->state.spared);
}

/* Reads the metadata. Invalid counters are from another program or from a forged file. */
static ampc_status get_saved(const char *path, const TensorFile *f, const ampc_program *p, Saved *s,
                             ampc_data_position *out_at)
{
  Metadata m = {.file = f};
  get_counters(&m, p, s, out_at);
  for (uint32_t i = 0; i < p->n_optimizers; i++) get_optimizer(&m, p, s, i);
  ampc_status status = m.bad ? nonsense(&m, path, p) : AMPC_OK;
  free(m.key);
  return status;
}

/* Reports why this tensor does not fit: the file lacks it, or it has another type or shape. */
static ampc_status other_model(const char *path, const ampc_program *p, const TensorFile *f,
                               const Entry *e)
{
  TensorType t = entry_type(p, e);
  const json_t *entry = json_object_get(f->header, e->name);
  char wants[128], has[128];
  tensor_type_text(&t, wants, sizeof wants);
  if (!entry)
    return ampc_fail(AMPC_BAD_FILE, "%s is of another model: it lacks %s %s of %s", path, e->name,
                     wants, p->source);
  tensor_entry_text(entry, has, sizeof has);
  return ampc_fail(AMPC_BAD_FILE, "%s is of another model: %s is %s there and %s in %s", path,
                   e->name, has, wants, p->source);
}

static bool is_wanted(const Entries *e, const char *name)
{
  for (uint32_t i = 0; i < e->n; i++)
    if (strcmp(e->at[i].name, name) == 0) return true;
  return strcmp(name, "__metadata__") == 0;
}

/* Reports a tensor of the file that the program lacks. */
static ampc_status unwanted(const char *path, const ampc_program *p, const char *name)
{
  const char *of = strchr(name, '/');
  for (uint32_t i = 0; i < p->n_params && strncmp(name, "optimizer.", 10) == 0 && of; i++)
    if (strcmp(p->params[i].path, of + 1) == 0 && p->params[i].optimizer < 0)
      return ampc_fail(AMPC_BAD_FILE,
                       "%s has %s, but no optimizer of %s trains %s; a clause `load(\"%s\")` of "
                       "the model takes the weights alone",
                       path, name, p->source, of + 1, path);
  return ampc_fail(AMPC_BAD_FILE, "%s is of another model: it has %s, which %s lacks", path, name,
                   p->source);
}

/* Checks the version, then each tensor, so that the message can name the one that differs. Then
 * checks the model's hash, which also covers facts that tensors do not show. Sets the offset of
 * each entry. */
static ampc_status check_model(const char *path, const ampc_program *p, const TensorFile *f,
                               Entries *e)
{
  const char *found = tensor_file_get(f, "ampc.version"), *hash = tensor_file_get(f, "ampc.model");
  if (!found)
    return ampc_fail(
        AMPC_BAD_FILE,
        "%s is no checkpoint of ampc; if it has weights alone, a clause `load(\"%s\")` "
        "of the model takes them",
        path, path);
  if (strcmp(found, version) != 0)
    return ampc_fail(AMPC_BAD_FILE, "%s is a checkpoint of version %s, this is version %s", path,
                     found, version);
  for (uint32_t i = 0; i < e->n; i++) {
    TensorType t = entry_type(p, &e->at[i]);
    e->at[i].begin = tensor_file_find(f, e->at[i].name, &t);
    if (e->at[i].begin < 0) return other_model(path, p, f, &e->at[i]);
  }
  const char *name;
  json_t *entry;
  json_object_foreach(f->header, name, entry) if (!is_wanted(e, name)) return unwanted(path, p,
                                                                                       name);
  char wanted[17];
  snprintf(wanted, sizeof wanted, "%016llx", (unsigned long long)p->model_hash);
  if (!hash || strcmp(hash, wanted) != 0)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s is of another model: its parameters are those of %s, but "
                     "other optimizers update them; a clause `load(\"%s\")` of the model takes "
                     "the weights alone",
                     path, p->source, path);
  return metadata_check_classes(path, p, f);
}

/* ---- loading: then the change ---- */

static ampc_status apply(ampc_runtime *rt, const TensorFile *f, const Entries *e, const Saved *s)
{
  ampc_status status = saved_apply(rt, s);
  for (uint32_t i = 0; i < e->n && !status; i++) {
    TensorPlace from = {f, e->at[i].begin};
    status = param_move(rt, e->at[i].param, e->at[i].space, true, tensor_place_load, &from);
  }
  if (!status) status = members_fill(rt, AMPC_GRAD);
  return status ? status : ampc_refresh_copies(rt);
}

/* Loads a checkpoint. If a check fails, the runtime is unchanged. */
ampc_status ampc_checkpoint_load(ampc_runtime *rt, const char *path, ampc_data_position *out_at)
{
  NEEDS(rt && path && out_at);
  const ampc_program *p = rt->program;
  TensorFile f;
  ampc_status status = tensor_file_read(path, &f);
  if (status) return status;
  Entries e;
  Saved s;
  ampc_data_position at;
  status = saved_open(p, &s);
  ampc_status room = entries_of(p, ENTRIES_checkpoint, &e);
  if (!status) status = room;
  if (!status) status = check_model(path, p, &f, &e);
  if (!status) status = adapter_check(rt, path, &f);
  if (!status) status = get_saved(path, &f, p, &s, &at);
  if (!status) status = apply(rt, &f, &e, &s);
  if (!status) *out_at = at;
  if (!status) compare_part(rt, &f);
  saved_free(&s);
  entries_free(&e);
  tensor_file_free(&f);
  return status;
}
