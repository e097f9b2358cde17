/* Tokens: numbers of words without a header, as u8, u16 or i32, least byte first. A sample is a
 * window of `length` of them as i32, and windows share their ends: the last token of one is the
 * first of the next, so that inputs [:, :-1] and targets [:, 1:] meet all tokens once. n tokens are
 * (n - 1) / (length - 1) windows. With `random` a window begins anywhere within the tokens that are
 * used. A name that ends in .gz is unpacked. */
#include <string.h>
#include "args.h"
#include "array.h"
#include "runtime/plan/number.h"

static const struct {
  const char *name;
  ElementType type;
} types[] = {{"u8", {ELEMENT_UNSIGNED, 1, false}},
             {"u16", {ELEMENT_UNSIGNED, 2, false}},
             {"i32", {ELEMENT_SIGNED, 4, false}}};

static ampc_status read_arguments(const char *args, Array *out)
{
  char name[16] = "";
  args_text(args, "format", name, sizeof name);
  out->type.kind = ELEMENT_NONE;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(types[i].name, name) == 0) out->type = types[i].type;
  if (out->type.kind == ELEMENT_NONE)
    return ampc_fail(AMPC_BAD_USAGE, "`format` of tokens is \"u8\", \"u16\" or \"i32\", got \"%s\"",
                     name);
  out->is = (ampc_header){.dtype = AMPC_I32, .rank = 1, .dim = {args_integer(args, "length")}};
  if (out->is.dim[0] < 2 || out->is.dim[0] > AMPC_MOST_SAMPLES)
    return ampc_fail(AMPC_BAD_USAGE, "`length` of tokens is %lld; a window has at least 2",
                     (long long)out->is.dim[0]);
  out->step = out->is.dim[0] - 1;
  return AMPC_OK;
}

static ampc_status tokens_known(const char *args, ampc_header *out)
{
  Array a = {0};
  ampc_status status = read_arguments(args, &a);
  *out = a.is;
  return status;
}

static ampc_status locate(const char *path, const char *args, bool contents, Array *out)
{
  int64_t size;
  ampc_status status = read_arguments(args, out);
  if (!status) status = bytes_count(path, "tokens", BY_NAME, &size);
  if (status) return status;
  if (size % out->type.size)
    return ampc_fail(AMPC_BAD_FILE, "%s has %lld bytes, which are not whole tokens of %d bytes",
                     path, (long long)size, out->type.size);
  int64_t tokens = size / out->type.size;
  out->is.samples = tokens ? (tokens - 1) / out->step : 0;
  if (out->is.samples < 1)
    return ampc_fail(AMPC_BAD_FILE, "%s has %lld tokens, less than one window of %lld", path,
                     (long long)tokens, (long long)out->is.dim[0]);
  return contents ? bytes_open(path, "tokens", BY_NAME, 0, size, true, &out->bytes) : AMPC_OK;
}

static ampc_status tokens_probe(const char *path, const char *args, ampc_header *out)
{
  return array_probe(locate, path, args, out);
}

static ampc_status tokens_open(const ampc_program *p, const ampc_source *desc, const char *path,
                               uint64_t seed, ampc_reader **out, int64_t *out_samples)
{
  return array_open(locate, p, desc, path, seed, out, out_samples);
}

const ampc_format ampc_format_tokens = {
    .kind = AMPC_SOURCE_TOKENS,
    .name = "tokens",
    .types = {AMPC_I32},
    .n_types = 1,
    .draws = true,
    .known = tokens_known,
    .probe = tokens_probe,
    .open = tokens_open,
    .use = array_use,
    .copy = array_copy,
    .close = array_close,
};
