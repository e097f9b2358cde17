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
#include "metadata.h"
#include "param.h"
#include "runtime/members.h"
#include "plateaus.h"
#include "safetensors.h"
#include "common/needs.h"

static const char version[] = "2";

/* ---- which tensors there are ---- */

typedef struct Entry {
  const ampc_param *param;
  ampc_space space;
  char *name;
  int64_t begin; /* offset in bytes in the file's data */
} Entry;

typedef struct Entries {
  Entry *at;
  uint32_t n;
} Entries;

static TensorType type_of(const ampc_program *p, const ampc_param *q)
{
  return (TensorType){q->buffer ? q->dtype : AMPC_F32, p->real64, q->rank, q->dim};
}

/* Returns the name of a moment in the file. The caller frees it. NULL: out of memory. */
static char *entry_name(const ampc_param *q, const ampc_optimizer_desc *o, const char *moment)
{
  return metadata_key(KEY("optimizer.", o->name, ".", moment, "/", q->path));
}

/* Adds an entry. Its `begin` is set later, when all entries are known. */
static void add_entry(Entries *e, const ampc_param *q, ampc_space space, char *name)
{
  e->at[e->n++] = (Entry){.param = q, .space = space, .name = name};
}

static void entries_free(Entries *e)
{
  for (uint32_t i = 0; i < e->n; i++) free(e->at[i].name);
  free(e->at);
}

static void add_moments(Entries *e, const ampc_program *p, const ampc_param *q)
{
  const ampc_optimizer_desc *o = q->optimizer < 0 ? NULL : &p->optimizers[q->optimizer];
  if (o && o->uses_moment1) add_entry(e, q, AMPC_MOMENT1, entry_name(q, o, "moment1"));
  if (o && o->uses_moment2) add_entry(e, q, AMPC_MOMENT2, entry_name(q, o, "moment2"));
  if (o && o->uses_moment3) add_entry(e, q, AMPC_MOMENT3, entry_name(q, o, "moment3"));
}

static ampc_status no_memory(void)
{
  return ampc_fail(AMPC_RUN_FAILED, "out of memory for a checkpoint");
}

static ampc_status check_names(const Entries *e)
{
  for (uint32_t i = 0; i < e->n; i++)
    if (!e->at[i].name) return no_memory();
  return AMPC_OK;
}

static void add_weight(Entries *e, const ampc_param *q, const char *path)
{
  add_entry(e, q, q->buffer ? AMPC_BUFFER : AMPC_MASTER, strdup(path));
}

/* Lists parameters and buffers, and tied parameters under all their names. */
static ampc_status weights_of(const ampc_program *p, Entries *out)
{
  *out = (Entries){.at = calloc(p->n_params + p->n_aliases + 1, sizeof(Entry))};
  if (!out->at) return no_memory();
  for (uint32_t i = 0; i < p->n_params; i++) add_weight(out, &p->params[i], p->params[i].path);
  for (uint32_t i = 0; i < p->n_aliases; i++)
    add_weight(out, &p->params[p->aliases[i].param], p->aliases[i].path);
  return check_names(out);
}

/* Lists parameters and buffers, then moments. Their order decides the bytes of the file. */
static ampc_status entries_of(const ampc_program *p, Entries *out)
{
  *out = (Entries){.at = calloc(5 * p->n_params + 3 * p->n_shares + 1, sizeof(Entry))};
  if (!out->at) return no_memory();
  for (uint32_t i = 0; i < p->n_params; i++) add_weight(out, &p->params[i], p->params[i].path);
  for (uint32_t i = 0; i < p->n_params; i++) {
    const ampc_param *q = &p->params[i];
    const ampc_optimizer_desc *average = ampc_average_of(p, q);
    add_moments(out, p, q);
    if (average) add_entry(out, q, AMPC_EMA, entry_name(q, average, "ema"));
  }
  for (uint32_t i = 0; i < p->n_shares; i++) add_moments(out, p, &p->shares[i]);
  return check_names(out);
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
    TensorType t = type_of(p, e->at[i].param);
    good = tensor_file_add(f, e->at[i].name, &t, &e->at[i].begin);
  }
  return good;
}

static ampc_status fill_header(ampc_runtime *rt, Entries *e, ampc_data_position at, TensorFile *f)
{
  const ampc_program *p = rt->program;
  ampc_state state;
  ampc_status status = ampc_get_state(rt, &state);
  if (!status) status = set_settings(rt, f);
  if (!status) status = plateaus_write(rt, f);
  if (status) return status;
  bool good = set_metadata(f, p, &state, at) && set_aliases(f, p) && set_patience(f, &rt->patience);
  for (uint32_t i = 0; i < p->n_optimizers && good; i++) {
    ampc_optimizer o;
    status = ampc_read(rt, (ampc_ref){AMPC_STATE, ampc_state_optimizer(i)}, &o, sizeof o);
    if (status) return status;
    good = set_optimizer(f, p, i, &o);
  }
  return good && add_tensors(f, p, e) ? AMPC_OK : no_memory();
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
  ampc_status status = entries_of(rt->program, &e);
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
  ampc_status status = weights_of(rt->program, &e);
  if (!status && !(tensor_file_set(&f, "format", "pt") && set_classes(&f, rt->program) &&
                   add_tensors(&f, rt->program, &e)))
    status = no_memory();
  if (!status) status = write_file(rt, &e, &f, path, &file_weights);
  tensor_file_free(&f);
  entries_free(&e);
  return status;
}

/* ---- loading: all checks first ---- */

typedef struct Saved { /* the metadata as numbers */
  ampc_state state;
  ampc_data_position at;
  ampc_optimizer *optimizer; /* one per optimizer */
  Patience patience;
  SavedPlateau *plateau; /* one per plateau */
  bool dynamic;
} Saved;

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

/* Reads counters, and the position of the next batch. The loader checks later whether the epoch has
 * this position. */
static void get_counters(Metadata *m, const ampc_program *p, Saved *s)
{
  s->state.seed = metadata_count(m, KEY("ampc.seed"), INT64_MIN, INT64_MAX);
  s->state.body = count_of(m, KEY("ampc.body"), AMPC_MOST_STEPS);
  s->state.step = count_of(m, KEY("ampc.step"), s->state.body);
  s->state.skipped = count_of(m, KEY("ampc.skipped"), s->state.step);
  get_scaler(m, s);
  get_patience(m, s);
  plateaus_read(m, p, s->state.step, s->plateau);
  s->at.block = count_of(m, KEY("ampc.position.block"), (int64_t)p->n_blocks - 1);
  s->at.epoch = count_of(m, KEY("ampc.position.epoch"), AMPC_MOST_STEPS);
  s->at.batch = count_of(m, KEY("ampc.position.batch"), AMPC_MOST_STEPS);
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
  o->taken = count_of(m, OPTIMIZER_KEY(p, i, ".taken"), most);
  if (!p->scaler.per_optimizer) return;
  o->scale = s->state.scale;
  if (metadata_get(m, OPTIMIZER_KEY(p, i, ".scale")))
    o->scale = (float)metadata_real(m, OPTIMIZER_KEY(p, i, ".scale"), AMPC_SCALE);
  o->growth = count_or(m, OPTIMIZER_KEY(p, i, ".growth"), s->state.growth);
  o->spared = count_or(m, OPTIMIZER_KEY(p, i, ".spared"), s->state.spared);
}

/* Reads the metadata. Invalid counters are from another program or from a forged file. */
static ampc_status get_saved(const char *path, const TensorFile *f, const ampc_program *p, Saved *s)
{
  Metadata m = {.file = f};
  s->optimizer = calloc(p->n_optimizers + 1, sizeof *s->optimizer);
  s->plateau = calloc(p->n_plateaus + 1, sizeof *s->plateau);
  if (!s->optimizer || !s->plateau) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  get_counters(&m, p, s);
  for (uint32_t i = 0; i < p->n_optimizers; i++) get_optimizer(&m, p, s, i);
  ampc_status status = m.bad ? nonsense(&m, path, p) : AMPC_OK;
  free(m.key);
  return status;
}

/* Reports why this tensor does not fit: the file lacks it, or it has another type or shape. */
static ampc_status other_model(const char *path, const ampc_program *p, const TensorFile *f,
                               const Entry *e)
{
  TensorType t = type_of(p, e->param);
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
  if (!found || strcmp(found, version) != 0)
    return ampc_fail(AMPC_BAD_FILE, "%s is a checkpoint of version %s, this is version %s", path,
                     found ? found : "none", version);
  for (uint32_t i = 0; i < e->n; i++) {
    TensorType t = type_of(p, e->at[i].param);
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

/* Restores the counters, and resets what a checkpoint does not store: norms, metrics and the flags
 * of a failed step. The scale is restored only if it is dynamic in both runs. */
static ampc_status apply_state(ampc_runtime *rt, const Saved *s)
{
  const ampc_program *p = rt->program;
  ampc_state state;
  ampc_status status = runtime_reset_state(rt, (uint64_t)s->state.seed);
  if (!status) status = ampc_get_state(rt, &state);
  if (status) return status;
  rt->patience = s->patience;
  status = plateaus_apply(rt, s->plateau);
  if (status) return status;
  state.body = s->state.body;
  state.step = s->state.step;
  state.skipped = s->state.skipped;
  state.replayed = s->state.replayed;
  state.epoch = s->at.epoch;
  if (s->dynamic && state.dynamic) {
    state.scale = s->state.scale;
    state.inv_scale = (float)(1 / (double)state.scale);
    state.growth = s->state.growth;
    state.spared = s->state.spared;
  }
  status = ampc_write(rt, (ampc_ref){AMPC_STATE, 0}, &state, sizeof state);
  for (uint32_t i = 0; i < p->n_optimizers && !status; i++) {
    ampc_optimizer o = s->optimizer[i];
    if (p->scaler.per_optimizer && !(s->dynamic && state.dynamic)) {
      o.scale = state.scale;
      o.growth = o.spared = 0;
    }
    if (p->scaler.per_optimizer) o.inv_scale = (float)(1 / (double)o.scale);
    status = ampc_write(rt, (ampc_ref){AMPC_STATE, ampc_state_optimizer(i)}, &o, sizeof o);
  }
  return status;
}

static ampc_status apply(ampc_runtime *rt, const TensorFile *f, const Entries *e, const Saved *s)
{
  ampc_status status = apply_state(rt, s);
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
  Saved s = {0};
  status = entries_of(p, &e);
  if (!status) status = check_model(path, p, &f, &e);
  if (!status) status = get_saved(path, &f, p, &s);
  if (!status) status = apply(rt, &f, &e, &s);
  if (!status) *out_at = s.at;
  if (!status) compare_part(rt, &f);
  free(s.optimizer);
  free(s.plateau);
  entries_free(&e);
  tensor_file_free(&f);
  return status;
}
