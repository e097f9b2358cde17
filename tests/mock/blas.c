/* cuBLASLt without CUDA: descriptors, and the rules of its documentation. A product is checked when
 * its algorithm is requested and again when it is called: types, sizes, leading dimensions,
 * batches, the promised alignment, the workspace, and that the algorithm belongs to this product.
 *   MOCK_BLAS_REFUSE=n   the n-th product finds no algorithm
 *   MOCK_BLAS_UNFIT=n    the n best algorithms of each product do not run
 *   MOCK_BLAS_FAIL=n     the n-th call of a product fails
 *   MOCK_BLAS_ALONE=1    a batch finds no algorithm
 *   MOCK_BLAS_LOSE=n     the relu of the n best algorithms of each product turns NaN into 0
 * The heuristic returns INVALID_VALUE if a size is 1 or very large, like the library does. The
 * address of a bias must be a multiple of 16 bytes. */
#include "blas.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOT_INITIALIZED = 1, ALLOC_FAILED = 3, EXECUTION_FAILED = 13 };
enum { INVALID_VALUE = CUBLAS_STATUS_INVALID_VALUE, TOO_LONG = 65535 * 32 };
enum { ALIGN_OF_LIBRARY = 256, IN_PLACE = 1, ALL_SCHEMES = 7, ALGORITHMS = 6, BIAS_ALIGN = 16 };

struct LtOpaqueMatmul {
  LtCompute compute;
  int32_t transpose_a, transpose_b;
  uint32_t epilogue;
  const void *bias;
  int32_t bias_type; /* -1: the type of D */
};

struct LtOpaqueLayout {
  LtType type;
  uint64_t rows, columns;
  int64_t ld, stride;
  int32_t batch;
};

struct LtOpaquePreference {
  uint64_t workspace;
  uint32_t schemes, align[4];
};

/* The data that an algorithm records in its 64 bytes. */
typedef struct Chosen {
  uint64_t problem; /* hash of the product for which the algorithm was chosen */
  uint64_t workspace;
  uint32_t align[4];
  int32_t rank; /* among the algorithms of the product; 0: the best */
} Chosen;

enum { MOST_USED = 4096 };
static uint64_t used[MOST_USED]; /* problems that were computed outside of a capture */
static unsigned n_used;
static int handles; /* its address is the handle */
static long looked, called;

#define BLAS_ENTER()                                                                               \
  __attribute__((cleanup(mock_leave))) int entered_ = mock_enter(NEEDS_CONTEXT);                   \
  if (entered_) return NOT_INITIALIZED

/* ---- objects ---- */

LtStatus cublasLtCreate(LtHandle *out)
{
  BLAS_ENTER();
  if (mock_opens("cublasLtCreate")) return NOT_INITIALIZED;
  handles++;
  mock_add(COUNT_held, 1);
  mock_add(COUNT_libraries, 1);
  *out = (LtHandle)(void *)&handles;
  return CUBLAS_STATUS_SUCCESS;
}

LtStatus cublasLtDestroy(LtHandle handle)
{
  if (handle != (LtHandle)(void *)&handles || !handles) return INVALID_VALUE;
  if (mock_opens("cublasLtDestroy")) return NOT_INITIALIZED;
  handles--;
  mock_add(COUNT_held, -1);
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
  return 130000;
}

const char *cublasLtGetStatusString(LtStatus status)
{
  switch (status) {
  case CUBLAS_STATUS_SUCCESS:
    return "CUBLAS_STATUS_SUCCESS";
  case NOT_INITIALIZED:
    return "CUBLAS_STATUS_NOT_INITIALIZED";
  case ALLOC_FAILED:
    return "CUBLAS_STATUS_ALLOC_FAILED";
  case INVALID_VALUE:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case EXECUTION_FAILED:
    return "CUBLAS_STATUS_EXECUTION_FAILED";
  case CUBLAS_STATUS_NOT_SUPPORTED:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  default:
    return "CUBLAS_STATUS unknown";
  }
}

static void *new_object(size_t size)
{
  void *object = calloc(1, size);
  if (!object) mock_misuse("out of memory");
  mock_add(COUNT_held, 1);
  return object;
}

static LtStatus free_object(void *object)
{
  if (object) mock_add(COUNT_held, -1);
  free(object);
  return CUBLAS_STATUS_SUCCESS;
}

static bool is_type(int type)
{
  return type == CUDA_R_64F || type == CUDA_R_32F || type == CUDA_R_16F || type == CUDA_R_16BF;
}

LtStatus cublasLtMatmulDescCreate(LtMatmul *out, LtCompute compute, LtType scale_type)
{
  bool wide = compute == CUBLAS_COMPUTE_64F;
  if (!wide && compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32)
    return mock_refuse(INVALID_VALUE, "compute type %d", compute);
  if (scale_type != (wide ? CUDA_R_64F : CUDA_R_32F))
    return mock_refuse(INVALID_VALUE, "scale type %d", scale_type);
  *out = new_object(sizeof **out);
  **out = (struct LtOpaqueMatmul){
      .compute = compute, .epilogue = CUBLASLT_EPILOGUE_DEFAULT, .bias_type = -1};
  return CUBLAS_STATUS_SUCCESS;
}

LtStatus cublasLtMatmulDescDestroy(LtMatmul matmul)
{
  return free_object(matmul);
}

LtStatus cublasLtMatrixLayoutCreate(LtLayout *out, LtType type, uint64_t rows, uint64_t columns,
                                    int64_t ld)
{
  *out = new_object(sizeof **out);
  **out =
      (struct LtOpaqueLayout){.type = type, .rows = rows, .columns = columns, .ld = ld, .batch = 1};
  return CUBLAS_STATUS_SUCCESS;
}

LtStatus cublasLtMatrixLayoutDestroy(LtLayout layout)
{
  return free_object(layout);
}

LtStatus cublasLtMatmulPreferenceCreate(LtPreference *out)
{
  *out = new_object(sizeof **out);
  **out = (struct LtOpaquePreference){
      .schemes = ALL_SCHEMES,
      .align = {ALIGN_OF_LIBRARY, ALIGN_OF_LIBRARY, ALIGN_OF_LIBRARY, ALIGN_OF_LIBRARY}};
  return CUBLAS_STATUS_SUCCESS;
}

LtStatus cublasLtMatmulPreferenceDestroy(LtPreference preference)
{
  return free_object(preference);
}

/* ---- attributes ---- */

static LtStatus set(void *to, size_t wanted, const void *value, size_t size, const char *what)
{
  if (size != wanted || !value)
    return mock_refuse(INVALID_VALUE, "%s has %zu bytes, %zu were given", what, wanted, size);
  memcpy(to, value, size);
  return CUBLAS_STATUS_SUCCESS;
}

#define SET(member) set(&(member), sizeof(member), value, size, #member)

LtStatus cublasLtMatmulDescSetAttribute(LtMatmul matmul, LtMatmulAttribute what, const void *value,
                                        size_t size)
{
  switch (what) {
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return SET(matmul->transpose_a);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return SET(matmul->transpose_b);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return SET(matmul->epilogue);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return SET(matmul->bias);
  case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
    return SET(matmul->bias_type);
  default:
    return mock_refuse(INVALID_VALUE, "the mock has no attribute %d of products", what);
  }
}

LtStatus cublasLtMatrixLayoutSetAttribute(LtLayout layout, LtLayoutAttribute what,
                                          const void *value, size_t size)
{
  switch (what) {
  case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
    return SET(layout->batch);
  case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
    return SET(layout->stride);
  default:
    return mock_refuse(INVALID_VALUE, "the mock has no attribute %d of layouts", what);
  }
}

LtStatus cublasLtMatmulPreferenceSetAttribute(LtPreference preference, LtPreferenceAttribute what,
                                              const void *value, size_t size)
{
  switch (what) {
  case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
    return SET(preference->workspace);
  case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
    return SET(preference->schemes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
    return SET(preference->align[what - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES]);
  default:
    return mock_refuse(INVALID_VALUE, "the mock has no attribute %d of preferences", what);
  }
}

/* ---- rules of a product ---- */

static ampc_dtype type_of(int type)
{
  return type == CUDA_R_32F || type == CUDA_R_64F ? AMPC_F32
         : type == CUDA_R_16F                     ? AMPC_F16
                                                  : AMPC_BF16;
}

static bool read_layout(LtLayout l, const char *name, bool wide, Matrix *out)
{
  const char *wrong = NULL;
  if (!l || !is_type(l->type) || (l->type == CUDA_R_64F) != wide)
    wrong = "its type";
  else if (l->rows == 0 || l->columns == 0)
    wrong = "it is empty";
  else if (l->ld < (int64_t)l->rows)
    wrong = "its leading dimension is less than its rows";
  else if (l->batch < 1 || (l->batch > 1 && l->stride < 0))
    wrong = "its batch";
  if (wrong) {
    mock_refuse(INVALID_VALUE, "matrix %s: %s", name, wrong);
    return false;
  }
  *out =
      (Matrix){type_of(l->type), (int64_t)l->rows, (int64_t)l->columns, l->ld, l->stride, l->batch};
  return true;
}

static bool same_layout(const Matrix *a, const Matrix *b)
{
  return a->type == b->type && a->rows == b->rows && a->columns == b->columns && a->ld == b->ld &&
         a->batch == b->batch && (a->batch == 1 || a->stride == b->stride);
}

static LtStatus check_sizes(Product *p)
{
  p->m = p->transpose_a ? p->a.columns : p->a.rows;
  p->k = p->transpose_a ? p->a.rows : p->a.columns;
  p->n = p->transpose_b ? p->b.rows : p->b.columns;
  int64_t k = p->transpose_b ? p->b.columns : p->b.rows;
  if (k != p->k || p->m != p->d.rows || p->n != p->d.columns)
    return mock_refuse(INVALID_VALUE, "sizes: [%lld, %lld] [%lld, %lld] into [%lld, %lld]",
                       (long long)p->m, (long long)p->k, (long long)k, (long long)p->n,
                       (long long)p->d.rows, (long long)p->d.columns);
  if (!same_layout(&p->c, &p->d)) return mock_refuse(INVALID_VALUE, "C is not laid out as D");
  if (p->a.batch != p->d.batch || p->b.batch != p->d.batch)
    return mock_refuse(INVALID_VALUE, "batches of %d, %d and %d", p->a.batch, p->b.batch,
                       p->d.batch);
  bool apart = p->d.stride >= (p->n - 1) * p->d.ld + p->m;
  bool between = p->d.stride >= p->m && p->d.batch * p->d.stride <= p->d.ld; /* side by side */
  if (p->d.batch > 1 && !apart && !between)
    return mock_refuse(INVALID_VALUE, "the results of a batch overlap");
  return CUBLAS_STATUS_SUCCESS;
}

/* Checks the types against the table of cublasLtMatmul's documentation, for f32, f16 and bf16. */
static LtStatus check_types(const Product *p)
{
  bool good = p->a.type == p->b.type && (p->d.type == p->a.type || p->d.type == AMPC_F32);
  if (p->tf32 && p->a.type != AMPC_F32) good = false;
  if (p->bias && p->bias_type != p->d.type) good = false;
  if (good) return CUBLAS_STATUS_SUCCESS;
  return mock_refuse(CUBLAS_STATUS_NOT_SUPPORTED, "types %s, %s, %s%s%s",
                     ampc_dtype_name(p->a.type), ampc_dtype_name(p->b.type),
                     ampc_dtype_name(p->d.type), p->bias ? ", bias " : "",
                     p->bias ? ampc_dtype_name(p->bias_type) : "");
}

static LtStatus read_product(LtMatmul m, LtLayout a, LtLayout b, LtLayout c, LtLayout d, Product *p)
{
  *p = (Product){.transpose_a = m->transpose_a == CUBLAS_OP_T,
                 .transpose_b = m->transpose_b == CUBLAS_OP_T,
                 .tf32 = m->compute == CUBLAS_COMPUTE_32F_FAST_TF32,
                 .bias = m->epilogue & CUBLASLT_EPILOGUE_BIAS,
                 .relu = m->epilogue & CUBLASLT_EPILOGUE_RELU,
                 .wide = m->compute == CUBLAS_COMPUTE_64F};
  if (m->transpose_a < 0 || m->transpose_a > 1 || m->transpose_b < 0 || m->transpose_b > 1)
    return mock_refuse(INVALID_VALUE, "transpose");
  uint32_t known = CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_RELU;
  if (m->epilogue != CUBLASLT_EPILOGUE_DEFAULT && (m->epilogue & ~known || !m->epilogue))
    return mock_refuse(CUBLAS_STATUS_NOT_SUPPORTED, "the mock has no epilogue %u", m->epilogue);
  if (!read_layout(a, "A", p->wide, &p->a) || !read_layout(b, "B", p->wide, &p->b) ||
      !read_layout(c, "C", p->wide, &p->c) || !read_layout(d, "D", p->wide, &p->d))
    return INVALID_VALUE;
  if (m->bias_type >= 0 && !is_type(m->bias_type)) return mock_refuse(INVALID_VALUE, "bias type");
  p->bias_type = m->bias_type < 0 ? p->d.type : type_of(m->bias_type);
  LtStatus status = check_sizes(p);
  return status ? status : check_types(p);
}

static uint64_t mix(uint64_t hash, const Matrix *m)
{
  int64_t parts[] = {(int64_t)m->type, m->rows, m->columns, m->ld, m->stride, m->batch};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    hash = (hash ^ (uint64_t)parts[i]) * 0x100000001b3u + (hash >> 31);
  return hash;
}

/* Returns a hash of everything on which an algorithm may depend. */
static uint64_t problem_of(const Product *p)
{
  uint64_t flags = (uint64_t)p->transpose_a | (uint64_t)p->transpose_b << 1 |
                   (uint64_t)p->tf32 << 2 | (uint64_t)p->bias << 3 | (uint64_t)p->relu << 4;
  return mix(mix(mix(0xcbf29ce484222325u ^ flags, &p->a), &p->b), &p->d);
}

/* ---- algorithms ---- */

/* True if PyTorch's at::addmm avoids cuBLASLt for it (aten/src/ATen/native/cuda/Blas.cpp). */
static bool is_narrow_or_long(const Product *p)
{
  const int64_t sizes[] = {p->m, p->n, p->k};
  for (int i = 0; i < 3; i++)
    if (sizes[i] == 1 || sizes[i] >= TOO_LONG) return true;
  return false;
}

/* Returns the workspace of the best algorithm. It splits long sums with few results into parts. */
static uint64_t wanted_workspace(const Product *p)
{
  int64_t results = p->m * p->n * p->d.batch;
  return p->k >= 4 * (p->m > p->n ? p->m : p->n) || p->k >= 2048 ? (uint64_t)results * 2 * 4 : 0;
}

LtStatus cublasLtMatmulAlgoGetHeuristic(LtHandle handle, LtMatmul matmul, LtLayout a, LtLayout b,
                                        LtLayout c, LtLayout d, LtPreference preference, int wanted,
                                        LtHeuristic *out, int *found)
{
  BLAS_ENTER();
  Product p;
  *found = 0;
  if (!handle || !preference || wanted < 1) return mock_refuse(INVALID_VALUE, "heuristic");
  if (preference->schemes & IN_PLACE)
    mock_misuse("a product may be summed by atomics: its bits would not be the same each time");
  LtStatus status = read_product(matmul, a, b, c, d, &p);
  if (status) return status;
  if (is_narrow_or_long(&p)) return INVALID_VALUE;
  if (++looked == mock_setting("MOCK_BLAS_REFUSE", 0)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (p.d.batch > 1 && mock_setting("MOCK_BLAS_ALONE", 0)) return CUBLAS_STATUS_NOT_SUPPORTED;
  Chosen chosen = {.problem = problem_of(&p), .workspace = wanted_workspace(&p)};
  if (chosen.workspace > preference->workspace) chosen.workspace = 0;
  memcpy(chosen.align, preference->align, sizeof chosen.align);
  while (*found < wanted && *found < ALGORITHMS) {
    LtHeuristic *h = &out[*found];
    *h = (LtHeuristic){.workspace = chosen.workspace, .waves = 1};
    chosen.rank = (*found)++;
    memcpy(&h->algorithm, &chosen, sizeof chosen);
  }
  return CUBLAS_STATUS_SUCCESS;
}

/* Columns in memory: `bytes` bytes each, `apart` bytes from one to the next. */
typedef struct Columns {
  uint64_t at;
  int64_t n, bytes, apart;
} Columns;

static Columns columns_of(const Product *p, const Matrix *m, uint64_t at)
{
  int64_t size = (int64_t)matrix_bytes(p, &(Matrix){m->type, 1, 1, 1, 0, 1});
  if (m->batch > 1) return (Columns){at, 1, (int64_t)matrix_bytes(p, m), 0};
  return (Columns){at, m->columns, m->rows * size, m->ld * size};
}

/* Whether a column of `a` overlaps one of `b`. Rows of several texts lie between each other. */
static bool columns_meet(Columns a, Columns b)
{
  for (int64_t i = 0; i < a.n; i++) {
    int64_t from = (int64_t)(a.at - b.at) + i * a.apart, end = from + a.bytes;
    int64_t k = b.apart && from > 0 ? from / b.apart : 0; /* the columns before end before `from` */
    for (; k < b.n && k * b.apart < end; k++)
      if (from < k * b.apart + b.bytes) return true;
  }
  return false;
}

static void check_pointers(const Product *p, const Chosen *chosen)
{
  const uint64_t at[] = {p->a_at, p->b_at, p->c_at, p->d_at};
  for (int i = 0; i < 4; i++)
    if (chosen->align[i] && at[i] % chosen->align[i])
      mock_misuse("matrix %c at %#llx: %u bytes of alignment were promised", "ABCD"[i],
                  (unsigned long long)at[i], chosen -> align[i]);
  if (p->workspace_at % 16) mock_misuse("the workspace is not aligned to 16 bytes");
  Columns d = columns_of(p, &p->d, p->d_at);
  Columns room = {p->workspace_at, 1, (int64_t)p->workspace, 0};
  bool meets_room = p->workspace && columns_meet(d, room);
  if (columns_meet(d, columns_of(p, &p->a, p->a_at)) ||
      columns_meet(d, columns_of(p, &p->b, p->b_at)) || meets_room)
    mock_misuse("the result of a product lies over %s",
                meets_room ? "the workspace" : "an operand");
  if (p->beta == 0 && p->c_at != p->d_at) mock_misuse("C is given and not used");
}

/* Checks a product's first call, which loads its kernel. A capture does not allow that. */
static void check_first_use(uint64_t problem, bool capturing)
{
  for (unsigned i = 0; i < n_used; i++)
    if (used[i] == problem) return;
  if (capturing) mock_misuse("a product is called for the first time while a stream captures");
  if (n_used < MOST_USED) used[n_used++] = problem;
}

LtStatus cublasLtMatmul(LtHandle handle, LtMatmul matmul, const void *alpha, const void *a,
                        LtLayout a_layout, const void *b, LtLayout b_layout, const void *beta,
                        const void *c, LtLayout c_layout, void *d, LtLayout d_layout,
                        const LtAlgorithm *algorithm, void *workspace, size_t workspace_bytes,
                        CuStream stream)
{
  BLAS_ENTER();
  Product p;
  Chosen chosen;
  if (!handle || !matmul || !alpha || !beta || !a || !b || !c || !d)
    return mock_refuse(INVALID_VALUE, "a product without operands");
  LtStatus status = read_product(matmul, a_layout, b_layout, c_layout, d_layout, &p);
  if (status) return status;
  if (!algorithm) mock_misuse("a product without an algorithm looks for one at every call");
  memcpy(&chosen, algorithm, sizeof chosen);
  if (chosen.problem != problem_of(&p)) mock_misuse("the algorithm is that of another product");
  if (p.bias && !matmul->bias) return mock_refuse(INVALID_VALUE, "no bias");
  if (p.bias && (uint64_t)matmul->bias % BIAS_ALIGN)
    return mock_refuse(CUBLAS_STATUS_NOT_SUPPORTED, "a bias that is not aligned to 16 bytes");
  if (chosen.rank < mock_setting("MOCK_BLAS_UNFIT", 0)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (++called == mock_setting("MOCK_BLAS_FAIL", 0)) return EXECUTION_FAILED;
  if (chosen.workspace > workspace_bytes || (chosen.workspace && !workspace))
    return mock_refuse(INVALID_VALUE, "the algorithm needs a workspace of %llu bytes, %zu given",
                       (unsigned long long)chosen.workspace, workspace ? workspace_bytes : 0);
  p.alpha = p.wide ? *(const double *)alpha : (double)*(const float *)alpha;
  p.beta = p.wide ? *(const double *)beta : (double)*(const float *)beta;
  p.a_at = (uint64_t)a, p.b_at = (uint64_t)b, p.c_at = (uint64_t)c, p.d_at = (uint64_t)d;
  p.bias_at = (uint64_t)matmul->bias;
  p.workspace_at = (uint64_t)workspace;
  p.workspace = chosen.workspace;
  p.keeps_nan = chosen.rank >= mock_setting("MOCK_BLAS_LOSE", 0);
  check_pointers(&p, &chosen);
  check_first_use(chosen.problem + (uint64_t)chosen.rank, mock_is_capturing(stream));
  mock_add(COUNT_library_calls, 1);
  CuResult queued = mock_queue_library(stream, "a product", product_run, &p, sizeof p);
  return queued ? EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}
