/* The names of PTX instructions, taken apart: "ld.global.nc.v4.u32" is a load of four u32. */
#include "ptx_parts.h"
#include <string.h>

/* ---- the tables ---- */

typedef struct TypeRow {
  const char *name;
  uint32_t bytes;
  PtxFamily family;
} TypeRow;
static const TypeRow types[] = {
    {"", 0, FAMILY_any},
#define PTX_TYPE(name, bytes, family) {#name, bytes, FAMILY_##family},
#include "ptx.def"
};

static const char *const names[PTX_OP_COUNT] = {
#define PTX_NAME(name) [PTX_OP_##name] = #name,
#include "ptx.def"
};

typedef struct CostRow {
  PtxOp op;
  PtxFamily family;
  PtxPipe pipe;
  uint8_t slots;
  uint16_t latency;
} CostRow;
static const CostRow costs[] = {
#define PTX_OP(name, family, pipe, slots, latency)                                                 \
  {PTX_OP_##name, FAMILY_##family, PIPE_##pipe, slots, latency},
#include "ptx.def"
};

uint32_t ptx_type_bytes(PtxType t)
{
  return types[t].bytes;
}

PtxFamily ptx_type_family(PtxType t)
{
  return types[t].family;
}

PtxType ptx_type_named(const char *name)
{
  for (size_t i = 1; i < sizeof types / sizeof *types; i++)
    if (strcmp(types[i].name, name) == 0) return (PtxType)i;
  return PTX_none;
}

static const CostRow *cost_of(PtxOp op, PtxFamily family)
{
  for (size_t i = 0; i < sizeof costs / sizeof *costs; i++)
    if (costs[i].op == op && (costs[i].family == family || costs[i].family == FAMILY_any))
      return &costs[i];
  return NULL;
}

/* ---- modifiers ---- */

typedef struct Part {
  const char *at;
  size_t n;
} Part;

static bool is(Part p, const char *word)
{
  return strlen(word) == p.n && memcmp(p.at, word, p.n) == 0;
}

/* The next part of a name; false behind the last. */
static bool next_part(const char **s, Part *out)
{
  if (!**s) return false;
  *out = (Part){*s, strcspn(*s, ".")};
  *s += out->n + ((*s)[out->n] == '.');
  return true;
}

static PtxType type_of(Part p)
{
  char name[16];
  if (p.n >= sizeof name) return PTX_none;
  memcpy(name, p.at, p.n);
  name[p.n] = 0;
  return ptx_type_named(name);
}

/* eq, ltu, hs (unsigned integers), nan */
static bool read_compare(Part p, PtxInstruction *i)
{
  static const struct {
    const char *name;
    PtxCompare compare;
    bool unordered;
  } all[] = {{"eq", COMPARE_eq, false}, {"ne", COMPARE_ne, false},   {"lt", COMPARE_lt, false},
             {"le", COMPARE_le, false}, {"gt", COMPARE_gt, false},   {"ge", COMPARE_ge, false},
             {"lo", COMPARE_lt, false}, {"ls", COMPARE_le, false},   {"hi", COMPARE_gt, false},
             {"hs", COMPARE_ge, false}, {"equ", COMPARE_eq, true},   {"neu", COMPARE_ne, true},
             {"ltu", COMPARE_lt, true}, {"leu", COMPARE_le, true},   {"gtu", COMPARE_gt, true},
             {"geu", COMPARE_ge, true}, {"num", COMPARE_num, false}, {"nan", COMPARE_nan, true}};
  for (size_t k = 0; k < sizeof all / sizeof *all; k++)
    if (is(p, all[k].name)) {
      i->compare = all[k].compare;
      i->unordered = all[k].unordered;
      return true;
    }
  return false;
}

/* What changes the result or the cost. Others (rn, sync, uni, L1::no_allocate, ...) need to be
 * known, too, so that a new one is looked at. */
static bool read_modifier(Part p, PtxInstruction *i)
{
  static const char *const idle[] = {
      "rn",      "sync",    "uni",  "to",  "lo",      "volatile", "relaxed",   "gpu",
      "cta",     "sys",     "relu", "ftz", "aligned", "acq_rel",  "sc",        "gl",
      "acquire", "release", "v2",   "v4",  "v8",      "weak",     "satfinite", "warp",
      "NaN",     "cs",      "cg",   "ca",  "lu",      "cv",       "wb",        "wt"};
  if (is(p, "global")) return i->space = SPACE_global, true;
  if (is(p, "shared") || is(p, "shared::cta")) return i->space = SPACE_shared, true;
  if (is(p, "param")) return i->space = SPACE_param, true;
  if (is(p, "const")) return i->space = SPACE_const, true;
  if (is(p, "nc")) return i->constant = true;
  if (is(p, "approx") || is(p, "full")) return i->approximate = true;
  if (i->op == PTX_OP_setp && read_compare(p, i)) return true;
  if (i->op == PTX_OP_setp && is(p, "and")) return i->join = JOIN_and, true;
  if (i->op == PTX_OP_setp && is(p, "or")) return i->join = JOIN_or, true;
  if (i->op == PTX_OP_setp && is(p, "xor")) return i->join = JOIN_xor, true;
  if (i->op == PTX_OP_cvt && p.n == 3 && p.at[0] == 'r' && p.at[2] == 'i')
    return i->mode = p.at[1], true;
  if (i->op == PTX_OP_cvt && (is(p, "rz") || is(p, "sat"))) return true;
  if (i->op == PTX_OP_shf && (is(p, "l") || is(p, "r"))) return i->mode = p.at[0], true;
  if (i->op == PTX_OP_shf && (is(p, "wrap") || is(p, "clamp"))) return true;
  if (i->op == PTX_OP_shfl)
    return is(p, "bfly") || is(p, "down") || is(p, "up") || is(p, "idx") || is(p, "sync");
  if (i->op == PTX_OP_vote) return i->mode = p.at[1], true; /* all, any, uni, ballot, sync */
  if (i->op == PTX_OP_atom || i->op == PTX_OP_red)
    if (is(p, "add") || is(p, "min") || is(p, "max") || is(p, "or") || is(p, "and") ||
        is(p, "inc") || is(p, "exch") || is(p, "cas"))
      return true;
  if (p.n > 4 && (memcmp(p.at, "L1::", 4) == 0 || memcmp(p.at, "L2::", 4) == 0)) return true;
  for (size_t k = 0; k < sizeof idle / sizeof *idle; k++)
    if (is(p, idle[k])) return true;
  return false;
}

/* mul.wide, mul.hi and such are ops of their own. */
static PtxOp op_named(Part stem, const char *rest)
{
  char name[32];
  for (int wide = 1; wide >= 0; wide--) {
    const char *behind = wide ? strncmp(rest, "wide.", 5) == 0 ? "_wide"
                                : strncmp(rest, "hi.", 3) == 0 ? "_hi"
                                                               : ""
                              : "";
    if (stem.n + strlen(behind) >= sizeof name) return PTX_OP_COUNT;
    memcpy(name, stem.at, stem.n);
    strcpy(name + stem.n, behind);
    for (int i = 0; i < PTX_OP_COUNT; i++)
      if (strcmp(names[i], name) == 0) return (PtxOp)i;
  }
  return PTX_OP_COUNT;
}

const char *ptx_instruction(PtxInstruction *i)
{
  Part p;
  const char *s = i->name;
  if (!next_part(&s, &p)) return "no instruction";
  i->op = op_named(p, s);
  if (i->op == PTX_OP_COUNT) return "unknown instruction";
  for (bool first = true; next_part(&s, &p); first = false) {
    PtxType t = type_of(p);
    if (t && !i->type) {
      i->type = t;
    } else if (t) {
      i->from = t;
    } else if (!(first && (is(p, "wide") || is(p, "hi"))) && !read_modifier(p, i)) {
      return "unknown modifier in";
    }
  }
  if (!i->from) i->from = i->type;
  return NULL;
}

/* ---- costs ---- */

static bool is_float(PtxFamily f)
{
  return f == FAMILY_f16 || f == FAMILY_f32 || f == FAMILY_f64;
}

/* A conversion is as dear as the dearer of its types: f64, then 64-bit integers to or from a float
 * (both on the slow unit), integers to or from a float, f32 to or from 16 bits, integers. */
static PtxFamily conversion_family(const PtxInstruction *i)
{
  PtxFamily to = ptx_type_family(i->type), from = ptx_type_family(i->from);
  bool floats = is_float(to) || is_float(from), both = is_float(to) && is_float(from);
  if (to == FAMILY_f64 || from == FAMILY_f64) return FAMILY_f64;
  if (floats && (to == FAMILY_i64 || from == FAMILY_i64)) return FAMILY_f64;
  if (both && to == FAMILY_f32 && from == FAMILY_f32) return FAMILY_f32;
  if (both) return FAMILY_f16;
  if (floats) return FAMILY_f32;
  return to == FAMILY_i64 || from == FAMILY_i64 ? FAMILY_i64 : FAMILY_i32;
}

/* Copies, numbers, halves of a register, the lower half of 64 bits: names for what is there. */
static bool is_free(const PtxInstruction *i)
{
  if (i->op == PTX_OP_mov)
    return i->in[0].kind != OPERAND_special && !(i->n_in > 1 && ptx_type_bytes(i->type) < 8);
  if (i->op == PTX_OP_ld) return i->space == SPACE_param;
  if (i->op != PTX_OP_cvt || is_float(ptx_type_family(i->type))) return false;
  if (is_float(ptx_type_family(i->from))) return false;
  bool narrows = ptx_type_bytes(i->type) <= ptx_type_bytes(i->from);
  return narrows ? ptx_type_bytes(i->type) >= 4 : i->from == PTX_u32;
}

bool ptx_cost(PtxInstruction *i)
{
  PtxFamily family = i->op == PTX_OP_cvt ? conversion_family(i) : ptx_type_family(i->type);
  const CostRow *row = cost_of(i->op, family);
  if (!row) return false;
  i->pipe = row->pipe;
  i->slots = row->slots;
  i->latency = row->latency;
  if (i->approximate && i->op == PTX_OP_div) i->slots = 8, i->latency = 40;
  if (i->approximate && i->op == PTX_OP_rcp) i->slots = 1, i->latency = 20, i->pipe = PIPE_xu;
  if (i->approximate && i->op == PTX_OP_sqrt) i->slots = 4, i->latency = 25, i->pipe = PIPE_xu;
  if (is_free(i)) i->slots = 0, i->pipe = PIPE_none, i->latency = 0;
  return true;
}
