/* The text of an op: a string of the job, or a file beside it. */
#include "own.h"
#include "compiler/driver.h"

/* Most strings stand in the job as they are. Where there are escapes, places in the text are those
 * of the string. */
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

/* file("k.cu"), the path beside the file that names it. */
static bool file_text(Lower *l, File *f, const Expr *e, OwnText *out)
{
  Args args = {.span = e->span};
  if (!eval_args(l, scope_new(l, NULL, f, NULL), &e->as.call.args, &args)) return false;
  if (args.at.n != 1 || args.at.at[0].key || args.at.at[0].value.kind != D_str)
    return fail(l, E205, e->span, "`file` takes the path of a text: file(\"kernel.cu\")"), false;
  uint32_t base, size;
  const char *text = compile_text_file(l->c, args.at.at[0].value.as.text, e->span, &base, &size);
  if (text) *out = (OwnText){text, size, {base, base + size}, true};
  return text != NULL;
}

bool own_text(Lower *l, File *f, const Expr *e, OwnText *out)
{
  if (e->kind == EXPR_string) {
    *out = string_text(l, e);
    return true;
  }
  if (e->kind == EXPR_call && e->as.call.callee->kind == EXPR_name &&
      strcmp(e->as.call.callee->as.name, "file") == 0)
    return file_text(l, f, e, out);
  fail(l, E209, e->span, "the text of an op is a string, or a file");
  diag_help(l->c, "`cuda = \"\"\"...\"\"\"`, or `cuda = file(\"kernel.cu\")`");
  return false;
}
