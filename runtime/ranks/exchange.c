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

/* Returns the number of elements of the piece that each rank adds. */
static int64_t piece_of(const Members *m, const ampc_exchange *x)
{
  int64_t n = ranks_of(m);
  return x->kind == AMPC_SUM && x->count <= FEW ? x->count : (x->count + n - 1) / n;
}

int64_t exchange_scratch(const Members *m, const ampc_exchange *x)
{
  int64_t n = ranks_of(m), bytes = ampc_dtype_size(x->type);
  if (n == 1 || (x->kind != AMPC_SUM && x->kind != AMPC_SLICE)) return 0;
  return 2 * n * piece_of(m, x) * bytes;
}

int64_t exchange_sent(const Members *m, const ampc_exchange *x)
{
  int64_t others = ranks_of(m) - 1, size = ampc_dtype_size(x->type);
  int64_t piece = piece_of(m, x) * size;
  if (x->kind == AMPC_SLICE) return others * piece;
  if (x->kind == AMPC_SUM) return others * (x->count <= FEW ? piece : 2 * piece);
  return x->kind == AMPC_GATHER ? others * (x->count / m->all * m->n * size) : 0;
}

typedef struct Ranges { /* the ranges of the members of this process */
  char *at;
  int64_t apart;
} Ranges;

/* Adds the ranges of this process to the first one. */
static ampc_status add_own(Device *d, const Members *m, int64_t count, Ranges r)
{
  return m->n == 1 ? AMPC_OK : d->ops->add(d, r.at, r.at, r.apart, m->n, count);
}

/* Adds `n` pieces of `count` elements that are one after the other. */
static ampc_status add_pieces(Device *d, void *to, const void *from, uint32_t n, int64_t count)
{
  return d->ops->add(d, to, from, count * (int64_t)sizeof(float), n, count);
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
  if (!status) status = d->ops->gather(d, scratch, bytes);
  return status ? status : add_pieces(d, r.at, scratch, ranks_of(m), x->count);
}

/* Each rank adds one piece, `sum`, of all ranges. The last piece is padded with zeros. */
static ampc_status sum_piece(Device *d, const Members *m, const ampc_exchange *x, void *at,
                             char *scratch, void *sum)
{
  uint32_t n = ranks_of(m);
  int64_t piece = piece_of(m, x), bytes = piece * (int64_t)sizeof(float);
  int64_t rest = n * piece - x->count, used = x->count * (int64_t)sizeof(float);
  char *out = rest ? scratch + n * bytes : at;
  ampc_status status = AMPC_OK;
  if (rest) status = d->ops->copy(d, out, at, used);
  if (rest && !status) status = d->ops->fill(d, out + used, 0, rest * (int64_t)sizeof(float));
  if (!status) status = d->ops->swap(d, out, scratch, bytes);
  return status ? status : add_pieces(d, sum, scratch, n, piece);
}

static ampc_status sum_many(Device *d, const Members *m, const ampc_exchange *x, Ranges r,
                            char *scratch)
{
  int64_t bytes = piece_of(m, x) * (int64_t)sizeof(float);
  char *all = scratch + ranks_of(m) * bytes;
  ampc_status status = sum_piece(d, m, x, r.at, scratch, scratch);
  if (!status) status = d->ops->copy(d, all + rank_of(m) * bytes, scratch, bytes);
  if (!status) status = d->ops->gather(d, all, bytes);
  return status ? status : d->ops->copy(d, r.at, all, x->count * (int64_t)sizeof(float));
}

static ampc_status sum(Device *d, const Members *m, const ampc_exchange *x, Ranges r, char *scratch)
{
  ampc_status status = add_own(d, m, x->count, r);
  if (!status && m->ranks)
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
  if (!status && m->ranks) status = sum_piece(d, m, x, r.at, scratch, own);
  for (uint32_t i = m->n; i > 0 && !status; i--) {
    char *to = r.at + (i - 1) * r.apart;
    int64_t begin = (m->first + i - 1) * bytes, end = begin + bytes;
    if (i > 1) status = d->ops->copy(d, to + begin, r.at + begin, bytes);
    if (!status && begin) status = d->ops->fill(d, to, 0, begin);
    if (!status && end < all) status = d->ops->fill(d, to + end, 0, all - end);
  }
  return status;
}

/* Members of one process may share the range. */
static ampc_status gather(Device *d, const Members *m, const ampc_exchange *x, Ranges r)
{
  int64_t bytes = x->count / m->all * ampc_dtype_size(x->type);
  ampc_status status = AMPC_OK;
  for (uint32_t i = 1; i < m->n && r.apart && !status; i++) {
    int64_t begin = (m->first + i) * bytes;
    status = d->ops->copy(d, r.at + begin, r.at + i * r.apart + begin, bytes);
  }
  if (!status && m->ranks) status = d->ops->gather(d, r.at, bytes * m->n);
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
