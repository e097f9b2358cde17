/* Arrays in files. */
#include "array.h"
#include <stdlib.h>
#include <string.h>
#include "args.h"
#include "draw.h"
#include "header.h"
#include "window.h"

enum { BOUNCE = 1 << 14 /* bytes that are converted at a time */ };

struct ampc_reader {
  ampc_array is;
  const ampc_program *program;
  const ampc_source *desc;
  uint64_t seed;
  int64_t elements;    /* elements in a sample */
  int64_t first, used; /* number of the first used sample; number of used samples */
  bool drawn;          /* samples begin anywhere in the used range */
  bool same;           /* elements have the same bytes in the file and in INPUT */
};

ampc_status array_type(const char *path, ElementType t, ampc_dtype *out)
{
  if (element_dtype(t, out)) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE, "%s has elements of type %s%d, which the language lacks: %s",
                   path, t.kind == ELEMENT_UNSIGNED ? "u" : "f", 8 * t.size,
                   t.kind == ELEMENT_UNSIGNED ? "save them as 64-bit signed integers"
                                              : "save them as f32");
}

int64_t array_bytes(const ampc_array *a)
{
  int64_t n = a->is.samples * a->type.size;
  for (uint32_t i = 0; i < a->is.rank; i++) n *= a->is.dim[i];
  return n;
}

/* Finds the elements; a sample is then a row or a window of rows. */
static ampc_status locate(const ampc_format *f, const char *path, const char *args, bool contents,
                          ampc_array *out)
{
  Window w;
  ampc_status status = window_read(args, &w);
  if (!status) status = f->locate(path, args, contents, out);
  if (status || !w.rows) return status;
  out->step = w.stride < out->is.samples ? w.stride : out->is.samples;
  for (uint32_t i = 0; i < out->is.rank; i++) out->step *= out->is.dim[i];
  return window_apply(w, path, &out->is);
}

ampc_status array_probe(const ampc_format *f, const char *path, const char *args, ampc_header *out)
{
  ampc_array a = {.bytes.fd = -1};
  ampc_status status = locate(f, path, args, false, &a);
  if (!status) *out = a.is;
  bytes_close(&a.bytes);
  return status;
}

/* Reverses the bytes of each element in memory, once instead of in every epoch. */
static void turn_round(ampc_array *a)
{
  uint8_t *at = a->bytes.held;
  unsigned size = a->type.size;
  for (uint8_t *end = at + a->bytes.size; at < end; at += size)
    for (unsigned i = 0; i < size / 2; i++) {
      uint8_t byte = at[i];
      at[i] = at[size - 1 - i];
      at[size - 1 - i] = byte;
    }
  a->type.big_endian = false;
}

static void settle(ampc_reader *r)
{
  ampc_array *a = &r->is;
  if (a->type.big_endian && a->bytes.held) turn_round(a);
  r->elements = 1;
  for (uint32_t i = 0; i < a->is.rank; i++) r->elements *= a->is.dim[i];
  if (!a->step) a->step = r->elements;
  r->used = a->is.samples;
  r->drawn = args_integer(r->desc->args, "random") != 0;
  r->same = a->type.kind != ELEMENT_BOOL && !a->type.big_endian &&
            a->type.size == ampc_element_size(r->program, a->is.dtype);
}

ampc_status array_open(const ampc_opening *o, ampc_reader **out, int64_t *out_samples)
{
  const char *path = o->path, *args = o->desc->args;
  *out = NULL;
  ampc_reader *r = calloc(1, sizeof *r);
  if (!r) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  *r = (ampc_reader){.program = o->program, .desc = o->desc, .seed = o->seed, .is.bytes.fd = -1};
  ampc_status status = locate(o->format, path, args, false, &r->is);
  if (!status) status = header_check(&r->is.is, path, o->desc);
  if (!status) status = locate(o->format, path, args, true, &r->is);
  if (status) {
    array_close(r);
    return status;
  }
  settle(r);
  *out_samples = r->is.is.samples;
  *out = r;
  return AMPC_OK;
}

void array_use(ampc_reader *r, int64_t first, int64_t count)
{
  r->first = first;
  r->used = count;
}

/* Copies n elements from element `at` on. */
static ampc_status copy_elements(const ampc_reader *r, int64_t at, int64_t n, char *to)
{
  const ampc_array *a = &r->is;
  int64_t size = a->type.size, piece = BOUNCE / size;
  if (r->same) return bytes_read(&a->bytes, at * size, n * size, to);
  uint8_t bounce[BOUNCE];
  for (int64_t i = 0; i < n; i += piece) {
    int64_t count = n - i < piece ? n - i : piece;
    ampc_status status = bytes_read(&a->bytes, (at + i) * size, count * size, bounce);
    if (status) return status;
    element_copy(r->program, a->type, bounce, count, a->is.dtype,
                 to + i * ampc_element_size(r->program, a->is.dtype));
  }
  return AMPC_OK;
}

/* Returns the first element of a sample. If samples are drawn, it is random: from the first element
 * of the used samples to the last one after which a whole sample follows. */
static int64_t beginning(const ampc_reader *r, int64_t sample, int64_t epoch)
{
  int64_t step = r->is.step;
  if (!r->drawn || epoch == AMPC_AS_STORED) return sample * step;
  int64_t places = (r->used - 1) * step + 1;
  Draw d = draw_begin(r->seed, r->desc->stream, epoch, sample);
  return r->first * step + draw_below(&d, places);
}

ampc_status array_copy(const ampc_reader *r, int64_t first, int64_t n, int64_t epoch, void *to)
{
  int64_t size = r->elements * ampc_element_size(r->program, r->is.is.dtype);
  if (r->is.step == r->elements && !r->drawn)
    return copy_elements(r, first * r->elements, n * r->elements, to);
  for (int64_t i = 0; i < n; i++) {
    ampc_status status =
        copy_elements(r, beginning(r, first + i, epoch), r->elements, (char *)to + i * size);
    if (status) return status;
  }
  return AMPC_OK;
}

void array_close(ampc_reader *r)
{
  if (r) bytes_close(&r->is.bytes);
  free(r);
}
