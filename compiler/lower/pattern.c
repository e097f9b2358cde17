/* Patterns of model and optimizer clauses: `*` within a segment, `**` any number of segments, a
 * module's name for all it contains; or a layer type, or a list of patterns. */
#include "lower.h"

/* Length of the first segment: 3 of "fc1.weight". */
static size_t segment(const char *s)
{
  return strcspn(s, ".");
}

static const char *next_segment(const char *s)
{
  s += segment(s);
  return *s ? s + 1 : s;
}

/* One segment against one of a pattern: "conv*" matches "conv1". Short texts, so plain
 * backtracking will do. */
static bool glob(const char *p, size_t n, const char *s, size_t m)
{
  if (n == 0) return m == 0;
  if (*p == '*') {
    for (size_t skip = 0; skip <= m; skip++)
      if (glob(p + 1, n - 1, s + skip, m - skip)) return true;
    return false;
  }
  return m > 0 && *p == *s && glob(p + 1, n - 1, s + 1, m - 1);
}

/* `whole`: the path itself must match, as where modules are named. Else what a matching module
 * contains matches too: "encoder" names all parameters below it. */
bool pattern_matches(const char *pattern, const char *path, bool whole)
{
  if (!*pattern) return !whole || !*path;
  size_t n = segment(pattern);
  const char *rest = next_segment(pattern);
  if (n == 2 && memcmp(pattern, "**", 2) == 0) {
    if (!*rest) return true;
    for (const char *s = path;; s = next_segment(s)) {
      if (pattern_matches(rest, s, whole)) return true;
      if (!*s) return false;
    }
  }
  if (!*path || !glob(pattern, n, path, segment(path))) return false;
  return pattern_matches(rest, next_segment(path), whole);
}

/* One pattern on its way through a model. */
typedef struct Search {
  const Match *match;
  Datum pattern;
  uint32_t found;
  NameVec segments; /* of all paths, for the suggestion */
} Search;

/* `freeze(BatchNorm2d)`: the parameters of every such layer, however deep. */
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

/* `init(Conv2d, kaiming_normal_())` is not meant for biases, which are named: "**.bias". No `init`
 * is meant for buffers: running statistics begin as their layer says. */
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
  if (is_left_out(s, p)) return;
  note_segments(l, s, path);
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
  note_segments(l, s, path);
  bool fits = s->pattern.kind == D_class ? m->class == s->pattern.as.class
                                         : pattern_matches(s->pattern.as.text, path, true);
  if (!fits) return;
  s->found++;
  s->match->module(l, m, s->match->data);
}

/* The pattern with its first unknown segment replaced by the nearest known one. */
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

/* A pattern that matches nothing is a mistake nearly always: a layer was renamed. */
static void no_match(Lower *l, const Search *s, Span span)
{
  const char *what = s->match->modules                                 ? "module"
                     : s->match->initial && s->pattern.kind == D_class ? "weight"
                                                                       : "parameter";
  const char *owner = s->match->owner;
  if (s->pattern.kind == D_class) {
    fail(l, E501, span, "`%s` has no %s of a %s", owner, what, s->pattern.as.class->name);
    return;
  }
  fail(l, E501, span, "pattern \"%s\" matches no %s of `%s`", s->pattern.as.text, what, owner);
  const char *near = suggestion(l, s, s->pattern.as.text);
  if (near) diag_help(l->c, "did you mean \"%s\"?", near);
}

static void match_one(Lower *l, const Match *m, Datum pattern, Span span)
{
  if (pattern.kind == D_list) {
    for (uint32_t i = 0; i < pattern.n; i++) match_one(l, m, pattern.as.list[i], span);
    return;
  }
  if (pattern.kind != D_str && pattern.kind != D_class) {
    fail(l, E209, span, "a pattern is a str or a layer type, got %s", d_kind_text(l, pattern));
    return;
  }
  Search s = {.match = m, .pattern = pattern};
  MemberVisitor walk = {m->modules ? try_module : NULL, m->modules ? NULL : try_param, &s};
  for (uint32_t i = 0; i < m->roots.n; i++) {
    const Root *r = &m->roots.at[i];
    if (r->part.kind == D_instance)
      walk_members(l, r->part.as.instance, r->path, &walk);
    else if (!m->modules)
      try_param(l, r->part.as.param, r->path, false, &s);
  }
  if (!s.found && !m->broken) no_match(l, &s, span);
}

/* Calls m->param or m->module for everything that any of the patterns names. */
void match_patterns(Lower *l, const Match *m, const ArgValue *patterns, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) match_one(l, m, patterns[i].value, patterns[i].span);
}
