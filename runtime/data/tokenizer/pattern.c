/* Regular expressions. The `tokenizers` library matches with Oniguruma, ampc with PCRE2. Their
 * languages differ, so a pattern is translated: only constructs of the table and of translate_...
 * pass, and those that PCRE2 reads otherwise are refused. */
#include <pcre2.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "parts.h"

struct Pattern {
  pcre2_code *code;
  pcre2_match_data *data;
  pcre2_match_context *context;
  pcre2_jit_stack *stack;
};

enum { STACK = 32 << 10, MOST_STACK = 64 << 20 /* bytes */ };

/* ---- translation ---- */

typedef struct Reading {
  const char *at, *end;
  Str out;
  const char *why; /* why the pattern is refused; NULL: it is not */
  bool within;     /* in [] */
} Reading;

/* PCRE2's own \s and \w are other sets than Oniguruma's, whose \w has six more characters outside
 * []. */
#define WORDS "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
#define MORE  "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"
static const struct {
  char letter;
  const char *outside, *within; /* `within` NULL: refused there */
} escapes[] = {{'s', "\\p{White_Space}", "\\p{White_Space}"},
               {'S', "\\P{White_Space}", "\\P{White_Space}"},
               {'d', "\\p{Nd}", "\\p{Nd}"},
               {'D', "\\P{Nd}", "\\P{Nd}"},
               {'w', "[" WORDS MORE "]", WORDS},
               {'W', "[^" WORDS MORE "]", NULL},
               {'n', "\\n", "\\n"},
               {'r', "\\r", "\\r"},
               {'t', "\\t", "\\t"},
               {'v', "\\x0b", "\\x0b"},
               {'f', "\\f", "\\f"}};

static bool begins(const Reading *r, const char *with)
{
  size_t n = strlen(with);
  return (size_t)(r->end - r->at) >= n && memcmp(r->at, with, n) == 0;
}

/* \p{L}, \p{Lu}, \p{Han}: a name of over two letters is a script, which PCRE2 would extend. */
static void translate_property(Reading *r)
{
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
  const char *name = r->at + 3;
  size_t n = 0;
  if (r->end - r->at > 3 && r->at[2] == '{') n = strspn(name, letters);
  if (!n || n >= (size_t)(r->end - name) || name[n] != '}') {
    r->why = "\\p needs a name of letters in braces";
    return;
  }
  str_add(&r->out, r->at, 3);
  if (n > 2) str_add(&r->out, "sc:", 3);
  str_add(&r->out, name, n + 1);
  r->at = name + n + 1;
}

static void translate_escape(Reading *r)
{
  char c = r->end - r->at > 1 ? r->at[1] : 0;
  if (c == 'p' || c == 'P') {
    translate_property(r);
    return;
  }
  for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
    if (escapes[i].letter == c && (escapes[i].within || !r->within)) {
      const char *to = r->within ? escapes[i].within : escapes[i].outside;
      str_add(&r->out, to, strlen(to));
      r->at += 2;
      return;
    }
  if (c <= ' ' || c > '~' || strchr("0123456789", c) || isalpha((unsigned char)c)) {
    r->why = "only \\p \\P \\s \\S \\d \\D \\w \\W \\n \\r \\t \\v \\f and escaped punctuation are "
             "known, and \\W only outside []";
    return;
  }
  str_add(&r->out, r->at, 2);
  r->at += 2;
}

/* Case-insensitive texts: Oniguruma also matches a ligature for two letters. */
static void translate_case(Reading *r)
{
  static const char *const ligatures[] = {"ff", "fi", "fl", "ss", "st"};
  size_t n = strspn(r->at + 4, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'|[]");
  if (r->at + 4 + n == r->end || r->at[4 + n] != ')') {
    r->why = "(?i:) may only contain letters of ASCII, ', | and []";
    return;
  }
  for (size_t i = 0; i + 1 < n; i++)
    for (size_t j = 0; j < 5; j++)
      if (strncasecmp(r->at + 4 + i, ligatures[j], 2) == 0)
        r->why = "(?i:) may not contain ff, fi, fl, ss or st, which also match one character";
  str_add(&r->out, r->at, n + 5);
  r->at += n + 5;
}

static void translate_group(Reading *r)
{
  static const char *const known[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"};
  if (begins(r, "(?i:")) {
    translate_case(r);
    return;
  }
  size_t n = begins(r, "(?") || begins(r, "(*") ? 0 : 1;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (begins(r, known[i])) n = strlen(known[i]);
  if (!n) r->why = "of groups only (), (?:) (?=) (?!) (?<=) (?<!) (?>) and (?i:) are known";
  str_add(&r->out, r->at, n);
  r->at += n;
}

/* {n}, {n,} and {n,m}; what follows them differs. */
static void translate_times(Reading *r)
{
  const char *at = r->at + 1;
  size_t n = strspn(at, "0123456789"), m = 0;
  if (at[n] == ',') m = 1 + strspn(at + n + 1, "0123456789");
  if (!n || at[n + m] != '}' || strchr("+?*{", at[n + m + 1] ? at[n + m + 1] : '.')) {
    r->why = "{} needs {n}, {n,} or {n,m}, without +, ? or * after it";
    return;
  }
  str_add(&r->out, r->at, n + m + 2);
  r->at += n + m + 2;
}

static void translate_one(Reading *r)
{
  char c = *r->at;
  if (c == '\\')
    translate_escape(r);
  else if (r->within && (c == '[' || begins(r, "&&")))
    r->why = "[] and && within [] are not known";
  else if (c == '(' && !r->within)
    translate_group(r);
  else if (c == '{' && !r->within)
    translate_times(r);
  else {
    if (c == '[') { /* a ] that is first is an ordinary character, in PCRE2 without a warning */
      r->within = true;
      if (begins(r, "[]") || begins(r, "[^]")) r->why = "write ] in [] as \\]";
      if (begins(r, "[^")) str_add(&r->out, r->at++, 1);
    } else if (c == ']')
      r->within = false;
    str_add(&r->out, r->at++, 1);
  }
}

/* ---- compiling ---- */

static ampc_status refuse(const char *name, const char *path, Span text, const char *why)
{
  char shown[SHOWN];
  return ampc_fail(AMPC_BAD_FILE, "%s: %s: the pattern %s cannot be used: %s", name, path,
                   show_span(shown, text), why);
}

static ampc_status compile_code(Pattern *p, const char *name, const char *path, Span text,
                                const Str *translated)
{
  int error;
  size_t at;
  char why[160];
  pcre2_compile_context *context = pcre2_compile_context_create(NULL);
  if (context) pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  /* in Oniguruma ^ and $ are about lines */
  uint32_t options =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_AUTO_CAPTURE | PCRE2_NEVER_BACKSLASH_C;
  p->code = pcre2_compile((PCRE2_SPTR)translated->at, translated->n, options, &error, &at, context);
  pcre2_compile_context_free(context);
  if (!p->code) {
    pcre2_get_error_message(error, (PCRE2_UCHAR *)why, sizeof why);
    return refuse(name, path, text, why);
  }
  pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE); /* without, it is slower */
  p->data = pcre2_match_data_create(1, NULL);
  p->context = pcre2_match_context_create(NULL);
  p->stack = pcre2_jit_stack_create(STACK, MOST_STACK, NULL);
  if (!p->data || !p->context || !p->stack)
    return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", name);
  pcre2_jit_stack_assign(p->context, NULL, p->stack);
  return AMPC_OK;
}

ampc_status pattern_compile(const char *name, const char *path, PatternKind kind, Span text,
                            Pattern **out)
{
  Reading r = {.at = text.at, .end = text.at + text.n};
  Pattern *p = *out = calloc(1, sizeof **out);
  str_add(&r.out, "", 0);
  while (r.at < r.end && !r.why && kind == PATTERN_foreign) translate_one(&r);
  for (; r.at < r.end && !r.why; r.at++) { /* each byte of ASCII punctuation is escaped */
    if (kind == PATTERN_literal && *r.at > 0 && strchr("\\^$.[|()?*+{}#-]&~ \t\n", *r.at))
      str_add(&r.out, "\\", 1);
    str_add(&r.out, r.at, 1);
  }
  ampc_status status = !p || r.out.failed ? ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", name)
                       : r.why            ? refuse(name, path, text, r.why)
                                          : compile_code(p, name, path, text, &r.out);
  free(r.out.at);
  return status;
}

void pattern_free(Pattern *p)
{
  if (!p) return;
  pcre2_code_free(p->code);
  pcre2_match_data_free(p->data);
  pcre2_match_context_free(p->context);
  pcre2_jit_stack_free(p->stack);
  free(p);
}

/* ---- matching ---- */

ampc_status pattern_next(const Pattern *p, View text, Found *f, bool *more)
{
  for (*more = true; f->search <= text.n;) {
    int n = pcre2_match(p->code, (PCRE2_SPTR)text.at, text.n, f->search, PCRE2_NO_UTF_CHECK,
                        p->data, p->context);
    if (n == PCRE2_ERROR_NOMATCH) break;
    if (n < 0)
      return ampc_fail(AMPC_RUN_FAILED, "a pattern of the tokenizer takes too long on this text");
    const size_t *at = pcre2_get_ovector_pointer(p->data);
    f->from = at[0];
    f->end = at[1];
    if (f->from == f->end && f->last == f->end + 1) { /* no empty match right after a match */
      size_t size = 1;
      if (f->search < text.n) char_at(text.at + f->search, text.n - f->search, &size);
      f->search += size;
      continue;
    }
    f->search = f->end;
    f->last = f->end + 1;
    return AMPC_OK;
  }
  *more = false;
  return AMPC_OK;
}
