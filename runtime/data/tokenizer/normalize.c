/* Normalizers: each makes one text of another. */
#include <stdlib.h>
#include <string.h>
#include "parts.h"

/* Calls `each` for every character. */
#define FOR_CHARACTERS(in, c, i, size)                                                             \
  for (size_t i = 0, size; i < (in)->n; i += size)                                                 \
    for (int32_t c = char_at((in)->at + i, (in)->n - i, &size), once = 1; once; once = 0)

/* Copies the characters that `remove` does not hold for. */
static void copy_without(CharTest *remove, const Str *in, Str *out)
{
  out->begins = in->begins && in->n;
  FOR_CHARACTERS(in, c, i, size)
  {
    if (!remove(c))
      str_add(out, in->at + i, size);
    else if (i == 0)
      out->begins = false;
  }
}

static void strip_accents(const Part *p, const Str *in, Str *out)
{
  (void)p;
  copy_without(is_mark, in, out);
}

static void normal_form(const Part *p, const Str *in, Str *out)
{
  static const char *const names[] = {"NFC", "NFD", "NFKC", "NFKD"};
  int form = FORM_c;
  while (strcmp(names[form], p->kind->type) != 0) form++;
  out->begins = in->begins;
  form_add(out, in->at, in->n, form);
}

static void lowercase(const Part *p, const Str *in, Str *out)
{
  (void)p;
  out->begins = in->begins;
  FOR_CHARACTERS(in, c, i, size) lower_add(out, c);
}

/* ---- BERT ---- */

static bool is_chinese(int32_t c)
{
  static const int32_t blocks[][2] = {{0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0x20000, 0x2a6df},
                                      {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf},
                                      {0xf900, 0xfaff},   {0x2f800, 0x2fa1f}};
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
    if (c >= blocks[i][0] && c <= blocks[i][1]) return true;
  return false;
}

static void bert_clean(const Part *p, const Str *in, Str *out)
{
  out->begins = in->begins;
  FOR_CHARACTERS(in, c, i, size)
  {
    bool blank = p->clean && is_blank(c), apart = p->chinese && is_chinese(c);
    if (p->clean && is_removed(c)) {
      if (i == 0) out->begins = false;
      continue;
    }
    if (apart) str_add(out, " ", 1);
    if (blank)
      str_add(out, " ", 1);
    else
      str_add(out, in->at + i, size);
    if (apart) str_add(out, " ", 1);
  }
}

static void bert(const Part *p, const Str *in, Str *out)
{
  Str clean = {0}, apart = {0};
  bert_clean(p, in, &clean);
  if (p->accents < 0 ? p->lowercase : p->accents) {
    apart.begins = clean.begins;
    form_add(&apart, clean.at, clean.n, FORM_d);
    str_clear(&clean);
    copy_without(is_nonspacing, &apart, &clean);
  }
  if (p->lowercase)
    lowercase(p, &clean, out);
  else {
    out->begins = clean.begins;
    str_add(out, clean.at, clean.n);
  }
  out->failed |= clean.failed || apart.failed;
  free(clean.at);
  free(apart.at);
}

/* ---- others ---- */

static void strip(const Part *p, const Str *in, Str *out)
{
  size_t from = 0, end = in->n, size, last;
  while (p->left && from < end && is_blank(char_at(in->at + from, end - from, &size))) from += size;
  while (p->right && end > from) {
    for (last = end - 1; (in->at[last] & 0xc0) == 0x80;) last--;
    if (!is_blank(char_at(in->at + last, end - last, &size))) break;
    end = last;
  }
  out->begins = in->begins && from == 0;
  str_add(out, in->at + from, end - from);
}

static void nmt(const Part *p, const Str *in, Str *out)
{
  static const int32_t blanks[] = {'\t',   '\n',   '\f',   '\r',   0x1680,
                                   0x2028, 0x2029, 0x2581, 0xfeff, 0xfffd};
  (void)p;
  out->begins = in->begins;
  FOR_CHARACTERS(in, c, i, size)
  {
    bool blank = c >= 0x200b && c <= 0x200f;
    for (size_t j = 0; j < sizeof blanks / sizeof *blanks; j++) blank |= c == blanks[j];
    bool removed = (c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f ||
                   c == 0x8f || c == 0x9f;
    if (blank)
      str_add(out, " ", 1);
    else if (!removed)
      str_add(out, in->at + i, size);
    else if (i == 0)
      out->begins = false;
  }
}

/* The library replaces each grapheme, if it is short, by what the table has for its shortest
 * beginning, and otherwise each character. */
static void precompiled(const Part *p, const Str *in, Str *out)
{
  size_t size, one;
  Span to;
  out->begins = in->begins;
  for (size_t i = 0; i < in->n; i += size) {
    size = grapheme_size(in->at + i, in->n - i);
    if (size < 6 && charsmap_find(&p->map, in->at + i, size, false, &to)) {
      str_span(out, to);
      continue;
    }
    for (size_t j = i; j < i + size; j += one) {
      char_at(in->at + j, i + size - j, &one);
      if (charsmap_find(&p->map, in->at + j, one, false, &to))
        str_span(out, to);
      else
        str_add(out, in->at + j, one);
    }
  }
}

void replace_matches(const Part *p, const Str *in, Str *out)
{
  Found f = {0};
  bool more;
  size_t done = 0, size;
  out->begins = in->begins;
  while (in->n) {
    if (pattern_next(p->pattern, str_view(in), &f, &more)) out->failed = true;
    if (out->failed || !more) break;
    str_add(out, in->at + done, f.from - done);
    str_span(out, p->content);
    done = f.end;
    if (f.from || !f.end) continue;
    char_at(in->at, in->n, &size); /* the new text stands for the last character of the match */
    if (!p->content.n || size < f.end) out->begins = false;
  }
  str_add(out, in->at + done, in->n - done);
}

static void prepend(const Part *p, const Str *in, Str *out)
{
  out->begins = in->begins;
  if (in->n) str_span(out, p->prefix);
  str_add(out, in->at, in->n);
}

static void byte_level(const Part *p, const Str *in, Str *out)
{
  (void)p;
  out->begins = in->begins;
  byte_level_add(out, str_view(in));
}

static const PartField bert_fields[] = {
    {"clean_text", FIELD_flag, AT(clean)},
    {"handle_chinese_chars", FIELD_flag, AT(chinese)},
    {"strip_accents", FIELD_choice, AT(accents), .optional = true},
    {"lowercase", FIELD_flag, AT(lowercase)},
    {0}};
static const PartField strip_fields[] = {
    {"strip_left", FIELD_flag, AT(left)}, {"strip_right", FIELD_flag, AT(right)}, {0}};
static const PartField map_fields[] = {{"precompiled_charsmap", FIELD_map, AT(map)}, {0}};
const PartField replace_fields[] = {
    {"pattern", FIELD_pattern, AT(pattern)}, {"content", FIELD_text, AT(content)}, {0}};
static const PartField prepend_fields[] = {{"prepend", FIELD_text, AT(prefix)}, {0}};

const PartKind normalizers[] = {{"BertNormalizer", bert_fields, .normalize = bert},
                                {"Strip", strip_fields, .normalize = strip},
                                {"StripAccents", .normalize = strip_accents},
                                {"NFC", .normalize = normal_form},
                                {"NFD", .normalize = normal_form},
                                {"NFKC", .normalize = normal_form},
                                {"NFKD", .normalize = normal_form},
                                {"Lowercase", .normalize = lowercase},
                                {"Nmt", .normalize = nmt},
                                {"Precompiled", map_fields, .normalize = precompiled},
                                {"Replace", replace_fields, .normalize = replace_matches},
                                {"Prepend", prepend_fields, .normalize = prepend},
                                {"ByteLevel", .normalize = byte_level},
                                {0}};

ampc_status normalize_all(Tokenizer *t, Str *text, Str *other)
{
  size_t most = 64 * text->n + (1 << 20); /* so that no file fills the memory */
  for (size_t i = 0; i < t->normalize.n; i++) {
    const Part *p = &t->normalize.at[i];
    str_clear(other);
    other->most = most;
    p->kind->normalize(p, text, other);
    str_swap(text, other);
    if (text->failed)
      return ampc_fail(AMPC_BAD_FILE,
                       "%s: normalizers failed: they make over 64 times the text, a "
                       "pattern takes too long, or memory ran out",
                       t->name);
  }
  text->most = other->most = 0;
  return AMPC_OK;
}

/* ---- sentencepiece ---- */

static Span piece_prefix(const Tokenizer *t, View text, size_t *used)
{
  uint32_t id;
  Span to;
  const Charsmap *map = &t->normalize.at[0].map;
  if ((*used = trie_longest(&t->user, text.at, text.n, &id))) return (Span){text.at, *used};
  if ((*used = charsmap_find(map, text.at, text.n, true, &to))) return to;
  char_at(text.at, text.n, used);
  return (Span){text.at, *used};
}

/* Skips the blanks that a text begins with. */
static size_t skip_blanks(const Tokenizer *t, View text)
{
  size_t used, i = 0;
  while (t->trim_blanks && i < text.n) {
    Span to = piece_prefix(t, (View){text.at + i, text.n - i, false}, &used);
    if (to.n != 1 || *to.at != ' ') break;
    i += used;
  }
  return i;
}

static void add_marked(Str *out, Span text)
{
  for (size_t i = 0; i < text.n; i++)
    if (text.at[i] == ' ')
      str_add(out, "\u2581", 3);
    else
      str_add(out, text.at + i, 1);
}

void pieces_normalize(Tokenizer *t, View text, Str *out)
{
  bool after_blank = t->trim_blanks;
  size_t used, i = skip_blanks(t, text);
  if (i < text.n && t->dummy_prefix) str_add(out, "\u2581", 3);
  for (; i < text.n; i += used) {
    Span to = piece_prefix(t, (View){text.at + i, text.n - i, false}, &used);
    while (after_blank && to.n && *to.at == ' ') to.at++, to.n--;
    add_marked(out, to);
    if (to.n) after_blank = t->trim_blanks && to.at[to.n - 1] == ' ';
  }
  while (t->trim_blanks && out->n >= 3 && memcmp(out->at + out->n - 3, "\u2581", 3) == 0)
    out->n -= 3;
}
