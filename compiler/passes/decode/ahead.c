/* Part of pass decode: the elements of masks for keys after the position, Note [ahead].
 *
 * A mask is computed here, element by element, in doubles that are rounded as its types say. It
 * takes for granted that a mask of more than MOST_ROWS positions treats all of them like those that
 * are looked at: the first ones, the last ones, and every n-th in between. */
#include "decode.h"
#include <math.h>
#include <string.h>

enum { MOST_ROWS = 1024, EDGE = 64 };

/* ---- elements of constants ---- */

typedef struct Element { /* its index along each axis */
  int64_t at[MAX_RANK];
} Element;

static Maybe element(const Decode *d, uint32_t id, const Element *p);

/* Returns an element of input i, whose axes are counted from the right. */
static Maybe operand(const Decode *d, const Node *n, uint32_t i, const Element *p)
{
  const Node *x = &d->old[n->in[i].id];
  Element own = {{0}};
  for (uint32_t k = 0; k < x->rank; k++)
    own.at[k] = x->dim[k] == 1 ? 0 : p->at[k + n->rank - x->rank];
  return element(d, n->in[i].id, &own);
}

static int64_t flat(const Node *n, const Element *p)
{
  int64_t at = 0;
  for (uint32_t k = 0; k < n->rank; k++) at = at * n->dim[k] + p->at[k];
  return at;
}

/* Returns an element of a view or move. */
static Maybe moved(const Decode *d, const Node *n, const Element *p)
{
  const Node *x = &d->old[n->in[0].id];
  Element own = *p;
  if (n->op == OP_reshape) {
    int64_t at = flat(n, p);
    for (uint32_t k = x->rank; k-- > 0; at /= x->dim[k]) own.at[k] = at % x->dim[k];
  } else if (op_has(n, T_permutes)) {
    for (uint32_t k = 0; k < n->rank; k++) own.at[ir_permuted_axis(n, k)] = p->at[k];
  } else if (n->op == OP_slice) {
    int64_t dim = attr_int(n, "dim");
    own.at[dim] = attr_int(n, "start") + p->at[dim] * attr_int(n, "step");
  } else if (n->op == OP_pad) {
    int64_t *at = &own.at[attr_int(n, "dim")];
    *at -= attr_int(n, "before");
    if (*at < 0 || *at >= x->dim[attr_int(n, "dim")])
      return (Maybe){true, attr_float(n, "value"), SIGN_any};
  } else if (n->op == OP_cat) {
    int64_t dim = attr_int(n, "dim"), size;
    uint32_t i = 0;
    for (; own.at[dim] >= (size = d->old[n->in[i].id].dim[dim]); i++) own.at[dim] -= size;
    return element(d, n->in[i].id, &own);
  } else {
    return (Maybe){0};
  }
  return element(d, n->in[0].id, &own);
}

static Maybe compute_element(const Decode *d, uint32_t id, const Element *p)
{
  const Node *n = &d->old[id];
  Maybe in[MAX_SIGNATURE] = {{0}};
  if (op_has(n, T_literal)) return (Maybe){true, attr_as_number(n, 0), SIGN_any};
  if (n->op == OP_expand) return operand(d, n, 0, p);
  bool moves = op_of(n)->tmpl == TMPL_alias || op_of(n)->tmpl == TMPL_move;
  if (moves && n->n_in) return moved(d, n, p);
  if (op_of(n)->tmpl != TMPL_map || op_has(n, T_blocks | T_crosses)) return (Maybe){0};
  for (uint32_t i = 0; i < n->n_in; i++)
    if (op_of(n)->code.reads_element[i]) in[i] = operand(d, n, i, p);
  return maybe_of_code(n, in, (double)flat(n, p));
}

/* A node that many others read is asked for the same element again and again. */
static Maybe element(const Decode *d, uint32_t id, const Element *p)
{
  Seen *seen = &d->seen[id];
  size_t bytes = d->old[id].rank * sizeof *p->at;
  if (seen->set && memcmp(seen->at, p->at, bytes) == 0) return seen->v;
  Maybe v = compute_element(d, id, p);
  memcpy(seen->at, p->at, bytes);
  seen->set = true;
  return seen->v = v;
}

static Maybe uniform(const Decode *d, uint32_t id);

static Maybe compute_uniform(const Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  Maybe in[MAX_SIGNATURE] = {{0}};
  bool all = true;
  if (op_has(n, T_literal)) return (Maybe){true, attr_as_number(n, 0), SIGN_any};
  if (!n->n_in || op_of(n)->code.uses_index) return (Maybe){0};
  bool view = op_of(n)->tmpl == TMPL_alias || op_has(n, T_permutes | T_repeats | T_strided);
  if (view) return uniform(d, n->in[0].id);
  if (op_of(n)->tmpl != TMPL_map) return (Maybe){0};
  for (uint32_t i = 0; i < n->n_in; i++) {
    if (!op_of(n)->code.reads_element[i]) continue;
    in[i] = uniform(d, n->in[i].id);
    all = all && in[i].known;
  }
  Maybe y = maybe_of_code(n, in, 0);
  y.known = y.known && all;
  return y;
}

static Maybe uniform(const Decode *d, uint32_t id)
{
  Seen *seen = &d->seen[id];
  if (!seen->looked) seen->all = compute_uniform(d, id);
  seen->looked = true;
  return seen->all;
}

bool decode_is_uniform(const Decode *d, uint32_t id, double *out)
{
  Maybe all = uniform(d, id);
  *out = all.v;
  return all.known;
}

Maybe decode_element(const Decode *d, uint32_t id, const int64_t at[MAX_RANK])
{
  Element p;
  memcpy(p.at, at, sizeof p.at);
  return element(d, id, &p);
}

/* Returns the element of row `row` at the key of that position; the other axes are at 0. */
static Maybe own_key(const Decode *d, uint32_t id, uint32_t now, uint32_t keys, int64_t front,
                     int64_t row)
{
  Element p = {{0}};
  p.at[now] = row;
  p.at[keys] = row + front;
  return element(d, id, &p);
}

bool ahead_leaves_own(Decode *d, uint32_t id, uint32_t now, uint32_t keys, int64_t front)
{
  for (int64_t row = 0; row < d->length; row++) {
    Maybe v = own_key(d, id, now, keys, front, row);
    if (v.known && v.v <= FAR_BELOW) return false;
  }
  return true;
}

/* Looks at all elements of a row of positions `now` with a key after it. */
static bool row_ahead(const Decode *d, uint32_t id, uint32_t now, uint32_t keys, int64_t front,
                      int64_t row, Maybe *all)
{
  const Node *n = &d->old[id];
  int64_t others = ir_elements(n) / n->dim[now] / n->dim[keys];
  for (int64_t k = row + front + 1 > 0 ? row + front + 1 : 0; k < n->dim[keys]; k++)
    for (int64_t o = 0; o < others; o++) {
      Element p;
      int64_t rest = o;
      for (uint32_t i = n->rank; i-- > 0;) {
        bool own = i != now && i != keys;
        p.at[i] = i == now ? row : i == keys ? k : rest % n->dim[i];
        if (own) rest /= n->dim[i];
      }
      Maybe v = element(d, id, &p);
      if (!v.known || (all->known && v.v != all->v)) return false;
      *all = v;
    }
  return true;
}

static Maybe look(const Decode *d, uint32_t id, uint32_t now, uint32_t keys, int64_t front)
{
  int64_t rows = d->length, step = rows <= MOST_ROWS ? 1 : rows / (MOST_ROWS / 2);
  Maybe all = {0};
  for (int64_t row = 0; row < rows; row++) {
    bool edge = row < EDGE || row >= rows - EDGE;
    bool looks = edge || row % step == 0;
    if (looks && !row_ahead(d, id, now, keys, front, row, &all)) return (Maybe){0};
  }
  return all;
}

Maybe ahead_of_const(Decode *d, uint32_t id, uint32_t now, uint32_t keys, int64_t front)
{
  Info *x = &d->info[id];
  if (!x->looked || x->now != now || x->keys != keys || x->front != front) {
    x->ahead = look(d, id, now, keys, front);
    x->looked = true;
    x->now = now;
    x->keys = keys;
    x->front = front;
  }
  return x->ahead;
}

/* ---- elementwise nodes with tokens ---- */

/* Returns what input i is ahead. Of a value with the axes swapped, that is not known. */
static Maybe input_ahead(Decode *d, const Node *n, uint32_t i, const Info *own, int axis)
{
  const Node *x = &d->old[n->in[i].id];
  const Info *from = &d->info[n->in[i].id];
  uint32_t missing = (uint32_t)n->rank - x->rank, now = own->now;
  uint32_t keys = (uint32_t)axis;
  if (from->kind == NOW) return from->now + missing == now ? from->ahead : (Maybe){0};
  Maybe same = uniform(d, n->in[i].id);
  if (same.known || same.sign) return same;
  bool both = axis >= 0 && now >= missing && keys >= missing && x->dim[now - missing] > 1 &&
              x->dim[keys - missing] > 1;
  return both ? ahead_of_const(d, n->in[i].id, now - missing, keys - missing, own->front)
              : (Maybe){0};
}

/* With finite numbers, a row in which all keys are excluded has the mean of all values, also of
 * later ones. So the key of the position itself must stay, as far as constants decide that. */
static bool map_leaves_own(Decode *d, uint32_t id, uint32_t keys)
{
  const Node *n = &d->old[id];
  uint32_t now = d->info[id].now;
  int64_t front = d->info[id].front;
  for (int64_t row = 0; row < d->length; row++) {
    Maybe in[MAX_SIGNATURE] = {{0}};
    if (row + front < 0 || row + front >= n->dim[keys]) return false; /* it was cut off */
    for (uint32_t i = 0; i < n->n_in; i++) {
      const Node *x = &d->old[n->in[i].id];
      uint32_t missing = (uint32_t)n->rank - x->rank;
      if (!n->in[i].id || d->info[n->in[i].id].kind == NOW) continue;
      Element p = {{0}};
      if (now >= missing) p.at[now - missing] = x->dim[now - missing] > 1 ? row : 0;
      if (keys >= missing) p.at[keys - missing] = x->dim[keys - missing] > 1 ? row + front : 0;
      in[i] = element(d, n->in[i].id, &p);
    }
    Maybe v = maybe_of_code(n, in, 0);
    if (v.known && v.v <= FAR_BELOW) return false;
  }
  return true;
}

void ahead_of_map(Decode *d, uint32_t id, int keys)
{
  const Node *n = &d->old[id];
  Info *x = &d->info[id];
  Maybe in[MAX_SIGNATURE] = {{0}};
  if (op_of(n)->tmpl != TMPL_map || n->n_in > MAX_SIGNATURE) return;
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i].id) in[i] = input_ahead(d, n, i, x, keys);
  x->ahead = maybe_of_code(n, in, 0);
  x->ahead.known = x->ahead.known && keys >= 0;
  bool finite = x->ahead.known && x->ahead.v <= FAR_BELOW && x->ahead.v > -INFINITY;
  if (finite && !map_leaves_own(d, id, (uint32_t)keys)) x->ahead.known = false;
}

void ahead_of_cat(Decode *d, uint32_t id, int keys)
{
  const Node *n = &d->old[id];
  Info *x = &d->info[id];
  if (keys < 0) return;
  x->ahead = input_ahead(d, n, 0, x, keys);
  for (uint32_t i = 1; i < n->n_in && x->ahead.known; i++) {
    Maybe v = input_ahead(d, n, i, x, keys);
    if (!v.known || v.v != x->ahead.v) x->ahead.known = false;
  }
}
