/* The results of the mock of cuBLASLt: sums in f32 in panels, rounded once after the bias. The
 * order of the sums is neither cuBLASLt's nor the CPU device's, so tests check that the stated
 * error bounds hold for any order. */
#include "blas.h"
#include "runtime/base/convert.h"
#include <stdlib.h>
#include <string.h>

enum { ROWS = 32, COLUMNS = 6, DEPTH = 256, POISON = 0xff };

static int64_t element_bytes(const Product *p, ampc_dtype type)
{
  return p->wide && type == AMPC_F32 ? (int64_t)sizeof(double) : ampc_dtype_size(type);
}

size_t matrix_bytes(const Product *p, const Matrix *m)
{
  int64_t last = (m->batch - 1) * m->stride + (m->columns - 1) * m->ld + m->rows;
  return (size_t)(last * element_bytes(p, m->type));
}

/* Rounds f32 to tf32 as a GPU may do it. MOCK_BLAS_TF32=0: to nearest, ties to even; 1: truncated;
 * 2: to nearest, ties away from zero. */
static void to_tf32(float *x, int64_t n)
{
  long how = mock_setting("MOCK_BLAS_TF32", 0);
  if (how == 0) convert_tf32(x, x, n);
  for (int64_t i = 0; i < n && how != 0; i++) {
    uint32_t bits;
    memcpy(&bits, &x[i], sizeof bits);
    bool finite = (bits >> 23 & 0xff) != 0xff;
    if (finite) bits = (bits + (how == 2 ? 0x1000 : 0)) & ~(uint32_t)0x1fff;
    memcpy(&x[i], &bits, sizeof bits);
  }
}

/* Returns matrix `batch` of m as floats, gapless: [columns][rows]; `transpose`: [rows][columns]. */
static float *unpack(const Matrix *m, const char *bytes, int64_t batch, bool transpose, bool tf32)
{
  int64_t size = ampc_dtype_size(m->type);
  float *out = malloc((size_t)(m->rows * m->columns) * sizeof *out);
  float *column = malloc((size_t)m->rows * sizeof *column);
  if (!out || !column) mock_misuse("out of memory for a product");
  for (int64_t c = 0; c < m->columns; c++) {
    float *to = transpose ? column : out + c * m->rows;
    convert_widen(m->type, bytes + (batch * m->stride + c * m->ld) * size, to, m->rows);
    if (tf32) to_tf32(to, m->rows);
    for (int64_t r = 0; transpose && r < m->rows; r++) out[r * m->columns + c] = to[r];
  }
  free(column);
  return out;
}

/* Adds a[ROWS at a time, k] b[k, COLUMNS] to sum[COLUMNS][ROWS]; a is [k][m], b is [n][k]. Sums
 * from the last term to the first, unlike all other implementations. */
UNCHECKED static void tile(const float *a, int64_t m, const float *b, int64_t b_ld, int64_t k,
                           float sum[COLUMNS][ROWS])
{
  float s[COLUMNS][ROWS] = {{0}};
  for (int64_t i = k; i-- > 0;)
    for (int c = 0; c < COLUMNS; c++)
      for (int r = 0; r < ROWS; r++) s[c][r] += a[i * m + r] * b[c * b_ld + i];
  for (int c = 0; c < COLUMNS; c++)
    for (int r = 0; r < ROWS; r++) sum[c][r] += s[c][r];
}

static int64_t least(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

/* Packs a panel of `depth` rows of A into tiles of ROWS, padded with zeros: [tile][depth][ROWS]. */
static void pack_a(const float *a, int64_t m, int64_t depth, float *out)
{
  for (int64_t r = 0; r < m; r += ROWS)
    for (int64_t i = 0; i < depth; i++, out += ROWS) {
      int64_t n = least(ROWS, m - r);
      memcpy(out, a + i * m + r, (size_t)n * sizeof *out);
      memset(out + n, 0, (size_t)(ROWS - n) * sizeof *out);
    }
}

/* Adds a[k][m] b[n][k] to sum[n][m], for one panel of k. */
static void panel(const Product *p, const float *packed, const float *b, int64_t from,
                  int64_t depth, float *sum)
{
  static const float zeros[DEPTH];
  float room[COLUMNS * DEPTH];
  for (int64_t c = 0; c < p->n; c += COLUMNS) {
    for (int j = 0; j < COLUMNS; j++) {
      const float *column = c + j < p->n ? b + (c + j) * p->k + from : zeros;
      memcpy(room + j * depth, column, (size_t)depth * sizeof *room);
    }
    for (int64_t r = 0; r < p->m; r += ROWS) {
      float s[COLUMNS][ROWS] = {{0}};
      tile(packed + r * depth, ROWS, room, depth, depth, s);
      for (int64_t j = 0; j < least(COLUMNS, p->n - c); j++)
        for (int64_t i = 0; i < least(ROWS, p->m - r); i++) sum[(c + j) * p->m + r + i] += s[j][i];
    }
  }
}

static void multiply(const Product *p, const float *a, const float *b, float *sum)
{
  int64_t tiles = (p->m + ROWS - 1) / ROWS;
  float *packed = malloc((size_t)(tiles * ROWS * DEPTH) * sizeof *packed);
  if (!packed) mock_misuse("out of memory for a product");
  for (int64_t from = 0; from < p->k; from += DEPTH) {
    int64_t depth = least(DEPTH, p->k - from);
    pack_a(a + from * p->m, p->m, depth, packed);
    panel(p, packed, b, from, depth, sum);
  }
  free(packed);
}

static double relu(const Product *p, double x)
{
  return !p->relu || x > 0 || (x != x && p->keeps_nan) ? x : 0;
}

/* Stores alpha sum + beta C + bias, then relu, rounded once. */
static void store(const Product *p, const float *sum, int64_t batch, const char *c,
                  const char *bias, char *d)
{
  float *row = malloc((size_t)p->m * 3 * sizeof *row), *old = row + p->m, *add = old + p->m;
  if (!row) mock_misuse("out of memory for a product");
  if (p->bias) convert_widen(p->bias_type, bias, add, p->m);
  for (int64_t j = 0; j < p->n; j++) {
    if (p->beta != 0)
      convert_widen(p->c.type, c + (batch * p->c.stride + j * p->c.ld) * ampc_dtype_size(p->c.type),
                    old, p->m);
    for (int64_t i = 0; i < p->m; i++) {
      row[i] = (float)p->alpha * sum[j * p->m + i];
      if (p->beta != 0) row[i] += (float)p->beta * old[i];
      if (p->bias) row[i] += add[i];
      row[i] = (float)relu(p, row[i]);
    }
    convert_narrow(p->d.type, row,
                   d + (batch * p->d.stride + j * p->d.ld) * ampc_dtype_size(p->d.type), p->m);
  }
  free(row);
}

static void run_batch(const Product *p, const char *a, const char *b, const char *c,
                      const char *bias, char *d)
{
  float *sum = malloc((size_t)(p->m * p->n) * sizeof *sum);
  if (!sum) mock_misuse("out of memory for a product");
  for (int64_t i = 0; i < p->d.batch; i++) {
    float *x = unpack(&p->a, a, i, p->transpose_a, p->tf32);
    float *y = unpack(&p->b, b, i, p->transpose_b, p->tf32);
    memset(sum, 0, (size_t)(p->m * p->n) * sizeof *sum);
    multiply(p, x, y, sum);
    store(p, sum, i, c, bias, d);
    free(x);
    free(y);
  }
  free(sum);
}

/* Multiplies in double, without blocking: tests use small sizes. */
static void run_wide(const Product *p, const double *a, const double *b, const double *c,
                     const double *bias, double *d)
{
  for (int64_t l = 0; l < p->d.batch; l++)
    for (int64_t j = 0; j < p->n; j++)
      for (int64_t i = 0; i < p->m; i++) {
        const double *x = a + l * p->a.stride + (p->transpose_a ? i * p->a.ld : i);
        const double *y = b + l * p->b.stride + (p->transpose_b ? j : j * p->b.ld);
        int64_t step_x = p->transpose_a ? 1 : p->a.ld, step_y = p->transpose_b ? p->b.ld : 1;
        int64_t at = l * p->d.stride + j * p->d.ld + i;
        double sum = 0;
        for (int64_t k = 0; k < p->k; k++) sum += x[k * step_x] * y[k * step_y];
        d[at] = relu(p, p->alpha * sum + (p->beta != 0 ? p->beta * c[at] : 0) +
                            (p->bias ? bias[i] : 0));
      }
}

CuResult product_run(const void *product)
{
  const Product *p = product;
  void *a = mock_device_bytes(p->a_at, matrix_bytes(p, &p->a), "A of a product");
  void *b = mock_device_bytes(p->b_at, matrix_bytes(p, &p->b), "B of a product");
  void *c = mock_device_bytes(p->c_at, matrix_bytes(p, &p->c), "C of a product");
  void *d = mock_device_bytes(p->d_at, matrix_bytes(p, &p->d), "D of a product");
  size_t bias_bytes = (size_t)(p->m * element_bytes(p, p->bias_type));
  void *bias = p->bias ? mock_device_bytes(p->bias_at, bias_bytes, "bias of a product") : a;
  void *room = p->workspace ? mock_device_bytes(p->workspace_at, p->workspace, "workspace") : d;
  if (!a || !b || !c || !d || !bias || !room) return MOCK_ILLEGAL_ADDRESS;
  if (p->workspace) memset(room, POISON, p->workspace); /* the library may write its workspace */
  mock_add(COUNT_products_run, 1);
  if (p->wide) {
    run_wide(p, a, b, c, bias, d);
  } else {
    run_batch(p, a, b, c, bias, d);
  }
  return CUDA_SUCCESS;
}
