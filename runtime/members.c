/* The members of a program that this process runs: Note [members] in ranks/exchange.h.
 *
 * Members of a process share the weights. Each has spaces of its own for what differs: its samples,
 * its gradients, its slice of the moments. STATE and buffers are equal for all members, since what
 * changes them has been summed over the members; the host reads those of the first one. */
#include "members.h"
#include <stddef.h>
#include <stdlib.h>

/* Whether the members of a process share the space. */
static bool is_shared(ampc_space s)
{
  return s == AMPC_MASTER || s == AMPC_COPY16 || s == AMPC_COPYBF || s == AMPC_EMA;
}

/* Whether a member has only its slices of the space. */
static bool is_sliced(const ampc_runtime *rt, ampc_space s)
{
  return rt->members.all > 1 && (s == AMPC_MOMENT1 || s == AMPC_MOMENT2 || s == AMPC_MOMENT3);
}

ampc_status members_set(ampc_runtime *rt, Ranks *ranks)
{
  const ampc_program *p = rt->program;
  uint32_t all = p->members ? p->members : 1, n = ranks ? (uint32_t)ranks->size : 1;
  if (all % n)
    return ampc_fail(AMPC_BAD_USAGE,
                     "%s is compiled for %u rank%s, but %u were started; a number that divides %u "
                     "is possible",
                     p->source, all, all == 1 ? "" : "s", n, all);
  rt->members = (Members){.ranks = n > 1 ? ranks : NULL, .n = all / n, .all = all};
  rt->members.first = ranks ? (uint32_t)ranks->rank * rt->members.n : 0;
  bool tree = n == 1 || n == all || (all & (all - 1)) == 0;
  if (!tree)
    return ampc_fail(AMPC_BAD_USAGE, "%s is compiled for %u members: only 1 or %u ranks can run it",
                     p->source, all, all);
  rt->firsts = calloc(rt->members.n, sizeof *rt->firsts);
  rt->variants = calloc(rt->members.n, sizeof *rt->variants);
  return rt->firsts && rt->variants ? AMPC_OK : ampc_fail(AMPC_RUN_FAILED, "out of memory");
}

int64_t members_bytes(const ampc_runtime *rt, ampc_space s)
{
  return rt->program->space_bytes[s] * (is_shared(s) ? 1 : rt->members.n);
}

ampc_status members_alloc(ampc_runtime *rt, ampc_space s, int64_t bytes, int64_t times)
{
  Device *d = rt->device;
  int64_t n = is_shared(s) ? 1 : rt->members.n;
  if (n * times > 1) bytes = ampc_round_up(bytes, AMPC_CUDA_ALIGN);
  rt->apart[s] = n > 1 ? bytes : 0;
  void *memory = NULL;
  ampc_status status = d->ops->alloc(d, bytes * n * times, &memory);
  rt->base[s] = memory;
  return status;
}

void members_turn(ampc_runtime *rt, uint32_t member)
{
  rt->member = member;
  for (int s = AMPC_STATE; s < AMPC_SPACE_COUNT; s++)
    if (rt->base[s]) rt->space[s] = rt->base[s] + member * rt->apart[s];
  if (rt->base[AMPC_INPUT]) rt->space[AMPC_INPUT] += rt->half * rt->input_step;
}

ampc_status members_fill(ampc_runtime *rt, ampc_space s)
{
  ampc_status status = AMPC_OK;
  int64_t bytes = rt->program->space_bytes[s];
  for (uint32_t i = 0; i < rt->members.n && bytes && !status; i++)
    if (i == 0 || rt->apart[s])
      status = rt->device->ops->fill(rt->device, rt->base[s] + i * rt->apart[s], 0, bytes);
  return status;
}

/* ---- moments: slices of several members ---- */

typedef struct Piece { /* a part of a range that belongs to one member */
  uint32_t member;
  bool alike;      /* all members have it; `member` is one of this process */
  int64_t from, n; /* elements, in the member's space */
} Piece;

/* Finds the piece that begins at element `at` of a space that is not divided, and ends before
 * `end`. Elements that no group has are in no piece: member is then `all`. */
static Piece piece_at(const ampc_runtime *rt, int64_t at, int64_t end)
{
  const ampc_program *p = rt->program;
  for (uint32_t i = 0; i < p->n_slices; i++) {
    const ampc_slice *s = &p->slices[i];
    if (at < s->first || at >= s->first + s->count) continue;
    int64_t member = (at - s->first) / s->each, stop = s->first + (member + 1) * s->each;
    Piece out = {(uint32_t)member, s->each == s->count, s->moment + (at - s->first) % s->each,
                 end - at};
    if (out.alike) out.member = rt->members.first;
    if (stop < end) out.n = stop - at;
    return out;
  }
  return (Piece){rt->members.all, false, 0, end - at};
}

static void *place_of(const ampc_runtime *rt, ampc_space s, const Piece *p)
{
  uint32_t own = p->member - rt->members.first;
  int64_t size = ampc_element_size(rt->program, AMPC_F32);
  return rt->base[s] + own * rt->apart[s] + p->from * size;
}

static ampc_status put(ampc_runtime *rt, ampc_space s, Piece p, const void *from)
{
  int64_t bytes = p.n * ampc_element_size(rt->program, AMPC_F32);
  uint32_t end = p.alike ? rt->members.first + rt->members.n : p.member + 1;
  ampc_status status = AMPC_OK;
  for (; p.member < end && !status; p.member++)
    status = rt->device->ops->copy_in(rt->device, place_of(rt, s, &p), from, bytes);
  return status;
}

static bool is_own(const ampc_runtime *rt, const Piece *p)
{
  return p->member >= rt->members.first && p->member < rt->members.first + rt->members.n;
}

/* Rank 0 gets the piece: its own one, or that of another rank. */
static ampc_status collect(ampc_runtime *rt, ampc_space s, const Piece *p, void *to, int64_t bytes)
{
  Ranks *ranks = rt->members.ranks;
  Device *d = rt->device;
  if (p->member == rt->members.all) return AMPC_OK;
  if (is_own(rt, p)) {
    ampc_status status = d->ops->copy_out(d, to, place_of(rt, s, p), bytes);
    bool sends = !status && ranks && ranks->rank && !p->alike;
    return sends ? ranks_send(ranks, 0, to, bytes) : status;
  }
  return ranks->rank ? AMPC_OK : ranks_receive(ranks, (int)(p->member / rt->members.n), to, bytes);
}

ampc_status members_move(ampc_runtime *rt, ampc_ref at, void *host, int64_t bytes, bool read,
                         bool *out_done)
{
  int64_t size = ampc_element_size(rt->program, AMPC_F32), first = at.offset / size;
  ampc_status status = AMPC_OK;
  *out_done = is_sliced(rt, at.space);
  for (int64_t i = 0; *out_done && i < bytes / size && !status;) {
    Piece p = piece_at(rt, first + i, first + bytes / size);
    char *own = (char *)host + i * size;
    if (read)
      status = collect(rt, at.space, &p, own, p.n * size);
    else if (is_own(rt, &p))
      status = put(rt, at.space, p, own);
    i += p.n;
  }
  return status;
}

/* ---- samples ---- */

int64_t members_first(const ampc_runtime *rt, uint32_t member, int64_t samples)
{
  return samples * (rt->members.first + member) / rt->members.all;
}

uint32_t members_variant(const ampc_runtime *rt, const ampc_block *b, uint32_t member,
                         int64_t samples, int64_t step)
{
  uint32_t v = ampc_variant_at(b, samples, step);
  int64_t n = members_first(rt, member + 1, samples) - members_first(rt, member, samples);
  if (rt->members.all == 1 || v == b->n_variants) return v;
  uint32_t fires = b->variant[v].fires;
  for (v = 0; v < b->n_variants; v++) {
    const ampc_step *s = &b->variant[v];
    if (s->fires == fires && s->batch == samples && (s->idle ? 0 : s->share) == n) break;
  }
  return v;
}

ampc_status members_place(ampc_runtime *rt, uint32_t member, int64_t samples)
{
  long long first = members_first(rt, member, samples);
  if (rt->firsts[member] == first) return AMPC_OK;
  rt->firsts[member] = first;
  return rt->device->ops->copy_in(rt->device,
                                  rt->base[AMPC_STATE] + member * rt->apart[AMPC_STATE] +
                                      offsetof(ampc_state, first_sample),
                                  &first, sizeof first);
}

/* ---- exchanges ---- */

static int64_t most_scratch(const ampc_runtime *rt, const ampc_command *commands, uint32_t n)
{
  int64_t most = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (commands[i].kind != AMPC_EXCHANGE) continue;
    int64_t bytes = exchange_scratch(&rt->members, &commands[i].as.exchange.desc);
    if (bytes > most) most = bytes;
  }
  return most;
}

ampc_status members_prepare(ampc_runtime *rt)
{
  const ampc_program *p = rt->program;
  int64_t most = rt->scratch_bytes;
  for (uint32_t b = 0; b < p->n_blocks; b++)
    for (uint32_t v = 0; v < p->blocks[b].n_variants; v++) {
      const ampc_step *s = &p->blocks[b].variant[v];
      int64_t bytes = s->commands ? most_scratch(rt, s->commands, s->n_commands) : 0;
      if (bytes > most) most = bytes;
    }
  rt->scratch_bytes = most;
  return most ? rt->device->ops->alloc(rt->device, most, &rt->scratch) : AMPC_OK;
}

ampc_status members_exchange(ampc_runtime *rt, const ampc_exchange *x, ampc_ref at)
{
  if (rt->preparing) {
    int64_t bytes = exchange_scratch(&rt->members, x);
    if (bytes > rt->scratch_bytes) rt->scratch_bytes = bytes;
    return AMPC_OK;
  }
  if ((x->closing && !rt->closes) || rt->member + 1 < rt->members.n) return AMPC_OK;
  return exchange_run(rt->device, &rt->members, x, rt->base[at.space] + at.offset,
                      rt->apart[at.space], rt->scratch);
}

uint32_t ampc_step_part(const ampc_runtime *rt)
{
  return rt ? rt->part : 0;
}

int64_t ampc_step_member(const ampc_runtime *rt)
{
  return rt ? rt->members.first + rt->member : 0;
}
