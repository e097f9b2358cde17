/* Sizes of the panels of a matrix product on the CPU. */
#include "gemm_tiling.h"
#include "arithmetic.h"

/* Limits of a panel: large enough that widening it costs little compared with the product, small
 * enough that no product's workspace is much above 20 MB. */
enum { TILE = 1024, DEPTH = 2048, TOGETHER_BYTES = 16 << 20 };

static GemmRoom room(bool used, int64_t rows, int64_t columns)
{
  GemmRoom r = {.used = used};
  if (!used) return r;
  r.ld = ampc_round_up(columns > 0 ? columns : 1, AMPC_CPU_ALIGN / (int64_t)sizeof(float));
  r.bytes = rows * r.ld * (int64_t)sizeof(float);
  return r;
}

GemmTiling ampc_gemm_tiling(const ampc_gemm *g, bool real64)
{
  bool tf32 = g->tf32 && !real64;
  bool wa = g->a_type != AMPC_F32 || tf32, wb = g->b_type != AMPC_F32 || tf32;
  bool wc = g->c_type != AMPC_F32;
  GemmTiling t = {.mt = g->m, .nt = g->n, .kt = g->k, .entries = g->batch};
  if (!wa && !wb && !wc) return t;
  t.mt = least(g->m, TILE);
  t.nt = least(g->n, TILE);
  t.kt = least(g->k, DEPTH);
  t.a = g->trans_a ? room(wa, t.kt, t.mt) : room(wa, t.mt, t.kt);
  t.b = g->trans_b ? room(wb, t.nt, t.kt) : room(wb, t.kt, t.nt);
  t.c = room(wc, t.mt, t.nt);
  t.bytes = t.a.bytes + t.b.bytes + t.c.bytes;
  int64_t fit = t.bytes > 0 ? TOGETHER_BYTES / t.bytes : g->batch;
  t.entries = least(g->batch, most(fit, 1));
  return t;
}

int64_t ampc_gemm_workspace_cpu(const ampc_gemm *g, bool real64)
{
  if (!g) return 0;
  GemmTiling t = ampc_gemm_tiling(g, real64);
  return t.bytes * t.entries;
}
