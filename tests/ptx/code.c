/* Makes the compact form of kernels: see code.h. An instruction is accepted only if all words of
 * its name are known, so that no modifier is overlooked. */
#include "code.h"
#include "compiler/base/names.h"
#include "runner/cost/ptx_parts.h"
#include <string.h>

/* Words that the interpreter obeys, or that change neither value nor order. */
static const char modifiers[] = " rn rz rni rzi rmi rpi approx full ftz lo wide hi sync uni to "
                                "global shared param const nc v2 v4 "
                                "gl bfly l r lt le gt ge eq ne ltu leu gtu geu equ neu num nan ls "
                                "hs and or xor add wrap clamp ";

typedef struct Decoder {
  Arena *arena;
  const PtxKernel *k;
  VEC(uint64_t) numbers; /* of the shared rows after the parameters */
  const char *why;
} Decoder;

static struct {
  NameIndex index;
  Arena *arena;
  VEC(const char *) at;
} spellings;

unsigned ptx_spellings(void)
{
  return spellings.at.n;
}

static void note_spelling(const char *name)
{
  if (!spellings.arena) spellings.arena = arena_create();
  Arena *a = spellings.arena;
  if (name_find(a, &spellings.index, spellings.at.at, spellings.at.n, sizeof(char *), name) ==
      NO_NAME)
    vec_push(a, &spellings.at, arena_printf(a, "%s", name));
}

/* ---- operands ---- */

static uint32_t shared_row(Decoder *d, uint64_t number)
{
  uint32_t n = 0;
  while (n < d->numbers.n && d->numbers.at[n] != number) n++;
  if (n == d->numbers.n) vec_push(d->arena, &d->numbers, number);
  return SHARED_ROW + SHARED_params + d->k->n_params + n;
}

static uint32_t special_row(Decoder *d, uint32_t which)
{
  static const uint32_t rows[] = {[SPECIAL_tid] = ROW_tid,
                                  [SPECIAL_ntid] = SHARED_ROW + SHARED_ntid,
                                  [SPECIAL_ctaid] = SHARED_ROW + SHARED_ctaid,
                                  [SPECIAL_nctaid] = SHARED_ROW + SHARED_nctaid,
                                  [SPECIAL_lane] = ROW_lane,
                                  [SPECIAL_warp] = ROW_warp};
  if (which >= SPECIAL_zero) return shared_row(d, which == SPECIAL_one);
  return rows[which];
}

static uint32_t row_of(Decoder *d, const PtxOperand *o)
{
  if (o->negated) d->why = "a negated operand";
  if (o->kind == OPERAND_register) return ROW_registers + o->at;
  return o->kind == OPERAND_special ? special_row(d, o->at) : shared_row(d, o->bits);
}

/* ---- instructions ---- */

static bool is_known_name(const char *name)
{
  for (const char *s = name + strcspn(name, "."), *end; *s == '.'; s = end) {
    char word[24] = " ";
    s++;
    end = s + strcspn(s, ".");
    if (end - s > 20) return false;
    memcpy(word + 1, s, (size_t)(end - s));
    if (ptx_type_named(word + 1)) continue;
    word[1 + end - s] = ' ';
    if (!strstr(modifiers, word)) return false;
  }
  return true;
}

static bool is_among(const char *name, const char *prefix)
{
  return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Returns an instruction of tensor cores; NULL: another one, or not with these operands. */
static SimtMatrix *matrix_of(const PtxInstruction *i)
{
  static const struct {
    const char *name;
    SimtMatrix *matrix;
  } all[] = {{"ldmatrix.sync.aligned.m8n8.x4.shared.b16", simt_matrix_rows},
             {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", simt_matrix_columns},
             {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", simt_matrix_add_f16},
             {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", simt_matrix_add_bf16}};
  for (size_t k = 0; k < sizeof all / sizeof *all; k++)
    if (strcmp(all[k].name, i->name) == 0 && i->n_to == 4 &&
        i->n_in == (i->op == PTX_OP_mma ? 10 : 1))
      return all[k].matrix;
  return NULL;
}

/* Returns why an instruction is not understood, or NULL. */
static const char *rejected(const PtxInstruction *i)
{
  bool halves = ptx_type_family(i->type) == FAMILY_f16;
  if (ptx_form(i->op) == FORM_matrix) return matrix_of(i) ? NULL : "an unknown matrix instruction";
  if (!is_known_name(i->name)) return "an unknown modifier";
  if (strstr(i->name, ".ftz") && i->n_in > 1) return "a flush to zero";
  if (i->n_to > PTX_PARTS || i->n_in > PTX_PARTS + 1) return "too many operands";
  switch (i->op) {
  case PTX_OP_ld:
  case PTX_OP_st:
    if (i->space == SPACE_param) return i->op == PTX_OP_st || i->offset ? "parameters" : NULL;
    return strstr(i->name, ".global") || i->space != SPACE_global ? NULL : "no space";
  case PTX_OP_atom:
    return is_among(i->name, "atom.global.add.u32") || is_among(i->name, "atom.shared.add.u32")
               ? NULL
               : "an unknown atomic operation";
  case PTX_OP_shfl:
    return is_among(i->name, "shfl.sync.bfly.b32") ? NULL : "an unknown shuffle";
  case PTX_OP_bar:
    return i->n_in == 1 && i->in[0].kind == OPERAND_number && !i->in[0].bits ? NULL
                                                                             : "an unknown barrier";
  case PTX_OP_membar:
    return is_among(i->name, "membar.gl") ? NULL : "an unknown fence";
  case PTX_OP_bra:
  case PTX_OP_ret:
  case PTX_OP_exit:
    return NULL;
  case PTX_OP_setp:
    return i->compare && i->n_to == 1 && !halves ? NULL : "an unknown comparison";
  default:
    return ptx_form(i->op) == FORM_value && ptx_computes(i) ? NULL : "an unknown instruction";
  }
}

static void decode(Decoder *d, const PtxInstruction *i, PtxCode *out)
{
  *out = (PtxCode){.op = (uint8_t)i->op,
                   .type = (uint8_t)i->type,
                   .from = (uint8_t)i->from,
                   .space = i->space,
                   .mode = i->mode,
                   .join = i->join,
                   .compare = i->compare,
                   .n_to = i->n_to,
                   .n_in = i->n_in,
                   .guarded = i->guard.kind != OPERAND_none,
                   .negated = i->guard.negated,
                   .constant = i->constant,
                   .flush = strstr(i->name, ".ftz"),
                   .target = i->target,
                   .offset = i->offset,
                   .matrix = matrix_of(i)};
  d->why = rejected(i);
  if (d->why) return;
  if (out->guarded) out->guard = ROW_registers + i->guard.at;
  for (uint32_t n = 0; n < i->n_to; n++) out->to[n] = ROW_registers + i->to[n].at;
  for (uint32_t n = 0; n < i->n_in; n++) out->in[n] = row_of(d, &i->in[n]);
  if (i->op == PTX_OP_ld && i->space == SPACE_param) { /* a copy of the parameter's row */
    out->op = PTX_OP_mov;
    out->in[0] = SHARED_ROW + SHARED_params + (uint32_t)i->in[0].bits;
  }
}

/* Finds the parts of vectors that no instruction reads: NVRTC loads three elements as four. */
static void find_dead(Arena *arena, PtxCode *code, uint32_t n, uint32_t n_rows)
{
  bool *read = arena_array(arena, bool, n_rows);
  for (uint32_t i = 0; i < n; i++) {
    read[code[i].guard] = true;
    for (uint32_t k = 0; k < code[i].n_in; k++)
      if (!(code[i].in[k] & SHARED_ROW)) read[code[i].in[k]] = true;
  }
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < code[i].n_to && code[i].op == PTX_OP_ld; k++)
      if (code[i].n_to > 1 && !read[code[i].to[k]]) code[i].dead |= (uint8_t)(1u << k);
}

bool ptx_decode(Arena *arena, const PtxKernel *k, PtxImage *out, const char **why)
{
  Decoder d = {.arena = arena, .k = k};
  PtxCode *code = arena_array(arena, PtxCode, k->n);
  for (uint32_t n = 0; n < k->n; n++) {
    note_spelling(k->at[n].name);
    decode(&d, &k->at[n], &code[n]);
    if (d.why) {
      *why = arena_printf(arena, "%s: %s", d.why, k->at[n].name);
      return false;
    }
  }
  find_dead(arena, code, k->n, ROW_registers + k->n_registers);
  *out = (PtxImage){.name = k->name,
                    .at = code,
                    .n = k->n,
                    .n_rows = ROW_registers + k->n_registers,
                    .n_params = k->n_params,
                    .n_shared_rows = SHARED_params + k->n_params + d.numbers.n,
                    .shared = k->shared,
                    .constants = k->constants,
                    .n_constants = k->n_constants};
  out->shared_rows = arena_array(arena, PtxRow, out->n_shared_rows);
  for (uint32_t n = 0; n < d.numbers.n; n++)
    for (int lane = 0; lane < PTX_LANES; lane++)
      out->shared_rows[SHARED_params + k->n_params + n][lane] = d.numbers.at[n];
  return true;
}
