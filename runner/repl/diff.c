/* :diff compares two passes, two checkpoints or two precisions. */
#include "commands.h"
#include "compiler/graph/ir.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys of graph lines ---- */

/* Writes the line without the numbers of nodes and groups, because one added or removed node
 * changes all later numbers: "%12 = add %3" and "%14 = add %5" then have the same key. */
static void without_numbers(const char *line, size_t n, char *out)
{
  for (size_t i = 0; i < n;) {
    bool group = strncmp(line + i, " group=", 7) == 0 && n - i > 7;
    if (line[i] == '%' || group) {
      i += group ? 7 : 1;
      while (i < n && isdigit((unsigned char)line[i])) i++;
      if (!group) *out++ = '%';
    } else if (line[i] == ' ' && i + 1 < n && line[i + 1] == ' ') {
      i++;
    } else {
      *out++ = line[i++];
    }
  }
  *out = 0;
}

/* Writes the line without numbers, element types and their reason, so that it matches the same line
 * in another precision. */
static void without_types(const char *line, size_t n, char *out)
{
#define OPENED(KIND, name, ...) #name "[",
  static const char *const types[] = {AMPC_FLOATS(OPENED)};
  char *text = malloc(n + 1);
  if (!text) arena_out_of_memory();
  without_numbers(line, n, text);
  char *comment = strstr(text, "# ");
  if (comment && comment != text) { /* the place stays */
    size_t place = strcspn(comment + 2, " ");
    comment[2 + place] = 0;
  }
  for (const char *s = text; *s;) {
    size_t skip = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types && !skip; i++)
      if (strncmp(s, types[i], strlen(types[i])) == 0) skip = strlen(types[i]) - 1;
    if (skip)
      s += skip;
    else
      *out++ = *s++;
  }
  *out = 0;
  free(text);
}

/* Compiles and prints the graph to `out`, in the program's arena; the caller drops the program. */
static Compiled *graph_text(Repl *r, const Request *q, Text *out)
{
  Compiled *p = program_compile(r, q);
  if (!p) return NULL;
  text_init(out, p->c->arena);
  ir_print(p->c, out, false);
  return p;
}

/* Compares graphs; lines match by `key`. A matching pair is shown as changed if it differs in more
 * than numbers of nodes, so changed types are shown even if `key` ignores types. */
static bool diff_graphs(Repl *r, const Request *one, const Request *two, LineKey *key)
{
  Text a, b;
  Compiled *p = graph_text(r, one, &a), *q = p ? graph_text(r, two, &b) : NULL;
  if (q && !diff_lines(a.at, b.at, key, without_numbers)) puts("no difference");
  compiled_drop(p);
  compiled_drop(q);
  return q != NULL;
}

static bool diff_passes(Repl *r, const char *a, const char *b)
{
  const char *const names[] = {a, b};
  for (int i = 0; i < 2; i++)
    if (!pass_exists(names[i])) return repl_error(r, "no pass %s; :graph lists them", names[i]);
  return diff_graphs(r, &(Request){.dump_after = a}, &(Request){.dump_after = b}, without_numbers);
}

/* Compares precisions. The key ignores types, so a value with another type is one changed line. */
static bool diff_precisions(Repl *r, const char *a, const char *b)
{
  return diff_graphs(r, &(Request){.dump_after = "precision", .precision = a},
                     &(Request){.dump_after = "precision", .precision = b}, without_types);
}

/* ---- checkpoints ---- */

/* Loads the file into a twin (live_twin), so that the state of the session does not change. */
static bool load_twin(Repl *r, const char *path, ampc_runtime **out, ampc_state *state)
{
  ampc_data_position at;
  return repl_check(r, live_twin(r, r->live, NULL, out)) &&
         repl_check(r, ampc_checkpoint_load(*out, path, &at)) &&
         repl_check(r, ampc_get_state(*out, state));
}

/* Compares the values of q in a space of both runtimes. `what` is printed before its path. */
static bool diff_space(Repl *r, ampc_runtime *const rt[2], const ampc_param *q, ampc_space space,
                       const char *what, uint32_t *differ)
{
  HostTensor t[2] = {{.at = NULL}, {.at = NULL}};
  bool good = repl_check(r, tensor_read_param(rt[0], q, space, &t[0])) &&
              repl_check(r, tensor_read_param(rt[1], q, space, &t[1]));
  double most = 0, squares = 0, size = 0;
  int64_t n = 0;
  for (int64_t i = 0; good && i < t[0].elements; i++) {
    double x = t[0].at[i], y = t[1].at[i], gap = x - y;
    if (t[0].whole) /* exact, even if the doubles have the same value */
      gap = (double)(int64_t)((uint64_t)t[0].whole[i] - (uint64_t)t[1].whole[i]);
    size += x * x;
    /* same infinity, or both NaN */
    if (gap == 0 || (!t[0].whole && x == y) || (isnan(x) && isnan(y))) continue;
    n++;
    most = fmax(most, fabs(gap));
    squares += gap * gap;
  }
  if (n)
    printf("%s%s: %lld of %lld differ, by at most %.3g; relative %.3g\n", what, q->path,
           (long long)n, (long long)t[0].elements, most, sqrt(squares / (size > 0 ? size : 1)));
  *differ += n > 0;
  free(t[0].at);
  free(t[1].at);
  return good;
}

/* Compares a parameter. A share has only the moments of a second optimizer, no weight or
 * average. */
static bool diff_param(Repl *r, ampc_runtime *const rt[2], const ampc_param *q, bool share,
                       uint32_t *differ)
{
  const ampc_program *p = ampc_program_of(rt[0]);
  if (q->buffer) return diff_space(r, rt, q, AMPC_BUFFER, "", differ);
  const ampc_optimizer_desc *o = q->optimizer < 0 ? NULL : &p->optimizers[q->optimizer];
  const struct {
    bool used;
    ampc_space space;
    const char *what;
  } kept[] = {{!share, AMPC_MASTER, ""},
              {o && o->uses_moment1, AMPC_MOMENT1, "moment 1 of "},
              {o && o->uses_moment2, AMPC_MOMENT2, "moment 2 of "},
              {o && o->uses_moment3, AMPC_MOMENT3, "moment 3 of "},
              {!share && ampc_average_of(p, q), AMPC_EMA, "average of "}};
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
    if (kept[i].used && !diff_space(r, rt, q, kept[i].space, kept[i].what, differ)) return false;
  return true;
}

static bool diff_checkpoints(Repl *r, const char *path_a, const char *path_b)
{
  ampc_runtime *rt[2] = {NULL, NULL};
  ampc_state s[2];
  uint32_t differ = 0;
  bool good =
      live_ready(r) && load_twin(r, path_a, &rt[0], &s[0]) && load_twin(r, path_b, &rt[1], &s[1]);
  if (good && s[0].step != s[1].step) printf("step %lld and %lld\n", s[0].step, s[1].step);
  if (good && s[0].scale != s[1].scale)
    printf("loss scale %g and %g\n", (double)s[0].scale, (double)s[1].scale);
  const ampc_program *p = r->live ? r->live->c->program : NULL;
  for (uint32_t i = 0; good && i < p->n_params; i++)
    good = diff_param(r, rt, &p->params[i], false, &differ);
  for (uint32_t i = 0; good && i < p->n_shares; i++)
    good = diff_param(r, rt, &p->shares[i], true, &differ);
  if (good && !differ) puts("no tensor differs");
  ampc_free(rt[0]);
  ampc_free(rt[1]);
  return good;
}

bool command_diff(Repl *r, const char *arg)
{
  char *kind = NULL, *a = NULL, *b = NULL;
  char *copy = strdup(arg), *rest = copy;
  if (!copy) arena_out_of_memory();
  kind = strtok_r(rest, " \t", &rest);
  a = strtok_r(NULL, " \t", &rest);
  b = strtok_r(NULL, " \t", &rest);
  bool good;
  if (!b || strtok_r(NULL, " \t", &rest))
    good = repl_error(r, ":diff needs two things to compare: pass A B, ckpt A B or precision A B");
  else if (strcmp(kind, "pass") == 0)
    good = diff_passes(r, a, b);
  else if (strcmp(kind, "ckpt") == 0)
    good = diff_checkpoints(r, a, b);
  else if (strcmp(kind, "precision") == 0)
    good = diff_precisions(r, a, b);
  else
    good = repl_error(r, ":diff %s: expected pass, ckpt or precision", kind);
  free(copy);
  return good;
}
