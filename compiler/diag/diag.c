/* Sources, locations, and decisions whether a message is printed, only counted, or suppressed as a
 * repetition. diag_text.c and diag_json.c print messages. */
#include "diag.h"
#include "diag_internal.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Returns c->diag. Allocates it at first use, so that callers can create a Compile without it. */
static DiagState *diag_state(Compile *c)
{
  if (!c->diag) c->diag = arena_new(c->arena, DiagState);
  return c->diag;
}

/* ---- sources and places ---- */

/* All sources share one range of offsets, so two numbers identify file and location. The line
 * starts are computed once, here. */
uint32_t diag_add_source(Compile *c, const char *path, const char *text, uint32_t size,
                         bool builtin)
{
  DiagState *d = diag_state(c);
  uint32_t base = 1; /* offset 0 means "no location" */
  if (c->sources.n) {
    const Source *last = &c->sources.at[c->sources.n - 1];
    base = last->base + last->size + 1; /* the end of a source is also a location */
  }
  assert(size < UINT32_MAX - base);
  Lines lines = {0};
  vec_push(c->arena, &lines.start, base);
  for (uint32_t i = 0; i < size; i++)
    if (text[i] == '\n') vec_push(c->arena, &lines.start, base + i + 1);
  vec_push(c->arena, &d->lines, lines);
  const char *shown = arena_shown(c->arena, path, "");
  vec_push(c->arena, &c->sources, (Source){path, text, base, size, builtin, shown, false});
  return base;
}

/* Finds the source of an offset. Sources begin one after the other. */
static uint32_t source_index(const Compile *c, uint32_t offset)
{
  uint32_t low = 0, high = c->sources.n; /* those before `low` begin at or before the offset */
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (offset >= c->sources.at[middle].base)
      low = middle + 1;
    else
      high = middle;
  }
  return low - 1; /* UINT32_MAX: none */
}

/* Returns the line of an offset, counted from 0, by binary search. */
static uint32_t line_of(const Lines *lines, uint32_t offset)
{
  uint32_t low = 0, high = lines->start.n; /* start[low] <= offset < start[high] */
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (lines->start.at[middle] <= offset)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/* Returns the location of the span's start. {0, 0}, as for a command-line option, has none. */
Place diag_place(const Compile *c, Span span)
{
  uint32_t i = source_index(c, span.start);
  if (i == UINT32_MAX) return (Place){0};
  const Lines *lines = &c->diag->lines.at[i];
  uint32_t line = line_of(lines, span.start);
  return (Place){&c->sources.at[i], line + 1, span.start - lines->start.at[line] + 1};
}

/* The line end is removed, also if it is a Windows line end. */
const char *diag_line_text(const Compile *c, const Place *place, uint32_t *size)
{
  const Source *s = place->source;
  const Lines *lines = &c->diag->lines.at[s - c->sources.at];
  *size = 0;
  if (place->line > lines->start.n) return "";
  uint32_t start = lines->start.at[place->line - 1];
  uint32_t end =
      place->line < lines->start.n ? lines->start.at[place->line] - 1 : s->base + s->size;
  const char *text = s->text + (start - s->base);
  if (end > start && text[end - start - 1] == '\r') end--;
  *size = end - start;
  return text;
}

/* ---- frames ---- */

/* The caller of a def or a module pushes the call, so that an error inside the layer library is
 * reported at the line of the job that led to it. */
void diag_frame_push(Compile *c, Span call)
{
  vec_push(c->arena, &diag_state(c)->frames, call);
}

void diag_frame_pop(Compile *c)
{
  assert(c->diag && c->diag->frames.n);
  c->diag->frames.n--;
}

static bool is_builtin(const Compile *c, Span span)
{
  uint32_t i = source_index(c, span.start);
  return i != UINT32_MAX && c->sources.at[i].builtin;
}

/* Returns the innermost call outside of builtin sources. */
Span diag_user_span(Compile *c, Span span)
{
  const DiagState *d = diag_state(c);
  if (!is_builtin(c, span)) return span;
  for (uint32_t i = d->frames.n; i-- > 0;)
    if (!is_builtin(c, d->frames.at[i])) return d->frames.at[i];
  return (Span){0, 0};
}

Place diag_user_place(Compile *c, Span span)
{
  Place place = {0};
  span = diag_user_span(c, span);
  if (span.end) place = diag_place(c, span);
  return place.source && !place.source->builtin ? place : (Place){0};
}

/* ---- messages ---- */

enum { MAX_SEEN = 1000 }; /* later repetitions are printed again */

/* True if an error or warning with this code was reported at this location. Code that is elaborated
 * again (another batch size, another iteration of a loop) finds the same mistake again, possibly
 * with other sizes. */
static bool said_before(Compile *c, ErrorCode code, Span span)
{
  DiagState *d = c->diag;
  for (uint32_t i = 0; i < d->seen.n; i++) {
    const Seen *s = &d->seen.at[i];
    if (s->code == code && s->span.start == span.start && s->span.end == span.end) return true;
  }
  if (d->seen.n < MAX_SEEN) vec_push(c->arena, &d->seen, (Seen){code, span});
  return false;
}

bool diag_error_within(const Compile *c, Span span)
{
  for (uint32_t i = 0; c->diag && i < c->diag->seen.n; i++) {
    const Seen *s = &c->diag->seen.at[i];
    bool inside = s->span.start >= span.start && s->span.start <= span.end;
    if (inside && !error_info[s->code].name) return true;
  }
  return false;
}

static void show(Compile *c, const Message *m)
{
  if (c->options.silent) return;
  if (c->options.keep_messages)
    vec_push(c->arena, &c->diag->kept, *m);
  else if (c->options.json_errors)
    diag_print_json(c, m);
  else
    diag_print_text(c, m);
}

/* Counts and prints an error or warning. Four reasons suppress it: it follows from a syntax error,
 * it repeats an earlier message, the limit is reached, or very many are already hidden. `muted`
 * then suppresses its notes. */
static void report(Compile *c, Severity severity, ErrorCode code, Span span, const char *text)
{
  DiagState *d = diag_state(c);
  span = diag_user_span(c, span);
  d->muted = true;
  if (d->hidden > MAX_SEEN) { /* further messages are only counted, repetitions included */
    d->errors += severity == SEVERITY_error;
    d->hidden += severity == SEVERITY_error;
    return;
  }
  if (severity == SEVERITY_error && diag_is_aftermath(c, code, span)) return;
  if ((span.start || span.end) && said_before(c, code, span)) return;
  if (c->options.error_limit && severity == SEVERITY_error &&
      d->errors - d->hidden >= c->options.error_limit) {
    d->errors++;
    d->hidden++;
    return;
  }
  d->muted = false;
  d->wounding = code < E201;
  if (d->wounding) diag_wound(c, span);
  if (severity == SEVERITY_error)
    d->errors++;
  else
    d->warnings++;
  show(c, &(Message){severity, error_info[code].code, span, text});
  if (severity == SEVERITY_error && d->circumstance)
    show(c, &(Message){SEVERITY_note, NULL, d->circumstance_span, d->circumstance});
}

void diag_circumstance(Compile *c, Span span, const char *text)
{
  DiagState *d = diag_state(c);
  d->circumstance_span = span;
  d->circumstance = text;
}

/* Formats a message, and escapes it: it contains names, strings and paths of the user. */
static const char *message_text(Compile *c, const char *fmt, va_list ap)
{
  return arena_shown(c->arena, arena_vprintf(c->arena, fmt, ap), "");
}

bool diag_error(Compile *c, ErrorCode code, Span span, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  report(c, SEVERITY_error, code, span, message_text(c, fmt, ap));
  va_end(ap);
  return false;
}

/* True if -Wno-NAME is given for this warning. */
static bool switched_off(const Compile *c, const char *name)
{
  for (uint32_t i = 0; i < c->options.n_no_warnings; i++)
    if (strcmp(c->options.no_warnings[i], name) == 0) return true;
  return false;
}

void diag_warning(Compile *c, ErrorCode code, Span span, const char *fmt, ...)
{
  if (switched_off(c, error_info[code].name)) {
    diag_state(c)->muted = true;
    return;
  }
  va_list ap;
  va_start(ap, fmt);
  report(c, c->options.werror ? SEVERITY_error : SEVERITY_warning, code, span,
         message_text(c, fmt, ap));
  va_end(ap);
}

bool diag_note(Compile *c, Span span, const char *fmt, ...)
{
  if (diag_state(c)->muted) return false;
  va_list ap;
  va_start(ap, fmt);
  const char *text = message_text(c, fmt, ap);
  va_end(ap);
  span = diag_user_span(c, span);
  if (c->diag->wounding) diag_wound(c, span);
  show(c, &(Message){SEVERITY_note, NULL, span, text});
  return false;
}

bool diag_help(Compile *c, const char *fmt, ...)
{
  if (diag_state(c)->muted) return false;
  va_list ap;
  va_start(ap, fmt);
  const char *text = message_text(c, fmt, ap);
  va_end(ap);
  show(c, &(Message){SEVERITY_help, NULL, {0, 0}, text});
  return false;
}

bool diag_is_muted(const Compile *c)
{
  return c->options.silent || (c->diag && c->diag->muted);
}

const Message *diag_kept(const Compile *c, uint32_t *n)
{
  *n = c->diag ? c->diag->kept.n : 0;
  return *n ? c->diag->kept.at : NULL;
}

uint32_t diag_error_count(const Compile *c)
{
  return c->diag ? c->diag->errors : 0;
}

/* Called after the last message: prints how many errors were hidden. */
void diag_finish(Compile *c)
{
  DiagState *d = diag_state(c);
  if (c->options.silent || c->options.keep_messages) return;
  if (c->options.json_errors) {
    diag_finish_json(c);
  } else if (d->hidden) {
    fprintf(stderr, "%u more error%s not shown (--error-limit=%u)\n", d->hidden,
            d->hidden == 1 ? "" : "s", c->options.error_limit);
  }
}
