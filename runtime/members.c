/* The members of a program that this process runs: Note [members] in ranks/exchange.h.
 *
 * Members of a process share the weights, their 16-bit copies and their averages. Each member has
 * its own copy of every other space: its samples, its gradients, its slice of the moments. The
 * copies of STATE and BUFFER are equal, because all that changes them has been summed over the
 * members. So the host reads the first copy. */
#include "members.h"
#include "runtime/plan/types.h"
#include <stddef.h>
#include <stdlib.h>

/* Whether the bytes of the space must be collected from members, or shared out to them. Initial
 * values of weights are the same on all ranks. */
static bool is_sliced(const ampc_runtime *rt, ampc_space s)
{
  bool weights = s == AMPC_MASTER || s == AMPC_RESIDUE;
  return rt->members.all > 1 && (ampc_space_is_moment(s) || (weights && rt->collects));
}

/* Members of a rank are a subtree of the sum, if their number is a power of 2. */
static ampc_status check_ranks(const ampc_program *p, uint32_t all, uint32_t n)
{
  bool tree = n == 1 || n == all || (all & (all - 1)) == 0;
  if (all == 1 && n > 1)
    return ampc_fail(AMPC_BAD_USAGE,
                     "%s is compiled for one rank, but %u were started: compile it with --ranks %u",
                     p->source, n, n);
  if (all % n || !tree)
    return ampc_fail(AMPC_BAD_USAGE,
                     "%s is compiled for %u ranks, but %u were started; %s is possible, too",
                     p->source, all, n, tree ? "a number that divides it" : "1");
  return AMPC_OK;
}

ampc_status members_set(ampc_runtime *rt, Ranks *ranks)
{
  const ampc_program *p = rt->program;
  uint32_t all = p->members ? p->members : 1, n = ranks ? (uint32_t)ranks->size : 1;
  ampc_status status = ranks_agree(ranks, check_ranks(p, all, n));
  if (status) return status;
  rt->members = (Members){.ranks = n > 1 ? ranks : NULL, .n = all / n, .all = all};
  rt->members.first = ranks ? (uint32_t)ranks->rank * rt->members.n : 0;
  rt->firsts = calloc(rt->members.n, sizeof *rt->firsts);
  rt->variants = calloc(rt->members.n, sizeof *rt->variants);
  rt->next = calloc(rt->members.n, sizeof *rt->next);
  rt->places = calloc(rt->members.n, sizeof *rt->places);
  return rt->firsts && rt->variants && rt->next && rt->places
             ? AMPC_OK
             : ampc_fail(AMPC_RUN_FAILED, "out of memory");
}

const Members *runtime_members(const ampc_runtime *rt)
{
  return &rt->members;
}

int64_t runtime_sent(const ampc_runtime *rt)
{
  return rt->sent;
}

int64_t members_bytes(const ampc_runtime *rt, ampc_space s)
{
  return rt->program->space_bytes[s] * (ampc_space_is_shared(s) ? 1 : rt->members.n);
}

ampc_status members_alloc(ampc_runtime *rt, ampc_space s, int64_t times)
{
  Device *d = rt->device;
  int64_t n = ampc_space_is_shared(s) ? 1 : rt->members.n;
  int64_t bytes = n * times > 1 ? device_step(rt->program, s) : rt->program->space_bytes[s];
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
  for (int s = AMPC_CACHE; s <= AMPC_WORK; s++)
    if (rt->instead[s]) rt->space[s] = rt->instead[s];
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

/* Finds the piece that begins at element `at` of a space, as if it were not divided, and ends
 * before `end`. Moments that no optimizer has are in no piece: member is then `all`. */
static Piece piece_at(const ampc_runtime *rt, ampc_space space, int64_t at, int64_t end)
{
  const ampc_program *p = rt->program;
  Piece whole = {rt->members.first, true, at, end - at};
  for (uint32_t i = 0; i < p->n_slices; i++) {
    const ampc_slice *s = &p->slices[i];
    if (at < s->first || at >= s->first + s->count) continue;
    int64_t member = (at - s->first) / s->each, stop = s->first + (member + 1) * s->each;
    Piece out = {(uint32_t)member, s->each == s->count, s->moment + (at - s->first) % s->each,
                 end - at};
    if (!ampc_space_is_moment(space)) {
      out.from = at;
      out.alike = space == AMPC_RESIDUE ? s->each == s->count : !s->apart;
    }
    if (out.alike) out.member = rt->members.first;
    if (stop < end) out.n = stop - at;
    return out;
  }
  if (ampc_space_is_moment(space)) whole.member = rt->members.all;
  for (uint32_t i = 0; i < p->n_slices; i++)
    if (p->slices[i].first > at && p->slices[i].first < at + whole.n)
      whole.n = p->slices[i].first - at;
  return whole;
}

static int64_t size_in(const ampc_runtime *rt, ampc_space s) /* bytes of an element */
{
  return ampc_element_size(rt->program, ampc_space_type(rt->program, s));
}

static void *place_of(const ampc_runtime *rt, ampc_space s, const Piece *p)
{
  uint32_t own = p->member - rt->members.first;
  int64_t size = size_in(rt, s);
  return rt->base[s] + own * rt->apart[s] + p->from * size;
}

static ampc_status put(ampc_runtime *rt, ampc_space s, Piece p, const void *from)
{
  int64_t bytes = p.n * size_in(rt, s);
  uint32_t end = p.alike && rt->apart[s] ? rt->members.first + rt->members.n : p.member + 1;
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
  *out_done = is_sliced(rt, at.space);
  if (!*out_done) return AMPC_OK;
  int64_t size = size_in(rt, at.space), first = at.offset / size, each = ampc_space_each(at.space);
  ampc_status status = AMPC_OK;
  for (int64_t i = 0; i < bytes / size && !status;) {
    Piece p = piece_at(rt, at.space, (first + i) * each, (first + bytes / size) * each);
    p.from /= each;
    p.n /= each;
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

static int64_t bytes_of(const ampc_runtime *rt, const ampc_exchange *x)
{
  return x->count * ampc_element_size(rt->program, x->type);
}

/* Notes the scratch space that an exchange needs. Members with different shares may have a value at
 * different places of WORK; then it is copied to the stage. */
static void note_scratch(ampc_runtime *rt, const ampc_exchange *x, ampc_space space)
{
  int64_t stage = space == AMPC_WORK && rt->members.n > 1
                      ? ampc_round_up(bytes_of(rt, x), AMPC_CUDA_ALIGN) * rt->members.n
                      : 0;
  int64_t scratch = exchange_scratch(rt->members.ranks ? rt->members.ranks->size : 1, x);
  if (stage > rt->stage_bytes) rt->stage_bytes = stage;
  if (scratch > rt->scratch_bytes) rt->scratch_bytes = scratch;
}

int64_t members_scratch(const ampc_program *p)
{
  int64_t most = 0;
  for (uint32_t b = 0; b < p->n_blocks; b++)
    for (uint32_t v = 0; v < p->blocks[b].n_variants; v++) {
      const ampc_step *s = &p->blocks[b].variant[v];
      for (uint32_t i = 0; s->commands && i < s->n_commands; i++) {
        const ampc_command *k = &s->commands[i];
        int64_t bytes =
            k->kind == AMPC_EXCHANGE ? exchange_scratch(p->ranks, &k->as.exchange.desc) : 0;
        if (bytes > most) most = bytes;
      }
    }
  return most;
}

ampc_status members_prepare(ampc_runtime *rt)
{
  const ampc_program *p = rt->program;
  for (uint32_t b = 0; b < p->n_blocks; b++)
    for (uint32_t v = 0; v < p->blocks[b].n_variants; v++) {
      const ampc_step *s = &p->blocks[b].variant[v];
      for (uint32_t i = 0; s->commands && i < s->n_commands; i++)
        if (s->commands[i].kind == AMPC_EXCHANGE)
          note_scratch(rt, &s->commands[i].as.exchange.desc,
                       s->commands[i].as.exchange.at.at.space);
    }
  int64_t bytes = rt->stage_bytes + rt->scratch_bytes;
  return bytes ? rt->device->ops->alloc(rt->device, bytes, (void **)&rt->stage) : AMPC_OK;
}

static char *own_place(const ampc_runtime *rt, ampc_space space, uint32_t member)
{
  return rt->base[space] + member * rt->apart[space] + rt->places[member];
}

/* Copies the ranges of all members to the stage, or back from it. */
static ampc_status move_stage(ampc_runtime *rt, ampc_space space, int64_t bytes, int64_t apart,
                              bool back)
{
  ampc_status status = AMPC_OK;
  for (uint32_t i = 0; i < rt->members.n && !status; i++) {
    char *own = own_place(rt, space, i), *there = rt->stage + i * apart;
    status = rt->device->ops->copy(rt->device, back ? own : there, back ? there : own, bytes);
  }
  return status;
}

static ampc_status exchange_staged(ampc_runtime *rt, const ampc_exchange *x, ampc_space space)
{
  int64_t bytes = bytes_of(rt, x), apart = ampc_round_up(bytes, AMPC_CUDA_ALIGN);
  ampc_status status = move_stage(rt, space, bytes, apart, false);
  if (!status)
    status =
        exchange_run(rt->device, &rt->members, x, rt->stage, apart, rt->stage + rt->stage_bytes);
  return status ? status : move_stage(rt, space, bytes, apart, true);
}

ampc_status members_exchange(ampc_runtime *rt, const ampc_exchange *x, ampc_ref at)
{
  bool same = true, moves = at.space == AMPC_WORK; /* other places are the same for all shares */
  if (rt->preparing) note_scratch(rt, x, at.space);
  if (rt->preparing || (x->closing && !rt->closes)) return AMPC_OK;
  rt->places[rt->member] = at.offset;
  if (rt->member + 1 < rt->members.n) return AMPC_OK;
  rt->step_sent += exchange_sent(&rt->members, x);
  for (uint32_t i = 0; moves && i < rt->members.n; i++) same = same && rt->places[i] == at.offset;
  if (!same) return exchange_staged(rt, x, at.space);
  char *base = rt->base[at.space], *stage = rt->stage; /* NULL: without bytes */
  return exchange_run(rt->device, &rt->members, x, base ? base + at.offset : NULL,
                      rt->apart[at.space], stage ? stage + rt->stage_bytes : NULL);
}

uint32_t ampc_step_part(const ampc_runtime *rt)
{
  return rt ? rt->part : 0;
}

int64_t ampc_step_member(const ampc_runtime *rt)
{
  return rt ? rt->members.first + rt->member : 0;
}

bool ampc_step_once(const ampc_runtime *rt)
{
  return rt && rt->member == 0;
}
