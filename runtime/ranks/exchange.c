#include "exchange.h"

/* Elements of a sum that all ranks compute alike, instead of each a slice of it. */
enum { FEW = 16384 };

static uint32_t ranks_of(const Members *m)
{
  return m->ranks ? (uint32_t)m->ranks->size : 1;
}

static uint32_t rank_of(const Members *m)
{
  return m->ranks ? (uint32_t)m->ranks->rank : 0;
}

static bool is_few(const ampc_exchange *x)
{
  return x->kind == AMPC_SUM && x->count <= FEW;
}

/* Returns the number of elements of the piece that each of n ranks adds. */
static int64_t piece_of_ranks(int64_t n, const ampc_exchange *x)
{
  return is_few(x) ? x->count : (x->count + n - 1) / n;
}

static int64_t piece_of(const Members *m, const ampc_exchange *x)
{
  return piece_of_ranks(ranks_of(m), x);
}

/* The first half gets the pieces of other ranks. The second half is for what does not fit where it
 * is: a padded range, numbers in 16 bits, the pieces of all sums. */
int64_t exchange_scratch(int64_t ranks, const ampc_exchange *x)
{
  bool slice = x->kind == AMPC_SLICE, in_place = slice && x->mode != AMPC_SUM_BF16;
  if (ranks <= 1 || (x->kind != AMPC_SUM && !slice)) return 0;
  int64_t pieces = ranks * piece_of_ranks(ranks, x) * ampc_dtype_size(x->type);
  return (in_place && x->count % ranks == 0) || is_few(x) ? pieces : 2 * pieces;
}

int64_t exchange_sent(const Members *m, const ampc_exchange *x)
{
  int64_t others = ranks_of(m) - 1, size = ampc_dtype_size(x->type);
  int64_t piece = piece_of(m, x) * size;
  bool few = is_few(x);
  int64_t swapped = x->mode == AMPC_SUM_BF16 && !few ? piece / 2 : piece;
  if (x->kind == AMPC_SLICE) return others * swapped;
  if (x->kind == AMPC_SUM) return others * (few ? piece : swapped + piece);
  bool gathers = x->kind == AMPC_GATHER || x->kind == AMPC_GATHER_WITH_NEXT;
  return gathers ? others * (x->count / m->all * m->n * size) : 0;
}

typedef struct Ranges { /* the ranges of the members of this process */
  char *at;
  int64_t apart;
} Ranges;

/* Adds the ranges of this process to the first one. */
static ampc_status add_own(Device *d, const Members *m, int64_t count, Ranges r)
{
  return m->n == 1 ? AMPC_OK : d->ops->add(d, AMPC_F32, r.at, r.at, r.apart, m->n, count);
}

/* Adds `n` pieces of `count` elements that are one after the other. */
static ampc_status add_pieces(Device *d, ampc_dtype type, void *to, const void *from, uint32_t n,
                              int64_t count)
{
  return d->ops->add(d, type, to, from, count * ampc_dtype_size(type), n, count);
}

static bool by_library(const Device *d, const ampc_exchange *x)
{
  return x->mode == AMPC_SUM_FAST && d->ops->reduce;
}

/* Copies the first range of this process to its other members. */
static ampc_status copy_to_own(Device *d, const Members *m, int64_t bytes, Ranges r)
{
  ampc_status status = AMPC_OK;
  for (uint32_t i = 1; i < m->n && !status; i++)
    status = d->ops->copy(d, r.at + i * r.apart, r.at, bytes);
  return status;
}

/* All ranks get all ranges, and each adds them. */
static ampc_status sum_few(Device *d, const Members *m, const ampc_exchange *x, Ranges r,
                           char *scratch)
{
  int64_t bytes = x->count * ampc_dtype_size(x->type);
  ampc_status status = d->ops->copy(d, scratch + rank_of(m) * bytes, r.at, bytes);
  if (!status) status = d->ops->gather(d, scratch, bytes, false);
  return status ? status : add_pieces(d, AMPC_F32, r.at, scratch, ranks_of(m), x->count);
}

/* Each rank adds one piece, `sum`, of all ranges. The last piece is padded with zeros. The first
 * half of the scratch gets what other ranks send; `sum` may be in the second half. */
static ampc_status sum_piece(Device *d, const Members *m, const ampc_exchange *x, void *at,
                             char *scratch, void *sum)
{
  ampc_dtype type = x->mode == AMPC_SUM_BF16 ? AMPC_BF16 : AMPC_F32;
  uint32_t n = ranks_of(m);
  int64_t piece = piece_of(m, x), each = ampc_dtype_size(type), rest = n * piece - x->count;
  char *out = rest || type == AMPC_BF16 ? scratch + n * piece * (int64_t)sizeof(float) : at;
  ampc_status status = AMPC_OK;
  if (type == AMPC_BF16) status = d->ops->round(d, out, at, x->count);
  if (type == AMPC_F32 && rest) status = d->ops->copy(d, out, at, x->count * each);
  if (rest && !status) status = d->ops->fill(d, out + x->count * each, 0, rest * each);
  if (!status) status = d->ops->swap(d, out, scratch, piece * each);
  return status ? status : add_pieces(d, type, sum, scratch, n, piece);
}

static ampc_status sum_many(Device *d, const Members *m, const ampc_exchange *x, Ranges r,
                            char *scratch)
{
  int64_t bytes = piece_of(m, x) * (int64_t)sizeof(float);
  char *all = scratch + ranks_of(m) * bytes;
  ampc_status status = sum_piece(d, m, x, r.at, scratch, all + rank_of(m) * bytes);
  if (!status) status = d->ops->gather(d, all, bytes, false);
  return status ? status : d->ops->copy(d, r.at, all, x->count * (int64_t)sizeof(float));
}

static ampc_status sum(Device *d, const Members *m, const ampc_exchange *x, Ranges r, char *scratch)
{
  ampc_status status = add_own(d, m, x->count, r);
  if (!status && m->ranks && by_library(d, x))
    status = d->ops->reduce(d, r.at, x->count, false);
  else if (!status && m->ranks)
    status = x->count <= FEW ? sum_few(d, m, x, r, scratch) : sum_many(d, m, x, r, scratch);
  return status ? status : copy_to_own(d, m, x->count * ampc_dtype_size(x->type), r);
}

/* The slices of this process's members are adjacent: they are its piece of the sum. Each member
 * keeps its own slice; all else becomes 0. */
static ampc_status slice(Device *d, const Members *m, const ampc_exchange *x, Ranges r,
                         char *scratch)
{
  int64_t bytes = x->count / m->all * ampc_dtype_size(x->type), all = bytes * m->all;
  char *own = r.at + m->first * bytes;
  ampc_status status = add_own(d, m, x->count, r);
  if (!status && m->ranks && by_library(d, x))
    status = d->ops->reduce(d, r.at, piece_of(m, x), true);
  else if (!status && m->ranks)
    status = sum_piece(d, m, x, r.at, scratch, own);
  for (uint32_t i = m->n; i > 0 && !status; i--) {
    char *to = r.at + (i - 1) * r.apart;
    int64_t begin = (m->first + i - 1) * bytes, end = begin + bytes;
    if (i > 1) status = d->ops->copy(d, to + begin, r.at + begin, bytes);
    if (!status && begin) status = d->ops->fill(d, to, 0, begin);
    if (!status && end < all) status = d->ops->fill(d, to + end, 0, all - end);
  }
  return status;
}

/* Members of one process may share the range. If not, the copies below need what was gathered. */
static ampc_status gather(Device *d, const Members *m, const ampc_exchange *x, Ranges r)
{
  int64_t bytes = x->count / m->all * ampc_dtype_size(x->type);
  ampc_status status = AMPC_OK;
  for (uint32_t i = 1; i < m->n && r.apart && !status; i++) {
    int64_t begin = (m->first + i) * bytes;
    status = d->ops->copy(d, r.at + begin, r.at + i * r.apart + begin, bytes);
  }
  bool more = x->kind == AMPC_GATHER_WITH_NEXT && !r.apart;
  if (!status && m->ranks) status = d->ops->gather(d, r.at, bytes * m->n, more);
  return status || !r.apart ? status : copy_to_own(d, m, bytes * m->all, r);
}

ampc_status exchange_run(Device *d, const Members *m, const ampc_exchange *x, void *at,
                         int64_t apart, void *scratch)
{
  ampc_status status = AMPC_OK;
  const Ranges r = {at, apart};
  if (x->kind != AMPC_SLICE && d->ops->join) status = d->ops->join(d);
  if (status) return status;
  switch (x->kind) {
  case AMPC_SUM:
    return sum(d, m, x, r, scratch);
  case AMPC_GATHER:
  case AMPC_GATHER_WITH_NEXT:
    return gather(d, m, x, r);
  case AMPC_CLEAR:
    for (uint32_t i = 0; i < m->n && !status; i++)
      status = d->ops->fill(d, r.at + i * r.apart, 0, x->count * ampc_dtype_size(x->type));
    return status;
  case AMPC_JOIN:
    break; /* done: every exchange on the main stream joins */
  case AMPC_SLICE:
    if (d->ops->aside) status = d->ops->aside(d, true);
    if (!status) status = slice(d, m, x, r, scratch);
    return !status && d->ops->aside ? d->ops->aside(d, false) : status;
  }
  return status;
}
