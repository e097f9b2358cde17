/* PTX kernels in a compact form, in which each operand is a row of 32 values, one for each lane. */
#pragma once
#include "matrix.h"
#include "runner/cost/ptx.h"

enum { PTX_LANES = 32, PTX_PARTS = 4 /* elements of the longest vector */ };

typedef uint64_t PtxRow[PTX_LANES];

/* The first rows of a warp; its registers follow. */
enum { ROW_tid, ROW_lane, ROW_warp, ROW_registers };
/* The first rows that all warps share; parameters and numbers follow. */
enum { SHARED_ROW = 1u << 31, SHARED_ctaid = 0, SHARED_ntid, SHARED_nctaid, SHARED_params };

typedef struct PtxCode {
  uint8_t op, type, from;       /* PtxOp, PtxType, PtxType */
  uint8_t space, compare, join; /* these and the next as in PtxInstruction */
  uint8_t n_to, n_in;
  char mode;
  bool guarded, negated; /* negated: it executes if the guard is false */
  bool constant, flush;  /* flush: .ftz */
  uint8_t dead;          /* of a vector load: parts that no instruction reads, as bits */
  uint32_t guard;        /* a row, like the next two */
  uint32_t to[PTX_PARTS], in[PTX_VECTOR];
  uint32_t target; /* bra: index of an instruction */
  int64_t offset;  /* bytes that are added to an address */
  SimtMatrix *matrix;
} PtxCode;

typedef struct PtxImage { /* a kernel */
  const char *name;
  const PtxCode *at;
  uint32_t n, n_rows; /* n_rows: of a warp */
  PtxRow *shared_rows;
  uint32_t n_shared_rows, n_params;
  uint32_t shared;          /* bytes of shared memory */
  const uint8_t *constants; /* constant memory from PTX_CONST_BASE on */
  uint32_t n_constants;
  uint32_t grid, block; /* of the launch on this architecture */
} PtxImage;

/* Makes the compact form. False: *why names an instruction that the interpreter does not know. */
bool ptx_decode(Arena *arena, const PtxKernel *k, PtxImage *out, const char **why);
unsigned ptx_spellings(void); /* number of different names of instructions so far */

/* values.c: computes an instruction of form `value`, for all lanes. */
void ptx_compute(const PtxCode *i, const uint64_t *const in[], PtxRow out);
/* True if ptx.def has a value for the op and the type. */
bool ptx_computes(const PtxInstruction *i);

/* inline.c: replaces calls of functions by their bodies. */
bool ptx_inline(Arena *arena, const char *text, const char **out);
