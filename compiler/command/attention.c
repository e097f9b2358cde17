/* Attention as kernels: see attention.h. */
#include "attention.h"
#include "command_parts.h"
#include "compiler/rules/rules.h"
#include "runtime/plan/arithmetic.h"
#include "runtime/plan/attention.h"
#include <assert.h>

/* Indices of the inputs of attention and of attention_backward. */
enum { QUERY, KEY, VALUE, MASK, SLOPE, SUMS, OFF, RESULT, POSITION = 4 };

bool attention_is_backward(const Node *n)
{
  return op_of(n)->gradient == grad_none;
}

Value attention_result(const Graph *g, const Group *p, int64_t of)
{
  for (uint32_t i = 0; i < p->n; i++) {
    const Node *n = ir_node(g, p->nodes[i]);
    if (attr_int(n, attention_is_backward(n) ? "of" : "sums") == of) return p->nodes[i];
  }
  return (Value){0};
}

Value attention_position(const Node *n)
{
  return attention_is_backward(n) ? (Value){0} : n->in[POSITION];
}

/* ---- tiles ---- */

enum { TENSOR_WARPS = 4, TENSOR_TILE = 16 /* rows of the matrix that an instruction multiplies */ };
enum { TENSOR_BLOCK = 32 * TENSOR_WARPS /* threads */ };

typedef struct Sizes {
  int64_t n, l, s, heads, kv_heads, d, e; /* kv_heads: of keys and values; divides heads */
} Sizes;

static Sizes sizes_of(const Graph *g, const Node *n)
{
  const Node *q = ir_node(g, n->in[QUERY]), *v = ir_node(g, n->in[VALUE]);
  return (Sizes){q->dim[0], q->dim[1], v->dim[1], q->dim[2], v->dim[2], q->dim[3], v->dim[3]};
}

/* Returns how many numbers a block keeps in shared memory: operands of the tile, operands of a
 * step, the scores of a step, and four numbers for each query and key. */
static int64_t room(const TileWalk *w, const Sizes *s, bool backward)
{
  int64_t widest = w->d_room > w->e_room ? w->d_room : w->e_room;
  int64_t tile = backward ? s->d + s->e : s->d, step = backward ? w->d_room + w->e_room : widest;
  return w->lanes * tile + w->rows * step + w->rows * w->lanes + 4 * (w->lanes + w->rows);
}

/* Chooses the largest tile that fits, because all its lanes share the loads of a step. The smallest
 * tile fits heads of 256 features, the widest that the layer library uses. */
static void choose_tile(Compile *c, TileWalk *w, const Sizes *s, bool backward)
{
  enum { SHARED_BYTES = 48 * 1024 };
  static const int64_t tiles[][2] = {{64, 32}, {64, 16}, {32, 32}, {32, 16},
                                     {16, 32}, {16, 16}, {16, 8},  {8, 8}};
  for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
    w->lanes = tiles[i][0];
    w->rows = tiles[i][1];
    if (room(w, s, backward) * ir_dtype_size(c, AMPC_F32) <= SHARED_BYTES) return;
  }
  assert(!"a head is too wide");
}

static bool has_type(const Graph *g, Value v, DType type)
{
  return ir_node(g, v)->dtype == type && ir_node(g, value_root(g, v))->dtype == type;
}

/* Whether the group is computed on tensor cores. Queries, keys, values and results must have the
 * same 16-bit type; a mask may have any. Dropout compares a random word of 32 bits with a
 * threshold, which would need 33 bits for p = 1. */
static bool uses_tensor_cores(const Compile *c, const Group *p, const Sizes *s)
{
  enum { WIDEST = 128, OLDEST = 80 };
  const Graph *g = c->graph;
  const Node *n = ir_node(g, p->anchor);
  DType type = ir_node(g, n->in[QUERY])->dtype;
  bool back = attention_is_backward(n);
  if (is_cpu_target(c) || target_capability(c) < OLDEST || c->options.real64) return false;
  if (ampc_attention_in_f32() || attention_position(n).id) return false;
  if (s->d > WIDEST || s->e > WIDEST || !ampc_is_narrow(type) || attr_float(n, "p") >= 1)
    return false;
  for (uint32_t i = QUERY; i <= SLOPE; i++)
    if (i != MASK && (i != SLOPE || back) && !has_type(g, n->in[i], type)) return false;
  return !back || n->dtype == type;
}

/* A lane keeps its part of the sums and of a step's scores in registers. With more than MOST_KEPT
 * numbers ptxas would spill some of them. So wide heads have tiles with half as many rows, and if
 * that is not enough, shorter steps. */
static void choose_tensor_tile(TileWalk *w, bool back)
{
  enum { MOST_KEPT = 140 };
  bool wide = w->d_room > 64 || w->e_room > 64;
  int64_t each = wide ? 1 : 2, sums = (back ? w->d_room + w->e_room : w->e_room) / 2;
  w->tensor = true;
  w->lanes = TENSOR_WARPS * TENSOR_TILE * each;
  w->rows = 32;
  if (each * (sums + (back ? w->rows : w->rows / 2)) > MOST_KEPT) w->rows = 16;
}

/* A tile has the queries of the heads that share keys, and 32 keys. Returns false if the group is
 * not attention of one query, or the operands do not fit in the shared memory of a GPU. */
static bool choose_step(Compile *c, const Group *p, const Sizes *s, TileWalk *w)
{
  enum { KEYS = ATTENTION_BLOCK, CPU_ROWS = 8, CUDA_ROWS = 16, SHARED_NUMBERS = 48 * 1024 / 4 };
  const Graph *g = c->graph;
  int64_t group = s->heads / s->kv_heads, widest = w->d_room > w->e_room ? w->d_room : w->e_room;
  int64_t rows = is_cpu_target(c) ? ampc_round_up(group, CPU_ROWS) : group,
          numbers = rows * (s->d + KEYS + 4) + KEYS * widest;
  bool fits = attention_position(ir_node(g, p->anchor)).id && s->l == 1 && group <= CUDA_ROWS &&
              !attention_result(g, p, 1).id && numbers <= SHARED_NUMBERS;
  if (!fits) return false;
  w->step = true;
  w->lanes = KEYS;
  w->rows = rows;
  w->query_split = 1;
  w->query_units = s->n * s->kv_heads;
  return true;
}

/* On the CPU the tile is 64 lanes by 32 rows for every head size: two tiles of 64 x 64 numbers and
 * a step fit in its caches, and 8 rows by 32 lanes fit in the vector registers. */
TileWalk tile_walk(Compile *c, const Group *p)
{
  enum { CPU_LANES = 64, CPU_ROWS = ATTENTION_BLOCK, CPU_ROOM = 32, CUDA_ROOM = 16 };
  const Graph *g = c->graph;
  const Node *n = ir_node(g, p->anchor);
  Sizes s = sizes_of(g, n);
  bool cpu = is_cpu_target(c), back = attention_is_backward(n);
  TileWalk w = {.lanes = CPU_LANES, .rows = CPU_ROWS};
  w.d_room = ampc_round_up(s.d, cpu ? CPU_ROOM : CUDA_ROOM);
  w.e_room = ampc_round_up(s.e, cpu ? CPU_ROOM : CUDA_ROOM);
  if (choose_step(c, p, &s, &w)) return w;
  if (uses_tensor_cores(c, p, &s))
    choose_tensor_tile(&w, back);
  else if (!cpu)
    choose_tile(c, &w, &s, back);
  if (back && (attention_result(g, p, 1).id || attention_result(g, p, 2).id))
    w.key_split = cpu ? 1 : ceil_div(s.s, w.lanes);
  bool joint = cpu && w.key_split && !attr_int(n, "rounded");
  int64_t together = w.tensor ? s.heads / s.kv_heads : 1; /* heads of queries in one tile */
  if (!back || (attention_result(g, p, 0).id && !joint))
    w.query_split = ceil_div(s.l * together, w.lanes);
  w.key_units = s.n * s.kv_heads * w.key_split;
  w.query_units = s.n * (s.heads / together) * w.query_split;
  return w;
}

/* On CUDA each unit is a block, because units of causal attention differ in length: a block starts
 * on the next free multiprocessor. */
Geometry tiles_geometry(Compile *c, const Group *p, const TileWalk *w)
{
  enum { CUDA_MOST = 1 << 20, CPU_MOST = 64, CPU_SHARE = 1 << 18 /* multiply-adds for a thread */ };
  Sizes s = sizes_of(c->graph, ir_node(c->graph, p->anchor));
  int64_t units = w->key_units + w->query_units;
  if (w->tensor) return (Geometry){(uint32_t)units, TENSOR_BLOCK};
  if (!is_cpu_target(c))
    return (Geometry){(uint32_t)(units < CUDA_MOST ? units : CUDA_MOST), CUDA_BLOCK};
  int64_t work = s.n * s.heads * s.l * s.s * (s.d + s.e) / CPU_SHARE;
  int64_t most = units < CPU_MOST ? units : CPU_MOST, threads = work < most ? work : most;
  return (Geometry){threads < 1 ? 1 : (uint32_t)threads, 1};
}

/* ---- operands ---- */

bool attention_access(const Graph *g, const Node *n, uint32_t input, Access *out)
{
  const Node *x = ir_node(g, n->in[input]);
  if (!access_through(g, n->in[input], out)) return false;
  for (uint32_t i = 0; i < x->rank; i++)
    if (x->dim[i] == 1) out->stride[i] = 0;
  bool any = input == MASK || (input == KEY && attention_position(n).id);
  return any || x->dim[x->rank - 1] == 1 || out->stride[x->rank - 1] == 1;
}

bool tiles_read(const Graph *g, const Node *n, uint32_t input)
{
  Access a;
  return ir_node(g, n->in[input])->rank == 4 && attention_access(g, n, input, &a);
}

/* ---- for the library ---- */

static uint32_t argument_number(const Graph *g, const KernelArgs *args, Value v)
{
  v = value_root(g, v);
  for (uint32_t i = 0; i < args->n; i++)
    if (args->at[i].value.id == v.id) return i + 1;
  return 0;
}

/* Converts an Access, where axes of one element have stride 0; the library needs a dense stride. */
static ampc_attention_operand operand(const Node *x, const Access *a)
{
  int64_t row = x->dim[2] * x->dim[3], dense[] = {x->dim[1] * row, row, x->dim[3]};
  ampc_attention_operand out = {.first = a->offset};
  for (uint32_t i = 0; i < 3; i++) out.stride[i] = x->dim[i] == 1 ? dense[i] : a->stride[i];
  return out;
}

static uint32_t argument_of_role(const KernelArgs *args, ArgRole role)
{
  uint32_t i = 0;
  while (args->at[i].role != role) i++;
  return i + 1;
}

static void set_dropout(const Node *n, const KernelArgs *args, ampc_attention *out)
{
  if (!op_draws(n)) return;
  out->p = attr_float(n, "p");
  out->each = n->draws.each;
  out->state = argument_of_role(args, ARG_state);
  out->stream = argument_of_role(args, ARG_stream);
}

static bool find_mask(const Graph *g, const KernelArgs *args, const Node *n,
                      ampc_attention_mask *out)
{
  Access a;
  if (!n->in[MASK].id) return true;
  if (!attention_access(g, n, MASK, &a)) return false;
  *out = (ampc_attention_mask){argument_number(g, args, n->in[MASK]), a.offset, {0}};
  for (uint32_t i = 0; i < 4; i++) out->stride[i] = a.stride[i];
  return out->argument != 0;
}

/* Sets an input. Returns false if the library cannot use its strides, or its type is not `type`. */
static bool find_input(const Graph *g, const KernelArgs *args, const Node *n, uint32_t input,
                       ampc_dtype type, ampc_attention_operand *out)
{
  Access a;
  Value v = n->in[input];
  bool good = attention_access(g, n, input, &a) && ir_node(g, value_root(g, v))->dtype == type;
  if (!good) return false;
  *out = operand(ir_node(g, v), &a);
  out->argument = argument_number(g, args, v);
  return true;
}

/* Describes a result or the sums. These are dense: `width` numbers for each row and head. */
static ampc_attention_operand whole(const Graph *g, const KernelArgs *args, Value v, int64_t rows,
                                    int64_t heads, int64_t width)
{
  ampc_attention_operand out = {.stride = {rows * heads * width, heads * width, width}};
  if (v.id) out.argument = argument_number(g, args, v);
  return out;
}

static bool for_backward(const Graph *g, const Group *p, const KernelArgs *args,
                         ampc_attention *out)
{
  const Node *n = ir_node(g, p->anchor);
  const int64_t l = out->l, s = out->s, heads = out->heads;
  out->sums = whole(g, args, n->in[SUMS], l, heads, 1);
  out->dq = whole(g, args, attention_result(g, p, 0), l, heads, out->d);
  out->dk = whole(g, args, attention_result(g, p, 1), s, heads, out->d);
  out->dv = whole(g, args, attention_result(g, p, 2), s, heads, out->e);
  return n->in[RESULT].id && find_input(g, args, n, RESULT, out->type, &out->y) &&
         find_input(g, args, n, SLOPE, out->type, &out->dy) && out->dq.argument &&
         out->dk.argument && out->dv.argument;
}

static bool for_forward(const Graph *g, const Group *p, const KernelArgs *args, ampc_attention *out)
{
  out->y = whole(g, args, attention_result(g, p, 0), out->l, out->heads, out->e);
  out->sums = whole(g, args, attention_result(g, p, 1), out->l, out->heads, 1);
  return out->y.argument != 0;
}

static ampc_attention problem_of(Compile *c, Value v)
{
  const Graph *g = c->graph;
  const Node *n = ir_node(g, v);
  Sizes s = sizes_of(g, n);
  return (ampc_attention){.backward = attention_is_backward(n),
                          .causal = attr_int(n, "causal"),
                          .grouped = s.kv_heads < s.heads,
                          .n = s.n,
                          .l = s.l,
                          .s = s.s,
                          .heads = s.heads,
                          .d = s.d,
                          .e = s.e,
                          .scale = attr_float(n, "scale"),
                          .p = attr_float(n, "p"),
                          .type = ir_node(g, n->in[QUERY])->dtype,
                          .line = node_line(c, v)};
}

/* Adds the arguments. Returns false if the library cannot compute this group. */
static bool add_arguments(Compile *c, const Group *p, const KernelArgs *args, ampc_attention *out)
{
  const Graph *g = c->graph;
  const Node *n = ir_node(g, p->anchor);
  if (!rule_by_library(c, n)) return false;
  DType type = out->type;
  set_dropout(n, args, out);
  return find_mask(g, args, n, &out->mask) && find_input(g, args, n, QUERY, type, &out->q) &&
         find_input(g, args, n, KEY, type, &out->k) &&
         find_input(g, args, n, VALUE, type, &out->v) &&
         (out->backward ? for_backward(g, p, args, out) : for_forward(g, p, args, out));
}

void set_attention(Compile *c, uint32_t group, Command *out)
{
  const Group *p = &c->graph->groups.at[group];
  char known[AMPC_WHY_ROOM];
  if (!p->anchor.id || !op_has(ir_node(c->graph, p->anchor), T_tiles)) return;
  ampc_attention *problem = arena_array(c->arena, ampc_attention, 2), *whole = problem + 1;
  *problem = *whole = problem_of(c, p->anchor);
  out->attention = problem;
  if (add_arguments(c, p, &out->whole.args, whole))
    out->library = whole;
  else if (ampc_attention_against(whole, (ampc_cudnn){0, target_capability(c)}, known))
    out->why_own = arena_strdup(c->arena, known);
  else
    out->why_own = "cuDNN does not support this mask or these strides";
}

/* True if all values of a group are read inside it or by the next group. */
static bool serves_next(const Graph *g, uint32_t group)
{
  for (uint32_t id = g->groups.at[group].nodes[0].id; id < g->nodes.n; id++) {
    const Node *n = ir_node(g, (Value){id});
    bool reads = n->group || op_has(n, T_kept);
    if (n->group == group && op_has(n, T_effect)) return false;
    for (uint32_t i = 0; i < n->n_in && reads && n->group != group && n->group != group + 1; i++)
      if (ir_node(g, value_root(g, n->in[i]))->group == group) return false;
  }
  return true;
}

void set_deferred(Compile *c, uint32_t group, Command *all)
{
  const Graph *g = c->graph;
  const Group *p = &g->groups.at[group], *next = p + 1;
  if (all[group].kind != COMMAND_kernel || p->n_parts || c->options.poison) return;
  if (group + 1 >= g->groups.n || !all[group + 1].library) return;
  const Node *n = ir_node(g, next->anchor), *first = ir_node(g, p->nodes[0]);
  if (!attention_is_backward(n) || n->block != first->block || n->loop != first->loop ||
      ir_node(g, n->in[OFF])->group != group)
    return;
  all[group].deferred = all[group].n_args <= AMPC_MOST_DEFERRED && serves_next(g, group);
}
