/* Nodes that are alike but for numbers in the paths of their layers (h.0, h.1, ..) as one. */
#include "explain.h"
#include <string.h>

/* "h.*.attn": a star for each number between dots. */
static const char *pattern_of(Arena *arena, const char *path)
{
  Text t;
  text_init(&t, arena);
  for (const char *p = path; *p;) {
    size_t n = strcspn(p, "."), digits = strspn(p, "0123456789");
    if (digits == n && n)
      text_puts(&t, "*");
    else
      text_add(&t, p, n);
    p += n;
    if (*p) text_add(&t, p++, 1);
  }
  return t.n ? t.at : "";
}

static bool is_alike(const Compile *c, const ExplainLine *l, const ExplainNode *n,
                     const char *pattern, const char *type)
{
  const Node *a = ir_node(c->graph, l->first->value), *b = ir_node(c->graph, n->value);
  return a->op == b->op && a->row == b->row && l->first->place.line == n->place.line &&
         l->first->place.source == n->place.source && strcmp(l->first->reason, n->reason) == 0 &&
         strcmp(l->path, pattern) == 0 && strcmp(l->type, type) == 0;
}

/* The latest ones first: layers that are alike stand one after the other. */
static uint32_t find_line(const Compile *c, const ExplainLines *lines, const ExplainNode *n,
                          const char *pattern, const char *type)
{
  for (uint32_t i = lines->n; i-- > 0;)
    if (is_alike(c, &lines->at[i], n, pattern, type)) return i;
  return lines->n;
}

/* Views and what stays as it is stored say nothing that their users do not. */
static bool is_shown(const Compile *c, const ExplainNode *n)
{
  OpTemplate tmpl = op_of(ir_node(c->graph, n->value))->tmpl;
  return tmpl != TMPL_leaf && tmpl != TMPL_alias && tmpl != TMPL_loop;
}

void explain_fold(const Explanation *e, const ExplainBlock *b, uint32_t line, ExplainLines *out,
                  uint32_t *line_of)
{
  Compile *c = e->c;
  *out = (ExplainLines){0};
  for (uint32_t i = 0; i < b->nodes.n; i++) {
    const ExplainNode *n = &b->nodes.at[i];
    if (!is_shown(c, n) || (line && n->place.line != line)) continue;
    const char *pattern = pattern_of(c->arena, n->path);
    const char *type = ir_type_text(c, ir_node(c->graph, n->value));
    uint32_t at = find_line(c, out, n, pattern, type);
    if (at == out->n)
      vec_push(c->arena, out, (ExplainLine){.first = n, .path = pattern, .type = type});
    ExplainLine *l = &out->at[at];
    l->times++;
    l->flops += n->count.flops;
    l->bytes += n->count.read + n->count.written;
    l->us += n->us;
    if (line_of) line_of[n->value.id] = at + 1;
  }
}
