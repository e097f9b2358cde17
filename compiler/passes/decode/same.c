/* Part of pass decode: constants that depend on the number of tokens.
 *
 * The decoder is compiled for the longest text, and a text is shorter. So a constant that tokens
 * meet must have the same element at each position for any length: it is compared with that of the
 * twin. Elements that weights decide are not known here. Then the inputs must be the same, and the
 * op must not read from the end of the positions or over all of them. A number may be S itself, as
 * in the index of a pair, i S + j; any other number that depends on S is refused. */
#include "decode.h"
#include <string.h>

/* Kept for each value: SAME or OTHER, and whether its numbers fit. */
enum { UNSEEN, SAME, OTHER, FITS = 4, FITS_NOT = 8, LOOKS = 5 };

/* Whether a number is the same for both lengths, or the length. */
static bool literal_fits(const Decode *d, const Node *n, const Node *m)
{
  double a = attr_as_number(n, 0), b = attr_as_number(m, 0);
  return a == b || (a != a && b != b) || (a == (double)d->length && b == (double)d->other);
}

/* Compares elements at the first positions, in the middle, and at the last one of both. Returns
 * OTHER if some differ, UNSEEN if they are not known. */
static int compare_elements(const Decode *d, uint32_t id)
{
  const Node *n = &d->old[id], *m = decode_twin(d, id);
  uint32_t places = 1;
  for (uint32_t k = 0; k < n->rank; k++) places *= LOOKS;
  for (uint32_t i = 0; i < places; i++) {
    int64_t at[MAX_RANK] = {0};
    for (uint32_t k = 0, rest = i; k < n->rank; k++, rest /= LOOKS) {
      int64_t size = n->dim[k] < m->dim[k] ? n->dim[k] : m->dim[k], look = rest % LOOKS;
      at[k] = look < 3 ? look : look == 3 ? size / 2 : size - 1;
      if (at[k] >= size) at[k] = size - 1;
    }
    Maybe a = decode_element(d, id, at), b = decode_element(d, id - d->first + d->twin, at);
    if (!a.known || !b.known) return UNSEEN;
    if (a.v != b.v && (a.v == a.v || b.v == b.v)) return OTHER;
  }
  return SAME;
}

static uint32_t positions_of(const Decode *d, uint32_t id)
{
  uint32_t n = 0;
  for (uint32_t k = 0; k < d->old[id].rank; k++) n += decode_share(d, id, k) != 0;
  return n;
}

/* Whether the op reads its inputs at the same positions for both lengths. */
static bool op_fits(const Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  OpTemplate tmpl = op_of(n)->tmpl;
  if (!decode_same_numbers(d, id)) return false;
  if (tmpl == TMPL_leaf || tmpl == TMPL_alias || tmpl == TMPL_map) return true;
  if (n->op == OP_slice) return attr_int(n, "start") == attr_int(decode_twin(d, id), "start");
  if (n->op == OP_cat) /* only in front of positions */
    for (uint32_t i = 0; i + 1u < n->n_in; i++)
      if (decode_share(d, n->in[i].id, (uint32_t)attr_int(n, "dim"))) return false;
  if (op_has(n, T_permutes | T_repeats) || n->op == OP_cat || n->op == OP_index_select) return true;
  if (tmpl == TMPL_gemm)
    return positions_of(d, id) == positions_of(d, n->in[0].id) + positions_of(d, n->in[1].id);
  uint64_t worked = decode_worked_axes(n);
  for (uint32_t i = 0; i < n->n_in; i++)
    for (uint32_t k = 0; n->in[i].id && k < d->old[n->in[i].id].rank; k++)
      if (worked >> k & 1 && decode_share(d, n->in[i].id, k)) return false;
  return true;
}

/* Whether all numbers that a value is computed from fit. */
static bool literals_fit(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  if (d->same[id] & (FITS | FITS_NOT)) return d->same[id] & FITS;
  bool fit = !op_has(n, T_literal) || literal_fits(d, n, decode_twin(d, id));
  for (uint32_t i = 0; i < n->n_in && fit; i++) fit = !n->in[i].id || literals_fit(d, n->in[i].id);
  d->same[id] |= fit ? FITS : FITS_NOT;
  return fit;
}

static bool is_same(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  if (d->same[id] & (SAME | OTHER)) return d->same[id] & SAME;
  int seen = literals_fit(d, id) ? compare_elements(d, id) : OTHER;
  if (seen == UNSEEN) {
    bool same = op_fits(d, id);
    for (uint32_t i = 0; i < n->n_in && same; i++) same = !n->in[i].id || is_same(d, n->in[i].id);
    seen = same ? SAME : OTHER;
  }
  d->same[id] |= (uint8_t)seen;
  return seen == SAME;
}

bool decode_inputs_same(Decode *d, uint32_t id)
{
  const Node *n = &d->old[id];
  for (uint32_t i = 0; i < n->n_in; i++) {
    uint32_t in = n->in[i].id;
    if (in && d->info[in].kind == CONST && !is_same(d, in)) return decode_depends(d, in);
  }
  return true;
}
