/* Matches patterns of model and optimizer clauses. A pattern is a text (common/pattern.h
 * explains it), a layer type, or a list of patterns. "{a,b}.weight" is short for a list. */
#include "model.h"
#include "common/pattern.h"

/* Returns the length of the first segment: 3 for "fc1.weight". */
static size_t segment(const char *s)
{
  return strcspn(s, ".");
}

static const char *next_segment(const char *s)
{
  s += segment(s);
  return *s ? s + 1 : s;
}

/* The search for the matches of one pattern. */
typedef struct Search {
  const Match *match;
  Datum pattern;
  uint32_t found, tried;
  NameVec segments; /* segments of all paths, for a suggestion if nothing matched */
  bool gathering;
} Search;

/* True if the parameter is below such a layer at any depth, as for `freeze(BatchNorm2d)`. */
static bool built_by(const Instance *m, const Class *class)
{
  for (; m; m = m->owner)
    if (m->class == class) return true;
  return false;
}

static void note_segments(Lower *l, Search *s, const char *path)
{
  for (; *path; path = next_segment(path))
    vec_push(l->arena, &s->segments, arena_strndup(l->arena, path, segment(path)));
}

/* True if `init` skips the parameter. A layer type skips biases, which "**.bias" names. Every
 * `init` skips buffers: the layer sets the initial values of its running statistics. */
static bool is_left_out(const Search *s, const ParamSlot *p)
{
  if (!s->match->initial) return false;
  return p->buffer || (s->pattern.kind == D_class && strncmp(p->name, "bias", 4) == 0);
}

/* Called for each parameter below the roots. */
static void try_param(Lower *l, ParamSlot *p, const char *path, bool alias, void *data)
{
  Search *s = data;
  (void)alias;
  s->tried++;
  if (is_left_out(s, p)) return;
  if (s->gathering) {
    note_segments(l, s, path);
    return;
  }
  bool fits = s->pattern.kind == D_class ? built_by(p->owner, s->pattern.as.class)
                                         : pattern_matches(s->pattern.as.text, path, false);
  if (!fits) return;
  s->found++;
  s->match->param(l, p, s->match->data);
}

/* Called for each module below the roots. */
static void try_module(Lower *l, Instance *m, const char *path, void *data)
{
  Search *s = data;
  s->tried++;
  if (s->gathering) {
    note_segments(l, s, path);
    return;
  }
  bool fits = s->pattern.kind == D_class ? m->class == s->pattern.as.class
                                         : pattern_matches(s->pattern.as.text, path, true);
  if (!fits) return;
  s->found++;
  s->match->module(l, m, s->match->data);
}

/* Returns the pattern with its first unknown segment replaced by the nearest known segment. */
static const char *suggestion(Lower *l, const Search *s, const char *pattern)
{
  for (const char *p = pattern; *p; p = next_segment(p)) {
    const char *name = arena_strndup(l->arena, p, segment(p));
    bool known = strchr(name, '*') != NULL;
    for (uint32_t i = 0; i < s->segments.n && !known; i++)
      known = strcmp(s->segments.at[i], name) == 0;
    if (known) continue;
    const char *near = diag_nearest(name, s->segments.at, s->segments.n);
    return near ? arena_printf(l->arena, "%.*s%s%s", (int)(p - pattern), pattern, near,
                               p + segment(p))
                : NULL;
  }
  return NULL;
}

/* Tries every parameter or module below the roots. */
static void search(Lower *l, Search *s)
{
  const Match *m = s->match;
  MemberVisitor walk = {m->modules ? try_module : NULL, m->modules ? NULL : try_param, s};
  for (uint32_t i = 0; i < m->roots.n; i++) {
    const Root *r = &m->roots.at[i];
    if (m->modules && r->path[0]) try_module(l, r->part.as.instance, r->path, s);
    if (r->part.kind == D_instance)
      walk_members(l, r->part.as.instance, r->path, &walk);
    else if (!m->modules)
      try_param(l, r->part.as.param, r->path, false, s);
  }
}

/* Reports a pattern without a match: nearly always a layer was renamed. */
static void no_match(Lower *l, Search *s, Span span)
{
  const char *what = s->match->modules                                 ? "module"
                     : s->match->initial && s->pattern.kind == D_class ? "weight"
                                                                       : "parameter";
  const char *owner = s->match->owner ? arena_printf(l->arena, "`%s`", s->match->owner) : "the job";
  if (s->pattern.kind == D_class) {
    if (s->match->modules)
      fail(l, E501, span, "%s has no layer `%s`", owner, s->pattern.as.class->name);
    else
      fail(l, E501, span, "%s has no %s of a %s", owner, what, s->pattern.as.class->name);
    return;
  }
  fail(l, E501, span, "pattern \"%s\" matches no %s of %s", s->pattern.as.text, what, owner);
  if (diag_is_muted(l->c)) return;
  s->gathering = true;
  search(l, s);
  const char *near = suggestion(l, s, s->pattern.as.text);
  if (near) diag_help(l->c, "did you mean \"%s\"?", near);
}

Datum pattern_choices(Lower *l, Datum pattern)
{
  const char *text = pattern.kind == D_str ? pattern.as.text : "";
  const char *open = strchr(text, '{'), *close = open ? strchr(open, '}') : NULL;
  if (!close) return pattern;
  DatumVec all = {0};
  for (const char *s = open + 1; s <= close; s += strcspn(s, ",}") + 1) {
    const char *one = arena_printf(l->arena, "%.*s%.*s%s", (int)(open - text), text,
                                   (int)strcspn(s, ",}"), s, close + 1);
    vec_push(l->arena, &all, pattern_choices(l, d_str(one)));
  }
  return d_list_of(l, &all);
}

static void match_one(Lower *l, const Match *m, Datum pattern, Span span)
{
  pattern = pattern_choices(l, pattern);
  if (pattern.kind == D_list) {
    for (uint32_t i = 0; i < pattern.n; i++) match_one(l, m, pattern.as.list[i], span);
    return;
  }
  if (pattern.kind != D_str && pattern.kind != D_class) {
    fail(l, E209, span, "a pattern is a str or a layer type, got %s", d_kind_text(l, pattern));
    return;
  }
  Search s = {.match = m, .pattern = pattern};
  search(l, &s);
  if (!count_work(l, s.tried / ELEMENTS_PER_WORK, span)) return;
  if (!s.found && !m->broken) no_match(l, &s, span);
}

/* Calls m->param or m->module for each match of any of the patterns. */
void match_patterns(Lower *l, const Match *m, const ArgValue *patterns, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) match_one(l, m, patterns[i].value, patterns[i].span);
}
