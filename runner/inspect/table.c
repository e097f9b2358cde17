/* The table of `amp inspect` for people. */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "inspect.h"
#include "runtime/plan/bytes.h"

/* ---- numbers ---- */

/* In a few static buffers by turns, so that one printf may take several. */
static const char *scaled(int64_t n, const char *unit)
{
  enum { BUFFERS = 8 };
  static char buffers[BUFFERS][AMPC_BYTES_ROOM];
  static unsigned next;
  return ampc_scaled_text(n, unit, buffers[next++ % BUFFERS]);
}

const char *inspect_bytes(int64_t n)
{
  return scaled(n, "B");
}

const char *inspect_flops(int64_t n)
{
  return n < 0 ? "-" : scaled(n, "");
}

int inspect_columns(void)
{
  struct winsize window = {0};
  if (!isatty(STDOUT_FILENO)) return 0;
  int known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 ? window.ws_col : 0;
  return known >= 20 ? known : 80;
}

/* ---- the table ---- */

/* Columns as wide as their longest text; those of numbers are fixed. */
typedef struct Widths {
  int name, line, types, shape, frame;
} Widths;

static int longer(int width, const char *text)
{
  int n = (int)strlen(text);
  return n > width ? n : width;
}

/* "12"; of an imported file "mnist.amp:12"; "-" where the user wrote no line. */
static const char *line_number(const Inspection *in, const CommandRow *r)
{
  if (!r->place.source) return "-";
  const char *path = r->place.source->shown, *slash = strrchr(path, '/');
  bool job = strcmp(r->place.source->path, in->c->options.input) == 0;
  return arena_printf(in->c->arena, "%s%s%u",
                      job     ? ""
                      : slash ? slash + 1
                              : path,
                      job ? "" : ":", r->place.line);
}

static Widths widths_of(const Inspection *in)
{
  Widths w = {4, 4, 5, 5, 8};
  for (uint32_t i = 0; i < in->rows.n; i++) {
    const CommandRow *r = &in->rows.at[i];
    w.name = longer(w.name, r->name);
    w.line = longer(w.line, line_number(in, r));
    w.types = longer(w.types, r->types);
    w.shape = longer(w.shape, r->shape);
    w.frame = longer(w.frame, r->frame);
  }
  return w;
}

/* On a terminal what does not fit is cut, so that a row stays a line. */
static void put_line(const Text *line, int columns)
{
  int n = (int)line->n;
  while (n > 0 && line->at[n - 1] == ' ') n--;
  printf("%.*s\n", columns && n > columns ? columns : n, line->at);
}

/* One group of three columns an architecture. */
static void put_head(const Inspection *in, const Widths *w, int columns)
{
  Text line;
  text_init(&line, in->c->arena);
  text_printf(&line, "  %-*s %*s %-*s %-*s %5s %5s %-*s %9s %9s %9s", w->name, "name", w->line,
              "line", w->types, "types", w->shape, "shape", "grid", "block", w->frame, "template",
              "read", "written", "FLOPs");
  for (uint32_t i = 0; i < in->n_archs; i++)
    text_printf(&line, " %s%4s %6s %7s", in->n_archs > 1 ? "| " : "", "regs", "shared", "spilled");
  text_puts(&line, "  nodes");
  put_line(&line, columns);
}

/* Commands of the vendor's library choose their own grid. */
static void add_geometry(Text *line, const CommandRow *r)
{
  if (r->kernel)
    text_printf(line, "%5u %5u", r->at.grid, r->at.block);
  else
    text_printf(line, "%5s %5s", "-", "-");
}

/* `lead`: a bar, to keep architectures apart where there are several. */
static void add_usage(Text *line, const Usage *u, bool lead)
{
  text_puts(line, lead ? " | " : " ");
  if (u->known)
    text_printf(line, "%4d %6d %7d", u->registers, u->shared, u->spilled);
  else
    text_printf(line, "%4s %6s %7s", "-", "-", "-");
}

static void put_row(const Inspection *in, const CommandRow *r, const Widths *w, int columns)
{
  Text line;
  text_init(&line, in->c->arena);
  text_printf(&line, "  %-*s %*s %-*s %-*s ", w->name, r->name, w->line, line_number(in, r),
              w->types, r->types, w->shape, r->shape);
  add_geometry(&line, r);
  text_printf(&line, " %-*s %9s %9s %9s", w->frame, r->frame, inspect_bytes(r->read),
              inspect_bytes(r->written), inspect_flops(r->flops));
  for (uint32_t i = 0; i < in->n_archs; i++) add_usage(&line, &r->usage[i], in->n_archs > 1);
  text_printf(&line, "  %s", r->nodes);
  put_line(&line, columns);
}

/* Head, rows and sums of a block; nothing for one without commands. FLOPs that are not counted
 * count as none. */
static void put_block(const Inspection *in, uint16_t block, const Widths *w, int columns)
{
  int64_t read = 0, written = 0, flops = 0;
  uint32_t commands = 0;
  for (uint32_t i = 0; i < in->rows.n; i++) {
    const CommandRow *r = &in->rows.at[i];
    if (r->block != block) continue;
    if (commands++ == 0) {
      printf("\n%s\n", inspect_block_text(in, block));
      put_head(in, w, columns);
    }
    put_row(in, r, w, columns);
    read += r->read;
    written += r->written;
    flops += r->flops > 0 ? r->flops : 0;
  }
  if (commands)
    printf("  %u commands: %s read, %s written, %s FLOPs\n", commands, inspect_bytes(read),
           inspect_bytes(written), inspect_flops(flops));
}

static void put_title(const Inspection *in)
{
  uint32_t kernels = 0;
  for (uint32_t i = 0; i < in->rows.n; i++) kernels += !in->rows.at[i].product;
  printf("%s: %s, %s, %u commands, %u of them kernels", in->c->program->source,
         in->c->program->precision, in->c->options.target, in->rows.n, kernels);
  for (uint32_t i = 0; i < in->n_archs; i++)
    printf("%s%s", i ? " | " : "; registers, bytes of shared memory and spilled: ", in->arch[i]);
  putchar('\n');
}

int inspect_table(const Inspection *in, const char *note)
{
  Widths w = widths_of(in);
  int columns = inspect_columns();
  put_title(in);
  for (uint32_t i = 0; i < in->c->graph->blocks.n; i++) put_block(in, (uint16_t)i, &w, columns);
  if (note) printf("\n%s\n", note);
  return 0;
}
