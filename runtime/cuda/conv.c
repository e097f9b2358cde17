/* Convolutions by the program's kernels: as matrix products, Note [columns on CUDA] in
 * conv_columns.h, or directly, Note [whole] there. */
#include "runtime/plan/conv_columns.h"
#include "runtime/plan/conv_sizes.h"
#include "runtime/plan/conv_tiling.h"
#include "conv_own.h"

typedef struct Convolution {
  CudaDevice *device;
  const ampc_conv *d;
  const ampc_conv *asked; /* the command's convolution. d differs from it only if a gradient of
                             images is computed as a forward convolution: Note [columns on CUDA] */
  ConvColumns columns;
  ampc_gemm product; /* the product of one group of one part */
  ConvOperands at;   /* operands of d; x and y are swapped if d and `asked` differ in kind */
  char *room, *turned, *workspace;
} Convolution;

static char *at(const Convolution *v, const void *base, int64_t elements, ampc_dtype type)
{
  return base ? (char *)(uintptr_t)base + elements * ampc_element_size(v->device->program, type)
              : NULL;
}

/* Sets the product of a part of the images. Without a bias, one batched call computes all groups,
 * because their matrices are at equal distances. */
static void set_product(Convolution *v)
{
  const ampc_conv *d = v->d;
  ampc_conv part = *d;
  part.n = v->columns.images;
  ampc_gemm *g = &v->product;
  *g = ampc_conv_product(&part, v->device->program->real64);
  g->workspace = conv_own_scratch(v->device, v->asked) - v->columns.bytes - v->columns.turned;
  if (d->groups == 1 || d->has_bias) return;
  int64_t k = d->k / d->groups, depth = d->c / d->groups * conv_taps(d);
  g->batch = d->groups;
  switch (d->kind) {
  case AMPC_CONV_FORWARD:
    g->stride_a = depth, g->stride_b = k * depth, g->stride_c = k;
    break;
  case AMPC_CONV_DATA:
    g->stride_a = k, g->stride_b = k * depth, g->stride_c = depth;
    break;
  case AMPC_CONV_WEIGHT:
    g->stride_a = k, g->stride_b = depth, g->stride_c = k * depth;
    break;
  }
}

/* Multiplies the columns of images from `first` on, for one group or for all groups. */
static ampc_status multiply(const Convolution *v, int64_t first, int64_t group)
{
  const ampc_conv *d = v->d;
  Device *device = &v->device->device;
  ampc_gemm g = v->product;
  int64_t k = d->k / d->groups, depth = d->c / d->groups * conv_taps(d);
  char *pixels = at(v, v->at.y, first * conv_out_elements(d) + group * k, d->y_type);
  char *weights = at(v, v->columns.turned ? v->turned : v->at.w, group * k * depth, d->w_type);
  bool direct = v->columns.direct;
  char *columns = direct ? at(v, v->at.x, first * conv_in_elements(d) + group * depth, d->x_type)
                         : at(v, v->room, group * depth, v->columns.type);
  const char *bias = at(v, v->at.bias, group * k, d->bias_type);
  GemmOperands forward = {columns, weights, bias, pixels, v->workspace},
               data = {pixels, weights, NULL, columns, v->workspace},
               weight = {pixels, columns, NULL, weights, v->workspace};
  if (d->kind == AMPC_CONV_WEIGHT) g.accumulate = d->accumulate || first > 0;
  return cuda_gemm(device, &g,
                   d->kind == AMPC_CONV_FORWARD ? &forward
                   : d->kind == AMPC_CONV_DATA  ? &data
                                                : &weight);
}

static ampc_status find_kernel(const Convolution *v, const ampc_kernel **out)
{
  const ampc_conv *d = v->asked;
  const ampc_program *p = v->device->program;
  if (d->columns >= p->n_kernels || d->grid == 0 ||
      p->kernels[d->columns].n_args != ampc_conv_kernel_args(d))
    return ampc_fail(AMPC_RUN_FAILED, "broken plan: a convolution without its kernel");
  *out = &p->kernels[d->columns];
  return AMPC_OK;
}

/* Launches the program's kernel, which makes the columns of images from `first` on and, if needed,
 * the transposed weights. */
static ampc_status arrange(const Convolution *v, int64_t first)
{
  const ampc_conv *d = v->d;
  const ampc_kernel *kernel = NULL;
  if (v->columns.direct) return AMPC_OK;
  ampc_status status = find_kernel(v, &kernel);
  if (status) return status;
  void *args[] = {at(v, v->at.x, first * conv_in_elements(d), d->x_type), v->room, v->at.w,
                  v->turned};
  return cuda_launch(&v->device->device, kernel, d->grid, d->block, args);
}

/* Computes one part of the images: columns, then products. */
static ampc_status run_part(const Convolution *v, int64_t first)
{
  int64_t calls = v->d->groups / v->product.batch;
  ampc_status status = arrange(v, first);
  for (int64_t i = 0; i < calls && !status; i++) status = multiply(v, first, i);
  return status;
}

/* Computes the convolution without columns: Note [whole] in conv_columns.h. A weight gradient takes
 * several launches of the kernel, which sum it in stages. */
static ampc_status run_whole(const Convolution *v)
{
  const ampc_conv *d = v->asked;
  void *const x = v->at.x, *const w = v->at.w, *const y = v->at.y;
  void *const b = (void *)(uintptr_t)v->at.bias;
  const ampc_kernel *kernel = NULL;
  ampc_status status = find_kernel(v, &kernel);
  for (int i = 0; i < ampc_conv_passes(d, &v->columns) && !status; i++) {
    void *forward[] = {x, w, y, b}, *data[] = {y, w, x, b}, *weight[] = {x, y, v->room, w};
    void **args = d->kind == AMPC_CONV_FORWARD ? forward
                  : d->kind == AMPC_CONV_DATA  ? data
                                               : weight;
    ampc_conv_pass(d, &v->columns, i, args);
    status = cuda_launch(&v->device->device, kernel, d->grid, d->block, args);
  }
  return status;
}

int64_t conv_own_scratch(const CudaDevice *d, const ampc_conv *c)
{
  ConvColumns t = ampc_conv_columns(c, d->program->real64);
  return t.whole ? t.bytes : ampc_conv_workspace_cuda(c, d->program->real64, d->capability);
}

ampc_status conv_own(CudaDevice *device, const ampc_conv *d, const ConvOperands *operands)
{
  ampc_conv of_columns = ampc_conv_of_columns(d);
  Convolution v = {.device = device, .d = &of_columns, .asked = d, .at = *operands};
  ampc_status status = AMPC_OK;
  v.columns = ampc_conv_columns(d, device->program->real64);
  v.room = operands->workspace;
  if (v.columns.whole) return run_whole(&v);
  if (of_columns.kind != d->kind) v.at.x = operands->y, v.at.y = operands->x;
  v.turned = v.room + v.columns.bytes;
  v.workspace = v.turned + v.columns.turned;
  set_product(&v);
  for (int64_t i = 0; i < v.columns.parts && !status; i++)
    status = run_part(&v, i * v.columns.images);
  return status;
}
