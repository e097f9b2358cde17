/* The runtime's relu (runtime/cuda/relu.c) is PTX written by hand. runner/cost parses it, and the
 * test executes it instruction by instruction on numbers of each kind. */
#include "check.h"
#include "runner/cost/walk.h"
#include "runtime/cuda/cuda_device.h"

enum { MOST_REGISTERS = 64, BLOCK = 10, MOST_STEPS = 100 };

typedef struct Thread {
  uint64_t reg[MOST_REGISTERS];
  const uint64_t *params;
  uint32_t block, lane;
} Thread;

static uint64_t value_of(const Thread *t, const PtxOperand *o)
{
  uint64_t v = o->kind == OPERAND_register ? t->reg[o->at] : o->bits;
  if (o->kind == OPERAND_special) {
    MUST(o->at == SPECIAL_tid || o->at == SPECIAL_ntid || o->at == SPECIAL_ctaid);
    v = o->at == SPECIAL_tid ? t->lane : o->at == SPECIAL_ntid ? BLOCK : t->block;
  }
  return o->negated ? !v : v;
}

/* Executes a load or store. Device memory is host memory here. */
static void move(Thread *t, const PtxInstruction *i)
{
  uint32_t bytes = ptx_type_bytes(i->type);
  MUST(i->n_in == (i->op == PTX_OP_ld ? 1 : 2) && i->space != SPACE_shared);
  void *at = (void *)(uintptr_t)(value_of(t, &i->in[0]) + (uint64_t)i->offset);
  uint64_t value = i->op == PTX_OP_st ? value_of(t, &i->in[1]) : 0;
  if (i->op == PTX_OP_st) {
    memcpy(at, &value, bytes);
  } else if (i->space == SPACE_param) {
    t->reg[i->to[0].at] = t->params[i->in[0].bits];
  } else {
    memcpy(&value, at, bytes);
    t->reg[i->to[0].at] = value;
  }
}

static void run_thread(const PtxKernel *k, Thread *t)
{
  uint32_t pc = 0, steps = 0;
  while (pc < k->n) {
    const PtxInstruction *i = &k->at[pc++];
    uint64_t in[PTX_VECTOR];
    MUST(steps++ < MOST_STEPS);
    if (i->guard.kind != OPERAND_none && !(value_of(t, &i->guard) & 1)) continue;
    if (i->op == PTX_OP_ret) return;
    if (i->op == PTX_OP_bra) {
      pc = i->target;
    } else if (i->op == PTX_OP_ld || i->op == PTX_OP_st) {
      move(t, i);
    } else {
      for (uint32_t o = 0; o < i->n_in; o++) in[o] = value_of(t, &i->in[o]);
      bool known = walk_value(i, in, &t->reg[i->to[0].at]);
      CHECK_MSG(known, "%s", i->name);
      MUST(known);
    }
  }
}

/* A type: its sign bit, +inf and 1. */
typedef struct Type {
  const char *name, *kernel;
  uint32_t bytes;
  uint64_t sign, inf, one;
} Type;
static const Type types[] = {
    {"f16", "ampc_relu16", 2, 0x8000, 0x7c00, 0x3c00},
    {"bf16", "ampc_relu16", 2, 0x8000, 0x7f80, 0x3f80},
    {"f32", "ampc_relu32", 4, 0x80000000, 0x7f800000, 0x3f800000},
    {"f64", "ampc_relu64", 8, 1ull << 63, 0x7ffull << 52, 0x3ffull << 52},
};

/* Numbers of each sign: zero, the smallest and the largest subnormal number, the smallest normal
 * number, one, the largest number, infinity, NaN. */
enum { KINDS = 8, NUMBERS = 2 * KINDS, AFTER = 3, ALL = NUMBERS + AFTER };

static uint64_t number(const Type *t, int i)
{
  uint64_t least_normal = t->inf & -t->inf;
  const uint64_t kinds[KINDS] = {0,      1,          least_normal - 1, least_normal,
                                 t->one, t->inf - 1, t->inf,           t->inf + 1};
  return kinds[i % KINDS] | (i / KINDS % 2 ? t->sign : 0);
}

static bool is_below_zero(const Type *t, uint64_t bits)
{
  uint64_t rest = bits & ~t->sign;
  return (bits & t->sign) && rest != 0 && rest <= t->inf;
}

static void check_type(const PtxText *text, const Type *t)
{
  unsigned char x[ALL * 8];
  const PtxKernel *k = ptx_find(text, t->kernel);
  MUST(k && k->n_params == 4 && k->n_registers < MOST_REGISTERS);
  for (int i = 0; i < ALL; i++) {
    uint64_t bits = i < NUMBERS ? number(t, i) : t->sign | t->one;
    memcpy(x + (uint32_t)i * t->bytes, &bits, t->bytes);
  }
  const uint64_t params[] = {(uint64_t)(uintptr_t)x, NUMBERS, t->sign + 1, t->inf};
  for (uint32_t lane = 0; lane < 2 * BLOCK; lane++) {
    Thread thread = {.params = params, .block = lane / BLOCK, .lane = lane % BLOCK};
    run_thread(k, &thread);
  }
  for (int i = 0; i < ALL; i++) {
    uint64_t got = 0, was = i < NUMBERS ? number(t, i) : t->sign | t->one;
    memcpy(&got, x + (uint32_t)i * t->bytes, t->bytes);
    uint64_t want = i < NUMBERS && is_below_zero(t, was) ? 0 : was;
    CHECK_MSG(got == want, "%s: number %d, %#llx became %#llx", t->name, i, (unsigned long long)was,
              (unsigned long long)got);
  }
}

int main(void)
{
  Arena *arena = arena_create();
  PtxText text;
  const char *why = NULL;
  CHECK_MSG(ptx_read(arena, cuda_relu_ptx, &text, &why), "%s", why);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) check_type(&text, &types[i]);
  arena_destroy(arena);
  return check_done();
}
