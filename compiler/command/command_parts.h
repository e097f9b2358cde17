/* Declarations that the files of pass commands share. */
#pragma once
#include "command.h"

/* args.c: Returns the arguments of a group that is one kernel, or of one part of a launch. Order:
 * inputs by first use, outputs in node order, slots of gradients, then the state of random ops. Ops
 * with a template file use the order of their code in ops.def. */
KernelArgs part_args(Compile *c, const Group *part);
/* Returns the arguments of a group with parts: those of all parts, each once. */
KernelArgs launch_args(Compile *c, const Group *p);

/* geometry.c: Return grid and block of a kernel or a part, whose other fields are set; of a launch
 * of parts; of n elements, on CUDA with a thread for each. */
Geometry part_geometry(Compile *c, const Group *p, const KernelPart *part, bool is_part);
Geometry launch_geometry(Compile *c, const Group *p, const KernelPart *parts);
Geometry elements_geometry(int64_t n);
Geometry own_geometry(Compile *c, const Group *p);                      /* own.c */
Geometry tiles_geometry(Compile *c, const Group *p, const TileWalk *w); /* attention.c */

/* Set desc, operands and workspace of a library command. */
void set_product(Compile *c, uint32_t group, Command *out);     /* product.c */
void set_convolution(Compile *c, uint32_t group, Command *out); /* convolution.c */
/* attention.c: Sets the fields of attention. Needs the arguments of the kernel. */
void set_attention(Compile *c, uint32_t group, Command *out);
/* Sets Command.deferred, if all other fields of all commands are set. */
void set_deferred(Compile *c, uint32_t group, Command *all);

void name_commands(Compile *c, Command *all); /* names.c */
