/* One run of a block for several texts: Note [rows] in rows.h. */
#include "rows.h"
#include <stdlib.h>
#include <string.h>
#include "runtime/members.h"
#include "runtime/plan/types.h"

/* Stand-in addresses: bit 62, which neither an address that the runtime allocates nor a number that
 * is an argument has; the space; the offset. */
#define STAND_IN ((uintptr_t)1 << 62)
enum { SPACE_BIT = 52 };
_Static_assert(sizeof(void *) == 8, "stand-in addresses have 64 bits");

typedef struct Rows {
  Device device; /* what a step calls while rows run */
  Device *below;
  const ampc_program *program;
  const char *state;            /* of the runtime */
  uint32_t n, room;             /* rows that run; rows with memory */
  char *base[AMPC_SPACE_COUNT]; /* of row 0; set for INPUT and WORK */
  int64_t step[AMPC_SPACE_COUNT];
  char *const *cache; /* of each row */
  void **args;        /* of a launch, for all rows */
  uint32_t args_room;
  void *scratch; /* workspace of a product of n rows that needs more than one of 1 row */
  int64_t scratch_bytes;
} Rows;

/* ---- addresses ---- */

static bool is_stand_in(const void *p)
{
  return (uintptr_t)p & STAND_IN;
}

static ampc_space space_at(const void *p)
{
  return (ampc_space)(((uintptr_t)p & ~STAND_IN) >> SPACE_BIT);
}

static char *stand_in(ampc_space s)
{
  return (char *)(STAND_IN | (uintptr_t)s << SPACE_BIT);
}

/* Returns the address of an operand for a row. Other addresses and numbers stay as they are. */
static void *at_row(const Rows *r, const void *p, uint32_t row)
{
  if (!is_stand_in(p)) return (void *)(uintptr_t)p;
  ampc_space s = space_at(p);
  uintptr_t offset = (uintptr_t)p & (((uintptr_t)1 << SPACE_BIT) - 1);
  char *base = s == AMPC_CACHE ? r->cache[row] : r->base[s] + row * r->step[s];
  return base + offset;
}

static bool has_stand_in(void *const *args, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    if (is_stand_in(args[i])) return true;
  return false;
}

/* Whether a kernel gets STATE. It may count there which of its blocks is the last one, so its rows
 * must follow one another. */
static bool has_state(const Rows *r, void *const *args, uint32_t n)
{
  const char *end = r->state + r->program->space_bytes[AMPC_STATE];
  for (uint32_t i = 0; i < n; i++)
    if ((const char *)args[i] >= r->state && (const char *)args[i] < end) return true;
  return false;
}

/* Whether consecutive rows are equally far apart, in whole elements. */
static bool has_row_stride(const Rows *r, const void *p, ampc_dtype type)
{
  return is_stand_in(p) && space_at(p) != AMPC_CACHE &&
         r->step[space_at(p)] % ampc_element_size(r->program, type) == 0;
}

/* ---- the device of a step ---- */

static Rows *rows_of(Device *d)
{
  return (Rows *)d;
}

static ampc_status row_launch(Device *d, const ampc_kernel *kernel, uint32_t grid, uint32_t block,
                              void *const *args)
{
  Rows *r = rows_of(d);
  const DeviceOps *ops = r->below->ops;
  uint32_t n = kernel->n_args, rows = has_stand_in(args, n) ? r->n : 1;
  ampc_status status = AMPC_OK;
  if (n * rows > r->args_room) {
    void **more = realloc(r->args, n * rows * sizeof *more);
    if (!more) return ampc_fail(AMPC_RUN_FAILED, "out of memory for texts");
    r->args = more;
    r->args_room = n * rows;
  }
  for (uint32_t row = 0; row < rows; row++)
    for (uint32_t i = 0; i < n; i++) r->args[row * n + i] = at_row(r, args[i], row);
  if (ops->launch_rows && !has_state(r, args, n))
    return ops->launch_rows(r->below, kernel, grid, block, r->args, rows);
  for (uint32_t row = 0; row < rows && !status; row++)
    status = ops->launch(r->below, kernel, grid, block, r->args + row * n);
  return status;
}

/* Whether the rows of a product are rows of one product: each multiplies one row by the same
 * matrix. */
static bool is_one_product(const Rows *r, const ampc_gemm *g, const GemmOperands *at)
{
  return g->m == 1 && g->batch == 1 && !g->trans_a && has_row_stride(r, at->a, g->a_type) &&
         has_row_stride(r, at->c, g->c_type) && !is_stand_in(at->b) &&
         !(g->has_bias && is_stand_in(at->bias));
}

static ampc_status reserve_scratch(Rows *r, int64_t bytes)
{
  const DeviceOps *ops = r->below->ops;
  if (bytes <= r->scratch_bytes) return AMPC_OK;
  if (r->scratch) ops->release(r->below, r->scratch);
  r->scratch = NULL;
  r->scratch_bytes = 0;
  ampc_status status = ops->alloc(r->below, bytes, &r->scratch);
  if (!status) r->scratch_bytes = bytes;
  return status;
}

static ampc_status product_of_rows(Rows *r, const ampc_gemm *g, const GemmOperands *at)
{
  ampc_gemm all = *g;
  GemmOperands where = {at_row(r, at->a, 0), at->b, at->bias, at_row(r, at->c, 0),
                        at_row(r, at->workspace, 0)};
  all.m = r->n;
  all.lda = r->step[space_at(at->a)] / ampc_element_size(r->program, g->a_type);
  all.ldc = r->step[space_at(at->c)] / ampc_element_size(r->program, g->c_type);
  bool real64 = r->program->real64;
  int64_t needs = r->below->host_memory ? ampc_gemm_workspace_cpu(&all, real64) : g->workspace;
  if (needs > g->workspace) {
    ampc_status status = reserve_scratch(r, needs);
    if (status) return status;
    all.workspace = needs;
    where.workspace = r->scratch;
  }
  return r->below->ops->gemm(r->below, &all, &where);
}

static ampc_status row_gemm(Device *d, const ampc_gemm *g, const GemmOperands *at)
{
  Rows *r = rows_of(d);
  ampc_status status = AMPC_OK;
  if (is_one_product(r, g, at)) return product_of_rows(r, g, at);
  for (uint32_t row = 0; row < r->n && !status; row++) {
    GemmOperands of = {at_row(r, at->a, row), at_row(r, at->b, row), at_row(r, at->bias, row),
                       at_row(r, at->c, row), at_row(r, at->workspace, row)};
    status = r->below->ops->gemm(r->below, g, &of);
  }
  return status;
}

static ampc_status row_conv(Device *d, const ampc_conv *c, const ConvOperands *at)
{
  Rows *r = rows_of(d);
  ampc_status status = AMPC_OK;
  for (uint32_t row = 0; row < r->n && !status; row++) {
    ConvOperands of = {at_row(r, at->x, row), at_row(r, at->w, row), at_row(r, at->bias, row),
                       at_row(r, at->y, row), at_row(r, at->workspace, row)};
    status = r->below->ops->conv(r->below, c, &of);
  }
  return status;
}

static ampc_status row_copy(Device *d, void *to, const void *from, int64_t bytes)
{
  Rows *r = rows_of(d);
  ampc_status status = AMPC_OK;
  for (uint32_t row = 0; row < r->n && !status; row++)
    status = r->below->ops->copy(r->below, at_row(r, to, row), at_row(r, from, row), bytes);
  return status;
}

static ampc_status row_fill(Device *d, void *to, uint8_t value, int64_t bytes)
{
  Rows *r = rows_of(d);
  ampc_status status = AMPC_OK;
  for (uint32_t row = 0; row < r->n && !status; row++)
    status = r->below->ops->fill(r->below, at_row(r, to, row), value, bytes);
  return status;
}

static ampc_status row_step(Device *d, uint32_t key, void *state,
                            ampc_status (*body)(void *context), void *context)
{
  Device *below = rows_of(d)->below;
  return below->ops->step(below, key, state, body, context);
}

static ampc_status row_mark(Device *d, int64_t command)
{
  return rows_of(d)->below->ops->mark(rows_of(d)->below, command);
}

/* Without launch_by_library, attention is computed by our kernel. */
static const DeviceOps row_ops = {.launch = row_launch,
                                  .gemm = row_gemm,
                                  .conv = row_conv,
                                  .copy = row_copy,
                                  .fill = row_fill,
                                  .step = row_step,
                                  .rehearse = device_no_rehearsal,
                                  .mark = row_mark};

/* ---- memory ---- */

static void release_rows(Rows *r)
{
  for (int s = 0; s < AMPC_SPACE_COUNT; s++) {
    if (r->base[s]) r->below->ops->release(r->below, r->base[s]);
    r->base[s] = NULL;
  }
  r->room = 0;
}

void rows_free(ampc_runtime *rt)
{
  Rows *r = rt->rows;
  if (!r) return;
  release_rows(r);
  if (r->scratch) r->below->ops->release(r->below, r->scratch);
  free(r->args);
  free(r);
  rt->rows = NULL;
}

static ampc_status open_rows(ampc_runtime *rt)
{
  Rows *r = calloc(1, sizeof *r);
  if (!r) return ampc_fail(AMPC_RUN_FAILED, "out of memory for texts");
  r->below = rt->device;
  r->program = rt->program;
  r->device.host_memory = rt->device->host_memory;
  r->device.ops = &row_ops;
  rt->rows = r;
  return AMPC_OK;
}

ampc_status rows_reserve(ampc_runtime *rt, uint32_t n)
{
  ampc_status status = rt->rows ? AMPC_OK : open_rows(rt);
  if (status || n <= rt->rows->room) return status;
  Rows *r = rt->rows;
  release_rows(r);
  for (int s = AMPC_INPUT; s <= AMPC_WORK && !status; s++) {
    void *memory = NULL;
    r->step[s] = device_step(rt->program, (ampc_space)s);
    if (r->step[s]) status = r->below->ops->alloc(r->below, r->step[s] * n, &memory);
    r->base[s] = memory;
  }
  if (status) {
    release_rows(r);
    return ampc_fail(status, "%u texts at once: %s", n, ampc_last_error());
  }
  r->room = n;
  return AMPC_OK;
}

ampc_status rows_write(ampc_runtime *rt, uint32_t row, ampc_ref to, const void *from, int64_t bytes)
{
  const Rows *r = rt->rows;
  char *at = r->base[to.space] + row * r->step[to.space] + to.offset;
  return r->below->ops->copy_in(r->below, at, from, bytes);
}

ampc_status rows_read(ampc_runtime *rt, uint32_t row, ampc_ref from, void *to, int64_t bytes)
{
  const Rows *r = rt->rows;
  const char *at = r->base[from.space] + row * r->step[from.space] + from.offset;
  return r->below->ops->copy_out(r->below, to, at, bytes);
}

/* ---- a run ---- */

static void use_stand_ins(ampc_runtime *rt, bool use)
{
  for (int s = AMPC_CACHE; s <= AMPC_WORK; s++)
    rt->instead[s] = use && rt->base[s] ? stand_in((ampc_space)s) : NULL;
  rt->moved_spaces = use;
  members_turn(rt, rt->member);
}

ampc_status rows_run(ampc_runtime *rt, uint32_t block, uint32_t n, char *const *cache)
{
  Rows *r = rt->rows;
  r->n = n;
  r->cache = cache;
  r->state = rt->base[AMPC_STATE];
  r->device.profile = r->below->profile;
  use_stand_ins(rt, true);
  rt->device = &r->device;
  ampc_status status = ampc_run_step(rt, block, 0);
  rt->device = r->below;
  use_stand_ins(rt, false);
  return status;
}
