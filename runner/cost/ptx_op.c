/* Parses the names of PTX instructions: "ld.global.nc.v4.u32" is a load of four u32. */
#include "ptx_parts.h"
#include <stddef.h>
#include <string.h>

/* ---- the tables ---- */

typedef struct TypeRow {
  const char *name;
  PtxFamily family;
} TypeRow;
static const TypeRow types[] = {
    {"", FAMILY_any},
#define PTX_TYPE(name, bytes, family) {#name, FAMILY_##family},
#include "ptx.def"
};

static const struct {
  const char *name;
  PtxForm form;
} ops[PTX_OP_COUNT] = {
#define PTX_NAME(name, form, real, whole) [PTX_OP_##name] = {#name, FORM_##form},
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

PtxForm ptx_form(PtxOp op)
{
  return ops[op].form;
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

/* Reads the next component of a dotted name; false after the last one. */
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

enum { IDLE, LT = COMPARE_lt, EQ = COMPARE_eq, GT = COMPARE_gt, NO = COMPARE_nan };
#define OF_ANY   PTX_OP_COUNT
#define AT(what) offsetof(PtxInstruction, what)

/* All known modifiers. IDLE modifiers change neither result nor cost; they are listed so that an
 * unknown modifier is noticed. The first row that matches the instruction and the word applies. */
static const struct {
  const char *words; /* separated by blanks */
  PtxOp op;          /* the row is only for this instruction; OF_ANY: for all */
  size_t at;         /* offset of the byte to set; IDLE: no byte */
  uint8_t value;
} modifiers[] = {
    {"global", OF_ANY, AT(space), SPACE_global},
    {"shared shared::cta", OF_ANY, AT(space), SPACE_shared},
    {"param", OF_ANY, AT(space), SPACE_param},
    {"const", OF_ANY, AT(space), SPACE_const},
    {"nc", OF_ANY, AT(constant), true},
    {"approx full", OF_ANY, AT(approximate), true},
    {"lt lo", PTX_OP_setp, AT(compare), LT},
    {"le ls", PTX_OP_setp, AT(compare), LT | EQ},
    {"gt hi", PTX_OP_setp, AT(compare), GT},
    {"ge hs", PTX_OP_setp, AT(compare), GT | EQ},
    {"eq", PTX_OP_setp, AT(compare), EQ},
    {"ne", PTX_OP_setp, AT(compare), LT | GT},
    {"ltu", PTX_OP_setp, AT(compare), NO | LT},
    {"leu", PTX_OP_setp, AT(compare), NO | LT | EQ},
    {"gtu", PTX_OP_setp, AT(compare), NO | GT},
    {"geu", PTX_OP_setp, AT(compare), NO | GT | EQ},
    {"equ", PTX_OP_setp, AT(compare), NO | EQ},
    {"neu", PTX_OP_setp, AT(compare), NO | LT | GT},
    {"num", PTX_OP_setp, AT(compare), LT | EQ | GT},
    {"nan", PTX_OP_setp, AT(compare), NO},
    {"and", PTX_OP_setp, AT(join), JOIN_and},
    {"or", PTX_OP_setp, AT(join), JOIN_or},
    {"xor", PTX_OP_setp, AT(join), JOIN_xor},
    {"rni", PTX_OP_cvt, AT(mode), 'n'},
    {"rzi", PTX_OP_cvt, AT(mode), 'z'},
    {"rmi", PTX_OP_cvt, AT(mode), 'm'},
    {"rpi", PTX_OP_cvt, AT(mode), 'p'},
    {"rz", PTX_OP_fma, AT(mode), 'z'},
    {"l", PTX_OP_shf, AT(mode), 'l'},
    {"r", PTX_OP_shf, AT(mode), 'r'},
    {"all", PTX_OP_vote, AT(mode), 'a'},
    {"ballot", PTX_OP_vote, AT(mode), 'b'},
    {"any uni", PTX_OP_vote, IDLE, 0},
    {"trans", PTX_OP_ldmatrix, AT(mode), 't'},
    {"m8n8 x4", PTX_OP_ldmatrix, IDLE, 0},
    {"m16n8k16 row col", PTX_OP_mma, IDLE, 0},
    {"rz sat", PTX_OP_cvt, IDLE, 0},
    {"wrap clamp", PTX_OP_shf, IDLE, 0},
    {"bfly down up idx", PTX_OP_shfl, IDLE, 0},
    {"add min max or and inc exch cas", PTX_OP_atom, IDLE, 0},
    {"add min max or and inc exch cas", PTX_OP_red, IDLE, 0},
    {"rn sync uni to lo volatile relaxed gpu cta sys relu ftz aligned acq_rel sc gl acquire "
     "release v2 v4 v8 weak satfinite warp NaN cs cg ca lu cv wb wt",
     OF_ANY, IDLE, 0},
};

static bool is_among(Part p, const char *words)
{
  for (const char *s = words; *s; s += strspn(s, " ")) {
    size_t n = strcspn(s, " ");
    if (n == p.n && memcmp(s, p.at, n) == 0) return true;
    s += n;
  }
  return false;
}

static bool read_modifier(Part p, PtxInstruction *i)
{
  if (p.n > 4 && (memcmp(p.at, "L1::", 4) == 0 || memcmp(p.at, "L2::", 4) == 0)) return true;
  for (size_t k = 0; k < sizeof modifiers / sizeof *modifiers; k++) {
    if (modifiers[k].op != OF_ANY && modifiers[k].op != i->op) continue;
    if (!is_among(p, modifiers[k].words)) continue;
    if (modifiers[k].at != IDLE) ((uint8_t *)i)[modifiers[k].at] = modifiers[k].value;
    return true;
  }
  return false;
}

/* Returns the op of a stem. mul.wide, mul.hi and others with suffixes are ops: mul_wide, mul_hi. */
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
      if (strcmp(ops[i].name, name) == 0) return (PtxOp)i;
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
      if (!i->from) i->from = t;
    } else if (!(first && is_among(p, "wide hi")) && !read_modifier(p, i)) {
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

/* Returns the more expensive type of a conversion, which decides the cost. From expensive to cheap:
 * f64 and 64-bit integers to or from a float (both on the slow unit), other integers to or from a
 * float, f32 to or from 16 bits, integers. */
static PtxFamily conversion_family(const PtxInstruction *i)
{
  PtxFamily to = ptx_type_family(i->type), from = ptx_type_family(i->from);
  int floats = is_float(to) + is_float(from);
  bool wide = to == FAMILY_i64 || from == FAMILY_i64;
  if (to == FAMILY_f64 || from == FAMILY_f64 || (floats && wide)) return FAMILY_f64;
  if (floats == 2) return to == from ? to : FAMILY_f16;
  if (floats) return FAMILY_f32;
  return wide ? FAMILY_i64 : FAMILY_i32;
}

/* Whether ptxas emits no instruction: copies, constants, halves of a register and each half of 64
 * bits are only other names of a register. */
static bool is_free(const PtxInstruction *i)
{
  if (i->op == PTX_OP_mov)
    return i->in[0].kind != OPERAND_special && !(i->n_in > 1 && ptx_type_bytes(i->type) < 8);
  if (i->op == PTX_OP_ld) return i->space == SPACE_param;
  if (i->op == PTX_OP_shr && i->in[1].kind == OPERAND_number)
    return i->type == PTX_u64 && i->in[1].bits == 32;
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
