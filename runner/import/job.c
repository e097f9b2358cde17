/* Writes the job around the modules: arguments, data, loss. */
#include "job.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "compiler/base/json.h"
#include "modules.h"

enum { BATCH = 32, OTHER_SIZE = 16 /* of an axis whose size the file leaves open */ };

typedef struct Job {
  Modules m;
  Reader *r;
  Text out;
  VEC(const char *) sizes; /* of constants for open sizes: "LENGTH" */
  VEC(const char *) names; /* of the arguments */
} Job;

/* ---- types of arguments and results ---- */

static const char *upper(Job *j, const char *name)
{
  char *s = arena_strdup(j->r->arena, name_clean(j->r, name, "SIZE"));
  for (char *c = s; *c; c++) *c = (char)toupper((unsigned char)*c);
  return text(j->r, names_get(&j->m.forms.taken, s) ? "%s_SIZE" : "%s", s);
}

/* Whether the first axis counts samples: it has the size of the first argument's. */
static bool is_batch(const Reader *r, const Value *v)
{
  const Value *first = r->arguments.at[0];
  const char *a = dim_name(first, 0), *b = dim_name(v, 0);
  int64_t m, n, rank;
  if (!rank_of(v, &rank) || rank == 0) return false;
  if (size_of(first, 0, &m) || size_of(v, 0, &n))
    return size_of(first, 0, &m) && size_of(v, 0, &n) && m == n;
  return !a || !b || strcmp(a, b) == 0;
}

/* The size of an axis, as code. Open sizes are constants of the job. */
static const char *size_code(Job *j, const Value *v, int64_t axis)
{
  int64_t n;
  if (axis == 0 && is_batch(j->r, v)) return "BATCH";
  if (size_of(v, axis, &n)) return text(j->r, "%" PRId64, n);
  const char *dim = dim_name(v, axis),
             *name = upper(j, dim ? dim : text(j->r, "%s_%d", v->name, (int)axis));
  bool known = false;
  for (uint32_t i = 0; i < j->sizes.n; i++) known = known || strcmp(j->sizes.at[i], name) == 0;
  if (!known) vec_push(j->r->arena, &j->sizes, name);
  return name;
}

static const char *shape_code(Job *j, const Value *v, int64_t first)
{
  int64_t rank = 0;
  const char *all = "";
  if (!rank_of(v, &rank)) return "";
  for (int64_t i = first; i < rank; i++)
    all = text(j->r, "%s%s%s", all, i > first ? ", " : "", size_code(j, v, i));
  return all;
}

static void name_arguments(Job *j)
{
  static const char *const used[] = {"net",     "opt",       "target",   "drawn",
                                     "predict", "synthetic", "mse_loss", "cross_entropy"};
  NameMap taken = {.arena = j->r->arena};
  for (size_t i = 0; i < sizeof used / sizeof *used; i++) *names_at(&taken, used[i]) = j;
  for (uint32_t i = 0; i < j->r->arguments.n; i++) {
    const char *name = name_clean(j->r, j->r->arguments.at[i]->name, "x");
    bool plain =
        !is_reserved(name) && strspn(name, "yABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") < strlen(name);
    if (!plain) name = text(j->r, "x%u", i + 1);
    while (names_get(&taken, name)) name = text(j->r, "%s_", name);
    *names_at(&taken, name) = j;
    vec_push(j->r->arena, &j->names, name);
  }
}

/* The number of rows of the table that an integer argument selects from, also after a few steps
 * that keep its numbers. If no table is found: 256 for a u8 argument, otherwise 2. */
static int64_t rows_for(Job *j, const Value *v, int most)
{
  for (uint32_t i = 0; i < v->users.n && most > 0; i++) {
    const Step *s = &j->r->steps.at[v->users.at[i]];
    const char *made = *s->text == '#' ? j->r->members.at[strtoul(s->text + 1, NULL, 10)].text : "";
    if (strncmp(made, "Embedding(", 10) == 0) return strtoll(made + 10, NULL, 10);
    int64_t rows =
        *s->text == '$' && s->n_out == 1 ? rows_for(j, j->r->values.at[s->out[0]], most - 1) : 2;
    if (rows != 2) return rows;
  }
  return v->argument && v->type == ONNX__TENSOR_PROTO__DATA_TYPE__UINT8 ? 256 : 2;
}

/* ---- parts of the job ---- */

static void write_data(Job *j, const char *target)
{
  text_puts(&j->out, "data drawn() {                 # random numbers in place of your data: see "
                     "docs/data.md\n  return ");
  for (uint32_t i = 0; i < j->r->arguments.n; i++) {
    const Value *v = j->r->arguments.at[i];
    text_printf(&j->out, "%ssynthetic(SAMPLES, [%s]", i ? ", " : "", shape_code(j, v, 1));
    if (v->type && !onnx_is_float(v->type))
      text_printf(&j->out, ", dtype=%s, low=0, high=%" PRId64, type_word(v->type),
                  rows_for(j, v, 4));
    text_puts(&j->out, ")");
  }
  text_printf(&j->out, "%s%s\n}\n", *target ? ", " : "", target);
}

static const char *argument_list(Job *j)
{
  const char *all = "";
  for (uint32_t i = 0; i < j->r->arguments.n; i++)
    all = text(j->r, "%s%s%s", all, i ? ", " : "", j->names.at[i]);
  return all;
}

/* Whether the sizes of all axes but the first are numbers, or named sizes of arguments. */
static bool has_known_sizes(const Reader *r, const Value *y)
{
  int64_t rank, n;
  if (!rank_of(y, &rank)) return false;
  for (int64_t i = 1; i < rank; i++) {
    const char *name = dim_name(y, i);
    bool known = size_of(y, i, &n);
    for (uint32_t k = 0; k < r->arguments.n && name; k++)
      for (int64_t axis = 1; axis < READ_RANK; axis++) {
        const char *other = dim_name(r->arguments.at[k], axis);
        known = known || (other && strcmp(other, name) == 0);
      }
    if (!known) return false;
  }
  return true;
}

/* The loss that the first result suggests, and the data that it needs. */
static const char *guess_loss(Job *j, const char **target)
{
  const Value *y = j->r->results.at[0];
  int64_t rank, classes;
  bool known = rank_of(y, &rank);
  *target = "";
  if (known && rank == 2 && size_of(y, 1, &classes) && classes > 1) {
    *target = text(j->r, "synthetic(SAMPLES, [], dtype=i64, low=0, high=%" PRId64 ")", classes);
    return "cross_entropy(y, target)";
  }
  const Value *x = j->r->arguments.n ? j->r->arguments.at[0] : NULL;
  bool words = known && rank == 3 && x && size_of(y, 2, &classes) && classes > 2 &&
               rows_for(j, x, 4) == classes;
  if (words) { /* a language model: the next word at each place */
    *target = text(j->r, "synthetic(SAMPLES, [%s], dtype=i64, low=0, high=%" PRId64 ")",
                   shape_code(j, x, 1), classes);
    return "cross_entropy(y.flatten(0, 1), target.flatten())";
  }
  if (!known || !has_known_sizes(j->r, y)) return "y.to(f32).square().mean()";
  *target = text(j->r, "synthetic(SAMPLES, [%s])", shape_code(j, y, 1));
  return "mse_loss(y, target)";
}

/* Whether the net has weights, a float result, and arguments with one sample in each row, so that
 * it can be trained. */
static bool is_trainable(const Reader *r)
{
  int32_t type = r->results.at[0]->type;
  if (r->arguments.n == 0 || (type && !onnx_is_float(type))) return false;
  for (uint32_t i = 0; i < r->arguments.n; i++)
    if (!is_batch(r, r->arguments.at[i])) return false;
  for (uint32_t i = 0; i < r->members.n; i++)
    if (strncmp(r->members.at[i].text, "Buffer(", 7) != 0) return true;
  return false;
}

static void write_blocks(Job *j)
{
  const char *target, *loss = guess_loss(j, &target), *arguments = argument_list(j), *more = "";
  for (uint32_t i = 1; i < j->r->results.n; i++) more = text(j->r, "%s, y%u", more, i + 1);
  if (is_trainable(j->r)) write_data(j, target);
  if (is_trainable(j->r))
    text_printf(&j->out,
                "\ntrain %s%s in drawn() with batch=BATCH, epochs=1 {\n  y%s = net(%s)\n  minimize "
                "%s with opt\n}\n\n",
                arguments, *target ? ", target" : "", more, arguments, loss);
  text_puts(&j->out, "infer predict(");
  for (uint32_t i = 0; i < j->r->arguments.n; i++) {
    const Value *v = j->r->arguments.at[i];
    text_printf(&j->out, "%s%s: %s[%s]", i ? ", " : "", j->names.at[i],
                v->type ? type_word(v->type) : "f32", shape_code(j, v, 0));
  }
  text_printf(&j->out, ") { return net(%s) }\n", arguments);
}

static const char *producer(const Reader *r)
{
  const char *name = r->model->producer_name, *version = r->model->producer_version;
  if (!name || !*name) return "";
  return text(r, "%s%s%s, ", arena_shown(r->arena, name, ""), version && *version ? " " : "",
              version ? arena_shown(r->arena, version, "") : "");
}

const char *job_text(Reader *r, const char *source, const char *weights)
{
  Job j = {.r = r, .out = text_new(r->arena)};
  Text modules = text_new(r->arena), model = text_new(r->arena);
  modules_build(&j.m, r);
  *names_at(&j.m.forms.taken, "BATCH") = *names_at(&j.m.forms.taken, "SAMPLES") = r; /* constants */
  const Form *net = modules_finish(&j.m);
  forms_print(&j.m.forms, &modules);
  form_print(&j.m.forms, net, &model);
  name_arguments(&j);
  write_blocks(&j);
  Text out = text_new(r->arena);
  text_printf(&out, "# Imported from %s (%sopset %" PRId64 "). The weights are in %s.\n",
              arena_shown(r->arena, source, ""), producer(r), r->opset,
              arena_shown(r->arena, weights, ""));
  text_printf(&out, "const BATCH = %" PRId64 "\nconst SAMPLES = 1024\n",
              r->batch ? r->batch : BATCH);
  for (uint32_t i = 0; i < j.sizes.n; i++)
    text_printf(&out, "const %s = %d\n", j.sizes.at[i], OTHER_SIZE);
  text_printf(&out, "\n%smodel net = %s", modules.at, model.at);
  if (r->stored.n) text_puts(&out, " { load(");
  if (r->stored.n) text_add_json(&out, weights);
  text_printf(&out, "%s\n%sprecision f16\n\n", r->stored.n ? ") }" : "",
              is_trainable(r) ? "optimizer opt = AdamW(net, lr=1e-4)\n" : "");
  text_puts(&out, j.out.at);
  return out.at;
}
