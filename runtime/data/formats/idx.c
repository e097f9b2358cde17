/* IDX files, the format of MNIST: two zero bytes, a type, the number of axes, one big-endian u32 an
 * axis, then the elements, big-endian. The first axis counts the samples. Often gzipped.
 *
 *   00 00 08 03  00 00 ea 60  00 00 00 1c  00 00 00 1c  ...     60000 images of 28 x 28 bytes */
#include <stdlib.h>
#include <string.h>
#include "header.h"
#include "runtime/base/convert.h"
#include "stream.h"

/* All types of IDX. The language has neither i8 nor i16 nor f64: those integers are widened, which
 * loses nothing, and f64 is rounded to f32. */
typedef struct IdxType {
  uint8_t code, size; /* size: bytes in the file */
  ampc_dtype dtype;   /* in INPUT */
} IdxType;

static const IdxType types[] = {
    {0x08, 1, AMPC_U8},  {0x09, 1, AMPC_I32}, {0x0b, 2, AMPC_I32},
    {0x0c, 4, AMPC_I32}, {0x0d, 4, AMPC_F32}, {0x0e, 8, AMPC_F32},
};

typedef struct IdxHeader {
  const IdxType *type;
  int64_t elements; /* in the file; their bytes fit into int64_t */
  ampc_header is;
} IdxHeader;

struct ampc_reader {
  char *bytes; /* all samples, as they lie in INPUT */
  int64_t sample_bytes;
};

/* ---- the header ---- */

/* The four bytes 00 00 TT RR: fills in the type and the rank of a sample. */
static ampc_status read_magic(Stream *s, IdxHeader *h)
{
  uint8_t magic[4];
  int64_t got;
  ampc_status status = stream_read(s, magic, 4, &got);
  if (status) return status;
  if (got < 4)
    return ampc_fail(AMPC_BAD_FILE, "%s is truncated: %d bytes are no IDX header", s->path,
                     (int)got);
  if (magic[0] || magic[1])
    return ampc_fail(AMPC_BAD_FILE,
                     "%s is no IDX file: its magic is %02x%02x%02x%02x, expected 0000TTRR with "
                     "type TT and rank RR",
                     s->path, magic[0], magic[1], magic[2], magic[3]);
  h->type = NULL;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].code == magic[2]) h->type = &types[i];
  if (!h->type)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s is no IDX file: its elements have type 0x%02x, expected 0x08 (u8), 0x09 "
                     "(i8), 0x0b (i16), 0x0c (i32), 0x0d (f32) or 0x0e (f64)",
                     s->path, magic[2]);
  if (magic[3] < 1 || magic[3] > AMPC_MAX_RANK)
    return ampc_fail(AMPC_BAD_FILE, "%s has %d axes; 1 to %d are read", s->path, magic[3],
                     AMPC_MAX_RANK);
  h->is = (ampc_header){.dtype = h->type->dtype, .rank = magic[3] - 1u};
  return AMPC_OK;
}

/* All of the header; from here on the sizes are ones that the file has room for. */
static ampc_status read_header(Stream *s, IdxHeader *h)
{
  ampc_status status = read_magic(s, h);
  if (status) return status;
  uint8_t sizes[4 * AMPC_MAX_RANK];
  int64_t want = 4 * ((int64_t)h->is.rank + 1), got;
  status = stream_read(s, sizes, want, &got);
  if (status) return status;
  if (got < want)
    return ampc_fail(AMPC_BAD_FILE, "%s is truncated: its header ends after %d of %d bytes",
                     s->path, 4 + (int)got, 4 + (int)want);
  for (uint32_t i = 0; i <= h->is.rank; i++) {
    const uint8_t *d = sizes + 4 * i;
    int64_t size = (int64_t)d[0] << 24 | (int64_t)d[1] << 16 | (int64_t)d[2] << 8 | (int64_t)d[3];
    *(i ? &h->is.dim[i - 1] : &h->is.samples) = size;
  }
  return header_elements(&h->is, s->path, s->most / h->type->size, &h->elements);
}

static ampc_status idx_probe(const char *path, const char *args, ampc_header *out)
{
  (void)args;
  Stream s;
  IdxHeader h;
  ampc_status status = stream_open(path, "an IDX file", &s);
  if (status) return status;
  status = read_header(&s, &h);
  if (!status) *out = h.is;
  stream_close(&s);
  return status;
}

/* ---- the elements ---- */

static uint64_t big_endian(const uint8_t *from, unsigned n)
{
  uint64_t v = 0;
  for (unsigned i = 0; i < n; i++) v = v << 8 | from[i];
  return v;
}

/* Every type but u8. A double holds all of i32 and f32. */
static double element_value(const uint8_t *from, const IdxType *t)
{
  uint64_t bits = big_endian(from, t->size);
  uint32_t bits32 = (uint32_t)bits;
  float f;
  double d;
  switch (t->code) {
  case 0x09:
    return (int8_t)bits;
  case 0x0b:
    return (int16_t)bits;
  case 0x0c:
    return (int32_t)bits;
  case 0x0d:
    memcpy(&f, &bits32, sizeof f);
    return (double)f;
  default:
    memcpy(&d, &bits, sizeof d);
    return d;
  }
}

/* From the file's elements to INPUT's. Takes over `raw`: bytes stay what and where they are. NULL
 * when there is no memory. */
static char *decode(const ampc_program *p, const IdxHeader *h, uint8_t *raw)
{
  if (h->type->code == 0x08) return (char *)raw;
  int64_t size = ampc_element_size(p, h->type->dtype);
  char *out = malloc((size_t)(h->elements * size));
  for (int64_t i = 0; out && i < h->elements; i++)
    number_store(h->type->dtype, p->real64, out, i,
                 element_value(raw + i * h->type->size, h->type));
  free(raw);
  return out;
}

/* Fills raw[bytes] and makes sure that the file ends there. */
static ampc_status read_elements(Stream *s, const IdxHeader *h, uint8_t *raw, int64_t bytes)
{
  int64_t got;
  uint8_t more;
  ampc_status status = stream_read(s, raw, bytes, &got);
  if (!status && got < bytes)
    return ampc_fail(AMPC_BAD_FILE, "%s is truncated: it has %lld of %lld bytes of samples",
                     s->path, (long long)got, (long long)bytes);
  if (!status) status = stream_read(s, &more, 1, &got);
  if (!status && got > 0)
    return ampc_fail(AMPC_BAD_FILE, "%s has more bytes than the %lld samples of its header",
                     s->path, (long long)h->is.samples);
  return status;
}

/* Whole files are decoded once and held: a gzipped one cannot be entered in the middle. */
static ampc_status read_samples(Stream *s, const ampc_program *p, const ampc_source *desc,
                                ampc_reader *r, int64_t *out_samples)
{
  IdxHeader h;
  ampc_status status = read_header(s, &h);
  if (!status) status = header_check(&h.is, s->path, desc);
  if (status) return status;
  int64_t bytes = h.elements * h.type->size;
  uint8_t *raw = malloc((size_t)bytes);
  if (!raw) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", s->path);
  status = read_elements(s, &h, raw, bytes);
  if (status) {
    free(raw);
    return status;
  }
  r->bytes = decode(p, &h, raw);
  r->sample_bytes = h.elements / h.is.samples * ampc_element_size(p, h.is.dtype);
  *out_samples = h.is.samples;
  return r->bytes ? AMPC_OK : ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", s->path);
}

/* ---- the row of the table ---- */

static void idx_close(ampc_reader *r)
{
  if (r) free(r->bytes);
  free(r);
}

static ampc_status idx_open(const ampc_program *p, const ampc_source *desc, const char *path,
                            uint64_t seed, ampc_reader **out, int64_t *out_samples)
{
  (void)seed;
  *out = NULL;
  Stream s;
  ampc_status status = stream_open(path, "an IDX file", &s);
  if (status) return status;
  ampc_reader *r = calloc(1, sizeof *r);
  status = r ? read_samples(&s, p, desc, r, out_samples)
             : ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", path);
  stream_close(&s);
  if (status) {
    idx_close(r);
  } else {
    *out = r;
  }
  return status;
}

static ampc_status idx_copy(const ampc_reader *r, int64_t first, int64_t n, int64_t epoch, void *to)
{
  (void)epoch;
  memcpy(to, r->bytes + first * r->sample_bytes, (size_t)(n * r->sample_bytes));
  return AMPC_OK;
}

const ampc_format ampc_format_idx = {
    .kind = AMPC_SOURCE_IDX,
    .name = "idx",
    .types = {AMPC_U8, AMPC_I32, AMPC_F32},
    .n_types = 3,
    .probe = idx_probe,
    .open = idx_open,
    .copy = idx_copy,
    .close = idx_close,
};
