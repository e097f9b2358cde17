/* Built-ins for the layer library that search lists and texts. If these built-ins were written in
 * the language, each element would cost several statements, and einsum searches its labels many
 * times. */
#include "elaborate.h"
#include <string.h>

static bool count_compared(Lower *l, uint32_t left, Span span)
{
  return count_work(l, (UINT32_MAX - left) / ELEMENTS_PER_WORK, span);
}

static int64_t find_in(Datum list, Datum x, uint32_t *left)
{
  for (uint32_t i = 0; i < list.n; i++)
    if (d_equal(list.as.list[i], x, left)) return i;
  return -1;
}

/* Runs _find(items, x): returns the first position of x in a list or a text, or -1. */
static Datum run_find(Lower *l, Args *args)
{
  Datum in = args->at.at[0].value, x = args->at.at[1].value;
  uint32_t left = UINT32_MAX;
  int64_t at;
  if (in.kind == D_str) {
    const char *found = strstr(in.as.text, x.as.text);
    left -= in.n;
    at = found ? found - in.as.text : -1;
  } else {
    at = find_in(in, x, &left);
  }
  return count_compared(l, left, args->span) ? d_int(at) : d_of(D_error);
}

/* Runs _without(items, gone): returns the elements of `items` that are not in `gone`. */
static Datum run_without(Lower *l, Args *args)
{
  Datum items = args->at.at[0].value, gone = args->at.at[1].value;
  DatumVec rest = {0};
  uint32_t left = UINT32_MAX;
  for (uint32_t i = 0; i < items.n; i++)
    if (find_in(gone, items.as.list[i], &left) < 0) vec_push(l->arena, &rest, items.as.list[i]);
  return count_compared(l, left, args->span) ? d_list_of(l, &rest) : d_of(D_error);
}

/* Runs _split(text, separator): returns the pieces of `text` between its separators. */
static Datum run_split(Lower *l, Args *args)
{
  DatumVec parts = {0};
  const char *text = args->at.at[0].value.as.text, *separator = args->at.at[1].value.as.text, *end;
  if (!count_work(l, args->at.at[0].value.n / BYTES_PER_WORK, args->span)) return d_of(D_error);
  for (; (end = strstr(text, separator)); text = end + strlen(separator))
    vec_push(l->arena, &parts, d_str(arena_printf(l->arena, "%.*s", (int)(end - text), text)));
  vec_push(l->arena, &parts, d_str(text));
  return d_list_of(l, &parts);
}

const Native list_natives[] = {
    {"find", 2, 2, .internal = true, .run = run_find},
    {"without", 2, 2, .internal = true, .run = run_without},
    {"split", 2, 2, .internal = true, .run = run_split},
    {0},
};
