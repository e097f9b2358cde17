/* Walks a kernel in a text of PTX with the latencies of a large GPU. */
#pragma once
#include "check.h"
#include "runner/cost/walk.h"

enum { DRAM = 600 };

static inline WalkCounts walked(const char *text, const char *kernel, WalkLaunch launch)
{
  Arena *arena = arena_create();
  WalkCounts out = {0};
  PtxText ptx;
  const char *why = "";
  launch.latency_shared = 30, launch.latency_l1 = 40;
  launch.latency_l2 = 260, launch.latency_dram = DRAM;
  CHECK_MSG(ptx_read(arena, text, &ptx, &why), "%s", why);
  const PtxKernel *k = ptx_find(&ptx, kernel);
  CHECK_MSG(k && walk_kernel(arena, k, &launch, &out, &why), "%s", why);
  arena_destroy(arena);
  return out;
}
