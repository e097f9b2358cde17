/* Part of pass decode: products and attention. They read earlier positions: keys and values. */
#include "decode.h"
#include <math.h>
#include <string.h>

/* ---- products ---- */

typedef struct Operand {
  uint32_t rank, row, depth; /* axes: of the result; of the sum */
} Operand;

static Operand operand_of(const Decode *d, const Node *n, uint32_t i)
{
  uint32_t rank = d->old[n->in[i].id].rank;
  uint32_t at; /* `linear` has no such attributes: its weight is [out, in] */
  bool turned = i == 1;
  if (attr_find(op_of(n), i ? "trans_b" : "trans_a", &at)) turned = n->attr[at].i;
  bool last = i ? !turned : turned; /* the axis of the result is the last one */
  return (Operand){rank, rank - (last ? 1 : 2), rank - (last ? 2 : 1)};
}

/* A product of scores: rows are the new positions, columns all of them. */
static bool derive_scores(Decode *d, uint32_t id, const Operand *b)
{
  const Node *n = &d->old[id];
  const Info *x = decode_info(d, n->in[0]), *y = decode_info(d, n->in[1]);
  Value in[3] = {decode_now(d, n->in[0].id)};
  bool each = y->now == 0 && x->now == 0 && b->rank == 3; /* positions number the products */
  if (y->now != b->row && !each) return decode_refuse_op(d, id);
  in[1] = each ? decode_now(d, n->in[1].id) : decode_whole(d, n->in[1].id);
  return derive_finish(d, id, in, x->now, x->outer);
}

/* The same with keys that are constants: positions. */
static bool derive_places(Decode *d, uint32_t id, const Operand *b)
{
  const Node *n = &d->old[id];
  const Info *x = decode_info(d, n->in[0]);
  uint32_t y = n->in[1].id;
  bool each = x->now == 0 && b->rank == 3 && decode_share(d, y, 0) != 0;
  int keys = decode_keys(d, y, each ? 0 : MAX_RANK);
  if (keys != (int)b->row && !(each && keys == -1)) return decode_refuse_op(d, id);
  Value in[3] = {decode_now(d, n->in[0].id), each ? decode_pick(d, y, 0) : d->map[y]};
  return derive_finish(d, id, in, x->now, x->outer);
}

/* A product of weights and values: a sum over the keys. */
static bool derive_weighted(Decode *d, uint32_t id, bool picks, uint32_t row, uint32_t depth)
{
  const Node *n = &d->old[id];
  const Info *x = decode_info(d, n->in[0]), *y = decode_info(d, n->in[1]);
  int64_t more = d->old[n->in[1].id].dim[depth] - d->length;
  int64_t front = y->kind == NOW ? y->early : more, own = picks ? more : x->front;
  if ((y->kind == NOW && y->now != depth) || front != own) return decode_refuse_op(d, id);
  Value in[3] = {picks ? decode_pick(d, n->in[0].id, row) : decode_now(d, n->in[0].id),
                 decode_whole(d, n->in[1].id)};
  return derive_finish(d, id, in, picks ? n->rank - 2u : x->now, picks ? 1 : x->outer);
}

bool derive_product(Decode *d, uint32_t id)
{
  static const char later[] = "positions after its own: no mask makes their factors 0";
  const Node *n = &d->old[id];
  Operand a = operand_of(d, n, 0), b = operand_of(d, n, 1);
  const Info *x = decode_info(d, n->in[0]), *y = decode_info(d, n->in[1]);
  Value in[3] = {d->map[n->in[0].id], d->map[n->in[1].id]};
  if (n->n_in > 2) in[2] = d->map[n->in[2].id];
  if (x->kind == NOW) {
    if (x->now == a.depth) return decode_looks_ahead(d, n, "all positions");
    if (decode_keys(d, n->in[0].id, x->now) == (int)a.depth) {
      if (!x->ahead.known || x->ahead.v != 0) return decode_looks_ahead(d, n, later);
      return derive_weighted(d, id, false, a.row, b.depth);
    }
    if (y->kind == NOW) return derive_scores(d, id, &b);
    if (!decode_is_plain(d, n->in[1])) return derive_places(d, id, &b);
    uint32_t now = x->now == a.row && n->op == OP_gemm ? n->rank - 2u : x->now;
    in[0] = decode_now(d, n->in[0].id);
    return derive_finish(d, id, in, now, x->outer);
  }
  if (y->now == b.row) {
    in[1] = decode_now(d, n->in[1].id);
    return derive_finish(d, id, in, n->rank - 1u, y->outer);
  }
  bool by_row = y->now == b.depth && decode_share(d, n->in[0].id, a.row) == 1;
  if (!by_row)
    return y->now == b.depth ? decode_looks_ahead(d, n, "all positions") : decode_refuse_op(d, id);
  Maybe ahead = ahead_of_const(d, n->in[0].id, a.row, a.depth, y->early);
  if (!ahead.known || ahead.v != 0) return decode_looks_ahead(d, n, later);
  return derive_weighted(d, id, true, a.row, b.depth);
}

/* ---- attention ---- */

enum { QUERY, KEY, VALUE, MASK, POSITION };

static bool excludes(const Node *mask, Maybe ahead)
{
  return ahead.known && (mask->dtype == AMPC_BOOL ? ahead.v == 0 : ahead.v <= FAR_BELOW);
}

/* Returns the mask for the new positions; 0 after a message. */
static Value derive_mask(Decode *d, const Node *n, int64_t front, bool *causal)
{
  Value v = n->in[MASK];
  const Node *mask = &d->old[v.id];
  const Info *x = decode_info(d, v);
  bool query = decode_share(d, v.id, 2) == 1, key = decode_share(d, v.id, 3) == 1;
  Maybe ahead = {0};
  if (x->kind == NOW && x->now == 2) ahead = x->ahead;
  if (x->kind == NOW && x->front != front) ahead.known = false;
  if (x->kind == CONST && query && key) ahead = ahead_of_const(d, v.id, 2, 3, front);
  bool empty = mask->dtype != AMPC_BOOL && ahead.v > -INFINITY && x->kind == CONST;
  if (empty && !ahead_leaves_own(d, v.id, 2, 3, front)) ahead.known = false;
  *causal = *causal || excludes(mask, ahead);
  bool fits = x->kind == CONST ? !key || mask->dim[3] - d->length == front
              : x->now == 3    ? x->early == front
                               : true;
  if (!fits) return (Value){decode_refuse_op(d, v.id)};
  if (x->kind == NOW) return x->now == 3 ? decode_whole(d, v.id) : decode_now(d, v.id);
  return query ? decode_pick(d, v.id, 2) : d->map[v.id];
}

/* Returns the rows in front of keys or values. */
static int64_t rows_in_front(const Decode *d, Value v)
{
  bool constant = decode_info(d, v)->kind == CONST && !decode_is_plain(d, v);
  return constant ? d->old[v.id].dim[1] - d->length : decode_info(d, v)->early;
}

/* Stores the keys and returns all up to now. On a CPU, blocks of keys are kept as [d, keys],
 * because the step reads a feature of many keys at a time. Other readers of the program than its
 * kernels need rows. */
static Value whole_keys(Decode *d, uint32_t id)
{
  const Node *old = &d->old[id];
  bool rows = !is_cpu_target(d->c) || d->c->options.decode_new;
  if (d->info[id].kind == CONST || rows) return decode_whole(d, id);
  if (d->keys[id].id) return d->keys[id];
  int64_t block = ATTENTION_BLOCK, blocks = (old->dim[1] + block - 1) / block;
  int64_t dim[] = {old->dim[0], blocks, old->dim[2], old->dim[3], block};
  Value x = decode_now(d, id);
  if (!x.id || d->info[id].early || old->dim[1] != d->length) return decode_whole(d, id);
  d->keys[id] = decode_state(d, id, old->dtype, dim, 5);
  decode_store(d, id, d->keys[id], x, 1, d->position);
  return d->keys[id];
}

bool derive_attention(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  bool causal = attr_int(n, "causal"),
       fixed = decode_is_plain(d, n->in[KEY]) && decode_is_plain(d, n->in[VALUE]);
  int64_t front = rows_in_front(d, n->in[KEY]);
  Value in[5] = {decode_now(d, n->in[QUERY].id), {0}, {0}, {0}, d->position};
  if (!causal) in[POSITION] = decode_position(d, id, front);
  if (!decode_is_now(d, n, QUERY) || decode_info(d, n->in[QUERY])->now != 1)
    return decode_refuse_op(d, id);
  for (uint32_t i = QUERY; i <= VALUE; i++) {
    const Info *x = decode_info(d, n->in[i]);
    bool pairs = x->kind == NOW && decode_keys(d, n->in[i].id, x->now) != -1;
    if (pairs || (x->kind == NOW && x->now != 1)) return decode_refuse_op(d, id);
    if (i == QUERY) continue;
    if (rows_in_front(d, n->in[i]) != front) return decode_refuse_op(d, id);
    in[i] = i == KEY ? whole_keys(d, n->in[i].id) : decode_whole(d, n->in[i].id);
    if (!in[i].id) return false;
  }
  if (n->in[MASK].id && !(in[MASK] = derive_mask(d, n, front, &causal)).id) return false;
  if (fixed) in[POSITION] = (Value){0}; /* keys that are no positions */
  if (!fixed && !causal) return decode_refuse_keys(d, id);
  Node copy = decode_copy(d, id, in, -1);
  copy.in = arena_array(d->c->arena, Value, 5);
  memcpy(copy.in, in, sizeof in);
  attr_set_int(&copy, "causal", !fixed);
  d->info[id] = (Info){.kind = NOW, .now = 1, .outer = 1};
  d->map[id] = decode_add(d, id, &copy);
  return d->map[id].id != 0;
}
