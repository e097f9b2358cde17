/* Text: files of UTF-8 as the ids of a tokenizer. The files of a pattern are one text after the
 * other. A sample is a window of ids, as in tokens.c. */
#include "args.h"
#include "array.h"
#include "texts.h"
#include "window.h"

static ampc_status locate(const char *path, const char *args, bool contents, ampc_array *out)
{
  char file[TEXTS_PATH];
  TextsEnd end;
  out->type = (ElementType){ELEMENT_SIGNED, 4, false};
  out->is = (ampc_header){.dtype = AMPC_I32, .rank = 1, .dim = {args_integer(args, "length")}};
  out->step = out->is.dim[0] - 1;
  if (!path) return AMPC_OK;
  ampc_status status = texts_find(path, args, file, &end);
  if (status || end.tokens < 0) return status;
  out->is.samples = window_count((Window){out->is.dim[0], out->step}, end.tokens);
  if (out->is.samples < 1)
    return ampc_fail(AMPC_BAD_FILE, "%s has %lld tokens, less than one window of %lld", path,
                     (long long)end.tokens, (long long)out->is.dim[0]);
  if (!contents) return AMPC_OK;
  const DataFile data = {file, "ids", true};
  status = bytes_open(&data, 0, end.tokens * 4, false, &out->bytes);
  out->bytes.path = path;
  return status;
}

ARRAY_FORMAT(TEXT, text, .types = {AMPC_I32}, .n_types = 1, .draws = true, .known = true,
             .packs = true);
