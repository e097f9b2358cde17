/* Pass decode: makes a program that computes a text token by token.
 *
 * Needs IR_DIFFED: types are final, and equal nodes are one node. Why here: layout, fuse and memory
 * then treat the new program like any other. It runs only for options.decode.
 *
 * Note [decode]
 * An infer block `f(tokens: i64[N, S])` computes all positions of a text at once. The pass derives
 * programs that compute a few new positions, the chunk, from what earlier calls have computed. One
 * is for a single token and returns the logits; the others are for larger chunks of a prompt. They
 * share buffers of the space CACHE. Each call gets its tokens and the position of the first one. At
 * position 0 nothing is read from earlier calls, so a text begins without a call of its own. For
 * options.decode_new there is one program, for that many tokens, which returns all their logits.
 *
 * Pass lower elaborates the block for two lengths. Axes whose sizes differ are positions, whatever
 * ops have reshaped them. Each value is CONST, NOW, LAST or TURN (decode.h). A NOW value is
 * computed for the chunk alone. Where an op reads other positions, they are state:
 *   keys and values     all earlier rows; the step appends the new ones (attention, products of
 *                       scores and values)
 *   carried values      the value that the last iteration of a `scan` has left
 *   windows             the last rows: padding in front, convolutions, cumulative sums (shift.c)
 * A CONST value that depends on positions, such as the angles of rotary embeddings or a mask, is
 * needed at the new positions (pick.c). An op that would read later positions is refused: E614.
 *
 * Each op of the step is the op of the block with fewer rows. So if the kernels compute each row
 * in the same way, the step computes the bits of the block. */
#include "decode.h"
#include "compiler/passes/passes.h"
#include <string.h>

/* ---- messages ---- */

bool decode_refuse(Decode *d, const Node *n, const char *why, const char *help)
{
  diag_error(d->c, E614, n->span, "this cannot be computed token by token: %s", why);
  return diag_help(d->c, "%s", help);
}

bool decode_looks_ahead(Decode *d, const Node *n, const char *what)
{
  diag_error(d->c, E614, n->span, "this looks ahead: it reads %s", what);
  return diag_help(d->c, "a token must depend on the tokens before it alone: a causal mask "
                         "(`is_causal=true`), padding in front only, no mean over all tokens. If "
                         "it does so here, `amp infer --no-cache` computes each token from all "
                         "tokens before it");
}

bool decode_depends(Decode *d, uint32_t id)
{
  return decode_refuse(
      d, &d->old[id], "it contains a number that depends on the number of tokens",
      "write it with positions: arange(S) instead of S; or with a fixed number, such as "
      "the largest S");
}

/* ---- positions ---- */

const Node *decode_twin(const Decode *d, uint32_t id)
{
  return &d->old[id - d->first + d->twin];
}

bool decode_same_numbers(const Decode *d, uint32_t id)
{
  const Node *n = &d->old[id], *m = decode_twin(d, id);
  const OpSignature *sig = &op_of(n)->signature;
  for (uint32_t i = 0; i < sig->n_attrs; i++)
    if (sig->attr[i].kind == ATTR_float && memcmp(&n->attr[i], &m->attr[i], sizeof n->attr[i]) != 0)
      return false;
  return true;
}

uint64_t decode_worked_axes(const Node *n)
{
  uint64_t axes;
  uint32_t at;
  if (op_axes(n, &axes)) return axes ? axes : ~0ull;
  return attr_find(op_of(n), "dim", &at) ? 1ull << n->attr[at].i : ~0ull;
}

/* Compares the axis with that of the twin: size = share * length + rest. */
int64_t decode_share(const Decode *d, uint32_t id, uint32_t axis)
{
  const Node *n = &d->old[id], *m = decode_twin(d, id);
  int64_t more = n->dim[axis] - m->dim[axis], share = more / (d->length - d->other);
  if (!more) return 0;
  int64_t rest = n->dim[axis] - share * d->length;
  bool fits = share > 0 && rest == m->dim[axis] - share * d->other;
  return fits && (!rest || (share == 1 && rest < d->length)) ? share : -1;
}

int decode_keys(const Decode *d, uint32_t id, uint32_t now)
{
  int keys = -1;
  for (uint32_t i = 0; i < d->old[id].rank; i++)
    if (i != now && decode_share(d, id, i)) keys = keys == -1 ? (int)i : -2;
  return keys;
}

/* ---- new nodes ---- */

Cursor decode_cursor(const Decode *d, const Node *old)
{
  Cursor at = ir_cursor_like(old);
  at.block = d->block;
  at.loop = 0;
  at.origin = at.after = (Value){0};
  return at;
}

Node decode_copy(Decode *d, uint32_t id, const Value *in, int now)
{
  Node n = d->old[id];
  int64_t dim[MAX_RANK];
  uint32_t at;
  n.in = arena_array(d->c->arena, Value, n.n_in ? n.n_in : 1);
  if (n.n_in) memcpy(n.in, in, n.n_in * sizeof *in);
  n.block = d->block;
  n.loop = d->loops[n.loop];
  n.origin = n.after = (Value){0};
  if (now < 0 || !attr_find(op_of(&n), "rank", &at)) return n;
  memcpy(dim, n.dim, sizeof dim);
  int64_t share = dim[now] / d->length;
  dim[now] = (share ? share : 1) * d->chunk;
  ir_set_shape(&n, dim);
  return n;
}

Value decode_add(Decode *d, uint32_t id, Node *n)
{
  const Node *old = &d->old[id];
  if (!ir_infer(d->c, n)) return (Value){0};
  n->dtype = old->dtype;
  n->weak = old->weak;
  vec_push(d->c->arena, &d->g->nodes, *n);
  return (Value){d->g->nodes.n - 1};
}

/* ---- state ---- */

Value decode_state(Decode *d, uint32_t id, DType dtype, const int64_t *dim, uint32_t rank)
{
  const Node *old = &d->old[id];
  Cursor at = decode_cursor(d, old);
  uint32_t index = d->first_state + d->n_states++; /* all programs need them in the same order */
  if (index == d->g->params.n) {
    Parameter p = {.path = arena_printf(d->c->arena, "cache.%u", index - d->first_state),
                   .model = "",
                   .buffer = true,
                   .decodes = true,
                   .dtype = dtype,
                   .rank = (uint8_t)rank,
                   .of = -1,
                   .optimizer = -1,
                   .span = old->span};
    memcpy(p.dim, dim, rank * sizeof *dim);
    vec_push(d->c->arena, &d->g->params, p);
  }
  at.why = WHY_storage;
  return ir_append(d->c, &at, OP_param, NULL, 0, ATTRS({"index", {.i = index}}));
}

Value decode_position(Decode *d, uint32_t id, int64_t more)
{
  Cursor at = decode_cursor(d, &d->old[id]);
  return more ? ir_binary(d->c, &at, OP_add, d->position, ir_integer(d->c, &at, more))
              : d->position;
}

void decode_store(Decode *d, uint32_t id, Value state, Value x, int axis, Value row)
{
  Cursor at = decode_cursor(d, &d->old[id]);
  Value in[] = {x, row};
  const Node *to = ir_node(d->g, state), *from = ir_node(d->g, x);
  int64_t block = to->rank > from->rank ? to->dim[to->rank - 1] : 1;
  at.why = WHY_state;
  d->carries = d->carries || axis < 0;
  ir_append(d->c, &at, OP_store, in, 2,
            ATTRS({"param", {.i = attr_int(to, "index")}}, {"axis", {.i = axis < 0 ? 0 : axis}},
                  {"block", {.i = block}}));
}

Value decode_whole(Decode *d, uint32_t id)
{
  const Node *old = &d->old[id];
  if (d->info[id].kind == CONST) return d->map[id];
  if (d->whole[id].id) return d->whole[id];
  const Info *x = &d->info[id];
  bool pairs = decode_keys(d, id, x->now) != -1; /* rows of earlier calls lack later keys */
  if (pairs && !x->ahead.known) {
    decode_looks_ahead(d, old, "all pairs of positions");
    return (Value){0};
  }
  bool whole = x->early ? x->rows.id != 0 : old->dim[x->now] == d->length;
  if (!whole || decode_share(d, id, x->now) != 1) {
    decode_refuse(d, old, "all its positions are read, but they are moved or share an axis",
                  "keep positions in an axis of their own");
    return (Value){0};
  }
  d->whole[id] = decode_state(d, id, old->dtype, old->dim, old->rank);
  Cursor at = decode_cursor(d, old);
  int axis = (int)x->now;
  if (x->early)
    decode_store(d, id, d->whole[id], x->rows, axis,
                 ir_reshape(d->c, &at, ir_integer(d->c, &at, 0), (const int64_t[]){1}, 1));
  decode_store(d, id, d->whole[id], d->map[id], axis, decode_position(d, id, x->early));
  return d->whole[id];
}

Value decode_begins(Decode *d, const Node *like, Value first, Value later)
{
  Cursor at = decode_cursor(d, like);
  at.why = WHY_fixed;
  Value zero = ir_integer(d->c, &at, 0);
  Value is_first = ir_binary(d->c, &at, op_named("le"), d->position, zero);
  is_first = ir_reshape(d->c, &at, is_first, NULL, 0);
  at.why = WHY_follow;
  return ir_append(d->c, &at, op_named("where"), (Value[]){is_first, first, later}, 3, NULL);
}

/* ---- the programs ---- */

/* Gives the block its tokens, i64[N, chunk], and their position. */
static void set_sources(Decode *d)
{
  Graph *g = d->g;
  BlockInfo *b = &g->blocks.at[d->block];
  ampc_source tokens = g->sources.at[g->blocks.at[0].first_source];
  ampc_source position = {.kind = AMPC_SOURCE_ARGUMENT,
                          .path = "position",
                          .dtype = AMPC_I64,
                          .rank = 1,
                          .dim = {1},
                          .part_end = 1};
  tokens.dim[1] = d->chunk;
  b->first_source = g->sources.n;
  b->n_sources = 2;
  vec_push(d->c->arena, &g->sources, tokens);
  vec_push(d->c->arena, &g->sources, position);
}

/* Adds the nodes that all others need: positions. */
static void add_positions(Decode *d)
{
  Cursor at = {.block = d->block, .why = WHY_fixed};
  int64_t source = d->g->blocks.at[d->block].first_source + 1;
  d->position = ir_append(d->c, &at, OP_source, NULL, 0, ATTRS({"index", {.i = source}}));
  d->positions = d->position;
  if (d->chunk == 1) return;
  Value each = ir_append(d->c, &at, OP_indices, NULL, 0, ir_shape_attrs(d->c, &d->chunk, 1));
  d->positions = ir_binary(d->c, &at, OP_add, d->position, each);
}

static bool derive_block(Decode *d, uint16_t block, int64_t chunk)
{
  uint32_t n = d->twin + (d->end - d->first);
  d->block = block;
  d->chunk = chunk;
  d->map = arena_array(d->c->arena, Value, n);
  d->whole = arena_array(d->c->arena, Value, n);
  d->settled = arena_array(d->c->arena, Value, n);
  d->keys = arena_array(d->c->arena, Value, n);
  d->state = arena_array(d->c->arena, Value, n);
  d->n_states = 0;
  for (uint32_t i = 0; i < MAX_RANK; i++) d->picked[i] = arena_array(d->c->arena, Value, n);
  d->loops = arena_array(d->c->arena, uint16_t, d->g->loops.n);
  set_sources(d);
  add_positions(d);
  bool good = true;
  for (uint32_t id = d->first; id < d->end && good; id++) good = derive_node(d, id);
  return good;
}

/* Checks that the block has the same ops for both lengths. */
static bool blocks_fit(Decode *d, uint32_t n_old)
{
  bool good = n_old - d->twin == d->end - d->first;
  for (uint32_t id = d->first; id < d->end && good; id++) {
    const Node *n = &d->old[id], *m = decode_twin(d, id);
    good = n->op == m->op && n->rank == m->rank && n->n_in == m->n_in;
    int64_t more = d->g->loops.at[n->loop].count - d->g->loops.at[m->loop].count;
    d->over[n->loop] |= more != 0;
    if (more && more != d->length - d->other)
      return decode_refuse(d, n, "its loop has not one iteration for each position",
                           "scan over the positions");
    for (uint32_t i = 0; i < n->n_in && good; i++)
      good = (n->in[i].id ? n->in[i].id - d->first + d->twin : 0) == m->in[i].id;
    if (good) continue;
    diag_error(d->c, E614, n->span,
               "the operations of this block depend on the number of tokens (%lld or %lld), so it "
               "cannot be computed token by token",
               (long long)d->length, (long long)d->other);
  }
  return good || diag_error_count(d->c) ||
         decode_refuse(d, &d->old[d->first], "its operations depend on the number of tokens",
                       "let no `if` depend on that number");
}

/* The results are those of block 0; the program for a prompt has none. */
static void keep_results(Graph *g)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < g->outputs.n; i++)
    if (g->outputs.at[i].block == 0) g->outputs.at[n++] = g->outputs.at[i];
  g->outputs.n = n;
}

/* The programs: how many new tokens each computes. A prompt goes through the larger ones, where a
 * weight that is read serves many tokens. */
static const int64_t chunks[] = {1, 16, 256};
enum { CHUNKS = sizeof chunks / sizeof *chunks };

/* The first program is in the place of the block, the second in that of its twin; all further
 * blocks are added. Returns the number of programs: no chunk is longer than the text. */
static uint16_t add_blocks(const Decode *d)
{
  Graph *g = d->g;
  uint16_t n = 2;
  while (n < CHUNKS && chunks[n] < d->length) n++;
  if (d->c->options.decode_new) n = 1;
  if (g->blocks.n > n) g->blocks.n = n;
  for (uint32_t i = g->blocks.n; i < n; i++) {
    BlockInfo more = g->blocks.at[0];
    vec_push(d->c->arena, &g->blocks, more);
  }
  for (uint32_t i = 0; i < n; i++) {
    BlockInfo *b = &g->blocks.at[i];
    const char *name = i ? arena_printf(d->c->arena, "prefill%lld", (long long)chunks[i]) : "step";
    b->name = arena_printf(d->c->arena, "%s.%s", b->call, name);
    b->n_sizes = 0;
    b->context = d->length;
  }
  return n;
}

bool pass_decode(Compile *c)
{
  Graph *g = c->graph;
  Rewrite r;
  if (!c->options.decode) return true;
  ir_rewrite_begin(&r, c);
  Decode d = {.c = c, .g = g, .old = r.old, .first = 1, .end = 1};
  while (d.end < r.n_old && r.old[d.end].block == 0) d.end++;
  d.twin = d.end;
  d.info = arena_array(c->arena, Info, r.n_old);
  d.same = arena_array(c->arena, uint8_t, r.n_old);
  d.seen = arena_array(c->arena, Seen, r.n_old);
  d.first_state = g->params.n;
  d.length = g->sources.at[g->blocks.at[0].first_source].dim[1];
  d.other = g->sources.at[g->blocks.at[1].first_source].dim[1];
  d.over = arena_array(c->arena, bool, g->loops.n);
  if (!blocks_fit(&d, r.n_old)) return false;
  keep_results(g);
  uint16_t n = add_blocks(&d);
  for (uint16_t i = 0; i < n; i++)
    if (!derive_block(&d, i, c->options.decode_new ? c->options.decode_new : chunks[i]))
      return false;
  for (uint32_t i = 0; i < n; i++) g->blocks.at[i].carries = d.carries;
  return pass_simplify(c);
}
