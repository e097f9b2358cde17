/* Pre-tokenizers: each cuts a text into words, and passes these on to the next one. */
#include <string.h>
#include "parts.h"

/* ---- what becomes of the parts of a text that match ---- */

typedef struct Cutting {
  Tokenizer *t;
  size_t stage;
  View text;
  int behavior;
  bool invert;
  bool held, held_match; /* a word that may still grow: from `from` to `end` */
  size_t from, end;
} Cutting;

static ampc_status pass(Tokenizer *t, size_t stage, View text, size_t from, size_t end)
{
  View word = {text.at + from, end - from, text.begins && from == 0};
  return split_on(t, stage + 1, word);
}

static ampc_status pass_held(Cutting *c)
{
  bool held = c->held;
  c->held = false;
  return held ? pass(c->t, c->stage, c->text, c->from, c->end) : AMPC_OK;
}

/* Whether this part joins the held ones. */
static bool joins(const Cutting *c, bool match)
{
  if (c->behavior == BEHAVIOR_contiguous) return c->held && match == c->held_match;
  if (c->behavior == BEHAVIOR_previous) return c->held && match && !c->held_match;
  return c->behavior == BEHAVIOR_next && c->held && c->held_match && !match;
}

/* The next part of the text, from where the last one ended. */
static ampc_status cut(Cutting *c, size_t from, size_t end, bool match)
{
  match ^= c->invert;
  if (c->behavior == BEHAVIOR_removed && match) return AMPC_OK;
  if (joins(c, match)) {
    c->end = end;
    c->held_match = match;
    return AMPC_OK;
  }
  ampc_status status = pass_held(c);
  c->from = from;
  c->end = end;
  c->held_match = match;
  c->held = true;
  return status;
}

static ampc_status cut_by_pattern(Cutting *c, const Pattern *pattern)
{
  Found f = {0};
  bool more;
  size_t done = 0;
  ampc_status status = pattern_next(pattern, c->text, &f, &more);
  while (!status && more) {
    if (f.from > done) status = cut(c, done, f.from, false);
    if (!status) status = cut(c, f.from, f.end, true);
    done = f.end;
    if (!status) status = pattern_next(pattern, c->text, &f, &more);
  }
  if (!status && done < c->text.n) status = cut(c, done, c->text.n, false);
  return status ? status : pass_held(c);
}

static ampc_status cut_by_test(Tokenizer *t, size_t stage, View text, int behavior, CharTest *test)
{
  Cutting c = {t, stage, text, behavior, .held = false};
  ampc_status status = AMPC_OK;
  size_t done = 0, size;
  for (size_t i = 0; i < text.n && !status; i += size) {
    if (!test(char_at(text.at + i, text.n - i, &size))) continue;
    if (i > done) status = cut(&c, done, i, false);
    if (!status) status = cut(&c, i, i + size, true);
    done = i + size;
  }
  if (!status && done < text.n) status = cut(&c, done, text.n, false);
  return status ? status : pass_held(&c);
}

static ampc_status split_by_pattern(Tokenizer *t, size_t stage, View text)
{
  const Part *p = &t->split.at[stage];
  Cutting c = {t, stage, text, p->behavior, p->invert, .held = false};
  return cut_by_pattern(&c, p->pattern);
}

static ampc_status split_at_blanks(Tokenizer *t, size_t stage, View text)
{
  return cut_by_test(t, stage, text, BEHAVIOR_removed, is_blank);
}

static ampc_status split_punctuation(Tokenizer *t, size_t stage, View text)
{
  return cut_by_test(t, stage, text, t->split.at[stage].behavior, is_punctuation);
}

/* Words at blanks; each punctuation is a word. */
static ampc_status split_bert(Tokenizer *t, size_t stage, View text)
{
  ampc_status status = AMPC_OK;
  size_t done = 0, size;
  for (size_t i = 0; i < text.n && !status; i += size) {
    int32_t c = char_at(text.at + i, text.n - i, &size);
    bool blank = is_blank(c), alone = is_punctuation(c);
    if (!blank && !alone) continue;
    status = pass(t, stage, text, done, i);
    if (alone && !status) status = pass(t, stage, text, i, i + size);
    done = i + size;
  }
  return status ? status : pass(t, stage, text, done, text.n);
}

static ampc_status split_digits(Tokenizer *t, size_t stage, View text)
{
  int behavior = t->split.at[stage].single ? BEHAVIOR_isolated : BEHAVIOR_contiguous;
  return cut_by_test(t, stage, text, behavior, is_numeric);
}

static ampc_status split_fixed(Tokenizer *t, size_t stage, View text)
{
  ampc_status status = AMPC_OK;
  for (size_t i = 0, end, size; i < text.n && !status; i = end) {
    int64_t left = t->split.at[stage].start;
    for (end = i; end < text.n && left > 0; end += size, left--)
      char_at(text.at + end, text.n - end, &size);
    status = pass(t, stage, text, i, end);
  }
  return status;
}

/* ---- those that change the text ---- */

static ampc_status split_metaspace(Tokenizer *t, size_t stage, View text)
{
  const Part *p = &t->split.at[stage];
  Str *out = &t->scratch[2 * stage];
  str_clear(out);
  out->begins = text.begins;
  bool has =
      *text.at == ' ' || (text.n >= p->text.n && memcmp(text.at, p->text.at, p->text.n) == 0);
  if (!has && (p->scheme == SCHEME_always || (p->scheme == SCHEME_first && text.begins)))
    str_span(out, p->text);
  for (size_t i = 0, end; i < text.n; i = end) {
    for (end = i; end < text.n && text.at[end] != ' ';) end++;
    str_add(out, text.at + i, end - i);
    if (end < text.n) str_span(out, p->text), end++;
  }
  if (out->failed) return out_of_memory(t);
  if (!p->cut) return split_on(t, stage + 1, str_view(out));
  Cutting c = {t, stage, str_view(out), BEHAVIOR_next, .held = false};
  return cut_by_pattern(&c, p->pattern);
}

/* Passes a word on as characters that stand for its bytes. */
static ampc_status pass_bytes(Tokenizer *t, size_t stage, View word)
{
  Str *out = &t->scratch[2 * stage + 1];
  str_clear(out);
  out->begins = word.begins;
  byte_level_add(out, word);
  return out->failed ? out_of_memory(t) : split_on(t, stage + 1, str_view(out));
}

static ampc_status split_byte_level(Tokenizer *t, size_t stage, View text)
{
  const Part *p = &t->split.at[stage];
  Str *out = &t->scratch[2 * stage];
  if (p->prefix_space && *text.at != ' ') {
    str_clear(out);
    out->begins = text.begins;
    str_add(out, " ", 1);
    str_add(out, text.at, text.n);
    if (out->failed) return out_of_memory(t);
    text = str_view(out);
  }
  if (!p->regex) return pass_bytes(t, stage, text);
  Found f = {0};
  bool more;
  ampc_status status = pattern_next(p->pattern, text, &f, &more);
  while (!status && more) { /* the matches cover the text */
    status = pass_bytes(t, stage, (View){text.at + f.from, f.end - f.from, text.begins && !f.from});
    if (!status) status = pattern_next(p->pattern, text, &f, &more);
  }
  return status;
}

/* ---- the table ---- */

static ampc_status finish_byte_level(Tokenizer *t, const char *path, Part *p)
{
  static const char gpt2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
                             "\\s+(?!\\S)|\\s+";
  Span text = {gpt2, sizeof gpt2 - 1};
  return p->regex ? pattern_compile(t->name, path, PATTERN_foreign, text, &p->pattern) : AMPC_OK;
}

static ampc_status finish_delimiter(Tokenizer *t, const char *path, Part *p)
{
  p->behavior = BEHAVIOR_removed;
  return pattern_compile(t->name, path, PATTERN_literal, p->text, &p->pattern);
}

static ampc_status finish_fixed(Tokenizer *t, const char *path, Part *p)
{
  return p->start ? AMPC_OK : ampc_fail(AMPC_BAD_FILE, "%s: %s.length is 0", t->name, path);
}

/* Words are matched by the library's other engine, for which \w has the joiners, too. */
static ampc_status finish_whitespace(Tokenizer *t, const char *path, Part *p)
{
  static const char words[] = "[" PATTERN_WORD "]+|[^" PATTERN_WORD "\\p{White_Space}]+";
  p->behavior = BEHAVIOR_removed;
  p->invert = true;
  return pattern_compile(t->name, path, PATTERN_own, (Span){words, sizeof words - 1}, &p->pattern);
}

ampc_status finish_metaspace(Tokenizer *t, const char *path, Part *p)
{
  if (p->accents == 0 && p->scheme != SCHEME_never)
    return ampc_fail(AMPC_BAD_FILE,
                     "%s: %s.add_prefix_space is false, but prepend_scheme is not "
                     "\"never\"",
                     t->name, path);
  return finish_delimiter(t, path, p);
}

static const char *const behaviors[] = {"Removed",        "Isolated",   "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous", NULL};
static const char *const schemes[] = {"first", "never", "always", NULL};

static const PartField split_fields[] = {{"pattern", FIELD_pattern, AT(pattern)},
                                         {"behavior", FIELD_word, AT(behavior), .words = behaviors},
                                         {"invert", FIELD_flag, AT(invert)},
                                         {0}};
static const PartField punctuation_fields[] = {
    {"behavior", FIELD_word, AT(behavior), true, BEHAVIOR_isolated, behaviors}, {0}};
static const PartField digits_fields[] = {{"individual_digits", FIELD_flag, AT(single)}, {0}};
static const PartField fixed_fields[] = {{"length", FIELD_count, AT(start), true, 5}, {0}};
static const PartField delimiter_fields[] = {{"delimiter", FIELD_char, AT(text)}, {0}};
const PartField metaspace_fields[] = {
    {"replacement", FIELD_char, AT(text)},
    {"prepend_scheme", FIELD_word, AT(scheme), true, SCHEME_always, schemes},
    {"split", FIELD_flag, AT(cut), true, 1},
    {"add_prefix_space", FIELD_choice, AT(accents), true},
    {"str_rep", FIELD_ignored, .optional = true},
    {0}};
const PartField byte_level_fields[] = {{"add_prefix_space", FIELD_flag, AT(prefix_space)},
                                       {"trim_offsets", .kind = FIELD_ignored},
                                       {"use_regex", FIELD_flag, AT(regex), true, 1},
                                       {0}};

const PartKind pre_tokenizers[] = {
    {"BertPreTokenizer", .split = split_bert},
    {"ByteLevel", byte_level_fields, finish_byte_level, .split = split_byte_level},
    {"Metaspace", metaspace_fields, finish_metaspace, .split = split_metaspace},
    {"Split", split_fields, .split = split_by_pattern},
    {"Whitespace", NULL, finish_whitespace, .split = split_by_pattern},
    {"WhitespaceSplit", .split = split_at_blanks},
    {"Punctuation", punctuation_fields, .split = split_punctuation},
    {"Digits", digits_fields, .split = split_digits},
    {"CharDelimiterSplit", delimiter_fields, finish_delimiter, .split = split_by_pattern},
    {"FixedLength", fixed_fields, finish_fixed, .split = split_fixed},
    {0}};

ampc_status split_on(Tokenizer *t, size_t stage, View text)
{
  if (!text.n) return AMPC_OK;
  if (stage < t->split.n) return t->split.at[stage].kind->split(t, stage, text);
  return t->model.kind->encode(t, text);
}
