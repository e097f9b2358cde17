/* Which modules contain a node: exporters write it into metadata or into names. */
#include <ctype.h>
#include <string.h>
#include "read.h"

/* Limits that no net reaches: deeper scopes are ignored, longer paths are cut or ignored. */
enum { MOST_SCOPES = 32, LONGEST_PATH = 400 };

/* ---- names ---- */

const char *name_clean(Reader *r, const char *name, const char *missing)
{
  char *s = arena_strdup(r->arena, name);
  if (!*s) return missing;
  for (char *c = s; *c; c++)
    if (!isalnum((unsigned char)*c) || (unsigned char)*c > 127) *c = '_';
  return isdigit((unsigned char)*s) ? text(r, "_%s", s) : s;
}

/* Numbers stay: they are positions in a list. */
const char *path_clean(Reader *r, const char *path)
{
  const char *clean = "";
  if (strlen(path) > LONGEST_PATH)
    return name_clean(r, arena_strndup(r->arena, path, LONGEST_PATH), "_");
  while (*path) {
    size_t n = strcspn(path, ".");
    char *part = arena_strndup(r->arena, path, n);
    bool number = n > 0 && n < 7 && strspn(part, "0123456789") == n;
    const char *as = number ? part : name_clean(r, part, "_");
    clean = *clean ? text(r, "%s.%s", clean, as) : as;
    path += n + (path[n] == '.');
  }
  return clean;
}

bool path_within(const char *path, const char *around)
{
  size_t n = strlen(around);
  return n == 0 || (strncmp(path, around, n) == 0 && (path[n] == 0 || path[n] == '.'));
}

const char *path_parent(Reader *r, const char *path)
{
  const char *dot = strrchr(path, '.');
  return dot ? arena_strndup(r->arena, path, (size_t)(dot - path)) : "";
}

/* ---- metadata of PyTorch: "['', 'layer1', 'layer1.0', 'layer1.0.conv1', 'conv2d']" ---- */

static const char *next_quoted(Reader *r, const char **at)
{
  const char *from = strchr(*at, '\''), *to = from ? strchr(from + 1, '\'') : NULL;
  *at = to ? to + 1 : "";
  return to ? arena_strndup(r->arena, from + 1, (size_t)(to - from) - 1) : NULL;
}

static void add_scope(Reader *r, Scopes *all, const char *key, const char *class_name)
{
  const char *path = key, *at;
  if (all->n >= MOST_SCOPES || strlen(key) > LONGEST_PATH) return;
  while ((at = strchr(path, '@'))) /* "layer1@1.conv": the second call of layer1 */
    path = text(r, "%.*s%s", (int)(at - path), path, at + 1 + strspn(at + 1, "0123456789"));
  path = path_clean(r, path);
  const char *around = all->n ? all->at[all->n - 1].path : NULL;
  if (around && (!path_within(path, around) || strcmp(path, around) == 0)) return;
  const char *last = class_name ? strrchr(class_name, '.') : NULL;
  if (last) last += 1 + strspn(last + 1, "_"); /* "_DenseLayer" */
  Scope s = {key, path, class_name ? name_clean(r, last ? last : class_name, "Net") : NULL,
             class_name && strncmp(class_name, "torch.nn.modules.", 17) == 0};
  vec_push(r->arena, all, s);
}

static bool read_metadata(Reader *r, Scopes *all)
{
  const char *names = onnx_metadata(r->arena, r->node, "pkg.torch.onnx.name_scopes");
  const char *classes = onnx_metadata(r->arena, r->node, "pkg.torch.onnx.class_hierarchy");
  if (!names) return false;
  const char *name = next_quoted(r, &names);
  while (name) { /* the last entry is the operator */
    const char *class_name = classes ? next_quoted(r, &classes) : NULL,
               *next = next_quoted(r, &names);
    if (next) add_scope(r, all, name, class_name);
    name = next;
  }
  return all->n > 0;
}

/* ---- names of nodes: "/layer1/layer1.0/conv1/Conv", or from amp export "layer1.0.conv1/Conv_3"
 * ---- */

/* Whether the names of nodes are paths. Then a node without a slash belongs to the whole net. */
static bool has_paths(Reader *r)
{
  for (size_t i = 0; i < r->graph->n_node && !r->paths_asked; i++)
    r->has_paths =
        r->has_paths || (r->graph->node[i]->name && strchr(r->graph->node[i]->name, '/'));
  r->paths_asked = true;
  return r->has_paths;
}

/* An element of a list has the names of the list before its own: "layer1/layer1.0",
 * "cv2.0/cv2.0.1". */
static const char *without_repeat(const char *part, const char *path)
{
  while (path && *path) {
    if (path_within(part, path) && part[strlen(path)]) return part + strlen(path) + 1;
    path = strchr(path, '.');
    if (path) path++;
  }
  return part;
}

static bool read_name(Reader *r, Scopes *all)
{
  const char *name = r->node->name, *path = "";
  if (!name || !has_paths(r)) return false;
  add_scope(r, all, "", NULL);
  name += *name == '/';
  for (const char *slash; (slash = strchr(name, '/')) && all->n < MOST_SCOPES; name = slash + 1) {
    size_t old = strlen(path);
    const char *part = without_repeat(arena_strndup(r->arena, name, (size_t)(slash - name)), path);
    path = *path ? text(r, "%s.%s", path, part) : part;
    if (strlen(path) > LONGEST_PATH) break;
    for (const char *dot = path + old; (dot = strchr(dot, '.')); dot++)
      add_scope(r, all, arena_strndup(r->arena, path, (size_t)(dot - path)), NULL);
    add_scope(r, all, path, NULL);
  }
  return true;
}

/* A node without a name is in the module of the latest step that made one of its operands. */
static void follow_operands(Reader *r, Scopes *all)
{
  const Step *latest = NULL;
  for (size_t i = 0; i < r->node->n_input; i++) {
    const Value *v = value_named(r, r->node->input[i]);
    const Step *s = v && v->kind == VALUE_tensor && v->step ? &r->steps.at[v->step - 1] : NULL;
    if (s && (!latest || s > latest)) latest = s;
  }
  add_scope(r, all, "", NULL);
  for (uint32_t i = 1; latest && i < latest->scopes.n; i++)
    vec_push(r->arena, all, latest->scopes.at[i]);
}

Scopes scopes_of(Reader *r)
{
  if (r->scopes.n) return r->scopes;
  if (!read_metadata(r, &r->scopes) && !read_name(r, &r->scopes)) follow_operands(r, &r->scopes);
  return r->scopes;
}

const char *scope_path(Reader *r)
{
  Scopes all = scopes_of(r);
  return all.at[all.n - 1].path;
}
