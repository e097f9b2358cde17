/* Reads the text of an op: a string in the job, or a file next to it. */
#include "own.h"
#include "compiler/syntax/source.h"
#include "common/shown.h"

/* Returns the text of a string. Without escapes it has the bytes of its literal, so messages can
 * point to a position in it. With escapes they point to the whole literal. */
static OwnText string_text(Lower *l, const Expr *e)
{
  OwnText out = {.text = e->as.string.text, .size = (uint32_t)e->as.string.size};
  Place place = diag_place(l->c, e->span);
  const char *written = place.source->text + (e->span.start - place.source->base);
  uint32_t quotes = strncmp(written, "\"\"\"", 3) == 0 ? 3 : 1;
  out.span = (Span){e->span.start + quotes, e->span.end - quotes};
  out.raw = out.span.end - out.span.start == out.size &&
            memcmp(written + quotes, out.text, out.size) == 0;
  return out;
}

/* Reads file("k.cu"). The path is relative to the file that contains the call. */
static bool file_text(Lower *l, File *f, const Expr *e, OwnText *out)
{
  Args args = {.span = e->span};
  if (!eval_args(l, scope_new(l, NULL, f, NULL), &e->as.call.args, &args)) return false;
  if (args.at.n != 1 || args.at.at[0].key || args.at.at[0].value.kind != D_str)
    return refuse(l, E205, e->span, "`file` takes the path of a text: file(\"kernel.cu\")");
  uint32_t base, size;
  const char *text = source_open_text(l->c, args.at.at[0].value.as.text, e->span, &base, &size);
  if (text) *out = (OwnText){text, size, {base, base + size}, true};
  return text != NULL;
}

/* Finds the first character that an editor or a terminal would interpret. *escape is empty if the
 * text has no such character. */
static Span hidden_character(const OwnText *t, char escape[AMPC_ESCAPE_ROOM])
{
  uint32_t at = 0, n = 0;
  for (*escape = 0; at < t->size && !*escape; at += n) {
    n = (uint32_t)ampc_character(t->text + at, t->size - at, escape);
    bool ends_line = t->text[at] == '\r' && at + 1 < t->size && t->text[at + 1] == '\n';
    if (ends_line || t->text[at] == '\n' || t->text[at] == '\t') *escape = 0;
  }
  return t->raw ? (Span){t->span.start + at - n, t->span.start + at} : t->span;
}

/* Checks the text, which is printed unchanged into files and on terminals. It must not contain
 * hidden characters or end with a line continuation. */
static bool check_text(Lower *l, const OwnText *t)
{
  char escape[AMPC_ESCAPE_ROOM];
  Span place = hidden_character(t, escape);
  if (*escape) {
    fail(l, E209, place, "the text of an op has `%s`, which cannot be shown", escape);
    return diag_help(l->c,
                     "the text must be UTF-8, without control characters and without characters "
                     "that change the text direction; in a C string write an escape");
  }
  uint32_t end = t->size;
  while (end && strchr(" \t\r\n", t->text[end - 1])) end--;
  bool trigraph = end >= 3 && memcmp(t->text + end - 3, "?\?/", 3) == 0;
  if (!trigraph && (!end || t->text[end - 1] != '\\')) return true;
  return refuse(l, E209, t->span, "the text of an op ends in `%s`, which joins the next line",
                trigraph ? "?\?/" : "\\");
}

bool own_text(Lower *l, File *f, const Expr *e, OwnText *out)
{
  if (e->kind == EXPR_string) {
    *out = string_text(l, e);
    return check_text(l, out);
  }
  if (strcmp(called_name(e), "file") == 0) return file_text(l, f, e, out) && check_text(l, out);
  fail(l, E209, e->span, "the text of an op is a string, or a file");
  return diag_help(l->c, "`cuda = \"\"\"...\"\"\"`, or `cuda = file(\"kernel.cu\")`");
}
