/* What the CUDA text wrote against what the CPU text wrote. */
#pragma once
#include "compiler/command/command.h"
#include "machine.h"
#include "memory.h"

typedef struct Comparison {
  const KernelArg *args;
  void *const *at; /* where they lie */
  uint32_t n_args;
  const DType *rounded;  /* to which type each was rounded before it was stored, or added */
  double *scale;         /* room for one number an argument */
  const WordList *sizes; /* what the CPU text writes when sums add up without signs */
  bool real64;           /* elements of f32 are doubles */
  double terms;          /* read for each number that is written */
  uintptr_t skip;        /* the scratch of an op of the job */
  size_t skip_size;
  bool waited; /* threads worked together: sums may have been made in another order */
} Comparison;

/* `want`: the CPU text's words; `got`: the CUDA text's, which are in memory. False: *out_fault. */
bool compare_words(const Comparison *c, const WordList *want, const WordList *got,
                   SimtFault *out_fault);
/* "argument 2, byte 132" */
void describe_place(const Comparison *c, uintptr_t at, char *out, size_t size);
