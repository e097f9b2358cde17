/* Compares the words that the CUDA text wrote with those of the CPU text. */
#pragma once
#include "compiler/command/command.h"
#include "machine.h"
#include "memory.h"

typedef struct Comparison {
  const KernelArg *args;
  void *const *at; /* their addresses */
  uint32_t n_args;
  const DType *rounded;  /* the type to which each was rounded before it was stored or added */
  double *scale;         /* space for one number per argument */
  const WordList *sizes; /* words of the CPU text if sums add absolute values */
  bool real64;           /* f32 elements are doubles */
  double terms;          /* reads per written number */
  uintptr_t skip;        /* the scratch of one of the job's own ops */
  size_t skip_size;
  bool waited; /* threads synchronized, so sums may have another order */
} Comparison;

/* `want`: from the CPU text; `got`: from the CUDA text, still in memory. False: *out_fault. */
bool compare_words(const Comparison *c, const WordList *want, const WordList *got,
                   SimtFault *out_fault);
/* "argument 2, byte 132" */
void describe_place(const Comparison *c, uintptr_t at, char *out, size_t size);
