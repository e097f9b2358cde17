/* The table of `amp inspect` for people. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "columns.h"
#include "inspect.h"
#include "runtime/base/terminal.h"
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

/* ---- the table ---- */

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

enum { OWN_COLUMNS = 10, USAGE_COLUMNS = 3, MOST_COLUMNS = OWN_COLUMNS + 3 * INSPECT_ARCHS };

typedef struct Table {
  Column at[MOST_COLUMNS];
  int n, columns; /* of the terminal */
} Table;

/* What is known without the table goes first where it does not fit. */
static Table make_table(const Inspection *in)
{
  static const Column own[OWN_COLUMNS] = {{"name", 4, true, 0},     {"line", 4, false, 1},
                                          {"types", 5, true, 2},    {"shape", 5, true, 4},
                                          {"grid", 5, false, 7},    {"block", 5, false, 8},
                                          {"template", 8, true, 6}, {"read", 9, false, 0},
                                          {"written", 9, false, 0}, {"FLOPs", 9, false, 0}};
  static const Column usage[USAGE_COLUMNS] = {
      {"regs", 4, false, 3}, {"shared", 6, false, 5}, {"spilled", 7, false, 5}};
  Table t = {.n = OWN_COLUMNS, .columns = terminal_columns(STDOUT_FILENO)};
  memcpy(t.at, own, sizeof own);
  for (uint32_t i = 0; i < in->n_archs; i++, t.n += USAGE_COLUMNS) {
    memcpy(t.at + t.n, usage, sizeof usage);
    if (in->n_archs > 1) t.at[t.n].title = "| regs"; /* a bar keeps architectures apart */
  }
  return t;
}

static const char *number(Arena *arena, bool known, int64_t n)
{
  return known ? arena_printf(arena, "%lld", (long long)n) : "-";
}

/* Commands of the vendor's library choose their own grid. */
static void row_texts(const Inspection *in, const CommandRow *r, const char *out[MOST_COLUMNS])
{
  Arena *arena = in->c->arena;
  const char *const own[OWN_COLUMNS] = {r->name,
                                        line_number(in, r),
                                        r->types,
                                        r->shape,
                                        number(arena, r->kernel != NULL, r->at.grid),
                                        number(arena, r->kernel != NULL, r->at.block),
                                        inspect_frame_text(in, r),
                                        arena_strdup(arena, inspect_bytes(r->read)),
                                        arena_strdup(arena, inspect_bytes(r->written)),
                                        arena_strdup(arena, inspect_flops(r->flops))};
  memcpy(out, own, sizeof own);
  for (uint32_t i = 0; i < in->n_archs; i++) {
    const Usage *u = &r->usage[i];
    const char **at = out + OWN_COLUMNS + USAGE_COLUMNS * i;
    at[0] = number(arena, u->known, u->registers);
    if (in->n_archs > 1) at[0] = arena_printf(arena, "| %4s", at[0]);
    at[1] = number(arena, u->known, u->shared);
    at[2] = number(arena, u->known, u->spilled);
  }
}

/* Head, rows and sums of a block; nothing for one without commands. FLOPs that are not counted
 * count as none. */
static void put_block(const Inspection *in, uint16_t block, const Table *t)
{
  int64_t read = 0, written = 0, flops = 0;
  uint32_t commands = 0;
  const char *texts[MOST_COLUMNS];
  for (uint32_t i = 0; i < in->rows.n; i++) {
    const CommandRow *r = &in->rows.at[i];
    if (r->block != block) continue;
    if (commands++ == 0) {
      printf("\n%s\n", inspect_block_text(in, block));
      columns_put(t->at, t->n, NULL, "nodes", t->columns);
    }
    row_texts(in, r, texts);
    columns_put(t->at, t->n, texts, r->nodes, t->columns);
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
  for (uint32_t i = 0; i < in->rows.n; i++) kernels += in->rows.at[i].kind == COMMAND_kernel;
  printf("%s: %s, %s, %u commands, %u of them kernels", in->c->program->source,
         in->c->program->precision, in->c->options.target, in->rows.n, kernels);
  for (uint32_t i = 0; i < in->n_archs; i++)
    printf("%s%s", i ? " | " : "; registers, bytes of shared memory and spilled: ", in->arch[i]);
  putchar('\n');
}

int inspect_table(const Inspection *in, const char *note)
{
  Table t = make_table(in);
  const char *texts[MOST_COLUMNS];
  for (uint32_t i = 0; i < in->rows.n; i++) {
    row_texts(in, &in->rows.at[i], texts);
    columns_see(t.at, t.n, texts);
  }
  columns_fit(t.at, t.n, t.columns);
  put_title(in);
  for (uint32_t i = 0; i < in->c->graph->blocks.n; i++) put_block(in, (uint16_t)i, &t);
  if (note) printf("\n%s\n", note);
  return 0;
}
