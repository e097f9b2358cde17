/* Checkpoints: the state of a training run as one safetensors file.
 *
 * Tensors: every parameter and buffer under its path; moments as "optimizer.NAME.moment1/PATH",
 * averages of weights as "optimizer.NAME.ema/PATH".
 * Metadata: counters, scaler, data position, seed, config. What a step computes anew (gradients,
 * norms, metrics, 16-bit copies) and settings stay out, and so do times and paths: same state, same
 * bytes. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "runtime/plan/number.h"
#include "param.h"
#include "runtime/runtime.h"
#include "plateaus.h"
#include "safetensors.h"
#include "runtime/plan/needs.h"

static const char version[] = "2";

/* The texts, ended by NULL, one behind the other. Malloced; NULL: out of memory. */
static char *text_join(const char *const *parts)
{
  size_t size = 1;
  for (uint32_t i = 0; parts[i]; i++) size += strlen(parts[i]);
  char *out = calloc(size, 1), *to = out;
  for (uint32_t i = 0; out && parts[i]; i++) to = stpcpy(to, parts[i]);
  return out;
}

/* ---- which tensors there are ---- */

typedef struct Entry {
  const ampc_param *param;
  ampc_space space;
  char *name;
  int64_t begin; /* bytes, in the file's data */
} Entry;

typedef struct Entries {
  Entry *at;
  uint32_t n;
} Entries;

static TensorType type_of(const ampc_program *p, const ampc_param *q)
{
  return (TensorType){q->buffer ? q->dtype : AMPC_F32, p->real64, q->rank, q->dim};
}

/* `o` and `moment` are NULL for the parameter itself. Malloced; NULL: out of memory. */
static char *entry_name(const ampc_param *q, const ampc_optimizer_desc *o, const char *moment)
{
  if (!o) return strdup(q->path);
  return text_join((const char *[]){"optimizer.", o->name, ".", moment, "/", q->path, NULL});
}

/* Where the bytes lie in the file is known when all are listed. */
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

/* Parameters and buffers first, then moments, each in the program's order: it decides the bytes. */
static ampc_status entries_of(const ampc_program *p, Entries *out)
{
  *out = (Entries){.at = calloc(5 * p->n_params + 3 * p->n_shares + 1, sizeof(Entry))};
  if (!out->at) return ampc_fail(AMPC_RUN_FAILED, "out of memory for a checkpoint");
  for (uint32_t i = 0; i < p->n_params; i++) {
    const ampc_param *q = &p->params[i];
    add_entry(out, q, q->buffer ? AMPC_BUFFER : AMPC_MASTER, entry_name(q, NULL, NULL));
  }
  for (uint32_t i = 0; i < p->n_params; i++) {
    const ampc_param *q = &p->params[i];
    const ampc_optimizer_desc *average = ampc_average_of(p, q);
    add_moments(out, p, q);
    if (average) add_entry(out, q, AMPC_EMA, entry_name(q, average, "ema"));
  }
  for (uint32_t i = 0; i < p->n_shares; i++) add_moments(out, p, &p->shares[i]);
  for (uint32_t i = 0; i < out->n; i++)
    if (!out->at[i].name) return ampc_fail(AMPC_RUN_FAILED, "out of memory for a checkpoint");
  return AMPC_OK;
}

/* ---- saving ---- */

__attribute__((format(printf, 3, 4))) static bool set(TensorFile *f, const char *key,
                                                      const char *format, ...)
{
  char value[64];
  va_list args;
  va_start(args, format);
  vsnprintf(value, sizeof value, format, args);
  va_end(args);
  return tensor_file_set(f, key, value);
}

static const char *scaler_word(const ampc_program *p)
{
  return !p->scaler.on ? "off" : p->scaler.dynamic ? "dynamic" : "static";
}

/* A growth counter below 0 counts overflows in a row, which end with the run. */
static bool set_scaler(TensorFile *f, const ampc_program *p, const ampc_state *s)
{
  return tensor_file_set(f, "ampc.scaler", scaler_word(p)) &&
         set(f, "ampc.scale", "%.9g", (double)s->scale) &&
         set(f, "ampc.growth", "%lld", s->growth > 0 ? s->growth : 0) &&
         (!p->scaler.replay || set(f, "ampc.replayed", "%lld", s->replayed)) &&
         (s->hysteresis < 2 || set(f, "ampc.spared", "%lld", s->spared));
}

static bool set_position(TensorFile *f, ampc_data_position at)
{
  return set(f, "ampc.position.block", "%lld", (long long)at.block) &&
         set(f, "ampc.position.epoch", "%lld", (long long)at.epoch) &&
         set(f, "ampc.position.batch", "%lld", (long long)at.batch);
}

/* "format" is PyTorch's word for how its own files are read. */
static bool set_metadata(TensorFile *f, const ampc_program *p, const ampc_state *s,
                         ampc_data_position at)
{
  return tensor_file_set(f, "format", "pt") && tensor_file_set(f, "ampc.version", version) &&
         tensor_file_set(f, "ampc.job", p->name) &&
         tensor_file_set(f, "ampc.config", p->config ? p->config : "{}") &&
         set(f, "ampc.model", "%016llx", (unsigned long long)p->model_hash) &&
         set(f, "ampc.seed", "%lld", s->seed) && set(f, "ampc.body", "%lld", s->body) &&
         set(f, "ampc.step", "%lld", s->step) && set(f, "ampc.skipped", "%lld", s->skipped) &&
         set_scaler(f, p, s) && set_position(f, at);
}

/* Only of a run that stops early and has been evaluated. */
static bool set_patience(TensorFile *f, const Patience *p)
{
  return !p->any || (set(f, "ampc.early_stop.best", "%.17g", p->best) &&
                     set(f, "ampc.early_stop.stale", "%lld", (long long)p->stale) &&
                     set(f, "ampc.early_stop.step", "%lld", (long long)p->step));
}

/* For the record: a resumed run uses the settings it is given. */
static ampc_status set_settings(ampc_runtime *rt, TensorFile *f)
{
  const ampc_program *p = rt->program;
  bool good = true;
  for (uint32_t i = 0; i < p->n_settings && good; i++) {
    float value;
    ampc_status status = ampc_read(rt, runtime_setting_place(p, i), &value, sizeof value);
    if (status) return status;
    char *key = text_join((const char *[]){"ampc.setting.", p->settings[i].name, NULL});
    good = key && set(f, key, "%.9g", (double)value);
    free(key);
  }
  return good ? AMPC_OK : ampc_fail(AMPC_RUN_FAILED, "out of memory for a checkpoint");
}

/* Malloced; NULL: out of memory. Names have any length, and no two of them share a key. */
static char *optimizer_key(const ampc_program *p, uint32_t i, const char *what)
{
  return text_join((const char *[]){"ampc.optimizer.", p->optimizers[i].name, ".", what, NULL});
}

/* The key is freed; NULL: out of memory. */
static bool set_own_count(TensorFile *f, char *key, long long value)
{
  bool good = key && set(f, key, "%lld", value);
  free(key);
  return good;
}

static bool set_own_real(TensorFile *f, char *key, double value)
{
  bool good = key && set(f, key, "%.9g", value);
  free(key);
  return good;
}

/* Updates taken; its scale, where each has one. */
static bool set_optimizer(TensorFile *f, const ampc_program *p, uint32_t i, const ampc_optimizer *o)
{
  if (!set_own_count(f, optimizer_key(p, i, "taken"), o->taken)) return false;
  if (!p->scaler.per_optimizer) return true;
  return set_own_real(f, optimizer_key(p, i, "scale"), (double)o->scale) &&
         set_own_count(f, optimizer_key(p, i, "growth"), o->growth > 0 ? o->growth : 0) &&
         (p->scaler.hysteresis < 2 || set_own_count(f, optimizer_key(p, i, "spared"), o->spared));
}

static ampc_status fill_header(ampc_runtime *rt, Entries *e, ampc_data_position at, TensorFile *f)
{
  const ampc_program *p = rt->program;
  ampc_state state;
  ampc_status status = ampc_get_state(rt, &state);
  if (!status) status = set_settings(rt, f);
  if (!status) status = plateaus_write(rt, f);
  if (status) return status;
  bool good = set_metadata(f, p, &state, at) && set_patience(f, &rt->patience);
  for (uint32_t i = 0; i < p->n_optimizers && good; i++) {
    ampc_optimizer o;
    status = ampc_read(rt, (ampc_ref){AMPC_STATE, ampc_state_optimizer(i)}, &o, sizeof o);
    if (status) return status;
    good = set_optimizer(f, p, i, &o);
  }
  for (uint32_t i = 0; i < e->n && good; i++) {
    TensorType t = type_of(p, e->at[i].param);
    good = tensor_file_add(f, e->at[i].name, &t, &e->at[i].begin);
  }
  return good ? AMPC_OK : ampc_fail(AMPC_RUN_FAILED, "out of memory for a checkpoint");
}

static ampc_status write_piece(void *to, int64_t at, int64_t bytes, void *piece)
{
  (void)at;
  return tensor_write(to, piece, bytes);
}

static ampc_status write_file(ampc_runtime *rt, const Entries *e, TensorFile *f, const char *path)
{
  TensorWriter w;
  ampc_status status = tensor_write_begin(&w, f, path);
  if (status) return status;
  for (uint32_t i = 0; i < e->n && !status; i++)
    status = param_move(rt, e->at[i].param, e->at[i].space, false, write_piece, &w);
  if (!status) return tensor_write_end(&w);
  tensor_write_abandon(&w);
  return status;
}

/* Waits for the device; the file is whole or not there. */
ampc_status ampc_checkpoint_save(ampc_runtime *rt, const char *path, ampc_data_position at)
{
  NEEDS(rt && path);
  Entries e;
  TensorFile f = {.fd = -1};
  ampc_status status = entries_of(rt->program, &e);
  if (!status) status = fill_header(rt, &e, at, &f);
  if (!status) status = write_file(rt, &e, &f, path);
  tensor_file_free(&f);
  entries_free(&e);
  return status;
}

/* ---- loading: all checks first ---- */

typedef struct Saved { /* the metadata as numbers */
  ampc_state state;
  ampc_data_position at;
  ampc_optimizer *optimizer; /* what the file has of each */
  Patience patience;
  SavedPlateau *plateau; /* one a plateau */
  bool dynamic;
} Saved;

/* A file from somewhere: what is read, and the first key whose value makes no sense. */
typedef struct Metadata {
  const TensorFile *file;
  const char *path, *bad;
  char *bad_expected; /* malloced: what would have done */
  char *key;          /* malloced: one that was put together */
  char range[AMPC_RANGE_ROOM];
} Metadata;

/* The text of a key; "" after it is missing, which no reader of a number takes. */
static const char *text_of(const Metadata *m, const char *key)
{
  const char *text = tensor_file_get(m->file, key);
  return text ? text : "";
}

static bool refuse(Metadata *m, const char *key, const char *expected)
{
  m->bad = key;
  m->bad_expected = strdup(expected);
  return false;
}

static bool get_within(Metadata *m, const char *key, int64_t least, int64_t most, long long *out)
{
  int64_t value = 0;
  char range[AMPC_RANGE_ROOM];
  bool good = ampc_read_count(text_of(m, key), least, most, &value);
  *out = value;
  return good || refuse(m, key, ampc_range_text(range, least, most));
}

static bool get_count(Metadata *m, const char *key, long long most, long long *out)
{
  return get_within(m, key, 0, most, out);
}

static bool get_scale(Metadata *m, const char *key, float *out)
{
  double scale = 0;
  if (!ampc_read_real(text_of(m, key), &scale) || !ampc_in_domain(AMPC_SCALE, scale))
    return refuse(m, key, ampc_domain_text(AMPC_SCALE));
  *out = (float)scale;
  return true;
}

static bool get_scaler(Metadata *m, Saved *s)
{
  const char *word = text_of(m, "ampc.scaler");
  s->dynamic = strcmp(word, "dynamic") == 0;
  if (!s->dynamic && strcmp(word, "static") != 0 && strcmp(word, "off") != 0)
    return refuse(m, "ampc.scaler", "off, static or dynamic");
  if (!get_count(m, "ampc.growth", AMPC_MOST_STEPS, &s->state.growth)) return false;
  return get_scale(m, "ampc.scale", &s->state.scale) &&
         (!tensor_file_get(m->file, "ampc.replayed") ||
          get_count(m, "ampc.replayed", AMPC_MOST_STEPS, &s->state.replayed)) &&
         (!tensor_file_get(m->file, "ampc.spared") ||
          get_count(m, "ampc.spared", AMPC_MOST_STEPS, &s->state.spared));
}

/* Of the next batch. Whether the epoch has as many is the loader's to see. */
static bool get_position(Metadata *m, const ampc_program *p, Saved *s)
{
  long long block, epoch, batch;
  if (!get_count(m, "ampc.position.block", (long long)p->n_blocks - 1, &block) ||
      !get_count(m, "ampc.position.epoch", AMPC_MOST_STEPS, &epoch) ||
      !get_count(m, "ampc.position.batch", AMPC_MOST_STEPS, &batch))
    return false;
  s->at = (ampc_data_position){epoch, batch, block};
  return true;
}

static bool get_patience(Metadata *m, Saved *s)
{
  const char *best = tensor_file_get(m->file, "ampc.early_stop.best");
  long long stale, step;
  if (!best) return true;
  if (!ampc_read_real(best, &s->patience.best))
    return refuse(m, "ampc.early_stop.best", "a finite number");
  if (!get_count(m, "ampc.early_stop.stale", s->state.step, &stale) ||
      !get_count(m, "ampc.early_stop.step", s->state.step, &step))
    return false;
  s->patience.any = true;
  s->patience.stale = stale;
  s->patience.step = step;
  return true;
}

static bool get_plateaus(Metadata *m, const ampc_program *p, Saved *s)
{
  if (plateaus_read(m->file, p, s->state.step, s->plateau, &m->key, m->range)) return true;
  m->bad = m->key;
  m->bad_expected = strdup(m->range);
  return false;
}

static bool get_counters(Metadata *m, const ampc_program *p, Saved *s)
{
  return get_within(m, "ampc.seed", INT64_MIN, INT64_MAX, &s->state.seed) &&
         get_count(m, "ampc.body", AMPC_MOST_STEPS, &s->state.body) &&
         get_count(m, "ampc.step", s->state.body, &s->state.step) &&
         get_count(m, "ampc.skipped", s->state.step, &s->state.skipped) && get_scaler(m, s) &&
         get_patience(m, s) && get_plateaus(m, p, s) && get_position(m, p, s);
}

static ampc_status nonsense(const Metadata *m, const ampc_program *p)
{
  const char *found = tensor_file_get(m->file, m->bad);
  return ampc_fail(AMPC_BAD_FILE,
                   "%s is of another model than %s, or forged: %s is %s%s%s, expected %s", m->path,
                   p->source, m->bad, found ? "`" : "missing", found ? found : "", found ? "`" : "",
                   m->bad_expected ? m->bad_expected : "another value");
}

/* Updates in so many steps, which are 2^53 at most. */
static long long most_taken(const ampc_optimizer_desc *o, long long steps)
{
  long long most;
  return __builtin_mul_overflow(steps, o->updates > 1 ? o->updates : 1, &most) ? LLONG_MAX : most;
}

/* The key of optimizer i, which m->key has until the next; NULL: the file lacks it. */
static const char *own_key(Metadata *m, const ampc_program *p, uint32_t i, const char *what)
{
  free(m->key);
  m->key = optimizer_key(p, i, what);
  return m->key && tensor_file_get(m->file, m->key) ? m->key : NULL;
}

/* A file with one scale for all optimizers is one where each has that. */
static bool get_optimizer(Metadata *m, const ampc_program *p, Saved *s, uint32_t i)
{
  ampc_optimizer *o = &s->optimizer[i];
  own_key(m, p, i, "taken");
  if (!m->key) return refuse(m, "ampc.optimizer", "memory for its names");
  if (!get_count(m, m->key, most_taken(&p->optimizers[i], s->state.step), &o->taken)) return false;
  if (!p->scaler.per_optimizer) return true;
  o->scale = s->state.scale;
  o->growth = s->state.growth;
  o->spared = s->state.spared;
  return (!own_key(m, p, i, "scale") || get_scale(m, m->key, &o->scale)) &&
         (!own_key(m, p, i, "growth") || get_count(m, m->key, AMPC_MOST_STEPS, &o->growth)) &&
         (!own_key(m, p, i, "spared") || get_count(m, m->key, AMPC_MOST_STEPS, &o->spared));
}

/* Counters that make no sense are those of another program, or somebody's who wishes us ill. */
static ampc_status get_saved(const char *path, const TensorFile *f, const ampc_program *p, Saved *s)
{
  Metadata m = {.file = f, .path = path};
  s->optimizer = calloc(p->n_optimizers + 1, sizeof *s->optimizer);
  s->plateau = calloc(p->n_plateaus + 1, sizeof *s->plateau);
  if (!s->optimizer || !s->plateau) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  ampc_status status = get_counters(&m, p, s) ? AMPC_OK : nonsense(&m, p);
  for (uint32_t i = 0; i < p->n_optimizers && !status; i++)
    if (!get_optimizer(&m, p, s, i)) status = nonsense(&m, p);
  free(m.bad_expected);
  free(m.key);
  return status;
}

/* Why the first tensor that does not fit does not: it is not there, or has another type. */
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

/* Version, then tensor by tensor, so that the message names one; then the hash, which knows what
 * the tensors do not show. Sets where each entry begins in the file's data. */
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
  json_object_foreach(f->header, name, entry) if (!is_wanted(e, name)) return ampc_fail(
      AMPC_BAD_FILE, "%s is of another model: it has %s, which %s lacks", path, name, p->source);
  char wanted[17];
  snprintf(wanted, sizeof wanted, "%016llx", (unsigned long long)p->model_hash);
  if (!hash || strcmp(hash, wanted) != 0)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s is of another model: its parameters are those of %s, but "
                     "not which optimizer updates them",
                     path, p->source);
  return AMPC_OK;
}

/* ---- loading: then the change ---- */

/* What the checkpoint does not have starts anew: norms, metrics, the marks of a failed step. A
 * scale goes on only where both runs have one that moves. */
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
  int64_t gradients = rt->program->space_bytes[AMPC_GRAD];
  if (!status && gradients)
    status = rt->device->ops->fill(rt->device, rt->space[AMPC_GRAD], 0, gradients);
  return status ? status : ampc_refresh_copies(rt);
}

/* The runtime is as before if this fails before `apply`. */
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
  free(s.optimizer);
  free(s.plateau);
  entries_free(&e);
  tensor_file_free(&f);
  return status;
}
