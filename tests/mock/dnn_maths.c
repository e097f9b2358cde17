/* The results of the mock of cuDNN: sums in f32, rounded once, in an order that no other
 * implementation uses. Operands are widened into floats without gaps, whatever their strides:
 * images [n][pixel][channel], weights [tap][k][c]. */
#include "dnn.h"
#include "runtime/base/convert.h"
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 32, POISON = 0xff };

typedef struct Sizes {
  int64_t n, c, k, groups, in, out, taps; /* in, out: pixels; c, k: over all groups */
} Sizes;

static int64_t product(int64_t n, const int64_t *dims)
{
  int64_t p = 1;
  for (int64_t i = 0; i < n; i++) p *= dims[i];
  return p;
}

static Sizes sizes_of(const Convolution *c)
{
  return (Sizes){.n = c->x.dim[0],
                 .c = c->x.dim[1],
                 .k = c->y.dim[1],
                 .groups = c->x.dim[1] / c->w.dim[1],
                 .in = product(c->spatial, c->x.dim + 2),
                 .out = product(c->spatial, c->y.dim + 2),
                 .taps = product(c->spatial, c->w.dim + 2)};
}

static float *floats(int64_t n)
{
  float *p = calloc((size_t)n + CHUNK, sizeof *p);
  if (!p) mock_misuse("out of memory for a convolution");
  return p;
}

/* Returns the offset of element (a, b, pixel) of a tensor. */
static int64_t offset_of(const Tensor *t, int64_t a, int64_t b, int64_t pixel)
{
  int64_t at = a * t->stride[0] + b * t->stride[1];
  for (int64_t i = t->n; i-- > 2; pixel /= t->dim[i]) at += pixel % t->dim[i] * t->stride[i];
  return at;
}

/* Copies elements between the device's bytes and floats [a][pixel][b] or [pixel][a][b]. */
static void walk(const Tensor *t, char *bytes, float *flat, bool pixel_first, bool store)
{
  int64_t pixels = product(t->n - 2, t->dim + 2), size = ampc_dtype_size(t->type);
  for (int64_t a = 0; a < t->dim[0]; a++)
    for (int64_t p = 0; p < pixels; p++) {
      float *line = flat + (pixel_first ? p * t->dim[0] + a : a * pixels + p) * t->dim[1];
      char *at = bytes + offset_of(t, a, 0, p) * size;
      if (t->stride[1] == 1) {
        if (store)
          convert_narrow(t->type, line, at, t->dim[1]);
        else
          convert_widen(t->type, at, line, t->dim[1]);
        continue;
      }
      for (int64_t b = 0; b < t->dim[1]; b++, at += t->stride[1] * size)
        if (store)
          convert_narrow(t->type, line + b, at, 1);
        else
          convert_widen(t->type, at, line + b, 1);
    }
}

static float *load(const Convolution *c, const Tensor *t, void *bytes, bool pixel_first)
{
  int64_t n = product(t->n, t->dim);
  float *flat = floats(n);
  walk(t, bytes, flat, pixel_first, false);
  if (c->tf32) convert_tf32(flat, flat, n);
  return flat;
}

/* Returns the pixel of x that a tap reads for a pixel of y; -1 if it is in the padding. */
UNCHECKED static int64_t seen(const Convolution *c, int64_t out, int64_t tap)
{
  int64_t in = 0, scale = 1;
  for (int64_t i = c->spatial; i-- > 0;) {
    int64_t at =
        out % c->y.dim[2 + i] * c->stride[i] + tap % c->w.dim[2 + i] * c->dilation[i] - c->pad[i];
    if (at < 0 || at >= c->x.dim[2 + i]) return -1;
    in += at * scale;
    scale *= c->x.dim[2 + i];
    out /= c->y.dim[2 + i];
    tap /= c->w.dim[2 + i];
  }
  return in;
}

/* Adds from[n] w[n][to] to sum[to], in chunks of `to` that stay in registers. */
UNCHECKED static void add_rows(const float *from, int64_t n, const float *w, int64_t step,
                               int64_t to, float *sum)
{
  for (int64_t t = 0; t < to; t += CHUNK) {
    int64_t m = to - t < CHUNK ? to - t : CHUNK;
    float s[CHUNK] = {0};
    if (m == CHUNK) {
      for (int64_t i = n; i-- > 0;)
        for (int j = 0; j < CHUNK; j++) s[j] += from[i] * w[i * step + t + j];
    } else {
      for (int64_t i = n; i-- > 0;)
        for (int64_t j = 0; j < m; j++) s[j] += from[i] * w[i * step + t + j];
    }
    for (int64_t j = 0; j < m; j++) sum[t + j] += s[j];
  }
}

/* Transposes weights [tap][k][c] to [tap][group][c][k of the group]. */
static float *turned(const Sizes *s, const float *w)
{
  int64_t c = s->c / s->groups, k = s->k / s->groups;
  float *out = floats(s->taps * s->k * c);
  for (int64_t t = 0; t < s->taps; t++)
    for (int64_t g = 0; g < s->groups; g++)
      for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < c; j++)
          out[((t * s->groups + g) * c + j) * k + i] = w[(t * s->k + g * k + i) * c + j];
  return out;
}

static void forward(const Convolution *v, const Sizes *s, const float *x, const float *w, float *y)
{
  int64_t c = s->c / s->groups, k = s->k / s->groups;
  float *turn = turned(s, w);
  for (int64_t n = 0; n < s->n; n++)
    for (int64_t o = 0; o < s->out; o++)
      for (int64_t t = s->taps; t-- > 0;) {
        int64_t i = seen(v, o, t);
        for (int64_t g = 0; i >= 0 && g < s->groups; g++)
          add_rows(x + (n * s->in + i) * s->c + g * c, c, turn + (t * s->groups + g) * c * k, k, k,
                   y + (n * s->out + o) * s->k + g * k);
      }
  free(turn);
}

static void data(const Convolution *v, const Sizes *s, float *x, const float *w, const float *y)
{
  int64_t c = s->c / s->groups, k = s->k / s->groups;
  for (int64_t n = 0; n < s->n; n++)
    for (int64_t o = s->out; o-- > 0;)
      for (int64_t t = 0; t < s->taps; t++) {
        int64_t i = seen(v, o, t);
        for (int64_t g = 0; i >= 0 && g < s->groups; g++)
          add_rows(y + (n * s->out + o) * s->k + g * k, k, w + (t * s->k + g * k) * c, c, c,
                   x + (n * s->in + i) * s->c + g * c);
      }
}

UNCHECKED static void weight(const Convolution *v, const Sizes *s, const float *x, float *w,
                             const float *y)
{
  int64_t c = s->c / s->groups, k = s->k / s->groups;
  for (int64_t t = 0; t < s->taps; t++)
    for (int64_t n = s->n; n-- > 0;)
      for (int64_t o = 0; o < s->out; o++) {
        int64_t i = seen(v, o, t);
        const float *from = x + (n * s->in + i) * s->c, *by = y + (n * s->out + o) * s->k;
        for (int64_t f = 0; i >= 0 && f < s->k; f++)
          for (int64_t j = 0; j < c; j++) w[(t * s->k + f) * c + j] += by[f] * from[f / k * c + j];
      }
}

/* Adds one value to each of `sum`. A bias has one value for all pixels. */
static void add(const Convolution *v, void *bytes, bool pixel_first, float *sum)
{
  const Tensor *r = &v->result;
  int64_t pixels = product(r->n - 2, r->dim + 2);
  Tensor all = v->add;
  for (int64_t i = 0; i < all.n; i++)
    if (all.dim[i] == 1) all.stride[i] = 0;
  memcpy(all.dim, r->dim, sizeof all.dim);
  float *more = floats(r->dim[0] * r->dim[1] * pixels);
  walk(&all, bytes, more, pixel_first, false);
  for (int64_t i = 0; i < r->dim[0] * r->dim[1] * pixels; i++) sum[i] += more[i];
  free(more);
}

static void *bytes_at(uint64_t at, const Tensor *t, const char *what)
{
  return mock_device_bytes(at, (size_t)tensor_bytes(t), what);
}

CuResult convolution_run(const void *data_of)
{
  const ConvolutionCall *call = data_of;
  const Convolution *v = call->c;
  Sizes s = sizes_of(v);
  bool is_data = v->operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
  bool is_weight = v->operation == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
  void *result = bytes_at(call->result, &v->result, "result of a convolution");
  void *x = is_data ? result : bytes_at(call->x, &v->x, "x of a convolution");
  void *w = is_weight ? result : bytes_at(call->w, &v->w, "w of a convolution");
  void *y = is_data || is_weight ? bytes_at(call->y, &v->y, "y of a convolution") : result;
  void *more = v->adds ? bytes_at(call->add, &v->add, "what is added to a convolution") : result;
  void *room =
      v->workspace ? mock_device_bytes(call->workspace, (size_t)v->workspace, "workspace") : result;
  if (!result || !x || !w || !y || !more || !room) return MOCK_ILLEGAL_ADDRESS;
  if (v->workspace) memset(room, POISON, (size_t)v->workspace);
  mock_add(COUNT_convolutions_run, 1);
  float *sum = floats(product(v->result.n, v->result.dim));
  if (v->beta != 0) walk(&v->result, result, sum, is_weight, false);
  float *xs = is_data ? sum : load(v, &v->x, x, false);
  float *ws = is_weight ? sum : load(v, &v->w, w, true);
  float *ys = is_data || is_weight ? load(v, &v->y, y, false) : sum;
  if (is_data)
    data(v, &s, xs, ws, ys);
  else if (is_weight)
    weight(v, &s, xs, ws, ys);
  else
    forward(v, &s, xs, ws, ys);
  if (v->adds) add(v, more, is_weight, sum);
  walk(&v->result, result, sum, is_weight, true);
  if (xs != sum) free(xs);
  if (ws != sum) free(ws);
  if (ys != sum) free(ys);
  free(sum);
  return CUDA_SUCCESS;
}
