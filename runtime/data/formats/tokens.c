/* Tokens: numbers as u8, u16 or i32, little-endian. A file may begin as llm.c's shards do, with a
 * header of 256 i32: a magic number, the version, the number of tokens. A sample is a window of
 * `length` tokens as i32. Windows share their ends: the last token of one is the first of the next,
 * so that inputs [:, :-1] and targets [:, 1:] contain all tokens once. n tokens form (n - 1) /
 * (length - 1) windows. With `random` a window begins anywhere in the used tokens. A file named
 * *.gz is unpacked. */
#include <assert.h>
#include <string.h>
#include "args.h"
#include "array.h"
#include "common/number.h"
#include "window.h"

static const struct {
  const char *name;
  ElementType type;
} types[] = {{"u8", {ELEMENT_UNSIGNED, 1, false}},
             {"u16", {ELEMENT_UNSIGNED, 2, false}},
             {"i32", {ELEMENT_SIGNED, 4, false}}};

static void read_arguments(const char *args, ampc_array *out)
{
  char name[16] = "";
  args_text(args, "format", name, sizeof name);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(types[i].name, name) == 0) out->type = types[i].type;
  assert(out->type.size); /* the signature of tokens() lists the formats */
  out->is = (ampc_header){.dtype = AMPC_I32, .rank = 1, .dim = {args_integer(args, "length")}};
  out->step = out->is.dim[0] - 1;
}

/* ---- llm.c's shards ---- */

enum { SHARD_BYTES = 1024, SHARD_MARK = 20240520, SHARD_VERSION = 1 };
/* The magic number of llm.c's other shards, with tokens of 32 bits and version 7. */
enum { WIDE_MARK = 20240801 };

static int32_t word_at(const uint8_t *b)
{
  return (int32_t)((uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
                   (uint32_t)b[3] << 24);
}

/* Checks a header of llm.c. The first half of its magic number, 55432, is not a GPT-2 token, so a
 * file of GPT-2 tokens without a header never begins with it. */
static ampc_status check_shard(const char *path, const uint8_t *head, int64_t bytes, int64_t *count)
{
  int32_t version = word_at(head + 4);
  *count = word_at(head + 8);
  if (version != SHARD_VERSION)
    return ampc_fail(
        AMPC_BAD_FILE,
        "%s is an llm.c shard of version %d; only version 1, with 16-bit tokens, can be read", path,
        (int)version);
  if (*count < 1 || *count > bytes / 2 || bytes != *count * 2)
    return ampc_fail(
        AMPC_BAD_FILE,
        "%s is an llm.c shard of %lld tokens, but %lld bytes follow its header, expected %lld",
        path, (long long)*count, (long long)bytes, (long long)*count * 2);
  return AMPC_OK;
}

/* Sets *before to the bytes before the tokens in a file of `size` bytes: 0, or a header's. */
static ampc_status read_shard(const DataFile *file, ElementType type, int64_t size, int64_t *before)
{
  const char *path = file->path;
  uint8_t head[12];
  int64_t count;
  Bytes b;
  *before = 0;
  if (size < (int64_t)sizeof head || type.size == 1) return AMPC_OK;
  ampc_status status = bytes_open(file, 0, sizeof head, false, &b);
  if (status) return status;
  status = bytes_read(&b, 0, sizeof head, head);
  bytes_close(&b);
  if (status) return status;
  int32_t mark = word_at(head);
  bool shard = mark == SHARD_MARK, wide = mark == WIDE_MARK && word_at(head + 4) == 7;
  if (!shard && !wide) return AMPC_OK;
  if (wide || type.size != 2)
    return ampc_fail(AMPC_BAD_FILE,
                     wide
                         ? "%s is an llm.c shard with 32-bit tokens; only 16-bit tokens can be read"
                         : "%s is an llm.c shard, so its tokens need `format=\"u16\"`",
                     path);
  *before = SHARD_BYTES;
  if (size < SHARD_BYTES)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s is truncated: it begins like an llm.c shard, whose header has %d bytes, "
                     "but it has only %lld",
                     path, SHARD_BYTES, (long long)size);
  return check_shard(path, head, size - SHARD_BYTES, &count);
}

/* ---- the file ---- */

static ampc_status locate(const char *path, const char *args, bool contents, ampc_array *out)
{
  const DataFile file = {path, "tokens", true};
  int64_t size, before;
  read_arguments(args, out);
  if (!path) return AMPC_OK;
  ampc_status status = bytes_count(&file, &size);
  if (!status) status = read_shard(&file, out->type, size, &before);
  if (status) return status;
  size -= before;
  if (size % out->type.size)
    return ampc_fail(AMPC_BAD_FILE, "%s has %lld bytes, which are not whole tokens of %d bytes",
                     path, (long long)size, out->type.size);
  int64_t tokens = size / out->type.size;
  out->is.samples = window_count((Window){out->is.dim[0], out->step}, tokens);
  if (out->is.samples < 1)
    return ampc_fail(AMPC_BAD_FILE, "%s has %lld tokens, less than one window of %lld", path,
                     (long long)tokens, (long long)out->is.dim[0]);
  return contents ? bytes_open(&file, before, size, true, &out->bytes) : AMPC_OK;
}

ARRAY_FORMAT(TOKENS, tokens, .types = {AMPC_I32}, .n_types = 1, .draws = true, .known = true);
