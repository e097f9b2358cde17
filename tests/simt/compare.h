/* Compares the words that the CUDA text wrote with those of the CPU text. */
#pragma once
#include "compiler/command/command.h"
#include "machine.h"
#include "memory.h"

typedef struct Comparison {
  const KernelArg *args;
  void *const *at; /* addresses of the arguments */
  uint32_t n_args;
  const DType *rounded;  /* each argument's type before it was stored or added */
  double *scale;         /* space for one number per argument */
  const WordList *sizes; /* words of the CPU text when its sums add absolute values */
  bool real64;           /* f32 elements are doubles */
  double terms;          /* reads per written number */
  uintptr_t skip;        /* the scratch memory of an op that the job declares */
  size_t skip_size;
  bool waited; /* threads synchronized, so sums may have another order; or functions differ */
} Comparison;

/* Compares `want`, words of the CPU text, with `got`, words of the CUDA text, which are still in
 * memory. Returns false and sets *out_fault if they differ. */
bool compare_words(const Comparison *c, const WordList *want, const WordList *got,
                   SimtFault *out_fault);
/* Writes a text such as "argument 2, byte 132". */
void describe_place(const Comparison *c, uintptr_t at, char *out, size_t size);
