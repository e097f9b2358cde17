/* Prints the bytes of a compiled job, and finds the largest batch that fits in a limit. */
#include "memory_report.h"
#include "compiler/command/command.h"
#include "compiler/driver.h"
#include <stdlib.h>
#include <string.h>

/* ---- sizes as text ---- */

bool memory_read_size(const char *text, int64_t *out)
{
  static const char letters[] = "KMGT";
  size_t digits = strspn(text, "0123456789.");
  char *end;
  double size = strtod(text, &end);
  if (!digits || end != text + digits) return false; /* strtod also accepts 0x10, 1e9 and inf */
  const char *letter = *end ? strchr(letters, *end) : NULL;
  const char *unit = letter ? end + 1 : end;
  bool by1000 = strcmp(unit, "B") == 0, by1024 = !*unit || (letter && strcmp(unit, "iB") == 0);
  if (!by1000 && !by1024) return false;
  for (const char *l = letters; letter && l <= letter; l++) size *= by1000 ? 1000 : 1024;
  if (!(size >= 1 && size < 0x1p63)) return false;
  *out = (int64_t)size;
  return true;
}

const char *memory_text(Arena *arena, int64_t bytes)
{
  return arena_printf(arena, "%lld bytes (%s)", (long long)bytes, bytes_text(arena, (double)bytes));
}

static const char *grouped(Arena *arena, int64_t n) /* "443,502,916" */
{
  const char *digits = arena_printf(arena, "%lld", (long long)n);
  Text t = text_new(arena);
  for (size_t i = 0, len = strlen(digits); i < len; i++) {
    if (i && (len - i) % 3 == 0) text_puts(&t, ",");
    text_add(&t, digits + i, 1);
  }
  return t.at;
}

/* ---- sums ---- */

int64_t memory_of_spaces(const ampc_program *p)
{
  int64_t sum = 0;
  for (int s = 0; s < AMPC_SPACE_COUNT; s++) sum += ampc_process_bytes(p, (ampc_space)s);
  return sum;
}

/* True if the value has bytes of its own in WORK. Leaves, 16-bit copies and gradients are in other
 * spaces, and an alias has the bytes of another value. */
static bool has_own_bytes(const Compile *c, uint32_t id)
{
  const Graph *g = c->graph;
  OpTemplate tmpl = op_of(&g->nodes.at[id])->tmpl;
  return tmpl != TMPL_leaf && tmpl != TMPL_alias && !is_working_copy(g, (Value){id}) &&
         g->nodes.at[id].place.space != AMPC_GRAD;
}

/* Returns the total bytes of a block's values that are read. */
static int64_t values_of(const Compile *c, uint16_t block, const bool *read)
{
  const Graph *g = c->graph;
  int64_t sum = 0;
  for (uint32_t id = 1; id < g->nodes.n; id++)
    if (g->nodes.at[id].block == block && read[id] && has_own_bytes(c, id))
      sum += ir_room_bytes(c, &g->nodes.at[id]);
  return sum;
}

/* Returns the bytes of the job if no memory were reused: every value that a node reads would have
 * its own bytes. Only the block with the most such bytes counts. Parameters, copies, gradients,
 * moments, buffers, state and the batch are added. Scratch space is not a tensor and is left
 * out. */
static int64_t memory_of_tensors(const Compile *c)
{
  const Graph *g = c->graph;
  bool *read = arena_array(c->arena, bool, g->nodes.n);
  for (uint32_t id = 1; id < g->nodes.n; id++)
    for (uint32_t i = 0; i < g->nodes.at[id].n_in; i++) {
      Value v = g->nodes.at[id].in[i]; /* an alias reads on behalf of its readers */
      while (v.id && op_of(ir_node(g, v))->tmpl == TMPL_alias) v = ir_node(g, v)->in[0];
      read[v.id] = true;
    }
  int64_t most = 0;
  for (uint32_t b = 0; b < g->blocks.n; b++) {
    int64_t sum = values_of(c, (uint16_t)b, read);
    if (sum > most) most = sum;
  }
  const ampc_program *p = c->program;
  return memory_of_spaces(p) - ampc_process_bytes(p, AMPC_WORK) + ampc_process_members(p) * most;
}

/* ---- the report ---- */

/* Prints a line, unless the space is empty. */
static void put_line(const Compile *c, Text *out, int64_t bytes, const char *what)
{
  if (bytes) text_printf(out, "%18s  %s\n", grouped(c->arena, bytes), what);
}

static void put_space(const Compile *c, Text *out, ampc_space s)
{
  put_line(c, out, ampc_process_bytes(c->program, s), ampc_space_purpose(c->program, s));
}

void memory_report(const Compile *c, int64_t library, Text *out)
{
  const ampc_program *p = c->program;
  int64_t total = memory_of_spaces(p) + (library > 0 ? library : 0);
  int64_t tensors = memory_of_tensors(c);
  text_printf(out, "memory of %s on %s, in bytes\n", p->source, p->target);
  for (ampc_space s = AMPC_MASTER; s < AMPC_INPUT; s++) put_space(c, out, s);
  put_space(c, out, AMPC_STATE);
  put_space(c, out, AMPC_INPUT);
  put_space(c, out, AMPC_WORK);
  put_line(c, out, library > 0 ? library : 0, "library scratch outside of work");
  text_printf(out, "%18s  total%s, %.2f of the %s that all tensors need without reuse\n",
              grouped(c->arena, total), library < 0 ? " without library scratch" : "",
              (double)total / (double)tensors, grouped(c->arena, tensors));
}

const char *memory_line(const Compile *c, int64_t library)
{
  const ampc_program *p = c->program;
  int64_t total = memory_of_spaces(p) + (library > 0 ? library : 0);
  return arena_printf(c->arena, "memory of %s on %s: %s (-v: details)", p->source, p->target,
                      bytes_text(c->arena, (double)total));
}

/* ---- the largest batch ---- */

/* True if --set can reduce the batch of the block. Infer blocks have no such setting. */
static bool has_batch(const ampc_block *b)
{
  return b->kind != AMPC_INFER && b->batch > 0;
}

/* Returns the block's name in --set: "train", "train2", ... It does not depend on `name=`. */
static const char *batch_setting(const ampc_program *p, uint32_t block, Arena *arena)
{
  static const char *const kinds[] = {[AMPC_TRAIN] = "train", [AMPC_EVAL] = "eval"};
  ampc_block_kind kind = p->blocks[block].kind;
  uint32_t number = 1;
  for (uint32_t i = 0; i < block; i++) number += p->blocks[i].kind == kind;
  const char *suffix = number > 1 ? arena_printf(arena, "%u", number) : "";
  return arena_printf(arena, "%s%s.batch", kinds[kind], suffix);
}

/* Compiles the job with batches of at most `most`. Returns its bytes; -1 if it does not compile. */
static int64_t need_with(const Compile *c, int64_t most, MemoryNeed *need_of)
{
  const ampc_program *p = c->program;
  Arena *arena = arena_create();
  Options options = c->options;
  options.silent = true;
  options.settings = arena_array(arena, Assignment, options.n_settings + p->n_blocks);
  memcpy(options.settings, c->options.settings, options.n_settings * sizeof(Assignment));
  for (uint32_t i = 0; i < p->n_blocks; i++)
    if (has_batch(&p->blocks[i]) && p->blocks[i].batch > most)
      options.settings[options.n_settings++] =
          (Assignment){batch_setting(p, i, arena), arena_printf(arena, "%lld", (long long)most)};
  Compile *smaller = compile_create(&options);
  int64_t need = compile_job(smaller) ? need_of(smaller->program) : -1;
  compile_destroy(smaller);
  arena_destroy(arena);
  return need;
}

/* Finds the largest batch that fits by binary search; each test compiles the job. Returns 0 if not
 * even a batch of 1 fits. */
static int64_t largest_batch(const Compile *c, int64_t limit, MemoryNeed *need_of)
{
  const ampc_program *p = c->program;
  int64_t fits = 0, too_large = 1; /* largest batch known to fit, smallest known not to fit */
  for (uint32_t i = 0; i < p->n_blocks; i++)
    if (has_batch(&p->blocks[i]) && p->blocks[i].batch > too_large) too_large = p->blocks[i].batch;
  while (too_large - fits > 1) {
    int64_t middle = fits + (too_large - fits) / 2, need = need_with(c, middle, need_of);
    *(need >= 0 && need <= limit ? &fits : &too_large) = middle;
  }
  return fits;
}

const char *memory_refusal(Compile *c, int64_t need, int64_t limit, const char *limit_name,
                           MemoryNeed *need_of)
{
  const ampc_program *p = c->program;
  Text t = text_new(c->arena);
  text_printf(&t, "%s needs %s of memory, %s %s; ", p->source, memory_text(c->arena, need),
              limit_name, memory_text(c->arena, limit));
  int64_t batch = largest_batch(c, limit, need_of);
  if (!batch) {
    int64_t least = need_with(c, 1, need_of);
    text_puts(&t, "a batch of 1 does not fit either");
    if (least >= 0) text_printf(&t, ": it needs %s", memory_text(c->arena, least));
    return t.at;
  }
  text_printf(&t, "the largest batch that fits is %lld:", (long long)batch);
  for (uint32_t i = 0; i < p->n_blocks; i++)
    if (has_batch(&p->blocks[i]) && p->blocks[i].batch > batch)
      text_printf(&t, " --set %s=%lld", batch_setting(p, i, c->arena), (long long)batch);
  return t.at;
}
