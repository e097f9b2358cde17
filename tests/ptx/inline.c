/* Replaces calls of functions by their bodies, so that kernels have no calls. Each copy of a body
 * gets a prefix for its registers and labels. Parameters and results become registers of the
 * caller. */
#include "code.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct Inliner {
  const char *text;
  Text *out;
  unsigned calls; /* so far; each has its prefix */
} Inliner;

typedef struct Scope {      /* the kernel, or one copy of a function's body */
  char own[16], caller[16]; /* prefixes; "" for the kernel */
} Scope;

static size_t word_size(const char *s)
{
  size_t n = 0;
  while (isalnum((unsigned char)s[n]) || (s[n] && strchr("_$%.", s[n]))) n++;
  return n;
}

static bool begins(const char *s, const char *with)
{
  return strncmp(s, with, strlen(with)) == 0;
}

/* Copies up to `end`, with the prefix in the names of registers and labels. */
static void copy(Inliner *in, const Scope *scope, const char *s, const char *end)
{
  while (s < end) {
    size_t n = word_size(s);
    bool named = (*s == '%' || *s == '$') && !memchr(s, '.', n);
    if (named) text_printf(in->out, "%c%s", *s, scope->own);
    text_add(in->out, s + named, n ? n - named : 1);
    s += n ? n : 1;
  }
}

/* Writes the register that stands for a parameter or a result. False: a parameter of the kernel. */
static bool put_place(Inliner *in, const Scope *scope, const char *name, size_t n)
{
  const char *at = memmem(name, n, "_param_", 7);
  if (begins(name, "param") || begins(name, "retval"))
    text_printf(in->out, "%%%s%.*s", scope->own, (int)n, name);
  else if (begins(name, "func_retval"))
    text_printf(in->out, "%%%s%.*s", scope->caller, (int)n - 5, name + 5);
  else if (at && *scope->own)
    text_printf(in->out, "%%%sparam%.*s", scope->caller, (int)(name + n - at) - 7, at + 7);
  else
    return false;
  return true;
}

/* Turns ld.param.T r, [x] and st.param.T [x], r into moves. False: x is a parameter of the kernel.
 */
static bool put_move(Inliner *in, const Scope *scope, const char *s, const char *end)
{
  const char *name = memchr(s, '[', (size_t)(end - s)), *close = memchr(s, ']', (size_t)(end - s));
  size_t n = name ? word_size(++name) : 0, before = in->out->n;
  if (!close) return false;
  text_printf(in->out, "mov%.*s ", (int)(word_size(s) - 8), s + 8);
  if (*s == 'l') copy(in, scope, s + word_size(s), name - 1);
  bool good = put_place(in, scope, name, n);
  if (*s == 's') copy(in, scope, close + 1, end);
  if (!good) in->out->n = before;
  return good;
}

static bool put_body(Inliner *in, const Scope *scope, const char *s);

/* Writes the body of the function that the statement calls. */
static bool put_call(Inliner *in, const Scope *scope, const char *s)
{
  char pattern[256];
  Scope inner = {.own = ""};
  s += word_size(s);
  s += strspn(s, " \t\n");
  if (*s == '(') s += strcspn(s, ")") + 1;
  s += strspn(s, ", \t\n");
  snprintf(pattern, sizeof pattern, "%.*s(", (int)word_size(s), s);
  const char *function = strstr(in->text, pattern);
  if (!function) return false;
  strcpy(inner.caller, scope->own);
  snprintf(inner.own, sizeof inner.own, "c%u_", ++in->calls);
  if (!put_body(in, &inner, strchr(function, '{'))) return false;
  text_printf(in->out, "$%send:\n", inner.own);
  return true;
}

static bool put_statement(Inliner *in, const Scope *scope, const char *s, const char *end)
{
  size_t guard = *s == '@' ? strcspn(s, " \t") : 0;
  const char *op = s + guard + strspn(s + guard, " \t");
  if (begins(op, "call")) return !guard && put_call(in, scope, op);
  if (begins(s, ".param")) { /* .param .b64 param0; */
    const char *name = end - 1;
    while (word_size(name - 1) > word_size(name)) name--;
    text_printf(in->out, ".reg .b64 ");
    put_place(in, scope, name, word_size(name));
  } else if ((begins(s, "ld.param") || begins(s, "st.param")) && put_move(in, scope, s, end)) {
  } else if (begins(op, "ret;") && *scope->own) {
    copy(in, scope, s, op);
    text_printf(in->out, "bra $%send", scope->own);
  } else {
    copy(in, scope, s, end);
  }
  text_puts(in->out, ";\n");
  return true;
}

/* Copies from a brace to the one that closes it. */
static bool put_body(Inliner *in, const Scope *scope, const char *s)
{
  int depth = 0;
  while (s && *s) {
    s += strspn(s, " \t\n");
    const char *end = s + strcspn(s, ";:{}/");
    if (*s == '{' || *s == '}') {
      depth += *s == '{' ? 1 : -1;
      text_add(in->out, s++, 1);
      if (!depth) return true;
    } else if (*end == '/') {
      s = end + strcspn(end, "\n");
    } else if (*end == ':') {
      copy(in, scope, s, end + 1);
      s = end + 1;
    } else {
      end = s + strcspn(s, ";");
      if (!put_statement(in, scope, s, end)) return false;
      s = end + 1;
    }
  }
  return false;
}

bool ptx_inline(Arena *arena, const char *text, const char **out)
{
  Text result = text_new(arena);
  Inliner in = {.text = text, .out = &result};
  for (const char *s = text, *entry; (entry = strstr(s, ".visible .entry")) != NULL;) {
    const char *body = strchr(entry, '{');
    if (!body) return false;
    text_add(&result, entry, (size_t)(body - entry));
    if (!put_body(&in, &(Scope){.own = ""}, body)) return false;
    s = body;
  }
  *out = result.at;
  return true;
}
