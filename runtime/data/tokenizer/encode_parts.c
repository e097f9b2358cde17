/* Texts of several parts, such as the turns of a chat, encoded as one text. */
#include <stdlib.h>
#include <string.h>
#include "parts.h"

bool marks_plain(const Marks *m, const char *at, size_t n)
{
  if (!m) return false;
  bool inside = at >= m->text && at + n <= m->text + m->n;
  return !inside || memchr(m->plain + (at - m->text), 1, n);
}

ampc_status marks_end(const Tokenizer *t, const char *end)
{
  const Marks *m = t->marks;
  if (!m || !m->ends || end < m->text || end > m->text + m->n) return AMPC_OK;
  ampc_status status = tokenizer_append(m->ends, (uint32_t)(end - m->text));
  return status ? status : tokenizer_append(m->ends, (uint32_t)t->out->n);
}

/* Finds the first id that byte `at` of the text decides: encodes the text before it, from the last
 * special token on, and compares. */
static ampc_status find_first(Tokenizer *t, const Ids *all, size_t begun, size_t at, size_t *first)
{
  const Ids *ends = t->marks->ends;
  size_t from = 0, same = 0;
  *first = begun;
  for (size_t i = 0; i < ends->n && ends->at[i] <= at; i += 2) {
    from = ends->at[i];
    *first = ends->at[i + 1];
  }
  if (at == t->marks->n) *first = all->n;
  if (from == at || at == t->marks->n) return AMPC_OK;
  Marks marks = *t->marks;
  const Marks *before = t->marks;
  Ids ids = {0};
  marks.ends = NULL;
  t->marks = &marks;
  t->out = &ids;
  ampc_status status =
      added_split(t, false, false, (View){marks.text + from, at - from, from == 0});
  while (same < ids.n && *first + same < all->n && ids.at[same] == all->at[*first + same]) same++;
  *first += same;
  t->marks = before;
  free(ids.at);
  return status;
}

static ampc_status encode_marked(Tokenizer *t, TextPart *parts, size_t n, Ids *out)
{
  size_t begun = out->n, at = 0;
  t->out = out;
  ampc_status status = added_split(t, false, false, (View){t->marks->text, t->marks->n, true});
  for (size_t i = 0; i < n && !status; i++) {
    if (parts[i].placed) status = find_first(t, out, begun, at, &parts[i].first);
    at += parts[i].n;
  }
  return status;
}

ampc_status tokenizer_encode_parts(Tokenizer *t, TextPart *parts, size_t n, Ids *out)
{
  size_t size = 0, at = 0;
  Ids ends = {0};
  for (size_t i = 0; i < n; i++) size += parts[i].n;
  char *text = size < UINT32_MAX ? malloc(2 * size + 1) : NULL;
  if (!text) return out_of_memory(t);
  for (size_t i = 0; i < n; at += parts[i++].n) {
    memcpy(text + at, parts[i].at, parts[i].n);
    memset(text + size + at, parts[i].plain, parts[i].n);
  }
  t->marks = &(Marks){text, text + size, size, &ends};
  ampc_status status = text_check(text, size);
  if (!status) status = encode_marked(t, parts, n, out);
  t->marks = NULL;
  if (status) forget_failures(t);
  free(ends.at);
  free(text);
  return status;
}
