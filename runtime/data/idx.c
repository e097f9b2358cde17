/* IDX files, the format of MNIST: two zero bytes, a type, the rank, one big-endian u32 a dimension,
 * then the elements, big-endian. Nothing in the header is believed before it was checked. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include "runtime/base/convert.h"
#include "source.h"

enum { PIECE = 1 << 30, DEFLATE_MOST = 1032 /* bytes out of one byte in */ };

typedef struct IdxType {
  uint8_t code, size;
  ampc_dtype dtype; /* what its elements become */
} IdxType;

static const IdxType types[] = {
    {0x08, 1, AMPC_U8},  {0x09, 1, AMPC_I32}, {0x0b, 2, AMPC_I32},
    {0x0c, 4, AMPC_I32}, {0x0d, 4, AMPC_F32}, {0x0e, 8, AMPC_F32},
};

typedef struct IdxFile {
  gzFile file;
  const char *path;
  int64_t most; /* bytes that can come out of it */
  const IdxType *type;
  uint32_t rank;
  int64_t dim[AMPC_MAX_RANK + 1];
} IdxFile;

/* Reads up to n bytes; fewer only at the end of the file. */
static ampc_status read_bytes(IdxFile *f, void *to, int64_t n, int64_t *out_read)
{
  *out_read = 0;
  while (*out_read < n) {
    int64_t left = n - *out_read;
    int got = gzread(f->file, (char *)to + *out_read, (unsigned)(left < PIECE ? left : PIECE));
    int code = Z_OK;
    const char *why = gzerror(f->file, &code);
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
      if (code == Z_ERRNO) why = strerror(errno);
      if (code == Z_BUF_ERROR) why = "the gzip stream ends too early";
      return ampc_fail(AMPC_BAD_FILE, "%s is truncated or damaged: %s", f->path, why);
    }
    if (got == 0) break;
    *out_read += got;
  }
  return AMPC_OK;
}

static ampc_status read_header(IdxFile *f)
{
  uint8_t magic[4], dims[4 * (AMPC_MAX_RANK + 1)];
  int64_t got;
  ampc_status status = read_bytes(f, magic, 4, &got);
  if (status) return status;
  if (got < 4)
    return ampc_fail(AMPC_BAD_FILE, "%s is truncated: %d bytes are no IDX header", f->path,
                     (int)got);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].code == magic[2]) f->type = &types[i];
  f->rank = magic[3];
  if (magic[0] || magic[1] || !f->type || f->rank < 1 || f->rank > AMPC_MAX_RANK + 1)
    return ampc_fail(
        AMPC_BAD_FILE,
        "%s is no IDX file: its magic is %02x%02x%02x%02x, expected 0000TTRR with type "
        "TT from 08 to 0e and rank RR from 01 to %02x",
        f->path, magic[0], magic[1], magic[2], magic[3], AMPC_MAX_RANK + 1);
  status = read_bytes(f, dims, 4 * (int64_t)f->rank, &got);
  if (status) return status;
  if (got < 4 * (int64_t)f->rank)
    return ampc_fail(AMPC_BAD_FILE, "%s is truncated: its header ends after %d of %d bytes",
                     f->path, 4 + (int)got, 4 + 4 * (int)f->rank);
  for (uint32_t i = 0; i < f->rank; i++) {
    const uint8_t *d = dims + 4 * i;
    f->dim[i] = (int64_t)d[0] << 24 | (int64_t)d[1] << 16 | (int64_t)d[2] << 8 | (int64_t)d[3];
  }
  return AMPC_OK;
}

static const char *type_text(char *to, size_t size, ampc_dtype t, const int64_t *dim, uint32_t rank)
{
  int used = snprintf(to, size, "%s[", ampc_dtype_name(t));
  for (uint32_t i = 0; i < rank; i++)
    used += snprintf(to + used, size - (size_t)used, "%s%lld", i ? ", " : "", (long long)dim[i]);
  snprintf(to + used, size - (size_t)used, "]");
  return to;
}

static ampc_status check_type(const IdxFile *f, const ampc_source *desc)
{
  bool same = f->type->dtype == desc->dtype && f->rank == desc->rank + 1;
  for (uint32_t i = 0; same && i < desc->rank; i++) same = f->dim[i + 1] == desc->dim[i];
  char has[200], wants[200];
  if (!same)
    return ampc_fail(AMPC_BAD_FILE, "%s has samples of type %s, the program was compiled for %s",
                     f->path, type_text(has, sizeof has, f->type->dtype, f->dim + 1, f->rank - 1),
                     type_text(wants, sizeof wants, desc->dtype, desc->dim, desc->rank));
  if (desc->samples && desc->samples != f->dim[0])
    return ampc_fail(AMPC_BAD_FILE,
                     "%s has %lld samples, the program was compiled for %lld: compile it again",
                     f->path, (long long)f->dim[0], (long long)desc->samples);
  return AMPC_OK;
}

/* Elements of the file; an error when it cannot hold as many. */
static ampc_status count_elements(const IdxFile *f, int64_t *out)
{
  int64_t most = f->most / f->type->size, n = 1;
  for (uint32_t i = 0; i < f->rank; i++) {
    if (f->dim[i] == 0)
      return ampc_fail(AMPC_BAD_FILE, "%s is empty: axis %u has size 0", f->path, i);
    if (n > most / f->dim[i])
      return ampc_fail(AMPC_BAD_FILE,
                       "%s is truncated: its header promises more elements than the %lld that a "
                       "file of this size can hold",
                       f->path, (long long)most);
    n *= f->dim[i];
  }
  *out = n;
  return AMPC_OK;
}

static uint64_t big_endian(const uint8_t *from, int size)
{
  uint64_t v = 0;
  for (int i = 0; i < size; i++) v = v << 8 | from[i];
  return v;
}

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

/* From the file's elements to INPUT's. Bytes stay what they are. */
static ampc_status decode(Source *s, const IdxFile *f, uint8_t *raw, int64_t n)
{
  if (f->type->code == 0x08) {
    s->bytes = (char *)raw;
    return AMPC_OK;
  }
  int64_t size = ampc_element_size(s->program, f->type->dtype);
  s->bytes = malloc((size_t)(n * size));
  for (int64_t i = 0; s->bytes && i < n; i++)
    number_store(f->type->dtype, s->program->real64, s->bytes, i,
                 element_value(raw + i * f->type->size, f->type));
  free(raw);
  return s->bytes ? AMPC_OK : ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", s->path);
}

static ampc_status read_elements(Source *s, IdxFile *f)
{
  int64_t n = 0, got;
  ampc_status status = count_elements(f, &n);
  if (status) return status;
  int64_t bytes = n * f->type->size;
  uint8_t *raw = malloc((size_t)bytes), more;
  if (!raw) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", s->path);
  status = read_bytes(f, raw, bytes, &got);
  if (!status && got < bytes)
    status = ampc_fail(AMPC_BAD_FILE, "%s is truncated: it has %lld of %lld bytes of samples",
                       s->path, (long long)got, (long long)bytes);
  if (!status) status = read_bytes(f, &more, 1, &got); /* also has the gzip checksum verified */
  if (!status && got > 0)
    status = ampc_fail(AMPC_BAD_FILE, "%s has more bytes than the %lld samples of its header",
                       s->path, (long long)f->dim[0]);
  if (!status) return decode(s, f, raw, n);
  free(raw);
  return status;
}

ampc_status idx_read(Source *s)
{
  IdxFile f = {.path = s->path};
  struct stat info;
  bool there = stat(s->path, &info) == 0;
  if (there && !S_ISREG(info.st_mode))
    return ampc_fail(AMPC_BAD_FILE, "%s is %s, expected an IDX file", s->path,
                     S_ISDIR(info.st_mode) ? "a folder" : "no regular file");
  f.file = there ? gzopen(s->path, "rb") : NULL;
  if (!f.file) return ampc_fail(AMPC_BAD_FILE, "cannot open %s: %s", s->path, strerror(errno));
  f.most = (int64_t)info.st_size * DEFLATE_MOST;
  gzbuffer(f.file, 1 << 17);
  ampc_status status = read_header(&f);
  if (!status) status = check_type(&f, s->desc);
  if (!status) status = read_elements(s, &f);
  s->samples = f.dim[0];
  gzclose_r(f.file);
  return status;
}
