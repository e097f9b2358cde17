/* Plans of cuDNN: see cudnn_plan.h.
 *
 * Note [engines]
 * An engine is one of cuDNN's ways to compute a graph. Its heuristics first list engines that they
 * expect to be fast, the best first; a fallback lists the others. We take the first engine that
 * sums in f32, in a fixed order, and does not transform its operands. So the bounds that we state
 * for products hold. Nothing is timed, so a program always takes the same engine. cuDNN has notes
 * on what an engine does; a missing note means that the engine does not do it. */
#include "cudnn_plan.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CONFIGS = 64, MOST_NOTES = 16, TEXT_ROOM = 256, HEADER_ROOM = 64 };

/* ---- which engine ---- */

/* Keeps the first reason against an engine or a graph, for messages. */
static void refuse(DnnPlan *p, const char *why)
{
  if (!p->why[0]) snprintf(p->why, sizeof p->why, "%s", why);
}

static void refuse_failed(DnnPlan *p, const DnnApi *api, const char *what, DnnStatus status)
{
  char text[TEXT_ROOM] = "", why[AMPC_WHY_ROOM];
  api->cudnnGetLastErrorString(text, sizeof text);
  snprintf(why, sizeof why, "%s: %s%s%s", what, api->cudnnGetErrorString(status),
           text[0] ? ", " : "", text);
  refuse(p, why);
}

/* Returns why an engine with this note is rejected; NULL: it is accepted. */
static const char *against(int32_t note, bool exact)
{
  switch (note) {
  case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
    return "is not deterministic";
  case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
    return "does not sum in f32";
  case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
    return "rounds its operands";
  case CUDNN_NUMERICAL_NOTE_FFT:
  case CUDNN_NUMERICAL_NOTE_WINOGRAD:
    return "transforms its operands";
  case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
    return exact ? "rounds f32 to tf32" : NULL;
  default:
    return NULL;
  }
}

/* Reads the number and the notes of an engine. */
static DnnStatus read_engine(const DnnApi *api, DnnDescriptor config, int64_t *out_number,
                             int64_t *out_n, int32_t notes[MOST_NOTES])
{
  DnnDescriptor engine = NULL;
  DnnStatus s = api->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine);
  if (!s)
    s = api->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, out_n, &engine);
  if (!s)
    s = api->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
                                      out_n, out_number);
  if (!s)
    s = api->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                      CUDNN_TYPE_NUMERICAL_NOTE, MOST_NOTES, out_n, notes);
  if (engine) api->cudnnBackendDestroyDescriptor(engine);
  return s;
}

static bool is_acceptable(const DnnApi *api, const DnnProblem *t, DnnDescriptor config, DnnPlan *p)
{
  int64_t n = 0, number = -1;
  int32_t notes[MOST_NOTES];
  const char *why = NULL;
  DnnStatus s = read_engine(api, config, &number, &n, notes);
  if (s) refuse_failed(p, api, "an engine's notes", s);
  for (int64_t i = 0; i < n && !s && !why; i++) why = against(notes[i], t->exact);
  for (uint32_t i = 0; i < p->n_failed && !why; i++)
    if (p->failed[i] == number) why = "fails when it is called";
  p->engine = number;
  char text[TEXT_ROOM];
  snprintf(text, sizeof text, "its engine %lld %s", (long long)number, why ? why : "");
  if (why) refuse(p, text);
  return !s && !why;
}

/* ---- a plan ---- */

static void set_machine(DnnObjects *o, const DnnMachine *m, DnnDescriptor plan)
{
  if (m->handle)
    dnn_set(o, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &m->handle);
  else
    dnn_set(o, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
            &m->properties);
}

/* Reads the plan's workspace size, if the plan is finalised. */
static bool measure(const DnnMachine *m, DnnPlan *p, DnnDescriptor plan)
{
  DnnObjects *o = &p->objects;
  int64_t n = 0;
  if (!o->status)
    o->status = m->api->cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                 CUDNN_TYPE_INT64, 1, &n, &p->workspace);
  return !o->status;
}

/* Finishes the plan of an engine. If that fails, only the reason is kept. */
static bool finish(const DnnMachine *m, DnnDescriptor config, int64_t limit, DnnPlan *p)
{
  DnnObjects *o = &p->objects;
  char text[TEXT_ROOM];
  DnnDescriptor plan = dnn_make(o, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "plan");
  set_machine(o, m, plan);
  dnn_set(o, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
          &config);
  dnn_finalize(o, plan);
  bool good = measure(m, p, plan);
  snprintf(text, sizeof text, "its engine %lld", (long long)p->engine);
  if (!good) refuse_failed(p, m->api, text, o->status);
  if (good && p->workspace > limit) {
    snprintf(text, sizeof text, "its engine %lld needs %lld bytes of workspace, more than %lld",
             (long long)p->engine, (long long)p->workspace, (long long)limit);
    refuse(p, text);
    good = false;
  }
  o->status = CUDNN_STATUS_SUCCESS;
  p->plan = good ? plan : NULL;
  return good;
}

/* Queries a heuristic for configurations, in its order. The caller owns their descriptors. */
static int64_t ask(const DnnMachine *m, DnnDescriptor graph, int32_t mode, DnnPlan *p,
                   DnnDescriptor out[MOST_CONFIGS])
{
  const DnnApi *api = m->api;
  DnnObjects o = {.api = api};
  int64_t made = 0, found = 0;
  DnnDescriptor h = dnn_make(&o, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristic");
  dnn_set(&o, h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
  dnn_set(&o, h, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (!m->handle)
    dnn_set(&o, h, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
            &m->properties);
  dnn_finalize(&o, h);
  while (!o.status && made < MOST_CONFIGS) {
    o.status = api->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &out[made]);
    made += o.status == CUDNN_STATUS_SUCCESS;
  }
  if (!o.status)
    o.status = api->cudnnBackendGetAttribute(h, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                             CUDNN_TYPE_BACKEND_DESCRIPTOR, made, &found, out);
  if (o.status) {
    refuse_failed(p, api, o.what, o.status);
    found = 0;
  }
  if (found > made) found = made;
  while (made > found) api->cudnnBackendDestroyDescriptor(out[--made]);
  dnn_free(&o);
  return found;
}

/* Tries an engine. The plan owns the objects; if the attempt fails, they are destroyed. */
static bool try_config(const DnnMachine *m, const DnnProblem *t, DnnDescriptor config,
                       int64_t limit, DnnPlan *p)
{
  DnnObjects *o = &p->objects;
  uint32_t before = o->n;
  o->made[o->n++] = config;
  if (is_acceptable(m->api, t, config, p) && finish(m, config, limit, p)) return true;
  while (o->n > before) m->api->cudnnBackendDestroyDescriptor(o->made[--o->n]);
  return false;
}

static bool choose(const DnnMachine *m, const DnnProblem *t, DnnDescriptor graph, int32_t mode,
                   int64_t limit, DnnPlan *p)
{
  DnnDescriptor configs[MOST_CONFIGS];
  int64_t n = ask(m, graph, mode, p, configs), i = 0;
  bool good = false;
  while (i < n && !good) good = try_config(m, t, configs[i++], limit, p);
  while (i < n) m->api->cudnnBackendDestroyDescriptor(configs[i++]);
  return good;
}

static bool make_form(const DnnMachine *m, const DnnProblem *t, DnnForm form, int64_t limit,
                      DnnPlan *p)
{
  p->objects = (DnnObjects){.api = m->api};
  p->form = form;
  DnnDescriptor graph = t->graph(&p->objects, m->handle, t->what, form);
  if (!graph) refuse_failed(p, m->api, p->objects.what, p->objects.status);
  if (graph && choose(m, t, graph, CUDNN_HEUR_MODE_A, limit, p)) return true;
  if (graph && choose(m, t, graph, CUDNN_HEUR_MODE_FALLBACK, limit, p)) return true;
  dnn_free(&p->objects);
  return false;
}

static bool make(const DnnMachine *m, const DnnProblem *t, int64_t limit, DnnPlan *p)
{
  ampc_cudnn with = {(int)m->api->cudnnGetVersion(), m->capability};
  p->engine = -1;
  p->why[0] = 0;
  if (t->against && t->against(t->what, with, p->why)) return false;
  for (DnnForm form = DNN_DIRECT; form < DNN_FORMS; form++)
    if (t->forms[form] && make_form(m, t, form, limit, p)) return true;
  refuse(p, m->lacks ? m->lacks : "it names no engine");
  return false;
}

bool dnn_plan_make(const DnnMachine *m, const DnnProblem *t, int64_t limit, DnnPlan *out)
{
  *out = (DnnPlan){.plan = NULL};
  return make(m, t, limit, out);
}

bool dnn_plan_next(const DnnMachine *m, const DnnProblem *t, int64_t limit, DnnPlan *p)
{
  dnn_plan_free(p);
  if (p->n_failed == DNN_MOST_FAILED) return false;
  p->failed[p->n_failed++] = p->engine;
  return make(m, t, limit, p);
}

void dnn_plan_free(DnnPlan *p)
{
  if (p->plan) dnn_free(&p->objects);
  p->plan = NULL;
}

/* ---- kept between runs ---- */

/* Writes one line of our own, then cuDNN's text of the plan. */
bool dnn_plan_save(const DnnPlan *p, char **out, size_t *size)
{
  const DnnApi *api = p->objects.api;
  int64_t n = 0, got = 0;
  DnnStatus s = api->cudnnBackendGetAttribute(
      p->plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, &n, NULL);
  *out = s || n <= 0 ? NULL : malloc((size_t)n + HEADER_ROOM);
  if (!*out) return false;
  int header = snprintf(*out, HEADER_ROOM, "%d %lld\n", (int)p->form, (long long)p->engine);
  s = api->cudnnBackendGetAttribute(p->plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                    CUDNN_TYPE_CHAR, n, &got, *out + header);
  *size = (size_t)header + (size_t)got;
  if (!s && got > 0) return true;
  free(*out);
  return false;
}

bool dnn_plan_load(const DnnMachine *m, const char *bytes, size_t size, DnnPlan *out)
{
  int form = 0, header = 0;
  long long engine = 0;
  *out = (DnnPlan){.objects = {.api = m->api}};
  DnnObjects *o = &out->objects;
  if (sscanf(bytes, "%d %lld\n%n", &form, &engine, &header) != 2 || header <= 0 || form < 0 ||
      form >= DNN_FORMS || (size_t)header >= size)
    return false;
  DnnDescriptor plan = dnn_make(o, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "plan");
  set_machine(o, m, plan);
  dnn_set(o, plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
          (int64_t)size - header, bytes + header);
  dnn_finalize(o, plan);
  out->form = (DnnForm)form;
  out->engine = engine;
  bool good = measure(m, out, plan);
  out->plan = good ? plan : NULL;
  if (!good) dnn_free(o);
  return good;
}

/* ---- running it ---- */

DnnStatus dnn_plan_run(const DnnMachine *m, const DnnPlan *p, const DnnOperands *at,
                       void *workspace)
{
  DnnObjects o = {.api = m->api};
  DnnDescriptor d = dnn_make(&o, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "operands");
  dnn_set(&o, d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, at->n, at->number);
  dnn_set(&o, d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, at->n, at->place);
  dnn_set(&o, d, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  dnn_finalize(&o, d);
  DnnStatus s = o.status ? o.status : m->api->cudnnBackendExecute(m->handle, p->plan, d);
  dnn_free(&o);
  return s;
}
