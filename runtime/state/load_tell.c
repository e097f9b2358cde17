/* Reports all mismatches of a `load` clause in one message, with the lines that would resolve them.
 * compiler/diag/errors.def has the error codes, which ampc --explain-error explains. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "load.h"
#include "common/pattern.h"

enum { NAMES = 5 /* names listed per kind of mismatch */, PATTERNS = 8 /* patterns suggested */ };

typedef enum Side { SIDE_params, SIDE_tensors } Side;

/* bad: names with one kind of mismatch; good: names without it. */
typedef struct Names {
  const char **bad, **good;
  uint32_t n_bad, n_good;
} Names;

typedef struct Report {
  const Loading *x;
  FILE *out;
  bool wrong; /* a mismatch was reported */
} Report;

static bool names_room(Names *s, uint32_t most)
{
  *s = (Names){.bad = calloc(most + 1, sizeof *s->bad), .good = calloc(most + 1, sizeof *s->good)};
  return s->bad && s->good;
}

static void names_free(Names *s)
{
  free(s->bad);
  free(s->good);
}

static void sort_name(Names *s, bool bad, const char *name)
{
  if (bad)
    s->bad[s->n_bad++] = name;
  else
    s->good[s->n_good++] = name;
}

/* ---- patterns to write ---- */

static bool names_good_one(const Names *s, const char *pattern)
{
  for (uint32_t i = 0; i < s->n_good; i++)
    if (pattern_matches(pattern, s->good[i], false)) return true;
  return false;
}

/* Replaces the numbers in a name, at most `most` of them: "h.0.attn.1.bias" becomes
 * "h.*.attn.*.bias", or "h.*.attn.1.bias" if `most` is 1. */
static void without_numbers(const char *name, int most, char *to)
{
  for (bool begins = true; *name; begins = name[-1] == '.') {
    size_t n = strcspn(name, "."), digits = strspn(name, "0123456789");
    if (begins && n && digits == n && most-- > 0) {
      *to++ = '*';
      name += n;
    } else {
      *to++ = *name++;
    }
  }
  *to = 0;
}

/* Writes the widest pattern that matches `name` but no good name. Tries, in this order: everything
 * below the first segment, unless `exact`; every number as `*`; only the first number as `*`; the
 * name itself. `to` has space for the name and 4 bytes. */
static void widest(const Names *s, const char *name, bool exact, char *to)
{
  size_t first = strcspn(name, ".");
  if (!exact && name[first]) {
    memcpy(to, name, first);
    strcpy(to + first, ".**");
    if (!names_good_one(s, to)) return;
  }
  without_numbers(name, INT32_MAX, to);
  if (!names_good_one(s, to)) return;
  without_numbers(name, 1, to);
  if (names_good_one(s, to)) strcpy(to, name);
}

/* Chooses up to PATTERNS patterns that match bad names. *out_all: each bad name matches one. The
 * caller frees the patterns. */
static int choose_patterns(const Names *s, bool exact, char *chosen[PATTERNS], bool *out_all)
{
  int n = 0;
  *out_all = true;
  for (uint32_t i = 0; i < s->n_bad; i++) {
    int k = 0;
    while (k < n && !pattern_matches(chosen[k], s->bad[i], false)) k++;
    if (k < n) continue;
    *out_all = *out_all && n < PATTERNS;
    char *pattern = n < PATTERNS ? malloc(strlen(s->bad[i]) + 5) : NULL;
    if (!pattern) continue;
    widest(s, s->bad[i], exact, pattern);
    chosen[n++] = pattern;
  }
  return n;
}

/* Writes, for example, `missing=["a.**", "b.*.weight"]`. */
static void put_patterns(const Report *r, const Names *s, const char *argument, bool exact)
{
  char *chosen[PATTERNS];
  bool all;
  int n = choose_patterns(s, exact, chosen, &all);
  fprintf(r->out, "%s=%s", argument, n > 1 || !all ? "[" : "");
  for (int k = 0; k < n; k++) {
    fprintf(r->out, "%s\"%s\"", k ? ", " : "", chosen[k]);
    free(chosen[k]);
  }
  fprintf(r->out, "%s%s", all ? "" : ", ...", n > 1 || !all ? "]" : "");
}

static void put_names(const Report *r, const Names *s)
{
  for (uint32_t i = 0; i < s->n_bad && i < NAMES; i++)
    fprintf(r->out, "%s%s", i ? ", " : "", s->bad[i]);
  if (s->n_bad > NAMES) fprintf(r->out, ", ... (%u more)", s->n_bad - NAMES);
}

/* ---- lacking parameters ---- */

/* Whether a parameter has no value: no clause of the model sets it or lists it in `missing`. A file
 * for all models, which no clause names, may lack copies and what `load` clauses give. A file of
 * an adapter may lack buffers, because PEFT's do. */
static bool is_lacking(const Loading *all, uint32_t n, const Loading *x, uint32_t i)
{
  const ampc_param *q = &x->program->params[i];
  if ((q->init.kind == AMPC_INIT_COPY || q->given) && !x->load->line) return false;
  if (x->load->adapter && q->buffer && !q->adapts) return false;
  for (uint32_t k = 0; k < n; k++) {
    const ampc_load *load = all[k].load;
    if (strcmp(load->model, x->load->model) != 0) continue;
    if (all[k].given[i] ||
        load_names(load_missing(load), load->n_missing, load_own_name(load, q->path)))
      return false;
  }
  return true;
}

/* Suggests `strip`: PyTorch's wrappers may have added a prefix: "module.fc.weight". */
static void suggest_strip(const Report *r, const Names *lacking)
{
  const Loading *x = r->x;
  for (uint32_t i = 0; i < x->n && !*x->load->strip; i++) {
    const char *name = x->at[i].name, *dot = strrchr(name, '.');
    for (uint32_t k = 0; k < lacking->n_bad && dot && !x->at[i].is_taken; k++) {
      size_t n = strlen(name), m = strlen(lacking->bad[k]);
      if (n <= m || name[n - m - 1] != '.' || strcmp(name + n - m, lacking->bad[k]) != 0) continue;
      fprintf(r->out, "  names in the file have a prefix: strip=\"%.*s\"\n", (int)(n - m), name);
      return;
    }
  }
}

/* Suggests a prefix: the file may lack one of the model: "fc.weight" for "backbone.fc.weight". */
static void suggest_prefix(const Report *r, const Names *lacking)
{
  const Loading *x = r->x;
  for (uint32_t k = 0; k < lacking->n_bad; k++)
    for (const char *dot = strchr(lacking->bad[k], '.'); dot; dot = strchr(dot + 1, '.')) {
      const json_t *number = json_object_get(x->index, dot + 1);
      if (!number || x->at[json_integer_value(number)].is_taken) continue;
      fprintf(r->out, "  names in the model have a prefix: rename=[[\"**\", \"%.*s.**\"]]\n",
              (int)(dot - lacking->bad[k]), lacking->bad[k]);
      return;
    }
}

/* Reports the parameters that no clause sets. Called for the last `load` clause of a model. */
static bool tell_lacking(Report *r, const Loading *all, uint32_t n)
{
  const Loading *x = r->x;
  const ampc_program *p = x->program;
  Names s;
  bool good = names_room(&s, p->n_params);
  for (uint32_t i = 0; i < p->n_params && good; i++)
    if (load_is_own(x->load, &p->params[i]))
      sort_name(&s, is_lacking(all, n, x, i), load_own_name(x->load, p->params[i].path));
  if (good && s.n_bad) {
    r->wrong = true;
    fprintf(r->out, "\nE502: the file lacks %u of %u parameters and buffers: ", s.n_bad,
            s.n_bad + s.n_good);
    put_names(r, &s);
    fprintf(r->out, "\n");
    suggest_strip(r, &s);
    suggest_prefix(r, &s);
    fprintf(r->out, "  to keep their initial values, write: ");
    put_patterns(r, &s, "missing", false);
  }
  names_free(&s);
  return good;
}

/* ---- parameters of another shape or kind ---- */

static bool could_transpose(const TensorEntry *e, const ampc_param *q)
{
  return e->rank == 2 && q->rank == 2 && e->dim[0] == q->dim[1] && e->dim[1] == q->dim[0];
}

static void put_dims(FILE *out, const int64_t *dim, uint32_t rank)
{
  fprintf(out, "[");
  for (uint32_t i = 0; i < rank; i++) fprintf(out, "%s%lld", i ? ", " : "", (long long)dim[i]);
  fprintf(out, "]");
}

/* Writes "fc.weight is [10, 4] in the file, [4, 10] in the model". */
static void put_misfit(const Report *r, uint32_t i)
{
  const Loading *x = r->x;
  const ampc_param *q = &x->program->params[i];
  const LoadTensor *t = &x->at[x->given[i] - 1];
  fprintf(r->out, "%s is ", t->name);
  if (x->fit[i] == FIT_kind) {
    const json_t *entry = json_object_get(t->file->header, t->name);
    fprintf(r->out, "%s in the file, %s in the model",
            json_string_value(json_object_get(entry, "dtype")), ampc_dtype_name(q->dtype));
    return;
  }
  put_dims(r->out, t->entry.dim, t->entry.rank);
  fprintf(r->out, " in the file, ");
  put_dims(r->out, q->dim, q->rank);
  fprintf(r->out, " in the model");
}

/* Returns the name that patterns of `unused` match: after strip, before rename. */
static const char *seen_by_unused(const Loading *x, const LoadTensor *t)
{
  size_t n = strlen(x->load->strip);
  return t->name + (n && strncmp(t->name, x->load->strip, n) == 0 ? n : 0);
}

/* Selects the parameters of one kind of mismatch. */
typedef bool IsMisfit(const Loading *x, uint32_t i);

static bool is_turned(const Loading *x, uint32_t i)
{
  return x->given[i] && x->fit[i] == FIT_shape &&
         could_transpose(&x->at[x->given[i] - 1].entry, &x->program->params[i]);
}

static bool is_other_shape(const Loading *x, uint32_t i)
{
  return x->given[i] && (x->fit[i] == FIT_kind || (x->fit[i] == FIT_shape && !is_turned(x, i)));
}

static void put_cure(const Report *r, const Names *s, const Names *in_file, bool turned)
{
  if (turned) {
    fprintf(r->out, "\n  if the file stores them transposed (list square ones, too: they "
                    "cannot be detected): ");
    put_patterns(r, s, "transpose", true);
  } else {
    fprintf(r->out, "\n  to train them from initial values, write: ");
    put_patterns(r, s, "missing", false);
    put_patterns(r, in_file, ", unused", false);
  }
}

static void put_misfits(const Report *r, IsMisfit *is_bad, uint32_t n)
{
  uint32_t told = 0;
  fprintf(r->out, "\nE503: %u %s another shape: ", n, n > 1 ? "have" : "has");
  for (uint32_t i = 0; i < r->x->program->n_params && told < NAMES; i++) {
    if (!is_bad(r->x, i)) continue;
    if (told++) fprintf(r->out, ", ");
    put_misfit(r, i);
  }
  if (n > NAMES) fprintf(r->out, ", ... (%u more)", n - NAMES);
}

static bool tell_misfits(Report *r, IsMisfit *is_bad)
{
  const Loading *x = r->x;
  const ampc_program *p = x->program;
  Names ours, theirs;
  bool good = names_room(&ours, p->n_params);
  good = names_room(&theirs, p->n_params) && good;
  for (uint32_t i = 0; i < p->n_params && good; i++) {
    if (!x->given[i]) continue;
    sort_name(&ours, is_bad(x, i), load_own_name(x->load, p->params[i].path));
    sort_name(&theirs, is_bad(x, i), seen_by_unused(x, &x->at[x->given[i] - 1]));
  }
  if (good && ours.n_bad) {
    r->wrong = true;
    put_misfits(r, is_bad, ours.n_bad);
    put_cure(r, &ours, &theirs, is_bad == is_turned);
  }
  names_free(&ours);
  names_free(&theirs);
  return good;
}

/* ---- tensors without a parameter, patterns that match nothing ---- */

static bool tell_unused(Report *r)
{
  const Loading *x = r->x;
  Names s;
  bool good = names_room(&s, x->n);
  for (uint32_t i = 0; i < x->n && good; i++)
    if (!x->at[i].left) sort_name(&s, !x->at[i].is_taken, seen_by_unused(x, &x->at[i]));
  if (good && s.n_bad) {
    r->wrong = true;
    fprintf(r->out, "\nE502: %u of the %u tensors in the file %s no parameter: ", s.n_bad, x->n,
            s.n_bad > 1 ? "match" : "matches");
    put_names(r, &s);
    fprintf(r->out, "\n  to ignore them, write: ");
    put_patterns(r, &s, "unused", false);
  }
  names_free(&s);
  return good;
}

/* Reports patterns that match nothing: they are nearly always mistakes. */
static void tell_idle(Report *r)
{
  const ampc_load *load = r->x->load;
  size_t unused = (size_t)(load_unused(load) - load->patterns);
  for (uint32_t i = 0; i < load->n_rename; i++)
    if (!r->x->hits[2 * i])
      fprintf(r->out, "\nE501: \"%s\" of `rename` matches none of the tensors in the file",
              load->patterns[2 * i]);
  for (uint32_t i = 0; i < load->n_unused; i++)
    if (!r->x->hits[unused + i])
      fprintf(r->out, "\nE501: \"%s\" of `unused` matches none of the tensors in the file",
              load->patterns[unused + i]);
  if (*load->strip && !r->x->strip_hits && load->line && !load->adapter)
    fprintf(r->out, "\nE501: `strip`: no name in the file begins with \"%s\"", load->strip);
}

static bool has_idle(const Loading *x)
{
  size_t unused = (size_t)(load_unused(x->load) - x->load->patterns);
  bool idle = *x->load->strip && !x->strip_hits && x->load->line && !x->load->adapter;
  for (uint32_t i = 0; i < x->load->n_rename; i++) idle = idle || !x->hits[2 * i];
  for (uint32_t i = 0; i < x->load->n_unused; i++) idle = idle || !x->hits[unused + i];
  return idle;
}

ampc_status load_account(const Loading *x, const Loading *all, uint32_t n, bool last)
{
  char *text = NULL;
  size_t size = 0;
  Report r = {.x = x, .out = open_memstream(&text, &size), .wrong = has_idle(x)};
  if (!r.out) return ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", x->path);
  fprintf(r.out, "%s does not fit `%s` (%s", x->path, x->load->model, x->program->source);
  fprintf(r.out, x->load->line ? ":%u)" : ")", x->load->line);
  bool good = (!last || tell_lacking(&r, all, n)) && tell_misfits(&r, is_turned) &&
              tell_misfits(&r, is_other_shape) && tell_unused(&r);
  if (good) tell_idle(&r);
  good = fclose(r.out) == 0 && good;
  ampc_status status = AMPC_OK;
  if (!good)
    status = ampc_fail(AMPC_RUN_FAILED, "out of memory for %s", x->path);
  else if (r.wrong)
    status = ampc_fail_log(AMPC_BAD_FILE, text);
  free(text);
  return status;
}
