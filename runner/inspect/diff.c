/* `amp inspect --diff A B`: the same job in two precisions, command by command. Matches the
 * commands of the two programs. Both have the commands of a block in the same order, but casts
 * differ and chains of elementwise ops are split at other places. The matching contains no crossing
 * pairs and has the highest sum of scores. A pair scores high if both commands have the same ops
 * except casts and come from the same line. It scores lower if only their main op is the same. */
#include <math.h>
#include <string.h>
#include "inspect.h"

typedef enum Change { CHANGE_none, CHANGE_types, CHANGE_removed, CHANGE_added } Change;
static const char *const change_words[] = {"same", "changed", "removed", "added"};
static const char *const change_marks[] = {"", "~", "<", ">"};

typedef struct Pair { /* a or b is NULL if the other has no match */
  const CommandRow *a, *b;
  Change change;
} Pair;
typedef VEC(Pair) Pairs;

/* ---- pairing ---- */

/* Returns the ops of a command without its casts: "relu drop"; "cast" for casts alone. */
static const char *ops_of(const Inspection *in, const CommandRow *r)
{
  const Graph *g = in->c->graph;
  const Group *group = &g->groups.at[r->group];
  Text t = text_new(in->c->arena);
  for (uint32_t i = 0; i < group->n; i++) {
    const Node *n = ir_node(g, group->nodes[i]);
    if (!op_has(n, T_casts)) text_printf(&t, "%s%s", t.n ? " " : "", op_of(n)->name);
  }
  if (!t.n) text_puts(&t, "cast");
  return t.at;
}

/* Returns the op of the command's anchor, else the last op that is not a cast. */
static OpKind main_op(const Inspection *in, const CommandRow *r)
{
  const Graph *g = in->c->graph;
  const Group *group = &g->groups.at[r->group];
  if (group->anchor.id) return ir_node(g, group->anchor)->op;
  for (uint32_t i = group->n; i-- > 0;)
    if (!op_has(ir_node(g, group->nodes[i]), T_casts)) return ir_node(g, group->nodes[i])->op;
  return OP_cast;
}

/* Returns the score of a pair: 4 for the same ops and shape, 3 for the same ops, 1 for the same
 * main op. 0, never a pair: the line or the main op differs. */
static uint32_t score(const Inspection *a, const CommandRow *x, const Inspection *b,
                      const CommandRow *y)
{
  if (x->place.line != y->place.line) return 0;
  if (strcmp(ops_of(a, x), ops_of(b, y)) == 0)
    return strcmp(x->facts.shape, y->facts.shape) == 0 ? 4 : 3;
  return main_op(a, x) == main_op(b, y);
}

/* Whether a pair is unchanged. Registers are not compared: the same text needs the same number. */
static bool same(const Facts *x, const Facts *y)
{
  return strcmp(x->types, y->types) == 0 && strcmp(x->shape, y->shape) == 0 &&
         (int64_t)x->read == (int64_t)y->read && (int64_t)x->written == (int64_t)y->written;
}

typedef struct Side { /* the commands of one block */
  const Inspection *in;
  const CommandRow *at;
  uint32_t n;
} Side;

static Side side_of(const Inspection *in, uint16_t block)
{
  Side s = {.in = in};
  for (uint32_t i = 0; i < in->rows.n; i++) {
    if (in->rows.at[i].block != block) continue;
    if (!s.n) s.at = &in->rows.at[i];
    s.n++;
  }
  return s;
}

/* Scores at [i * (b->n + 1) + j], for command i of a and command j of b. */
typedef struct Scores {
  uint32_t *match; /* score of the pair (i, j) */
  uint32_t *best;  /* the best sum over commands from i and j on */
} Scores;

static Scores score_all(const Side *a, const Side *b)
{
  uint32_t width = b->n + 1, room = (a->n + 1) * width;
  Scores s = {arena_array(a->in->c->arena, uint32_t, room),
              arena_array(a->in->c->arena, uint32_t, room)};
  for (uint32_t i = a->n; i-- > 0;)
    for (uint32_t j = b->n; j-- > 0;) {
      uint32_t here = i * width + j, *best = &s.best[here];
      s.match[here] = score(a->in, &a->at[i], b->in, &b->at[j]);
      *best = s.match[here] ? s.match[here] + best[width + 1] : 0;
      if (best[width] > *best) *best = best[width];
      if (best[1] > *best) *best = best[1];
    }
  return s;
}

static Pairs pair_up(const Side *a, const Side *b)
{
  Scores s = score_all(a, b);
  uint32_t width = b->n + 1;
  Pairs out = {0};
  for (uint32_t i = 0, j = 0; i < a->n || j < b->n;) {
    const uint32_t *best = &s.best[i * width + j], match = s.match[i * width + j]; /* 0 at an end */
    bool removed = i < a->n && (j == b->n || best[width] >= best[1]);
    Pair p = {NULL, NULL, removed ? CHANGE_removed : CHANGE_added};
    if (match && *best == match + best[width + 1])
      p = (Pair){&a->at[i++], &b->at[j++], CHANGE_none};
    else if (removed)
      p.a = &a->at[i++];
    else
      p.b = &b->at[j++];
    if (p.a && p.b && !same(&p.a->facts, &p.b->facts)) p.change = CHANGE_types;
    vec_push(a->in->c->arena, &out, p);
  }
  return out;
}

/* ---- the table ---- */

/* Returns "1.2 MB -> 602 kB", or one text if both are the same or one is missing. */
static const char *both(Arena *arena, const char *a, const char *b)
{
  if (!a || !b || strcmp(a, b) == 0) return a ? a : b;
  return arena_printf(arena, "%s -> %s", a, b);
}

static double moved(const CommandRow *r)
{
  return r ? r->facts.read + r->facts.written : -1;
}

static void add_pair(const Inspection *in, const Pair *p, Table *t)
{
  const CommandRow *a = p->a, *b = p->b;
  const Facts *x = a ? &a->facts : NULL, *y = b ? &b->facts : NULL;
  TableCell cells[7 + INSPECT_ARCHS] = {{change_marks[p->change]},
                                        {both(t->arena, x ? x->name : NULL, y ? y->name : NULL)},
                                        {y ? y->where : x->where},
                                        {both(t->arena, x ? x->types : NULL, y ? y->types : NULL)},
                                        {both(t->arena, x ? x->shape : NULL, y ? y->shape : NULL)},
                                        {.amount = moved(a)},
                                        {.amount = moved(b)}};
  for (uint32_t i = 0; i < in->n_archs; i++)
    cells[7 + i].text = both(t->arena, a ? inspect_usage_text(t->arena, &a->usage[i]) : NULL,
                             b ? inspect_usage_text(t->arena, &b->usage[i]) : NULL);
  table_row(t, fabs(moved(b) - moved(a)), cells);
}

/* Sums over one block in one precision. */
typedef struct Total {
  int64_t commands, casts, bytes;
} Total;

static Total total_of(const Side *s)
{
  const Graph *g = s->in->c->graph;
  Total t = {.commands = s->n};
  for (uint32_t i = 0; i < s->n; i++) {
    const Group *group = &g->groups.at[s->at[i].group];
    for (uint32_t k = 0; k < group->n; k++) t.casts += op_has(ir_node(g, group->nodes[k]), T_casts);
    t.bytes += (int64_t)moved(&s->at[i]);
  }
  return t;
}

static void put_block(const Side *a, const Side *b, uint16_t block, Table *t)
{
  Pairs pairs = pair_up(a, b);
  uint32_t unchanged = 0;
  for (uint32_t i = 0; i < pairs.n; i++) {
    if (pairs.at[i].change)
      add_pair(a->in, &pairs.at[i], t);
    else
      unchanged++;
  }
  Total x = total_of(a), y = total_of(b);
  table_say(t, 2, "\n%s", inspect_block_text(a->in, block));
  if (t->rows.n) table_put(t);
  table_say(t, 2,
            "  %u commands are the same in both; commands %lld -> %lld, casts %lld -> %lld, bytes "
            "moved %s -> %s",
            unchanged, (long long)x.commands, (long long)y.commands, (long long)x.casts,
            (long long)y.casts, bytes_text(t->arena, (double)x.bytes),
            bytes_text(t->arena, (double)y.bytes));
}

/* Returns the bytes of all spaces. Scratch of vendors' libraries is unknown without a device. */
static int64_t memory_of(const Inspection *in)
{
  int64_t bytes = 0;
  for (uint32_t i = 0; i < AMPC_SPACE_COUNT; i++)
    bytes += ampc_process_bytes(in->c->program, (ampc_space)i);
  return bytes;
}

static void open_table(const Inspection *a, const Inspection *b, Table *t)
{
  Text columns = text_new(a->c->arena);
  text_printf(&columns,
              "|name:key<22|line:number!1|types:<13|shape:!3<11|%s bytes:bytes|%s bytes:bytes",
              a->c->program->precision, b->c->program->precision);
  for (uint32_t i = 0; i < a->n_archs; i++) text_printf(&columns, "|%s:!2<10", a->arch[i]);
  table_open(t, a->c->arena, NULL, &a->c->options.view, columns.at);
}

int inspect_diff(const Inspection *a, const Inspection *b)
{
  Table t;
  open_table(a, b, &t);
  table_say(&t, 2, "%s, %s: %s -> %s", a->c->program->source, a->c->options.target,
            a->c->program->precision, b->c->program->precision);
  table_say(&t, 2, "  ~ changed, < only in the first, > only in the second");
  for (uint32_t i = 0; i < a->c->graph->blocks.n; i++) {
    Side x = side_of(a, (uint16_t)i), y = side_of(b, (uint16_t)i);
    put_block(&x, &y, (uint16_t)i, &t);
  }
  table_say(&t, 2, "\nmemory %s -> %s", bytes_text(t.arena, (double)memory_of(a)),
            bytes_text(t.arena, (double)memory_of(b)));
  table_close(&t);
  return 0;
}

/* ---- JSON ---- */

static json_t *row_or_null(const Inspection *in, const CommandRow *r)
{
  return r ? inspect_row_json(in, r) : json_null();
}

int inspect_diff_json(const Inspection *a, const Inspection *b)
{
  json_t *blocks = json_array();
  for (uint32_t i = 0; i < a->c->graph->blocks.n; i++) {
    Side x = side_of(a, (uint16_t)i), y = side_of(b, (uint16_t)i);
    Pairs pairs = pair_up(&x, &y);
    json_t *list = json_array();
    for (uint32_t k = 0; k < pairs.n; k++) {
      const Pair *p = &pairs.at[k];
      json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "change", change_words[p->change],
                                            "a", row_or_null(a, p->a), "b", row_or_null(b, p->b)));
    }
    json_array_append_new(
        blocks, json_pack("{s:s, s:o}", "name", a->c->graph->blocks.at[i].name, "commands", list));
  }
  return inspect_print_json(json_pack(
      "{s:s, s:s, s:[s,s], s:[I,I], s:o}", "job", a->c->program->source, "target",
      a->c->options.target, "precision", a->c->program->precision, b->c->program->precision,
      "memory", (json_int_t)memory_of(a), (json_int_t)memory_of(b), "blocks", blocks));
}
