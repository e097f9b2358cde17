/* Writes the job around the modules: arguments, data, loss. */
#include "job.h"
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "compiler/base/json.h"
#include "modules.h"

typedef struct Job {
  Modules m;
  Reader *r;
  Text out;
  VEC(const char *) names; /* of the arguments */
} Job;

/* ---- types of arguments and results ---- */

static const char *upper(Job *j, const char *name)
{
  char *s = arena_strdup(j->r->arena, name_clean(j->r, name, "SIZE"));
  for (char *c = s; *c; c++) *c = (char)toupper((unsigned char)*c);
  return text(j->r, names_get(&j->m.forms.taken, s) ? "%s_SIZE" : "%s", s);
}

/* The size of an axis of an argument, as code. Open sizes are constants of the job. */
static const char *argument_size(Job *j, const Value *v, uint32_t axis)
{
  int64_t n;
  if (counts_samples(j->r, v, axis)) return "BATCH";
  if (stated_size(v, axis, &n)) return text(j->r, "%" PRId64, n);
  return upper(j, size_key(j->r, v, axis));
}

/* The same for a result, whose sizes may be those of arguments. NULL: it is another one. */
static const char *size_code(Job *j, const Value *v, uint32_t axis)
{
  int64_t n;
  if (v->argument) return argument_size(j, v, axis);
  if (size_of(v, axis, &n)) return text(j->r, "%" PRId64, n);
  const Item size = {v->shape->dim[0][axis], v->shape->dim[1][axis], ""};
  for (uint32_t i = 0; i < j->r->arguments.n; i++)
    for (uint32_t k = 0; k < rank_of(j->r->arguments.at[i]); k++)
      if (is_size(j->r->arguments.at[i], k, size))
        return argument_size(j, j->r->arguments.at[i], k);
  return NULL;
}

/* The sizes of the axes from `first` on, without the last `less` ones. */
static const char *shape_code(Job *j, const Value *v, uint32_t first, uint32_t less)
{
  const char *all = "";
  for (uint32_t i = first; i + less < rank_of(v); i++)
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
    text_printf(&j->out, "%ssynthetic(SAMPLES, [%s]", i ? ", " : "", shape_code(j, v, 1, 0));
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

/* Whether the sizes of all axes but the first are numbers, or sizes of arguments. */
static bool has_known_sizes(Job *j, const Value *y)
{
  for (uint32_t i = 1; i < rank_of(y); i++)
    if (!size_code(j, y, i)) return false;
  return rank_of(y) >= 0;
}

/* An argument of words: the number of its table's rows is `classes`. NULL: none */
static const Value *find_words(Job *j, int64_t classes)
{
  for (uint32_t i = 0; i < j->r->arguments.n; i++) {
    const Value *x = j->r->arguments.at[i];
    if (rows_for(j, x, 4) == classes) return x;
  }
  return NULL;
}

/* The loss that the first result suggests, and the data that it needs. */
static const char *guess_loss(Job *j, const char **target)
{
  const Value *y = j->r->results.at[0];
  int64_t rank = rank_of(y), classes;
  *target = "";
  if (rank == 2 && size_of(y, 1, &classes) && classes > 1) {
    *target = text(j->r, "synthetic(SAMPLES, [], dtype=i64, low=0, high=%" PRId64 ")", classes);
    return "cross_entropy(y, target)";
  }
  const Value *x =
      rank == 3 && size_of(y, 2, &classes) && classes > 2 ? find_words(j, classes) : NULL;
  if (x) { /* a language model: the next word at each place of the result */
    bool stated = has_known_sizes(j, y);
    *target = text(j->r, "synthetic(SAMPLES, [%s], dtype=i64, low=0, high=%" PRId64 ")",
                   stated ? shape_code(j, y, 1, 1) : shape_code(j, x, 1, 0), classes);
    return "cross_entropy(y.flatten(0, 1), target.flatten())";
  }
  if (!has_known_sizes(j, y)) return "y.to(f32).square().mean()";
  *target = text(j->r, "synthetic(SAMPLES, [%s])", shape_code(j, y, 1, 0));
  return "mse_loss(y, target)";
}

/* Why the net cannot be trained. NULL: it has weights, a float result, and arguments with one
 * sample in each row. */
static const char *why_untrained(const Reader *r)
{
  int32_t type = r->results.at[0]->type;
  if (r->arguments.n == 0) return "the model has no inputs";
  if (type && !onnx_is_float(type)) return "its first result is no tensor of floats";
  for (uint32_t i = 0; i < r->arguments.n; i++)
    if (!is_batch(r, r->arguments.at[i]))
      return text(r, "the first size of %s is not that of %s",
                  arena_shown(r->arena, r->arguments.at[i]->name, ""),
                  arena_shown(r->arena, r->arguments.at[0]->name, ""));
  for (uint32_t i = 0; i < r->members.n; i++)
    if (strncmp(r->members.at[i].text, "Buffer(", 7) != 0) return NULL;
  return "no tensor of it trains";
}

static void write_blocks(Job *j, bool train)
{
  const char *target = "", *loss = train ? guess_loss(j, &target) : "",
             *arguments = argument_list(j), *more = "";
  for (uint32_t i = 1; i < j->r->results.n; i++) more = text(j->r, "%s, y%u", more, i + 1);
  if (train) write_data(j, target);
  if (train)
    text_printf(&j->out,
                "\ntrain %s%s in drawn() with batch=BATCH, epochs=1 {\n  y%s = net(%s)\n  minimize "
                "%s with opt\n}\n\n",
                arguments, *target ? ", target" : "", more, arguments, loss);
  text_puts(&j->out, "infer predict(");
  for (uint32_t i = 0; i < j->r->arguments.n; i++) {
    const Value *v = j->r->arguments.at[i];
    text_printf(&j->out, "%s%s: %s[%s]", i ? ", " : "", j->names.at[i],
                v->type ? type_word(v->type) : "f32", shape_code(j, v, 0, 0));
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

/* What the model loads, and what it freezes. */
static void write_clauses(Job *j, const JobWishes *wishes, Text *out)
{
  if (!j->r->stored.n) return;
  text_puts(out, " { load(");
  text_add_json(out, wishes->weights);
  text_puts(out, ")");
  for (const char *at = wishes->freeze; at && *at; at += *at == ',') {
    size_t n = strcspn(at, ",");
    text_puts(out, at == wishes->freeze ? "; freeze(" : ", ");
    text_add_json(out, arena_strndup(j->r->arena, at, n));
    at += n;
  }
  text_puts(out, wishes->freeze ? ") }" : " }");
}

/* The whole job. `model`: the modules and the instance, without its clauses. */
static const char *joined(Job *j, const JobWishes *wishes, const char *model, bool train)
{
  Reader *r = j->r;
  Text out = text_new(r->arena);
  j->out = text_new(r->arena);
  write_blocks(j, train);
  text_printf(&out, "# Imported from %s (%sopset %" PRId64 "). The weights are in %s.\n",
              arena_shown(r->arena, wishes->source, ""), producer(r), r->opset,
              arena_shown(r->arena, wishes->weights, ""));
  text_printf(&out, "const BATCH = %" PRId64 "\nconst SAMPLES = 1024\n", job_batch(r));
  for (uint32_t i = 0; i < r->sizes.n; i++)
    text_printf(&out, "const %s = %" PRId64 "\n", upper(j, r->sizes.at[i].key),
                r->sizes.at[i].at[0]);
  text_printf(&out, "\n%s", model);
  write_clauses(j, wishes, &out);
  text_printf(&out, "\n%sprecision f16\n\n%s", train ? "optimizer opt = AdamW(net, lr=1e-4)\n" : "",
              j->out.at);
  return out.at;
}

void job_text(Reader *r, const JobWishes *wishes, JobText *to)
{
  Job j = {.r = r};
  Text model = text_new(r->arena);
  modules_build(&j.m, r);
  *names_at(&j.m.forms.taken, "BATCH") = *names_at(&j.m.forms.taken, "SAMPLES") = r; /* constants */
  const Form *net = modules_finish(&j.m);
  prelude_print(r, &model);
  forms_print(&j.m.forms, &model);
  text_puts(&model, "model net = ");
  form_print(&j.m.forms, net, &model);
  name_arguments(&j);
  *to = (JobText){.why = why_untrained(r)};
  to->untrained = joined(&j, wishes, model.at, false);
  to->whole = to->why ? to->untrained : joined(&j, wishes, model.at, true);
}
