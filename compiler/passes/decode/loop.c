/* Part of pass decode: loops over positions, Note [loops] in node.h. The chunk's iterations begin
 * with the values that the last iteration of the call before has left. */
#include "decode.h"

/* True if the loop has an iteration for each position. */
static bool counts_positions(const Decode *d, uint16_t loop)
{
  return loop && d->over[loop];
}

static const Loop *of_node(const Decode *d, const Node *n)
{
  return &d->g->loops.at[attr_int(n, "loop")];
}

/* Returns the loop of the new block that stands for the old one. */
static uint16_t new_loop(Decode *d, uint16_t old)
{
  if (!old || d->loops[old]) return d->loops[old];
  Loop loop = d->g->loops.at[old];
  if (counts_positions(d, old)) loop.count = d->chunk;
  loop.parent = new_loop(d, loop.parent);
  return d->loops[old] = ir_add_loop(d->c, loop);
}

static bool add(Decode *d, uint32_t id, const Value *in, Kind kind)
{
  const Node *old = &d->old[id];
  uint32_t at;
  Node n = decode_copy(d, id, in, -1);
  n.loop = new_loop(d, old->loop);
  if (attr_find(op_of(old), "loop", &at)) n.attr[at].i = new_loop(d, (uint16_t)old->attr[at].i);
  d->info[id].kind = kind;
  d->map[id] = decode_add(d, id, &n);
  return d->map[id].id != 0;
}

static bool refuse_loop(Decode *d, const Node *n)
{
  return decode_refuse(d, n, "tokens enter a `scan` that is not over their positions",
                       "scan over the positions, the first axis: x.transpose(0, 1)");
}

/* The initial value of a carry is the one of the job at position 0, later that of the last call. */
static bool derive_carry(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  Value first = d->map[n->in[0].id];
  if (!counts_positions(d, (uint16_t)attr_int(n, "loop"))) return add(d, id, &first, CONST);
  if (d->info[n->in[0].id].kind != CONST) return refuse_loop(d, n);
  if (!decode_inputs_same(d, id)) return false;
  if (of_node(d, n)->reversed) return decode_looks_ahead(d, n, "positions from the last one on");
  d->state[id] = decode_state(d, id, n->dtype, n->dim, n->rank);
  Value in = decode_begins(d, n, first, d->state[id]);
  return in.id && add(d, id, &in, TURN);
}

bool derive_crossing(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  if (n->op == OP_carry) return derive_carry(d, id);
  return derive_in_loop(d, id);
}

static bool derive_turn(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  const Info *x = &d->info[n->in[0].id];
  Value in = d->map[n->in[0].id];
  if (of_node(d, n)->reversed) return decode_looks_ahead(d, n, "positions from the last one on");
  if (x->kind != CONST && (x->kind != NOW || x->now || x->early)) return refuse_loop(d, n);
  if (x->kind == CONST) in = decode_pick(d, n->in[0].id, 0);
  return in.id && add(d, id, &in, TURN);
}

static bool derive_next(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  Value in[] = {d->map[n->in[0].id], d->map[n->in[1].id]};
  if (!add(d, id, in, LAST)) return false;
  decode_store(d, id, d->state[n->in[0].id], d->map[id], -1, (Value){0});
  return true;
}

/* A node in a loop, or one that ends it. In a loop over positions all values belong to the
 * iteration's position. */
bool derive_in_loop(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  uint32_t at;
  uint16_t loop = attr_find(op_of(n), "loop", &at) ? (uint16_t)n->attr[at].i : n->loop;
  bool over = false, tokens = false;
  Value in[n->n_in + 1];
  for (uint16_t l = loop; l; l = d->g->loops.at[l].parent) over = over || counts_positions(d, l);
  for (uint32_t i = 0; i < n->n_in; i++) {
    in[i] = d->map[n->in[i].id];
    tokens = tokens || d->info[n->in[i].id].kind == NOW || d->info[n->in[i].id].kind == LAST;
  }
  bool direct = counts_positions(d, loop);
  if (over && !decode_inputs_same(d, id)) return false;
  if (direct && n->op == OP_turn) return derive_turn(d, id);
  if (tokens) return refuse_loop(d, n);
  if (direct && n->op == OP_next) return derive_next(d, id);
  if (!add(d, id, in, over ? TURN : CONST)) return false;
  if (direct && n->op == OP_stack) d->info[id] = (Info){.kind = NOW, .outer = 1};
  return true;
}
