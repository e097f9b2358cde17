/* Zip archives (PKWARE's APPNOTE 6.3): a directory at the end names the members. Supports zip64,
 * which Python writes for large files, but no encryption and no multi-part archives. */
#include "zip.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum {
  END = 22,     /* bytes of the end record; a comment may follow it */
  LOCATOR = 20, /* bytes of zip64's locator, which is before the end record */
  END64 = 56,   /* bytes of zip64's end record */
  ENTRY = 46,   /* bytes of a directory entry without name, extra field and comment */
  LOCAL = 30,   /* bytes of the header before a member's data, without name and extra field */
  MOST_COMMENT = 65535,
  DEFLATE_MOST = 1032 /* the format's limit: bytes that one byte of input can unpack to */
};
#define MOST_DIRECTORY ((int64_t)256 << 20) /* bytes */

static uint64_t number(const uint8_t *from, int n)
{
  uint64_t v = 0;
  while (n-- > 0) v = v << 8 | from[n];
  return v;
}

static ampc_status damaged(const Bytes *zip, const char *why)
{
  return ampc_fail(AMPC_BAD_FILE, "%s is truncated or damaged: %s", zip->path, why);
}

/* ---- the directory ---- */

/* Reads zip64's separate end record, which has 64-bit sizes. */
static ampc_status read_end64(const Bytes *zip, int64_t end, int64_t *at, int64_t *size,
                              int64_t *members)
{
  uint8_t locator[LOCATOR], record[END64];
  static const char why[] = "its zip64 directory cannot be found";
  if (end < LOCATOR + END64) return damaged(zip, why);
  ampc_status status = bytes_read(zip, end - LOCATOR, LOCATOR, locator);
  if (status) return status;
  uint64_t where = number(locator + 8, 8);
  if (number(locator, 4) != 0x07064b50 || where > (uint64_t)(end - LOCATOR - END64))
    return damaged(zip, why);
  status = bytes_read(zip, (int64_t)where, END64, record);
  if (status) return status;
  uint64_t n = number(record + 32, 8), bytes = number(record + 40, 8),
           from = number(record + 48, 8);
  if (number(record, 4) != 0x06064b50 || from > where || bytes > where - from || n > bytes / ENTRY)
    return damaged(zip, why);
  *at = (int64_t)from;
  *size = (int64_t)bytes;
  *members = (int64_t)n;
  return AMPC_OK;
}

/* Reads the directory that the end record describes. `end` is the offset of `record` in the
 * file. */
static ampc_status read_directory(const Bytes *zip, int64_t end, const uint8_t *record,
                                  ZipDirectory *out)
{
  int64_t members = (int64_t)number(record + 10, 2), size = (int64_t)number(record + 12, 4),
          at = (int64_t)number(record + 16, 4);
  if (number(record + 4, 2) != 0)
    return ampc_fail(AMPC_BAD_FILE, "%s is one part of a multi-part archive; save it as one file",
                     zip->path);
  if (members == 0xffff || size == 0xffffffff || at == 0xffffffff) {
    ampc_status status = read_end64(zip, end, &at, &size, &members);
    if (status) return status;
  }
  if (at > end || size > end - at) return damaged(zip, "its directory lies outside of it");
  if (size > MOST_DIRECTORY)
    return ampc_fail(AMPC_BAD_FILE, "%s has a directory of %lld bytes; up to %lld are read",
                     zip->path, (long long)size, (long long)MOST_DIRECTORY);
  *out = (ZipDirectory){malloc((size_t)size + 1), size, members, json_object()};
  if (!out->bytes || !out->names)
    return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", zip->path);
  return bytes_read(zip, at, size, out->bytes);
}

/* Finds the end record, searching backwards because a comment of any length may follow it. */
static ampc_status find_directory(const Bytes *zip, ZipDirectory *out)
{
  int64_t n = zip->size < END + MOST_COMMENT ? zip->size : END + MOST_COMMENT;
  uint8_t *tail = malloc((size_t)n + 1);
  if (!tail) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", zip->path);
  ampc_status status = bytes_read(zip, zip->size - n, n, tail);
  int64_t i = n - END;
  while (!status && i >= 0 &&
         (number(tail + i, 4) != 0x06054b50 || (int64_t)number(tail + i + 20, 2) != n - END - i))
    i--;
  if (!status && i < 0)
    status = damaged(zip, "it has no directory at its end, as zip archives have");
  if (!status) status = read_directory(zip, zip->size - n + i, tail + i, out);
  free(tail);
  return status;
}

/* ---- one member ---- */

/* Reads sizes and offset of a member. If some of them are 0xffffffff, the extra field with number 1
 * has these as 64-bit numbers, in the order of `value`. */
static bool read_sizes(const uint8_t *e, ZipMember *m)
{
  uint64_t value[3] = {number(e + 24, 4), number(e + 20, 4), number(e + 42, 4)};
  int64_t name = (int64_t)number(e + 28, 2), extra = (int64_t)number(e + 30, 2);
  const uint8_t *at = e + ENTRY + name, *end = at + extra;
  bool wide = value[0] == 0xffffffff || value[1] == 0xffffffff || value[2] == 0xffffffff;
  for (; wide && end - at >= 4; at += 4 + number(at + 2, 2)) {
    const uint8_t *from = at + 4, *stop = from + number(at + 2, 2);
    if (number(at, 2) != 1 || stop > end) continue;
    for (int i = 0; i < 3; i++) {
      if (value[i] != 0xffffffff) continue;
      if (stop - from < 8) return false;
      value[i] = number(from, 8);
      from += 8;
    }
    wide = false;
    break;
  }
  for (int i = 0; i < 3; i++)
    if (value[i] > INT64_MAX / 2) return false;
  *m = (ZipMember){.deflated = number(e + 10, 2) == 8,
                   .crc = (uint32_t)number(e + 16, 4),
                   .at = (int64_t)value[2],
                   .packed = (int64_t)value[1],
                   .size = (int64_t)value[0]};
  return !wide;
}

/* Finds the member's bytes, which follow its own header. */
static ampc_status locate_member(const Bytes *zip, const char *name, const uint8_t *e, ZipMember *m)
{
  uint8_t local[LOCAL];
  int64_t method = (int64_t)number(e + 10, 2);
  if (number(e + 8, 2) & 1) return ampc_fail(AMPC_BAD_FILE, "%s has %s encrypted", zip->path, name);
  if (method != 0 && method != 8)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s has %s compressed by method %lld; stored and deflated are "
                     "read: numpy.savez or savez_compressed",
                     zip->path, name, (long long)method);
  if (!read_sizes(e, m) || zip->size < LOCAL || m->at > zip->size - LOCAL)
    return damaged(zip, "a member lies outside of it");
  ampc_status status = bytes_read(zip, m->at, LOCAL, local);
  if (status) return status;
  if (number(local, 4) != 0x04034b50) return damaged(zip, "a member is not where it should be");
  m->at += LOCAL + (int64_t)number(local + 26, 2) + (int64_t)number(local + 28, 2);
  if (m->at > zip->size || m->packed > zip->size - m->at)
    return damaged(zip, "a member lies outside of it");
  bool lies = m->deflated ? m->size > m->packed * DEFLATE_MOST : m->size != m->packed;
  if (!lies) return AMPC_OK;
  return ampc_fail(AMPC_BAD_FILE, "%s is damaged: %s cannot have %lld bytes, packed into %lld",
                   zip->path, name, (long long)m->size, (long long)m->packed);
}

static ampc_status not_there(const Bytes *zip, const char *name, const char *ending,
                             const ZipDirectory *d)
{
  char list[300] = "";
  size_t used = 0, cut = strlen(ending);
  const uint8_t *e = d->bytes, *end = d->bytes + d->size;
  while (end - e >= ENTRY && used < sizeof list - 8) {
    size_t n = (size_t)number(e + 28, 2);
    if ((size_t)(end - e - ENTRY) < n) break;
    size_t shown = n > cut && memcmp(e + ENTRY + n - cut, ending, cut) == 0 ? n - cut : n;
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%.*s", used ? ", " : "",
                             (int)shown, (const char *)e + ENTRY);
    e += ENTRY + n + number(e + 30, 2) + number(e + 32, 2);
    if (e > end) break;
  }
  return ampc_fail(AMPC_BAD_FILE, "%s has no %.*s; it has %s", zip->path, (int)(strlen(name) - cut),
                   name, *list ? list : "nothing");
}

/* Notes where the entry of a name is; two entries of a name are noted as -1. */
static bool add_name(ZipDirectory *d, const uint8_t *e)
{
  size_t n = (size_t)number(e + 28, 2);
  if (memchr(e + ENTRY, 0, n)) return true; /* nothing asks for such a name */
  char *name = strndup((const char *)e + ENTRY, n);
  json_int_t at = name && json_object_get(d->names, name) ? -1 : (json_int_t)(e - d->bytes);
  bool good = name && json_object_set_new_nocheck(d->names, name, json_integer(at)) == 0;
  free(name);
  return good;
}

ampc_status zip_open(const Bytes *zip, ZipDirectory *out)
{
  *out = (ZipDirectory){0};
  ampc_status status = find_directory(zip, out);
  if (status) return status;
  const uint8_t *e = out->bytes, *end = out->bytes + out->size;
  for (int64_t i = 0; i < out->members; i++) {
    bool whole = end - e >= ENTRY && number(e, 4) == 0x02014b50;
    int64_t size =
        whole ? ENTRY + (int64_t)(number(e + 28, 2) + number(e + 30, 2) + number(e + 32, 2))
              : INT64_MAX;
    if (size > end - e) return damaged(zip, "its directory ends too early");
    if (!add_name(out, e)) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", zip->path);
    e += size;
  }
  return AMPC_OK;
}

ampc_status zip_member(const Bytes *zip, const ZipDirectory *d, const char *name,
                       const char *ending, ZipMember *out)
{
  const json_t *at = json_object_get(d->names, name);
  if (!at) return not_there(zip, name, ending, d);
  if (json_integer_value(at) < 0)
    return ampc_fail(AMPC_BAD_FILE, "%s has two members %s; each name must be unique", zip->path,
                     name);
  return locate_member(zip, name, d->bytes + json_integer_value(at), out);
}

void zip_close(ZipDirectory *d)
{
  free(d->bytes);
  json_decref(d->names);
  *d = (ZipDirectory){0};
}

/* ---- its bytes ---- */

/* Inflates up to n bytes. *out_end: the deflate stream ends after these bytes. */
static ampc_status inflate_member(const Bytes *zip, const ZipMember *m, uint8_t *to, int64_t n,
                                  int64_t *out_read, bool *out_end)
{
  uint8_t in[1 << 14];
  z_stream z = {0};
  int code = inflateInit2(&z, -MAX_WBITS);
  ampc_status status = AMPC_OK;
  int64_t taken = 0, done = 0;
  while (code == Z_OK && done < n && !status) {
    if (!z.avail_in && taken < m->packed) {
      int64_t piece =
          m->packed - taken < (int64_t)sizeof in ? m->packed - taken : (int64_t)sizeof in;
      status = bytes_read(zip, m->at + taken, piece, in);
      taken += piece;
      z.next_in = in;
      z.avail_in = (uInt)piece;
    }
    int64_t room = n - done < 1 << 30 ? n - done : 1 << 30;
    z.next_out = to + done;
    z.avail_out = (uInt)room;
    if (!status) code = inflate(&z, Z_NO_FLUSH);
    done += room - z.avail_out;
  }
  inflateEnd(&z);
  *out_read = done;
  *out_end = code == Z_STREAM_END;
  if (code == Z_MEM_ERROR) return ampc_fail(AMPC_RUN_FAILED, "out of memory reading %s", zip->path);
  if (!status && code != Z_OK && code != Z_STREAM_END)
    status = damaged(zip, code == Z_BUF_ERROR ? "a member ends too early"
                                              : "a member cannot be unpacked");
  return status;
}

ampc_status zip_head(const Bytes *zip, const ZipMember *m, void *to, int64_t n, int64_t *out_read)
{
  bool end;
  if (n > m->size) n = m->size;
  if (m->deflated) return inflate_member(zip, m, to, n, out_read, &end);
  *out_read = n;
  return bytes_read(zip, m->at, n, to);
}

/* Inflates one byte more than the member should have, so that a wrong size is detected. */
ampc_status zip_read(const Bytes *zip, const ZipMember *m, uint8_t **out)
{
  int64_t got = m->size;
  bool end = true;
  *out = malloc((size_t)m->size + 1);
  if (!*out) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", zip->path);
  ampc_status status = m->deflated ? inflate_member(zip, m, *out, m->size + 1, &got, &end)
                                   : bytes_read(zip, m->at, m->size, *out);
  if (!status && (got != m->size || !end))
    status = damaged(zip, "a member's size differs from the directory's");
  uLong sum = crc32(0, NULL, 0);
  for (int64_t at = 0; !status && at < m->size; at += 1 << 30) {
    int64_t piece = m->size - at < 1 << 30 ? m->size - at : 1 << 30;
    sum = crc32(sum, *out + at, (uInt)piece);
  }
  if (!status && sum != m->crc) status = damaged(zip, "the checksum of a member differs");
  if (status) {
    free(*out);
    *out = NULL;
  }
  return status;
}
