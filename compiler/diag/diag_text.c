/* Prints a message for people: location, text, and the source line with the cause underlined. On a
 * terminal, the text breaks at words.
 *
 * The line is printed as the user typed it, with two exceptions. Control characters, characters
 * that change the direction of text, and invalid UTF-8 become `?`. Of a very long line only the
 * text around the cause is printed. */
#include "diag_internal.h"
#include "common/shown.h"
#include "common/terminal.h"
#include "compiler/base/table.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN_BYTES = 160, SHOWN_BEFORE = 60 };

static const char *const severity_text[] = {"error", "warning", "note", "help"};
static const char *const severity_color[] = {"\033[1;31m", "\033[1;35m", "\033[1;36m",
                                             "\033[1;32m"};

/* True for a byte 10xxxxxx, which continues a UTF-8 character. */
static bool is_continuation(char byte)
{
  return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Returns the size of the UTF-8 character at s, at least 1. *valid: true if it may be printed. */
static uint32_t character_size(const char *s, uint32_t left, bool *valid)
{
  char escape[AMPC_ESCAPE_ROOM];
  size_t n = ampc_character(s, left, escape);
  *valid = !escape[0];
  return (uint32_t)n;
}

/* The printed part of the line, and the cause within it. */
typedef struct Window {
  const char *text;
  uint32_t size, from, to; /* the cause is text[from..to) */
  bool cut_left, cut_right;
} Window;

/* Chooses the printed text. A line of up to 160 bytes is printed whole. Of a longer line, 60 bytes
 * before the cause are printed, and the bytes after it that fit. UTF-8 characters are not split. */
static Window window_of(const Compile *c, const Place *place, Span span)
{
  Window w = {0};
  w.text = diag_line_text(c, place, &w.size);
  w.from = place->column - 1;
  if (w.from > w.size) w.from = w.size;
  w.to = w.from + (span.end - span.start);
  if (w.to > w.size) w.to = w.size;
  if (w.size > SHOWN_BYTES && w.from > SHOWN_BEFORE) {
    uint32_t cut = w.from - SHOWN_BEFORE;
    while (cut < w.from && is_continuation(w.text[cut])) cut++;
    w.cut_left = true;
    w.text += cut, w.size -= cut, w.from -= cut, w.to -= cut;
  }
  if (w.size > SHOWN_BYTES) {
    w.cut_right = true;
    w.size = SHOWN_BYTES;
    while (w.size && is_continuation(w.text[w.size])) w.size--;
    if (w.to > w.size) w.to = w.size;
  }
  return w;
}

/* Adds the source line. Tabs are kept; add_underline() repeats them, so that its marks are below
 * the right characters. */
static void add_source_line(Text *out, const Window *w)
{
  if (w->cut_left) text_puts(out, "...");
  for (uint32_t i = 0; i < w->size;) {
    bool valid;
    uint32_t n = character_size(w->text + i, w->size - i, &valid);
    if (valid || w->text[i] == '\t')
      text_add(out, w->text + i, n);
    else
      text_puts(out, "?");
    i += n;
  }
  if (w->cut_right) text_puts(out, "...");
  text_puts(out, "\n");
}

/* Adds `^~~~`, with one mark for each character, not for each byte. */
static void add_underline(Text *out, const Window *w)
{
  if (w->cut_left) text_puts(out, "   ");
  bool valid;
  for (uint32_t i = 0; i < w->from; i += character_size(w->text + i, w->size - i, &valid))
    text_puts(out, w->text[i] == '\t' ? "\t" : " ");
  text_puts(out, "^");
  for (uint32_t i = w->from; i < w->to;) {
    i += character_size(w->text + i, w->size - i, &valid);
    if (i < w->to) text_puts(out, "~");
  }
  text_puts(out, "\n");
}

/* Adds `   12 |   h = relu(x @ w2)` and the underline below it. */
static void add_quote(Compile *c, const Place *place, const Message *m, Text *out)
{
  Window w = window_of(c, place, m->span);
  text_printf(out, "%5u | ", place->line);
  add_source_line(out, &w);
  text_puts(out, "      | ");
  if (c->options.color) text_puts(out, severity_color[m->severity]);
  add_underline(out, &w);
  if (c->options.color) text_puts(out, "\033[0m");
}

void diag_print_text(Compile *c, const Message *m)
{
  Text out = text_new(c->arena);
  Place place = diag_place(c, m->span);
  bool color = c->options.color;
  if (m->severity == SEVERITY_help) text_puts(&out, "      ");
  if (place.source) text_printf(&out, "%s:%u:%u: ", place.source->shown, place.line, place.column);
  if (color) text_puts(&out, severity_color[m->severity]);
  text_puts(&out, severity_text[m->severity]);
  if (m->code) text_printf(&out, "[%s]", m->code);
  text_puts(&out, ":");
  if (color) text_puts(&out, "\033[0m");
  text_puts(&out, " ");
  int columns = strchr(m->text, '\n') ? 0 : terminal_columns(STDERR_FILENO);
  text_wrap(&out, m->text, 8, columns ? columns : INT_MAX);
  text_puts(&out, "\n");
  if (place.source) add_quote(c, &place, m, &out);
  fwrite(out.at, 1, out.n, stderr);
}
