/* cuDNN without CUDA: graphs, engines, plans and their calls.
 *
 * A graph is a convolution, or a convolution with operations on its sum, or a graph without a
 * convolution, which dnn_steps.c computes. It has up to eight engines, in this order: five that
 * must not be called, one for each numerical note that ampc rejects; one with tensor cores; one
 * that needs more workspace than anybody offers; a plain one. For convolutions with a stride, the
 * first heuristic returns only the first engine. Like in the real library, types may differ only if
 * a sum continues, and 16-bit weight gradients with groups have no engine.
 *   MOCK_DNN_ENGINES=n    the number of engines, 8 (0: none)
 *   MOCK_DNN_FROM=n       the first engine, 0
 *   MOCK_DNN_SIZE=n       the status of a query for a plan's workspace
 *   MOCK_DNN_FAIL=n       the n-th call of a plan fails
 *   MOCK_DNN_REFUSES=n    calls of engine n fail; -1: of all */
#include "dnn.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSOR_CORE = 5, GREEDY, PLAIN, ENGINES, NO_NOTE = -1 };
static const struct {
  int32_t note;
  const char *against; /* why the engine must not be called */
} engines[ENGINES] = {
    {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, "is not deterministic"},
    {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, "sums in 16 bits"},
    {CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, "rounds what it reads"},
    {CUDNN_NUMERICAL_NOTE_FFT, "multiplies spectra"},
    {CUDNN_NUMERICAL_NOTE_WINOGRAD, "transforms tiles"},
    [TENSOR_CORE] = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, NULL},
    [GREEDY] = {NO_NOTE, NULL},
    [PLAIN] = {NO_NOTE, NULL},
};
enum { WORKSPACE = 4096, MOST_USED = 4096 };

static const DnnPlanData *used[MOST_USED]; /* plans that were called outside of a capture */
static unsigned n_used;
static CuStream stream;
static bool has_stream;
static long calls;

/* ---- reading descriptors ---- */

static DnnStatus bad(const char *what)
{
  return mock_refuse(DNN_BAD_PARAM, "cudnn: %s", what);
}

Tensor dnn_tensor_of(const Descriptor *d)
{
  Tensor t = {.number = dnn_integer(d, CUDNN_ATTR_TENSOR_UNIQUE_ID),
              .align = dnn_integer(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT),
              .is_virtual = dnn_integer(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL),
              .by_value = dnn_integer(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE)};
  int64_t type = dnn_integer(d, CUDNN_ATTR_TENSOR_DATA_TYPE), n;
  t.type = type == CUDNN_DATA_HALF       ? AMPC_F16
           : type == CUDNN_DATA_BFLOAT16 ? AMPC_BF16
           : type == CUDNN_DATA_INT32    ? AMPC_I32
                                         : AMPC_F32;
  const int64_t *dims = dnn_values(d, CUDNN_ATTR_TENSOR_DIMENSIONS, &t.n);
  const int64_t *strides = dnn_values(d, CUDNN_ATTR_TENSOR_STRIDES, &n);
  for (int64_t i = 0; i < t.n; i++) t.dim[i] = dims[i], t.stride[i] = n == t.n ? strides[i] : 0;
  return t;
}

static Tensor tensor_of(const Descriptor *d, DnnAttribute what)
{
  return dnn_tensor_of(dnn_named(d, what));
}

static void read_window(const Descriptor *d, Convolution *c)
{
  int64_t n;
  const size_t size = sizeof(int64_t);
  c->spatial = dnn_integer(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
  memcpy(c->pad, dnn_values(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, &n), (size_t)c->spatial * size);
  memcpy(c->stride, dnn_values(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, &n),
         (size_t)c->spatial * size);
  memcpy(c->dilation, dnn_values(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, &n),
         (size_t)c->spatial * size);
}

static float real_of(const Descriptor *d, DnnAttribute what)
{
  int64_t n;
  return *(const float *)dnn_values(d, what, &n);
}

/* Reads x, w, y and the window of a convolution. Returns false for any other operation. */
static bool read_convolution(const Descriptor *d, Convolution *c)
{
  c->operation = d->kind;
  switch (d->kind) {
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    c->x = tensor_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
    c->w = tensor_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
    c->result = c->y = tensor_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
    c->beta = real_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
    read_window(dnn_named(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC), c);
    return true;
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    c->result = c->x = tensor_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
    c->w = tensor_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
    c->y = tensor_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
    c->beta = real_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
    read_window(dnn_named(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC), c);
    return true;
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
    c->x = tensor_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
    c->result = c->w = tensor_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
    c->y = tensor_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
    c->beta = real_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
    read_window(dnn_named(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC), c);
    return true;
  default:
    return false;
  }
}

static bool same_dims(const Tensor *a, const Tensor *b)
{
  return a->n == b->n && memcmp(a->dim, b->dim, (size_t)a->n * sizeof *a->dim) == 0;
}

static DnnStatus read_join(const Descriptor *d, Convolution *c)
{
  const Descriptor *how = dnn_named(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  Tensor from = tensor_of(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
  const Descriptor *add = dnn_named(d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
  if (d->kind != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
    return bad("not a pointwise operation");
  if (from.number != c->result.number || !c->result.is_virtual || c->result.type != AMPC_F32)
    return bad("the sum does not go on, in f32");
  c->adds = dnn_integer(how, CUDNN_ATTR_POINTWISE_MODE) == CUDNN_POINTWISE_ADD;
  if (c->adds != (add != NULL)) return bad("a sum of one, or something beside an identity");
  Tensor sum = c->result;
  c->joined = true;
  c->result = tensor_of(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  if (!same_dims(&sum, &c->result) || c->result.is_virtual) return bad("the result of a sum");
  if (!add) return CUDNN_STATUS_SUCCESS;
  c->add = dnn_tensor_of(add);
  for (int64_t i = 0; i < sum.n; i++)
    if (c->add.dim[i] != sum.dim[i] && c->add.dim[i] != 1) return bad("dims of what is added");
  return CUDNN_STATUS_SUCCESS;
}

/* Checks that the sizes match and that sums are in f32. */
static DnnStatus check_sizes(const Convolution *c, const Descriptor *window)
{
  const Tensor *x = &c->x, *w = &c->w, *y = &c->y;
  int64_t n, spatial = c->spatial;
  const int64_t *post = dnn_values(window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, &n);
  if (n != spatial || x->n != spatial + 2 || w->n != x->n || y->n != x->n) return bad("ranks");
  if (dnn_integer(window, CUDNN_ATTR_CONVOLUTION_COMP_TYPE) != CUDNN_DATA_FLOAT ||
      dnn_integer(window, CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION)
    return bad("type or mode of a convolution");
  if (x->dim[0] != y->dim[0] || w->dim[0] != y->dim[1] || x->dim[1] % w->dim[1] != 0 ||
      w->dim[0] % (x->dim[1] / w->dim[1]) != 0)
    return bad("channels that do not go together");
  for (int64_t i = 0; i < spatial; i++) {
    int64_t reach = c->dilation[i] * (w->dim[2 + i] - 1) + 1;
    int64_t out = (x->dim[2 + i] + c->pad[i] + post[i] - reach) / c->stride[i] + 1;
    if (out != y->dim[2 + i]) return bad("sizes that do not go together");
  }
  return CUDNN_STATUS_SUCCESS;
}

static const Descriptor *window_of(const Descriptor *d)
{
  static const DnnAttribute names[] = {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC};
  const Descriptor *found = NULL;
  for (int i = 0; i < 3 && !found; i++) found = dnn_named(d, names[i]);
  return found;
}

static DnnStatus read_graph(const Descriptor *graph, DnnPlanData *p)
{
  int64_t n;
  Descriptor *const *operations = dnn_values(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, &n);
  Convolution *c = &p->convolution;
  memset(p, 0, sizeof *p);
  p->is_convolution = read_convolution(operations[0], c);
  if (!p->is_convolution) return steps_read(graph, &p->steps);
  if (n > 2) return bad("more than a convolution and what is done to its sum");
  DnnStatus status = check_sizes(c, window_of(operations[0]));
  if (!status && n == 2) status = read_join(operations[1], c);
  if (!status && n == 1 && c->result.is_virtual) return bad("a sum that goes nowhere");
  return status;
}

/* ---- engines ---- */

static bool is_possible(const DnnPlanData *p)
{
  const Convolution *c = &p->convolution;
  if (!p->is_convolution) return true;
  bool filter = c->operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
  bool half = c->x.type != AMPC_F32 && c->y.type != AMPC_F32;
  if (!c->joined) return c->x.type == c->w.type && c->w.type == c->y.type;
  return !filter || !half || c->x.dim[1] == c->w.dim[1];
}

/* Returns the number of engines that a heuristic lists, and the engines. */
static int named(const Descriptor *heuristic, int out[ENGINES])
{
  DnnPlanData p;
  int n = 0;
  read_graph(dnn_named(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH), &p);
  bool first = dnn_integer(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_A;
  long most = mock_setting("MOCK_DNN_ENGINES", ENGINES);
  for (int i = (int)mock_setting("MOCK_DNN_FROM", 0); i < most && i < ENGINES && is_possible(&p);
       i++)
    if (i == 0 || !first || !p.is_convolution || p.convolution.stride[0] == 1) out[n++] = i;
  return n;
}

static int notes_of(int engine, int32_t *out)
{
  out[0] = engines[engine].note;
  return engines[engine].note != NO_NOTE;
}

/* ---- plans ---- */

static bool check_machine(const Descriptor *d)
{
  int64_t n;
  return dnn_values(d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, &n) ||
         dnn_values(d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, &n);
}

/* Reads a saved plan: "mock 91901 " and the bytes of the plan in hexadecimal. */
static DnnStatus read_text(Descriptor *d, DnnPlanData *c)
{
  int64_t n;
  const char *text = dnn_values(d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, &n);
  unsigned long version = 0;
  int at = 0;
  if (sscanf(text, "mock %lu %n", &version, &at) != 1 || version != cudnnGetVersion())
    mock_misuse("a plan of another version of cuDNN is loaded");
  if (strlen(text + at) != 2 * sizeof *c) mock_misuse("a plan that is damaged is loaded");
  for (size_t i = 0; i < sizeof *c; i++) {
    unsigned byte = 0;
    sscanf(text + at + 2 * i, "%2x", &byte);
    ((unsigned char *)c)[i] = (unsigned char)byte;
  }
  return CUDNN_STATUS_SUCCESS;
}

typedef struct Kept { /* a plan to which recorded calls point, so it is never freed */
  DnnPlanData plan;
  struct Kept *before;
} Kept;

static DnnPlanData *keep_plan(void)
{
  static Kept *last;
  Kept *kept = calloc(1, sizeof *kept);
  if (!kept) mock_misuse("out of memory");
  kept->before = last;
  last = kept;
  return &kept->plan;
}

static DnnStatus make_plan(Descriptor *d)
{
  int64_t n;
  DnnPlanData *p = keep_plan();
  const Descriptor *config = dnn_named(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  if (!check_machine(d)) mock_misuse("a plan without handle and device");
  d->data = p;
  if (dnn_values(d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, &n)) return read_text(d, p);
  if (!config) return bad("a plan without an engine");
  DnnStatus status = read_graph(config->data, p);
  bool tensor_core = config->number == TENSOR_CORE;
  p->engine = config->number;
  p->workspace = p->engine == GREEDY ? (int64_t)1 << 50 : tensor_core ? WORKSPACE : 0;
  p->convolution.workspace = p->workspace;
  p->convolution.tf32 = tensor_core && p->convolution.x.type == AMPC_F32;
  return status;
}

DnnStatus dnn_complete(Descriptor *d)
{
  DnnPlanData p;
  switch (d->kind) {
  case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
    return read_graph(d, &p);
  case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
    return make_plan(d);
  default:
    return CUDNN_STATUS_SUCCESS;
  }
}

/* ---- queries ---- */

static DnnStatus give_results(const Descriptor *d, int64_t wanted, int64_t *n, void *values)
{
  int numbers[ENGINES];
  Descriptor *const *out = values;
  *n = named(d, numbers);
  if (wanted < *n) *n = wanted;
  for (int64_t i = 0; i < *n; i++) {
    if (out[i]->kind != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR || out[i]->final)
      return bad("results want empty configurations");
    out[i]->final = true;
    out[i]->number = numbers[i];
    out[i]->data = dnn_named(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    ((Descriptor *)out[i]->data)->users++;
  }
  return CUDNN_STATUS_SUCCESS;
}

static DnnStatus give_text(const DnnPlanData *c, int64_t wanted, int64_t *n, char *out)
{
  char head[32];
  int at = snprintf(head, sizeof head, "mock %lu ", (unsigned long)cudnnGetVersion());
  *n = at + 2 * (int64_t)sizeof *c + 1;
  if (wanted == 0) return CUDNN_STATUS_SUCCESS;
  if (wanted < *n) return bad("no room for a plan");
  memcpy(out, head, (size_t)at);
  for (size_t i = 0; i < sizeof *c; i++)
    snprintf(out + at + 2 * i, 3, "%02x", ((const unsigned char *)c)[i]);
  return CUDNN_STATUS_SUCCESS;
}

DnnStatus dnn_ask(Descriptor *d, DnnAttribute what, int64_t wanted, int64_t *n, void *values)
{
  switch (what) {
  case CUDNN_ATTR_ENGINEHEUR_RESULTS:
    return give_results(d, wanted, n, values);
  case CUDNN_ATTR_ENGINECFG_ENGINE: {
    Descriptor *engine = *(Descriptor **)values;
    engine->number = d->number;
    engine->data = d->data;
    *n = 1;
    return CUDNN_STATUS_SUCCESS;
  }
  case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
    *(int64_t *)values = d->number;
    *n = 1;
    return CUDNN_STATUS_SUCCESS;
  case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
    *n = notes_of(d->number, values);
    return CUDNN_STATUS_SUCCESS;
  case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
    *(int64_t *)values = ((const DnnPlanData *)d->data)->workspace;
    *n = 1;
    return (DnnStatus)mock_setting("MOCK_DNN_SIZE", CUDNN_STATUS_SUCCESS);
  case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION:
    return give_text(d->data, wanted, n, values);
  default:
    return bad("nobody can ask that of the mock");
  }
}

/* ---- calls ---- */

DnnStatus cudnnSetStream(DnnHandle handle, CuStream to)
{
  __attribute__((cleanup(mock_leave))) int entered_ = mock_enter(NEEDS_CONTEXT);
  if (entered_ || !handle) return DNN_NOT_INITIALIZED;
  stream = to;
  has_stream = true;
  return CUDNN_STATUS_SUCCESS;
}

int64_t tensor_bytes(const Tensor *t)
{
  int64_t last = 0;
  for (int64_t i = 0; i < t->n; i++) last += (t->dim[i] - 1) * t->stride[i];
  return (last + 1) * ampc_dtype_size(t->type);
}

static uint64_t place_of(const Descriptor *pack, const Tensor *t)
{
  int64_t n, n_places;
  const int64_t *numbers = dnn_values(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, &n);
  void *const *places = dnn_values(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, &n_places);
  if (n != n_places) mock_misuse("cudnn: %d places of %d operands", (int)n_places, (int)n);
  for (int64_t i = 0; i < n; i++) {
    if (numbers[i] != t->number) continue;
    uint64_t at = (uint64_t)(uintptr_t)places[i];
    if (!at || at % (uint64_t)t->align)
      mock_misuse("cudnn: operand %d is not aligned", (int)t->number);
    return at;
  }
  mock_misuse("cudnn: operand %d is missing", (int)t->number);
}

static bool meet(uint64_t a, int64_t a_bytes, uint64_t b, int64_t b_bytes)
{
  return a < b + (uint64_t)b_bytes && b < a + (uint64_t)a_bytes;
}

/* Checks overlaps. The result may overwrite only the tensor that is added, element by element. */
static void check_places(const ConvolutionCall *call)
{
  const Convolution *c = call->c;
  int64_t bytes = tensor_bytes(&c->result);
  const struct {
    const Tensor *t;
    uint64_t at;
  } others[] = {{&c->x, call->x}, {&c->w, call->w}, {&c->y, call->y}};
  for (int i = 0; i < 3; i++)
    if (!others[i].t->is_virtual && others[i].t->number != c->result.number &&
        meet(call->result, bytes, others[i].at, tensor_bytes(others[i].t)))
      mock_misuse("the result of a convolution lies over an operand");
  if (c->adds && call->add != call->result &&
      meet(call->result, bytes, call->add, tensor_bytes(&c->add)))
    mock_misuse("the result of a convolution lies over what is added to it");
  if (c->workspace && meet(call->result, bytes, call->workspace, c->workspace))
    mock_misuse("the result of a convolution lies over the workspace");
}

static void check_first_use(const DnnPlanData *p, bool capturing)
{
  for (unsigned i = 0; i < n_used; i++)
    if (used[i] == p) return;
  if (capturing) mock_misuse("a plan is called for the first time while a stream captures");
  if (n_used < MOST_USED) used[n_used++] = p;
}

static uint64_t unless_virtual(const Descriptor *pack, const Tensor *t)
{
  return t->is_virtual ? 0 : place_of(pack, t);
}

static void check_count(const Descriptor *pack, int needed)
{
  int64_t n;
  dnn_values(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, &n);
  if (n != needed) mock_misuse("cudnn: %d operands, %d needed", (int)n, needed);
}

static CuResult queue_convolution(const Convolution *c, const Descriptor *pack, uint64_t workspace)
{
  ConvolutionCall call = {.c = c, .workspace = workspace};
  call.x = unless_virtual(pack, &c->x);
  call.w = unless_virtual(pack, &c->w);
  call.y = unless_virtual(pack, &c->y);
  call.result = place_of(pack, &c->result);
  if (c->adds) call.add = place_of(pack, &c->add);
  check_count(pack, 3 + c->adds);
  check_places(&call);
  return mock_queue_library(stream, "a convolution", convolution_run, &call, sizeof call);
}

/* Checks that results do not overlap any other tensor of the call. */
static void check_results(const StepsCall *call)
{
  const Steps *s = call->steps;
  for (int o = 0; o < s->n_operations; o++) {
    int y = s->operation[o].y;
    for (int i = 0; i < s->n_tensors; i++) {
      const Tensor *a = &s->tensor[y], *b = &s->tensor[i];
      bool apart = a->is_virtual || b->is_virtual || b->by_value || i == y;
      if (!apart && meet(call->place[y].at, tensor_bytes(a), call->place[i].at, tensor_bytes(b)))
        mock_misuse("cudnn: result %d lies over operand %d", (int)a->number, (int)b->number);
    }
  }
}

/* Queues a call. Numbers passed by value are read during the call. */
static CuResult queue_steps(const Steps *s, const Descriptor *pack)
{
  StepsCall call = {.steps = s};
  int needed = 0;
  for (int i = 0; i < s->n_tensors; i++) {
    uint64_t at = unless_virtual(pack, &s->tensor[i]);
    needed += !s->tensor[i].is_virtual;
    call.place[i].at = at;
    if (s->tensor[i].by_value) call.place[i].number = *(const float *)(uintptr_t)at;
  }
  check_count(pack, needed);
  check_results(&call);
  return mock_queue_library(stream, "operations of cuDNN", steps_run, &call, sizeof call);
}

DnnStatus cudnnBackendExecute(DnnHandle handle, DnnDescriptor plan, DnnDescriptor operands)
{
  __attribute__((cleanup(mock_leave))) int entered_ = mock_enter(NEEDS_CONTEXT);
  const Descriptor *d = plan, *pack = operands;
  if (entered_ || !handle || !d->final || !pack->final) return DNN_NOT_INITIALIZED;
  if (!has_stream) mock_misuse("cudnn: no stream: the default one is nobody's");
  const DnnPlanData *p = d->data;
  long refuses = mock_setting("MOCK_DNN_REFUSES", ENGINES);
  if (++calls == mock_setting("MOCK_DNN_FAIL", 0) || refuses == p->engine || refuses == -1)
    return DNN_EXECUTION_FAILED;
  if (engines[p->engine].against)
    mock_misuse("cudnn: an engine that %s", engines[p->engine].against);
  int64_t n;
  void *const *room = dnn_values(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, &n);
  uint64_t workspace = (uint64_t)(uintptr_t)*room;
  if (p->workspace && !workspace) return bad("no workspace");
  check_first_use(p, mock_is_capturing(stream));
  mock_add(COUNT_library_calls, 1);
  CuResult queued = p->is_convolution ? queue_convolution(&p->convolution, pack, workspace)
                                      : queue_steps(&p->steps, pack);
  return queued ? DNN_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}
