/* `load` clauses: initial values of parameters from files of pretrained weights.
 *
 * Every tensor of a file must match a parameter of the model or a pattern of `unused`. Every
 * parameter must match a tensor or a pattern of `missing`. Otherwise nothing is loaded. If several
 * clauses set a parameter, the last one decides. All checks come before the first change. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "load.h"
#include "adapter.h"
#include "runtime/base/convert.h"
#include "common/pattern.h"
#include "common/needs.h"
#include "runtime/plan/types.h"

/* ---- the clause ---- */

static const char *const *load_transpose(const ampc_load *x)
{
  return x->patterns ? x->patterns + 2 * x->n_rename : NULL;
}

const char *const *load_missing(const ampc_load *x)
{
  return x->patterns ? load_transpose(x) + x->n_transpose : NULL;
}

const char *const *load_unused(const ampc_load *x)
{
  return x->patterns ? load_missing(x) + x->n_missing : NULL;
}

bool load_names(const char *const *patterns, uint32_t n, const char *name)
{
  for (uint32_t i = 0; i < n; i++)
    if (pattern_matches(patterns[i], name, false)) return true;
  return false;
}

bool load_is_own(const ampc_load *x, const ampc_param *q)
{
  if (strncmp(q->path, x->prefix, strlen(x->prefix)) != 0) return false;
  if (x->adapter) return !q->given;
  return !x->line || !q->adapts;
}

const char *load_own_name(const ampc_load *x, const char *path)
{
  return path + strlen(x->prefix);
}

/* ---- names in the file are translated to ours ---- */

static ampc_status lost(const Loading *x)
{
  return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", x->path);
}

/* Applies the pairs of `rename` in order, each to the result of the one before it. */
static ampc_status rename_tensor(Loading *x, LoadTensor *t)
{
  for (uint32_t i = 0; i < x->load->n_rename; i++) {
    bool no_memory = false;
    char *next =
        pattern_rename(x->load->patterns[2 * i], x->load->patterns[2 * i + 1], t->ours, &no_memory);
    if (no_memory) return lost(x);
    if (!next) continue;
    x->hits[2 * i]++;
    free(t->ours);
    t->ours = next;
  }
  return AMPC_OK;
}

static void mark_unused(Loading *x, LoadTensor *t)
{
  const char *const *unused = load_unused(x->load);
  for (uint32_t i = 0; i < x->load->n_unused; i++) {
    if (!pattern_matches(unused[i], t->ours, false)) continue;
    t->left = true;
    x->hits[unused - x->load->patterns + i]++;
  }
}

/* Applies strip, then matches `unused`, then applies rename. */
static ampc_status name_tensor(Loading *x, uint32_t number)
{
  LoadTensor *t = &x->at[number];
  size_t strip = strlen(x->load->strip);
  bool stripped = strip && strncmp(t->name, x->load->strip, strip) == 0;
  t->ours = strdup(t->name + (stripped ? strip : 0));
  if (!t->ours) return lost(x);
  if (t->left) return AMPC_OK;
  x->strip_hits += stripped;
  mark_unused(x, t);
  ampc_status status = t->left ? AMPC_OK : rename_tensor(x, t);
  if (status || t->left) return status;
  const json_t *other = json_object_get(x->index, t->ours);
  if (other)
    return ampc_fail(AMPC_BAD_FILE, "%s: %s and %s both load into %s (`load` of `%s`, %s:%u)",
                     x->path, x->at[json_integer_value(other)].name, t->name, t->ours,
                     x->load->model, x->program->source, x->load->line);
  return json_object_set_new(x->index, t->ours, json_integer(number)) ? lost(x) : AMPC_OK;
}

/* ---- tensors are matched with parameters ---- */

/* Whether both types are floats, or both integers; BOOL matches only itself. */
static bool same_kind(ampc_dtype a, ampc_dtype b)
{
  if (a == AMPC_BOOL || b == AMPC_BOOL || a == AMPC_DTYPE_COUNT) return a == b;
  return ampc_is_float(a) == ampc_is_float(b);
}

static Fit fit_of(const Loading *x, const TensorEntry *e, const ampc_param *q)
{
  const ampc_load *load = x->load;
  const char *name = load_own_name(load, q->path);
  bool turned = load_names(load_transpose(load), load->n_transpose, name);
  int64_t dim[AMPC_MAX_RANK];
  memcpy(dim, q->dim, sizeof dim);
  if (turned) dim[0] = q->dim[1], dim[1] = q->dim[0];
  if (!same_kind(e->dtype, q->dtype)) return FIT_kind;
  if (e->rank != q->rank || memcmp(e->dim, dim, q->rank * sizeof *dim) != 0) return FIT_shape;
  return turned ? FIT_transposed : FIT_same;
}

static LoadTensor *find_tensor(const Loading *x, const char *path)
{
  const json_t *number = json_object_get(x->index, load_own_name(x->load, path));
  return number ? &x->at[json_integer_value(number)] : NULL;
}

/* Whether the tensor is a whole number that is stored as a float. Some programs convert all tensors
 * of a file, also counters such as num_batches_tracked. */
static bool is_whole_number(const LoadTensor *t)
{
  double bytes, v = NAN;
  if (ampc_is_float(t->entry.dtype) && !t->entry.rank &&
      tensor_file_load(t->file, t->entry.begin, &bytes, t->entry.unit) == AMPC_OK)
    v = number_load(t->entry.dtype, t->entry.wide, &bytes, 0);
  return fabs(v) < 0x1p53 && v == floor(v);
}

static void give(Loading *x, uint32_t i, LoadTensor *t)
{
  const ampc_param *q = &x->program->params[i];
  t->is_taken = true;
  x->given[i] = (uint32_t)(t - x->at) + 1;
  x->fit[i] = (uint8_t)fit_of(x, &t->entry, q);
  if (x->fit[i] == FIT_kind && !q->rank && !ampc_is_float(q->dtype) && q->dtype != AMPC_BOOL &&
      is_whole_number(t))
    x->fit[i] = FIT_same;
}

/* PyTorch saves a tied parameter under all its names; here the tensors must have the same
 * values. */
static ampc_status give_alias(Loading *x, const ampc_alias *a)
{
  LoadTensor *t =
      load_is_own(x->load, &x->program->params[a->param]) ? find_tensor(x, a->path) : NULL;
  bool same = true;
  if (!t) return AMPC_OK;
  t->is_taken = true;
  if (!x->given[a->param]) {
    give(x, a->param, t);
    return AMPC_OK;
  }
  const LoadTensor *first = &x->at[x->given[a->param] - 1];
  ampc_status status = load_is_same(first, t, &same);
  if (status || same) return status;
  return ampc_fail(AMPC_BAD_FILE,
                   "%s: %s and %s differ, but are one tensor in `%s` (%s:%u): name one of them in "
                   "`unused`",
                   x->path, first->name, t->name, x->load->model, x->program->source,
                   x->load->line);
}

static ampc_status match_params(Loading *x)
{
  const ampc_program *p = x->program;
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < p->n_params; i++) {
    LoadTensor *t = load_is_own(x->load, &p->params[i]) ? find_tensor(x, p->params[i].path) : NULL;
    if (t) give(x, i, t);
  }
  for (uint32_t i = 0; i < p->n_aliases && !status; i++) status = give_alias(x, &p->aliases[i]);
  return status;
}

static ampc_status open_load(Loading *x, const char *data_dir)
{
  const ampc_load *load = x->load;
  x->path = file_join(data_dir, load->path);
  x->index = json_object();
  x->given = calloc(x->program->n_params + 1, sizeof *x->given);
  x->fit = calloc(x->program->n_params + 1, sizeof *x->fit);
  x->hits = calloc(2 * load->n_rename + load->n_transpose + load->n_missing + load->n_unused + 1,
                   sizeof *x->hits);
  if (!x->path || !x->index || !x->given || !x->fit || !x->hits)
    return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", load->path);
  ampc_status status = load_files_open(x);
  for (uint32_t i = 0; i < x->n && !status; i++) status = name_tensor(x, i);
  return status ? status : match_params(x);
}

static void close_load(Loading *x)
{
  load_files_close(x);
  json_decref(x->index);
  free(x->path);
  free(x->given);
  free(x->fit);
  free(x->hits);
}

/* ---- the change ---- */

static bool is_last(const Loading *all, uint32_t n, uint32_t i)
{
  for (uint32_t k = i + 1; k < n; k++)
    if (strcmp(all[k].load->model, all[i].load->model) == 0 &&
        all[k].load->adapter == all[i].load->adapter)
      return false;
  return true;
}

static uint32_t own_params(const Loading *x)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < x->program->n_params; i++)
    n += load_is_own(x->load, &x->program->params[i]);
  return n;
}

static ampc_status apply(const Loading *all, uint32_t n, uint32_t k)
{
  const Loading *x = &all[k];
  LoadCount count = {0};
  char line[512];
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < x->program->n_params && !status; i++) {
    bool later = false; /* whether a later clause sets the parameter */
    for (uint32_t m = k + 1; m < n; m++) later = later || all[m].given[i];
    if (!x->given[i] || later) continue;
    status = load_value(x, i, &count);
    if (x->rt->unset) x->rt->unset[i] = false;
  }
  snprintf(line, sizeof line, "loaded %u of %u parameters and buffers of %s from %s", count.tensors,
           own_params(x), x->load->model, x->path);
  size_t end = strlen(line);
  if (count.converted)
    snprintf(line + end, sizeof line - end, ", %u of them converted", count.converted);
  if (!status) x->tell(x->to, false, line);
  return status;
}

static void tell_nobody(void *to, bool warning, const char *line)
{
  (void)to, (void)warning, (void)line;
}

/* Copies that no file has set follow what their originals have loaded. */
static ampc_status renew_copies(const Loading *all, uint32_t n)
{
  const ampc_program *p = all->program;
  bool *keep = calloc(p->n_params + 1, sizeof *keep);
  if (!keep) return ampc_fail(AMPC_RUN_FAILED, "out of memory");
  for (uint32_t i = 0; i < p->n_params; i++)
    for (uint32_t k = 0; k < n; k++) keep[i] = keep[i] || all[k].given[i];
  ampc_status status = copies_begin(all->rt, keep);
  free(keep);
  return status;
}

/* Executes all clauses of a program, each with the fields of `like`. */
static ampc_status load_all(const Loading *like, const ampc_load *loads, uint32_t n,
                            const char *data_dir)
{
  Loading *all = calloc(n + 1, sizeof *all);
  ampc_status status = all ? AMPC_OK : ampc_fail(AMPC_RUN_FAILED, "out of memory");
  for (uint32_t i = 0; i < n && !status; i++) {
    all[i] = *like;
    all[i].program = ampc_program_of(like->rt);
    all[i].load = &loads[i];
    if (!like->tell) all[i].tell = tell_nobody;
    status = open_load(&all[i], data_dir);
  }
  for (uint32_t i = 0; i < n && !status; i++)
    status = load_account(&all[i], all, i + 1, is_last(all, n, i));
  for (uint32_t i = 0; i < n && !status; i++) status = apply(all, n, i);
  for (uint32_t i = 0; i < n && !status; i++)
    if (all[i].load->adapter || !all[i].load->line)
      status = adapter_check(like->rt, all[i].path, &all[i].files[0]);
  if (!status) status = renew_copies(all, n);
  for (uint32_t i = 0; i < n && all; i++)
    if (all[i].load) close_load(&all[i]);
  free(all);
  if (!status) status = averages_begin(like->rt);
  return status ? status : ampc_refresh_copies(like->rt);
}

ampc_status ampc_load_params(ampc_runtime *rt, const char *data_dir, ampc_tell *tell, void *to)
{
  NEEDS(rt);
  const ampc_program *p = ampc_program_of(rt);
  const Loading like = {.rt = rt, .tell = tell, .to = to};
  rt->given_hash = 0;
  return p->n_loads ? load_all(&like, p->loads, p->n_loads, data_dir) : AMPC_OK;
}

ampc_status ampc_load_given(ampc_runtime *rt, const char *data_dir, ampc_tell *tell, void *to)
{
  NEEDS(rt);
  const ampc_program *p = ampc_program_of(rt);
  bool any = false;
  for (uint32_t i = 0; i < p->n_params; i++) any = any || p->params[i].given;
  return any ? ampc_load_params(rt, data_dir, tell, to) : AMPC_OK;
}

/* Loads the file as if one clause without patterns named it for all models. Then loads averages,
 * which infer blocks read. A program without optimizers, such as that of amp infer, has no space
 * for averages, so they replace its weights. */
ampc_status ampc_load_weights(ampc_runtime *rt, const char *path, ampc_tell *tell, void *to)
{
  NEEDS(rt && path);
  const ampc_program *p = ampc_program_of(rt);
  const ampc_load load = {
      .path = path, .model = p->name, .prefix = "", .strip = p->adapter ? AMPC_PEFT_PREFIX : ""};
  const Loading like = {
      .rt = rt, .tell = tell, .to = to, .averages = p->space_bytes[AMPC_EMA] == 0};
  ampc_status status = load_all(&like, &load, 1, NULL);
  return status ? status : averages_load(rt, path);
}
