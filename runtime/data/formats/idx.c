/* IDX files, the format of MNIST: two zero bytes, a type, the number of axes, one big-endian u32
 * per axis, then the elements, big-endian. The first axis counts the samples. Often gzipped.
 *
 *   00 00 08 03  00 00 ea 60  00 00 00 1c  00 00 00 1c  ...     60000 images of 28 x 28 bytes */
#include "array.h"
#include "header.h"
#include "stream.h"

/* All types of IDX. */
static const struct {
  uint8_t code;
  ElementType type;
} types[] = {
    {0x08, {ELEMENT_UNSIGNED, 1, false}}, {0x09, {ELEMENT_SIGNED, 1, false}},
    {0x0b, {ELEMENT_SIGNED, 2, true}},    {0x0c, {ELEMENT_SIGNED, 4, true}},
    {0x0d, {ELEMENT_FLOAT, 4, true}},     {0x0e, {ELEMENT_FLOAT, 8, true}},
};

/* Reads the four bytes 00 00 TT RR and sets the type and the rank of a sample. */
static ampc_status read_magic(Stream *s, ampc_array *out)
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
  out->type.kind = ELEMENT_NONE;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].code == magic[2]) out->type = types[i].type;
  if (out->type.kind == ELEMENT_NONE)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s is no IDX file: its elements have type 0x%02x, expected 0x08 (u8), 0x09 "
                     "(i8), 0x0b (i16), 0x0c (i32), 0x0d (f32) or 0x0e (f64)",
                     s->path, magic[2]);
  if (magic[3] < 1 || magic[3] > AMPC_MAX_RANK)
    return ampc_fail(AMPC_BAD_FILE, "%s has %d axes; 1 to %d are read", s->path, magic[3],
                     AMPC_MAX_RANK);
  out->is = (ampc_header){.rank = magic[3] - 1u};
  return array_type(s->path, out->type, &out->is.dtype);
}

/* Reads the whole header and checks that the file can hold these sizes. */
static ampc_status read_header(Stream *s, ampc_array *out)
{
  ampc_status status = read_magic(s, out);
  if (status) return status;
  uint8_t sizes[4 * AMPC_MAX_RANK];
  int64_t want = 4 * ((int64_t)out->is.rank + 1), got, elements;
  status = stream_read(s, sizes, want, &got);
  if (status) return status;
  if (got < want)
    return ampc_fail(AMPC_BAD_FILE, "%s is truncated: its header ends after %d of %d bytes",
                     s->path, 4 + (int)got, 4 + (int)want);
  for (uint32_t i = 0; i <= out->is.rank; i++) {
    const uint8_t *d = sizes + 4 * i;
    int64_t size = (int64_t)d[0] << 24 | (int64_t)d[1] << 16 | (int64_t)d[2] << 8 | (int64_t)d[3];
    *(i ? &out->is.dim[i - 1] : &out->is.samples) = size;
  }
  return header_elements(&out->is, s->path, s->most / out->type.size, &elements);
}

static ampc_status locate(const char *path, const char *args, bool contents, ampc_array *out)
{
  const DataFile file = {path, "an IDX file", false};
  (void)args;
  Stream s;
  ampc_status status = stream_open(&file, &s);
  if (status) return status;
  status = read_header(&s, out);
  stream_close(&s);
  if (status || !contents) return status;
  int64_t header = 4 + 4 * ((int64_t)out->is.rank + 1);
  return bytes_open(&file, header, array_bytes(out), true, &out->bytes);
}

ARRAY_FORMAT(IDX, idx, .types = {AMPC_U8, AMPC_I32, AMPC_F32}, .n_types = 3);
