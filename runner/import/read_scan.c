/* Scan, which amp export writes for loops. Its step has several lines: statements with a `scan`,
 * and in the last line the results. */
#include <stdlib.h>
#include <string.h>
#include "read_ops.h"

typedef struct Loop {
  const OnnxGraph *body;
  size_t n_states, n_turns;
  bool reversed;
  uint32_t begin; /* the steps of the body begin here */
  Text before, inside;
  NameMap held; /* names of values from outside that the lines have: "s12" */
} Loop;

/* Whether a list of the node is absent or has only this number. */
static bool all_are(Reader *r, const char *name, int64_t number)
{
  const OnnxAttribute *a = attribute(r, name);
  for (size_t i = 0; a && i < a->n_ints; i++)
    if (a->ints[i] != number) return false;
  return a || number == 0;
}

/* Why it is no loop of jobs; NULL: it is one. */
static const char *read_loop(Reader *r, Loop *l)
{
  const OnnxAttribute *a = attribute(r, "body"), *d = attribute(r, "scan_input_directions");
  int64_t turns = attr_number(r, "num_scan_inputs", 0);
  *l = (Loop){.body = a ? a->g : NULL, .reversed = d && d->n_ints && d->ints[0] == 1};
  l->held.arena = r->arena;
  l->before = text_new(r->arena);
  l->inside = text_new(r->arena);
  if (!l->body || turns < 1 || (size_t)turns > r->node->n_input) return "without inputs to scan";
  l->n_turns = (size_t)turns;
  l->n_states = r->node->n_input - l->n_turns;
  bool fits = l->body->n_input == r->node->n_input && l->body->n_output == r->node->n_output &&
              r->node->n_output >= l->n_states;
  for (size_t i = 0; fits && i < r->node->n_input; i++)
    fits = in(r, i) && l->body->input[i]->name && rank_of(in(r, i)) >= 0;
  if (!fits) return "with a body that does not fit";
  bool usual =
      all_are(r, "scan_input_axes", 0) && all_are(r, "scan_output_axes", 0) &&
      all_are(r, "scan_input_directions", l->reversed) &&
      (r->node->n_output == l->n_states || all_are(r, "scan_output_directions", l->reversed));
  return usual ? NULL : "along other axes than the first, or in several directions";
}

static bool reads_weight(const Step *s)
{
  return *s->text == '#' && !strchr(s->text, '(');
}

/* Whether a step of the body computes the value. */
static bool is_inside(const Reader *r, const Loop *l, uint32_t id)
{
  uint32_t step = r->values.at[id]->step;
  return step > l->begin && !reads_weight(&r->steps.at[step - 1]);
}

/* Adds code in which values have names. The lines before the loop name those from outside. */
static void add_code(Reader *r, Loop *l, Text *to, const char *code)
{
  for (const char *at = code; *at;) {
    size_t n = strcspn(at, "$");
    text_add(to, at, n);
    at += n;
    if (!*at) return;
    char *end;
    uint32_t id = (uint32_t)strtoul(at + 1, &end, 10);
    at = end;
    const char *name = text(r, "s%u", id);
    void **held = names_at(&l->held, name);
    if (!*held && !is_inside(r, l, id)) text_printf(&l->before, "%s = $%u\n", name, id);
    *held = l;
    text_puts(to, name);
  }
}

/* Adds the step as lines: its statements, if it is a loop, and "s1, s2 = .." */
static void add_step_lines(Reader *r, Loop *l, const Step *s)
{
  const char *last = strrchr(s->text, '\n'), *results = last ? last + 1 : s->text;
  add_code(r, l, &l->inside, arena_strndup(r->arena, s->text, (size_t)(results - s->text)));
  for (uint32_t i = 0; i < s->n_out; i++)
    text_printf(&l->inside, "%ss%u", i ? ", " : "", s->out[i]);
  text_puts(&l->inside, " = ");
  add_code(r, l, &l->inside, results);
  text_puts(&l->inside, "\n");
}

/* Removes the steps of the body. Those that read a weight stay, for the lines before the loop. */
static void end_body(Reader *r, const Loop *l)
{
  uint32_t end = r->steps.n, n = l->begin;
  for (uint32_t i = l->begin; i < end; i++) {
    const Step *s = &r->steps.at[i];
    bool stays = reads_weight(s);
    for (uint32_t k = 0; k < s->n_out; k++) r->values.at[s->out[k]]->step = stays ? n + 1 : 0;
    if (stays) r->steps.at[n++] = *s;
  }
  r->steps.n = n;
}

/* The text of the loop, after its body has been read. */
static const char *loop_text(Reader *r, Loop *l, Value *const *state, const char *turns,
                             const char *of, uint32_t turn)
{
  const char *carried = "", *next = "", *results = "", *emits = "", *name;
  Text values = text_new(r->arena);
  for (size_t i = 0; i < l->n_states; i++) {
    name = text(r, "s%u", state[i]->id);
    add_code(r, l, &values, text(r, "$%u", state[i]->id));
    carried = text(r, "%s%s%s", carried, i ? ", " : "", name);
  }
  add_code(r, l, &l->inside, turns);
  for (uint32_t i = l->begin; i < r->steps.n; i++)
    if (!reads_weight(&r->steps.at[i])) add_step_lines(r, l, &r->steps.at[i]);
  for (size_t i = 0; i < l->body->n_output; i++) {
    const Value *v = value_named(r, l->body->output[i]->name);
    Text value = text_new(r->arena);
    add_code(r, l, &value, whole_ref(r, v));
    name = i < l->n_states ? text(r, "s%u", state[i]->id) : text(r, "e%u_%zu", v->id, i);
    if (i < l->n_states)
      next = text(r, "%s%s%s", next, i ? ", " : "", value.at);
    else
      emits = text(r, "%semit %s = %s\n", emits, name, value.at);
    results = text(r, "%s%s%s", results, i ? ", " : "", name);
  }
  values = text_new(r->arena);
  add_code(r, l, &values, of);
  return text(r, "%sscan t%u in %s carry %s {\n%s%s%s = %s\n}\n%s",
              l->before.at ? l->before.at : "", turn,
              text(r, l->reversed ? "reversed(range(%s.size(0)))" : "range(%s.size(0))", values.at),
              carried, l->inside.at ? l->inside.at : "", emits, carried, next, results);
}

ampc_status read_scan(Reader *r)
{
  Loop l;
  const char *why = read_loop(r, &l), *turns = "", *of = "";
  if (!why && l.n_states == 0) why = "without a state";
  if (why) return refuse(r, why), AMPC_OK;
  Value **state = arena_array(r->arena, Value *, l.n_states + 1);
  uint32_t refused = r->refused.n, begin = r->steps.n;
  for (size_t i = 0; i < r->node->n_input; i++) {
    bool turn = i >= l.n_states;
    const Value *x = in(r, i);
    Value *whole = between(r, whole_ref(r, x)), *v = whole;
    whole->type = x->type;
    if (turn) v = between(r, text(r, "$%u[0]", whole->id));
    v->type = x->type;
    *names_at(&r->names, l.body->input[i]->name) = v;
    if (!turn) state[i] = v;
    if (!turn) continue;
    of = text(r, "$%u", whole->id);
    turns = text(r, "%ss%u = %s[t%u]\n", turns, v->id, of, begin);
    *names_at(&l.held, text(r, "s%u", v->id)) = r;
  }
  l.begin = r->steps.n;
  ampc_status status = read_inner(r, l.body);
  bool whole = true;
  for (size_t i = 0; i < l.body->n_output && !status; i++) {
    const Value *v = value_named(r, l.body->output[i]->name);
    whole = whole && v && v->kind != VALUE_unread;
  }
  if (!status && !whole) refuse(r, "with a body that has been refused, or lacks a result");
  if (status || r->dropped || r->refused.n != refused) return status;
  const char *loop = loop_text(r, &l, state, turns, of, begin);
  end_body(r, &l);
  give_results(r, loop, (uint32_t)r->node->n_output);
  return AMPC_OK;
}
