/* The members of a program that this process runs. For the files of the runtime. */
#pragma once
#include "runtime.h"

/* Sets which members this process runs; `ranks` may be NULL. Refuses other numbers of ranks than
 * the program can have. */
ampc_status members_set(ampc_runtime *rt, Ranks *ranks);
const Members *runtime_members(const ampc_runtime *rt);
/* Returns the bytes that steps have sent from this process to other ranks. */
int64_t runtime_sent(const ampc_runtime *rt);
/* Returns the bytes of a space for all members of this process. */
int64_t members_bytes(const ampc_runtime *rt, ampc_space s);
/* Allocates `times` copies of a space for each member; one for all, if they share the space. */
ampc_status members_alloc(ampc_runtime *rt, ampc_space s, int64_t times);
/* Points rt->space to the spaces of a member of this process, counted from 0. */
void members_turn(ampc_runtime *rt, uint32_t member);
/* Fills the space of each member with zeros. */
ampc_status members_fill(ampc_runtime *rt, ampc_space s);
/* Reads or writes moments, of which each member has a slice. Offsets are those of the whole range.
 * A write changes only the slices of this process. All ranks read together, and rank 0 gets the
 * bytes. *out_done is false if the space is not divided; then nothing has happened. */
ampc_status members_move(ampc_runtime *rt, ampc_ref at, void *host, int64_t bytes, bool read,
                         bool *out_done);
/* Returns the index of the member's first sample in a batch of `samples`. */
int64_t members_first(const ampc_runtime *rt, uint32_t member, int64_t samples);
/* ampc_variant_at for a member's share of the samples. */
uint32_t members_variant(const ampc_runtime *rt, const ampc_block *b, uint32_t member,
                         int64_t samples, int64_t step);
/* Writes the index of the member's first sample to its STATE; only changes. */
ampc_status members_place(ampc_runtime *rt, uint32_t member, int64_t samples);
/* Returns the scratch bytes of the exchanges of p between p->ranks processes. */
int64_t members_scratch(const ampc_program *p);
/* Allocates the scratch space of all exchanges. */
ampc_status members_prepare(ampc_runtime *rt);
/* Exchanges when the last member of this process calls it. */
ampc_status members_exchange(ampc_runtime *rt, const ampc_exchange *x, ampc_ref at);
