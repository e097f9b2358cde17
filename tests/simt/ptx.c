/* Turns inline PTX into calls: see ptx.h. */
#include "ptx.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OPERANDS = 16, TEXT_ROOM = 400 };

typedef struct Asm {
  char text[TEXT_ROOM];
  struct {
    const char *at; /* "(x)" */
    int size;
    bool written;
  } operand[MOST_OPERANDS];
  unsigned n;
} Asm;

static const char *skip_space(const char *s)
{
  while (isspace((unsigned char)*s)) s++;
  return s;
}

static const char *skip_word(const char *s, const char *word)
{
  size_t n = strlen(word);
  return skip_space(strncmp(s, word, n) == 0 ? s + n : s);
}

/* Returns the text after the parenthesis that closes the one at s. */
static const char *behind_closing(const char *s)
{
  int depth = 0;
  for (; *s; s++) {
    depth += (*s == '(') - (*s == ')');
    if (!depth) return s + 1;
  }
  return s;
}

/* Joins the string literals from s on. Returns the text after them; NULL: another form. */
static const char *read_text(const char *s, Asm *a)
{
  size_t n = 0;
  for (; *s == '"'; s = skip_space(s + 1))
    for (s++; *s != '"'; a->text[n++] = *s++)
      if (!*s || *s == '\\' || n + 1 == sizeof a->text) return NULL;
  a->text[n] = 0;
  return s;
}

/* Reads one of the lists after the text: `: "=f"(x), "+r"(y)`. Clobbers have no operands. */
static const char *read_list(const char *s, Asm *a)
{
  if (*s != ':') return s;
  for (s = skip_space(s + 1); *s == '"' && a->n < MOST_OPERANDS; s = skip_word(s, ",")) {
    bool written = s[1] == '=' || s[1] == '+';
    s += 1 + strcspn(s + 1, "\"");
    s = skip_word(s, "\"");
    if (*s != '(') continue;
    const char *end = behind_closing(s);
    a->operand[a->n].at = s;
    a->operand[a->n].size = (int)(end - s);
    a->operand[a->n++].written = written;
    s = skip_space(end);
  }
  return s;
}

/* Writes the arguments of a call: the operands and numbers of the text s, in its order. */
static bool put_arguments(const Asm *a, const char *s, Text *out)
{
  bool used[MOST_OPERANDS] = {false};
  for (const char *comma = "";; comma = ", ") {
    s += strspn(s, " {}[],");
    if (*s == ';') return !*skip_space(s + 1);
    bool is_operand = *s == '%';
    s += is_operand;
    size_t digits = strspn(s, "0123456789");
    unsigned k = (unsigned)atoi(s);
    if (!digits || (is_operand && k >= a->n)) return false;
    text_puts(out, comma);
    if (!is_operand)
      text_add(out, s, digits);
    else
      text_printf(out, "%s%.*s", a->operand[k].written && !used[k] ? "&" : "", a->operand[k].size,
                  a->operand[k].at);
    if (is_operand) used[k] = true;
    s += digits;
  }
}

/* Writes the asm whose text begins at s as a call. Returns the text after it; NULL: another form.
 */
static const char *put_call(const char *s, Text *out)
{
  Asm a = {.n = 0};
  s = read_text(s, &a);
  for (int list = 0; s && list < 3; list++) s = read_list(s, &a);
  if (!s || *s != ')') return NULL;
  const char *name = a.text;
  text_puts(out, "simt_");
  for (; isalnum((unsigned char)*name) || *name == '.'; name++)
    text_add(out, *name == '.' ? "_" : name, 1);
  text_puts(out, "(");
  return put_arguments(&a, name, out) ? s : NULL;
}

void ptx_as_calls(const Text *cuda, Text *out)
{
  const char *s = cuda->at;
  for (const char *next; (next = strstr(s, "asm"));) {
    text_add(out, s, (size_t)(next - s));
    const char *text = skip_word(skip_word(skip_word(next, "asm"), "volatile"), "(");
    size_t before = out->n;
    s = *text == '"' ? put_call(text, out) : NULL;
    if (s) continue;
    out->n = before;
    text_puts(out, "asm");
    s = next + strlen("asm");
  }
  text_puts(out, s);
}
