/* Prints ops with a frame of their own: templates/<op>.cu with its words replaced.
 * templates/README.md explains templates, words.def has the words:
 *   GRID_LOOP($index, i, $count) {          becomes  GRID_LOOP(int, i, 4096) {
 *   @copy16      copy16[i] = to_f16(w);     is printed if the kernel has an argument copy16 */
#include "template.h"
#include "compiler/base/user_text.h"
#include "compiler/graph/optimizers.h"
#include <assert.h>
#include <string.h>

const Optimizer *own_optimizer(const Template *t)
{
  return &t->k->g->optimizers.at[attr_int(t->n, "optimizer")];
}

const ParamGroup *own_group(const Template *t)
{
  return &own_optimizer(t)->groups.at[attr_int(t->n, "group")];
}

/* True if this is the first group of the optimizer that has parameters. Each group has a learning
 * rate, but the state can show only the rate of this group. */
bool is_first_group(const Template *t)
{
  const Optimizer *o = own_optimizer(t);
  uint32_t first = 0;
  while (!o->groups.at[first].count) first++;
  return attr_int(t->n, "group") == first;
}

bool has_space(const Template *t, ampc_space space)
{
  uint32_t i = 0;
  while (i < t->k->args.n && t->k->args.at[i].place.space != space) i++;
  return i < t->k->args.n;
}

bool has_role(const Template *t, ArgRole role)
{
  uint32_t i = 0;
  while (i < t->k->args.n && t->k->args.at[i].role != role) i++;
  return i < t->k->args.n;
}

/* ---- words ---- */

/* Returns the text of $name for an input: its single value, its element i, or for tiles its
 * argument. */
const char *input_text(const Template *t, uint32_t i)
{
  if (op_has(t->n, T_windows)) return windows_value(t->k, &t->chain, i);
  if (op_has(t->n, T_tiles)) return pointer_name(t->k, t->n->in[i]);
  const Node *root = ir_node(t->k->g, value_root(t->k->g, t->n->in[i]));
  Index index = {0};
  if (root->pitch) { /* a probe */
    const int64_t row = root->dim[root->rank - 1];
    index.n = 2;
    index.term[0] = (IndexTerm){.of = VAR_i, .over = row, .stride = root->pitch};
    index.term[1] = (IndexTerm){.of = VAR_i, .over = 1, .size = row, .stride = 1};
  } else if (ir_elements(ir_node(t->k->g, t->n->in[i])) > 1) {
    index = index_at(VAR_i);
  }
  Operand o = load_operand(t->k, t->n->in[i], &index);
  if (op_has(t->n, T_assigns) || t->n->op == OP_store)
    return stored(t->k, ir_node(t->k->g, t->n->in[i])->dtype, o.text);
  return op_has(t->n, T_along) ? o.text : as_real(t->k, o).text;
}

/* Returns the number of elements in a row that an op `store` stores. */
int64_t store_inner(const Template *t)
{
  const Node *x = ir_in(t->k->c, t->n, 0);
  uint32_t axis = (uint32_t)attr_int(t->n, "axis");
  return dims_product(x->dim + axis + 1, x->rank - axis - 1u);
}

const char *number_text(const Template *t, int64_t v)
{
  return arena_printf(t->k->c->arena, "%lld", (long long)v);
}

/* Returns how many partial results there are: the results that the op writes, or the results in
 * input 0 that it combines. */
int64_t partials_of(const Template *t)
{
  return op_has(t->n, T_partials) ? t->n->dim[0] : ir_in(t->k->c, t->n, 0)->dim[0];
}

/* Returns the number of elements in one part of a partial result: a multiple of 16, the number of
 * accumulators of a reduction on the CPU, or of the size of a code block. */
int64_t part_size(const Template *t)
{
  int64_t n = partials_of(t), part = (t->count + n - 1) / n;
  return ampc_round_up(part, update_vector(t->k->g, t->n) == 4 ? 16 : AMPC_CODE_BLOCK);
}

bool has_any_sign(const Template *t, uint32_t moment)
{
  return !(optimizer_of(own_optimizer(t))->never_negative >> moment & 1);
}

const char *attr_text(const Template *t, uint32_t i)
{
  bool number = op_of(t->n)->signature.attr[i].kind == ATTR_float;
  return number ? real_text(t->k, t->n->attr[i].f) : number_text(t, t->n->attr[i].i);
}

static void put_parameter(const Parameter *p, int64_t elements, int64_t first_part, void *data)
{
  const Template *t = data;
  int64_t at = p->offset - own_group(t)->first;
  EMIT(t->k->p, "  %lld, %lld, %lld, // %s\n", (long long)first_part, (long long)at,
       (long long)(at + elements), comment_text(t->k->c->arena, p->path, strlen(p->path), 60));
}

/* Prints for each parameter of the group its first part, its first element and the element after
 * its last one; then the number of parts. */
const char *put_parameters(Template *t)
{
  param_parts_each(t->k->g, attr_int(t->n, "optimizer"), (uint32_t)attr_int(t->n, "group"),
                   &t->parts, put_parameter, t);
  EMIT(t->k->p, "  %lld\n", (long long)t->parts.n);
  return NULL;
}

/* ---- lines ---- */

static bool line_stands(Template *t, const TemplateLine *line)
{
  for (; line; line = line->in) {
    const char *s = line->text;
    for (Mark m; mark_next(&s, &m);)
      if (word_holds(t, m.word, m.n) != m.wanted) return false;
  }
  return true;
}

/* Replaces the words of a line. Returns false if a word has printed the whole line itself. */
static bool fill_line(Template *t, Text *line, const char *s, const char *end)
{
  for (size_t n; s < end; s += 1 + n) {
    n = *s == '$' ? name_size(s + 1) : 0;
    const char *text = n ? word_text(t, s + 1, n) : NULL;
    if (n && !text) return false;
    text_add(line, text ? text : s, text ? strlen(text) : 1);
  }
  return true;
}

static void put_line(Template *t, const TemplateLine *from)
{
  Printer *p = t->k->p;
  const char *s = line_text(from), *file = arena_printf(t->k->c->arena, "templates/%s", from->file);
  int outside = p->indent, levels = t->k->is_part && outside ? outside - 1 : 0;
  levels += from->indent / 2;
  Text line = text_new(t->k->c->arena);
  for (int i = 0; i < levels; i++) text_puts(&line, "  ");
  p->indent = levels + (int)strspn(s, " ") / 2;
  bool filled = fill_line(t, &line, s, from->end);
  p->indent = outside;
  if (filled && strncmp(line.at, "__global__", 10) == 0) /* a long list of arguments */
    printer_wrap(p, file, (int)from->number, "    ", "%s\n", line.at);
  else if (filled) {
    const char *text = fold_line(t->k, line.at);
    printer_text(p, file, from->number, text, strlen(text));
  }
  if (filled && !line.n) EMIT(p, "\n");
}

/* True for the kernel's name and its braces, which a part of a launch omits. */
static bool is_frame_line(const TemplateLine *line)
{
  return *line->text == '{' || *line->text == '}' || *line->text == '_';
}

/* Returns $count: the number of elements that a template's loop visits. */
static int64_t walked(const Template *t)
{
  int64_t range = node_range(t->k->g, t->n);
  if (range >= 0) return range;
  if (op_has(t->n, T_running) || t->n->op == OP_store || t->n->op == OP_statistics ||
      t->n->op == OP_check_index || t->n->op == OP_ranges)
    return ir_elements(ir_node(t->k->g, t->n->in[0]));
  return 1;
}

void put_template(Template *t, const EmbeddedFile *file)
{
  TemplateLines lines = {.arena = t->k->c->arena};
  template_read(&lines, file);
  for (uint32_t i = 0; i < lines.n; i++)
    if (!(t->k->is_part && is_frame_line(lines.at[i])) && line_stands(t, lines.at[i]))
      put_line(t, lines.at[i]);
}

const EmbeddedFile *kernel_file(const Kernel *k)
{
  const OpInfo *op = op_of(ir_node(k->g, k->group->anchor));
  if (k->part->tiles && k->part->tiles->step) return template_step_file(op);
  return k->part->tiles && k->part->tiles->tensor ? template_tensor_file(op) : template_file(op);
}

/* Finds the images that a pool reads and the results that it writes. The gradient of a pool writes
 * what the pool reads, so its node and its input are swapped. */
static void find_images(Template *t)
{
  bool back = t->op->gradient == grad_none || t->op->gradient == grad_image_backward;
  const Node *in = ir_in(t->k->c, t->n, 0);
  assert(t->n->layout == LAYOUT_channels_last && in->layout == LAYOUT_channels_last);
  t->image = ir_image_dims(back ? t->n : in);
  t->results = ir_image_dims(back ? in : t->n);
}

static Template template_of(Kernel *k)
{
  const Node *n = ir_node(k->g, k->group->anchor);
  const OpInfo *op = op_of(n);
  Template t = {.k = k, .n = n, .op = op};
  t.count = walked(&t);
  if (op_image_inputs(op)) find_images(&t);
  if (k->part->windows) t.windows = *k->part->windows;
  if (k->part->tiles) t.walk = *k->part->tiles;
  if (op->traits & T_along) t.along = along_of(k, n);
  if (is_pick(op)) t.pick = pick_of(k, n);
  if (has_attr(op, "group"))
    t.parts = param_parts(k->g, attr_int(n, "optimizer"), (uint32_t)attr_int(n, "group"));
  return t;
}

bool template_uses(Kernel *k, const char *name)
{
  Template t = template_of(k);
  TemplateLines lines = {.arena = k->c->arena};
  template_read(&lines, kernel_file(k));
  for (uint32_t i = 0; i < lines.n; i++)
    if (line_stands(&t, lines.at[i]) &&
        (line_uses(lines.at[i], name) ||
         (line_uses(lines.at[i], "formula") && formula_reads(&t, name))))
      return true;
  return false;
}

void emit_file(Kernel *k)
{
  Template t = template_of(k);
  put_template(&t, kernel_file(k));
}
