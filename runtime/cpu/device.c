/* The CPU device: spaces are plain memory, kernels are C functions on a thread pool. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cpu.h"
#include "runtime/base/signals.h"
#include "common/bytes.h"
#include "common/clock.h"
#include "common/processors.h"
#include "runtime/profile.h"

typedef struct CpuDevice {
  Device device;
  Pool *pool;
  GemmCache *products;
  ConvCache *convolutions;
  void *looks[LOOKS];
} CpuDevice;

static CpuDevice *cpu_of(Device *d)
{
  return (CpuDevice *)d;
}

/* Allocates a space. Linux overcommits memory and kills the process that uses it, so a request for
 * more than the machine has is rejected here. Large spaces begin on a huge page. Writing the zeros
 * touches all pages now, not in a step. */
static ampc_status cpu_alloc(Device *d, int64_t bytes, void **out)
{
  (void)d;
  double have = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
  size_t align = bytes >= (4 << 20) ? 2u << 20 : AMPC_CPU_ALIGN;
  *out = NULL;
  char wanted[AMPC_BYTES_ROOM], all[AMPC_BYTES_ROOM];
  if ((double)bytes >= have || posix_memalign(out, align, (size_t)bytes) != 0)
    return ampc_fail(
        AMPC_RUN_FAILED,
        "cannot allocate %s of memory (this machine has %s); a smaller batch needs less",
        ampc_bytes_text(bytes, wanted), ampc_bytes_text((int64_t)have, all));
  memset(*out, 0, (size_t)bytes);
  return AMPC_OK;
}

static void cpu_release(Device *d, void *memory)
{
  (void)d;
  free(memory);
}

static ampc_status cpu_copy(Device *d, void *to, const void *from, int64_t bytes)
{
  (void)d;
  memmove(to, from, (size_t)bytes);
  return AMPC_OK;
}

static ampc_status cpu_fill(Device *d, void *to, uint8_t value, int64_t bytes)
{
  (void)d;
  memset(to, value, (size_t)bytes);
  return AMPC_OK;
}

typedef struct Launch {
  ampc_cpu_kernel *kernel;
  void *const *args; /* of each row */
  uint32_t n_args, grid;
} Launch;

static void run_block(void *context, unsigned part, unsigned n_parts)
{
  const Launch *l = context;
  (void)n_parts;
  l->kernel(l->args + part / l->grid * l->n_args, part % l->grid, l->grid);
}

static ampc_status cpu_launch_rows(Device *d, const ampc_kernel *kernel, uint32_t grid,
                                   uint32_t block, void *const *args, uint32_t rows)
{
  (void)block; /* a block has one thread here */
  Launch l = {(ampc_cpu_kernel *)kernel->function, args, kernel->n_args, grid};
  if (grid * rows == 1) {
    l.kernel(args, 0, 1);
  } else {
    pool_run(cpu_of(d)->pool, run_block, &l, grid * rows);
  }
  return AMPC_OK;
}

static ampc_status cpu_launch(Device *d, const ampc_kernel *kernel, uint32_t grid, uint32_t block,
                              void *const *args)
{
  return cpu_launch_rows(d, kernel, grid, block, args, 1);
}

static ampc_status cpu_do_gemm(Device *d, const ampc_gemm *g, const GemmOperands *at)
{
  return cpu_gemm(cpu_of(d)->products, g, at);
}

static ampc_status cpu_do_conv(Device *d, const ampc_conv *c, const ConvOperands *at)
{
  return cpu_conv(cpu_of(d)->convolutions, c, at);
}

static ampc_status cpu_do_add(Device *d, ampc_dtype type, void *to, const void *from, int64_t apart,
                              uint32_t n, int64_t count)
{
  return cpu_add(cpu_of(d)->pool, type, to, from, apart, n, count);
}

static ampc_status cpu_prepare_conv(Device *d, const ampc_conv *c)
{
  return cpu_conv_prepare(cpu_of(d)->convolutions, c);
}

static ampc_status cpu_tell_implementation(Device *d, const ampc_conv *c, const char **out)
{
  return cpu_conv_implementation(cpu_of(d)->convolutions, c, out);
}

static ampc_status cpu_prepare_gemm(Device *d, const ampc_gemm *g)
{
  return cpu_gemm_prepare(cpu_of(d)->products, g);
}

static int64_t cpu_library_bytes(const Device *d)
{
  const CpuDevice *cpu = (const CpuDevice *)d;
  return gemm_cache_bytes(cpu->products) + conv_cache_bytes(cpu->convolutions);
}

static ampc_status cpu_mark(Device *d, int64_t command)
{
  profile_mark(d->profile, command, seconds_now());
  return AMPC_OK;
}

/* Runs a step. Signal handlers must not run while oneDNN computes: Note [signals]. */
static ampc_status cpu_step(Device *d, uint32_t key, void *state,
                            ampc_status (*body)(void *context), void *context)
{
  sigset_t before;
  (void)key, (void)state;
  pool_profile(cpu_of(d)->pool, d->profile);
  signals_hold(&before);
  ampc_status status = body(context);
  signals_release(&before);
  return status;
}

/* Copies at once: the CPU device runs nothing asynchronously. */
static ampc_status cpu_look(Device *d, uint32_t slot, const void *from, int64_t bytes)
{
  CpuDevice *cpu = cpu_of(d);
  void *room = realloc(cpu->looks[slot], (size_t)bytes);
  if (!room) return ampc_fail(AMPC_RUN_FAILED, "out of memory reading the state");
  cpu->looks[slot] = memcpy(room, from, (size_t)bytes);
  return AMPC_OK;
}

static ampc_status cpu_looked(Device *d, uint32_t slot, bool wait, void *to, int64_t bytes,
                              bool *out_there)
{
  (void)wait;
  memcpy(to, cpu_of(d)->looks[slot], (size_t)bytes);
  *out_there = true;
  return AMPC_OK;
}

static ampc_status cpu_wait(Device *d)
{
  (void)d;
  return AMPC_OK;
}

static void cpu_close(Device *d)
{
  CpuDevice *cpu = cpu_of(d);
  conv_cache_free(cpu->convolutions);
  gemm_cache_free(cpu->products);
  pool_free(cpu->pool);
  for (int i = 0; i < LOOKS; i++) free(cpu->looks[i]);
  free(cpu);
}

static const DeviceOps cpu_ops = {
    .alloc = cpu_alloc,
    .release = cpu_release,
    .turn_input = device_one_input,
    .bring = cpu_copy,
    .copy_in = cpu_copy,
    .copy_out = cpu_copy,
    .copy = cpu_copy,
    .fill = cpu_fill,
    .launch = cpu_launch,
    .launch_rows = cpu_launch_rows,
    .gemm = cpu_do_gemm,
    .conv = cpu_do_conv,
    .add = cpu_do_add,
    .round = cpu_round,
    .swap = cpu_swap,
    .gather = cpu_gather,
    .prepare_conv = cpu_prepare_conv,
    .prepare_gemm = cpu_prepare_gemm,
    .conv_implementation = cpu_tell_implementation,
    .step = cpu_step,
    .rehearse = device_no_rehearsal,
    .look = cpu_look,
    .looked = cpu_looked,
    .library_bytes = cpu_library_bytes,
    .mark = cpu_mark,
    .wait = cpu_wait,
    .close = cpu_close,
};

ampc_status cpu_device_open(const ampc_program *p, Device **out)
{
  CpuDevice *cpu = calloc(1, sizeof *cpu);
  if (!cpu) return ampc_fail(AMPC_RUN_FAILED, "out of memory opening the cpu device");
  cpu->device = (Device){.ops = &cpu_ops, .name = "cpu", .host_memory = true, .inputs = 1};
  cpu->pool = pool_create(ampc_processors());
  if (cpu->pool) cpu->products = gemm_cache_create(cpu->pool, p->real64, p->own_products);
  if (cpu->products) cpu->convolutions = conv_cache_create(cpu->pool, cpu->products, p->real64);
  *out = &cpu->device;
  if (cpu->convolutions) return AMPC_OK;
  cpu_close(&cpu->device);
  *out = NULL;
  return ampc_fail(AMPC_RUN_FAILED, "out of memory opening the cpu device");
}
