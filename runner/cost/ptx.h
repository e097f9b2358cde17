/* Kernels as PTX: what their text says, read so that it can be walked (walk.h). */
#pragma once
#include "compiler/base/arena.h"

typedef enum PtxType {
  PTX_none,
#define PTX_TYPE(name, bytes, family) PTX_##name,
#include "ptx.def"
} PtxType;

/* Types that cost the same: the second column of PTX_OP. */
typedef enum PtxFamily {
  FAMILY_any, /* in a row of the table: whatever the type */
  FAMILY_pred,
  FAMILY_i16, /* 8 and 16 bits, computed as 32 */
  FAMILY_i32,
  FAMILY_i64,
  FAMILY_f16, /* one or a pair of f16 or bf16 */
  FAMILY_f32,
  FAMILY_f64
} PtxFamily;

/* Units of a multiprocessor; each has a rate of its own (Gpu in gpu.h). */
typedef enum PtxPipe {
  PIPE_none, /* no instruction of the machine */
  PIPE_fma,  /* f32 and packed 16-bit arithmetic */
  PIPE_int,
  PIPE_xu, /* reciprocals, exponentials, conversions of 64 bits */
  PIPE_f64,
  PIPE_lsu, /* loads, stores, shuffles */
  PIPE_branch,
  PIPE_COUNT
} PtxPipe;

typedef enum PtxOp {
#define PTX_NAME(name, form, real, whole) PTX_OP_##name,
#include "ptx.def"
  PTX_OP_COUNT
} PtxOp;

typedef enum PtxForm {             /* how an instruction is read and walked */
                       FORM_value, /* results, then operands; computed lane by lane */
                       FORM_memory,
                       FORM_vote, /* as values, of a warp */
                       FORM_barrier,
                       FORM_fence,
                       FORM_jump
} PtxForm;

typedef enum PtxSpace { SPACE_global, SPACE_shared, SPACE_param, SPACE_const } PtxSpace;
typedef enum PtxCompare { /* how two operands may stand, a bit each; nan: one is no number */
                          COMPARE_lt = 1,
                          COMPARE_eq = 2,
                          COMPARE_gt = 4,
                          COMPARE_nan = 8,
                          COMPARE_num = COMPARE_lt | COMPARE_eq | COMPARE_gt
} PtxCompare;
typedef enum PtxJoin { JOIN_none, JOIN_and, JOIN_or, JOIN_xor } PtxJoin;

typedef enum PtxOperandKind {
  OPERAND_none,
  OPERAND_register, /* at */
  OPERAND_number,   /* bits, as wide as the instruction's type */
  OPERAND_special,  /* at: SPECIAL_*; what differs by thread or block */
} PtxOperandKind;
typedef enum PtxSpecial {
  SPECIAL_tid,
  SPECIAL_ntid,
  SPECIAL_ctaid,
  SPECIAL_nctaid,
  SPECIAL_lane,
  SPECIAL_warp,
  SPECIAL_zero, /* y and z: launches have one dimension */
  SPECIAL_one
} PtxSpecial;

typedef struct PtxOperand {
  PtxOperandKind kind;
  bool negated; /* a predicate */
  uint32_t at;
  uint64_t bits;
} PtxOperand;

enum { PTX_VECTOR = 8 };

typedef struct PtxInstruction {
  PtxOp op;
  PtxType type, from; /* from: what cvt and set read, and the type of an address */
  PtxPipe pipe;
  uint8_t slots;      /* instructions of the machine; 0: none */
  uint16_t latency;   /* cycles until the result can be used; of loads by where they find it */
  uint8_t n_to, n_in; /* results and operands */
  bool leads;         /* a basic block begins */
  /* a byte each, set by modifiers: the table of them in ptx_op.c */
  bool constant;    /* ld.global.nc: whatever is stored between */
  bool approximate; /* .approx, .full */
  uint8_t space;    /* PtxSpace */
  uint8_t compare;  /* PtxCompare: where it holds */
  uint8_t join;     /* PtxJoin */
  char mode;        /* cvt: n, z, m, p rounds to an integer; shf: l, r; vote: all, ballot */
  PtxOperand guard; /* kind none: always */
  PtxOperand to[PTX_VECTOR], in[PTX_VECTOR];
  int64_t offset;   /* of an address, behind in[0] */
  uint32_t target;  /* bra: index of an instruction */
  const char *name; /* "add.rn.f32" */
} PtxInstruction;

typedef struct PtxKernel {
  const char *name;
  PtxInstruction *at;
  uint32_t n, n_registers;
  uint32_t n_params;        /* pointers all */
  uint32_t shared;          /* bytes of shared memory, those of the whole text before it included */
  uint32_t counts;          /* index of the first atomic operation; n: none */
  const uint8_t *constants; /* what constant memory has, from PTX_CONST_BASE on; the arena's */
  uint32_t n_constants;     /* bytes */
} PtxKernel;

typedef struct PtxText {
  VEC(PtxKernel) kernels;
} PtxText;

/* Reads all kernels of a text. False with a reason that names what is not understood. */
bool ptx_read(Arena *arena, const char *text, PtxText *out, const char **why);
const PtxKernel *ptx_find(const PtxText *p, const char *name); /* NULL: no such kernel */

PtxForm ptx_form(PtxOp op);
uint32_t ptx_type_bytes(PtxType t);
PtxFamily ptx_type_family(PtxType t);
